/* SPDX-License-Identifier: Apache-2.0 */
/* A process of the tenant: the product itself on a loop of its own. It dies by being left alone:
 * its loop never runs again, its disk refuses it, its requests go on without it. What it held is
 * lost to this process as well, which runs one history and ends. */
#include "judge.h"
#include "tenant.h"

#include <assert.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sublet/kinds.h>

#include "engine.h"

/* A process that crashed in this world still has its descriptors in ours: its lock on the directory
 * must not outlive it. One process per directory is for test_file.c to check. */
__attribute__((visibility("default"))) int flock(int fd, int operation)
{
    (void)fd;
    (void)operation;
    return 0;
}

/* --- death --- */

static void bury(struct life *l)
{
    struct world *w = l->world;

    l->dead = true;
    l->ready = false;
    moment_forget(&w->moment, l);
    if (l->line)
        wires_abandon(w->wires, l->line);
    disk_after_crash(l->disk, l->power);
    if (w->lives[l->index] == l)
        w->lives[l->index] = NULL;
    world_trace("life %u is gone%s", l->number, l->power ? " with its power" : "");
    if (!l->index)
        judge_died(l);
    tenant_lost_process(w, l->index);
}

static void on_buried(void *arg)
{
    bury(arg);
}

/* In the middle of a call of its own: it is over when the call returns. */
static void on_trapped(void *ctx)
{
    struct life *l = ctx;

    l->dead = true;
    moment_forget(&l->world->moment, l);
    if (l->line)
        wires_abandon(l->world->wires, l->line);
    moment_at(&l->world->moment, 0, l, on_buried, l);
}

void life_kill(struct life *l, bool power)
{
    l->power = power;
    disk_trap_off(l->disk);
    bury(l);
}

void life_kill_later(struct life *l, unsigned operations, bool power)
{
    l->power = power;
    disk_trap(l->disk, operations, on_trapped, l);
}

/* --- start --- */

/* Messages name a directory, which is another one every time: they are shown, and not hashed. */
static void give_up(struct life *l, const char *what, struct str why)
{
    world_trace("life %u cannot %s", l->number, what);
    if (l->world->show)
        printf("     %.*s\n", STR_F(why));
    l->dead = true;
    moment_forget(&l->world->moment, l);
    if (l->line)
        wires_abandon(l->world->wires, l->line);
    moment_at(&l->world->moment, 0, l, on_buried, l);
}

static void on_ready(void *ctx, const struct err *err)
{
    struct life *l = ctx;

    if (l->dead)
        return;
    if (err) {
        give_up(l, "serve", err->message);
        return;
    }
    syncer_start(l->syncer);
    syncer_publish_kubeconfig(l->syncer, STR("kubeconfig"));
    l->ready = true;
    l->first = store_revision(l->store);
    world_trace("life %u serves from %lld", l->number, (long long)store_revision(l->store));
    judge_life(l);
}

/* It is opened again by the next step. */
static void on_new_life(void *ctx, const struct store_predecessor *after)
{
    struct life *l = ctx;

    if (l->dead)
        return;
    l->world->after = *after;
    give_up(l, "go on in its epoch", STR(""));
}

static int open_syncer(struct life *l, struct err *err)
{
    struct world *w = l->world;
    struct host_options options = {
        .loop = &l->loop, .clock = &w->clock, .rng = &w->rng, .dry_qps = w->config.host_dry_qps};
    struct host *host;

    l->line = options.transport = wires_line(w->wires, l->index ? l->number : 0);
    if (host_open(&options, &host, err))
        return -1;
    if (syncer_new_with(l->api, &l->config, host, &l->syncer, err))
        return -1;
    syncer_on_new_life(l->syncer, on_new_life, l);
    return 0;
}

static int open_store(struct life *l, struct err *err)
{
    struct world *w = l->world;
    struct store_options so = {.path = disk_path(l->disk),
                               .readable = kinds_stored_readable,
                               .max_bytes = (size_t)w->config.max_bytes,
                               .max_objects = 100000,
                               .executor = &l->executor.base,
                               .after = l->index ? NULL : &w->after,
                               .rng = &w->rng};

    executor_init(&l->executor, &w->moment, &l->loop, l, &l->dead);
    mkdir(disk_path(l->disk), 0700);
    return store_open(&l->loop, &so, &l->store, err);
}

static int open_all(struct life *l, struct err *err)
{
    struct world *w = l->world;
    struct str name = STR("localhost");
    struct pki_options po = {.clock = &w->clock,
                             .rng = &w->rng,
                             .names = &name,
                             .n_names = 1,
                             .issuer = STR("https://kubernetes.default.svc.cluster.local")};
    struct vapi_options vo = {.loop = &l->loop,
                              .config = &l->config,
                              .clock = &w->clock,
                              .rng = &w->rng,
                              .version = STR("v1.36.3")};

    if (open_store(l, err) || pki_open(l->store, &po, &l->pki, err))
        return -1;
    vo.store = l->store;
    vo.pki = l->pki;
    if (vapi_new(&vo, &l->api, err) || open_syncer(l, err))
        return -1;
    if (l->index == 0)
        snprintf(w->epoch, sizeof(w->epoch), "%.*s", STR_F(l->syncer->tenant.epoch));
    return vapi_start(l->api, on_ready, l, err);
}

struct life *life_start(struct world *w, struct disk *disk, unsigned index)
{
    static unsigned number;
    struct life *l = NEW(struct life);
    char report[400];
    struct err err;

    assert(!w->lives[index]);
    *l = (struct life){.world = w, .disk = disk, .index = index, .number = ++number};
    w->lives[index] = l;
    l->config = w->config;
    l->config.data_dir = str_c(disk_path(disk));
    uv_loop_init(&l->loop);
    snprintf(report, sizeof(report), "%s/lacking.txt", disk_path(disk));
    unlink(report); /* of an earlier process */
    err_init(&err, w->arena);
    world_trace("life %u starts", l->number);
    if (open_all(l, &err) && !l->dead)
        give_up(l, "start", err.message);
    return l;
}

bool life_serves(const struct life *l)
{
    return l && l->ready && !l->dead && !l->closing;
}

/* --- stop --- */

static void on_store_closed(void *ctx)
{
    ((struct life *)ctx)->closed = true;
}

static void on_api_closed(void *ctx)
{
    struct life *l = ctx;

    l->pki = pki_free(l->pki);
    l->watch = NULL; /* goes with the store */
    store_close(l->store, on_store_closed, l);
}

static void on_syncer_closed(void *ctx)
{
    struct life *l = ctx;

    vapi_close(l->api, on_api_closed, l);
}

static bool is_over(struct world *w)
{
    return !w->lives[0] || w->lives[0]->closed;
}

void life_stop(struct life *l)
{
    struct world *w = l->world;

    assert(life_serves(l) && l->index == 0);
    world_trace("life %u stops", l->number);
    l->closing = true;
    syncer_close(l->syncer, on_syncer_closed, l);
    if (!world_until(w, is_over, 120 * 1000000ll))
        world_fail("a process did not stop within two minutes");
    if (w->lives[0] == l) {
        l->power = false;
        l->line = NULL; /* closed */
        bury(l);
    }
}
