/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger in SQLite: DIRECTORY/ledger.db, of which a lock of the directory keeps other writers
 * out. A commit is one fsync. Must not change the file as a reader, nor lock out its writer. */
#include "ledger_db.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sublet/mem.h>

#define SQLITE_MAGIC 0x6c73716cu
#define BUSY_MS      10000

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

/* A ledger has it from its first statement on. */
static const char STATEMENTS[] =
    "CREATE TABLE IF NOT EXISTS statement(id INTEGER PRIMARY KEY, tenant TEXT NOT NULL,"
    " number INTEGER NOT NULL, from_us INTEGER NOT NULL, until_us INTEGER NOT NULL,"
    " text TEXT NOT NULL, UNIQUE(tenant, number), UNIQUE(tenant, from_us)) STRICT;"
    "CREATE TRIGGER IF NOT EXISTS statement_kept BEFORE DELETE ON statement"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
    "CREATE TRIGGER IF NOT EXISTS statement_fixed BEFORE UPDATE ON statement"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;";

struct sqlite_db {
    struct ledger_db db;
    unsigned magic;
    bool writes; /* in transactions that commit() ends */
    bool dirty;  /* one is open */
    int lock;
    sqlite3 *handle;
};
struct sqlite_query {
    struct ledger_query query;
    sqlite3_stmt *statement;
    bool changes; /* rows */
};

static struct sqlite_db *of(struct ledger_db *db)
{
    struct sqlite_db *d = CONTAINER(db, struct sqlite_db, db);

    assert(d->magic == SQLITE_MAGIC);
    return d;
}

static sqlite3_stmt *statement(struct ledger_query *q)
{
    return CONTAINER(q, struct sqlite_query, query)->statement;
}

static int failed(struct sqlite_db *d, const char *doing, struct err *err)
{
    int code = sqlite3_extended_errcode(d->handle);
    bool is_there = code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY;

    return err_set(err, is_there ? &ERR_CONFLICT : &ERR_STORAGE, "%s: %s", doing,
                   sqlite3_errmsg(d->handle));
}

static int run(struct sqlite_db *d, const char *sql, struct err *err)
{
    return sqlite3_exec(d->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                       : failed(d, "ledger", err);
}

/* --- open and close --- */

static int lock_directory(struct sqlite_db *d, struct arena *a, struct str directory,
                          struct err *err)
{
    const char *path = arena_cstr(a, directory);

    if (mkdir(path, 0700) && errno != EEXIST)
        return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
    d->lock =
        open(arena_printf(a, "%s/lock", path).p, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->lock < 0)
        return err_set(err, &ERR_STORAGE, "%s/lock: %s", path, strerrordesc_np(errno));
    if (flock(d->lock, LOCK_EX | LOCK_NB))
        return err_set(err, &ERR_CONFLICT, "%s: another process has it open", path);
    return 0;
}

static void greatest(sqlite3_context *ctx, int n, sqlite3_value **values)
{
    sqlite3_value *most = values[0];

    for (int i = 1; i < n; i++)
        if (sqlite3_value_int64(values[i]) > sqlite3_value_int64(most))
            most = values[i];
    sqlite3_result_value(ctx, most);
}

static int open_file(struct sqlite_db *d, const char *path, enum ledger_db_mode mode,
                     struct err *err)
{
    static const struct {
        int flags;
        const char *settings;
    } modes[] = {
        [LEDGER_DB_READ] = {SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, ""},
        [LEDGER_DB_ADD] = {SQLITE_OPEN_READWRITE,
                           "PRAGMA trusted_schema=OFF; PRAGMA synchronous=FULL"},
        [LEDGER_DB_WRITE] = {SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, SETTINGS},
    };

    return sqlite3_open_v2(path, &d->handle, modes[mode].flags, NULL) != SQLITE_OK ||
                   sqlite3_busy_timeout(d->handle, BUSY_MS) != SQLITE_OK ||
                   sqlite3_create_function(d->handle, "greatest", -1,
                                           SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, greatest, NULL,
                                           NULL) != SQLITE_OK ||
                   sqlite3_exec(d->handle, modes[mode].settings, NULL, NULL, NULL) != SQLITE_OK
               ? failed(d, path, err)
               : 0;
}

static void close_db(struct ledger_db *db)
{
    struct sqlite_db *d = of(db);

    sqlite3_close(d->handle);
    if (d->lock >= 0)
        close(d->lock);
    d->magic = 0;
    mem_free(d);
}

static int open_db(struct str directory, enum ledger_db_mode mode, struct ledger_db **ret,
                   struct err *err)
{
    struct sqlite_db *d = NEW(struct sqlite_db);
    struct arena *a = arena_new(0);
    int result;

    *d = (struct sqlite_db){.db = {&ledger_sqlite},
                            .magic = SQLITE_MAGIC,
                            .writes = mode == LEDGER_DB_WRITE,
                            .lock = -1};
    result = (d->writes && lock_directory(d, a, directory, err)) ||
             open_file(d, arena_printf(a, "%.*s/ledger.db", STR_F(directory)).p, mode, err);
    arena_free(a);
    if (result) {
        close_db(&d->db);
        return -1;
    }
    *ret = &d->db;
    return 0;
}

static int is_empty(struct ledger_db *db, bool *ret, struct err *err)
{
    struct sqlite_db *d = of(db);
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(d->handle, "SELECT 1 FROM sqlite_schema", -1, &s, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    sqlite3_finalize(s);
    *ret = code == SQLITE_DONE;
    return *ret || code == SQLITE_ROW ? 0 : failed(d, "ledger", err);
}

/* --- transactions --- */

static int begin_read(struct ledger_db *db, struct err *err)
{
    return run(of(db), "BEGIN", err);
}

static int begin_write(struct sqlite_db *d, struct err *err)
{
    if (d->dirty)
        return 0;
    if (run(d, "BEGIN IMMEDIATE", err))
        return -1;
    d->dirty = true;
    return 0;
}

static int commit(struct ledger_db *db, struct err *err)
{
    struct sqlite_db *d = of(db);

    if (!d->dirty)
        return 0;
    if (run(d, "COMMIT", err))
        return -1;
    d->dirty = false;
    return 0;
}

static int upgrade(struct ledger_db *db, int64_t from, struct err *err)
{
    struct sqlite_db *d = of(db);

    if (begin_write(d, err) || (!from && run(d, SCHEMA, err)))
        return -1;
    for (int64_t format = from ? from : 1; format < LEDGER_FORMAT; format++)
        if (run(d, UPGRADES[format - 1], err))
            return -1;
    return 0;
}

static int add_statements(struct ledger_db *db, struct err *err)
{
    return run(of(db), STATEMENTS, err);
}

/* The next id is the greatest one and 1. */
static int imported(struct ledger_db *db, const char *table, struct err *err)
{
    (void)db;
    (void)table;
    (void)err;
    return 0;
}

/* --- queries --- */

static int prepare(struct ledger_db *db, const char *sql, struct ledger_query **ret,
                   struct err *err)
{
    struct sqlite_db *d = of(db);
    struct sqlite_query *q;
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v3(d->handle, sql, -1, d->writes ? SQLITE_PREPARE_PERSISTENT : 0, &s,
                           NULL) != SQLITE_OK)
        return failed(d, "ledger", err);
    q = NEW(struct sqlite_query);
    *q = (struct sqlite_query){{db}, s, !sqlite3_stmt_readonly(s)};
    *ret = &q->query;
    return 0;
}

static void free_query(struct ledger_query *query)
{
    struct sqlite_query *q = CONTAINER(query, struct sqlite_query, query);

    sqlite3_finalize(q->statement);
    mem_free(q);
}

static void bind_str(struct ledger_query *q, int parameter, struct str value)
{
    sqlite3_bind_text(statement(q), parameter, value.n ? value.p : "", (int)value.n,
                      SQLITE_TRANSIENT);
}

static void bind_int(struct ledger_query *q, int parameter, int64_t value)
{
    sqlite3_bind_int64(statement(q), parameter, value);
}

static int parameters(struct ledger_query *q)
{
    return sqlite3_bind_parameter_count(statement(q));
}

/* One that fails leaves the transaction open: the caller gives up the ledger. */
static enum ledger_step step(struct ledger_query *query, struct err *err)
{
    struct sqlite_query *q = CONTAINER(query, struct sqlite_query, query);
    struct sqlite_db *d = of(query->db);
    int code;

    if (q->changes && d->writes && begin_write(d, err))
        return LEDGER_FAILED;
    code = sqlite3_step(q->statement);
    if (code == SQLITE_ROW)
        return LEDGER_ROW;
    if (code == SQLITE_DONE)
        return LEDGER_DONE;
    failed(d, "ledger", err);
    return LEDGER_FAILED;
}

static void reset(struct ledger_query *q)
{
    sqlite3_reset(statement(q));
}

static bool is_null(struct ledger_query *q, int column)
{
    return sqlite3_column_type(statement(q), column) == SQLITE_NULL;
}

static int64_t column_int(struct ledger_query *q, int column)
{
    return sqlite3_column_int64(statement(q), column);
}

static struct str column_str(struct ledger_query *q, int column)
{
    const char *p = (const char *)sqlite3_column_text(statement(q), column);

    return (struct str){p, (size_t)sqlite3_column_bytes(statement(q), column)};
}

const struct ledger_db_ops ledger_sqlite = {
    .open = open_db,
    .close = close_db,
    .is_empty = is_empty,
    .upgrade = upgrade,
    .add_statements = add_statements,
    .imported = imported,
    .begin = begin_read,
    .commit = commit,
    .prepare = prepare,
    .free = free_query,
    .bind_str = bind_str,
    .bind_int = bind_int,
    .parameters = parameters,
    .step = step,
    .reset = reset,
    .is_null = is_null,
    .column_int = column_int,
    .column_str = column_str,
};
