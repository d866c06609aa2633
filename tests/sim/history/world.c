/* SPDX-License-Identifier: Apache-2.0 */
/* The turns of a world: processes and agenda, then time. See world.h. */
#include "world.h"
#include "judge.h"
#include "tenant.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sublet/log.h>

#include "result.h"

#define TICK_US 200000

struct world *WORLD;

const char *const CLASSES[N_CLASSES] = {
#define CLASS(id, name) [CLASS_##id] = name,
#include "classes.h"
#undef CLASS
};

void world_trace(const char *format, ...)
{
    struct world *w = WORLD;
    char line[512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    w->trace = str_hash(str_c(line), w->trace ^ (uint64_t)w->moment.now_us);
    if (w->show)
        printf("%4u %12.6f %s\n", w->step, (double)w->moment.now_us / 1e6, line);
}

void world_fail(const char *format, ...)
{
    char line[RESULT_MESSAGE];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    result_end(WORLD, format, line);
}

/* --- turns --- */

static uv_loop_t *loop_of(void *ctx, unsigned i)
{
    struct life *l = ((struct world *)ctx)->lives[i];

    return l && !l->dead && !l->closed ? &l->loop : NULL;
}

static void on_turned(void *ctx)
{
    struct world *w = ctx;

    if (clock_wall_us(&w->clock) > w->newest_wall_us)
        w->newest_wall_us = clock_wall_us(&w->clock);
}

static void on_endless(void *ctx, unsigned i)
{
    world_fail("process %u works without end at one moment",
               ((struct world *)ctx)->lives[i]->number);
}

void world_run_us(struct world *w, int64_t us)
{
    const struct schedule schedule = {&w->moment, MAX_LIVES, loop_of, on_turned, on_endless, w};

    schedule_run_us(&schedule, us);
}

bool world_until(struct world *w, bool (*is)(struct world *w), int64_t us)
{
    int64_t end = w->moment.now_us + us;

    while (!is(w)) {
        if (w->moment.now_us >= end)
            return false;
        world_run_us(w, 100000);
    }
    return true;
}

/* --- the host's own time --- */

static void on_tick(void *arg)
{
    struct world *w = arg;

    host_model_tick(w->host);
    moment_at(&w->moment, TICK_US + (int64_t)dice_below(&w->moment, DICE_HOST, TICK_US), w, on_tick,
              w);
}

static void on_changed(void *ctx)
{
    wires_changed(((struct world *)ctx)->wires);
}

static void on_wire_trace(void *ctx, const char *what, const char *a, const char *b, int64_t n)
{
    (void)ctx;
    world_trace("%s %s %s %lld", what, a, b, (long long)n);
}

/* --- begin --- */

static const char CONFIG[] =
    "name: sim\nhost: {namespace: team}\nlisten: {address: \"127.0.0.1:0\"}\n"
    "network: {apiAddress: \"10.9.9.9\"}\n"
    "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [],\n"
    "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}}\n"
    "bindings:\n- {pool: p, guarantee: \"4\", overQuota: reject, default: true}\n";

static bool serves(struct world *w)
{
    return life_serves(w->lives[0]);
}

struct world *world_new(uint64_t seed, const char *root)
{
    struct world *w = NEW(struct world);
    struct wires_options o = {&w->moment, NULL, judge_request, judge_told, on_wire_trace, w};
    struct err err;

    WORLD = w;
    log_set_level(getenv("SHOW") ? LOG_DEBUG : LOG_ERROR);
    w->arena = arena_new(0);
    w->seed = seed;
    snprintf(w->root, sizeof(w->root), "%s", root);
    moment_init(&w->moment, seed);
    moment_enter(&w->moment);
    disk_install(&w->moment, w->root);
    w->clock = moment_clock(&w->moment);
    w->rng = moment_rng(&w->moment);
    err_init(&err, w->arena);
    if (config_load(w->arena, str_c(CONFIG), 0, NULL, NULL, &w->config, &err))
        world_fail("%.*s", STR_F(err.message));
    o.host = w->host = host_model_new(&w->moment);
    w->wires = wires_new(&o);
    host_model_on_change(w->host, on_changed, judge_left, w);
    moment_at(&w->moment, TICK_US, w, on_tick, w);
    tenant_slots(&w->models[0]);
    w->disk = disk_new("disk-0");
    life_start(w, w->disk, 0);
    if (!world_until(w, serves, 60 * 1000000ll))
        world_fail("the first process did not start");
    return w;
}
