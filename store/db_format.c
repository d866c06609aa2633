/* SPDX-License-Identifier: Apache-2.0
 * The formats of the file. user_version has the number; a step leads from each to the next, in one
 * transaction, and before it a copy of the file is kept as state.db.format-<number>, beside earlier
 * ones. A step that fails or is killed leaves the previous format. A released step never changes.
 *
 *   1  objects, history and records
 *   2  a checksum in every row; the trail, which knows the versions that were lost */
#include "db_file.h"
#include "db_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static const char TABLES[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL)"
    " WITHOUT ROWID;"
    "CREATE TABLE resource (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE version (revision INTEGER PRIMARY KEY, at INTEGER NOT NULL,"
    " type INTEGER NOT NULL, resource INTEGER NOT NULL, skip INTEGER NOT NULL, ns TEXT NOT NULL,"
    " name TEXT NOT NULL, uid TEXT NOT NULL, labels BLOB NOT NULL, fields BLOB NOT NULL,"
    " bytes TEXT NOT NULL, key INTEGER NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE trail (revision INTEGER PRIMARY KEY, type INTEGER NOT NULL,"
    " key INTEGER NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE record (kind INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;"
    /* For people with the sqlite3 shell; the program never reads it. */
    "CREATE VIEW object AS SELECT * FROM (SELECT r.name AS resource, v.ns, v.name, v.uid,"
    " max(v.revision) AS revision, v.type, v.bytes FROM version v JOIN resource r"
    " ON r.id = v.resource GROUP BY v.resource, v.ns, v.name) WHERE type <> 2;";

/* Of a file that is salvaged before it is migrated. */
static const char TABLES_1[] =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE resource (id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
    "CREATE TABLE version (revision INTEGER PRIMARY KEY, at INTEGER NOT NULL,"
    " type INTEGER NOT NULL, resource INTEGER NOT NULL, skip INTEGER NOT NULL, ns TEXT NOT NULL,"
    " name TEXT NOT NULL, uid TEXT NOT NULL, labels BLOB NOT NULL, fields BLOB NOT NULL,"
    " bytes TEXT NOT NULL);"
    "CREATE TABLE record (kind INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
    " PRIMARY KEY (kind, key)) WITHOUT ROWID;";

int db_format_tables(struct db *db, int format, struct err *err)
{
    char text[128];

    snprintf(text, sizeof(text), "PRAGMA application_id=%u;PRAGMA user_version=%d;", DB_APPLICATION,
             format);
    return db_sql(db, format == 1 ? TABLES_1 : TABLES, err) || db_sql(db, text, err) ? -1 : 0;
}

int db_format_create(struct db *db, struct err *err)
{
    if (db_sql(db, "BEGIN IMMEDIATE", err))
        return -1;
    return db_commit_sql(
        db, db_format_tables(db, DB_FORMAT, err) || db_meta_create(db, err) ? -1 : 0, err);
}

/* Rows of a resource that is not known get a key that no object has. */
static const char FROM_1[] = "DROP VIEW IF EXISTS object;"
                             "ALTER TABLE meta RENAME TO meta_1;"
                             "ALTER TABLE resource RENAME TO resource_1;"
                             "ALTER TABLE version RENAME TO version_1;"
                             "ALTER TABLE record RENAME TO record_1;";
static const char COPY_1[] =
    /* The epoch too, where there is one. */
    "INSERT OR REPLACE INTO meta SELECT key, value, " META_SUM " FROM meta_1;"
    "INSERT OR REPLACE INTO meta SELECT 'records', n, row_sum('meta', 'records', n)"
    " FROM (SELECT count(*) AS n FROM record_1);"
    "INSERT INTO resource SELECT id, name, row_sum('resource', id, name) FROM resource_1;"
    "INSERT INTO version SELECT " VERSION_COLUMNS ", " VERSION_SUM
    " FROM (SELECT v.*, row_sum('key', r.name, v.ns, v.name) AS key"
    "       FROM version_1 v LEFT JOIN resource_1 r ON r.id = v.resource) ORDER BY revision;"
    "INSERT INTO trail SELECT revision, type, key, " TRAIL_SUM " FROM version ORDER BY revision;"
    "INSERT INTO record SELECT kind, key, value, row_sum('record', kind, key, value) FROM record_1;"
    "DROP TABLE meta_1; DROP TABLE resource_1; DROP TABLE version_1; DROP TABLE record_1;";

static int from_1(struct db *db, struct err *err)
{
    if (db_sql(db, FROM_1, err) || db_sql(db, TABLES, err) || db_meta_create(db, err))
        return -1;
    return db_sql(db, COPY_1, err);
}

typedef int (*step_fn)(struct db *db, struct err *err);
static const step_fn STEPS[DB_FORMAT] = {[1] = from_1}; /* by the format each begins with */

static int run_step(struct db *db, int format, struct err *err)
{
    char text[32];

    snprintf(text, sizeof(text), "PRAGMA user_version=%d", format + 1);
    if (db_sql(db, "BEGIN IMMEDIATE", err))
        return -1;
    return db_commit_sql(db, STEPS[format](db, err) || db_sql(db, text, err) ? -1 : 0, err);
}

int db_format_migrate(struct db *db, int format, struct err *err)
{
    char suffix[32];

    for (; format < DB_FORMAT; format++) {
        assert(STEPS[format]);
        snprintf(suffix, sizeof(suffix), "format-%d", format);
        /* A copy of the file is one of the store when its log is empty. */
        if (db_fold_all(db, "migrate", err) || db_keep_version(db, suffix, err) ||
            run_step(db, format, err))
            return -1;
    }
    return db_fold_all(db, "migrate", err);
}
