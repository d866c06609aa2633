/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of the ledger, for reports and for the process that goes on with it: all rows, in one
 * read transaction. A year has millions of holds, whose nodes, tenants and owners are few: a string
 * that recurs is in memory once, and holds are counted before they are read. Must not change the
 * file, nor lock out its writer. */
#include "ledger_rows.h"

#include <sublet/hash.h>

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

struct reading {
    struct arena *a;
    struct fleet_records *records;
    int64_t from_us, until_us;
    size_t caps[6];
    int64_t *ids;  /* of the holds */
    size_t at;     /* the hold of the last activity */
    bool too_many; /* holds for the arena's limit */
    struct map interned;
};
struct interned {
    struct map_entry by_string;
    struct str string;
};

static struct str column_str(sqlite3_stmt *s, int column)
{
    const char *p = (const char *)sqlite3_column_text(s, column);

    return (struct str){p, (size_t)sqlite3_column_bytes(s, column)};
}

static struct str string(struct reading *r, sqlite3_stmt *s, int column)
{
    return arena_str(r->a, column_str(s, column));
}

/* The same for columns whose values recur. */
static struct str shared(struct reading *r, sqlite3_stmt *s, int column)
{
    struct str value = column_str(s, column);
    struct map_entry *e = map_get(&r->interned, value);
    struct interned *i;

    if (e)
        return CONTAINER(e, struct interned, by_string)->string;
    if (map_count(&r->interned) >= MOST_INTERNED)
        return arena_str(r->a, value);
    i = ARENA_NEW(r->a, struct interned);
    i->string = arena_str(r->a, value);
    map_put(&r->interned, &i->by_string, i->string);
    return i->string;
}

static struct rational fraction(sqlite3_stmt *s, int column)
{
    return (struct rational){sqlite3_column_int64(s, column), sqlite3_column_int64(s, column + 1)};
}

static void read_hold(struct reading *r, sqlite3_stmt *s)
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

static void read_capacity(struct reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->a, all->capacities, all->n_capacities, r->caps[1]);
    all->capacities[all->n_capacities++] =
        (struct fleet_capacity){.node = shared(r, s, 0),
                                .pool = shared(r, s, 1),
                                .product = shared(r, s, 2),
                                .from_us = sqlite3_column_int64(s, 3),
                                .total = fraction(s, 4),
                                .unhealthy = fraction(s, 6),
                                .down = sqlite3_column_int(s, 8),
                                .estimated = sqlite3_column_int(s, 9)};
}

static void read_price(struct reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->a, all->prices, all->n_prices, r->caps[2]);
    all->prices[all->n_prices++] = (struct fleet_price){.pool = string(r, s, 0),
                                                        .from_us = sqlite3_column_int64(s, 1),
                                                        .price = fraction(s, 2),
                                                        .currency = string(r, s, 4),
                                                        .borrow = fraction(s, 5)};
}

static void read_guarantee(struct reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->a, all->guarantees, all->n_guarantees, r->caps[4]);
    all->guarantees[all->n_guarantees++] =
        (struct fleet_guarantee){.tenant = shared(r, s, 0),
                                 .pool = shared(r, s, 1),
                                 .from_us = sqlite3_column_int64(s, 2),
                                 .bound = sqlite3_column_int(s, 3),
                                 .guarantee = fraction(s, 4),
                                 .granted = fraction(s, 6),
                                 .labels = shared(r, s, 8)};
}

static void read_gap(struct reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    ARENA_GROW(r->a, all->gaps, all->n_gaps, r->caps[3]);
    all->gaps[all->n_gaps++] =
        (struct fleet_gap){sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1)};
}

/* In the order of holds. */
static void read_activity(struct reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;
    int64_t hold = sqlite3_column_int64(s, 0), use = sqlite3_column_int64(s, 2);

    while (r->at < all->n_holds && r->ids[r->at] < hold)
        r->at++;
    if (r->at == all->n_holds || r->ids[r->at] != hold)
        return;
    ARENA_GROW(r->a, all->activities, all->n_activities, r->caps[5]);
    if (!all->holds[r->at].n_activities++)
        all->holds[r->at].activity = all->n_activities;
    all->activities[all->n_activities++] = (struct fleet_activity){
        sqlite3_column_int64(s, 1), use > FLEET_USE_UNKNOWN && use <= FLEET_USE_UNUSED
                                        ? (enum fleet_use)use
                                        : FLEET_USE_UNKNOWN};
}

static void count_holds(struct reading *r, sqlite3_stmt *s)
{
    struct fleet_records *all = r->records;

    r->caps[0] = (size_t)sqlite3_column_int64(s, 0);
    r->too_many = r->caps[0] > arena_left(r->a) / sizeof(*all->holds);
    if (r->too_many)
        return;
    all->holds = arena_alloc(r->a, r->caps[0] * sizeof(*all->holds));
    r->ids = mem_alloc((r->caps[0] + 1) * sizeof(*r->ids));
}

#define OF_HOLDS                                                                                   \
    " FROM hold LEFT JOIN hold_end ON hold = id WHERE begin_us <= ?2"                              \
    " AND (end_us IS NULL OR end_us >= ?1 AND ?1 < 9223372036854775807)"

#define HOLD                                                                                       \
    "SELECT pod_uid, tenant, cluster, ns, name, owner, node, pool, product, resources, gpu_num,"   \
    " gpu_den, begin_us, end_us, reason, estimated, "

/* old: of format 1, where it is another; empty: it has none. */
static const struct {
    const char *sql;
    void (*read)(struct reading *r, sqlite3_stmt *s);
    const char *old;
} TABLES[] = {
    {"SELECT count(*)" OF_HOLDS, count_holds, NULL},
    {HOLD "mode, id" OF_HOLDS " ORDER BY id", read_hold, HOLD "'', id" OF_HOLDS " ORDER BY id"},
    {"SELECT node, pool, product, from_us, total_num, total_den, unhealthy_num, unhealthy_den,"
     " down, estimated FROM capacity ORDER BY id",
     read_capacity, NULL},
    {"SELECT pool, from_us, num, den, currency, borrow_num, borrow_den FROM price ORDER BY id",
     read_price, "SELECT pool, from_us, num, den, currency, 1, 1 FROM price ORDER BY id"},
    {"SELECT from_us, until_us FROM gap ORDER BY id", read_gap, NULL},
    {"SELECT tenant, pool, from_us, bound, num, den, granted_num, granted_den, labels FROM"
     " guarantee ORDER BY id",
     read_guarantee, ""},
    {"SELECT activity.hold, activity.from_us, use FROM activity JOIN hold ON hold.id ="
     " activity.hold LEFT JOIN hold_end ON hold_end.hold = hold.id WHERE begin_us <= ?2"
     " AND (end_us IS NULL OR end_us >= ?1 AND ?1 < 9223372036854775807)"
     " ORDER BY activity.hold, activity.id",
     read_activity, ""},
};

static int read_table(struct reading *r, sqlite3 *db, size_t which, bool old, struct err *err)
{
    const char *sql = old && TABLES[which].old ? TABLES[which].old : TABLES[which].sql;
    sqlite3_stmt *s = NULL;
    int code = *sql ? sqlite3_prepare_v2(db, sql, -1, &s, NULL) : SQLITE_DONE;

    if (code == SQLITE_OK && sqlite3_bind_parameter_count(s)) {
        sqlite3_bind_int64(s, 1, r->from_us);
        sqlite3_bind_int64(s, 2, r->until_us);
    }
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(s);
        if (code == SQLITE_ROW)
            TABLES[which].read(r, s);
        if (r->too_many || arena_over(r->a))
            break;
    }
    sqlite3_finalize(s);
    if (r->too_many || arena_over(r->a))
        return err_set(err, &ERR_TOO_LARGE, "the ledger has more rows of the period than fit");
    return code == SQLITE_DONE ? 0 : ledger_failed(db, "ledger", err);
}

static int read_all(struct reading *r, sqlite3 *db, struct err *err)
{
    int64_t format;

    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        return ledger_failed(db, "ledger", err);
    if (ledger_meta(db, "format", &format, err) || ledger_check_format(format, err) ||
        ledger_meta(db, "begin", &r->records->begin_us, err) ||
        ledger_meta(db, "seen", &r->records->seen_us, err))
        return -1;
    for (size_t i = 0; i < COUNT(TABLES); i++)
        if (read_table(r, db, i, format == 1, err))
            return -1;
    return 0;
}

int ledger_read(struct arena *a, struct str directory, int64_t from_us, int64_t until_us,
                struct fleet_records *ret, struct err *err)
{
    struct str path = arena_printf(a, "%.*s/" LEDGER_FILE, STR_F(directory));
    struct reading r = {.a = a, .records = ret, .from_us = from_us, .until_us = until_us};
    sqlite3 *db = NULL;
    int result;

    *ret = (struct fleet_records){0};
    if (sqlite3_open_v2(path.p, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(db, 10000) != SQLITE_OK)
        result = ledger_failed(db, path.p, err);
    else
        result = read_all(&r, db, err);
    map_clear(&r.interned);
    mem_free(r.ids);
    sqlite3_close(db);
    return result;
}
