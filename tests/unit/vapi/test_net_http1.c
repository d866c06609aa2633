/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 byte by byte: what is parsed, what is refused, what is cut. */
#include "net_harness.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../vapi/net/server.h"

/* Runs the loop until a condition holds; a test that waits for ever is ended by its runner. */
#define RUN_UNTIL(f, condition)                                                                    \
    do {                                                                                           \
        while (!(condition))                                                                       \
            uv_run(&(f)->loop, UV_RUN_ONCE);                                                       \
    } while (0)

struct talk {
    struct str send;
    struct buf got;
};

static void do_talk(struct net_fixture *f, void *arg)
{
    struct talk *t = arg;

    raw_talk(f, t->send, &t->got);
}

/* Everything the server said to these bytes until it closed. */
static struct str talk(struct net_fixture *f, const char *send)
{
    struct talk t = {.send = str_c(send)};
    struct str got;

    net_fixture_run(f, do_talk, &t);
    got = arena_str(f->arena, buf_str(&t.got));
    buf_fini(&t.got);
    return got;
}

static size_t count(struct str text, const char *part)
{
    size_t n = 0, length = strlen(part);

    for (size_t i = 0; i + length <= text.n; i++)
        n += memcmp(text.p + i, part, length) == 0;
    return n;
}

/* Requests that must be refused with 400 and never reach the handler, nor what follows them. */
static const char *const BAD[] = {
    "GARBAGE\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "GET /hello\r\n\r\n",
    "GET /hello HTTP/2.5\r\nhost: x\r\n\r\n",
    "GET /hello HTTP/3.0\r\nhost: x\r\n\r\n",
    "GET hello HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /hello HTTP/1.1\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: a b/c\r\n\r\n",
    "GET http://a@b/hello HTTP/1.1\r\nhost: x\r\n\r\n",
    "CONNECT http://x/ HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: x\r\nbad header: y\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: x\r\nbad\x01header: y\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: x\r\nname: \x01\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost : x\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: x\ra: b\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: x\r\n: y\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
    "transfer-encoding: identity\r\n\r\n0\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
    "0\r\n\r\nGET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n"
    "0\r\n\r\nGET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1x\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabX\r\n0\r\n\r\n",
    "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    "fffffffffffffffff\r\nab\r\n0\r\n\r\n",
};

static void test_garbage(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(BAD); i++) {
        struct net_fixture f;
        struct str got;

        net_fixture_open(&f, false, NULL);
        got = talk(&f, BAD[i]);
        if (f.requests || !str_has_prefix(got, STR("HTTP/1.1 400 ")) ||
            count(got, "HTTP/1.1") != 1 || !str_contains(got, STR("\"reason\":\"BadRequest\"")) ||
            !str_contains(got, STR("connection: close\r\n")))
            fail_msg("case %zu: %s\n%u requests, answer %.*s", i, BAD[i], f.requests, STR_F(got));
        net_fixture_close(&f);
    }
}

/* Requests that are right, sent over a connection without a socket. */
static const struct {
    const char *bytes;
    unsigned requests;
    size_t body; /* of the last one */
} GOOD[] = {
    {"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n", 1, 0},
    {"\r\n\r\nGET /hello HTTP/1.1\r\nhost: x\r\n\r\n", 1, 0},
    {"GET http://x:1/hello HTTP/1.1\r\nhost: x:1\r\n\r\n", 1, 0},
    {"GET HTTPS://x:1/hello HTTP/1.1\r\nhost: x:1\r\n\r\n", 1, 0},
    {"GET * HTTP/1.1\r\nhost: x\r\n\r\n", 1, 0},
    {"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", 0, 0},
    {"CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n"
     "CONNECT [::1]:443 HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab"
     "CONNECT /hello HTTP/1.1\r\nhost: x\r\n\r\nGET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
     4, 0},
    {"GET /hello HTTP/1.0\r\n\r\n", 1, 0},
    {"get /hello HTTP/1.1\r\nhost: x\r\n\r\n", 1, 0},
    {"CONNECT /hello HTTP/1.1\r\nhost: x\r\n\r\nPRI * HTTP/1.1\r\nhost: x\r\n\r\n", 2, 0},
    {"SOURCE /hello HTTP/1.1\r\nhost: x\r\n\r\nX-~|9 /hello HTTP/1.1\r\nhost: x\r\n\r\n", 2, 0},
    {"BREW /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc\r\n"
     "BREW /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
     2, 2},
    {"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabcde", 1, 5},
    {"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
     "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\ntrailer: 1\r\n\r\n",
     1, 5},
    {"GET /hello HTTP/1.1\r\nhost: x\r\n\r\nGET /hello HTTP/1.1\r\nhost: x\r\n\r\n"
     "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc",
     3, 3},
    {"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
     "POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nab",
     2, 2},
    {"GET /hello HTTP/1.1\r\nhost: x\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"
     "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
     2, 0},
    {"POST /echo HTTP/1.1\r\nhost: x\r\nupgrade: h2c\r\nconnection: upgrade\r\n"
     "content-length: 2\r\n\r\nabGET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
     2, 0},
};

/* The bytes in two pieces, cut at `cut`; step: the size of the pieces of the second. */
static void feed(struct net_fixture *f, struct str bytes, size_t cut, size_t step)
{
    struct net_conn *c = conn_new(f->server);

    c->detached = true;
    conn_feed(c, str_sub(bytes, 0, cut));
    for (size_t at = cut; at < bytes.n; at += step) {
        conn_feed(c, str_sub(bytes, at, step));
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    while (c->dirty)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    conn_close(c);
    conn_free(c);
}

static void test_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(GOOD); i++) {
        struct net_fixture f;
        struct str bytes = str_c(GOOD[i].bytes);
        unsigned runs = 0;

        net_fixture_open(&f, false, NULL);
        for (size_t cut = 0; cut <= bytes.n; cut++) {
            feed(&f, bytes, cut, cut ? bytes.n : 1);
            runs++;
            if (f.requests != runs * GOOD[i].requests || f.closed != f.requests ||
                f.last_body != GOOD[i].body)
                fail_msg("case %zu cut at %zu: %u requests", i, cut, f.requests);
        }
        net_fixture_close(&f);
    }
}

static void test_pipelining(void **state)
{
    struct net_fixture f;
    struct str got;

    (void)state;
    net_fixture_open(&f, false, NULL);
    got = talk(&f, "GET /later HTTP/1.1\r\nhost: x\r\n\r\n"
                   "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc"
                   "GET /stream?100000 HTTP/1.1\r\nhost: x\r\n\r\n"
                   "HEAD /size?7 HTTP/1.1\r\nhost: x\r\n\r\n"
                   "GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
                   "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_int_equal(f.requests, 5);
    assert_int_equal(count(got, "HTTP/1.1 200 OK\r\n"), 5);
    assert_true(str_contains(got, STR("\r\n\r\nlaterHTTP/1.1 200 OK\r\n")));
    assert_true(str_contains(got, STR("\r\n\r\nabcHTTP/1.1 200 OK\r\n")));
    assert_true(str_contains(got, STR("transfer-encoding: chunked\r\n")));
    assert_true(str_contains(got, STR("\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n")));
    assert_true(str_contains(got, STR("content-length: 7\r\n\r\nHTTP/1.1 200 OK\r\n")));
    assert_true(str_has_suffix(got, STR("connection: close\r\n\r\nhello")));
    net_fixture_close(&f);
}

static void test_http_1_0(void **state)
{
    struct net_fixture f;
    struct str got;

    (void)state;
    net_fixture_open(&f, false, NULL);
    got = talk(&f, "GET /hello HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"
                   "GET /stream?100000 HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    assert_int_equal(f.requests, 2);
    assert_int_equal(count(got, "connection: keep-alive\r\n"), 1);
    assert_int_equal(count(got, "transfer-encoding"), 0);
    assert_true(str_has_suffix(got, STR("connection: close\r\n\r\n")) == false);
    assert_true(got.n > 100000);
    net_fixture_close(&f);
}

static void do_continue(struct net_fixture *f, void *arg)
{
    struct buf *got = arg;
    int fd = raw_connect(f);

    raw_send(fd, STR("POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-Continue\r\n"
                     "content-length: 5\r\nconnection: close\r\n\r\n"));
    raw_receive_until(fd, got, "\r\n\r\n");
    raw_send(fd, STR("abcde"));
    raw_receive(fd, got, SIZE_MAX);
    close(fd);
}

static void test_continue(void **state)
{
    struct net_fixture f;
    struct buf got = BUF_INIT(0);

    (void)state;
    net_fixture_open(&f, false, NULL);
    net_fixture_run(&f, do_continue, &got);
    assert_true(
        str_has_prefix(buf_str(&got), STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")));
    assert_true(str_has_suffix(buf_str(&got), STR("\r\n\r\nabcde")));
    buf_fini(&got);
    net_fixture_close(&f);
}

/* A body too large is refused before `100 Continue` requests it. */
static void test_continue_too_large(void **state)
{
    struct net_options options = {.max_body = 4};
    struct net_fixture f;
    struct str got;

    (void)state;
    net_fixture_open(&f, false, &options);
    got = talk(&f, "POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
                   "content-length: 5\r\n\r\n");
    assert_true(str_has_prefix(got, STR("HTTP/1.1 413 ")));
    net_fixture_close(&f);
}

/* What only a server that understood it could have answered; the body is not looked at. */
static void test_not_understood(void **state)
{
    static const struct {
        const char *send, *status;
    } cases[] = {
        {"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n"
         "2\r\nab\r\n0\r\n\r\n",
         "HTTP/1.1 501 Not Implemented\r\n"},
        {"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
        {"POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 200-ok\r\ncontent-length: 1\r\n\r\na",
         "HTTP/1.1 417 Expectation Failed\r\n"},
        {"GET /hello HTTP/1.1\r\nhost: x\r\nexpect: more\r\n\r\n", "HTTP/1.1 417 "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct net_fixture f;
        struct str got;

        net_fixture_open(&f, false, NULL);
        got = talk(&f, cases[i].send);
        assert_true(str_has_prefix(got, str_c(cases[i].status)));
        assert_true(str_contains(got, STR("connection: close\r\n")));
        assert_int_equal(f.requests, 0);
        net_fixture_close(&f);
    }
}

/* About the server itself: no user is needed for it. */
static void test_options_of_the_server(void **state)
{
    struct net_fixture f;
    struct str got;

    (void)state;
    net_fixture_open(&f, false, NULL);
    got = talk(&f, "OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_true(str_has_prefix(got, STR("HTTP/1.1 200 OK\r\n")));
    assert_true(str_contains(got, STR("content-length: 0\r\n")));
    assert_int_equal(f.requests, 0);
    net_fixture_close(&f);
}

static char *repeated(const char *before, const char *part, size_t times)
{
    struct buf b = BUF_INIT(0);

    buf_addc(&b, before);
    for (size_t i = 0; i < times; i++)
        buf_addc(&b, part);
    buf_char(&b, '\0');
    return (char *)(uintptr_t)buf_take(&b).p;
}

/* Bytes that make no request but are sent for ever. */
static void test_floods(void **state)
{
    static const struct {
        const char *before, *part;
        size_t times;
        const char *answer;
    } FLOODS[] = {
        {"", "\r\n", 100000, "HTTP/1.1 431 "},
        {"GET /", "aaaaaaaaaaaaaaaa", 10000, "HTTP/1.1 431 "},
        {"GET /hello HTTP/1.1\r\nhost: x\r\n", "a: b\r\n", 30000, "HTTP/1.1 431 "},
        {"GET /hello HTTP/1.1\r\nhost: x\r\na:", "        ", 30000, "HTTP/1.1 431 "},
        {"GET /hello HTTP/1.1\r\nhost: x\r\n", "abcdefgh", 30000, "HTTP/1.1 431 "},
        {"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1;", "a=bcdefg;",
         30000, "HTTP/1.1 400 "},
        {"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
         "1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n", 100000, "HTTP/1.1 400 "},
        {"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
         "trailer: x\r\n", 30000, "HTTP/1.1 400 "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(FLOODS); i++) {
        struct net_fixture f;
        char *flood = repeated(FLOODS[i].before, FLOODS[i].part, FLOODS[i].times);
        struct str got;

        net_fixture_open(&f, false, NULL);
        got = talk(&f, flood);
        if (!str_has_prefix(got, str_c(FLOODS[i].answer)) || f.requests)
            fail_msg("flood %zu: %.*s", i, STR_F(got));
        mem_free(flood);
        net_fixture_close(&f);
    }
}

/* Peers that send part of something, then wait. */
static void test_slow_peers(void **state)
{
    static const char *const PARTS[] = {
        "",
        "GET /hello HT",
        "GET /hello HTTP/1.1\r\nhost: x\r\n",
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /hello HTTP/1.1\r\nhost: x\r\n\r\nGET ",
        "PRI * HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    };
    struct net_options options = {
        .header_timeout_ms = 200, .body_timeout_ms = 200, .idle_timeout_ms = 200};

    (void)state;
    for (size_t i = 0; i < COUNT(PARTS); i++) {
        struct net_fixture f;
        struct str got;

        net_fixture_open(&f, false, &options);
        got = talk(&f, PARTS[i]);
        assert_int_equal(f.requests, i == 5 || i == 6);
        assert_int_equal(count(got, "hello"), i == 5 || i == 6);
        net_fixture_close(&f);
    }
}

/* One byte every now and then is no progress. */
static void do_trickle(struct net_fixture *f, void *arg)
{
    int fd = raw_connect(f);
    unsigned *sent = arg;

    raw_send(fd, STR("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"));
    while (*sent < 1000 && send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
        ++*sent;
        usleep(20000);
    }
    close(fd);
}

static void test_trickle(void **state)
{
    struct net_options options = {.body_timeout_ms = 300};
    struct net_fixture f;
    unsigned sent = 0;

    (void)state;
    net_fixture_open(&f, false, &options);
    net_fixture_run(&f, do_trickle, &sent);
    assert_in_range(sent, 1, 999); /* cut off, whenever that was */
    assert_int_equal(f.requests, 0);
    net_fixture_close(&f);
}

static void do_no_reading(struct net_fixture *f, void *arg)
{
    int fd = raw_connect(f);

    (void)arg;
    raw_send(fd, STR("GET /stream?100000000 HTTP/1.1\r\nhost: x\r\n\r\n"));
    while (!__atomic_load_n(&f->closed, __ATOMIC_RELAXED))
        usleep(10000);
    close(fd);
}

static void test_stalled_reader(void **state)
{
    struct net_options options = {.stalled_ms = 300};
    struct net_fixture f;

    (void)state;
    net_fixture_open(&f, false, &options);
    net_fixture_run(&f, do_no_reading, NULL);
    assert_int_equal(f.closed, 1);
    assert_true(f.max_backlog <= 256 * 1024 + 2 * 40000);
    net_fixture_close(&f);
}

/* A reader that may pause is waited for, and gets everything. */
static void do_pause(struct net_fixture *f, void *arg)
{
    size_t *got = arg;
    char block[65536];
    ssize_t n;
    int fd = raw_connect(f);

    raw_send(fd, STR("GET /patient?20000000 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"));
    usleep(2500000); /* several times stalled_ms, and of the sweeping timer */
    while ((n = read(fd, block, sizeof(block))) > 0)
        *got += (size_t)n;
    close(fd);
}

static void test_patience(void **state)
{
    struct net_options options = {.stalled_ms = 300};
    struct net_fixture f;
    size_t got = 0;

    (void)state;
    net_fixture_open(&f, false, &options);
    net_fixture_run(&f, do_pause, &got);
    assert_true(got > 20000000);
    net_fixture_close(&f);
}

/* An answer that is made while it is sent is no watch: its reader may close its half, and the
 * server, closing, lets it finish. */
static void do_whole(struct net_fixture *f, void *arg)
{
    static const char *const lines[] = {"GET /whole?8000000 HTTP/1.1\r\nhost: x\r\n\r\n",
                                        "GET /sized?8000000 HTTP/1.1\r\nhost: x\r\n\r\n"};
    struct buf *got = arg;

    for (size_t i = 0; i < 2; i++) {
        int fd = raw_connect(f);

        raw_send(fd, str_c(lines[i]));
        if (i == 0)
            shutdown(fd, SHUT_WR);
        raw_receive(fd, &got[i], SIZE_MAX);
        close(fd);
    }
}

static void test_whole_answers(void **state)
{
    struct net_fixture f;
    struct buf got[2] = {BUF_INIT(0), BUF_INIT(0)};
    struct net_stats stats;

    (void)state;
    net_fixture_open(&f, false, NULL);
    net_fixture_start(&f, do_whole, got);
    while (f.requests < 2)
        uv_run(&f.loop, UV_RUN_ONCE);
    net_stats(f.server, &stats);
    assert_int_equal(stats.requests, 1); /* a stream would not count */
    net_fixture_shut(&f, 60000);
    net_fixture_wait(&f);
    assert_true(str_contains(buf_str(&got[0]), STR("transfer-encoding: chunked")));
    assert_true(got[0].n > 8000000 && str_has_suffix(buf_str(&got[0]), STR("\r\n0\r\n\r\n")));
    assert_true(str_contains(buf_str(&got[1]), STR("content-length: 8000000\r\n")));
    assert_true(got[1].n > 8000000 && got[1].n < 8000500);
    buf_fini(&got[0]);
    buf_fini(&got[1]);
    net_fixture_close(&f);
}

/* A client that closes its half behind the request still gets the answer; a watch ends. */
static void do_half_close(struct net_fixture *f, void *arg)
{
    struct buf *got = arg;
    int fd = raw_connect(f);

    raw_send(fd, STR("GET /later HTTP/1.1\r\nhost: x\r\n\r\n"));
    shutdown(fd, SHUT_WR);
    raw_receive(fd, got, SIZE_MAX);
    close(fd);

    fd = raw_connect(f);
    raw_send(fd, STR("GET /watch HTTP/1.1\r\nhost: x\r\n\r\n"));
    raw_receive_until(fd, got, "event");
    shutdown(fd, SHUT_WR);
    raw_receive(fd, got, SIZE_MAX);
    close(fd);

    fd = raw_connect(f);
    raw_send(fd, STR("GARBAGE\r\n\r\n"));
    shutdown(fd, SHUT_WR);
    raw_receive(fd, got, SIZE_MAX);
    close(fd);
}

static void test_half_close(void **state)
{
    struct net_fixture f;
    struct buf got = BUF_INIT(0);

    (void)state;
    net_fixture_open(&f, false, NULL);
    net_fixture_run(&f, do_half_close, &got);
    assert_true(str_contains(buf_str(&got), STR("\r\n\r\nlater")));
    assert_true(str_contains(buf_str(&got), STR("HTTP/1.1 400 ")));
    RUN_UNTIL(&f, f.closed == 2);
    buf_fini(&got);
    net_fixture_close(&f);
}

/* Connections. */

#define LIMIT 4

static void do_crowd(struct net_fixture *f, void *arg)
{
    struct str *seen = arg;
    struct buf got = BUF_INIT(0);
    int idle[LIMIT], late, busy[LIMIT], refused;

    for (size_t i = 0; i < LIMIT; i++) {
        idle[i] = raw_connect(f);
        raw_send(idle[i], STR("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"));
        raw_receive_until(idle[i], &got, "\r\n\r\nhello");
        buf_clear(&got);
    }
    late = raw_connect(f); /* the oldest idle one makes room */
    raw_send(late, STR("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"));
    raw_receive_until(late, &got, "\r\n\r\nhello");
    seen[0] = raw_closed(idle[0]) ? STR("oldest closed") : STR("oldest open");
    buf_clear(&got);
    raw_send(idle[1], STR("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"));
    raw_receive_until(idle[1], &got, "\r\n\r\nhello");
    seen[1] = str_has_suffix(buf_str(&got), STR("hello")) ? STR("second open") : STR("lost");
    for (size_t i = 0; i < LIMIT; i++)
        close(idle[i]);
    close(late);

    for (size_t i = 0; i < LIMIT; i++) {
        busy[i] = raw_connect(f);
        buf_clear(&got);
        raw_send(busy[i], STR("GET /watch HTTP/1.1\r\nhost: x\r\n\r\n"));
        raw_receive_until(busy[i], &got, "event");
    }
    refused = raw_connect(f);
    seen[2] = raw_closed(refused) ? STR("refused") : STR("accepted");
    close(refused);
    for (size_t i = 0; i < LIMIT; i++)
        close(busy[i]);
    buf_fini(&got);
}

static void test_max_connections(void **state)
{
    struct net_options options = {.max_connections = LIMIT};
    struct net_fixture f;
    struct str seen[3] = {0};

    (void)state;
    net_fixture_open(&f, false, &options);
    net_fixture_run(&f, do_crowd, seen);
    assert_str(seen[0], "oldest closed");
    assert_str(seen[1], "second open");
    assert_str(seen[2], "refused");
    net_fixture_close(&f);
}

/* Whoever connects and says nothing is no reason to refuse others until its header is overdue. */
static void do_silent_crowd(struct net_fixture *f, void *arg)
{
    bool *served = arg;
    int silent[LIMIT];

    for (size_t i = 0; i < LIMIT; i++) {
        silent[i] = raw_connect(f);
        if (i % 2)
            raw_send(silent[i], STR("GET /hello HTTP/1.1\r\n"));
    }
    for (int i = 0; i < 1000 && !*served; i++) {
        struct buf got = BUF_INIT(0);
        int fd = raw_connect(f);

        raw_send(fd, STR("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"));
        raw_receive_until(fd, &got, "\r\n\r\nhello");
        *served = str_has_suffix(buf_str(&got), STR("hello"));
        buf_fini(&got);
        close(fd);
        usleep(20000);
    }
    for (size_t i = 0; i < LIMIT; i++)
        close(silent[i]);
}

static void test_silent_connections(void **state)
{
    struct net_options options = {.max_connections = LIMIT, .header_timeout_ms = 3600000};
    struct net_fixture f;
    bool served = false;

    (void)state;
    net_fixture_open(&f, false, &options);
    net_fixture_run(&f, do_silent_crowd, &served);
    assert_true(served);
    net_fixture_close(&f);
}

/* Upgrade. */

struct pipe_talk {
    struct buf head, got;
    size_t bytes;
};

static void do_pipe(struct net_fixture *f, void *arg)
{
    struct pipe_talk *t = arg;
    int fd = raw_connect(f);
    char block[8192];
    size_t left = t->bytes;

    memset(block, 'p', sizeof(block));
    raw_send(fd, STR("POST /pipe HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: echo\r\n"
                     "content-length: 0\r\n\r\nfirst"));
    raw_receive_until(fd, &t->head, "\r\n\r\n");
    raw_receive(fd, &t->got, 5);
    while (left) {
        size_t n = left < sizeof(block) ? left : sizeof(block);

        raw_send(fd, (struct str){block, n});
        raw_receive(fd, &t->got, n);
        left -= n;
    }
    raw_send(fd, STR("last"));
    shutdown(fd, SHUT_WR);
    raw_receive(fd, &t->got, SIZE_MAX);
    close(fd);
}

static void test_upgrade(void **state)
{
    (void)state;
    for (int pause = 0; pause < 2; pause++) {
        struct net_fixture f;
        struct pipe_talk t = {.bytes = 1000000};

        net_fixture_open(&f, false, NULL);
        f.pause_pipes = pause;
        net_fixture_run(&f, do_pipe, &t);
        assert_true(str_has_prefix(buf_str(&t.head), STR("HTTP/1.1 101 Switching Protocols\r\n")));
        assert_true(str_contains(buf_str(&t.head), STR("connection: upgrade\r\n")));
        assert_true(str_contains(buf_str(&t.head), STR("upgrade: echo\r\n")));
        assert_false(str_contains(buf_str(&t.head), STR("content-length")));
        assert_int_equal(t.got.n, 5 + t.bytes + 4);
        assert_true(str_has_prefix(buf_str(&t.got), STR("firstppp")));
        assert_true(str_has_suffix(buf_str(&t.got), STR("ppplast")));
        RUN_UNTIL(&f, f.closed == 1);
        buf_fini(&t.head);
        buf_fini(&t.got);
        net_fixture_close(&f);
    }
}

/* A pipe into a peer that does not read: bytes wait in the kernels, not here. */
static void do_flood_pipe(struct net_fixture *f, void *arg)
{
    int fd = raw_connect(f);
    size_t *sent = arg;
    char block[65536];

    memset(block, 'p', sizeof(block));
    raw_send(fd, STR("POST /pipe HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n"
                     "content-length: 0\r\n\r\n"));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (unsigned misses = 0; misses < 20 && *sent < (200u << 20);) {
        ssize_t n = send(fd, block, sizeof(block), MSG_NOSIGNAL);

        misses = n > 0 ? 0 : misses + 1;
        *sent += n > 0 ? (size_t)n : 0;
        if (n <= 0)
            usleep(20000);
    }
    close(fd);
}

static void test_upgrade_backpressure(void **state)
{
    struct net_fixture f;
    size_t sent = 0;

    (void)state;
    net_fixture_open(&f, false, NULL);
    f.pause_pipes = true;
    net_fixture_run(&f, do_flood_pipe, &sent);
    assert_true(sent < (50u << 20));
    RUN_UNTIL(&f, f.closed == 1);
    net_fixture_close(&f);
}

static void test_no_upgrade(void **state)
{
    struct net_fixture f;
    struct str got;

    (void)state;
    net_fixture_open(&f, false, NULL);
    got = talk(&f, "GET /pipe HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_true(str_has_prefix(got, STR("HTTP/1.1 400 ")));
    net_fixture_close(&f);
}

/* Closing. */

static const char *const LAST_WORDS[] = {
    "GET /watch HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /later HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /never HTTP/1.1\r\nhost: x\r\n\r\n",
};

static void do_last_words(struct net_fixture *f, void *arg)
{
    struct buf *got = arg;
    int fds[4];

    for (size_t i = 0; i < 4; i++) {
        fds[i] = raw_connect(f);
        raw_send(fds[i], str_c(LAST_WORDS[i]));
    }
    for (size_t i = 0; i < 4; i++) {
        raw_receive(fds[i], &got[i], SIZE_MAX);
        close(fds[i]);
    }
}

/* Streams end at once, answers under way are finished, idle connections are closed, and what does
 * not finish is cut when the time is over. */
static void test_graceful_close(void **state)
{
    struct net_fixture f;
    struct buf got[4] = {0};

    (void)state;
    net_fixture_open(&f, false, NULL);
    net_fixture_start(&f, do_last_words, got);
    RUN_UNTIL(&f, f.requests == 4);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    net_fixture_shut(&f, 1000);
    net_fixture_wait(&f);
    assert_true(str_has_suffix(buf_str(&got[0]), STR("\r\n6\r\nevent\n\r\n0\r\n\r\n")));
    assert_true(str_has_suffix(buf_str(&got[1]), STR("connection: close\r\n\r\nlater")));
    assert_true(str_has_suffix(buf_str(&got[2]), STR("hello")));
    assert_int_equal(got[3].n, 0);
    RUN_UNTIL(&f, f.server_closed);
    for (size_t i = 0; i < 4; i++)
        buf_fini(&got[i]);
    net_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_pipelining),
        cmocka_unit_test(test_http_1_0),
        cmocka_unit_test(test_continue),
        cmocka_unit_test(test_continue_too_large),
        cmocka_unit_test(test_not_understood),
        cmocka_unit_test(test_options_of_the_server),
        cmocka_unit_test(test_floods),
        cmocka_unit_test(test_slow_peers),
        cmocka_unit_test(test_trickle),
        cmocka_unit_test(test_stalled_reader),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_half_close),
        cmocka_unit_test(test_whole_answers),
        cmocka_unit_test(test_max_connections),
        cmocka_unit_test(test_silent_connections),
        cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_upgrade_backpressure),
        cmocka_unit_test(test_no_upgrade),
        cmocka_unit_test(test_graceful_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
