/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger has of verdicts: changes, so many a day at most, and no verdict that outlives the
 * process that had it. */
#include "world.h"

#include "ledger/uses.h"

#define DO(call)  assert_int_equal((call), 0)
#define MINUTE    (60 * SECOND)
#define N_UNKNOWN N_ACTIVITY_STATES /* of a look that shows no pod */

struct fixture {
    struct world w;
    struct uses *u;
    int64_t now;
};

static void start(struct fixture *f)
{
    struct fleet_records r;

    world_start(&f->w, BEGIN);
    DO(ledger_read(f->w.a, f->w.location, LEDGER_OPEN, INT64_MAX, &r, &f->w.err));
    f->u = uses_new(f->w.ledger, &r);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct fleet_hold h = {.pod_uid = STR("u1"),
                           .tenant = STR("team-a"),
                           .node = STR("n1"),
                           .pool = STR("a100"),
                           .gpu_eq = {1, 1},
                           .begin_us = BEGIN};

    world_open(&f->w);
    start(f);
    f->now = BEGIN;
    DO(ledger_add_hold(f->w.ledger, &h, &f->w.err));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    uses_free(f->u);
    world_close(&f->w);
    free(f);
    return 0;
}

static struct fleet_records look(struct fixture *f, int64_t after, unsigned use)
{
    struct fleet_records r;

    f->now += after;
    uses_begin(f->u);
    if (use != N_UNKNOWN)
        uses_pod(f->u, STR("u1"), (enum activity_state)use);
    DO(uses_end(f->u, f->now, &f->w.err));
    DO(ledger_commit(f->w.ledger, &f->w.err));
    DO(ledger_read(f->w.a, f->w.location, 0, INT64_MAX, &r, &f->w.err));
    return r;
}

static void records_changes(void **state)
{
    struct fixture *f = *state;
    struct fleet_records r;

    assert_int_equal(look(f, 0, ACTIVITY_UNKNOWN).n_activities, 0);
    assert_int_equal(look(f, MINUTE, ACTIVITY_BUSY).n_activities, 1);
    assert_int_equal(look(f, MINUTE, ACTIVITY_BUSY).n_activities, 1);
    assert_int_equal(look(f, MINUTE, ACTIVITY_WARM).n_activities, 1); /* not so soon */
    r = look(f, 30 * MINUTE, ACTIVITY_WARM);
    assert_int_equal(r.n_activities, 2);
    assert_int_equal(r.holds[0].n_activities, 2);
    assert_int_equal(r.activities[0].use, FLEET_USE_BUSY);
    assert_int_equal(r.activities[0].from_us, BEGIN + MINUTE);
    assert_int_equal(r.activities[1].use, FLEET_USE_WARM);
    r = look(f, MINUTE, N_UNKNOWN); /* silence does not wait */
    assert_int_equal(r.n_activities, 3);
    assert_int_equal(r.activities[2].use, FLEET_USE_UNKNOWN);
}

/* What pods did while no process ran is not known, however long that was. */
static void a_verdict_ends_with_its_process(void **state)
{
    struct fixture *f = *state;
    struct fleet_records r;

    look(f, MINUTE, ACTIVITY_UNUSED);
    DO(ledger_set_seen(f->w.ledger, BEGIN + 2 * MINUTE, &f->w.err));
    DO(ledger_commit(f->w.ledger, &f->w.err));
    uses_free(f->u);
    world_kill(&f->w);
    f->now += HOUR;
    start(f);
    DO(uses_forget(f->u, &f->w.err));
    r = look(f, 0, ACTIVITY_BUSY);
    assert_int_equal(r.n_activities, 3);
    assert_int_equal(r.activities[1].use, FLEET_USE_UNKNOWN);
    assert_int_equal(r.activities[1].from_us, BEGIN + 2 * MINUTE);
    assert_int_equal(r.activities[2].use, FLEET_USE_BUSY);
    assert_int_equal(r.activities[2].from_us, BEGIN + MINUTE + HOUR);
}

/* A record of a moment that is a day ahead by now does not hold back those of this day. */
static void a_clock_that_is_set_back_ends_a_wait(void **state)
{
    struct fixture *f = *state;
    struct fleet_records r;

    assert_int_equal(look(f, 24 * HOUR, ACTIVITY_BUSY).n_activities, 1);
    r = look(f, MINUTE - 24 * HOUR, ACTIVITY_WARM);
    assert_int_equal(r.n_activities, 2);
    assert_int_equal(r.activities[1].use, FLEET_USE_WARM);
    assert_int_equal(r.activities[1].from_us, BEGIN + 24 * HOUR); /* the past stays as it was */
    assert_int_equal(look(f, MINUTE, ACTIVITY_BUSY).n_activities, 2);
    assert_int_equal(look(f, 30 * MINUTE, ACTIVITY_BUSY).n_activities, 3);
}

/* A day of an exporter that flaps as fast as it is looked at. */
static void rows_are_bounded(void **state)
{
    struct fixture *f = *state;
    size_t n = 0;

    for (int i = 0; i < 24 * 60; i++)
        n = look(f, MINUTE,
                 i % 2   ? ACTIVITY_UNKNOWN
                 : i % 3 ? ACTIVITY_BUSY
                         : ACTIVITY_UNUSED)
                .n_activities;
    assert_true(n > 2);
    if (n > 96)
        fail_msg("%zu rows", n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(records_changes),
        TEST(a_verdict_ends_with_its_process),
        TEST(a_clock_that_is_set_back_ends_a_wait),
        TEST(rows_are_bounded),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
