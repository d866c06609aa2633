/* SPDX-License-Identifier: Apache-2.0
 * A file whose structure SQLite finds damaged is made again, of every row that can still be
 * reached: writing into it would damage more. The damaged file stays beside the salvaged file as
 * state.db.damaged.
 *
 * A table is read from both ends up to the pages that cannot be read, and then by the revisions the
 * other account of it knows. Rows are copied with their checksums: damage of one is found
 * by loading. Copying must never make a row look better than it is, and must never take a page that
 * the disk did not give for one that is damaged: the next start may read it. */
#include "db_disk.h"
#include "db_file.h"
#include "db_impl.h"
#include "db_salvage.h"

#include <sublet/store_admin.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE_VERSION VERSION_COLUMNS ", sum"
#define WHOLE_TRAIL   "revision, type, key, sum"

struct walk {
    const char *select, *insert;
};

/* Upwards and downwards; a row that both ways reach is the same one. */
static const struct walk WALKS[] = {
    {"SELECT key, value, sum FROM main.meta ORDER BY key",
     "INSERT OR IGNORE INTO meta VALUES (?1, ?2, ?3)"},
    {"SELECT key, value, sum FROM main.meta ORDER BY key DESC",
     "INSERT OR IGNORE INTO meta VALUES (?1, ?2, ?3)"},
    {"SELECT id, name, sum FROM main.resource ORDER BY id",
     "INSERT OR IGNORE INTO resource VALUES (?1, ?2, ?3)"},
    {"SELECT id, name, sum FROM main.resource ORDER BY id DESC",
     "INSERT OR IGNORE INTO resource VALUES (?1, ?2, ?3)"},
    {"SELECT " WHOLE_TRAIL " FROM main.trail ORDER BY revision",
     "INSERT OR IGNORE INTO trail VALUES (?1, ?2, ?3, ?4)"},
    {"SELECT " WHOLE_TRAIL " FROM main.trail ORDER BY revision DESC",
     "INSERT OR IGNORE INTO trail VALUES (?1, ?2, ?3, ?4)"},
    {"SELECT " WHOLE_VERSION " FROM main.version ORDER BY revision",
     "INSERT OR IGNORE INTO version VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)"},
    {"SELECT " WHOLE_VERSION " FROM main.version ORDER BY revision DESC",
     "INSERT OR IGNORE INTO version VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)"},
    {"SELECT kind, key, value, sum FROM main.record ORDER BY kind, key",
     "INSERT OR IGNORE INTO record VALUES (?1, ?2, ?3, ?4)"},
    {"SELECT kind, key, value, sum FROM main.record ORDER BY kind DESC, key DESC",
     "INSERT OR IGNORE INTO record VALUES (?1, ?2, ?3, ?4)"},
};

/* Of a call that errno was cleared before: what the system said of a read that failed, or for want
 * of memory, where SQLite may report damage instead. A read that was interrupted was repeated. */
static int system_said(void)
{
    return errno == EINTR ? 0 : errno;
}

static bool is_corrupt(int rc)
{
    rc &= 0xff;
    return !system_said() && (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_ERROR);
}

static bool is_no_memory(int rc)
{
    return (rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM;
}

static int no_memory(struct db *db, const char *what, struct err *err)
{
    return err_set(err, &ERR_STORAGE, "%s: %s: out of memory", db->file, what);
}

/* Of what is read, and is not damaged. */
static int source_error(struct db *from, struct err *err)
{
    return system_said() == ENOMEM ? no_memory(from, "salvage", err)
                                   : db_error(from, "salvage", err);
}

/* *ret_row: there is one; *ret_broken: the table is damaged there. -1: the disk did not give it. */
static int step_source(struct db *from, sqlite3_stmt *q, bool *ret_row, bool *ret_broken,
                       struct err *err)
{
    errno = 0;
    int rc = sqlite3_step(q);

    *ret_row = rc == SQLITE_ROW;
    *ret_broken = rc != SQLITE_ROW && rc != SQLITE_DONE;
    return *ret_broken && !is_corrupt(rc) ? source_error(from, err) : 0;
}

enum { RESOURCE_WALKS = 2, TRAIL_WALK = 4, VERSION_WALK = 6, RECORD_WALK = 8 };

/* A row that the new file does not take (a NULL where none can be) is not worth keeping. A value
 * that there was no memory for would be such a NULL: it ends the salvage. */
static int copy_row(sqlite3_stmt *from, sqlite3_stmt *to)
{
    for (int i = 0; i < sqlite3_column_count(from); i++) {
        if (sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i)))
            return -1;
    }
    int rc = sqlite3_step(to);
    sqlite3_reset(to);
    return rc == SQLITE_DONE || (rc & 0xff) == SQLITE_CONSTRAINT ? 0 : -1;
}

/* Both statements of a walk. *ret_source stays NULL where the table cannot be read at all. */
static int prepare(struct db *from, sqlite3_stmt **ret_source, struct db *to,
                   sqlite3_stmt **ret_target, const struct walk *w, struct err *err)
{
    if (sqlite3_prepare_v2(to->sql, w->insert, -1, ret_target, NULL))
        return db_error(to, "salvage", err);
    errno = 0;
    int rc = sqlite3_prepare_v2(from->sql, w->select, -1, ret_source, NULL);
    return rc && !is_corrupt(rc) ? source_error(from, err) : 0;
}

/* A page that is damaged ends a walk. What cannot be read or written for another reason ends all:
 * the disk may be well again at the next start, and what was given up would be lost. */
static int walk(struct db *from, struct db *to, const struct walk *w, bool *ret_broken,
                struct err *err)
{
    sqlite3_stmt *source = NULL, *target = NULL;
    int result = prepare(from, &source, to, &target, w, err);

    *ret_broken = !source;
    for (bool row = source != NULL; row && !result;) {
        result = step_source(from, source, &row, ret_broken, err);
        if (!result && row && copy_row(source, target))
            result = db_error(to, "salvage", err);
    }
    sqlite3_finalize(source);
    sqlite3_finalize(target);
    return result;
}

static int copy_revision(struct db *from, sqlite3_stmt *source, struct db *to, sqlite3_stmt *target,
                         int64_t revision, bool *ret_copied, struct err *err)
{
    bool broken;

    sqlite3_bind_int64(source, 1, revision);
    int result = step_source(from, source, ret_copied, &broken, err);
    if (!result && *ret_copied && copy_row(source, target))
        result = db_error(to, "salvage", err);
    sqlite3_reset(source);
    return result;
}

static int probe_each(struct db *from, sqlite3_stmt *source, struct db *to, sqlite3_stmt *target,
                      sqlite3_stmt *missing, struct err *err)
{
    bool copied;
    int rc;

    while ((rc = sqlite3_step(missing)) == SQLITE_ROW) {
        if (copy_revision(from, source, to, target, sqlite3_column_int64(missing, 0), &copied, err))
            return -1;
    }
    return rc == SQLITE_DONE ? 0 : db_error(to, "salvage", err);
}

static const struct walk BY_REVISION[] = {
    {"SELECT " WHOLE_VERSION " FROM main.version WHERE revision = ?1",
     "INSERT OR IGNORE INTO version VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)"},
    {"SELECT " WHOLE_TRAIL " FROM main.trail WHERE revision = ?1",
     "INSERT OR IGNORE INTO trail VALUES (?1, ?2, ?3, ?4)"},
};

/* Pages between two damaged ones are found by the revisions on them. */
static int probe(struct db *from, struct db *to, struct err *err)
{
    sqlite3_stmt *missing = NULL, *source = NULL, *target = NULL;
    int result = prepare(from, &source, to, &target, &BY_REVISION[0], err);

    if (!result && sqlite3_prepare_v2(to->sql,
                                      "SELECT revision FROM trail WHERE revision NOT IN"
                                      " (SELECT revision FROM version)",
                                      -1, &missing, NULL))
        result = db_error(to, "salvage", err);
    if (!result && source)
        result = probe_each(from, source, to, target, missing, err);
    sqlite3_finalize(missing);
    sqlite3_finalize(source);
    sqlite3_finalize(target);
    return result;
}

/* A version and its trail lost together leave no trace. That it may be so is kept, because what is
 * new looks whole. */
static int note_untraced(struct db *to, bool broken, struct err *err)
{
    int64_t versions, trails;

    if (db_number(to,
                  "SELECT count(*) FROM version WHERE revision NOT IN (SELECT revision FROM trail)",
                  &versions, err) ||
        db_number(to,
                  "SELECT count(*) FROM trail WHERE revision NOT IN (SELECT revision FROM version)",
                  &trails, err))
        return -1;
    return broken || (versions && trails) ? db_meta_put(to, "untraced", 1, err) : 0;
}

/* How many records there were is not known either: one at least is missing, and the absence of none
 * is proof. */
static int note_records(struct db *to, struct err *err)
{
    int64_t known, records;

    if (db_number(to, "SELECT count(*) FROM meta WHERE key = 'records' AND sum = " META_SUM, &known,
                  err) ||
        db_number(to, "SELECT count(*) FROM record", &records, err))
        return -1;
    return known ? 0 : db_meta_put(to, "records", records + 1, err);
}

static int copy_rows(struct db *from, struct db *to, const void *ctx, struct err *err)
{
    (void)ctx;
    bool broken[COUNT(WALKS)];

    for (size_t i = 0; i < COUNT(WALKS); i++) {
        if (walk(from, to, &WALKS[i], &broken[i], err))
            return -1;
    }
    if (probe(from, to, err) || (broken[RECORD_WALK] && note_records(to, err)))
        return -1;
    return note_untraced(to, broken[TRAIL_WALK] && broken[VERSION_WALK], err);
}

/* Format 1 has no checksums and no second account. */
#define VERSION_1 "revision, at, type, resource, skip, ns, name, uid, labels, fields, bytes"

static const struct walk WALKS_1[] = {
    {"SELECT key, value FROM main.meta ORDER BY key", "INSERT OR IGNORE INTO meta VALUES (?1, ?2)"},
    {"SELECT key, value FROM main.meta ORDER BY key DESC",
     "INSERT OR IGNORE INTO meta VALUES (?1, ?2)"},
    {"SELECT id, name FROM main.resource ORDER BY id",
     "INSERT OR IGNORE INTO resource VALUES (?1, ?2)"},
    {"SELECT id, name FROM main.resource ORDER BY id DESC",
     "INSERT OR IGNORE INTO resource VALUES (?1, ?2)"},
    {"SELECT " VERSION_1 " FROM main.version ORDER BY revision",
     "INSERT OR IGNORE INTO version VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"},
    {"SELECT " VERSION_1 " FROM main.version ORDER BY revision DESC",
     "INSERT OR IGNORE INTO version VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"},
    {"SELECT kind, key, value FROM main.record ORDER BY kind, key",
     "INSERT OR IGNORE INTO record VALUES (?1, ?2, ?3)"},
    {"SELECT kind, key, value FROM main.record ORDER BY kind DESC, key DESC",
     "INSERT OR IGNORE INTO record VALUES (?1, ?2, ?3)"},
};

/* What is lost of it nothing knows: no absence is proof any more, of an object or of a record. The
 * migration takes over both rows as they are; a record of kind 0 is a damaged one. */
static const char UNPROVEN_1[] = "INSERT OR REPLACE INTO meta VALUES ('untraced', 1);"
                                 "INSERT OR REPLACE INTO record VALUES (0, x'', x'');";

/* A file that cannot say which revisions are used up goes on like a copy. */
static int note_account_1(struct db *to, bool broken, struct err *err)
{
    int64_t known;

    if (db_number(to,
                  "SELECT count(*) FROM meta WHERE key IN ('copy', 'floor', 'heals', 'revision')",
                  &known, err))
        return -1;
    if (!broken && known == 4)
        return 0;
    return db_sql(to, "INSERT OR REPLACE INTO meta VALUES ('copy', 1)", err);
}

static int copy_rows_1(struct db *from, struct db *to, const void *ctx, struct err *err)
{
    (void)ctx;
    bool broken[COUNT(WALKS_1)];

    for (size_t i = 0; i < COUNT(WALKS_1); i++) {
        if (walk(from, to, &WALKS_1[i], &broken[i], err))
            return -1;
    }
    return note_account_1(to, broken[0], err) || db_sql(to, UNPROVEN_1, err) ? -1 : 0;
}

int db_salvage_resources(struct db *from, struct db *to, struct err *err)
{
    bool broken;

    for (size_t i = RESOURCE_WALKS; i < TRAIL_WALK; i++) {
        if (walk(from, to, &WALKS[i], &broken, err))
            return -1;
    }
    return 0;
}

int db_salvage_row(struct db *from, struct db *to, int64_t revision, bool *ret_copied,
                   struct err *err)
{
    int result = 0;

    *ret_copied = false;
    for (size_t i = 0; i < COUNT(BY_REVISION) && !result; i++) {
        sqlite3_stmt *source = NULL, *target = NULL;
        bool copied = false;

        result = prepare(from, &source, to, &target, &BY_REVISION[i], err);
        if (!result && source)
            result = copy_revision(from, source, to, target, revision, &copied, err);
        *ret_copied |= copied;
        sqlite3_finalize(source);
        sqlite3_finalize(target);
    }
    return result;
}

/* A file of its own, in one transaction and synced when this returns. */
static int write_new(struct db *db, struct db *new, db_fill fill, const void *ctx, struct err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;

    if (sqlite3_open_v2(new->file, &new->sql, flags, NULL) || db_sum_register(new->sum, new->sql))
        return db_error(new, "salvage", err);
    if (db_sql(new,
               "PRAGMA locking_mode=EXCLUSIVE;PRAGMA page_size=4096;"
               "PRAGMA auto_vacuum=INCREMENTAL;PRAGMA cache_size=-256;PRAGMA synchronous=EXTRA;"
               "BEGIN IMMEDIATE",
               err))
        return -1;
    int result = db_format_tables(new, db->format, err) || fill(db, new, ctx, err) ||
                         db_meta_report(db, new, DB_REPORT_SALVAGED, err)
                     ? -1
                     : 0;
    if (!result && db->format > 1)
        result = db_meta_forget_log(new, err);
    if (!result && db->format > 1 && db_mark_own(new->sql))
        result = db_error(new, "salvage", err);
    return db_commit_sql(new, result, err);
}

static int log_error(struct db *db, const char *log, struct err *err)
{
    db_disk_met(db, errno);
    return err_set(err, &ERR_STORAGE, "%s: %s", log, strerrordesc_np(errno));
}

/* Of a file that is closed. Frames that a power loss brings back, or that could not be cut off,
 * would be applied to the new file. */
static int settle_log(struct db *db, const char *log, struct err *err)
{
    int fd = open(log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 0 : log_error(db, log, err);
    int result = fstat(fd, &st) || fsync(fd) ? log_error(db, log, err) : 0;
    close(fd);
    if (result || st.st_size <= DB_LOG_EMPTY)
        return result;
    return unlink(log) ? log_error(db, log, err) : store_sync_dir_of(log, err);
}

/* All of the log is in the damaged file before its replacement is in place: unfolded, it would be
 * lost by a crash in between or a rename that fails. Its header stays beside either of them: the
 * damaged one says that it has a log. */
static int put_in_place(struct db *db, const char *new, struct err *err)
{
    if (db_fold_all(db, "salvage", err) || db_keep_damaged(db, err))
        return -1;
    db_disconnect(db);
    char *log = db_path_join(db->dir, DB_LOG_FILE);
    int result = settle_log(db, log, err);
    mem_free(log);
    if (result)
        return -1;
    if (rename(new, db->file)) {
        db_disk_met(db, errno);
        return err_set(err, &ERR_STORAGE, "%s: cannot be put in place", new);
    }
    return store_sync_dir_of(db->file, err);
}

/* Nothing is replaced: the disk may read the page again, and what was on it would be lost. */
static int unreadable(struct db *db, const char *why, struct err *err)
{
    return err_set(err, &ERR_STORAGE,
                   "%s: check: disk I/O error (%s): nothing was changed; if the disk stays so, see "
                   "\"Damaged data\" in docs/operating.md",
                   db->file, why);
}

/* A page that a check did not get is one of its findings, with the reason. */
static int reason_of(const char *finding)
{
    const char *code = finding ? strstr(finding, "error code=") : NULL;
    int rc = SQLITE_OK;

    return code && sscanf(code, "error code=%d", &rc) == 1 ? rc : SQLITE_OK;
}

/* What a check came to that did not find the file good: by its result, the reason it gives, and the
 * system. */
static int judge(struct db *db, int rc, int reason, int system, bool *ret, struct err *err)
{
    if (is_no_memory(rc) || is_no_memory(reason) || system == ENOMEM)
        return no_memory(db, "check", err);
    if (system || (reason & 0xff) == SQLITE_IOERR)
        return unreadable(db, system ? strerrordesc_np(system) : sqlite3_errstr(reason), err);
    if (rc && !is_corrupt(rc))
        return db_error(db, "check", err);
    *ret = true;
    return 0;
}

/* *ret: damaged. -1: the check did not get that far, or a page could not be read. */
static int look(struct db *db, bool *ret, struct err *err)
{
    sqlite3_stmt *q = NULL;

    errno = 0;
    int rc = sqlite3_prepare_v2(db->sql, "PRAGMA quick_check(1)", -1, &q, NULL);
    int result = 0, reason = SQLITE_OK;
    bool good = false;

    if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(q, 0);
        rc = text ? SQLITE_OK : SQLITE_NOMEM;
        reason = reason_of(text);
        good = text && !strcmp(text, "ok");
    }
    if (good)
        *ret = false;
    else
        result = judge(db, rc, reason, system_said(), ret, err);
    sqlite3_finalize(q);
    return result;
}

/* Every page, as SQLite would. */
static int read_all(struct db *db, struct err *err)
{
    char page[DB_PAGE];
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    int rc = sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_FILE_POINTER, &file);

    if (!rc)
        rc = file->pMethods->xFileSize(file, &size);
    for (sqlite3_int64 at = 0; !rc && at + DB_PAGE <= size; at += DB_PAGE)
        rc = file->pMethods->xRead(file, page, DB_PAGE, at);
    return rc ? unreadable(db, sqlite3_errstr(rc), err) : 0;
}

/* SQLite reports a page that could not be read like one that is damaged, and not always with the
 * error. So damage is what two looks find without an error of the system, while the disk reads
 * everything in between. */
static int find_damage(struct db *db, bool *ret, struct err *err)
{
    if (look(db, ret, err))
        return -1;
    if (!*ret)
        return 0;
    return read_all(db, err) ? -1 : look(db, ret, err);
}

int db_salvage_due(struct db *db, bool *ret_due, struct err *err)
{
    if (find_damage(db, ret_due, err))
        return -1;
    /* An error of the disk can look like damage; it is none when the second look does not find it.
     */
    return *ret_due ? find_damage(db, ret_due, err) : 0;
}

/* SQLite reads nothing of a file that is shorter than its first page says, unless it may write the
 * schema. */
void db_salvage_accept(struct db *db)
{
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
}

/* It is the same disk. */
static void take_over_met(struct db *db, const struct db *new)
{
    if (!new->met)
        return;
    db->met = new->met;
    memcpy(db->why, new->why, sizeof(db->why));
}

int db_salvage_replace(struct db *db, db_fill fill, const void *ctx, struct err *err)
{
    struct db new = {.magic = DB_MAGIC, .lock = -1, .raw = -1, .sum = db->sum, .dir = db->dir};

    db_salvage_accept(db);
    new.file = db_path_join(db->dir, DB_FILE ".salvage");
    unlink(new.file);
    int result = write_new(db, &new, fill, ctx, err);
    db_disconnect(&new);
    if (result)
        take_over_met(db, &new);
    else
        result = put_in_place(db, new.file, err);
    if (result)
        unlink(new.file);
    mem_free(new.file);
    return result;
}

int db_salvage(struct db *db, bool due, bool *ret_salvaged, struct err *err)
{
    *ret_salvaged = false;
    if (!due && db_salvage_due(db, &due, err))
        return -1;
    if (!due)
        return 0;
    int result = db_salvage_replace(db, db->format == 1 ? copy_rows_1 : copy_rows, NULL, err);
    *ret_salvaged = !result;
    return result;
}

int db_salvage_in_memory(struct db *db, struct err *err)
{
    struct db new = {.magic = DB_MAGIC, .lock = -1, .raw = -1, .sum = db->sum};

    db_salvage_accept(db);
    new.file = mem_strdup(STR(":memory:"));
    int result = write_new(db, &new, copy_rows, NULL, err);
    if (!result)
        result = db_sql(&new, "PRAGMA query_only=ON", err);
    if (!result) {
        int rc = sqlite3_close(db->sql);
        assert(rc == SQLITE_OK);
        db->sql = new.sql;
        new.sql = NULL;
    }
    db_disconnect(&new);
    mem_free(new.file);
    return result;
}
