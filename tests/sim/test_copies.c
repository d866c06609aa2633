/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a data directory: by rsync, or restored from a snapshot of the volume. One that is
 * older than what led last never leads in the same epoch; one that is all there is goes on. */
#include "leases.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "engine.h"

/* --- older copies --- */

static const char *fork_at(struct world *w, int64_t revision)
{
    return arena_printf(w->arena, EARLY "@%lld", (long long)revision).p;
}

/* It leads and has written; directory 1 is a copy of its own as it is now. Where the two part. */
static const char *lead_and_copy(struct world *w, struct process *p)
{
    process_launch(p);
    process_until(p, LEASE_HELD);
    process_write(p, 5);
    process_copy(w, 0, 1);
    return fork_at(w, store_revision(p->store));
}

static void expect_superseded(struct process *p, const char *fork)
{
    process_launch(p);
    process_until(p, LEASE_SUPERSEDED);
    assert_false(sync_lease_may_act(p->lease));
    assert_string_equal(p->fork, fork);
}

/* The original was started again since. */
static void an_older_copy_never_leads(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    const char *fork;

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_write(a, 5);
    fork = fork_at(w, store_revision(a->store));
    process_end(a);
    process_copy(w, 0, 1);
    process_launch(a);
    process_until(a, LEASE_HELD);
    process_write(a, 5);

    expect_superseded(b, fork);
    assert_string_equal(b->other, sync_lease_identity(a->lease));
    process_kill(a);
    world_pass(w, 100000); /* it expires */
    assert_int_equal(sync_lease_state(b->lease), LEASE_SUPERSEDED);
    process_kill(b);
    expect_superseded(b, fork);
    process_kill(b);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_end(a);
    expect_superseded(b, fork); /* released */
    assert_string_equal(b->other, "");
    process_kill(b);
    process_launch(a); /* the newest goes on */
    process_until(a, LEASE_HELD);
    assert_string_equal(a->why, "");
}

/* Both have the same turns: the copy ends before the revision that the last one reached. */
static void a_copy_of_a_running_process_is_older_once_it_writes(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    const char *fork = lead_and_copy(w, a);

    process_launch(b);
    process_until(b, LEASE_WAITING);
    process_write(a, 1);
    world_pass(w, 20000); /* a renewal, and a look at it */
    assert_int_equal(sync_lease_state(b->lease), LEASE_SUPERSEDED);
    assert_string_equal(b->fork, fork);
    process_kill(a);
    process_kill(b);
    expect_superseded(b, fork);
}

/* The revision of the end is the last word. */
static void a_copy_of_a_running_process_that_ends(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    const char *fork = lead_and_copy(w, a);

    process_write(a, 1);
    process_end(a);
    expect_superseded(b, fork);
}

/* It cannot know: what it wrote meanwhile does not make it newer. */
static void a_copy_that_served_while_the_host_was_away(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    const char *fork = lead_and_copy(w, a);

    process_write(a, 10);
    process_end(a);
    fake_host_faults(w->host)->down = true;
    for (int i = 0; i < 3; i++) {
        process_launch(b);
        process_until(b, LEASE_AWAY);
        process_write(b, 20);
        process_kill(b);
    }
    fake_host_faults(w->host)->down = false;
    expect_superseded(b, fork);
}

/* That the other directory still exists shows when it is started again. */
static void two_that_go_on_from_one_state(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    const char *fork = lead_and_copy(w, a);

    process_kill(a);
    process_launch(b);
    process_until(b, LEASE_WAITING);
    world_pass(w, 46000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
    for (int i = 0; i < 3; i++) {
        process_write(b, 5);
        process_kill(b);
        process_launch(b);
        process_until(b, LEASE_HELD);
    }
    expect_superseded(a, fork);
    process_kill(a);
    expect_superseded(a, fork);
}

static void a_leader_that_was_away_too_long(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    const char *fork = lead_and_copy(w, a);

    fake_host_faults(w->host)->down = true;
    world_pass(w, 46000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_AWAY);
    process_write(a, 5);
    fake_host_faults(w->host)->down = false;
    process_launch(b); /* the first to reach it */
    process_until(b, LEASE_WAITING);
    fake_host_patch(w->host, "leases", "sim", "{\"spec\":{\"holderIdentity\":\"\"}}");
    sync_lease_kick(b->lease);
    process_until(b, LEASE_HELD);
    sync_lease_kick(a->lease);
    process_until(a, LEASE_SUPERSEDED);
    assert_string_equal(a->fork, fork);
    assert_string_equal(a->other, sync_lease_identity(b->lease));
}

/* --- what goes on --- */

static void a_moved_directory_goes_on(void **state)
{
    struct world *w = *state;
    struct process *p[3];

    for (size_t i = 0; i < 3; i++) {
        p[i] = process_new(w, i, EARLY);
        process_launch(p[i]);
        process_until(p[i], LEASE_HELD);
        assert_string_equal(p[i]->why, "");
        process_write(p[i], 5);
        process_end(p[i]);
        if (i < 2)
            process_copy(w, i, i + 1);
    }
    process_launch(p[0]); /* left behind */
    process_until(p[0], LEASE_SUPERSEDED);
}

static void a_directory_moved_after_a_kill_goes_on(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_write(a, 5);
    world_pass(w, 14000);
    process_write(a, 5);
    process_kill(a);
    process_copy(w, 0, 1);
    process_launch(b);
    process_until(b, LEASE_WAITING);
    world_pass(w, 46000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
    assert_string_equal(b->why, "");
}

/* More than turns are kept. */
static void restarts_go_on(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    for (int i = 0; i < 36; i++) {
        bool away = i % 3 == 1 || (i > 9 && i < 24);

        fake_host_faults(w->host)->down = away;
        process_launch(a);
        process_until(a, away ? LEASE_AWAY : LEASE_HELD);
        process_write(a, 3);
        if (i % 2)
            process_kill(a);
        else
            process_end(a);
    }
}

/* Its answer is lost each time: the take may have been executed or not. */
static void takes_without_an_answer_go_on(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_kill(a);
    for (int i = 0; i < 20; i++) {
        fake_host_faults(w->host)->lose = 600;
        process_launch(a);
        world_run_ms(w, 10);
        process_write(a, 1);
        process_kill(a);
    }
    fake_host_faults(w->host)->lose = 0;
    process_launch(a);
    process_until(a, LEASE_HELD);
}

/* The Lease there is of turns that are long forgotten. */
static void a_host_that_was_rolled_back_is_no_newer_data(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);
    struct fake_host_image *image;

    process_launch(a);
    process_until(a, LEASE_HELD);
    image = fake_host_image(w->host);
    for (int i = 0; i < 12; i++) {
        process_kill(a);
        process_launch(a);
        process_until(a, LEASE_HELD);
    }
    process_kill(a);
    fake_host_roll_back(w->host, image);
    process_launch(a);
    process_until(a, LEASE_WAITING); /* its holder is not known to be dead any more */
    world_pass(w, 46000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_HELD);
    assert_string_equal(a->why, "its Lease is in an earlier state than before");
}

/* A copy from before the rollback has seen the Lease further on than it is then. */
static void the_sequence_outlives_a_rollback(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    struct fake_host_image *image;
    int64_t before;

    process_launch(a);
    process_until(a, LEASE_HELD);
    image = fake_host_image(w->host);
    world_pass(w, 200000);
    sync_lease_note(a->lease);
    process_write(a, 5);
    before = world_sequence(w);
    process_end(a);
    process_copy(w, 0, 1);
    fake_host_roll_back(w->host, image);
    process_launch(a);
    process_until(a, LEASE_HELD);
    assert_string_equal(a->why, "its Lease is in an earlier state than before");
    assert_true(world_sequence(w) > before);
    process_write(a, 5);
    process_kill(a);
    process_launch(b);
    process_until(b, LEASE_SUPERSEDED);
}

/* What is not known proves nothing. */
static void a_lost_record_goes_on(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);
    const char *path = arena_printf(w->arena, "%s/state.db", w->dirs[0]).p;
    sqlite3 *sql;

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_end(a);
    assert_int_equal(sqlite3_open(path, &sql), SQLITE_OK);
    sqlite3_exec(sql, "UPDATE record SET value = x'00' WHERE CAST(key AS TEXT) = 'lease-turns'",
                 NULL, NULL, NULL);
    assert_string_equal(sqlite3_errmsg(sql), "not an error");
    assert_int_equal(sqlite3_changes(sql), 1);
    sqlite3_close(sql);
    fake_host_faults(w->host)->down = true;
    for (int i = 0; i < 2; i++) {
        process_launch(a);
        process_until(a, LEASE_AWAY);
        process_write(a, 1);
        process_kill(a);
    }
    fake_host_faults(w->host)->down = false;
    process_launch(a);
    process_until(a, LEASE_HELD);
    process_kill(a);
    process_launch(a);
    process_until(a, LEASE_HELD);
    assert_null(strstr(arena_cstr(w->arena, json_text(w->arena, world_lease(w))), "*"));
}

/* Its process knows no turns, and leaves none or those of before. */
static void a_lease_of_an_earlier_version_goes_on(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_kill(a);
    fake_host_patch(w->host, "leases", "sim",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/turns\":null,"
                    "\"sublet.dev/revision\":null}},\"spec\":{\"holderIdentity\":\"\"}}");
    process_launch(a);
    process_until(a, LEASE_HELD);
    assert_string_equal(a->why, "");
}

/* --- --force --- */

static void force_wants_a_new_life(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);

    lead_and_copy(w, a);
    b->force = true;
    process_launch(b); /* it is the same by now, but the other one lives */
    while (!b->after.epoch[0])
        world_run_ms(w, 2);
    assert_string_equal(b->after.epoch, EARLY);
    process_kill(b);

    b->after.epoch[0] = '\0';
    process_write(a, 5);
    process_end(a);
    process_launch(b); /* it is older, and no process leads */
    while (!b->after.epoch[0])
        world_run_ms(w, 2);
    assert_string_equal(b->after.epoch, EARLY);
    assert_int_equal(b->after.revision, world_revision(w));
    world_pass(w, 100000);
    assert_false(sync_lease_may_act(b->lease));
}

/* --- a whole virtual cluster --- */

#define POD(name)                                                                                  \
    "{'metadata':{'name':'" name "'},'spec':{'containers':[{'name':'c','image':'i'}]}}"

static bool is_away(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_AWAY;
}

static bool has_listed(struct sim *s)
{
    return sim_is_superseded(s) && !s->syncer->lacking;
}

static bool wants_new_life(struct sim *s)
{
    return s->after.epoch[0];
}

static bool has_account(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool there = sim_get(s, a, "serviceaccounts", "default", "default") != NULL;

    arena_free(a);
    return there;
}

static bool both_are_on_host(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 2;
}

static bool one_is_on_host(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 1;
}

static bool one_is_in_quarantine(struct sim *s)
{
    return sync_quarantine_count(s->syncer, SYNC_PODS) == 1;
}

static const char *lacking(struct sim *s)
{
    FILE *f = fopen(arena_printf(s->arena, "%s/lacking.txt", s->dir).p, "r");
    char *text = arena_alloc(s->arena, 4096);
    size_t n = f ? fread(text, 1, 4095, f) : 0;

    assert_non_null(f);
    text[n] = '\0';
    fclose(f);
    return text;
}

/* The copy is made between two pods; the tenant then deletes the first. */
static struct sim *begin(uint64_t seed)
{
    struct sim *s = sim_new(seed, NULL);

    sim_until(s, has_account, "the account of pods");
    sim_create(s, "pods", "default", POD("first"));
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'before'}}");
    sim_writes_done(s);
    sim_until(s, one_is_on_host, "a pod");
    sim_close(s);
    sim_copy(s, "copy");
    sim_open(s);
    sim_create(s, "pods", "default", POD("second"));
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'later'}}");
    sim_writes_done(s);
    sim_until(s, both_are_on_host, "another pod");
    return s;
}

static void an_older_copy_touches_nothing(void **state)
{
    struct sim *s = begin(1);
    unsigned changes;

    (void)state;
    sim_close(s);
    sim_swap(s, "copy");
    changes = fake_host_asked(s->host, "PUT", "leases", false);
    sim_open(s);
    sim_until(s, sim_is_superseded, "that this data is older");
    sim_delete(s, "pods", "default", "first", 0);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'lost'}}");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "has led this virtual cluster since this data did"));
    assert_non_null(strstr(s->syncer->not_leading, "superseded"));
    sim_run_ms(s, 200);
    assert_true(both_are_on_host(s));
    assert_int_equal(fake_host_asked(s->host, "PUT", "leases", false), changes);
    sim_close(s);
    sim_swap(s, "copy");
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    sim_free(s);
}

/* As a restored backup does: what it lacks is kept, and the original lists what it has alone. */
static void an_older_copy_goes_on_in_a_new_epoch(void **state)
{
    struct sim *s = begin(2);
    struct store_identity first, second;
    int64_t revision = store_revision(s->store);

    (void)state;
    store_identity(s->store, &first);
    sim_close(s);
    sim_swap(s, "copy");
    s->config.lease_force = true;
    sim_open(s);
    sim_until(s, wants_new_life, "a new life");
    sim_close(s);
    sim_open(s);
    s->config.lease_force = false;
    sim_until(s, sim_leads, "the Lease");
    store_identity(s->store, &second);
    assert_true(strcmp(second.epoch, first.epoch) > 0);
    assert_string_equal(second.from, first.epoch);
    assert_true(store_oldest_revision(s->store) > revision);
    sim_until(s, one_is_in_quarantine, "the pod that it lacks");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'here'}}");
    sim_writes_done(s);
    assert_true(both_are_on_host(s));
    sim_close(s); /* a restart goes on */
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    store_identity(s->store, &first);
    assert_string_equal(first.epoch, second.epoch);

    sim_close(s);
    sim_swap(s, "copy");
    memset(&s->after, 0, sizeof(s->after));
    sim_open(s);
    sim_until(s, has_listed, "what a later epoch lacks");
    assert_non_null(strstr(lacking(s), "written configmaps default/later"));
    assert_non_null(strstr(lacking(s), "written pods default/second"));
    assert_null(strstr(lacking(s), "configmaps default/before"));
    assert_true(both_are_on_host(s));
    sim_free(s);
}

/* A copy that served while the host was away, until a later life took over: its own writes have
 * revisions that the original had given before that life branched off. */
static void a_copy_lists_what_a_later_epoch_lacks(void **state)
{
    struct sim *s = begin(3);

    (void)state;
    sim_backup(s, "backup");
    sim_close(s);
    sim_swap(s, "copy");
    fake_host_faults(s->host)->down = true;
    sim_open(s);
    sim_until(s, is_away, "that the host is away");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'own'}}");
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    sim_close(s);
    fake_host_faults(s->host)->down = false;
    sim_swap(s, "copy");
    sim_open(s);
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    sim_close(s);
    sim_swap(s, "copy");
    sim_open(s);
    sim_until(s, has_listed, "what a later epoch lacks");
    assert_non_null(strstr(lacking(s), "written configmaps default/own"));
    assert_null(strstr(lacking(s), "configmaps default/before"));
    sim_free(s);
}

/* Neither descends from the other. */
static void two_restores_of_one_backup_part_where_it_ends(void **state)
{
    struct sim *s = begin(4);

    (void)state;
    sim_backup(s, "backup");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'after-it'}}");
    sim_writes_done(s);
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'own'}}");
    sim_writes_done(s);
    sim_close(s);
    sim_swap(s, "copy");
    sim_open(s);
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'of-the-other'}}");
    sim_writes_done(s);
    sim_close(s);
    sim_swap(s, "copy");
    sim_open(s);
    sim_until(s, has_listed, "what the other restore lacks");
    assert_non_null(strstr(lacking(s), "written configmaps default/own"));
    assert_null(strstr(lacking(s), "configmaps default/before"));
    assert_null(strstr(lacking(s), "configmaps default/later"));
    assert_null(strstr(lacking(s), "of-the-other"));
    assert_true(both_are_on_host(s));
    sim_free(s);
}

int main(void)
{
#define WORLD(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        WORLD(an_older_copy_never_leads),
        WORLD(a_copy_of_a_running_process_is_older_once_it_writes),
        WORLD(a_copy_of_a_running_process_that_ends),
        WORLD(a_copy_that_served_while_the_host_was_away),
        WORLD(two_that_go_on_from_one_state),
        WORLD(a_leader_that_was_away_too_long),
        WORLD(a_moved_directory_goes_on),
        WORLD(a_directory_moved_after_a_kill_goes_on),
        WORLD(restarts_go_on),
        WORLD(takes_without_an_answer_go_on),
        WORLD(a_host_that_was_rolled_back_is_no_newer_data),
        WORLD(the_sequence_outlives_a_rollback),
        WORLD(a_lost_record_goes_on),
        WORLD(a_lease_of_an_earlier_version_goes_on),
        WORLD(force_wants_a_new_life),
        cmocka_unit_test(an_older_copy_touches_nothing),
        cmocka_unit_test(an_older_copy_goes_on_in_a_new_epoch),
        cmocka_unit_test(a_copy_lists_what_a_later_epoch_lacks),
        cmocka_unit_test(two_restores_of_one_backup_part_where_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
