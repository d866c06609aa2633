/* SPDX-License-Identifier: Apache-2.0
 * Copies of the file that are kept beside it: before a migration, and when damage is found. A copy
 * appears under its name only when it is complete and synced. */
#include "db_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int system_error(const char *path, struct err *err)
{
    return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
}

int db_sync_dir_of(const char *path, struct err *err)
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
    int result = -1;

    snprintf(partial, n, "%s.partial", to);
    unlink(partial);
    int out = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0 || pump(read, ctx, out) || rename(partial, to)) {
        system_error(partial, err);
        unlink(partial);
    } else {
        result = db_sync_dir_of(to, err);
    }
    if (out >= 0)
        close(out);
    mem_free(partial);
    return result;
}

char *db_keep_name(const char *file)
{
    size_t n = strlen(file) + sizeof(".damaged.9");
    char *name = mem_alloc(n);
    struct stat st;

    snprintf(name, n, "%s.damaged", file);
    for (int i = 2; i <= DB_KEPT && !stat(name, &st); i++)
        snprintf(name, n, "%s.damaged.%d", file, i);
    return name;
}

/* Closing any descriptor of the file ends the locks SQLite holds on it, so this one stays open. */
static int keep_as(struct db *db, const char *to, struct err *err)
{
    if (db->raw < 0)
        db->raw = open(db->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (db->raw < 0)
        return system_error(db->file, err);
    return db_keep_bytes(read_descriptor, &db->raw, to, err);
}

int db_keep(struct db *db, const char *suffix, struct err *err)
{
    size_t n = strlen(db->file) + strlen(suffix) + 2;
    char *to = mem_alloc(n);
    struct stat st;

    snprintf(to, n, "%s.%s", db->file, suffix);
    int result = stat(to, &st) ? keep_as(db, to, err) : 0;
    mem_free(to);
    return result;
}

int db_keep_damaged(struct db *db, struct err *err)
{
    char *to = db_keep_name(db->file);
    int result = keep_as(db, to, err);

    mem_free(to);
    return result;
}
