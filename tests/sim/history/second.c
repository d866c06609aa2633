/* SPDX-License-Identifier: Apache-2.0 */
/* The second process of a tenant: a copy of its data is made, a process is started on it, ends, and
 * is started again, with a tenant and a watcher of its own. Must never put a fault into the data of
 * the first. */
#include "history.h"
#include "judge.h"
#include "tenant.h"

#include "core/lease.h"
#include "engine.h"

#define S          1000000ll
#define DECIDES_US (600 * S)

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)dice_below(&w->moment, DICE_ACTION, n);
}

static void copy(struct world *w)
{
    w->copy = history_next_disk(w, w->disk);
    w->n_copies++;
    w->copy_started = false;
    w->copied_us = w->moment.now_us;
    w->models[1] = w->models[0];
    tenant_lost_process(w, 1); /* what is under way may be in the copy */
    judge_copied(w);
}

static void start(struct world *w)
{
    life_start(w, w->copy, 1);
    w->copy_started = true;
}

void second_do(struct world *w)
{
    if (w->lives[1])
        life_kill(w->lives[1], !below(w, 3));
    else if (w->copy && (!w->copy_started || below(w, 3)))
        start(w);
    else
        copy(w);
}

void second_act(struct world *w)
{
    unsigned writes = below(w, 4);

    for (unsigned i = 0; i < writes; i++)
        tenant_act(w, 1);
}

/* --- the end --- */

static bool has_decided(const struct life *l)
{
    enum sync_lease_state state;

    if (!life_serves(l))
        return false;
    state = sync_lease_state(l->syncer->lease);
    return judge_refuses(l) || state == LEASE_HELD;
}

static void run_until_decided(struct world *w, void (*ensure)(struct world *w))
{
    int64_t end = w->moment.now_us + DECIDES_US;

    while (!has_decided(w->lives[1])) {
        if (w->moment.now_us > end)
            world_fail("a second process neither leads nor refuses, ten minutes after the faults");
        ensure(w);
        if (!w->lives[1])
            start(w);
        world_run_us(w, S);
        judge_step(w);
    }
    world_trace("life %u is in state %d at the end", w->lives[1]->number,
                (int)sync_lease_state(w->lives[1]->syncer->lease));
}

/* Started once more, it must still have what it answered, whichever data goes on. */
void second_end(struct world *w, void (*ensure)(struct world *w))
{
    if (!w->copy || !w->copy_started)
        return;
    *disk_faults(w->copy) = (struct disk_faults){0};
    run_until_decided(w, ensure);
    life_kill(w->lives[1], false);
    run_until_decided(w, ensure);
    life_kill(w->lives[1], false);
}
