/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of http2_guard.h, applied to frame headers. Floods: rapid reset (CVE-2023-44487) is
 * limited by nghttp2's stream_reset_rate_limit, CONTINUATION floods by its max_continuations. A
 * token bucket limits the others: PING, SETTINGS, PRIORITY and empty DATA frames (CVE-2019-9512,
 * 9515, 9513, 9518), and frames that make us reset a stream (CVE-2025-8671). Must never punish
 * frames that may still be in flight when we close a stream: only those that follow the peer's own
 * end of it. */
#include "http2_guard.h"

#include <string.h>

#include <nghttp2/nghttp2.h>

#include "conn.h"

#define CHEAP_BURST 2000L /* frames that cost us more than the peer: burst, and per second */
#define CHEAP_RATE  100

struct frame {
    size_t length;
    uint8_t type, flags;
    int32_t stream;
};

void guard_init(struct guard *g)
{
    *g = (struct guard){.newest = -1};
    g->skip = HTTP2_PREFACE.n;
}

bool guard_charge(struct guard *g, int64_t now)
{
    static const struct token_rate rate = {.burst = CHEAP_BURST, .n = CHEAP_RATE, .period = 1000};

    return token_bucket_take(&g->cheap, &rate, now);
}

static bool costs(const struct frame *f)
{
    switch (f->type) {
    case NGHTTP2_PING:
    case NGHTTP2_SETTINGS:
    case NGHTTP2_PRIORITY:
    case NGHTTP2_RST_STREAM:
        return true;
    case NGHTTP2_DATA:
        /* DATA with no payload, or a few bytes of padding only; genuine uploads do not need it. */
        return !(f->flags & NGHTTP2_FLAG_END_STREAM) &&
               (!f->length || (f->flags & NGHTTP2_FLAG_PADDED && f->length <= 1 + UINT8_MAX));
    default:
        return false;
    }
}

/* The bit of a stream opened by the peer; 0 when it is no longer remembered. */
static uint64_t bit_of(const struct guard *g, int32_t stream)
{
    int32_t age = (g->newest - stream) / 2;

    return stream % 2 == 1 && stream <= g->newest && age < GUARD_STREAMS ? (uint64_t)1 << age : 0;
}

static void open_stream(struct guard *g, int32_t stream)
{
    int32_t by = stream / 2 - (g->newest < 0 ? -1 : g->newest / 2);

    g->opened = by < GUARD_STREAMS ? g->opened << by : 0;
    g->ended = by < GUARD_STREAMS ? g->ended << by : 0;
    g->opened |= 1;
    g->newest = stream;
}

/* RFC 9113 5.1 and 5.1.1: a stream number that was skipped cannot be opened later, and a stream
 * that the peer ended stays ended. */
static uint32_t check_past_stream(const struct guard *g, const struct frame *f)
{
    uint64_t bit = bit_of(g, f->stream);

    if (!bit)
        return NGHTTP2_NO_ERROR;
    if (!(g->opened & bit))
        return NGHTTP2_PROTOCOL_ERROR;
    return g->ended & bit ? NGHTTP2_STREAM_CLOSED : NGHTTP2_NO_ERROR;
}

static uint32_t judge(struct guard *g, const struct frame *f, int64_t now)
{
    bool message = f->type == NGHTTP2_HEADERS || f->type == NGHTTP2_DATA;
    uint32_t error = NGHTTP2_NO_ERROR;

    if (costs(f) && !guard_charge(g, now))
        return NGHTTP2_ENHANCE_YOUR_CALM;
    if (f->type == NGHTTP2_PRIORITY && !f->stream)
        return NGHTTP2_PROTOCOL_ERROR;

    if (f->type == NGHTTP2_HEADERS && f->stream > g->newest && f->stream % 2)
        open_stream(g, f->stream);
    else if (message)
        error = check_past_stream(g, f);
    if (f->type == NGHTTP2_RST_STREAM || (message && f->flags & NGHTTP2_FLAG_END_STREAM))
        g->ended |= bit_of(g, f->stream);
    return error;
}

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int32_t read_stream(const unsigned char *p)
{
    return (int32_t)(read_u32(p) & INT32_MAX);
}

/* All wanted bytes of a frame are present. */
static uint32_t peek_done(struct guard *g, int64_t now)
{
    struct frame f = {.length = read_u32(g->peek) >> 8,
                      .type = g->peek[3],
                      .flags = g->peek[4],
                      .stream = read_stream(g->peek + 5)};
    bool itself;

    if (g->peeked == GUARD_PEEK) {
        g->peeked = 0;

        /* RFC 7540 5.3.1; nghttp2 does not check it where priorities are off. */
        itself = read_stream(g->peek + 5) == read_stream(g->peek + GUARD_HEAD);
        return itself ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_NO_ERROR;
    }
    if (f.type != NGHTTP2_PRIORITY || f.length != GUARD_PEEK - GUARD_HEAD) {
        g->skip = f.length;
        g->peeked = 0;
    }
    return judge(g, &f, now);
}

/* Takes up to n bytes of the frame's beginning. */
static size_t peek(struct guard *g, struct str bytes)
{
    size_t want = g->peeked < GUARD_HEAD ? GUARD_HEAD : GUARD_PEEK;
    size_t n = want - g->peeked < bytes.n ? want - g->peeked : bytes.n;

    memcpy(g->peek + g->peeked, bytes.p, n);
    g->peeked += n;
    return n;
}

uint32_t guard_scan(struct guard *g, struct str *bytes, int64_t now)
{
    struct str rest = *bytes;
    uint32_t error = NGHTTP2_NO_ERROR;

    while (rest.n && !error) {
        size_t n = g->skip < rest.n ? g->skip : rest.n;

        g->skip -= n;
        rest = str_from(rest, n);
        if (!rest.n)
            break;
        n = peek(g, rest);
        if (g->peeked == GUARD_HEAD || g->peeked == GUARD_PEEK)
            error = peek_done(g, now);
        if (error)
            bytes->n -= rest.n;
        rest = str_from(rest, n);
    }
    return error;
}
