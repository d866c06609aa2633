/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas from what pods use. Pods that are not ready or not measured must never pull a target up,
 * nor down: a change that they would cause is left out. Source:
 * pkg/controller/podautoscaler/replica_calculator.go and metrics/ of Kubernetes 1.36. */
#include "autoscaler.h"

#include <math.h>

#include <sublet/clock.h>
#include <sublet/json_build.h>
#include <sublet/object.h>
#include <sublet/quantity.h>

#define TOLERANCE         0.1
#define CPU_INITIAL_S     300
#define READINESS_DELAY_S 30
#define NO_PODS           "no pods returned by selector while calculating replica count"
#define NO_METRICS        "did not receive metrics for targeted pods (pods might be unready)"
#define NOTHING_MEASURED  "no metrics returned from resource metrics API"
#define NO_KNOWN_PODS     "no metrics returned matched known pods"
#define NANO_PER_MILLI    1000000

enum sample_state { SAMPLE_READY, SAMPLE_UNREADY, SAMPLE_MISSING, SAMPLE_IGNORED };
struct sample {
    const cJSON *pod;
    enum sample_state state;
    bool counts;            /* in the sum */
    int64_t value, request; /* milli */
    int64_t at_s, window_s;
};
struct calculation {
    struct arena *arena;
    const struct hpa_usage *u;
    const cJSON *source; /* metric.resource, metric.containerResource */
    struct str resource, container;
    int64_t target; /* percent, or milli */
    bool utilization;
    struct sample *samples;
    size_t n;
    struct str why;
};

/* Quantities are a tenant's, and nearly as large as an int64_t holds. */
static int64_t clipped(__int128 value)
{
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

static const cJSON *source_of(const cJSON *metric)
{
    const cJSON *resource = json_get(metric, "resource");

    return resource ? resource : json_get(metric, "containerResource");
}

struct str hpa_metric_name(const cJSON *metric)
{
    return json_str(json_get(source_of(metric), "name"));
}

/* --- samples --- */

static bool milli_of(const cJSON *node, int64_t *ret)
{
    struct quantity q;

    if (!quantity_parse(json_str(node), &q))
        return false;
    *ret = quantity_milli(q);
    return true;
}

static const cJSON *measured(const struct calculation *c, struct str name)
{
    json_each(one, c->u->metrics)
    {
        if (str_eq(json_str_at(one, "metadata.name"), name))
            return one;
    }
    return NULL;
}

static int64_t seconds_of(const cJSON *node)
{
    int64_t us;

    return time_parse(json_str(node), &us) ? us / 1000000 : 0;
}

/* All containers, or the one the metric names, are measured. */
static bool read_usage(const struct calculation *c, struct sample *s)
{
    const cJSON *metrics = measured(c, meta_name(s->pod));
    bool found = false;
    int64_t ns = 0;

    json_each(one, json_get(metrics, "containers"))
    {
        int64_t milli;

        if (c->container.n && !str_eq(json_str(json_get(one, "name")), c->container))
            continue;
        if (!milli_of(json_get_str(json_get(one, "usage"), c->resource), &milli))
            return false;
        found = true;
        s->value = clipped((__int128)s->value + milli);
    }
    s->at_s = seconds_of(json_get(metrics, "timestamp"));
    if (duration_parse(json_str(json_get(metrics, "window")), &ns))
        s->window_s = ns / 1000000000;
    return found;
}

/* A start is work of its own, which says nothing of the load. */
static bool is_starting(const struct calculation *c, const struct sample *s)
{
    const cJSON *ready = condition_of(s->pod, "Ready");
    const cJSON *started = json_path(s->pod, "status.startTime");
    bool is_false = str_eqc(json_str(json_get(ready, "status")), "False");
    int64_t since, start = seconds_of(started);

    if (!ready || !started)
        return true;
    since = seconds_of(json_get(ready, "lastTransitionTime"));
    if (start + CPU_INITIAL_S > c->u->now_s)
        return is_false || s->at_s < since + s->window_s;
    return is_false && start + READINESS_DELAY_S > since;
}

static enum sample_state state_of(const struct calculation *c, struct sample *s)
{
    struct str phase = json_str_at(s->pod, "status.phase");

    if (object_is_terminating(s->pod) || str_eqc(phase, "Failed"))
        return SAMPLE_IGNORED;
    if (!phase.n || str_eqc(phase, "Pending"))
        return SAMPLE_UNREADY;
    if (!read_usage(c, s))
        return SAMPLE_MISSING;
    return str_eqc(c->resource, "cpu") && is_starting(c, s) ? SAMPLE_UNREADY : SAMPLE_READY;
}

/* --- requests --- */

static bool add_request(struct calculation *c, struct sample *s, const cJSON *container)
{
    int64_t milli;

    if (!milli_of(json_get_str(json_path(container, "resources.requests"), c->resource), &milli)) {
        c->why = arena_printf(c->arena, "missing request for %.*s in container %.*s of Pod %.*s",
                              STR_F(c->resource), STR_F(json_str(json_get(container, "name"))),
                              STR_F(meta_name(s->pod)));
        return false;
    }
    s->request = clipped((__int128)s->request + milli);
    return true;
}

static bool read_requests(struct calculation *c, struct sample *s)
{
    const cJSON *whole = json_path(s->pod, "spec.resources.requests");
    bool found = false;

    if (!c->container.n && json_count(whole)) {
        if (milli_of(json_get_str(whole, c->resource), &s->request))
            return true;
        c->why = arena_printf(c->arena, "missing pod-level request for %.*s in Pod %.*s",
                              STR_F(c->resource), STR_F(meta_name(s->pod)));
        return false;
    }
    for (int list = 0; list < 2; list++) {
        json_each(one, json_path(s->pod, list ? "spec.initContainers" : "spec.containers"))
        {
            if ((list && !container_is_sidecar(one)) ||
                (c->container.n && !str_eq(json_str(json_get(one, "name")), c->container)))
                continue;
            found = true;
            if (!add_request(c, s, one))
                return false;
        }
    }
    if (!found && c->container.n)
        c->why = arena_printf(c->arena, "container %.*s not found in Pod %.*s", STR_F(c->container),
                              STR_F(meta_name(s->pod)));
    return found || !c->container.n;
}

/* --- the ratio --- */

static size_t count(const struct calculation *c, enum sample_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += c->samples[i].state == state;
    return n;
}

struct ratio {
    double value;
    int64_t percent, average; /* average in milli */
    size_t n;
};

/* False: requests sum up to nothing. */
static bool ratio_of(const struct calculation *c, struct ratio *ret)
{
    __int128 usage = 0, requests = 0;

    *ret = (struct ratio){0};
    for (size_t i = 0; i < c->n; i++) {
        if (!c->samples[i].counts)
            continue;
        usage += c->samples[i].value;
        requests += c->samples[i].request;
        ret->n++;
    }
    if (!ret->n || (c->utilization && requests <= 0) || !c->target)
        return false;
    ret->average = clipped(usage / (__int128)ret->n);
    ret->percent = c->utilization ? clipped(usage * 100 / requests) : 0;
    ret->value = (double)(c->utilization ? ret->percent : ret->average) / (double)c->target;
    return true;
}

static double tolerance(const cJSON *hpa, const char *path)
{
    struct quantity q;

    return quantity_parse(json_str_at(hpa, path), &q) ? (double)q.nano / 1e9 : TOLERANCE;
}

static bool is_tolerated(const struct calculation *c, double ratio)
{
    return ratio >= 1.0 - tolerance(c->u->hpa, "spec.behavior.scaleDown.tolerance") &&
           ratio <= 1.0 + tolerance(c->u->hpa, "spec.behavior.scaleUp.tolerance");
}

static int64_t replicas_for(double ratio, size_t pods)
{
    double replicas = ceil(ratio * (double)pods);

    if (!(replicas > 0))
        return 0;
    return replicas > (double)INT32_MAX ? INT32_MAX : (int64_t)replicas;
}

/* Pods without a measurement count against the change that the others suggest. */
static void assume(struct calculation *c, double ratio)
{
    for (size_t i = 0; i < c->n; i++) {
        struct sample *s = &c->samples[i];
        bool missing = s->state == SAMPLE_MISSING && (ratio < 1.0 || ratio > 1.0);

        if (!missing && !(s->state == SAMPLE_UNREADY && ratio > 1.0))
            continue;
        s->counts = true;
        s->value = 0;
        if (ratio < 1.0)
            s->value =
                c->utilization
                    ? clipped((__int128)s->request * (c->target > 100 ? c->target : 100) / 100)
                    : c->target;
    }
}

static bool propose(struct calculation *c, struct ratio *seen, int64_t *ret)
{
    struct ratio all;

    if (!ratio_of(c, seen)) {
        c->why = STR(NO_KNOWN_PODS);
        return false;
    }
    *ret = c->u->current;
    if (!count(c, SAMPLE_MISSING) && !(count(c, SAMPLE_UNREADY) && seen->value > 1.0)) {
        if (!is_tolerated(c, seen->value))
            *ret = replicas_for(seen->value, count(c, SAMPLE_READY));
        return true;
    }
    assume(c, seen->value);
    if (!ratio_of(c, &all) || is_tolerated(c, all.value) ||
        (seen->value < 1.0) != (all.value < 1.0) || (seen->value > 1.0) != (all.value > 1.0))
        return true;
    *ret = replicas_for(all.value, all.n);
    if (all.value < 1.0 ? *ret > c->u->current : *ret < c->u->current)
        *ret = c->u->current;
    return true;
}

/* --- the metric --- */

static bool read_samples(struct calculation *c)
{
    size_t measured_pods = 0;

    c->samples = arena_alloc(c->arena, (json_count(c->u->pods) + 1) * sizeof(*c->samples));
    json_each(pod, c->u->pods)
    {
        struct sample *s = &c->samples[c->n++];

        *s = (struct sample){.pod = pod};
        s->state = state_of(c, s);
        s->counts = s->state == SAMPLE_READY;
        measured_pods += s->counts;
    }
    c->why = !json_count(c->u->metrics) ? arena_printf(c->arena,
                                                       "unable to get metrics for resource %.*s: "
                                                       "unable to fetch metrics from resource "
                                                       "metrics API: " NOTHING_MEASURED,
                                                       STR_F(c->resource))
             : !c->n                    ? STR(NO_PODS)
             : !measured_pods           ? STR(NO_METRICS)
                                        : STR("");
    for (size_t i = 0; c->utilization && !c->why.n && i < c->n; i++)
        if (!read_requests(c, &c->samples[i]))
            return false;
    return !c->why.n;
}

static cJSON *status_of(const struct calculation *c, const struct ratio *seen)
{
    struct arena *a = c->arena;
    bool memory = str_eqc(c->resource, "memory");
    struct quantity average = {(__int128)seen->average * NANO_PER_MILLI,
                               memory ? QUANTITY_BINARY_SI : QUANTITY_DECIMAL_SI};
    cJSON *current = json_object(a, JSON("averageValue", quantity_format(a, average)));
    cJSON *source = json_object(a, JSON("name", c->resource));

    if (c->utilization)
        json_set_i64(a, current, "averageUtilization", seen->percent);
    json_set(a, source, "current", current);
    if (!c->container.n)
        return json_object(a, JSON("type", "Resource"), JSON("resource", source));
    json_set_str(a, source, "container", c->container);
    return json_object(a, JSON("type", "ContainerResource"), JSON("containerResource", source));
}

static bool read_target(struct calculation *c)
{
    const cJSON *average = json_path(c->source, "target.averageValue");

    c->utilization = !average;
    if (average)
        return milli_of(average, &c->target);
    c->target = json_i64_at(c->source, "target.averageUtilization", 0);
    return c->target > 0;
}

bool hpa_propose(struct arena *a, const struct hpa_usage *u, struct hpa_proposal *ret,
                 struct str *ret_why)
{
    struct calculation c = {.arena = a, .u = u, .source = source_of(u->metric)};
    struct ratio seen = {0};

    c.resource = json_str(json_get(c.source, "name"));
    c.container = json_str(json_get(c.source, "container"));
    if (!read_target(&c)) {
        *ret_why = STR("invalid resource metric source: neither an average utilization target nor "
                       "an average value (usage) target was set");
        return false;
    }
    if (!read_samples(&c) || !propose(&c, &seen, &ret->replicas)) {
        *ret_why = arena_printf(a, "failed to get %.*s %s: %.*s", STR_F(c.resource),
                                c.utilization ? "utilization" : "usage", STR_F(c.why));
        return false;
    }
    ret->name = arena_printf(a, "%.*s%s resource%s", STR_F(c.resource),
                             c.utilization && c.container.n ? " container" : "",
                             c.utilization ? " utilization (percentage of request)" : "");
    ret->status = status_of(&c, &seen);
    return true;
}
