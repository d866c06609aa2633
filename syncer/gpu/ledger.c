/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU ledger: one row per pod, "gpu/pool/uid" -> quantity, written in the transaction that
 * stores the pod and removed when its host pod is finished or gone. Sums are read from the rows
 * each time, so a failed transaction rolls its charges back. Must never let the sum of a pool
 * exceed its limit, and never release what a host pod may still hold.
 *
 * Where a binding queues, a pod that does not fit is stored uncharged and waits here, oldest first:
 * a large one at the head is not overtaken. */

#include "gpu/ledger.h"
#include "gpu/rate.h"

#include <sublet/store.h>

enum { WAKE_MAX = 32 };

struct waiter {
    struct waiter *next;
    const struct config_pool *pool;
    struct rational gpu_eq;
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

/* --- charging --- */

/* Has it to wait? First come, first served, even where a smaller pod would fit. */
static int check_limit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       struct str pod_name, bool *ret_queued, struct err *err)
{
    const struct config_binding *b = choice->binding;

    *ret_queued = !fits(l, choice);
    if (*ret_queued && b->over_quota == OVER_QUOTA_REJECT)
        return pool_exceeded(a, choice, sync_ledger_used(l, b->pool), pod_name, err);
    for (const struct waiter *w = l->first; w && b->over_quota == OVER_QUOTA_QUEUE; w = w->next)
        *ret_queued |= w->pool == b->pool;
    return 0;
}

int sync_ledger_charge(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       struct str uid, struct str pod_name, bool dry_run, bool *ret_queued,
                       struct err *err)
{
    const struct config_binding *b = choice->binding;

    *ret_queued = false;
    if (sync_rate_check(&l->rates, b, pod_name, err) ||
        (b && check_limit(l, a, choice, pod_name, ret_queued, err)))
        return -1;
    if (dry_run)
        return 0;
    sync_rate_count(&l->rates, b);
    if (b && !*ret_queued)
        put_row(l, choice, uid);
    return 0;
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
    w->pool = choice->binding->pool;
    w->gpu_eq = choice->gpu_eq;
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

/* Wakes the pods at the front, which start or report their new position; further back only the
 * first of each pool, so positions there may be stale. */
static void wake(struct ledger *l)
{
    size_t n = 0;

    for (struct waiter *w = l->first; w && n < WAKE_MAX; w = w->next, n++)
        l->o.wake(l->o.ctx, w->key);
    for (size_t i = 0; i < l->o.config->n_bindings && n == WAKE_MAX; i++) {
        const struct waiter *w = l->first;

        while (w && w->pool != l->o.config->bindings[i].pool)
            w = w->next;
        if (w)
            l->o.wake(l->o.ctx, w->key);
    }
}

void sync_ledger_force(struct ledger *l, const struct pool_choice *choice, struct str uid)
{
    if (choice->binding && !sync_ledger_charged(l, uid))
        put_row(l, choice, uid);
    if (leave_line(l, uid))
        wake(l);
}

/* The position of uid among the pods that wait for the pool, and the GPUs requested ahead of it. */
static size_t place_of(const struct ledger *l, const struct config_pool *pool, struct str uid,
                       struct rational *ret_ahead)
{
    size_t place = 1;

    *ret_ahead = RATIONAL_ZERO;
    for (const struct waiter *w = l->first; w && !str_eq(w->uid, uid); w = w->next) {
        if (w->pool != pool)
            continue;
        place++;
        if (!rational_add(*ret_ahead, w->gpu_eq, ret_ahead))
            break;
    }
    return place;
}

bool sync_ledger_is_over(struct ledger *l, const struct pool_choice *choice, struct str uid)
{
    return choice->binding && sync_ledger_charged(l, uid) &&
           rational_cmp(sync_ledger_used(l, choice->binding->pool), choice->limit) > 0;
}

bool sync_ledger_admit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       const struct ledger_pod *pod, struct str *ret_waits)
{
    bool charged = choice->binding && sync_ledger_charged(l, pod->uid);
    struct rational ahead;
    size_t place;

    if (!choice->binding)
        return true;
    if (!charged || sync_ledger_is_over(l, choice, pod->uid))
        wait_in_line(l, choice, pod);
    else if (leave_line(l, pod->uid))
        wake(l);
    if (charged && !sync_ledger_is_over(l, choice, pod->uid))
        return true;
    place = place_of(l, choice->binding->pool, pod->uid, &ahead);
    if (place == 1 && fits(l, choice)) {
        put_row(l, choice, pod->uid);
        leave_line(l, pod->uid);
        wake(l);
        return true;
    }
    *ret_waits =
        arena_printf(a, "waiting for %.*s GPU in pool %.*s: position %zu, ahead %.*s GPU",
                     STR_F(rational_format(a, choice->gpu_eq)), STR_F(choice->binding->pool->name),
                     place, STR_F(rational_format(a, ahead)));
    return false;
}

void sync_ledger_release(struct ledger *l, struct str uid)
{
    struct arena *a = arena_new(0);
    const struct config_binding *b;

    if (leave_line(l, uid))
        wake(l);
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
