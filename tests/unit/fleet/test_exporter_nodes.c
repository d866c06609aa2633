/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU node without an exporter is seen, whatever the others do; a node of two pools once. */
#include "test.h"

#include "telemetry/exporter_nodes.h"

static struct fleet_capacity gpus(struct str node, struct str pool, int64_t n, bool down)
{
    return (struct fleet_capacity){.node = node, .pool = pool, .total = {n, 1}, .down = down};
}

static void test_which_nodes_are_shown(void **state)
{
    struct fleet_capacity capacities[] = {
        gpus(STR("absent"), STR("a100"), 8, false), gpus(STR("absent"), STR("h100"), 8, false),
        gpus(STR("fine"), STR("a100"), 8, false),   gpus(STR("slow"), STR("a100"), 8, false),
        gpus(STR("begins"), STR("a100"), 8, false), gpus(STR("down"), STR("a100"), 8, true),
        gpus(STR("left"), STR("a100"), 0, false)};
    const struct fleet_records now = {.capacities = capacities, .n_capacities = COUNT(capacities)};
    const struct exporter_row rows[] = {
        {STR("fine"), EXPORTER_ANSWERING, EXPORTER_PARSE, 1000},
        {STR("fine"), EXPORTER_FAILING, EXPORTER_PARSE, 9000}, /* one that is being replaced */
        {STR("slow"), EXPORTER_NEW, EXPORTER_TIMEOUT, 9000},
        {STR("slow"), EXPORTER_FAILING, EXPORTER_TIMEOUT, 90000},
        {STR("begins"), EXPORTER_NEW, EXPORTER_TIMEOUT, 2000},
        {STR("without-gpus"), EXPORTER_FAILING, EXPORTER_TIMEOUT, 2000}};
    struct arena *a = arena_new(0);
    struct exporter_nodes *n = exporter_nodes_new(a);
    struct exporter_nodes_view v;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        exporter_nodes_add(n, &rows[i]);
    exporter_nodes_end(n, &now, &v);
    assert_int_equal(v.n_rows, 3);
    assert_int_equal(v.n_absent, 1);
    assert_int_equal(v.n_not_shown, 0);
    assert_true(str_eqc(v.rows[0].node, "absent") && str_eqc(v.rows[0].pool, "a100"));
    assert_string_equal(v.rows[0].state, "absent");
    assert_null(v.rows[0].why);
    assert_true(str_eqc(v.rows[1].node, "slow"));
    assert_string_equal(v.rows[1].state, "failing");
    assert_string_equal(v.rows[1].why, "timeout");
    assert_int_equal(v.rows[1].age_ms, 90000);
    assert_true(str_eqc(v.rows[2].node, "begins"));
    assert_string_equal(v.rows[2].state, "new");
    arena_free(a);
}

/* More rows than are shown are counted. */
static void test_rows_are_bounded(void **state)
{
    struct arena *a = arena_new(0);
    size_t many = EXPORTER_NODES_ROWS + 7;
    struct fleet_capacity *capacities = arena_alloc(a, many * sizeof(*capacities));
    const struct fleet_records now = {.capacities = capacities, .n_capacities = many};
    struct exporter_nodes_view v;

    (void)state;
    for (size_t i = 0; i < many; i++)
        capacities[i] = gpus(arena_printf(a, "n%zu", i), STR("a100"), 1, false);
    exporter_nodes_end(exporter_nodes_new(a), &now, &v);
    assert_int_equal(v.n_rows, EXPORTER_NODES_ROWS);
    assert_int_equal(v.n_not_shown, 7);
    assert_int_equal(v.n_absent, many);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_nodes_are_shown),
        cmocka_unit_test(test_rows_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
