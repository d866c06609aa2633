/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net
 *
 * HTTP server: TLS 1.2/1.3 (or clear text for metrics and tests), HTTP/2 and HTTP/1.1 by ALPN on
 * one port, on the loop thread. It knows no Kubernetes. Whole bodies in, whole or streamed bodies
 * out, both by reference where the bytes already exist. */
#pragma once

#include <sublet/err.h>

struct uv_loop_s;
struct net_server;
struct net_exchange; /* one request and its answer */

enum net_method {
    NET_GET,
    NET_HEAD,
    NET_POST,
    NET_PUT,
    NET_PATCH,
    NET_DELETE,
    NET_OPTIONS,
    NET_OTHER
};

struct net_header {
    struct str name, value; /* names in lower case */
};

struct net_request {
    struct arena *arena; /* the request's; freed after the exchange closed */
    enum net_method method;
    struct str method_text, path, query; /* as sent: path not decoded, query without '?' */
    const struct net_header *headers;
    size_t n_headers;
    struct str body;
    struct str authority;       /* Host or :authority */
    struct str peer;            /* "127.0.0.1:1234" */
    const struct net_peer *tls; /* NULL without TLS */
    unsigned http_major;
};
/* The verified client certificate: subject CN and O's. cn.p == NULL when none was sent (or it did
 * not verify: then `rejected` says why). */
struct net_peer {
    struct str cn;
    const struct str *organizations;
    size_t n_organizations;
    struct str rejected, uid; /* uid: subject OID 1.3.6.1.4.1.57683.2, as Kubernetes 1.33+ */
    struct str fingerprint;   /* SHA-256 of the certificate, in hex */
};
struct str net_header(const struct net_request *r, const char *name); /* first; STR_NULL */

/* A piece of an answer. release() is called once when the bytes are no longer needed (sent, or the
 * exchange died); NULL for constant or arena bytes. */
struct net_slice {
    struct str bytes;
    void (*release)(void *ctx);
    void *ctx;
};

struct net_handler {
    /* A whole request arrived. Called on the loop; must lead to net_respond() or net_begin() now or
     * later, unless closed() comes first. */
    void (*request)(void *ctx, struct net_exchange *x, const struct net_request *r);
    void *ctx;
};

/* A complete answer. Header names in lower case; content-length, date are added. */
void net_respond(struct net_exchange *x, int status, const struct net_header *headers,
                 size_t n_headers, const struct net_slice *body, size_t n_body);
/* A streamed answer (watch): begin, write whenever there is something, end. net_write() returns the
 * bytes not yet handed to the kernel: above the limit of your choice stop writing until drained().
 */
void net_begin(struct net_exchange *x, int status, const struct net_header *headers,
               size_t n_headers);
/* The same for an answer that ends by itself (a long list): it counts as a request under way until
 * its end, and net_close() lets it finish. length: of all that will be written, -1: not known. */
void net_begin_whole(struct net_exchange *x, int status, const struct net_header *headers,
                     size_t n_headers, int64_t length);
size_t net_write(struct net_exchange *x, const struct net_slice *slices, size_t n);
size_t net_backlog(const struct net_exchange *x);
void net_end(struct net_exchange *x);
/* Cuts the exchange (stream reset, or connection close on HTTP/1.1). */
void net_abort(struct net_exchange *x);
/* closed(): the exchange is over, answered or not; the pointer is dead after it. drained(): the
 * backlog fell to zero. Either may be NULL. Set in request(). */
void net_on(struct net_exchange *x, void (*closed)(void *ctx), void (*drained)(void *ctx),
            void *ctx);
/* The reader of this answer may pause for as long as it likes (a person behind a pager): stalled_ms
 * is not for its connection. Only for answers whose writer waits for drained(). */
void net_patience(struct net_exchange *x);
/* Frees what the request of a stream that began consists of: path, query, headers, body. All that
 * points to it is dead then; net_request is empty. */
void net_forget_request(struct net_exchange *x);
struct arena *net_arena(struct net_exchange *x);
/* No callback of yours is ever called inside a call of these, but release() may be. A backlog
 * beyond 64 MiB cuts the exchange. After net_end(), net_abort() or closed() of the connection,
 * writes are dropped (and released). */

/* HTTP/1.1 Upgrade (RFC 9110 7.8), for exec, attach and port-forward: answers 101 with these
 * headers
 * (`upgrade` among them; `connection: upgrade` is added), and the exchange is a pipe from then on:
 * received() gets what the peer sends, and n == 0 at its end, after which net_end() is due;
 * net_write() sends; net_end() closes once all is sent. False when the request asked for no upgrade
 * or came over HTTP/2: answer it otherwise then. received() gets the ctx of net_on(). */
bool net_upgrade(struct net_exchange *x, const struct net_header *headers, size_t n_headers,
                 void (*received)(void *ctx, struct str bytes));
/* Backpressure toward the peer of a pipe: received() pauses (at most one more may come) or goes on.
 */
void net_pause(struct net_exchange *x, bool pause);

struct net_tls {            /* PEM texts */
    struct str certificate; /* leaf first, then chain */
    struct str key;
    struct str client_ca; /* client certificates are asked for, and verified against it */
};
struct net_options {
    struct str address;        /* "0.0.0.0:8443", "[::1]:0", port 0 picks one */
    const struct net_tls *tls; /* NULL: clear text, HTTP/1.1 and prior-knowledge HTTP/2 */
    struct net_handler handler;
    size_t max_body;           /* default 3 MiB + 64 KiB; more is 413 */
    size_t max_header_bytes;   /* default 64 KiB; more is 431 */
    unsigned max_connections;  /* default 4,096; the oldest idle one makes room */
    unsigned max_streams;      /* per HTTP/2 connection, default 250 */
    unsigned max_requests;     /* under way in the server at once, default 2,000; more get 429 with
                                  Retry-After: 1     (streamed answers do not count) */
    int64_t header_timeout_ms; /* default 10,000; whole headers, TLS handshake included */
    int64_t body_timeout_ms;   /* default 60,000 without any byte of an announced body */
    int64_t idle_timeout_ms;   /* default 180,000 */
    int64_t stalled_ms;        /* default 60,000: a peer that reads nothing of a backlog is cut */
};

/* The process must ignore SIGPIPE: peers go away while we write. */
int net_listen(struct uv_loop_s *loop, const struct net_options *options, struct net_server **ret,
               struct err *err) MUST_CHECK;
unsigned net_port(const struct net_server *s);
/* New connections use it; for certificate rotation. */
int net_set_tls(struct net_server *s, const struct net_tls *tls, struct err *err) MUST_CHECK;
struct net_stats {
    unsigned connections, requests; /* open; under way (streams left out) */
    size_t body_bytes;              /* of requests, in memory */
    uint64_t accepted, refused;     /* connections; those that were closed at once: too many */
    uint64_t answered, too_many_requests; /* exchanges; those of them that net answered with 429 */
};
void net_stats(const struct net_server *s, struct net_stats *ret);
/* Stops accepting, GOAWAY / Connection: close, ends streams of answers at once, lets the rest
 * finish for at most grace_ms, then closed(). */
void net_close(struct net_server *s, int64_t grace_ms, void (*closed)(void *ctx), void *ctx);
