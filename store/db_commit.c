/* SPDX-License-Identifier: Apache-2.0
 * Transactions on the SQLite file, and keeping file and log small. Runs on the writer thread. A
 * transaction that failed must leave nothing behind: not in this process, and as far as the disk
 * still obeys, not after a crash either (see heal()). */
#include "db_disk.h"
#include "db_file.h"
#include "db_impl.h"
#include "op.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A transaction of at most so many bytes may use the reserve whatever it is: deletes can be in it.
 */
#define SMALL ((size_t)256 << 10)
/* Up to so many free pages are left where they are. */
#define FREE_PAGES 256

/* Steps a statement that returns no rows (rows are skipped) and resets it. */
static int run(struct db *db, enum statement which)
{
    sqlite3_stmt *q = db->statements[which];
    int rc;

    errno = 0;
    do
        rc = sqlite3_step(q);
    while (rc == SQLITE_ROW);
    rc = sqlite3_reset(q);
    return rc ? -1 : 0;
}

static void bind_blob(sqlite3_stmt *q, int index, struct str s)
{
    sqlite3_bind_blob64(q, index, s.p ? s.p : "", s.n, SQLITE_STATIC);
}

static int put_version(struct db *db, const struct op *op)
{
    const struct store_object *o = op->version.object;
    int64_t key = db_sum_key(db->sum, op->version.resource, o->ns, o->name);
    struct row row = db_row_begin(db->sum, db_statement(db, SQL_VERSION), STR("version"));

    db_row_integer(&row, o->revision);
    db_row_integer(&row, op->version.at);
    db_row_integer(&row, op->type);
    db_row_integer(&row, o->resource);
    db_row_integer(&row, o->skip);
    db_row_text(&row, o->ns);
    db_row_text(&row, o->name);
    db_row_text(&row, o->uid);
    db_row_blob(&row, o->labels);
    db_row_blob(&row, o->fields);
    db_row_text(&row, o->bytes);
    db_row_integer(&row, key);
    db_row_end(&row);
    if (run(db, SQL_VERSION))
        return -1;

    row = db_row_begin(db->sum, db_statement(db, SQL_TRAIL), STR("trail"));
    db_row_integer(&row, o->revision);
    db_row_integer(&row, op->type);
    db_row_integer(&row, key);
    db_row_end(&row);
    return run(db, SQL_TRAIL);
}

static int put_record(struct db *db, const struct op *op)
{
    struct row row = db_row_begin(db->sum, db_statement(db, SQL_RECORD_PUT), STR("record"));

    db_row_integer(&row, op->type);
    db_row_blob(&row, op->record.key);
    db_row_blob(&row, op->record.value);
    db_row_end(&row);
    return run(db, SQL_RECORD_PUT);
}

static int delete_record(struct db *db, const struct op *op)
{
    sqlite3_stmt *q = db_statement(db, SQL_RECORD_DELETE);

    sqlite3_bind_int(q, 1, (int)op->type);
    bind_blob(q, 2, op->record.key);
    return run(db, SQL_RECORD_DELETE);
}

static int put_resource(struct db *db, const struct op *op)
{
    struct row row = db_row_begin(db->sum, db_statement(db, SQL_RESOURCE), STR("resource"));

    db_row_integer(&row, op->resource.id);
    db_row_text(&row, op->resource.name);
    db_row_end(&row);
    return run(db, SQL_RESOURCE);
}

static int drop_resource(struct db *db, const struct op *op)
{
    sqlite3_bind_int(db_statement(db, SQL_RESOURCE_DELETE), 1, (int)op->resource.id);
    return run(db, SQL_RESOURCE_DELETE);
}

static int drop_versions(struct db *db, const struct op *op)
{
    for (int i = 0; i < 2; i++) {
        if (!op->drop.dead[i])
            continue;
        sqlite3_bind_int64(db_statement(db, SQL_VERSION_DELETE), 1, op->drop.dead[i]);
        sqlite3_bind_int64(db_statement(db, SQL_TRAIL_DELETE), 1, op->drop.dead[i]);
        if (run(db, SQL_VERSION_DELETE) || run(db, SQL_TRAIL_DELETE))
            return -1;
    }
    return 0;
}

static int put_revision(struct db *db, const struct op *op)
{
    sqlite3_bind_int64(db_statement(db, SQL_REVISION), 1, op->revision);
    return run(db, SQL_REVISION);
}

typedef int (*op_fn)(struct db *db, const struct op *op);
static const op_fn OPS[] = {
    [OP_RESOURCE_DROP] = drop_resource, [OP_RESOURCE] = put_resource,
    [OP_VERSION] = put_version,         [OP_RECORD_PUT] = put_record,
    [OP_RECORD_DELETE] = delete_record, [OP_DROP] = drop_versions,
    [OP_REVISION] = put_revision,
};

static int64_t statement_number(struct db *db, enum statement which)
{
    sqlite3_stmt *q = db_statement(db, which);
    int64_t n = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;

    sqlite3_reset(q);
    return n;
}

/* Free pages are used again by later writes; only a large share of them is worth moving pages for.
 */
static bool vacuum_due(struct db *db)
{
    int64_t free_pages = statement_number(db, SQL_FREE_PAGES);

    return free_pages > FREE_PAGES && free_pages > statement_number(db, SQL_PAGES) / 4;
}

int db_run_ops(struct db *db, const struct op *ops, size_t n)
{
    int64_t floor = 0, records = 0;

    for (size_t i = 0; i < n; i++) {
        if (OPS[ops[i].kind](db, &ops[i]))
            return -1;
        if (ops[i].kind == OP_DROP)
            floor = ops[i].drop.floor;
        if (ops[i].kind == OP_RECORD_PUT || ops[i].kind == OP_RECORD_DELETE)
            records += ops[i].record.added;
    }
    if (records) {
        sqlite3_bind_int64(db_statement(db, SQL_RECORDS), 1, records);
        if (run(db, SQL_RECORDS))
            return -1;
    }
    if (!floor)
        return 0;

    sqlite3_bind_int64(db_statement(db, SQL_FLOOR), 1, floor);
    if (run(db, SQL_FLOOR))
        return -1;
    return vacuum_due(db) ? run(db, SQL_VACUUM) : 0;
}

/* A transaction that failed while it was being synced may stand complete in the log, behind what
 * this connection takes for the log's end; a crash now would bring it back. The next transaction
 * that succeeds overwrites it from its first frame, and what is left of it no longer fits the chain
 * of checksums. So one is made at once, and again before every later commit until one succeeds. */
static void heal(struct db *db)
{
    if (!run(db, SQL_HEAL))
        db->stale = false;
}

int db_heal(struct db *db)
{
    db->stale = true;
    heal(db);
    if (db->stale)
        db_disk_blame(db);
    return db->stale ? -1 : 0;
}

static void clear_bindings(struct db *db)
{
    static const enum statement bound[] = {SQL_VERSION, SQL_RECORD_PUT, SQL_RECORD_DELETE,
                                           SQL_RESOURCE};

    /* The bound memory is the loop thread's; no pointer to it outlives the transaction. */
    for (size_t i = 0; i < COUNT(bound); i++)
        sqlite3_clear_bindings(db_statement(db, bound[i]));
}

static int attempt(struct db *db, const struct op *ops, size_t n, struct err *err)
{
    bool began = !run(db, SQL_BEGIN);
    bool noted = began && !db_mark(db) && !db_meta_promise_log(db);
    int result = noted && !db_run_ops(db, ops, n) && !run(db, SQL_COMMIT) ? 0 : -1;

    int code = sqlite3_extended_errcode(db->sql) & 0xff;

    db->damaged = result && (code == SQLITE_CORRUPT || code == SQLITE_NOTADB);
    if (result)
        db_error(db, "write", err);
    clear_bindings(db);
    if (result && !sqlite3_get_autocommit(db->sql))
        run(db, SQL_ROLLBACK);
    db->stale = result != 0;
    if (!result)
        db_marked(db);
    return result;
}

/* What the reserve may be used for by a transaction of any kind. */
static bool is_small(const struct op *ops, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind == OP_VERSION)
            bytes += ops[i].version.object->bytes.n;
        else if (ops[i].kind == OP_RECORD_PUT)
            bytes += ops[i].record.value.n;
    }
    return bytes <= SMALL && n <= SMALL / DB_PAGE;
}

bool db_is_damaged(const struct db *db)
{
    return db->damaged;
}

/* Zeros in place of the tail that a file has lost: SQLite folds no log into one much shorter
 * than it must be. The log knows how long that is, by a checksum. */
static int extend(struct db *db)
{
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    int64_t pages = 0;

    if (sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_FILE_POINTER, &file) ||
        db_number(db, "PRAGMA page_count", &pages, NULL) ||
        file->pMethods->xFileSize(file, &size) || size >= pages * DB_PAGE)
        return -1;
    return file->pMethods->xTruncate(file, pages * DB_PAGE) ? -1 : 0;
}

/* All of it is in the file, and the next transaction begins it anew. SQLite would cut off its
 * header as well; but a log is always there, so that one that is not was lost: see db_log.c. */
static int shorten_log(struct db *db)
{
    sqlite3_file *log = NULL;
    sqlite3_int64 size = 0;

    if (sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) || !log ||
        !log->pMethods) /* not yet read */
        return 0;
    int rc = log->pMethods->xFileSize(log, &size);
    return rc || size <= DB_LOG_EMPTY ? rc : log->pMethods->xTruncate(log, DB_LOG_EMPTY);
}

static int checkpoint_once(struct db *db, int mode)
{
    errno = 0;
    int frames = -1, folded = 0;
    int rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, mode, &frames, &folded);

    if (!rc && frames == folded)
        db->mark_due = true;
    return !rc && mode == SQLITE_CHECKPOINT_RESTART ? shorten_log(db) : rc;
}

static int checkpoint(struct db *db, int mode)
{
    int rc = checkpoint_once(db, mode);

    return (rc & 0xff) != SQLITE_CORRUPT || extend(db) ? rc : checkpoint_once(db, mode);
}

static void fold_log(struct db *db, int mode)
{
    int rc = checkpoint(db, mode);

    if (rc && db_disk_blame(db) == STORE_DISK_FULL) {
        if (db_reserve_give_up(db))
            rc = checkpoint(db, mode);
        if (!db->disk)
            db->disk = STORE_DISK_FULL;
    }
    db->trouble[0] = '\0';
    if (!rc)
        db->log_pages = 0;
    else
        snprintf(db->trouble, sizeof(db->trouble), "state.db: cannot fold the log: %s",
                 sqlite3_errstr(rc));
}

/* The first transaction has the keys of the cluster and its uid, and is in the file itself before
 * it is answered: no log that is lost leaves a file in which another cluster begins. A file that
 * takes no pages is noticed before it, by folding what making the tables left in the log: then it
 * fails, and left nothing. If only the fold behind it fails, it is committed and cannot be taken
 * back: it is answered while the log alone has it, and every later write is refused until a fold
 * succeeds. */
static bool may_grow_up(struct db *db)
{
    if (db->log_pages)
        fold_log(db, SQLITE_CHECKPOINT_PASSIVE);
    return !db->trouble[0];
}

static int attempt_and_grow_up(struct db *db, const struct op *ops, size_t n, struct err *err)
{
    if (attempt(db, ops, n, err))
        return -1;
    if (db->young || db->promise_due) {
        fold_log(db, SQLITE_CHECKPOINT_PASSIVE);
        db->young &= db->trouble[0] != '\0';
        db->promise_due = false; /* what is in the log is in the file with a later fold */
    }
    return 0;
}

int db_commit(struct db *db, const struct op *ops, size_t n, struct err *err)
{
    assert(db->magic == DB_MAGIC);
    db->damaged = false;
    if (db->read_only)
        return err_set(err, &ERR_STORAGE, "%s: write: %s", db->file, db->why);
    if ((db->young && !may_grow_up(db)) || (db->log_pages > DB_LOG_MAX && db->trouble[0]))
        return err_set(err, &ERR_STORAGE, "%s", db->trouble);
    if (!attempt_and_grow_up(db, ops, n, err))
        return 0;

    enum store_disk met = db->met;
    if (met == STORE_DISK_FULL && db_reserve_give_up(db)) {
        db->disk = STORE_DISK_FULL;
        if (is_small(ops, n) && !attempt_and_grow_up(db, ops, n, err))
            return 0;
    }
    heal(db);
    db->met = met;
    db_disk_failed(db, !db->stale);
    return -1;
}

bool db_fold(struct db *db)
{
    if (db->log_pages)
        fold_log(db, SQLITE_CHECKPOINT_RESTART);
    return !db->trouble[0];
}

int db_fold_all(struct db *db, const char *what, struct err *err)
{
    int rc = checkpoint(db, SQLITE_CHECKPOINT_RESTART);

    if (!rc || sqlite3_errcode(db->sql))
        return rc ? db_error(db, what, err) : 0;
    db_disk_met(db, errno); /* it is folded, and too long */
    return err_set(err, &ERR_STORAGE, "%s: %s: %s", db->file, what, sqlite3_errstr(rc));
}

void db_fold_last(struct db *db)
{
    (void)checkpoint_once(db, SQLITE_CHECKPOINT_RESTART);
}

/* Without room, a log that is used again from its start is all there is. */
void db_after_commit(struct db *db)
{
    int most = db->disk ? DB_LOG_PAGES / 8 : DB_LOG_PAGES;

    if (db->log_pages >= most && !db->read_only)
        fold_log(db, SQLITE_CHECKPOINT_PASSIVE);
}

bool db_tidy(struct db *db)
{
    if (db->read_only)
        return false;
    if (db->stale)
        heal(db);
    int64_t before = statement_number(db, SQL_FREE_PAGES);
    if (before && !run(db, SQL_VACUUM)) {
        int64_t left = statement_number(db, SQL_FREE_PAGES);
        db_after_commit(db);
        if (left && left < before)
            return true;
    }
    if (db->log_pages)
        fold_log(db, SQLITE_CHECKPOINT_RESTART);
    sqlite3_db_release_memory(db->sql);
    return false;
}
