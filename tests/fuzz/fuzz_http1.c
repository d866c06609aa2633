/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP from any bytes, over a connection without a socket: the first byte says in pieces of what
 * size what follows arrives and what the handler does. Whatever comes, every request that reaches
 * the handler is well-formed, is closed once, and nothing is left afterwards. */

#include <assert.h>
#include <string.h>

#include "../../vapi/net/server.h"

#define MAX_BODY    1000
#define MAX_HEADERS 2000

struct world {
    unsigned requests, closed;
    unsigned char mode;
    struct net_exchange *waiting;
};

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void on_exchange_closed(void *ctx)
{
    struct world *w = ctx;

    w->closed++;
    w->waiting = NULL;
}

static void on_received(void *ctx, struct str bytes)
{
    struct world *w = ctx;

    if (!bytes.n && w->waiting)
        net_end(w->waiting);
}

static void check_request(const struct net_request *r)
{
    size_t bytes = 0;

    assert(r->method_text.n);
    assert(r->path.n ? r->http_major == 2 || r->path.p[0] == '/' || str_eqc(r->path, "*")
                     : str_eqc(r->method_text, "CONNECT"));
    assert(r->body.n <= MAX_BODY);
    for (size_t i = 0; i < r->n_headers; i++) {
        struct str name = r->headers[i].name, value = r->headers[i].value;

        assert(name.n);
        for (size_t k = 0; k < name.n; k++)
            assert(name.p[k] > ' ' && name.p[k] < 0x7f && !(name.p[k] >= 'A' && name.p[k] <= 'Z'));
        assert(!memchr(value.p ? value.p : "", '\n', value.n));
        assert(!memchr(value.p ? value.p : "", '\r', value.n));
        bytes += name.n + value.n;
    }
    assert(bytes <= MAX_HEADERS);
}

static void answer(struct world *w, struct net_exchange *x)
{
    struct net_slice hello = {.bytes = STR("hello")};

    switch (w->mode % 5) {
    case 0:
        net_respond(x, 200, NULL, 0, &hello, 1);
        break;
    case 1:
        net_begin(x, 200, NULL, 0);
        net_write(x, &hello, 1);
        net_end(x);
        break;
    case 2:
        net_begin(x, 200, NULL, 0);
        net_abort(x);
        break;
    case 3:
        w->waiting = x; /* never, or as a pipe */
        net_upgrade(x, NULL, 0, on_received);
        break;
    default:
        net_respond(x, 204, NULL, 0, &hello, 1);
    }
}

static void on_request(void *ctx, struct net_exchange *x, const struct net_request *r)
{
    struct world *w = ctx;

    w->requests++;
    net_on(x, on_exchange_closed, NULL, w);
    check_request(r);
    answer(w, x);
}

static void feed(struct net_server *s, uv_loop_t *loop, struct str bytes, size_t step)
{
    struct net_conn *c = conn_new(s);

    c->detached = true;
    while (bytes.n) {
        conn_feed(c, str_sub(bytes, 0, step));
        uv_run(loop, UV_RUN_NOWAIT);
        bytes = str_from(bytes, step);
    }
    for (unsigned i = 0; i < 1000 && c->dirty; i++)
        uv_run(loop, UV_RUN_NOWAIT);
    if (step % 2)
        conn_end_of_input(c);
    uv_run(loop, UV_RUN_NOWAIT);
    conn_close(c);
    conn_free(c);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct world w = {0};
    struct net_options options = {.max_body = MAX_BODY,
                                  .max_header_bytes = MAX_HEADERS,
                                  .max_streams = 10,
                                  .handler = {on_request, &w}};
    struct net_server *s;
    uv_loop_t loop;

    if (!size)
        return 0;
    w.mode = data[0] % 5;
    uv_loop_init(&loop);
    s = net_server_new(&loop, &options);
    feed(s, &loop, (struct str){(const char *)data + 1, size - 1}, 1u + data[0] / 5);
    assert(w.requests == w.closed);
    net_close(s, 0, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert(uv_loop_close(&loop) == 0);
    return 0;
}
