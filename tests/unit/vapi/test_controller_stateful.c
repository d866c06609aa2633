/* SPDX-License-Identifier: Apache-2.0 */
/* StatefulSets: order, names, claims, rolling updates. */
#include "controller_world.h"

#define SET(more)                                                                                  \
    "{'metadata':{'name':'w'},'spec':{'serviceName':'svc','replicas':3," more                      \
    "'selector':{'matchLabels':{'app':'a'}},"                                                      \
    "'template':{'metadata':{'labels':{'app':'a'}},"                                               \
    "'spec':{'containers':[{'name':'c','image':'one'}]}}}}"
#define CLAIMS                                                                                     \
    "'volumeClaimTemplates':[{'metadata':{'name':'d'},'spec':{'accessModes':['ReadWriteOnce'],"    \
    "'resources':{'requests':{'storage':'1Gi'}}}}],"
#define IMAGE(name)                                                                                \
    "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'" name "'}]}}}}"

static const cJSON *set_now(void)
{
    return world_get(W, "statefulsets.apps", "n", "w");
}

static struct str image_of(const char *pod)
{
    return json_str_at(json_first(json_path(world_get(W, "pods", "n", pod), "spec.containers")),
                       "image");
}

static void makes_named_pods_with_claims(void **state)
{
    (void)state;
    world_create(W, "statefulsets.apps", "n", SET(CLAIMS));
    world_settle(W);
    const cJSON *set = set_now(), *pod = world_get(W, "pods", "n", "w-2");
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    assert_int_equal(world_count(W, "persistentvolumeclaims", "n", "app", "a"), 3);
    assert_non_null(world_get(W, "persistentvolumeclaims", "n", "d-w-2"));
    assert_true(str_eqc(json_str_at(pod, "spec.hostname"), "w-2"));
    assert_true(str_eqc(json_str_at(pod, "spec.subdomain"), "svc"));
    assert_true(str_eqc(
        json_str(json_get(json_path(pod, "metadata.labels"), "statefulset.kubernetes.io/pod-name")),
        "w-2"));
    assert_int_equal(world_i64(set, "status.readyReplicas"), 3);
    assert_int_equal(world_i64(set, "status.availableReplicas"), 3);
    assert_int_equal(world_i64(set, "status.currentReplicas"), 3);
    assert_int_equal(world_i64(set, "status.updatedReplicas"), 3);
    assert_int_equal(world_i64(set, "status.observedGeneration"), 1);

    world_patch(W, "statefulsets.apps", "n", "w", "{'spec':{'replicas':1}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 1);
    assert_non_null(world_get(W, "pods", "n", "w-0"));
    assert_int_equal(world_count(W, "persistentvolumeclaims", "n", "app", "a"), 3);
    assert_int_equal(world_i64(set_now(), "status.replicas"), 1);
}

static enum fate first_never_ready(void *ctx, const cJSON *pod)
{
    (void)ctx;
    return str_eqc(json_str_at(pod, "metadata.name"), "w-0") ? POD_RUNS : POD_READY;
}

static void waits_for_predecessors_unless_parallel(void **state)
{
    (void)state;
    world_fates(W, first_never_ready, NULL);
    world_create(W, "statefulsets.apps", "n", SET(""));
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 1);
    world_create(W, "namespaces", "", "{'metadata':{'name':'m'}}");
    world_create(W, "statefulsets.apps", "m", SET("'podManagementPolicy':'Parallel',"));
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "m", "app", "a"), 3);
}

static void rolls_down_to_the_partition(void **state)
{
    (void)state;
    world_create(W, "statefulsets.apps", "n",
                 SET("'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':2}},"));
    world_settle(W);
    world_patch(W, "statefulsets.apps", "n", "w", IMAGE("two"));
    world_settle(W);
    assert_true(str_eqc(image_of("w-2"), "two"));
    assert_true(str_eqc(image_of("w-1"), "one"));
    assert_int_equal(world_i64(set_now(), "status.updatedReplicas"), 1);
    assert_int_equal(world_i64(set_now(), "status.currentReplicas"), 2);
    /* A pod below the partition comes back as it was. */
    world_delete(W, "pods", "n", "w-0", NULL);
    world_settle(W);
    assert_true(str_eqc(image_of("w-0"), "one"));

    world_patch(W, "statefulsets.apps", "n", "w",
                "{'spec':{'updateStrategy':{'rollingUpdate':{'partition':0}}}}");
    world_settle(W);
    assert_true(str_eqc(image_of("w-0"), "two"));
    const cJSON *status = json_get(set_now(), "status");
    assert_int_equal(world_i64(status, "currentReplicas"), 3);
    assert_true(
        str_eq(json_str_at(status, "currentRevision"), json_str_at(status, "updateRevision")));
    assert_int_equal(world_count(W, "controllerrevisions.apps", "n", NULL, NULL), 2);
}

static void on_delete_waits(void **state)
{
    (void)state;
    world_create(W, "statefulsets.apps", "n", SET("'updateStrategy':{'type':'OnDelete'},"));
    world_settle(W);
    world_patch(W, "statefulsets.apps", "n", "w", IMAGE("two"));
    world_settle(W);
    assert_true(str_eqc(image_of("w-1"), "one"));
    world_delete(W, "pods", "n", "w-1", NULL);
    world_settle(W);
    assert_true(str_eqc(image_of("w-1"), "two"));
    assert_true(str_eqc(image_of("w-0"), "one"));
}

static void claims_go_when_scaled(void **state)
{
    (void)state;
    world_create(W, "statefulsets.apps", "n",
                 SET(CLAIMS "'persistentVolumeClaimRetentionPolicy':{'whenScaled':'Delete'},"));
    world_settle(W);
    world_patch(W, "statefulsets.apps", "n", "w", "{'spec':{'replicas':1}}");
    world_pass(W, 60);
    assert_int_equal(world_count(W, "persistentvolumeclaims", "n", "app", "a"), 1);
}

static void claims_go_with_the_set(void **state)
{
    (void)state;
    world_create(W, "statefulsets.apps", "n",
                 SET(CLAIMS "'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'Delete'},"));
    world_settle(W);
    assert_int_equal(world_count(W, "persistentvolumeclaims", "n", "app", "a"), 3);
    world_patch(W, "statefulsets.apps", "n", "w", "{'spec':{'replicas':1}}");
    world_pass(W, 60);
    assert_int_equal(world_count(W, "persistentvolumeclaims", "n", "app", "a"), 3);
    world_delete(W, "statefulsets.apps", "n", "w", "Background");
    world_pass(W, 60);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 0);
    assert_int_equal(world_count(W, "persistentvolumeclaims", "n", "app", "a"), 0);
}

static void waits_until_a_pod_was_ready_long_enough(void **state)
{
    (void)state;
    world_create(W, "statefulsets.apps", "n", SET("'minReadySeconds':30,"));
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 1);
    assert_int_equal(world_i64(set_now(), "status.readyReplicas"), 1);
    assert_int_equal(world_i64(set_now(), "status.availableReplicas"), 0);
    world_pass(W, 35);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 2);
    assert_int_equal(world_i64(set_now(), "status.availableReplicas"), 1);
    world_pass(W, 80);
    assert_int_equal(world_i64(set_now(), "status.availableReplicas"), 3);
}

static void goes_back_to_what_it_was(void **state)
{
    (void)state;
    world_create(W, "statefulsets.apps", "n", SET(""));
    world_settle(W);
    struct str first = json_str_at(set_now(), "status.currentRevision");
    world_patch(W, "statefulsets.apps", "n", "w", IMAGE("two"));
    world_settle(W);
    assert_false(str_eq(json_str_at(set_now(), "status.currentRevision"), first));
    world_patch(W, "statefulsets.apps", "n", "w", IMAGE("one"));
    world_settle(W);
    assert_true(str_eq(json_str_at(set_now(), "status.currentRevision"), first));
    assert_int_equal(world_count(W, "controllerrevisions.apps", "n", NULL, NULL), 2);
    assert_true(str_eqc(image_of("w-0"), "one") && str_eqc(image_of("w-2"), "one"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(makes_named_pods_with_claims),
        WORLD_TEST(waits_for_predecessors_unless_parallel),
        WORLD_TEST(rolls_down_to_the_partition),
        WORLD_TEST(on_delete_waits),
        WORLD_TEST(claims_go_when_scaled),
        WORLD_TEST(claims_go_with_the_set),
        WORLD_TEST(waits_until_a_pod_was_ready_long_enough),
        WORLD_TEST(goes_back_to_what_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
