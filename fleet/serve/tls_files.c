/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates expire while the process runs, and whoever mounts a Secret replaces both files at
 * once. Must never serve without the certificate that was requested, nor give one up for files that
 * are no good. */
#include "tls_files.h"

#include <assert.h>

#include <uv.h>

#include <sublet/file.h>
#include <sublet/log.h>

#define TLS_FILES_MAGIC 0x746c7366u
#define MOST_PEM        ((size_t)1 << 20)

struct tls_files {
    unsigned magic;
    struct tls_files_options o; /* names: heap */
    struct net_server *server;
    uv_fs_event_t watches[2]; /* the directories of the certificate and its key */
    unsigned n_open;
    bool stopped;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static int read_pair(struct arena *a, const struct tls_files_options *o, struct net_tls *ret,
                     struct err *err)
{
    *ret = (struct net_tls){0};
    return file_read(a, o->certificate, MOST_PEM, &ret->certificate, err) ||
                   file_read(a, o->key, MOST_PEM, &ret->key, err)
               ? -1
               : 0;
}

static void on_files(uv_fs_event_t *handle, const char *name, int events, int status)
{
    struct tls_files *t = handle->data;
    struct arena *a = arena_new(0);
    struct net_tls tls;
    struct err err;

    (void)name;
    (void)events;
    (void)status;
    assert(t->magic == TLS_FILES_MAGIC);
    err_init(&err, a);
    /* Between the two files of a rotation they do not match: the next event follows. */
    if (!t->stopped && (read_pair(a, &t->o, &tls, &err) || net_set_tls(t->server, &tls, &err)))
        log_warn("fleet: %s keeps its certificate error=\"%.*s\"", t->o.what, STR_F(err.message));
    arena_free(a);
}

/* The directory: a Secret's files are replaced by renaming a link in it. */
static void watch_directory(struct tls_files *t, uv_fs_event_t *handle, struct str file)
{
    struct arena *a = arena_new(0);
    size_t slash = str_rfind(file, '/');
    struct str directory = slash < file.n ? str_sub(file, 0, slash + 1) : STR(".");

    uv_fs_event_init(t->o.loop, handle);
    handle->data = t;
    if (uv_fs_event_start(handle, on_files, arena_cstr(a, directory), 0))
        log_warn("fleet: changes of the certificate of %s are not seen directory=\"%.*s\"",
                 t->o.what, STR_F(directory));
    arena_free(a);
}

static struct tls_files *watch(const struct tls_files_options *o, struct net_server *server)
{
    struct tls_files *t = NEW(struct tls_files);

    *t = (struct tls_files){.magic = TLS_FILES_MAGIC, .o = *o, .server = server, .n_open = 2};
    t->o.certificate = mem_str(o->certificate);
    t->o.key = mem_str(o->key);
    watch_directory(t, &t->watches[0], t->o.certificate);
    watch_directory(t, &t->watches[1], t->o.key);
    return t;
}

int fleet_tls_listen(const struct tls_files_options *options, const struct net_options *net,
                     struct net_server **ret_server, struct tls_files **ret_files, struct err *err)
{
    bool with_tls = options->certificate.n > 0;
    struct arena *a = arena_new(0);
    struct net_options with = *net;
    struct net_tls tls;
    int result = with_tls ? read_pair(a, options, &tls, err) : 0;

    with.tls = with_tls ? &tls : NULL;
    if (!result)
        result = net_listen(options->loop, &with, ret_server, err);
    if (!result)
        *ret_files = with_tls ? watch(options, *ret_server) : NULL;
    arena_free(a);
    return result;
}

void fleet_tls_stop(struct tls_files *t)
{
    if (t)
        t->stopped = true;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct tls_files *t = handle->data;
    void (*closed)(void *ctx) = t->closed;
    void *ctx = t->closed_ctx;

    if (--t->n_open)
        return;
    mem_free(t->o.certificate.p);
    mem_free(t->o.key.p);
    t->magic = 0;
    mem_free(t);
    closed(ctx);
}

void fleet_tls_close(struct tls_files *t, void (*closed)(void *ctx), void *ctx)
{
    if (!t) {
        closed(ctx);
        return;
    }
    assert(t->magic == TLS_FILES_MAGIC);
    t->stopped = true;
    t->closed = closed;
    t->closed_ctx = ctx;
    for (size_t i = 0; i < COUNT(t->watches); i++)
        uv_close((uv_handle_t *)&t->watches[i], on_handle_closed);
}
