/* SPDX-License-Identifier: Apache-2.0 */
/* The life of pods on simulated machines: running, ending, leaving, waiting for what is missing,
 * and what becomes of them when their machine goes silent. */
#include "host_world.h"

#define NEVER     "'restartPolicy':'Never'"
#define ON_FAIL   "'restartPolicy':'OnFailure'"
#define ENV(k, v) "'env':[{'name':'" k "','value':'" v "'}]"

static const cJSON *container(const char *pod)
{
    return json_at(json_path(host_get(pod), "status.containerStatuses"), 0);
}

static const char *text(const cJSON *object, const char *path)
{
    return arena_cstr(world_arena(H), json_str_at(object, path));
}

static void test_a_pod_runs(void **state)
{
    const cJSON *pod;

    (void)state;
    host_pod("p", "", "{'requests':{'cpu':'100m'}}");
    pod = host_get("p");
    assert_string_equal(host_phase_of("p"), "Running");
    assert_true(str_has_prefix(json_str_at(pod, "status.podIP"), STR("10.1")));
    assert_true(str_has_prefix(json_str_at(pod, "status.hostIP"), STR("172.30.")));
    assert_string_equal(world_condition(H, pod, "Ready"), "True");
    assert_string_equal(world_condition(H, pod, "ContainersReady"), "True");
    assert_string_equal(world_condition(H, pod, "Initialized"), "True");
    assert_string_equal(world_condition(H, pod, "PodScheduled"), "True");
    assert_non_null(json_path(container("p"), "state.running.startedAt"));
    assert_true(json_true(json_get(container("p"), "started")));
    world_pass(H, 3600);
    assert_string_equal(host_phase_of("p"), "Running");
}

static void test_addresses_differ(void **state)
{
    (void)state;
    host_pod("a", "", "{}");
    host_pod("b", "", "{}");
    host_pod("c", "'hostNetwork':true", "{}");
    assert_string_not_equal(text(host_get("a"), "status.podIP"),
                            text(host_get("b"), "status.podIP"));
    assert_string_equal(text(host_get("c"), "status.podIP"), text(host_get("c"), "status.hostIP"));
}

static void test_a_pod_that_may_end_does(void **state)
{
    (void)state;
    host_pod("p", NEVER, "{}");
    assert_string_equal(host_phase_of("p"), "Running");
    world_pass(H, 2);
    assert_string_equal(host_phase_of("p"), "Succeeded");
    assert_string_equal(text(container("p"), "state.terminated.reason"), "Completed");
    assert_string_equal(world_reason(H, host_get("p"), "Ready"), "PodCompleted");
}

static void test_hints_say_how_long_and_how(void **state)
{
    (void)state;
    host_pod_full("long", "", NEVER, ENV("SUBLET_SIMULATE_DURATION", "1m"));
    host_pod_full("bad", "'annotations':{'sublet.dev/simulate-exit-code':'3'}", NEVER, "");
    world_pass(H, 5);
    assert_string_equal(host_phase_of("long"), "Running");
    assert_string_equal(host_phase_of("bad"), "Failed");
    assert_int_equal(world_i64(container("bad"), "state.terminated.exitCode"), 3);
    world_pass(H, 60);
    assert_string_equal(host_phase_of("long"), "Succeeded");
}

static void test_a_container_that_fails_comes_back(void **state)
{
    (void)state;
    host_pod_full("p", "", ON_FAIL, ENV("SUBLET_SIMULATE_EXIT_CODE", "1"));
    world_pass(H, 3);
    assert_string_equal(host_phase_of("p"), "Running");
    assert_string_equal(text(container("p"), "state.waiting.reason"), "CrashLoopBackOff");
    assert_int_equal(world_i64(container("p"), "lastState.terminated.exitCode"), 1);
    assert_string_equal(world_condition(H, host_get("p"), "Ready"), "False");
    world_pass(H, 10);
    assert_int_equal(world_i64(container("p"), "restartCount"), 1);
    world_pass(H, 120);
    assert_true(world_i64(container("p"), "restartCount") >= 3);
}

static void make_job(const char *name, const char *exit_code)
{
    world_create(
        H, "jobs.batch", "n",
        arena_printf(world_arena(H),
                     "{'metadata':{'name':'%s'},'spec':{'backoffLimit':0,'template':{'spec':{"
                     "'restartPolicy':'Never','containers':[{'name':'c','image':'i','env':[{"
                     "'name':'SUBLET_SIMULATE_EXIT_CODE','value':'%s'}]}]}}}}",
                     name, exit_code)
            .p);
}

static void test_jobs_complete_and_fail(void **state)
{
    (void)state;
    make_job("good", "0");
    make_job("bad", "1");
    world_pass(H, 30);
    assert_string_equal(world_condition(H, world_get(H, "jobs.batch", "n", "good"), "Complete"),
                        "True");
    assert_string_equal(world_condition(H, world_get(H, "jobs.batch", "n", "bad"), "Failed"),
                        "True");
}

static void test_init_containers_come_first(void **state)
{
    (void)state;
    host_pod(
        "p",
        "'initContainers':[{'name':'side','image':'i','restartPolicy':'Always'},{'name':'slow',"
        "'image':'i','env':[{'name':'SUBLET_SIMULATE_DURATION','value':'10s'}]}]",
        "{}");
    assert_string_equal(host_phase_of("p"), "Pending");
    assert_string_equal(text(container("p"), "state.waiting.reason"), "PodInitializing");
    assert_string_equal(world_condition(H, host_get("p"), "Initialized"), "False");
    world_pass(H, 11);
    assert_string_equal(host_phase_of("p"), "Running");
    const cJSON *inits = json_path(host_get("p"), "status.initContainerStatuses");
    assert_non_null(json_path(json_at(inits, 0), "state.running"));
    assert_non_null(json_path(json_at(inits, 1), "state.terminated"));
    assert_string_equal(world_condition(H, host_get("p"), "Ready"), "True");
}

static void test_a_deadline_ends_a_pod(void **state)
{
    (void)state;
    host_pod("p", "'activeDeadlineSeconds':5", "{}");
    world_pass(H, 4);
    assert_string_equal(host_phase_of("p"), "Running");
    world_pass(H, 3);
    assert_string_equal(host_phase_of("p"), "Failed");
    assert_string_equal(text(host_get("p"), "status.reason"), "DeadlineExceeded");
}

static void test_deletion_is_graceful(void **state)
{
    (void)state;
    host_pod("quick", "", "{}");
    world_delete(H, "pods", "n", "quick", NULL);
    world_settle(H);
    assert_null(host_get("quick"));
    host_pod_full("slow", "'annotations':{'sublet.dev/simulate-stop':'20s'}", "", "");
    world_delete(H, "pods", "n", "slow", NULL);
    world_pass(H, 15);
    assert_non_null(host_get("slow"));
    world_pass(H, 6);
    assert_null(host_get("slow"));
    /* One with a finalizer reports how it ended, and stays. */
    host_pod_full("held", "'finalizers':['example.com/f']", NEVER,
                  ENV("SUBLET_SIMULATE_DURATION", "1h"));
    world_delete(H, "pods", "n", "held", NULL);
    world_settle(H);
    assert_string_equal(host_phase_of("held"), "Failed");
    assert_int_equal(world_i64(container("held"), "state.terminated.exitCode"), 143);
    world_patch(H, "pods", "n", "held", "{'metadata':{'finalizers':null}}");
    world_settle(H);
    assert_null(host_get("held"));
}

static void test_a_pod_waits_for_what_it_refers_to(void **state)
{
    (void)state;
    host_pod_full("p", "", "'volumes':[{'name':'v','configMap':{'name':'settings'}}]",
                  "'envFrom':[{'secretRef':{'name':'key'}}]");
    assert_string_equal(host_phase_of("p"), "Pending");
    assert_string_equal(text(container("p"), "state.waiting.reason"), "ContainerCreating");
    assert_int_equal(world_events(H, "n", "Pod", "FailedMount"), 1);
    world_create(H, "configmaps", "n", "{'metadata':{'name':'settings'}}");
    world_settle(H);
    assert_string_equal(text(container("p"), "state.waiting.reason"), "CreateContainerConfigError");
    assert_string_equal(text(container("p"), "state.waiting.message"), "secret \"key\" not found");
    world_create(H, "secrets", "n", "{'metadata':{'name':'key'}}");
    world_settle(H);
    assert_string_equal(host_phase_of("p"), "Running");
    host_pod_full("optional", "",
                  "'volumes':[{'name':'v','configMap':{'name':'none','optional':true}}]", "");
    assert_string_equal(host_phase_of("optional"), "Running");
}

static void test_readiness_gates_are_asked(void **state)
{
    (void)state;
    host_pod("p", "'readinessGates':[{'conditionType':'example.com/up'}]", "{}");
    assert_string_equal(world_condition(H, host_get("p"), "ContainersReady"), "True");
    assert_string_equal(world_reason(H, host_get("p"), "Ready"), "ReadinessGatesNotReady");
    cJSON *status = json_get(host_get("p"), "status");
    cJSON *c = json_append(json_get(status, "conditions"), json_new_object(world_arena(H)));
    json_set_str(world_arena(H), c, "type", STR("example.com/up"));
    json_set_str(world_arena(H), c, "status", STR("True"));
    cJSON *patch = json_new_object(world_arena(H));
    json_set(world_arena(H), json_ensure_object(world_arena(H), patch, "status"), "conditions",
             json_copy(world_arena(H), json_get(status, "conditions")));
    world_patch_status(H, "pods", "n", "p", json_text(world_arena(H), patch).p);
    world_settle(H);
    assert_string_equal(world_condition(H, host_get("p"), "Ready"), "True");
}

static void test_a_machine_goes_silent(void **state)
{
    const char *node;

    (void)state;
    host_pod("short",
             "'tolerations':[{'key':'node.kubernetes.io/unreachable','operator':'Exists','effect':"
             "'NoExecute','tolerationSeconds':30}]",
             "{}");
    node = host_node_of("short");
    world_patch(H, "nodes", "", node, "{'metadata':{'labels':{'sublet.dev/simulate':'down'}}}");
    world_settle(H);
    const cJSON *tree = world_get(H, "nodes", "", node);
    assert_string_equal(world_condition(H, tree, "Ready"), "Unknown");
    assert_int_equal(json_count(json_path(tree, "spec.taints")), 2);
    assert_string_equal(world_condition(H, host_get("short"), "Ready"), "False");
    world_pass(H, 20);
    assert_null(json_path(host_get("short"), "metadata.deletionTimestamp"));
    world_pass(H, 20);
    assert_non_null(json_path(host_get("short"), "metadata.deletionTimestamp"));
    assert_string_equal(world_reason(H, host_get("short"), "DisruptionTarget"),
                        "DeletionByTaintManager");
    world_pass(H, 600); /* it keeps running: its machine is silent */
    assert_non_null(host_get("short"));
    world_patch(H, "nodes", "", node, "{'metadata':{'labels':{'sublet.dev/simulate':null}}}");
    world_settle(H);
    assert_null(host_get("short"));
    tree = world_get(H, "nodes", "", node);
    assert_string_equal(world_condition(H, tree, "Ready"), "True");
    assert_int_equal(json_count(json_path(tree, "spec.taints")), 0);
}

static void test_a_machine_comes_back_in_time(void **state)
{
    const char *node;

    (void)state;
    host_pod("p", "", "{}"); /* tolerates it for 300 s by default */
    node = host_node_of("p");
    world_patch(H, "nodes", "", node,
                "{'metadata':{'annotations':{'sublet.dev/simulate':'down'}}}");
    world_pass(H, 100);
    world_patch(H, "nodes", "", node, "{'metadata':{'annotations':{'sublet.dev/simulate':null}}}");
    world_pass(H, 600);
    assert_null(json_path(host_get("p"), "metadata.deletionTimestamp"));
    assert_string_equal(world_condition(H, host_get("p"), "Ready"), "True");
}

static void test_pods_of_a_removed_machine_go(void **state)
{
    const char *node;

    (void)state;
    host_pod("p", "", "{}");
    node = host_node_of("p");
    world_delete(H, "nodes", "", node, NULL);
    world_settle(H);
    assert_null(host_get("p"));
}

static void test_a_taint_drives_out_who_does_not_tolerate_it(void **state)
{
    const char *node;

    (void)state;
    host_pod("p", "", "{}");
    node = host_node_of("p");
    world_patch(H, "nodes", "", node, "{'spec':{'taints':[{'key':'out','effect':'NoExecute'}]}}");
    world_settle(H);
    assert_null(host_get("p"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_a_pod_runs),
        HOST_TEST(test_addresses_differ),
        HOST_TEST(test_a_pod_that_may_end_does),
        HOST_TEST(test_hints_say_how_long_and_how),
        HOST_TEST(test_a_container_that_fails_comes_back),
        HOST_TEST(test_jobs_complete_and_fail),
        HOST_TEST(test_init_containers_come_first),
        HOST_TEST(test_a_deadline_ends_a_pod),
        HOST_TEST(test_deletion_is_graceful),
        HOST_TEST(test_a_pod_waits_for_what_it_refers_to),
        HOST_TEST(test_readiness_gates_are_asked),
        HOST_TEST(test_a_machine_goes_silent),
        HOST_TEST(test_a_machine_comes_back_in_time),
        HOST_TEST(test_pods_of_a_removed_machine_go),
        HOST_TEST(test_a_taint_drives_out_who_does_not_tolerate_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
