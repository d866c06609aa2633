/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * GPUs of the tenant, exactly: who is charged, who waits. It knows pods by uid and key. */
#pragma once

#include <sublet/clock.h>
#include <sublet/pool.h>
#include <sublet/store.h>

struct ledger;

struct ledger_options {
    struct store *store;
    const struct config *config;
    const struct clock *clock;
    void (*wake)(void *ctx, struct str key); /* the pod of this key may have its turn now */
    void *ctx;
};
struct ledger *ledger_new(const struct ledger_options *options);
struct ledger *ledger_free(struct ledger *l); /* takes NULL */
/* Row of a pod: which pool it is charged to. NULL when it is charged to none. */
const struct config_binding *ledger_charged(struct ledger *l, struct str uid);
/* Checks the limit and (unless dry_run) charges. FORBIDDEN when over and the binding rejects; 0
 * with *ret_queued when it has to wait. */
int ledger_charge(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                  struct str uid, struct str pod_name, bool dry_run, bool *ret_queued,
                  struct err *err) MUST_CHECK;
/* Wakes the pods that wait for the pool. */
void ledger_release(struct ledger *l, struct str uid);
struct rational ledger_used(struct ledger *l, const struct config_pool *pool);
/* Is it charged, in a pool whose sum passes the limit? */
bool ledger_is_over(struct ledger *l, const struct pool_choice *choice, struct str uid);
struct ledger_pod {
    struct str uid, key, created; /* created: its creationTimestamp */
};
/* A pod that is not on the host. True when it may start: it is charged already, or is now. False:
 * it waits, and why, in a. A pod that is charged waits as well while the sum passes the limit:
 * others were charged whatever the limit (ledger_force). */
bool ledger_admit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                  const struct ledger_pod *pod, struct str *ret_waits);
/* A pod that runs already is charged whatever the limit, and waits for nothing. */
void ledger_force(struct ledger *l, const struct pool_choice *choice, struct str uid);
