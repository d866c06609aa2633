/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/api/proxy
 *
 * Requests that only the machines behind the cluster can serve: logs, exec, attach, port-forward
 * and the HTTP proxies of pods and services. vapi/api/proxy reads and checks them as a
 * kube-apiserver does and hands them to `connect` of struct vapi_hooks; whoever registered it
 * answers through the functions below, as slowly as it likes. Everything runs on the loop thread.
 */
#pragma once

#include <sublet/json.h>
#include <sublet/net.h>

struct proxy; /* one such request and its answer */

enum proxy_kind {
    PROXY_LOG,
    PROXY_EXEC,
    PROXY_ATTACH,
    PROXY_PORT_FORWARD,
    PROXY_POD,    /* pods/{name}/proxy */
    PROXY_SERVICE /* services/{name}/proxy */
};

/* PodLogOptions; numbers are -1 where they were not given. */
struct proxy_log {
    bool follow, previous, timestamps;
    int64_t since_seconds;
    int64_t since_us; /* since 1970; what sinceTime says */
    int64_t tail_lines, limit_bytes;
    struct str stream; /* "All", "Stdout", "Stderr"; never empty */
};

/* Valid as long as p. All texts are checked; nothing in them needs to be looked at again before
 * it is sent on. */
struct proxy_request {
    struct arena *arena;
    enum proxy_kind kind;
    struct str ns, name;  /* of the virtual pod or service */
    const cJSON *object;  /* it, as stored */
    struct str container; /* log, exec, attach: one of the pod's; never empty then */
    struct proxy_log log; /* PROXY_LOG */
    struct str scheme;    /* proxies: "", "http" or "https" */
    struct str port;      /* proxies: a number, a name, or empty */
    struct str path;      /* proxies: what follows, encoded, with its slash; or empty */
    struct str query;     /* encoded, without '?': what is to be sent on */
    const char *method;   /* "GET", ... */
    /* To be sent on: no credentials, nothing of the connection, no Host. */
    const struct net_header *headers;
    size_t n_headers;
    struct str body;
    struct str upgrade; /* "websocket", "SPDY/3.1", ...; empty: an ordinary request */
};
const struct proxy_request *proxy_request(const struct proxy *p);

/* What the answering side is told, never inside a call of the functions below, nor inside
 * connect(). Any but closed may be NULL. */
struct proxy_events {
    void (*closed)(void *ctx);  /* the client went away: p is dead, nothing comes after it */
    void (*drained)(void *ctx); /* everything written was sent: go on */
    /* After proxy_upgrade(): what the client sends; n == 0 at its end. */
    void (*received)(void *ctx, struct str bytes);
};
/* Due inside connect(), before anything else. */
void proxy_on(struct proxy *p, const struct proxy_events *events, void *ctx);

/* Each request ends once: by closed(), or by the first of proxy_refuse(), proxy_end() and
 * proxy_abort(), after which p is dead and nothing more is told. */

/* A whole answer: err as a metav1.Status. Only in place of proxy_begin() and proxy_upgrade(). */
void proxy_refuse(struct proxy *p, const struct err *err);
/* An answer in pieces: begin, write, end. headers: content-type among them (default text/plain);
 * those that belong to the connection are left out. */
void proxy_begin(struct proxy *p, int status, const struct net_header *headers, size_t n_headers);
/* 101: raw bytes in both directions from here on; received() tells. False when the client's
 * connection cannot (HTTP/2, no Upgrade asked for): refuse then. */
bool proxy_upgrade(struct proxy *p, const struct net_header *headers, size_t n_headers) MUST_CHECK;
/* Copies. Returns what was not yet handed to the kernel: above PROXY_HIGH stop writing until
 * drained(). */
#define PROXY_HIGH (256u * 1024)
size_t proxy_write(struct proxy *p, struct str bytes);
void proxy_end(struct proxy *p);   /* closes once all is sent */
void proxy_abort(struct proxy *p); /* cuts: the client sees that it is not whole */
/* After proxy_upgrade(): backpressure toward the client. At most one more received() may come. */
void proxy_pause(struct proxy *p, bool pause);

/* BAD_REQUEST in a kubelet's words: the container has not started, and why (reason: for instance
 * "ContainerCreating"). */
int proxy_waiting(const struct proxy *p, const char *reason, struct err *err) MUST_CHECK;
