/* SPDX-License-Identifier: Apache-2.0 */
/* The frames nghttp2 lets pass, judged by themselves: what is late, what is too much, and which
 * PRIORITY depends on itself however the bytes are cut. */
#include "test.h"

#include <nghttp2/nghttp2.h>

#include <sublet/buf.h>

#include "../../../vapi/net/http2_guard.h"
#include "../../../vapi/net/server.h"

#define END NGHTTP2_FLAG_END_STREAM

static void put_frame(struct buf *b, uint8_t type, uint8_t flags, uint32_t stream,
                      struct str payload)
{
    const unsigned char head[] = {0,
                                  (unsigned char)(payload.n >> 8),
                                  (unsigned char)payload.n,
                                  type,
                                  flags,
                                  (unsigned char)(stream >> 24),
                                  (unsigned char)(stream >> 16),
                                  (unsigned char)(stream >> 8),
                                  (unsigned char)stream};

    buf_add(b, (struct str){(const char *)head, sizeof(head)});
    buf_add(b, payload);
}

static uint32_t scan(struct guard *g, struct buf *b, int64_t now, size_t *ret_good)
{
    struct str bytes = buf_str(b);
    uint32_t error = guard_scan(g, &bytes, now);

    *ret_good = bytes.n;
    return error;
}

struct step {
    uint8_t type, flags;
    uint32_t stream, want;
};

static void play(const struct step *steps, size_t n)
{
    struct buf b = BUF_INIT(0);
    struct guard g;
    size_t good;

    guard_init(&g);
    buf_add(&b, HTTP2_PREFACE);
    assert_int_equal(scan(&g, &b, 0, &good), NGHTTP2_NO_ERROR);
    for (size_t i = 0; i < n; i++) {
        buf_clear(&b);
        put_frame(&b, NGHTTP2_WINDOW_UPDATE, 0, 0, STR("\0\0\0\1"));
        put_frame(&b, steps[i].type, steps[i].flags, steps[i].stream, STR("\0\0\0\xff payload"));
        if (scan(&g, &b, 0, &good) != steps[i].want)
            fail_msg("step %zu: not %u", i, steps[i].want);
        assert_int_equal(good, steps[i].want ? 13 : b.n);
    }
    buf_fini(&b);
}
#define PLAY(...)                                                                                  \
    do {                                                                                           \
        const struct step steps[] = {__VA_ARGS__};                                                 \
        play(steps, COUNT(steps));                                                                 \
    } while (0)

/* clang-format off */
#define HEADERS(stream, flags, want) {NGHTTP2_HEADERS, flags, stream, want}
#define DATA(stream, flags, want) {NGHTTP2_DATA, flags, stream, want}
#define RESET(stream) {NGHTTP2_RST_STREAM, 0, stream, 0}
/* clang-format on */

static void test_after_the_end(void **state)
{
    (void)state;
    PLAY(HEADERS(1, END, 0), DATA(1, 0, NGHTTP2_STREAM_CLOSED));
    PLAY(HEADERS(1, END, 0), HEADERS(1, 0, NGHTTP2_STREAM_CLOSED));
    PLAY(HEADERS(1, 0, 0), DATA(1, END, 0), DATA(1, 0, NGHTTP2_STREAM_CLOSED));
    PLAY(HEADERS(1, 0, 0), RESET(1), DATA(1, 0, NGHTTP2_STREAM_CLOSED));
    PLAY(HEADERS(1, END, 0), HEADERS(3, END, 0), HEADERS(41, END, 0),
         HEADERS(3, 0, NGHTTP2_STREAM_CLOSED));
    /* Passed over. */
    PLAY(HEADERS(5, END, 0), HEADERS(3, END, NGHTTP2_PROTOCOL_ERROR));
    PLAY(HEADERS(5, END, 0), DATA(3, 0, NGHTTP2_PROTOCOL_ERROR));
    PLAY({NGHTTP2_PRIORITY, 0, 0, NGHTTP2_PROTOCOL_ERROR});
}

/* What is legal, or was when it was sent. */
static void test_in_flight(void **state)
{
    (void)state;
    /* Who knows whether we have ended it meanwhile: a body that was refused goes on. */
    PLAY(HEADERS(1, 0, 0), DATA(1, 0, 0), DATA(1, 0, 0), DATA(1, END, 0));
    /* Trailers, and a reset that crossed our answer. */
    PLAY(HEADERS(1, 0, 0), DATA(1, 0, 0), HEADERS(1, END, 0), RESET(1));
    PLAY(HEADERS(1, 0, 0), HEADERS(3, END, 0), DATA(1, END, 0), HEADERS(5, 0, 0));
    /* Too long ago to know. */
    PLAY(HEADERS(1, END, 0), HEADERS(129, END, 0), DATA(1, 0, 0));
    PLAY(HEADERS(1, END, 0), HEADERS(0x7fffffff, END, 0), HEADERS(1, 0, 0));
    /* Of the server's numbers, and of none: nghttp2's to refuse. */
    PLAY(HEADERS(3, END, 0), HEADERS(2, 0, 0), DATA(0, 0, 0), HEADERS(0, 0, 0));
    /* The reserved bit is no part of the number. */
    PLAY(HEADERS(0x80000001, END, 0), HEADERS(0x80000003, END, 0));
}

static void test_too_many(void **state)
{
    struct buf b = BUF_INIT(0);
    struct guard g;
    size_t good;

    (void)state;
    guard_init(&g);
    buf_add(&b, HTTP2_PREFACE);
    for (unsigned i = 0; i < 2001; i++)
        put_frame(&b, NGHTTP2_PING, 0, 0, STR("12345678"));
    assert_int_equal(scan(&g, &b, 0, &good), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(good, HTTP2_PREFACE.n + 2000 * 17);

    guard_init(&g);
    b.n -= 17;
    assert_int_equal(scan(&g, &b, 0, &good), NGHTTP2_NO_ERROR);
    buf_clear(&b);
    put_frame(&b, NGHTTP2_HEADERS, END, 1, STR("free"));
    put_frame(&b, NGHTTP2_DATA, 0, 3, STR_NULL);
    assert_int_equal(scan(&g, &b, 10, &good), NGHTTP2_NO_ERROR);
    buf_fini(&b);
}

static void test_hollow(void **state)
{
    static char block[300];
    const struct str pieces[] = {STR_NULL, {"\0", 1}, {block, 256}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct buf b = BUF_INIT(0);
        struct guard g;
        size_t good;

        guard_init(&g);
        buf_add(&b, HTTP2_PREFACE);
        put_frame(&b, NGHTTP2_HEADERS, 0, 1, STR("x"));
        for (unsigned k = 0; k < 2001; k++)
            put_frame(&b, NGHTTP2_DATA, i ? NGHTTP2_FLAG_PADDED : 0, 1, pieces[i]);
        assert_int_equal(scan(&g, &b, 0, &good), NGHTTP2_ENHANCE_YOUR_CALM);

        /* What carries something is free. */
        guard_init(&g);
        buf_clear(&b);
        buf_add(&b, HTTP2_PREFACE);
        put_frame(&b, NGHTTP2_HEADERS, 0, 1, STR("x"));
        for (unsigned k = 0; k < 5000; k++)
            put_frame(&b, NGHTTP2_DATA, i ? NGHTTP2_FLAG_PADDED : 0, 1, (struct str){block, 257});
        assert_int_equal(scan(&g, &b, 0, &good), NGHTTP2_NO_ERROR);
        buf_fini(&b);
    }
}

static uint32_t scan_in_pieces(struct str bytes, size_t size)
{
    struct guard g;
    uint32_t error = 0;

    guard_init(&g);
    while (bytes.n && !error) {
        struct str piece = str_sub(bytes, 0, size);

        bytes = str_from(bytes, piece.n);
        error = guard_scan(&g, &piece, 0);
    }
    return error;
}

static void test_depends_on_itself(void **state)
{
    static char block[300];
    struct buf b = BUF_INIT(0);

    (void)state;
    buf_add(&b, HTTP2_PREFACE);
    put_frame(&b, NGHTTP2_SETTINGS, 0, 0, STR_NULL);
    put_frame(&b, NGHTTP2_PRIORITY, 0, 7, STR("\x80\0\0\x5\xf"));
    put_frame(&b, NGHTTP2_HEADERS, 0, 7, (struct str){block, sizeof(block)});
    put_frame(&b, NGHTTP2_PRIORITY, 0, 7, STR("\0\0\0\x7")); /* nghttp2's to refuse */
    for (size_t size = 1; size <= b.n; size++)
        assert_int_equal(scan_in_pieces(buf_str(&b), size), NGHTTP2_NO_ERROR);

    put_frame(&b, NGHTTP2_PRIORITY, 0, 7, STR("\x80\0\0\x7\xf"));
    put_frame(&b, NGHTTP2_SETTINGS, 0, 0, STR_NULL);
    for (size_t size = 1; size <= b.n; size++)
        assert_int_equal(scan_in_pieces(buf_str(&b), size), NGHTTP2_PROTOCOL_ERROR);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_the_end),     cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_too_many),          cmocka_unit_test(test_hollow),
        cmocka_unit_test(test_depends_on_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
