/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a budget: nothing, no borrowed share, or nothing new; until the month is over
 * or it is raised. */
#include "grant_world.h"

#define OCTOBER INT64_C(1790812800)

/* What team-0 cost in a month, as month.c computes it. */
struct money {
    struct config_pool pool;
    struct fleet_usage_line line, *lines[1];
    struct usage month;
    struct fleet_usage_line line_of_day, *lines_of_day[1];
    struct usage day;
    struct budget_facts facts;
};

static void spend(struct host_of *h, struct money *m, int64_t units)
{
    *m = (struct money){.pool = {.name = STR("a100"), .price = STR("2.50"), .currency = STR("USD")},
                        .line = {.kind = USAGE_HELD, .currency = STR("USD"), .cost = {units, 1}}};
    m->line.values[USAGE_TENANT] = STR("team-0");
    m->line.values[USAGE_POOL] = STR("a100");
    m->lines[0] = &m->line;
    m->month = (struct usage){.lines = m->lines, .n_lines = 1};
    m->facts = (struct budget_facts){&m->pool, 1, &m->month, h->now_s * 1000000, 0, NULL};
    h->budgets = &m->facts;
}

/* The same, with what it cost in the 24 hours before. */
static void pace(struct host_of *h, struct money *m, int64_t units, int64_t of_day)
{
    spend(h, m, units);
    m->line_of_day = m->line;
    m->line_of_day.cost = (struct exact){of_day, 1};
    m->lines_of_day[0] = &m->line_of_day;
    m->day = (struct usage){.from_us = (h->now_s - 86400) * 1000000,
                            .until_us = h->now_s * 1000000,
                            .lines = m->lines_of_day,
                            .n_lines = 1};
    m->facts.day = &m->day;
}

static void edit(struct host_of *h, int tenant, const char *spec)
{
    cJSON *b = h->bindings[tenant];

    json_remove(b, "spec");
    json_set(h->a, b, "spec", object(h, spec));
    json_set_i64(h->a, json_get(b, "metadata"), "generation",
                 json_i64_at(b, "metadata.generation", 0) + 1);
    stamp(h, b);
}

#define SPEC(enforcement, amount)                                                                  \
    "{'pool':'a100','guarantee':'4','burst':'12','budget':{'amount':'" amount                      \
    "','enforcement':'" enforcement "'}}"
#define SPENT "the budget of 100.00 USD for 2026-09 is spent"

static void thresholds_are_conditions(void **state)
{
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Warn", "100"));
    spend(&h, &m, 49);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetWarning"), "False BelowThresholds ");
    assert_str(condition_text(&h, h.bindings[0], "BudgetExceeded"), "False WithinBudget ");
    assert_str(status_text(&h, 0, "status.budget"),
               "{\"month\":\"2026-09\",\"amount\":\"100.00\",\"currency\":\"USD\",\"spent\":"
               "\"49.00\",\"percent\":49,\"enforcement\":\"Warn\",\"warnAt\":[50,80,100]}");
    m.line.cost = (struct exact){999, 20}; /* 49.95: the same percent, so that nothing is written */
    check_step(&h, "");
    spend(&h, &m, 81);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetWarning"),
               "True BudgetThresholdReached 80% of the budget of 100.00 USD for 2026-09 is spent");
    spend(&h, &m, 300);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetExceeded"), "True BudgetExceeded " SPENT);
    assert_int_equal(grant_of(&h, 0), 16); /* a warning takes nothing */
    assert_str(status_text(&h, 0, "status.budget.percent"), "300");
    edit(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetExceeded"), "  ");
    assert_str(condition_text(&h, h.bindings[0], "BudgetWarning"), "  ");
    assert_str(status_text(&h, 0, "status.budget"), "-");
    arena_free(h.a);
}

/* It is said before the budget is spent, and takes nothing. */
static void a_forecast_is_a_condition(void **state)
{
    const int64_t left = (OCTOBER - NOW) / 86400; /* whole days of the month */
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    h.now_s = OCTOBER - left * 86400;
    bind_team(&h, 0, SPEC("Queue", "100"));
    spend(&h, &m, 40);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetForecastExceeded"), "False NoForecast ");
    assert_str(status_text(&h, 0, "status.budget.forecast"), "-");
    pace(&h, &m, 40, 60 / left);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetForecastExceeded"),
               "False ForecastWithinBudget ");
    pace(&h, &m, 40, 60);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetForecastExceeded"),
               "True ForecastBeyondBudget at the rate of the last 24 hours the month costs more "
               "than the budget of 100.00 USD for 2026-09");
    assert_str(status_text(&h, 0, "status.budget"),
               arena_printf(h.a,
                            "{\"month\":\"2026-09\",\"amount\":\"100.00\",\"currency\":\"USD\","
                            "\"spent\":\"40.00\",\"percent\":40,\"forecast\":\"%lld.00\","
                            "\"enforcement\":\"Queue\",\"warnAt\":[50,80,100]}",
                            (long long)(40 + 60 * left))
                   .p);
    assert_str(condition_text(&h, h.bindings[0], "BudgetExceeded"), "False WithinBudget ");
    assert_int_equal(grant_of(&h, 0), 16);
    m.line_of_day.cost = (struct exact){601, 10}; /* less than a hundredth: nothing is written */
    check_step(&h, "");
    m.facts.month = m.facts.day = NULL; /* a process that starts */
    check_step(&h, "");
    pace(&h, &m, 40, 0);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetForecastExceeded"),
               "False ForecastWithinBudget ");
    edit(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetForecastExceeded"), "  ");
    arena_free(h.a);
}

/* The guarantee stays; what is borrowed is taken back with notice, though no other tenant wants
 * it. */
static void what_is_borrowed_is_taken_back(void **state)
{
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Queue", "100"));
    spend(&h, &m, 99);
    settle(&h);
    run_on(&h, 0, 10, NULL);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 16);
    spend(&h, &m, 100);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 10);
    assert_str(status_text(&h, 0, "status.reclaim.gpus"), "6");
    assert_str(status_text(&h, 0, "status.reclaim.notBefore"),
               arena_cstr(h.a, time_format_s(h.a, NOW + 60)));
    assert_str(condition_text(&h, h.bindings[0], "BudgetExceeded"),
               "True BudgetExceeded " SPENT
               ": nothing is granted beyond the guarantee until it ends or the amount is raised");
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted ");
    h.now_s += 30;
    check_step(&h, ""); /* the notice stays */
    run_on(&h, 0, 4, NULL);
    settle(&h);
    assert_str(status_text(&h, 0, "status.reclaim"), "-");
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 4);
    spend(&h, &m, 500);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    arena_free(h.a);
}

/* Others may have what it gave back; once it may borrow again, they are neighbours as before. */
static void a_raised_amount_lifts_it(void **state)
{
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Queue", "100"));
    bind_team(&h, 1, "{'pool':'a100','guarantee':'2','burst':'14'}");
    spend(&h, &m, 100);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    assert_int_equal(grant_of(&h, 1), 12);
    edit(&h, 0, SPEC("Queue", "100.000001"));
    settle(&h);
    assert_true(grant_of(&h, 0) > 4);
    assert_str(condition_text(&h, h.bindings[0], "BudgetExceeded"), "False WithinBudget ");
    arena_free(h.a);
}

/* The month turns by the clock alone, before the ledger is read; a process that starts meanwhile
 * has only the status to go by. */
static void a_new_month_lifts_it(void **state)
{
    struct host_of h;
    struct money m;
    struct grant_state s;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Queue", "100"));
    spend(&h, &m, 100);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    look(&h, &s);
    assert_int_equal(s.next_s, OCTOBER);
    grant_state_end(&s);
    m.facts.month = NULL; /* it starts */
    check_step(&h, "");
    h.now_s = OCTOBER - 1;
    check_step(&h, "");
    h.now_s = OCTOBER;
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 16);
    assert_str(status_text(&h, 0, "status.budget.month"), "2026-10");
    assert_str(status_text(&h, 0, "status.budget.spent"), "0.00");
    h.now_s = OCTOBER - 10; /* a clock that is set back: until the ledger is read it is not known */
    settle(&h);
    spend(&h, &m, 100);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    arena_free(h.a);
}

/* The month is that of the ledger's reader, whatever the clock of the host says now. */
static void a_clock_that_is_set_lifts_nothing(void **state)
{
    struct host_of h;
    struct money m;
    struct grant_state s;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Queue", "100"));
    spend(&h, &m, 100);
    settle(&h);
    m.facts.now_s = h.now_s + 60;
    h.now_s = OCTOBER + 86400;
    check_step(&h, "");
    look(&h, &s); /* and it looks again when that month ends */
    assert_int_equal(s.next_s, h.now_s + OCTOBER - m.facts.now_s);
    grant_state_end(&s);
    m.facts.month = NULL; /* one that starts */
    check_step(&h, "");
    assert_int_equal(grant_of(&h, 0), 4);
    arena_free(h.a);
}

static void a_stop_ends_nothing(void **state)
{
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Stop", "100"));
    bind_team(&h, 1, "{'pool':'a100','guarantee':'8'}");
    spend(&h, &m, 1);
    settle(&h);
    run_on(&h, 0, 6, NULL);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    spend(&h, &m, 100);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 6);
    assert_int_equal(units_at(h.quotas[0], "spec.hard"), 6);
    assert_str(status_text(&h, 0, "status.reclaim"), "-");
    assert_str(status_text(&h, 0, "status.maintenance"), "{\"state\":\"cordon\",\"reason\":\"" SPENT
                                                         "\",\"until\":\"2026-10-01T00:00:00Z\"}");
    assert_str(status_text(&h, 1, "status.maintenance"), "-"); /* of its tenant alone */
    run_on(&h, 0, 2, NULL); /* nothing takes the place of what ends, not even of the guarantee */
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 2);
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted ");
    h.now_s = OCTOBER;
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_str(status_text(&h, 0, "status.maintenance"), "-");
    arena_free(h.a);
}

static void without_a_price_it_is_refused(void **state)
{
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Warn", "100"));
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "Ready"),
               "False Invalid budget needs prices: pool \"a100\" has no metering in the "
               "configuration of the fleet");
    assert_int_equal(grant_of(&h, 0), 0);
    spend(&h, &m, 100);
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted ");
    assert_str(condition_text(&h, h.bindings[0], "BudgetAccepted"), "True Accepted ");
    arena_free(h.a);
}

/* The price of a pool reaches its tenants as the ledger bills it, however the file spells it; of a
 * pool that the file does not price, as its GPUPool has it. */
static void the_price_reaches_the_tenant(void **state)
{
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    json_set(h.a, json_get(h.pool, "spec"), "metering", object(&h, "{'price':'9'}"));
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4'}");
    settle(&h);
    assert_str(status_text(&h, 0, "status.pool.metering"), "{\"price\":\"9\"}");
    spend(&h, &m, 0);
    settle(&h);
    assert_str(status_text(&h, 0, "status.pool.metering"),
               "{\"price\":\"2.5\",\"currency\":\"USD\",\"per\":\"GPUHour\"}");
    m.pool.price = STR_NULL;
    settle(&h);
    assert_str(status_text(&h, 0, "status.pool.metering"), "{\"price\":\"9\"}");
    m.pool.price = STR("0002.50");
    m.pool.borrow_factor = STR("0.80");
    m.pool.currency = STR("");
    settle(&h);
    assert_str(status_text(&h, 0, "status.pool.metering"),
               "{\"price\":\"2.5\",\"per\":\"GPUHour\",\"borrowFactor\":\"0.8\"}");
    check_step(&h, "");
    arena_free(h.a);
}

/* Of a binding that counts it takes neither the guarantee nor what is borrowed, and the budget that
 * was accepted last stays: a typing error neither stops a team nor lifts what it has spent. */
static void one_that_makes_no_sense_is_refused_alone(void **state)
{
    static const struct {
        const char *budget, *why;
    } rows[] = {
        {"{'amount':'900','currency':'UDS'}",
         "budget.currency is \"UDS\", but pool \"a100\" costs USD"},
        {"{'amount':'900','period':'Week'}", "budget.period is Month"},
        {"{'amount':'many'}",
         "budget.amount is a sum of money greater than 0 such as \"1500.00\", of at "
         "most 6 places"},
        {"{'amount':'900','enforcement':'End'}", "budget.enforcement is Warn, Queue or Stop"},
        {"{'amount':'900','warnAt':[2,1]}",
         "budget.warnAt has at most 10 percentages, 1 to 1000, in ascending order"},
    };
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, SPEC("Queue", "100"));
    bind_team(&h, 1, "{'pool':'a100','guarantee':'4'}");
    spend(&h, &m, 100);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    for (size_t i = 0; i < COUNT(rows); i++) {
        edit(&h, 0,
             arena_printf(h.a, "{'pool':'a100','guarantee':'5','burst':'12','budget':%s}",
                          rows[i].budget)
                 .p);
        settle(&h);
        assert_str(condition_text(&h, h.bindings[0], "Ready"), "True Granted ");
        assert_str(condition_text(&h, h.bindings[0], "BudgetAccepted"),
                   arena_printf(h.a,
                                "False BudgetRefused spec.budget is refused, and the one before it "
                                "stays in force: %s",
                                rows[i].why)
                       .p);
        assert_int_equal(grant_of(&h, 0), 5); /* of the edit its guarantee counts */
        assert_str(
            condition_text(&h, h.bindings[0], "BudgetExceeded"),
            "True BudgetExceeded " SPENT
            ": nothing is granted beyond the guarantee until it ends or the amount is raised");
    }
    m.pool.price = STR_NULL; /* taken out of the file of the fleet */
    edit(&h, 0, SPEC("Queue", "100"));
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 4);
    assert_str(
        condition_text(&h, h.bindings[0], "BudgetAccepted"),
        "False BudgetRefused spec.budget is refused, and the one before it stays in force: "
        "budget needs prices: pool \"a100\" has no metering in the configuration of the fleet");
    m.pool.price = STR("2.50");
    edit(&h, 0, SPEC("Queue", "900"));
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetAccepted"), "True Accepted ");
    assert_int_equal(grant_of(&h, 0), 12);
    arena_free(h.a);
}

/* Those of the edit are refused with it, and go to no other budget. */
static void its_thresholds_stay(void **state)
{
    static const char *const edits[] = {
        "{'amount':'many'}",
        "{'amount':'100','warnAt':[2,1]}",
        "{'amount':'100','currency':'UDS','warnAt':[10]}",
        "{'amount':'100','currency':'UDS','warnAt':[]}",
    };
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0,
              "{'pool':'a100','guarantee':'4','budget':{'amount':'100','warnAt':[30,60,90]}}");
    spend(&h, &m, 85);
    settle(&h);
    for (size_t i = 0; i < COUNT(edits); i++) {
        edit(&h, 0, arena_printf(h.a, "{'pool':'a100','guarantee':'4','budget':%s}", edits[i]).p);
        settle(&h);
        assert_str(condition_text(&h, h.bindings[0], "BudgetWarning"),
                   "True BudgetThresholdReached 60% of the budget of 100.00 USD for 2026-09 is "
                   "spent");
        check_step(&h, "");
    }
    assert_str(status_text(&h, 0, "status.budget.warnAt"), "[30,60,90]");
    edit(&h, 0, "{'pool':'a100','guarantee':'4','budget':{'amount':'100','warnAt':[]}}");
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetWarning"), "False BelowThresholds ");
    edit(&h, 0, "{'pool':'a100','guarantee':'4','budget':{'amount':'many'}}");
    settle(&h); /* none is as good as any */
    assert_str(condition_text(&h, h.bindings[0], "BudgetWarning"), "False BelowThresholds ");
    arena_free(h.a);
}

static void of_one_without_a_budget_nothing_is_in_force(void **state)
{
    struct host_of h;
    struct money m;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    spend(&h, &m, 100);
    settle(&h);
    edit(&h, 0,
         "{'pool':'a100','guarantee':'4','burst':'12','budget':{'amount':'1','currency':'EUR'}}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 16);
    assert_str(condition_text(&h, h.bindings[0], "BudgetAccepted"),
               "False BudgetRefused spec.budget is refused, and none is in force, as before it: "
               "budget.currency is \"EUR\", but pool \"a100\" costs USD");
    assert_str(status_text(&h, 0, "status.budget"), "-");
    edit(&h, 0, "{'pool':'a100','guarantee':'4','burst':'12'}");
    settle(&h);
    assert_str(condition_text(&h, h.bindings[0], "BudgetAccepted"), "  ");
    bind_team(&h, 1, "{'pool':'a100','guarantee':'4','budget':{'amount':'1','currency':'EUR'}}");
    settle(&h); /* a binding that was created grants nothing before it is valid */
    assert_str(condition_text(&h, h.bindings[1], "Ready"),
               "False Invalid budget.currency is \"EUR\", but pool \"a100\" costs USD");
    assert_int_equal(grant_of(&h, 1), 0);
    arena_free(h.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds_are_conditions),
        cmocka_unit_test(a_forecast_is_a_condition),
        cmocka_unit_test(what_is_borrowed_is_taken_back),
        cmocka_unit_test(a_raised_amount_lifts_it),
        cmocka_unit_test(a_new_month_lifts_it),
        cmocka_unit_test(a_clock_that_is_set_lifts_nothing),
        cmocka_unit_test(a_stop_ends_nothing),
        cmocka_unit_test(without_a_price_it_is_refused),
        cmocka_unit_test(the_price_reaches_the_tenant),
        cmocka_unit_test(one_that_makes_no_sense_is_refused_alone),
        cmocka_unit_test(its_thresholds_stay),
        cmocka_unit_test(of_one_without_a_budget_nothing_is_in_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
