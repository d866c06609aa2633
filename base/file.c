/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file whole, or replaces it. Must never return or leave a part of one: what grows beyond
 * the limit, or fails in its middle, is an error. */
#include <sublet/file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sublet/buf.h>

/* errno says why it failed. */
static int read_all(struct arena *a, int fd, size_t limit, struct str *ret)
{
    struct buf text = BUF_INIT(limit);
    char chunk[8192];
    bool whole;
    ssize_t n;

    while ((n = read(fd, chunk, sizeof(chunk))) > 0 && !text.failed)
        buf_add(&text, (struct str){chunk, (size_t)n});
    if (text.failed)
        errno = EFBIG;
    whole = n == 0 && !text.failed;
    if (whole)
        *ret = arena_str(a, buf_str(&text));
    buf_fini(&text);
    return whole ? 0 : -1;
}

int file_read(struct arena *a, struct str path, size_t limit, struct str *ret, struct err *err)
{
    int fd = open(arena_cstr(a, path), O_RDONLY | O_CLOEXEC), result, saved;

    if (fd < 0)
        return err_set(err, &ERR_BAD_REQUEST, "cannot open %.*s: %s", STR_F(path), strerror(errno));
    result = read_all(a, fd, limit, ret);
    saved = errno;
    close(fd);
    return result ? err_set(err, &ERR_BAD_REQUEST, "cannot read %.*s: %s", STR_F(path),
                            strerror(saved))
                  : 0;
}

static int write_all(int fd, struct str text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text = str_from(text, (size_t)n);
    }
    return fsync(fd);
}

static int failed(struct err *err, const char *what, const char *path)
{
    return err_set(err, &ERR_BAD_REQUEST, "cannot %s %s: %s", what, path, strerror(errno));
}

int file_replace(struct str path, struct str text, struct err *err)
{
    struct arena *a = arena_new(0);
    const char *temporary = arena_printf(a, "%.*s.new", STR_F(path)).p;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int result = 0;

    if (fd < 0 || write_all(fd, text))
        result = failed(err, "write", temporary);
    if (fd >= 0)
        close(fd);
    if (!result && rename(temporary, arena_cstr(a, path)))
        result = failed(err, "rename", temporary);
    if (result) /* a partial file would take up space */
        unlink(temporary);
    arena_free(a);
    return result;
}
