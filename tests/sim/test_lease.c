/* SPDX-License-Identifier: Apache-2.0 */
/* The Lease: its state machine with a clock of the test's own, several processes on one host; and
 * what it means for a whole virtual cluster. */
#include "leases.h"

#include <stdlib.h>
#include <unistd.h>

#include <sublet/store_admin.h>

#include "core/turns.h"
#include "engine.h"

/* --- one process --- */

static void takes_and_renews(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);
    cJSON *notes;

    process_launch(a);
    assert_int_equal(sync_lease_state(a->lease), LEASE_UNKNOWN);
    assert_false(sync_lease_may_act(a->lease));
    process_until(a, LEASE_HELD);
    assert_true(sync_lease_may_act(a->lease) && process_holds(a));
    notes = json_path(world_lease(w), "metadata.annotations");
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/epoch")), EARLY));
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/cluster-uid")), UID));
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/fork")), EARLY "@7"));
    assert_int_equal(json_i64_at(world_lease(w), "spec.leaseDurationSeconds", 0), 40);
    assert_int_equal(world_sequence(w), 1);
    fake_host_patch(w->host, "leases", "sim", "{\"metadata\":{\"labels\":{\"mine\":\"1\"}}}");
    world_pass(w, 120000); /* every third of its duration, and a tenth earlier at most */
    assert_in_range(world_sequence(w), 9, 12);
    assert_true(str_eqc(json_str_at(world_lease(w), "metadata.labels.mine"), "1"));
    assert_int_equal(a->changes, 1);
    assert_string_equal(a->why, "");
}

static void stops_when_no_answer_comes(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    fake_host_faults(w->host)->down = true;
    world_pass(w, 29000);
    assert_true(sync_lease_may_act(a->lease));
    world_pass(w, 1500);
    assert_false(sync_lease_may_act(a->lease));
    assert_int_equal(sync_lease_state(a->lease), LEASE_AWAY);
    world_pass(w, 60000);
    fake_host_faults(w->host)->down = false;
    sync_lease_kick(a->lease);
    process_until(a, LEASE_HELD);
    assert_true(sync_lease_may_act(a->lease));
    assert_string_equal(a->why, "");
}

static void starts_while_the_host_is_away(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    fake_host_faults(w->host)->down = true;
    process_launch(a);
    process_until(a, LEASE_AWAY);
    assert_false(sync_lease_may_act(a->lease));
    fake_host_faults(w->host)->down = false;
    world_pass(w, 5500); /* no event says that it is back */
    process_until(a, LEASE_HELD);
}

static void answers_that_are_lost_are_no_loss(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    fake_host_faults(w->host)->lose = 400;
    fake_host_faults(w->host)->fail = 200;
    fake_host_faults(w->host)->busy = 100;
    world_pass(w, 600000);
    *fake_host_faults(w->host) = (struct fake_faults){0};
    world_pass(w, 10000);
    process_until(a, LEASE_HELD);
    assert_string_equal(a->why, "");
}

static void confirms_on_demand(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);
    int64_t since = world_now_ms(w);

    process_launch(a);
    assert_false(sync_lease_confirmed_since(a->lease, since));
    process_until(a, LEASE_HELD);
    assert_int_equal(a->confirmations, 1);
    assert_true(sync_lease_confirmed_since(a->lease, since));
    world_jump(w, 1000);
    since = world_now_ms(w);
    assert_false(sync_lease_confirmed_since(a->lease, since));
    assert_int_equal(world_sequence(w), 1);
    process_until_confirmed(a, 2);
    assert_int_equal(world_sequence(w), 2);
    assert_true(sync_lease_confirmed_since(a->lease, since));
}

static void no_renewal_is_from_a_moment_to_come(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    assert_false(sync_lease_confirmed_since(a->lease, INT64_MAX));
    world_pass(w, 5000);
    assert_in_range(world_sequence(w), 2, 3);
    assert_int_equal(a->confirmations, 1);
}

/* What answers next may be another host: one renewal, sent after the break, says that it is not. */
static void a_break_of_the_connection_needs_a_renewal(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    sync_lease_doubt(a->lease);
    assert_true(sync_lease_is_doubted(a->lease) && sync_lease_may_act(a->lease));
    process_until_certain(a);
    assert_int_equal(world_sequence(w), 2);
    assert_int_equal(a->certainties, 1);
    /* The answer to a request from before the break says nothing. */
    world_jump(w, 1000);
    assert_false(sync_lease_confirmed_since(a->lease, world_now_ms(w)));
    world_run_ms(w, 0);
    sync_lease_doubt(a->lease);
    process_until_certain(a);
    assert_in_range(world_sequence(w), 3, 4);
    assert_int_equal(a->certainties, 2);
    assert_int_equal(a->changes, 1);
}

/* What the break makes doubtful is who leads, not that this process serves. */
static void a_break_while_it_is_taken(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    sync_lease_doubt(a->lease);
    process_until(a, LEASE_HELD);
    assert_true(sync_lease_may_act(a->lease));
    process_until_certain(a);
    assert_int_equal(a->certainties, 1);
    assert_int_equal(a->changes, 1);
}

static void works_without_the_right(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    fake_host_deny(w->host, "get leases", true);
    process_launch(a);
    process_until(a, LEASE_WITHOUT);
    assert_true(sync_lease_may_act(a->lease));
    assert_true(sync_lease_confirmed_since(a->lease, world_now_ms(w)));
    fake_host_deny(w->host, "get leases", false);
    fake_host_deny(w->host, "create leases", true);
    world_pass(w, 301000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_WITHOUT);
    fake_host_deny(w->host, "create leases", false);
    world_pass(w, 301000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_HELD);
}

/* A quota that is used up, a namespace that is terminating: no right is missing, so a second
 * process has to be expected. */
static void a_quota_is_no_missing_right(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    fake_host_faults(w->host)->full = "leases";
    process_launch(a);
    process_until(a, LEASE_AWAY);
    assert_false(sync_lease_may_act(a->lease));
    fake_host_faults(w->host)->full = NULL;
    world_pass(w, 5500);
    process_until(a, LEASE_HELD);
}

/* --- two processes --- */

/* Nothing was written since it was copied. */
static void a_copy_waits_until_it_expires(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_write(a, 1);
    process_copy(w, 0, 1);
    process_launch(b);
    process_until(b, LEASE_WAITING);
    assert_string_equal(b->other, sync_lease_identity(a->lease));
    world_pass(w, 200000);
    assert_true(process_holds(a));
    process_kill(a);
    world_pass(w, 25000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_WAITING);
    world_pass(w, 20000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
    assert_true(process_holds(b));
    assert_int_equal(json_i64_at(world_lease(w), "spec.leaseTransitions", 0), 1);
    assert_string_equal(b->why, "");
    process_launch(a);
    process_until(a, LEASE_SUPERSEDED);
}

static void restart_after_a_kill_waits_for_nothing(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);
    struct str record;

    for (int i = 0; i < 12; i++) { /* more than are remembered */
        process_launch(a);
        process_until(a, LEASE_HELD);
        assert_string_equal(a->why, "");
        process_kill(a);
    }
    fake_host_faults(w->host)->down = true; /* one that never held it, in between */
    process_launch(a);
    process_until(a, LEASE_AWAY);
    assert_true(store_record_get(a->store, RECORD_META, STR("lease-holder"), &record));
    assert_in_range(record.n, 100, 500);
    process_kill(a);
    fake_host_faults(w->host)->down = false;
    process_launch(a);
    process_until(a, LEASE_HELD);
}

/* As a copied directory has it: the record is there, and the file is another. */
static void a_record_proves_nothing_elsewhere(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);
    struct str record;

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_copy(w, 0, 1);
    process_launch(b);
    process_until(b, LEASE_WAITING);
    assert_true(store_record_get(b->store, RECORD_META, STR("lease-holder"), &record));
    assert_true(str_contains(record, str_c(sync_lease_identity(a->lease))));
}

static void a_release_is_taken_at_once(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_end(a);
    assert_int_equal(json_str_at(world_lease(w), "spec.holderIdentity").n, 0);
    process_copy(w, 0, 1);
    process_launch(b);
    process_until(b, LEASE_HELD);
    assert_string_equal(b->why, "");
}

static void release_is_bounded(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    fake_host_faults(w->host)->max_delay_ms = 100000;
    sync_lease_release(a->lease, process_on_flag, a);
    world_run_ms(w, 20);
    assert_false(a->flag);
    world_jump(w, 1000);
    sync_lease_wake(a->lease);
    process_wait_flag(a);
    process_kill(a);
}

/* Of older data. */
static void force_takes_it_from_a_live_holder(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);
    cJSON *notes;

    process_launch(a);
    process_until(a, LEASE_HELD);
    b->force = true;
    process_launch(b);
    process_until(b, LEASE_HELD);
    world_jump(w, DURATION_MS / 3); /* its renewal meets a 409 */
    sync_lease_wake(a->lease);
    process_until(a, LEASE_SUPERSEDED);
    assert_string_equal(a->other, sync_lease_identity(b->lease));
    world_pass(w, 100000); /* force was for once */
    assert_true(process_holds(b));
    notes = json_path(world_lease(w), "metadata.annotations");
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/taken")), "--force"));
    assert_string_equal(a->why, "");
    assert_string_equal(b->after.epoch, "");
}

/* --- epochs --- */

static void a_newer_epoch_waits_for_a_live_older_one(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_launch(b);
    process_until(b, LEASE_WAITING);
    world_pass(w, 100000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_WAITING);
    process_end(a);
    world_pass(w, 5500);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
}

static void an_older_epoch_never_comes_back_by_itself(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);

    process_launch(b);
    process_until(b, LEASE_HELD);
    process_launch(a);
    process_until(a, LEASE_SUPERSEDED);
    assert_string_equal(a->other, sync_lease_identity(b->lease));
    process_kill(b);
    world_pass(w, 100000); /* expired, too */
    assert_int_equal(sync_lease_state(a->lease), LEASE_SUPERSEDED);
    process_kill(a);
    process_launch(a);
    process_until(a, LEASE_SUPERSEDED);
    process_kill(a);
    a->force = true; /* not in this epoch */
    process_launch(a);
    world_pass(w, 1000);
    assert_false(sync_lease_may_act(a->lease));
    assert_string_equal(a->after.epoch, LATE);
}

static void a_restore_while_the_host_is_away_is_found_out(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_kill(a);
    process_launch(b); /* on another directory: it waits for the dead one to expire */
    process_until(b, LEASE_WAITING);
    world_pass(w, 46000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
    fake_host_faults(w->host)->down = true;
    process_launch(a);
    process_until(a, LEASE_AWAY);
    fake_host_faults(w->host)->down = false;
    sync_lease_kick(a->lease);
    process_until(a, LEASE_SUPERSEDED);
    sync_lease_kick(b->lease);
    world_pass(w, 15000);
    assert_true(process_holds(b));
}

/* --- a Lease that is missing --- */

/* Data that had one: another process may lead, and lack the Lease as well. */
static void a_missing_lease_is_created_after_its_time(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_kill(a);
    fake_host_remove(w->host, "leases", "sim");
    process_launch(a);
    process_until(a, LEASE_AWAY);
    world_pass(w, 38000);
    assert_null(world_lease(w));
    assert_false(sync_lease_may_act(a->lease));
    world_pass(w, 4000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_HELD);
    assert_string_equal(a->why, "its Lease is missing");
}

/* The leader's next renewal creates it. */
static void an_older_epoch_leaves_it_to_a_live_newer_one(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_copy(w, 0, 1);
    process_end(a);
    process_launch(b);
    process_until(b, LEASE_HELD);
    fake_host_remove(w->host, "leases", "sim");
    process_launch(a);
    process_until(a, LEASE_AWAY);
    world_pass(w, 20000);
    assert_int_equal(sync_lease_state(a->lease), LEASE_SUPERSEDED);
    assert_true(process_holds(b));
    assert_int_equal(b->changes, 1);
}

static void one_that_waits_leaves_it_to_the_holder(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_launch(b); /* of a directory that never led */
    process_until(b, LEASE_WAITING);
    fake_host_remove(w->host, "leases", "sim");
    world_pass(w, 14000);
    assert_true(process_holds(a));
    assert_int_equal(sync_lease_state(b->lease), LEASE_WAITING);
    process_kill(a);
    fake_host_remove(w->host, "leases", "sim");
    world_pass(w, 48000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_HELD);
}

/* A host that lets it read Leases, and not create them. */
static void a_missing_right_to_create_it_is_found_out(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);

    process_launch(a);
    process_until(a, LEASE_HELD);
    process_launch(b);
    process_until(b, LEASE_WAITING);
    process_kill(a);
    fake_host_remove(w->host, "leases", "sim");
    fake_host_deny(w->host, "create leases", true);
    world_pass(w, 48000);
    assert_int_equal(sync_lease_state(b->lease), LEASE_WITHOUT);
}

/* It knows of no Lease, and finds none: it takes it beside the one that leads. */
static void a_newer_epoch_takes_it_back(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);
    cJSON *notes;

    process_launch(b);
    process_until(b, LEASE_HELD);
    fake_host_remove(w->host, "leases", "sim");
    process_launch(a);
    process_until(a, LEASE_HELD);
    world_jump(w, DURATION_MS / 3);
    sync_lease_wake(b->lease);
    process_until(b, LEASE_WAITING); /* a acts until its next renewal */
    assert_string_equal(b->other, sync_lease_identity(a->lease));
    notes = json_path(world_lease(w), "metadata.annotations");
    assert_true(str_eqc(json_str(json_get(notes, "sublet.dev/taken")), "a later epoch has led"));
    sync_lease_wake(a->lease);
    process_until(a, LEASE_SUPERSEDED);
    assert_string_equal(a->other, sync_lease_identity(b->lease));
    process_kill(b); /* its successor stands by as well, as long as b would have */
    process_launch(b);
    process_until(b, LEASE_WAITING);
    assert_string_equal(b->other, sync_lease_identity(a->lease));
    world_pass(w, DURATION_MS);
    assert_true(process_holds(b));
    world_pass(w, 100000);
    assert_true(process_holds(b));
    notes = json_path(world_lease(w), "metadata.annotations");
    assert_null(json_get(notes, "sublet.dev/stands-by-for"));
}

/* As above, and its process is another by then. */
static void a_newer_epoch_takes_it_back_after_a_restart(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY), *b = process_new(w, 1, LATE);

    process_launch(b);
    process_until(b, LEASE_HELD);
    process_kill(b);
    fake_host_remove(w->host, "leases", "sim");
    process_launch(a);
    process_until(a, LEASE_HELD);
    process_launch(b);
    process_until(b, LEASE_WAITING);
    world_pass(w, DURATION_MS);
    process_until(a, LEASE_SUPERSEDED);
    process_until(b, LEASE_HELD);
}

/* --- hosts that are not what they were --- */

static void an_earlier_state_of_the_host_is_noticed(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    world_pass(w, 60000);
    fake_host_patch(w->host, "leases", "sim",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/sequence\":\"2\"}}}");
    world_pass(w, 14000);
    assert_string_equal(a->why, "its Lease is in an earlier state than before");
    a->why[0] = '\0';
    world_pass(w, 60000); /* said once */
    assert_string_equal(a->why, "");
    process_kill(a);
    process_launch(a);
    process_until(a, LEASE_HELD);
    assert_string_equal(a->why, "");
}

/* Only what was put on record is known after a restart. */
static void an_earlier_state_is_noticed_after_a_restart(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    world_pass(w, 60000);
    sync_lease_note(a->lease);
    process_kill(a);
    fake_host_patch(w->host, "leases", "sim",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/sequence\":\"2\"}}}");
    process_launch(a);
    process_until(a, LEASE_HELD);
    assert_string_equal(a->why, "its Lease is in an earlier state than before");
}

static void another_host_is_noticed(void **state)
{
    struct world *w = *state;
    struct process *a = process_new(w, 0, EARLY);

    process_launch(a);
    process_until(a, LEASE_HELD);
    fake_host_remove(w->host, "leases", "sim");
    world_pass(w, 14000);
    assert_string_equal(a->why, "its Lease is missing");
    assert_true(process_holds(a));
    process_end(a);
    fake_host_remove(w->host, "leases", "sim");
    fake_host_put(w->host, "leases",
                  "{\"metadata\":{\"name\":\"sim\",\"annotations\":{\"sublet.dev/sequence\":"
                  "\"900\"}},\"spec\":{\"holderIdentity\":\"\"}}");
    process_launch(a);
    process_until(a, LEASE_HELD);
    assert_string_equal(a->why, "its Lease is another one than before");
    assert_int_equal(world_sequence(w), 901);
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

static bool is_away(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_AWAY;
}

static bool is_waiting(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_WAITING;
}

static void serves_while_the_host_is_away(void **state)
{
    struct sim *s = sim_new(7, NULL);

    (void)state;
    sim_until(s, sim_leads, "the Lease");
    fake_host_faults(s->host)->down = true;
    sim_close(s);
    sim_open(s);
    sim_until(s, is_away, "the host to be away");
    sim_create(s, "pods", "default", POD);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    fake_host_faults(s->host)->down = false;
    sim_until(s, pod_is_on_host, "the pod on the host");
    sim_until(s, sim_leads, "the Lease");
    sim_free(s);
}

static void refuses_while_the_host_is_away_if_told(void **state)
{
    struct sim *s = sim_new(8, "lease: {hostAway: readOnly}\n");

    (void)state;
    sim_until(s, sim_leads, "the Lease");
    fake_host_faults(s->host)->down = true;
    sim_close(s);
    sim_open(s);
    sim_until(s, is_away, "the host to be away");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'c'}}");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "lease.hostAway"));
    fake_host_faults(s->host)->down = false;
    sim_until(s, sim_leads, "the Lease");
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
    sim_until(s, sim_leads, "the Lease");
    fake_host_faults(s->host)->lose = 1000;
    sim_close(s);
    sim_open(s);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'c'}}");
    sim_close(s);
    assert_int_equal(s->writes, 0);
    assert_non_null(strstr(s->refusal, "ends before the host cluster has answered"));
    fake_host_faults(s->host)->lose = 0;
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    sim_free(s);
}

/* Behind the same address there is another host, or another process led meanwhile. */
static void nothing_goes_out_after_a_break_before_the_lease_is_confirmed(void **state)
{
    struct sim *s = sim_new(12, NULL);

    (void)state;
    sim_until(s, has_account, "the account of pods");
    sim_until(s, sim_leads, "the Lease");
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

/* Where data of another epoch branched off from ours, which has led. */
static struct str branch_at(struct sim *s, struct arena *a, int64_t fork)
{
    char *turns = arena_cstr(a, sync_turns_print(sync_lease_turns(s->syncer->lease), a));

    for (char *c = turns; *c; c++)
        *c = *c == ' ' ? ',' : *c;
    return arena_printf(a, "%.*s@%lld/-/%s", STR_F(s->syncer->tenant.epoch), (long long)fork,
                        turns);
}

/* Another holds the Lease as of now, with this epoch, forked off here. */
static void steal(struct sim *s, const char *epoch, int64_t fork)
{
    struct arena *a = arena_new(0);
    struct str branch = branch_at(s, a, fork);
    struct str json = arena_printf(
        a,
        "{\"metadata\":{\"annotations\":{\"sublet.dev/epoch\":\"%.*s\",\"sublet.dev/fork\":"
        "\"%.*s\"}},\"spec\":{\"holderIdentity\":\"other_1\"}}",
        STR_F(epoch ? str_c(epoch) : s->syncer->tenant.epoch), STR_F(branch));

    fake_host_patch(s->host, "leases", "sim", json.p);
    sync_lease_confirmed_since(s->syncer->lease, clock_mono_ms(&s->clock) + 1);
    arena_free(a);
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
    sim_until(s, sim_leads, "the Lease"); /* within a poll */
    sim_delete(s, "pods", "default", "p", 0);
    sim_writes_done(s);
    sim_free(s);
}

static bool has_listed(struct sim *s)
{
    return sim_is_superseded(s) && !s->syncer->lacking;
}

static void read_lacking(struct sim *s, char *text, size_t size)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/lacking.txt", s->dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, size - 1, f);
    fclose(f);
    assert_true(n > 0);
    text[n] = '\0';
}

/* A write that is answered after the Lease was lost belongs to the report. */
static void what_is_being_written_is_listed(void **state)
{
    struct sim *s = sim_new(11, NULL);
    struct str own = s->syncer->tenant.epoch, fork;
    char listed[8192];

    (void)state;
    sim_until(s, sim_leads, "the Lease");
    fork = arena_printf(s->arena, "%.*s@%lld", STR_F(own), (long long)store_revision(s->store));
    s->report[0] = '\0';
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'under-way'}}");
    sync_lacking_start(s->syncer, own, fork, sim_on_report);
    sim_until(s, sim_has_report, "what it lacks");
    read_lacking(s, listed, sizeof(listed));
    assert_non_null(strstr(listed, "written configmaps default/under-way"));
    sim_writes_done(s);
    sim_free(s);
}

static void what_a_later_life_lacks_is_listed(void **state)
{
    struct sim *s = sim_new(10, NULL);
    struct arena *a = arena_new(0);
    char text[4096];
    struct str own = s->syncer->tenant.epoch;
    int64_t fork;

    (void)state;
    sim_until(s, sim_leads, "the Lease");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'both-have'}}");
    sim_writes_done(s);
    fork = store_revision(s->store);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'only-here'}}");
    sim_delete(s, "configmaps", "default", "both-have", 0);
    sim_writes_done(s);
    steal(s, "ffffffffffffffffffffffffffffffff", fork);
    sim_until(s, has_listed, "a later epoch");
    read_lacking(s, text, sizeof(text));
    assert_non_null(strstr(text, "written configmaps default/only-here"));
    assert_non_null(strstr(text, "deleted configmaps default/both-have"));
    assert_null(strstr(text, "written configmaps default/both-have"));
    sync_lacking_start(s->syncer, own, branch_at(s, a, fork), sim_on_report);
    sim_until(s, sim_has_report, "what it lacks");
    assert_true(str_has_prefix(str_c(s->report), STR("it lacks ")));
    sync_lacking_start(s->syncer, own, STR("00000000000000000000000000000000@1"), sim_on_report);
    assert_non_null(strstr(s->report, "not known"));
    sim_run_ms(s, 50);
    assert_true(sim_is_superseded(s));
    arena_free(a);
    sim_free(s);
}

/* A list that cannot have all deletions says up to where. */
static void unknown_deletions_are_in_the_list(void **state)
{
    struct sim *s = sim_new(15, NULL);
    struct arena *a = arena_new(0);
    char text[32768];

    (void)state;
    sim_until(s, sim_leads, "the Lease");
    assert_int_equal(store_oldest_revision(s->store), 1);
    s->report[0] = '\0';
    sync_lacking_start(s->syncer, s->syncer->tenant.epoch, branch_at(s, a, 0), sim_on_report);
    sim_until(s, sim_has_report, "what it lacks");
    read_lacking(s, text, sizeof(text));
    assert_non_null(strstr(text, "\nunknown deletions up to revision 1\n"));
    assert_non_null(strstr(s->report, ", and deletions that history no longer has"));
    assert_non_null(strstr(s->report, "(all of them in lacking.txt"));
    arena_free(a);
    sim_free(s);
}

static bool later_epoch_is_reported(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "")) found |=
        str_eqc(json_str_at(event, "reason"), "LaterEpochOnHost") &&
        str_contains(json_str_at(event, "message"), STR("pods default/p"));
    arena_free(a);
    return found;
}

static bool sees_later_epoch(struct sim *s)
{
    return s->syncer->later_epoch[0];
}

/* Newer data led here, and its Lease is lost. */
static void objects_of_a_later_epoch_are_reported(void **state)
{
    struct sim *s = sim_new(13, NULL);
    char host_name[64];

    (void)state;
    sim_until(s, has_account, "the account of pods");
    sim_create(s, "pods", "default", POD);
    sim_until(s, pod_is_on_host, "the pod on the host");
    assert_false(later_epoch_is_reported(s));
    translate_name(&s->syncer->tenant, STR("default"), STR("p"), host_name);
    fake_host_patch(s->host, "pods", host_name,
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/epoch\":"
                    "\"ffffffffffffffffffffffffffffffff\"}}}");
    sim_until(s, later_epoch_is_reported, "the later epoch");
    /* What changes it would make it this data's own, and then it would be deleted. */
    sim_patch(s, "pods", "default", "p", "{'metadata':{'labels':{'changed':'yes'}}}");
    sim_writes_done(s);
    sim_run_ms(s, 200);
    assert_int_equal(fake_host_asked(s->host, "PATCH", "pods", false), 0);
    sim_delete(s, "pods", "default", "p", 0);
    sim_writes_done(s);
    sim_run_ms(s, 200);
    assert_true(pod_is_on_host(s));
    sim_close(s); /* a start finds it in its first list */
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    sim_until(s, sees_later_epoch, "the later epoch, after a restart");
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
        WORLD(a_missing_lease_is_created_after_its_time),
        WORLD(an_older_epoch_leaves_it_to_a_live_newer_one),
        WORLD(one_that_waits_leaves_it_to_the_holder),
        WORLD(a_missing_right_to_create_it_is_found_out),
        WORLD(a_newer_epoch_takes_it_back),
        WORLD(a_newer_epoch_takes_it_back_after_a_restart),
        WORLD(an_earlier_state_of_the_host_is_noticed),
        WORLD(an_earlier_state_is_noticed_after_a_restart),
        WORLD(another_host_is_noticed),
        cmocka_unit_test(serves_while_the_host_is_away),
        cmocka_unit_test(refuses_while_the_host_is_away_if_told),
        cmocka_unit_test(ends_before_it_is_decided),
        cmocka_unit_test(nothing_goes_out_after_a_break_before_the_lease_is_confirmed),
        cmocka_unit_test(a_stolen_lease_stops_everything),
        cmocka_unit_test(what_a_later_life_lacks_is_listed),
        cmocka_unit_test(unknown_deletions_are_in_the_list),
        cmocka_unit_test(what_is_being_written_is_listed),
        cmocka_unit_test(objects_of_a_later_epoch_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
