/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser sends on the WebSocket of a watch, from any bytes: the first says in pieces of
 * what size they arrive. It must not matter: what is answered, and whether it goes on, is the same
 * as when all arrives at once, and no answer is more than a frame of control. */
#include <assert.h>
#include <string.h>

#include "../../vapi/api/respond/respond.h"
#include "../../vapi/api/watch/watch.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* ---- the network, and what a handshake requests from the API ---- */

struct net_exchange {
    struct buf sent;
    size_t backlog;
};

static struct call_entry ENTRY;
static void (*RECEIVED)(void *ctx, struct str bytes);

struct call_entry *call_entry(struct call *c)
{
    (void)c;
    return &ENTRY;
}

struct str net_header(const struct net_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (str_eqc(r->headers[i].name, name))
            return r->headers[i].value;
    return STR_NULL;
}

bool net_upgrade(struct net_exchange *x, const struct net_header *headers, size_t n_headers,
                 void (*received)(void *ctx, struct str bytes))
{
    (void)x;
    (void)headers;
    assert(n_headers >= 3);
    RECEIVED = received;
    return true;
}

size_t net_write(struct net_exchange *x, const struct net_slice *slices, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        bytes += slices[i].bytes.n;
        buf_add(&x->sent, slices[i].bytes);
        if (slices[i].release)
            slices[i].release(slices[i].ctx);
    }
    assert(bytes >= 2 && bytes <= 2 + 125); /* a frame of control */
    x->backlog += bytes;
    return x->backlog;
}

size_t net_backlog(const struct net_exchange *x)
{
    return x->backlog;
}

void call_streams(struct call *c, int status)
{
    (void)c;
    assert(status == 101);
}

void call_header(struct call *c, const char *name, struct str value)
{
    (void)c;
    (void)name;
    (void)value;
    assert(false); /* of a refusal */
}

void respond_text(struct call *c, int status, const char *text)
{
    (void)c;
    (void)status;
    (void)text;
    assert(false);
}

/* ---- one conversation ---- */

static void on_received(void *ctx, struct str bytes)
{
    (void)ctx;
    (void)bytes;
}

static enum socket_next talk(struct str bytes, size_t piece, struct buf *ret_sent)
{
    const struct net_header asked[] = {
        {STR("connection"), STR("keep-alive, Upgrade")},
        {STR("upgrade"), STR("WebSocket")},
        {STR("origin"), STR("https://console.example")},
        {STR("sec-websocket-key"), STR("AAECAwQFBgcICQoLDA0ODw==")},
        {STR("sec-websocket-version"), STR("13")},
    };
    struct net_request request = {
        .method = NET_GET, .http_major = 1, .headers = asked, .n_headers = COUNT(asked)};
    struct net_exchange exchange = {.sent = BUF_INIT(0)};
    struct call call = {.arena = arena_new(0), .request = &request, .exchange = &exchange};
    enum socket_next next = SOCKET_GO_ON;
    struct watch_socket *socket;

    assert(!watch_socket_refused(&call, NULL));
    socket = watch_socket_open(&call, NULL, on_received);
    assert(socket && RECEIVED == on_received);
    while (bytes.n && next == SOCKET_GO_ON) {
        next = watch_socket_receive(socket, &call, str_sub(bytes, 0, piece));
        bytes = str_from(bytes, piece);
    }
    if (next == SOCKET_GO_ON)
        assert(watch_socket_receive(socket, &call, STR("")) == SOCKET_CLOSE);
    arena_free(call.arena);
    *ret_sent = exchange.sent;
    return next;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str bytes = {(const char *)data + 1, size - 1};
    struct buf whole, pieces;
    enum socket_next next;

    if (!size)
        return 0;
    next = talk(bytes, size, &whole);
    assert(talk(bytes, 1u + data[0] % 16u, &pieces) == next);
    assert(str_eq(buf_str(&whole), buf_str(&pieces)));
    assert(whole.n <= 64u * 1024 + 2 * (2 + 125)); /* pings that are not read have an end */
    buf_fini(&whole);
    buf_fini(&pieces);
    return 0;
}
