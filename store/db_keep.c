/* SPDX-License-Identifier: Apache-2.0
 * Copies of the file that are kept beside it: before a migration, and when damage is found. A copy
 * appears under its name only when it is complete and synced. */
#include "db_disk.h"
#include "db_file.h"
#include "db_impl.h"

#include <sublet/store_admin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DB_KEPT 9

static int system_error(const char *path, struct err *err)
{
    return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
}

int store_sync_dir_of(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char *dir = mem_strdup(slash ? (struct str){path, (size_t)(slash - path) + 1} : STR("."));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 || fsync(fd) ? system_error(dir, err) : 0;

    if (fd >= 0)
        close(fd);
    mem_free(dir);
    return result;
}

static ssize_t read_descriptor(void *ctx, void *bytes, size_t n, int64_t at)
{
    const int *fd = ctx;

    return pread(*fd, bytes, n, at);
}

static int pump(db_keep_read read, void *ctx, int out)
{
    static const size_t STEP = 65536;
    char *bytes = mem_alloc(STEP);
    int64_t at = 0;
    ssize_t n;

    for (; (n = read(ctx, bytes, STEP, at)) > 0; at += n) {
        ssize_t wrote = write(out, bytes, (size_t)n);
        if (wrote != n) {
            errno = wrote < 0 ? errno : ENOSPC;
            n = -1;
            break;
        }
    }
    mem_free(bytes);
    return n ? -1 : fsync(out);
}

int db_keep_bytes(db_keep_read read, void *ctx, const char *to, struct err *err)
{
    size_t n = strlen(to) + sizeof(".partial");
    char *partial = mem_alloc(n);
    int result = -1, why;

    snprintf(partial, n, "%s.partial", to);
    unlink(partial);
    int out = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0 || pump(read, ctx, out) || rename(partial, to)) {
        system_error(partial, err);
        why = errno;
        unlink(partial);
    } else {
        result = store_sync_dir_of(to, err);
        why = errno;
    }
    if (out >= 0)
        close(out);
    mem_free(partial);
    errno = why;
    return result;
}

/* <file>.<suffix>, then <file>.<suffix>.2 and so on. */
static char *numbered(const char *file, const char *suffix, int i)
{
    size_t n = strlen(file) + strlen(suffix) + sizeof("..9");
    char *name = mem_alloc(n);

    if (i == 1)
        snprintf(name, n, "%s.%s", file, suffix);
    else
        snprintf(name, n, "%s.%s.%d", file, suffix, i);
    return name;
}

int db_is_there(const char *path, bool *ret, struct err *err)
{
    struct stat st;

    *ret = !lstat(path, &st);
    return *ret || errno == ENOENT ? 0 : system_error(path, err);
}

int db_keep_name(const char *file, char **ret, struct err *err)
{
    char *name = numbered(file, "damaged", 1);
    bool taken;
    int result = db_is_there(name, &taken, err);

    for (int i = 2; i <= DB_KEPT && !result && taken; i++) {
        mem_free(name);
        name = numbered(file, "damaged", i);
        result = db_is_there(name, &taken, err);
    }
    if (result)
        mem_free(name);
    else
        *ret = name;
    return result;
}

bool db_keep_is_full(const struct db *db)
{
    static const char *const files[] = {DB_FILE, DB_LOG_FILE};
    bool full = false;

    for (size_t i = 0; i < sizeof files / sizeof *files && !full; i++) {
        char *file = db_path_join(db->dir, files[i]);
        char *last = numbered(file, "damaged", DB_KEPT);

        if (db_is_there(last, &full, NULL))
            full = false;
        mem_free(last);
        mem_free(file);
    }
    return full;
}

/* Closing any descriptor of the file ends the locks SQLite holds on it, so this one stays open. */
static int open_raw(struct db *db, struct err *err)
{
    if (db->raw < 0)
        db->raw = open(db->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return db->raw < 0 ? system_error(db->file, err) : 0;
}

/* Without room for a copy the file can still be read. */
static int keep_as(struct db *db, const char *to, struct err *err)
{
    if (open_raw(db, err))
        return -1;
    int result = db_keep_bytes(read_descriptor, &db->raw, to, err);
    if (result)
        db_disk_met(db, errno);
    return result;
}

int db_keep_damaged(struct db *db, struct err *err)
{
    char *to;

    if (db_keep_name(db->file, &to, err))
        return -1;
    int result = keep_as(db, to, err);

    mem_free(to);
    return result;
}

static bool same_bytes(int a, int b)
{
    static const size_t STEP = 65536;
    char *bytes = mem_alloc(2 * STEP);
    ssize_t n, m;
    int64_t at = 0;

    do {
        n = pread(a, bytes, STEP, at);
        m = pread(b, bytes + STEP, STEP, at);
        at += n;
    } while (n > 0 && n == m && !memcmp(bytes, bytes + STEP, (size_t)n));
    mem_free(bytes);
    return !n && !m;
}

static bool is_kept(struct db *db, const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool same = fd >= 0 && same_bytes(db->raw, fd);

    if (fd >= 0)
        close(fd);
    return same;
}

/* A copy of an earlier file, or of another store, is none of this one. One of the same bytes is: a
 * migration that fails at each start does not fill the disk. */
int db_keep_version(struct db *db, const char *suffix, struct err *err)
{
    if (open_raw(db, err))
        return -1;
    char *to = numbered(db->file, suffix, 1);
    bool kept = is_kept(db, to), there;
    int result = db_is_there(to, &there, err);
    for (int i = 2; i <= DB_KEPT && !result && !kept && there; i++) {
        mem_free(to);
        to = numbered(db->file, suffix, i);
        kept = is_kept(db, to);
        result = db_is_there(to, &there, err);
    }
    if (!result && !kept)
        result = keep_as(db, to, err);

    mem_free(to);
    return result;
}

static int keep_first(struct db *db)
{
    char *to = numbered(db->file, "damaged", 1);
    bool there;
    int result = db_is_there(to, &there, NULL);

    if (!result && !there)
        result = keep_as(db, to, NULL);
    mem_free(to);
    return result;
}

bool db_keep_rows(struct db *db, bool these)
{
    enum store_disk met = db->met;

    db->keep_due = db->read_only || (these ? db_keep_version(db, "damaged", NULL) : keep_first(db));
    db->met = met;
    return !db->keep_due;
}
