/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program: while the file $FULL_DISK exists, the disk is full for every file that
 * lies in the same directory or below; while $HUNG_DISK does, nothing is ever synced there. Must
 * change nothing else, and never allocate. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int on_the_disk(int fd, const char *switch_path)
{
    char link[64], path[4096];
    const char *end = strrchr(switch_path, '/');
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path));
    return n > end - switch_path && memcmp(path, switch_path, (size_t)(end - switch_path + 1)) == 0;
}

static int full(int fd)
{
    const char *path = getenv("FULL_DISK");
    int before = errno, result;

    result = path && access(path, F_OK) == 0 && on_the_disk(fd, path);
    errno = before;
    return result;
}

#define REAL(type, name) ((type)dlsym(RTLD_NEXT, name))
#define REFUSE                                                                                     \
    do {                                                                                           \
        errno = ENOSPC;                                                                            \
        return -1;                                                                                 \
    } while (0)

typedef ssize_t (*write_fn)(int fd, const void *bytes, size_t n);
typedef ssize_t (*pwrite_fn)(int fd, const void *bytes, size_t n, off_t at);

__attribute__((visibility("default"))) ssize_t write(int fd, const void *bytes, size_t n)
{
    if (full(fd))
        REFUSE;
    return REAL(write_fn, "write")(fd, bytes, n);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    if (full(fd))
        REFUSE;
    return REAL(pwrite_fn, "pwrite")(fd, bytes, n, at);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *bytes, size_t n,
                                                        off_t at)
{
    if (full(fd))
        REFUSE;
    return REAL(pwrite_fn, "pwrite64")(fd, bytes, n, at);
}

/* What the kernel does for it cannot be had either. */
__attribute__((visibility("default"))) int posix_fallocate(int fd, off_t at, off_t n)
{
    return full(fd) ? ENOSPC : REAL(int (*)(int, off_t, off_t), "posix_fallocate")(fd, at, n);
}

/* By whoever waits for the disk; all others go on. */
static void hang(int fd)
{
    const char *path = getenv("HUNG_DISK");

    while (path && access(path, F_OK) == 0 && on_the_disk(fd, path))
        usleep(20000);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    hang(fd);
    return REAL(int (*)(int), "fsync")(fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    hang(fd);
    return REAL(int (*)(int), "fdatasync")(fd);
}
