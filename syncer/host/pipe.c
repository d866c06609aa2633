/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/1.1 exchange with the host on a connection of its own. Received bytes are passed on at
 * once; bytes to send are buffered only while the kernel accepts no more. Must never call the
 * handler from within one of its caller's calls, read while paused, or take a truncated answer for
 * a complete one.
 *
 *   CONNECTING -> HEAD -+- 101 -> TUNNEL -+-> end()        any state -> host_pipe_close() -> freed
 *                       '-------> BODY ---'                any state -> broken -> end(err) */
#include <sublet/host.h>

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include <llhttp.h>
#include <uv.h>

#include "host_impl.h"
#include "transport.h"

#define PIPE_MAGIC   0x70697065u
#define PIPE_CHUNK   16384 /* a TLS record: no part of one stays inside the TLS library */
#define PIPE_READS   16    /* in a row, before other connections get a turn */
#define HEAD_LIMIT   65536
#define HEAD_HEADERS 128

/* Results of llhttp's on_headers_complete. */
enum { HEADERS_CONTINUE = 0, HEADERS_NO_BODY = 1, HEADERS_UPGRADE = 2 };

enum pipe_state { PIPE_CONNECTING, PIPE_HEAD, PIPE_BODY, PIPE_TUNNEL };

struct host_pipe {
    unsigned magic;
    enum pipe_state state;
    struct host *host;
    struct transport *transport;
    void *raw;
    struct host_pipe_handler handler;
    void *ctx;
    struct buf out;     /* not passed to TLS yet */
    struct buf sending; /* before it; stays as it is until all of it is sent */
    uv_timer_t *deadline;
    size_t sent; /* of `sending` */
    bool paused, owes_drained, bodyless, whole, broken;
    bool busy, closed; /* busy: inside a callback, which may close the pipe */
    llhttp_t parser;
    struct arena *arena; /* the head of the answer */
    struct buf token;
    struct str name;
    struct net_header headers[HEAD_HEADERS];
    size_t n_headers, head_bytes;
};

static void on_deadline_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

static void pipe_free(struct host_pipe *p)
{
    if (p->deadline)
        uv_close((uv_handle_t *)p->deadline, on_deadline_closed);
    p->transport->ops->raw->close(p->raw);
    host_pipe_left(p->host);
    buf_fini(&p->sending);
    buf_fini(&p->out);
    buf_fini(&p->token);
    arena_free(p->arena);
    p->magic = 0;
    mem_free(p);
}

static size_t unsent(const struct host_pipe *p)
{
    return p->sending.n - p->sent + p->out.n;
}

static void want(struct host_pipe *p)
{
    if (p->state != PIPE_CONNECTING && !p->closed)
        p->transport->ops->raw->want(p->raw, !p->paused, unsent(p) > 0);
}

/* --- the end --- */

static void finish(struct host_pipe *p, const struct err_kind *kind, const char *text)
{
    struct arena *a = arena_new(0);
    struct err err;

    err_init(&err, a);
    if (kind)
        err_set(&err, kind, "the host cluster: %s", text);
    p->closed = true;
    p->handler.end(p->ctx, kind ? &err : NULL);
    arena_free(a);
}

/* --- callbacks of llhttp --- */

static int on_token(llhttp_t *parser, const char *at, size_t n)
{
    struct host_pipe *p = parser->data;

    p->head_bytes += n;
    buf_add(&p->token, (struct str){at, n});
    return p->head_bytes > HEAD_LIMIT ? -1 : 0;
}

static struct str take_token(struct host_pipe *p)
{
    struct str s = arena_str(p->arena, str_trim(buf_str(&p->token)));

    buf_clear(&p->token);
    return s;
}

static int on_field(llhttp_t *parser)
{
    struct host_pipe *p = parser->data;
    struct str name = take_token(p);
    char *text = arena_cstr(p->arena, name);

    for (size_t i = 0; i < name.n; i++)
        text[i] = (char)tolower((unsigned char)text[i]);
    p->name = (struct str){text, name.n};
    return 0;
}

/* Trailers, which come after the head was reported, are dropped. */
static int on_value(llhttp_t *parser)
{
    struct host_pipe *p = parser->data;
    struct str value = take_token(p);

    if (p->state != PIPE_HEAD)
        return 0;
    if (p->n_headers == HEAD_HEADERS)
        return -1;
    p->headers[p->n_headers++] = (struct net_header){p->name, value};
    return 0;
}

static int on_headers(llhttp_t *parser)
{
    struct host_pipe *p = parser->data;
    int status = parser->status_code;

    if (status < 200 && status != 101)
        return HEADERS_CONTINUE; /* 100, 103: the final answer follows */
    p->state = status == 101 ? PIPE_TUNNEL : PIPE_BODY;
    p->handler.head(p->ctx, status, p->headers, p->n_headers);
    if (p->closed)
        return -1;
    if (status == 101)
        return HEADERS_UPGRADE; /* no HTTP from here on */
    return p->bodyless ? HEADERS_NO_BODY : HEADERS_CONTINUE;
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct host_pipe *p = parser->data;

    p->handler.data(p->ctx, (struct str){at, n});
    return p->closed ? -1 : 0;
}

static int on_complete(llhttp_t *parser)
{
    struct host_pipe *p = parser->data;

    if (p->state == PIPE_HEAD) {
        arena_reset(p->arena);
        p->n_headers = 0;
        return 0;
    }
    p->whole = p->state == PIPE_BODY;
    return p->whole ? HPE_PAUSED : 0;
}

static const llhttp_settings_t SETTINGS = {
    .on_header_field = on_token,
    .on_header_field_complete = on_field,
    .on_header_value = on_token,
    .on_header_value_complete = on_value,
    .on_headers_complete = on_headers,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

static void parse(struct host_pipe *p, struct str bytes)
{
    llhttp_errno_t result = llhttp_execute(&p->parser, bytes.p, bytes.n);
    size_t used;

    if (p->closed)
        return;
    if (p->whole) {
        finish(p, NULL, NULL);
    } else if (result == HPE_PAUSED_UPGRADE && p->state == PIPE_TUNNEL) {
        used = (size_t)(llhttp_get_error_pos(&p->parser) - bytes.p);
        if (used < bytes.n)
            p->handler.data(p->ctx, str_from(bytes, used));
    } else if (result != HPE_OK) {
        finish(p, &ERR_UNAVAILABLE, "its answer is not HTTP");
    }
}

static void take_end(struct host_pipe *p)
{
    if (p->state == PIPE_BODY)
        llhttp_finish(&p->parser); /* a body may end with the connection */
    if (p->closed)
        return;
    if (p->state == PIPE_TUNNEL || p->whole)
        finish(p, NULL, NULL);
    else
        finish(p, &ERR_UNAVAILABLE, "the connection was closed before the answer's end");
}

/* --- bytes --- */

/* False when the connection is broken. TLS that took a part of some bytes must be given the same
 * ones at the same address again (SSL_write(3)): what is added meanwhile waits in `out`. A failure
 * is kept, for TLS reports it once. */
static bool flush(struct host_pipe *p)
{
    ssize_t n;

    while (!p->broken && unsent(p)) {
        if (p->sent == p->sending.n) {
            buf_fini(&p->sending);
            p->sending = p->out;
            p->out = BUF_INIT(0);
            p->sent = 0;
        }
        n = p->transport->ops->raw->send(p->raw, str_from(buf_str(&p->sending), p->sent));
        if (n == RAW_AGAIN)
            return true;
        p->broken = n == RAW_BROKEN;
        p->sent += p->broken ? 0 : (size_t)n;
    }
    return !p->broken;
}

static void read_some(struct host_pipe *p)
{
    char chunk[PIPE_CHUNK];

    for (unsigned i = 0; i < PIPE_READS && !p->paused && !p->closed; i++) {
        ssize_t n = p->transport->ops->raw->recv(p->raw, chunk, sizeof(chunk));

        if (n == RAW_AGAIN)
            return;
        if (n == RAW_BROKEN)
            finish(p, &ERR_UNAVAILABLE, "the connection broke");
        else if (n == 0)
            take_end(p);
        else if (p->state == PIPE_TUNNEL)
            p->handler.data(p->ctx, (struct str){chunk, (size_t)n});
        else
            parse(p, (struct str){chunk, (size_t)n});
    }
}

static void report_drained(struct host_pipe *p)
{
    if (!p->owes_drained || unsent(p) || p->closed)
        return;
    p->owes_drained = false;
    if (p->handler.drained)
        p->handler.drained(p->ctx);
}

static void settle(struct host_pipe *p)
{
    if (p->closed)
        pipe_free(p);
    else
        want(p);
}

/* Reads even when sending fails: the host may have answered before it closed. */
static void on_ready(void *ctx)
{
    struct host_pipe *p = ctx;
    bool sends;

    assert(p->magic == PIPE_MAGIC && !p->busy);
    p->busy = true;
    sends = flush(p);
    read_some(p);
    if (!sends && !p->closed)
        finish(p, &ERR_UNAVAILABLE, "the connection broke");
    report_drained(p);
    p->busy = false;
    settle(p);
}

static void on_opened(void *ctx, const char *failure)
{
    struct host_pipe *p = ctx;

    assert(p->magic == PIPE_MAGIC && p->state == PIPE_CONNECTING);
    p->state = PIPE_HEAD;
    if (failure) {
        host_pipe_failed(p->host);
        finish(p, &ERR_UNAVAILABLE, failure);
    }
    settle(p);
}

static void on_deadline(uv_timer_t *timer)
{
    struct host_pipe *p = timer->data;

    assert(p->magic == PIPE_MAGIC && !p->busy && !p->closed);
    p->busy = true;
    finish(p, &ERR_UNAVAILABLE, "no answer within the deadline");
    p->busy = false;
    settle(p);
}

/* --- interface --- */

static void set_deadline(struct host_pipe *p, int64_t timeout_ms)
{
    if (!timeout_ms)
        return;
    p->deadline = NEW(uv_timer_t);
    uv_timer_init(host_get_options(p->host)->loop, p->deadline);
    p->deadline->data = p;
    uv_timer_start(p->deadline, on_deadline, (uint64_t)timeout_ms, 0);
}

static void write_request(struct host_pipe *p, const struct host_pipe_request *q)
{
    struct buf *b = &p->out;
    bool may_have_body = strcmp(q->method, "GET") != 0 && strcmp(q->method, "HEAD") != 0;

    p->transport->ops->raw->head(p->transport, b, q->method, q->path);
    for (size_t i = 0; i < q->n_headers; i++)
        buf_printf(b, "%.*s: %.*s\r\n", STR_F(q->headers[i].name), STR_F(q->headers[i].value));
    if (q->body.n || may_have_body)
        buf_printf(b, "Content-Length: %zu\r\n", q->body.n);
    if (q->upgrade.n)
        buf_printf(b, "Connection: Upgrade\r\nUpgrade: %.*s\r\n\r\n", STR_F(q->upgrade));
    else
        buf_addc(b, "Connection: close\r\n\r\n");
    buf_add(b, q->body);
}

struct host_pipe *host_pipe_open(struct host *h, const struct host_pipe_request *q,
                                 const struct host_pipe_handler *handler, void *ctx,
                                 struct err *err)
{
    struct transport *t = host_pipe_enter(h, q->reads, err);
    struct raw_handler raw = {.opened = on_opened, .ready = on_ready};
    struct host_pipe *p;

    if (!t)
        return NULL;
    p = NEW(struct host_pipe);
    *p = (struct host_pipe){.magic = PIPE_MAGIC,
                            .host = h,
                            .transport = t,
                            .handler = *handler,
                            .ctx = ctx,
                            .sending = BUF_INIT(0),
                            .out = BUF_INIT(0),
                            .token = BUF_INIT(0),
                            .arena = arena_new(0)};
    llhttp_init(&p->parser, HTTP_RESPONSE, &SETTINGS);
    p->parser.data = p;
    p->bodyless = !strcmp(q->method, "HEAD");
    write_request(p, q);
    set_deadline(p, q->timeout_ms);
    raw.ctx = p;
    p->raw = t->ops->raw->open(t, &raw);
    return p;
}

size_t host_pipe_write(struct host_pipe *p, struct str bytes)
{
    assert(p->magic == PIPE_MAGIC && p->state == PIPE_TUNNEL && !p->closed);
    buf_add(&p->out, bytes);
    flush(p); /* on_ready() reports a broken connection */
    p->owes_drained |= unsent(p) > 0;
    if (!p->busy)
        want(p);
    return unsent(p);
}

void host_pipe_pause(struct host_pipe *p, bool pause)
{
    assert(p->magic == PIPE_MAGIC && !p->closed);
    p->paused = pause;
    if (!p->busy)
        want(p);
}

void host_pipe_close(struct host_pipe *p)
{
    if (!p)
        return;
    assert(p->magic == PIPE_MAGIC && !p->closed);
    p->closed = true;
    if (!p->busy)
        pipe_free(p);
}
