/* SPDX-License-Identifier: Apache-2.0
 * Statements of the SQLite file, and what a failed one says of the disk. The lowest part of the
 * store's file: it must need no other. */
#include "db_disk.h"
#include "db_file.h"
#include "db_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- failures ---- */

static const struct {
    int system;
    enum store_disk disk;
} CAUSES[] = {
    {ENOSPC, STORE_DISK_FULL},      {EDQUOT, STORE_DISK_FULL},     {EROFS, STORE_DISK_READ_ONLY},
    {EACCES, STORE_DISK_READ_ONLY}, {EPERM, STORE_DISK_READ_ONLY},
};

enum store_disk db_disk_met(struct db *db, int system)
{
    db->met = STORE_DISK_WRITABLE;
    for (size_t i = 0; i < COUNT(CAUSES); i++) {
        if (CAUSES[i].system != system)
            continue;
        db->met = CAUSES[i].disk;
        snprintf(db->why, sizeof(db->why), "%s", strerrordesc_np(system));
    }
    return db->met;
}

enum store_disk db_disk_blame(struct db *db)
{
    int system = errno; /* SQLite keeps none of a failed COMMIT */
    int code = db->sql ? sqlite3_extended_errcode(db->sql) & 0xff : SQLITE_OK;

    if (code == SQLITE_FULL)
        return db_disk_met(db, ENOSPC);
    if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN)
        return db_disk_met(db, system);
    db_disk_met(db, code == SQLITE_READONLY ? EROFS : 0);
    if (db->met) /* the file was moved away, or was opened so */
        snprintf(db->why, sizeof(db->why), "%s", sqlite3_errmsg(db->sql));
    return db->met;
}

int db_error(struct db *db, const char *what, struct err *err)
{
    int system = errno;
    int code = db->sql ? sqlite3_extended_errcode(db->sql) & 0xff : 0;
    bool disk = system && (code == SQLITE_IOERR || code == SQLITE_FULL || code == SQLITE_CANTOPEN);

    db_disk_blame(db);
    return err_set(err, &ERR_STORAGE, "%s: %s: %s%s%s%s", db->file, what,
                   db->sql ? sqlite3_errmsg(db->sql) : "out of memory", disk ? " (" : "",
                   disk ? strerrordesc_np(system) : "", disk ? ")" : "");
}

/* ---- statements ---- */

static const char *const SQL[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_RESOURCE] = "INSERT OR REPLACE INTO resource (id, name, sum) VALUES (?1, ?2, ?3)",
    [SQL_RESOURCE_DELETE] = "DELETE FROM resource WHERE id = ?1",
    /* A damaged row may stand where this one belongs. */
    [SQL_VERSION] = ("INSERT OR REPLACE INTO version (" VERSION_COLUMNS ", sum)"
                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"),
    [SQL_VERSION_DELETE] = "DELETE FROM version WHERE revision = ?1",
    [SQL_VERSION_READ] = "SELECT " VERSION_COLUMNS ", sum FROM version WHERE revision = ?1",
    [SQL_TRAIL] = ("INSERT OR REPLACE INTO trail (revision, type, key, sum)"
                   " VALUES (?1, ?2, ?3, ?4)"),
    [SQL_TRAIL_DELETE] = "DELETE FROM trail WHERE revision = ?1",
    [SQL_RECORD_PUT] = ("INSERT INTO record (kind, key, value, sum) VALUES (?1, ?2, ?3, ?4)"
                        " ON CONFLICT (kind, key)"
                        " DO UPDATE SET value = excluded.value, sum = excluded.sum"),
    [SQL_RECORD_DELETE] = "DELETE FROM record WHERE kind = ?1 AND key = ?2",
    [SQL_FLOOR] = ("UPDATE meta SET value = ?1, sum = row_sum('meta', key, ?1)"
                   " WHERE key = 'floor'"),
    [SQL_REVISION] = ("UPDATE meta SET value = ?1, sum = row_sum('meta', key, ?1)"
                      " WHERE key = 'revision'"),
    [SQL_RECORDS] = ("UPDATE meta SET value = value + ?1, sum = row_sum('meta', key, value + ?1)"
                     " WHERE key = 'records'"),
    [SQL_HEAL] = ("UPDATE meta SET value = value + 1, sum = row_sum('meta', key, value + 1)"
                  " WHERE key = 'heals'"),
    [SQL_META_PUT] = ("INSERT OR REPLACE INTO meta (key, value, sum)"
                      " VALUES (?1, ?2, row_sum('meta', ?1, ?2))"),
    [SQL_FREE_PAGES] = "PRAGMA freelist_count",
    [SQL_PAGES] = "PRAGMA page_count",
    [SQL_VACUUM] = "PRAGMA incremental_vacuum(64)",
};

int db_prepare(struct db *db, struct err *err)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        if (sqlite3_prepare_v3(db->sql, SQL[i], -1, SQLITE_PREPARE_PERSISTENT, &db->statements[i],
                               NULL))
            return db_error(db, "prepare", err);
    }
    return 0;
}

sqlite3_stmt *db_statement(struct db *db, enum statement which)
{
    return db->statements[which];
}

int db_sql(struct db *db, const char *sql, struct err *err)
{
    errno = 0;
    if (sqlite3_exec(db->sql, sql, NULL, NULL, NULL))
        return db_error(db, "open", err);
    return 0;
}

/* Ends a transaction that a step with this result was part of. */
int db_commit_sql(struct db *db, int result, struct err *err)
{
    if (!result && !db_sql(db, "COMMIT", err))
        return 0;
    sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

int db_number(struct db *db, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(db->sql, sql, -1, &q, NULL))
        return db_error(db, "open", err);
    bool got = sqlite3_step(q) == SQLITE_ROW;
    if (got)
        *ret = sqlite3_column_int64(q, 0);
    if (sqlite3_finalize(q))
        return db_error(db, "open", err);
    return got ? 0 : err_set(err, &ERR_STORAGE, "%s: a row is missing", db->file);
}

void db_bind_text(sqlite3_stmt *q, int index, struct str s)
{
    sqlite3_bind_text64(q, index, s.p ? s.p : "", s.n, SQLITE_STATIC, SQLITE_UTF8);
}

struct str db_column(sqlite3_stmt *q, int index)
{
    /* The pointer first: it may convert the value, and then the length is another. */
    const void *p = sqlite3_column_blob(q, index);
    int n = sqlite3_column_bytes(q, index);

    return (struct str){p ? p : "", n > 0 ? (size_t)n : 0};
}
