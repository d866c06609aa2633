/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * How bytes get to the host and back. The client above it queues, limits, retries and interprets; a
 * transport only carries. Tests have their own, which loses, delays and refuses on purpose. */
#pragma once

#include <sys/types.h>

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/err.h>
#include <sublet/host_trouble.h>

struct uv_loop_s;
struct transport;

struct wire_request {
    const char *method;
    struct str path, body;
    const char *content_type, *accept;
    int64_t timeout_ms; /* 0: none (a stream) */
};

/* Why there was no answer. */
struct wire_failure {
    enum host_trouble trouble;
    const char *text;  /* a literal, without host names or addresses */
    struct str detail; /* valid until end() returns */
};

/* Never called from within start(), nor after end() or cancel(). */
struct wire_handler {
    void (*data)(void *ctx, struct str bytes);
    /* status 0: no answer, failure says why; failure is NULL otherwise. retry_after_s: 0: none. */
    void (*end)(void *ctx, int status, int64_t retry_after_s, const struct wire_failure *failure);
    void *ctx;
    void (*head)(void *ctx); /* of a wire whose owner reads the head itself; else NULL */
};

/* A connection of its own, as bytes. Never called from within a call of raw_ops. */
struct raw_handler {
    void (*opened)(void *ctx, const char *failure); /* failure NULL: it is open */
    void (*ready)(void *ctx);                       /* for reading or writing, as want() set */
    void *ctx;
};
enum { RAW_AGAIN = -1, RAW_BROKEN = -2 };
struct raw_ops {
    void *(*open)(struct transport *t, const struct raw_handler *h);
    /* Appends the request line, Host and credentials. */
    void (*head)(struct transport *t, struct buf *b, const char *method, struct str path);
    /* Number of bytes, RAW_AGAIN or RAW_BROKEN. recv(): 0 is the end. */
    ssize_t (*send)(void *raw, struct str bytes);
    ssize_t (*recv)(void *raw, char *p, size_t n);
    void (*want)(void *raw, bool read, bool write);
    void (*close)(void *raw);
};

struct transport_ops {
    /* The request need not outlive the call. The result is for cancel(). */
    void *(*start)(struct transport *t, const struct wire_request *q, const struct wire_handler *h);
    void (*cancel)(struct transport *t, void *wire);
    /* Only when no request is pending. */
    void (*close)(struct transport *t, void (*closed)(void *ctx), void *ctx);
    const struct raw_ops *raw; /* NULL: it has none */
};
struct transport {
    const struct transport_ops *ops;
};

struct kubeconfig;
/* libcurl's multi interface on the loop: HTTP/2 over one connection where the host offers it. The
 * kubeconfig must outlive it. */
struct transport *host_curl_transport_new(struct uv_loop_s *loop, const struct clock *clock,
                                          struct kubeconfig *k);
