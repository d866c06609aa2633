/* SPDX-License-Identifier: Apache-2.0
 *
 * A work queue on a libuv loop. Keys that are due run from an idle handle, in batches, so that a
 * busy queue never starves the loop's I/O and adding from a callback runs on the next tick; keys
 * that are not due yet cost one timer; a queue with nothing in it costs nothing at all.
 *
 *   nothing due ---add---> idle handle on ---all handed out, or max_working---> idle handle off
 *        ^                                                                        |
 *        +-------------- timer at the next due time, only while something waits --+ */
#include <sublet/queue.h>

#include <sublet/clock.h>

#include <assert.h>
#include <uv.h>

#define WORKER_MAGIC 0x776f726bu

enum { BATCH = 32 }; /* keys per tick of the loop */

struct worker {
    unsigned magic;
    uv_idle_t idle;
    uv_timer_t timer;
    const struct clock *clock;
    struct queue *queue;
    worker_cb work;
    void *ctx;
    unsigned working, max_working;
    size_t dropped;
    uint64_t adds, retries;
    bool closing, paused, in_batch;
    unsigned open_handles;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static int64_t now_ms(const struct worker *w)
{
    return clock_mono_ms(w->clock);
}

static void on_idle(uv_idle_t *handle);
static void on_timer(uv_timer_t *handle);

/* Puts the two handles into the state that the queue calls for. */
static void arm(struct worker *w)
{
    int64_t due = queue_next_due(w->queue), now = now_ms(w);
    bool room = !w->closing && !w->paused && w->working < w->max_working && due != INT64_MAX;

    if (w->in_batch)
        return; /* on_idle() arms when its batch is through */
    if (room && due <= now) {
        int rc = uv_idle_start(&w->idle, on_idle);
        assert(rc == 0);
    } else {
        uv_idle_stop(&w->idle);
    }
    if (room && due > now) {
        uv_update_time(w->timer.loop); /* the loop's time is as old as its last tick */
        int rc = uv_timer_start(&w->timer, on_timer, (uint64_t)(due - now), 0);
        assert(rc == 0);
    } else {
        uv_timer_stop(&w->timer);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct worker *w = handle->data;

    assert(w->magic == WORKER_MAGIC && w->working == 0);
    if (--w->open_handles > 0)
        return;

    void (*closed)(void *) = w->closed;
    void *ctx = w->closed_ctx;
    queue_free(w->queue);
    w->magic = 0;
    mem_free(w);
    if (closed)
        closed(ctx);
}

/* The handles close when the last key is done: whoever works on one may still call worker_done().
 */
static void settle(struct worker *w)
{
    if (!w->closing) {
        arm(w);
        return;
    }
    if (w->working > 0 || uv_is_closing((uv_handle_t *)&w->idle))
        return;
    uv_close((uv_handle_t *)&w->idle, on_handle_closed);
    uv_close((uv_handle_t *)&w->timer, on_handle_closed);
}

static void on_idle(uv_idle_t *handle)
{
    struct worker *w = handle->data;
    int64_t now;
    struct str key;

    assert(w->magic == WORKER_MAGIC);
    now = now_ms(w);
    w->in_batch = true;
    for (unsigned i = 0; i < BATCH && w->working < w->max_working; i++) {
        if (w->closing || w->paused || !queue_get(w->queue, now, &key))
            break;
        w->working++;
        w->work(w->ctx, w, key);
    }
    w->in_batch = false;
    settle(w);
}

static void on_timer(uv_timer_t *handle)
{
    struct worker *w = handle->data;

    assert(w->magic == WORKER_MAGIC);
    settle(w);
}

struct worker *worker_new(struct uv_loop_s *loop, const struct clock *clock,
                          const struct queue_options *options, unsigned max_working, worker_cb work,
                          void *ctx)
{
    struct worker *w = NEW(struct worker);

    assert(max_working > 0);
    w->magic = WORKER_MAGIC;
    w->clock = clock;
    w->queue = queue_new(options);
    w->work = work;
    w->ctx = ctx;
    w->max_working = max_working;
    w->open_handles = 2;
    uv_idle_init(loop, &w->idle);
    uv_timer_init(loop, &w->timer);
    w->idle.data = w->timer.data = w;
    return w;
}

void worker_add_after(struct worker *w, struct str key, int64_t delay_ms)
{
    assert(w->magic == WORKER_MAGIC);
    if (w->closing)
        return;
    if (!queue_add_at(w->queue, key, now_ms(w) + (delay_ms > 0 ? delay_ms : 0)))
        w->dropped++;
    w->adds++;
    arm(w);
}

void worker_add(struct worker *w, struct str key)
{
    worker_add_after(w, key, 0);
}

void worker_done(struct worker *w, struct str key, bool failed)
{
    assert(w->magic == WORKER_MAGIC && w->working > 0);
    queue_done(w->queue, key, now_ms(w), failed);
    w->retries += failed;
    w->working--;
    settle(w);
}

void worker_wake(struct worker *w)
{
    assert(w->magic == WORKER_MAGIC);
    if (!w->closing)
        arm(w);
}

void worker_pause(struct worker *w, bool paused)
{
    assert(w->magic == WORKER_MAGIC);
    w->paused = paused;
    if (!w->closing)
        arm(w);
}

unsigned worker_failures(const struct worker *w, struct str key)
{
    assert(w->magic == WORKER_MAGIC);
    return queue_failures(w->queue, key);
}

void worker_stats(const struct worker *w, struct worker_stats *ret)
{
    assert(w->magic == WORKER_MAGIC);
    *ret = (struct worker_stats){w->adds, w->retries, queue_length(w->queue), w->working};
}

size_t worker_length(const struct worker *w)
{
    assert(w->magic == WORKER_MAGIC);
    return queue_length(w->queue);
}

int64_t worker_next_due(const struct worker *w)
{
    assert(w->magic == WORKER_MAGIC);
    return w->paused ? INT64_MAX : queue_next_due(w->queue);
}

size_t worker_dropped(const struct worker *w)
{
    assert(w->magic == WORKER_MAGIC);
    return w->dropped;
}

bool worker_idle(const struct worker *w)
{
    assert(w->magic == WORKER_MAGIC);
    return w->working == 0 && queue_length(w->queue) == 0;
}

void worker_close(struct worker *w, void (*closed)(void *ctx), void *ctx)
{
    assert(w->magic == WORKER_MAGIC && !w->closing);
    w->closing = true;
    w->closed = closed;
    w->closed_ctx = ctx;
    uv_idle_stop(&w->idle);
    uv_timer_stop(&w->timer);
    settle(w);
}
