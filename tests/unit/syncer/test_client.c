/* SPDX-License-Identifier: Apache-2.0 */
/* The host's client against a server that misbehaves: what is repeated, what is reported, what is
 * bounded. */
#include "fake_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

struct outcome {
    bool done;
    int status;
    const struct err_kind *kind;
    char text[512];
    bool outdated;     /* what is_outdated() returns */
    unsigned reviewed; /* how often it was called */
};

static void on_done(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct outcome *o = ctx;

    assert_false(o->done);
    o->done = true;
    o->status = answer ? answer->status : 0;
    o->kind = err ? err->kind : NULL;
    struct str text = err ? err->message : answer->body;
    snprintf(o->text, sizeof(o->text), "%.*s", STR_F(text));
}

static void ask(struct fake_server *s, struct host_request q, struct outcome *o)
{
    *o = (struct outcome){0};
    if (!q.method)
        q.method = "GET";
    if (!q.path.n)
        q.path = STR("/api");
    host_send(s->host, &q, on_done, o);
    assert_false(o->done);
    fake_run_until(s, &o->done);
}

static void answer_plain(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    (void)s;
    fake_reply(x, 200, r->method == NET_POST ? "{\"made\":1}" : "{\"ok\":1}");
}

static void test_request_carries_everything(void **state)
{
    struct fake_server s;
    struct outcome o;

    (void)state;
    fake_open(&s, answer_plain, NULL);
    assert_false(host_was_reached(s.host));
    ask(&s,
        (struct host_request){
            .method = "POST", .path = STR("/api/v1/x?dryRun=All"), .body = STR("{\"a\":1}")},
        &o);
    assert_null(o.kind);
    assert_int_equal(o.status, 200);
    assert_string_equal(o.text, "{\"made\":1}");
    assert_string_equal(s.last_path, "/api/v1/x");
    assert_string_equal(s.last_query, "dryRun=All");
    assert_string_equal(s.last_body, "{\"a\":1}");
    assert_string_equal(s.last_authorization, "Bearer secret");
    assert_true(host_is_up(s.host) && host_was_reached(s.host));
    fake_close(&s);
}

static void answer_status(struct fake_server *s, struct net_exchange *x,
                          const struct net_request *r)
{
    (void)s;
    if (str_eqc(r->path, "/garbage"))
        fake_reply(x, 503, "<html>no</html>");
    else
        fake_reply(x, 403,
                   "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":"
                   "\"pods \\\"a\\\" is forbidden: no\",\"reason\":\"Forbidden\",\"code\":403}");
}

static void test_refusals_become_errors(void **state)
{
    struct fake_server s;
    struct outcome o;

    (void)state;
    fake_open(&s, answer_status, NULL);
    ask(&s, (struct host_request){0}, &o);
    assert_ptr_equal(o.kind, &ERR_FORBIDDEN);
    assert_string_equal(o.text, "pods \"a\" is forbidden: no");
    ask(&s, (struct host_request){.path = STR("/garbage")}, &o);
    assert_ptr_equal(o.kind, &ERR_UNAVAILABLE);
    assert_true(strstr(o.text, "503") != NULL);
    fake_close(&s);
}

static void answer_busy_twice(struct fake_server *s, struct net_exchange *x,
                              const struct net_request *r)
{
    struct net_header header = {STR("retry-after"), STR("0")};

    (void)r;
    if (s->requests <= 2)
        net_respond(x, 429, &header, 1, NULL, 0);
    else
        fake_reply(x, 200, "{}");
}

static void test_429_is_repeated(void **state)
{
    struct fake_server s;
    struct outcome o;

    (void)state;
    fake_open(&s, answer_busy_twice, NULL);
    ask(&s, (struct host_request){.method = "POST", .body = STR("{}")}, &o);
    assert_null(o.kind);
    assert_int_equal(s.requests, 3);
    fake_close(&s);
}

static void answer_busy(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    struct net_header header = {STR("retry-after"), STR("5")};

    (void)s;
    (void)r;
    net_respond(x, 429, &header, 1, NULL, 0);
}

static void test_429_beyond_the_deadline_is_told(void **state)
{
    struct fake_server s;
    struct outcome o;

    (void)state;
    fake_open(&s, answer_busy, NULL);
    ask(&s, (struct host_request){.timeout_ms = 4000}, &o);
    assert_ptr_equal(o.kind, &ERR_TOO_MANY_REQUESTS);
    assert_int_equal(s.requests, 1);
    fake_close(&s);
}

static void answer_never(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    (void)s;
    (void)x;
    (void)r;
}

static void test_deadline(void **state)
{
    struct fake_server s;
    struct outcome o;

    (void)state;
    fake_open(&s, answer_never, NULL);
    ask(&s, (struct host_request){.timeout_ms = 50}, &o);
    assert_ptr_equal(o.kind, &ERR_TIMEOUT);
    fake_close(&s);
}

struct race {
    bool done, stream_done, first;
};

static void on_stream_done(void *ctx, const struct host_answer *answer, const struct err *err)
{
    (void)answer, (void)err;
    ((struct race *)ctx)->stream_done = true;
}

static void on_request_done(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct race *r = ctx;

    assert_null(answer);
    assert_ptr_equal(err->kind, &ERR_TIMEOUT);
    r->done = true;
    r->first = !r->stream_done;
}

static void on_no_line(void *ctx, struct str line)
{
    (void)ctx, (void)line;
}

/* A port that accepts and says nothing, not even TLS. */
static int silent_port(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* A request waits for the connection that a watch opens, and not beyond its own deadline. */
static void test_deadline_while_another_connects(void **state)
{
    struct fake_server s;
    struct race race = {0};
    unsigned port;
    int fd = silent_port(&port);
    struct host_request watch = {.method = "GET", .path = STR("/watch")};
    struct host_request q = {.method = "GET", .path = STR("/x"), .timeout_ms = 50};

    (void)state;
    fake_open_at(&s, "https", port);
    struct host_call *stream = host_stream(s.host, &watch, on_no_line, on_stream_done, &race);
    fake_run_ms(&s, 20);
    host_send(s.host, &q, on_request_done, &race);
    fake_run_until(&s, &race.done);
    assert_true(race.first);
    if (!race.stream_done)
        host_cancel(stream);
    fake_close(&s);
    close(fd);
}

enum { TURNS = 50 };

/* Answers a connection with a body that has no end, as fast as it is taken. */
static void flood_main(void *ctx)
{
    static const char head[] = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
    static const char bytes[1 << 18];
    int fd = accept(*(int *)ctx, NULL, NULL);
    bool open = fd >= 0 && send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL) > 0;

    while (open)
        open = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0;
    close(fd);
}

struct turns {
    unsigned n;
    bool enough;
};

static void on_turn(uv_check_t *check)
{
    struct turns *t = check->data;

    t->enough = ++t->n >= TURNS;
}

/* A host that never stops talking must not keep the loop from all others. */
static void test_endless_answer_takes_turns(void **state)
{
    struct fake_server s;
    struct host_request q = {.method = "GET", .path = STR("/x")};
    struct outcome o = {0};
    struct turns turns = {0};
    uv_thread_t thread;
    uv_check_t check;
    unsigned port;
    int fd = silent_port(&port);

    (void)state;
    fake_open_at(&s, "http", port);
    assert_int_equal(uv_thread_create(&thread, flood_main, &fd), 0);
    struct host_call *call = host_send(s.host, &q, on_done, &o);
    uv_check_init(&s.loop, &check);
    check.data = &turns;
    uv_check_start(&check, on_turn);
    fake_run_until(&s, &turns.enough);
    if (!o.done)
        host_cancel(call);
    uv_close((uv_handle_t *)&check, NULL);
    fake_close(&s);
    shutdown(fd, SHUT_RDWR);
    uv_thread_join(&thread);
    close(fd);
}

static void test_cancel_is_silent(void **state)
{
    struct fake_server s;
    struct outcome o = {0};
    struct host_request q = {.method = "GET", .path = STR("/x")};

    (void)state;
    fake_open(&s, answer_never, NULL);
    host_cancel(NULL);
    struct host_call *call = host_send(s.host, &q, on_done, &o);
    fake_run_ms(&s, 20);
    host_cancel(call);
    call = host_send(s.host, &q, on_done, &o);
    host_cancel(call);
    fake_run_ms(&s, 20);
    assert_false(o.done);
    fake_close(&s);
}

static void test_stop_fails_everything(void **state)
{
    struct fake_server s;
    struct outcome under_way = {0}, later = {0};
    struct host_request q = {.method = "GET", .path = STR("/x")};

    (void)state;
    fake_open(&s, answer_never, NULL);
    host_send(s.host, &q, on_done, &under_way);
    fake_run_ms(&s, 10);
    host_stop(s.host);
    host_send(s.host, &q, on_done, &later);
    assert_false(under_way.done || later.done);
    fake_run_until(&s, &later.done);
    assert_true(under_way.done);
    assert_ptr_equal(under_way.kind, &ERR_UNAVAILABLE);
    assert_ptr_equal(later.kind, &ERR_UNAVAILABLE);
    fake_close(&s);
}

static void on_up(void *ctx)
{
    *(bool *)ctx = true;
}

static void test_down_is_probed_and_up_is_told(void **state)
{
    struct fake_server s;
    struct outcome o;
    bool up = false;

    (void)state;
    fake_open(&s, answer_plain, NULL);
    host_on_up(s.host, on_up, &up);
    fake_go_away(&s);
    ask(&s, (struct host_request){0}, &o);
    assert_ptr_equal(o.kind, &ERR_UNAVAILABLE);
    assert_false(host_is_up(s.host));

    assert_false(up);
    fake_come_back(&s);
    fake_run_until(&s, &up);
    assert_true(host_is_up(s.host));
    fake_close(&s);
}

static void test_rate(void **state)
{
    struct host_options o = {.qps = 100, .burst = 5};
    struct host_request q = {.method = "GET", .path = STR("/x")};
    struct outcome outcomes[15];
    struct fake_server s;
    uint64_t start;

    (void)state;
    fake_open(&s, answer_plain, &o);
    memset(outcomes, 0, sizeof(outcomes));
    start = uv_hrtime();
    for (size_t i = 0; i < 15; i++)
        host_send(s.host, &q, on_done, &outcomes[i]);
    fake_run_until(&s, &outcomes[14].done);
    /* 5 at once, 10 at 100/s: not before 90 ms whatever the machine does. */
    assert_true(uv_hrtime() - start > 90000000);
    fake_close(&s);
}

static void test_queue_is_bounded(void **state)
{
    struct host_options o = {.max_in_flight = 1, .max_queued = 2};
    struct host_request q = {.method = "GET", .path = STR("/x")};
    struct outcome outcomes[4];
    struct fake_server s;

    (void)state;
    fake_open(&s, answer_never, &o);
    memset(outcomes, 0, sizeof(outcomes));
    for (size_t i = 0; i < 4; i++)
        host_send(s.host, &q, on_done, &outcomes[i]);
    fake_run_until(&s, &outcomes[3].done);
    assert_ptr_equal(outcomes[3].kind, &ERR_TOO_MANY_REQUESTS);
    assert_false(outcomes[0].done || outcomes[1].done || outcomes[2].done);
    fake_close(&s);
}

static void answer_but_slow(struct fake_server *s, struct net_exchange *x,
                            const struct net_request *r)
{
    if (!str_eqc(r->path, "/slow"))
        answer_plain(s, x, r);
}

/* Requests that nothing waits for neither fill the queue of the others nor hold their turns. */
static void test_what_goes_aside_delays_nothing(void **state)
{
    struct host_options o = {.max_in_flight = 1, .max_queued = 8, .qps = 1, .burst = 30};
    struct host_request q = {.method = "POST", .path = STR("/slow"), .aside = true};
    struct outcome slow[16], done;
    struct fake_server s;

    (void)state;
    fake_open(&s, answer_but_slow, &o);
    memset(slow, 0, sizeof(slow));
    ask(&s, (struct host_request){.method = "GET"}, &done); /* it is HTTP/1.1, curl knows now */
    for (size_t i = 0; i < COUNT(slow); i++)
        host_send(s.host, &q, on_done, &slow[i]);
    for (size_t i = 0; i < 20; i++) {
        ask(&s, (struct host_request){.method = "GET"}, &done);
        assert_int_equal(done.status, 200);
    }
    for (size_t i = 0; i < COUNT(slow); i++)
        assert_true(i < 12 ? !slow[i].done : slow[i].kind == &ERR_TOO_MANY_REQUESTS);
    fake_close(&s);
}

static enum host_gate gate_of(void *ctx)
{
    return *(enum host_gate *)ctx;
}

static void test_gate_stops_what_changes_the_host(void **state)
{
    static const char *const changing[] = {"POST", "PUT", "PATCH", "DELETE"};
    struct host_request barred = {.path = STR("/api"), .body = STR("{}")};
    struct fake_server s;
    struct outcome o;
    enum host_gate gate = HOST_GATE_CLOSED;

    (void)state;
    fake_open(&s, answer_plain, NULL);
    host_set_gate(s.host, gate_of, &gate);
    for (size_t i = 0; i < 4; i++) {
        s.last_path[0] = '\0';
        o = (struct outcome){0};
        barred.method = changing[i];
        host_send(s.host, &barred, on_done, &o);
        assert_false(o.done);
        fake_run_ms(&s, 5);
        assert_ptr_equal(o.kind, &ERR_UNAVAILABLE);
        assert_string_equal(s.last_path, ""); /* it never left */
        assert_non_null(strstr(o.text, "Lease"));
        ask(&s, (struct host_request){.method = changing[i], .body = STR("{}"), .dry_run = true},
            &o);
        assert_int_equal(o.status, 200);
        ask(&s,
            (struct host_request){.method = changing[i], .body = STR("{}"), .passes_gate = true},
            &o);
        assert_int_equal(o.status, 200);
    }
    ask(&s, (struct host_request){.method = "GET"}, &o);
    assert_int_equal(o.status, 200);
    gate = HOST_GATE_OPEN;
    ask(&s, (struct host_request){.method = "POST", .body = STR("{}")}, &o);
    assert_int_equal(o.status, 200);
    fake_close(&s);
}

static void test_gate_stops_what_waits(void **state)
{
    struct host_options o = {.max_in_flight = 1};
    struct host_request q = {.method = "POST", .path = STR("/x")};
    struct outcome outcomes[3];
    struct fake_server s;
    enum host_gate gate = HOST_GATE_OPEN;

    (void)state;
    fake_open(&s, answer_never, &o);
    host_set_gate(s.host, gate_of, &gate);
    memset(outcomes, 0, sizeof(outcomes));
    host_send(s.host, &q, on_done, &outcomes[0]);
    host_send(s.host, &q, on_done, &outcomes[1]);
    q.method = "GET";
    host_send(s.host, &q, on_done, &outcomes[2]);
    gate = HOST_GATE_CLOSED;
    host_gate_changed(s.host);
    assert_false(outcomes[1].done); /* never from within the call */
    fake_run_until(&s, &outcomes[1].done);
    assert_ptr_equal(outcomes[1].kind, &ERR_UNAVAILABLE);
    assert_false(outcomes[0].done || outcomes[2].done);
    fake_close(&s);
}

/* What changes the host keeps its place, and what does not goes past it. */
static void test_gate_lets_changes_wait(void **state)
{
    enum host_gate gate = HOST_GATE_WAIT;
    struct outcome change = {0}, read = {0};
    struct host_request q = {.method = "POST", .path = STR("/x"), .body = STR("{}")};
    struct fake_server s;

    (void)state;
    fake_open(&s, answer_plain, NULL);
    host_set_gate(s.host, gate_of, &gate);
    host_send(s.host, &q, on_done, &change);
    q.method = "GET";
    host_send(s.host, &q, on_done, &read);
    fake_run_until(&s, &read.done);
    assert_int_equal(read.status, 200);
    fake_run_ms(&s, 20);
    assert_false(change.done);
    gate = HOST_GATE_OPEN;
    host_gate_changed(s.host);
    fake_run_until(&s, &change.done);
    assert_int_equal(change.status, 200);
    fake_close(&s);
}

static bool is_outdated(void *ctx)
{
    ((struct outcome *)ctx)->reviewed++;
    return ((struct outcome *)ctx)->outdated;
}

/* What had to wait is reviewed when it may leave; what leaves at once is not. */
static void test_outdated_requests_are_not_sent(void **state)
{
    enum host_gate gate = HOST_GATE_OPEN;
    struct outcome at_once = {.outdated = true}, stale = at_once, good = {0};
    struct host_request q = {
        .method = "POST", .path = STR("/x"), .body = STR("{}"), .is_outdated = is_outdated};
    struct fake_server s;

    (void)state;
    fake_open(&s, answer_plain, NULL);
    host_set_gate(s.host, gate_of, &gate);
    host_send(s.host, &q, on_done, &at_once);
    fake_run_until(&s, &at_once.done);
    assert_int_equal(at_once.status, 200);

    gate = HOST_GATE_WAIT;
    q.path = STR("/stale");
    host_send(s.host, &q, on_done, &stale);
    q.path = STR("/good");
    host_send(s.host, &q, on_done, &good);
    fake_run_ms(&s, 20);
    assert_false(stale.done || good.done);
    gate = HOST_GATE_OPEN;
    host_gate_changed(s.host);
    fake_run_until(&s, &good.done);
    assert_int_equal(good.status, 200);
    fake_run_until(&s, &stale.done);
    assert_ptr_equal(stale.kind, &ERR_CONFLICT);
    assert_int_equal(stale.status, 0);
    assert_int_equal(at_once.reviewed, 0);
    assert_int_equal(stale.reviewed, 1);
    assert_int_equal(good.reviewed, 1);
    assert_string_equal(s.last_path, "/good");
    fake_close(&s);
}

static void answer_first_later(struct fake_server *s, struct net_exchange *x,
                               const struct net_request *r)
{
    struct buf *order = s->ctx;

    buf_add(order, r->path);
    fake_reply(x, 200, "{}");
}

static void test_urgent_goes_first(void **state)
{
    struct host_options o = {.max_in_flight = 1};
    struct buf order = BUF_INIT(0);
    struct outcome outcomes[3];
    struct fake_server s;

    (void)state;
    fake_open(&s, answer_first_later, &o);
    s.ctx = &order;
    memset(outcomes, 0, sizeof(outcomes));
    host_send(s.host, &(struct host_request){.method = "GET", .path = STR("/1")}, on_done,
              &outcomes[0]);
    host_send(s.host, &(struct host_request){.method = "GET", .path = STR("/2")}, on_done,
              &outcomes[1]);
    host_send(s.host, &(struct host_request){.method = "GET", .path = STR("/3"), .urgent = true},
              on_done, &outcomes[2]);
    fake_run_until(&s, &outcomes[1].done);
    assert_str(buf_str(&order), "/1/3/2");
    buf_fini(&order);
    fake_close(&s);
}

struct lines {
    struct fake_server *s;
    struct buf text;
    unsigned n;
    bool two, done, cancel_at_one;
    struct host_call *call;
};

static void on_line(void *ctx, struct str line)
{
    struct lines *l = ctx;

    buf_add(&l->text, line);
    buf_char(&l->text, '|');
    l->two = ++l->n == 2;
    if (l->cancel_at_one) {
        host_cancel(l->call);
        l->done = true;
    }
}

static void on_lines_done(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct lines *l = ctx;

    (void)answer;
    (void)err;
    l->done = true;
}

static void answer_lines(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    (void)r;
    fake_begin_watch(s, x);
    fake_line(s, "{\"a\":1}\n{\"b\":2}");
}

static void test_stream_gives_lines(void **state)
{
    struct host_request q = {.method = "GET", .path = STR("/w")};
    struct lines l = {0};
    struct fake_server s;

    (void)state;
    fake_open(&s, answer_lines, NULL);
    l.call = host_stream(s.host, &q, on_line, on_lines_done, &l);
    fake_run_until(&s, &l.two);
    assert_str(buf_str(&l.text), "{\"a\":1}|{\"b\":2}|");
    fake_end_streams(&s, false);
    fake_run_until(&s, &l.done);
    buf_fini(&l.text);
    fake_close(&s);
}

static void test_stream_may_be_cancelled_by_its_line(void **state)
{
    struct host_request q = {.method = "GET", .path = STR("/w")};
    struct lines l = {.cancel_at_one = true};
    struct fake_server s;

    (void)state;
    fake_open(&s, answer_lines, NULL);
    l.call = host_stream(s.host, &q, on_line, on_lines_done, &l);
    fake_run_until(&s, &l.done);
    fake_run_ms(&s, 10);
    assert_int_equal(l.n, 1);
    buf_fini(&l.text);
    fake_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_carries_everything),
        cmocka_unit_test(test_refusals_become_errors),
        cmocka_unit_test(test_429_is_repeated),
        cmocka_unit_test(test_429_beyond_the_deadline_is_told),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_deadline_while_another_connects),
        cmocka_unit_test(test_endless_answer_takes_turns),
        cmocka_unit_test(test_cancel_is_silent),
        cmocka_unit_test(test_stop_fails_everything),
        cmocka_unit_test(test_down_is_probed_and_up_is_told),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_queue_is_bounded),
        cmocka_unit_test(test_what_goes_aside_delays_nothing),
        cmocka_unit_test(test_gate_stops_what_changes_the_host),
        cmocka_unit_test(test_gate_stops_what_waits),
        cmocka_unit_test(test_gate_lets_changes_wait),
        cmocka_unit_test(test_outdated_requests_are_not_sent),
        cmocka_unit_test(test_urgent_goes_first),
        cmocka_unit_test(test_stream_gives_lines),
        cmocka_unit_test(test_stream_may_be_cancelled_by_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
