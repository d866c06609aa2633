/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * The host cluster, as one identity sees it: requests over one kept connection, rate limited, with
 * deadlines. A host that is away costs callers an error, never a hang. */
#pragma once

#include <sublet/clock.h>
#include <sublet/json.h>
#include <sublet/net.h>

struct uv_loop_s;
struct host;
struct host_call;
struct transport;

struct host_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    const struct rng *rng;
    struct str kubeconfig;  /* path; empty: in-cluster credentials */
    int64_t qps, burst;     /* 0: no limit */
    int64_t dry_qps;        /* of dry runs, which have this rate to themselves; 0: no limit */
    unsigned max_in_flight; /* default 64; watches do not count */
    size_t max_queued;      /* of each kind; default 20,000; more fail: TOO_MANY_REQUESTS */
    int64_t timeout_ms;     /* of a request, waiting in our queue included; default 30,000 */
    int64_t backoff_ms, backoff_max_ms; /* of probes and reflectors; default 200 and 5,000 */
    unsigned max_pipes;                 /* default 256 */
    struct transport *transport; /* NULL: libcurl; the host owns it (tests bring their own) */
};

/* Reads credentials; does not talk to the host yet. Errors name the file and the field. */
int host_open(const struct host_options *options, struct host **ret, struct err *err) MUST_CHECK;
/* Fails everything under way and everything sent from now on with UNAVAILABLE, from the loop. */
void host_stop(struct host *h);
/* After host_stop(): answers everything now, from inside this call. */
void host_flush(struct host *h);
/* After host_stop(), when no reflector is open any more. */
void host_close(struct host *h, void (*closed)(void *ctx), void *ctx);

struct host_request {
    const char *method;       /* "GET" */
    struct str path;          /* with its query, encoded */
    const char *content_type; /* NULL: application/json */
    const char *accept;       /* NULL: application/json */
    struct str body;
    int64_t timeout_ms; /* 0: the host's */
    bool urgent;        /* a request of a tenant waits for it: goes before what is queued */
    bool dry_run;       /* a dry run: limited by the rate of dry runs */
    bool aside;         /* nothing waits for it: a few at once, beside all others and their rate */
    bool passes_gate;   /* changes the host, but not on behalf of the tenant: the Lease itself */
    /* Called with host_send()'s ctx before a request leaves that had to wait in the queue. True: it
     * fails with CONFLICT, without an answer, and was never sent. NULL: never. */
    bool (*is_outdated)(void *ctx);
};
struct host_answer {
    int status;
    struct str body; /* good until done() returns */
};
/* err NULL: 2xx. Otherwise what the host said, as an error of our own kinds (answer may be NULL),
 * or UNAVAILABLE, TIMEOUT, TOO_LARGE from under way. A 429 is waited out and repeated within the
 * deadline. */
typedef void (*host_done_cb)(void *ctx, const struct host_answer *answer, const struct err *err);
/* A 403 that lasts until an administrator changes something: of RBAC, or of a
 * ValidatingAdmissionPolicy. An exhausted quota and a terminating namespace are 403 as well, but
 * pass. */
bool host_err_is_permanent(const struct err *err); /* takes NULL */
/* Copies the request. done() comes exactly once, from the loop, unless the call is cancelled. */
struct host_call *host_send(struct host *h, const struct host_request *q, host_done_cb done,
                            void *ctx);
/* An answer without end, line by line. done() when it ended; the answer's body is empty then. */
typedef void (*host_line_cb)(void *ctx, struct str line);
struct host_call *host_stream(struct host *h, const struct host_request *q, host_line_cb line,
                              host_done_cb done, void *ctx);
void host_cancel(struct host_call *call); /* takes NULL; no callback after it */

/* One HTTP/1.1 exchange over a connection of its own, for what has no end, is read at its reader's
 * pace, or runs both ways: logs, exec, proxies. At most max_pipes are open. */
struct host_pipe;
struct host_pipe_request {
    const char *method;
    struct str path; /* with its query, encoded */
    const struct net_header *headers;
    size_t n_headers;
    struct str body;
    struct str upgrade; /* "websocket": a pipe in both directions; may be empty */
    bool reads;         /* a log: passes the gate */
    int64_t timeout_ms; /* until its end, pauses included; 0: it may last */
};
/* Called from the loop, never inside a call of the functions below. Each may close the pipe. */
struct host_pipe_handler {
    /* 101: bytes both ways from here on. Names in lower case. */
    void (*head)(void *ctx, int status, const struct net_header *headers, size_t n_headers);
    void (*data)(void *ctx, struct str bytes);
    void (*drained)(void *ctx); /* what was written is with the kernel; may be NULL */
    /* It is over and the pipe dead. err NULL: the whole answer came, or a pipe was closed. */
    void (*end)(void *ctx, const struct err *err);
};
/* NULL when there may be no more of them, or the host is stopped: see err. Copies the request. */
struct host_pipe *host_pipe_open(struct host *h, const struct host_pipe_request *q,
                                 const struct host_pipe_handler *handler, void *ctx,
                                 struct err *err) MUST_CHECK;
/* After a 101. Copies; returns what waits to be sent. */
size_t host_pipe_write(struct host_pipe *p, struct str bytes);
void host_pipe_pause(struct host_pipe *p, bool pause); /* data() */
void host_pipe_close(struct host_pipe *p);             /* takes NULL; no callback after it */

/* While the gate is closed no mutating request leaves: such requests and pipes, those in the queue
 * included, fail with UNAVAILABLE. While it says wait, they stay in the queue, within their
 * deadlines. Reads, watches, dry runs and logs pass. */
enum host_gate { HOST_GATE_OPEN, HOST_GATE_WAIT, HOST_GATE_CLOSED };
void host_set_gate(struct host *h, enum host_gate (*gate)(void *ctx), void *ctx);
void host_gate_changed(struct host *h); /* what waits is looked at now */

/* Could an urgent dry run leave now, without queueing? */
bool host_has_dry_turn(struct host *h);

/* A connection broke or could not be made: the next answer may come from another server, or another
 * cluster. From the loop, before the exchange's own callback; one listener. */
void host_on_broken(struct host *h, void (*broken)(void *ctx), void *ctx);

/* Up: the last request was answered, whatever the answer. While down the host is probed. */
bool host_is_up(const struct host *h);
bool host_was_reached(const struct host *h);                       /* ever */
void host_on_up(struct host *h, void (*up)(void *ctx), void *ctx); /* it came back; one listener */
