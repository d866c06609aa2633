/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net (private)
 *
 * A request and its answer, of whichever protocol. */
#pragma once

#include "bounds.h"

#include <sys/queue.h>

#include <sublet/buf.h>
#include <sublet/net.h>

#define EXCHANGE_MAGIC 0x6e657478u
#define NET_POISON     0xdeadbeefu

struct net_conn;

/* The slices of an answer that are not framed yet, oldest first. */
struct slices {
    struct net_slice *items;
    size_t head, n, cap;
    size_t offset; /* into items[head] */
    size_t bytes;  /* all remaining bytes */
};

/* HEAD -> BODY -> RUNNING -> ANSWERED (whole answer known) -> freed
 *      \______/      \-----> STREAMING -> ENDED ------------> freed */
enum exchange_state { X_HEAD, X_BODY, X_RUNNING, X_STREAMING, X_ANSWERED };

struct net_exchange {
    unsigned magic;
    enum exchange_state state;
    struct net_conn *conn;
    TAILQ_ENTRY(net_exchange) in_conn, in_flight;
    struct arena *arena;

    struct net_request request;
    struct net_header *headers;
    size_t n_headers, cap_headers, header_bytes;
    size_t held;  /* of headers, counted in server->heads */
    bool crowded; /* there was no room for more headers */
    struct buf body;
    int64_t content_length; /* -1 when not announced */
    int64_t since, last_byte;

    int status;
    struct slices slices;
    size_t unwritten; /* framed, but maybe not yet with the kernel */
    uint64_t mark;    /* the flush that framed the last bytes */
    int64_t progress_at;
    bool flying;     /* in conn->in_flight */
    bool backlogged; /* counted in conn->backlogged */
    bool counted;    /* in server->running */
    bool dispatched; /* delivered to the handler */
    bool streamed;   /* begun by net_begin() or net_begin_whole() */
    bool whole;      /* by net_begin_whole(): it ends by itself */
    bool ended;      /* no more slices will come */
    bool upgradable; /* the request has an Upgrade header (HTTP/1.1) */
    bool upgraded;   /* a pipe now: raw bytes in both directions */
    bool paused;     /* the pipe toward us */
    bool patient;    /* may pause without a timeout */
    bool refused;    /* answered by net itself, before the request was read whole */
    bool discarding; /* answered, but the request body still arrives (HTTP/2) */
    size_t discarded;
    bool remote_ended; /* the request is read whole */
    bool aborted;
    bool bodyless; /* HEAD, 204, 304: the answer has no body */

    int32_t stream; /* HTTP/2 */
    void (*closed)(void *ctx);
    void (*drained)(void *ctx);
    void *ctx;
    void (*received)(void *ctx, struct str bytes);
};
TAILQ_HEAD(exchange_list, net_exchange);

/* exchange.c */
/* exchange.c */
struct net_exchange *exchange_new(struct net_conn *c);
void exchange_close(struct net_exchange *x); /* calls closed(), frees */
struct str exchange_lower(struct net_exchange *x, struct str name);
bool exchange_add_header(struct net_exchange *x, struct str name, struct str value);
void exchange_set_method(struct net_exchange *x, struct str method);
bool exchange_hold_head(struct net_exchange *x, size_t n); /* false: it will be refused */
bool exchange_is_connect(const struct net_exchange *x);
void exchange_set_target(struct net_exchange *x, struct str target);
/* After the headers. False when it was refused. */
bool exchange_expect_body(struct net_exchange *x, int64_t content_length);
bool exchange_add_body(struct net_exchange *x, struct str bytes);
void exchange_dispatch(struct net_exchange *x);
/* Slices of n bytes were framed: sends and releases them. */
void exchange_frame(struct net_exchange *x, size_t n);
void exchange_update(struct net_exchange *x); /* keeps conn->backlogged right */
bool exchange_answered(const struct net_exchange *x);
/* Headers that net writes itself: a handler's are left out. */
bool exchange_owns_header(struct str name);
/* A value that is valid in a header: no line breaks, no NUL, no blanks at the ends. */
struct str exchange_clean(struct net_exchange *x, struct str value);

/* slices.c */
/* slices.c */
void net_slices_push(struct slices *q, const struct net_slice *slice);
struct str net_slices_peek(const struct slices *q);
void net_slices_pop(struct slices *q, size_t n);
void net_slices_clear(struct slices *q);

/* status.c: answers net makes by itself, as metav1.Status. */
enum refusal {
    REFUSE_MALFORMED,
    REFUSE_BODY_TOO_LARGE,
    REFUSE_HEADERS_TOO_LARGE,
    REFUSE_CODING,
    REFUSE_EXPECTATION,
    REFUSE_BUSY,
};
void exchange_refuse(struct net_exchange *x, enum refusal why);
struct str net_status_phrase(int status); /* the reason phrase of RFC 9110 */
