/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 and 1.0 over llhttp: one exchange at a time; pipelined requests wait unparsed. Why:
 * probes, proxies and upgrades (exec, port-forward) speak it. Must never continue to parse after an
 * error or a refusal: the boundary between two requests is then a guess, which is how requests are
 * smuggled. */
#include "server.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include <llhttp.h>

#define CHUNK_OVERHEAD 16 /* framing bytes tolerated per byte of a chunked body */

struct http1 {
    llhttp_t parser;
    struct net_exchange *x;
    struct buf token; /* the part of a target, name or value received so far */
    struct str name;  /* of the header whose value is being read; in the exchange's arena */
    struct buf head;  /* of the answer, until it is sent */
    struct buf rest;  /* plain bytes after the current request */
    size_t received;  /* bytes of this message, framing included */
    bool method_done;
    bool headers_done;
    bool complete; /* llhttp paused after a complete message */
    bool keep_alive, want_upgrade, http10;
    bool want_continue;
    bool chunked; /* the answer */
    bool tail_sent;
    bool end_reported; /* of the peer's half, reported to the reader of a pipe */
    bool stopped;      /* parses nothing more */
};

static struct net_conn *conn_of(const llhttp_t *parser)
{
    return parser->data;
}

/* Parser callbacks. */

static struct net_exchange *current(struct net_conn *c)
{
    struct http1 *h = c->http1;

    if (!h->x)
        h->x = exchange_new(c);
    return h->x;
}

/* The answer ends the connection: the remaining request bytes are not read. */
static int refuse(struct net_conn *c, enum refusal why)
{
    struct http1 *h = c->http1;
    struct net_exchange *x = current(c);

    h->stopped = true;
    h->keep_alive = false;
    c->since = 0;
    if (!exchange_answered(x))
        exchange_refuse(x, why);
    return -1;
}

static int on_token(llhttp_t *parser, const char *at, size_t n)
{
    struct net_conn *c = conn_of(parser);

    buf_add(&c->http1->token, (struct str){at, n});
    return c->http1->token.failed ? refuse(c, REFUSE_HEADERS_TOO_LARGE) : 0;
}

/* RFC 9110 5.6.2. llhttp's loose mode accepts more, blanks before the colon among it, so that two
 * servers in a row could read different headers. */
static bool is_token(struct str name)
{
    static const char OTHERS[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!c || (!isalnum((unsigned char)c) && !strchr(OTHERS, c)))
            return false;
    }
    return name.n > 0;
}

static int on_url_complete(llhttp_t *parser)
{
    struct net_conn *c = conn_of(parser);
    struct net_exchange *x = current(c);
    struct http1 *h = c->http1;

    exchange_set_target(x, buf_str(&h->token));
    x->header_bytes += h->token.n;
    buf_clear(&h->token);
    return 0;
}

static int on_field_complete(llhttp_t *parser)
{
    struct net_conn *c = conn_of(parser);
    struct http1 *h = c->http1;

    if (!is_token(buf_str(&h->token)))
        return refuse(c, REFUSE_MALFORMED);
    if (!h->headers_done)
        h->name = arena_str(h->x->arena, buf_str(&h->token));
    buf_clear(&h->token);
    return 0;
}

static int on_value_complete(llhttp_t *parser)
{
    struct net_conn *c = conn_of(parser);
    struct http1 *h = c->http1;
    struct str value = str_trim(buf_str(&h->token));
    bool fits = h->headers_done || /* a trailer */
                exchange_add_header(h->x, h->name, value);

    if (memchr(value.p ? value.p : "", '\r', value.n))
        return refuse(c, REFUSE_MALFORMED);
    buf_clear(&h->token);
    return fits ? 0 : refuse(c, REFUSE_HEADERS_TOO_LARGE);
}

static bool starts_with(struct str s, struct str prefix)
{
    return str_eq_nocase(str_sub(s, 0, prefix.n), prefix);
}

/* Accepts the origin form, `*`, and the absolute form that proxies send. An authority to connect to
 * is not supported and has no path (RFC 9112 3.2). */
static bool accept_target(struct net_exchange *x)
{
    struct net_request *r = &x->request;
    struct str rest,
        scheme = starts_with(r->path, STR("https://")) ? STR("https://") : STR("http://");

    if (str_has_prefix(r->path, STR("/")) || str_eqc(r->path, "*"))
        return true;
    if (exchange_is_connect(x)) {
        r->authority = r->path;
        r->path = STR("");
        return true;
    }
    if (!starts_with(r->path, scheme))
        return false;
    rest = str_from(r->path, scheme.n);
    r->authority = str_sub(rest, 0, str_find(rest, '/'));
    r->path = str_from(rest, r->authority.n);
    if (!r->path.n)
        r->path = STR("/");
    return true;
}

/* RFC 3986 3.2.2: the characters of a host and a port. */
static bool is_host(struct str host)
{
    static const char OTHERS[] = "!$%&'()*+,-.:;=[]_~";

    for (size_t i = 0; i < host.n; i++)
        if (!host.p[i] || (!isalnum((unsigned char)host.p[i]) && !strchr(OTHERS, host.p[i])))
            return false;
    return true;
}

/* Exactly one Host with HTTP/1.1 (RFC 9112 3.2). */
static bool accept_host(struct net_exchange *x, bool http10)
{
    unsigned n = 0;

    for (size_t i = 0; i < x->n_headers; i++) {
        if (!str_eqc(x->headers[i].name, "host"))
            continue;
        if (!x->request.authority.p)
            x->request.authority = x->headers[i].value;
        n += is_host(x->headers[i].value) ? 1 : 2;
    }
    return is_host(x->request.authority) && (n == 1 || (http10 && n == 0));
}

/* A body with a coding besides chunked would be taken for the decoded body. */
static bool accept_coding(const struct net_exchange *x)
{
    struct str value = net_header(&x->request, "transfer-encoding");

    return !value.p || str_eq_nocase(value, STR("chunked"));
}

enum expectation { EXPECT_NOTHING, EXPECT_CONTINUE, EXPECT_MORE };

static enum expectation expectation_of(const struct net_exchange *x)
{
    struct str value = net_header(&x->request, "expect");

    if (!value.n)
        return EXPECT_NOTHING;
    return str_lists_word(value, STR("100-continue")) ? EXPECT_CONTINUE : EXPECT_MORE;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct net_conn *c = conn_of(parser);
    struct http1 *h = c->http1;
    struct net_exchange *x = current(c);
    bool chunked = (parser->flags & F_CHUNKED) != 0;
    bool announced = (parser->flags & F_CONTENT_LENGTH) != 0 && !chunked;
    uint64_t length = announced ? parser->content_length : 0;

    h->headers_done = true;
    h->http10 = parser->http_major == 1 && parser->http_minor == 0;
    h->keep_alive = llhttp_should_keep_alive(parser) && !c->goodbye_sent;
    /* Upgrades are decided here, after the request is complete. */
    h->want_upgrade = parser->upgrade && !exchange_is_connect(x);
    parser->upgrade = 0;
    c->since = 0;
    x->request.http_major = 1;
    x->request.headers = x->headers;
    x->request.n_headers = x->n_headers;
    buf_fini(&h->token);
    h->token = BUF_INIT(c->server->options.max_header_bytes);

    if (parser->http_major != 1 || parser->http_minor > 1 || !accept_target(x) ||
        !accept_host(x, h->http10) || length > INT64_MAX)
        return refuse(c, REFUSE_MALFORMED);
    if (!accept_coding(x))
        return refuse(c, REFUSE_CODING);
    if (!h->http10 && expectation_of(x) == EXPECT_MORE)
        return refuse(c, REFUSE_EXPECTATION);
    if (!exchange_expect_body(x, announced ? (int64_t)length : -1))
        return refuse(c, REFUSE_BODY_TOO_LARGE);
    if ((chunked || length) && !h->http10 && expectation_of(x) == EXPECT_CONTINUE) {
        h->want_continue = true;
        conn_dirty(c);
    }
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct net_conn *c = conn_of(parser);

    if (exchange_add_body(c->http1->x, (struct str){at, n}))
        return 0;
    return refuse(c, REFUSE_BODY_TOO_LARGE);
}

static int on_message_complete(llhttp_t *parser)
{
    conn_of(parser)->http1->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t SETTINGS = {
    .on_url = on_token,
    .on_url_complete = on_url_complete,
    .on_header_field = on_token,
    .on_header_field_complete = on_field_complete,
    .on_header_value = on_token,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* Input. */

/* Blanks, empty lines, chunk extensions and trailers count toward the sender's limits, too. */
static bool within_limits(struct net_conn *c)
{
    struct http1 *h = c->http1;
    size_t body = h->x ? h->x->body.n : 0;
    size_t framing = h->received - body;
    size_t limit = c->server->options.max_header_bytes;

    if (!h->headers_done || h->complete)
        return h->complete || framing <= limit;
    return framing <= 2 * limit + body * CHUNK_OVERHEAD;
}

static void begin_message(struct net_conn *c)
{
    struct http1 *h = c->http1;

    llhttp_init(&h->parser, HTTP_REQUEST, &SETTINGS);
    h->parser.data = c;
    h->method_done = false;
    h->headers_done = h->complete = h->chunked = h->tail_sent = h->want_continue = false;
    h->received = 0;
}

/* llhttp knows only the registered methods and treats some of them specially. A method that is not
 * served is still answered with 405, so llhttp receives PUT in its place, which has no special
 * meaning; CONNECT stays, because llhttp accepts its targets with no other method. Returns the
 * bytes after the method; nothing while it is incomplete or invalid. */
static struct str take_method(struct net_conn *c, struct str bytes)
{
    struct http1 *h = c->http1;
    struct str piece;

    while (!h->token.n && bytes.n && (*bytes.p == '\r' || *bytes.p == '\n'))
        bytes = str_from(bytes, 1); /* RFC 9112 2.2 */
    piece = str_sub(bytes, 0, str_find(bytes, ' '));
    buf_add(&h->token, piece);
    if (h->token.failed) {
        refuse(c, REFUSE_HEADERS_TOO_LARGE);
    } else if ((piece.n && !is_token(piece)) || (bytes.n && !h->token.n)) {
        refuse(c, REFUSE_MALFORMED);
    } else if (piece.n < bytes.n) {
        struct net_exchange *x = current(c);
        struct str word = STR("PUT");

        exchange_set_method(x, buf_str(&h->token));
        x->header_bytes += h->token.n;
        buf_clear(&h->token);
        if (x->request.method != NET_OTHER || exchange_is_connect(x))
            word = x->request.method_text;
        h->method_done = llhttp_execute(&h->parser, word.p, word.n) == HPE_OK;
        assert(h->method_done);
        return str_from(bytes, piece.n);
    }
    return STR_NULL;
}

static void parse(struct net_conn *c, struct str bytes)
{
    struct http1 *h = c->http1;
    llhttp_errno_t result = HPE_OK;
    struct str rest;

    if (!c->since && !h->headers_done)
        c->since = conn_now(c);
    h->received += bytes.n;
    if (!h->method_done)
        bytes = take_method(c, bytes);
    if (bytes.n)
        result = llhttp_execute(&h->parser, bytes.p, bytes.n);

    if (h->stopped)
        return;
    if (h->complete) {
        size_t used = (size_t)(llhttp_get_error_pos(&h->parser) - bytes.p);

        assert(result == HPE_PAUSED && used <= bytes.n);

        rest = str_from(bytes, used);
        buf_add(&h->rest, rest);
        conn_hold(c, true);
        h->x->upgradable = h->want_upgrade;
        exchange_dispatch(h->x);
    } else if (result != HPE_OK) {
        refuse(c, REFUSE_MALFORMED);
    } else if (!within_limits(c)) {
        refuse(c, h->headers_done ? REFUSE_MALFORMED : REFUSE_HEADERS_TOO_LARGE);
    }
}

static void pipe_received(struct net_exchange *x, struct str bytes)
{
    if (!x->aborted && !x->ended)
        x->received(x->ctx, bytes);
}

static void receive(struct net_conn *c, struct str bytes)
{
    struct http1 *h = c->http1;

    if (h->stopped || !bytes.n)
        return;
    if (h->x && h->x->upgraded && !h->x->paused && !h->rest.n)
        pipe_received(h->x, bytes);
    else if (h->complete)
        buf_add(&h->rest, bytes);
    else
        parse(c, bytes);
}

/* A peer that closed its half after a request may still read the answer; one with an open watch has
 * disconnected. */
static void end_of_input(struct net_conn *c)
{
    struct http1 *h = c->http1;

    h->keep_alive = false;
    if (h->x && h->x->upgraded)
        conn_dirty(c); /* serve_pipe() reports it in order */
    else if (!h->stopped && (!h->x || (h->x->streamed && !h->x->whole) || !h->complete))
        conn_close(c);
}

/* Output. */

static void add_header(struct buf *b, struct str name, struct str value)
{
    buf_add(b, name);
    buf_add(b, STR(": "));
    buf_add(b, value);
    buf_add(b, STR("\r\n"));
}

static void answer(struct net_exchange *x, const struct net_header *headers, size_t n,
                   int64_t length)
{
    struct net_conn *c = x->conn;
    struct http1 *h = c->http1;

    if (x->refused && !x->remote_ended)
        h->keep_alive = false;
    buf_printf(&h->head, "HTTP/1.1 %d ", x->status);
    buf_add(&h->head, net_status_phrase(x->status));
    buf_add(&h->head, STR("\r\n"));
    for (size_t i = 0; i < n; i++) {
        if (!exchange_owns_header(headers[i].name))
            add_header(&h->head, headers[i].name, exchange_clean(x, headers[i].value));
    }
    if (!x->upgraded)
        add_header(&h->head, STR("date"), net_server_date(c->server));
    if (length >= 0 && x->status >= 200 && x->status != 204 && x->status != 304)
        buf_printf(&h->head, "content-length: %lld\r\n", (long long)length);
    h->chunked = length < 0 && !x->bodyless && !h->http10 && !x->upgraded;
    if (h->chunked)
        add_header(&h->head, STR("transfer-encoding"), STR("chunked"));
    else if (length < 0 && !x->bodyless)
        h->keep_alive = false; /* HTTP/1.0, or a pipe: it ends with the connection */

    if (x->upgraded)
        add_header(&h->head, STR("connection"), STR("upgrade"));
    else if (!h->keep_alive)
        add_header(&h->head, STR("connection"), STR("close"));
    else if (h->http10)
        add_header(&h->head, STR("connection"), STR("keep-alive"));
    buf_add(&h->head, STR("\r\n"));
}

static void changed(struct net_exchange *x)
{
    (void)x; /* settle() and pump() look at the only exchange */
}

static void frame_slices(struct net_conn *c, struct net_exchange *x)
{
    struct http1 *h = c->http1;
    size_t n = x->slices.bytes < NET_OUT_HIGH ? x->slices.bytes : NET_OUT_HIGH;
    struct buf line = BUF_INIT(0);

    if (h->chunked) {
        buf_printf(&line, "%zx\r\n", n);
        conn_send(c, buf_str(&line));
        buf_fini(&line);
    }
    exchange_frame(x, n);
    if (h->chunked)
        conn_send(c, STR("\r\n"));
}

static void pump(struct net_conn *c)
{
    struct http1 *h = c->http1;
    struct net_exchange *x = h->x;

    if (h->want_continue && x && !exchange_answered(x))
        conn_send(c, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    h->want_continue = false;
    if (!x || !exchange_answered(x) || x->aborted)
        return;

    conn_send(c, buf_str(&h->head));
    buf_fini(&h->head);
    while (x->slices.bytes && conn_has_room(c)) {
        frame_slices(c, x);
    }
    if (x->ended && !x->slices.bytes && !h->tail_sent) {
        if (h->chunked)
            conn_send(c, STR("0\r\n\r\n"));
        h->tail_sent = true;
    }
}

/* The next request of the pipeline. */
static void next_message(struct net_conn *c)
{
    struct buf rest = c->http1->rest;

    begin_message(c);
    c->http1->rest = BUF_INIT(0);
    receive(c, buf_str(&rest));
    buf_fini(&rest);
    if (!c->http1->complete)
        conn_hold(c, false);
}

/* Bytes that came with the request or while the pipe was paused are delivered first, the peer's end
 * last. */
static void serve_pipe(struct net_conn *c, struct net_exchange *x)
{
    struct http1 *h = c->http1;
    struct buf rest = h->rest;

    if (x->paused)
        return;
    h->rest = BUF_INIT(0);
    if (rest.n)
        pipe_received(x, buf_str(&rest));
    buf_fini(&rest);
    if (!x->paused)
        conn_hold(c, false);
    if (c->peer_gone && !c->hold && !h->end_reported) {
        h->end_reported = true;
        pipe_received(x, STR_NULL);
    }
}

static void settle(struct net_conn *c)
{
    struct http1 *h = c->http1;
    struct net_exchange *x = h->x;

    if (x && x->aborted) {
        conn_close(c);
        return;
    }
    if (x && x->upgraded && !x->ended)
        serve_pipe(c, x);
    if (x && h->tail_sent) {
        h->x = NULL;
        exchange_close(x);
        if (h->keep_alive && !c->goodbye_sent)
            next_message(c);
        else
            conn_finish(c);
    } else if (!x && c->goodbye_sent) {
        conn_finish(c);
    }
}

static void goodbye(struct net_conn *c)
{
    c->http1->keep_alive = false;
}

static void fini(struct net_conn *c)
{
    struct http1 *h = c->http1;

    buf_fini(&h->token);
    buf_fini(&h->head);
    buf_fini(&h->rest);
    c->http1 = mem_free(h);
}

const struct proto HTTP1 = {
    .receive = receive,
    .pump = pump,
    .settle = settle,
    .end_of_input = end_of_input,
    .goodbye = goodbye,
    .answer = answer,
    .changed = changed,
    .fini = fini,
};

void http1_open(struct net_conn *c)
{
    struct http1 *h = NEW(struct http1);

    c->http1 = h;
    c->proto = &HTTP1;
    h->token = BUF_INIT(c->server->options.max_header_bytes);
    h->head = BUF_INIT(0);
    h->rest = BUF_INIT(0);
    begin_message(c);
}
