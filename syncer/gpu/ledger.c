/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU ledger: one row per pod, "gpu/pool/uid" -> quantity, written in the transaction that
 * stores the pod and removed when its host pod is finished or gone. Sums are read from the rows
 * each time, so a failed transaction rolls its charges back. Must never let the sum of a pool
 * exceed its limit, and never release what a host pod may still hold.
 *
 * Where a binding queues, a pod that does not fit is stored uncharged and waits here, oldest first.
 * A strict line is never overtaken. Else a pod that fits goes first, in every second period of the
 * age of the first in line; in the others what comes free is kept for that one. So neither blocks
 * the other for ever. */

#include "gpu/ledger.h"
#include "gpu/rate.h"

#include <sublet/store.h>

enum { WAKE_MAX = 32 };

struct waiter {
    struct waiter *next;
    const struct config_binding *binding;
    struct rational gpu_eq, limit;
    int64_t created_us;
    struct str created, uid, key; /* heap */
};

struct ledger {
    struct ledger_options o;
    struct waiter *first; /* by creation */
    struct rates rates;
};

static struct str row_key(struct arena *a, const struct config_pool *pool, struct str uid)
{
    return arena_printf(a, "gpu/%.*s/%.*s", STR_F(pool->name), STR_F(uid));
}

/* --- sums --- */

struct sum {
    struct rational total;
};

static bool on_row(void *ctx, struct str key, struct str value)
{
    struct sum *sum = ctx;
    struct rational quantity;

    (void)key;
    if (!rational_parse(value, &quantity) || !rational_add(sum->total, quantity, &sum->total))
        sum->total = (struct rational){INT64_MAX, 1}; /* unknown: take the pool for full */
    return true;
}

struct rational sync_ledger_used(struct ledger *l, const struct config_pool *pool)
{
    struct sum sum = {RATIONAL_ZERO};
    struct arena *a = arena_new(0);

    store_record_each(l->o.store, RECORD_LEDGER, row_key(a, pool, STR("")), on_row, &sum);
    arena_free(a);
    return sum.total;
}

static bool fits(struct ledger *l, const struct pool_choice *choice)
{
    struct rational after;

    if (!rational_add(sync_ledger_used(l, choice->binding->pool), choice->gpu_eq, &after))
        return false;
    return rational_cmp(after, choice->limit) <= 0;
}

/* --- rows --- */

const struct config_binding *sync_ledger_charged(struct ledger *l, struct str uid)
{
    const struct config_binding *found = NULL;
    struct arena *a = arena_new(0);
    struct str value;

    for (size_t i = 0; i < l->o.config->n_bindings && !found; i++) {
        const struct config_binding *b = &l->o.config->bindings[i];

        if (uid.n && store_record_get(l->o.store, RECORD_LEDGER, row_key(a, b->pool, uid), &value))
            found = b;
    }
    arena_free(a);
    return found;
}

static void put_row(struct ledger *l, const struct pool_choice *choice, struct str uid)
{
    struct arena *a = arena_new(0);

    store_record_put(l->o.store, RECORD_LEDGER, row_key(a, choice->binding->pool, uid),
                     rational_format(a, choice->gpu_eq));
    arena_free(a);
}

/* --- waiting --- */

static void waiter_free(struct waiter *w)
{
    mem_free(w->created.p);
    mem_free(w->uid.p);
    mem_free(w->key.p);
    mem_free(w);
}

static bool is_before(const struct waiter *w, struct str created, struct str uid)
{
    int order = str_cmp(w->created, created);

    return order < 0 || (order == 0 && str_cmp(w->uid, uid) <= 0);
}

static void wait_in_line(struct ledger *l, const struct pool_choice *choice,
                         const struct ledger_pod *pod)
{
    struct waiter **at = &l->first, *w;

    for (w = *at; w; w = w->next)
        if (str_eq(w->uid, pod->uid))
            return;
    while (*at && is_before(*at, pod->created, pod->uid))
        at = &(*at)->next;
    w = NEW(struct waiter);
    w->next = *at;
    w->binding = choice->binding;
    w->gpu_eq = choice->gpu_eq;
    w->limit = choice->limit;
    if (!time_parse(pod->created, &w->created_us))
        w->created_us = clock_wall_us(l->o.clock);
    w->created = mem_str(pod->created);
    w->uid = mem_str(pod->uid);
    w->key = mem_str(pod->key);
    *at = w;
}

static bool leave_line(struct ledger *l, struct str uid)
{
    for (struct waiter **at = &l->first; *at; at = &(*at)->next) {
        struct waiter *w = *at;

        if (!str_eq(w->uid, uid))
            continue;
        *at = w->next;
        waiter_free(w);
        return true;
    }
    return false;
}

/* Wakes those of the pool that fit into what is free. */
static void wake_fitting(struct ledger *l, const struct config_binding *binding)
{
    struct rational used = sync_ledger_used(l, binding->pool), after;

    for (struct waiter *w = l->first; w; w = w->next) {
        if (w->binding != binding || !rational_add(used, w->gpu_eq, &after) ||
            rational_cmp(after, w->limit) > 0)
            continue;
        used = after;
        l->o.wake(l->o.ctx, w->key);
    }
}

/* Wakes the pods at the front, which start or report their new position; further back only those
 * that may start, so positions there may be stale. */
static void wake(struct ledger *l)
{
    size_t n = 0;

    for (struct waiter *w = l->first; w && n < WAKE_MAX; w = w->next, n++)
        l->o.wake(l->o.ctx, w->key);
    for (size_t i = 0; i < l->o.config->n_bindings && n == WAKE_MAX; i++)
        wake_fitting(l, &l->o.config->bindings[i]);
}

void sync_ledger_step_out(struct ledger *l, struct str uid)
{
    if (leave_line(l, uid))
        wake(l);
}

/* --- whose turn it is --- */

/* How long what comes free is still kept for the first in line; 0: the others may overtake it. */
static int64_t kept_ms(const struct ledger *l, const struct waiter *first)
{
    int64_t age_ms = (clock_wall_us(l->o.clock) - first->created_us) / 1000;
    int64_t period_ms = first->binding->hold_s * 1000;

    if (age_ms < 0 || age_ms / period_ms % 2 == 0)
        return 0;
    return period_ms - age_ms % period_ms;
}

/* Must the pod let one that waits ahead of it go first? uid: up to whom the line is ahead of it;
 * STR_NULL: all of it is. *ret_kept_ms (may be NULL): for how long, when no event ends it. One that
 * can never start, because the limit was lowered, holds no other. */
static bool is_held(struct ledger *l, const struct pool_choice *choice, struct str uid,
                    int64_t *ret_kept_ms)
{
    struct rational used = sync_ledger_used(l, choice->binding->pool), after;
    bool first = true;
    int64_t kept;

    for (const struct waiter *w = l->first; w && !(uid.p && str_eq(w->uid, uid)); w = w->next) {
        if (w->binding != choice->binding || rational_cmp(w->gpu_eq, w->limit) > 0)
            continue;
        if (w->binding->strict ||
            (rational_add(used, w->gpu_eq, &after) && rational_cmp(after, w->limit) <= 0))
            return true;
        kept = first ? kept_ms(l, w) : 0;
        if (kept && ret_kept_ms)
            *ret_kept_ms = kept;
        if (kept)
            return true;
        first = false;
    }
    return false;
}

/* --- charging --- */

/* Has it to wait? What can never fit is refused, whatever the binding does with the rest. */
static int check_limit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       struct str pod_name, bool *ret_queued, struct err *err)
{
    const struct config_binding *b = choice->binding;
    bool fit = fits(l, choice), never = rational_cmp(choice->gpu_eq, choice->limit) > 0;

    if (never || (!fit && b->over_quota == OVER_QUOTA_REJECT))
        return pool_exceeded(a, choice, sync_ledger_used(l, b->pool), pod_name, err);
    *ret_queued = !fit || (b->over_quota == OVER_QUOTA_QUEUE && is_held(l, choice, STR_NULL, NULL));
    return 0;
}

int sync_ledger_charge(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       struct str uid, struct str pod_name, bool dry_run, bool *ret_queued,
                       struct err *err)
{
    const struct config_binding *b = choice->by_claims ? NULL : choice->binding;

    *ret_queued = false;
    if (sync_rate_check(&l->rates, b, pod_name, choice->of_claim, err) ||
        (b && check_limit(l, a, choice, pod_name, ret_queued, err)))
        return -1;
    if (dry_run)
        return 0;
    sync_rate_count(&l->rates, b);
    if (b && !*ret_queued)
        put_row(l, choice, uid);
    return 0;
}

void sync_ledger_force(struct ledger *l, const struct pool_choice *choice, struct str uid)
{
    if (choice->binding && !choice->by_claims && !sync_ledger_charged(l, uid))
        put_row(l, choice, uid);
    sync_ledger_step_out(l, uid);
}

/* The position of uid among the pods that wait for the pool, and the GPUs requested ahead of it. */
static size_t place_of(const struct ledger *l, const struct config_pool *pool, struct str uid,
                       struct rational *ret_ahead)
{
    size_t place = 1;

    *ret_ahead = RATIONAL_ZERO;
    for (const struct waiter *w = l->first; w && !str_eq(w->uid, uid); w = w->next) {
        if (w->binding->pool != pool)
            continue;
        place++;
        if (!rational_add(*ret_ahead, w->gpu_eq, ret_ahead))
            break;
    }
    return place;
}

bool sync_ledger_is_over(struct ledger *l, const struct pool_choice *choice, struct str uid)
{
    return choice->binding && !choice->by_claims && sync_ledger_charged(l, uid) &&
           rational_cmp(sync_ledger_used(l, choice->binding->pool), choice->limit) > 0;
}

static struct str waits_for(struct arena *a, const struct ledger *l,
                            const struct pool_choice *choice, struct str uid, bool kept)
{
    struct str pool = choice->binding->pool->name, wants = rational_format(a, choice->gpu_eq);
    struct rational ahead;
    size_t place = place_of(l, choice->binding->pool, uid, &ahead);

    if (rational_cmp(choice->gpu_eq, choice->limit) > 0)
        return arena_printf(a,
                            "requests %.*s GPU of pool %.*s, whose limit is %.*s: it cannot start",
                            STR_F(wants), STR_F(pool), STR_F(rational_format(a, choice->limit)));
    return arena_printf(a, "waiting for %.*s GPU in pool %.*s: position %zu, ahead %.*s GPU%s",
                        STR_F(wants), STR_F(pool), place, STR_F(rational_format(a, ahead)),
                        kept ? "; what comes free is kept for the first in line" : "");
}

bool sync_ledger_admit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       const struct ledger_pod *pod, struct ledger_wait *ret)
{
    bool charged = choice->binding && sync_ledger_charged(l, pod->uid);
    bool over = sync_ledger_is_over(l, choice, pod->uid), fit;

    *ret = (struct ledger_wait){STR(""), 0};
    if (!choice->binding || choice->by_claims)
        return true;
    if (charged && !over) {
        sync_ledger_step_out(l, pod->uid);
        return true;
    }
    wait_in_line(l, choice, pod);
    fit = fits(l, choice);
    if (fit && !is_held(l, choice, pod->uid, &ret->again_ms)) {
        put_row(l, choice, pod->uid);
        sync_ledger_step_out(l, pod->uid);
        return true;
    }
    ret->message = waits_for(a, l, choice, pod->uid, ret->again_ms > 0);
    return false;
}

void sync_ledger_release(struct ledger *l, struct str uid)
{
    struct arena *a = arena_new(0);
    const struct config_binding *b;

    sync_ledger_step_out(l, uid);
    while ((b = sync_ledger_charged(l, uid))) {
        store_record_delete(l->o.store, RECORD_LEDGER, row_key(a, b->pool, uid));
        wake(l);
    }
    arena_free(a);
}

/* --- life --- */

struct ledger *sync_ledger_new(const struct ledger_options *options)
{
    struct ledger *l = NEW(struct ledger);

    l->o = *options;
    l->rates = (struct rates){options->store, options->config, options->clock};
    return l;
}

struct ledger *sync_ledger_free(struct ledger *l)
{
    if (!l)
        return NULL;
    while (l->first) {
        struct waiter *w = l->first;

        l->first = w->next;
        waiter_free(w);
    }
    mem_free(l);
    return NULL;
}
