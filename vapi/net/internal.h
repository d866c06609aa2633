/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net (private)
 *
 * Shared by the files of net. A server owns connections, a connection owns exchanges. All of it
 * lives on one loop thread.
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

#include <sys/queue.h>

#include <openssl/ssl.h>
#include <uv.h>

#include <sublet/buf.h>
#include <sublet/net.h>

#define SERVER_MAGIC   0x6e657473u
#define CONN_MAGIC     0x6e657463u
#define EXCHANGE_MAGIC 0x6e657478u
#define NET_POISON     0xdeadbeefu

#define NET_RECORD      16384u              /* plain bytes of one TLS record */
#define NET_READ        65536u              /* one read from the kernel */
#define NET_OUT_HIGH    65536u              /* a connection makes no more frames above this */
#define NET_BACKLOG_MAX (64u << 20)         /* a longer backlog aborts the exchange */
#define NET_BODIES_MAX  (64u << 20)         /* request bodies of the whole server; beyond it 429 */
#define NET_HEADS_MAX   (64u << 20)         /* headers of unanswered requests, likewise; */
#define NET_HEAD_LIGHT  (8u << 10)          /* half of it is reserved for requests below this */
#define NET_ARENA_LIMIT ((size_t)128 << 20) /* of one request */
#define NET_HELD_MAX    (4 * NET_READ)      /* bytes read but not yet parsed */
#define NET_HEADER_COST 32u  /* per header, beside its name and value, as RFC 9113 6.5.2 counts */
#define NET_MIN_RATE    500  /* bytes per second an announced body must average */
#define NET_LINGER_MS   2000 /* for a closing connection's peer to read the last bytes */

struct net_conn;
struct http1;
struct http2;

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

/* The protocol of a connection. All are called outside of calls by the user. */
struct proto {
    /* Receives plain bytes. Must consume all of them. */
    void (*receive)(struct net_conn *c, struct str bytes);
    /* Frames what is ready through conn_send() while conn_has_room(). */
    void (*pump)(struct net_conn *c);
    /* After a flush: ends finished exchanges, continues with waiting ones. */
    void (*settle)(struct net_conn *c);
    void (*end_of_input)(struct net_conn *c);
    /* Announces to the peer that the connection ends; exchanges in progress are still answered. */
    void (*goodbye)(struct net_conn *c);
    /* These two are called inside calls by the user. The answer's status and headers are known; a
     * length of -1 is a stream. */
    void (*answer)(struct net_exchange *x, const struct net_header *headers, size_t n,
                   int64_t length);
    /* An exchange has something new to send, ended or was aborted. */
    void (*changed)(struct net_exchange *x);
    void (*fini)(struct net_conn *c);
};
extern const struct proto HTTP1, HTTP2;

/* HANDSHAKE -> OPEN -> LINGER (all written, waits for the peer's end) -> CLOSING
 *     \----------\------------------------------------------------------/ */
enum conn_state { CONN_HANDSHAKE, CONN_OPEN, CONN_LINGER, CONN_CLOSING };
/* QUIET connections need no timer: the handler has the request, or a stream has nothing to send. */
enum conn_class { CLASS_QUIET, CLASS_BUSY, CLASS_IDLE };

struct net_conn {
    unsigned magic;
    enum conn_state state;
    enum conn_class class;
    struct net_server *server;
    TAILQ_ENTRY(net_conn) in_server, in_class, in_dirty;
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;

    const struct proto *proto; /* NULL until known */
    struct http1 *http1;
    struct http2 *http2;

    SSL *ssl;
    struct str input; /* ciphertext of this read that OpenSSL has not consumed yet */
    struct arena *peer_arena;
    const struct net_peer *tls_peer; /* NULL without TLS */
    int64_t peer_expires;            /* wall clock seconds; 0: no certificate */
    char peer[64];

    struct buf first; /* until the protocol is known */
    struct buf held;  /* read, but reading is on hold */
    struct buf out;   /* made, but not passed to the kernel */
    char *writing;    /* with uv_write() */
    uint64_t seq, writing_seq, written_seq;

    struct exchange_list exchanges, in_flight;
    unsigned n_exchanges, receiving, backlogged;

    int64_t since; /* accepted, or a header began; 0 when no header is awaited */
    int64_t idle_since;
    int64_t progress_at; /* when the kernel last accepted output */
    size_t progress_left;

    bool dirty, reading, hold;
    bool finishing; /* closes once all output is written */
    bool patient;   /* one of its exchanges is, or was, patient */
    bool broken;    /* TLS can write nothing more */
    bool detached;  /* has no socket: tests and fuzzing; its output is dropped */
    bool goodbye_sent;
    bool peer_gone; /* the peer's half is closed */
};
TAILQ_HEAD(conn_list, net_conn);

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
/* While the idle handle runs, the loop does not sleep: set by conn_dirty(), unset after the flush.
 */
void net_server_on_again(uv_idle_t *handle);
void net_server_need_sweep(struct net_server *s, enum conn_class class);
struct str net_server_date(struct net_server *s); /* of the Date header */

/* conn.c */
struct net_conn *conn_new(struct net_server *s);
struct net_conn *conn_free(struct net_conn *c); /* its socket is closed */
void conn_start(struct net_conn *c);
/* Bytes from the kernel. */
void conn_feed(struct net_conn *c, struct str bytes);
void conn_end_of_input(struct net_conn *c);
void conn_dirty(struct net_conn *c);
void conn_flush(struct net_conn *c);
void conn_be_patient(struct net_conn *c);
void conn_sweep(struct net_conn *c, int64_t now);
/* Closes now; nothing more is sent. */
void conn_close(struct net_conn *c);
/* Closes once everything is written. */
void conn_finish(struct net_conn *c);
void conn_goodbye(struct net_conn *c);
/* For pump(): sends plain bytes to the peer. */
void conn_send(struct net_conn *c, struct str bytes);
bool conn_has_room(const struct net_conn *c);
/* Stops and restarts parsing. */
void conn_hold(struct net_conn *c, bool hold);
/* Passes plain bytes to the protocol, after detecting which one it is. */
void conn_receive_plain(struct net_conn *c, struct str bytes);
int64_t conn_now(const struct net_conn *c);

/* tls.c */
SSL_CTX *tls_context(const struct net_tls *tls, struct err *err) MUST_CHECK;
BIO_METHOD *tls_bio_method(void);
void tls_attach(struct net_conn *c);
void tls_feed(struct net_conn *c); /* takes c->input */
void tls_write(struct net_conn *c, struct str bytes);
/* Checks the certificate's expiry again. */
const struct net_peer *tls_peer_now(const struct net_conn *c);

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
void conn_acknowledge(struct net_conn *c);    /* written_seq advanced */
bool exchange_answered(const struct net_exchange *x);
/* Headers that net writes itself: a handler's are left out. */
bool exchange_owns_header(struct str name);
/* A value that is valid in a header: no line breaks, no NUL, no blanks at the ends. */
struct str exchange_clean(struct net_exchange *x, struct str value);

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

/* http1.c, http2.c */
void http1_open(struct net_conn *c);
void http2_open(struct net_conn *c);
#define HTTP2_PREFACE STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
