/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscalers. The same functions serve both versions: what reaches them may be v1 or
 * v2. Source: pkg/apis/autoscaling/v2/defaults.go. */
#include "validate.h"

static bool is_v1(const cJSON *object)
{
    return str_eqc(json_str(json_get(object, "apiVersion")), "autoscaling/v1");
}

/* 80 % of the requested CPU. */
static cJSON *default_metric(struct arena *a)
{
    cJSON *metric = json_new_object(a), *resource, *target;

    json_set_str(a, metric, "type", STR("Resource"));
    resource = json_ensure_object(a, metric, "resource");
    json_set_str(a, resource, "name", STR("cpu"));
    target = json_ensure_object(a, resource, "target");
    json_set_str(a, target, "type", STR("Utilization"));
    json_set_i64(a, target, "averageUtilization", 80);
    return metric;
}

static cJSON *policy(struct arena *a, cJSON *list, const char *type, int64_t value)
{
    cJSON *p = json_append(list, json_new_object(a));

    json_set_str(a, p, "type", str_c(type));
    json_set_i64(a, p, "value", value);
    json_set_i64(a, p, "periodSeconds", 15);
    return p;
}

static void default_rules(struct arena *a, cJSON *behavior, const char *direction, bool up)
{
    cJSON *rules = json_ensure_object(a, behavior, direction), *list;

    if (!json_get(rules, "selectPolicy"))
        json_set_str(a, rules, "selectPolicy", STR("Max"));
    if (up && !json_get(rules, "stabilizationWindowSeconds"))
        json_set_i64(a, rules, "stabilizationWindowSeconds", 0);
    if (json_get(rules, "policies"))
        return;
    list = json_set(a, rules, "policies", json_new_array(a));
    if (up)
        policy(a, list, "Pods", 4);
    policy(a, list, "Percent", 100);
}

static void autoscaler_defaults(struct arena *a, cJSON *object)
{
    static const struct default_rule rules[] = {SET_NUMBER("spec.minReplicas", 1)};
    cJSON *spec = json_get(object, "spec"), *behavior;

    defaults_apply(a, object, rules, COUNT(rules));
    if (!json_is_object(spec))
        return;
    if (is_v1(object)) {
        autoscaler_default_v1(a, object, spec);
        return;
    }
    if (!json_count(json_get(spec, "metrics")))
        json_append(json_set(a, spec, "metrics", json_new_array(a)), default_metric(a));
    behavior = json_get(spec, "behavior");
    if (!behavior)
        return;
    default_rules(a, behavior, "scaleUp", true);
    default_rules(a, behavior, "scaleDown", false);
}

static void autoscaler_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object,
               is_v1(object) ? "{\"currentReplicas\":0,\"desiredReplicas\":0}"
                             : "{\"currentMetrics\":null,\"desiredReplicas\":0}");
}

const struct kind_ops HORIZONTAL_POD_AUTOSCALER_OPS = {
    .defaults = autoscaler_defaults,
    .prepare_create = autoscaler_prepare_create,
    .validate = validate_autoscaler,
    .validate_status = validate_autoscaler_status,
    .cells = cells_autoscaler,
};
