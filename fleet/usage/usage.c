/* SPDX-License-Identifier: Apache-2.0 */
/* From the records of a ledger to lines of a report. Two independent paths meet in the check at the
 * end: what pods held is summed pod by pod, what was idle or unhealthy by sweeping over each node's
 * time, and both together must be the capacity that the nodes had, exactly. Either touches a hold
 * once: a year has millions. Must not round, and must not trust the records to be consistent: pods
 * may hold more than a node is known to have. */
#include "usage.h"

#include <assert.h>
#include <stdlib.h>

#include <sublet/clock.h>

#define SECOND_US   INT64_C(1000000)
#define HOUR_US     (3600 * SECOND_US)
#define TOO_GREAT   "a sum of the report does not fit"
#define MONTH_CHARS 7

const char *const FLEET_USAGE_COLUMNS[N_USAGE_COLUMNS] = {
    [USAGE_TENANT] = "tenant", [USAGE_NAMESPACE] = "namespace", [USAGE_OWNER] = "owner",
    [USAGE_POD] = "pod",       [USAGE_POOL] = "pool",           [USAGE_PRODUCT] = "product",
    [USAGE_NODE] = "node",     [USAGE_MODE] = "mode",           [USAGE_LABEL] = "label",
    [USAGE_REASON] = "reason", [USAGE_MONTH] = "month",
};

/* A stretch of a node's time for a pool, in which its capacity does not change. */
struct piece {
    int64_t from, until;
    const struct fleet_capacity *capacity; /* NULL: none on record */
};
/* What is held changes. */
struct event {
    int64_t at;
    struct exact change;
};
/* A node's time for a pool. */
struct track {
    struct str node, pool;
    struct piece *pieces;
    size_t n_pieces;
    struct fleet_hold **holds;
    size_t n_holds;
    struct fleet_usage_balance **balances; /* of the months of the edges; NULL: not needed yet */
    struct usage_pool *guaranteed;         /* NULL: without guarantees */
    /* The sweep: */
    struct event *events;
    size_t n_events, next; /* the first one that `held` is without */
    struct exact held, idle;
};

/* --- time --- */

static struct str month_of(struct arena *a, int64_t us)
{
    return str_sub(time_format_us(a, us), 0, MONTH_CHARS);
}

static int64_t next_month(struct arena *a, int64_t us)
{
    struct str now = month_of(a, us);
    int64_t at = us;

    /* No month is longer: its second is in the next one. */
    for (int days = 28; str_eq(month_of(a, at), now); days++)
        at = us + days * 24 * HOUR_US;
    struct str first = arena_printf(a, "%.*s-01T00:00:00Z", STR_F(month_of(a, at)));
    bool is_time = time_parse(first, &at);

    assert(is_time);
    return at;
}

static int order_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

void fleet_usage_edge(struct sums *s, int64_t at)
{
    if (at < s->from || at > s->until)
        return;
    ARENA_GROW(s->scratch, s->edges, s->n_edges, s->cap_edges);
    s->edges[s->n_edges++] = at;
}

/* Where lines are split: ends of the period and of months, changes of prices and labels. */
static void make_edges(struct sums *s)
{
    size_t n = 0;

    s->edges = NULL;
    s->n_edges = s->cap_edges = 0;
    fleet_usage_edge(s, s->from);
    fleet_usage_edge(s, s->until);
    for (int64_t at = next_month(s->scratch, s->from); at < s->until;
         at = next_month(s->scratch, at))
        fleet_usage_edge(s, at);
    for (size_t i = 0; i < s->records->n_prices; i++)
        fleet_usage_edge(s, s->records->prices[i].from_us);
    fleet_usage_label_edges(s);
    qsort(s->edges, s->n_edges, sizeof(*s->edges), order_times);
    for (size_t i = 0; i < s->n_edges; i++)
        if (n == 0 || s->edges[i] != s->edges[n - 1])
            s->edges[n++] = s->edges[i];
    s->n_edges = n;
    s->months = arena_alloc(s->scratch, n * sizeof(*s->months));
    for (size_t i = 0; i < n; i++)
        s->months[i] = month_of(s->scratch, s->edges[i]);
}

/* The edge from which on `at` is, which is not before the first. */
static size_t edge_of(const struct sums *s, int64_t at)
{
    size_t low = 0, high = s->n_edges;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        *(s->edges[middle] <= at ? &low : &high) = middle;
    }
    return low;
}

static struct fleet_usage_balance *balance_at(struct sums *s, const struct track *t, size_t edge)
{
    if (!t->balances[edge])
        t->balances[edge] = fleet_usage_balance(s, t->pool, s->months[edge]);
    return t->balances[edge];
}

/* --- lines --- */

static const struct fleet_price *price_at(const struct sums *s, struct str pool, int64_t at)
{
    const struct fleet_price *found = NULL;

    for (size_t i = 0; i < s->records->n_prices; i++) {
        const struct fleet_price *p = &s->records->prices[i];

        if (str_eq(p->pool, pool) && (!found || p->from_us <= at))
            found = p; /* what was before the first one on record costs as much as that */
    }
    return found;
}

/* gpu_eq for an interval that no edge divides, into a line and its price. */
static void add_priced(struct sums *s, struct line *line, const struct fleet_price *price,
                       struct exact gpu_us)
{
    struct exact cost;

    fleet_usage_sum(s, &line->line.gpu_us, gpu_us);
    if (!price)
        return;
    if (!exact_mul(gpu_us, exact_of(price->price), &cost) ||
        !exact_mul(cost, (struct exact){1, HOUR_US}, &cost))
        s->overflow = true;
    else {
        fleet_usage_sum(s, &line->line.cost, cost);
        fleet_usage_sum(s, &line->line.list, cost);
    }
}

static void hold_values(const struct fleet_hold *hold, struct str values[N_USAGE_COLUMNS])
{
    values[USAGE_TENANT] = hold->tenant;
    values[USAGE_NAMESPACE] = hold->ns;
    values[USAGE_OWNER] = hold->owner;
    values[USAGE_POD] = hold->name;
    values[USAGE_MODE] = hold->mode;
    values[USAGE_REASON] = hold->end_us == FLEET_OPEN ? STR("Running") : hold->reason;
}

const struct fleet_price *fleet_usage_price(const struct sums *s, struct str pool, size_t edge)
{
    return price_at(s, pool, s->edges[edge]);
}

struct line *fleet_usage_hold_line(struct sums *s, const struct fleet_hold *hold, size_t edge)
{
    const struct fleet_price *price = fleet_usage_price(s, hold->pool, edge);
    struct str values[N_USAGE_COLUMNS] = {
        [USAGE_POOL] = hold->pool,
        [USAGE_PRODUCT] = hold->product,
        [USAGE_NODE] = hold->node,
        [USAGE_MONTH] = s->months[edge],
    };

    hold_values(hold, values);
    if (s->columns & 1u << USAGE_LABEL)
        values[USAGE_LABEL] = fleet_usage_label(s, hold->tenant, hold->pool, s->edges[edge]);
    return fleet_usage_line(s, USAGE_HELD, values, price ? price->currency : STR(""));
}

static void add_to_line(struct sums *s, const struct track *t, enum usage_kind kind,
                        struct str product, size_t edge, struct exact gpu_us)
{
    const struct fleet_price *price = price_at(s, t->pool, s->edges[edge]);
    const struct str values[N_USAGE_COLUMNS] = {
        [USAGE_POOL] = t->pool,
        [USAGE_PRODUCT] = product,
        [USAGE_NODE] = t->node,
        [USAGE_MONTH] = s->months[edge],
    };

    add_priced(s, fleet_usage_line(s, kind, values, price ? price->currency : STR("")), price,
               gpu_us);
}

/* A hold that more than one part touches, and the lines that count it. */
struct spanning {
    struct map_entry by_uid;
    struct str uid; /* on the heap */
    int64_t end_us;
    struct line **lines;
    size_t n, cap;
};

static struct spanning *spanning_of(struct sums *s, const struct fleet_hold *hold)
{
    struct map_entry *e = map_get(&s->spanning, hold->pod_uid);
    struct spanning *found;

    if (e)
        return CONTAINER(e, struct spanning, by_uid);
    found = NEW(struct spanning);
    found->uid = mem_str(hold->pod_uid);
    found->end_us = hold->end_us;
    map_put(&s->spanning, &found->by_uid, found->uid);
    return found;
}

static void forget_ended(void *ctx, struct map_entry *e)
{
    struct sums *s = ctx;
    struct spanning *p = CONTAINER(e, struct spanning, by_uid);

    if (p->end_us > s->until && s->until < s->whole_until)
        return;
    map_remove(&s->spanning, e);
    mem_free(p->uid.p);
    mem_free(p->lines);
    mem_free(p);
}

/* False: an earlier part counted the hold in this line. */
static bool is_first(struct sums *s, const struct fleet_hold *hold, struct line *line)
{
    bool earlier = hold->begin_us < s->from && s->from > s->whole_from;
    bool later = hold->end_us > s->until && s->until < s->whole_until;
    struct spanning *p = earlier || later ? spanning_of(s, hold) : NULL;

    if (!p)
        return true;
    for (size_t i = 0; i < p->n; i++)
        if (p->lines[i] == line)
            return false;
    GROW(p->lines, p->n, p->cap);
    p->lines[p->n++] = line;
    return true;
}

static struct line *add_hold(struct sums *s, const struct fleet_hold *hold, size_t edge,
                             struct exact gpu_us)
{
    struct line *line = fleet_usage_hold_line(s, hold, edge);
    uint64_t number = s->counted + (uint64_t)(hold - s->records->holds) + 1;

    add_priced(s, line, fleet_usage_price(s, hold->pool, edge), gpu_us);
    if (line->last == number)
        return line;
    line->last = number;
    if (!is_first(s, hold, line))
        return line;
    line->line.pods++;
    line->line.estimated += hold->estimated;
    line->line.open += hold->end_us == FLEET_OPEN;
    return line;
}

static struct exact times(struct sums *s, struct exact v, int64_t us)
{
    struct exact product = EXACT_ZERO;

    if (!exact_mul(v, (struct exact){us, 1}, &product))
        s->overflow = true;
    return product;
}

/* --- what pods did with it --- */

/* Of a time that no edge divides. */
static void add_use(struct sums *s, struct line *line, const struct fleet_hold *hold, int64_t x,
                    int64_t y)
{
    const struct fleet_activity *list = s->records->activities;
    int64_t idle_us = 0, unknown_us = 0;

    for (size_t i = 0; i <= hold->n_activities; i++) { /* 0: before the first */
        const struct fleet_activity *now = i ? &list[hold->activity + i - 1] : NULL;
        int64_t from = now && now->from_us > x ? now->from_us : x, until = y;

        if (i < hold->n_activities && list[hold->activity + i].from_us < until)
            until = list[hold->activity + i].from_us;
        if (from >= until)
            continue;
        if (!now || now->use == FLEET_USE_UNKNOWN)
            unknown_us += until - from;
        else if (now->use != FLEET_USE_BUSY)
            idle_us += until - from;
    }
    fleet_usage_sum(s, &line->line.idle_held, times(s, exact_of(hold->gpu_eq), idle_us));
    fleet_usage_sum(s, &line->line.unmeasured, times(s, exact_of(hold->gpu_eq), unknown_us));
}

/* --- what pods held --- */

static void bill(struct sums *s, const struct track *t, const struct fleet_hold *hold,
                 struct usage_group *group, const struct piece *piece)
{
    int64_t from = hold->begin_us > piece->from ? hold->begin_us : piece->from;
    int64_t until = hold->end_us < piece->until ? hold->end_us : piece->until;

    if (from >= until || (piece->capacity && piece->capacity->down))
        return;
    fleet_usage_spell(group, hold, from, until);
    for (size_t i = edge_of(s, from); i + 1 < s->n_edges && s->edges[i] < until; i++) {
        int64_t x = from > s->edges[i] ? from : s->edges[i];
        int64_t y = until < s->edges[i + 1] ? until : s->edges[i + 1];
        struct exact gpu_us;
        struct line *line;

        if (x >= y)
            continue;
        gpu_us = times(s, exact_of(hold->gpu_eq), y - x);
        fleet_usage_sum(s, &balance_at(s, t, i)->held, gpu_us);
        line = add_hold(s, hold, i, gpu_us);
        if (s->measured)
            add_use(s, line, hold, x, y);
    }
}

/* The pieces are in order and without gaps. */
static void bill_hold(struct sums *s, const struct track *t, const struct fleet_hold *hold)
{
    struct usage_group *group = fleet_usage_group(s, hold->tenant, hold->pool);
    size_t low = 0, high = t->n_pieces;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        *(t->pieces[middle].from <= hold->begin_us ? &low : &high) = middle;
    }
    for (; low < t->n_pieces && t->pieces[low].from < hold->end_us; low++)
        bill(s, t, hold, group, &t->pieces[low]);
}

/* --- idle and unhealthy: a sweep over the cells between edges --- */

static int order_events(const void *a, const void *b)
{
    return order_times(&((const struct event *)a)->at, &((const struct event *)b)->at);
}

static void make_events(struct track *t)
{
    size_t n = 0;

    t->events = NULL;
    if (t->n_holds)
        t->events = mem_alloc(2 * t->n_holds * sizeof(*t->events));
    for (size_t i = 0; i < t->n_holds; i++) {
        const struct fleet_hold *h = t->holds[i];
        struct exact gpu_eq = exact_of(h->gpu_eq);

        if (h->begin_us >= h->end_us)
            continue;
        t->events[n++] = (struct event){h->begin_us, gpu_eq};
        t->events[n++] = (struct event){h->end_us, {-gpu_eq.num, gpu_eq.den}};
    }
    if (n)
        qsort(t->events, n, sizeof(*t->events), order_events);
    t->n_events = n;
    t->next = 0;
    t->held = EXACT_ZERO;
}

/* The next event before `until`, which held has then; its time, or `until`. */
static int64_t take_event(struct sums *s, struct track *t, int64_t until)
{
    if (t->next == t->n_events || t->events[t->next].at >= until)
        return until;
    fleet_usage_sum(s, &t->held, t->events[t->next].change);
    return t->events[t->next++].at;
}

struct cell {
    struct exact total, broken;              /* of the node */
    struct exact idle, unhealthy, unmatched; /* GPU microseconds */
};

static void sweep_interval(struct sums *s, struct track *t, struct cell *c, struct exact held,
                           int64_t at, int64_t us)
{
    struct exact left, unhealthy = c->broken, idle;

    if (us == 0)
        return;
    if (!exact_sub(c->total, held, &left)) {
        s->overflow = true;
        return;
    }
    if (left.num < 0) {
        fleet_usage_idle(s, t->guaranteed, at, &t->idle, EXACT_ZERO);
        fleet_usage_sum(s, &c->unmatched, times(s, (struct exact){-left.num, left.den}, us));
        return;
    }
    if (exact_cmp(unhealthy, left) > 0)
        unhealthy = left;
    if (!exact_sub(left, unhealthy, &idle)) {
        s->overflow = true;
        return;
    }
    fleet_usage_idle(s, t->guaranteed, at, &t->idle, idle);
    fleet_usage_sum(s, &c->unhealthy, times(s, unhealthy, us));
    fleet_usage_sum(s, &c->idle, times(s, idle, us));
}

/* Cells come in order of time. */
static void sweep_cell(struct sums *s, struct track *t, struct cell *c, bool down, int64_t x,
                       int64_t y)
{
    int64_t at = x;

    while (t->next < t->n_events && t->events[t->next].at <= x)
        (void)take_event(s, t, y);
    if (down) { /* whatever its pods still hold */
        fleet_usage_idle(s, t->guaranteed, x, &t->idle, EXACT_ZERO);
        c->unhealthy = times(s, c->total, y - x);
        return;
    }
    while (at < y) {
        struct exact held = t->held;
        int64_t next = take_event(s, t, y);

        sweep_interval(s, t, c, held, at, next - at);
        at = next;
    }
}

static void account(struct sums *s, struct track *t, const struct piece *piece, size_t edge,
                    int64_t x, int64_t y)
{
    const struct fleet_capacity *k = piece->capacity;
    struct cell c = {EXACT_ZERO, EXACT_ZERO, EXACT_ZERO, EXACT_ZERO, EXACT_ZERO};
    struct fleet_usage_balance *b = balance_at(s, t, edge);

    if (k) {
        c.total = exact_of(k->total);
        c.broken = exact_of(k->unhealthy);
    }
    sweep_cell(s, t, &c, k && k->down, x, y);
    fleet_usage_sum(s, &b->capacity, times(s, c.total, y - x));
    fleet_usage_sum(s, &b->idle, c.idle);
    fleet_usage_sum(s, &b->unhealthy, c.unhealthy);
    fleet_usage_sum(s, &b->unmatched, c.unmatched);
    if (c.idle.num)
        add_to_line(s, t, USAGE_IDLE, k->product, edge, c.idle);
    if (c.unhealthy.num)
        add_to_line(s, t, USAGE_UNHEALTHY, k->product, edge, c.unhealthy);
}

static void account_piece(struct sums *s, struct track *t, const struct piece *piece)
{
    for (size_t i = edge_of(s, piece->from); i + 1 < s->n_edges; i++) {
        int64_t x = piece->from > s->edges[i] ? piece->from : s->edges[i];
        int64_t y = piece->until < s->edges[i + 1] ? piece->until : s->edges[i + 1];

        if (s->edges[i] >= piece->until)
            break;
        if (x < y)
            account(s, t, piece, i, x, y);
    }
}

/* --- tracks --- */

/* The reader has a name once. */
static int order_names(struct str a, struct str b)
{
    return a.p == b.p && a.n == b.n ? 0 : str_cmp(a, b);
}

static int order_track(struct str node, struct str pool, struct str node2, struct str pool2)
{
    int by_node = order_names(node, node2);

    return by_node ? by_node : order_names(pool, pool2);
}

/* The records of one track stay in their order. */
static int order_capacities(const void *a, const void *b)
{
    const struct fleet_capacity *x = *(struct fleet_capacity *const *)a,
                                *y = *(struct fleet_capacity *const *)b;
    int by_track = order_track(x->node, x->pool, y->node, y->pool);

    return by_track ? by_track : (x > y) - (x < y);
}

static int order_holds(const void *a, const void *b)
{
    const struct fleet_hold *x = *(struct fleet_hold *const *)a,
                            *y = *(struct fleet_hold *const *)b;
    int by_track = order_track(x->node, x->pool, y->node, y->pool);

    return by_track ? by_track : (x > y) - (x < y);
}

static void add_piece(struct track *t, struct piece piece)
{
    if (piece.from < piece.until)
        t->pieces[t->n_pieces++] = piece;
}

/* The period as pieces; a record that is not later than the next one before it has no time. */
static void make_pieces(struct sums *s, struct track *t, struct fleet_capacity *const *records,
                        size_t n)
{
    struct piece piece = {s->from, s->until, NULL};

    t->pieces = arena_alloc(s->scratch, (n + 1) * sizeof(*t->pieces));
    t->n_pieces = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t at = records[i]->from_us;

        at = at < piece.from ? piece.from : at > s->until ? s->until : at;
        add_piece(t, (struct piece){piece.from, at, piece.capacity});
        piece = (struct piece){at, s->until, records[i]};
    }
    add_piece(t, piece);
}

static void compute_track(struct sums *s, struct track *t)
{
    t->balances = mem_alloc(s->n_edges * sizeof(*t->balances));
    t->guaranteed = fleet_usage_pool(s, t->pool);
    t->idle = EXACT_ZERO;
    make_events(t);
    for (size_t i = 0; i < t->n_pieces; i++)
        account_piece(s, t, &t->pieces[i]);
    mem_free(t->events);
    for (size_t i = 0; i < t->n_holds; i++)
        bill_hold(s, t, t->holds[i]);
    mem_free(t->balances);
}

/* Pointers to the items of an array, sorted. */
#define SORTED(s, items, n, order)                                                                 \
    sorted((s)->scratch, (char *)(items), (n), sizeof(*(items)), (order))
static void **sorted(struct arena *a, char *items, size_t n, size_t size,
                     int (*order)(const void *, const void *))
{
    void **pointers = arena_alloc(a, (n + 1) * sizeof(*pointers));

    for (size_t i = 0; i < n; i++)
        pointers[i] = items + i * size;
    qsort(pointers, n, sizeof(*pointers), order);
    return pointers;
}

static void compute(struct sums *s)
{
    const struct fleet_records *r = s->records;
    struct fleet_capacity **capacities =
        (struct fleet_capacity **)SORTED(s, r->capacities, r->n_capacities, order_capacities);
    struct fleet_hold **holds = (struct fleet_hold **)SORTED(s, r->holds, r->n_holds, order_holds);
    size_t c = 0, h = 0;

    while (c < r->n_capacities || h < r->n_holds) {
        bool by_hold =
            c == r->n_capacities ||
            (h < r->n_holds && order_track(holds[h]->node, holds[h]->pool, capacities[c]->node,
                                           capacities[c]->pool) < 0);
        struct track t = {.node = by_hold ? holds[h]->node : capacities[c]->node,
                          .pool = by_hold ? holds[h]->pool : capacities[c]->pool,
                          .holds = &holds[h]};
        size_t first = c;

        while (c < r->n_capacities &&
               !order_track(t.node, t.pool, capacities[c]->node, capacities[c]->pool))
            c++;
        for (; h < r->n_holds && !order_track(t.node, t.pool, holds[h]->node, holds[h]->pool); h++)
            t.n_holds++;
        make_pieces(s, &t, &capacities[first], c - first);
        compute_track(s, &t);
    }
}

/* --- the whole --- */

static int check_balance(struct sums *s, const struct fleet_usage_balance *b, struct err *err)
{
    struct exact used = b->held, owned = b->capacity;

    if (s->split.n)
        return err_set(err, &ERR_INTERNAL,
                       "what pods of tenant \"%.*s\" borrowed is not what it did", STR_F(s->split));
    if (exact_cmp(b->borrowed, b->held) > 0 || exact_cmp(b->reserved_idle, b->idle) > 0 ||
        exact_cmp(b->reserved_idle, b->reserved) > 0)
        return err_set(err, &ERR_INTERNAL,
                       "pool \"%.*s\", %.*s: more is borrowed than held, or reserved than idle",
                       STR_F(b->pool), STR_F(b->month));

    fleet_usage_sum(s, &used, b->idle);
    fleet_usage_sum(s, &used, b->unhealthy);
    fleet_usage_sum(s, &owned, b->unmatched);
    if (s->overflow)
        return err_set(err, &ERR_TOO_LARGE, TOO_GREAT);
    if (!exact_cmp(used, owned))
        return 0;
    return err_set(err, &ERR_INTERNAL,
                   "pool \"%.*s\", %.*s: held, idle and unhealthy are %.*s GPU microseconds, "
                   "capacity is %.*s",
                   STR_F(b->pool), STR_F(b->month), STR_F(exact_fraction(s->a, used)),
                   STR_F(exact_fraction(s->a, owned)));
}

/* Reports print hours: what does not fit as such is refused here. */
static bool fits_in_hours(const struct usage *u)
{
    const struct exact hour = {1, HOUR_US};
    struct exact unused;
    bool fits = true;

    for (size_t i = 0; i < u->n_lines; i++)
        fits &= exact_mul(u->lines[i]->gpu_us, hour, &unused) &&
                exact_sub(u->lines[i]->gpu_us, u->lines[i]->borrowed, &unused) &&
                exact_mul(unused, hour, &unused) &&
                exact_mul(u->lines[i]->borrowed, hour, &unused) &&
                exact_mul(u->lines[i]->idle_held, hour, &unused) &&
                exact_mul(u->lines[i]->unmeasured, hour, &unused) &&
                exact_mul(u->lines[i]->reserved, hour, &unused);
    for (size_t i = 0; i < u->n_balances; i++) {
        const struct fleet_usage_balance *b = &u->balances[i];

        fits &= exact_mul(b->capacity, hour, &unused) && exact_mul(b->held, hour, &unused) &&
                exact_mul(b->idle, hour, &unused) && exact_mul(b->unhealthy, hour, &unused) &&
                exact_mul(b->unmatched, hour, &unused) && exact_mul(b->borrowed, hour, &unused) &&
                exact_mul(b->reserved, hour, &unused) && exact_mul(b->reserved_idle, hour, &unused);
    }
    return fits;
}

static int64_t unobserved(const struct sums *s, const struct fleet_records *records)
{
    int64_t sum = 0;

    for (size_t i = 0; i < records->n_gaps; i++) {
        const struct fleet_gap *g = &records->gaps[i];
        int64_t x = g->from_us > s->whole_from ? g->from_us : s->whole_from;
        int64_t y = g->until_us < s->whole_until ? g->until_us : s->whole_until;

        sum += x < y ? y - x : 0;
    }
    return sum;
}

bool fleet_usage_start(struct sums *s, struct arena *a, const struct fleet_records *records,
                       int64_t from_us, int64_t until_us, unsigned columns, struct usage *ret)
{
    int64_t from = from_us > records->begin_us ? from_us : records->begin_us;
    int64_t until = until_us < records->seen_us ? until_us : records->seen_us;

    *ret = (struct usage){.from_us = from, .until_us = from < until ? until : from};
    *s = (struct sums){.a = a,
                       .columns = columns,
                       .whole_from = from,
                       .whole_until = ret->until_us,
                       .until = from,
                       .measured = records->measured || records->n_activities};
    return from < until;
}

void fleet_usage_mention(struct sums *s, struct str pool)
{
    struct arena *a = arena_new(0);

    for (int64_t at = s->whole_from; at < s->whole_until; at = next_month(a, at))
        fleet_usage_balance(s, pool, month_of(a, at));
    arena_free(a);
}

void fleet_usage_part(struct sums *s, const struct fleet_records *records, int64_t until_us)
{
    s->scratch = arena_new(0);
    s->records = records;
    s->from = s->until;
    s->until = until_us;
    assert(s->from < s->until && s->until <= s->whole_until);
    fleet_usage_guarantees_begin(s);
    make_edges(s);
    compute(s);
    fleet_usage_guarantees_end(s);
    map_each(&s->spanning, forget_ended, s);
    s->counted += records->n_holds;
    s->records = NULL;
    s->scratch = arena_free(s->scratch);
}

void fleet_usage_drop(struct sums *s)
{
    s->until = s->whole_until;
    map_each(&s->spanning, forget_ended, s);
    map_clear(&s->lines);
    map_clear(&s->balances);
}

int fleet_usage_total(struct sums *s, const struct fleet_records *records, struct usage *ret,
                      struct err *err)
{
    assert(s->until == s->whole_until);
    fleet_usage_finish(s, ret);
    ret->bound = s->bound;
    ret->label = records->label;
    ret->measured = s->measured;
    if (s->overflow || !fits_in_hours(ret))
        return err_set(err, &ERR_TOO_LARGE, TOO_GREAT);
    for (size_t i = 0; i < ret->n_balances; i++)
        if (check_balance(s, &ret->balances[i], err))
            return -1;
    ret->unobserved_us = unobserved(s, records);
    return 0;
}

int fleet_usage_compute(struct arena *a, const struct fleet_records *records, int64_t from_us,
                        int64_t until_us, unsigned columns, struct usage *ret, struct err *err)
{
    struct sums s;

    if (!fleet_usage_start(&s, a, records, from_us, until_us, columns, ret))
        return 0;
    fleet_usage_part(&s, records, s.whole_until);
    return fleet_usage_total(&s, records, ret, err);
}
