/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscaler: the target is kept between minReplicas and maxReplicas, and within them
 * follows what its pods use, where that is measured (the hook `measure`): every SYNC_MS then.
 * Without it the conditions report, with upstream's messages, that metrics are unavailable, and
 * everything works by events. Must never change the size of a target within its bounds without a
 * measurement. Source of the rules: pkg/controller/podautoscaler of Kubernetes 1.36.
 *
 *   decide() --out of bounds--> rescale()
 *      '--measured metrics--> hook measure --> on_measured() --> rescale(), or why not
 *      '--none-------------> report_no_metrics() */
#include "autoscaler.h"
#include "util.h"

#include <sublet/api_version.h>

#define SYNC_MS 15000 /* as kube-controller-manager's --horizontal-pod-autoscaler-sync-period */

struct scaling {
    struct reconcile *run;
    const struct resource *res, *target_res;
    const struct subresource *scale;
    cJSON *hpa, *target;
    const cJSON *as_read;
    int64_t current, desired;
    struct str why;
    const cJSON *measured; /* PodMetrics of the namespace; NULL: see unmeasured */
    struct str unmeasured; /* why the resource metrics API does not answer */
    struct str metric;     /* the name of what decided */
    cJSON *metrics;        /* status.currentMetrics */
};

static void set_condition(struct scaling *s, const char *type, bool holds, const char *reason,
                          struct str message)
{
    condition_set(reconcile_arena(s->run), s->hpa, type, holds ? "True" : "False", reason, message,
                  reconcile_now_s(s->run));
}

static void commit(struct scaling *s)
{
    controller_status_commit(s->run, s->res, s->hpa, s->as_read);
}

/* --- the target --- */

static void no_scale(struct scaling *s, struct str why)
{
    reconcile_event(s->run, s->hpa, "Warning", "FailedGetScale", "%.*s", STR_F(why));
    set_condition(
        s, "AbleToScale", false, "FailedGetScale",
        arena_printf(reconcile_arena(s->run),
                     "the HPA controller was unable to get the target's current scale: %.*s",
                     STR_F(why)));
    commit(s);
}

static bool find_target(struct scaling *s)
{
    struct arena *a = reconcile_arena(s->run);
    const cJSON *ref = json_path(s->hpa, "spec.scaleTargetRef");
    struct str name = json_str_at(ref, "name"), kind = json_str_at(ref, "kind");

    s->target_res = registry_find_reference(vapi_registry(reconcile_api(s->run)), ref);
    s->scale = s->target_res ? resource_sub(s->target_res, STR("scale")) : NULL;
    if (!s->target_res)
        no_scale(s, arena_printf(a, "no matches for kind \"%.*s\" in group \"%.*s\"", STR_F(kind),
                                 STR_F(api_version_read(json_str_at(ref, "apiVersion")).group)));
    else if (!s->scale || !s->scale->scale || !resource_namespaced(s->target_res))
        no_scale(s, STR("the server could not find the requested resource"));
    else if (!(s->target = reconcile_get(s->run, s->target_res, meta_ns(s->hpa), name)))
        no_scale(s, arena_printf(a, "%.*s \"%.*s\" not found", STR_F(s->target_res->group_resource),
                                 STR_F(name)));
    return s->target != NULL;
}

static void read_current(struct scaling *s)
{
    s->current = json_i64_at(s->target, s->scale->scale->spec_replicas, s->target_res->crd ? 0 : 1);
}

/* --- missing metrics --- */

struct metric_type {
    const char *type, *reason, *field, *api;
};
static const struct metric_type METRICS[] = {
    {"Resource", "FailedGetResourceMetric", "resource", NULL},
    {"ContainerResource", "FailedGetContainerResourceMetric", "containerResource", NULL},
    {"Pods", "FailedGetPodsMetric", "pods", "custom"},
    {"Object", "FailedGetObjectMetric", "object", "custom"},
    {"External", "FailedGetExternalMetric", "external", "external"},
};

static const struct metric_type *type_of(const cJSON *metric)
{
    for (size_t i = 0; i < COUNT(METRICS); i++) {
        if (str_eqc(json_str_at(metric, "type"), METRICS[i].type))
            return &METRICS[i];
    }
    return &METRICS[0];
}

static struct str missing_metric(struct scaling *s, const cJSON *metric,
                                 const struct metric_type *w)
{
    struct arena *a = reconcile_arena(s->run);
    const cJSON *source = json_get(metric, w->field);
    struct str name = json_str_at(source, "name");

    if (w->api)
        return arena_printf(a,
                            "unable to get %s metric %.*s: unable to fetch metrics from %s metrics "
                            "API: no %s metrics API (%s.metrics.k8s.io) registered",
                            w->field, STR_F(json_str_at(source, "metric.name")), w->api, w->api,
                            w->api);
    return arena_printf(
        a,
        "failed to get %.*s %s: unable to get metrics for resource %.*s: unable to "
        "fetch metrics from resource metrics API: %.*s (get pods.metrics.k8s.io)",
        STR_F(name), json_path(source, "target.averageValue") ? "usage" : "utilization",
        STR_F(name),
        STR_F(s->unmeasured.n ? s->unmeasured
                              : STR("the server could not find the requested resource")));
}

/* The metric's name in the final message, as upstream has it for this type. */
static struct str named(struct arena *a, const cJSON *metric, const struct metric_type *w)
{
    const cJSON *source = json_get(metric, w->field);

    if (!w->api && json_get(source, "container"))
        return arena_printf(a, "%.*s container", STR_F(json_str_at(source, "container")));
    if (!w->api)
        return arena_printf(a, "%.*s %s", STR_F(json_str_at(source, "name")), w->field);
    return str_eqc(str_c(w->field), "external")
               ? arena_printf(a, "%.*s external", STR_F(json_str_at(source, "metric.name")))
               : str_c(w->field);
}

/* first: the first of the metrics without a value, and why it has none. */
static void report_invalid(struct scaling *s, const cJSON *first, struct str why, size_t invalid)
{
    struct arena *a = reconcile_arena(s->run);
    const struct metric_type *w = type_of(first);

    set_condition(
        s, "ScalingActive", false, w->reason,
        arena_printf(a, "the HPA was unable to compute the replica count: %.*s", STR_F(why)));
    reconcile_event(s->run, s->hpa, "Warning", "FailedComputeMetricsReplicas",
                    "invalid metrics (%zu invalid out of %zu), first error is: failed to get %.*s "
                    "metric value: %.*s",
                    invalid, json_count(json_path(s->hpa, "spec.metrics")),
                    STR_F(named(a, first, w)), STR_F(why));
}

/* The pods that the target's selector selects, and what is measured of them. */
static bool select_pods(struct scaling *s, struct hpa_usage *u)
{
    struct arena *a = reconcile_arena(s->run);
    const char *path = s->scale->scale->selector;
    const cJSON *node = json_path(s->target, path ? path : "spec.selector");
    struct selector selector;
    cJSON *metrics = json_new_array(a);

    if (json_is_string(node) ? selector_parse(a, json_str(node), &selector, NULL)
        : json_get(node, "matchLabels") || json_get(node, "matchExpressions")
            ? selector_from_json(a, node, &selector, NULL)
            : (selector_from_map(a, node, &selector), 0))
        return false;
    json_each(one, s->measured)
    {
        if (selector_match(&selector, labels_flatten(a, json_path(one, "metadata.labels"))))
            json_append(metrics, json_copy(a, one));
    }
    u->metrics = metrics;
    u->pods =
        reconcile_list(s->run, reconcile_resource(s->run, "", "pods"), meta_ns(s->hpa), &selector);
    return !selector.nothing;
}

static bool propose_one(struct scaling *s, struct hpa_usage *u, const cJSON *metric,
                        struct hpa_proposal *ret, struct str *ret_why)
{
    const struct metric_type *its = type_of(metric);

    u->metric = metric;
    if (its->api || !s->measured) {
        *ret_why = missing_metric(s, metric, its);
        return false;
    }
    return hpa_propose(reconcile_arena(s->run), u, ret, ret_why);
}

/* The largest proposal. False: there is none, or one that would shrink the target while another
 * metric is unknown. */
static bool propose_all(struct scaling *s, int64_t *ret)
{
    struct arena *a = reconcile_arena(s->run);
    struct hpa_usage u = {.hpa = s->hpa, .current = s->current, .now_s = reconcile_now_s(s->run)};
    const cJSON *metrics = json_path(s->hpa, "spec.metrics"), *invalid = NULL;
    struct str first = STR(""), why = STR("");
    size_t n_invalid = 0;
    bool selects = select_pods(s, &u);

    s->metrics = json_new_array(a);
    *ret = 0;
    json_each(metric, metrics)
    {
        struct hpa_proposal p;

        if (!selects || !propose_one(s, &u, metric, &p, &why)) {
            reconcile_event(s->run, s->hpa, "Warning", type_of(metric)->reason, "%.*s", STR_F(why));
            first = n_invalid++ ? first : why;
            invalid = invalid ? invalid : metric;
            continue;
        }
        json_append(s->metrics, p.status);
        if (!*ret || p.replicas > *ret) {
            *ret = p.replicas;
            s->metric = p.name;
        }
    }
    if (n_invalid < json_count(metrics) && !(n_invalid && *ret < s->current))
        return true;
    report_invalid(s, invalid ? invalid : json_first(metrics), first, n_invalid);
    return false;
}

/* --- the size --- */

static struct hpa_history *history_of(struct scaling *s)
{
    return hpa_history_get(controller_state(reconcile_controller(s->run)), reconcile_key(s->run),
                           s->current, reconcile_now_s(s->run));
}

static void set_sizes(struct scaling *s)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *status = json_ensure_object(a, s->hpa, "status");

    controller_status_set(a, status, "currentReplicas", s->current, true);
    controller_status_set(a, status, "desiredReplicas", s->desired, true);
    if (s->metrics && json_count(s->metrics))
        json_set(a, status, "currentMetrics", s->metrics);
    else
        json_remove(status, "currentMetrics");
}

static void on_scaled(struct reconcile *r, void *ctx, const struct err *err,
                      const struct store_object *object)
{
    struct scaling *s = ctx;
    struct arena *a = reconcile_arena(r);

    (void)object;
    if (err) {
        reconcile_event(r, s->hpa, "Warning", "FailedRescale",
                        "New size: %lld; reason: %.*s; error: %.*s", (long long)s->desired,
                        STR_F(s->why), STR_F(err->message));
        set_condition(s, "AbleToScale", false, "FailedUpdateScale",
                      arena_printf(a,
                                   "the HPA controller was unable to update the target scale: %.*s",
                                   STR_F(err->message)));
        reconcile_take(r, err);
        s->desired = s->current;
    } else {
        reconcile_event(r, s->hpa, "Normal", "SuccessfulRescale", "New size: %lld; reason: %.*s",
                        (long long)s->desired, STR_F(s->why));
        set_condition(s, "AbleToScale", true, "SucceededRescale",
                      arena_printf(a,
                                   "the HPA controller was able to update the target scale to %lld",
                                   (long long)s->desired));
        json_set_str(a, json_ensure_object(a, s->hpa, "status"), "lastScaleTime",
                     time_format_s(a, reconcile_now_s(r)));
        hpa_history_scaled(history_of(s), s->hpa, s->current, s->desired, reconcile_now_s(r));
    }
    set_sizes(s);
    commit(s);
}

static void rescale(struct scaling *s)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *patch = json_new_object(a);

    json_set_i64(a, json_ensure_object(a, patch, "spec"), "replicas", s->desired);
    reconcile_patch(s->run, s->target_res, STR("scale"), meta_ns(s->target), meta_name(s->target),
                    patch);
    reconcile_then(s->run, on_scaled, s);
}

static void follow(struct scaling *s, int64_t wanted)
{
    struct arena *a = reconcile_arena(s->run);
    struct hpa_limits limits = {0};

    set_condition(s, "ScalingActive", true, "ValidMetricFound",
                  arena_printf(a,
                               "the HPA was able to successfully calculate a replica count from "
                               "%.*s",
                               STR_F(s->metric)));
    s->desired = hpa_history_limit(history_of(s), s->hpa, s->current, wanted,
                                   reconcile_now_s(s->run), &limits);
    set_condition(s, "AbleToScale", true, limits.able_reason, str_c(limits.able_message));
    set_condition(s, "ScalingLimited", limits.limited, limits.reason, str_c(limits.message));
    if (s->desired != s->current) {
        s->why = wanted > s->current ? arena_printf(a, "%.*s above target", STR_F(s->metric))
                                     : STR("All metrics below target");
        rescale(s);
        return;
    }
    set_sizes(s);
    commit(s);
}

static void judge(struct scaling *s)
{
    int64_t wanted;

    if (propose_all(s, &wanted)) {
        follow(s, wanted);
        return;
    }
    s->desired = json_i64_at(s->hpa, "status.desiredReplicas", 0);
    set_sizes(s);
    commit(s);
}

static void on_measured(void *ctx, const cJSON *items, const struct err *err)
{
    struct scaling *s = ctx;
    struct arena *a = reconcile_arena(s->run);

    s->measured = err ? NULL : json_copy(a, items);
    if (err)
        s->unmeasured = arena_str(a, err->message);
    /* The wait is long enough for its kind to be removed, or for another size. */
    s->target = NULL;
    if (find_target(s)) {
        read_current(s);
        judge(s);
    }
    reconcile_again_after(s->run, SYNC_MS);
    reconcile_release(s->run, NULL);
}

static bool wants_resources(const struct scaling *s)
{
    json_each(metric, json_path(s->hpa, "spec.metrics"))
    {
        if (!type_of(metric)->api)
            return true;
    }
    return false;
}

static void measure(struct scaling *s)
{
    const struct vapi_hooks *hooks = vapi_get_hooks(reconcile_api(s->run));
    struct vapi_measure what = {.ns = meta_ns(s->hpa)};

    if (!hooks->measure || !wants_resources(s)) {
        judge(s);
        return;
    }
    reconcile_hold(s->run);
    hooks->measure(hooks->ctx, &what, on_measured, s);
}

static void decide(struct scaling *s)
{
    int64_t least = json_i64_at(s->hpa, "spec.minReplicas", 1);
    int64_t most = json_i64_at(s->hpa, "spec.maxReplicas", INT32_MAX);

    set_condition(s, "AbleToScale", true, "SucceededGetScale",
                  STR("the HPA controller was able to get the target's current scale"));
    s->desired = s->current;
    if (s->current == 0 && least != 0) {
        set_condition(s, "ScalingActive", false, "ScalingDisabled",
                      STR("scaling is disabled since the replica count of the target is zero"));
        set_sizes(s);
        commit(s);
    } else if (s->current > most) {
        s->desired = most;
        s->why = STR("Current number of replicas above Spec.MaxReplicas");
        rescale(s);
    } else if (s->current < least) {
        s->desired = least;
        s->why = STR("Current number of replicas below Spec.MinReplicas");
        rescale(s);
    } else {
        measure(s);
    }
}

static void hpa_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    struct scaling *s = ARENA_NEW(a, struct scaling);
    struct str ns, name;

    s->run = r;
    s->res = reconcile_resource(r, "autoscaling", "horizontalpodautoscalers");
    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    s->hpa = reconcile_get(r, s->res, ns, name);
    if (!s->hpa)
        hpa_history_forget(controller_state(reconcile_controller(r)), reconcile_key(r));
    if (!s->hpa || object_is_terminating(s->hpa))
        return;
    s->as_read = json_copy(a, s->hpa);
    if (!find_target(s))
        return;
    read_current(s);
    history_of(s);
    decide(s);
}

/* --- life --- */

static void *start(struct controller *c)
{
    (void)c;
    return hpa_histories_new();
}

static void stop(struct controller *c, void *state)
{
    (void)c;
    hpa_histories_free(state);
}

/* --- events --- */

struct scaled {
    struct controller *controller;
    struct str name;
};

static bool on_autoscaler(void *ctx, const struct store_object *o)
{
    struct scaled *s = ctx;
    struct arena *a;

    if (!str_contains(o->bytes, s->name))
        return true;
    a = arena_new(0);
    if (str_eq(json_str_at(vapi_tree(a, o), "spec.scaleTargetRef.name"), s->name))
        controller_add_name(s->controller, o->ns, o->name);
    arena_free(a);
    return true;
}

static bool size_changed(const struct store_event *e, const struct scale_paths *paths)
{
    struct arena *a;
    bool changed;

    if (e->type != STORE_MODIFIED || !e->previous)
        return true;
    a = arena_new(0);
    changed = json_i64_at(vapi_tree(a, e->object), paths->spec_replicas, -1) !=
              json_i64_at(vapi_tree(a, e->previous), paths->spec_replicas, -1);
    arena_free(a);
    return changed;
}

/* Any object with a scale may be a target; without autoscalers this costs nothing. */
static void map_target(struct controller *c, const struct store_event *e)
{
    struct vapi *api = controller_api(c);
    const struct resource *hpas = registry_find_group_resource(
        vapi_registry(api), STR("autoscaling"), STR("horizontalpodautoscalers"));
    const struct resource *r = registry_by_storage(vapi_registry(api), e->object->resource);
    const struct subresource *scale = r ? resource_sub(r, STR("scale")) : NULL;
    struct scaled s = {.controller = c, .name = e->object->name};

    if (!scale || !scale->scale || !store_count(vapi_store(api), hpas->storage) ||
        !size_changed(e, scale->scale))
        return;
    store_scan_latest(vapi_store(api), hpas->storage, e->object->ns, on_autoscaler, &s);
}

/* Our own status writes do not requeue it. */
static void map_autoscaler(struct controller *c, const struct store_event *e)
{
    struct arena *a;
    bool changed = true;

    if (e->previous && e->type == STORE_MODIFIED) {
        a = arena_new(0);
        changed = !json_equal(json_get(vapi_tree(a, e->object), "spec"),
                              json_get(vapi_tree(a, e->previous), "spec"));
        arena_free(a);
    }
    if (changed)
        controller_map_self(c, e);
}

static const struct controller_source SOURCES[] = {
    {"autoscaling", "horizontalpodautoscalers", map_autoscaler},
    {"*", "*", map_target},
    {NULL, NULL, NULL},
};

const struct controller_def AUTOSCALER_CONTROLLER = {
    .name = "horizontal-pod-autoscaler",
    .sources = SOURCES,
    .reconcile = hpa_reconcile,
    .start = start,
    .stop = stop,
};
