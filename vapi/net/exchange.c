/* SPDX-License-Identifier: Apache-2.0
 *
 * One request and its answer: collects the request for the handler, keeps the answer until it is
 * framed. Why: HTTP/1.1 and HTTP/2 differ only in framing; limits and the lifecycle of an exchange
 * are the same. Must never write to a connection or call the user inside a call by the user:
 * conn_flush() does both later. */
#include "server.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static const struct {
    struct str text;
    enum net_method method;
} METHODS[] = {
    {{"GET", 3}, NET_GET},         {{"HEAD", 4}, NET_HEAD},   {{"POST", 4}, NET_POST},
    {{"PUT", 3}, NET_PUT},         {{"PATCH", 5}, NET_PATCH}, {{"DELETE", 6}, NET_DELETE},
    {{"OPTIONS", 7}, NET_OPTIONS},
};

/* Framing and hop-by-hop headers (RFC 9110 7.6.1), and those every answer carries. */
static const struct str OWN_HEADERS[] = {
    {"connection", 10}, {"content-length", 14},   {"date", 4},
    {"keep-alive", 10}, {"proxy-connection", 16}, {"transfer-encoding", 17},
};

struct net_exchange *exchange_new(struct net_conn *c)
{
    struct net_exchange *x = NEW(struct net_exchange);

    x->magic = EXCHANGE_MAGIC;
    x->conn = c;
    x->arena = arena_new(NET_ARENA_LIMIT);
    x->content_length = -1;
    x->since = x->last_byte = conn_now(c);
    x->request.arena = x->arena;
    x->request.peer = str_c(c->peer);
    x->request.tls = tls_peer_now(c);
    TAILQ_INSERT_TAIL(&c->exchanges, x, in_conn);
    c->n_exchanges++;
    c->receiving++;
    return x;
}

static void stop_receiving(struct net_exchange *x)
{
    if (x->state == X_HEAD || x->state == X_BODY || x->discarding)
        x->conn->receiving--;
    x->discarding = false;
}

static void stop_counting(struct net_exchange *x)
{
    if (x->counted)
        x->conn->server->running--;
    x->counted = false;
}

/* A header the peer has sent before costs it a few bytes (HPACK) but costs us all of them. False
 * when there is no room; requests with few header bytes may use more of the room than others. */
bool exchange_hold_head(struct net_exchange *x, size_t n)
{
    struct net_server *s = x->conn->server;
    size_t most = x->held + n > NET_HEAD_LIGHT ? NET_HEADS_MAX / 2 : NET_HEADS_MAX;

    x->crowded = x->crowded || s->heads + n > most;
    if (x->crowded)
        return false;
    x->held += n;
    s->heads += n;
    return true;
}

static void release_head(struct net_exchange *x)
{
    x->conn->server->heads -= x->held;
    x->held = 0;
}

static void land(struct net_exchange *x)
{
    if (x->flying)
        TAILQ_REMOVE(&x->conn->in_flight, x, in_flight);
    x->flying = false;
    x->unwritten = 0;
}

void exchange_close(struct net_exchange *x)
{
    struct net_conn *c = x->conn;

    assert(x->magic == EXCHANGE_MAGIC);
    stop_receiving(x);
    stop_counting(x);
    release_head(x);
    land(x);
    x->aborted = true;
    net_slices_clear(&x->slices);
    exchange_update(x);
    TAILQ_REMOVE(&c->exchanges, x, in_conn);
    c->n_exchanges--;
    c->server->answered += exchange_answered(x);
    c->server->bodies -= x->body.n;

    if (x->dispatched && x->closed)
        x->closed(x->ctx);

    buf_fini(&x->body);
    x->magic = NET_POISON;
    arena_free(x->arena);
    mem_free(x);
}

/* Requests. */

struct str exchange_lower(struct net_exchange *x, struct str name)
{
    char *p = arena_cstr(x->arena, name);

    for (size_t i = 0; i < name.n; i++)
        p[i] = (char)tolower((unsigned char)p[i]);
    return (struct str){p, name.n};
}

bool exchange_add_header(struct net_exchange *x, struct str name, struct str value)
{
    x->header_bytes += name.n + value.n + NET_HEADER_COST;
    if (x->header_bytes > x->conn->server->options.max_header_bytes)
        return false;
    if (!exchange_hold_head(x, name.n + value.n + NET_HEADER_COST))
        return true; /* refused once it is complete */

    ARENA_GROW(x->arena, x->headers, x->n_headers, x->cap_headers);
    x->headers[x->n_headers++] =
        (struct net_header){exchange_lower(x, name), arena_str(x->arena, value)};
    return true;
}

void exchange_set_method(struct net_exchange *x, struct str method)
{
    if (!exchange_hold_head(x, method.n))
        method = STR("?");
    x->request.method_text = arena_str(x->arena, method);
    x->request.method = NET_OTHER;
    for (size_t i = 0; i < COUNT(METHODS); i++) {
        if (str_eq(METHODS[i].text, method))
            x->request.method = METHODS[i].method;
    }
    x->bodyless = x->request.method == NET_HEAD;
}

bool exchange_is_connect(const struct net_exchange *x)
{
    return str_eqc(x->request.method_text, "CONNECT");
}

void exchange_set_target(struct net_exchange *x, struct str target)
{
    struct str rest = exchange_hold_head(x, target.n) ? arena_str(x->arena, target) : STR("/");

    x->request.path = str_cut(&rest, '?');
    x->request.query = rest;
}

struct str net_header(const struct net_request *r, const char *name)
{
    struct str wanted = str_c(name);

    for (size_t i = 0; i < r->n_headers; i++) {
        if (str_eq(r->headers[i].name, wanted))
            return r->headers[i].value;
    }
    return STR_NULL;
}

bool exchange_expect_body(struct net_exchange *x, int64_t content_length)
{
    assert(x->state == X_HEAD);
    x->state = X_BODY;
    x->content_length = content_length;
    x->since = x->last_byte = conn_now(x->conn);
    x->request.headers = x->headers;
    x->request.n_headers = x->n_headers;

    if (x->crowded) {
        exchange_refuse(x, REFUSE_BUSY);
        return false;
    }
    if (content_length > 0 && (uint64_t)content_length > x->conn->server->options.max_body) {
        exchange_refuse(x, REFUSE_BODY_TOO_LARGE);
        return false;
    }
    return true;
}

bool exchange_add_body(struct net_exchange *x, struct str bytes)
{
    struct net_server *s = x->conn->server;

    if (x->state != X_BODY)
        return false;

    x->last_byte = conn_now(x->conn);
    if (bytes.n > s->options.max_body - x->body.n) {
        exchange_refuse(x, REFUSE_BODY_TOO_LARGE);
        return false;
    }
    if (bytes.n > NET_BODIES_MAX - s->bodies) {
        exchange_refuse(x, REFUSE_BUSY);
        return false;
    }

    if (!x->body.cap && x->content_length > 0)
        buf_reserve(&x->body, x->content_length < NET_READ ? (size_t)x->content_length : NET_READ);
    buf_add(&x->body, bytes);
    s->bodies += bytes.n;
    return true;
}

void exchange_dispatch(struct net_exchange *x)
{
    struct net_server *s = x->conn->server;

    x->remote_ended = true;
    if (x->state != X_BODY)
        return;

    stop_receiving(x);
    x->state = X_RUNNING;
    x->request.body = buf_str(&x->body);
    if (s->running >= s->options.max_requests) {
        exchange_refuse(x, REFUSE_BUSY);
        return;
    }

    /* `OPTIONS *` concerns the server itself, and any client may learn that it exists (RFC 9110
     * 9.3.7). */
    if (x->request.method == NET_OPTIONS && str_eqc(x->request.path, "*")) {

        net_respond(x, 200, NULL, 0, NULL, 0);
        return;
    }
    s->running++;
    x->counted = true;
    x->dispatched = true;
    s->options.handler.request(s->options.handler.ctx, x, &x->request);
}

/* Answers. */

bool exchange_answered(const struct net_exchange *x)
{
    return x->state >= X_STREAMING;
}

bool exchange_owns_header(struct str name)
{
    for (size_t i = 0; i < COUNT(OWN_HEADERS); i++) {
        if (str_eq(OWN_HEADERS[i], name))
            return true;
    }
    return false;
}

static bool breaks_header(char c)
{
    return c == '\r' || c == '\n' || c == '\0';
}

struct str exchange_clean(struct net_exchange *x, struct str value)
{
    size_t bad = 0;
    char *p;

    while (bad < value.n && !breaks_header(value.p[bad]))
        bad++;
    if (bad == value.n)
        return str_trim(value);

    p = arena_cstr(x->arena, value);
    for (; bad < value.n; bad++) {
        if (breaks_header(p[bad]))
            p[bad] = ' ';
    }
    return str_trim((struct str){p, value.n});
}

/* Nothing more of this exchange will be sent. */
static bool dead(const struct net_exchange *x)
{
    return x->aborted || x->conn->state == CONN_CLOSING;
}

void exchange_update(struct net_exchange *x)
{
    bool backlogged = exchange_answered(x) && x->slices.bytes > 0;

    if (backlogged == x->backlogged)
        return;
    x->backlogged = backlogged;
    if (backlogged) {
        x->progress_at = conn_now(x->conn);
        x->conn->backlogged++;
    } else {
        x->conn->backlogged--;
    }
}

static void add_slices(struct net_exchange *x, const struct net_slice *slices, size_t n)
{
    bool drop = x->bodyless || x->ended || dead(x);

    for (size_t i = 0; i < n; i++) {
        if (!drop)
            net_slices_push(&x->slices, &slices[i]);
        else if (slices[i].release)
            slices[i].release(slices[i].ctx);
    }
    exchange_update(x);
}

static void touch(struct net_exchange *x)
{
    if (x->conn->state == CONN_CLOSING)
        return;
    x->conn->proto->changed(x);
    conn_dirty(x->conn);
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

void net_respond(struct net_exchange *x, int status, const struct net_header *headers,
                 size_t n_headers, const struct net_slice *body, size_t n_body)
{
    int64_t length = 0;

    assert(x->magic == EXCHANGE_MAGIC && !exchange_answered(x));
    stop_receiving(x);
    x->state = X_ANSWERED;
    x->status = status;
    for (size_t i = 0; i < n_body; i++)
        length += (int64_t)body[i].bytes.n;
    x->bodyless = x->bodyless || has_no_body(status);
    add_slices(x, body, n_body);
    x->ended = true;

    if (dead(x))
        return;
    x->conn->proto->answer(x, headers, n_headers, length);
    conn_dirty(x->conn);
}

static void begin(struct net_exchange *x, int status, const struct net_header *headers,
                  size_t n_headers, int64_t length)
{
    assert(x->magic == EXCHANGE_MAGIC && x->state == X_RUNNING);
    x->state = X_STREAMING;
    x->status = status;
    x->streamed = true;
    x->bodyless = x->bodyless || has_no_body(status);
    if (dead(x))
        return;
    x->conn->proto->answer(x, headers, n_headers, length);
    conn_dirty(x->conn);
}

void net_begin(struct net_exchange *x, int status, const struct net_header *headers,
               size_t n_headers)
{
    stop_counting(x);
    release_head(x); /* streams have their own limit */
    begin(x, status, headers, n_headers, -1);
}

void net_begin_whole(struct net_exchange *x, int status, const struct net_header *headers,
                     size_t n_headers, int64_t length)
{
    x->whole = true;
    begin(x, status, headers, n_headers, length);
}

void net_forget_request(struct net_exchange *x)
{
    assert(x->magic == EXCHANGE_MAGIC && x->state == X_STREAMING);
    x->conn->server->bodies -= x->body.n;
    buf_fini(&x->body);
    release_head(x);
    x->request = (struct net_request){.arena = x->arena,
                                      .method = x->request.method,
                                      .peer = x->request.peer,
                                      .tls = x->request.tls,
                                      .http_major = x->request.http_major};
    x->headers = NULL;
    x->n_headers = x->cap_headers = 0;
    arena_reset(x->arena);
}

bool net_upgrade(struct net_exchange *x, const struct net_header *headers, size_t n_headers,
                 void (*received)(void *ctx, struct str bytes))
{
    assert(x->magic == EXCHANGE_MAGIC && x->state == X_RUNNING);
    if (!x->upgradable)
        return false;
    x->upgraded = true;
    x->received = received;
    net_begin(x, 101, headers, n_headers);
    return true;
}

void net_pause(struct net_exchange *x, bool pause)
{
    assert(x->magic == EXCHANGE_MAGIC && x->upgraded);
    x->paused = pause;
    if (pause)
        conn_hold(x->conn, true);
    touch(x);
}

size_t net_write(struct net_exchange *x, const struct net_slice *slices, size_t n)
{
    assert(x->magic == EXCHANGE_MAGIC && x->state == X_STREAMING);
    add_slices(x, slices, n);
    if (x->slices.bytes > NET_BACKLOG_MAX)
        net_abort(x);
    else
        touch(x);
    return net_backlog(x);
}

size_t net_backlog(const struct net_exchange *x)
{
    assert(x->magic == EXCHANGE_MAGIC);
    return x->slices.bytes + x->unwritten;
}

void net_end(struct net_exchange *x)
{
    assert(x->magic == EXCHANGE_MAGIC && x->state == X_STREAMING);
    x->ended = true;
    touch(x);
}

void net_abort(struct net_exchange *x)
{
    assert(x->magic == EXCHANGE_MAGIC);
    if (x->aborted)
        return;
    x->aborted = true;
    net_slices_clear(&x->slices);
    exchange_update(x);
    touch(x);
}

void net_on(struct net_exchange *x, void (*closed)(void *ctx), void (*drained)(void *ctx),
            void *ctx)
{
    assert(x->magic == EXCHANGE_MAGIC);
    x->closed = closed;
    x->drained = drained;
    x->ctx = ctx;
}

void net_patience(struct net_exchange *x)
{
    assert(x->magic == EXCHANGE_MAGIC);
    x->patient = true;
    if (x->conn->state != CONN_CLOSING)
        conn_be_patient(x->conn);
}

struct arena *net_arena(struct net_exchange *x)
{
    assert(x->magic == EXCHANGE_MAGIC);
    return x->arena;
}

/* Framing. */

void exchange_frame(struct net_exchange *x, size_t n)
{
    struct net_conn *c = x->conn;

    assert(n <= x->slices.bytes);
    while (n) {
        struct str piece = str_sub(net_slices_peek(&x->slices), 0, n);

        conn_send(c, piece);
        net_slices_pop(&x->slices, piece.n);
        x->unwritten += piece.n;
        n -= piece.n;
    }
    x->progress_at = conn_now(c);
    exchange_update(x);

    if (x->flying)
        TAILQ_REMOVE(&c->in_flight, x, in_flight);
    TAILQ_INSERT_TAIL(&c->in_flight, x, in_flight);
    x->flying = true;
    x->mark = c->seq;
}

/* in_flight is ordered by mark: an exchange that frames moves to the end with the newest mark. */
void conn_acknowledge(struct net_conn *c)
{
    struct net_exchange *x;

    while ((x = TAILQ_FIRST(&c->in_flight)) != NULL && x->mark <= c->written_seq) {
        land(x);
        if (!x->slices.bytes && x->streamed && !x->ended && !x->aborted && x->drained)
            x->drained(x->ctx);
    }
}
