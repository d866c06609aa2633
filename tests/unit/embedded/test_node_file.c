/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes file: what becomes of a group, and that every mistake is reported with its place. And
 * the ranges of numbers beneath addresses and ports. */
#include "../../../embedded/impl.h"
#include "host_world.h"

static cJSON *parse(struct arena *a, const char *text)
{
    struct err err;
    cJSON *nodes;

    err_init(&err, a);
    if (node_file_parse(a, str_c(text), &nodes, &err))
        fail_msg("%.*s", STR_F(err.message));
    return nodes;
}

static void test_the_built_in_set(void **state)
{
    struct arena *a = arena_new(0);
    const cJSON *nodes = parse(a, ""), *first = json_at(nodes, 0);

    (void)state;
    assert_int_equal(json_count(nodes), 6);
    assert_true(str_eqc(meta_name(first), "gpu-a100-1"));
    assert_true(
        str_eqc(json_str(json_get(json_path(first, "metadata.labels"), "nvidia.com/gpu.product")),
                "NVIDIA-A100-SXM4-80GB"));
    assert_true(
        str_eqc(json_str(json_get(json_path(first, "status.allocatable"), "nvidia.com/gpu")), "8"));
    assert_int_equal(json_count(json_path(first, "spec.taints")), 2);
    assert_null(json_get(json_path(json_at(nodes, 4), "status.capacity"), "nvidia.com/gpu"));
    arena_free(a);
}

static void test_a_sliced_gpu_counts_its_replicas(void **state)
{
    struct arena *a = arena_new(0);
    const cJSON *node =
        json_at(parse(a, "nodes: [{name: t, gpu: {model: t4, count: 2, replicas: 4}, "
                         "allocatable: {cpu: 1.5}}]"),
                0);

    (void)state;
    assert_true(
        str_eqc(json_str(json_get(json_path(node, "status.capacity"), "nvidia.com/gpu")), "8"));
    assert_true(
        str_eqc(json_str(json_get(json_path(node, "metadata.labels"), "nvidia.com/gpu.product")),
                "Tesla-T4-SHARED"));
    assert_true(str_eqc(json_str_at(node, "status.allocatable.cpu"), "1.5"));
    assert_true(str_eqc(json_str_at(node, "status.capacity.cpu"), "32"));
    arena_free(a);
}

static void test_mistakes_are_told_with_their_place(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"[]", "nodes: file: must be a map with the key \"nodes\""},
        {"node: []", "nodes: node: unknown key"},
        {"{}", "nodes: nodes: is needed"},
        {"nodes: {}", "nodes: nodes: must be a list"},
        {"nodes: [7]", "nodes: nodes[0]: must be a map"},
        {"nodes: [{}]", "nodes: nodes[0].name: is needed"},
        {"nodes: [{name: a, cuont: 2}]", "nodes: nodes[0].cuont: unknown key"},
        {"nodes: [{name: a, count: 2}]",
         "nodes: nodes[0].name: needs %d, the number, where count is above 1"},
        {"nodes: [{name: a, count: 0}]", "nodes: nodes[0].count: must be a number from 1 to 5000"},
        {"nodes: [{name: a}, {name: a}]", "nodes: nodes[1].name: a second node \"a\""},
        {"nodes: [{name: a, gpu: {model: b}}]",
         "nodes: nodes[0].gpu.model: unknown value \"b\": want one of a100|h100|l4|t4"},
        {"nodes: [{name: a, capacity: {cpu: many}}]",
         "nodes: nodes[0].capacity.cpu: must be a quantity of at least 0"},
        {"nodes: [{name: a, taints: [{key: k, effect: Never}]}]",
         "nodes: nodes[0].taints[0].effect: want one of NoSchedule|PreferNoSchedule|NoExecute"},
        {"nodes: [{name: a, name: b}]", "nodes: line 1: key \"name\" already set in map"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *a = arena_new(0);
        struct err err;

        err_init(&err, a);
        assert_int_equal(embedded_check_nodes(str_c(rows[i].text), &err), -1);
        assert_string_equal(arena_cstr(a, err.message), rows[i].words);
        arena_free(a);
    }
}

static void test_numbers_have_one_owner(void **state)
{
    struct numbers *n = numbers_new(10, 12);
    uint32_t number;

    (void)state;
    assert_true(numbers_take(n, 10, STR("a")));
    assert_true(numbers_take(n, 10, STR("a")));
    assert_false(numbers_take(n, 10, STR("b")));
    assert_false(numbers_take(n, 13, STR("b")));
    assert_true(numbers_find(n, 0, &number));
    assert_int_equal(number, 11);
    assert_true(numbers_take(n, 11, STR("b")) && numbers_take(n, 12, STR("b")));
    assert_false(numbers_find(n, 7, &number));
    numbers_drop(n, 11, STR("a")); /* not its owner */
    assert_true(numbers_owned_by(n, 11, STR("b")));
    numbers_drop(n, 11, STR("b"));
    assert_true(numbers_find(n, 2, &number));
    assert_int_equal(number, 11);
    numbers_free(n);
}

static void test_addresses_are_read_strictly(void **state)
{
    struct arena *a = arena_new(0);
    uint32_t ip;

    (void)state;
    assert_true(numbers_ip_parse(STR("10.96.0.1"), &ip));
    assert_int_equal(ip, API_SERVICE);
    assert_true(str_eqc(numbers_ip_format(a, ip), "10.96.0.1"));
    assert_false(numbers_ip_parse(STR("10.96.0"), &ip));
    assert_false(numbers_ip_parse(STR("10.96.0.1.2"), &ip));
    assert_false(numbers_ip_parse(STR("10.96.0.256"), &ip));
    assert_false(numbers_ip_parse(STR("::1"), &ip));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_built_in_set),
        cmocka_unit_test(test_a_sliced_gpu_counts_its_replicas),
        cmocka_unit_test(test_mistakes_are_told_with_their_place),
        cmocka_unit_test(test_numbers_have_one_owner),
        cmocka_unit_test(test_addresses_are_read_strictly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
