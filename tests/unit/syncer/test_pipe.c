/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges with the host on connections of their own: answers in pieces, tunnels, backpressure in
 * both directions, ends of every kind. */
#include "fake_server.h"

#include <dlfcn.h>

#include <curl/curl.h>

#define BIG (24u << 20)

/* What a connection did not take. TLS wants the same bytes at the same address again
 * (SSL_write(3)), and a connection without TLS does not notice: so it is checked here, in libcurl's
 * place. */
static const void *REFUSED;
static size_t REFUSED_N, REFUSALS;

CURLcode curl_easy_send(CURL *easy, const void *bytes, size_t n, size_t *ret_sent)
{
    static CURLcode (*send)(CURL *, const void *, size_t, size_t *);
    CURLcode result;

    if (!send)
        *(void **)&send = dlsym(RTLD_NEXT, "curl_easy_send");
    if (REFUSED) {
        assert_ptr_equal(bytes, REFUSED);
        assert_int_equal(n, REFUSED_N);
    }
    *ret_sent = 0;
    result = send(easy, bytes, n, ret_sent);
    REFUSED = result == CURLE_AGAIN || (result == CURLE_OK && !*ret_sent) ? bytes : NULL;
    REFUSED_N = n;
    REFUSALS += REFUSED != NULL;
    return result;
}

struct seen {
    struct host_pipe *pipe;
    int status;
    bool head, over, drained, close_in_head, close_in_data, pause_at_once;
    const struct err_kind *failure;
    char type[64], text[256];
    size_t n_text, bytes;
};

static void on_head(void *ctx, int status, const struct net_header *headers, size_t n)
{
    struct seen *seen = ctx;

    seen->head = true;
    seen->status = status;
    for (size_t i = 0; i < n; i++)
        if (str_eqc(headers[i].name, "content-type"))
            snprintf(seen->type, sizeof(seen->type), "%.*s", STR_F(headers[i].value));
    if (seen->close_in_head) {
        host_pipe_close(seen->pipe);
        seen->over = true;
    } else if (seen->pause_at_once) {
        host_pipe_pause(seen->pipe, true);
    }
}

static void on_data(void *ctx, struct str bytes)
{
    struct seen *seen = ctx;

    for (size_t i = 0; i < bytes.n && seen->n_text + 1 < sizeof(seen->text); i++)
        seen->text[seen->n_text++] = bytes.p[i];
    seen->bytes += bytes.n;
    if (seen->close_in_data) {
        host_pipe_close(seen->pipe);
        seen->over = true;
    }
}

static void on_drained(void *ctx)
{
    ((struct seen *)ctx)->drained = true;
}

static void on_end(void *ctx, const struct err *err)
{
    struct seen *seen = ctx;

    assert_false(seen->over);
    seen->over = true;
    seen->failure = err ? err->kind : NULL;
}

static const struct host_pipe_handler HANDLER = {on_head, on_data, on_drained, on_end};

static void open_pipe(struct fake_server *s, struct seen *seen, struct host_pipe_request q)
{
    struct err err;

    err_init(&err, s->arena);
    if (!q.method)
        q.method = "GET";
    seen->pipe = host_pipe_open(s->host, &q, &HANDLER, seen, &err);
    assert_non_null(seen->pipe);
    assert_false(seen->over);
}

static void pump(struct net_exchange *x, size_t n)
{
    static const char zeros[65536];

    for (size_t at = 0; at < n; at += sizeof(zeros))
        net_write(x, &(struct net_slice){{zeros, sizeof(zeros)}, NULL, NULL}, 1);
}

static void send_text(struct net_exchange *x, const char *text)
{
    net_write(x, &(struct net_slice){str_c(text), NULL, NULL}, 1);
}

/* What a pipe's other end keeps: one at a time. */
static struct net_exchange *OPEN;
static bool OPEN_CLOSED;
static size_t OPEN_GOT;

static void open_closed(void *ctx)
{
    (void)ctx;
    OPEN = NULL;
    OPEN_CLOSED = true;
}

static void give_back(void *ctx, struct str bytes)
{
    (void)ctx;
    OPEN_GOT += bytes.n;
    if (!bytes.n)
        net_end(OPEN);
    else if (str_eqc(bytes, "hello"))
        send_text(OPEN, "HELLO");
}

static void answer(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    static const struct net_header plain = {{"content-type", 12}, {"text/plain", 10}};
    static const struct net_header upgrade = {{"upgrade", 7}, {"echo", 4}};

    (void)s;
    OPEN = x;
    OPEN_CLOSED = false;
    OPEN_GOT = 0;
    net_on(x, open_closed, NULL, NULL);
    if (str_eqc(r->path, "/refuse")) {
        fake_reply(x, 400, "{\"kind\":\"Status\"}");
    } else if (str_eqc(r->path, "/tunnel")) {
        assert_str(net_header(r, "upgrade"), "echo");
        assert_str(net_header(r, "x-mine"), "1");
        assert_true(net_upgrade(x, &upgrade, 1, give_back));
    } else if (str_eqc(r->path, "/post")) {
        assert_str(r->body, "body");
        fake_reply(x, 201, "made");
    } else {
        net_begin(x, 200, &plain, 1);
        if (str_eqc(r->path, "/big"))
            pump(x, BIG);
        else if (!str_eqc(r->path, "/silent"))
            send_text(x, "one\n");
        if (str_eqc(r->path, "/cut"))
            return;
        if (!str_eqc(r->path, "/follow") && !str_eqc(r->path, "/silent"))
            net_end(x);
    }
}

static void test_answers(void **state)
{
    struct fake_server s;
    struct seen seen = {0};

    (void)state;
    fake_open(&s, answer, NULL);
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/text?a=b")});
    fake_run_until(&s, &seen.over);
    assert_null(seen.failure);
    assert_int_equal(seen.status, 200);
    assert_string_equal(seen.type, "text/plain");
    assert_string_equal(seen.text, "one\n");
    assert_string_equal(s.last_query, "a=b");
    assert_string_equal(s.last_authorization, "Bearer secret");

    seen = (struct seen){0};
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/refuse")});
    fake_run_until(&s, &seen.over);
    assert_null(seen.failure);
    assert_int_equal(seen.status, 400);
    assert_string_equal(seen.text, "{\"kind\":\"Status\"}");

    seen = (struct seen){0};
    open_pipe(
        &s, &seen,
        (struct host_pipe_request){.method = "POST", .path = STR("/post"), .body = STR("body")});
    fake_run_until(&s, &seen.over);
    assert_int_equal(seen.status, 201);

    seen = (struct seen){0};
    open_pipe(&s, &seen, (struct host_pipe_request){.method = "HEAD", .path = STR("/text")});
    fake_run_until(&s, &seen.over);
    assert_null(seen.failure);
    assert_int_equal(seen.bytes, 0);
    fake_close(&s);
}

/* Lines come as they are written; who leaves ends the host's request. */
static void test_follow_and_leave(void **state)
{
    struct fake_server s;
    struct seen seen = {0};

    (void)state;
    fake_open(&s, answer, NULL);
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/follow")});
    while (seen.bytes < 4)
        fake_run_ms(&s, 1);
    send_text(OPEN, "two\n");
    while (seen.bytes < 8)
        fake_run_ms(&s, 1);
    assert_string_equal(seen.text, "one\ntwo\n");
    host_pipe_close(seen.pipe);
    fake_run_until(&s, &OPEN_CLOSED);
    assert_false(seen.over);
    fake_close(&s);
}

/* From inside a callback, too. */
static void test_leave_inside(void **state)
{
    struct fake_server s;
    struct seen seen = {.close_in_head = true};

    (void)state;
    fake_open(&s, answer, NULL);
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/follow")});
    fake_run_until(&s, &seen.over);
    fake_run_until(&s, &OPEN_CLOSED);
    seen = (struct seen){.close_in_data = true};
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/big")});
    fake_run_until(&s, &seen.over);
    fake_run_until(&s, &OPEN_CLOSED);
    fake_close(&s);
}

/* A reader that pauses stops the host: what it wrote stays on its side. */
static void test_backpressure_in(void **state)
{
    struct fake_server s;
    struct seen seen = {.pause_at_once = true};
    size_t held;

    (void)state;
    fake_open(&s, answer, NULL);
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/big")});
    while (!seen.head)
        fake_run_ms(&s, 1);
    fake_run_ms(&s, 50);
    held = seen.bytes;
    assert_true(held <= 65536);
    assert_true(net_backlog(OPEN) > BIG / 2);
    fake_run_ms(&s, 50);
    assert_int_equal(seen.bytes, held);
    host_pipe_pause(seen.pipe, false);
    fake_run_until(&s, &seen.over);
    assert_null(seen.failure);
    assert_int_equal(seen.bytes, BIG);
    fake_close(&s);
}

static struct host_pipe_request tunnel_request(void)
{
    static const struct net_header mine = {{"X-Mine", 6}, {"1", 1}};

    return (struct host_pipe_request){
        .path = STR("/tunnel"), .headers = &mine, .n_headers = 1, .upgrade = STR("echo")};
}

static void test_tunnel(void **state)
{
    struct fake_server s;
    struct seen seen = {0};

    (void)state;
    fake_open(&s, answer, NULL);
    open_pipe(&s, &seen, tunnel_request());
    while (!seen.head)
        fake_run_ms(&s, 1);
    assert_int_equal(seen.status, 101);
    host_pipe_write(seen.pipe, STR("hello"));
    while (seen.bytes < 5)
        fake_run_ms(&s, 1);
    assert_string_equal(seen.text, "HELLO");
    net_end(OPEN);
    fake_run_until(&s, &seen.over);
    assert_null(seen.failure);
    fake_close(&s);
}

/* What the host does not take stays counted, and its taking is reported. */
static void test_backpressure_out(void **state)
{
    static const char zeros[1 << 20];
    struct fake_server s;
    struct seen seen = {0};
    size_t waiting = 0;

    (void)state;
    fake_open(&s, answer, NULL);
    open_pipe(&s, &seen, tunnel_request());
    while (!seen.head)
        fake_run_ms(&s, 1);
    net_pause(OPEN, true);
    for (int i = 0; i < 24; i++)
        waiting = host_pipe_write(seen.pipe, (struct str){zeros, sizeof(zeros)});
    assert_true(waiting > (1 << 20));
    assert_true(REFUSALS > 0);
    fake_run_ms(&s, 20);
    assert_false(seen.drained);
    net_pause(OPEN, false);
    fake_run_until(&s, &seen.drained);
    while (OPEN_GOT < 24 * sizeof(zeros))
        fake_run_ms(&s, 1);
    assert_int_equal(OPEN_GOT, 24 * sizeof(zeros));
    host_pipe_close(seen.pipe);
    fake_run_until(&s, &OPEN_CLOSED);
    fake_close(&s);
}

/* An answer whose end did not come is no answer; a host that is away is an error. */
static void test_broken(void **state)
{
    struct fake_server s;
    struct seen seen = {0};

    (void)state;
    fake_open(&s, answer, NULL);
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/follow")});
    while (seen.bytes < 4)
        fake_run_ms(&s, 1);
    net_abort(OPEN);
    fake_run_until(&s, &seen.over);
    assert_ptr_equal(seen.failure, &ERR_UNAVAILABLE);

    fake_go_away(&s);
    seen = (struct seen){0};
    open_pipe(&s, &seen, (struct host_pipe_request){.path = STR("/text")});
    fake_run_until(&s, &seen.over);
    assert_ptr_equal(seen.failure, &ERR_UNAVAILABLE);
    assert_false(seen.head);
    fake_close(&s);
}

static void test_limits(void **state)
{
    struct host_options o = {.backoff_ms = 1, .backoff_max_ms = 20, .max_pipes = 2};
    struct host_pipe_request q = {.method = "GET", .path = STR("/silent")};
    struct seen seen[3] = {0};
    struct fake_server s;
    struct err err;

    (void)state;
    fake_open(&s, answer, &o);
    open_pipe(&s, &seen[0], q);
    open_pipe(&s, &seen[1], q);
    err_init(&err, s.arena);
    assert_null(host_pipe_open(s.host, &q, &HANDLER, &seen[2], &err));
    assert_ptr_equal(err.kind, &ERR_TOO_MANY_REQUESTS);
    assert_int_equal(err.retry_after, 1);
    host_pipe_close(seen[0].pipe); /* not even connected */
    open_pipe(&s, &seen[2], q);
    while (!seen[2].head)
        fake_run_ms(&s, 1);
    host_pipe_close(seen[1].pipe);
    host_pipe_close(seen[2].pipe);
    fake_close(&s);
}

/* Neither a host that says nothing nor one that never ends keeps a pipe open. */
static void test_deadline(void **state)
{
    static const char *const paths[] = {"/silent", "/follow", "/tunnel"};
    struct fake_server s;

    (void)state;
    fake_open(&s, answer, NULL);
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct host_pipe_request q = tunnel_request();
        struct seen seen = {0};

        q.path = str_c(paths[i]);
        q.timeout_ms = 200;
        if (i < 2)
            q.upgrade = STR("");
        open_pipe(&s, &seen, q);
        fake_run_until(&s, &seen.over);
        assert_true(seen.head);
        assert_ptr_equal(seen.failure, &ERR_UNAVAILABLE);
        fake_run_until(&s, &OPEN_CLOSED);
    }
    /* One that ends in time, and one that is left, are not ended again. */
    for (size_t i = 0; i < 2; i++) {
        struct seen seen = {0};

        open_pipe(&s, &seen,
                  (struct host_pipe_request){.path = i ? STR("/silent") : STR("/text"),
                                             .timeout_ms = 200});
        while (!seen.head)
            fake_run_ms(&s, 1);
        if (i)
            host_pipe_close(seen.pipe);
        fake_run_ms(&s, 400);
        assert_int_equal(seen.over, !i);
        assert_null(seen.failure);
    }
    fake_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),      cmocka_unit_test(test_follow_and_leave),
        cmocka_unit_test(test_leave_inside), cmocka_unit_test(test_backpressure_in),
        cmocka_unit_test(test_tunnel),       cmocka_unit_test(test_backpressure_out),
        cmocka_unit_test(test_broken),       cmocka_unit_test(test_limits),
        cmocka_unit_test(test_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
