/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file whole. Must never return a part of one: what grows beyond the limit, or fails in its
 * middle, is an error. */
#include <sublet/file.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
