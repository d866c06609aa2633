/* SPDX-License-Identifier: Apache-2.0 */
/* A price has its borrowed twin, a condition its three statuses; no series is there twice, and
 * their number is bounded. A budget is that of the binding that counts. */
#include "test.h"

#include "grants/grants.h"
#include "grants/pool_gauges.h"

static void has(const struct buf *out, const char *line)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (!str_contains(buf_str(out), str_c(whole)))
        fail_msg("\"%s\" is not in:\n%.*s", line, STR_F(buf_str(out)));
}

static size_t samples(const struct buf *out)
{
    struct str rest = buf_str(out);
    size_t n = 0;

    while (rest.n)
        n += str_cut(&rest, '\n').p[0] != '#';
    return n;
}

static void test_prices(void **state)
{
    const struct config_pool pools[] = {
        {.name = STR("a100"), .mode = POOL_EXCLUSIVE, .price = STR("2.50"), .currency = STR("USD")},
        {.name = STR("free"), .mode = POOL_EXCLUSIVE},
        {.name = STR("l4"),
         .mode = POOL_TIME_SLICING,
         .price = STR("0.60"),
         .currency = STR("EUR"),
         .borrow_factor = STR("0.5")},
    };
    struct buf out = BUF_INIT(0);

    (void)state;
    fleet_price_metrics(&out, pools, COUNT(pools));
#define PRICE "sublet_fleet_pool_price_micros_per_gpu_hour{borrowed="
    has(&out, PRICE "\"false\",currency=\"USD\",mode=\"exclusive\",pool=\"a100\"} 2500000");
    has(&out, PRICE "\"true\",currency=\"USD\",mode=\"exclusive\",pool=\"a100\"} 2500000");
    has(&out, PRICE "\"false\",currency=\"EUR\",mode=\"time-slicing\",pool=\"l4\"} 600000");
    has(&out, PRICE "\"true\",currency=\"EUR\",mode=\"time-slicing\",pool=\"l4\"} 300000");
    assert_int_equal(samples(&out), 4);
    buf_fini(&out);
}

static void test_budgets(void **state)
{
    const struct grants_budget budget = {.is = true,
                                         .currency = STR("USD"),
                                         .amount = 2000000,
                                         .spent = 1500001,
                                         .forecast = 2100000,
                                         .threshold = 50};
    const struct grants_row rows[] = {
        {.tenant = STR("t"), .pool = STR("a"), .counts = true, .budget = budget},
        {.tenant = STR("t"), .pool = STR("a"), .budget = budget}, /* AlreadyBound */
        {.tenant = STR("u"), .pool = STR("a"), .counts = true},
    };
    const struct grants_view view = {.rows = rows, .n_rows = COUNT(rows)};
    struct buf out = BUF_INIT(0);

    (void)state;
    fleet_budget_metrics(&out, &view, 61);
#define OF_T "{currency=\"USD\",pool=\"a\",tenant=\"t\"} "
    has(&out, "sublet_fleet_budget_spent_micros" OF_T "1500001");
    has(&out, "sublet_fleet_budget_amount_micros" OF_T "2000000");
    has(&out, "sublet_fleet_budget_forecast_micros" OF_T "2100000");
    has(&out, "sublet_fleet_budget_ratio" OF_T "0.7500005");
    has(&out, "sublet_fleet_budget_threshold_percent" OF_T "50");
    has(&out, "sublet_fleet_budget_unread_seconds 61");
    assert_int_equal(samples(&out), 6);
    buf_fini(&out);
}

static void add(struct arena *a, struct fleet_conditions *list, const char *pool,
                struct str conditions)
{
    struct str text = arena_printf(a,
                                   "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"conditions\":"
                                   "[%.*s]}}",
                                   pool, STR_F(conditions));
    cJSON *tree;

    assert_int_equal(json_parse(a, text, &tree, NULL), 0);
    fleet_conditions_add(a, list, tree);
}

static void test_conditions(void **state)
{
    struct fleet_conditions list = {0};
    struct arena *a = arena_new(0);
    struct buf out = BUF_INIT(0);

    (void)state;
    add(a, &list, "a100",
        STR("{\"type\":\"Ready\",\"status\":\"True\"},"
            "{\"type\":\"Ready\",\"status\":\"False\"},"
            "{\"type\":\"Fenced\",\"status\":\"Unknown\"},"
            "{\"type\":\"Odd\",\"status\":\"Perhaps\"},{\"status\":\"True\"},7"));
    add(a, &list, "l4", STR("{\"type\":\"Ready\",\"status\":\"False\"}"));
    add(a, &list, "new", STR(""));
    fleet_conditions_metrics(&out, &list);
#define CONDITION "sublet_fleet_pool_condition{condition="
    has(&out, CONDITION "\"Ready\",pool=\"a100\",status=\"true\"} 1");
    has(&out, CONDITION "\"Ready\",pool=\"a100\",status=\"false\"} 0");
    has(&out, CONDITION "\"Ready\",pool=\"a100\",status=\"unknown\"} 0");
    has(&out, CONDITION "\"Fenced\",pool=\"a100\",status=\"unknown\"} 1");
    has(&out, CONDITION "\"Fenced\",pool=\"a100\",status=\"true\"} 0");
    has(&out, CONDITION "\"Ready\",pool=\"l4\",status=\"false\"} 1");
    assert_int_equal(samples(&out), 9);
    buf_fini(&out);
    arena_free(a);
}

static void test_conditions_are_bounded(void **state)
{
    struct fleet_conditions list = {0};
    struct arena *a = arena_new(0);
    struct buf many = BUF_INIT(0);

    (void)state;
    for (size_t i = 0; i < FLEET_CONDITIONS_OF_POOL + 4; i++)
        buf_printf(&many, "%s{\"type\":\"T%zu\",\"status\":\"True\"}", i ? "," : "", i);
    add(a, &list, "a100", buf_str(&many));
    assert_int_equal(list.n, FLEET_CONDITIONS_OF_POOL);
    for (size_t i = 0; i < FLEET_CONDITIONS / FLEET_CONDITIONS_OF_POOL + 2; i++)
        add(a, &list, "other", buf_str(&many));
    assert_int_equal(list.n, FLEET_CONDITIONS);
    buf_fini(&many);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_conditions_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
