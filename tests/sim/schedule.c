/* SPDX-License-Identifier: Apache-2.0 */
/* See schedule.h. Must never wait for anything: a loop is run without blocking, and the clock is
 * moved by hand. */
#include "schedule.h"

/* Turns of a loop at one moment, before it is called a busy loop. */
#define MOST_SPINS 20000

/* --- turns --- */

/* Everything a loop has to do now. It may end on the way. */
static void turn_loop(const struct schedule *t, unsigned i)
{
    uv_loop_t *loop;
    unsigned spins = 0;

    while ((loop = t->loop(t->ctx, i))) {
        uv_run(loop, UV_RUN_NOWAIT);
        if (++spins > MOST_SPINS)
            t->endless(t->ctx, i);
        if (uv_backend_timeout(loop) != 0 || !uv_loop_alive(loop))
            break;
    }
}

static void turn_loops(const struct schedule *t)
{
    for (unsigned i = 0; i < t->n; i++)
        turn_loop(t, i);
    if (t->turned)
        t->turned(t->ctx);
}

static void update_loops(const struct schedule *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        uv_loop_t *loop = t->loop(t->ctx, i);

        if (loop)
            uv_update_time(loop);
    }
}

static bool run_item(const struct schedule *t)
{
    if (!moment_run_due(t->moment))
        return false;
    update_loops(t);
    turn_loops(t);
    return true;
}

static int64_t next_us(const struct schedule *t)
{
    int64_t now = t->moment->now_us, next = moment_next(t->moment);

    for (unsigned i = 0; i < t->n; i++) {
        uv_loop_t *loop = t->loop(t->ctx, i);
        int timeout = loop ? uv_backend_timeout(loop) : -1;
        /* The loop's time is in milliseconds, rounded down. */
        int64_t at = now - now % 1000 + (int64_t)timeout * 1000;

        if (timeout > 0 && at < next)
            next = at;
    }
    return next;
}

void schedule_step(const struct schedule *t, int64_t us)
{
    int64_t end = t->moment->now_us + us, next;

    turn_loops(t);
    if (run_item(t))
        return;
    next = next_us(t);
    t->moment->now_us = next < end ? next : end;
    turn_loops(t);
}

void schedule_run_us(const struct schedule *t, int64_t us)
{
    int64_t end = t->moment->now_us + us, next;

    for (;;) {
        turn_loops(t);
        while (run_item(t))
            ;
        next = next_us(t);
        if (next > end)
            break;
        t->moment->now_us = next;
    }
    t->moment->now_us = end;
}

/* --- the store's writer --- */

struct posted {
    struct executor *executor;
    void (*run)(void *arg);
    void *arg;
};

static void on_posted(void *arg)
{
    struct posted *p = arg;

    if (!*p->executor->dead) {
        uv_update_time(p->executor->loop);
        p->run(p->arg);
    }
    mem_free(p);
}

/* The disk takes its time, and so does the way back. */
static void post(void *ctx, void (*run)(void *arg), void *arg)
{
    struct executor *e = ctx;
    struct posted *p = NEW(struct posted);
    int64_t us = 20 + (int64_t)dice_below(e->moment, DICE_DISK, 3000);

    *p = (struct posted){e, run, arg};
    moment_at(e->moment, us, e->owner, on_posted, p);
}

void executor_init(struct executor *e, struct moment *m, uv_loop_t *loop, const void *owner,
                   const bool *dead)
{
    *e = (struct executor){{post, e}, m, loop, owner, dead};
}
