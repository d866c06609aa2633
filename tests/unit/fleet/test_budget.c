/* SPDX-License-Identifier: Apache-2.0 */
/* What a month cost is what its report says, to the millionth, through changes of prices, ends of
 * months and clocks that jump; and a process that starts goes on from the status. */
#include "world.h"

#include <sublet/fleet_report.h>

#include "grants/budget.h"

#define DO(call)                                                                                   \
    do {                                                                                           \
        err_clear(&w->err);                                                                        \
        if (call)                                                                                  \
            fail_msg("%.*s", STR_F(w->err.message));                                               \
    } while (0)
#define DAY     (24 * HOUR)
#define OCTOBER INT64_C(1790812800000000)

/* --- the spec --- */

static void reads_specs(void **state)
{
    static const struct {
        const char *spec, *why; /* NULL: it is one */
        int64_t amount;
    } cases[] = {
        {"{\"amount\":\"1500.00\"}", NULL, 1500000000},
        {"{\"amount\":1500}", NULL, 1500000000},
        {"{\"amount\":\"0.000001\",\"period\":\"Month\",\"enforcement\":\"Queue\"}", NULL, 1},
        {"{\"amount\":\"999999999999.999999\"}", NULL, INT64_C(999999999999999999)},
        {"{\"amount\":\"1000000000000\"}", "budget.amount", 0},
        {"{\"amount\":\"0.0000001\"}", "budget.amount", 0},
        {"{\"amount\":\"1/4\"}", "budget.amount", 0},
        {"{\"amount\":\"0\"}", "budget.amount", 0},
        {"{\"amount\":\"-1\"}", "budget.amount", 0},
        {"{\"amount\":1.5}", "budget.amount", 0},
        {"{}", "budget.amount", 0},
        {"7", "budget.amount", 0},
        {"{\"amount\":1,\"period\":\"Week\"}", "budget.period", 0},
        {"{\"amount\":1,\"enforcement\":\"stop\"}", "budget.enforcement", 0},
        {"{\"amount\":1,\"warnAt\":[50,50]}", "budget.warnAt", 0},
        {"{\"amount\":1,\"warnAt\":[0]}", "budget.warnAt", 0},
        {"{\"amount\":1,\"warnAt\":[1001]}", "budget.warnAt", 0},
        {"{\"amount\":1,\"warnAt\":[1,2,3,4,5,6,7,8,9,10,11]}", "budget.warnAt", 0},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct budget b;
        struct str why = STR("");
        bool is = fleet_budget_parse(w->a, world_parse(w, str_c(cases[i].spec)), &b, &why);

        if (is != !cases[i].why || b.is != is || (is && b.amount != cases[i].amount) ||
            (!is && !str_has_prefix(why, str_c(cases[i].why))))
            fail_msg("%s: %d %.*s %lld", cases[i].spec, is, STR_F(why), (long long)b.amount);
    }
}

static void says_amounts(void **state)
{
    struct world *w = *state;

    assert_str(fleet_budget_text(w->a, 1500000000), "1500.00");
    assert_str(fleet_budget_text(w->a, 2083), "0.002083");
    assert_str(fleet_budget_text(w->a, 1250000), "1.25");
    assert_str(fleet_budget_text(w->a, 1234500), "1.2345");
    assert_str(fleet_budget_text(w->a, 0), "0.00");
    assert_str(fleet_budget_text(w->a, INT64_MAX), "9223372036854.775807");
}

/* --- what was spent --- */

static struct budget budget_of(struct world *w, const char *spec)
{
    struct budget b;
    struct str why;

    if (!fleet_budget_parse(w->a, world_parse(w, str_c(spec)), &b, &why))
        fail_msg("%s: %.*s", spec, STR_F(why));
    return b;
}

static struct usage *usage_of(struct world *w, int64_t from_us, int64_t until_us)
{
    struct usage *u = ARENA_NEW(w->a, struct usage);
    const struct ledger_usage_request q = {.a = w->a,
                                           .location = w->location,
                                           .from_us = from_us,
                                           .until_us = until_us,
                                           .columns = 1u << USAGE_TENANT | 1u << USAGE_POOL};

    DO(ledger_usage(&q, u, &w->err));
    return u;
}

/* As month.c reads it. */
static struct usage *month_of(struct world *w, int64_t now_us)
{
    int64_t from_us, until_us;

    DO(ledger_set_seen(w->ledger, now_us, &w->err));
    DO(ledger_commit(w->ledger, &w->err));
    DO(report_month(w->a, str_sub(time_format_us(w->a, now_us), 0, 7), &from_us, &until_us,
                    &w->err));
    return usage_of(w, from_us, until_us);
}

static struct budget_state judge(struct world *w, const char *spec, const struct usage *month,
                                 int64_t month_us, const char *before, int64_t now_us)
{
    const struct usage *day = month ? usage_of(w, month_us - DAY, month_us) : NULL;
    const struct budget_facts facts = {&w->pool, 1, month, month_us, 0, day};
    struct budget b = budget_of(w, spec);
    struct budget_state s;

    fleet_budget_judge(w->a, &b, &facts, STR("team-a"), STR("a100"),
                       before ? world_parse(w, str_c(before)) : NULL, now_us / SECOND, &s);
    return s;
}

static struct budget_state judge_now(struct world *w, const char *spec, int64_t now_us)
{
    return judge(w, spec, month_of(w, now_us), now_us, NULL, now_us);
}

/* What `sublet report --by tenant,pool,month` says of a month. */
static struct str reported(struct world *w, const char *month, const char *currency)
{
    struct usage u;
    struct ledger_usage_request q = {.a = w->a,
                                     .location = w->location,
                                     .until_us = INT64_MAX,
                                     .columns =
                                         1u << USAGE_TENANT | 1u << USAGE_POOL | 1u << USAGE_MONTH};

    DO(ledger_usage(&q, &u, &w->err));
    for (size_t i = 0; i < u.n_lines; i++)
        if (str_eqc(u.lines[i]->values[USAGE_TENANT], "team-a") &&
            str_eqc(u.lines[i]->values[USAGE_MONTH], month) &&
            str_eqc(u.lines[i]->currency, currency))
            return exact_decimal(w->a, u.lines[i]->cost, 6);
    return STR("0.000000");
}

static void is_reported(struct world *w, struct budget_state s, const char *month,
                        const char *currency)
{
    assert_str(s.month, month);
    assert_str(s.currency, currency);
    assert_true(s.current);
    assert_str(exact_decimal(w->a, (struct exact){s.spent, 1000000}, 6),
               arena_cstr(w->a, reported(w, month, currency)));
}

static void hold(struct world *w, const char *uid, const char *tenant, int64_t num, int64_t den,
                 int64_t begin)
{
    const struct fleet_hold h = {.pod_uid = str_c(uid),
                                 .tenant = str_c(tenant),
                                 .name = str_c(uid),
                                 .node = STR("n1"),
                                 .pool = STR("a100"),
                                 .product = STR("A100"),
                                 .gpu_eq = {num, den},
                                 .begin_us = begin};

    DO(ledger_add_hold(w->ledger, &h, &w->err));
}

static void price(struct world *w, int64_t at, struct rational of_an_hour, const char *currency)
{
    const struct fleet_price p = {.pool = STR("a100"),
                                  .currency = str_c(currency),
                                  .from_us = at,
                                  .price = of_an_hour,
                                  .borrow = {1, 2}};

    DO(ledger_add_price(w->ledger, &p, &w->err));
}

static void is_what_the_report_says(void **state)
{
    struct world *w = *state;
    const struct fleet_guarantee g = {.tenant = STR("team-a"),
                                      .pool = STR("a100"),
                                      .from_us = BEGIN + 2 * HOUR,
                                      .bound = true,
                                      .guarantee = {1, 3},
                                      .granted = {4, 1}};
    struct budget_state s;

    hold(w, "u1", "team-a", 3, 7, BEGIN); /* of 2.50 USD */
    hold(w, "u2", "team-a", 1, 1, BEGIN + 1);
    hold(w, "u3", "team-b", 8, 1, BEGIN);
    s = judge_now(w, "{\"amount\":\"7.50\"}", BEGIN + HOUR);
    assert_int_equal(s.spent, 3571429); /* of 10/7 GPUs for an hour, less a microsecond */
    is_reported(w, s, "2026-09", "USD");
    assert_int_equal(s.percent, 47);
    assert_int_equal(s.threshold, 0);
    price(w, BEGIN + HOUR, (struct rational){22, 7}, "USD"); /* what ran costs what it cost */
    s = judge_now(w, "{\"amount\":\"7.50\"}", BEGIN + HOUR);
    assert_int_equal(s.spent, 3571429);
    s = judge_now(w, "{\"amount\":\"7.50\"}", BEGIN + 2 * HOUR);
    is_reported(w, s, "2026-09", "USD");
    assert_true(s.exceeded);
    assert_int_equal(s.threshold, 100);
    DO(ledger_add_guarantee(w->ledger, &g, &w->err)); /* what is borrowed costs half */
    s = judge_now(w, "{\"amount\":\"1500\"}", BEGIN + 99 * HOUR);
    is_reported(w, s, "2026-09", "USD");
    assert_false(s.exceeded);
    DO(ledger_end_hold(w->ledger, STR("u2"), BEGIN + 4 * HOUR, STR("Failed"), true, &w->err));
    is_reported(w, judge_now(w, "{\"amount\":\"1500\"}", BEGIN + 99 * HOUR), "2026-09", "USD");
}

static void another_currency_is_not_added(void **state)
{
    struct world *w = *state;
    struct budget_state s;

    hold(w, "u1", "team-a", 1, 1, BEGIN);
    DO(ledger_set_seen(w->ledger, BEGIN + HOUR, &w->err));
    price(w, BEGIN + HOUR, (struct rational){3, 1}, "EUR");
    w->pool.currency = STR("EUR");
    s = judge_now(w, "{\"amount\":\"10\"}", BEGIN + 2 * HOUR);
    is_reported(w, s, "2026-09", "EUR");
    assert_int_equal(s.spent, 3000000);
    assert_str(s.other, "USD");
}

static void thresholds_are_reached_exactly(void **state)
{
    struct world *w = *state;
    static const struct {
        int64_t at;
        unsigned threshold;
        bool exceeded;
    } cases[] = {
        {BEGIN + HOUR / 2 - SECOND, 0, false}, {BEGIN + HOUR / 2, 50, false},
        {BEGIN + HOUR - SECOND, 50, false},    {BEGIN + HOUR, 100, true},
        {BEGIN + 3 * HOUR / 2, 150, true},
    };

    hold(w, "u1", "team-a", 1, 1, BEGIN);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct budget_state s =
            judge_now(w, "{\"amount\":\"2.50\",\"warnAt\":[50,100,150]}", cases[i].at);

        assert_int_equal(s.threshold, cases[i].threshold);
        assert_int_equal(s.exceeded, cases[i].exceeded);
    }
}

static void a_new_month_begins_with_nothing(void **state)
{
    struct world *w = *state;
    struct usage *september;
    struct budget_state s;

    hold(w, "u1", "team-a", 1, 1, BEGIN);
    september = month_of(w, OCTOBER - 1);
    s = judge(w, "{\"amount\":\"10\"}", september, OCTOBER - 1, NULL, OCTOBER - 1);
    is_reported(w, s, "2026-09", "USD");
    assert_true(s.exceeded);
    assert_int_equal(s.next_s, OCTOBER / SECOND);
    /* Before the ledger is read again, and after it. */
    s = judge(w, "{\"amount\":\"10\"}", september, OCTOBER - 1,
              "{\"month\":\"2026-09\",\"currency\":\"USD\",\"spent\":\"99.00\"}", OCTOBER);
    assert_str(s.month, "2026-10");
    assert_false(s.current || s.exceeded);
    assert_int_equal(s.spent, 0);
    s = judge_now(w, "{\"amount\":\"10\"}", OCTOBER + HOUR);
    is_reported(w, s, "2026-10", "USD");
    assert_int_equal(s.spent, 2500000);
}

/* What is spent, and what is left of the month at the rate of the last 24 hours, whatever month
 * they are in. */
static void a_month_is_forecast(void **state)
{
    static const struct {
        int64_t at, forecast;
    } cases[] = {
        {OCTOBER + HOUR, 79895833}, /* 2.50, and 743 hours of 2.50 / 24 */
        {OCTOBER + DAY, 1860000000},
        {OCTOBER + 10 * DAY, 1860000000}, /* what goes on as it was */
        {OCTOBER + 15 * DAY + DAY / 2, 1860000000},
        {OCTOBER + 16 * DAY, 1380000000},    /* 930.00, and 15 days of 30.00 */
        {OCTOBER + 17 * DAY, 930000000},     /* what has ended costs no more */
        {OCTOBER + 31 * DAY - 1, 930000000}, /* nothing is left */
    };
    struct world *w = *state;
    struct budget_state s;

    hold(w, "u1", "team-a", 1, 1, OCTOBER); /* 2.50 USD an hour */
    hold(w, "u2", "team-b", 7, 1, OCTOBER);
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (cases[i].at == OCTOBER + 15 * DAY + DAY / 2)
            DO(ledger_end_hold(w->ledger, STR("u1"), cases[i].at, STR("Succeeded"), false,
                               &w->err));
        s = judge_now(w, "{\"amount\":\"1000\"}", cases[i].at);
        assert_int_equal(s.forecast, cases[i].forecast);
        assert_int_equal(s.shown, cases[i].forecast);
        assert_int_equal(s.will_exceed, cases[i].forecast > 1000000000);
    }
}

/* Nor before an hour is on record, for a ledger that began, and for what costs nothing. */
static void a_month_is_not_forecast_from_nothing(void **state)
{
    struct world *w = *state;
    struct budget_state s;

    hold(w, "u1", "team-a", 1, 1, BEGIN);
    assert_int_equal(judge_now(w, "{\"amount\":\"10\"}", BEGIN + HOUR - 1).forecast, 0);
    s = judge_now(w, "{\"amount\":\"10\"}", BEGIN + HOUR);
    assert_int_equal(s.forecast, 2500000 + 2500000 * ((OCTOBER - BEGIN) / SECOND - 3600) / 3600);
    assert_true(s.will_exceed);
    s = judge_now(w, "{\"amount\":\"10\",\"currency\":\"EUR\"}", BEGIN + HOUR);
    assert_int_equal(s.forecast, 0);
    assert_false(s.will_exceed);
}

/* It is written where it changed by a hundredth; a process that starts goes on from it. */
static void a_forecast_is_shown_in_steps(void **state)
{
#define BEFORE(forecast)                                                                           \
    "{\"month\":\"2026-10\",\"currency\":\"USD\",\"spent\":\"99.00\",\"forecast\":\"" forecast "\"}"
    static const struct {
        const char *before;
        int64_t shown;
    } cases[] = {
        {BEFORE("1860.00"), 1860000000},
        {BEFORE("1841.50"), 1841500000}, /* a hundredth of the amount */
        {BEFORE("1841.40"), 1860000000},
        {BEFORE("1878.70"), 1878700000},
        {BEFORE("1879.00"), 1860000000},
        {BEFORE("-1"), 1860000000},
        {BEFORE("much"), 1860000000},
        {"{\"month\":\"2026-09\",\"currency\":\"USD\",\"forecast\":\"1860.01\"}", 1860000000},
        {"{\"month\":\"2026-10\",\"currency\":\"EUR\",\"forecast\":\"1860.01\"}", 1860000000},
        {"7", 1860000000},
    };
    struct world *w = *state;
    struct usage *month;
    struct budget_state s;

    hold(w, "u1", "team-a", 1, 1, OCTOBER);
    month = month_of(w, OCTOBER + 9 * DAY);
    for (size_t i = 0; i < COUNT(cases); i++) {
        s = judge(w, "{\"amount\":\"1850\"}", month, OCTOBER + 9 * DAY, cases[i].before,
                  OCTOBER + 9 * DAY);
        assert_int_equal(s.forecast, 1860000000);
        assert_int_equal(s.shown, cases[i].shown);
        assert_int_equal(s.will_exceed, cases[i].shown > 1850000000);
    }
    s = judge(w, "{\"amount\":\"200000\"}", month, OCTOBER + 9 * DAY, BEFORE("3859.00"),
              OCTOBER + 9 * DAY);
    assert_int_equal(s.shown, 3859000000); /* of a large one */
    s = judge(w, "{\"amount\":\"1850\"}", NULL, 0, BEFORE("1900.00"), OCTOBER + 9 * DAY);
    assert_int_equal(s.spent, 99000000);
    assert_int_equal(s.forecast, 0);
    assert_int_equal(s.shown, 1900000000);
    assert_true(s.will_exceed);
}

/* The dearest GPU that a file can have: the most that there is, and no wrap. */
static void a_forecast_that_does_not_fit_is_the_most(void **state)
{
    struct world *w = *state;
    struct budget_state s;

    hold(w, "u1", "team-a", 1, 1, OCTOBER);
    DO(ledger_set_seen(w->ledger, OCTOBER, &w->err));
    price(w, OCTOBER, (struct rational){INT64_MAX, 1000000}, "USD");
    s = judge_now(w, "{\"amount\":\"1\"}", OCTOBER + DAY);
    assert_int_equal(s.forecast, INT64_MAX);
    assert_true(s.will_exceed);
}

/* A clock that is ahead by a year has a month without cost; when it is right again, what the month
 * cost is known as before, and nothing is counted twice. */
static void a_clock_that_jumps(void **state)
{
    struct world *w = *state;
    struct budget_state s;
    struct usage *before;

    DO(observer_node(w->observer, world_node(w, "n1", 8, 8, true, BEGIN), BEGIN, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 1, BEGIN, 0), BEGIN, &w->err));
    DO(observer_seen(w->observer, BEGIN + 2 * HOUR, &w->err));
    before = month_of(w, BEGIN + 2 * HOUR);
    s = judge(w, "{\"amount\":\"4\"}", before, BEGIN + 2 * HOUR, NULL, BEGIN + 2 * HOUR);
    assert_int_equal(s.spent, 5000000);
    assert_true(s.exceeded);
    s = judge(w, "{\"amount\":\"4\"}", before, BEGIN + 2 * HOUR, NULL, BEGIN + 365 * DAY);
    assert_str(s.month, "2027-09");
    assert_false(s.current || s.exceeded);
    s = judge(w, "{\"amount\":\"4\"}", before, BEGIN + 2 * HOUR, NULL, BEGIN + 3 * HOUR);
    assert_true(s.current && s.exceeded);
    s = judge_now(w, "{\"amount\":\"4\"}", BEGIN + HOUR); /* back: the ledger forgets nothing */
    assert_int_equal(s.spent, 5000000);
    is_reported(w, s, "2026-09", "USD");
}

/* A process that starts, or cannot read the ledger, lifts nothing. */
static void goes_on_from_the_status(void **state)
{
    static const struct {
        const char *before;
        int64_t spent;
    } cases[] = {
        {NULL, 0},
        {"{\"month\":\"2026-09\",\"currency\":\"USD\",\"spent\":\"4.000001\"}", 4000001},
        {"{\"month\":\"2026-08\",\"currency\":\"USD\",\"spent\":\"4.00\"}", 0},
        {"{\"month\":\"2026-09\",\"currency\":\"EUR\",\"spent\":\"4.00\"}", 0},
        {"{\"month\":\"2026-09\",\"currency\":\"USD\",\"spent\":\"-4.00\"}", 0},
        {"{\"month\":\"2026-09\",\"currency\":\"USD\",\"spent\":\"many\"}", 0},
        {"{\"month\":\"2026-09\",\"currency\":\"USD\",\"spent\":4}", 0},
        {"\"2026-09\"", 0},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct budget_state s =
            judge(w, "{\"amount\":\"4\"}", NULL, 0, cases[i].before, BEGIN + HOUR);

        assert_false(s.current);
        assert_int_equal(s.spent, cases[i].spent);
        assert_int_equal(s.exceeded, cases[i].spent > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_specs, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(says_amounts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(is_what_the_report_says, world_setup_started,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(another_currency_is_not_added, world_setup_started,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(thresholds_are_reached_exactly, world_setup_started,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_new_month_begins_with_nothing, world_setup_started,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_month_is_forecast, world_setup_started, world_teardown),
        cmocka_unit_test_setup_teardown(a_month_is_not_forecast_from_nothing, world_setup_started,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_forecast_is_shown_in_steps, world_setup_started,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_forecast_that_does_not_fit_is_the_most,
                                        world_setup_started, world_teardown),
        cmocka_unit_test_setup_teardown(a_clock_that_jumps, world_setup_started, world_teardown),
        cmocka_unit_test_setup_teardown(goes_on_from_the_status, world_setup_started,
                                        world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
