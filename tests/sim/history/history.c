/* SPDX-License-Identifier: Apache-2.0 */
/* One history from its seed: which classes of faults it has and how often they come is drawn first
 * (a history with few of them goes deeper than one with all), then every step draws what the tenant
 * does and what befalls it. Each step and each class has a stream of its own, so that one can be
 * left out and the others stay. Afterwards the faults end, and both worlds must become the same. */
#include "foreign.h"
#include "history.h"
#include "judge.h"
#include "logless.h"
#include "tenant.h"

#include <string.h>

#include <sublet/store_admin.h>

#include "core/lease.h"
#include "engine.h"
#include "plant.h"
#include "result.h"

#define S           1000000ll
#define PATIENCE_US (1800 * S)
#define MADE_UP     60 /* revisions */

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)dice_below(&w->moment, DICE_ACTION, n);
}

/* --- classes --- */

static unsigned rates[N_CLASSES]; /* of a thousand */

static void draw_classes(struct world *w, const struct script *script)
{
    static const unsigned choices[] = {3, 10, 30, 100};

    for (int c = 0; c < N_CLASSES; c++) {
        moment_seed(&w->moment, DICE_ACTION, script->seed * 1000 + (uint64_t)c);
        w->with[c] = below(w, 2) && script->allowed[c];
        rates[c] = w->with[c] ? choices[below(w, 4)] : 0;
    }
}

/* The network has its good and its bad times. */
static void set_weather(struct world *w, bool bad)
{
    struct wire_faults *f = wires_faults(w->wires);
    bool down = f->down;

    *f = (struct wire_faults){.max_delay_ms = 5, .down = down};
    if (w->with[CLASS_PAGING])
        f->page = 2;
    if (!bad)
        return;
    f->refuse = rates[CLASS_REFUSED];
    f->lose = rates[CLASS_LOST];
    f->late = rates[CLASS_LATE];
    f->duplicate = rates[CLASS_DUPLICATED];
    f->truncate = rates[CLASS_TRUNCATED];
    f->hang = rates[CLASS_HANGING];
    f->busy = rates[CLASS_BUSY];
    f->fail = rates[CLASS_FAILING];
    f->expire = rates[CLASS_EXPIRED];
    f->cut = rates[CLASS_CUT];
    f->max_delay_ms = w->with[CLASS_SLOW] ? 4000 : 20;
}

/* --- what befalls the tenant --- */

static void do_down(struct world *w)
{
    struct wire_faults *f = wires_faults(w->wires);

    f->down = !f->down;
    if (f->down)
        wires_cut_all(w->wires);
}

static void do_stop(struct world *w)
{
    disk_faults(w->disk)->full = false;
    if (life_serves(w->lives[0]))
        life_stop(w->lives[0]);
}

static void kill_now_or_later(struct world *w, bool power)
{
    struct life *l = w->lives[0];

    if (!l || l->dead)
        return;
    if (below(w, 3))
        life_kill_later(l, below(w, 40), power);
    else
        life_kill(l, power);
}

static void do_crash(struct world *w)
{
    kill_now_or_later(w, false);
}

static void do_power(struct world *w)
{
    kill_now_or_later(w, true);
}

static void do_full(struct world *w)
{
    struct disk_faults *f = disk_faults(w->disk);

    f->full = !f->full;
}

static void do_disk_error(struct world *w)
{
    struct disk_faults *f = disk_faults(w->disk);
    bool healthy = !f->write_errors && !f->sync_errors;

    f->write_errors = healthy ? 1 + below(w, 100) : 0;
    f->sync_errors = healthy ? below(w, 100) : 0;
}

static void do_read_error(struct world *w)
{
    static const unsigned choices[] = {1, 3, 10, 100};
    struct disk_faults *f = disk_faults(w->disk);
    unsigned rate = choices[below(w, COUNT(choices))];
    uint64_t sectors = below(w, 2) ? 1 + below(w, UINT32_MAX) : 0;

    f->read_errors = f->read_errors ? 0 : rate;
    f->bad_sectors = sectors;
}

static void do_clock(struct world *w)
{
    w->moment.jump_us += ((int64_t)below(w, 4 * 3600) - 3600) * S;
}

static const char *a_kind(struct world *w)
{
    static const char *const kinds[] = {"pods",       "pods",    "services",
                                        "configmaps", "secrets", "persistentvolumeclaims"};

    return kinds[below(w, 6)];
}

static void do_host_edit(struct world *w)
{
    host_model_edit_any(w->host, a_kind(w));
}

static void do_host_remove(struct world *w)
{
    host_model_remove_any(w->host, a_kind(w));
}

static void do_host_finish(struct world *w)
{
    host_model_finish_pod(w->host, below(w, 2) ? "Failed" : "Succeeded");
}

/* --- lives that part --- */

struct disk *history_next_disk(struct world *w, struct disk *from)
{
    char name[32];

    snprintf(name, sizeof(name), "disk-%u", ++w->n_disks);
    return from ? disk_copy(from, name) : disk_new(name);
}

static const struct backup *a_backup(struct world *w)
{
    unsigned n = w->n_backups < MAX_BACKUPS ? (unsigned)w->n_backups : MAX_BACKUPS;
    const struct backup *b = n ? &w->backups[below(w, n)] : NULL;

    return b && b->done ? b : NULL;
}

/* The admin who restores sets the clock right first, which takes a second: a life that begins
 * behind the clock of another has the older epoch, so that one supersedes it. */
static void set_clock_right(struct world *w)
{
    int64_t ahead = w->newest_wall_us + 1000000 - clock_wall_us(&w->clock);

    w->moment.jump_us += ahead > 0 ? ahead : 0;
}

static bool restore(struct world *w)
{
    const struct backup *b = a_backup(w);
    struct disk *disk;
    struct err err;

    if (!b)
        return false;
    if (w->lives[0])
        life_kill(w->lives[0], false);
    set_clock_right(w);
    disk = history_next_disk(w, NULL);
    err_init(&err, w->arena);
    if (store_restore(b->path, disk_path(disk), &err)) {
        if (!disk_faults(b->disk)->read_errors)
            world_fail("a backup cannot be restored: %.*s", STR_F(err.message));
        world_trace("%s cannot be read", strrchr(b->path, '/'));
        return false;
    }
    world_trace("restored %s", strrchr(b->path, '/'));
    w->disk = disk;
    w->models[0] = b->model;
    w->generation++;
    wires_next_age(w->wires);
    tenant_lost_process(w, 0);
    return true;
}

static void do_restore(struct world *w)
{
    restore(w);
}

static void do_other_host(struct world *w)
{
    if (!restore(w))
        return;
    w->host_generation++;
    host_model_roll_back(w->host, 0);
    wires_cut_all(w->wires);
}

/* By more than the host makes up for before a watch is open again: less cannot be observed. */
static void do_roll_back(struct world *w)
{
    uint64_t revision = host_model_revision(w->host), most = revision - revision / 8;
    uint64_t back = MADE_UP + dice_below(&w->moment, DICE_ACTION, 200);

    back = back < most ? back : most;
    if (back < MADE_UP)
        return;
    w->host_generation++;
    wires_next_age(w->wires);
    world_trace("the host goes back to %llu", (unsigned long long)(revision - back));
    host_model_roll_back(w->host, revision - back);
    wires_cut_all(w->wires);
}

static const struct event {
    enum fault_class class;
    void (*run)(struct world *w);
} EVENTS[] = {
    {CLASS_DOWN, do_down},
    {CLASS_STOP, do_stop},
    {CLASS_CRASH, do_crash},
    {CLASS_POWER, do_power},
    {CLASS_DISK_FULL, do_full},
    {CLASS_DISK_ERROR, do_disk_error},
    {CLASS_CLOCK, do_clock},
    {CLASS_HOST_EDIT, do_host_edit},
    {CLASS_HOST_REMOVE, do_host_remove},
    {CLASS_HOST_FINISH, do_host_finish},
    {CLASS_RESTORE, do_restore},
    {CLASS_OTHER_HOST, do_other_host},
    {CLASS_ROLLBACK, do_roll_back},
    {CLASS_TWO, second_do},
    {CLASS_DISK_READ, do_read_error},
    {CLASS_LOG_LOST, logless_do},
    {CLASS_LOG_FOREIGN, foreign_do},
};

static void befall(struct world *w)
{
    const struct event *e = &EVENTS[below(w, COUNT(EVENTS))];

    if (!w->with[e->class])
        return;
    w->counts[e->class]++;
    world_trace("event %s", CLASSES[e->class]);
    e->run(w);
}

/* --- steps --- */

static int64_t pause_us(struct world *w)
{
    switch (below(w, 6)) {
    case 0:
        return 1 + below(w, 5000);
    case 1:
    case 2:
        return 1 + below(w, 100000);
    case 3:
    case 4:
        return 1 + below(w, 2 * S);
    default:
        return 1 + below(w, 40 * S);
    }
}

static void ensure_life(struct world *w)
{
    w->config.lease_force = w->force;
    if (!w->lives[0])
        life_start(w, w->disk, 0);
    w->config.lease_force = false;
}

static void step(struct world *w, const struct script *script)
{
    unsigned writes;
    int64_t us;

    moment_seed(&w->moment, DICE_ACTION, script->seed * 1000003 + w->step);
    writes = below(w, 4);
    us = pause_us(w);
    if (!script->skip[w->step % 512]) {
        if (!below(w, 5))
            set_weather(w, below(w, 2));
        if (!below(w, 12))
            tenant_backup(w);
        for (unsigned i = 0; i < writes; i++)
            tenant_act(w, 0);
        befall(w);
        second_act(w);
    }
    ensure_life(w);
    world_run_us(w, us);
    plant_step(w, script->plant, false);
    judge_step(w);
}

/* --- the end --- */

static void end_faults(struct world *w)
{
    *wires_faults(w->wires) = (struct wire_faults){.max_delay_ms = 5};
    *disk_faults(w->disk) = (struct disk_faults){0};
    disk_trap_off(w->disk);
    world_trace("the faults are over");
}

/* Data of a later epoch, or a copy of this data, served meanwhile and is gone: that this data goes
 * on is the admin's decision. */
static void force_superseded(struct world *w)
{
    struct life *l = w->lives[0];

    if (!life_serves(l))
        return;
    w->force &= sync_lease_state(l->syncer->lease) != LEASE_HELD;
    if (sync_lease_state(l->syncer->lease) != LEASE_SUPERSEDED)
        return;
    life_stop(l);
    world_trace("the admin starts it with --force");
    w->force = true;
    ensure_life(w);
}

static void settle(struct world *w)
{
    int64_t end = w->moment.now_us + PATIENCE_US;

    while (!judge_agree(w)) {
        if (w->moment.now_us > end)
            world_fail("the worlds are apart half an hour after the last fault: %s",
                       judge_difference(w));
        ensure_life(w);
        force_superseded(w);
        world_run_us(w, S);
        judge_step(w);
    }
}

void history_run(struct world *w, const struct script *script)
{
    w->seed = script->seed;
    w->show = script->show;
    if (script->show_disk)
        disk_show();
    for (int i = 0; i < N_DICE; i++)
        moment_seed(&w->moment, (enum dice)i, script->seed * N_DICE + (uint64_t)i);
    draw_classes(w, script);
    for (w->step = 0; w->step < script->steps; w->step++)
        step(w, script);
    end_faults(w);
    plant_step(w, script->plant, true);
    second_end(w, ensure_life);
    settle(w);
    result_end(w, NULL, NULL);
}
