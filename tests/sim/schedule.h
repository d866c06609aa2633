/* SPDX-License-Identifier: Apache-2.0 */
/* How time passes for loops that share a moment: each runs until it has nothing to do now, then the
 * next item of the agenda runs, then the clock moves to whatever comes next. Nothing sleeps. */
#pragma once

#include <uv.h>

#include <sublet/store_executor.h>

#include "moment.h"

struct schedule {
    struct moment *moment;
    unsigned n;
    uv_loop_t *(*loop)(void *ctx, unsigned i); /* i < n; NULL: it does not run (any more) */
    void (*turned)(void *ctx);                 /* nothing is to be done now; or NULL */
    void (*endless)(void *ctx, unsigned i);    /* a loop that always has something to do now */
    void *ctx;
};

/* Whatever is due now, then the first thing after that, up to us from now. */
void schedule_step(const struct schedule *t, int64_t us);
void schedule_run_us(const struct schedule *t, int64_t us);

/* The writer of a store: each job, and each answer, takes up to 3 ms by chance. */
struct executor {
    struct store_executor base;
    struct moment *moment;
    uv_loop_t *loop;
    const void *owner; /* of its items of the agenda */
    const bool *dead;  /* it runs nothing once this is true */
};

void executor_init(struct executor *e, struct moment *m, uv_loop_t *loop, const void *owner,
                   const bool *dead);
