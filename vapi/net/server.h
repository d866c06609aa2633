/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net (private)
 *
 * A server owns connections, a connection owns exchanges. All of it lives on one loop thread.
 *
 *   socket -> conn.c -> tls.c -> http1.c | http2.c -> exchange.c -> handler
 *   socket <- conn.c <- tls.c <- http1.c | http2.c <- exchange.c <- net_respond(), net_write()
 *
 * Two rules prevent re-entrance. Calls by the user only change an exchange and mark its connection
 * dirty; conn_flush() makes and writes frames, once per loop iteration. And a connection is torn
 * down (its exchanges closed, its memory freed) only in the close callback of its socket; until
 * then state == CONN_CLOSING makes every call a no-op. Must never be included outside vapi/net, its
 * tests and its fuzz target. */
#pragma once

#include "conn.h"

#define SERVER_MAGIC 0x6e657473u

/* Buffers needed only inside one callback; they exist while there are connections. */
struct scratch {
    char read[NET_READ];
    char plain[NET_RECORD];
    char stage[NET_RECORD];
    size_t staged;
};

struct net_server {
    unsigned magic;
    uv_loop_t *loop;
    uv_tcp_t listener;
    uv_prepare_t prepare; /* flushes dirty connections before the loop sleeps */
    uv_idle_t again;      /* keeps the loop awake while dirty connections remain */
    uv_timer_t sweep;
    unsigned handles; /* of the four above, not yet closed */
    bool listening;
    enum { SWEEP_OFF, SWEEP_SLOW, SWEEP_FAST } sweep_mode;
    int64_t sweep_ms;

    struct net_options options;
    SSL_CTX *tls;
    BIO_METHOD *bio;
    struct scratch *scratch;
    struct conn_list conns, busy, idle, dirty;
    unsigned n_conns, running;
    size_t bodies; /* bytes of request bodies in memory */
    size_t heads;  /* bytes of headers, except those of streams that began */

    uint64_t accepted, refused, answered, too_many_requests;
    int64_t date_at;
    char date[32];

    bool closing;
    int64_t close_by;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* server.c */
struct net_server *net_server_new(uv_loop_t *loop, const struct net_options *options);
void net_server_conn_closed(struct net_server *s);
/* While the idle handle runs, the loop does not sleep: from conn_dirty() until the flush. */
void net_server_on_again(uv_idle_t *handle);
void net_server_need_sweep(struct net_server *s, enum conn_class class);
struct str net_server_date(struct net_server *s); /* of the Date header */
