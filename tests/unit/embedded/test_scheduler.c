/* SPDX-License-Identifier: Apache-2.0 */
/* Where pods land, what is reported of those that land nowhere, and which are preempted. */
#include "host_world.h"

#define GPU_TOLERATED "'tolerations':[{'key':'nvidia.com/gpu','operator':'Exists'}]"

static bool starts(const char *text, const char *with)
{
    return str_has_prefix(str_c(text), str_c(with));
}

static void test_nodes_are_ready_and_addressed(void **state)
{
    const cJSON *node = world_get(H, "nodes", "", "gpu-1");

    (void)state;
    assert_string_equal(world_condition(H, node, "Ready"), "True");
    assert_string_equal(world_condition(H, node, "MemoryPressure"), "False");
    assert_true(str_has_prefix(
        json_str_at(json_at(json_path(node, "status.addresses"), 0), "address"), STR("172.30.")));
    assert_non_null(world_get(H, "leases.coordination.k8s.io", "kube-node-lease", "gpu-1"));
    assert_int_equal(json_count(world_list(H, "nodes", NULL)), 4);
}

static void test_pods_land_where_they_may(void **state)
{
    (void)state;
    host_pod("plain", "", "{}");
    assert_true(starts(host_node_of("plain"), "cpu-"));
    host_pod("gpu", GPU_TOLERATED ",'nodeSelector':{'pool':'a100'}",
             "{'limits':{'nvidia.com/gpu':'4'}}");
    assert_true(starts(host_node_of("gpu"), "gpu-"));
    host_pod("named",
             "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
             "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':"
             "['cpu-2']}]}]}}}",
             "{}");
    assert_string_equal(host_node_of("named"), "cpu-2");
    host_pod("preferred",
             GPU_TOLERATED
             ",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
             "'weight':1,'preference':{'matchExpressions':[{'key':'kubernetes.io/hostname',"
             "'operator':'In','values':['gpu-2']}]}}]}}",
             "{}");
    assert_string_equal(host_node_of("preferred"), "gpu-2");
    assert_int_equal(world_events(H, "n", "Pod", "Scheduled"), 4);
}

static void test_pods_spread_over_what_is_free(void **state)
{
    (void)state;
    host_pod("a", "", "{'requests':{'cpu':'1'}}");
    host_pod("b", "", "{'requests':{'cpu':'1'}}");
    assert_string_not_equal(host_node_of("a"), host_node_of("b"));
}

static void test_who_fits_nowhere_is_told_why(void **state)
{
    (void)state;
    host_pod("gpu", "", "{'limits':{'nvidia.com/gpu':'1'}}");
    assert_string_equal(host_node_of("gpu"), "");
    assert_string_equal(
        host_words_of("gpu"),
        "0/4 nodes are available: 2 Insufficient nvidia.com/gpu, 2 node(s) had untolerated "
        "taint(s). "
        "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.");
    assert_string_equal(world_reason(H, host_get("gpu"), "PodScheduled"), "Unschedulable");
    assert_int_equal(world_events(H, "n", "Pod", "FailedScheduling"), 1);
    host_pod("picky", "'nodeSelector':{'no':'where'}", "{}");
    assert_string_equal(host_words_of("picky"), "0/4 nodes are available: 2 node(s) didn't match "
                                                "Pod's node affinity/selector, 2 node(s) had "
                                                "untolerated taint(s). preemption: 0/4 nodes are "
                                                "available: 4 Preemption is not helpful for "
                                                "scheduling.");
}

static void test_room_that_comes_free_is_used_at_once(void **state)
{
    static const char all[] = "{'limits':{'nvidia.com/gpu':'4'}}";

    (void)state;
    host_pod("one", GPU_TOLERATED, all);
    host_pod("two", GPU_TOLERATED, all);
    host_pod("three", GPU_TOLERATED, all);
    assert_string_equal(host_node_of("three"), "");
    assert_string_equal(
        host_words_of("three"),
        "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. preemption: 0/4 nodes "
        "are available: 2 No preemption victims found for incoming pod, 2 Preemption "
        "is not helpful for scheduling.");
    world_delete(H, "pods", "n", "two", NULL);
    world_settle(H);
    assert_true(starts(host_node_of("three"), "gpu-"));
    assert_string_equal(host_phase_of("three"), "Running");
}

static void test_a_node_that_comes_is_used(void **state)
{
    (void)state;
    host_pod("waits", "'nodeSelector':{'kubernetes.io/hostname':'late'}", "{}");
    assert_string_equal(host_node_of("waits"), "");
    world_create(H, "nodes", "",
                 "{'metadata':{'name':'late','labels':{'kubernetes.io/hostname':'late'}}}");
    world_settle(H);
    assert_string_equal(host_node_of("waits"), "late");
    assert_string_equal(host_phase_of("waits"), "Running");
}

static void test_a_cordoned_node_takes_nobody(void **state)
{
    (void)state;
    world_patch(H, "nodes", "", "cpu-1", "{'spec':{'unschedulable':true}}");
    world_settle(H);
    host_pod("a", "", "{}");
    host_pod("b", "", "{}");
    assert_string_equal(host_node_of("a"), "cpu-2");
    assert_string_equal(host_node_of("b"), "cpu-2");
    host_pod("c", "'nodeSelector':{'kubernetes.io/hostname':'cpu-1'}", "{}");
    assert_non_null(strstr(host_words_of("c"), "1 node(s) were unschedulable"));
    world_patch(H, "nodes", "", "cpu-1", "{'spec':{'unschedulable':null}}");
    world_settle(H);
    assert_string_equal(host_node_of("c"), "cpu-1");
}

static const char APART[] =
    "'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
    "'labelSelector':{'matchLabels':{'app':'db'}},'topologyKey':'kubernetes.io/hostname'}]}}";

static void test_pods_keep_apart(void **state)
{
    (void)state;
    host_pod_full("a", "'labels':{'app':'db'}", APART, "");
    host_pod_full("b", "'labels':{'app':'db'}", APART, "");
    host_pod_full("c", "'labels':{'app':'db'}", APART, "");
    assert_string_not_equal(host_node_of("a"), host_node_of("b"));
    assert_string_equal(host_node_of("c"), "");
    assert_non_null(strstr(host_words_of("c"), "2 node(s) didn't match pod anti-affinity rules"));
    /* A pod without terms of its own is kept away by those of others. */
    host_pod_full("d", "'labels':{'app':'db'}", "", "");
    assert_non_null(
        strstr(host_words_of("d"), "2 node(s) didn't satisfy existing pods anti-affinity rules"));
    world_delete(H, "pods", "n", "a", NULL);
    world_settle(H);
    assert_string_not_equal(host_node_of("c"), "");
}

static void test_pods_keep_together(void **state)
{
    static const char with[] =
        "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
        "'labelSelector':{'matchLabels':{'app':'web'}},'topologyKey':'kubernetes.io/hostname'}]}}";

    (void)state;
    host_pod_full("lonely", "", with, "");
    assert_string_equal(host_node_of("lonely"), "");
    assert_non_null(strstr(host_words_of("lonely"), "node(s) didn't match pod affinity rules"));
    host_pod_full("first", "'labels':{'app':'web'}", with, "");
    host_pod_full("second", "'labels':{'app':'web'}", with, "");
    assert_string_equal(host_node_of("first"), host_node_of("second"));
    assert_string_equal(host_node_of("first"), host_node_of("lonely"));
}

static void test_pods_spread_evenly(void **state)
{
    static const char even[] =
        "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'kubernetes.io/hostname',"
        "'whenUnsatisfiable':'DoNotSchedule','nodeTaintsPolicy':'Honor','labelSelector':{"
        "'matchLabels':{'app':'s'}}}]";
    size_t on_first = 0;

    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *name = arena_printf(world_arena(H), "s%d", i).p;

        host_pod_full(name, "'labels':{'app':'s'}", even, "");
        on_first += !strcmp(host_node_of(name), "cpu-1");
    }
    assert_int_equal(on_first, 2);
}

static void test_host_ports_clash(void **state)
{
    static const char port[] = "'ports':[{'containerPort':80,'hostPort':80,'protocol':'TCP'}]";

    (void)state;
    host_pod_full("a", "", "", port);
    host_pod_full("b", "", "", port);
    host_pod_full("c", "", "", port);
    assert_string_not_equal(host_node_of("b"), "");
    assert_non_null(
        strstr(host_words_of("c"), "2 node(s) didn't have free ports for the requested pod ports"));
}

static void test_a_node_has_so_many_pods(void **state)
{
    (void)state;
    for (int i = 0; i < 21; i++)
        host_pod(arena_printf(world_arena(H), "p%d", i).p, "", "{}");
    assert_string_equal(host_node_of("p20"), "");
    assert_non_null(strstr(host_words_of("p20"), "2 Too many pods"));
}

static void test_gates_and_other_schedulers_hold(void **state)
{
    (void)state;
    host_pod("gated", "'schedulingGates':[{'name':'example.com/g'}]", "{}");
    host_pod("other", "'schedulerName':'mine'", "{}");
    assert_string_equal(host_node_of("gated"), "");
    assert_string_equal(host_node_of("other"), "");
    assert_string_equal(host_words_of("other"), "");
    world_patch(H, "pods", "n", "gated", "{'spec':{'schedulingGates':null}}");
    world_settle(H);
    assert_string_not_equal(host_node_of("gated"), "");
}

static void make_class(const char *name, int value)
{
    world_create(
        H, "priorityclasses.scheduling.k8s.io", "",
        arena_printf(world_arena(H), "{'metadata':{'name':'%s'},'value':%d}", name, value).p);
}

static void test_the_important_take_the_place_of_others(void **state)
{
    static const char most[] = "{'requests':{'cpu':'3'}}";

    (void)state;
    make_class("low", 1);
    make_class("high", 100);
    host_pod("a", "'priorityClassName':'low'", most);
    host_pod("b", "'priorityClassName':'high'", most);
    host_pod("c", "'priorityClassName':'high'", most);
    assert_null(host_get("a"));
    assert_string_not_equal(host_node_of("b"), "");
    assert_string_not_equal(host_node_of("c"), "");
    assert_string_equal(host_phase_of("c"), "Running");
    assert_int_equal(world_events(H, "n", "Pod", "Preempted"), 1);
    /* Equals do not drive each other out. */
    host_pod("d", "'priorityClassName':'high'", most);
    assert_string_equal(host_node_of("d"), "");
    assert_non_null(host_get("b"));
    assert_non_null(host_get("c"));
}

static void test_a_budget_protects_as_long_as_possible(void **state)
{
    static const char most[] = "{'requests':{'cpu':'3'}}";

    (void)state;
    make_class("low", 1);
    make_class("high", 100);
    host_pod_full("kept", "'labels':{'app':'kept'}", "'priorityClassName':'low'",
                  "'resources':{'requests':{'cpu':'3'}}");
    host_pod("spare", "'priorityClassName':'low'", most);
    world_create(H, "poddisruptionbudgets.policy", "n",
                 "{'metadata':{'name':'b'},'spec':{'maxUnavailable':0,'selector':{'matchLabels':{"
                 "'app':'kept'}}}}");
    world_settle(H);
    host_pod("vip", "'priorityClassName':'high'", most);
    assert_non_null(host_get("kept"));
    assert_null(host_get("spare"));
    assert_string_not_equal(host_node_of("vip"), "");
}

static void test_never_preempts_when_told_so(void **state)
{
    (void)state;
    world_create(H, "priorityclasses.scheduling.k8s.io", "",
                 "{'metadata':{'name':'polite'},'value':100,'preemptionPolicy':'Never'}");
    host_pod("a", "", "{'requests':{'cpu':'3'}}");
    host_pod("b", "", "{'requests':{'cpu':'3'}}");
    host_pod("p", "'priorityClassName':'polite'", "{'requests':{'cpu':'3'}}");
    assert_string_equal(host_node_of("p"), "");
    assert_non_null(
        strstr(host_words_of("p"), "preemption: not eligible due to preemptionPolicy=Never."));
}

static void test_many_at_once(void **state)
{
    size_t placed = 0;

    (void)state;
    world_create(
        H, "deployments.apps", "n",
        "{'metadata':{'name':'d'},'spec':{'replicas':18,'selector':{'matchLabels':{'a':'b'}},"
        "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
        "'image':'i'}]}}}}");
    world_settle(H);
    json_each(p, world_list(H, "pods", "n")) placed +=
        str_eqc(json_str_at(p, "status.phase"), "Running");
    assert_int_equal(placed, 18);
    assert_int_equal(world_i64(world_get(H, "deployments.apps", "n", "d"), "status.readyReplicas"),
                     18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_nodes_are_ready_and_addressed),
        HOST_TEST(test_pods_land_where_they_may),
        HOST_TEST(test_pods_spread_over_what_is_free),
        HOST_TEST(test_who_fits_nowhere_is_told_why),
        HOST_TEST(test_room_that_comes_free_is_used_at_once),
        HOST_TEST(test_a_node_that_comes_is_used),
        HOST_TEST(test_a_cordoned_node_takes_nobody),
        HOST_TEST(test_pods_keep_apart),
        HOST_TEST(test_pods_keep_together),
        HOST_TEST(test_pods_spread_evenly),
        HOST_TEST(test_host_ports_clash),
        HOST_TEST(test_a_node_has_so_many_pods),
        HOST_TEST(test_gates_and_other_schedulers_hold),
        HOST_TEST(test_the_important_take_the_place_of_others),
        HOST_TEST(test_a_budget_protects_as_long_as_possible),
        HOST_TEST(test_never_preempts_when_told_so),
        HOST_TEST(test_many_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
