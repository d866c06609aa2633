/* SPDX-License-Identifier: Apache-2.0 */
/* From what the fleet grants to records of the ledger, so that a report can say what was held
 * within a guarantee and what beyond it. Like the observer's memory this is a cache of the ledger:
 * repeating what is granted writes nothing. Must not record by what a watch that is not current
 * shows, nor take a row that is not shown for one that is gone, nor write rows as fast as tenants
 * change what they want. */
#include "guarantees.h"

#include <assert.h>

#include <sublet/hash.h>

#define GUARANTEES_MAGIC 0x67756172u

struct kept {
    struct map_entry by_key;
    struct str key, tenant, pool; /* on the heap */
    struct fleet_guarantee last;  /* without them; its labels are on the heap */
    bool seen;                    /* by this look */
};
struct guarantees {
    unsigned magic;
    struct ledger *ledger;
    struct map kept;
};

/* Neither a namespace nor a pool has a '/' in its name. */
static struct kept *kept_of(struct guarantees *g, struct str tenant, struct str pool)
{
    struct arena *a = arena_new(0);
    struct str key = arena_printf(a, "%.*s/%.*s", STR_F(tenant), STR_F(pool));
    struct map_entry *e = map_get(&g->kept, key);
    struct kept *k = e ? CONTAINER(e, struct kept, by_key) : NEW(struct kept);

    if (!e) {
        *k = (struct kept){.key = mem_str(key), .tenant = mem_str(tenant), .pool = mem_str(pool)};
        k->last = (struct fleet_guarantee){.guarantee = RATIONAL_ZERO, .granted = RATIONAL_ZERO};
        map_put(&g->kept, &k->by_key, k->key);
    }
    arena_free(a);
    return k;
}

static bool is_owed_the_same(const struct fleet_guarantee *a, const struct fleet_guarantee *b)
{
    return a->bound == b->bound && !rational_cmp(a->guarantee, b->guarantee) &&
           str_eq(a->labels, b->labels);
}

/* A clock that was set back ends a wait. */
static bool is_due(const struct fleet_guarantee *last, const struct fleet_guarantee *now)
{
    if (!is_owed_the_same(last, now))
        return true;
    return rational_cmp(last->granted, now->granted) &&
           (now->from_us < last->from_us || now->from_us - last->from_us >= GUARANTEES_SPACING_US);
}

static void remember(struct kept *k, struct fleet_guarantee now)
{
    now.labels = mem_str(now.labels);
    now.tenant = now.pool = STR("");
    mem_free(k->last.labels.p);
    k->last = now;
}

static int record(struct guarantees *g, struct kept *k, struct fleet_guarantee now, struct err *err)
{
    if (!is_due(&k->last, &now))
        return 0;
    remember(k, now);
    now.tenant = k->tenant;
    now.pool = k->pool;
    return ledger_add_guarantee(g->ledger, &now, err);
}

struct look {
    struct guarantees *g;
    int64_t now_us;
    struct err *err;
    int result;
};

static void not_seen(void *ctx, struct map_entry *e)
{
    (void)ctx;
    CONTAINER(e, struct kept, by_key)->seen = false;
}

static void end_unseen(void *ctx, struct map_entry *e)
{
    struct look *l = ctx;
    struct kept *k = CONTAINER(e, struct kept, by_key);

    if (!k->seen && !l->result)
        l->result =
            record(l->g, k,
                   (struct fleet_guarantee){
                       .from_us = l->now_us, .guarantee = RATIONAL_ZERO, .granted = RATIONAL_ZERO},
                   l->err);
}

static bool is_metered(const struct config_pool *pools, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(pools[i].name, name))
            return true;
    return false;
}

int guarantees_look(struct guarantees *g, const struct config_pool *pools, size_t n_pools,
                    const struct grants_view *view, int64_t now_us, struct err *err)
{
    struct look l = {g, now_us, err, 0};

    assert(g->magic == GUARANTEES_MAGIC);
    if (!view->current)
        return 0;
    map_each(&g->kept, not_seen, &l);
    for (size_t i = 0; i < view->n_rows; i++) {
        const struct grants_row *r = &view->rows[i];
        struct kept *k;

        if (!r->counts || !is_metered(pools, n_pools, r->pool))
            continue;
        k = kept_of(g, r->tenant, r->pool);
        if (k->seen) /* one binding of a tenant and a pool counts */
            continue;
        k->seen = true;
        if (record(g, k,
                   (struct fleet_guarantee){.from_us = now_us,
                                            .bound = true,
                                            .guarantee = r->guarantee,
                                            .granted = r->grant,
                                            .labels = r->labels},
                   err))
            return -1;
    }
    if (!view->n_not_shown)
        map_each(&g->kept, end_unseen, &l);
    return l.result;
}

struct guarantees *guarantees_new(struct ledger *ledger, const struct fleet_records *records)
{
    struct guarantees *g = NEW(struct guarantees);

    *g = (struct guarantees){.magic = GUARANTEES_MAGIC, .ledger = ledger};
    for (size_t i = 0; i < records->n_guarantees; i++) {
        struct kept *k = kept_of(g, records->guarantees[i].tenant, records->guarantees[i].pool);

        remember(k, records->guarantees[i]);
    }
    return g;
}

static void free_kept(void *ctx, struct map_entry *e)
{
    struct guarantees *g = ctx;
    struct kept *k = CONTAINER(e, struct kept, by_key);

    map_remove(&g->kept, &k->by_key);
    mem_free(k->key.p);
    mem_free(k->tenant.p);
    mem_free(k->pool.p);
    mem_free(k->last.labels.p);
    mem_free(k);
}

struct guarantees *guarantees_free(struct guarantees *g)
{
    if (!g)
        return NULL;
    assert(g->magic == GUARANTEES_MAGIC);
    map_each(&g->kept, free_kept, g);
    map_clear(&g->kept);
    g->magic = 0;
    return mem_free(g);
}
