/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program: while the file $FULL_DISK exists, the disk is full for every file that
 * lies in the same directory or below, or fails with the error whose number the file holds; while
 * $HUNG_DISK does, nothing is ever synced there. Must change nothing else, and never allocate. */

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

static int why_now(const char *path)
{
    char text[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC), why;

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    close(fd);
    why = (int)strtol(text, NULL, 10);
    return why ? why : ENOSPC;
}

/* The error of a write, or 0. */
static int full(int fd)
{
    const char *path = getenv("FULL_DISK");
    int before = errno, why = path && on_the_disk(fd, path) ? why_now(path) : 0;

    errno = before;
    return why;
}

#define REAL(type, name) ((type)dlsym(RTLD_NEXT, name))
/* From a function that writes to fd. */
#define REFUSE_WHEN_FULL(fd)                                                                       \
    do {                                                                                           \
        int why = full(fd);                                                                        \
        if (why) {                                                                                 \
            errno = why;                                                                           \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

typedef ssize_t (*write_fn)(int fd, const void *bytes, size_t n);
typedef ssize_t (*pwrite_fn)(int fd, const void *bytes, size_t n, off_t at);

__attribute__((visibility("default"))) ssize_t write(int fd, const void *bytes, size_t n)
{
    REFUSE_WHEN_FULL(fd);
    return REAL(write_fn, "write")(fd, bytes, n);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    REFUSE_WHEN_FULL(fd);
    return REAL(pwrite_fn, "pwrite")(fd, bytes, n, at);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *bytes, size_t n,
                                                        off_t at)
{
    REFUSE_WHEN_FULL(fd);
    return REAL(pwrite_fn, "pwrite64")(fd, bytes, n, at);
}

/* What the kernel does for it cannot be had either. */
__attribute__((visibility("default"))) int posix_fallocate(int fd, off_t at, off_t n)
{
    int why = full(fd);

    return why ? why : REAL(int (*)(int, off_t, off_t), "posix_fallocate")(fd, at, n);
}

__attribute__((visibility("default"))) int posix_fallocate64(int fd, off_t at, off_t n)
{
    return posix_fallocate(fd, at, n);
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
