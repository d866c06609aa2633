/* SPDX-License-Identifier: Apache-2.0 */
/* The way between a tenant's process and the host, and the host's API server at its end: requests
 * that get lost, come late, twice or in part, and the verbs they request. A request is on its way
 * by itself: it may arrive after whoever sent it gave up or died. */
#pragma once

#include <stdio.h>

#include "host.h"

struct wires;
struct transport;

/* Of a thousand requests, how many ... */
struct wire_faults {
    unsigned refuse;    /* never arrive */
    unsigned lose;      /* are executed, and the answer is lost */
    unsigned late;      /* are executed up to a minute later, when no client waits any more */
    unsigned duplicate; /* are executed twice */
    unsigned truncate;  /* are executed, and half of the answer comes */
    unsigned hang;      /* get no answer, and are not executed */
    unsigned busy;      /* get 429 */
    unsigned fail;      /* get 500, executed or not */
    unsigned expire;    /* watches and continued lists find their revision gone */
    unsigned cut;       /* per event: the watch breaks, the event undelivered */
    unsigned max_delay_ms;
    unsigned page; /* objects of a page of a list; 0: all */
    bool down;     /* nothing arrives at all */
};
enum wire_count {
    COUNT_REFUSED,
    COUNT_LOST,
    COUNT_LATE,
    COUNT_DUPLICATED,
    COUNT_TRUNCATED,
    COUNT_HUNG,
    COUNT_BUSY,
    COUNT_FAILED,
    COUNT_EXPIRED,
    COUNT_CUT,
    COUNT_PAGES,
    COUNT_DOWN,
    COUNT_REQUESTS,
    N_WIRE_COUNTS
};

/* What a change by a tenant's process may be, judged before it is done. before NULL: a create;
 * after NULL: a removal. */
typedef void (*wire_judge)(void *ctx, const char *plural, const cJSON *before, const cJSON *after);
/* These bytes of an object reach a process. */
typedef void (*wire_told)(void *ctx, const char *plural, const cJSON *object);
typedef void (*wire_trace)(void *ctx, const char *what, const char *a, const char *b, int64_t n);

struct wires_options {
    struct moment *moment;
    struct host_model *host;
    wire_judge judge;
    wire_told told;
    wire_trace trace;
    void *ctx;
};
struct wires *wires_new(const struct wires_options *o);
struct wire_faults *wires_faults(struct wires *w);
const unsigned *wires_counts(const struct wires *w);
/* When the request that is being judged was sent: its sender may have learned since. */
int64_t wires_sent_us(const struct wires *w);
/* The store or the host was put back: what is on its way was sent before. */
void wires_next_age(struct wires *w);
bool wires_is_of_earlier_age(const struct wires *w);
/* The host changed: watchers get what concerns them. */
void wires_changed(struct wires *w);
/* All connections break, as when the API server restarts. */
void wires_cut_all(struct wires *w);
/* For one client. */
struct transport *wires_line(struct wires *w, unsigned sender);
/* Whose request is executed, or who receives the event. */
unsigned wires_sender(const struct wires *w);
/* Its process died: it gets nothing any more; what it sent is on its way. */
void wires_abandon(struct wires *w, struct transport *line);
