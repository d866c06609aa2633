/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket. Why: one process owns the store, so a consistent copy of it while it serves,
 * and what only the running process knows, are requested here. The copy is put beside the store and
 * stays while its client is connected. Must never take a path from a client, wait for one, or leave
 * a copy behind.
 *
 *   line "backup" --> store_backup --> "ok" --> the client reads the file --> hangs up --> removed
 *                          '--- failed --> "error: ..."
 *   line "WORD LENGTH" --> body --> handler --> answer; a client that left is freed after it
 */
#include "control.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#define CONTROL_MAGIC 0x6374726cu
#define CLIENTS_MAX   4
#define BACKLOG       64
#define LINE_MAX_     32
#define BODY_MAX      (4u << 20)

struct client {
    uv_pipe_t pipe;
    struct control *control;
    char line[LINE_MAX_];
    size_t n;
    bool requested, closing, closed;
    const struct control_handler *handler; /* whose body is being read, or that runs */
    char *body;
    size_t body_n, body_size;
    bool running; /* the handler owes an answer */
};

struct reply {
    uv_write_t request;
    struct str text; /* heap */
};

struct control {
    unsigned magic;
    int directory; /* open */
    struct str copy;
    struct store *store;
    const struct control_handler *handlers;
    void *handlers_ctx;
    uv_pipe_t listener;
    struct client *clients[CLIENTS_MAX];
    struct client *owner; /* of the copy that exists, or will */
    unsigned n_open;      /* pipes that are not closed yet */
    bool copying, copied, closing, listener_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void remove_copy(struct control *c)
{
    unlinkat(c->directory, CONTROL_BACKUP, 0);
    c->copied = false;
}

/* Removes what a killed process left, complete or not. */
static void remove_remains(struct control *c)
{
    static const char *const remains[] = {CONTROL_BACKUP, CONTROL_BACKUP ".partial",
                                          CONTROL_BACKUP ".partial-journal",
                                          CONTROL_BACKUP ".partial-wal"};

    for (size_t i = 0; i < COUNT(remains); i++)
        unlinkat(c->directory, remains[i], 0);
}

static void maybe_closed(struct control *c)
{
    void (*closed)(void *ctx) = c->closed;
    void *ctx = c->closed_ctx;

    if (!c->closing || !c->listener_closed || c->copying || c->n_open)
        return;
    unlinkat(c->directory, CONTROL_SOCKET, 0);
    close(c->directory);
    mem_free(c->copy.p);
    c->magic = 0;
    mem_free(c);
    closed(ctx);
}

/* --- clients --- */

static void client_free(struct client *client)
{
    struct control *c = client->control;

    if (!client->closed || client->running)
        return;
    mem_free(client->body);
    mem_free(client);
    c->n_open--;
    maybe_closed(c);
}

static void on_client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    struct control *c = client->control;

    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (c->clients[i] == client)
            c->clients[i] = NULL;
    client->closed = true;
    client_free(client);
}

static void client_close(struct client *client)
{
    struct control *c = client->control;

    if (client->closing)
        return;
    client->closing = true;
    if (c->owner == client) {
        c->owner = NULL;
        if (c->copied)
            remove_copy(c);
    }
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
}

/* An answer is one line, which fits into the buffer of an empty socket. */
static void answer(struct client *client, struct str text)
{
    uv_buf_t bytes = {.len = text.n};

    memcpy(&bytes.base, &text.p, sizeof(bytes.base)); /* libuv's type is not const */
    if (uv_try_write((uv_stream_t *)&client->pipe, &bytes, 1) != (int)text.n)
        client_close(client);
}

/* --- handlers --- */

static void on_replied(uv_write_t *request, int status)
{
    struct reply *reply = request->data;

    (void)status;
    mem_free(reply->text.p);
    mem_free(reply);
}

static void on_handled(void *ctx, struct str text, const struct err *err)
{
    struct client *client = ctx;
    struct reply *reply = NEW(struct reply);
    struct arena *a = arena_new(0);
    uv_buf_t bytes;

    assert(client->running);
    client->running = false;
    reply->request.data = reply;
    reply->text = mem_str(err ? arena_printf(a, "error: %.*s\n", STR_F(err->message))
                              : arena_printf(a, "ok %zu\n%.*s", text.n, STR_F(text)));
    arena_free(a);
    bytes.len = reply->text.n;
    memcpy(&bytes.base, &reply->text.p, sizeof(bytes.base)); /* libuv's type is not const */
    if (client->closing ||
        uv_write(&reply->request, (uv_stream_t *)&client->pipe, &bytes, 1, on_replied))
        on_replied(&reply->request, 0);
    client_free(client);
}

static void maybe_handle(struct client *client)
{
    struct control *c = client->control;

    if (client->body_n < client->body_size || client->running)
        return;
    client->running = true;
    client->handler->run(c->handlers_ctx, (struct str){client->body, client->body_n}, on_handled,
                         client);
}

/* "WORD LENGTH": the body follows, and perhaps a part of it came with the line. */
static bool begin_body(struct client *client, struct str line, struct str rest)
{
    const struct control_handler *h = client->control->handlers;
    struct str word = str_cut(&line, ' ');
    uint64_t size;

    while (h->word && !str_eqc(word, h->word))
        h++;
    if (!h->word || !str_to_u64(line, &size) || size > BODY_MAX || rest.n > size)
        return false;
    client->handler = h;
    client->body_size = (size_t)size;
    client->body = mem_alloc(client->body_size + 1);
    memcpy(client->body, rest.p, rest.n);
    client->body_n = rest.n;
    maybe_handle(client);
    return true;
}

/* --- requests --- */

static void on_copied(void *ctx, const struct err *err)
{
    struct control *c = ctx;
    struct arena *a = arena_new(0);

    assert(c->magic == CONTROL_MAGIC && c->copying);
    c->copying = false;
    c->copied = !err;
    if (!c->owner && c->copied)
        remove_copy(c);
    else if (err && c->owner)
        answer(c->owner, arena_printf(a, "error: %.*s\n", STR_F(err->message)));
    else if (c->owner)
        answer(c->owner, STR("ok\n"));
    if (err)
        c->owner = NULL;
    arena_free(a);
    maybe_closed(c);
}

static void run_line(struct client *client, struct str line, struct str rest)
{
    struct control *c = client->control;

    if (!str_eqc(line, "backup")) {
        if (!begin_body(client, line, rest))
            answer(client, STR("error: unknown request\n"));
    } else if (c->owner || c->copying) {
        answer(client, STR("error: another backup is under way\n"));
    } else {
        c->owner = client;
        c->copying = true;
        store_backup(c->store, c->copy.p, on_copied, c);
    }
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    struct client *client = handle->data;

    (void)wanted;
    if (client->body_n < client->body_size)
        *ret = (uv_buf_t){.base = client->body + client->body_n,
                          .len = client->body_size - client->body_n};
    else
        *ret = (uv_buf_t){.base = client->line + client->n, .len = LINE_MAX_ - client->n};
}

/* Bytes behind the line are ignored until the client disconnects. */
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct client *client = stream->data;
    struct str line;

    (void)bytes;
    assert(client->control->magic == CONTROL_MAGIC);
    if (n < 0) {
        client_close(client);
        return;
    }
    if (client->body_n < client->body_size) {
        client->body_n += (size_t)n;
        maybe_handle(client);
        return;
    }
    if (client->requested)
        return;
    client->n += (size_t)n;
    line = (struct str){client->line, client->n};
    if (str_find(line, '\n') == line.n) {
        if (client->n == LINE_MAX_)
            client_close(client);
        return;
    }
    client->requested = true;
    client->n = 0;
    run_line(client, str_sub(line, 0, str_find(line, '\n')),
             str_from(line, str_find(line, '\n') + 1));
}

/* One client too many is turned away: a connection that is never accepted would block all that
 * follow. */
static void on_client(uv_stream_t *listener, int status)
{
    struct control *c = listener->data;
    struct client *client;
    size_t i;

    assert(c->magic == CONTROL_MAGIC);
    if (status < 0 || c->closing)
        return;
    for (i = 0; i < CLIENTS_MAX && c->clients[i]; i++)
        ;
    client = NEW(struct client);
    client->control = c;
    c->n_open++;
    uv_pipe_init(listener->loop, &client->pipe, 0);
    client->pipe.data = client;
    if (i < CLIENTS_MAX)
        c->clients[i] = client;
    if (uv_accept(listener, (uv_stream_t *)&client->pipe) || i == CLIENTS_MAX ||
        uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read))
        client_close(client);
}

/* --- life --- */

void control_address(const char *path, int directory, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) + sizeof("/" CONTROL_SOCKET) <= sizeof(ret->sun_path))
        snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/" CONTROL_SOCKET, path);
    else
        snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET,
                 directory);
}

static int listen_socket(struct control *c, const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;

    if (fd < 0)
        return -1;
    control_address(path, c->directory, &address);
    unlinkat(c->directory, CONTROL_SOCKET, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
        fchmodat(c->directory, CONTROL_SOCKET, 0600, 0) || uv_pipe_open(&c->listener, fd)) {
        close(fd);
        return -1;
    }
    return uv_listen((uv_stream_t *)&c->listener, BACKLOG, on_client);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct control *c = handle->data;

    c->listener_closed = true;
    maybe_closed(c);
}

static void on_nothing(void *ctx)
{
    (void)ctx;
}

int control_open(struct uv_loop_s *loop, struct store *store, struct str directory,
                 const struct control_handler *handlers, void *ctx, struct control **ret,
                 struct err *err)
{
    struct control *c = NEW(struct control);
    struct arena *a = arena_new(0);
    const char *path = arena_cstr(a, directory);
    int result = -1;

    *c = (struct control){
        .magic = CONTROL_MAGIC, .store = store, .handlers = handlers, .handlers_ctx = ctx};
    c->copy = mem_str(arena_printf(a, "%s/" CONTROL_BACKUP, path));
    c->directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    uv_pipe_init(loop, &c->listener, 0);
    c->listener.data = c;
    if (c->directory >= 0) {
        remove_remains(c);
        result = listen_socket(c, path);
    }
    if (result) {
        err_set(err, &ERR_STORAGE, "%s/" CONTROL_SOCKET ": %s", path, strerrordesc_np(errno));
        control_close(c, on_nothing, NULL);
    } else {
        *ret = c;
    }
    arena_free(a);
    return result;
}

void control_close(struct control *c, void (*closed)(void *ctx), void *ctx)
{
    assert(c->magic == CONTROL_MAGIC && !c->closing);
    c->closing = true;
    c->closed = closed;
    c->closed_ctx = ctx;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (c->clients[i])
            client_close(c->clients[i]);
    uv_close((uv_handle_t *)&c->listener, on_listener_closed);
}
