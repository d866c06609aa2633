/* SPDX-License-Identifier: Apache-2.0
 * Puts a backup in the place of a database, and checks files. The backup itself is only read. What
 * is restored is marked as a copy whatever it was: its revisions must not continue where it ends.
 *
 * A restore that was killed must not look like a directory without a store, in which a start begins
 * an empty cluster. So INCOMING is there from before the backup is read until it becomes the
 * database, and a directory that has it and no database is not opened: see db_restore_check(). */
#include "db_file.h"
#include "db_impl.h"

#include <sublet/encode.h>
#include <sublet/store_admin.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INCOMING DB_FILE ".restored"

/* SQLite's own check of the whole file. */
static int verify(struct db *db, struct err *err)
{
    int64_t faults;

    if (db_number(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
                  &faults, err))
        return -1;
    return faults ? err_set(err, &ERR_STORAGE, "%s: the file is damaged", db->file) : 0;
}

/* *ret: there is such a file, and it has more bytes. */
static int has_bytes(const char *path, off_t more_than, bool *ret, struct err *err)
{
    struct stat st = {0};

    if (stat(path, &st) && errno != ENOENT)
        return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
    *ret = st.st_size > more_than;
    return 0;
}

/* A log beside the file belongs to it: reading the file alone would lose what is in there. */
static int check_complete(const char *from, struct arena *a, struct err *err)
{
    const char *log = arena_printf(a, "%s" DB_LOG_SUFFIX, from).p;
    bool there = false;

    if (has_bytes(log, DB_LOG_EMPTY, &there, err))
        return -1;
    if (there)
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
    return verify(source, err);
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
    char *kept;

    if (db_keep_name(log, &kept, err))
        return -1;
    int result = 0;
    if (!rename(log, kept))
        result = store_sync_dir_of(log, err);
    else if (errno != ENOENT)
        result = err_set(err, &ERR_STORAGE, "%s: %s", log, strerrordesc_np(errno));
    mem_free(kept);
    return result;
}

/* From here on there is a database again: until then the log is what refuses a start. */
static int put_in_place(const char *incoming, const char *to, struct arena *a, struct err *err)
{
    if (put_log_aside(arena_printf(a, "%s" DB_LOG_SUFFIX, to).p, err))
        return -1;
    if (rename(incoming, to))
        return err_set(err, &ERR_STORAGE, "%s: %s", to, strerrordesc_np(errno));
    return store_sync_dir_of(to, err);
}

static int mark(const char *incoming, struct err *err)
{
    int fd = open(incoming, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_set(err, &ERR_STORAGE, "%s: %s", incoming, strerrordesc_np(errno));
    close(fd);
    return store_sync_dir_of(incoming, err);
}

struct restore {
    struct arena *arena;
    struct db source;
    const char *dir, *to, *incoming;
    int lock;
    bool made_dir;
};

/* Of a source that is no backup. A directory that was there before stays marked: it may be a volume
 * that the next start is to find the restored cluster on, and the source a pipe that broke. */
static void forget(const struct restore *r)
{
    if (!r->made_dir)
        return;
    unlink(r->incoming);
    unlink(arena_printf(r->arena, "%s/lock", r->dir).p);
    rmdir(r->dir);
}

static int restore(struct restore *r, struct err *err)
{
    r->made_dir = !mkdir(r->dir, 0700);
    if (db_lock(r->dir, &r->lock, err))
        return -1;
    bool there = false;
    if (has_bytes(r->to, 0, &there, err))
        return -1;
    if (there)
        return err_set(err, &ERR_STORAGE, "%s exists already", r->to);
    if (mark(r->incoming, err))
        return -1;
    if (check_complete(r->source.file, r->arena, err) ||
        connect_source(&r->source, r->arena, err)) {
        forget(r);
        return -1;
    }
    if (copy(&r->source, r->incoming, err))
        return -1;
    return put_in_place(r->incoming, r->to, r->arena, err);
}

int db_restore(const char *from, const char *dir, struct err *err)
{
    struct arena *a = arena_new(0);
    struct restore r = {
        .arena = a,
        .source = {.magic = DB_MAGIC, .lock = -1, .file = arena_cstr(a, str_c(from))},
        .dir = dir,
        .to = arena_printf(a, "%s/" DB_FILE, dir).p,
        .incoming = arena_printf(a, "%s/" INCOMING, dir).p,
        .lock = -1,
    };
    int result = restore(&r, err);

    if (r.source.sql) {
        int rc = sqlite3_close(r.source.sql);
        assert(rc == SQLITE_OK);
    }
    if (r.lock >= 0)
        close(r.lock);
    arena_free(a);
    return result;
}

/* What restores leave that were killed. The input of the command comes first, from a pipe. */
static const char *const REMAINS[] = {INCOMING, DB_FILE ".partial", STORE_RESTORE_INPUT ".partial",
                                      STORE_RESTORE_INPUT};

int db_restore_check(const char *dir, struct err *err)
{
    int result = 0;

    for (size_t i = 0; i < COUNT(REMAINS) && !result; i++) {
        char *path = db_path_join(dir, REMAINS[i]);
        bool there = false;
        result = db_is_there(path, &there, err);
        if (!result && there)
            result = err_set(err, &ERR_STORAGE,
                             "%s: a restore into this directory did not finish: run `sublet "
                             "restore` again, or remove this file to begin an empty cluster",
                             path);
        mem_free(path);
    }
    return result;
}
