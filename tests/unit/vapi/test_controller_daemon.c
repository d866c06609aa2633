/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSets: which nodes, one pod on each, rolling updates. */
#include "controller_world.h"

#define SET(more)                                                                                  \
    "{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'app':'a'}},"                     \
    "'template':{'metadata':{'labels':{'app':'a'}},"                                               \
    "'spec':{" more "'containers':[{'name':'c','image':'one'}]}}}}"
#define AFFINITY(key, op, value)                                                                   \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"                \
    "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'" key "','operator':'" op                  \
    "','values':['" value "']}]}]}}},"

static struct world *W;

static int set_up(void **state)
{
    (void)state;
    W = world_new(1);
    world_create(W, "namespaces", "", "{'metadata':{'name':'n'}}");
    world_node(W, "x", "{'disk':'ssd','size':'10'}");
    world_node(W, "y", "{'disk':'hdd','size':'3'}");
    world_node(W, "z", "{}");
    world_settle(W);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_free(W);
    return 0;
}

static int64_t status_of(const char *field)
{
    return world_i64(json_get(world_get(W, "daemonsets.apps", "n", "d"), "status"), field);
}

static void one_pod_on_each_node(void **state)
{
    (void)state;
    world_create(W, "daemonsets.apps", "n", SET(""));
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    assert_int_equal(status_of("desiredNumberScheduled"), 3);
    assert_int_equal(status_of("currentNumberScheduled"), 3);
    assert_int_equal(status_of("numberReady"), 3);
    assert_int_equal(status_of("numberAvailable"), 3);
    assert_int_equal(status_of("updatedNumberScheduled"), 3);
    assert_int_equal(status_of("observedGeneration"), 1);
    assert_int_equal(world_events(W, "n", "DaemonSet", "SuccessfulCreate"), 3);

    world_node(W, "new", "{}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 4);
    world_delete(W, "nodes", "", "new", NULL);
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
}

static void selects_nodes(void **state)
{
    static const struct {
        const char *set;
        size_t pods;
    } cases[] = {
        {SET("'nodeSelector':{'disk':'ssd'},"), 1}, {SET(AFFINITY("disk", "In", "hdd")), 1},
        {SET(AFFINITY("disk", "NotIn", "hdd")), 2}, {SET(AFFINITY("size", "Gt", "5")), 1},
        {SET(AFFINITY("size", "Lt", "20")), 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        world_create(W, "daemonsets.apps", "n", cases[i].set);
        world_settle(W);
        assert_int_equal(world_count(W, "pods", "n", "app", "a"), cases[i].pods);
        world_delete(W, "daemonsets.apps", "n", "d", NULL);
        world_pass(W, 60);
        assert_int_equal(world_count(W, "pods", "n", "app", "a"), 0);
    }
}

static void heeds_taints(void **state)
{
    (void)state;
    world_patch(W, "nodes", "", "x",
                "{'spec':{'taints':[{'key':'gpu','value':'yes','effect':'NoSchedule'}]}}");
    world_patch(W, "nodes", "", "y", "{'spec':{'unschedulable':true}}");
    world_create(W, "daemonsets.apps", "n", SET(""));
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 2);
    /* NoSchedule lets a pod stay, NoExecute does not. */
    world_patch(W, "nodes", "", "z", "{'spec':{'taints':[{'key':'k','effect':'NoSchedule'}]}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 2);
    assert_int_equal(status_of("numberMisscheduled"), 1);
    world_patch(W, "nodes", "", "z", "{'spec':{'taints':[{'key':'k','effect':'NoExecute'}]}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 1);
    assert_int_equal(status_of("numberMisscheduled"), 0);
}

static enum fate new_ones_pend(void *ctx, const cJSON *pod)
{
    (void)ctx;
    struct str image = json_str_at(json_first(json_path(pod, "spec.containers")), "image");

    return str_eqc(image, "one") ? POD_READY : POD_RUNS;
}

static void rolls_no_more_than_allowed(void **state)
{
    (void)state;
    world_fates(W, new_ones_pend, NULL);
    world_create(W, "daemonsets.apps", "n", SET(""));
    world_settle(W);
    world_patch(W, "daemonsets.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}");
    world_settle(W);
    assert_int_equal(status_of("numberUnavailable"), 1);
    assert_int_equal(status_of("updatedNumberScheduled"), 1);
    world_fates(W, NULL, NULL);
    world_settle(W);
    assert_int_equal(status_of("updatedNumberScheduled"), 3);
    assert_int_equal(status_of("numberAvailable"), 3);
    assert_int_equal(world_count(W, "controllerrevisions.apps", "n", NULL, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_pod_on_each_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(selects_nodes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(heeds_taints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rolls_no_more_than_allowed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
