/* SPDX-License-Identifier: Apache-2.0
 * A store on a disk that takes nothing is opened for reading: the file together with its log, which
 * holds the newest answered writes, and without making or changing any file. What of a damaged file
 * can be read is salvaged into memory, as a start would into a new file. Once the disk takes
 * writes again it is opened anew, and must then be the store that was read. */
#include "db_file.h"
#include "db_impl.h"
#include "db_salvage.h"

#include <sublet/encode.h>

#include <stdio.h>
#include <string.h>

static const char NEWEST[] = "SELECT coalesce(max(revision), 0) FROM version";

/* With the index of the log on the heap SQLite wants an exclusive lock of the file, which a
 * descriptor for reading cannot have, and nolock=1 rules out a log. <dir>/lock keeps others out. */
static const char *without_locks(void)
{
    return strcmp(sqlite3_vfs_find(NULL)->zName, "unix") ? NULL : "unix-none";
}

/* SQLite opens a file in WAL mode only together with its log, which it makes if there is none: then
 * the file alone is everything, and is declared immutable. */
int db_connect_reading(struct db *db, bool alone, struct err *err)
{
    struct arena *a = arena_new(0);
    struct str path = url_encode(a, str_c(db->file));
    struct str uri = arena_printf(a, "file:%.*s?immutable=%d", STR_F(path), alone);
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    int result = db_connect(db, uri.p, flags, without_locks(), err);

    arena_free(a);
    return result;
}

/* ---- whose is the log? ---- */

static bool is_no_memory(const struct db *db)
{
    int rc = db->sql ? sqlite3_extended_errcode(db->sql) : SQLITE_NOMEM;

    return rc == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM;
}

static int read_account(struct db *db, bool alone, struct db_mark_account *ret, struct err *err)
{
    struct db other = {.magic = DB_MAGIC,
                       .lock = -1,
                       .raw = -1,
                       .reserve = -1,
                       .sum = db->sum,
                       .dir = db->dir,
                       .file = db->file,
                       .read_only = true};
    int result = 0;

    *ret = (struct db_mark_account){0};
    if (!db_connect_reading(&other, alone, NULL))
        db_mark_read(&other, alone, ret);
    ret->corrupt = !ret->read && other.sql && (sqlite3_errcode(other.sql) & 0xff) == SQLITE_CORRUPT;
    if (!ret->read && is_no_memory(&other))
        result = err_set(err, &ERR_STORAGE, "%s: the log: out of memory", db->file);
    db_disconnect(&other);
    return result;
}

int db_log_is_foreign(struct db *db, bool *ret_foreign, struct err *err)
{
    struct db_mark_account file, both;

    if (read_account(db, true, &file, err))
        return -1;
    if (!db_mark_is_there(&file))
        return 0;
    if (read_account(db, false, &both, err))
        return -1;
    *ret_foreign = both.corrupt || (both.read && !db_mark_fits(&file, &both));
    return 0;
}

/* ---- opening ---- */

static int check_format(struct db *db, int format, struct err *err)
{
    if (format == DB_FORMAT) {
        db->format = format;
        return 0;
    }
    return err_set(err, &ERR_STORAGE, "%s: %s", db->file,
                   format ? "a file of an earlier format must be written before it can be read"
                          : "there is no store yet");
}

/* A file that cannot be checked is not replaced: what of it cannot be read shows up in loading. */
static int open_file(struct db *db)
{
    bool damaged;
    int format;

    if (db_check_connected(db, db_connect_reading(db, !db->log_there, NULL), &format, &damaged,
                           NULL) ||
        check_format(db, format, NULL) || db_log_find(db, format, NULL))
        return -1;
    if (!damaged && db_salvage_due(db, &damaged, NULL))
        damaged = false;
    if (damaged && db_salvage_in_memory(db, NULL))
        return -1;
    db->state.salvaged = damaged;
    return 0;
}

/* What opening it for writing failed with says more than that this failed, too. */
int db_read_only(struct db *db, struct err *err)
{
    enum store_disk disk = db->met == STORE_DISK_FULL ? STORE_DISK_USED_UP : STORE_DISK_READ_ONLY;
    char why[sizeof(db->why)];

    memcpy(why, db->why, sizeof(why));
    db_disconnect(db);
    db->read_only = true;
    db->options.after = (struct store_predecessor){0}; /* nor when it can be written again */
    if (db_log_look(db, NULL) || open_file(db) || db_meta_settle(db, NULL) ||
        db_number(db, NEWEST, &db->newest, NULL) || db_prepare(db, NULL))
        return -1;
    db->state.behind = db->state.log_missing || db->state.log_lost;
    db->disk = disk;
    memcpy(db->why, why, sizeof(why));
    if (err)
        err_clear(err);
    return 0;
}

/* The file may have been replaced while it could not be written. */
static bool is_the_same(struct db *db, const struct db_state *before)
{
    int64_t newest;

    return !db_number(db, NEWEST, &newest, NULL) && newest == db->newest &&
           !strcmp(before->identity.epoch, db->state.identity.epoch);
}

int db_reopen(struct db *db)
{
    struct db_state before = db->state;

    /* The next start begins another life: what this one has shown does not go on. */
    if (before.log_missing || before.log_lost) {
        snprintf(db->why, sizeof(db->why), "its log is %s: only a restart goes on writing",
                 before.log_missing ? "missing" : "lost");
        return -1;
    }
    db_disconnect(db);
    db->read_only = false;
    if (!db_open_writable(db, NULL)) {
        if (is_the_same(db, &before)) {
            if (db->keep_due)
                (void)db_keep_rows(db, false);
            return 0;
        }
        db->met = STORE_DISK_READ_ONLY;
        snprintf(db->why, sizeof(db->why), "it holds another store now");
    }
    if (!db->met) /* nothing that is known to be the disk's */
        snprintf(db->why, sizeof(db->why), "it cannot be opened any more");
    if (db_read_only(db, NULL)) /* nothing to read but what is in memory */
        db->disk = STORE_DISK_READ_ONLY;
    db->state = before;
    return -1;
}
