/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of HorizontalPodAutoscalers, in upstream's words and order. Must never see another version
 * than autoscaling/v2. Source: pkg/apis/autoscaling/validation, pkg/registry/autoscaling. */
#include "validate.h"

#include <sublet/quantity.h>

#define MAX_WINDOW 3600
#define MAX_PERIOD 1800

/* ---- references ---- */

/* Why a text is no group and version; NULL when it is. */
static const char *version_problem(struct arena *a, struct str text, bool core_is_fine)
{
    struct str rest = text;
    size_t slashes = 0;

    for (size_t i = 0; i < text.n; i++)
        slashes += text.p[i] == '/';
    if (slashes > 1)
        return arena_printf(a, "unexpected GroupVersion string: %.*s", STR_F(text)).p;
    if (!core_is_fine && (!slashes || !str_cut(&rest, '/').n))
        return "apiVersion must specify API group";
    return NULL;
}

/* A name in a path, which must be given. */
static void check_named(struct field_errors *e, const struct field_path *p, const cJSON *object,
                        const char *key, const char *missing)
{
    struct str text = json_str(json_get(object, key));

    if (!text.n)
        field_required(e, FIELD(p, key), missing);
    else
        check_rule(e, FIELD(p, key), NAME_PATH_SEGMENT, text);
}

/* How little of an apiVersion will do. */
enum leniency { NEEDS_GROUP, CORE_IS_FINE, ANYTHING };

static void check_reference(struct field_errors *e, const struct field_path *p, const cJSON *ref,
                            enum leniency leniency)
{
    struct str version = json_str(json_get(ref, "apiVersion"));
    const char *why = version_problem(e->arena, version, leniency == CORE_IS_FINE);

    check_named(e, p, ref, "kind", "");
    check_named(e, p, ref, "name", "");
    if (why && leniency != ANYTHING)
        field_invalid_str(e, FIELD(p, "apiVersion"), version, why);
}

/* An update that leaves the kind of the target may keep it; replication controllers have no group.
 */
static enum leniency leniency_of(const cJSON *object, const cJSON *old)
{
    const cJSON *ref = json_path(object, "spec.scaleTargetRef");
    const cJSON *before = json_path(old, "spec.scaleTargetRef");

    if (old && same_value(json_get(ref, "apiVersion"), json_get(before, "apiVersion")) &&
        same_value(json_get(ref, "kind"), json_get(before, "kind")))
        return ANYTHING;
    return str_eqc(json_str(json_get(ref, "kind")), "ReplicationController") ? CORE_IS_FINE
                                                                             : NEEDS_GROUP;
}

/* ---- metrics ---- */

static void check_amount(struct field_errors *e, const struct field_path *p, const cJSON *amount)
{
    struct quantity q;

    if (amount && quantity_parse(json_str(amount), &q) && q.nano <= 0)
        field_invalid(e, p, amount, "must be positive");
}

static void check_target(struct field_errors *e, const struct field_path *p, const cJSON *target)
{
    static const char *const types[] = {"Utilization", "Value", "AverageValue", NULL};
    struct str type = json_str(json_get(target, "type"));
    const cJSON *percent = given(target, "averageUtilization");
    int64_t value;

    if (!type.n)
        field_required(e, FIELD(p, "type"), "must specify a metric target type");
    if (!one_of(type, types))
        field_invalid_str(e, FIELD(p, "type"), type,
                          "must be either Utilization, Value, or AverageValue");
    check_amount(e, FIELD(p, "value"), given(target, "value"));
    check_amount(e, FIELD(p, "averageValue"), given(target, "averageValue"));
    if (json_i64(percent, &value) && value < 1)
        field_invalid(e, FIELD(p, "averageUtilization"), percent, "must be greater than 0");
}

/* What of a target's amounts a source needs, and which two it may not have at once. */
struct source_rule {
    const char *name, *type;
    bool identified;            /* has a metric with a name */
    const char *first, *second; /* one of them is needed; second may be NULL */
    const char *missing_at, *missing;
    const char *both_at, *both; /* NULL: both are fine */
};

#define UTILIZATION                                                                                \
    "averageUtilization", "averageValue", "averageUtilization",                                    \
        "must set either a target raw value or a target utilization", "averageValue",              \
        "may not set both a target raw value and a target utilization"

static const struct source_rule SOURCES[] = {
    {"object", "Object", true, "value", "averageValue", "averageValue",
     "must set either a target value or averageValue", NULL, NULL},
    {"external", "External", true, "value", "averageValue", "averageValue",
     "must set either a target value for metric or a per-pod target", "value",
     "may not set both a target value for metric and a per-pod target"},
    {"pods", "Pods", true, "averageValue", NULL, "averageValue",
     "must specify a positive target averageValue", NULL, NULL},
    {"resource", "Resource", false, UTILIZATION},
    {"containerResource", "ContainerResource", false, UTILIZATION},
};

static void check_resource_of(struct field_errors *e, const struct field_path *p,
                              const cJSON *source, bool of_container)
{
    struct str name = json_str(json_get(source, "name")),
               container = json_str(json_get(source, "container"));

    if (!name.n)
        field_required(e, FIELD(p, "name"), "must specify a resource name");
    if (!of_container)
        return;
    if (name.n)
        check_container_resource(e, FIELD(p, "name"), name);
    if (!container.n)
        field_required(e, FIELD(p, "container"), "must specify a container");
    else
        check_rule(e, FIELD(p, "container"), NAME_DNS1123_LABEL, container);
}

static void check_source(struct field_errors *e, const struct field_path *p, const cJSON *source,
                         const struct source_rule *rule)
{
    const cJSON *target = json_get(source, "target");
    const struct field_path *at = FIELD(p, "target");
    bool first = given(target, rule->first), second = rule->second && given(target, rule->second);

    if (str_eqc(str_c(rule->type), "Object"))
        check_reference(e, FIELD(p, "describedObject"), json_get(source, "describedObject"),
                        CORE_IS_FINE);
    if (rule->identified)
        check_named(e, FIELD(p, "metric"), json_get(source, "metric"), "name",
                    "must specify a metric name");
    else
        check_resource_of(e, p, source, str_eqc(str_c(rule->type), "ContainerResource"));
    check_target(e, at, target);
    if (!first && !second)
        field_required(e, FIELD(at, rule->missing_at), rule->missing);
    if (first && second && rule->both)
        field_forbidden(e, FIELD(at, rule->both_at), rule->both);
}

static void check_metric(struct field_errors *e, const struct field_path *p, const cJSON *metric)
{
    static const char *const types[] = {"ContainerResource", "External", "Object", "Pods",
                                        "Resource",          NULL};
    struct str type = json_str(json_get(metric, "type"));
    const struct source_rule *expected = NULL;
    size_t present = 0;

    if (!type.n)
        field_required(e, FIELD(p, "type"), "must specify a metric source type");
    if (!one_of(type, types))
        field_not_supported(e, FIELD(p, "type"), type, types);
    for (size_t i = 0; i < COUNT(SOURCES); i++) {
        const cJSON *source = given(metric, SOURCES[i].name);

        if (str_eqc(type, SOURCES[i].type))
            expected = &SOURCES[i];
        if (source && present++ == 0)
            check_source(e, FIELD(p, SOURCES[i].name), source, &SOURCES[i]);
    }
    if (!expected)
        field_not_supported(e, FIELD(p, "type"), type, types);
    else if (!given(metric, expected->name))
        field_required(e, FIELD(p, expected->name),
                       "must populate information for the given metric source");
    for (size_t i = 0; i < COUNT(SOURCES) && present != 1; i++) {
        if (&SOURCES[i] != expected && given(metric, SOURCES[i].name))
            field_forbidden(e, FIELD(p, SOURCES[i].name),
                            "must populate the given metric source only");
    }
}

/* ---- behaviour ---- */

static void check_policy(struct field_errors *e, const struct field_path *p, const cJSON *policy)
{
    static const char *const types[] = {"Percent", "Pods", NULL};
    struct str type = json_str(json_get(policy, "type"));
    const cJSON *period = json_get(policy, "periodSeconds");

    if (!one_of(type, types))
        field_not_supported(e, FIELD(p, "type"), type, types);
    check_positive(e, FIELD(p, "value"), json_get(policy, "value"));
    check_positive(e, FIELD(p, "periodSeconds"), period);
    if (json_i64_at(policy, "periodSeconds", 0) > MAX_PERIOD)
        field_invalid(e, FIELD(p, "periodSeconds"), period, "must be less than or equal to 1800");
}

static void check_tolerance(struct field_errors *e, const struct field_path *p,
                            const cJSON *tolerance)
{
    struct quantity q;

    if (tolerance && quantity_parse(json_str(tolerance), &q) && q.nano < 0)
        field_invalid(e, p, tolerance, NEGATIVE);
}

static void check_scaling(struct field_errors *e, const struct field_path *p, const cJSON *rules)
{
    static const char *const selects[] = {"Disabled", "Max", "Min", NULL};
    const cJSON *window = given(rules, "stabilizationWindowSeconds");
    const cJSON *policies = json_get(rules, "policies");
    int64_t seconds = json_i64_at(rules, "stabilizationWindowSeconds", 0);
    AT(at, p, "stabilizationWindowSeconds");
    size_t i = 0;

    if (!rules)
        return;
    if (seconds < 0)
        field_invalid(e, at, window, "must be greater than or equal to zero");
    if (seconds > MAX_WINDOW)
        field_invalid(e, at, window, "must be less than or equal to 3600");
    check_enum_if(e, FIELD(p, "selectPolicy"), given(rules, "selectPolicy"), selects);
    if (!json_count(policies))
        field_required(e, FIELD(p, "policies"), "must specify at least one Policy");
    json_each(policy, policies) check_policy(e, FIELD_INDEX(FIELD(p, "policies"), i++), policy);
    check_tolerance(e, FIELD(p, "tolerance"), given(rules, "tolerance"));
}

/* ---- the whole ---- */

static void check_replicas(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *least = given(spec, "minReplicas"), *most = json_get(spec, "maxReplicas");
    int64_t low = json_i64_at(spec, "minReplicas", 1), high = json_i64_at(spec, "maxReplicas", 0);

    if (least && low < 1)
        field_invalid(e, FIELD(p, "minReplicas"), least, "must be greater than or equal to 1");
    if (high == 0)
        field_required(e, FIELD(p, "maxReplicas"), "must be set and greater than 0");
    else if (high < 0)
        field_invalid(e, FIELD(p, "maxReplicas"), most, "must be greater than or equal to 1");
    if (least && high < low)
        field_invalid(e, FIELD(p, "maxReplicas"), most,
                      "must be greater than or equal to `minReplicas`");
}

void validate_autoscaler(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *behavior = given(spec, "behavior");
    const cJSON *ref = json_get(spec, "scaleTargetRef"), *metrics = json_get(spec, "metrics");
    AT(p, NULL, "spec");
    AT(at, p, "behavior");
    bool scales_to_zero = false;
    size_t i = 0;

    check_replicas(e, p, spec);
    check_reference(e, FIELD(p, "scaleTargetRef"), ref, leniency_of(object, old));
    json_each(metric, metrics)
    {
        struct str type = json_str(json_get(metric, "type"));

        check_metric(e, FIELD_INDEX(FIELD(p, "metrics"), i++), metric);
        scales_to_zero |= str_eqc(type, "Object") || str_eqc(type, "External");
    }
    if (given(spec, "minReplicas") && json_i64_at(spec, "minReplicas", 1) == 0 && !scales_to_zero)
        field_forbidden(e, FIELD(p, "metrics"),
                        "must specify at least one Object or External metric to support scaling to "
                        "zero replicas");
    check_scaling(e, FIELD(at, "scaleUp"), given(behavior, "scaleUp"));
    check_scaling(e, FIELD(at, "scaleDown"), given(behavior, "scaleDown"));
}

void validate_autoscaler_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const counts[] = {"currentReplicas", "desiredReplicas", NULL};

    (void)old;
    check_all_nonnegative(e, FIELD(NULL, "status"), json_get(object, "status"), counts);
}
