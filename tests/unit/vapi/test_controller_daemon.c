/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSets: which nodes, one pod on each, rolling updates. */
#include "controller_world.h"

#include <string.h>

#define SET(more)                                                                                  \
    "{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'app':'a'}},"                     \
    "'template':{'metadata':{'labels':{'app':'a'}},"                                               \
    "'spec':{" more "'containers':[{'name':'c','image':'one'}]}}}}"
#define AFFINITY(key, op, value)                                                                   \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"                \
    "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'" key "','operator':'" op                  \
    "','values':['" value "']}]}]}}},"

static int set_up(void **state)
{
    world_set_up(state);
    world_node(W, "x", "{'disk':'ssd','size':'10'}");
    world_node(W, "y", "{'disk':'hdd','size':'3'}");
    world_node(W, "z", "{}");
    world_settle(W);
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
    for (size_t i = 0; i < COUNT(cases); i++) {
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

/* Clients find the current revision by comparing its bytes with those they print: as Go prints. */
static void a_revisions_data_is_what_clients_print(void **state)
{
    (void)state;
    world_create(W, "daemonsets.apps", "n", SET("'securityContext':{},'dnsPolicy':'Default',"));
    world_settle(W);
    const cJSON *revision = json_at(world_list(W, "controllerrevisions.apps", "n"), 0);
    assert_string_equal(
        json_text(world_arena(W), json_get(revision, "data")).p,
        "{\"spec\":{\"template\":{\"$patch\":\"replace\",\"metadata\":{\"labels\":{\"app\":\"a\"}},"
        "\"spec\":{\"containers\":[{\"image\":\"one\",\"imagePullPolicy\":\"Always\",\"name\":"
        "\"c\","
        "\"resources\":{},\"terminationMessagePath\":\"/dev/termination-log\","
        "\"terminationMessagePolicy\":\"File\"}],\"dnsPolicy\":\"Default\",\"restartPolicy\":"
        "\"Always\",\"schedulerName\":\"default-scheduler\",\"securityContext\":{},"
        "\"terminationGracePeriodSeconds\":30}}}}");
}

#define SURGE                                                                                      \
    "{'metadata':{'name':'d'},'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{"  \
    "'maxSurge':1,'maxUnavailable':0}},'selector':{'matchLabels':{'app':'a'}},"                    \
    "'template':{'metadata':{'labels':{'app':'a'}},"                                               \
    "'spec':{'containers':[{'name':'c','image':'one'}]}}}}"
#define TWO "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}"

static size_t of_image(const char *image, bool ready)
{
    size_t n = 0;

    json_each(pod, world_list(W, "pods", "n"))
    {
        struct str its = json_str_at(json_first(json_path(pod, "spec.containers")), "image");

        n += str_eqc(its, image) && (!ready || !strcmp(world_condition(W, pod, "Ready"), "True"));
    }
    return n;
}

static void surges_before_it_takes_away(void **state)
{
    (void)state;
    world_fates(W, new_ones_pend, NULL);
    world_create(W, "daemonsets.apps", "n", SURGE);
    world_settle(W);
    assert_int_equal(of_image("one", true), 3);
    world_patch(W, "daemonsets.apps", "n", "d", TWO);
    world_settle(W);
    /* One node has both; nothing that serves went. */
    assert_int_equal(of_image("one", true), 3);
    assert_int_equal(of_image("two", false), 1);
    assert_int_equal(status_of("numberAvailable"), 3);
    world_fates(W, NULL, NULL);
    world_settle(W);
    assert_int_equal(of_image("one", false), 0);
    assert_int_equal(of_image("two", true), 3);
    assert_int_equal(status_of("updatedNumberScheduled"), 3);
}

static enum fate old_ones_break(void *ctx, const cJSON *pod)
{
    (void)ctx;
    return new_ones_pend(NULL, pod) == POD_READY ? POD_RUNS : POD_READY;
}

static void what_does_not_serve_is_replaced_at_once(void **state)
{
    (void)state;
    world_fates(W, old_ones_break, NULL);
    world_create(W, "daemonsets.apps", "n", SURGE);
    world_settle(W);
    assert_int_equal(of_image("one", true), 0);
    world_patch(W, "daemonsets.apps", "n", "d", TWO);
    world_settle(W);
    assert_int_equal(of_image("one", false), 0);
    assert_int_equal(of_image("two", true), 3);
}

static void ended_pods_are_replaced(void **state)
{
    (void)state;
    world_create(W, "daemonsets.apps", "n", SET(""));
    world_settle(W);
    const cJSON *pod = json_first(world_list(W, "pods", "n"));
    world_patch_status(W, "pods", "n", json_str_at(pod, "metadata.name").p,
                       "{'status':{'phase':'Succeeded'}}");
    world_settle(W);
    assert_int_equal(world_events(W, "n", "DaemonSet", "SucceededDaemonPod"), 1);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    assert_int_equal(status_of("numberReady"), 3);
}

static void failing_pods_are_tried_ever_later(void **state)
{
    (void)state;
    world_fate(POD_FAILS);
    world_create(W, "daemonsets.apps", "n", SET("'nodeSelector':{'disk':'ssd'},"));
    world_pass(W, 40);
    /* After 0, 1, 2, 4, 8 and 16 seconds. */
    int64_t made = world_events(W, "n", "DaemonSet", "SuccessfulCreate");
    assert_in_range(made, 5, 8);
    world_fate(POD_READY);
    world_pass(W, 60);
    assert_int_equal(status_of("numberReady"), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_pod_on_each_node),
        TEST(selects_nodes),
        TEST(heeds_taints),
        TEST(rolls_no_more_than_allowed),
        TEST(a_revisions_data_is_what_clients_print),
        TEST(surges_before_it_takes_away),
        TEST(what_does_not_serve_is_replaced_at_once),
        TEST(ended_pods_are_replaced),
        TEST(failing_pods_are_tried_ever_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
