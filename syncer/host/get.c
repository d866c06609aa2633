/* SPDX-License-Identifier: Apache-2.0 */
/* A GET with a transport of its own. Why: a transport has one server and its credentials, and what
 * this reads are other servers, each seldom. Must never send them the host's credentials, or keep
 * more of an answer than the caller allows.
 *
 *   send() -> data* -> end, cancel() or too much --> transport closes --> freed
 */
#include <sublet/host_get.h>

#include <assert.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <sublet/buf.h>
#include <sublet/file.h>

#include "kubeconfig.h"
#include "transport.h"

#define GET_MAGIC    0x68676574u
#define MOST_CA_FILE ((size_t)1 << 20)

struct host_get {
    unsigned magic;
    struct arena *a;
    struct kubeconfig config;
    struct transport *transport;
    void *wire; /* NULL: ended */
    struct buf body;
    size_t max_bytes;
    struct host_get_budget *budget;
    size_t charged; /* to it */
    host_get_cb done;
    void *ctx;
};

static void on_closed(void *ctx)
{
    struct host_get *g = ctx;

    assert(g->magic == GET_MAGIC);
    g->magic = 0;
    arena_free(g->a);
    mem_free(g);
}

static void close_get(struct host_get *g)
{
    if (g->budget)
        g->budget->used -= g->charged;
    buf_fini(&g->body);
    g->transport->ops->close(g->transport, on_closed, g);
}

static void finish(struct host_get *g, int status, enum host_trouble trouble, const struct err *err)
{
    const struct host_get_answer answer = {status, buf_str(&g->body), trouble};

    g->wire = NULL;
    g->done(g->ctx, &answer, err);
    close_get(g);
}

/* False: others hold what there is. */
static bool charge(struct host_get *g, size_t n)
{
    if (!g->budget)
        return true;
    if (n > g->budget->most - g->budget->used)
        return false;
    g->budget->used += n;
    g->charged += n;
    return true;
}

static void on_data(void *ctx, struct str bytes)
{
    struct host_get *g = ctx;
    bool room = charge(g, bytes.n);
    struct err err;

    assert(g->magic == GET_MAGIC);
    buf_add(&g->body, bytes);
    if (room && !g->body.failed)
        return;
    err_init(&err, NULL);
    if (room)
        err_set(&err, &ERR_TOO_LARGE, "an answer of more than %zu bytes", g->max_bytes);
    else
        err_set(&err, &ERR_TOO_MANY_REQUESTS, "answers of more than %zu bytes at once",
                g->budget->most);
    buf_clear(&g->body);
    g->transport->ops->cancel(g->transport, g->wire);
    finish(g, 0, HOST_FINE, &err);
}

static void on_end(void *ctx, int status, int64_t retry_after_s, const struct wire_failure *failure)
{
    struct host_get *g = ctx;
    struct err err;

    (void)retry_after_s;
    assert(g->magic == GET_MAGIC);
    err_init(&err, NULL);
    if (failure)
        err_set(&err, failure->trouble == HOST_TIMEOUT ? &ERR_TIMEOUT : &ERR_UNAVAILABLE, "%s",
                failure->text);
    else if (status != 200)
        err_set(&err, &ERR_UNAVAILABLE, "an answer with status %d", status);
    finish(g, status, failure ? failure->trouble : HOST_FINE, err.kind ? &err : NULL);
}

struct host_get *host_get_send(const struct host_get_options *o, host_get_cb done, void *ctx)
{
    const struct wire_handler handler = {.data = on_data, .end = on_end};
    struct wire_request q = {
        .method = "GET", .path = o->path, .accept = o->accept, .timeout_ms = o->timeout_ms};
    struct host_get *g = NEW(struct host_get);
    struct wire_handler own = handler;

    *g = (struct host_get){.magic = GET_MAGIC,
                           .a = arena_new(0),
                           .body = BUF_INIT(o->max_bytes),
                           .max_bytes = o->max_bytes,
                           .budget = o->budget,
                           .done = done,
                           .ctx = ctx};
    g->config = (struct kubeconfig){.server = arena_str(g->a, o->server),
                                    .ca_file = arena_str(g->a, o->ca_file),
                                    .token_file = arena_str(g->a, o->token_file)};
    g->transport = host_curl_transport_new(o->loop, o->clock, &g->config);
    own.ctx = g;
    g->wire = g->transport->ops->start(g->transport, &q, &own);
    return g;
}

void host_get_cancel(struct host_get *g)
{
    if (!g)
        return;
    assert(g->magic == GET_MAGIC && g->wire);
    g->transport->ops->cancel(g->transport, g->wire);
    g->wire = NULL;
    close_get(g);
}

/* --- its CA --- */

int host_get_check_ca(struct str file, struct err *err)
{
    struct arena *a = arena_new(0);
    struct str pem;
    size_t n = 0;
    bool whole;
    X509 *cert;
    BIO *bio;

    if (file_read(a, file, MOST_CA_FILE, &pem, err)) {
        arena_free(a);
        return -1;
    }
    ERR_clear_error();
    bio = BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n);
    while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        X509_free(cert);
        n++;
    }
    whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    BIO_free(bio);
    arena_free(a);
    if (n && whole)
        return 0;
    return err_set(err, &ERR_BAD_REQUEST, "%.*s: %s", STR_F(file),
                   n || !whole ? "a certificate in it cannot be read" : "no certificate is in it");
}
