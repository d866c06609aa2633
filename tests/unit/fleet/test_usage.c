/* SPDX-License-Identifier: Apache-2.0 */
/* Usage out of records: what is billed to the second, where lines are split, and that nothing is
 * lost or counted twice in any history, however odd its clocks. */
#include "test.h"

#include <sublet/clock.h>

struct fixture {
    struct arena *a;
    struct fleet_hold holds[64];
    struct fleet_capacity capacities[64];
    struct fleet_price prices[8];
    struct fleet_guarantee guarantees[32];
    struct fleet_records r;
    struct usage u;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->a = arena_new(0);
    f->r = (struct fleet_records){.seen_us = INT64_C(4000000000) * SECOND,
                                  .holds = f->holds,
                                  .capacities = f->capacities,
                                  .prices = f->prices,
                                  .guarantees = f->guarantees};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_free(f->a);
    free(f);
    return 0;
}

static int64_t at(const char *time)
{
    int64_t us;

    assert_true(time_parse(str_c(time), &us));
    return us;
}

static void node(struct fixture *f, const char *name, int64_t from, int64_t total, int64_t broken,
                 bool down)
{
    f->capacities[f->r.n_capacities++] = (struct fleet_capacity){.node = str_c(name),
                                                                 .pool = STR("a100"),
                                                                 .product = STR("A100"),
                                                                 .from_us = from,
                                                                 .total = {total, 1},
                                                                 .unhealthy = {broken, 1},
                                                                 .down = down};
}

static struct fleet_hold *hold(struct fixture *f, const char *tenant, const char *on, int64_t from,
                               int64_t until, struct rational gpus)
{
    struct fleet_hold *h = &f->holds[f->r.n_holds++];

    *h = (struct fleet_hold){.pod_uid = STR("u"),
                             .tenant = str_c(tenant),
                             .ns = STR("default"),
                             .name = STR("train"),
                             .node = str_c(on),
                             .pool = STR("a100"),
                             .product = STR("A100"),
                             .gpu_eq = gpus,
                             .begin_us = from,
                             .end_us = until};
    return h;
}

static void price(struct fixture *f, int64_t from, const char *value)
{
    struct fleet_price *p = &f->prices[f->r.n_prices++];

    *p = (struct fleet_price){.pool = STR("a100"), .currency = STR("USD"), .from_us = from};
    assert_true(rational_parse(str_c(value), &p->price));
}

/* guarantee < 0: no binding counts from then on. */
static void guarantee(struct fixture *f, const char *tenant, int64_t from, struct rational gpus)
{
    f->guarantees[f->r.n_guarantees++] =
        (struct fleet_guarantee){.tenant = str_c(tenant),
                                 .pool = STR("a100"),
                                 .from_us = from,
                                 .bound = gpus.num >= 0,
                                 .guarantee = gpus.num >= 0 ? gpus : (struct rational){0, 1},
                                 .granted = {0, 1}};
}

static void compute(struct fixture *f, int64_t from, int64_t until, unsigned columns)
{
    struct err err;

    err_init(&err, f->a);
    assert_ok(fleet_usage_compute(f->a, &f->r, from, until, columns, &f->u, &err));
}

static const struct fleet_usage_line *line(const struct fixture *f, size_t i, enum usage_kind kind,
                                           const char *first)
{
    const struct fleet_usage_line *l = f->u.lines[i];

    assert_true(i < f->u.n_lines);
    assert_int_equal(l->kind, kind);
    for (unsigned c = 0; c < N_USAGE_COLUMNS; c++) {
        if (l->values[c].n) {
            assert_str(l->values[c], first);
            break;
        }
    }
    return l;
}
#define assert_gpu_s(f, l, text)                                                                   \
    do {                                                                                           \
        struct exact s_;                                                                           \
        assert_true(exact_mul((l)->gpu_us, (struct exact){1, SECOND}, &s_));                       \
        assert_str(exact_fraction((f)->a, s_), text);                                              \
    } while (0)

#define BY_TENANT (1u << USAGE_TENANT)
#define BY_MONTH  (1u << USAGE_MONTH)

static void bills_a_second_as_a_second(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    price(f, 0, "3.60");
    hold(f, "team-a", "n1", 10 * SECOND, 11 * SECOND, (struct rational){2, 1});
    compute(f, 0, HOUR, BY_TENANT);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "2");
    assert_str(exact_fraction(f->a, f->u.lines[0]->cost), "1/500"); /* 2 s of 3.60 an hour */
    assert_int_equal(f->u.lines[0]->pods, 1);
    assert_gpu_s(f, line(f, 1, USAGE_IDLE, ""), "28798");
    assert_int_equal(f->u.n_lines, 2);
}

static void splits_at_a_price_change_and_at_month_ends(void **state)
{
    struct fixture *f = *state;
    int64_t change = at("2026-11-30T23:00:00Z"), end = at("2026-12-01T02:00:00Z");

    f->r.begin_us = at("2026-11-30T00:00:00Z");
    node(f, "n1", f->r.begin_us, 1, 0, false);
    price(f, f->r.begin_us, "1");
    price(f, change, "2.5");
    hold(f, "team-a", "n1", change - HOUR, end, (struct rational){1, 1});
    compute(f, 0, end, BY_TENANT | BY_MONTH);
    assert_str(f->u.lines[0]->values[USAGE_MONTH], "2026-11");
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "7200");
    assert_str(exact_fraction(f->a, f->u.lines[0]->cost), "7/2");
    assert_str(f->u.lines[1]->values[USAGE_MONTH], "2026-12");
    assert_str(exact_fraction(f->a, f->u.lines[1]->cost), "5");
    assert_int_equal(f->u.lines[0]->pods, 1);
    assert_int_equal(f->u.n_balances, 2);
}

static void bills_shares_exactly(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 1, 0, false);
    for (int i = 0; i < 7; i++)
        hold(f, "team-a", "n1", 0, HOUR, (struct rational){1, 7});
    compute(f, 0, HOUR, BY_TENANT);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "3600");
    assert_int_equal(f->u.n_lines, 1); /* nothing is idle */
    assert_int_equal(f->u.lines[0]->pods, 7);
}

static void a_lost_node_is_unhealthy_and_bills_no_one(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    node(f, "n1", 100 * SECOND, 8, 0, true);
    node(f, "n1", 160 * SECOND, 8, 0, false);
    node(f, "n1", 200 * SECOND, 0, 0, false);
    hold(f, "team-a", "n1", 0, FLEET_OPEN, (struct rational){4, 1})->end_us = 200 * SECOND;
    compute(f, 0, 300 * SECOND, BY_TENANT);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "560"); /* 4 x (100 + 40) */
    assert_gpu_s(f, line(f, 1, USAGE_IDLE, ""), "560");
    assert_gpu_s(f, line(f, 2, USAGE_UNHEALTHY, ""), "480"); /* 8 x 60 */
}

/* Whatever happens to its node meanwhile, and in however many months. */
static void a_pod_is_counted_once(void **state)
{
    struct fixture *f = *state;
    int64_t end = at("2026-12-01T02:00:00Z"), from;

    f->r.begin_us = from = at("2026-11-30T00:00:00Z");
    node(f, "n1", from, 8, 0, false);
    node(f, "n1", from + 100 * SECOND, 8, 0, true);
    node(f, "n1", from + 160 * SECOND, 8, 1, false);
    node(f, "n1", end - HOUR, 8, 0, false);
    hold(f, "team-a", "n1", from, FLEET_OPEN, (struct rational){1, 1});
    hold(f, "team-a", "n1", from + SECOND, end, (struct rational){1, 1})->estimated = true;
    hold(f, "team-a", "n1", end - HOUR, end, (struct rational){1, 1});
    compute(f, 0, end, BY_TENANT);
    assert_int_equal(line(f, 0, USAGE_HELD, "team-a")->pods, 3);
    assert_int_equal(f->u.lines[0]->open, 1);
    assert_int_equal(f->u.lines[0]->estimated, 1);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "190679"); /* 2 x 93540 - 1 + 3600 */
    compute(f, 0, end, BY_TENANT | BY_MONTH);
    assert_int_equal(f->u.lines[0]->pods, 2);
    assert_int_equal(f->u.lines[1]->pods, 3);
}

static void lines_say_why_pods_ended(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    hold(f, "team-a", "n1", 0, HOUR, (struct rational){1, 1})->reason = STR("Succeeded");
    for (int i = 0; i < 2; i++)
        hold(f, "team-a", "n1", 0, 10 * SECOND, (struct rational){2, 1})->reason =
            STR("PreemptionByScheduler");
    hold(f, "team-a", "n1", 0, FLEET_OPEN, (struct rational){1, 1});
    compute(f, 0, HOUR, 1u << USAGE_REASON);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "PreemptionByScheduler"), "40");
    assert_int_equal(f->u.lines[0]->pods, 2);
    assert_gpu_s(f, line(f, 1, USAGE_HELD, "Running"), "3600");
    assert_gpu_s(f, line(f, 2, USAGE_HELD, "Succeeded"), "3600");
    assert_int_equal(line(f, 3, USAGE_IDLE, "")->pods, 0);
}

static void a_deleted_node_bills_no_one(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    node(f, "n1", 60 * SECOND, 0, 0, true);
    hold(f, "team-a", "n1", 0, 100 * SECOND, (struct rational){8, 1}); /* until it is collected */
    compute(f, 0, 120 * SECOND, BY_TENANT);
    assert_int_equal(f->u.n_lines, 1);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "480");
    assert_int_equal(f->u.balances[0].unmatched.num, 0);
}

static void broken_devices_are_unhealthy_unless_held(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 2, false);
    hold(f, "team-a", "n1", 0, 10 * SECOND, (struct rational){7, 1});
    compute(f, 0, 20 * SECOND, BY_TENANT);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "70");
    assert_gpu_s(f, line(f, 1, USAGE_IDLE, ""), "60");
    assert_gpu_s(f, line(f, 2, USAGE_UNHEALTHY, ""), "30"); /* 1 of 2 for 10 s, then 2 */
}

static void what_runs_accrues_until_it_was_seen_last(void **state)
{
    struct fixture *f = *state;

    f->r.begin_us = 50 * SECOND;
    f->r.seen_us = 90 * SECOND;
    node(f, "n1", 50 * SECOND, 1, 0, false);
    hold(f, "team-a", "n1", 0, FLEET_OPEN, (struct rational){1, 1});
    compute(f, 0, INT64_MAX, BY_TENANT);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "40");
    assert_int_equal(f->u.lines[0]->open, 1);
    compute(f, 95 * SECOND, INT64_MAX, BY_TENANT);
    assert_int_equal(f->u.n_lines, 0);
}

static void more_held_than_on_record_is_shown_as_such(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 10 * SECOND, 2, 0, false); /* seen later than its pod was scheduled */
    hold(f, "team-a", "n1", 9 * SECOND, 20 * SECOND, (struct rational){2, 1});
    hold(f, "team-b", "nowhere", 0, SECOND, (struct rational){1, 1});
    compute(f, 0, 20 * SECOND, BY_TENANT);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, "team-a"), "22");
    assert_gpu_s(f, line(f, 1, USAGE_HELD, "team-b"), "1");
    assert_str(exact_fraction(f->a, f->u.balances[0].unmatched), "3000000");
    assert_str(exact_fraction(f->a, f->u.balances[0].capacity), "20000000");
}

static void names_of_tenants_stay_apart(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    hold(f, "t", "n1", 0, SECOND, (struct rational){1, 1})->ns = STR("a1:b");
    f->holds[0].owner = STR("c");
    hold(f, "t", "n1", 0, SECOND, (struct rational){1, 1})->ns = STR("a");
    f->holds[1].owner = STR("b1:c");
    compute(f, 0, SECOND, 1u << USAGE_NAMESPACE | 1u << USAGE_OWNER);
    assert_int_equal(f->u.n_lines, 3);
}

/* --- guarantees --- */

#define assert_exact_s(f, value, text)                                                             \
    do {                                                                                           \
        struct exact s_;                                                                           \
        assert_true(exact_mul((value), (struct exact){1, SECOND}, &s_));                           \
        assert_str(exact_fraction((f)->a, s_), text);                                              \
    } while (0)
#define BY_POD (1u << USAGE_POD)

/* One that was not billed at all has none. */
static const struct fleet_usage_line *line_of_pod(const struct fixture *f, const char *pod)
{
    static const struct fleet_usage_line none = {.borrowed = {0, 1}};

    for (size_t i = 0; i < f->u.n_lines; i++)
        if (str_eqc(f->u.lines[i]->values[USAGE_POD], pod))
            return f->u.lines[i];
    return &none;
}

static struct fleet_hold *pod(struct fixture *f, const char *name, const char *on, int64_t from,
                              int64_t until, int64_t gpus)
{
    struct fleet_hold *h =
        hold(f, "team-a", on, from * SECOND, until * SECOND, (struct rational){gpus, 1});

    h->name = str_c(name);
    return h;
}

/* On all nodes together; each is borrowed for as long as older ones fill the guarantee. */
static void those_started_last_are_borrowed(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    node(f, "n2", 0, 8, 0, false);
    price(f, 0, "3600");
    f->prices[0].borrow = (struct rational){1, 2};
    guarantee(f, "team-a", 0, (struct rational){4, 1});
    pod(f, "old", "n1", 0, 10, 3);
    pod(f, "half", "n2", 2, 20, 2); /* 1 of 2 is borrowed, from 10 on none */
    pod(f, "new", "n1", 4, 20, 3);  /* 3, from 10 on 1 */
    compute(f, 0, 20 * SECOND, BY_TENANT | BY_POD);
    assert_exact_s(f, line_of_pod(f, "old")->borrowed, "0");
    assert_exact_s(f, line_of_pod(f, "half")->borrowed, "8");
    assert_exact_s(f, line_of_pod(f, "new")->borrowed, "28");
    assert_str(exact_fraction(f->a, line_of_pod(f, "old")->cost), "30");
    assert_str(exact_fraction(f->a, line_of_pod(f, "half")->cost), "32"); /* 28 + 8 / 2 */
    assert_str(exact_fraction(f->a, line_of_pod(f, "new")->cost), "34");  /* 20 + 28 / 2 */
    assert_exact_s(f, f->u.balances[0].borrowed, "36");
    assert_exact_s(f, f->u.balances[0].reserved, "2"); /* 1 for 2 s */
    assert_exact_s(f, f->u.balances[0].reserved_idle, "2");
    assert_true(f->u.bound);
}

static void a_guarantee_that_changes_splits_what_is_held(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    pod(f, "a", "n1", 0, 50, 2);
    pod(f, "b", "n1", 1, 50, 2);
    guarantee(f, "team-a", 10 * SECOND, (struct rational){3, 1});
    guarantee(f, "team-a", 20 * SECOND, (struct rational){1, 2});
    guarantee(f, "team-a", 30 * SECOND, (struct rational){8, 1});
    guarantee(f, "team-a", 40 * SECOND, (struct rational){-1, 1}); /* none counts: no split */
    compute(f, 0, 50 * SECOND, BY_TENANT | BY_POD);
    assert_exact_s(f, line_of_pod(f, "a")->borrowed, "15");
    assert_exact_s(f, line_of_pod(f, "b")->borrowed, "30"); /* 10 + 20 */
    assert_exact_s(f, f->u.balances[0].reserved, "40");
    compute(f, 0, 50 * SECOND, BY_TENANT);
    assert_exact_s(f, f->u.lines[0]->borrowed, "45");
    assert_exact_s(f, f->u.lines[0]->reserved, "40");
    f->r.n_guarantees = 0;
    compute(f, 0, 50 * SECOND, BY_TENANT);
    assert_exact_s(f, f->u.lines[0]->borrowed, "0");
    assert_false(f->u.bound);
}

/* A pod is as old as it was when its node comes back, and borrows nothing meanwhile. */
static void a_node_that_comes_back_changes_no_order(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 4, 0, false);
    node(f, "n1", 10 * SECOND, 4, 0, true);
    node(f, "n1", 20 * SECOND, 4, 0, false);
    node(f, "n2", 0, 4, 0, false);
    guarantee(f, "team-a", 0, (struct rational){2, 1});
    pod(f, "old", "n1", 0, 30, 2);
    pod(f, "new", "n2", 5, 30, 2);
    compute(f, 0, 30 * SECOND, BY_TENANT | BY_POD);
    assert_exact_s(f, line_of_pod(f, "old")->borrowed, "0");
    assert_exact_s(f, line_of_pod(f, "new")->borrowed, "30"); /* 5 to 10 and 20 to 30 */
    compute(f, 22 * SECOND, 30 * SECOND, BY_TENANT | BY_POD); /* wherever a report begins */
    assert_exact_s(f, line_of_pod(f, "new")->borrowed, "16");
}

/* Whatever is not on record is not known, and no part of it is idle. */
static void what_was_not_used_is_told_apart(void **state)
{
    static struct fleet_activity uses[] = {
        {10 * SECOND, FLEET_USE_BUSY},   {20 * SECOND, FLEET_USE_WARM},
        {25 * SECOND, FLEET_USE_UNUSED}, {30 * SECOND, FLEET_USE_UNKNOWN},
        {32 * SECOND, FLEET_USE_UNUSED},
    };
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    node(f, "n1", 22 * SECOND, 8, 0, true); /* down: nothing is billed */
    node(f, "n1", 26 * SECOND, 8, 0, false);
    pod(f, "measured", "n1", 0, 40, 2);
    pod(f, "silent", "n1", 0, 40, 1);
    f->holds[0].n_activities = COUNT(uses);
    compute(f, 0, 40 * SECOND, BY_TENANT | BY_POD);
    assert_false(f->u.measured);
    f->r.activities = uses;
    f->r.n_activities = COUNT(uses);
    compute(f, 0, 40 * SECOND, BY_TENANT | BY_POD);
    assert_true(f->u.measured);
    assert_exact_s(f, line_of_pod(f, "measured")->idle_held, "28");  /* 2 x (2 + 4 + 8) */
    assert_exact_s(f, line_of_pod(f, "measured")->unmeasured, "24"); /* 2 x (10 + 2) */
    assert_exact_s(f, line_of_pod(f, "silent")->idle_held, "0");
    assert_exact_s(f, line_of_pod(f, "silent")->unmeasured, "36");
    compute(f, 21 * SECOND, 31 * SECOND, BY_TENANT | BY_POD);
    assert_exact_s(f, line_of_pod(f, "measured")->idle_held, "10"); /* 2 x (1 + 4) */
    assert_exact_s(f, line_of_pod(f, "measured")->unmeasured, "2");
}

/* A change of the key that the report is by splits lines, one of another does not. */
static void lines_are_by_a_label_of_the_binding(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    hold(f, "team-a", "n1", 0, 40 * SECOND, (struct rational){2, 1})->mode = STR("mig");
    hold(f, "team-b", "n1", 0, 40 * SECOND, (struct rational){1, 1});
    for (int i = 1; i < 4; i++)
        guarantee(f, "team-a", i * 10 * SECOND, (struct rational){2, 1});
    f->guarantees[0].labels = STR("cost-center=42\nteam=x\n");
    f->guarantees[1].labels = STR("cost-center=42\n");
    f->guarantees[2].labels = STR("cost-center=7\n");
    f->r.label = STR("cost-center");
    compute(f, 0, 40 * SECOND, 1u << USAGE_LABEL | 1u << USAGE_MODE);
    assert_int_equal(f->u.n_lines, 5);
    assert_gpu_s(f, line(f, 0, USAGE_HELD, ""), "40"); /* team-b, which has no binding */
    assert_gpu_s(f, line(f, 1, USAGE_HELD, "mig"), "20");
    assert_str(f->u.lines[1]->values[USAGE_LABEL], "");
    assert_gpu_s(f, line(f, 2, USAGE_HELD, "mig"), "40");
    assert_str(f->u.lines[2]->values[USAGE_LABEL], "42");
    assert_gpu_s(f, line(f, 3, USAGE_HELD, "mig"), "20");
    assert_str(f->u.lines[3]->values[USAGE_LABEL], "7");
}

static void what_is_reserved_is_idle_or_lent(void **state)
{
    struct fixture *f = *state;

    node(f, "n1", 0, 8, 0, false);
    guarantee(f, "team-a", 0, (struct rational){6, 1});
    guarantee(f, "team-b", 0, (struct rational){0, 1});
    hold(f, "team-b", "n1", 0, 10 * SECOND, (struct rational){5, 1});
    compute(f, 0, 20 * SECOND, BY_TENANT);
    assert_exact_s(f, line(f, 0, USAGE_HELD, "team-a")->reserved, "120");
    assert_int_equal(f->u.lines[0]->pods, 0);
    assert_exact_s(f, line(f, 1, USAGE_HELD, "team-b")->borrowed, "50");
    assert_exact_s(f, f->u.balances[0].idle, "110");
    assert_exact_s(f, f->u.balances[0].reserved, "120");
    assert_exact_s(f, f->u.balances[0].reserved_idle, "90"); /* 3 for 10 s, 6 for 10 s */
}

/* --- any history --- */

static const char *const NODES[] = {"n1", "n2", "n3"};
static const struct rational SHARES[] = {{1, 1}, {2, 1}, {1, 7}, {3, 7}, {1, 4}, {1, 10}};

static void random_history(struct fixture *f, uint64_t *seed, int64_t begin, int64_t length)
{
    int64_t since = begin - length / 10;

    f->r.n_holds = f->r.n_capacities = f->r.n_prices = f->r.n_guarantees = 0;
    f->r.begin_us = begin + BELOW(seed, length / 4);
    f->r.seen_us = begin + length - BELOW(seed, length / 4);
    for (int i = 0; i < 20; i++) { /* clocks jump: not all are in order, or within the ledger */
        int64_t total = BELOW(seed, 9);

        node(f, NODES[BELOW(seed, 3)], begin + BELOW(seed, length) - length / 10, total,
             total ? BELOW(seed, total + 1) : 0, BELOW(seed, 5) == 0);
    }
    for (int i = 0; i < 40; i++) {
        int64_t from = begin + BELOW(seed, length) - length / 10;

        hold(f, BELOW(seed, 2) ? "team-a" : "team-b", NODES[BELOW(seed, 3)], from,
             BELOW(seed, 5) ? from + BELOW(seed, length / 3) : FLEET_OPEN, SHARES[BELOW(seed, 6)]);
    }
    for (int i = 0; i < 4; i++) {
        price(f, begin + BELOW(seed, length), i % 2 ? "1/3" : "2.50");
        f->prices[i].borrow = (struct rational){BELOW(seed, 4), 2};
    }
    for (int i = 0; i < 12; i++) {
        since += BELOW(seed, length / 8);
        guarantee(f, BELOW(seed, 2) ? "team-a" : "team-b", since,
                  BELOW(seed, 6) ? (struct rational){BELOW(seed, 20), 2}
                                 : (struct rational){-1, 1});
    }
}

enum summed { SUM_GPU_US, SUM_COST, SUM_BORROWED, SUM_RESERVED, N_SUMS };

static struct exact sum_lines(const struct fixture *f, enum summed what)
{
    struct exact sum = EXACT_ZERO;

    for (size_t i = 0; i < f->u.n_lines; i++) {
        const struct fleet_usage_line *l = f->u.lines[i];
        const struct exact values[N_SUMS] = {l->gpu_us, l->cost, l->borrowed, l->reserved};

        assert_true(exact_cmp(l->borrowed, l->gpu_us) <= 0);
        assert_true(l->borrowed.num >= 0 && l->reserved.num >= 0);
        assert_true(exact_add(sum, values[what], &sum));
    }
    return sum;
}

static void check_balances_of_guarantees(const struct fixture *f)
{
    struct exact borrowed = EXACT_ZERO, reserved = EXACT_ZERO;

    for (size_t i = 0; i < f->u.n_balances; i++) {
        const struct fleet_usage_balance *b = &f->u.balances[i];

        assert_true(exact_add(borrowed, b->borrowed, &borrowed));
        assert_true(exact_add(reserved, b->reserved, &reserved));
        assert_true(exact_cmp(b->reserved_idle, b->idle) <= 0);
    }
    assert_int_equal(exact_cmp(borrowed, sum_lines(f, SUM_BORROWED)), 0);
    assert_int_equal(exact_cmp(reserved, sum_lines(f, SUM_RESERVED)), 0);
}

/* fleet_usage_compute() fails when a balance does not add up. Beyond that: all lines are the
 * capacity, and a period is the sum of its parts, wherever it is cut. */
static void conserves_every_history(void **state)
{
    struct fixture *f = *state;
    int64_t begin = at("2026-01-15T00:00:00Z"), length = 100 * 24 * HOUR;
    uint64_t seed = 20261126;

    for (int round = 0; round < 400; round++) {
        struct exact all[N_SUMS], parts[N_SUMS], owned = EXACT_ZERO;
        int64_t cut[] = {begin - HOUR, begin + BELOW(&seed, length), begin + 2 * length};

        random_history(f, &seed, begin, length);
        compute(f, cut[0], cut[2], BY_TENANT);
        check_balances_of_guarantees(f);
        for (enum summed k = 0; k < N_SUMS; k++) {
            all[k] = sum_lines(f, k);
            parts[k] = EXACT_ZERO;
        }
        for (size_t i = 0; i < f->u.n_balances; i++)
            assert_true(exact_add(owned, f->u.balances[i].capacity, &owned) &&
                        exact_add(owned, f->u.balances[i].unmatched, &owned));
        assert_int_equal(exact_cmp(all[SUM_GPU_US], owned), 0);
        for (int i = 0; i < 2; i++) {
            compute(f, cut[i], cut[i + 1], (1u << N_USAGE_COLUMNS) - 1);
            check_balances_of_guarantees(f);
            for (enum summed k = 0; k < N_SUMS; k++)
                assert_true(exact_add(parts[k], sum_lines(f, k), &parts[k]));
        }
        for (enum summed k = 0; k < N_SUMS; k++)
            assert_int_equal(exact_cmp(all[k], parts[k]), 0);
        arena_reset(f->a);
    }
}

/* An independent measure: one second after the other. */
static void agrees_with_counting_seconds(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 7;

    for (int round = 0; round < 200; round++) {
        struct exact held = EXACT_ZERO, billed = EXACT_ZERO;

        f->r.n_holds = f->r.n_capacities = 0;
        node(f, "n1", 0, 4, 0, false);
        node(f, "n1", BELOW(&seed, 60) * SECOND, 4, 1, true);
        node(f, "n1", (60 + BELOW(&seed, 40)) * SECOND, 4, 0, false);
        for (int i = 0; i < 10; i++) {
            int64_t from = BELOW(&seed, 100);

            hold(f, "team-a", "n1", from * SECOND, (from + BELOW(&seed, 50)) * SECOND,
                 SHARES[BELOW(&seed, 6)]);
        }
        for (int64_t s = 0; s < 100; s++) {
            bool down =
                s * SECOND >= f->capacities[1].from_us && s * SECOND < f->capacities[2].from_us;

            for (size_t i = 0; i < f->r.n_holds && !down; i++)
                if (f->holds[i].begin_us <= s * SECOND && s * SECOND < f->holds[i].end_us)
                    assert_true(exact_add(held, exact_of(f->holds[i].gpu_eq), &held));
        }
        compute(f, 0, 100 * SECOND, BY_TENANT);
        for (size_t i = 0; i < f->u.n_lines; i++)
            if (f->u.lines[i]->kind == USAGE_HELD)
                billed = f->u.lines[i]->gpu_us;
        assert_true(exact_mul(held, (struct exact){SECOND, 1}, &held));
        assert_int_equal(exact_cmp(held, billed), 0);
        arena_reset(f->a);
    }
}

/* The same for what each pod borrowed: the oldest first, second by second. */
static void agrees_with_splitting_seconds(void **state)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"};
    struct fixture *f = *state;
    uint64_t seed = 11;

    for (int round = 0; round < 300; round++) {
        struct exact borrowed[10], left;
        int64_t from = 0;

        f->r.n_holds = f->r.n_capacities = f->r.n_guarantees = 0;
        node(f, "n1", 0, 9, 0, false);
        node(f, "n2", 0, 9, 0, false);
        node(f, "n2", 40 * SECOND, 9, 0, true);
        node(f, "n2", 60 * SECOND, 9, 0, false);
        for (int i = 0; i < 5; i++, from += BELOW(&seed, 30))
            guarantee(f, "team-a", from * SECOND,
                      BELOW(&seed, 5) ? (struct rational){BELOW(&seed, 25), 7}
                                      : (struct rational){-1, 1});
        for (int i = 0; i < 10; i++) {
            int64_t begin = BELOW(&seed, 90);

            hold(f, "team-a", NODES[BELOW(&seed, 2)], begin * SECOND,
                 (begin + 1 + BELOW(&seed, 60)) * SECOND, SHARES[BELOW(&seed, 6)])
                ->name = str_c(names[i]);
            borrowed[i] = EXACT_ZERO;
        }
        for (int64_t s = 0; s < 100; s++) {
            const struct fleet_guarantee *g = NULL;

            for (size_t i = 0; i < f->r.n_guarantees; i++)
                if (f->guarantees[i].from_us <= s * SECOND)
                    g = &f->guarantees[i];
            left = exact_of(g->guarantee);
            for (int64_t begin = 0; begin <= s && g->bound; begin++) /* the oldest first */
                for (size_t i = 0; i < f->r.n_holds; i++) {
                    const struct fleet_hold *h = &f->holds[i];
                    struct exact over = EXACT_ZERO;

                    if (h->begin_us != begin * SECOND || h->end_us <= s * SECOND ||
                        (str_eqc(h->node, "n2") && s >= 40 && s < 60))
                        continue;
                    assert_true(exact_sub(left, exact_of(h->gpu_eq), &left));
                    if (left.num < 0)
                        over = (struct exact){-left.num, left.den};
                    left = left.num < 0 ? EXACT_ZERO : left;
                    assert_true(exact_add(borrowed[i], over, &borrowed[i]));
                }
        }
        compute(f, 0, 100 * SECOND, BY_TENANT | BY_POD);
        for (size_t i = 0; i < 10; i++) {
            struct exact want;

            assert_true(exact_mul(borrowed[i], (struct exact){SECOND, 1}, &want));
            assert_int_equal(exact_cmp(want, line_of_pod(f, names[i])->borrowed), 0);
        }
        arena_reset(f->a);
    }
}

static void a_sum_that_does_not_fit_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err;

    err_init(&err, f->a);
    node(f, "n1", 0, 1, 0, false);
    for (int i = 0; i < 12; i++) /* denominators without a common factor */
        hold(f, "team-a", "n1", 0, HOUR, (struct rational){1, INT64_C(1000000007) + 2 * i});
    assert_int_equal(fleet_usage_compute(f->a, &f->r, 0, HOUR, BY_TENANT, &f->u, &err), -1);
    assert_ptr_equal(err.kind, &ERR_TOO_LARGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bills_a_second_as_a_second),
        TEST(splits_at_a_price_change_and_at_month_ends),
        TEST(bills_shares_exactly),
        TEST(a_lost_node_is_unhealthy_and_bills_no_one),
        TEST(a_pod_is_counted_once),
        TEST(lines_say_why_pods_ended),
        TEST(a_deleted_node_bills_no_one),
        TEST(broken_devices_are_unhealthy_unless_held),
        TEST(what_runs_accrues_until_it_was_seen_last),
        TEST(more_held_than_on_record_is_shown_as_such),
        TEST(names_of_tenants_stay_apart),
        TEST(those_started_last_are_borrowed),
        TEST(a_guarantee_that_changes_splits_what_is_held),
        TEST(a_node_that_comes_back_changes_no_order),
        TEST(what_was_not_used_is_told_apart),
        TEST(lines_are_by_a_label_of_the_binding),
        TEST(what_is_reserved_is_idle_or_lent),
        TEST(conserves_every_history),
        TEST(agrees_with_counting_seconds),
        TEST(agrees_with_splitting_seconds),
        TEST(a_sum_that_does_not_fit_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
