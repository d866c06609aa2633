/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of the ledger. Rows are added and never changed, which triggers in the file enforce;
 * `meta` alone is updated: until when the host was observed. A commit is one fsync. Must never end
 * a hold twice or begin a pod's hold twice, whatever is repeated after a crash: the file's unique
 * keys decide that, not the memory of a process. */
#include "ledger_rows.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEDGER_MAGIC 0x6c656467u

static const char SETTINGS[] = "PRAGMA cache_size=-1024;"
                               "PRAGMA trusted_schema=OFF;"
                               "PRAGMA journal_mode=WAL;"
                               "PRAGMA synchronous=FULL;"
                               "PRAGMA journal_size_limit=4194304;";

#define APPEND_ONLY(table)                                                                         \
    "CREATE TRIGGER " table "_kept BEFORE DELETE ON " table                                        \
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"                                \
    "CREATE TRIGGER " table "_fixed BEFORE UPDATE ON " table                                       \
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"

/* Of format 1. What came later is in UPGRADES, by which a new ledger is made as well. */
static const char SCHEMA[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT;"
    "CREATE TABLE hold(id INTEGER PRIMARY KEY, pod_uid TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,"
    " cluster TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL,"
    " node TEXT NOT NULL, pool TEXT NOT NULL, product TEXT NOT NULL, resources TEXT NOT NULL,"
    " gpu_num INTEGER NOT NULL, gpu_den INTEGER NOT NULL, begin_us INTEGER NOT NULL) STRICT;"
    "CREATE TABLE hold_end(hold INTEGER PRIMARY KEY REFERENCES hold(id), end_us INTEGER NOT NULL,"
    " reason TEXT NOT NULL, estimated INTEGER NOT NULL) STRICT;"
    "CREATE TABLE capacity(id INTEGER PRIMARY KEY, node TEXT NOT NULL, pool TEXT NOT NULL,"
    " product TEXT NOT NULL, from_us INTEGER NOT NULL, total_num INTEGER NOT NULL,"
    " total_den INTEGER NOT NULL, unhealthy_num INTEGER NOT NULL, unhealthy_den INTEGER NOT NULL,"
    " down INTEGER NOT NULL, estimated INTEGER NOT NULL) STRICT;"
    "CREATE TABLE price(id INTEGER PRIMARY KEY, pool TEXT NOT NULL, from_us INTEGER NOT NULL,"
    " num INTEGER NOT NULL, den INTEGER NOT NULL, currency TEXT NOT NULL) STRICT;"
    "CREATE TABLE gap(id INTEGER PRIMARY KEY, from_us INTEGER NOT NULL,"
    " until_us INTEGER NOT NULL) STRICT;" APPEND_ONLY("hold") APPEND_ONLY("hold_end")
        APPEND_ONLY("capacity") APPEND_ONLY("price") APPEND_ONLY("gap");

/* From format i + 1 to the next. */
static const char *const UPGRADES[LEDGER_FORMAT - 1] = {
    "ALTER TABLE hold ADD COLUMN mode TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE price ADD COLUMN borrow_num INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE price ADD COLUMN borrow_den INTEGER NOT NULL DEFAULT 1;"
    "CREATE TABLE guarantee(id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, pool TEXT NOT NULL,"
    " from_us INTEGER NOT NULL, bound INTEGER NOT NULL, num INTEGER NOT NULL,"
    " den INTEGER NOT NULL, granted_num INTEGER NOT NULL, granted_den INTEGER NOT NULL,"
    " labels TEXT NOT NULL) STRICT;"
    "CREATE TABLE activity(id INTEGER PRIMARY KEY, hold INTEGER NOT NULL REFERENCES hold(id),"
    " from_us INTEGER NOT NULL, use INTEGER NOT NULL) STRICT;"
    "CREATE INDEX activity_of ON activity(hold, id);" APPEND_ONLY(
        "activity") "CREATE INDEX guarantee_of ON guarantee(tenant, pool, id);" APPEND_ONLY("guaran"
                                                                                            "tee"),
};

enum row {
    ROW_HOLD,
    ROW_END,
    ROW_CAPACITY,
    ROW_PRICE,
    ROW_GAP,
    ROW_GUARANTEE,
    ROW_ACTIVITY,
    ROW_META,
    N_ROWS
};
static const char *const INSERTS[N_ROWS] = {
    [ROW_HOLD] = "INSERT INTO hold(pod_uid, tenant, cluster, ns, name, owner, node, pool, product,"
                 " resources, mode, gpu_num, gpu_den, begin_us)"
                 " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)"
                 " ON CONFLICT(pod_uid) DO NOTHING",
    [ROW_END] = "INSERT INTO hold_end SELECT id, max(begin_us, ?2), ?3, ?4 FROM hold"
                " WHERE pod_uid = ?1 ON CONFLICT(hold) DO NOTHING",
    [ROW_CAPACITY] = "INSERT INTO capacity(node, pool, product, from_us, total_num, total_den,"
                     " unhealthy_num, unhealthy_den, down, estimated)"
                     " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
    /* Not before the one on record, nor in what was seen: a clock may be set back. */
    [ROW_PRICE] = "INSERT INTO price(pool, from_us, num, den, currency, borrow_num, borrow_den)"
                  " SELECT ?1,"
                  " max(?2, coalesce((SELECT max(from_us) FROM price WHERE pool = ?1), ?2),"
                  " CASE WHEN EXISTS (SELECT 1 FROM price WHERE pool = ?1)"
                  " THEN (SELECT value FROM meta WHERE key = 'seen') ELSE ?2 END), ?3,?4,?5,?6,?7"
                  " WHERE NOT EXISTS (SELECT 1 FROM price WHERE num = ?3 AND den = ?4 AND"
                  " currency = ?5 AND borrow_num = ?6 AND borrow_den = ?7 AND id = (SELECT max(id) "
                  "FROM price WHERE pool = ?1))",
    [ROW_GAP] = "INSERT INTO gap(from_us, until_us) VALUES(?1,?2)",
    [ROW_GUARANTEE] =
        "INSERT INTO guarantee(tenant, pool, from_us, bound, num, den, granted_num, granted_den,"
        " labels)"
        " SELECT ?1, ?2, max(?3, (SELECT value FROM meta WHERE key = 'seen'),"
        " coalesce((SELECT from_us FROM guarantee WHERE tenant = ?1 AND pool = ?2"
        " ORDER BY id DESC LIMIT 1), ?3)),"
        " ?4, ?5, ?6, ?7, ?8, ?9",
    [ROW_ACTIVITY] = "INSERT INTO activity(hold, from_us, use) SELECT id, max(begin_us, ?2,"
                     " (SELECT value FROM meta WHERE key = 'seen'), coalesce((SELECT max(from_us)"
                     " FROM activity WHERE activity.hold = hold.id), 0)), ?3 FROM hold"
                     " WHERE pod_uid = ?1",
    [ROW_META] = "INSERT INTO meta VALUES(?1,?2) ON CONFLICT(key) DO UPDATE SET value = ?2",
};

struct ledger {
    unsigned magic;
    sqlite3 *db;
    sqlite3_stmt *inserts[N_ROWS];
    int lock;
    bool dirty; /* a transaction is open */
    int64_t identity, begin_us, seen_us;
};

/* --- statements --- */

static int exec(struct ledger *l, const char *sql, struct err *err)
{
    return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : ledger_failed(l->db, "ledger", err);
}

static sqlite3_stmt *row(struct ledger *l, enum row which)
{
    sqlite3_reset(l->inserts[which]);
    return l->inserts[which];
}

/* A statement that cannot be run leaves the transaction open: the caller gives up the ledger. */
static int insert(struct ledger *l, enum row which, struct err *err)
{
    int code;

    assert(l->magic == LEDGER_MAGIC);
    if (!l->dirty && exec(l, "BEGIN IMMEDIATE", err))
        return -1;
    l->dirty = true;
    code = sqlite3_step(l->inserts[which]);
    sqlite3_reset(l->inserts[which]);
    return code == SQLITE_DONE ? 0 : ledger_failed(l->db, "ledger", err);
}

static int put_meta(struct ledger *l, const char *key, int64_t value, struct err *err)
{
    sqlite3_stmt *s = row(l, ROW_META);

    ledger_bind_str(s, 1, str_c(key));
    sqlite3_bind_int64(s, 2, value);
    return insert(l, ROW_META, err);
}

/* --- open and close --- */

static int lock_directory(struct ledger *l, struct arena *a, struct str directory, struct err *err)
{
    const char *path = arena_cstr(a, directory);

    if (mkdir(path, 0700) && errno != EEXIST)
        return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
    l->lock =
        open(arena_printf(a, "%s/lock", path).p, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (l->lock < 0)
        return err_set(err, &ERR_STORAGE, "%s/lock: %s", path, strerrordesc_np(errno));
    if (flock(l->lock, LOCK_EX | LOCK_NB))
        return err_set(err, &ERR_STORAGE, "%s: another process has it open", path);
    return 0;
}

static int prepare(struct ledger *l, struct err *err)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (sqlite3_prepare_v3(l->db, INSERTS[i], -1, SQLITE_PREPARE_PERSISTENT, &l->inserts[i],
                               NULL) != SQLITE_OK)
            return ledger_failed(l->db, "ledger", err);
    return 0;
}

/* Of a ledger of this format, in the transaction that is open. */
static int upgrade(struct ledger *l, int64_t format, struct err *err)
{
    for (; format < LEDGER_FORMAT; format++)
        if (exec(l, UPGRADES[format - 1], err))
            return -1;
    l->dirty = true;
    return prepare(l, err);
}

static int bring_up_to_date(struct ledger *l, int64_t format, struct err *err)
{
    if (format == LEDGER_FORMAT)
        return 0;
    return exec(l, "BEGIN IMMEDIATE", err) || upgrade(l, format, err) ||
                   put_meta(l, "format", LEDGER_FORMAT, err) || ledger_commit(l, err)
               ? -1
               : 0;
}

/* In one transaction: a ledger without a format is a file without tables. */
static int create(struct ledger *l, int64_t now_us, uint64_t identity, struct err *err)
{
    if (exec(l, "BEGIN IMMEDIATE", err) || exec(l, SCHEMA, err) || upgrade(l, 1, err))
        return -1;
    return put_meta(l, "format", LEDGER_FORMAT, err) ||
                   put_meta(l, "identity", (int64_t)identity, err) ||
                   put_meta(l, "begin", now_us, err) || put_meta(l, "seen", now_us, err) ||
                   ledger_commit(l, err)
               ? -1
               : 0;
}

static bool is_empty(struct ledger *l)
{
    sqlite3_stmt *s = NULL;
    bool empty =
        sqlite3_prepare_v2(l->db, "SELECT 1 FROM sqlite_schema", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_DONE;

    sqlite3_finalize(s);
    return empty;
}

static int open_database(struct ledger *l, const char *path, int64_t now_us, uint64_t identity,
                         struct err *err)
{
    int64_t format;

    if (sqlite3_open_v2(path, &l->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(l->db, 10000) != SQLITE_OK || exec(l, SETTINGS, err))
        return ledger_failed(l->db, path, err);
    if (is_empty(l) && create(l, now_us, identity, err))
        return -1;
    if (ledger_meta(l->db, "format", &format, err) || ledger_check_format(format, err) ||
        bring_up_to_date(l, format, err))
        return -1;
    if (!l->inserts[0] && prepare(l, err))
        return -1;
    return ledger_meta(l->db, "identity", &l->identity, err) ||
                   ledger_meta(l->db, "begin", &l->begin_us, err) ||
                   ledger_meta(l->db, "seen", &l->seen_us, err)
               ? -1
               : 0;
}

int ledger_open(struct str directory, int64_t now_us, uint64_t identity, struct ledger **ret,
                struct err *err)
{
    struct ledger *l = NEW(struct ledger);
    struct arena *a = arena_new(0);
    int result;

    *l = (struct ledger){.magic = LEDGER_MAGIC, .lock = -1};
    result = lock_directory(l, a, directory, err) ||
             open_database(l, arena_printf(a, "%.*s/" LEDGER_FILE, STR_F(directory)).p, now_us,
                           identity, err);
    arena_free(a);
    if (result) {
        ledger_close(l);
        return -1;
    }
    *ret = l;
    return 0;
}

struct ledger *ledger_close(struct ledger *l)
{
    if (!l)
        return NULL;
    assert(l->magic == LEDGER_MAGIC);
    for (unsigned i = 0; i < N_ROWS; i++)
        sqlite3_finalize(l->inserts[i]);
    sqlite3_close(l->db);
    if (l->lock >= 0)
        close(l->lock);
    l->magic = 0;
    return mem_free(l);
}

/* --- records --- */

uint64_t ledger_identity(const struct ledger *l)
{
    return (uint64_t)l->identity;
}

int64_t ledger_begin_us(const struct ledger *l)
{
    return l->begin_us;
}

int64_t ledger_seen_us(const struct ledger *l)
{
    return l->seen_us;
}

static int64_t not_before(const struct ledger *l, int64_t us)
{
    return us < l->begin_us ? l->begin_us : us;
}

int ledger_add_hold(struct ledger *l, const struct fleet_hold *hold, struct err *err)
{
    const struct str strings[] = {hold->pod_uid, hold->tenant,    hold->cluster, hold->ns,
                                  hold->name,    hold->owner,     hold->node,    hold->pool,
                                  hold->product, hold->resources, hold->mode};
    sqlite3_stmt *s = row(l, ROW_HOLD);
    int at = 1;

    for (size_t i = 0; i < COUNT(strings); i++)
        ledger_bind_str(s, at++, strings[i]);
    sqlite3_bind_int64(s, at++, hold->gpu_eq.num);
    sqlite3_bind_int64(s, at++, hold->gpu_eq.den);
    sqlite3_bind_int64(s, at, not_before(l, hold->begin_us));
    return insert(l, ROW_HOLD, err);
}

int ledger_end_hold(struct ledger *l, struct str pod_uid, int64_t end_us, struct str reason,
                    bool estimated, struct err *err)
{
    sqlite3_stmt *s = row(l, ROW_END);

    ledger_bind_str(s, 1, pod_uid);
    sqlite3_bind_int64(s, 2, not_before(l, end_us));
    ledger_bind_str(s, 3, reason);
    sqlite3_bind_int(s, 4, estimated);
    return insert(l, ROW_END, err);
}

int ledger_add_capacity(struct ledger *l, const struct fleet_capacity *c, struct err *err)
{
    sqlite3_stmt *s = row(l, ROW_CAPACITY);

    ledger_bind_str(s, 1, c->node);
    ledger_bind_str(s, 2, c->pool);
    ledger_bind_str(s, 3, c->product);
    sqlite3_bind_int64(s, 4, not_before(l, c->from_us));
    sqlite3_bind_int64(s, 5, c->total.num);
    sqlite3_bind_int64(s, 6, c->total.den);
    sqlite3_bind_int64(s, 7, c->unhealthy.num);
    sqlite3_bind_int64(s, 8, c->unhealthy.den);
    sqlite3_bind_int(s, 9, c->down);
    sqlite3_bind_int(s, 10, c->estimated);
    return insert(l, ROW_CAPACITY, err);
}

int ledger_add_price(struct ledger *l, const struct fleet_price *price, struct err *err)
{
    sqlite3_stmt *s = row(l, ROW_PRICE);

    ledger_bind_str(s, 1, price->pool);
    sqlite3_bind_int64(s, 2, not_before(l, price->from_us));
    sqlite3_bind_int64(s, 3, price->price.num);
    sqlite3_bind_int64(s, 4, price->price.den);
    ledger_bind_str(s, 5, price->currency);
    sqlite3_bind_int64(s, 6, price->borrow.den ? price->borrow.num : 1);
    sqlite3_bind_int64(s, 7, price->borrow.den ? price->borrow.den : 1);
    return insert(l, ROW_PRICE, err);
}

int ledger_add_guarantee(struct ledger *l, const struct fleet_guarantee *g, struct err *err)
{
    sqlite3_stmt *s = row(l, ROW_GUARANTEE);

    ledger_bind_str(s, 1, g->tenant);
    ledger_bind_str(s, 2, g->pool);
    sqlite3_bind_int64(s, 3, not_before(l, g->from_us));
    sqlite3_bind_int(s, 4, g->bound);
    sqlite3_bind_int64(s, 5, g->guarantee.num);
    sqlite3_bind_int64(s, 6, g->guarantee.den);
    sqlite3_bind_int64(s, 7, g->granted.num);
    sqlite3_bind_int64(s, 8, g->granted.den);
    ledger_bind_str(s, 9, g->labels);
    return insert(l, ROW_GUARANTEE, err);
}

int ledger_add_activity(struct ledger *l, struct str pod_uid, int64_t from_us, enum fleet_use use,
                        struct err *err)
{
    sqlite3_stmt *s = row(l, ROW_ACTIVITY);

    ledger_bind_str(s, 1, pod_uid);
    sqlite3_bind_int64(s, 2, not_before(l, from_us));
    sqlite3_bind_int(s, 3, (int)use);
    return insert(l, ROW_ACTIVITY, err);
}

int ledger_add_gap(struct ledger *l, const struct fleet_gap *gap, struct err *err)
{
    sqlite3_stmt *s = row(l, ROW_GAP);

    sqlite3_bind_int64(s, 1, gap->from_us);
    sqlite3_bind_int64(s, 2, gap->until_us);
    return insert(l, ROW_GAP, err);
}

int ledger_set_seen(struct ledger *l, int64_t now_us, struct err *err)
{
    if (now_us <= l->seen_us)
        return 0;
    l->seen_us = now_us;
    return put_meta(l, "seen", now_us, err);
}

int ledger_commit(struct ledger *l, struct err *err)
{
    if (!l->dirty)
        return 0;
    if (exec(l, "COMMIT", err))
        return -1;
    l->dirty = false;
    return 0;
}
