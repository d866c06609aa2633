/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/2 over nghttp2. Why: client-go multiplexes all requests of a process, watches included, over
 * one connection. nghttp2 implements the protocol; here streams become exchanges, slices become
 * DATA frames without a copy, and floods of individually legal frames are counted. Must never let a
 * peer make us work or remember more than it pays for: streams, headers, bodies, queued frames and
 * cheap frames are all bounded (the attacks are listed in http2_guard.c). */
#include "server.h"

#include <assert.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "http2_guard.h"

#define STREAM_WINDOW      262144u
#define CONN_WINDOW        1048576
#define MAX_ACKS           256  /* answers to PING and SETTINGS that may wait */
#define RESET_BURST        1000 /* RST_STREAM by the peer: burst, and per second */
#define RESET_RATE         50
#define HEADER_OVERRUN     8u /* a header block longer than this times the limit is an error */
#define MAX_ANSWER_HEADERS 96

struct http2 {
    nghttp2_session *session;
    struct guard guard;
    bool failed; /* the session failed; what it queued is still sent */
    bool ended;  /* by us, with a GOAWAY: nothing more is read */
};

static struct net_exchange *exchange_of(nghttp2_session *session, int32_t stream)
{
    struct net_exchange *x = nghttp2_session_get_stream_user_data(session, stream);

    assert(!x || x->magic == EXCHANGE_MAGIC);
    return x;
}

/* Ends the session after a frame that violates the protocol or a limit. */
static void end_session(struct net_conn *c, uint32_t error)
{
    c->http2->ended = true;
    nghttp2_session_terminate_session(c->http2->session, error);
}

/* Requests. */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct net_conn *c = ctx;
    nghttp2_extpri fair = {.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
    struct net_exchange *x;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    x = exchange_new(c);
    x->stream = frame->hd.stream_id;
    x->request.http_major = 2;
    nghttp2_session_set_stream_user_data(session, x->stream, x);
    /* Streams take turns: one long list must not delay the watches beside it. */
    nghttp2_session_change_extpri_stream_priority(session, x->stream, &fair, 1);
    return 0;
}

/* A header block that is too large is read to its end, since the HPACK state is shared, but kept
 * only up to the limit. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    struct net_conn *c = ctx;
    struct net_exchange *x = exchange_of(session, frame->hd.stream_id);
    struct str n = {(const char *)name, name_n}, v = {(const char *)value, value_n};
    size_t limit = c->server->options.max_header_bytes;

    (void)flags;
    if (!x || x->state != X_HEAD)
        return 0;
    if (x->header_bytes > limit) {
        x->header_bytes += name_n + value_n + NET_HEADER_COST;
        return x->header_bytes > HEADER_OVERRUN * limit ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
    }
    if (n.n && n.p[0] == ':') {
        if (str_eqc(n, ":method"))
            exchange_set_method(x, v);
        else if (str_eqc(n, ":path"))
            exchange_set_target(x, v);
        else if (str_eqc(n, ":authority") && exchange_hold_head(x, v.n))
            x->request.authority = arena_str(x->arena, v);
        x->header_bytes += n.n + v.n + NET_HEADER_COST;
    } else {
        exchange_add_header(x, n, str_trim(v));
    }
    return 0;
}

/* "-1" means none; nghttp2 has checked the number and will check the body against it. */
static int64_t announced_length(const struct net_exchange *x)
{
    int64_t length;

    return str_to_i64(net_header(&x->request, "content-length"), &length) ? length : -1;
}

static void headers_arrived(struct net_exchange *x, bool last)
{
    if (x->state != X_HEAD)
        return;
    x->request.headers = x->headers;
    x->request.n_headers = x->n_headers;
    if (x->header_bytes > x->conn->server->options.max_header_bytes) {
        x->remote_ended = last;
        exchange_refuse(x, REFUSE_HEADERS_TOO_LARGE);
        return;
    }
    if (!x->request.path.n) {
        /* This server is no proxy, and the handler answers so: the request it receives has no path.
         * The stream is not read further, because it would not end. */
        if (exchange_is_connect(x) && exchange_expect_body(x, -1))
            exchange_dispatch(x);
        else if (!exchange_answered(x))
            exchange_refuse(x, REFUSE_MALFORMED);
        x->remote_ended = last;
        return;
    }
    if (!x->request.authority.p)
        x->request.authority = net_header(&x->request, "host");
    if (!exchange_expect_body(x, announced_length(x)))
        return;
    if (!last && str_eqc(net_header(&x->request, "expect"), "100-continue")) {
        nghttp2_nv status = {(uint8_t *)":status", (uint8_t *)"100", 7, 3, NGHTTP2_NV_FLAG_NONE};

        nghttp2_submit_headers(x->conn->http2->session, NGHTTP2_FLAG_NONE, x->stream, NULL, &status,
                               1, NULL);
    }
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct net_conn *c = ctx;
    bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    struct net_exchange *x;

    if (frame->hd.type == NGHTTP2_SETTINGS)
        c->since = 0; /* the preface is complete */
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;

    x = exchange_of(session, frame->hd.stream_id);
    if (!x)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        headers_arrived(x, last);
    if (last)
        exchange_dispatch(x);
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream,
                         const uint8_t *data, size_t n, void *ctx)
{
    struct net_exchange *x = exchange_of(session, stream);

    (void)flags;
    (void)ctx;
    if (!x)
        return 0;
    if (!exchange_answered(x)) {
        exchange_add_body(x, (struct str){(const char *)data, n});
        return 0;
    }
    x->discarded += n;
    if (x->discarding && x->discarded > STREAM_WINDOW)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                            void *ctx)
{
    struct net_conn *c = ctx;

    (void)session;
    (void)frame;
    (void)error;
    if (!guard_charge(&c->http2->guard, conn_now(c)))
        end_session(c, NGHTTP2_ENHANCE_YOUR_CALM);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *ctx)
{
    struct net_exchange *x = exchange_of(session, stream);

    (void)error;
    (void)ctx;
    if (!x)
        return 0;
    nghttp2_session_set_stream_user_data(session, stream, NULL);
    exchange_close(x);
    return 0;
}

/* Answers. */

static ssize_t on_read_slices(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room,
                              uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct net_exchange *x = source->ptr;
    size_t n = x->slices.bytes < room ? x->slices.bytes : room;

    (void)session;
    (void)stream;
    (void)out;
    (void)ctx;
    assert(x->magic == EXCHANGE_MAGIC);
    if (!n && !x->ended)
        return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (x->ended && n == x->slices.bytes)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static int on_send_slices(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                          size_t length, nghttp2_data_source *source, void *ctx)
{
    struct net_conn *c = ctx;
    struct net_exchange *x = source->ptr;

    (void)session;
    assert(x->magic == EXCHANGE_MAGIC && !frame->data.padlen);
    if (x->aborted) /* its slices were freed meanwhile */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (!conn_has_room(c))
        return NGHTTP2_ERR_WOULDBLOCK;
    conn_send(c, (struct str){(const char *)head, 9});
    exchange_frame(x, length);
    return 0;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t n, int flags,
                       void *ctx)
{
    struct net_conn *c = ctx;

    (void)session;
    (void)flags;
    if (!conn_has_room(c))
        return NGHTTP2_ERR_WOULDBLOCK;
    conn_send(c, (struct str){(const char *)data, n});
    return (ssize_t)n;
}

/* The answer is sent, but the request body still arrives: the request was refused. Clients that
 * read only after they wrote get a window's worth of time to see the answer; then NO_ERROR requests
 * the end of the upload (RFC 9113 8.1), also when they fall silent (exchange_late()). */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct net_conn *c = ctx;
    struct net_exchange *x;

    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    x = exchange_of(session, frame->hd.stream_id);
    if (x && !x->remote_ended) {
        x->discarding = true;
        x->since = conn_now(c);
        c->receiving++;
    }
    return 0;
}

/* nghttp2 only reads and copies the bytes; its type lacks the const. */
static uint8_t *bytes_of(struct str s)
{
    union {
        const char *in;
        uint8_t *out;
    } p = {s.p ? s.p : ""};

    return p.out;
}

static nghttp2_nv pair(struct str name, struct str value)
{
    /* A value that never repeats must not evict reusable ones from the peer's table. */
    uint8_t flags = str_eqc(name, "audit-id") ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;

    return (nghttp2_nv){bytes_of(name), bytes_of(value), name.n, value.n, flags};
}

static void answer(struct net_exchange *x, const struct net_header *headers, size_t n,
                   int64_t length)
{
    nghttp2_nv head[MAX_ANSWER_HEADERS];
    nghttp2_data_provider body = {.source = {.ptr = x}, .read_callback = on_read_slices};
    bool empty = x->bodyless || (x->ended && !x->slices.bytes);
    size_t used = 0;

    head[used++] = pair(STR(":status"), arena_printf(x->arena, "%d", x->status));
    head[used++] = pair(STR("date"), net_server_date(x->conn->server));
    if (length >= 0 && x->status >= 200 && x->status != 204 && x->status != 304)
        head[used++] =
            pair(STR("content-length"), arena_printf(x->arena, "%lld", (long long)length));
    for (size_t i = 0; i < n && used < MAX_ANSWER_HEADERS; i++) {
        if (!exchange_owns_header(headers[i].name))
            head[used++] = pair(headers[i].name, exchange_clean(x, headers[i].value));
    }

    /* Fails only for a stream that is closed already; on_stream_close() runs or ran. */
    (void)nghttp2_submit_response(x->conn->http2->session, x->stream, head, used,
                                  empty ? NULL : &body);
}

static void changed(struct net_exchange *x)
{
    nghttp2_session *session = x->conn->http2->session;

    if (x->aborted)
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, x->stream, NGHTTP2_CANCEL);
    else
        (void)nghttp2_session_resume_data(session, x->stream);
}

/* The connection. */

static void receive(struct net_conn *c, struct str bytes)
{
    struct http2 *h = c->http2;
    uint32_t error;

    if (h->failed || h->ended)
        return;
    error = guard_scan(&h->guard, &bytes, conn_now(c));
    if (nghttp2_session_mem_recv(h->session, (const uint8_t *)bytes.p, bytes.n) < 0)
        h->failed = true;
    else if (error)
        end_session(c, error);
    conn_dirty(c);
}

static void pump(struct net_conn *c)
{
    struct http2 *h = c->http2;

    if (nghttp2_session_send(h->session) < 0)
        h->failed = true;
}

static void settle(struct net_conn *c)
{
    struct http2 *h = c->http2;
    bool over = !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session);

    if (h->failed || over || (c->goodbye_sent && !c->n_exchanges))
        conn_finish(c);
}

static void end_of_input(struct net_conn *c)
{
    conn_close(c);
}

static void goodbye(struct net_conn *c)
{
    nghttp2_session *session = c->http2->session;

    nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session), NGHTTP2_NO_ERROR, NULL,
                          0);
}

static void fini(struct net_conn *c)
{
    nghttp2_session_del(c->http2->session);
    c->http2 = mem_free(c->http2);
}

const struct proto HTTP2 = {
    .receive = receive,
    .pump = pump,
    .settle = settle,
    .end_of_input = end_of_input,
    .goodbye = goodbye,
    .answer = answer,
    .changed = changed,
    .fini = fini,
};

static nghttp2_option *make_options(void)
{
    nghttp2_option *option;

    if (nghttp2_option_new(&option) != 0)
        abort();
    nghttp2_option_set_no_closed_streams(option, 1);
    /* Blanks around a value are trimmed, as with HTTP/1.1, instead of refused. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
    nghttp2_option_set_max_outbound_ack(option, MAX_ACKS);
    nghttp2_option_set_stream_reset_rate_limit(option, RESET_BURST, RESET_RATE);
    return option;
}

static void submit_settings(struct net_conn *c)
{
    const struct net_options *o = &c->server->options;
    nghttp2_session *session = c->http2->session;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, o->max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)o->max_header_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };

    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, COUNT(settings));
    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW);
}

void http2_open(struct net_conn *c)
{
    struct http2 *h = NEW(struct http2);
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option = make_options();

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        abort();
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_slices);

    if (nghttp2_session_server_new2(&h->session, callbacks, c, option) != 0)
        abort();
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    guard_init(&h->guard);
    c->http2 = h;
    c->proto = &HTTP2;
    submit_settings(c);
    conn_dirty(c);
}
