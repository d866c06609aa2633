/* SPDX-License-Identifier: Apache-2.0 */
/* The handler, the certificates and the raw client of net's tests. Why: see net_harness.h. Must
 * never call cmocka in a client's thread: its jumps belong to the thread of the test. */
#include "net_harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../vapi/auth/pki_cert.h"

#define PIECE       40000u
#define BACKLOG     (256u * 1024)
#define CLIENT_WAIT 20 /* seconds a raw client waits before the test fails */

static char pattern[PIECE];

/* The handler. */

struct call {
    struct net_fixture *f;
    struct net_exchange *x;
    uv_timer_t timer;
    size_t left;
    bool timed, writing, pipe;
};

static void on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void on_exchange_closed(void *ctx)
{
    struct call *call = ctx;

    __atomic_add_fetch(&call->f->closed, 1, __ATOMIC_RELAXED); /* clients wait for it */
    call->f->running--;
    call->x = NULL;
    if (call->timed)
        uv_close((uv_handle_t *)&call->timer, on_timer_closed);
    else
        mem_free(call);
}

static void on_release(void *ctx)
{
    struct net_fixture *f = ctx;

    f->released++;
}

static void on_release_copy(void *ctx)
{
    mem_free(ctx);
}

static struct net_slice slice_of(struct net_fixture *f, struct str bytes)
{
    return (struct net_slice){.bytes = bytes, .release = on_release, .ctx = f};
}

static void respond(struct net_exchange *x, struct str body)
{
    static const struct net_header TYPE = {{"content-type", 12}, {"text/plain", 10}};
    struct net_slice slice = {.bytes = body};

    net_respond(x, 200, &TYPE, 1, &slice, 1);
}

static void write_some(struct call *call)
{
    while (call->left) {
        size_t n = call->left < PIECE ? call->left : PIECE;
        struct net_slice slice = slice_of(call->f, (struct str){pattern, n});
        size_t backlog = net_write(call->x, &slice, 1);

        call->left -= n;
        if (backlog > call->f->max_backlog)
            call->f->max_backlog = backlog;
        if (backlog > BACKLOG)
            return;
    }
    call->writing = false;
    net_end(call->x);
}

/* Gives it back as a copy: the bytes are only there during the call. */
static void on_received(void *ctx, struct str bytes)
{
    struct call *call = ctx;
    struct net_slice slice = {.bytes = mem_str(bytes), .release = on_release_copy};

    if (!bytes.n) {
        mem_free((void *)(uintptr_t)slice.bytes.p);
        net_end(call->x);
        return;
    }
    slice.ctx = (void *)(uintptr_t)slice.bytes.p;
    net_write(call->x, &slice, 1);
    if (call->f->pause_pipes)
        net_pause(call->x, true);
}

static void on_drained(void *ctx)
{
    struct call *call = ctx;

    call->f->drained++;
    if (call->pipe && call->f->pause_pipes)
        net_pause(call->x, false);
    if (call->writing)
        write_some(call);
}

static void on_later(uv_timer_t *timer)
{
    struct call *call = timer->data;

    if (call->x)
        respond(call->x, STR("later"));
}

static void route_size(struct call *call, size_t n)
{
    struct net_slice slices[128];
    size_t count = 0;

    while (n && count < 128) {
        size_t piece = count == 127 ? n : n < PIECE ? n : PIECE;

        assert_true(piece <= PIECE);
        slices[count++] = slice_of(call->f, (struct str){pattern, piece});
        n -= piece;
    }
    net_respond(call->x, 200, NULL, 0, slices, count);
}

static void route_peer(struct call *call, const struct net_request *r)
{
    struct buf b = BUF_INIT(0);

    if (r->tls) {
        buf_printf(&b, "%.*s|", STR_F(r->tls->cn));
        for (size_t i = 0; i < r->tls->n_organizations; i++)
            buf_printf(&b, "%.*s,", STR_F(r->tls->organizations[i]));
        buf_printf(&b, "|%s", r->tls->rejected.n ? "rejected" : "");
    }
    respond(call->x, arena_str(r->arena, buf_str(&b)));
    buf_fini(&b);
}

static void route_request(struct call *call, const struct net_request *r)
{
    struct buf b = BUF_INIT(0);

    buf_printf(&b, "%.*s %.*s ? %.*s @ %.*s v%u\n", STR_F(r->method_text), STR_F(r->path),
               STR_F(r->query), STR_F(r->authority), r->http_major);
    for (size_t i = 0; i < r->n_headers; i++)
        buf_printf(&b, "%.*s=%.*s\n", STR_F(r->headers[i].name), STR_F(r->headers[i].value));
    respond(call->x, arena_str(r->arena, buf_str(&b)));
    buf_fini(&b);
}

static void begin(struct call *call, const char *line)
{
    struct net_slice slice = slice_of(call->f, str_c(line));

    net_begin(call->x, 200, NULL, 0);
    if (*line)
        net_write(call->x, &slice, 1);
}

static void on_request(void *ctx, struct net_exchange *x, const struct net_request *r)
{
    struct net_fixture *f = ctx;
    struct call *call = NEW(struct call);
    uint64_t number = 0;

    *call = (struct call){.f = f, .x = x};
    f->requests++;
    f->running++;
    f->last_body = r->body.n;
    (void)str_to_u64(r->query, &number);
    net_on(x, on_exchange_closed, on_drained, call);

    if (str_eqc(r->path, "/hello")) {
        respond(x, STR("hello"));
    } else if (str_eqc(r->path, "/echo")) {
        respond(x, r->body);
    } else if (str_eqc(r->path, "/size")) {
        route_size(call, number);
    } else if (str_eqc(r->path, "/stream") || str_eqc(r->path, "/patient")) {
        if (str_eqc(r->path, "/patient"))
            net_patience(x);
        call->left = number;
        call->writing = true;
        begin(call, "");
        write_some(call);
    } else if (str_eqc(r->path, "/whole") || str_eqc(r->path, "/sized")) {
        net_begin_whole(x, 200, NULL, 0, str_eqc(r->path, "/sized") ? (int64_t)number : -1);
        call->left = number;
        call->writing = true;
        write_some(call);
    } else if (str_eqc(r->path, "/watch")) {
        begin(call, "event\n");
    } else if (str_eqc(r->path, "/abort")) {
        begin(call, "event\n");
        net_abort(x);
    } else if (str_eqc(r->path, "/later")) {
        call->timed = true;
        call->timer.data = call;
        uv_timer_init(&f->loop, &call->timer);
        uv_timer_start(&call->timer, on_later, 50, 0);
    } else if (str_eqc(r->path, "/pipe")) {
        static const struct net_header UPGRADE = {{"upgrade", 7}, {"echo", 4}};

        call->pipe = net_upgrade(x, &UPGRADE, 1, on_received);
        if (!call->pipe)
            net_respond(x, 400, NULL, 0, NULL, 0);
    } else if (str_eqc(r->path, "/peer")) {
        route_peer(call, r);
    } else if (str_eqc(r->path, "/request")) {
        route_request(call, r);
    } else if (!str_eqc(r->path, "/never")) {
        net_respond(x, 404, NULL, 0, NULL, 0);
    }
}

/* Certificates. */

struct identity net_identity(struct net_fixture *f, const struct identity *ca, int use,
                             const char *cn, const char *organization)
{
    struct str names[] = {STR("127.0.0.1"), STR("localhost")};
    struct str organizations[] = {str_c(organization), STR("second")};
    struct err err = {0};
    struct identity id = {.key = pki_key_new(&err)};
    struct cert_request request = {
        .use = (enum cert_use)use,
        .cn = str_c(cn),
        .organizations = organizations,
        .n_organizations = organization ? 2 : 0,
        .names = names,
        .n_names = use == CERT_SERVER ? 2 : 0,
        .not_before = clock_wall_s(&CLOCK_SYSTEM) - 7200,
        .not_after = clock_wall_s(&CLOCK_SYSTEM) + f->life,
        .rng = &RNG_SYSTEM,
    };

    assert_non_null(id.key);
    assert_int_equal(
        pki_cert_issue(&request, id.key, ca ? ca->cert : NULL, ca ? ca->key : NULL, &id.cert, &err),
        0);
    id.cert_pem = pki_cert_pem(f->arena, id.cert);
    id.key_pem = pki_key_pem(f->arena, id.key);
    return id;
}

struct net_tls net_fixture_tls(struct net_fixture *f)
{
    return (struct net_tls){
        .certificate = f->leaf.cert_pem, .key = f->leaf.key_pem, .client_ca = f->ca.cert_pem};
}

/* The fixture. */

static void on_client_done(uv_async_t *async)
{
    uv_stop(async->loop);
}

void net_fixture_open(struct net_fixture *f, bool tls, const struct net_options *options)
{
    struct net_options o = options ? *options : (struct net_options){0};
    struct net_tls pem;
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    memset(f, 0, sizeof(*f));
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (char)('a' + i % 23);
    f->tls = tls;
    f->arena = arena_new(0);
    f->life = 3600;
    uv_loop_init(&f->loop);
    uv_async_init(&f->loop, &f->done, on_client_done);
    f->ca = net_identity(f, NULL, CERT_CA, "test-ca", NULL);
    f->leaf = net_identity(f, &f->ca, CERT_SERVER, "server", NULL);
    pem = net_fixture_tls(f);
    o.address = STR("127.0.0.1:0");
    o.tls = tls ? &pem : NULL;
    o.handler.request = on_request;
    o.handler.ctx = f;
    if (net_listen(&f->loop, &o, &f->server, &err) < 0)
        fail_msg("%.*s", STR_F(err.message));
    f->port = net_port(f->server);
    assert_int_not_equal(f->port, 0);
}

static void on_server_closed(void *ctx)
{
    struct net_fixture *f = ctx;

    f->server_closed = true;
}

void net_fixture_close(struct net_fixture *f)
{
    if (f->server)
        net_close(f->server, 0, on_server_closed, f);
    uv_close((uv_handle_t *)&f->done, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->server_closed);
    assert_int_equal(f->running, 0);
    assert_int_equal(f->requests, f->closed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    X509_free(f->ca.cert);
    EVP_PKEY_free(f->ca.key);
    X509_free(f->leaf.cert);
    EVP_PKEY_free(f->leaf.key);
    arena_free(f->arena);
}

static void *client_main(void *ctx)
{
    struct net_fixture *f = ctx;

    f->client(f, f->arg);
    uv_async_send(&f->done);
    return NULL;
}

void net_fixture_start(struct net_fixture *f, void (*client)(struct net_fixture *f, void *arg),
                       void *arg)
{
    f->client = client;
    f->arg = arg;
    assert_int_equal(pthread_create(&f->thread, NULL, client_main, f), 0);
}

void net_fixture_wait(struct net_fixture *f)
{
    uv_run(&f->loop, UV_RUN_DEFAULT);
    pthread_join(f->thread, NULL);
}

void net_fixture_run(struct net_fixture *f, void (*client)(struct net_fixture *f, void *arg),
                     void *arg)
{
    net_fixture_start(f, client, arg);
    net_fixture_wait(f);
}

void net_fixture_shut(struct net_fixture *f, int64_t grace_ms)
{
    net_close(f->server, grace_ms, on_server_closed, f);
    f->server = NULL;
}

/* Raw clients. */

int raw_connect(struct net_fixture *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)f->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval wait = {.tv_sec = CLIENT_WAIT};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        abort();
    return fd;
}

void raw_send(int fd, struct str bytes)
{
    while (bytes.n) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        bytes = str_from(bytes, (size_t)n);
    }
}

size_t raw_receive(int fd, struct buf *into, size_t want)
{
    char chunk[16384];
    size_t total = 0;

    while (total < want) {
        size_t room = want - total < sizeof(chunk) ? want - total : sizeof(chunk);
        ssize_t n = recv(fd, chunk, room, 0);

        if (n <= 0)
            break;
        buf_add(into, (struct str){chunk, (size_t)n});
        total += (size_t)n;
    }
    return total;
}

void raw_receive_until(int fd, struct buf *into, const char *text)
{
    while (!str_contains(buf_str(into), str_c(text)) && raw_receive(fd, into, 1) == 1) {
    }
}

bool raw_closed(int fd)
{
    struct buf b = BUF_INIT(0);
    char c;

    raw_receive(fd, &b, SIZE_MAX);
    buf_fini(&b);
    return recv(fd, &c, 1, 0) == 0 || errno == ECONNRESET;
}

void raw_talk(struct net_fixture *f, struct str bytes, struct buf *into)
{
    int fd = raw_connect(f);

    raw_send(fd, bytes);
    raw_receive(fd, into, SIZE_MAX);
    close(fd);
}
