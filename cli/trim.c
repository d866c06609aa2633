/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory after a burst. Why: a start, a rollout or a big list leaves the heap full of holes, which
 * malloc keeps for ever; a hundred idle tenants must not each hold what they once needed. One large
 * answer, or a cache whose time is over, leaves as much in a single turn of the loop. Nothing
 * polls: turns and the bytes that were freed are counted as they happen, many of either arm a
 * timer, and the timer fires once when they stopped. Libraries free what is not counted, and turns
 * stand for it. Must never wake an idle process, nor trim a busy one. */
#include "trim.h"

#include <assert.h>
#include <stdbool.h>

#include <uv.h>

#include <sublet/mem.h>

#define TRIM_MAGIC  0x7472696du
#define BURST_TURNS 32          /* turns of the loop that justify a look at the heap */
#define BURST_BYTES (128 << 10) /* and what was freed that is */

struct trim {
    unsigned magic;
    uv_prepare_t prepare;
    uv_timer_t timer;
    unsigned open_handles;
    unsigned turns; /* since the timer was armed, or since the last release */
    uint64_t freed; /* mem_freed() then */
    unsigned quiet_ms;
    void (*release)(void);
};

static void on_timer(uv_timer_t *timer);

static void start_counting(struct trim *t)
{
    t->turns = 0;
    t->freed = mem_freed();
}

static bool saw_a_burst(const struct trim *t)
{
    return t->turns >= BURST_TURNS || mem_freed() - t->freed >= BURST_BYTES;
}

static void arm(struct trim *t)
{
    start_counting(t);
    uv_timer_start(&t->timer, on_timer, t->quiet_ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct trim *t = timer->data;

    assert(t->magic == TRIM_MAGIC);
    if (saw_a_burst(t)) {
        arm(t);
        return;
    }
    t->release();
    start_counting(t);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct trim *t = handle->data;

    assert(t->magic == TRIM_MAGIC);
    t->turns++;
    if (saw_a_burst(t) && !uv_is_active((uv_handle_t *)&t->timer))
        arm(t);
}

struct trim *trim_new(struct uv_loop_s *loop, unsigned quiet_ms, void (*release)(void))
{
    struct trim *t = NEW(struct trim);

    *t = (struct trim){
        .magic = TRIM_MAGIC, .open_handles = 2, .quiet_ms = quiet_ms, .release = release};
    uv_prepare_init(loop, &t->prepare);
    uv_timer_init(loop, &t->timer);
    t->prepare.data = t->timer.data = t;
    uv_prepare_start(&t->prepare, on_prepare);
    arm(t);
    uv_unref((uv_handle_t *)&t->prepare);
    uv_unref((uv_handle_t *)&t->timer);
    return t;
}

static void on_closed(uv_handle_t *handle)
{
    struct trim *t = handle->data;

    assert(t->magic == TRIM_MAGIC);
    if (--t->open_handles)
        return;
    t->magic = 0;
    mem_free(t);
}

void trim_close(struct trim *t)
{
    assert(t->magic == TRIM_MAGIC);
    uv_close((uv_handle_t *)&t->prepare, on_closed);
    uv_close((uv_handle_t *)&t->timer, on_closed);
}
