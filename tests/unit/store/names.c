/* SPDX-License-Identifier: Apache-2.0
 * See names.h. Must never change what an operation does. */
#include "names.h"

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
} names = {.left = -1};

void names_watch(void)
{
    names.renamed = names.loose = 0;
    names.unsynced[0] = names.removed[0] = '\0';
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

OVERRIDE int rename(const char *from, const char *to)
{
    char directory[PATH_MAX];

    count();
    int result = (int)syscall(SYS_rename, from, to);
    if (result)
        return result;
    directory_of(to, directory);
    names.renamed++;
    names.loose += names.unsynced[0] != '\0' || !strcmp(names.removed, directory);
    memcpy(names.unsynced, directory, sizeof(directory));
    return 0;
}

OVERRIDE int unlink(const char *path)
{
    const char *name = strrchr(path, '/');

    count();
    int result = (int)syscall(SYS_unlink, path);
    if (!result && name && !strcmp(name, "/state.db-wal"))
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

static void synced(int fd)
{
    char link[64], path[PATH_MAX] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof(path) - 1) < 0)
        return;
    if (!strcmp(path, names.unsynced))
        names.unsynced[0] = '\0';
    if (!strcmp(path, names.removed))
        names.removed[0] = '\0';
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
    count();
    return (int)syscall(SYS_fdatasync, fd);
}
