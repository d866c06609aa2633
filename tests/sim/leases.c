/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of one virtual cluster on one fake host, for the tests of the Lease; see leases.h. */
#include "leases.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_MS 30000

static uv_loop_t *loop_of(void *ctx, unsigned i)
{
    (void)i;
    return &((struct world *)ctx)->loop;
}

static void on_endless(void *ctx, unsigned i)
{
    (void)ctx;
    (void)i;
    fail_msg("it works without end at one moment");
}

void world_run_ms(struct world *w, unsigned ms)
{
    const struct schedule schedule = {&w->moment, 1, loop_of, NULL, on_endless, w};

    schedule_run_us(&schedule, (int64_t)ms * 1000);
}

int64_t world_now_ms(const struct world *w)
{
    return clock_mono_ms(&w->clock);
}

void world_jump(struct world *w, int64_t ms)
{
    w->moment.now_us += ms * 1000;
}

static void check_one_leads(struct world *w)
{
    size_t acting = 0;

    for (size_t i = 0; i < w->n; i++)
        acting += sync_lease_may_act(w->running[i]->lease);
    assert_in_range(acting, 0, 1);
}

void world_pass(struct world *w, int64_t ms)
{
    for (int64_t step; ms > 0; ms -= step) {
        step = ms < 500 ? ms : 500;
        world_run_ms(w, (unsigned)step);
        check_one_leads(w);
    }
}

void process_until(struct process *p, enum sync_lease_state state)
{
    for (unsigned ms = 0; sync_lease_state(p->lease) != state; ms += 2) {
        if (ms > PATIENCE_MS)
            fail_msg("state %d instead of %d", sync_lease_state(p->lease), state);
        world_run_ms(p->world, 2);
    }
}

int world_setup(void **state)
{
    struct world *w = NEW(struct world);

    moment_enter(NULL); /* of a test that failed */
    for (size_t i = 0; i < COUNT(w->dirs); i++) {
        snprintf(w->dirs[i], sizeof(w->dirs[i]), "/tmp/lease-XXXXXX");
        assert_non_null(mkdtemp(w->dirs[i]));
    }
    w->arena = arena_new(0);
    moment_init(&w->moment, sim_shaken(1));
    moment_enter(&w->moment);
    w->clock = moment_clock(&w->moment);
    w->rng = moment_rng(&w->moment);
    uv_loop_init(&w->loop);
    executor_init(&w->executor, &w->moment, &w->loop, w, &w->dead);
    w->host = fake_host_new(&w->loop, 1);
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

void process_on_flag(void *ctx)
{
    ((struct process *)ctx)->flag = true;
}

void process_until_certain(struct process *p)
{
    for (unsigned ms = 0; sync_lease_is_doubted(p->lease); ms += 2) {
        if (ms > PATIENCE_MS)
            fail_msg("the Lease stays doubted");
        world_run_ms(p->world, 2);
    }
}

void process_until_confirmed(struct process *p, unsigned times)
{
    for (unsigned ms = 0; p->confirmations < times; ms += 2) {
        if (ms > PATIENCE_MS)
            fail_msg("confirmed %u times instead of %u", p->confirmations, times);
        world_run_ms(p->world, 2);
    }
}

void process_wait_flag(struct process *p)
{
    for (unsigned ms = 0; !p->flag; ms += 2) {
        if (ms > PATIENCE_MS)
            fail_msg("waited in vain for an answer");
        world_run_ms(p->world, 2);
    }
    p->flag = false;
}

static void on_changed(void *ctx, enum sync_lease_state now, const struct lease_holder *other)
{
    struct process *p = ctx;

    p->last = now;
    p->changes++;
    snprintf(p->other, sizeof(p->other), "%.*s", STR_F(other ? other->identity : STR("")));
    snprintf(p->fork, sizeof(p->fork), "%.*s", STR_F(other ? other->fork : STR("")));
}

static void on_new_life(void *ctx, struct str epoch, int64_t revision)
{
    struct process *p = ctx;

    snprintf(p->after.epoch, sizeof(p->after.epoch), "%.*s", STR_F(epoch));
    p->after.revision = revision;
}

static void on_host_changed(void *ctx, const char *why)
{
    struct process *p = ctx;

    snprintf(p->why, sizeof(p->why), "%s", why);
}

static void on_confirmed(void *ctx)
{
    ((struct process *)ctx)->confirmations++;
}

static void on_certain(void *ctx)
{
    ((struct process *)ctx)->certainties++;
}

void process_launch(struct process *p)
{
    struct world *w = p->world;
    struct store_options so = {.path = p->dir, .executor = &w->executor.base, .rng = &w->rng};
    struct host_options ho = {.loop = &w->loop,
                              .clock = &w->clock,
                              .rng = &w->rng,
                              .backoff_ms = 1,
                              .backoff_max_ms = 20,
                              .transport = fake_host_transport(w->host)};
    struct lease_options o = {.loop = &w->loop,
                              .clock = &w->clock,
                              .rng = &w->rng,
                              .host_namespace = STR("team"),
                              .name = STR("sim"),
                              .holder = STR("pod"),
                              .data_dir = str_c(p->dir),
                              .cluster_uid = STR(UID),
                              .epoch = str_c(p->epoch),
                              .fork = STR(EARLY "@7"),
                              .duration_ms = DURATION_MS,
                              .force = p->force,
                              .changed = on_changed,
                              .host_changed = on_host_changed,
                              .new_life = on_new_life,
                              .confirmed = on_confirmed,
                              .certain = on_certain,
                              .ctx = p};
    struct err err;

    err_init(&err, w->arena);
    if (store_open(&w->loop, &so, &p->store, &err) || host_open(&ho, &p->host, &err))
        fail_msg("%.*s", STR_F(err.message));
    o.store = p->store;
    o.host = p->host;
    p->why[0] = '\0';
    p->lease = sync_lease_new(&o);
    w->running[w->n++] = p;
    sync_lease_start(p->lease);
}

void process_kill(struct process *p)
{
    struct world *w = p->world;

    host_stop(p->host);
    host_flush(p->host);
    sync_lease_close(p->lease, process_on_flag, p);
    process_wait_flag(p);
    host_close(p->host, process_on_flag, p);
    process_wait_flag(p);
    store_close(p->store, process_on_flag, p);
    process_wait_flag(p);
    for (size_t i = 0; i < w->n; i++)
        if (w->running[i] == p)
            w->running[i] = w->running[--w->n];
}

void process_end(struct process *p)
{
    sync_lease_release(p->lease, process_on_flag, p);
    assert_false(sync_lease_may_act(p->lease));
    assert_false(p->flag);
    sync_lease_wake(p->lease);
    process_wait_flag(p);
    process_kill(p);
}

int world_teardown(void **state)
{
    struct world *w = *state;

    while (w->n)
        process_kill(w->running[0]);
    fake_host_free(w->host);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    moment_enter(NULL);
    for (size_t i = 0; i < COUNT(w->dirs); i++)
        nftw(w->dirs[i], remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_free(w->arena);
    mem_free(w);
    return 0;
}

struct process *process_new(struct world *w, size_t dir, const char *epoch)
{
    struct process *p = ARENA_NEW(w->arena, struct process);

    *p = (struct process){.world = w, .dir = w->dirs[dir], .epoch = epoch};
    return p;
}

cJSON *world_lease(struct world *w)
{
    return json_first(fake_host_list(w->host, w->arena, "leases"));
}

static int64_t note_of(struct world *w, const char *key)
{
    int64_t n = 0;

    str_to_i64(json_str(json_get(json_path(world_lease(w), "metadata.annotations"), key)), &n);
    return n;
}

int64_t world_sequence(struct world *w)
{
    return note_of(w, "sublet.dev/sequence");
}

int64_t world_revision(struct world *w)
{
    return note_of(w, "sublet.dev/revision");
}

bool process_holds(const struct process *p)
{
    return str_eqc(json_str_at(world_lease(p->world), "spec.holderIdentity"),
                   sync_lease_identity(p->lease));
}

/* --- its data --- */

static void on_committed(void *ctx, const struct err *err)
{
    assert_null(err);
    process_on_flag(ctx);
}

void process_write(struct process *p, int n)
{
    for (int i = 0; i < n; i++)
        store_advance(p->store);
    store_on_commit(p->store, on_committed, p);
    process_wait_flag(p);
}

static void copy_file(struct world *w, size_t from, size_t to, const char *name)
{
    char bytes[65536];
    FILE *in = fopen(arena_printf(w->arena, "%s/%s", w->dirs[from], name).p, "r"), *out;
    size_t n;

    remove(arena_printf(w->arena, "%s/%s", w->dirs[to], name).p);
    if (!in)
        return;
    out = fopen(arena_printf(w->arena, "%s/%s", w->dirs[to], name).p, "w");
    assert_non_null(out);
    while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    fclose(out);
}

void process_copy(struct world *w, size_t from, size_t to)
{
    copy_file(w, from, to, "state.db");
    copy_file(w, from, to, "state.db-wal");
}
