/* SPDX-License-Identifier: Apache-2.0 */
/* The Lease: its state machine with a clock of the test's own, several processes on one host; and
 * what it means for a whole virtual cluster. */
#include "sim.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include <sublet/store_admin.h>

#include "engine.h"

#define DURATION_MS 40000
#define UID         "11111111-2222-3333-4444-555555555555"
#define EARLY       "019000000000aaaaaaaaaaaaaaaaaaaa"
#define LATE        "019100000000aaaaaaaaaaaaaaaaaaaa"

/* --- one process, as far as the Lease knows it --- */

struct process {
    struct world *world;
    const char *dir, *epoch;
    bool force;
    struct store *store;
    struct host *host;
    struct lease *lease;
    enum sync_lease_state last;
    char other[128], why[128];
    unsigned changes, confirmations, certainties;
    bool flag;
};

struct world {
    uv_loop_t loop;
    uv_timer_t guard;
    bool over;
    int64_t now_ms;
    struct clock clock;
    struct fake_host *host;
    struct arena *arena;
    char dirs[2][64];
    struct process *running[3];
    size_t n;
};

static int64_t world_mono(void *ctx)
{
    return ((struct world *)ctx)->now_ms;
}

static int64_t world_wall(void *ctx)
{
    return 1790000000000000 + ((struct world *)ctx)->now_ms * 1000;
}

static void on_guard(uv_timer_t *timer)
{
    ((struct world *)timer->data)->over = true;
}

static void run_ms(struct world *w, unsigned ms)
{
    w->over = false;
    uv_update_time(&w->loop);
    uv_timer_start(&w->guard, on_guard, ms, 0);
    while (!w->over)
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void check_one_leads(struct world *w)
{
    size_t acting = 0;

    for (size_t i = 0; i < w->n; i++)
        acting += sync_lease_may_act(w->running[i]->lease);
    assert_in_range(acting, 0, 1);
}

/* In steps, as time passes: whatever is due in between is done then. */
static void pass(struct world *w, int64_t ms)
{
    for (int64_t end = w->now_ms + ms; w->now_ms < end;) {
        w->now_ms += end - w->now_ms < 500 ? end - w->now_ms : 500;
        for (size_t i = 0; i < w->n; i++)
            sync_lease_wake(w->running[i]->lease);
        run_ms(w, 8);
        check_one_leads(w);
    }
}

static void until_state(struct process *p, enum sync_lease_state state)
{
    uint64_t end = uv_hrtime() / 1000000 + 30000;

    while (sync_lease_state(p->lease) != state) {
        if (uv_hrtime() / 1000000 > end)
            fail_msg("state %d instead of %d", sync_lease_state(p->lease), state);
        run_ms(p->world, 2);
    }
}

static int world_setup(void **state)
{
    struct world *w = NEW(struct world);

    w->arena = arena_new(0);
    w->now_ms = 1000000;
    w->clock = (struct clock){world_wall, world_mono, w};
    uv_loop_init(&w->loop);
    uv_timer_init(&w->loop, &w->guard);
    w->guard.data = w;
    w->host = fake_host_new(&w->loop, 1);
    for (size_t i = 0; i < 2; i++) {
        snprintf(w->dirs[i], sizeof(w->dirs[i]), "/tmp/lease-XXXXXX");
        assert_non_null(mkdtemp(w->dirs[i]));
    }
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

static void on_flag(void *ctx)
{
    ((struct process *)ctx)->flag = true;
}

static void wait_flag(struct process *p)
{
    while (!p->flag)
        run_ms(p->world, 2);
    p->flag = false;
}

static void on_changed(void *ctx, enum sync_lease_state now, const struct lease_holder *other)
{
    struct process *p = ctx;

    p->last = now;
    p->changes++;
    snprintf(p->other, sizeof(p->other), "%.*s", STR_F(other ? other->identity : STR("")));
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

static void launch(struct process *p)
{
    struct world *w = p->world;
    struct store_options so = {.path = p->dir};
    struct host_options ho = {.loop = &w->loop,
                              .clock = &w->clock,
                              .rng = &RNG_SYSTEM,
                              .backoff_ms = 1,
                              .backoff_max_ms = 20,
                              .transport = fake_host_transport(w->host)};
    struct lease_options o = {.loop = &w->loop,
                              .clock = &w->clock,
                              .rng = &RNG_SYSTEM,
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

/* Without a release: as a kill leaves it. */
static void kill_(struct process *p)
{
    struct world *w = p->world;

    host_stop(p->host);
    host_flush(p->host);
    sync_lease_close(p->lease, on_flag, p);
    wait_flag(p);
    host_close(p->host, on_flag, p);
    wait_flag(p);
    store_close(p->store, on_flag, p);
    wait_flag(p);
    for (size_t i = 0; i < w->n; i++)
        if (w->running[i] == p)
            w->running[i] = w->running[--w->n];
}

static void end(struct process *p)
{
    sync_lease_release(p->lease, on_flag, p);
    assert_false(sync_lease_may_act(p->lease));
    assert_false(p->flag);
    sync_lease_wake(p->lease);
    wait_flag(p);
    kill_(p);
}

static int world_teardown(void **state)
{
    struct world *w = *state;

    while (w->n)
        kill_(w->running[0]);
    fake_host_free(w->host);
    uv_close((uv_handle_t *)&w->guard, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    for (size_t i = 0; i < 2; i++)
        nftw(w->dirs[i], remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_free(w->arena);
    mem_free(w);
    return 0;
}

static struct process *process(struct world *w, size_t dir, const char *epoch)
{
    struct process *p = ARENA_NEW(w->arena, struct process);

    *p = (struct process){.world = w, .dir = w->dirs[dir], .epoch = epoch};
    return p;
}

static cJSON *host_lease(struct world *w)
{
    return json_first(fake_host_list(w->host, w->arena, "leases"));
}

static int64_t sequence(struct world *w)
{
    uint64_t n = 0;

    str_to_u64(
        json_str(json_get(json_path(host_lease(w), "metadata.annotations"), "sublet.dev/sequence")),
        &n);
    return (int64_t)n;
}

static bool holds(const struct process *p)
{
    return str_eqc(json_str_at(host_lease(p->world), "spec.holderIdentity"),
                   sync_lease_identity(p->lease));
}

/* --- one process --- */

static void takes_and_renews(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);
    cJSON *notes;

    launch(a);
    assert_int_equal(sync_lease_state(a->lease), LEASE_UNKNOWN);
    assert_false(sync_lease_may_act(a->lease));
    until_state(a, LEASE_HELD);
    assert_true(sync_lease_may_act(a->lease) && holds(a));
    notes = json_path(host_lease(w), "metadata.annotations");
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/epoch")), EARLY));
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/cluster-uid")), UID));
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/fork")), EARLY "@7"));
    assert_int_equal(json_i64_at(host_lease(w), "spec.leaseDurationSeconds", 0), 40);
    assert_int_equal(sequence(w), 1);
    fake_host_patch(w->host, "leases", "sim", "{\"metadata\":{\"labels\":{\"mine\":\"1\"}}}");
    pass(w, 120000); /* every third of its duration, and a tenth earlier at most */
    assert_in_range(sequence(w), 9, 12);
    assert_true(str_eqc(json_str_at(host_lease(w), "metadata.labels.mine"), "1"));
    assert_int_equal(a->changes, 1);
    assert_string_equal(a->why, "");
}

static void stops_when_no_answer_comes(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    fake_host_faults(w->host)->down = true;
    pass(w, 29000);
    assert_true(sync_lease_may_act(a->lease));
    pass(w, 1500);
    assert_false(sync_lease_may_act(a->lease));
    assert_int_equal(sync_lease_state(a->lease), LEASE_AWAY);
    pass(w, 60000);
    fake_host_faults(w->host)->down = false;
    sync_lease_kick(a->lease);
    until_state(a, LEASE_HELD);
    assert_true(sync_lease_may_act(a->lease));
    assert_string_equal(a->why, "");
}

static void starts_while_the_host_is_away(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    fake_host_faults(w->host)->down = true;
    launch(a);
    until_state(a, LEASE_AWAY);
    assert_false(sync_lease_may_act(a->lease));
    fake_host_faults(w->host)->down = false;
    pass(w, 5500); /* no event says that it is back */
    until_state(a, LEASE_HELD);
}

static void answers_that_are_lost_are_no_loss(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    fake_host_faults(w->host)->lose = 400;
    fake_host_faults(w->host)->fail = 200;
    fake_host_faults(w->host)->busy = 100;
    pass(w, 600000);
    *fake_host_faults(w->host) = (struct fake_faults){0};
    pass(w, 10000);
    until_state(a, LEASE_HELD);
    assert_string_equal(a->why, "");
}

static void confirms_on_demand(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    assert_false(sync_lease_confirmed_since(a->lease, w->now_ms));
    until_state(a, LEASE_HELD);
    assert_int_equal(a->confirmations, 1);
    assert_true(sync_lease_confirmed_since(a->lease, w->now_ms));
    w->now_ms += 1000;
    assert_false(sync_lease_confirmed_since(a->lease, w->now_ms));
    assert_int_equal(sequence(w), 1);
    while (a->confirmations < 2)
        run_ms(w, 2);
    assert_int_equal(sequence(w), 2);
    assert_true(sync_lease_confirmed_since(a->lease, w->now_ms));
}

static void no_renewal_is_from_a_moment_to_come(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    assert_false(sync_lease_confirmed_since(a->lease, INT64_MAX));
    pass(w, 5000);
    assert_in_range(sequence(w), 2, 3);
    assert_int_equal(a->confirmations, 1);
}

/* What answers next may be another host: one renewal, sent after the break, says that it is not. */
static void a_break_of_the_connection_needs_a_renewal(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    sync_lease_doubt(a->lease);
    assert_true(sync_lease_is_doubted(a->lease) && sync_lease_may_act(a->lease));
    while (sync_lease_is_doubted(a->lease))
        run_ms(w, 2);
    assert_int_equal(sequence(w), 2);
    assert_int_equal(a->certainties, 1);
    /* The answer to a request from before the break says nothing. */
    w->now_ms += 1000;
    assert_false(sync_lease_confirmed_since(a->lease, w->now_ms));
    run_ms(w, 0);
    sync_lease_doubt(a->lease);
    while (sync_lease_is_doubted(a->lease))
        run_ms(w, 2);
    assert_in_range(sequence(w), 3, 4);
    assert_int_equal(a->certainties, 2);
    assert_int_equal(a->changes, 1);
}

/* What the break makes doubtful is who leads, not that this process serves. */
static void a_break_while_it_is_taken(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    sync_lease_doubt(a->lease);
    until_state(a, LEASE_HELD);
    assert_true(sync_lease_may_act(a->lease));
    while (sync_lease_is_doubted(a->lease))
        run_ms(w, 2);
    assert_int_equal(a->certainties, 1);
    assert_int_equal(a->changes, 1);
}

static void works_without_the_right(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    fake_host_deny(w->host, "get leases", true);
    launch(a);
    until_state(a, LEASE_WITHOUT);
    assert_true(sync_lease_may_act(a->lease));
    assert_true(sync_lease_confirmed_since(a->lease, w->now_ms));
    fake_host_deny(w->host, "get leases", false);
    fake_host_deny(w->host, "create leases", true);
    pass(w, 301000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_WITHOUT);
    fake_host_deny(w->host, "create leases", false);
    pass(w, 301000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_HELD);
}

/* A quota that is used up, a namespace that is terminating: no right is missing, so a second
 * process has to be expected. */
static void a_quota_is_no_missing_right(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    fake_host_faults(w->host)->full = "leases";
    launch(a);
    until_state(a, LEASE_AWAY);
    assert_false(sync_lease_may_act(a->lease));
    fake_host_faults(w->host)->full = NULL;
    pass(w, 5500);
    until_state(a, LEASE_HELD);
}

/* --- two processes --- */

static void a_copy_waits_until_it_expires(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY), *b = process(w, 1, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    launch(b);
    until_state(b, LEASE_WAITING);
    assert_string_equal(b->other, sync_lease_identity(a->lease));
    pass(w, 200000);
    assert_true(holds(a));
    kill_(a);
    pass(w, 25000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_WAITING);
    pass(w, 20000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
    assert_true(holds(b));
    assert_int_equal(json_i64_at(host_lease(w), "spec.leaseTransitions", 0), 1);
    assert_string_equal(b->why, "");
    launch(a); /* the other directory: nothing proves that b is dead */
    until_state(a, LEASE_WAITING);
}

static void restart_after_a_kill_waits_for_nothing(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);
    struct str record;

    for (int i = 0; i < 12; i++) { /* more than are remembered */
        launch(a);
        until_state(a, LEASE_HELD);
        assert_string_equal(a->why, "");
        kill_(a);
    }
    fake_host_faults(w->host)->down = true; /* one that never held it, in between */
    launch(a);
    until_state(a, LEASE_AWAY);
    assert_true(store_record_get(a->store, RECORD_META, STR("lease-holder"), &record));
    assert_in_range(record.n, 100, 500);
    kill_(a);
    fake_host_faults(w->host)->down = false;
    launch(a);
    until_state(a, LEASE_HELD);
}

/* As a copied directory has it: the record is there, and the file is another. */
static void a_record_proves_nothing_elsewhere(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY), *b = process(w, 1, EARLY);
    struct store_options so = {.path = w->dirs[1]};
    struct str record;
    char copy[512];

    launch(a);
    until_state(a, LEASE_HELD);
    assert_true(store_record_get(a->store, RECORD_META, STR("lease-holder"), &record));
    snprintf(copy, sizeof(copy), "%.*s", STR_F(record));
    assert_int_equal(store_open(&w->loop, &so, &b->store, NULL), 0);
    store_record_put(b->store, RECORD_META, STR("lease-holder"), str_c(copy));
    store_close(b->store, on_flag, b);
    wait_flag(b);
    launch(b);
    until_state(b, LEASE_WAITING);
}

static void a_release_is_taken_at_once(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY), *b = process(w, 1, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    end(a);
    assert_int_equal(json_str_at(host_lease(w), "spec.holderIdentity").n, 0);
    launch(b);
    until_state(b, LEASE_HELD);
    assert_string_equal(b->why, "");
}

static void release_is_bounded(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    fake_host_faults(w->host)->max_delay_ms = 100000;
    sync_lease_release(a->lease, on_flag, a);
    run_ms(w, 20);
    assert_false(a->flag);
    w->now_ms += 1000;
    sync_lease_wake(a->lease);
    wait_flag(a);
    kill_(a);
}

static void force_takes_it_from_a_live_holder(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY), *b = process(w, 1, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    b->force = true;
    launch(b);
    until_state(b, LEASE_HELD);
    w->now_ms += DURATION_MS / 3; /* its renewal meets a 409 */
    sync_lease_wake(a->lease);
    until_state(a, LEASE_WAITING);
    assert_string_equal(a->other, sync_lease_identity(b->lease));
    pass(w, 100000); /* force was for once */
    assert_true(holds(b));
    assert_string_equal(a->why, "");
}

/* --- epochs --- */

static void a_newer_epoch_waits_for_a_live_older_one(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY), *b = process(w, 1, LATE);

    launch(a);
    until_state(a, LEASE_HELD);
    launch(b);
    until_state(b, LEASE_WAITING);
    pass(w, 100000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_WAITING);
    end(a);
    pass(w, 5500);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
}

static void an_older_epoch_never_comes_back_by_itself(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY), *b = process(w, 1, LATE);

    launch(b);
    until_state(b, LEASE_HELD);
    launch(a);
    until_state(a, LEASE_SUPERSEDED);
    assert_string_equal(a->other, sync_lease_identity(b->lease));
    kill_(b);
    pass(w, 100000); /* expired, too */
    assert_int_equal(sync_lease_state(a->lease), LEASE_SUPERSEDED);
    kill_(a);
    launch(a);
    until_state(a, LEASE_SUPERSEDED);
    kill_(a);
    a->force = true;
    launch(a);
    until_state(a, LEASE_HELD);
}

static void a_restore_while_the_host_is_away_is_found_out(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY), *b = process(w, 1, LATE);

    launch(a);
    until_state(a, LEASE_HELD);
    kill_(a);
    launch(b); /* on another directory: it waits for the dead one to expire */
    until_state(b, LEASE_WAITING);
    pass(w, 46000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
    fake_host_faults(w->host)->down = true;
    launch(a);
    until_state(a, LEASE_AWAY);
    fake_host_faults(w->host)->down = false;
    sync_lease_kick(a->lease);
    until_state(a, LEASE_SUPERSEDED);
    sync_lease_kick(b->lease);
    pass(w, 15000);
    assert_true(holds(b));
}

/* --- hosts that are not what they were --- */

static void an_earlier_state_of_the_host_is_noticed(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    pass(w, 60000);
    fake_host_patch(w->host, "leases", "sim",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/sequence\":\"2\"}}}");
    pass(w, 14000);
    assert_string_equal(a->why, "its Lease is in an earlier state than before");
    a->why[0] = '\0';
    pass(w, 60000); /* said once */
    assert_string_equal(a->why, "");
    kill_(a);
    launch(a);
    until_state(a, LEASE_HELD);
    assert_string_equal(a->why, "");
}

/* Only what was put on record is known after a restart. */
static void an_earlier_state_is_noticed_after_a_restart(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    pass(w, 60000);
    sync_lease_note(a->lease);
    kill_(a);
    fake_host_patch(w->host, "leases", "sim",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/sequence\":\"2\"}}}");
    launch(a);
    until_state(a, LEASE_HELD);
    assert_string_equal(a->why, "its Lease is in an earlier state than before");
}

static void another_host_is_noticed(void **state)
{
    struct world *w = *state;
    struct process *a = process(w, 0, EARLY);

    launch(a);
    until_state(a, LEASE_HELD);
    fake_host_remove(w->host, "leases", "sim");
    pass(w, 14000);
    assert_string_equal(a->why, "its Lease is missing");
    assert_true(holds(a));
    end(a);
    fake_host_remove(w->host, "leases", "sim");
    fake_host_put(w->host, "leases",
                  "{\"metadata\":{\"name\":\"sim\",\"annotations\":{\"sublet.dev/sequence\":"
                  "\"900\"}},\"spec\":{\"holderIdentity\":\"\"}}");
    launch(a);
    until_state(a, LEASE_HELD);
    assert_string_equal(a->why, "its Lease is another one than before");
    assert_int_equal(sequence(w), 901);
}

/* --- a whole virtual cluster --- */

#define POD "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'i'}]}}"

static bool pod_is_on_host(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 1;
}

static bool has_account(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool there = sim_get(s, a, "serviceaccounts", "default", "default") != NULL;

    arena_free(a);
    return there;
}

static bool is_held(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_HELD;
}

static bool is_away(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_AWAY;
}

static bool is_waiting(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_WAITING;
}

static bool is_superseded(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_SUPERSEDED;
}

static void serves_while_the_host_is_away(void **state)
{
    struct sim *s = sim_new(7, NULL);

    (void)state;
    sim_until(s, is_held, "the Lease");
    fake_host_faults(s->host)->down = true;
    sim_close(s);
    sim_open(s);
    sim_until(s, is_away, "the host to be away");
    sim_create(s, "pods", "default", POD);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    fake_host_faults(s->host)->down = false;
    sim_until(s, pod_is_on_host, "the pod on the host");
    sim_until(s, is_held, "the Lease");
    sim_free(s);
}

static void refuses_while_the_host_is_away_if_told(void **state)
{
    struct sim *s = sim_new(8, "lease: {hostAway: readOnly}\n");

    (void)state;
    sim_until(s, is_held, "the Lease");
    fake_host_faults(s->host)->down = true;
    sim_close(s);
    sim_open(s);
    sim_until(s, is_away, "the host to be away");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'c'}}");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "lease.hostAway"));
    fake_host_faults(s->host)->down = false;
    sim_until(s, is_held, "the Lease");
    s->refusal[0] = '\0';
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'c'}}");
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    sim_free(s);
}

/* Writes that wait for the decision are answered when the process ends before it. */
static void ends_before_it_is_decided(void **state)
{
    struct sim *s = sim_new(11, NULL);

    (void)state;
    sim_until(s, is_held, "the Lease");
    fake_host_faults(s->host)->lose = 1000;
    sim_close(s);
    sim_open(s);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'c'}}");
    sim_close(s);
    assert_int_equal(s->writes, 0);
    assert_non_null(strstr(s->refusal, "ends before the host cluster has answered"));
    fake_host_faults(s->host)->lose = 0;
    sim_open(s);
    sim_until(s, is_held, "the Lease");
    sim_free(s);
}

/* Behind the same address there is another host, or another process led meanwhile. */
static void nothing_goes_out_after_a_break_before_the_lease_is_confirmed(void **state)
{
    struct sim *s = sim_new(12, NULL);

    (void)state;
    sim_until(s, has_account, "the account of pods");
    sim_until(s, is_held, "the Lease");
    fake_host_faults(s->host)->down = true;
    sim_create(s, "pods", "default", POD);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    sim_run_ms(s, 50);
    fake_host_patch(s->host, "leases", "sim", "{\"spec\":{\"holderIdentity\":\"other_1\"}}");
    fake_host_faults(s->host)->down = false;
    sim_until(s, is_waiting, "another holder");
    assert_int_equal(fake_host_asked(s->host, "POST", "pods", false), 0);
    fake_host_patch(s->host, "leases", "sim", "{\"spec\":{\"holderIdentity\":\"\"}}");
    sim_until(s, pod_is_on_host, "the pod on the host");
    sim_free(s);
}

/* Another holds the Lease as of now, with this epoch, forked off here. */
static void steal(struct sim *s, const char *epoch, int64_t fork)
{
    struct str own = s->syncer->tenant.epoch;
    char json[512];
    struct str other;

    other = epoch ? str_c(epoch) : own;
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"annotations\":{\"sublet.dev/epoch\":\"%.*s\",\"sublet.dev/fork\":"
             "\"%.*s@%lld\"}},\"spec\":{\"holderIdentity\":\"other_1\"}}",
             STR_F(other), STR_F(own), (long long)fork);
    fake_host_patch(s->host, "leases", "sim", json);
    sync_lease_confirmed_since(s->syncer->lease, clock_mono_ms(&s->clock) + 1);
}

static void a_stolen_lease_stops_everything(void **state)
{
    struct sim *s = sim_new(9, NULL);
    unsigned deletes;

    (void)state;
    sim_until(s, has_account, "the account of pods");
    sim_create(s, "pods", "default", POD);
    sim_until(s, pod_is_on_host, "the pod on the host");
    steal(s, NULL, 1);
    sim_until(s, is_waiting, "another holder");
    deletes = fake_host_asked(s->host, "DELETE", "pods", false);
    sim_delete(s, "pods", "default", "p", 0);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "another process serves this virtual cluster: other_1");
    sim_run_ms(s, 100);
    assert_int_equal(fake_host_asked(s->host, "DELETE", "pods", false), deletes);
    assert_true(pod_is_on_host(s));
    assert_string_equal(s->syncer->not_leading,
                        "another process serves this virtual cluster: other_1");
    fake_host_patch(s->host, "leases", "sim", "{\"spec\":{\"holderIdentity\":\"\"}}");
    sim_until(s, is_held, "the Lease"); /* within a poll */
    sim_delete(s, "pods", "default", "p", 0);
    sim_writes_done(s);
    sim_free(s);
}

static char reported[512];

static void on_report(struct syncer *s, struct str report)
{
    (void)s;
    snprintf(reported, sizeof(reported), "%.*s", STR_F(report));
}

static bool has_report(struct sim *s)
{
    (void)s;
    return reported[0];
}

static void what_a_later_life_lacks_is_listed(void **state)
{
    struct sim *s = sim_new(10, NULL);
    struct arena *a = arena_new(0);
    char path[128], text[4096] = "";
    struct str own = s->syncer->tenant.epoch;
    int64_t fork;
    FILE *f;

    (void)state;
    sim_until(s, is_held, "the Lease");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'both-have'}}");
    sim_writes_done(s);
    fork = store_revision(s->store);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'only-here'}}");
    sim_delete(s, "configmaps", "default", "both-have", 0);
    sim_writes_done(s);
    steal(s, "ffffffffffffffffffffffffffffffff", fork);
    sim_until(s, is_superseded, "a later epoch");
    snprintf(path, sizeof(path), "%s/lacking.txt", s->dir);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(text, "written configmaps default/only-here"));
    assert_non_null(strstr(text, "deleted configmaps default/both-have"));
    assert_null(strstr(text, "written configmaps default/both-have"));
    sync_lacking_start(s->syncer, own, arena_printf(a, "%.*s@%lld", STR_F(own), (long long)fork),
                       on_report);
    sim_until(s, has_report, "what it lacks");
    assert_true(str_has_prefix(str_c(reported), STR("it lacks ")));
    sync_lacking_start(s->syncer, own, STR("00000000000000000000000000000000@1"), on_report);
    assert_non_null(strstr(reported, "not known"));
    sim_run_ms(s, 50);
    assert_true(is_superseded(s));
    arena_free(a);
    sim_free(s);
}

int main(void)
{
#define WORLD(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        WORLD(takes_and_renews),
        WORLD(stops_when_no_answer_comes),
        WORLD(starts_while_the_host_is_away),
        WORLD(answers_that_are_lost_are_no_loss),
        WORLD(confirms_on_demand),
        WORLD(no_renewal_is_from_a_moment_to_come),
        WORLD(a_break_of_the_connection_needs_a_renewal),
        WORLD(a_break_while_it_is_taken),
        WORLD(works_without_the_right),
        WORLD(a_quota_is_no_missing_right),
        WORLD(a_copy_waits_until_it_expires),
        WORLD(restart_after_a_kill_waits_for_nothing),
        WORLD(a_record_proves_nothing_elsewhere),
        WORLD(a_release_is_taken_at_once),
        WORLD(release_is_bounded),
        WORLD(force_takes_it_from_a_live_holder),
        WORLD(a_newer_epoch_waits_for_a_live_older_one),
        WORLD(an_older_epoch_never_comes_back_by_itself),
        WORLD(a_restore_while_the_host_is_away_is_found_out),
        WORLD(an_earlier_state_of_the_host_is_noticed),
        WORLD(an_earlier_state_is_noticed_after_a_restart),
        WORLD(another_host_is_noticed),
        cmocka_unit_test(serves_while_the_host_is_away),
        cmocka_unit_test(refuses_while_the_host_is_away_if_told),
        cmocka_unit_test(ends_before_it_is_decided),
        cmocka_unit_test(nothing_goes_out_after_a_break_before_the_lease_is_confirmed),
        cmocka_unit_test(a_stolen_lease_stops_everything),
        cmocka_unit_test(what_a_later_life_lacks_is_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
