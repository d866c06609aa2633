/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Priority and fairness. A request belongs to a flow (a user, or the distinguisher of its
 * FlowSchema), a flow to a priority level. A flow that needs more than its share of the loop's
 * time, or arrives while all seats are taken, waits in its own queue; queues take turns.
 *
 *   flow_enter --runs at once--> seated --answered, or streams--> flow_leave --> flow_end
 *        '------> waits --its turn--^   '--> 429: too many wait, or for too long */
#pragma once

#include <sys/queue.h>

#include <sublet/hash.h>

#include "../../core/calls.h"
#include "../../core/target.h"

#define FLOW_NAME 64 /* of schemas and levels; longer ones are truncated, and identified by uid */

struct flow_level {
    char *name;
    char uid[64];
    bool exempt;    /* waits for no seat, and is not refused */
    bool reject;    /* does not wait */
    int64_t shares; /* of the loop's time, while levels compete */
    int64_t most_waiting;
    unsigned running, waiting, refs;
    uint64_t virtual_us; /* time used, by share */
    uint64_t dispatched, rejected;
    TAILQ_HEAD(, flow) ring; /* waiting flows, in order of their turns */
    SLIST_ENTRY(flow_level) place;
};
SLIST_HEAD(flow_levels, flow_level);

enum flow_by { FLOW_BY_NOTHING, FLOW_BY_USER, FLOW_BY_NAMESPACE };
struct flow_rule;
struct flow_schema {
    char *name;
    char uid[64];
    struct flow_level *level;
    enum flow_by by;
    int64_t precedence;
    const struct flow_rule *rules;
    size_t n_rules;
};

struct flow {
    UT_hash_handle hh;
    char *key;
    size_t n_key;
    struct flow_level *level;
    TAILQ_ENTRY(flow) in_ring;
    TAILQ_HEAD(, call_entry) queue;
    unsigned waiting, running, streams, refs;
    size_t answer_bytes;  /* of its answers, not sent yet */
    size_t waiting_bytes; /* bodies of queued requests */
    uint64_t turn_ms, spent_us;
};

/* flow_rules.c: FlowSchemas and priority levels as they are in the store. */
struct flow_rules;
struct flow_rules *flow_rules_load(struct vapi *api, struct flow_levels *levels);
struct flow_rules *flow_rules_free(struct flow_rules *r);
/* The first match; never NULL. */
const struct flow_schema *flow_rules_match(const struct flow_rules *r, const struct user *u,
                                           const struct attributes *what);

/* flow_keep.c: keeps the objects every cluster has, and sets the condition on missing levels. */
struct flow_keep;
struct flow_keep *flow_keep_start(struct vapi *api); /* NULL where the kinds are not served */
bool flow_keep_changed(struct flow_keep *k);         /* since the last call */
void flow_keep_close(struct flow_keep *k);           /* takes NULL; counts in api->open_handles */
void flow_keep_seeds(void (*each)(void *ctx, const char *resource, cJSON *object), void *ctx);

/* flow.c */
void flow_open(struct vapi *api);
void flow_start(struct vapi *api); /* after the objects were created */
void flow_close(struct vapi *api); /* its handles count in api->open_handles */
void flow_free(struct vapi *api);  /* after that */
/* Calls run() now, later, or never when c was answered or disconnected. */
void flow_enter(struct call *c, const struct attributes *what, void (*run)(void *ctx), void *ctx);
void flow_leave(struct call *c);  /* it needs its seat no more */
void flow_stream(struct call *c); /* it streams from now on */
void flow_end(struct call *c);
/* Charges time spent for a flow outside of its requests' turns; the flow must be held. */
void flow_hold(struct flow *flow);
void flow_spend(struct vapi *api, struct flow *flow, uint64_t us);
void flow_answer_bytes(struct call *c, size_t n);
int flow_too_many(struct err *err) MUST_CHECK; /* 429 */
void flow_timed_out(struct call *c);           /* it waited too long */
void flow_metrics(struct vapi *api, struct buf *out);

/* deadline.c */
/* Ends c with 504 at its deadline, unless it is answered before. -1: ?timeout= is no duration. */
int deadline_set(struct call *c, const struct query *q, struct err *err) MUST_CHECK;
/* c was not answered in its first turn: its deadline needs the timer. */
void deadline_watch(struct call *c);
/* While it is queued: a part of its time; then all of it. */
void deadline_shorten(struct call *c, int64_t part);
void deadline_restore(struct call *c);

/* budget.c: the memory of the process */
void budget_open(struct vapi *api); /* by the configuration, else by the container's limit */
void budget_free(struct vapi *api);
/* Reserves what the request may need, until budget_leave(); false: 429. */
bool budget_enter(struct call *c, const struct attributes *what);
/* The same for memory known only when answering; adds to the reservation, until budget_leave(). */
bool budget_more(struct call *c, size_t bytes);
void budget_leave(struct call *c);
/* True when memory is short: nothing optional should be kept. */
bool budget_tight(struct vapi *api);
void budget_metrics(struct vapi *api, struct buf *out);
