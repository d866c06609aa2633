/* SPDX-License-Identifier: Apache-2.0
 *
 * A log over a WebSocket: scripts in browsers cannot read a stream of HTTP. An empty message comes
 * first, then the bytes as they arrive, then the closing frame. It must never split what one
 * message's base64 encodes, nor keep what the client sends. Source: apiserver
 * pkg/endpoints/handlers/responsewriters (StreamObject), streaming pkg/httpstream/wsstream. */
#include "impl.h"

#include "../watch/watch.h"

#include <sublet/encode.h>

#define BASE64 "base64.binary.k8s.io"
#define PIECE  2048 /* bytes of a message */

static const char *const PROTOCOLS[] = {"binary.k8s.io", BASE64, NULL};

bool proxy_socket_requested(const struct proxy *p)
{
    return p->request.kind == PROXY_LOG && watch_socket_requested(p->call);
}

bool proxy_socket_refused(struct call *c)
{
    return watch_socket_refused(c, PROTOCOLS);
}

static void on_sent(void *ctx)
{
    mem_free(ctx);
}

static size_t send_message(struct proxy *p, struct str bytes)
{
    struct arena *a = arena_new(0);
    unsigned char head[WATCH_SOCKET_HEAD];
    struct net_slice slice = {.release = on_sent};
    struct buf b = BUF_INIT(0);
    size_t backlog;

    if (p->base64)
        bytes = base64_encode(a, bytes);
    buf_add(&b, (struct str){(const char *)head, watch_socket_head(!p->base64, bytes.n, head)});
    buf_add(&b, bytes);
    slice.bytes = buf_take(&b);
    slice.ctx = (void *)(uintptr_t)slice.bytes.p;
    backlog = net_write(p->call->exchange, &slice, 1);
    arena_free(a);
    return backlog;
}

bool proxy_socket_open(struct proxy *p, void (*received)(void *ctx, struct str bytes))
{
    p->base64 = str_eqc(watch_socket_protocol(p->call, PROTOCOLS), BASE64);
    p->socket = watch_socket_open(p->call, PROTOCOLS, received);
    if (p->socket)
        send_message(p, STR(""));
    return p->socket;
}

size_t proxy_socket_write(struct proxy *p, struct str bytes)
{
    size_t backlog = net_backlog(p->call->exchange);

    while (bytes.n) {
        struct str piece = str_sub(bytes, 0, bytes.n < PIECE ? bytes.n : PIECE);

        backlog = send_message(p, piece);
        bytes = str_from(bytes, piece.n);
    }
    return backlog;
}

bool proxy_socket_received(struct proxy *p, struct str bytes)
{
    return watch_socket_receive(p->socket, p->call, bytes) == SOCKET_CLOSE;
}
