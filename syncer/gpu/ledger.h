/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The tenant's GPUs, exactly: which pods are charged, which wait. It knows pods by uid and key, and
 * for hours by namespace. */
#pragma once

#include <sublet/clock.h>
#include <sublet/metrics.h>
#include <sublet/pool.h>
#include <sublet/store.h>

#include "gpu/namespace_hours.h"
#include "gpu/refused.h"

struct ledger;

struct ledger_options {
    struct store *store;
    const struct config *config;
    const struct clock *clock;
    void (*wake)(void *ctx, struct str key); /* the pod of this key may start now */
    /* What was refused to this owner fits now. False: it needs nothing any more. */
    bool (*retry)(void *ctx, const struct refused_owner *owner);
    void (*released)(void *ctx); /* something that was charged to a pool whose binding has ended */
    refused_lacks lacks;         /* pods or claims it still needs */
    void (*later)(void *ctx);    /* sync_ledger_wave() is to be called a moment later */
    void (*changed)(void *ctx);  /* sync_ledger_wants() may have, of any pool */
    /* What has no controller that would try again was refused; with it the sum would be this. */
    void (*turned_away)(void *ctx, const struct config_binding *binding, struct rational sum);
    void *ctx;
};
struct ledger *sync_ledger_new(const struct ledger_options *options);
struct ledger *sync_ledger_free(struct ledger *l); /* takes NULL */
/* The name of the pool that a pod is charged to, bound or not; STR_NULL: none. It lives as long as
 * the ledger. */
struct str sync_ledger_charged(struct ledger *l, struct str uid);
/* What it is charged in this pool; false: nothing. */
bool sync_ledger_charge_of(struct ledger *l, struct str pool, struct str uid, struct rational *ret);
/* Checks rate and limit, and (unless dry_run) charges a pod or claim. FORBIDDEN when over and the
 * binding rejects, or when it exceeds the limit by itself; 0 with *ret_queued when it has to wait.
 * The controller of what was refused for want of room is reported by retry() when there is room. */
int sync_ledger_charge(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       const cJSON *object, bool dry_run, bool *ret_queued,
                       struct err *err) MUST_CHECK;
/* Would what has this choice be charged now, neither refused for want of room nor put in line? */
bool sync_ledger_has_room(struct ledger *l, const struct pool_choice *choice);
/* Removes the pod's charge or its place in the queue, and wakes the pods that wait. */
void sync_ledger_release(struct ledger *l, struct str uid);
/* Limits were changed: those that wait or were refused, and fit now, are woken. */
void sync_ledger_limits_changed(struct ledger *l);
/* A pod or claim was refused that no pool serves now: its controller is reported by retry() when
 * sync_ledger_pools_changed() is called, or a moment later where they are many. Where pools cannot
 * change nothing is kept. */
void sync_ledger_unserved(struct ledger *l, const struct refused_owner *owner);
void sync_ledger_pools_changed(struct ledger *l); /* pools or bindings, beyond limits */
void sync_ledger_wave(struct ledger *l);
struct rational sync_ledger_used(struct ledger *l, const struct config_pool *pool);
/* GPU hours that were charged in this month of UTC, in thousandths (hours.h). */
struct rational sync_ledger_hours(struct ledger *l, struct str pool);
/* The same by namespace, of which at most so many are listed (namespace_hours.h). */
struct hours_list sync_ledger_hours_list(struct ledger *l, struct arena *a, struct str pool,
                                         size_t most);
/* Do the sums that are kept agree with the rows? For tests: reads them all. */
bool sync_ledger_adds_up(struct ledger *l);
/* What the tenant holds of the pool or waits for: what is charged, what stands in line, and what
 * refused owners lack; at most the binding's `most`, but for what is charged. */
struct rational sync_ledger_wants(struct ledger *l, const struct config_binding *binding);
/* What is charged in the pool. */
void sync_ledger_each_charge(struct ledger *l, struct str pool,
                             void (*each)(void *ctx, struct str uid, struct rational quantity),
                             void *ctx);
/* A pod that waits for the pool; in order. Its strings are the ledger's. */
struct ledger_waiting {
    struct str key, created;
    struct rational gpu_eq, ahead; /* ahead: of those that wait before it */
    size_t position;               /* from 1 */
};
void sync_ledger_each_waiting(struct ledger *l, struct str pool,
                              void (*each)(void *ctx, const struct ledger_waiting *w), void *ctx);
/* How long pods took, by pool and since the process started; false: the pool was never charged. */
enum ledger_time {
    LEDGER_WAIT,     /* those that had to wait for GPUs: from their creation to the charge */
    LEDGER_SCHEDULE, /* charged ones: from their creation until the host had a node for them */
    LEDGER_TIMES
};
enum { LEDGER_TIME_BOUNDS = 9 };
extern const double SYNC_LEDGER_TIME_BOUND[LEDGER_TIME_BOUNDS]; /* seconds */
bool sync_ledger_times(const struct ledger *l, struct str pool, enum ledger_time which,
                       struct metrics_histogram *ret);
/* The host has a node for this pod, which was created at that time. */
void sync_ledger_scheduled(struct ledger *l, struct str uid, struct str created);
/* Is anything charged to the pool, if only 0? */
bool sync_ledger_has(struct ledger *l, struct str pool);
/* Is it charged, in a pool whose sum exceeds the limit? */
bool sync_ledger_is_over(struct ledger *l, const struct pool_choice *choice, struct str uid);
struct ledger_pod {
    struct str uid, key, created; /* created: its creationTimestamp */
};
struct ledger_wait {
    struct str message; /* in the caller's arena: why, and its position */
    int64_t again_ms;   /* to be looked at again then; 0: it is woken */
};
/* May this pod, which is not on the host, start? True: it is charged. False: it waits for *ret. A
 * charged pod waits as well while the sum exceeds the limit: others were charged regardless of it
 * (sync_ledger_force). */
bool sync_ledger_admit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       const struct ledger_pod *pod, struct ledger_wait *ret);
/* The pod does not wait any more, charged or not; those behind it are woken. */
void sync_ledger_step_out(struct ledger *l, struct str uid);
/* Charges a pod that runs already, whatever the limit, and takes it off the queue. */
void sync_ledger_force(struct ledger *l, const struct pool_choice *choice, struct str ns,
                       struct str uid);
