/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and volumes: provisioned, found, waited for, given back. */
#include "host_world.h"

static const char *text(const cJSON *object, const char *path)
{
    return arena_cstr(world_arena(H), json_str_at(object, path));
}

static void claim(const char *name, const char *more)
{
    world_create(H, "persistentvolumeclaims", "n",
                 arena_printf(world_arena(H),
                              "{'metadata':{'name':'%s'},'spec':{%s'accessModes':['ReadWriteOnce'],"
                              "'resources':{'requests':{'storage':'1Gi'}}}}",
                              name, more)
                     .p);
    world_settle(H);
}

static const char *claim_phase(const char *name)
{
    return text(world_get(H, "persistentvolumeclaims", "n", name), "status.phase");
}

static const char *volume_of(const char *name)
{
    return text(world_get(H, "persistentvolumeclaims", "n", name), "spec.volumeName");
}

static void pod_with(const char *name, const char *claim_name)
{
    host_pod_full(
        name, "",
        arena_printf(world_arena(H),
                     "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'%s'}}]",
                     claim_name)
            .p,
        "'volumeMounts':[{'name':'v','mountPath':'/v'}]");
}

static void test_a_claim_is_provisioned_and_given_back(void **state)
{
    const char *volume;

    (void)state;
    claim("c", "");
    assert_string_equal(claim_phase("c"), "Bound");
    volume = volume_of("c");
    assert_string_equal(text(world_get(H, "persistentvolumes", "", volume), "status.phase"),
                        "Bound");
    pod_with("p", "c");
    assert_string_equal(host_phase_of("p"), "Running");
    world_delete(H, "pods", "n", "p", NULL);
    world_settle(H);
    world_delete(H, "persistentvolumeclaims", "n", "c", NULL);
    world_settle(H);
    assert_null(world_get(H, "persistentvolumes", "", volume));
}

static void test_one_waits_for_its_pod(void **state)
{
    (void)state;
    claim("c", "'storageClassName':'local',");
    assert_string_equal(claim_phase("c"), "Pending");
    assert_int_equal(world_events(H, "n", "PersistentVolumeClaim", "WaitForFirstConsumer"), 1);
    pod_with("p", "c");
    assert_string_equal(claim_phase("c"), "Bound");
    assert_string_equal(host_phase_of("p"), "Running");
}

static void test_a_pod_waits_for_its_claim(void **state)
{
    (void)state;
    pod_with("p", "late");
    assert_non_null(strstr(host_words_of("p"),
                           "0/4 nodes are available: persistentvolumeclaim \"late\" not found."));
    claim("late", "'storageClassName':'none',");
    assert_non_null(strstr(host_words_of("p"), "pod has unbound immediate PersistentVolumeClaims"));
    world_create(H, "storageclasses.storage.k8s.io", "",
                 "{'metadata':{'name':'none'},'provisioner':'sublet.dev/simulated'}");
    world_settle(H);
    assert_string_equal(claim_phase("late"), "Bound");
    assert_string_equal(host_phase_of("p"), "Running");
}

static void test_a_volume_that_is_there_is_used(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++)
        world_create(
            H, "persistentvolumes", "",
            arena_printf(world_arena(H),
                         "{'metadata':{'name':'v%d'},'spec':{'capacity':{'storage':'%dGi'},"
                         "'accessModes':['ReadWriteOnce'],'hostPath':{'path':'/x'},"
                         "'persistentVolumeReclaimPolicy':'Retain','storageClassName':'s'}}",
                         i, 3 - i)
                .p);
    world_settle(H);
    assert_string_equal(text(world_get(H, "persistentvolumes", "", "v1"), "status.phase"),
                        "Available");
    claim("c", "'storageClassName':'s',");
    assert_string_equal(volume_of("c"), "v2"); /* the smaller one that is enough */
    world_delete(H, "persistentvolumeclaims", "n", "c", NULL);
    world_settle(H);
    assert_string_equal(text(world_get(H, "persistentvolumes", "", "v2"), "status.phase"),
                        "Released");
    claim("d", "'storageClassName':'s',");
    assert_string_equal(volume_of("d"), "v1"); /* a released volume is not bound again */
}

static void test_a_claim_grows(void **state)
{
    (void)state;
    claim("c", "");
    world_patch(H, "persistentvolumeclaims", "n", "c",
                "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}");
    world_settle(H);
    assert_string_equal(
        text(world_get(H, "persistentvolumeclaims", "n", "c"), "status.capacity.storage"), "2Gi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_a_claim_is_provisioned_and_given_back),
        HOST_TEST(test_one_waits_for_its_pod),
        HOST_TEST(test_a_pod_waits_for_its_claim),
        HOST_TEST(test_a_volume_that_is_there_is_used),
        HOST_TEST(test_a_claim_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
