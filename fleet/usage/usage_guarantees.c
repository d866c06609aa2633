/* SPDX-License-Identifier: Apache-2.0 */
/* What was held within guarantees and what beyond them: a sweep over the time of each tenant in a
 * pool, in which what its pods hold on all nodes meets its guarantee. The pods that were scheduled
 * last are the borrowed ones, and one of them is it in part where the guarantee ends within it. Why
 * a list and a place in it: a pod becomes guaranteed when an older one ends, and borrowed again
 * only when its guarantee is lowered, so that each change touches what it moves and no more.
 *
 *   oldest |##########|####### --|----------| youngest     # within the guarantee, - borrowed
 *                          ^ frontier: the first that is not within it as a whole
 *
 * What of guarantees no pod of its tenant held is `reserved`; of what was idle in the pool so much,
 * at most, was kept for them. Must not depend on where a report begins: the order is that of the
 * pods' own begins. */
#include "usage.h"

#include <stdlib.h>
#include <sys/queue.h>

#include <sublet/buf.h>

#define HOUR_US INT64_C(3600000000)

/* A pod that is billed, from when until when. */
struct active;
struct spell {
    const struct fleet_hold *hold;
    int64_t from, until;
    struct active *active; /* while the sweep is in it */
};
struct active {
    TAILQ_ENTRY(active) in;
    const struct fleet_hold *hold;
    struct exact gpu_eq, within;
    int64_t since;     /* what is before it is in its line */
    struct line *line; /* of the edge; NULL: not needed yet */
    size_t edge;
};
TAILQ_HEAD(actives, active);

/* A tenant in a pool. */
struct usage_group {
    struct map_entry by_key;
    struct usage_group *next;
    struct usage_pool *pool;
    struct str tenant;
    const struct fleet_guarantee **changes;
    size_t n_changes, cap_changes;
    struct spell *spells; /* on the heap */
    size_t n_spells, cap_spells;
};
/* What is idle in a pool, or reserved there, changes. */
struct level {
    int64_t at;
    struct rational change; /* as long as sums of it fit there: there are millions */
};
struct levels {
    struct level *items; /* on the heap */
    size_t n, cap, next; /* next: that the sweep is without */
};
struct usage_pool {
    struct map_entry by_name;
    struct usage_pool *next;
    struct str name;
    struct levels idle, reserved;
};

/* --- groups --- */

static struct usage_pool *pool_of(struct sums *s, struct str name)
{
    struct map_entry *e = map_get(&s->pools, name);
    struct usage_pool *p;

    if (e)
        return CONTAINER(e, struct usage_pool, by_name);
    p = ARENA_NEW(s->scratch, struct usage_pool);
    p->name = name;
    p->next = s->first_pool;
    s->first_pool = p;
    map_put(&s->pools, &p->by_name, p->name);
    return p;
}

static void key_of(struct buf *key, struct str tenant, struct str pool)
{
    buf_reserve(key, 128);
    buf_i64(key, (int64_t)tenant.n);
    buf_char(key, ':');
    buf_add(key, tenant);
    buf_add(key, pool);
}

struct usage_group *fleet_usage_group(struct sums *s, struct str tenant, struct str pool)
{
    struct buf key = BUF_INIT(0);
    struct map_entry *e;

    if (!s->first_group)
        return NULL;
    key_of(&key, tenant, pool);
    e = map_get(&s->groups, buf_str(&key));
    buf_fini(&key);
    return e ? CONTAINER(e, struct usage_group, by_key) : NULL;
}

static struct usage_group *group_new(struct sums *s, const struct fleet_guarantee *of)
{
    struct usage_group *g = ARENA_NEW(s->scratch, struct usage_group);
    struct buf key = BUF_INIT(0);

    key_of(&key, of->tenant, of->pool);
    g->tenant = of->tenant;
    g->pool = pool_of(s, of->pool);
    g->next = s->first_group;
    s->first_group = g;
    map_put(&s->groups, &g->by_key, arena_str(s->scratch, buf_str(&key)));
    buf_fini(&key);
    return g;
}

void fleet_usage_guarantees_begin(struct sums *s)
{
    for (size_t i = 0; i < s->records->n_guarantees; i++) {
        const struct fleet_guarantee *r = &s->records->guarantees[i];
        struct usage_group *g = fleet_usage_group(s, r->tenant, r->pool);

        g = g ? g : group_new(s, r);
        ARENA_GROW(s->scratch, g->changes, g->n_changes, g->cap_changes);
        g->changes[g->n_changes++] = r;
    }
}

/* --- labels --- */

static struct str label_in(struct str labels, struct str key)
{
    while (labels.n) {
        struct str value = str_cut(&labels, '\n'), name = str_cut(&value, '=');

        if (str_eq(name, key))
            return value;
    }
    return STR("");
}

struct str fleet_usage_label(struct sums *s, struct str tenant, struct str pool, int64_t at)
{
    const struct usage_group *g = fleet_usage_group(s, tenant, pool);
    size_t low = 0, high = g ? g->n_changes : 0;

    while (low < high) { /* the first that is later */
        size_t middle = (low + high) / 2;

        if (g->changes[middle]->from_us <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? label_in(g->changes[low - 1]->labels, s->records->label) : STR("");
}

void fleet_usage_label_edges(struct sums *s)
{
    if (!(s->columns & 1u << USAGE_LABEL))
        return;
    for (struct usage_group *g = s->first_group; g; g = g->next)
        for (size_t i = 0; i < g->n_changes; i++) {
            struct str before = i ? g->changes[i - 1]->labels : STR("");

            if (!str_eq(label_in(before, s->records->label),
                        label_in(g->changes[i]->labels, s->records->label)))
                fleet_usage_edge(s, g->changes[i]->from_us);
        }
}

/* --- what is idle or reserved in a pool --- */

struct usage_pool *fleet_usage_pool(struct sums *s, struct str pool)
{
    struct map_entry *e = s->first_pool ? map_get(&s->pools, pool) : NULL;

    return e ? CONTAINER(e, struct usage_pool, by_name) : NULL;
}

/* The level is another one from `at` on. */
static void move_level(struct sums *s, struct levels *l, int64_t at, struct exact *level,
                       struct exact to)
{
    struct exact change;
    struct rational kept;

    if (!exact_cmp(*level, to))
        return;
    if (!exact_sub(to, *level, &change)) {
        s->overflow = true;
        return;
    }
    kept = (struct rational){(int64_t)change.num, (int64_t)change.den};
    s->overflow |= kept.num != change.num || kept.den != change.den;
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap + l->cap / 2 : 64;
        l->items = mem_realloc(l->items, l->cap * sizeof(*l->items));
    }
    l->items[l->n++] = (struct level){at, kept};
    *level = to;
}

void fleet_usage_idle(struct sums *s, struct usage_pool *p, int64_t at, struct exact *level,
                      struct exact to)
{
    if (p)
        move_level(s, &p->idle, at, level, to);
}

void fleet_usage_spell(struct usage_group *g, const struct fleet_hold *hold, int64_t from,
                       int64_t until)
{
    struct spell *last = g && g->n_spells ? &g->spells[g->n_spells - 1] : NULL;

    if (!g)
        return;
    if (last && last->hold == hold && last->until == from) {
        last->until = until;
        return;
    }
    if (g->n_spells == g->cap_spells) {
        g->cap_spells = g->cap_spells ? g->cap_spells * 2 : 16;
        g->spells = mem_realloc(g->spells, g->cap_spells * sizeof(*g->spells));
    }
    g->spells[g->n_spells++] = (struct spell){hold, from, until, NULL};
}

/* --- the sweep of a group --- */

struct sweep {
    struct sums *s;
    struct usage_group *g;
    struct spell **starts, **ends;
    size_t start, end, change; /* the next ones */
    struct actives actives;    /* the oldest first */
    struct active *frontier;   /* NULL: all are within */
    bool bound;
    struct exact guarantee, used, held; /* used: of the guarantee */
    struct exact reserved;              /* now */
    int64_t at;
    size_t edge;
    /* Of this edge, GPU microseconds: */
    struct exact borrowed, unused, by_pods;
};

static struct exact times(struct sums *s, struct exact v, int64_t us)
{
    struct exact product = EXACT_ZERO;

    if (!exact_mul(v, (struct exact){us, 1}, &product))
        s->overflow = true;
    return product;
}

static struct exact minus(struct sums *s, struct exact a, struct exact b)
{
    struct exact difference = EXACT_ZERO;

    if (!exact_sub(a, b, &difference))
        s->overflow = true;
    return difference;
}

static struct exact least(struct exact a, struct exact b)
{
    return exact_cmp(a, b) < 0 ? a : b;
}

/* What it borrowed until now, at the price of what is borrowed: the line has the whole of it at
 * that of what is not. */
static void flush(struct sweep *w, struct active *a)
{
    const struct fleet_price *price;
    struct exact beyond = minus(w->s, a->gpu_eq, a->within), more;
    int64_t us = w->at - a->since;

    a->since = w->at;
    if (!us || !beyond.num)
        return;
    if (!a->line || a->edge != w->edge)
        a->line = fleet_usage_hold_line(w->s, a->hold, w->edge);
    a->edge = w->edge;
    beyond = times(w->s, beyond, us);
    fleet_usage_sum(w->s, &w->by_pods, beyond);
    fleet_usage_sum(w->s, &a->line->line.borrowed, beyond);
    price = fleet_usage_price(w->s, a->hold->pool, w->edge);
    if (!price || !price->borrow.den || price->borrow.num == price->borrow.den)
        return;
    more = minus(w->s, exact_of(price->borrow), (struct exact){1, 1});
    if (!exact_mul(more, exact_of(price->price), &more) ||
        !exact_mul(more, (struct exact){1, HOUR_US}, &more) || !exact_mul(more, beyond, &more))
        w->s->overflow = true;
    else
        fleet_usage_sum(w->s, &a->line->line.cost, more);
}

static void set_within(struct sweep *w, struct active *a, struct exact within)
{
    flush(w, a);
    fleet_usage_sum(w->s, &w->used, minus(w->s, within, a->within));
    a->within = within;
}

/* Whatever is left of the guarantee goes to the oldest that are beyond it. */
static void fill(struct sweep *w)
{
    while (w->frontier && !w->s->overflow) {
        struct active *a = w->frontier;
        struct exact want = minus(w->s, a->gpu_eq, a->within), left;

        left = w->bound ? minus(w->s, w->guarantee, w->used) : want;
        if (left.num <= 0)
            return;
        left = least(left, want);
        fleet_usage_sum(w->s, &left, a->within);
        set_within(w, a, left);
        if (exact_cmp(a->within, a->gpu_eq) < 0)
            return;
        w->frontier = TAILQ_NEXT(a, in);
    }
}

/* Whatever the guarantee lacks is taken from the youngest that are within it. */
static void drain(struct sweep *w)
{
    while (w->bound && exact_cmp(w->used, w->guarantee) > 0 && !w->s->overflow) {
        struct active *a = w->frontier ? w->frontier : TAILQ_LAST(&w->actives, actives);
        struct exact over = minus(w->s, w->used, w->guarantee);

        if (w->frontier && !a->within.num)
            a = TAILQ_PREV(a, actives, in);
        set_within(w, a, minus(w->s, a->within, least(over, a->within)));
        w->frontier = a;
    }
}

static bool is_older(const struct fleet_hold *a, const struct fleet_hold *b)
{
    return a->begin_us != b->begin_us ? a->begin_us < b->begin_us : a < b;
}

/* In its place: a pod whose node came back is not the youngest. */
static void begin_spell(struct sweep *w, struct spell *spell)
{
    struct active *a = NEW(struct active), *before = TAILQ_LAST(&w->actives, actives);

    *a = (struct active){.hold = spell->hold,
                         .gpu_eq = exact_of(spell->hold->gpu_eq),
                         .within = EXACT_ZERO,
                         .since = w->at};
    spell->active = a;
    fleet_usage_sum(w->s, &w->held, a->gpu_eq);
    while (before && is_older(a->hold, before->hold))
        before = TAILQ_PREV(before, actives, in);
    if (before)
        TAILQ_INSERT_AFTER(&w->actives, before, a, in);
    else
        TAILQ_INSERT_HEAD(&w->actives, a, in);
    if (w->frontier && is_older(w->frontier->hold, a->hold))
        return;
    if (!w->frontier && !TAILQ_NEXT(a, in)) {
        w->frontier = a;
        fill(w);
    } else { /* older than some that are within: it is, and the youngest of them are not */
        set_within(w, a, a->gpu_eq);
        drain(w);
    }
}

static void end_spell(struct sweep *w, struct spell *spell)
{
    struct active *a = spell->active;

    set_within(w, a, a->within);
    w->used = minus(w->s, w->used, a->within);
    w->held = minus(w->s, w->held, a->gpu_eq);
    if (w->frontier == a)
        w->frontier = TAILQ_NEXT(a, in);
    TAILQ_REMOVE(&w->actives, a, in);
    spell->active = mem_free(a);
    fill(w);
}

static void change_guarantee(struct sweep *w, const struct fleet_guarantee *to)
{
    w->bound = to->bound;
    w->guarantee = exact_of(to->guarantee);
    drain(w);
    fill(w);
}

/* All that happens at this moment. */
static void happen(struct sweep *w)
{
    const struct usage_group *g = w->g;

    while (w->end < g->n_spells && w->ends[w->end]->until <= w->at)
        end_spell(w, w->ends[w->end++]);
    while (w->change < g->n_changes && g->changes[w->change]->from_us <= w->at)
        change_guarantee(w, g->changes[w->change++]);
    while (w->start < g->n_spells && w->starts[w->start]->from <= w->at)
        begin_spell(w, w->starts[w->start++]);
}

static int64_t next_event(const struct sweep *w, int64_t until)
{
    const struct usage_group *g = w->g;

    if (w->end < g->n_spells && w->ends[w->end]->until < until)
        until = w->ends[w->end]->until;
    if (w->start < g->n_spells && w->starts[w->start]->from < until)
        until = w->starts[w->start]->from;
    if (w->change < g->n_changes && g->changes[w->change]->from_us < until)
        until = g->changes[w->change]->from_us;
    return until;
}

static void pass(struct sweep *w, int64_t until)
{
    struct exact left = w->bound ? minus(w->s, w->guarantee, w->held) : EXACT_ZERO;
    struct exact unused = left.num > 0 ? left : EXACT_ZERO;
    int64_t us = until - w->at;

    move_level(w->s, &w->g->pool->reserved, w->at, &w->reserved, unused);
    w->s->bound |= w->bound;
    if (left.num < 0)
        fleet_usage_sum(w->s, &w->borrowed, times(w->s, (struct exact){-left.num, left.den}, us));
    else
        fleet_usage_sum(w->s, &w->unused, times(w->s, unused, us));
    w->at = until;
}

static void book_edge(struct sweep *w)
{
    struct sums *s = w->s;
    struct active *a;
    struct fleet_usage_balance *b;

    TAILQ_FOREACH(a, &w->actives, in) flush(w, a);
    if (exact_cmp(w->borrowed, w->by_pods))
        s->split = arena_str(s->a, w->g->tenant);
    if (w->borrowed.num || w->unused.num) {
        b = fleet_usage_balance(s, w->g->pool->name, s->months[w->edge]);
        fleet_usage_sum(s, &b->borrowed, w->borrowed);
        fleet_usage_sum(s, &b->reserved, w->unused);
    }
    if (w->unused.num) {
        const struct fleet_price *price = fleet_usage_price(s, w->g->pool->name, w->edge);
        const struct str values[N_USAGE_COLUMNS] = {
            [USAGE_TENANT] = w->g->tenant,
            [USAGE_POOL] = w->g->pool->name,
            [USAGE_LABEL] = fleet_usage_label(s, w->g->tenant, w->g->pool->name, s->edges[w->edge]),
            [USAGE_MONTH] = s->months[w->edge],
        };
        struct line *line =
            fleet_usage_line(s, USAGE_HELD, values, price ? price->currency : STR(""));

        fleet_usage_sum(s, &line->line.reserved, w->unused);
    }
    w->borrowed = w->unused = w->by_pods = EXACT_ZERO;
}

static int order_starts(const void *x, const void *y)
{
    const struct spell *a = *(struct spell *const *)x, *b = *(struct spell *const *)y;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->hold == b->hold)
        return 0;
    return is_older(a->hold, b->hold) ? -1 : 1;
}

static int order_ends(const void *x, const void *y)
{
    const struct spell *a = *(struct spell *const *)x, *b = *(struct spell *const *)y;

    if (a->until != b->until)
        return a->until < b->until ? -1 : 1;
    return (a > b) - (a < b);
}

static void sweep_group(struct sums *s, struct usage_group *g)
{
    struct sweep w = {.s = s,
                      .g = g,
                      .starts = mem_alloc((g->n_spells + 1) * sizeof(*w.starts)),
                      .ends = mem_alloc((g->n_spells + 1) * sizeof(*w.ends)),
                      .guarantee = EXACT_ZERO,
                      .used = EXACT_ZERO,
                      .held = EXACT_ZERO,
                      .reserved = EXACT_ZERO,
                      .borrowed = EXACT_ZERO,
                      .unused = EXACT_ZERO,
                      .by_pods = EXACT_ZERO};

    TAILQ_INIT(&w.actives);
    for (size_t i = 0; i < g->n_spells; i++)
        w.starts[i] = w.ends[i] = &g->spells[i];
    qsort(w.starts, g->n_spells, sizeof(*w.starts), order_starts);
    qsort(w.ends, g->n_spells, sizeof(*w.ends), order_ends);
    for (; w.edge + 1 < s->n_edges && !s->overflow; w.edge++) {
        w.at = s->edges[w.edge];
        while (w.at < s->edges[w.edge + 1]) {
            happen(&w);
            pass(&w, next_event(&w, s->edges[w.edge + 1]));
        }
        book_edge(&w);
    }
    for (struct active *a; (a = TAILQ_FIRST(&w.actives));) {
        TAILQ_REMOVE(&w.actives, a, in);
        mem_free(a);
    }
    mem_free(w.starts);
    mem_free(w.ends);
}

/* --- what was idle for a guarantee --- */

static int order_levels(const void *a, const void *b)
{
    const struct level *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static void sort_levels(struct levels *l)
{
    if (l->n)
        qsort(l->items, l->n, sizeof(*l->items), order_levels);
}

/* The sum of what changes until then; *then: the next change before it. */
static void take_levels(struct sums *s, struct levels *l, int64_t at, struct exact *sum,
                        int64_t *then)
{
    for (; l->next < l->n && l->items[l->next].at <= at; l->next++)
        fleet_usage_sum(s, sum, exact_of(l->items[l->next].change));
    if (l->next < l->n && l->items[l->next].at < *then)
        *then = l->items[l->next].at;
}

static void sweep_pool(struct sums *s, struct usage_pool *p)
{
    struct exact idle = EXACT_ZERO, reserved = EXACT_ZERO;

    sort_levels(&p->idle);
    sort_levels(&p->reserved);
    for (size_t edge = 0; edge + 1 < s->n_edges && !s->overflow; edge++) {
        struct exact sum = EXACT_ZERO;

        for (int64_t at = s->edges[edge], end = s->edges[edge + 1], then; at < end; at = then) {
            then = end;
            take_levels(s, &p->idle, at, &idle, &then);
            take_levels(s, &p->reserved, at, &reserved, &then);
            if (idle.num > 0 && reserved.num > 0)
                fleet_usage_sum(s, &sum, times(s, least(idle, reserved), then - at));
        }
        if (sum.num)
            fleet_usage_sum(s, &fleet_usage_balance(s, p->name, s->months[edge])->reserved_idle,
                            sum);
    }
}

void fleet_usage_guarantees_end(struct sums *s)
{
    for (struct usage_group *g = s->first_group; g; g = g->next) {
        sweep_group(s, g);
        g->spells = mem_free(g->spells);
    }
    for (struct usage_pool *p = s->first_pool; p; p = p->next) {
        sweep_pool(s, p);
        p->idle.items = mem_free(p->idle.items);
        p->reserved.items = mem_free(p->reserved.items);
    }
    map_clear(&s->groups);
    map_clear(&s->pools);
    s->first_group = NULL;
    s->first_pool = NULL;
}
