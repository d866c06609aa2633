/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server with faults on request, over our own net: see fake_server.h. */
#include "fake_server.h"

#include <stdlib.h>
#include <unistd.h>

static void copy(char *to, size_t size, struct str from)
{
    size_t n = from.n < size ? from.n : size - 1;

    if (n)
        memcpy(to, from.p, n);
    to[n] = 0;
}

static void on_request(void *ctx, struct net_exchange *x, const struct net_request *r)
{
    struct fake_server *s = ctx;

    s->requests++;
    copy(s->last_path, sizeof(s->last_path), r->path);
    copy(s->last_query, sizeof(s->last_query), r->query);
    copy(s->last_body, sizeof(s->last_body), r->body);
    copy(s->last_authorization, sizeof(s->last_authorization), net_header(r, "authorization"));
    if (str_contains(r->query, STR("watch=1")))
        s->watches++;
    else if (str_contains(r->query, STR("limit=")))
        s->lists++;
    s->answer(s, x, r);
}

static void write_kubeconfig(struct fake_server *s, const char *scheme, unsigned port)
{
    int fd;
    FILE *f;

    snprintf(s->kubeconfig, sizeof(s->kubeconfig), "/tmp/sublet-host-XXXXXX");
    fd = mkstemp(s->kubeconfig);
    assert_true(fd >= 0);
    f = fdopen(fd, "w");
    fprintf(f,
            "current-context: c\n"
            "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
            "clusters: [{name: k, cluster: {server: \"%s://127.0.0.1:%u/\"}}]\n"
            "users: [{name: u, user: {token: secret}}]\n",
            scheme, port);
    fclose(f);
}

void fake_come_back(struct fake_server *s)
{
    char address[32];
    struct net_options net = {.handler = {on_request, s}};
    struct err err;

    snprintf(address, sizeof(address), "127.0.0.1:%u", s->port);
    net.address = str_c(address);
    err_init(&err, s->arena);
    if (net_listen(&s->loop, &net, &s->server, &err))
        fail_msg("%.*s", STR_F(err.message));
    s->port = net_port(s->server);
}

static void open_loop(struct fake_server *s)
{
    memset(s, 0, sizeof(*s));
    uv_loop_init(&s->loop);
    uv_timer_init(&s->loop, &s->guard);
    s->arena = arena_new(0);
}

static void open_host(struct fake_server *s, const struct host_options *options)
{
    struct host_options o =
        options ? *options : (struct host_options){.backoff_ms = 1, .backoff_max_ms = 20};
    struct err err;

    err_init(&err, s->arena);
    o.loop = &s->loop;
    o.clock = &CLOCK_SYSTEM;
    o.rng = &RNG_SYSTEM;
    o.kubeconfig = str_c(s->kubeconfig);
    if (host_open(&o, &s->host, &err))
        fail_msg("%.*s", STR_F(err.message));
}

void fake_open(struct fake_server *s, fake_answer answer, const struct host_options *options)
{
    open_loop(s);
    s->answer = answer;
    fake_come_back(s);
    write_kubeconfig(s, "http", net_port(s->server));
    open_host(s, options);
}

void fake_open_at(struct fake_server *s, const char *scheme, unsigned port)
{
    open_loop(s);
    write_kubeconfig(s, scheme, port);
    open_host(s, NULL);
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void on_guard(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("nothing happened in 20 s");
}

void fake_run_until(struct fake_server *s, const bool *flag)
{
    uv_update_time(&s->loop);
    uv_timer_start(&s->guard, on_guard, 20000, 0);
    while (!*flag)
        uv_run(&s->loop, UV_RUN_ONCE);
    uv_timer_stop(&s->guard);
}

static void on_elapsed(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

void fake_run_ms(struct fake_server *s, unsigned ms)
{
    bool over = false;

    s->guard.data = &over;
    uv_update_time(&s->loop);
    uv_timer_start(&s->guard, on_elapsed, ms, 0);
    while (!over)
        uv_run(&s->loop, UV_RUN_ONCE);
}

void fake_go_away(struct fake_server *s)
{
    bool closed = false;

    memset(s->streams, 0, sizeof(s->streams));
    net_close(s->server, 0, on_closed, &closed);
    s->server = NULL;
    fake_run_until(s, &closed);
}

void fake_close(struct fake_server *s)
{
    bool host_closed = false;

    host_stop(s->host);
    host_close(s->host, on_closed, &host_closed);
    fake_run_until(s, &host_closed);
    if (s->server)
        fake_go_away(s);
    uv_close((uv_handle_t *)&s->guard, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    arena_free(s->arena);
    unlink(s->kubeconfig);
}

void fake_reply(struct net_exchange *x, int status, const char *json)
{
    struct net_header header = {STR("content-type"), STR("application/json")};
    struct net_slice body = {.bytes = arena_str(net_arena(x), str_c(json))};

    net_respond(x, status, &header, 1, &body, 1);
}

static void stream_closed(void *ctx)
{
    struct net_exchange **slot = ctx;

    *slot = NULL;
}

void fake_begin_watch(struct fake_server *s, struct net_exchange *x)
{
    struct net_header header = {STR("content-type"), STR("application/json")};
    size_t i = 0;

    while (s->streams[i])
        i++;
    assert_true(i < COUNT(s->streams));
    s->streams[i] = x;
    net_on(x, stream_closed, NULL, &s->streams[i]);
    net_begin(x, 200, &header, 1);
}

void fake_line(struct fake_server *s, const char *json)
{
    for (size_t i = 0; i < COUNT(s->streams); i++) {
        struct net_slice slices[2];

        if (!s->streams[i])
            continue;
        slices[0] = (struct net_slice){.bytes = arena_str(net_arena(s->streams[i]), str_c(json))};
        slices[1] = (struct net_slice){.bytes = STR("\n")};
        net_write(s->streams[i], slices, 2);
    }
}

void fake_end_streams(struct fake_server *s, bool cut)
{
    for (size_t i = 0; i < COUNT(s->streams); i++) {
        struct net_exchange *x = s->streams[i];

        if (!x)
            continue;
        s->streams[i] = NULL;
        net_on(x, NULL, NULL, NULL);
        if (cut)
            net_abort(x);
        else
            net_end(x);
    }
}
