/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake and the frames of a watch, or a log, over a WebSocket. Why: scripts in browsers
 * cannot read a stream of HTTP, so consoles read with this, with a token among the subprotocols.
 * Frames from the client are skipped, except for pings and its close. Must never keep more of them
 * than one ping, nor answer pings faster than they are read. Source: apiserver
 * pkg/endpoints/handlers/watch.go, streaming pkg/httpstream/wsstream,
 * golang.org/x/net/websocket. */
#include "watch.h"

#include "../respond/respond.h"

#include <ctype.h>
#include <string.h>

#include <openssl/evp.h>

#include <sublet/encode.h>

#define MOST_CONTROL 125          /* bytes of a control frame (RFC 6455 5.5) */
#define MOST_PONGS   (64u * 1024) /* unread; further pings are not answered */
#define TOKEN        "base64url.bearer.authorization.k8s.io."
#define ACCEPT_GUID  "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

enum { OP_TEXT = 1, OP_BINARY = 2, OP_CLOSE = 8, OP_PING = 9, OP_PONG = 10 };
#define FINAL  0x80
#define MASKED 0x80

/* The frame being read: its head, then its payload. */
struct watch_socket {
    unsigned char head[14];
    size_t n_head;
    uint64_t left;
    unsigned char ping[MOST_CONTROL];
    size_t n_ping;
    size_t at; /* position in the payload, for the mask */
};

/* ---- the handshake ---- */

bool watch_socket_requested(const struct call *c)
{
    const struct net_request *r = c->request;

    return r->http_major == 1 && r->method == NET_GET &&
           str_lists_word(net_header(r, "connection"), STR("upgrade")) &&
           str_eq_nocase(net_header(r, "upgrade"), STR("websocket"));
}

/* The subprotocols except the one with a token; returns their number. */
static size_t protocols(const struct call *c, struct str *ret_first)
{
    struct str rest = net_header(c->request, "sec-websocket-protocol");
    size_t n = 0;

    *ret_first = STR_NULL;
    while (rest.p) {
        struct str one = str_trim(str_cut(&rest, ','));

        if (!one.n || str_has_prefix(one, STR(TOKEN)))
            continue;
        if (!n++)
            *ret_first = one;
    }
    return n;
}

/* An absolute URI: browsers send one, and other clients need no WebSocket. */
static bool is_origin(struct arena *a, struct str origin)
{
    struct str decoded, scheme = str_sub(origin, 0, str_find(origin, ':'));

    if (!origin.n || str_eqc(origin, "null") || !url_decode(a, origin, false, &decoded))
        return false;
    for (size_t i = 0; i < scheme.n; i++)
        if (!isalnum((unsigned char)scheme.p[i]) && !memchr("+-.", scheme.p[i], 3))
            return origin.p[0] == '/';
    return scheme.n && scheme.n < origin.n && isalpha((unsigned char)scheme.p[0]);
}

static bool is_one_of(struct str text, const char *const *list)
{
    while (*list && !str_eqc(text, *list))
        list++;
    return *list;
}

/* The first subprotocol of the client that is supported; STR_NULL when it named others only. */
static struct str supported(const struct call *c, const char *const *list)
{
    struct str rest = net_header(c->request, "sec-websocket-protocol"), first;

    if (!protocols(c, &first))
        return STR("");
    while (rest.p) {
        struct str one = str_trim(str_cut(&rest, ','));

        if (is_one_of(one, list))
            return one;
    }
    return STR_NULL;
}

struct str watch_socket_protocol(const struct call *c, const char *const *list)
{
    struct str first;

    if (list)
        return supported(c, list);
    protocols(c, &first);
    return first;
}

/* Does the handshake of this endpoint agree? */
static bool agrees(struct call *c, const char *const *list)
{
    struct str first;

    if (list)
        return supported(c, list).p;
    return is_origin(c->arena, net_header(c->request, "origin")) && protocols(c, &first) <= 1;
}

bool watch_socket_refused(struct call *c, const char *const *list)
{
    int status = 400;
    const char *why = "";

    if (!watch_socket_requested(c))
        return false;
    if (!net_header(c->request, "sec-websocket-key").n)
        why = "mismatch challenge/response";
    else if (!str_eqc(net_header(c->request, "sec-websocket-version"), "13"))
        why = "missing or bad WebSocket Version";
    else if (agrees(c, list))
        return false;
    else if (list || !is_origin(c->arena, net_header(c->request, "origin")))
        status = 403;
    if (str_has_suffix(str_c(why), STR("Version")))
        call_header(c, "sec-websocket-version", STR("13"));
    respond_text(c, status, why);
    return true;
}

static struct str accept_key(struct arena *a, struct str key)
{
    struct str text = arena_concat(a, 2, (struct str[]){key, STR(ACCEPT_GUID)});
    unsigned char digest[20];

    if (!EVP_Digest(text.p, text.n, digest, NULL, EVP_sha1(), NULL))
        abort();
    return base64_encode(a, (struct str){(const char *)digest, sizeof(digest)});
}

struct watch_socket *watch_socket_open(struct call *c, const char *const *list,
                                       void (*received)(void *ctx, struct str bytes))
{
    struct str key = net_header(c->request, "sec-websocket-key"), protocol;
    struct net_header headers[4] = {
        {STR("upgrade"), STR("websocket")},
        {STR("audit-id"), call_entry(c)->audit_id},
    };
    size_t n = 2;

    if (!watch_socket_requested(c))
        return NULL;
    headers[n++] = (struct net_header){STR("sec-websocket-accept"), accept_key(c->arena, key)};
    protocol = watch_socket_protocol(c, list);
    if (protocol.n || (list && protocol.p)) /* wsstream names the empty one, too */
        headers[n++] = (struct net_header){STR("sec-websocket-protocol"), protocol};
    if (!net_upgrade(c->exchange, headers, n, received))
        return NULL;
    call_streams(c, 101);
    return ARENA_NEW(c->arena, struct watch_socket);
}

/* ---- frames ---- */

static size_t frame_head(unsigned op, size_t n, unsigned char *ret)
{
    size_t bytes = n < 126 ? 0 : n <= UINT16_MAX ? 2 : 8;

    ret[0] = (unsigned char)(FINAL | op);
    ret[1] = (unsigned char)(bytes == 0 ? n : bytes == 2 ? 126 : 127);
    for (size_t i = 0; i < bytes; i++)
        ret[2 + i] = (unsigned char)((uint64_t)n >> 8 * (bytes - 1 - i));
    return 2 + bytes;
}

size_t watch_socket_head(bool binary, size_t n, unsigned char ret[WATCH_SOCKET_HEAD])
{
    return frame_head(binary ? OP_BINARY : OP_TEXT, n, ret);
}

static void on_control_sent(void *ctx)
{
    mem_free(ctx);
}

static void send_control(struct call *c, unsigned op, struct str payload)
{
    unsigned char head[WATCH_SOCKET_HEAD];
    struct buf b = BUF_INIT(0);
    struct net_slice slice = {.release = on_control_sent};

    buf_add(&b, (struct str){(const char *)head, frame_head(op, payload.n, head)});
    buf_add(&b, payload);
    slice.bytes = buf_take(&b);
    slice.ctx = (void *)(uintptr_t)slice.bytes.p;
    net_write(c->exchange, &slice, 1);
}

void watch_socket_goodbye(struct call *c)
{
    if (c->exchange)
        send_control(c, OP_CLOSE, (struct str){"\x03\xe8", 2}); /* 1000: normal closure */
}

/* The length of a head whose first two bytes are known: with a longer length field and the mask. */
static size_t length_size(const struct watch_socket *s)
{
    unsigned n = s->head[1] & 0x7f;

    return n < 126 ? 0 : n == 126 ? 2 : 8;
}

static size_t head_size(const struct watch_socket *s)
{
    return 2 + length_size(s) + (s->head[1] & MASKED ? 4u : 0u);
}

static void begin_payload(struct watch_socket *s)
{
    size_t bytes = length_size(s);

    s->left = bytes ? 0 : s->head[1] & 0x7f;
    for (size_t i = 0; i < bytes; i++)
        s->left = s->left << 8 | s->head[2 + i];
    s->n_ping = s->at = 0;
}

/* The frame is complete. */
static enum socket_next end_frame(struct watch_socket *s, struct call *c)
{
    unsigned op = s->head[0] & 0x0f;

    s->n_head = 0;
    if (op == OP_PING && net_backlog(c->exchange) < MOST_PONGS)
        send_control(c, OP_PONG, (struct str){(const char *)s->ping, s->n_ping});
    return op == OP_CLOSE ? SOCKET_CLOSE : SOCKET_GO_ON;
}

static bool head_complete(const struct watch_socket *s)
{
    return s->n_head >= 2 && s->n_head == head_size(s);
}

enum socket_next watch_socket_receive(struct watch_socket *s, struct call *c, struct str bytes)
{
    enum socket_next next = bytes.n ? SOCKET_GO_ON : SOCKET_CLOSE;
    const unsigned char *mask;

    while (bytes.n && next == SOCKET_GO_ON) {
        if (!head_complete(s)) {
            s->head[s->n_head++] = (unsigned char)bytes.p[0];
            bytes = str_from(bytes, 1);
            if (s->n_head == 2 && !(s->head[1] & MASKED)) {
                send_control(c, OP_CLOSE,
                             (struct str){"\x03\xea", 2}); /* 1002: protocol error (RFC 6455 5.1) */
                return SOCKET_CLOSE;
            }
            if (head_complete(s))
                begin_payload(s);
        } else {
            struct str piece = str_sub(bytes, 0, s->left < bytes.n ? (size_t)s->left : bytes.n);

            mask = s->head + head_size(s) - 4;
            for (size_t i = 0; i < piece.n && s->n_ping < MOST_CONTROL; i++)
                s->ping[s->n_ping++] = (unsigned char)piece.p[i] ^ mask[s->at++ % 4];
            s->left -= piece.n;

            bytes = str_from(bytes, piece.n);
        }
        if (head_complete(s) && !s->left)
            next = end_frame(s, c);
    }
    return next;
}
