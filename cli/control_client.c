/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the control socket, for the commands of the same machine. Must never open a store:
 * the process that serves owns it. */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <sublet/buf.h>

#define ANSWER_MAX (64u << 20)

static int fail(struct err *err, const char *what, const char *directory)
{
    return err_set(err, &ERR_STORAGE, "cannot %s %s: %s", what, directory, strerrordesc_np(errno));
}

int control_connect(const char *path, struct err *err)
{
    struct sockaddr_un address;
    int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

    if (directory < 0)
        return fail(err, "open", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    control_address(path, directory, &address);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        if (errno != ENOENT && errno != ECONNREFUSED)
            fail(err, "reach", path);
        close(fd);
        fd = -1;
    }
    close(directory);
    return fd;
}

static int send_all(int fd, struct str text)
{
    while (text.n) {
        ssize_t n = send(fd, text.p, text.n, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return -1;
        text = str_from(text, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

/* The bytes of "ok LENGTH\n", or 0 until they are there. */
static size_t announced(struct str text, size_t *ret_from)
{
    struct str line = text;
    uint64_t size = 0;

    *ret_from = str_find(text, '\n') + 1;
    if (*ret_from > text.n)
        return 0;
    line = str_sub(text, 0, *ret_from - 1);
    if (!str_has_prefix(line, STR("ok ")) || !str_to_u64(str_from(line, 3), &size))
        return *ret_from;
    return *ret_from + (size_t)size;
}

static int read_answer(int fd, struct buf *b, size_t *ret_from)
{
    char part[16384];
    size_t want = 0;

    while (!want || b->n < want) {
        ssize_t n = read(fd, part, sizeof(part));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        buf_add(b, (struct str){part, (size_t)n});
        if (b->failed)
            return -1;
        want = announced(buf_str(b), ret_from);
    }
    return 0;
}

static int take_answer(struct arena *a, int fd, struct str *ret, struct err *err)
{
    struct buf b = BUF_INIT(ANSWER_MAX);
    size_t from = 0;
    struct str text;
    int result = -1;

    if (read_answer(fd, &b, &from)) {
        err_set(err, &ERR_UNAVAILABLE, "the running process gave no answer");
    } else {
        text = arena_str(a, buf_str(&b));
        if (str_has_prefix(text, STR("error: "))) {
            err_set(err, &ERR_BAD_REQUEST, "%.*s", STR_F(str_sub(text, 7, from - 8)));
        } else {
            *ret = str_from(text, from);
            result = 0;
        }
    }
    buf_fini(&b);
    return result;
}

int control_request(struct arena *a, const char *directory, const char *word, struct str body,
                    struct str *ret, struct err *err)
{
    int fd = control_connect(directory, err), result;

    if (fd < 0)
        return err->kind ? -1 : err_set(err, &ERR_UNAVAILABLE, "no process serves %s", directory);
    if (send_all(fd, arena_printf(a, "%s %zu\n", word, body.n)) || send_all(fd, body))
        result = fail(err, "ask the process that serves", directory);
    else
        result = take_answer(a, fd, ret, err);
    close(fd);
    return result;
}
