/* SPDX-License-Identifier: Apache-2.0
 * See names.h. Must never change what an operation does. */
#include "names.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OVERRIDE __attribute__((visibility("default")))

static struct {
    int renamed, loose, left;
    char unsynced[PATH_MAX]; /* a directory with a rename, "": none */
    char removed[PATH_MAX];  /* one that lost a log */
    char cut[PATH_MAX];      /* one with a log that was cut off, and not synced since */
    const char *refused;     /* file that no rename puts in place */
    int why;
} names = {.left = -1};

void names_watch(void)
{
    names.renamed = names.loose = 0;
    names.unsynced[0] = names.removed[0] = names.cut[0] = '\0';
}

void names_refuse(const char *file, int why)
{
    names.refused = file;
    names.why = why;
}

int names_renamed(void)
{
    return names.renamed;
}

int names_loose(void)
{
    return names.loose + (names.unsynced[0] != '\0');
}

void names_die_after(int operations)
{
    names.left = operations;
}

static void count(void)
{
    if (!names.left)
        _exit(NAMES_DIED);
    if (names.left > 0)
        names.left--;
}

static void directory_of(const char *path, char ret[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    snprintf(ret, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static bool is(const char *path, const char *file)
{
    const char *slash = strrchr(path, '/');

    return slash && file && !strcmp(slash + 1, file);
}

OVERRIDE int rename(const char *from, const char *to)
{
    char directory[PATH_MAX];

    count();
    if (is(to, names.refused)) {
        errno = names.why;
        return -1;
    }
    int result = (int)syscall(SYS_rename, from, to);
    if (result)
        return result;
    directory_of(to, directory);
    names.renamed++;
    names.loose += names.unsynced[0] != '\0' || !strcmp(names.removed, directory) ||
                   (is(to, "state.db") && !strcmp(names.cut, directory));
    memcpy(names.unsynced, directory, sizeof(directory));
    return 0;
}

OVERRIDE int unlink(const char *path)
{
    count();
    int result = (int)syscall(SYS_unlink, path);
    if (!result && is(path, "state.db-wal"))
        directory_of(path, names.removed);
    return result;
}

OVERRIDE int mkdir(const char *path, mode_t mode)
{
    count();
    return (int)syscall(SYS_mkdir, path, mode);
}

OVERRIDE int rmdir(const char *path)
{
    count();
    return (int)syscall(SYS_rmdir, path);
}

static bool path_of(int fd, char ret[PATH_MAX])
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, PATH_MAX - 1);
    ret[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

static void log_synced(const char *path)
{
    char directory[PATH_MAX];

    directory_of(path, directory);
    if (is(path, "state.db-wal") && !strcmp(directory, names.cut))
        names.cut[0] = '\0';
}

static void synced(int fd)
{
    char path[PATH_MAX];

    if (!path_of(fd, path))
        return;
    if (!strcmp(path, names.unsynced))
        names.unsynced[0] = '\0';
    if (!strcmp(path, names.removed))
        names.removed[0] = '\0';
    log_synced(path);
}

OVERRIDE int fsync(int fd)
{
    count();
    int result = (int)syscall(SYS_fsync, fd);
    if (!result)
        synced(fd);
    return result;
}

OVERRIDE int fdatasync(int fd)
{
    char path[PATH_MAX];

    count();
    int result = (int)syscall(SYS_fdatasync, fd);
    if (!result && path_of(fd, path))
        log_synced(path);
    return result;
}

/* SQLite calls the one, programs the other. */
OVERRIDE int ftruncate64(int fd, off64_t size)
{
    char path[PATH_MAX];

    count();
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (!result && path_of(fd, path) && is(path, "state.db-wal"))
        directory_of(path, names.cut);
    return result;
}

#ifndef __USE_FILE_OFFSET64
OVERRIDE int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}
#endif
