/* SPDX-License-Identifier: Apache-2.0
 * Puts a backup in the place of a database, and checks files. The backup itself is only read. What
 * is restored is marked as a copy whatever it was: its revisions must not continue where it ends.
 */
#include "db_impl.h"

#include <sublet/encode.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int db_verify(struct db *db, struct err *err)
{
    int64_t faults;

    if (db_number(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
                  &faults, err))
        return -1;
    return faults ? err_set(err, &ERR_STORAGE, "%s: the file is damaged", db->file) : 0;
}

static int64_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? -1 : (int64_t)st.st_size;
}

/* A log beside the file belongs to it: reading the file alone would lose what is in there. */
static int check_complete(const char *from, struct arena *a, struct err *err)
{
    const char *log = arena_printf(a, "%s" DB_LOG_SUFFIX, from).p;

    if (size_of(log) > 0)
        return err_set(err, &ERR_STORAGE,
                       "%s: not a backup but the file of a store in use: %s exists", from, log);
    return 0;
}

/* Immutable: no locks, no log, nothing is created beside it. */
static int connect_source(struct db *source, struct arena *a, struct err *err)
{
    struct str path = url_encode(a, str_c(source->file));
    struct str uri = arena_printf(a, "file:%.*s?immutable=1", STR_F(path));
    int flags =
        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

    if (sqlite3_open_v2(uri.p, &source->sql, flags, NULL))
        return db_error(source, "open", err);
    if (db_check_owner(source, &source->format, err))
        return -1;
    if (!source->format)
        return err_set(err, &ERR_STORAGE, "%s is not a Sublet database", source->file);
    return db_verify(source, err);
}

static int copy(struct db *source, const char *to, struct err *err)
{
    struct db_backup *b = NULL;
    bool more = true;
    int result = db_backup_open(source, to, &b, err);

    while (!result && more)
        result = db_backup_step(b, &more, err);
    db_backup_close(b);
    return result;
}

/* Of a file that was lost. It would be applied to the restored file, and may have the only copy of
 * the last writes. */
static int put_log_aside(const char *log, struct err *err)
{
    char *kept = db_keep_name(log);
    int result = 0;

    if (rename(log, kept) && errno != ENOENT)
        result = err_set(err, &ERR_STORAGE, "%s: %s", log, strerrordesc_np(errno));
    mem_free(kept);
    return result;
}

static int place(struct db *source, const char *dir, struct arena *a, struct err *err)
{
    const char *to = arena_printf(a, "%s/" DB_FILE, dir).p;
    const char *log = arena_printf(a, "%s/" DB_LOG_FILE, dir).p;

    if (size_of(to) > 0)
        return err_set(err, &ERR_STORAGE, "%s exists already", to);
    return put_log_aside(log, err) || copy(source, to, err) ? -1 : 0;
}

int db_restore(const char *from, const char *dir, struct err *err)
{
    struct arena *a = arena_new(0);
    struct db source = {.magic = DB_MAGIC, .lock = -1, .file = arena_cstr(a, str_c(from))};
    int lock = -1, result = -1;

    if (!check_complete(from, a, err) && !connect_source(&source, a, err) &&
        !db_lock(dir, &lock, err))
        result = place(&source, dir, a, err);
    if (source.sql) {
        int rc = sqlite3_close(source.sql);
        assert(rc == SQLITE_OK);
    }
    if (lock >= 0)
        close(lock);
    arena_free(a);
    return result;
}
