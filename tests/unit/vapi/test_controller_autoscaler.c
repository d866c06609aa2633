/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscalers without metrics: bounds are kept, and why nothing else happens is said.
 */
#include "controller_world.h"

#define HPAS "horizontalpodautoscalers.autoscaling"
#define HPA(target)                                                                                \
    "{'metadata':{'name':'h'},'spec':{'scaleTargetRef':{'apiVersion':'apps/"                       \
    "v1','kind':'Deployment',"                                                                     \
    "'name':'" target "'},'minReplicas':2,'maxReplicas':4,'metrics':[{'type':'Resource',"          \
    "'resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':50}}}]}}"
#define DEPLOYMENT                                                                                 \
    "{'metadata':{'name':'d'},'spec':{'replicas':1,'selector':{'matchLabels':{'app':'a'}},"        \
    "'template':{'metadata':{'labels':{'app':'a'}},'spec':{'containers':[{'name':'c',"             \
    "'image':'i'}]}}}}"

static const cJSON *hpa(void)
{
    return world_get(W, HPAS, "n", "h");
}

static int64_t replicas(void)
{
    return world_i64(world_get(W, "deployments.apps", "n", "d"), "spec.replicas");
}

static struct str message_of(const char *type)
{
    json_each(c, json_path(hpa(), "status.conditions"))
    {
        if (str_eqc(json_str_at(c, "type"), type))
            return json_str_at(c, "message");
    }
    return STR("");
}

static void bounds_are_kept(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT);
    world_create(W, HPAS, "n", HPA("d"));
    world_settle(W);
    assert_int_equal(replicas(), 2);
    assert_int_equal(world_events(W, "n", "HorizontalPodAutoscaler", "SuccessfulRescale"), 1);
    assert_non_null(json_path(hpa(), "status.lastScaleTime"));
    world_patch(W, "deployments.apps", "n", "d", "{'spec':{'replicas':9}}");
    world_settle(W);
    assert_int_equal(replicas(), 4);
    assert_int_equal(world_count(W, "pods", "n", "app", "a"), 4);
    world_patch(W, HPAS, "n", "h", "{'spec':{'minReplicas':1,'maxReplicas':3}}");
    world_settle(W);
    assert_int_equal(replicas(), 3);
    assert_int_equal(world_i64(hpa(), "status.currentReplicas"), 3);
    assert_int_equal(world_i64(hpa(), "status.desiredReplicas"), 3);
}

static void missing_metrics_are_told(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT);
    world_create(W, HPAS, "n", HPA("d"));
    world_settle(W);
    assert_string_equal(world_condition(W, hpa(), "AbleToScale"), "True");
    assert_string_equal(world_condition(W, hpa(), "ScalingActive"), "False");
    assert_string_equal(world_reason(W, hpa(), "ScalingActive"), "FailedGetResourceMetric");
    assert_str(message_of("ScalingActive"),
               "the HPA was unable to compute the replica count: failed to get cpu utilization: "
               "unable to get metrics for resource cpu: unable to fetch metrics from resource "
               "metrics API: the server could not find the requested resource (get "
               "pods.metrics.k8s.io)");
    assert_true(world_events(W, "n", "HorizontalPodAutoscaler", "FailedComputeMetricsReplicas") >
                0);
    /* Nothing is measured, so nothing is done, however long it lasts. */
    int64_t events = world_events(W, "n", "HorizontalPodAutoscaler", "FailedGetResourceMetric");
    world_pass(W, 3600);
    assert_int_equal(world_events(W, "n", "HorizontalPodAutoscaler", "FailedGetResourceMetric"),
                     events);
    assert_int_equal(replicas(), 2);
}

static void zero_disables(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT);
    world_patch(W, "deployments.apps", "n", "d", "{'spec':{'replicas':0}}");
    world_create(W, HPAS, "n", HPA("d"));
    world_settle(W);
    assert_int_equal(replicas(), 0);
    assert_string_equal(world_reason(W, hpa(), "ScalingActive"), "ScalingDisabled");
}

static void target_may_come_later(void **state)
{
    (void)state;
    world_create(W, HPAS, "n", HPA("d"));
    world_settle(W);
    assert_string_equal(world_condition(W, hpa(), "AbleToScale"), "False");
    assert_str(message_of("AbleToScale"),
               "the HPA controller was unable to get the target's current scale: deployments.apps "
               "\"d\" not found");
    world_create(W, "deployments.apps", "n", DEPLOYMENT);
    world_settle(W);
    assert_string_equal(world_condition(W, hpa(), "AbleToScale"), "True");
    assert_int_equal(replicas(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(bounds_are_kept),
        WORLD_TEST(missing_metrics_are_told),
        WORLD_TEST(zero_disables),
        WORLD_TEST(target_may_come_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
