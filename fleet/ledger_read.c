/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of the ledger, for reports and for the process that goes on with it, in one read
 * transaction: all rows at once, or holds a part at a time. A year has millions of holds, whose
 * nodes, tenants and owners are few: a string that recurs is in memory once, and holds are counted
 * before they are read. Must not change the file, nor lock out its writer. */
#include "ledger_rows.h"

#include <stdlib.h>

#include <sublet/buf.h>

#define MOST_INTERNED 65536 /* strings; of what is different in each row no more is gained */

int ledger_failed(sqlite3 *db, const char *doing, struct err *err)
{
    return err_set(err, &ERR_STORAGE, "%s: %s", doing, sqlite3_errmsg(db));
}

void ledger_bind_str(sqlite3_stmt *statement, int index, struct str value)
{
    sqlite3_bind_text(statement, index, value.n ? value.p : "", (int)value.n, SQLITE_TRANSIENT);
}

int ledger_meta(sqlite3 *db, const char *key, int64_t *ret, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code;

    *ret = 0;
    if (sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = ?1", -1, &s, NULL) != SQLITE_OK)
        return ledger_failed(db, "ledger", err);
    ledger_bind_str(s, 1, str_c(key));
    code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : ledger_failed(db, "ledger", err);
}

int ledger_check_format(int64_t format, struct err *err)
{
    return format >= 1 && format <= LEDGER_FORMAT
               ? 0
               : err_set(err, &ERR_STORAGE, "ledger: format %lld is not known to this version",
                         (long long)format);
}

struct interned {
    struct map_entry by_string;
    struct str string;
};

static struct str column_str(sqlite3_stmt *s, int column)
{
    const char *p = (const char *)sqlite3_column_text(s, column);

    return (struct str){p, (size_t)sqlite3_column_bytes(s, column)};
}

static struct str string(struct ledger_reading *r, sqlite3_stmt *s, int column)
{
    return arena_str(r->rows, column_str(s, column));
}

/* The same for columns whose values recur. */
static struct str shared(struct ledger_reading *r, sqlite3_stmt *s, int column)
{
    struct str value = column_str(s, column);
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

static struct rational fraction(sqlite3_stmt *s, int column)
{
    return (struct rational){sqlite3_column_int64(s, column), sqlite3_column_int64(s, column + 1)};
}

static void read_hold(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;
    struct fleet_hold *h;

    if (all->n_holds == r->caps[0]) /* as many as were counted, in one transaction */
        return;
    r->ids[all->n_holds] = sqlite3_column_int64(s, 17);
    h = &all->holds[all->n_holds++];
    *h = (struct fleet_hold){.pod_uid = string(r, s, 0),
                             .tenant = shared(r, s, 1),
                             .cluster = shared(r, s, 2),
                             .ns = shared(r, s, 3),
                             .name = string(r, s, 4),
                             .owner = shared(r, s, 5),
                             .node = shared(r, s, 6),
                             .pool = shared(r, s, 7),
                             .product = shared(r, s, 8),
                             .resources = shared(r, s, 9),
                             .mode = shared(r, s, 16),
                             .gpu_eq = fraction(s, 10),
                             .begin_us = sqlite3_column_int64(s, 12),
                             .end_us = FLEET_OPEN};
    if (sqlite3_column_type(s, 13) == SQLITE_NULL)
        return;
    h->end_us = sqlite3_column_int64(s, 13);
    h->reason = shared(r, s, 14);
    h->estimated = sqlite3_column_int(s, 15);
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

static void read_capacity(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;
    struct track *t = track_of(r, &r->nodes, column_str(s, 0), column_str(s, 1));
    size_t at;

    if (!place_of(r, t, sqlite3_column_int64(s, 3), all->n_capacities, &at))
        return;
    if (at == all->n_capacities) {
        ARENA_GROW(r->rows, all->capacities, all->n_capacities, r->caps[1]);
        all->n_capacities++;
    }
    all->capacities[at] = (struct fleet_capacity){.node = shared(r, s, 0),
                                                  .pool = shared(r, s, 1),
                                                  .product = shared(r, s, 2),
                                                  .from_us = sqlite3_column_int64(s, 3),
                                                  .total = fraction(s, 4),
                                                  .unhealthy = fraction(s, 6),
                                                  .down = sqlite3_column_int(s, 8),
                                                  .estimated = sqlite3_column_int(s, 9)};
}

static void read_price(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;
    struct track *t = track_of(r, &r->priced, column_str(s, 0), STR(""));
    size_t at;

    if (!place_of(r, t, sqlite3_column_int64(s, 1), all->n_prices, &at))
        return;
    if (at == all->n_prices) {
        ARENA_GROW(r->rows, all->prices, all->n_prices, r->caps[2]);
        all->n_prices++;
    }
    all->prices[at] = (struct fleet_price){.pool = shared(r, s, 0),
                                           .from_us = sqlite3_column_int64(s, 1),
                                           .price = fraction(s, 2),
                                           .currency = shared(r, s, 4),
                                           .borrow = fraction(s, 5)};
}

static void read_guarantee(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->rows, all->guarantees, all->n_guarantees, r->caps[4]);
    all->guarantees[all->n_guarantees++] =
        (struct fleet_guarantee){.tenant = shared(r, s, 0),
                                 .pool = shared(r, s, 1),
                                 .from_us = sqlite3_column_int64(s, 2),
                                 .bound = sqlite3_column_int(s, 3),
                                 .guarantee = fraction(s, 4),
                                 .granted = fraction(s, 6),
                                 .labels = shared(r, s, 8)};
}

static void read_gap(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->rows, all->gaps, all->n_gaps, r->caps[3]);
    all->gaps[all->n_gaps++] =
        (struct fleet_gap){sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1)};
}

/* In the order of holds. */
static void read_activity(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;
    int64_t hold = sqlite3_column_int64(s, 0), use = sqlite3_column_int64(s, 2);

    while (r->at < all->n_holds && r->ids[r->at] < hold)
        r->at++;
    if (r->at == all->n_holds || r->ids[r->at] != hold)
        return;
    ARENA_GROW(r->rows, all->activities, all->n_activities, r->caps[5]);
    if (!all->holds[r->at].n_activities++)
        all->holds[r->at].activity = all->n_activities;
    all->activities[all->n_activities++] = (struct fleet_activity){
        sqlite3_column_int64(s, 1), use > FLEET_USE_UNKNOWN && use <= FLEET_USE_UNUSED
                                        ? (enum fleet_use)use
                                        : FLEET_USE_UNKNOWN};
}

static void count_holds(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    r->caps[0] = (size_t)sqlite3_column_int64(s, 0);
    r->too_many = r->caps[0] > arena_left(r->rows) / sizeof(*all->holds);
    if (r->too_many)
        return;
    all->holds = arena_alloc(r->rows, r->caps[0] * sizeof(*all->holds));
    r->ids = mem_alloc((r->caps[0] + 1) * sizeof(*r->ids));
}

static void count_spans(struct ledger_reading *r, sqlite3_stmt *s)
{
    r->caps[0] = (size_t)sqlite3_column_int64(s, 0);
    r->too_many = r->caps[0] > arena_left(r->a) / sizeof(*r->spans);
    if (!r->too_many)
        r->spans = mem_alloc((r->caps[0] + 1) * sizeof(*r->spans));
}

static void read_span(struct ledger_reading *r, sqlite3_stmt *s)
{
    struct str pool = column_str(s, 3);
    struct map_entry *e;

    if (r->n_spans == r->caps[0]) /* as many as were counted, in one transaction */
        return;
    r->spans[r->n_spans++] = (struct ledger_span){
        sqlite3_column_int64(s, 0),
        sqlite3_column_type(s, 1) == SQLITE_NULL ? FLEET_OPEN : sqlite3_column_int64(s, 1),
        sqlite3_column_int64(s, 2)};
    if (map_get(&r->pools, pool))
        return;
    e = ARENA_NEW(r->a, struct map_entry);
    map_put(&r->pools, e, arena_str(r->a, pool));
}

static void read_measured(struct ledger_reading *r, sqlite3_stmt *s)
{
    r->records->measured = sqlite3_column_int(s, 0);
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
    " SELECT * FROM (SELECT tenant, pool FROM guarantee ORDER BY tenant, pool LIMIT 1)"            \
    " UNION ALL SELECT g.tenant, g.pool FROM of JOIN guarantee g ON g.id = coalesce("              \
    "(SELECT id FROM guarantee WHERE tenant = of.tenant AND pool > of.pool ORDER BY pool LIMIT "   \
    "1),"                                                                                          \
    "(SELECT id FROM guarantee WHERE tenant > of.tenant ORDER BY tenant, pool LIMIT 1))),"         \
    " part(tenant, pool, low, high) AS ("                                                          \
    " SELECT tenant, pool, 0, (SELECT max(id) + 1 FROM guarantee) FROM of UNION ALL"               \
    " SELECT part.tenant, part.pool, iif(g.from_us > ?1, low, (low + high) / 2),"                  \
    " iif(g.from_us > ?1, (low + high) / 2, high) FROM part LEFT JOIN guarantee g ON g.id ="       \
    " (SELECT max(id) FROM guarantee WHERE tenant = part.tenant AND pool = part.pool"              \
    " AND id <= (low + high) / 2) WHERE high - low > 1),"                                          \
    " last(id) AS (SELECT (SELECT max(id) FROM guarantee WHERE tenant = part.tenant"               \
    " AND pool = part.pool AND id <= low) FROM part WHERE high - low = 1)" GUARANTEE               \
    "id IN last UNION ALL" GUARANTEE "from_us > ?1 AND ?1 < 9223372036854775807 ORDER BY id"

/* old: of format 1, where it is another; empty: it has none. */
struct table {
    const char *sql;
    void (*read)(struct ledger_reading *r, sqlite3_stmt *s);
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
    {"SELECT EXISTS(SELECT 1 FROM activity JOIN hold ON hold.id = activity.hold"
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
    sqlite3_stmt *s = NULL;
    int code = *sql ? sqlite3_prepare_v2(r->db, sql, -1, &s, NULL) : SQLITE_DONE;

    if (code == SQLITE_OK && sqlite3_bind_parameter_count(s)) {
        sqlite3_bind_int64(s, 1, r->from_us);
        sqlite3_bind_int64(s, 2, r->until_us);
    }
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(s);
        if (code == SQLITE_ROW)
            t->read(r, s);
        if (r->too_many || arena_over(r->rows))
            break;
    }
    sqlite3_finalize(s);
    if (r->too_many || arena_over(r->rows))
        return too_large(err);
    return code == SQLITE_DONE ? 0 : ledger_failed(r->db, "ledger", err);
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

    if (sqlite3_exec(r->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        return ledger_failed(r->db, "ledger", err);
    if (ledger_meta(r->db, "format", &format, err) || ledger_check_format(format, err) ||
        ledger_meta(r->db, "begin", &r->records->begin_us, err) ||
        ledger_meta(r->db, "seen", &r->records->seen_us, err))
        return -1;
    r->old = format == 1;
    return 0;
}

int ledger_reading_open(struct ledger_reading *r, struct arena *a, struct str directory,
                        int64_t from_us, int64_t until_us, struct fleet_records *ret,
                        struct err *err)
{
    struct str path = arena_printf(a, "%.*s/" LEDGER_FILE, STR_F(directory));

    *ret = (struct fleet_records){0};
    *r = (struct ledger_reading){
        .a = a, .rows = a, .records = ret, .from_us = from_us, .until_us = until_us};
    if (sqlite3_open_v2(path.p, &r->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(r->db, 10000) != SQLITE_OK)
        return ledger_failed(r->db, path.p, err);
    return begin(r, err) || read_tables(r, TABLES, COUNT(TABLES), err) ? -1 : 0;
}

void ledger_reading_close(struct ledger_reading *r)
{
    map_clear(&r->interned);
    map_clear(&r->pools);
    map_clear(&r->nodes);
    map_clear(&r->priced);
    mem_free(r->ids);
    mem_free(r->spans);
    sqlite3_finalize(r->hold);
    sqlite3_finalize(r->activity);
    sqlite3_close(r->db);
}

int ledger_read(struct arena *a, struct str directory, int64_t from_us, int64_t until_us,
                struct fleet_records *ret, struct err *err)
{
    struct ledger_reading r;
    int result = ledger_reading_open(&r, a, directory, from_us, until_us, ret, err) ||
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
    if (sqlite3_prepare_v2(r->db, sql.p, -1, &r->hold, NULL) != SQLITE_OK ||
        (r->records->measured &&
         sqlite3_prepare_v2(r->db, activities, -1, &r->activity, NULL) != SQLITE_OK))
        return ledger_failed(r->db, "ledger", err);
    return 0;
}

static int read_rows(struct ledger_reading *r, sqlite3_stmt *s, int64_t id,
                     void (*read)(struct ledger_reading *r, sqlite3_stmt *s), struct err *err)
{
    int code;

    if (!s)
        return 0;
    sqlite3_bind_int64(s, 1, id);
    while ((code = sqlite3_step(s)) == SQLITE_ROW)
        read(r, s);
    sqlite3_reset(s);
    return code == SQLITE_DONE ? 0 : ledger_failed(r->db, "ledger", err);
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
