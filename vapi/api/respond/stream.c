/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Long answers in pieces. Why: a list of 90 MB as a Table, as YAML or compressed must neither be
 * held in memory as a whole nor block the loop while it is produced. Each stream has a slice of
 * time per turn of the loop and pauses while its client has unread bytes. Its objects are held by
 * reference, so that the answer is of one revision however long it takes. It must never fail half
 * way: everything that can fail is checked before the first byte. */
#include "respond.h"

#include "../flow/flow.h"
#include "../observe/observe.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#define STREAM_MAGIC 0x7374726du
#define GZIP_LEVEL   4 /* upstream's choice: most of the gain for a third of the time */
#define GZIP_WINDOW  (15 + 16)
#define MOST_PACKING 32 /* compressors at once, 270 KiB each; further answers are not compressed */
#define SLICE_US     2000          /* of the loop, per answer and turn */
#define TURN_US      4000          /* for all answers */
#define STREAM_COST  (512u * 1024) /* charged to the flow for one stream */

struct stream {
    unsigned magic;
    struct call *call;
    struct stream_source source;
    int status;
    int64_t length;
    struct net_header *headers; /* with capacity for two more */
    size_t n_headers;
    z_stream z;
    struct buf raw, out;
    bool packing; /* z is in use */
    bool begun, made, waiting_turn;
    TAILQ_ENTRY(stream) in_ring;
};

struct streaming {
    struct vapi *api;
    uv_idle_t idle;
    TAILQ_HEAD(, stream) ring; /* streams that can continue, in order of their turns */
    unsigned open, packing;
    uint64_t begun;
};

/* ---- open and close ---- */

static void write_metrics(void *ctx, struct buf *out)
{
    const struct vapi *api = ctx;
    const struct streaming *all = api->streaming;

    metrics_single_u64(out, METRIC_STREAMED, all->open);
    metrics_single_u64(out, METRIC_STREAMED_TOTAL, all->begun);
}

void streaming_open(struct vapi *api)
{
    struct streaming *all = NEW(struct streaming);

    all->api = api;
    TAILQ_INIT(&all->ring);
    uv_idle_init(api->o.loop, &all->idle);
    all->idle.data = all;
    api->open_handles++;
    api->streaming = all;
    vapi_add_metrics(api, write_metrics, api);
}

static void on_closed(uv_handle_t *handle)
{
    struct streaming *all = handle->data;

    api_handle_closed(all->api);
}

void streaming_close(struct vapi *api)
{
    assert(!api->streaming->open);
    uv_close((uv_handle_t *)&api->streaming->idle, on_closed);
}

void streaming_free(struct vapi *api)
{
    api->streaming = mem_free(api->streaming);
}

/* ---- compression ---- */

static voidpf on_zalloc(voidpf ctx, uInt items, uInt size)
{
    (void)ctx;
    return mem_realloc(NULL, (size_t)items * size);
}

static void on_zfree(voidpf ctx, voidpf p)
{
    (void)ctx;
    mem_free(p);
}

static void deflate_into(struct stream *s, struct str in, bool last)
{
    union {
        const char *from;
        unsigned char *to;
    } text = {.from = in.p};
    int rc;

    s->z.next_in = text.to;
    s->z.avail_in = (uInt)in.n;
    do {
        buf_reserve(&s->out, 16384);
        s->z.next_out = (unsigned char *)s->out.p + s->out.n;
        s->z.avail_out = (uInt)(s->out.cap - s->out.n);
        rc = deflate(&s->z, last ? Z_FINISH : Z_NO_FLUSH);
        s->out.n = s->out.cap - s->z.avail_out;
    } while (rc == Z_OK && s->z.avail_out == 0);
    assert(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
}

/* The bytes produced so far go through the compressor first. */
static void start_packing(struct stream *s)
{
    struct streaming *all = s->call->api->streaming;
    struct buf made = s->out;

    if (!call_entry(s->call)->gzip || s->begun || all->packing >= MOST_PACKING)
        return;
    s->z.zalloc = on_zalloc;
    s->z.zfree = on_zfree;
    if (deflateInit2(&s->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    s->packing = true;
    all->packing++;
    s->headers[s->n_headers++] = (struct net_header){STR("content-encoding"), STR("gzip")};
    s->headers[s->n_headers++] = (struct net_header){STR("vary"), STR("accept-encoding")};
    s->out = BUF_INIT(0);
    deflate_into(s, buf_str(&made), false);
    buf_fini(&made);
}

/* ---- end ---- */

static void leave_ring(struct stream *s)
{
    if (s->waiting_turn)
        TAILQ_REMOVE(&s->call->api->streaming->ring, s, in_ring);
    s->waiting_turn = false;
}

/* Frees everything but s itself, which the call owns. */
static void stream_fini(struct stream *s)
{
    struct call *c = s->call;

    assert(s->magic == STREAM_MAGIC);
    leave_ring(s);
    if (s->packing) {
        deflateEnd(&s->z);
        s->packing = false;
        s->call->api->streaming->packing--;
    }
    buf_fini(&s->raw);
    buf_fini(&s->out);
    if (s->source.release)
        s->source.release(s->source.ctx);
    c->api->streaming->open--;
    c->cancel = NULL;
    c->drained = NULL;
    c->state = NULL;
    s->magic = 0;
}

static void stream_cancel(struct call *c)
{
    stream_fini(c->state);
}

/* ---- pieces ---- */

static void on_piece_sent(void *ctx)
{
    mem_free(ctx);
}

static struct net_slice take_piece(struct buf *b)
{
    struct str bytes = buf_take(b);
    union {
        const char *from;
        void *to;
    } p = {.from = bytes.p};

    return (struct net_slice){bytes, on_piece_sent, p.to};
}

static void begin(struct stream *s)
{
    struct call *c = s->call;

    if (s->begun)
        return;
    s->begun = true;
    call_entry(c)->streaming = true;
    c->api->streaming->begun++;
    flow_leave(c); /* a slow reader holds no seat */
    if (s->length < 0)
        flow_answer_bytes(c, STREAM_COST + s->source.piece);
    net_begin_whole(c->exchange, s->status, s->headers, s->n_headers, s->packing ? -1 : s->length);
}

static void make_packed(struct stream *s)
{
    struct net_slice slices[STREAM_BATCH];
    size_t n;

    if (s->source.next) {
        buf_clear(&s->raw);
        s->made = !s->source.next(s->source.ctx, &s->raw);
        deflate_into(s, buf_str(&s->raw), s->made);
        return;
    }
    n = s->source.slices(s->source.ctx, slices);
    for (size_t i = 0; i < n; i++) {
        deflate_into(s, slices[i].bytes, false);
        if (slices[i].release)
            slices[i].release(slices[i].ctx);
    }
    s->made = !n;
    if (s->made)
        deflate_into(s, STR(""), true);
}

static void make_piece(struct stream *s)
{
    if (s->packing) {
        make_packed(s);
        return;
    }
    if (s->source.slices) {
        /* Sends pieces by reference, unchanged. */
        struct net_slice slices[STREAM_BATCH];
        size_t n = s->source.slices(s->source.ctx, slices);

        begin(s);
        s->made = !n;
        if (n)
            net_write(s->call->exchange, slices, n);
        return;
    }
    s->made = !s->source.next(s->source.ctx, &s->out);
    if (s->out.n >= API_GZIP_FROM)
        start_packing(s);
    if (s->packing && s->made)
        deflate_into(s, STR(""), true);
}

static void send_piece(struct stream *s)
{
    struct net_slice piece;

    if (s->out.n < STREAM_PIECE)
        return;
    begin(s);
    piece = take_piece(&s->out);
    net_write(s->call->exchange, &piece, 1);
}

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

enum outcome { OUT_OF_TIME, OUT_OF_ROOM, OVER };

/* Produces for one slice of time, while the reader keeps up. */
static enum outcome stream_step(struct stream *s)
{
    uint64_t began = now_us();

    assert(s->magic == STREAM_MAGIC && s->call->exchange);
    do {
        if (s->begun && net_backlog(s->call->exchange) >= STREAM_PIECE)
            return OUT_OF_ROOM; /* drained() continues */
        make_piece(s);
        if (s->made) {
            /* Everything is produced: the call is answered. */
            struct call *c = s->call;
            struct net_slice piece = take_piece(&s->out);

            call_hold(c);
            observe_answer(c, s->status, STR(""), NULL, 0);
            if (!s->begun) {
                net_respond(c->exchange, s->status, s->headers, s->n_headers, &piece, 1);
            } else {
                net_write(c->exchange, &piece, 1);
                net_end(c->exchange);
            }
            stream_fini(s);
            call_release(c);
            return OVER;
        }
        send_piece(s);
    } while (now_us() - began < SLICE_US);
    return OUT_OF_TIME;
}

/* ---- turns ---- */

static void on_idle(uv_idle_t *handle);

static void want_turn(struct stream *s)
{
    struct streaming *all = s->call->api->streaming;

    if (s->waiting_turn)
        return;
    s->waiting_turn = true;
    TAILQ_INSERT_TAIL(&all->ring, s, in_ring);
    uv_idle_start(&all->idle, on_idle);
}

static void on_idle(uv_idle_t *handle)
{
    struct streaming *all = handle->data;
    uint64_t began = now_us(), at = began;
    struct stream *s;

    while (at - began < TURN_US && (s = TAILQ_FIRST(&all->ring)) != NULL) {
        struct flow *flow = call_entry(s->call)->flow;
        uint64_t from = at;

        leave_ring(s);
        flow_hold(flow);
        if (stream_step(s) == OUT_OF_TIME)
            want_turn(s);
        at = now_us();
        flow_spend(all->api, flow, at - from);
    }
    if (TAILQ_EMPTY(&all->ring))
        uv_idle_stop(handle);
}

static void stream_drained(struct call *c)
{
    struct stream *s = c->state;

    assert(s->magic == STREAM_MAGIC);
    want_turn(s);
}

/* ---- begin ---- */

void stream_answer(struct call *c, int status, const struct net_header *headers, size_t n,
                   const struct stream_source *source, int64_t length)
{
    struct stream *s = ARENA_NEW(c->arena, struct stream);

    assert(c->exchange && !c->done && (length < 0) == !source->slices);
    *s = (struct stream){.magic = STREAM_MAGIC,
                         .call = c,
                         .source = *source,
                         .status = status,
                         .length = length,
                         .n_headers = n};
    s->headers = arena_alloc(c->arena, (n + 2) * sizeof(*headers));
    memcpy(s->headers, headers, n * sizeof(*headers));
    s->raw = BUF_INIT(0);
    s->out = BUF_INIT(0);
    c->api->streaming->open++;
    c->state = s;
    c->cancel = stream_cancel;
    c->drained = stream_drained;
    if (length >= (int64_t)API_GZIP_FROM)
        start_packing(s);
    if (stream_step(s) == OUT_OF_TIME)
        want_turn(s);
}
