/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * One HTTP exchange with a Service of the tenant's, piece by piece: a request to an extension API
 * server. The API decides what is sent and as whom; the registrar of the hook `forward` where it
 * goes: to the address that the host gave that very Service, and nowhere else, over TLS, without
 * credentials of this process.
 *
 *   open() -> head() -> data()* -> end()      any time before end(): close(), and no event follows
 *        '-----------------------> end(err) */
#pragma once

#include <sublet/err.h>
#include <sublet/net.h>

struct forward;

struct forward_request {
    struct str ns, service;
    int64_t port;
    const char *method;
    struct str path;                  /* encoded, with its query */
    const struct net_header *headers; /* all that are sent, but Host and Content-Length */
    size_t n_headers;
    struct str body;
    struct str ca;               /* PEM, alone trusted; empty: what the system trusts */
    bool insecure;               /* the server's certificate is not verified */
    struct str certificate, key; /* PEM, of the client */
    int64_t timeout_ms;          /* to the end of the answer; 0: none */
};

/* On the loop, never inside a call of the functions below. */
struct forward_events {
    /* Names of headers in lower case; valid until it returns. */
    void (*head)(void *ctx, int status, const struct net_header *headers, size_t n);
    void (*data)(void *ctx, struct str bytes);
    /* Once, last. err NULL: the answer is complete. Otherwise its message is Go's, and head() may
     * have been called. */
    void (*end)(void *ctx, const struct err *err);
};

struct forward_ops {
    /* Copies q. NULL: it cannot be sent, as err says. */
    struct forward *(*open)(void *ctx, const struct forward_request *q,
                            const struct forward_events *events, void *events_ctx, struct err *err);
    /* Nothing is read from the server until it resumes; at most one more data() comes. */
    void (*pause)(struct forward *f, bool pause);
    void (*close)(struct forward *f);
};
