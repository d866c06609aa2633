/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU ledger: one row per pod, "gpu/pool/uid" -> amount, put in the transaction that stores the
 * pod and removed when its host pod is finished or gone. The sum is taken from the rows at every
 * question, so a batch that fails takes its charges with it. Must never let the sum of a pool pass
 * its limit, and never give back what a host pod may still hold.
 *
 * Where a binding queues, a pod that does not fit is stored uncharged and waits here, oldest first:
 * a big one at the head is not overtaken. */
#include "engine.h"

#include <sublet/store.h>

enum { WAKE_MAX = 32 };

struct waiter {
    struct waiter *next;
    const struct config_pool *pool;
    struct rational gpu_eq;
    struct str created, uid, key; /* heap */
};

struct ledger {
    struct syncer *syncer;
    struct waiter *first; /* by creation */
    int64_t *window_s;    /* per binding: the minute that is counted */
    int64_t *created;     /* ... and the GPU pods made in it */
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
    struct rational amount;

    (void)key;
    if (!rational_parse(value, &amount) || !rational_add(sum->total, amount, &sum->total))
        sum->total = (struct rational){INT64_MAX, 1}; /* unknown is full, not free */
    return true;
}

struct rational ledger_used(struct syncer *s, const struct config_pool *pool)
{
    struct sum sum = {RATIONAL_ZERO};
    struct arena *a = arena_new(0);

    store_record_each(s->store, RECORD_LEDGER, row_key(a, pool, STR("")), on_row, &sum);
    arena_free(a);
    return sum.total;
}

static bool fits(struct syncer *s, const struct pool_choice *choice)
{
    struct rational after;

    if (!rational_add(ledger_used(s, choice->binding->pool), choice->gpu_eq, &after))
        return false;
    return rational_cmp(after, choice->limit) <= 0;
}

/* --- rows --- */

const struct config_binding *ledger_charged(struct syncer *s, struct str uid)
{
    const struct config_binding *found = NULL;
    struct arena *a = arena_new(0);
    struct str value;

    for (size_t i = 0; i < s->config->n_bindings && !found; i++) {
        const struct config_binding *b = &s->config->bindings[i];

        if (uid.n && store_record_get(s->store, RECORD_LEDGER, row_key(a, b->pool, uid), &value))
            found = b;
    }
    arena_free(a);
    return found;
}

static void put_row(struct syncer *s, const struct pool_choice *choice, struct str uid)
{
    struct arena *a = arena_new(0);

    store_record_put(s->store, RECORD_LEDGER, row_key(a, choice->binding->pool, uid),
                     rational_format(a, choice->gpu_eq));
    arena_free(a);
}

/* --- the rate of GPU pods --- */

static bool too_fast(struct syncer *s, const struct config_binding *binding, bool count)
{
    struct ledger *l = s->ledger;
    size_t i = (size_t)(binding - s->config->bindings);
    int64_t minute = syncer_now_s(s) / 60, most = binding->pool->pods_per_minute;

    if (l->window_s[i] != minute) {
        l->window_s[i] = minute;
        l->created[i] = 0;
    }
    if (most && l->created[i] >= most)
        return true;
    l->created[i] += count;
    return false;
}

/* --- charging --- */

int ledger_charge(struct syncer *s, struct arena *a, const struct pool_choice *choice,
                  struct str uid, struct str pod_name, bool dry_run, bool *ret_queued,
                  struct err *err)
{
    const struct config_binding *b = choice->binding;

    *ret_queued = false;
    if (!b)
        return 0;
    if (!s->compared)
        return err_set(err, &ERR_UNAVAILABLE,
                       "this virtual cluster was restored: its pods on the host cluster are not "
                       "counted yet; try again later");
    if (too_fast(s, b, !dry_run))
        return err_forbidden(err, STR(""), STR("pods"), pod_name,
                             "guardrail gpu-pods-per-minute: pool \"%.*s\" allows %lld",
                             STR_F(b->pool->name), (long long)b->pool->pods_per_minute);
    if (!fits(s, choice)) {
        if (b->over_quota == OVER_QUOTA_REJECT)
            return pool_exceeded(a, choice, ledger_used(s, b->pool), pod_name, err);
        *ret_queued = true;
        return 0;
    }
    /* Who waits longer goes first, also where a smaller one would fit. */
    for (const struct waiter *w = s->ledger->first; w && b->over_quota == OVER_QUOTA_QUEUE;
         w = w->next)
        *ret_queued |= w->pool == b->pool;
    if (!dry_run && !*ret_queued)
        put_row(s, choice, uid);
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

static void wait_in_line(struct sync_run *run, const struct pool_choice *choice)
{
    struct waiter **at = &run->syncer->ledger->first, *w;
    struct str created = json_str_at(run->virtual_, "metadata.creationTimestamp");

    for (w = *at; w; w = w->next)
        if (str_eq(w->uid, run->uid))
            return;
    while (*at && is_before(*at, created, run->uid))
        at = &(*at)->next;
    w = NEW(struct waiter);
    w->next = *at;
    w->pool = choice->binding->pool;
    w->gpu_eq = choice->gpu_eq;
    w->created = mem_str(created);
    w->uid = mem_str(run->uid);
    w->key = mem_str(reconcile_key(run->reconcile));
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

static void wake_head(struct syncer *s, const struct config_pool *pool)
{
    struct waiter *w = s->ledger->first;
    struct str ns, name;

    while (w && w->pool != pool)
        w = w->next;
    if (w && key_split(w->key, &ns, &name))
        syncer_add(s, SYNC_PODS, ns, name);
}

/* Each either is the first of its pool now, or says its new place; far back, places may be old. */
static void wake(struct syncer *s)
{
    struct str ns, name;
    size_t n = 0;

    for (struct waiter *w = s->ledger->first; w && n < WAKE_MAX; w = w->next, n++)
        if (key_split(w->key, &ns, &name))
            syncer_add(s, SYNC_PODS, ns, name);
    for (size_t i = 0; i < s->config->n_bindings && n == WAKE_MAX; i++)
        wake_head(s, s->config->bindings[i].pool);
}

/* It runs: it waits for nothing. */
void ledger_force(struct syncer *s, const struct pool_choice *choice, struct str uid)
{
    if (choice->binding && !ledger_charged(s, uid))
        put_row(s, choice, uid);
    if (leave_line(s->ledger, uid))
        wake(s);
}

/* How many of the same pool stand before uid, and what they want. */
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

/* A pod that is charged and not on the host goes there, unless what was charged whatever the limit
 * (ledger_force) took its room: then it waits like any other. It keeps its charge while a create
 * that got no answer may still be executed. */
static bool may_start(struct sync_run *run, const struct pool_choice *choice)
{
    struct syncer *s = run->syncer;

    if (!ledger_charged(s, run->uid))
        return false;
    if (rational_cmp(ledger_used(s, choice->binding->pool), choice->limit) <= 0) {
        if (leave_line(s->ledger, run->uid))
            wake(s);
        return true;
    }
    if (!sync_create_may_come(run))
        ledger_release(s, run->uid);
    return false;
}

bool ledger_admit(struct sync_run *run, const struct pool_choice *choice)
{
    struct syncer *s = run->syncer;
    struct rational ahead;
    size_t place;

    if (!choice->binding || may_start(run, choice))
        return true;
    wait_in_line(run, choice);
    place = place_of(s->ledger, choice->binding->pool, run->uid, &ahead);
    if (place == 1 && fits(s, choice)) {
        put_row(s, choice, run->uid);
        leave_line(s->ledger, run->uid);
        wake(s);
        return true;
    }
    pod_say_waiting(run, "SchedulingGated",
                    arena_printf(run->arena,
                                 "waiting for %.*s GPU in pool %.*s: position %zu, ahead %.*s GPU",
                                 STR_F(rational_format(run->arena, choice->gpu_eq)),
                                 STR_F(choice->binding->pool->name), place,
                                 STR_F(rational_format(run->arena, ahead))));
    return false;
}

void ledger_release(struct syncer *s, struct str uid)
{
    struct arena *a = arena_new(0);
    const struct config_binding *b;

    if (leave_line(s->ledger, uid))
        wake(s);
    while ((b = ledger_charged(s, uid))) {
        store_record_delete(s->store, RECORD_LEDGER, row_key(a, b->pool, uid));
        wake(s);
    }
    arena_free(a);
}

/* --- life --- */

struct ledger *ledger_new(struct syncer *s)
{
    struct ledger *l = NEW(struct ledger);

    l->syncer = s;
    l->window_s = mem_alloc((s->config->n_bindings + 1) * sizeof(*l->window_s));
    l->created = mem_alloc((s->config->n_bindings + 1) * sizeof(*l->created));
    return l;
}

struct ledger *ledger_free(struct ledger *l)
{
    if (!l)
        return NULL;
    while (l->first) {
        struct waiter *w = l->first;

        l->first = w->next;
        waiter_free(w);
    }
    mem_free(l->window_s);
    mem_free(l->created);
    mem_free(l);
    return NULL;
}
