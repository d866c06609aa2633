/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of the embedded host where upstream's manager and scheduler work: machines that do
 * as kubelets do, and the provisioner. */
#include "host_world.h"

static const char *text(const cJSON *object, const char *path)
{
    return arena_cstr(world_arena(H), json_str_at(object, path));
}

static void bind_to(const char *pod, const char *node)
{
    world_create(H, "bindings", "n",
                 arena_printf(world_arena(H),
                              "{'metadata':{'name':'%s'},'target':{'kind':'Node','name':'%s'}}",
                              pod, node)
                     .p);
    world_settle(H);
}

static void test_somebody_else_binds(void **state)
{
    (void)state;
    host_pod("p", "", "{}");
    world_pass(H, 60);
    assert_string_equal(host_node_of("p"), "");
    bind_to("p", "cpu-1");
    assert_string_equal(host_phase_of("p"), "Running");
    world_delete(H, "pods", "n", "p", NULL);
    world_pass(H, 31);
    assert_null(host_get("p"));
}

static const char *renewed(const char *node)
{
    return text(world_get(H, "leases.coordination.k8s.io", "kube-node-lease", node),
                "spec.renewTime");
}

static void test_a_silent_machine_is_silent(void **state)
{
    const char *up = renewed("cpu-1"), *down;
    const cJSON *node;

    (void)state;
    assert_int_equal(
        world_i64(world_get(H, "leases.coordination.k8s.io", "kube-node-lease", "cpu-1"),
                  "spec.leaseDurationSeconds"),
        40);
    world_patch(H, "nodes", "", "cpu-2",
                "{'metadata':{'annotations':{'sublet.dev/simulate':'down'}}}");
    world_settle(H);
    down = renewed("cpu-2");
    world_pass(H, 60);
    assert_string_not_equal(renewed("cpu-1"), up);
    assert_string_equal(renewed("cpu-2"), down);
    node = world_get(H, "nodes", "", "cpu-2");
    assert_string_equal(world_condition(H, node, "Ready"), "True"); /* until its judge says so */
    assert_null(json_path(node, "spec.taints"));
}

static void test_taints_are_somebody_elses_to_act_on(void **state)
{
    (void)state;
    world_config(H)->controllers_native = false; /* nor are they the API's own */
    host_pod("p", "", "{}");
    bind_to("p", "cpu-1");
    world_patch(H, "nodes", "", "cpu-1",
                "{'spec':{'unschedulable':true,'taints':[{'key':'out','effect':'NoExecute'}]}}");
    world_pass(H, 60);
    assert_string_equal(host_phase_of("p"), "Running");
    assert_int_equal(json_count(json_path(world_get(H, "nodes", "", "cpu-1"), "spec.taints")), 1);
}

static void claim(const char *name, const char *class_, const char *annotations)
{
    world_create(H, "persistentvolumeclaims", "n",
                 arena_printf(world_arena(H),
                              "{'metadata':{'name':'%s','annotations':{%s}},'spec':{"
                              "'storageClassName':'%s','accessModes':['ReadWriteOnce'],"
                              "'resources':{'requests':{'storage':'1Gi'}}}}",
                              name, annotations, class_)
                     .p);
    world_settle(H);
}

static size_t volumes(void)
{
    return world_count(H, "persistentvolumes", "", NULL, NULL);
}

#define ASKED "'volume.kubernetes.io/storage-provisioner':'sublet.dev/simulated'"

static void test_volumes_are_made_when_asked_for(void **state)
{
    (void)state;
    claim("c", "standard", "");
    claim("foreign", "standard", "'volume.kubernetes.io/storage-provisioner':'example.com/x'");
    claim("waits", "local", ASKED);
    assert_int_equal(volumes(), 0);
    claim("asked", "standard", ASKED);
    assert_int_equal(volumes(), 1);
    assert_string_equal(text(world_get(H, "persistentvolumeclaims", "n", "asked"), "status.phase"),
                        "Pending");
    world_patch(H, "persistentvolumeclaims", "n", "waits",
                "{'metadata':{'annotations':{'volume.kubernetes.io/selected-node':'cpu-1'}}}");
    world_settle(H);
    assert_int_equal(volumes(), 2);
}

static void test_a_released_volume_is_removed(void **state)
{
    const char *name;

    (void)state;
    claim("c", "standard", ASKED);
    name = text(json_at(world_list(H, "persistentvolumes", ""), 0), "metadata.name");
    world_delete(H, "persistentvolumeclaims", "n", "c", NULL);
    world_settle(H);
    assert_int_equal(volumes(), 1); /* the binder says when */
    world_patch_status(H, "persistentvolumes", "", name, "{'status':{'phase':'Released'}}");
    world_settle(H);
    assert_int_equal(volumes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UPSTREAM_TEST(test_somebody_else_binds),
        UPSTREAM_TEST(test_a_silent_machine_is_silent),
        UPSTREAM_TEST(test_taints_are_somebody_elses_to_act_on),
        UPSTREAM_TEST(test_volumes_are_made_when_asked_for),
        UPSTREAM_TEST(test_a_released_volume_is_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
