/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscalers of autoscaling/v2, and of v1, which v1.c converts. Validation must never
 * see another version than v2. Source: pkg/apis/autoscaling/v2/defaults.go,
 * pkg/apis/autoscaling/validation, pkg/registry/autoscaling. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "v1.h"

#include <sublet/json_build.h>
#include <sublet/quantity.h>

static bool is_v1(const cJSON *object)
{
    return str_eqc(json_str(json_get(object, "apiVersion")), "autoscaling/v1");
}

static cJSON *policy(struct arena *a, const char *type, int64_t value)
{
    return json_object(a, JSON("type", type), JSON_I64("value", value),
                       JSON_I64("periodSeconds", 15));
}

static void default_rules(struct arena *a, cJSON *behavior, const char *direction, bool up)
{
    cJSON *rules = json_ensure_object(a, behavior, direction);

    if (!json_get(rules, "selectPolicy"))
        json_set_str(a, rules, "selectPolicy", STR("Max"));
    if (up && !json_get(rules, "stabilizationWindowSeconds"))
        json_set_i64(a, rules, "stabilizationWindowSeconds", 0);
    if (json_get(rules, "policies"))
        return;
    json_set(a, rules, "policies",
             json_array(a, up ? policy(a, "Pods", 4) : NULL, policy(a, "Percent", 100)));
}

static const struct default_rule DEFAULT_RULES[] = {SET_NUMBER("spec.minReplicas", 1)};

static void autoscaler_defaults(struct arena *a, cJSON *object)
{
    cJSON *spec = json_get(object, "spec"), *behavior;

    if (!json_is_object(spec))
        return;
    if (is_v1(object)) {
        kinds_autoscaler_default_v1(a, object, spec);
        return;
    }
    if (!json_count(json_get(spec, "metrics"))) /* 80 % of the requested CPU */
        json_append(json_set(a, spec, "metrics", json_new_array(a)),
                    kinds_autoscaler_cpu_metric(a, "target", json_new_i64(a, 80)));
    behavior = json_get(spec, "behavior");
    if (!behavior)
        return;
    default_rules(a, behavior, "scaleUp", true);
    default_rules(a, behavior, "scaleDown", false);
}

static void autoscaler_prepare_create(struct arena *a, cJSON *object)
{
    defaults_set_status(a, object,
                        is_v1(object) ? "{\"currentReplicas\":0,\"desiredReplicas\":0}"
                                      : "{\"currentMetrics\":null,\"desiredReplicas\":0}");
}

/* ---- references ---- */

/* Why a string is no group and version; NULL when it is. */
static const char *version_problem(struct arena *a, struct str text, bool core_is_fine)
{
    struct str rest = text;
    size_t slashes = 0;

    for (size_t i = 0; i < text.n; i++)
        slashes += text.p[i] == '/';
    if (slashes > 1)
        return problem_printf(a, "unexpected GroupVersion string: %.*s", STR_F(text));
    if (!core_is_fine && (!slashes || !str_cut(&rest, '/').n))
        return "apiVersion must specify API group";
    return NULL;
}

/* How little of an apiVersion will do. */
enum leniency { NEEDS_GROUP, CORE_IS_FINE, ANYTHING };

static const struct rule REFERENCE[] = {NAME("kind", PATH_SEGMENT), NAME("name", PATH_SEGMENT)};

static void check_reference(const struct check *c, enum leniency leniency)
{
    struct str version = json_str(json_get(c->value, "apiVersion"));
    const char *why = version_problem(c->e->arena, version, leniency == CORE_IS_FINE);

    rules_check(c, REFERENCE, COUNT(REFERENCE));
    if (why && leniency != ANYTHING)
        field_invalid_str(c->e, FIELD(c->at, "apiVersion"), version, why);
}

/* An update that leaves the kind of the target may keep it; replication controllers have no group.
 */
static void check_target_reference(const struct check *c)
{
    if (c->before && kinds_same_at(c->value, c->old, "apiVersion") &&
        kinds_same_at(c->value, c->old, "kind"))
        check_reference(c, ANYTHING);
    else
        check_reference(c, kinds_text_is(c->value, "kind", "ReplicationController") ? CORE_IS_FINE
                                                                                    : NEEDS_GROUP);
}

static void check_described(const struct check *c)
{
    check_reference(c, CORE_IS_FINE);
}

/* ---- metrics ---- */

static void check_amount(struct field_errors *e, const struct field_path *p, const cJSON *amount)
{
    struct quantity q;

    if (quantity_parse(json_str(amount), &q) && q.nano <= 0)
        field_invalid(e, p, amount, "must be positive");
}

static const struct rule TARGET[] = {
    GIVEN_ELSE("type", "must specify a metric target type"),
    IN("type", ENUM_METRIC_TARGET_TYPE, "must be either Utilization, Value, or AverageValue"),
    CHECK("value", check_amount),
    CHECK("averageValue", check_amount),
    AT_LEAST("averageUtilization", 1, "must be greater than 0"),
};

/* Which quantities of a target a source needs, and which two it may not have at once. */
struct source_rule {
    const char *name, *type;
    const struct rule *rows; /* beside those of the target */
    size_t n;
    const char *first, *second; /* one of them is needed; second may be NULL */
    const char *missing_at, *missing;
    const char *both_at, *both; /* NULL: both are fine */
};

#define UTILIZATION                                                                                \
    "averageUtilization", "averageValue", "averageUtilization",                                    \
        "must set either a target raw value or a target utilization", "averageValue",              \
        "may not set both a target raw value and a target utilization"

#define METRIC_NAME   NAME_SAID("metric.name", PATH_SEGMENT, "must specify a metric name")
#define RESOURCE_NAME GIVEN_ELSE("name", "must specify a resource name")

static void check_resource(struct field_errors *e, const struct field_path *p, struct str name)
{
    if (name.n)
        check_container_resource(e, p, name);
}

static const struct source_rule SOURCES[] = {
    {"object", "Object", ROWS_INSIDE(CALL("describedObject", check_described), METRIC_NAME),
     "value", "averageValue", "averageValue", "must set either a target value or averageValue",
     NULL, NULL},
    {"external", "External", ROWS_INSIDE(METRIC_NAME), "value", "averageValue", "averageValue",
     "must set either a target value for metric or a per-pod target", "value",
     "may not set both a target value for metric and a per-pod target"},
    {"pods", "Pods", ROWS_INSIDE(METRIC_NAME), "averageValue", NULL, "averageValue",
     "must specify a positive target averageValue", NULL, NULL},
    {"resource", "Resource", ROWS_INSIDE(RESOURCE_NAME), UTILIZATION},
    {"containerResource", "ContainerResource",
     ROWS_INSIDE(RESOURCE_NAME, CHECK_STR("name", check_resource),
                 NAME_SAID("container", DNS1123_LABEL, "must specify a container")),
     UTILIZATION},
};

static void check_source(struct field_errors *e, const struct field_path *p, const cJSON *source,
                         const struct source_rule *rule)
{
    const cJSON *target = json_get(source, "target");
    const struct field_path *at = FIELD(p, "target");
    bool first = kinds_given(target, rule->first),
         second = rule->second && kinds_given(target, rule->second);

    rules_check_value(e, p, source, NULL, rule->rows, rule->n);
    rules_check_value(e, at, target, NULL, TARGET, COUNT(TARGET));
    if (!first && !second)
        field_required(e, FIELD(at, rule->missing_at), rule->missing);
    if (first && second && rule->both)
        field_forbidden(e, FIELD(at, rule->both_at), rule->both);
}

static void check_metric(struct field_errors *e, const struct field_path *p, const cJSON *metric)
{
    struct str type = json_str(json_get(metric, "type"));
    const struct source_rule *expected = NULL;
    size_t present = 0;

    if (!type.n)
        field_required(e, FIELD(p, "type"), "must specify a metric source type");
    if (!kinds_one_of(type, ENUM_METRIC_SOURCE_TYPE))
        field_not_supported(e, FIELD(p, "type"), type, ENUM_METRIC_SOURCE_TYPE);
    for (size_t i = 0; i < COUNT(SOURCES); i++) {
        const cJSON *source = kinds_given(metric, SOURCES[i].name);

        if (str_eqc(type, SOURCES[i].type))
            expected = &SOURCES[i];
        if (source && present++ == 0)
            check_source(e, FIELD(p, SOURCES[i].name), source, &SOURCES[i]);
    }
    if (!expected)
        field_not_supported(e, FIELD(p, "type"), type, ENUM_METRIC_SOURCE_TYPE);
    else if (!kinds_given(metric, expected->name))
        field_required(e, FIELD(p, expected->name),
                       "must populate information for the given metric source");
    for (size_t i = 0; i < COUNT(SOURCES) && present != 1; i++) {
        if (&SOURCES[i] != expected && kinds_given(metric, SOURCES[i].name))
            field_forbidden(e, FIELD(p, SOURCES[i].name),
                            "must populate the given metric source only");
    }
}

/* ---- behaviour ---- */

static const struct rule SCALING[] = {
    AT_LEAST("stabilizationWindowSeconds", 0, "must be greater than or equal to zero"),
    AT_MOST_NUMBER("stabilizationWindowSeconds", 3600),
    ENUM_IF_GIVEN("selectPolicy", ENUM_SCALING_POLICY_SELECT),
    SOME("policies", "must specify at least one Policy"),
    EACH("policies", ENUM_ALWAYS("type", ENUM_HPA_SCALING_POLICY_TYPE), POSITIVE("value"),
         POSITIVE("periodSeconds"), AT_MOST_NUMBER("periodSeconds", 1800)),
    CHECK("tolerance", check_not_negative),
};

/* ---- the whole ---- */

static void check_replicas(const struct check *c)
{
    const cJSON *least = kinds_given(c->value, "minReplicas"),
                *most = json_get(c->value, "maxReplicas");
    int64_t high = json_i64_at(c->value, "maxReplicas", 0);
    AT(at, c->at, "maxReplicas");

    if (high == 0)
        field_required(c->e, at, "must be set and greater than 0");
    else if (high < 0)
        field_invalid(c->e, at, most, "must be greater than or equal to 1");
    if (least && high < json_i64_at(c->value, "minReplicas", 1))
        field_invalid(c->e, at, most, "must be greater than or equal to `minReplicas`");
}

static void check_scale_to_zero(const struct check *c)
{
    if (!kinds_given(c->object, "spec.minReplicas") ||
        json_i64_at(c->object, "spec.minReplicas", 1))
        return;
    json_each(metric, c->value)
    {
        if (kinds_text_is(metric, "type", "Object") || kinds_text_is(metric, "type", "External"))
            return;
    }
    field_forbidden(c->e, c->at,
                    "must specify at least one Object or External metric to support scaling to "
                    "zero replicas");
}

static const struct rule AUTOSCALER_RULES[] = {
    AT_LEAST("spec.minReplicas", 1, "must be greater than or equal to 1"),
    CALL("spec", check_replicas),
    CALL("spec.scaleTargetRef", check_target_reference),
    CHECK_EACH("spec.metrics", check_metric),
    CALL("spec.metrics", check_scale_to_zero),
    WITHIN("spec.behavior.scaleUp", ALL(SCALING)),
    WITHIN("spec.behavior.scaleDown", ALL(SCALING)),
};

static const struct rule STATUS_RULES[] = {
    NONNEGATIVES("status", "currentReplicas", "desiredReplicas"),
};

/* ---- cells ---- */

static const struct metric_type {
    const char *type, *part;
    bool named;   /* "cpu: ..." */
    bool average; /* averageValue is marked "(avg)" */
} METRICS[] = {
    {"External", "external", false, true},
    {"Pods", "pods", false, false},
    {"Object", "object", false, true},
    {"Resource", "resource", true, false},
    {"ContainerResource", "containerResource", true, false},
};

static struct str share(struct arena *a, const cJSON *value, const char *otherwise)
{
    int64_t percent;

    return json_i64(value, &percent) ? arena_printf(a, "%lld%%", (long long)percent)
                                     : str_c(otherwise);
}

/* Once its status is there, a quantity that is not prints as Go's nil. */
static struct str amount(const cJSON *current, const char *key, bool required)
{
    struct str value = json_str(json_get(current, key));

    if (value.n)
        return value;
    return current && !required ? STR("<nil>") : STR("<unknown>");
}

static void print_metric(struct arena *a, struct buf *b, const cJSON *spec, const cJSON *status)
{
    const struct metric_type *m = METRICS;

    while (m < METRICS + COUNT(METRICS) && !kinds_text_is(spec, "type", m->type))
        m++;
    if (m == METRICS + COUNT(METRICS)) {
        buf_addc(b, "<unknown type>");
        return;
    }
    const cJSON *target = json_get(json_get(spec, m->part), "target");
    const cJSON *current = json_get(json_get(status, m->part), "current");
    struct str average = json_str(json_get(target, "averageValue")), have, want;

    if (average.n) {
        have = amount(current, "averageValue", m->average);
        want = average;
    } else if (m->named) {
        have = share(a, json_get(current, "averageUtilization"), "<unknown>");
        want = share(a, json_get(target, "averageUtilization"), "<auto>");
    } else {
        have = amount(current, "value", false);
        want = json_str(json_get(target, "value"));
    }
    if (m->named)
        buf_printf(b, "%.*s: ", STR_F(json_str(json_get(json_get(spec, m->part), "name"))));
    buf_printf(b, "%.*s/%.*s%s", STR_F(have), STR_F(want), average.n && m->average ? " (avg)" : "");
}

/* A row of v1 is printed from what it means in v2. */
static const cJSON *as_v2(struct arena *a, const cJSON *object)
{
    cJSON *copy;

    if (!is_v1(object))
        return object;
    copy = json_copy(a, object);
    kinds_autoscaler_to_storage(a, copy);
    return copy;
}

CELL(cell_metrics)
{
    const cJSON *object = as_v2(r->a, r->object);
    const cJSON *specs = json_path(object, "spec.metrics");
    const cJSON *statuses = json_path(object, "status.currentMetrics");
    struct buf b = BUF_INIT(0);
    size_t n = json_count(specs);

    for (size_t i = 0; i < n && i < 2; i++) {
        buf_addc(&b, i ? ", " : "");
        print_metric(r->a, &b, json_at(specs, i), json_at(statuses, i));
    }
    if (n > 2)
        buf_printf(&b, " + %zu more...", n - 2);
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

CELL(cell_reference)
{
    cell_pair(r, json_path(r->object, "spec.scaleTargetRef"), "kind", "name", "/");
}

CELL(cell_min_replicas)
{
    int64_t least;

    if (json_i64(json_path(r->object, "spec.minReplicas"), &least))
        cell_printf(r, "%lld", (long long)least);
    else
        cell_text(r, STR("<unset>"));
}

/* ---- the kinds ---- */

static const struct column COLUMNS_OF_BOTH[] = {
    {"Reference", "string", .cell = cell_reference},
    {"Targets", "string", .cell = cell_metrics},
    {"MinPods", "string", .cell = cell_min_replicas},
    {"MaxPods", "string", .cell = show_number, .path = "spec.maxReplicas"},
    {"Replicas", "string", .cell = show_number, .path = "status.currentReplicas"},
    {"Age", "string", .cell = show_age},
    {NULL},
};

#define AUTOSCALER(version)                                                                        \
    RESOURCE("autoscaling", version, "HorizontalPodAutoscaler", "horizontalpodautoscalers",        \
             "horizontalpodautoscaler"),                                                           \
        .resource.short_names = NAMES("hpa"), .resource.categories = NAMES("all"),                 \
        .resource.flags = RES_NAMESPACED | RES_STATUS, .resource.columns = COLUMNS_OF_BOTH,        \
        SUBRESOURCES(STATUS_OF("HorizontalPodAutoscaler")),                                        \
        .default_rules = DEFAULTS(DEFAULT_RULES), .defaults = autoscaler_defaults,                 \
        .prepare_create = autoscaler_prepare_create, .rules = RULES(AUTOSCALER_RULES),             \
        .status_rules = RULES(STATUS_RULES)

const struct kind KIND_HORIZONTAL_POD_AUTOSCALER = {AUTOSCALER("v2")};

const struct kind KIND_HORIZONTAL_POD_AUTOSCALER_V1 = {
    AUTOSCALER("v1"),
    .resource.storage_version = KIND_STR("autoscaling/v2"),
    .from_storage = kinds_autoscaler_from_storage,
    .to_storage = kinds_autoscaler_to_storage,
};
