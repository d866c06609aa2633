/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the metrics. They have all tenants in them, and pods of tenants reach what listens on the
 * host's network: must never answer without the token, except on a loopback address. Read-only: no
 * request changes anything. */
#include "endpoint.h"

#include <assert.h>

#include <openssl/crypto.h>

#include <sublet/net.h>

#include "tls_files.h"

#define ENDPOINT_MAGIC  0x656e6470u
#define MOST_METRICS    ((size_t)64 << 20)
#define MOST_CONNECTION 64
#define GRACE_MS        1000

struct fleet_endpoint {
    unsigned magic;
    struct fleet_endpoint_options o;
    struct str token; /* on the heap */
    struct net_server *server;
    struct tls_files *files; /* NULL: unencrypted */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static bool may_read(const struct fleet_endpoint *e, const struct net_request *r)
{
    struct str bearer = STR("Bearer "), given = net_header(r, "authorization");

    if (!e->token.n)
        return true;
    if (!str_has_prefix(given, bearer))
        return false;
    given = str_from(given, bearer.n);
    return given.n == e->token.n && !CRYPTO_memcmp(given.p, e->token.p, given.n);
}

static void respond(struct net_exchange *x, int status, const char *type, struct str body)
{
    const struct net_header headers[] = {{STR("content-type"), str_c(type)},
                                         {STR("cache-control"), STR("no-store")},
                                         {STR("www-authenticate"), STR("Bearer")}};
    const struct net_slice slice = {.bytes = body};

    net_respond(x, status, headers, status == 401 ? 3 : 2, &slice, 1);
}

static void refuse(struct net_exchange *x, int status, struct str why)
{
    respond(x, status, "text/plain; charset=utf-8", why);
}

static void on_request(void *ctx, struct net_exchange *x, const struct net_request *r)
{
    struct fleet_endpoint *e = ctx;
    struct buf out = BUF_INIT(MOST_METRICS);
    struct err err;

    assert(e->magic == ENDPOINT_MAGIC);
    err_init(&err, r->arena);
    if (!may_read(e, r))
        refuse(x, 401, STR("a bearer token is needed\n"));
    else if (!str_eqc(r->path, "/metrics"))
        refuse(x, 404, STR("only /metrics is here\n"));
    else if (r->method != NET_GET && r->method != NET_HEAD)
        refuse(x, 405, STR("only GET is served\n"));
    else if (e->o.write(e->o.ctx, &out, &err))
        refuse(x, 500, arena_printf(r->arena, "%.*s\n", STR_F(err.message)));
    else if (out.failed)
        refuse(x, 500, STR("too many series\n"));
    else
        respond(x, 200, "text/plain; version=0.0.4; charset=utf-8",
                arena_str(r->arena, buf_str(&out)));
    buf_fini(&out);
}

static void release(struct fleet_endpoint *e)
{
    mem_free(e->token.p);
    e->magic = 0;
    mem_free(e);
}

int fleet_endpoint_open(const struct fleet_endpoint_options *options, struct fleet_endpoint **ret,
                        struct err *err)
{
    struct fleet_endpoint *e;
    struct net_options net = {.address = options->address,
                              .max_body = 1024,
                              .max_header_bytes = 16384,
                              .max_connections = MOST_CONNECTION,
                              .max_streams = 8,
                              .max_requests = MOST_CONNECTION};
    const struct tls_files_options files = {.loop = options->loop,
                                            .certificate = options->certificate,
                                            .key = options->key,
                                            .what = "the port of the metrics"};

    if (!options->token.n && !net_is_loopback(options->address))
        return err_set(err, &ERR_BAD_REQUEST,
                       "listen on %.*s: a token is needed, except on a loopback address",
                       STR_F(options->address));
    e = NEW(struct fleet_endpoint);
    *e = (struct fleet_endpoint){
        .magic = ENDPOINT_MAGIC, .o = *options, .token = mem_str(options->token)};
    net.handler = (struct net_handler){on_request, e};
    if (fleet_tls_listen(&files, &net, &e->server, &e->files, err)) {
        release(e);
        return -1;
    }
    *ret = e;
    return 0;
}

unsigned fleet_endpoint_port(const struct fleet_endpoint *e)
{
    return net_port(e->server);
}

static void on_files_closed(void *ctx)
{
    struct fleet_endpoint *e = ctx;
    void (*closed)(void *ctx) = e->closed;
    void *closed_ctx = e->closed_ctx;

    release(e);
    closed(closed_ctx);
}

static void on_closed(void *ctx)
{
    struct fleet_endpoint *e = ctx;

    fleet_tls_close(e->files, on_files_closed, e);
}

void fleet_endpoint_close(struct fleet_endpoint *e, void (*closed)(void *ctx), void *ctx)
{
    assert(e->magic == ENDPOINT_MAGIC);
    e->closed = closed;
    e->closed_ctx = ctx;
    fleet_tls_stop(e->files);
    net_close(e->server, GRACE_MS, on_closed, e);
}
