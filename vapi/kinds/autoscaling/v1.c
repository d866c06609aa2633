/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscalers between autoscaling/v1 and v2 (stored). What v1 cannot say travels in
 * annotations, in upstream's names and form. A client writes annotations: what does not fit the
 * type must not reach the store. Source: pkg/apis/autoscaling/v1/conversion.go. */
#include "v1.h"

#include <sublet/schema.h>

#include <string.h>

#define METRICS_NOTE    "autoscaling.alpha.kubernetes.io/metrics"
#define STATUSES_NOTE   "autoscaling.alpha.kubernetes.io/current-metrics"
#define CONDITIONS_NOTE "autoscaling.alpha.kubernetes.io/conditions"
#define BEHAVIOR_NOTE   "autoscaling.alpha.kubernetes.io/behavior"

static const char *const NOTES[] = {METRICS_NOTE, STATUSES_NOTE, CONDITIONS_NOTE, BEHAVIOR_NOTE};

/* ---- metrics: one row a field ---- */

/* `*` is "target" in a spec and "current" in a status; zero is what v1 prints in one of them when
 * there is none. */
static const struct metric_field {
    const char *source, *v1, *v2;
    bool zero_in_spec, zero_in_status;
} FIELDS_OF[] = {
    {"object", "target", "describedObject", false, false},
    {"object", "metricName", "metric.name", false, false},
    {"object", "*Value", "*.value", true, true},
    {"object", "selector", "metric.selector", false, false},
    {"object", "averageValue", "*.averageValue", false, false},
    {"pods", "metricName", "metric.name", false, false},
    {"pods", "*AverageValue", "*.averageValue", true, true},
    {"pods", "selector", "metric.selector", false, false},
    {"resource", "name", "name", false, false},
    {"resource", "*AverageUtilization", "*.averageUtilization", false, false},
    {"resource", "*AverageValue", "*.averageValue", false, true},
    {"containerResource", "name", "name", false, false},
    {"containerResource", "*AverageUtilization", "*.averageUtilization", false, false},
    {"containerResource", "*AverageValue", "*.averageValue", false, true},
    {"containerResource", "container", "container", false, false},
    {"external", "metricName", "metric.name", false, false},
    {"external", "metricSelector", "metric.selector", false, false},
    {"external", "*Value", "*.value", false, true},
    {"external", "*AverageValue", "*.averageValue", false, false},
};

static const char *field_name(struct arena *a, const char *name, bool spec)
{
    return *name == '*' ? problem_printf(a, "%s%s", spec ? "target" : "current", name + 1) : name;
}

static void set_path(struct arena *a, cJSON *object, const char *path, const cJSON *value)
{
    struct str rest = str_c(path), first = str_cut(&rest, '.');

    if (rest.p)
        json_set(a, json_ensure_object(a, object, arena_cstr(a, first)), rest.p,
                 json_copy(a, value));
    else
        json_set(a, object, path, json_copy(a, value));
}

static cJSON *metric_to_v1(struct arena *a, const cJSON *metric, bool spec)
{
    cJSON *made = json_new_object(a);

    json_set_str(a, made, "type", json_str(json_get(metric, "type")));
    for (const struct metric_field *f = FIELDS_OF; f < FIELDS_OF + COUNT(FIELDS_OF); f++) {
        const cJSON *source = json_get(metric, f->source), *value;
        const char *name = field_name(a, f->v1, spec);

        if (!json_is_object(source))
            continue;
        value = json_path(source, field_name(a, f->v2, spec));
        if (value)
            set_path(a, json_ensure_object(a, made, f->source), name, value);
        else if (spec ? f->zero_in_spec : f->zero_in_status)
            json_set_str(a, json_ensure_object(a, made, f->source), name, STR("0"));
    }
    return made;
}

/* target.type was implied by what was given. */
static void set_target_type(struct arena *a, cJSON *source, const char *name)
{
    cJSON *target = json_ensure_object(a, source, "target");
    bool average = json_get(target, "averageValue") != NULL;
    struct str type = STR("AverageValue");

    if (json_get(target, "averageUtilization"))
        type = STR("Utilization");
    else if (strcmp(name, "object") == 0 && !average)
        type = STR("Value");
    else if (strcmp(name, "external") == 0 && json_get(target, "value"))
        type = STR("Value");
    if (strcmp(name, "object") == 0 && average && str_eqc(json_str(json_get(target, "value")), "0"))
        json_remove(target, "value");
    json_set_str(a, target, "type", type);
}

static cJSON *metric_to_v2(struct arena *a, const cJSON *metric, bool spec)
{
    cJSON *made = json_new_object(a);

    json_set_str(a, made, "type", json_str(json_get(metric, "type")));
    for (const struct metric_field *f = FIELDS_OF; f < FIELDS_OF + COUNT(FIELDS_OF); f++) {
        const cJSON *source = json_get(metric, f->source), *value;

        if (!json_is_object(source))
            continue;
        value = json_get(source, field_name(a, f->v1, spec));
        if (value && !json_is_null(value))
            set_path(a, json_ensure_object(a, made, f->source), field_name(a, f->v2, spec), value);
    }
    if (spec) {
        json_each(source, made)
        {
            if (json_is_object(source))
                set_target_type(a, source, source->string);
        }
    }
    return made;
}

/* ---- annotations ---- */

static cJSON *take_annotation(struct arena *a, cJSON *object, const char *name)
{
    cJSON *annotations = json_path(object, "metadata.annotations");
    struct str text = json_str(json_get(annotations, name));
    cJSON *tree = NULL;
    struct err err;

    if (!annotations || !json_get(annotations, name))
        return NULL;
    json_remove(annotations, name);
    if (!annotations->child)
        json_remove(json_get(object, "metadata"), "annotations");
    err_init(&err, a);
    return text.n && json_parse(a, text, &tree, &err) == 0 ? tree : NULL;
}

static void put_annotation(struct arena *a, cJSON *object, const char *name, const cJSON *tree)
{
    json_set_str(a, json_ensure_path(a, object, "metadata.annotations"), name, json_text(a, tree));
}

/* Upstream prints the behavior with the names of its internal Go type. */
static const struct {
    const char *internal, *v2;
} BEHAVIOR_NAMES[] = {
    {"ScaleUp", "scaleUp"},
    {"ScaleDown", "scaleDown"},
    {"StabilizationWindowSeconds", "stabilizationWindowSeconds"},
    {"SelectPolicy", "selectPolicy"},
    {"Policies", "policies"},
    {"Tolerance", "tolerance"},
    {"Type", "type"},
    {"Value", "value"},
    {"PeriodSeconds", "periodSeconds"},
};

/* The parser bounds the depth of what comes from an annotation; this stops where the type ends. */
static void rename_behavior(struct arena *a, cJSON *node, bool to_v2, unsigned depth)
{
    json_each(item, node)
    {
        for (size_t i = 0; item->string && json_is_object(node) && i < COUNT(BEHAVIOR_NAMES); i++) {
            if (strcasecmp(item->string, BEHAVIOR_NAMES[i].v2) == 0)
                item->string =
                    arena_cstr(a, str_c(to_v2 ? BEHAVIOR_NAMES[i].v2 : BEHAVIOR_NAMES[i].internal));
        }
        if (depth)
            rename_behavior(a, item, to_v2, depth - 1);
    }
}

static cJSON *renamed_behavior(struct arena *a, const cJSON *behavior, bool to_v2)
{
    cJSON *made = json_copy(a, behavior);

    rename_behavior(a, made, to_v2, 3);
    for (cJSON *item = json_first(made), *next; item; item = next) {
        next = item->next;
        if (json_is_null(item))
            json_detach(made, item);
    }
    return made;
}

/* ---- v2 -> v1 ---- */

static bool is_cpu_share(const cJSON *metric, const char *part)
{
    const cJSON *resource = json_get(metric, "resource");

    return str_eqc(json_str(json_get(metric, "type")), "Resource") &&
           str_eqc(json_str(json_get(resource, "name")), "cpu") &&
           json_get(json_get(resource, part), "averageUtilization");
}

/* What both versions always print. It matters to server-side apply: what a conversion of an object
 * without it leaves out would count as removed. */
static void fill_spec(struct arena *a, cJSON *object)
{
    cJSON *spec = json_ensure_object(a, object, "spec");
    cJSON *target = json_ensure_object(a, spec, "scaleTargetRef");

    if (!json_get(target, "kind"))
        json_set_str(a, target, "kind", STR(""));
    if (!json_get(target, "name"))
        json_set_str(a, target, "name", STR(""));
    if (!json_get(spec, "maxReplicas"))
        json_set_i64(a, spec, "maxReplicas", 0);
}

static void spec_to_v1(struct arena *a, cJSON *object, cJSON *spec)
{
    cJSON *others = json_new_array(a);
    const cJSON *behavior = json_get(spec, "behavior");
    bool found = false;

    json_each(metric, json_get(spec, "metrics"))
    {
        if (!is_cpu_share(metric, "target")) {
            json_append(others, metric_to_v1(a, metric, true));
        } else if (!found) {
            found = true;
            json_set(a, spec, "targetCPUUtilizationPercentage",
                     json_copy(a, json_path(metric, "resource.target.averageUtilization")));
        }
    }
    if (others->child)
        put_annotation(a, object, METRICS_NOTE, others);
    if (behavior)
        put_annotation(a, object, BEHAVIOR_NOTE, renamed_behavior(a, behavior, false));
    json_remove(spec, "metrics");
    json_remove(spec, "behavior");
}

static void status_to_v1(struct arena *a, cJSON *object, cJSON *status)
{
    cJSON *all = json_new_array(a);
    const cJSON *conditions = json_get(status, "conditions");

    json_each(metric, json_get(status, "currentMetrics"))
    {
        json_append(all, metric_to_v1(a, metric, false));
        if (is_cpu_share(metric, "current"))
            json_set(a, status, "currentCPUUtilizationPercentage",
                     json_copy(a, json_path(metric, "resource.current.averageUtilization")));
    }
    if (all->child)
        put_annotation(a, object, STATUSES_NOTE, all);
    if (json_count(conditions))
        put_annotation(a, object, CONDITIONS_NOTE, conditions);
    json_remove(status, "currentMetrics");
    json_remove(status, "conditions");
    if (!json_get(status, "currentReplicas"))
        json_set_i64(a, status, "currentReplicas", 0);
}

void kinds_autoscaler_from_storage(struct arena *a, cJSON *object)
{
    cJSON *spec = json_get(object, "spec"), *status = json_get(object, "status");

    for (size_t i = 0; i < COUNT(NOTES); i++)
        take_annotation(a, object, NOTES[i]);
    if (spec)
        spec_to_v1(a, object, spec);
    fill_spec(a, object);
    if (status)
        status_to_v1(a, object, status);
}

/* ---- v1 -> v2 ---- */

cJSON *kinds_autoscaler_cpu_metric(struct arena *a, const char *part, const cJSON *utilization)
{
    cJSON *metric = json_new_object(a), *resource, *target;

    json_set_str(a, metric, "type", STR("Resource"));
    resource = json_ensure_object(a, metric, "resource");
    json_set_str(a, resource, "name", STR("cpu"));
    target = json_ensure_object(a, resource, part);
    if (strcmp(part, "target") == 0)
        json_set_str(a, target, "type", STR("Utilization"));
    json_set(a, target, "averageUtilization", json_copy(a, utilization));
    return metric;
}

static void spec_to_v2(struct arena *a, cJSON *object, cJSON *spec)
{
    const cJSON *others = take_annotation(a, object, METRICS_NOTE);
    const cJSON *behavior = take_annotation(a, object, BEHAVIOR_NOTE);
    const cJSON *cpu = json_get(spec, "targetCPUUtilizationPercentage");
    cJSON *metrics = json_new_array(a);

    if (json_is_array(others)) {
        json_each(metric, others) json_append(metrics, metric_to_v2(a, metric, true));
    }
    if (cpu)
        json_append(metrics, kinds_autoscaler_cpu_metric(a, "target", cpu));
    if (!metrics->child)
        json_append(metrics, kinds_autoscaler_cpu_metric(a, "target", json_new_i64(a, 80)));
    json_set(a, spec, "metrics", metrics);
    json_remove(spec, "targetCPUUtilizationPercentage");
    if (json_is_object(behavior))
        json_set(a, spec, "behavior", renamed_behavior(a, behavior, true));
}

static void status_to_v2(struct arena *a, cJSON *object, cJSON *status)
{
    const cJSON *current = take_annotation(a, object, STATUSES_NOTE);
    const cJSON *conditions = take_annotation(a, object, CONDITIONS_NOTE);
    const cJSON *cpu = json_get(status, "currentCPUUtilizationPercentage");
    cJSON *metrics = json_new_array(a);

    if (json_is_array(current)) {
        json_each(metric, current) json_append(metrics, metric_to_v2(a, metric, false));
    } else if (cpu) {
        json_append(metrics, kinds_autoscaler_cpu_metric(a, "current", cpu));
    }
    json_set(a, status, "currentMetrics", metrics->child ? metrics : json_new_null(a));
    json_remove(status, "currentCPUUtilizationPercentage");
    if (json_is_array(conditions) && conditions->child)
        json_set(a, status, "conditions", json_copy(a, conditions));
}

void kinds_autoscaler_default_v1(struct arena *a, const cJSON *object, cJSON *spec)
{
    struct str text = json_str(json_get(json_path(object, "metadata.annotations"), METRICS_NOTE));
    cJSON *others = NULL;
    struct err err;

    err_init(&err, a);
    if (text.n && json_parse(a, text, &others, &err) == 0 && json_is_array(others) && others->child)
        return;
    if (!json_get(spec, "targetCPUUtilizationPercentage"))
        json_set_i64(a, spec, "targetCPUUtilizationPercentage", 80);
}

static void to_v2(struct arena *a, cJSON *object)
{
    cJSON *spec = json_get(object, "spec"), *status = json_get(object, "status");

    if (spec)
        spec_to_v2(a, object, spec);
    fill_spec(a, object);
    if (status)
        status_to_v2(a, object, status);
    json_set_str(a, object, "apiVersion", STR("autoscaling/v2"));
}

void kinds_autoscaler_to_storage(struct arena *a, cJSON *object)
{
    uint32_t root =
        schema_builtin_root(STR("autoscaling"), STR("v2"), STR("HorizontalPodAutoscaler"));
    cJSON *made = json_copy(a, object);
    struct err err;

    err_init(&err, a);
    to_v2(a, made);
    if (schema_normalise(a, &SCHEMA_BUILTIN, root, made, NULL, &err)) {
        made = object; /* without what the annotations say */
        for (size_t i = 0; i < COUNT(NOTES); i++)
            json_remove(json_path(made, "metadata.annotations"), NOTES[i]);
        to_v2(a, made);
    }
    object->child = made->child;
}
