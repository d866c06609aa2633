/* SPDX-License-Identifier: Apache-2.0 */
/* Whole requests from any bytes, through the API core and a real store, without a socket: the
 * network is the few functions below. Every request must be answered exactly once, with a body that
 * is what its content type says, and nothing of it may be left when its exchange is over.
 *
 *   METHOD /path?query \n header: value \n ... \n \n body, or what an upgraded connection brings */

#include <assert.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../vapi/core/calls.h"
#include "../unit/vapi/api_harness.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define MAX_HEADERS 32
#define MAX_OBJECTS 200

/* ---- the network ---- */

struct net_exchange {
    void (*closed)(void *ctx);
    void *ctx;
    struct arena *arena;
    int answers;
    bool streaming, over;
    void (*received)(void *ctx, struct str bytes); /* after an upgrade */
};

struct net_server {
    struct net_handler handler;
};

static struct net_server SERVER;

struct str net_header(const struct net_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_eqc(r->headers[i].name, name))
            return r->headers[i].value;
    return STR_NULL;
}

void net_on(struct net_exchange *x, void (*closed)(void *ctx), void (*drained)(void *ctx),
            void *ctx)
{
    (void)drained;
    x->closed = closed;
    x->ctx = ctx;
}

static bool has_type(const struct net_header *headers, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqc(headers[i].name, "content-type"))
            return str_has_prefix(headers[i].value, str_c(type));
    return false;
}

static bool is_encoded(const struct net_header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqc(headers[i].name, "content-encoding"))
            return true;
    return false;
}

void net_respond(struct net_exchange *x, int status, const struct net_header *headers,
                 size_t n_headers, const struct net_slice *body, size_t n_body)
{
    struct buf text = BUF_INIT(0);
    cJSON *tree;

    assert(status >= 200 && status < 507);
    x->answers++;
    for (size_t i = 0; i < n_body; i++) {
        buf_add(&text, body[i].bytes);
        if (body[i].release)
            body[i].release(body[i].ctx);
    }
    for (size_t i = 0; i < n_headers; i++)
        for (size_t k = 0; k < headers[i].value.n; k++)
            assert((unsigned char)headers[i].value.p[k] >= ' ');
    assert(text.n || status / 100 == 3);
    if (has_type(headers, n_headers, "application/json") && text.n &&
        !is_encoded(headers, n_headers)) {
        int failed = json_parse(x->arena, buf_str(&text), &tree, NULL);

        assert(!failed);
    }
    buf_fini(&text);
}

void net_stats(const struct net_server *s, struct net_stats *ret)
{
    (void)s;
    *ret = (struct net_stats){0};
}

void net_begin(struct net_exchange *x, int status, const struct net_header *headers, size_t n)
{
    (void)headers;
    (void)n;
    assert(status == 200);
    x->answers++;
    x->streaming = true;
}

bool net_upgrade(struct net_exchange *x, const struct net_header *headers, size_t n,
                 void (*received)(void *ctx, struct str bytes))
{
    net_begin(x, 200, headers, n);
    x->received = received;
    return true;
}

void net_begin_whole(struct net_exchange *x, int status, const struct net_header *headers, size_t n,
                     int64_t length)
{
    (void)length;
    net_begin(x, status, headers, n);
}

void net_forget_request(struct net_exchange *x)
{
    assert(x->streaming);
}

size_t net_write(struct net_exchange *x, const struct net_slice *slices, size_t n)
{
    assert(x->streaming);
    for (size_t i = 0; i < n; i++)
        if (slices[i].release)
            slices[i].release(slices[i].ctx);
    return 0;
}

size_t net_backlog(const struct net_exchange *x)
{
    (void)x;
    return 0;
}

void net_end(struct net_exchange *x)
{
    x->over = true;
}

void net_abort(struct net_exchange *x)
{
    x->over = true;
}

struct arena *net_arena(struct net_exchange *x)
{
    return x->arena;
}

int net_listen(struct uv_loop_s *loop, const struct net_options *options, struct net_server **ret,
               struct err *err)
{
    (void)loop;
    (void)err;
    SERVER.handler = options->handler;
    *ret = &SERVER;
    return 0;
}

unsigned net_port(const struct net_server *s)
{
    (void)s;
    return 1;
}

int net_set_tls(struct net_server *s, const struct net_tls *tls, struct err *err)
{
    (void)s;
    (void)tls;
    (void)err;
    return 0;
}

void net_close(struct net_server *s, int64_t grace_ms, void (*closed)(void *ctx), void *ctx)
{
    (void)s;
    (void)grace_ms;
    closed(ctx);
}

/* ---- one API for all inputs ---- */

static struct {
    uv_loop_t loop;
    char dir[64];
    struct store *store;
    struct vapi *api;
    struct config config;
    bool ready, closed, store_closed;
} WORLD;

static void on_flag(void *ctx)
{
    *(bool *)ctx = true;
}

static void on_ready(void *ctx, const struct err *err)
{
    assert(!err);
    *(bool *)ctx = true;
}

static void run_until(const bool *done)
{
    while (!*done)
        uv_run(&WORLD.loop, UV_RUN_ONCE);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

static void shut_down(void)
{
    vapi_close(WORLD.api, on_flag, &WORLD.closed);
    run_until(&WORLD.closed);
    store_close(WORLD.store, on_flag, &WORLD.store_closed);
    run_until(&WORLD.store_closed);
    uv_run(&WORLD.loop, UV_RUN_DEFAULT);
    uv_loop_close(&WORLD.loop);
    nftw(WORLD.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void start_up(void)
{
    struct store_options so = {.max_objects = MAX_OBJECTS};
    struct vapi_options vo = {.loop = &WORLD.loop,
                              .config = &WORLD.config,
                              .clock = &CLOCK_SYSTEM,
                              .rng = &RNG_SYSTEM,
                              .version = STR("v1.36.3")};
    int failed;

    uv_loop_init(&WORLD.loop);
    snprintf(WORLD.dir, sizeof(WORLD.dir), "/tmp/api-fuzz-XXXXXX");
    so.path = mkdtemp(WORLD.dir);
    failed = store_open(&WORLD.loop, &so, &WORLD.store, NULL);
    assert(!failed);
    vo.store = WORLD.store;
    failed = vapi_new(&vo, &WORLD.api, NULL) || vapi_start(WORLD.api, on_ready, &WORLD.ready, NULL);
    assert(!failed);
    run_until(&WORLD.ready);
    atexit(shut_down);
}

/* ---- one input ---- */

static enum net_method method_of(struct str text)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (str_eqc(text, names[i]))
            return (enum net_method)i;
    return NET_OTHER;
}

/* What the network would have refused: control characters in the head, a path that is none. */
static bool head_fits(struct str head)
{
    for (size_t i = 0; i < head.n; i++)
        if (((unsigned char)head.p[i] < ' ' && head.p[i] != '\n') || head.p[i] == 0x7f)
            return false;
    return true;
}

static bool read_request(struct arena *a, struct str in, struct net_request *r)
{
    struct net_header *headers = arena_alloc(a, MAX_HEADERS * sizeof(*headers));
    struct str line = str_cut(&in, '\n'), target;

    if (!head_fits(line))
        return false;
    r->method_text = str_cut(&line, ' ');
    r->method = method_of(r->method_text);
    target = line.p ? line : STR("");
    r->path = str_cut(&target, '?');
    r->query = target.p ? target : STR("");
    r->headers = headers;
    while (in.p && r->n_headers < MAX_HEADERS) {
        struct str value = str_cut(&in, '\n'), name;

        if (!value.n)
            break;
        if (!head_fits(value))
            return false;
        name = str_cut(&value, ':');
        headers[r->n_headers++] = (struct net_header){name, str_trim(value)};
    }
    r->body = in.p ? in : STR("");
    return r->method_text.n && str_has_prefix(r->path, STR("/"));
}

static void on_settled(void *ctx, const struct err *err)
{
    (void)err;
    *(bool *)ctx = true;
}

/* Until the store has answered every write and read. */
static void settle(void)
{
    bool done = false;

    store_on_commit(WORLD.store, on_settled, &done);
    run_until(&done);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new(0);
    struct net_request r = {.arena = a, .http_major = 1};
    struct net_exchange x = {.arena = a};
    struct str in = {(const char *)data, size};

    if (!WORLD.ready)
        start_up();
    if (read_request(a, in, &r)) {
        SERVER.handler.request(SERVER.handler.ctx, &x, &r);
        for (int turns = 0; !x.answers && turns < 1000; turns++)
            settle();
        assert(x.answers == 1);
        if (x.received && !x.over)
            x.received(x.ctx, r.body); /* frames, as it were */
        x.closed(x.ctx);
        settle();
        uv_run(&WORLD.loop, UV_RUN_NOWAIT);
        assert(TAILQ_EMPTY(&WORLD.api->calls));
    }
    arena_free(a);
    return 0;
}
