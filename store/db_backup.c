/* SPDX-License-Identifier: Apache-2.0
 * A consistent copy of the file while it is being written. Steps and commits take turns on the
 * writer thread, through the same connection: SQLite then keeps the pages it copied up to date by
 * itself, and the copy is of the moment of its last step. It appears under its name only when it is
 * complete and synced, and it is marked as a copy: see db_meta.c. */
#include "db_file.h"
#include "db_impl.h"

#include <sublet/store_admin.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGES_PER_STEP 64

struct db_backup {
    unsigned magic;
    char *path, *partial;
    sqlite3 *sql;
    sqlite3_backup *copy;
    struct sum *sum;
    int format; /* of what is copied */
};

#define BACKUP_MAGIC 0x436f7079u

static int system_error(const char *path, struct err *err)
{
    return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
}

static int copy_error(struct db_backup *b, struct err *err)
{
    return err_set(err, &ERR_STORAGE, "%s: %s", b->partial,
                   b->sql ? sqlite3_errmsg(b->sql) : "out of memory");
}

int db_backup_open(struct db *db, const char *path, struct db_backup **ret, struct err *err)
{
    if (!db->format) /* neither to be written nor to be read: see db_reopen() */
        return err_set(err, &ERR_STORAGE, "%s cannot be read: %s", db->file, db->why);
    struct db_backup *b = NEW(struct db_backup);
    size_t n = strlen(path) + sizeof(".partial");

    b->magic = BACKUP_MAGIC;
    b->format = db->format;
    b->path = mem_strdup(str_c(path));
    b->partial = mem_alloc(n);
    snprintf(b->partial, n, "%s.partial", path);
    *ret = b;

    unlink(b->partial);
    int fd = open(b->partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return system_error(b->partial, err);
    close(fd);
    if (sqlite3_open_v2(b->partial, &b->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ||
        sqlite3_exec(b->sql, "PRAGMA cache_size=-256;PRAGMA locking_mode=EXCLUSIVE", NULL, NULL,
                     NULL) ||
        db_sum_register(b->sum = db_sum_new(), b->sql))
        return copy_error(b, err);
    b->copy = sqlite3_backup_init(b->sql, "main", db->sql, "main");
    return b->copy ? 0 : copy_error(b, err);
}

/* By format: a backup of an earlier one is restored as it is, and migrated when it is opened. */
static const char *const MARK[DB_FORMAT + 1] = {
    [1] = "UPDATE meta SET value = 1 WHERE key = 'copy'",
    [2] = "UPDATE meta SET value = 1, sum = row_sum('meta', key, 1) WHERE key = 'copy'",
};

/* Leaving WAL mode makes the copy one file; closing syncs nothing, so the commits here do. */
static int finish(struct db_backup *b, struct err *err)
{
    int rc = sqlite3_backup_finish(b->copy);
    b->copy = NULL;
    if (rc ||
        sqlite3_exec(b->sql, "PRAGMA synchronous=EXTRA;PRAGMA journal_mode=DELETE", NULL, NULL,
                     NULL) ||
        sqlite3_exec(b->sql, MARK[b->format], NULL, NULL, NULL) ||
        (b->format > 1 && db_mark_own(b->sql)))
        return copy_error(b, err);
    rc = sqlite3_close(b->sql);
    assert(rc == SQLITE_OK);
    b->sql = NULL;

    if (rename(b->partial, b->path))
        return system_error(b->path, err);
    return store_sync_dir_of(b->path, err);
}

int db_backup_step(struct db_backup *b, bool *ret_more, struct err *err)
{
    assert(b->magic == BACKUP_MAGIC);
    int rc = sqlite3_backup_step(b->copy, PAGES_PER_STEP);

    *ret_more = rc == SQLITE_OK;
    if (rc == SQLITE_OK)
        return 0;
    if (rc == SQLITE_DONE)
        return finish(b, err);
    return err_set(err, &ERR_STORAGE, "%s: %s", b->partial, sqlite3_errstr(rc));
}

struct db_backup *db_backup_close(struct db_backup *b)
{
    if (!b)
        return NULL;
    assert(b->magic == BACKUP_MAGIC);
    if (b->copy)
        sqlite3_backup_finish(b->copy);
    if (b->sql) {
        sqlite3_close(b->sql);
        unlink(b->partial);
    }
    db_sum_free(b->sum);
    mem_free(b->partial);
    mem_free(b->path);
    b->magic = 0;
    mem_free(b);
    return NULL;
}
