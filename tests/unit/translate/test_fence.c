/* SPDX-License-Identifier: Apache-2.0 */
/* Pools on the host's nodes: whether the nodes are what the pool says, and which nodes are open to
 * pods without devices. */

#include "test.h"

static int setup(void **state)
{
    *state = fixture_new("");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

#define NODE(name, labels, taint)                                                                  \
    "{metadata: {name: " name ", labels: {" labels "}}, spec: {taints: [{" taint "}]}}"
#define TAINT(value, effect) "key: sublet.dev/pool, value: " value ", effect: " effect

/* NULL for nothing to report. */
static const char *problem(struct fixture *f, const char *nodes, struct pool_problem *p)
{
    *p = (struct pool_problem){0};
    return pool_check_nodes(f->a, &f->config.pools[0], doc(f, nodes), p) ? NULL : p->reason;
}

static void nodes_of_a_pool(void **state)
{
    struct fixture *f = *state;
    struct pool_problem p;

    use_config(f, "pools: [{name: a, nodeSelector: {sublet.dev/pool: a, zone: z}, tolerations: "
                  "[{key: sublet.dev/pool, value: a}, {key: nvidia.com/gpu, operator: "
                  "Exists}]}]");
    assert_string_equal(problem(f, "[]", &p), "PoolWithoutNodes");
    assert_string_equal(
        problem(f, "[" NODE("n", "sublet.dev/pool: a", TAINT("a", "NoSchedule")) "]", &p),
        "PoolWithoutNodes");
    assert_null(
        problem(f, "[" NODE("n", "sublet.dev/pool: a, zone: z", TAINT("a", "NoSchedule")) "]", &p));
    /* Not another's taint, nor one that only discourages, nor one that every GPU pod tolerates. */
    assert_string_equal(
        problem(
            f,
            "[" NODE("n1", "sublet.dev/pool: a, zone: z", TAINT("b", "NoSchedule")) ", " NODE(
                "n2", "sublet.dev/pool: a, zone: z",
                TAINT("a",
                      "PreferNoSchedule")) ", " NODE("n3", "sublet.dev/pool: a, zone: z",
                                                     "key: nvidia.com/gpu, effect: "
                                                     "NoSchedule") ", " NODE("n4",
                                                                             "sublet.dev/pool: a, "
                                                                             "zone: z",
                                                                             TAINT(
                                                                                 "a",
                                                                                 "NoExecute")) "]",
            &p),
        "PoolNodesUntainted");
    assert_str(p.message, "3 of 4 nodes of pool \"a\" lack its taint");
    assert_str(p.detail, "n1, n2, n3");
    /* A pool with no taint of its own relies on the convention. */
    use_config(f, "pools: [{name: a, nodeSelector: {p: a}, tolerations: [{key: nvidia.com/gpu, "
                  "operator: Exists}]}]");
    assert_null(
        problem(f, "[" NODE("n", "p: a", "key: nvidia.com/gpu, effect: NoSchedule") "]", &p));
    use_config(f, "pools: [{name: a, nodeSelector: {p: a}}]");
    assert_string_equal(problem(f, "[" NODE("n", "p: a", TAINT("a", "NoSchedule")) "]", &p),
                        "PoolNodesUntainted");
}

static void nodes_without_a_pool(void **state)
{
    struct fixture *f = *state;

    use_config(f, "pools: [{name: a, nodeSelector: {p: a}}]");
    assert_true(translate_node_open(f->a, &f->config, doc(f, NODE("n", "p: b", ""))));
    assert_false(translate_node_open(f->a, &f->config, doc(f, NODE("n", "p: a", ""))));
    assert_false(
        translate_node_open(f->a, &f->config, doc(f, NODE("n", "sublet.dev/pool: x", ""))));
    assert_false(translate_node_open(f->a, &f->config,
                                     doc(f, NODE("n", "nvidia.com/gpu.present: 'true'", ""))));
    use_config(f, "policy: {cpuNodes: [sublet.dev/pool=cpu]}");
    assert_true(
        translate_node_open(f->a, &f->config, doc(f, NODE("n", "sublet.dev/pool: cpu", ""))));
    assert_false(translate_node_open(f->a, &f->config, doc(f, NODE("n", "p: b", ""))));
}

#define MACHINE(labels, resource)                                                                  \
    "{metadata: {name: n, labels: {" labels "}}, status: {capacity: {cpu: 4, hugepages-2Mi: 0, "   \
    "attachable-volumes-csi: 9" resource "}}}"

/* A node with nothing but a device plugin: no label, no taint. */
static void nodes_with_devices(void **state)
{
    static const struct {
        const char *config, *node;
        bool open, unfenced;
    } cases[] = {
        {"", MACHINE("", ""), true, false},
        {"", MACHINE("", ", x.example/npu: 8"), false, true},
        {"", MACHINE("", ", nvidia.com/gpu: 0"), false, true},
        {"", MACHINE("nvidia.com/gpu.present: 'true'", ", nvidia.com/gpu: 8"), false, false},
        {"", MACHINE("cloud.google.com/gke-accelerator: t4", ""), false, false},
        {"", MACHINE("sublet.dev/pool: b", ", x.example/npu: 8"), false, false},
        {"", MACHINE("", ", vpc.amazonaws.com/pod-eni: 9, devices.kubevirt.io/kvm: 1k"), true,
         false},
        {"", MACHINE("", ", node.kubernetes.io/thing: 9"), true, false},
        {"policy: {plainResources: [x.example/]}", MACHINE("", ", x.example/npu: 8"), true, false},
        {"policy: {plainResources: [x.example/npu]}", MACHINE("", ", x.example/gpu: 8"), false,
         true},
        {"policy: {cpuNodes: [tier=shared]}", MACHINE("tier: shared", ", x.example/npu: 8"), true,
         false},
        {"policy: {cpuNodes: [tier=shared]}", MACHINE("", ", x.example/npu: 8"), false, false},
        {"pools: [{name: a, nodeSelector: {p: a}}]", MACHINE("p: a", ", x.example/npu: 8"), false,
         false},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *node = doc(f, cases[i].node);

        use_config(f, cases[i].config);
        assert_int_equal(translate_node_open(f->a, &f->config, node), cases[i].open);
        assert_int_equal(translate_node_unfenced(f->a, &f->config, node), cases[i].unfenced);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_of_a_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_without_a_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_with_devices, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
