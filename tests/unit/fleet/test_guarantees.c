/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger has of grants: a record for each change, so many a day at most of what tenants
 * move, and none for a repetition, a binding that does not count, or a look that does not see
 * all. */
#include "world.h"

#include "ledger/guarantees.h"

#define DO(call) assert_int_equal((call), 0)

struct fixture {
    struct world w;
    struct guarantees *g;
    struct grants_row rows[4];
    struct grants_view view;
    int64_t now;
};

static void start(struct fixture *f)
{
    struct fleet_records r;

    world_start(&f->w, BEGIN);
    DO(ledger_read(f->w.a, f->w.location, LEDGER_OPEN, INT64_MAX, &r, &f->w.err));
    f->g = guarantees_new(f->w.ledger, &r);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    world_open(&f->w);
    start(f);
    f->view = (struct grants_view){.rows = f->rows, .current = true};
    f->now = BEGIN;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    guarantees_free(f->g);
    world_close(&f->w);
    free(f);
    return 0;
}

static struct grants_row *row(struct fixture *f, const char *tenant, int64_t guarantee)
{
    struct grants_row *r = &f->rows[f->view.n_rows++];

    *r = (struct grants_row){.tenant = str_c(tenant),
                             .pool = STR("a100"),
                             .counts = true,
                             .guarantee = {guarantee, 1},
                             .grant = {guarantee + 2, 1}};
    return r;
}

/* Another process goes on with it. */
static void restart(struct fixture *f)
{
    guarantees_free(f->g);
    world_kill(&f->w);
    start(f);
}

/* How many records there are then. */
static struct fleet_records look(struct fixture *f)
{
    struct fleet_records r;

    f->now += SECOND;
    DO(guarantees_look(f->g, &f->w.pool, 1, &f->view, f->now, &f->w.err));
    DO(ledger_commit(f->w.ledger, &f->w.err));
    DO(ledger_read(f->w.a, f->w.location, 0, INT64_MAX, &r, &f->w.err));
    return r;
}

static void changes_are_recorded_once(void **state)
{
    struct fixture *f = *state;
    struct fleet_records r;

    row(f, "team-a", 4);
    row(f, "team-b", 1)->pool = STR("not-metered");
    row(f, "team-c", 1)->counts = false;
    r = look(f);
    assert_int_equal(r.n_guarantees, 1);
    assert_str(r.guarantees[0].tenant, "team-a");
    assert_int_equal(r.guarantees[0].from_us, BEGIN + SECOND);
    assert_int_equal(r.guarantees[0].guarantee.num, 4);
    assert_int_equal(r.guarantees[0].granted.num, 6);
    assert_int_equal(look(f).n_guarantees, 1);
    f->rows[0].guarantee = (struct rational){3, 1};
    assert_int_equal(look(f).n_guarantees, 2);
    f->rows[0].labels = STR("cost-center=42\n");
    r = look(f);
    assert_int_equal(r.n_guarantees, 3);
    assert_str(r.guarantees[2].labels, "cost-center=42\n");

    restart(f);
    assert_int_equal(look(f).n_guarantees, 3);
}

/* Tenants move it: what a lender wants is granted to others no more. */
static void a_change_of_the_grant_alone_waits(void **state)
{
    struct fixture *f = *state;
    struct fleet_records r;

    row(f, "team-a", 4);
    assert_int_equal(look(f).n_guarantees, 1);
    f->rows[0].grant = (struct rational){3, 1};
    assert_int_equal(look(f).n_guarantees, 1);
    restart(f);
    assert_int_equal(look(f).n_guarantees, 1);
    f->rows[0].guarantee = (struct rational){5, 1}; /* the administrator's does not */
    r = look(f);
    assert_int_equal(r.n_guarantees, 2);
    assert_int_equal(r.guarantees[1].granted.num, 3);
    f->rows[0].grant = (struct rational){9, 1};
    f->now = r.guarantees[1].from_us + GUARANTEES_SPACING_US - 2 * SECOND;
    assert_int_equal(look(f).n_guarantees, 2);
    r = look(f);
    assert_int_equal(r.n_guarantees, 3);
    assert_int_equal(r.guarantees[2].granted.num, 9);
    assert_int_equal(r.guarantees[2].from_us, r.guarantees[1].from_us + GUARANTEES_SPACING_US);
    f->rows[0].grant = (struct rational){2, 1};
    f->now -= HOUR; /* a clock that is set back does not make it wait for longer */
    assert_int_equal(look(f).n_guarantees, 4);
    f->view.n_rows = 0; /* nor does what is gone wait */
    assert_int_equal(look(f).n_guarantees, 5);
}

/* A day of a neighbour that raises and lowers its demand each second. */
static void rows_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct fleet_records r;

    row(f, "team-a", 4);
    for (int i = 0; i < 24 * 3600; i++) {
        f->rows[0].grant.num = 4 + i % 3;
        f->now += SECOND;
        DO(guarantees_look(f->g, &f->w.pool, 1, &f->view, f->now, &f->w.err));
    }
    r = look(f);
    assert_true(r.n_guarantees > 2);
    if (r.n_guarantees > 49)
        fail_msg("%zu rows", r.n_guarantees);
}

static void what_is_gone_is_bound_no_longer(void **state)
{
    struct fixture *f = *state;
    struct fleet_records r;

    row(f, "team-a", 4);
    row(f, "team-b", 4);
    assert_int_equal(look(f).n_guarantees, 2);
    f->view.n_rows = 1;
    f->view.current = false;
    assert_int_equal(look(f).n_guarantees, 2);
    f->view.current = true;
    f->view.n_not_shown = 1;
    assert_int_equal(look(f).n_guarantees, 2);
    f->view.n_not_shown = 0;
    r = look(f);
    assert_int_equal(r.n_guarantees, 3);
    assert_str(r.guarantees[2].tenant, "team-b");
    assert_false(r.guarantees[2].bound);
    assert_int_equal(r.guarantees[2].guarantee.num, 0);
    assert_int_equal(look(f).n_guarantees, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(changes_are_recorded_once),
        TEST(a_change_of_the_grant_alone_waits),
        TEST(rows_are_bounded),
        TEST(what_is_gone_is_bound_no_longer),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
