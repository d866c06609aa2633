/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 frame by frame: flow control by a reader we control, and the floods of a hostile peer. The
 * client below knows no HPACK but literals, and acknowledges nothing by itself. */
#include "net_harness.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../vapi/net/server.h"

#define RUN_UNTIL(f, condition)                                                                    \
    do {                                                                                           \
        while (!(condition))                                                                       \
            uv_run(&(f)->loop, UV_RUN_ONCE);                                                       \
    } while (0)

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION
};
#define END_STREAM  0x1
#define ACK         0x1
#define END_HEADERS 0x4

struct frame {
    unsigned length, type, flags, stream;
    unsigned char payload[65536];
};

struct h2 {
    int fd;
    struct buf out; /* frames not sent yet */
    struct frame frame;
    /* what came */
    size_t data, wrong, resets, headers, pings, refused;
    unsigned reset_code, goaway_code, last_status;
    bool goaway, closed, ended;
};

static void put32(struct buf *b, unsigned n)
{
    buf_char(b, (char)(n >> 24));
    buf_char(b, (char)(n >> 16));
    buf_char(b, (char)(n >> 8));
    buf_char(b, (char)n);
}

static void put_frame(struct buf *b, unsigned type, unsigned flags, unsigned stream,
                      struct str payload)
{
    put32(b, (unsigned)payload.n << 8 | type);
    buf_char(b, (char)flags);
    put32(b, stream);
    buf_add(b, payload);
}

static void put_window(struct buf *b, unsigned stream, unsigned n)
{
    char bytes[4] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};

    put_frame(b, WINDOW_UPDATE, 0, stream, (struct str){bytes, 4});
}

static void put_reset(struct buf *b, unsigned stream)
{
    put_frame(b, RST_STREAM, 0, stream, (struct str){"\0\0\0\x8", 4});
}

/* :method GET or POST, :scheme http, :path and :authority as literals; `more` is a block behind. */
static void put_request(struct buf *b, unsigned stream, unsigned flags, const char *path,
                        struct str more)
{
    struct buf block = BUF_INIT(0);

    buf_char(&block, (char)(flags & END_STREAM ? 0x82 : 0x83));
    buf_char(&block, (char)0x86);
    buf_char(&block, 0x04);
    buf_char(&block, (char)strlen(path));
    buf_addc(&block, path);
    buf_add(&block, (struct str){"\x01\x01x", 3});
    buf_add(&block, more);
    put_frame(b, HEADERS, flags, stream, buf_str(&block));
    buf_fini(&block);
}

static void put_get(struct buf *b, unsigned stream, const char *path)
{
    put_request(b, stream, END_STREAM | END_HEADERS, path, STR_NULL);
}

static void h2_flush(struct h2 *h)
{
    raw_send(h->fd, buf_str(&h->out));
    buf_clear(&h->out);
}

static void h2_open(struct net_fixture *f, struct h2 *h, struct str settings)
{
    h->fd = raw_connect(f);
    buf_add(&h->out, HTTP2_PREFACE);
    put_frame(&h->out, SETTINGS, 0, 0, settings);
    h2_flush(h);
}

static bool read_all(int fd, unsigned char *to, size_t n)
{
    while (n) {
        ssize_t got = recv(fd, to, n, 0);

        if (got < 0 && errno == EAGAIN)
            abort(); /* nothing for so long is never right */
        if (got <= 0)
            return false;
        to += got;
        n -= (size_t)got;
    }
    return true;
}

static unsigned get32(const unsigned char *p)
{
    return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 | (unsigned)p[2] << 8 | p[3];
}

static void count_frame(struct h2 *h)
{
    struct frame *f = &h->frame;

    if (f->type == DATA) {
        for (unsigned i = 0; i < f->length; i++)
            h->wrong += f->payload[i] != (unsigned char)('a' + (h->data + i) % 40000 % 23);
        h->data += f->length;
    }
    h->headers += f->type == HEADERS;
    h->pings += f->type == PING;
    h->ended |= f->type <= HEADERS && (f->flags & END_STREAM);
    if (f->type == HEADERS && f->length > 4 && f->payload[0] == 0x48 && f->payload[1] == 0x03)
        h->last_status = (unsigned)(f->payload[2] - '0') * 100;
    if (f->type == RST_STREAM) {
        h->resets++;
        h->reset_code = get32(f->payload);
        h->refused += h->reset_code == 7;
    }
    if (f->type == GOAWAY) {
        h->goaway = true;
        h->goaway_code = get32(f->payload + 4);
    }
}

/* False at the end of the connection. */
static bool h2_read(struct h2 *h)
{
    unsigned char head[9];

    if (!read_all(h->fd, head, 9)) {
        h->closed = true;
        return false;
    }
    h->frame = (struct frame){
        .length = get32(head) >> 8, .type = head[3], .flags = head[4], .stream = get32(head + 5)};
    if (h->frame.length > sizeof(h->frame.payload) ||
        !read_all(h->fd, h->frame.payload, h->frame.length)) {
        h->closed = true;
        return false;
    }
    count_frame(h);
    return true;
}

static void h2_close(struct h2 *h)
{
    close(h->fd);
    buf_fini(&h->out);
}

/* Flow control. */

static void do_slow_reader(struct net_fixture *f, void *arg)
{
    struct h2 *h = arg;

    h2_open(f, h, STR_NULL);
    put_get(&h->out, 1, "/stream?5000000");
    h2_flush(h);
    while (!h->ended && h2_read(h)) {
        if (h->frame.type == DATA && h->frame.length) {
            put_window(&h->out, 0, h->frame.length);
            put_window(&h->out, 1, h->frame.length);
            h2_flush(h);
        }
    }
    h2_close(h);
}

static void test_flow_control(void **state)
{
    struct net_fixture f;
    struct h2 *h = NEW(struct h2);

    (void)state;
    net_fixture_open(&f, false, NULL);
    net_fixture_run(&f, do_slow_reader, h);
    assert_int_equal(h->data, 5000000);
    assert_int_equal(h->wrong, 0);
    assert_true(f.drained > 0);
    assert_true(f.max_backlog <= 256 * 1024 + 2 * 40000);
    assert_int_equal(f.released, 125);
    mem_free(h);
    net_fixture_close(&f);
}

/* Never opens its window: one stream stalls and is cut, the connection and its watch live on. */
static void do_stall(struct net_fixture *f, void *arg)
{
    struct h2 *h = arg;

    h2_open(f, h, (struct str){"\0\x4\0\0\x10\0", 6}); /* initial window 4096 */
    put_get(&h->out, 1, "/stream?5000000");
    put_get(&h->out, 3, "/watch");
    h2_flush(h);
    while (!h->resets && h2_read(h)) {
    }
    put_get(&h->out, 5, "/hello");
    h2_flush(h);
    h->ended = false;
    while (!h->ended && h2_read(h)) {
    }
    h2_close(h);
}

static void test_stalled_stream(void **state)
{
    struct net_options options = {.stalled_ms = 300};
    struct net_fixture f;
    struct h2 *h = NEW(struct h2);

    (void)state;
    net_fixture_open(&f, false, &options);
    net_fixture_run(&f, do_stall, h);
    assert_int_equal(h->resets, 1);
    assert_int_equal(h->reset_code, 8);
    assert_true(h->ended);
    assert_int_equal(f.requests, 3);
    mem_free(h);
    net_fixture_close(&f);
}

/* Floods: many of something, while nothing is read, then everything is read. */

typedef void (*flood_cb)(struct buf *b, unsigned i);

static void flood_ping(struct buf *b, unsigned i)
{
    (void)i;
    put_frame(b, PING, 0, 0, (struct str){"12345678", 8});
}

static void flood_settings(struct buf *b, unsigned i)
{
    (void)i;
    put_frame(b, SETTINGS, 0, 0, STR_NULL);
}

static void flood_priority(struct buf *b, unsigned i)
{
    put_frame(b, PRIORITY, 0, 1 + 2 * (i % 1000), (struct str){"\0\0\0\0\0", 5});
}

static void flood_rapid_reset(struct buf *b, unsigned i)
{
    put_get(b, 1 + 2 * i, "/never");
    put_reset(b, 1 + 2 * i);
}

/* CVE-2025-8671: the peer makes us do the resetting. */
static void flood_made_you_reset(struct buf *b, unsigned i)
{
    put_get(b, 1 + 2 * i, "/never");
    put_window(b, 1 + 2 * i, 0x7fffffff); /* overflows: a stream error */
}

static void flood_empty_data(struct buf *b, unsigned i)
{
    if (!i)
        put_request(b, 1, END_HEADERS, "/echo", STR_NULL);
    put_frame(b, DATA, 0, 1, STR_NULL);
}

static void flood_continuation(struct buf *b, unsigned i)
{
    if (!i)
        put_request(b, 1, END_STREAM, "/hello", STR_NULL);
    put_frame(b, CONTINUATION, 0, 1,
              (struct str){"\x0\x1"
                           "a\x1"
                           "b",
                           5});
}

static void flood_empty_continuation(struct buf *b, unsigned i)
{
    if (!i)
        put_request(b, 1, END_STREAM, "/hello", STR_NULL);
    put_frame(b, CONTINUATION, 0, 1, STR_NULL);
}

static void flood_garbage(struct buf *b, unsigned i)
{
    (void)i;
    buf_addc(b, "this is no frame at all, and it is long enough to be read as several");
}

/* An indexed field of 4,000 bytes, then 4,000 references of one byte: 16 MB of headers in one
 * frame. */
static void flood_header_bomb(struct buf *b, unsigned i)
{
    struct buf block = BUF_INIT(0);

    buf_add(&block, (struct str){"\x40\x01"
                                 "a\x7f\xa1\x1e",
                                 6}); /* value of 4,000 bytes */
    for (unsigned k = 0; k < 4000; k++)
        buf_char(&block, 'v');
    for (unsigned k = 0; k < 4000; k++)
        buf_char(&block, (char)0xbe);
    put_request(b, 1 + 2 * i, END_STREAM | END_HEADERS, "/hello", buf_str(&block));
    buf_fini(&block);
}

struct flood {
    flood_cb put;
    unsigned times, batch;
    struct h2 *h;
};

static void drain_ready(struct h2 *h)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN};

    while (!h->closed && poll(&p, 1, 0) == 1 && h2_read(h)) {
    }
}

static void do_flood(struct net_fixture *f, void *arg)
{
    struct flood *flood = arg;
    struct h2 *h = flood->h;

    h2_open(f, h, STR_NULL);
    for (unsigned i = 0; i < flood->times && !h->closed; i++) {
        flood->put(&h->out, i);
        if (i % flood->batch == flood->batch - 1) {
            h2_flush(h);
            drain_ready(h);
        }
    }
    h2_flush(h);
    while (h2_read(h)) {
    }
    h2_close(h);
}

static void check_flood(flood_cb put, unsigned times, unsigned code, const char *name)
{
    static const unsigned BATCHES[] = {1, 100, 1u << 30};
    struct net_options options = {.stalled_ms = 500}; /* the last one never reads */

    for (size_t i = 0; i < 3; i++) {
        struct net_fixture f;
        struct h2 *h = NEW(struct h2);
        struct flood flood = {put, times, BATCHES[i], h};

        net_fixture_open(&f, false, &options);
        net_fixture_run(&f, do_flood, &flood);
        if (!h->closed || (h->goaway && code && h->goaway_code != code))
            fail_msg("%s: closed %d goaway %d code %u", name, h->closed, h->goaway, h->goaway_code);
        assert_true(h->pings <= 2500);
        RUN_UNTIL(&f, TAILQ_EMPTY(&f.server->conns));
        assert_int_equal(f.requests, f.closed);
        mem_free(h);
        net_fixture_close(&f);
    }
}

#define CALM 0xb

static void test_floods(void **state)
{
    (void)state;
    check_flood(flood_ping, 50000, CALM, "ping");
    check_flood(flood_settings, 50000, CALM, "settings");
    check_flood(flood_priority, 50000, CALM, "priority");
    check_flood(flood_rapid_reset, 20000, 0, "rapid reset");
    check_flood(flood_made_you_reset, 20000, CALM, "made you reset");
    check_flood(flood_empty_data, 50000, CALM, "empty data");
    check_flood(flood_continuation, 1000, 0, "continuation");
    check_flood(flood_empty_continuation, 1000, 0, "empty continuation");
    check_flood(flood_garbage, 1000, 0, "garbage");
    check_flood(flood_header_bomb, 100, 0, "header bomb");
}

/* Streams beyond the limit are refused; those within it are served. */
static void do_many_streams(struct net_fixture *f, void *arg)
{
    struct h2 *h = arg;

    h2_open(f, h, STR_NULL);
    for (unsigned i = 0; i < 15; i++)
        put_get(&h->out, 1 + 2 * i, "/watch");
    h2_flush(h);
    while ((h->refused < 5 || h->headers < 10) && h2_read(h)) {
    }
    h2_close(h);
}

static void test_max_streams(void **state)
{
    struct net_options options = {.max_streams = 10};
    struct net_fixture f;
    struct h2 *h = NEW(struct h2);

    (void)state;
    net_fixture_open(&f, false, &options);
    net_fixture_run(&f, do_many_streams, h);
    assert_int_equal(h->refused, 5);
    assert_int_equal(h->headers, 10);
    assert_int_equal(f.requests, 10);
    mem_free(h);
    net_fixture_close(&f);
}

/* Peers that begin something and wait. */

struct slow {
    unsigned stage;
    struct h2 *h;
};

static void do_slow(struct net_fixture *f, void *arg)
{
    struct slow *s = arg;
    struct h2 *h = s->h;

    h2_open(f, h, STR_NULL);
    if (s->stage == 0)
        put_request(&h->out, 1, END_STREAM, "/hello", STR_NULL);
    else if (s->stage == 1)
        put_request(&h->out, 1, END_HEADERS, "/echo", STR_NULL);
    h2_flush(h);
    while (!h->resets && h2_read(h)) {
    }
    h2_close(h);
}

static void test_slow_streams(void **state)
{
    struct net_options options = {
        .header_timeout_ms = 200, .body_timeout_ms = 200, .idle_timeout_ms = 400};

    (void)state;
    for (unsigned stage = 0; stage < 3; stage++) {
        struct net_fixture f;
        struct slow s = {stage, NEW(struct h2)};

        net_fixture_open(&f, false, &options);
        net_fixture_run(&f, do_slow, &s);
        if (stage == 2)
            assert_true(s.h->goaway && s.h->closed && s.h->goaway_code == 0);
        else
            assert_true(s.h->resets == 1 || s.h->closed);
        assert_int_equal(f.requests, 0);
        mem_free(s.h);
        net_fixture_close(&f);
    }
}

/* Closing the server: GOAWAY at once, streams end, what is under way is answered. */
static void do_last_words(struct net_fixture *f, void *arg)
{
    struct h2 *h = arg;

    h2_open(f, h, STR_NULL);
    put_get(&h->out, 1, "/watch");
    put_get(&h->out, 3, "/later");
    h2_flush(h);
    while (h2_read(h)) {
    }
    h2_close(h);
}

static void test_graceful_close(void **state)
{
    struct net_fixture f;
    struct h2 *h = NEW(struct h2);

    (void)state;
    net_fixture_open(&f, false, NULL);
    net_fixture_start(&f, do_last_words, h);
    RUN_UNTIL(&f, f.requests == 2);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    net_fixture_shut(&f, 5000);
    net_fixture_wait(&f);
    assert_true(h->goaway && h->goaway_code == 0 && h->closed);
    assert_int_equal(h->headers, 2);
    assert_int_equal(h->data, 6 + 5);
    assert_int_equal(h->resets, 0);
    RUN_UNTIL(&f, f.server_closed);
    mem_free(h);
    net_fixture_close(&f);
}

/* Many bodies at once must not add up without limit. */
#define UPLOADS 200

static void do_uploads(struct net_fixture *f, void *arg)
{
    struct h2 *h = arg;
    static char block[16384];
    unsigned sent = 0;
    struct pollfd p;

    h2_open(f, h, STR_NULL);
    for (unsigned i = 0; i < UPLOADS; i++)
        put_request(&h->out, 1 + 2 * i, END_HEADERS, "/echo", STR_NULL);
    h2_flush(h);
    p = (struct pollfd){.fd = h->fd, .events = POLLIN};
    /* 200 streams of up to 1 MiB, none of them ended, as far as the windows allow. */
    for (; sent < UPLOADS * 64; sent++) {
        put_frame(&h->out, DATA, 0, 1 + 2 * (sent % UPLOADS), (struct str){block, sizeof(block)});
        h2_flush(h);
        while (poll(&p, 1, 0) == 1 && h2_read(h)) {
        }
        if (h->closed)
            break;
    }
    h2_close(h);
}

static void test_bodies_are_bounded(void **state)
{
    struct net_fixture f;
    struct h2 *h = NEW(struct h2);
    size_t most = 0;

    (void)state;
    net_fixture_open(&f, false, NULL);
    net_fixture_start(&f, do_uploads, h);
    for (;;) {
        uv_run(&f.loop, UV_RUN_ONCE);
        if (f.server->bodies > most)
            most = f.server->bodies;
        if (most && TAILQ_EMPTY(&f.server->conns))
            break;
    }
    pthread_join(f.thread, NULL);
    assert_in_range(most, 1, NET_BODIES_MAX);
    assert_int_equal(f.server->bodies, 0);
    mem_free(h);
    net_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow_control),
        cmocka_unit_test(test_stalled_stream),
        cmocka_unit_test(test_floods),
        cmocka_unit_test(test_max_streams),
        cmocka_unit_test(test_slow_streams),
        cmocka_unit_test(test_graceful_close),
        cmocka_unit_test(test_bodies_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
