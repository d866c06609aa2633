/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net (private)
 *
 * A connection: its socket, TLS, protocol and exchanges. */
#pragma once

#include "exchange.h"

#include <openssl/ssl.h>
#include <uv.h>

#define CONN_MAGIC 0x6e657463u

struct http1;
struct http2;

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

/* conn.c */
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
void conn_acknowledge(struct net_conn *c); /* written_seq advanced */

/* tls.c */
/* tls.c */
SSL_CTX *tls_context(const struct net_tls *tls, struct err *err) MUST_CHECK;
BIO_METHOD *tls_bio_method(void);
void tls_attach(struct net_conn *c);
void tls_feed(struct net_conn *c); /* takes c->input */
void tls_write(struct net_conn *c, struct str bytes);
/* Checks the certificate's expiry again. */
const struct net_peer *tls_peer_now(const struct net_conn *c);
/* False: it names a user by a certificate whose issuer the server trusts no more. */
bool tls_peer_is_trusted(const struct net_conn *c);

/* http1.c, http2.c */
/* http1.c, http2.c */
void http1_open(struct net_conn *c);
void http2_open(struct net_conn *c);
#define HTTP2_PREFACE STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
