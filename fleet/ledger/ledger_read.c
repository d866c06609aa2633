/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of the ledger, for reports and for the process that goes on with it, in one read
 * transaction: all rows at once, or holds a part at a time. A year has millions of holds, whose
 * nodes, tenants and owners are few: a string that recurs is in memory once, and holds are counted
 * before they are read. Must not change the ledger, nor lock out its writer. */
#include "ledger_rows.h"

#include <stdlib.h>

#include <sublet/buf.h>

#define MOST_INTERNED 65536 /* strings; of what is different in each row no more is gained */

struct interned {
    struct map_entry by_string;
    struct str string;
};

static struct str string(struct ledger_reading *r, struct ledger_query *q, int column)
{
    return arena_str(r->rows, ledger_str(q, column));
}

/* The same for columns whose values recur. */
static struct str shared(struct ledger_reading *r, struct ledger_query *q, int column)
{
    struct str value = ledger_str(q, column);
    struct map_entry *e = map_get(&r->interned, value);
    struct interned *i;

    if (e)
        return CONTAINER(e, struct interned, by_string)->string;
    if (map_count(&r->interned) >= MOST_INTERNED)
        return arena_str(r->rows, value);
    i = ARENA_NEW(r->a, struct interned);
    i->string = arena_str(r->a, value);
    map_put(&r->interned, &i->by_string, i->string);
    return i->string;
}

static struct rational fraction(struct ledger_query *q, int column)
{
    return (struct rational){ledger_int(q, column), ledger_int(q, column + 1)};
}

static void read_hold(struct ledger_reading *r, struct ledger_query *q)
{
    struct fleet_records *all = r->records;
    struct fleet_hold *h;

    if (all->n_holds == r->caps[0]) /* as many as were counted, in one transaction */
        return;
    r->ids[all->n_holds] = ledger_int(q, 17);
    h = &all->holds[all->n_holds++];
    *h = (struct fleet_hold){.pod_uid = string(r, q, 0),
                             .tenant = shared(r, q, 1),
                             .cluster = shared(r, q, 2),
                             .ns = shared(r, q, 3),
                             .name = string(r, q, 4),
                             .owner = shared(r, q, 5),
                             .node = shared(r, q, 6),
                             .pool = shared(r, q, 7),
                             .product = shared(r, q, 8),
                             .resources = shared(r, q, 9),
                             .mode = shared(r, q, 16),
                             .gpu_eq = fraction(q, 10),
                             .begin_us = ledger_int(q, 12),
                             .end_us = FLEET_OPEN};
    if (q->db->ops->is_null(q, 13))
        return;
    h->end_us = ledger_int(q, 13);
    h->reason = shared(r, q, 14);
    h->estimated = ledger_int(q, 15);
}

/* Rows of a node and pool, or of the prices of a pool, in the order of ids, each of which holds
 * until the next one. Of those that begin by the begin of the period the last one is needed, and
 * those that follow until its end; the first one in any case, before which it is as it says. A row
 * that is earlier than the one before it holds from the same moment as that. */
struct track {
    struct map_entry by_name;
    size_t first; /* its place among the records */
    bool begun;   /* a row is later than the begin */
    bool past;    /* ... than the end */
};

static struct track *track_of(struct ledger_reading *r, struct map *tracks, struct str a,
                              struct str b)
{
    struct buf name = BUF_INIT(0);
    struct map_entry *e;
    struct track *t;

    buf_printf(&name, "%.*s\n%.*s", STR_F(a), STR_F(b));
    e = map_get(tracks, buf_str(&name));
    if (!e) {
        t = ARENA_NEW(r->a, struct track);
        t->first = SIZE_MAX;
        e = &t->by_name;
        map_put(tracks, e, arena_str(r->a, buf_str(&name)));
    }
    buf_fini(&name);
    return CONTAINER(e, struct track, by_name);
}

/* Where among n records the row goes: the place of the one before it, or behind them all. False: it
 * is not needed. */
static bool place_of(struct ledger_reading *r, struct track *t, int64_t from_us, size_t n,
                     size_t *ret)
{
    bool is_first = t->first == SIZE_MAX;

    t->begun |= from_us > r->from_us;
    t->past |= from_us > r->until_us;
    if (t->past && !is_first)
        return false;
    *ret = is_first || t->begun ? n : t->first;
    if (is_first)
        t->first = n;
    return true;
}

static void read_capacity(struct ledger_reading *r, struct ledger_query *q)
{
    struct fleet_records *all = r->records;
    struct track *t = track_of(r, &r->nodes, ledger_str(q, 0), ledger_str(q, 1));
    size_t at;

    if (!place_of(r, t, ledger_int(q, 3), all->n_capacities, &at))
        return;
    if (at == all->n_capacities) {
        ARENA_GROW(r->rows, all->capacities, all->n_capacities, r->caps[1]);
        all->n_capacities++;
    }
    all->capacities[at] = (struct fleet_capacity){.node = shared(r, q, 0),
                                                  .pool = shared(r, q, 1),
                                                  .product = shared(r, q, 2),
                                                  .from_us = ledger_int(q, 3),
                                                  .total = fraction(q, 4),
                                                  .unhealthy = fraction(q, 6),
                                                  .down = ledger_int(q, 8),
                                                  .estimated = ledger_int(q, 9)};
}

static void read_price(struct ledger_reading *r, struct ledger_query *q)
{
    struct fleet_records *all = r->records;
    struct track *t = track_of(r, &r->priced, ledger_str(q, 0), STR(""));
    size_t at;

    if (!place_of(r, t, ledger_int(q, 1), all->n_prices, &at))
        return;
    if (at == all->n_prices) {
        ARENA_GROW(r->rows, all->prices, all->n_prices, r->caps[2]);
        all->n_prices++;
    }
    all->prices[at] = (struct fleet_price){.pool = shared(r, q, 0),
                                           .from_us = ledger_int(q, 1),
                                           .price = fraction(q, 2),
                                           .currency = shared(r, q, 4),
                                           .borrow = fraction(q, 5)};
}

static void read_guarantee(struct ledger_reading *r, struct ledger_query *q)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->rows, all->guarantees, all->n_guarantees, r->caps[4]);
    all->guarantees[all->n_guarantees++] = (struct fleet_guarantee){.tenant = shared(r, q, 0),
                                                                    .pool = shared(r, q, 1),
                                                                    .from_us = ledger_int(q, 2),
                                                                    .bound = ledger_int(q, 3),
                                                                    .guarantee = fraction(q, 4),
                                                                    .granted = fraction(q, 6),
                                                                    .labels = shared(r, q, 8)};
}

static void read_gap(struct ledger_reading *r, struct ledger_query *q)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->rows, all->gaps, all->n_gaps, r->caps[3]);
    all->gaps[all->n_gaps++] = (struct fleet_gap){ledger_int(q, 0), ledger_int(q, 1)};
}

/* In the order of holds. */
static void read_activity(struct ledger_reading *r, struct ledger_query *q)
{
    struct fleet_records *all = r->records;
    int64_t hold = ledger_int(q, 0), use = ledger_int(q, 2);

    while (r->at < all->n_holds && r->ids[r->at] < hold)
        r->at++;
    if (r->at == all->n_holds || r->ids[r->at] != hold)
        return;
    ARENA_GROW(r->rows, all->activities, all->n_activities, r->caps[5]);
    if (!all->holds[r->at].n_activities++)
        all->holds[r->at].activity = all->n_activities;
    all->activities[all->n_activities++] = (struct fleet_activity){
        ledger_int(q, 1), use > FLEET_USE_UNKNOWN && use <= FLEET_USE_UNUSED ? (enum fleet_use)use
                                                                             : FLEET_USE_UNKNOWN};
}

static void count_holds(struct ledger_reading *r, struct ledger_query *q)
{
    struct fleet_records *all = r->records;

    r->caps[0] = (size_t)ledger_int(q, 0);
    r->too_many = r->caps[0] > arena_left(r->rows) / sizeof(*all->holds);
    if (r->too_many)
        return;
    all->holds = arena_alloc(r->rows, r->caps[0] * sizeof(*all->holds));
    r->ids = mem_alloc((r->caps[0] + 1) * sizeof(*r->ids));
}

static void count_spans(struct ledger_reading *r, struct ledger_query *q)
{
    r->caps[0] = (size_t)ledger_int(q, 0);
    r->too_many = r->caps[0] > arena_left(r->a) / sizeof(*r->spans);
    if (!r->too_many)
        r->spans = mem_alloc((r->caps[0] + 1) * sizeof(*r->spans));
}

static void read_span(struct ledger_reading *r, struct ledger_query *q)
{
    struct str pool = ledger_str(q, 3);
    struct map_entry *e;

    if (r->n_spans == r->caps[0]) /* as many as were counted, in one transaction */
        return;
    r->spans[r->n_spans++] = (struct ledger_span){
        ledger_int(q, 0), q->db->ops->is_null(q, 1) ? FLEET_OPEN : ledger_int(q, 1),
        ledger_int(q, 2)};
    if (map_get(&r->pools, pool))
        return;
    e = ARENA_NEW(r->a, struct map_entry);
    map_put(&r->pools, e, arena_str(r->a, pool));
}

static void read_measured(struct ledger_reading *r, struct ledger_query *q)
{
    r->records->measured = ledger_int(q, 0);
}

#define OF_HOLDS                                                                                   \
    " FROM hold LEFT JOIN hold_end ON hold = id WHERE begin_us <= ?2"                              \
    " AND (end_us IS NULL OR end_us >= ?1 AND ?1 < 9223372036854775807)"

#define HOLD                                                                                       \
    "SELECT pod_uid, tenant, cluster, ns, name, owner, node, pool, product, resources, gpu_num,"   \
    " gpu_den, begin_us, end_us, reason, estimated, "

/* Those that a period needs: of each tenant and pool (`of`) the last one by its begin, and what is
 * later until its end; LEDGER_OPEN reads no more. Of a tenant and a pool, ids are in order of
 * from_us: `part` halves the range of ids until `low` alone may be the last one. */
#define GUARANTEE                                                                                  \
    " SELECT tenant, pool, from_us, bound, num, den, granted_num, granted_den, labels, id FROM"    \
    " guarantee WHERE from_us <= ?2 AND "
#define GUARANTEES                                                                                 \
    "WITH RECURSIVE of(tenant, pool) AS ("                                                         \
    " SELECT * FROM (SELECT tenant, pool FROM guarantee ORDER BY tenant, pool LIMIT 1) AS one"     \
    " UNION ALL SELECT g.tenant, g.pool FROM of JOIN guarantee g ON g.id = coalesce("              \
    "(SELECT id FROM guarantee WHERE tenant = of.tenant AND pool > of.pool ORDER BY pool LIMIT "   \
    "1),"                                                                                          \
    "(SELECT id FROM guarantee WHERE tenant > of.tenant ORDER BY tenant, pool LIMIT 1))),"         \
    " part(tenant, pool, low, high) AS ("                                                          \
    " SELECT tenant, pool, CAST(0 AS BIGINT), (SELECT max(id) + 1 FROM guarantee) FROM of UNION "  \
    "ALL"                                                                                          \
    " SELECT part.tenant, part.pool, CASE WHEN g.from_us > ?1 THEN low ELSE (low + high) / 2 END," \
    " CASE WHEN g.from_us > ?1 THEN (low + high) / 2 ELSE high END FROM part LEFT JOIN guarantee " \
    "g ON g.id ="                                                                                  \
    " (SELECT max(id) FROM guarantee WHERE tenant = part.tenant AND pool = part.pool"              \
    " AND id <= (low + high) / 2) WHERE high - low > 1),"                                          \
    " last(id) AS (SELECT (SELECT max(id) FROM guarantee WHERE tenant = part.tenant"               \
    " AND pool = part.pool AND id <= low) FROM part WHERE high - low = 1)" GUARANTEE               \
    "id IN (SELECT id FROM last) UNION ALL" GUARANTEE                                              \
    "from_us > ?1 AND ?1 < 9223372036854775807 ORDER BY id"

/* old: of format 1, where it is another; empty: it has none. */
struct table {
    const char *sql;
    void (*read)(struct ledger_reading *r, struct ledger_query *q);
    const char *old;
};
static const struct table TABLES[] = {
    {"SELECT node, pool, product, from_us, total_num, total_den, unhealthy_num, unhealthy_den,"
     " down, estimated FROM capacity ORDER BY id",
     read_capacity, NULL},
    {"SELECT pool, from_us, num, den, currency, borrow_num, borrow_den FROM price ORDER BY id",
     read_price, "SELECT pool, from_us, num, den, currency, 1, 1 FROM price ORDER BY id"},
    {"SELECT from_us, until_us FROM gap ORDER BY id", read_gap, NULL},
    {GUARANTEES, read_guarantee, ""},
};
static const struct table HOLDS[] = {
    {"SELECT count(*)" OF_HOLDS, count_holds, NULL},
    {HOLD "mode, id" OF_HOLDS " ORDER BY id", read_hold, HOLD "'', id" OF_HOLDS " ORDER BY id"},
    {"SELECT activity.hold, activity.from_us, use FROM activity JOIN hold ON hold.id ="
     " activity.hold LEFT JOIN hold_end ON hold_end.hold = hold.id WHERE begin_us <= ?2"
     " AND (end_us IS NULL OR end_us >= ?1 AND ?1 < 9223372036854775807)"
     " ORDER BY activity.hold, activity.id",
     read_activity, ""},
};
static const struct table SPANS[] = {
    {"SELECT count(*)" OF_HOLDS, count_spans, NULL},
    {"SELECT begin_us, end_us, id, pool" OF_HOLDS, read_span, NULL},
    {"SELECT count(*) WHERE EXISTS(SELECT 1 FROM activity JOIN hold ON hold.id = activity.hold"
     " LEFT JOIN hold_end ON hold_end.hold = hold.id WHERE begin_us <= ?2"
     " AND (end_us IS NULL OR end_us >= ?1 AND ?1 < 9223372036854775807))",
     read_measured, ""},
};

static int too_large(struct err *err)
{
    return err_set(err, &ERR_TOO_LARGE, "the ledger has more rows of the period than fit");
}

static int read_table(struct ledger_reading *r, const struct table *t, struct err *err)
{
    const char *sql = r->old && t->old ? t->old : t->sql;
    struct ledger_query *q = NULL;
    enum ledger_step step;

    if (!*sql)
        return 0;
    if (r->db->ops->prepare(r->db, sql, &q, err))
        return -1;
    if (r->db->ops->parameters(q)) {
        ledger_bind_int(q, 1, r->from_us);
        ledger_bind_int(q, 2, r->until_us);
    }
    while ((step = ledger_step(q, err)) == LEDGER_ROW) {
        t->read(r, q);
        if (r->too_many || arena_over(r->rows))
            break;
    }
    ledger_query_free(q);
    if (step == LEDGER_FAILED)
        return -1;
    return r->too_many || arena_over(r->rows) ? too_large(err) : 0;
}

static int read_tables(struct ledger_reading *r, const struct table *tables, size_t n,
                       struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (read_table(r, &tables[i], err))
            return -1;
    return 0;
}

static int begin(struct ledger_reading *r, struct err *err)
{
    int64_t format;

    if (r->db->ops->begin(r->db, err) || ledger_meta(r->db, "format", &format, err) ||
        ledger_check_format(format, err) ||
        ledger_meta(r->db, "begin", &r->records->begin_us, err) ||
        ledger_meta(r->db, "seen", &r->records->seen_us, err))
        return -1;
    r->old = format == 1;
    return 0;
}

int ledger_reading_open(struct ledger_reading *r, struct arena *a, struct str location,
                        int64_t from_us, int64_t until_us, struct fleet_records *ret,
                        struct err *err)
{
    *ret = (struct fleet_records){0};
    *r = (struct ledger_reading){
        .a = a, .rows = a, .records = ret, .from_us = from_us, .until_us = until_us};
    return ledger_db_open(location, LEDGER_DB_READ, &r->db, err) || begin(r, err) ||
                   read_tables(r, TABLES, COUNT(TABLES), err)
               ? -1
               : 0;
}

void ledger_reading_close(struct ledger_reading *r)
{
    map_clear(&r->interned);
    map_clear(&r->pools);
    map_clear(&r->nodes);
    map_clear(&r->priced);
    mem_free(r->ids);
    mem_free(r->spans);
    ledger_query_free(r->hold);
    ledger_query_free(r->activity);
    r->db = ledger_db_close(r->db);
}

int ledger_read(struct arena *a, struct str location, int64_t from_us, int64_t until_us,
                struct fleet_records *ret, struct err *err)
{
    struct ledger_reading r;
    int result = ledger_reading_open(&r, a, location, from_us, until_us, ret, err) ||
                         read_tables(&r, HOLDS, COUNT(HOLDS), err)
                     ? -1
                     : 0;

    ledger_reading_close(&r);
    return result;
}

/* --- in parts --- */

static int order_spans(const void *a, const void *b)
{
    const struct ledger_span *x = a, *y = b;

    if (x->begin_us != y->begin_us)
        return x->begin_us < y->begin_us ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

int ledger_read_spans(struct ledger_reading *r, struct err *err)
{
    if (read_tables(r, SPANS, COUNT(SPANS), err))
        return -1;
    qsort(r->spans, r->n_spans, sizeof(*r->spans), order_spans);
    return 0;
}

static int prepare_rows(struct ledger_reading *r, struct err *err)
{
    static const char from[] = " FROM hold LEFT JOIN hold_end ON hold = id WHERE id = ?1";
    static const char activities[] =
        "SELECT hold, from_us, use FROM activity WHERE hold = ?1 ORDER BY id";
    struct str sql;

    if (r->hold)
        return 0;
    sql = arena_printf(r->a, HOLD "%s%s", r->old ? "'', id" : "mode, id", from);
    return r->db->ops->prepare(r->db, sql.p, &r->hold, err) ||
                   (r->records->measured &&
                    r->db->ops->prepare(r->db, activities, &r->activity, err))
               ? -1
               : 0;
}

static int read_rows(struct ledger_reading *r, struct ledger_query *q, int64_t id,
                     void (*read)(struct ledger_reading *r, struct ledger_query *q),
                     struct err *err)
{
    enum ledger_step step;

    if (!q)
        return 0;
    ledger_bind_int(q, 1, id);
    while ((step = ledger_step(q, err)) == LEDGER_ROW)
        read(r, q);
    r->db->ops->reset(q);
    return step == LEDGER_FAILED ? -1 : 0;
}

int ledger_read_holds(struct ledger_reading *r, struct arena *rows, const int64_t *ids, size_t n,
                      struct fleet_records *ret, struct err *err)
{
    struct fleet_records *whole = r->records;
    int result = prepare_rows(r, err);

    *ret = *whole;
    r->rows = rows;
    r->records = ret;
    r->at = 0;
    r->caps[0] = n;
    r->caps[5] = 0;
    ret->holds = arena_alloc(rows, (n + 1) * sizeof(*ret->holds));
    r->ids = mem_realloc(r->ids, (n + 1) * sizeof(*r->ids));
    for (size_t i = 0; i < n && !result; i++)
        result = read_rows(r, r->hold, ids[i], read_hold, err) ||
                         read_rows(r, r->activity, ids[i], read_activity, err)
                     ? -1
                     : 0;
    r->rows = r->a;
    r->records = whole;
    return result;
}
