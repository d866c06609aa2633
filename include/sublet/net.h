/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net
 *
 * HTTP server: TLS 1.2/1.3 (or unencrypted for metrics and tests), HTTP/2 and HTTP/1.1 by ALPN on
 * one port, on the loop thread. It knows nothing of Kubernetes. Complete bodies in, complete or
 * streamed bodies out, both by reference where the bytes already exist. */
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
 * not verify: then `rejected` has the reason). */
struct net_peer {
    struct str cn;
    const struct str *organizations;
    size_t n_organizations;
    struct str rejected, uid; /* uid: subject OID 1.3.6.1.4.1.57683.2, as Kubernetes 1.33+ */
    struct str fingerprint;   /* SHA-256 of the certificate, in hex */
};
struct str net_header(const struct net_request *r, const char *name); /* first; STR_NULL */

/* A piece of an answer. release() is called once when the bytes are no longer needed (sent, or the
 * exchange ended); NULL for constant or arena bytes. */
struct net_slice {
    struct str bytes;
    void (*release)(void *ctx);
    void *ctx;
};

struct net_handler {
    /* A complete request arrived. Called on the loop; must lead to net_respond() or net_begin() now
     * or later, unless closed() comes first. */
    void (*request)(void *ctx, struct net_exchange *x, const struct net_request *r);
    void *ctx;
};

/* A complete answer. Header names in lower case; content-length, date are added. */
void net_respond(struct net_exchange *x, int status, const struct net_header *headers,
                 size_t n_headers, const struct net_slice *body, size_t n_body);
/* A streamed answer (watch): begin, write at any time, end. net_write() returns the bytes not yet
 * passed to the kernel: above a limit of your choice stop writing until drained(). */
void net_begin(struct net_exchange *x, int status, const struct net_header *headers,
               size_t n_headers);
/* The same for an answer that ends by itself (a long list): it counts as a request in progress
 * until its end, and net_close() lets it finish. length: total of all writes, -1: unknown. */
void net_begin_whole(struct net_exchange *x, int status, const struct net_header *headers,
                     size_t n_headers, int64_t length);
size_t net_write(struct net_exchange *x, const struct net_slice *slices, size_t n);
size_t net_backlog(const struct net_exchange *x);
void net_end(struct net_exchange *x);
/* Aborts the exchange (stream reset, or connection close on HTTP/1.1). */
void net_abort(struct net_exchange *x);
/* closed(): the exchange is over, answered or not; the pointer is invalid after it. drained(): the
 * backlog fell to zero. Either may be NULL. Set in request(). */
void net_on(struct net_exchange *x, void (*closed)(void *ctx), void (*drained)(void *ctx),
            void *ctx);
/* The client may pause for any time (a user of a pager): stalled_ms does not apply to its
 * connection. Only for answers whose writer waits for drained(). */
void net_patience(struct net_exchange *x);
/* Frees the request of a stream that began: path, query, headers, body. Pointers into it become
 * invalid; net_request is empty. */
void net_forget_request(struct net_exchange *x);
struct arena *net_arena(struct net_exchange *x);
/* Your callbacks are never called inside a call of these functions, except release(). A backlog
 * beyond 64 MiB aborts the exchange. After net_end(), net_abort() or closed() of the connection,
 * writes are dropped (and released). */

/* HTTP/1.1 Upgrade (RFC 9110 7.8), for exec, attach and port-forward: answers 101 with these
 * headers (`upgrade` among them; `connection: upgrade` is added), and the exchange is a pipe from
 * then on: received() gets the peer's bytes, and n == 0 at their end, after which net_end() is due;
 * net_write() sends; net_end() closes once all is sent. False when the request has no Upgrade
 * header or came over HTTP/2: answer it normally then. received() gets the ctx of net_on(). */
bool net_upgrade(struct net_exchange *x, const struct net_header *headers, size_t n_headers,
                 void (*received)(void *ctx, struct str bytes));
/* Backpressure toward the peer of a pipe: received() pauses (at most one more call may come) or
 * resumes. */
void net_pause(struct net_exchange *x, bool pause);

struct net_tls {            /* PEM */
    struct str certificate; /* leaf first, then chain */
    struct str key;
    struct str client_ca; /* if set, client certificates are requested, and verified against it */
};
struct net_options {
    struct str address;        /* "0.0.0.0:8443", "[::1]:0", port 0 picks one */
    const struct net_tls *tls; /* NULL: unencrypted, HTTP/1.1 and prior-knowledge HTTP/2 */
    struct net_handler handler;
    size_t max_body;          /* default 3 MiB + 64 KiB; beyond it 413 */
    size_t max_header_bytes;  /* default 64 KiB; beyond it 431 */
    unsigned max_connections; /* default 4,096; the oldest idle one makes room */
    unsigned max_streams;     /* per HTTP/2 connection, default 250 */
    unsigned max_requests; /* in progress in the server at once, default 2,000; beyond it 429 with
                            * Retry-After: 1 (streamed answers do not count) */
    int64_t header_timeout_ms; /* default 10,000; complete headers, TLS handshake included */
    int64_t body_timeout_ms;   /* default 60,000 without any byte of an announced body */
    int64_t idle_timeout_ms;   /* default 180,000 */
    int64_t stalled_ms; /* default 60,000: a peer that reads nothing of a backlog is disconnected */
};

bool net_is_loopback(struct str address); /* "127.0.0.1:0", "[::1]:80": only this machine */
/* The process must ignore SIGPIPE: peers disconnect while we write. */
int net_listen(struct uv_loop_s *loop, const struct net_options *options, struct net_server **ret,
               struct err *err) MUST_CHECK;
unsigned net_port(const struct net_server *s);
/* New connections use it; for certificate rotation. Connections from before stay, except those with
 * a certificate whose issuer is not trusted now: they are closed with their streams. */
int net_set_tls(struct net_server *s, const struct net_tls *tls, struct err *err) MUST_CHECK;
struct net_stats {
    unsigned connections, requests; /* open connections; requests in progress (without streams) */
    size_t body_bytes;              /* of requests, in memory */
    uint64_t accepted, refused;     /* connections; refused: closed at once, too many */
    /* Exchanges; too_many_requests: answered with 429 by net. */
    uint64_t answered, too_many_requests;
};
void net_stats(const struct net_server *s, struct net_stats *ret);
/* Stops accepting, sends GOAWAY / Connection: close, ends streams at once, lets other requests
 * finish for at most grace_ms, then calls closed(). */
void net_close(struct net_server *s, int64_t grace_ms, void (*closed)(void *ctx), void *ctx);
