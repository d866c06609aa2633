/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSets, ReplicationControllers and Deployments: what they make of pods, and how they roll.
 */
#include "controller_world.h"

#define TEMPLATE(image)                                                                            \
    "'template':{'metadata':{'labels':{'app':'a'}},"                                               \
    "'spec':{'containers':[{'name':'c','image':'" image "'}]}}"
#define SET(name, n)                                                                               \
    "{'metadata':{'name':'" name "'},'spec':{'replicas':" #n                                       \
    ",'selector':{'matchLabels':{'app':'a'}}," TEMPLATE("one") "}}"
#define DEPLOYMENT(name, n, more)                                                                  \
    "{'metadata':{'name':'" name "'},'spec':{'replicas':" #n                                       \
    ",'selector':{'matchLabels':{'app':'a'}}," more TEMPLATE("one") "}}"

/* ---- ReplicaSet ---- */

static void set_keeps_its_size(void **state)
{
    (void)state;
    world_create(W, "replicasets.apps", "n", SET("s", 3));
    world_settle(W);
    const cJSON *set = world_get(W, "replicasets.apps", "n", "s");
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    assert_int_equal(world_i64(set, "status.replicas"), 3);
    assert_int_equal(world_i64(set, "status.readyReplicas"), 3);
    assert_int_equal(world_i64(set, "status.availableReplicas"), 3);
    assert_int_equal(world_i64(set, "status.fullyLabeledReplicas"), 3);
    assert_int_equal(world_i64(set, "status.observedGeneration"), 1);
    assert_int_equal(world_events(W, "n", "ReplicaSet", "SuccessfulCreate"), 3);

    const cJSON *pod = json_first(world_list(W, "pods", "n"));
    world_delete(W, "pods", "n", json_str_at(pod, "metadata.name").p, NULL);
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);

    world_patch(W, "replicasets.apps", "n", "s", "{'spec':{'replicas':1}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 1);
    set = world_get(W, "replicasets.apps", "n", "s");
    assert_int_equal(world_i64(set, "status.replicas"), 1);
    assert_int_equal(world_i64(set, "status.observedGeneration"), 2);
    assert_int_equal(world_events(W, "n", "ReplicaSet", "SuccessfulDelete"), 2);
}

static void set_adopts_and_releases(void **state)
{
    (void)state;
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'orphan','labels':{'app':'a'}},"
                 "'spec':{'containers':[{'name':'c','image':'i'}]}}");
    world_settle(W);
    world_create(W, "replicasets.apps", "n", SET("s", 2));
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 2);
    const cJSON *pod = world_get(W, "pods", "n", "orphan");
    assert_str(json_str_at(json_first(json_path(pod, "metadata.ownerReferences")), "kind"),
               "ReplicaSet");

    world_patch(W, "pods", "n", "orphan", "{'metadata':{'labels':{'app':'b'}}}");
    world_settle(W);
    pod = world_get(W, "pods", "n", "orphan");
    assert_null(json_first(json_path(pod, "metadata.ownerReferences")));
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 2);
}

static enum fate first_is_unready(void *ctx, const cJSON *pod)
{
    struct str *name = ctx;

    return str_eq(*name, json_str_at(pod, "metadata.name")) ? POD_RUNS : POD_READY;
}

static void set_gives_up_unready_pods_first(void **state)
{
    (void)state;
    world_freeze(W, true);
    world_create(W, "replicasets.apps", "n", SET("s", 3));
    world_settle(W);
    struct str name = json_str_at(json_at(world_list(W, "pods", "n"), 1), "metadata.name");
    world_fates(W, first_is_unready, &name);
    world_freeze(W, false);
    world_settle(W);
    assert_int_equal(world_i64(world_get(W, "replicasets.apps", "n", "s"), "status.readyReplicas"),
                     2);
    world_patch(W, "replicasets.apps", "n", "s", "{'spec':{'replicas':2}}");
    world_settle(W);
    assert_null(world_get(W, "pods", "n", name.p));
}

static void set_waits_for_min_ready_seconds(void **state)
{
    (void)state;
    world_create(W, "replicasets.apps", "n",
                 "{'metadata':{'name':'s'},'spec':{'replicas':2,'minReadySeconds':30,"
                 "'selector':{'matchLabels':{'app':'a'}}," TEMPLATE("one") "}}");
    world_settle(W);
    assert_int_equal(
        world_i64(world_get(W, "replicasets.apps", "n", "s"), "status.availableReplicas"), 0);
    world_pass(W, 29);
    assert_int_equal(
        world_i64(world_get(W, "replicasets.apps", "n", "s"), "status.availableReplicas"), 0);
    world_pass(W, 2);
    assert_int_equal(
        world_i64(world_get(W, "replicasets.apps", "n", "s"), "status.availableReplicas"), 2);
}

static void set_tells_why_it_cannot(void **state)
{
    (void)state;
    world_create(W, "resourcequotas", "n",
                 "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'2'}}}");
    world_settle(W);
    world_create(W, "replicasets.apps", "n", SET("s", 400));
    world_settle(W);
    const cJSON *set = world_get(W, "replicasets.apps", "n", "s");
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 2);
    /* Slowly: one refusal a try, not four hundred. */
    assert_string_equal(world_condition(W, set, "ReplicaFailure"), "True");
    assert_string_equal(world_reason(W, set, "ReplicaFailure"), "FailedCreate");
    assert_in_range(world_events(W, "n", "ReplicaSet", "FailedCreate"), 1, 20);

    world_patch(W, "resourcequotas", "n", "q", "{'spec':{'hard':{'pods':'500'}}}");
    world_pass(W, 120);
    set = world_get(W, "replicasets.apps", "n", "s");
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 400);
    assert_string_equal(world_condition(W, set, "ReplicaFailure"), "");
}

static void old_controller_does_the_same(void **state)
{
    (void)state;
    world_create(W, "replicationcontrollers", "n",
                 "{'metadata':{'name':'rc'},'spec':{'replicas':2,'selector':{'app':'a'}," TEMPLATE(
                     "one") "}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 2);
    const cJSON *rc = world_get(W, "replicationcontrollers", "n", "rc");
    assert_int_equal(world_i64(rc, "status.readyReplicas"), 2);
    assert_null(json_path(rc, "status.terminatingReplicas"));
}

/* ---- Deployment ---- */

static void deployment_makes_a_set(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 3, ""));
    world_settle(W);
    const cJSON *d = world_get(W, "deployments.apps", "n", "d");
    const cJSON *set = json_first(world_list(W, "replicasets.apps", "n"));

    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    assert_string_equal(world_condition(W, d, "Available"), "True");
    assert_string_equal(world_reason(W, d, "Progressing"), "NewReplicaSetAvailable");
    assert_int_equal(world_i64(d, "status.updatedReplicas"), 3);
    assert_int_equal(world_i64(d, "status.availableReplicas"), 3);
    assert_int_equal(world_i64(d, "status.unavailableReplicas"), 0);
    assert_int_equal(world_i64(d, "status.observedGeneration"), 1);
    assert_str(json_str(json_get(json_path(d, "metadata.annotations"),
                                 "deployment.kubernetes.io/revision")),
               "1");
    struct str hash = json_str(json_get(json_path(set, "metadata.labels"), "pod-template-hash"));
    assert_int_equal(hash.n, 10);
    assert_str(json_str_at(set, "metadata.name"),
               arena_printf(world_arena(W), "d-%.*s", STR_F(hash)).p);
    assert_int_equal(world_count(W, "pods", "n", "pod-template-hash", hash.p), 3);
    assert_int_equal(world_events(W, "n", "Deployment", "ScalingReplicaSet"), 1);
}

struct bounds {
    size_t least, most;
};

static enum fate check_bounds(void *ctx, const cJSON *pod)
{
    struct bounds *b = ctx;
    size_t all = 0, ready = 0;

    (void)pod;
    json_each(p, world_list(W, "pods", "n"))
    {
        if (json_path(p, "metadata.deletionTimestamp"))
            continue;
        all++;
        ready += !strcmp(world_condition(W, p, "Ready"), "True");
    }
    assert_true(all <= b->most);
    assert_true(ready >= b->least);
    return POD_READY;
}

static void deployment_rolls_within_its_bounds(void **state)
{
    struct bounds bounds = {0, 12};

    (void)state;
    world_fates(W, check_bounds, &bounds);
    world_create(W, "deployments.apps", "n",
                 DEPLOYMENT("d", 10,
                            "'strategy':{'type':'RollingUpdate','rollingUpdate':"
                            "{'maxSurge':2,'maxUnavailable':'10%'}},"));
    world_settle(W);
    bounds.least = 9;
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}");
    world_settle(W);
    const cJSON *d = world_get(W, "deployments.apps", "n", "d");
    assert_int_equal(world_i64(d, "status.updatedReplicas"), 10);
    assert_int_equal(world_i64(d, "status.replicas"), 10);
    assert_string_equal(world_reason(W, d, "Progressing"), "NewReplicaSetAvailable");
    json_each(pod, world_list(W, "pods", "n"))
        assert_str(json_str_at(json_first(json_path(pod, "spec.containers")), "image"), "two");
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), 2);

    /* Back to the first template: its set is used again, as revision 3. */
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'one'}]}}}}");
    world_settle(W);
    d = world_get(W, "deployments.apps", "n", "d");
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), 2);
    assert_str(json_str(json_get(json_path(d, "metadata.annotations"),
                                 "deployment.kubernetes.io/revision")),
               "3");
    size_t with_history = 0;
    json_each(set, world_list(W, "replicasets.apps", "n")) with_history +=
        str_eqc(json_str(json_get(json_path(set, "metadata.annotations"),
                                  "deployment.kubernetes.io/revision-history")),
                "1");
    assert_int_equal(with_history, 1);
    world_fates(W, NULL, NULL);
}

static void deployment_recreates(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 3, "'strategy':{'type':'Recreate'},"));
    world_settle(W);
    world_freeze(W, true);
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}");
    world_settle(W);
    /* The previous pods are still terminating: none of the new template yet. */
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    world_freeze(W, false);
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    json_each(pod, world_list(W, "pods", "n"))
        assert_str(json_str_at(json_first(json_path(pod, "spec.containers")), "image"), "two");
}

static enum fate two_never_ready(void *ctx, const cJSON *pod)
{
    (void)ctx;
    return str_eqc(json_str_at(json_first(json_path(pod, "spec.containers")), "image"), "two")
               ? POD_RUNS
               : POD_READY;
}

static void deployment_misses_its_deadline(void **state)
{
    (void)state;
    world_fates(W, two_never_ready, NULL);
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 4, "'progressDeadlineSeconds':60,"));
    world_settle(W);
    world_pass(W, 100);
    assert_string_equal(world_reason(W, world_get(W, "deployments.apps", "n", "d"), "Progressing"),
                        "NewReplicaSetAvailable");
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}");
    world_pass(W, 50);
    assert_string_equal(world_reason(W, world_get(W, "deployments.apps", "n", "d"), "Progressing"),
                        "ReplicaSetUpdated");
    world_pass(W, 20);
    const cJSON *d = world_get(W, "deployments.apps", "n", "d");
    assert_string_equal(world_reason(W, d, "Progressing"), "ProgressDeadlineExceeded");
    assert_string_equal(world_condition(W, d, "Progressing"), "False");
    assert_string_equal(world_condition(W, d, "Available"), "True");
    assert_int_equal(world_i64(d, "status.availableReplicas"), 3);
    world_fates(W, NULL, NULL);
    world_settle(W);
    d = world_get(W, "deployments.apps", "n", "d");
    assert_string_equal(world_reason(W, d, "Progressing"), "NewReplicaSetAvailable");
}

static void deployment_scales_in_proportion(void **state)
{
    (void)state;
    world_fates(W, two_never_ready, NULL);
    world_create(W, "deployments.apps", "n",
                 DEPLOYMENT("d", 10,
                            "'strategy':{'type':'RollingUpdate','rollingUpdate':"
                            "{'maxSurge':3,'maxUnavailable':2}},"));
    world_settle(W);
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}");
    world_settle(W);
    /* 8 old, 5 new; scaled to 15 it has room for 18: 11 old and 7 new, as kubernetes.io explains.
     */
    world_patch(W, "deployments.apps", "n", "d", "{'spec':{'replicas':15}}");
    world_settle(W);
    int64_t sizes[2] = {0, 0};
    json_each(set, world_list(W, "replicasets.apps", "n"))
    {
        bool two = str_eqc(
            json_str_at(json_first(json_path(set, "spec.template.spec.containers")), "image"),
            "two");
        sizes[two] = world_i64(set, "spec.replicas");
    }
    assert_int_equal(sizes[0], 11);
    assert_int_equal(sizes[1], 7);
    world_fates(W, NULL, NULL);
}

static void deployment_pauses(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 2, ""));
    world_settle(W);
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'paused':true,'replicas':3,"
                "'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}");
    world_settle(W);
    const cJSON *d = world_get(W, "deployments.apps", "n", "d");
    assert_string_equal(world_reason(W, d, "Progressing"), "DeploymentPaused");
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), 1);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 3);
    assert_int_equal(world_i64(d, "status.updatedReplicas"), 0);
    world_patch(W, "deployments.apps", "n", "d", "{'spec':{'paused':false}}");
    world_settle(W);
    d = world_get(W, "deployments.apps", "n", "d");
    assert_int_equal(world_i64(d, "status.updatedReplicas"), 3);
    assert_string_equal(world_reason(W, d, "Progressing"), "NewReplicaSetAvailable");
}

static void deployment_forgets_old_sets(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 1, "'revisionHistoryLimit':2,"));
    for (int i = 0; i < 5; i++) {
        world_settle(W);
        world_patch(W, "deployments.apps", "n", "d",
                    arena_printf(world_arena(W),
                                 "{'spec':{'template':{'spec':{'containers':"
                                 "[{'name':'c','image':'i%d'}]}}}}",
                                 i)
                        .p);
    }
    world_settle(W);
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), 3);
}

static void deployment_finds_another_name(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 1, ""));
    world_settle(W);
    const cJSON *set = json_first(world_list(W, "replicasets.apps", "n"));
    const char *name = json_str_at(set, "metadata.name").p;
    world_delete(W, "deployments.apps", "n", "d", "Background");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
    world_create(W, "replicasets.apps", "n",
                 arena_printf(world_arena(W),
                              "{'metadata':{'name':'%s'},'spec':{'replicas':0,'selector':"
                              "{'matchLabels':{'x':'y'}},'template':{'metadata':{'labels':"
                              "{'x':'y'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
                              name)
                     .p);
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 1, ""));
    world_settle(W);
    const cJSON *d = world_get(W, "deployments.apps", "n", "d");
    assert_int_equal(world_i64(d, "status.collisionCount"), 1);
    assert_int_equal(world_i64(d, "status.availableReplicas"), 1);
}

static void deployment_goes_back_to_an_old_set(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 2, ""));
    world_settle(W);
    struct str first =
        json_str_at(json_first(world_list(W, "replicasets.apps", "n")), "metadata.name");
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'two'}]}}}}");
    world_settle(W);
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'one'}]}}}}");
    world_settle(W);
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), 2);
    const cJSON *set = world_get(W, "replicasets.apps", "n", arena_cstr(world_arena(W), first));
    const cJSON *annotations = json_path(set, "metadata.annotations");
    assert_int_equal(world_i64(set, "status.availableReplicas"), 2);
    assert_str(json_str(json_get(annotations, "deployment.kubernetes.io/revision")), "3");
    assert_str(json_str(json_get(annotations, "deployment.kubernetes.io/revision-history")), "1");
    assert_str(json_str(json_get(
                   json_path(world_get(W, "deployments.apps", "n", "d"), "metadata.annotations"),
                   "deployment.kubernetes.io/revision")),
               "3");
}

/* "1Gi" for "1024Mi" restarts no pods. */
static void deployment_reads_amounts(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT("d", 2, ""));
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'one','resources':"
                "{'limits':{'memory':'1024Mi'}}}]}}}}");
    world_settle(W);
    size_t sets = world_count(W, "replicasets.apps", "n", NULL, NULL);
    int64_t generation =
        world_i64(world_get(W, "deployments.apps", "n", "d"), "metadata.generation");
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'one','resources':"
                "{'limits':{'memory':'1048576Ki'}}}]}}}}");
    world_settle(W);
    const cJSON *d = world_get(W, "deployments.apps", "n", "d");
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), sets);
    assert_int_equal(world_i64(d, "metadata.generation"), generation);
    world_patch(W, "deployments.apps", "n", "d",
                "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'one','resources':"
                "{'limits':{'memory':'1073741824'}}}]}}}}");
    world_settle(W);
    d = world_get(W, "deployments.apps", "n", "d");
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), sets);
    assert_int_equal(world_i64(d, "metadata.generation"), generation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(set_keeps_its_size),
        WORLD_TEST(set_adopts_and_releases),
        WORLD_TEST(set_gives_up_unready_pods_first),
        WORLD_TEST(set_waits_for_min_ready_seconds),
        WORLD_TEST(set_tells_why_it_cannot),
        WORLD_TEST(old_controller_does_the_same),
        WORLD_TEST(deployment_makes_a_set),
        WORLD_TEST(deployment_rolls_within_its_bounds),
        WORLD_TEST(deployment_recreates),
        WORLD_TEST(deployment_misses_its_deadline),
        WORLD_TEST(deployment_scales_in_proportion),
        WORLD_TEST(deployment_pauses),
        WORLD_TEST(deployment_forgets_old_sets),
        WORLD_TEST(deployment_finds_another_name),
        WORLD_TEST(deployment_goes_back_to_an_old_set),
        WORLD_TEST(deployment_reads_amounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
