/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU ledger: one row per pod, "gpu/pool/uid" -> quantity, written in the transaction that
 * stores the pod and removed when its host pod is finished or gone. The sum of a pool is kept
 * beside the rows, and read from them again after a failed transaction, which rolled charges back.
 * Must never let the sum of a pool exceed its limit, and never release what a host pod may still
 * hold.
 *
 * Pools and bindings may be replaced at any time between two calls, and a pool may be bound no
 * longer while pods of it run: so what is kept here has the name of a pool, and the limit is that
 * of the binding there is now.
 *
 * Where a binding queues, a pod that does not fit is stored uncharged and waits here, oldest first.
 * A strict line is never overtaken. Else a pod that fits goes first, in every second period of the
 * age of the first in line; in the others what comes free is kept for that one. So neither blocks
 * the other for ever.
 *
 * Of a gang (pool_choice.gang) a pod is charged only while what the gang still lacks fits as well,
 * and then goes before all that waits. So after each charge one gang can be charged as a whole from
 * what is free, and no two gangs ever keep each other from starting. A row then has the gang behind
 * the quantity: "1/2 g-...". */

#include "gpu/ledger.h"
#include "gpu/hours.h"
#include "gpu/rate.h"

#include <string.h>
#include <sys/queue.h>

#include <sublet/store.h>
#include <sublet/store_failure.h>

enum { WAKE_MAX = 32, PRUNE_APART_MS = 1000 };

struct waiter {
    TAILQ_ENTRY(waiter) place;
    struct rational gpu_eq;
    int64_t created_us;
    struct str pool, created, uid, key; /* heap */
};

/* A pool that something is or was charged to, bound or not. */
struct charged_pool {
    SLIST_ENTRY(charged_pool) next;
    struct str name; /* heap */
    /* Of its rows, exactly, while is_current(): they change only here, and by a failed
     * transaction. */
    struct rational used;
    bool summed;
    uint64_t undone; /* store_undone() then */
    struct {
        uint64_t counts[LEDGER_TIME_BOUNDS + 1], sum_us;
    } times[LEDGER_TIMES];
};

const double SYNC_LEDGER_TIME_BOUND[LEDGER_TIME_BOUNDS] = {1,   5,    15,    60,   300,
                                                           900, 3600, 14400, 86400};

struct turned_away {
    struct refusals list;
    int64_t pruned_ms; /* monotonic */
};

struct ledger {
    struct ledger_options o;
    TAILQ_HEAD(, waiter) line; /* by creation */
    SLIST_HEAD(, charged_pool) pools;
    struct turned_away refused;  /* owners of what was refused until there is room */
    struct turned_away unserved; /* and until pools or bindings change */
    uint64_t wave;               /* grows with each such change */
    bool wave_due;               /* later() was called for its next step */
    int64_t start_us;            /* of this process */
    struct rates rates;
};

#define ROWS "gpu/"

static struct str row_key(struct arena *a, struct str pool, struct str uid)
{
    return arena_printf(a, ROWS "%.*s/%.*s", STR_F(pool), STR_F(uid));
}

/* --- sums --- */

struct sum {
    struct rational total;
    bool exact;
};

static bool read_row(struct str value, struct rational *ret)
{
    return rational_parse(str_cut(&value, ' '), ret);
}

static bool on_row(void *ctx, struct str key, struct str value)
{
    struct sum *sum = ctx;
    struct rational quantity;

    (void)key;
    sum->exact = read_row(value, &quantity) && rational_add(sum->total, quantity, &sum->total);
    return sum->exact;
}

/* False: the rows cannot be summed up. The pool is taken for full. */
static bool sum_up(struct ledger *l, struct str pool, struct rational *ret)
{
    struct sum sum = {RATIONAL_ZERO, true};
    struct arena *a = arena_new(0);

    store_record_each(l->o.store, RECORD_LEDGER, row_key(a, pool, STR("")), on_row, &sum);
    arena_free(a);
    *ret = sum.exact ? sum.total : RATIONAL_MOST;
    return sum.exact;
}

static struct charged_pool *find_pool(const struct ledger *l, struct str name)
{
    struct charged_pool *p;

    SLIST_FOREACH(p, &l->pools, next)
    {
        if (str_eq(p->name, name))
            return p;
    }
    return NULL;
}

static bool is_current(const struct ledger *l, const struct charged_pool *p)
{
    return p->summed && p->undone == store_undone(l->o.store);
}

static struct rational used_of(struct ledger *l, struct charged_pool *p)
{
    if (!is_current(l, p)) {
        p->summed = sum_up(l, p->name, &p->used);
        p->undone = store_undone(l->o.store);
    }
    return p->used;
}

struct rational sync_ledger_used(struct ledger *l, const struct config_pool *pool)
{
    struct charged_pool *p = find_pool(l, pool->name);

    return p ? used_of(l, p) : RATIONAL_ZERO;
}

static struct hours_of hours_of(struct ledger *l, struct charged_pool *p)
{
    return (struct hours_of){.store = l->o.store,
                             .pool = p->name,
                             .used = used_of(l, p),
                             .now_us = clock_wall_us(l->o.clock),
                             .start_us = l->start_us};
}

struct rational sync_ledger_hours(struct ledger *l, struct str pool)
{
    struct charged_pool *p = find_pool(l, pool);
    struct hours_of h;

    if (!p)
        return RATIONAL_ZERO;
    h = hours_of(l, p);
    return sync_hours_rounded(sync_hours_read(&h));
}

static void on_split_charge(void *split, struct str uid, struct rational quantity)
{
    sync_hours_split_charge(split, uid, quantity);
}

/* Its sum changes now. */
static struct hours_of note_hours(struct ledger *l, struct charged_pool *p)
{
    struct hours_of h = hours_of(l, p);

    sync_hours_note(&h);
    return h;
}

struct hours_list sync_ledger_hours_list(struct ledger *l, struct arena *a, struct str pool,
                                         size_t most)
{
    struct charged_pool *p = find_pool(l, pool);
    struct hours_split *split;
    struct hours_of h;

    if (!p)
        return (struct hours_list){.others = RATIONAL_ZERO, .total = RATIONAL_ZERO};
    h = hours_of(l, p);
    split = sync_hours_split(a, &h);
    sync_ledger_each_charge(l, pool, on_split_charge, split);
    return sync_hours_list(split, most);
}

/* A row of it was written (+) or deleted (-). */
static void add_to_sum(struct ledger *l, struct charged_pool *p, struct rational quantity,
                       bool deleted)
{
    if (is_current(l, p))
        p->summed = (deleted ? rational_sub : rational_add)(p->used, quantity, &p->used) &&
                    p->used.num >= 0;
}

bool sync_ledger_adds_up(struct ledger *l)
{
    const struct charged_pool *p;
    struct rational sum;

    SLIST_FOREACH(p, &l->pools, next)
    {
        if (is_current(l, p) && (!sum_up(l, p->name, &sum) || rational_cmp(sum, p->used) != 0))
            return false;
    }
    return true;
}

struct rational sync_ledger_wants(struct ledger *l, const struct config_binding *b)
{
    struct rational used = sync_ledger_used(l, b->pool), sum = used, more;
    const struct waiter *w;

    TAILQ_FOREACH(w, &l->line, place)
    {
        if (rational_cmp(sum, b->most) >= 0)
            break;
        if (!str_eq(w->pool, b->pool->name) || rational_cmp(w->gpu_eq, b->most) > 0 ||
            sync_ledger_charged(l, w->uid).n)
            continue;
        if (!rational_add(sum, w->gpu_eq, &sum))
            sum = b->most;
    }
    more = sync_refused_lack(&l->refused.list, b, l->o.lacks, l->o.ctx);
    if (!rational_add(sum, more, &sum) || rational_cmp(sum, b->most) > 0)
        sum = b->most;
    return rational_cmp(sum, used) < 0 ? used : sum;
}

struct charges {
    struct str prefix;
    void (*each)(void *ctx, struct str uid, struct rational quantity);
    void *ctx;
};

static bool on_charge(void *ctx, struct str key, struct str value)
{
    struct charges *c = ctx;
    struct rational quantity;

    if (read_row(value, &quantity))
        c->each(c->ctx, str_from(key, c->prefix.n), quantity);
    return true;
}

void sync_ledger_each_charge(struct ledger *l, struct str pool,
                             void (*each)(void *ctx, struct str uid, struct rational quantity),
                             void *ctx)
{
    struct arena *a = arena_new(0);
    struct charges c = {row_key(a, pool, STR("")), each, ctx};

    store_record_each(l->o.store, RECORD_LEDGER, c.prefix, on_charge, &c);
    arena_free(a);
}

void sync_ledger_each_waiting(struct ledger *l, struct str pool,
                              void (*each)(void *ctx, const struct ledger_waiting *w), void *ctx)
{
    struct ledger_waiting one = {.ahead = RATIONAL_ZERO};
    const struct waiter *w;

    TAILQ_FOREACH(w, &l->line, place)
    {
        if (!str_eq(w->pool, pool))
            continue;
        one.key = w->key;
        one.created = w->created;
        one.gpu_eq = w->gpu_eq;
        one.position++;
        each(ctx, &one);
        rational_add_most(&one.ahead, w->gpu_eq);
    }
}

static bool on_first_row(void *ctx, struct str key, struct str value)
{
    (void)key;
    (void)value;
    *(bool *)ctx = true;
    return false;
}

bool sync_ledger_has(struct ledger *l, struct str pool)
{
    struct arena *a = arena_new(0);
    bool found = false;

    store_record_each(l->o.store, RECORD_LEDGER, row_key(a, pool, STR("")), on_first_row, &found);
    arena_free(a);
    return found;
}

struct gang_count {
    struct str gang;
    int64_t n;
};

static bool on_gang_row(void *ctx, struct str key, struct str value)
{
    struct gang_count *c = ctx;

    (void)key;
    str_cut(&value, ' ');
    c->n += str_eq(value, c->gang);
    return true;
}

/* Pods of the choice's gang that are charged. */
static int64_t gang_charged(struct ledger *l, const struct pool_choice *choice)
{
    struct gang_count c = {choice->gang, 0};
    struct arena *a;

    if (!choice->gang.n)
        return 0;
    a = arena_new(0);
    store_record_each(l->o.store, RECORD_LEDGER, row_key(a, choice->binding->pool->name, STR("")),
                      on_gang_row, &c);
    arena_free(a);
    return c.n;
}

/* What has to be free for it: its own GPUs, or what its gang lacks as a whole. False: more than can
 * be said. */
static bool needs(struct ledger *l, const struct pool_choice *choice, struct rational *ret)
{
    int64_t lacks = choice->gang.n ? choice->gang_size - gang_charged(l, choice) : 1;

    return rational_mul(choice->gpu_eq, (struct rational){lacks < 1 ? 1 : lacks, 1}, ret);
}

static bool fits(struct ledger *l, const struct pool_choice *choice)
{
    struct rational after;

    if (choice->binding->pool->maintenance.state != MAINTENANCE_NONE || !needs(l, choice, &after) ||
        !rational_add(sync_ledger_used(l, choice->binding->pool), after, &after))
        return false;
    return rational_cmp(after, choice->limit) <= 0;
}

/* Can the binding never hold it, whatever is granted and whatever ends? */
static bool never_fits(const struct pool_choice *choice)
{
    int64_t pods = choice->gang.n && choice->gang_size > 1 ? choice->gang_size : 1;
    struct rational all;

    return !rational_mul(choice->gpu_eq, (struct rational){pods, 1}, &all) ||
           rational_cmp(all, choice->binding->most) > 0;
}

/* --- rows --- */

static struct charged_pool *know_pool(struct ledger *l, struct str name)
{
    struct charged_pool *p = find_pool(l, name);

    if (p)
        return p;
    p = NEW(struct charged_pool);
    p->name = mem_str(name);
    SLIST_INSERT_HEAD(&l->pools, p, next);
    return p;
}

static bool on_any_row(void *ctx, struct str key, struct str value)
{
    struct str rest = str_from(key, strlen(ROWS));

    (void)value;
    know_pool(ctx, str_cut(&rest, '/'));
    return true;
}

struct str sync_ledger_charged(struct ledger *l, struct str uid)
{
    struct arena *a = arena_new(0);
    struct str value, found = STR_NULL;
    const struct charged_pool *p;

    SLIST_FOREACH(p, &l->pools, next)
    {
        if (uid.n && store_record_get(l->o.store, RECORD_LEDGER, row_key(a, p->name, uid), &value))
            found = p->name;
    }
    arena_free(a);
    return found;
}

bool sync_ledger_charge_of(struct ledger *l, struct str pool, struct str uid, struct rational *ret)
{
    struct arena *a = arena_new(0);
    struct str value;
    bool found = store_record_get(l->o.store, RECORD_LEDGER, row_key(a, pool, uid), &value) &&
                 read_row(value, ret);

    arena_free(a);
    return found;
}

/* It has none there, as a rule. */
static void put_row(struct ledger *l, const struct pool_choice *choice, struct str ns,
                    struct str uid)
{
    struct arena *a = arena_new(0);
    struct charged_pool *p = know_pool(l, choice->binding->pool->name);
    struct str key = row_key(a, p->name, uid), unused;
    struct hours_of h = note_hours(l, p);
    struct rational before = RATIONAL_ZERO;

    if (store_record_get(l->o.store, RECORD_LEDGER, key, &unused)) {
        (void)sync_ledger_charge_of(l, p->name, uid, &before);
        sync_hours_end(&h, uid, before);
        p->summed = false;
    }
    sync_hours_begin(&h, uid, ns);
    store_record_put(l->o.store, RECORD_LEDGER, key,
                     arena_printf(a, "%.*s%s%.*s", STR_F(rational_format(a, choice->gpu_eq)),
                                  choice->gang.n ? " " : "", STR_F(choice->gang)));
    add_to_sum(l, p, choice->gpu_eq, false);
    arena_free(a);
    l->o.changed(l->o.ctx);
}

static void delete_row(struct ledger *l, struct charged_pool *p, struct str uid)
{
    struct arena *a = arena_new(0);
    struct hours_of h = note_hours(l, p);
    struct rational quantity = RATIONAL_ZERO;

    if (!sync_ledger_charge_of(l, p->name, uid, &quantity))
        p->summed = false;
    else
        add_to_sum(l, p, quantity, true);
    sync_hours_end(&h, uid, quantity);
    store_record_delete(l->o.store, RECORD_LEDGER, row_key(a, p->name, uid));
    arena_free(a);
    l->o.changed(l->o.ctx);
}

/* --- waiting --- */

static void waiter_free(struct waiter *w)
{
    mem_free(w->pool.p);
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

/* False: it was there already. */
static bool wait_in_line(struct ledger *l, const struct pool_choice *choice,
                         const struct ledger_pod *pod)
{
    struct waiter *w, *behind;

    TAILQ_FOREACH(w, &l->line, place)
    {
        if (str_eq(w->uid, pod->uid))
            return false;
    }
    TAILQ_FOREACH(behind, &l->line, place)
    {
        if (!is_before(behind, pod->created, pod->uid))
            break;
    }
    w = NEW(struct waiter);
    w->pool = mem_str(choice->binding->pool->name);
    w->gpu_eq = choice->gpu_eq;
    if (!time_parse(pod->created, &w->created_us))
        w->created_us = clock_wall_us(l->o.clock);
    w->created = mem_str(pod->created);
    w->uid = mem_str(pod->uid);
    w->key = mem_str(pod->key);
    if (behind)
        TAILQ_INSERT_BEFORE(behind, w, place);
    else
        TAILQ_INSERT_TAIL(&l->line, w, place);
    l->o.changed(l->o.ctx);
    return true;
}

static bool leave_line(struct ledger *l, struct str uid)
{
    struct waiter *w;

    TAILQ_FOREACH(w, &l->line, place)
    {
        if (str_eq(w->uid, uid))
            break;
    }
    if (!w)
        return false;
    TAILQ_REMOVE(&l->line, w, place);
    waiter_free(w);
    l->o.changed(l->o.ctx);
    return true;
}

/* A clock that was set back counts as no time. */
static void note_time(struct ledger *l, struct str pool, enum ledger_time which, int64_t since_us)
{
    struct charged_pool *p = find_pool(l, pool);
    int64_t us = clock_wall_us(l->o.clock) - since_us;
    size_t i = 0;

    if (!p)
        return;
    us = us < 0 ? 0 : us;
    while (i < LEDGER_TIME_BOUNDS && (double)us / 1e6 > SYNC_LEDGER_TIME_BOUND[i])
        i++;
    p->times[which].counts[i]++;
    p->times[which].sum_us += (uint64_t)us;
}

/* One in the line was charged. */
static void note_wait(struct ledger *l, struct str uid)
{
    const struct waiter *w;

    TAILQ_FOREACH(w, &l->line, place)
    {
        if (str_eq(w->uid, uid))
            break;
    }
    if (w)
        note_time(l, w->pool, LEDGER_WAIT, w->created_us);
}

void sync_ledger_scheduled(struct ledger *l, struct str uid, struct str created)
{
    struct str pool = sync_ledger_charged(l, uid);
    int64_t created_us;

    if (pool.n && time_parse(created, &created_us))
        note_time(l, pool, LEDGER_SCHEDULE, created_us);
}

bool sync_ledger_times(const struct ledger *l, struct str pool, enum ledger_time which,
                       struct metrics_histogram *ret)
{
    struct charged_pool *p = find_pool(l, pool);

    if (p)
        *ret = (struct metrics_histogram){p->times[which].counts, p->times[which].sum_us};
    return p != NULL;
}

/* Wakes those of the pool that fit into what is free. */
static void wake_fitting(struct ledger *l, const struct config_binding *binding)
{
    struct rational used = sync_ledger_used(l, binding->pool), after;
    struct waiter *w;

    TAILQ_FOREACH(w, &l->line, place)
    {
        if (!str_eq(w->pool, binding->pool->name) || !rational_add(used, w->gpu_eq, &after) ||
            rational_cmp(after, binding->limit) > 0)
            continue;
        used = after;
        l->o.wake(l->o.ctx, w->key);
    }
}

/* Wakes the pods at the front, which start or report their new position; further back only those
 * that may start, so positions there may be stale. */
static void wake(struct ledger *l)
{
    struct waiter *w = TAILQ_FIRST(&l->line);
    size_t n;

    for (n = 0; w && n < WAKE_MAX; n++, w = TAILQ_NEXT(w, place))
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
static int64_t kept_ms(const struct ledger *l, const struct config_binding *binding,
                       const struct waiter *first)
{
    int64_t age_ms = (clock_wall_us(l->o.clock) - first->created_us) / 1000;
    int64_t period_ms = binding->hold_s * 1000;

    if (age_ms < 0 || age_ms / period_ms % 2 == 0)
        return 0;
    return period_ms - age_ms % period_ms;
}

/* Must the pod let one that waits ahead of it go first? uid: up to whom the line is ahead of it;
 * STR_NULL: all of it is. *ret_kept_ms (may be NULL): for how long, when no event ends it. One that
 * the limit cannot hold, because it was lowered, holds no other; but a strict line waits for one
 * that a grant may hold again. */
static bool is_held(struct ledger *l, const struct pool_choice *choice, struct str uid,
                    int64_t *ret_kept_ms)
{
    const struct config_binding *b = choice->binding;
    struct rational used = sync_ledger_used(l, b->pool), after;
    const struct waiter *w;
    bool first = true;
    int64_t kept;

    if (gang_charged(l, choice))
        return false; /* what it holds already is of use only with the others */
    TAILQ_FOREACH(w, &l->line, place)
    {
        if (uid.p && str_eq(w->uid, uid))
            break;
        if (!str_eq(w->pool, b->pool->name) ||
            rational_cmp(w->gpu_eq, b->strict ? b->most : b->limit) > 0)
            continue;
        if (b->strict ||
            (rational_add(used, w->gpu_eq, &after) && rational_cmp(after, b->limit) <= 0))
            return true;
        kept = first ? kept_ms(l, b, w) : 0;
        if (kept && ret_kept_ms)
            *ret_kept_ms = kept;
        if (kept)
            return true;
        first = false;
    }
    return false;
}

bool sync_ledger_has_room(struct ledger *l, const struct pool_choice *choice)
{
    return fits(l, choice) &&
           (choice->binding->over_quota != OVER_QUOTA_QUEUE || !is_held(l, choice, STR_NULL, NULL));
}

/* --- charging --- */

/* Has it to wait? What can never fit is refused, whatever overQuota the binding has; what the grant
 * of the moment alone cannot hold is not among it. */
static int check_limit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       struct str pod_name, bool *ret_queued, struct err *err)
{
    const struct config_binding *b = choice->binding;
    bool fit = fits(l, choice), never = never_fits(choice);

    if (!never && b->pool->maintenance.state != MAINTENANCE_NONE &&
        b->over_quota == OVER_QUOTA_REJECT)
        return err_forbidden(err, choice->of_claim ? STR("resource.k8s.io") : STR_NULL,
                             choice->of_claim ? STR("resourceclaims") : STR("pods"), pod_name,
                             "PoolUnavailable: %.*s", STR_F(config_maintenance_text(a, b->pool)));
    if (never || (!fit && b->over_quota == OVER_QUOTA_REJECT))
        return pool_exceeded(a, choice, sync_ledger_used(l, b->pool), pod_name, err);
    *ret_queued = !fit || (b->over_quota == OVER_QUOTA_QUEUE && is_held(l, choice, STR_NULL, NULL));
    return 0;
}

/* In a full list an owner that is gone must not have the place of one that waits. Not for each that
 * is refused: a tenant refuses as fast as it requests. */
static void make_room(struct ledger *l, struct turned_away *owners)
{
    int64_t now = clock_mono_ms(l->o.clock);

    if (!sync_refused_is_full(&owners->list) || now - owners->pruned_ms < PRUNE_APART_MS)
        return;
    owners->pruned_ms = now;
    sync_refused_prune(&owners->list, l->o.lacks, l->o.ctx);
}

/* There was no room for it. */
static void note_refused(struct ledger *l, const struct pool_choice *choice,
                         const struct refused_owner *owner)
{
    const struct config_binding *b = choice->binding;
    struct rational sum;

    if (never_fits(choice))
        sync_ledger_unserved(l, owner);
    if (owner->kind) {
        make_room(l, &l->refused);
        sync_refused_add(&l->refused.list, choice, owner);
        l->o.changed(l->o.ctx);
    } else if (rational_cmp(choice->gpu_eq, b->most) <= 0 &&
               rational_add(sync_ledger_used(l, b->pool), choice->gpu_eq, &sum)) {
        l->o.turned_away(l->o.ctx, b, sum);
    }
}

int sync_ledger_charge(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       const cJSON *object, bool dry_run, bool *ret_queued, struct err *err)
{
    const struct config_binding *b = choice->by_claims ? NULL : choice->binding;
    struct str name = json_str_at(object, "metadata.name");
    struct refused_owner owner = sync_refused_owner(object);

    *ret_queued = false;
    if (sync_rate_check(&l->rates, b, name, choice->of_claim, err) ||
        (b && check_limit(l, a, choice, name, ret_queued, err))) {
        if (b && !dry_run && !fits(l, choice))
            note_refused(l, choice, &owner);
        return -1;
    }
    if (dry_run)
        return 0;
    sync_refused_drop(&l->refused.list, owner.uid);
    sync_refused_drop(&l->unserved.list, owner.uid);
    sync_rate_count(&l->rates, b);
    if (b && !*ret_queued)
        put_row(l, choice, json_str_at(object, "metadata.namespace"),
                json_str_at(object, "metadata.uid"));
    return 0;
}

void sync_ledger_force(struct ledger *l, const struct pool_choice *choice, struct str ns,
                       struct str uid)
{
    if (choice->binding && !choice->by_claims && !sync_ledger_charged(l, uid).n)
        put_row(l, choice, ns, uid);
    sync_ledger_step_out(l, uid);
}

/* The position of uid among the pods that wait for the pool, and the GPUs requested ahead of it. */
static size_t place_of(const struct ledger *l, const struct config_pool *pool, struct str uid,
                       struct rational *ret_ahead)
{
    const struct waiter *w;
    size_t place = 1;

    *ret_ahead = RATIONAL_ZERO;
    TAILQ_FOREACH(w, &l->line, place)
    {
        if (str_eq(w->uid, uid))
            break;
        if (!str_eq(w->pool, pool->name))
            continue;
        place++;
        rational_add_most(ret_ahead, w->gpu_eq);
    }
    return place;
}

bool sync_ledger_is_over(struct ledger *l, const struct pool_choice *choice, struct str uid)
{
    return choice->binding && !choice->by_claims && sync_ledger_charged(l, uid).n &&
           rational_cmp(sync_ledger_used(l, choice->binding->pool), choice->limit) > 0;
}

static struct str waits_for(struct arena *a, const struct ledger *l,
                            const struct pool_choice *choice, struct str uid, bool kept)
{
    struct str pool = choice->binding->pool->name, wants = rational_format(a, choice->gpu_eq);
    struct str units = pool_requested(a, choice), granted = STR("");
    struct rational ahead;
    size_t place = place_of(l, choice->binding->pool, uid, &ahead);

    if (never_fits(choice))
        return arena_printf(
            a, "requests %.*s GPU%.*s of pool %.*s, whose limit is %.*s: it cannot start",
            STR_F(wants), STR_F(units), STR_F(pool),
            STR_F(rational_format(a, choice->binding->most)));
    if (choice->binding->pool->maintenance.state != MAINTENANCE_NONE)
        return arena_printf(a, "waiting for %.*s GPU%.*s: %.*s", STR_F(wants), STR_F(units),
                            STR_F(config_maintenance_text(a, choice->binding->pool)));
    if (rational_cmp(choice->limit, choice->binding->most) < 0)
        granted = arena_printf(a, "; granted now: %.*s", STR_F(rational_format(a, choice->limit)));
    return arena_printf(
        a, "waiting for %.*s GPU%.*s in pool %.*s: position %zu, ahead %.*s GPU%.*s%s",
        STR_F(wants), STR_F(units), STR_F(pool), place, STR_F(rational_format(a, ahead)),
        STR_F(granted), kept ? "; what comes free is kept for the first in line" : "");
}

bool sync_ledger_admit(struct ledger *l, struct arena *a, const struct pool_choice *choice,
                       const struct ledger_pod *pod, struct ledger_wait *ret)
{
    bool charged = choice->binding && sync_ledger_charged(l, pod->uid).n;
    bool over = sync_ledger_is_over(l, choice, pod->uid), fit, first;
    struct str rest = pod->key, ns = str_cut(&rest, '/');

    *ret = (struct ledger_wait){STR(""), 0};
    if (!choice->binding || choice->by_claims)
        return true;
    if (charged && !over) {
        sync_ledger_step_out(l, pod->uid);
        return true;
    }
    first = wait_in_line(l, choice, pod);
    fit = fits(l, choice);
    if (fit && !is_held(l, choice, pod->uid, &ret->again_ms)) {
        put_row(l, choice, ns, pod->uid);
        if (!first)
            note_wait(l, pod->uid);
        sync_ledger_step_out(l, pod->uid);
        return true;
    }
    ret->message = waits_for(a, l, choice, pod->uid, ret->again_ms > 0);
    return false;
}

/* GPUs of the pool came free, or its limit was raised. */
static void retry(struct ledger *l, const struct config_binding *b)
{
    sync_refused_wake(&l->refused.list, b, sync_ledger_used(l, b->pool), l->o.clock, l->o.retry,
                      l->o.ctx);
}

void sync_ledger_release(struct ledger *l, struct str uid)
{
    const struct config_binding *b;
    struct str pool;

    sync_ledger_step_out(l, uid);
    while ((pool = sync_ledger_charged(l, uid)).n) {
        delete_row(l, find_pool(l, pool), uid);
        wake(l);
        b = config_binding_of(l->o.config, pool);
        if (b)
            retry(l, b);
        if (b && b->ended)
            l->o.released(l->o.ctx);
    }
}

void sync_ledger_limits_changed(struct ledger *l)
{
    wake(l);
    for (size_t i = 0; i < l->o.config->n_bindings; i++)
        retry(l, &l->o.config->bindings[i]);
}

void sync_ledger_unserved(struct ledger *l, const struct refused_owner *owner)
{
    struct refused_count count = {.revision = -1};

    /* A pod may name any owner: only one that is there, and lacks pods, takes a place. */
    if (!l->o.config->fleet_bindings || !owner->kind || !l->o.lacks(l->o.ctx, owner, &count))
        return;
    make_room(l, &l->unserved);
    sync_refused_add_unserved(&l->unserved.list, owner, l->wave);
}

void sync_ledger_wave(struct ledger *l)
{
    l->wave_due =
        sync_refused_wake_wave(&l->unserved.list, l->wave, l->o.config, l->o.retry, l->o.ctx);
    if (l->wave_due)
        l->o.later(l->o.ctx);
}

/* While a step is due it is the next of this wave too: changes in a row wake no more at once. */
void sync_ledger_pools_changed(struct ledger *l)
{
    l->wave++;
    if (!l->wave_due)
        sync_ledger_wave(l);
}

/* --- life --- */

struct ledger *sync_ledger_new(const struct ledger_options *options)
{
    struct ledger *l = NEW(struct ledger);

    l->o = *options;
    l->refused.pruned_ms = l->unserved.pruned_ms = -PRUNE_APART_MS;
    l->start_us = clock_wall_us(options->clock);
    TAILQ_INIT(&l->refused.list);
    TAILQ_INIT(&l->unserved.list);
    TAILQ_INIT(&l->line);
    SLIST_INIT(&l->pools);
    store_record_each(l->o.store, RECORD_LEDGER, STR(ROWS), on_any_row, l);
    l->rates = (struct rates){options->store, options->config, options->clock};
    return l;
}

struct ledger *sync_ledger_free(struct ledger *l)
{
    struct charged_pool *p;
    struct waiter *w;

    if (!l)
        return NULL;
    while ((w = TAILQ_FIRST(&l->line))) {
        TAILQ_REMOVE(&l->line, w, place);
        waiter_free(w);
    }
    while ((p = SLIST_FIRST(&l->pools))) {
        SLIST_REMOVE_HEAD(&l->pools, next);
        mem_free(p->name.p);
        mem_free(p);
    }
    sync_refused_fini(&l->refused.list);
    sync_refused_fini(&l->unserved.list);
    mem_free(l);
    return NULL;
}
