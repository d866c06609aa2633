/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/api/proxy
 *
 * Requests that only nodes can serve: logs, exec, attach, port-forward and the HTTP proxies of
 * pods, services and nodes. vapi/api/proxy parses and checks them as kube-apiserver does and passes
 * them to `connect` of struct vapi_hooks; its registrar answers through the functions below, at any
 * pace. Everything runs on the loop thread. */
#pragma once

#include <sublet/json.h>
#include <sublet/net.h>

struct proxy; /* one such request and its answer */

enum proxy_kind {
    PROXY_LOG,
    PROXY_EXEC,
    PROXY_ATTACH,
    PROXY_PORT_FORWARD,
    PROXY_POD,     /* pods/{name}/proxy */
    PROXY_SERVICE, /* services/{name}/proxy */
    PROXY_NODE     /* nodes/{name}/proxy: its kubelet, read; hooks.kubelets */
};

/* PodLogOptions; numbers are -1 when not given. */
struct proxy_log {
    bool follow, previous, timestamps;
    int64_t since_seconds;
    int64_t since_us; /* unix time, from sinceTime */
    int64_t tail_lines, limit_bytes;
    struct str stream; /* "All", "Stdout", "Stderr"; never empty */
};

/* Valid as long as p. All strings are checked; they may be forwarded unchanged. */
struct proxy_request {
    struct arena *arena;
    enum proxy_kind kind;
    struct str ns, name;  /* of the virtual pod, service or node */
    const cJSON *object;  /* the pod, service or node, as stored */
    struct str container; /* log, exec, attach: one of the pod's; never empty for these */
    struct proxy_log log; /* PROXY_LOG */
    struct str scheme;    /* proxies: "", "http" or "https" */
    struct str port;      /* proxies: a number, a name, or empty */
    struct str path;    /* proxies: the path after the target, encoded, with its slash; or empty */
    struct str query;   /* encoded, without '?': to be forwarded */
    const char *method; /* "GET", ... */
    /* To be forwarded: no credentials, no hop-by-hop headers, no Host. */
    const struct net_header *headers;
    size_t n_headers;
    struct str body;
    struct str upgrade; /* "websocket", "SPDY/3.1", ...; empty: an ordinary request */
};
const struct proxy_request *proxy_request(const struct proxy *p);

/* Events for the answering side, never inside a call of the functions below, nor inside connect().
 * Any but closed may be NULL. */
struct proxy_events {
    void (*closed)(void *ctx);  /* the client disconnected: p is invalid, no event follows */
    void (*drained)(void *ctx); /* everything written was sent: continue */
    /* After proxy_upgrade(): bytes from the client; n == 0 at their end. */
    void (*received)(void *ctx, struct str bytes);
};
/* Must be called inside connect(), before any other function. */
void proxy_on(struct proxy *p, const struct proxy_events *events, void *ctx);

/* Each request ends once: by closed(), or by the first of proxy_refuse(), proxy_end() and
 * proxy_abort(), after which p is invalid and no event follows. */

/* A complete answer: err as a metav1.Status. Only in place of proxy_begin() and proxy_upgrade(). */
void proxy_refuse(struct proxy *p, const struct err *err);
/* An answer in pieces: begin, write, end. headers: content-type among them (default text/plain);
 * hop-by-hop ones are left out. */
void proxy_begin(struct proxy *p, int status, const struct net_header *headers, size_t n_headers);
/* 101: raw bytes in both directions from here on, with received(). False when the client's
 * connection cannot (HTTP/2, no Upgrade header): refuse then. */
bool proxy_upgrade(struct proxy *p, const struct net_header *headers, size_t n_headers) MUST_CHECK;
/* Copies. Returns the bytes not yet passed to the kernel: above PROXY_HIGH stop writing until
 * drained(). */
#define PROXY_HIGH (256u * 1024)
size_t proxy_write(struct proxy *p, struct str bytes);
void proxy_end(struct proxy *p);   /* closes once all is sent */
void proxy_abort(struct proxy *p); /* aborts: the client sees that it is incomplete */
/* After proxy_upgrade(): backpressure toward the client. At most one more received() call may
 * come. */
void proxy_pause(struct proxy *p, bool pause);

/* BAD_REQUEST with a kubelet's message: the container has not started, and why (reason: for
 * instance "ContainerCreating"). */
int proxy_waiting(const struct proxy *p, const char *reason, struct err *err) MUST_CHECK;
