/* SPDX-License-Identifier: Apache-2.0
 *
 * A request that an extension API server answers: passed to it and back, piece by piece. It must
 * never begin an answer twice, nor let a server that is away affect another group. Source:
 * kube-aggregator pkg/apiserver/handler_proxy.go, whose words and statuses these are.
 *
 *   call -> open() --+-> head() -> data()* -> end()
 *                    |-> end(err): 503               after head(): aborted
 *                    '-> client gone, or its deadline: closed */
#include "impl.h"

#include "extension.h"

#include "../../extension/extension.h"
#include "../flow/flow.h"
#include "../observe/observe.h"
#include "../respond/respond.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include <sublet/encode.h>

#define PASSAGE_MAGIC 0x70617373u
#define HIGH          (64u * 1024) /* unread by the client: the server waits */
#define BEYOND_MS     5000         /* the deadline of the request answers first */
#define PAST_HEAD_MS  3600000      /* of a request without a deadline that is no watch */

struct passage {
    unsigned magic;
    struct call *call;
    struct extension_call *open;
    bool begun, paused;
};

static struct passage *passage_of(void *ctx)
{
    struct passage *p = ctx;

    assert(p->magic == PASSAGE_MAGIC);
    return p;
}

/* ---- from the client ---- */

static void on_gone(struct call *c)
{
    struct passage *p = passage_of(c->state);

    p->magic = 0;
    extension_close(p->open);
}

static void on_drained(struct call *c)
{
    struct passage *p = passage_of(c->state);

    if (!p->paused)
        return;
    p->paused = false;
    extension_pause(p->open, false);
}

static struct call *take_call(struct passage *p)
{
    struct call *c = p->call;

    p->magic = 0;
    c->cancel = NULL;
    c->drained = NULL;
    return c;
}

/* ---- from the server ---- */

/* Of the connection, or written by this one. */
static bool may_pass_back(const struct net_header *h)
{
    static const char *const not_back[] = {
        "connection", "content-length",    "date",    "keep-alive", "proxy-authenticate",
        "te",         "transfer-encoding", "trailer", "upgrade",    "proxy-connection"};

    for (size_t i = 0; i < COUNT(not_back); i++)
        if (str_eqc(h->name, not_back[i]))
            return false;
    return true;
}

static struct str header_of(const struct net_header *headers, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqc(headers[i].name, name))
            return headers[i].value;
    return STR_NULL;
}

static bool is_packed(const struct net_header *headers, size_t n)
{
    return header_of(headers, n, "content-encoding").n;
}

static void on_head(void *ctx, int status, const struct net_header *headers, size_t n)
{
    struct passage *p = passage_of(ctx);
    struct call *c = p->call;
    struct net_header *list = arena_alloc(c->arena, (n + 1) * sizeof(*list));
    struct str length = header_of(headers, n, "content-length");
    int64_t bytes = -1;
    size_t m = 0;

    for (size_t i = 0; i < n; i++)
        if (may_pass_back(&headers[i]))
            list[m++] = (struct net_header){arena_str(c->arena, headers[i].name),
                                            arena_str(c->arena, headers[i].value)};
    p->begun = true;
    if (call_entry(c)->long_running) {
        call_streams(c, status);
        net_begin(c->exchange, status, list, m);
        return;
    }
    if (length.n && (!str_to_i64(length, &bytes) || bytes < 0))
        bytes = -1;
    observe_answer(c, status,
                   is_packed(headers, n) ? STR("") : header_of(headers, n, "content-type"), NULL,
                   0);
    call_entry(c)->streaming = true;
    net_begin_whole(c->exchange, status, list, m, bytes);
}

static void on_sent(void *ctx)
{
    mem_free(ctx);
}

static void on_data(void *ctx, struct str bytes)
{
    struct passage *p = passage_of(ctx);
    char *copy = mem_strdup(bytes);

    assert(p->begun);
    if (net_write(p->call->exchange, &(struct net_slice){{copy, bytes.n}, on_sent, copy}, 1) <=
            HIGH ||
        p->paused)
        return;
    p->paused = true;
    extension_pause(p->open, true);
}

static void unreachable(struct call *c, const struct err *err)
{
    call_header(c, "x-content-type-options", STR("nosniff"));
    respond_text(
        c, 503,
        arena_printf(c->arena, "error trying to reach service: %.*s\n", STR_F(err->message)).p);
}

static void on_end(void *ctx, const struct err *err)
{
    struct passage *p = passage_of(ctx);
    bool begun = p->begun;
    struct call *c = take_call(p);

    if (!begun) {
        assert(err);
        unreachable(c, err);
        return;
    }
    if (err)
        net_abort(c->exchange);
    call_end(c);
}

/* ---- requests ---- */

static void unavailable(struct call *c)
{
    call_header(c, "x-content-type-options", STR("nosniff"));
    respond_text(c, 503, "service unavailable\n");
}

static bool wants_upgrade(const struct call *c)
{
    return c->request->http_major == 1 &&
           str_lists_word(net_header(c->request, "connection"), STR("upgrade"));
}

static int64_t timeout_of(const struct call *c, int64_t due_ms, bool long_running)
{
    int64_t left = due_ms - clock_mono_ms(vapi_clock(c->api));

    if (long_running)
        return 0;
    return due_ms && left > 0 ? left + BEYOND_MS : due_ms ? BEYOND_MS : PAST_HEAD_MS;
}

static void refuse(struct call *c, const struct err *err)
{
    if (err->kind == &ERR_TOO_MANY_REQUESTS)
        call_error(c, err);
    else if (err->kind == &ERR_BAD_REQUEST)
        unreachable(c, err);
    else
        unavailable(c);
}

/* The path as it was authorized: decoded, then encoded as Go encodes one. */
static struct str path_of(struct call *c)
{
    struct str path = c->request->path, ret;
    struct buf b = BUF_INIT(0);

    (void)url_decode(c->arena, c->request->path, false, &path);
    for (size_t i = 0; i < path.n; i++) {
        unsigned char ch = (unsigned char)path.p[i];

        if (isalnum(ch) || (ch && strchr("-_.~$&+,/:;=@", ch)))
            buf_char(&b, (char)ch);
        else
            buf_printf(&b, "%%%02X", ch);
    }
    ret = arena_str(c->arena, buf_str(&b));
    buf_fini(&b);
    return ret;
}

static void pass(struct call *c, const struct extension *x)
{
    static const struct forward_events events = {on_head, on_data, on_end};
    const struct net_request *r = c->request;
    struct call_entry *e = call_entry(c);
    struct passage *p = ARENA_NEW(c->arena, struct passage);
    struct net_header *list = arena_alloc(c->arena, (r->n_headers + 1) * sizeof(*list));
    struct extension_request q = {
        .method = arena_cstr(c->arena, r->method_text),
        .path = arena_concat(c->arena, 3,
                             (struct str[]){path_of(c), str_c(r->query.n ? "?" : ""), r->query}),
        .user = &c->user,
        .body = r->body,
        .timeout_ms = timeout_of(c, e->due_ms, e->long_running)};
    struct err err;

    err_init(&err, c->arena);
    for (size_t i = 0; i < r->n_headers; i++)
        if (!str_eqc(r->headers[i].name, "audit-id") &&
            !str_lists_word(net_header(r, "connection"), r->headers[i].name))
            list[q.n_headers++] = r->headers[i];
    q.headers = list;
    *p = (struct passage){.magic = PASSAGE_MAGIC, .call = c};
    c->state = p;
    flow_leave(c); /* the work is not done here */
    p->open = extension_open(c->api, x, &q, &events, p, &err);
    if (!p->open) {
        p->magic = 0;
        refuse(c, &err);
        return;
    }
    c->cancel = on_gone;
    c->drained = on_drained;
    if (e->long_running)
        net_patience(c->exchange);
}

bool proxy_extension(struct call *c, struct str group, struct str version)
{
    struct extension x;
    struct err err;

    if (!extension_find(c->api, c->arena, group, version, &x))
        return false;
    err_init(&err, c->arena);
    if (!x.available)
        unavailable(c);
    else if (wants_upgrade(c) &&
             err_set(&err, &ERR_NOT_IMPLEMENTED,
                     "upgrades of connections are not forwarded to extension API servers"))
        call_error(c, &err);
    else
        pass(c, &x);
    return true;
}

/* /apis/GROUP/VERSION itself. */
bool proxy_handle_extension(struct call *c, struct str path)
{
    struct str rest = path, group, version;

    if (!str_has_prefix(path, STR("/apis/")))
        return false;
    rest = str_from(path, 6);
    group = str_cut(&rest, '/');
    if (!group.n || !rest.n)
        return false;
    version = str_cut(&rest, '/');
    return version.n && !rest.n && proxy_extension(c, group, version);
}
