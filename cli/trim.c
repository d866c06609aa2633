/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory after a burst. Why: a start, a rollout or a big list leaves the heap full of holes, which
 * malloc keeps for ever; a hundred idle tenants must not each hold what they once needed. Nothing
 * polls: turns of the loop are counted as they happen, many of them arm a timer, and the timer
 * fires once when they stopped. Must never wake an idle process, nor trim a busy one. */
#include "trim.h"

#include <assert.h>
#include <stdbool.h>

#include <uv.h>

#include <sublet/mem.h>

#define TRIM_MAGIC  0x7472696du
#define BURST_TURNS 32 /* turns of the loop that are worth a look at the heap */

struct trim {
    unsigned magic;
    uv_prepare_t prepare;
    uv_timer_t timer;
    unsigned open_handles;
    unsigned turns; /* since the timer was armed, or since the last release */
    unsigned quiet_ms;
    void (*release)(void);
};

static void on_timer(uv_timer_t *timer);

static void arm(struct trim *t)
{
    t->turns = 0;
    uv_timer_start(&t->timer, on_timer, t->quiet_ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct trim *t = timer->data;

    assert(t->magic == TRIM_MAGIC);
    if (t->turns >= BURST_TURNS) {
        arm(t);
        return;
    }
    t->release();
    t->turns = 0;
}

static void on_prepare(uv_prepare_t *handle)
{
    struct trim *t = handle->data;

    assert(t->magic == TRIM_MAGIC);
    if (++t->turns >= BURST_TURNS && !uv_is_active((uv_handle_t *)&t->timer))
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
