/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of workloads and what scales and guards them. Source:
 * pkg/printers/internalversion/printers.go. */
#include "cells.h"

#include <sublet/clock.h>
#include <sublet/object.h>

#include <ctype.h>

static void cell_template(const struct row *r, const char *containers)
{
    cell_containers(r, json_path(r->object, containers));
}

static void cell_ready(const struct row *r)
{
    cell_text(r, arena_printf(r->a, "%lld/%lld",
                              (long long)json_i64_at(r->object, "status.readyReplicas", 0),
                              (long long)json_i64_at(r->object, "spec.replicas", 0)));
}

static void cell_replicas(const struct row *r)
{
    cell_number_at(r, "spec.replicas");
    cell_number_at(r, "status.replicas");
    cell_number_at(r, "status.readyReplicas");
    cell_age(r);
    cell_template(r, "spec.template.spec.containers");
}

ROW_CELLS(cells_replicas)
{
    struct row r = {a, object, now, cells};

    cell_replicas(&r);
    cell_selector(&r, json_path(object, "spec.selector"), "<none>");
}

ROW_CELLS(cells_controller)
{
    struct row r = {a, object, now, cells};

    cell_replicas(&r);
    cell_map(&r, json_path(object, "spec.selector"));
}

ROW_CELLS(cells_deployment)
{
    struct row r = {a, object, now, cells};

    cell_ready(&r);
    cell_number_at(&r, "status.updatedReplicas");
    cell_number_at(&r, "status.availableReplicas");
    cell_age(&r);
    cell_template(&r, "spec.template.spec.containers");
    cell_selector(&r, json_path(object, "spec.selector"), "");
}

ROW_CELLS(cells_stateful_set)
{
    struct row r = {a, object, now, cells};

    cell_ready(&r);
    cell_age(&r);
    cell_template(&r, "spec.template.spec.containers");
}

ROW_CELLS(cells_daemon_set)
{
    static const char *const numbers[] = {
        "status.desiredNumberScheduled", "status.currentNumberScheduled", "status.numberReady",
        "status.updatedNumberScheduled", "status.numberAvailable",
    };
    struct row r = {a, object, now, cells};

    for (size_t i = 0; i < COUNT(numbers); i++)
        cell_number_at(&r, numbers[i]);
    cell_map(&r, json_path(object, "spec.template.spec.nodeSelector"));
    cell_age(&r);
    cell_template(&r, "spec.template.spec.containers");
    cell_selector(&r, json_path(object, "spec.selector"), "<none>");
}

/* "deployment.apps/name" of the owner that controls. */
static struct str controller_text(struct arena *a, const cJSON *object)
{
    json_each(owner, json_path(object, "metadata.ownerReferences"))
    {
        struct str version = json_str(json_get(owner, "apiVersion"));
        struct str kind = json_str(json_get(owner, "kind"));
        size_t slash = str_find(version, '/');
        bool grouped = slash < version.n;
        char *text;

        if (!json_true(json_get(owner, "controller")))
            continue;
        kind = arena_printf(a, "%.*s%s%.*s", STR_F(kind), grouped ? "." : "",
                            STR_F(grouped ? str_sub(version, 0, slash) : STR("")));
        text = arena_cstr(a, kind);
        for (size_t i = 0; i < kind.n; i++)
            text[i] = (char)tolower((unsigned char)text[i]);
        return arena_printf(a, "%s/%.*s", text, STR_F(json_str(json_get(owner, "name"))));
    }
    return STR("<none>");
}

ROW_CELLS(cells_revision)
{
    struct row r = {a, object, now, cells};

    cell_text(&r, controller_text(a, object));
    cell_number_at(&r, "revision");
    cell_age(&r);
}

/* ---- Job, CronJob ---- */

static bool job_is(const cJSON *job, const char *type)
{
    json_each(c, json_path(job, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), type))
            return str_eqc(json_str(json_get(c, "status")), "True");
    }
    return false;
}

static struct str job_status(const cJSON *job)
{
    if (job_is(job, "Complete"))
        return STR("Complete");
    if (job_is(job, "Failed"))
        return STR("Failed");
    if (object_is_terminating(job))
        return STR("Terminating");
    if (job_is(job, "Suspended"))
        return STR("Suspended");
    if (job_is(job, "FailureTarget"))
        return STR("FailureTarget");
    return job_is(job, "SuccessCriteriaMet") ? STR("SuccessCriteriaMet") : STR("Running");
}

static void cell_completions(const struct row *r)
{
    long long done = json_i64_at(r->object, "status.succeeded", 0);
    long long parallel = json_i64_at(r->object, "spec.parallelism", 0);
    int64_t wanted;

    if (json_i64(json_path(r->object, "spec.completions"), &wanted))
        cell_text(r, arena_printf(r->a, "%lld/%lld", done, (long long)wanted));
    else if (parallel > 1)
        cell_text(r, arena_printf(r->a, "%lld/1 of %lld", done, parallel));
    else
        cell_text(r, arena_printf(r->a, "%lld/1", done));
}

static void cell_duration(const struct row *r)
{
    int64_t start, end = r->now * 1000000;

    if (!time_parse(json_str_at(r->object, "status.startTime"), &start)) {
        cell_text(r, STR(""));
        return;
    }
    time_parse(json_str_at(r->object, "status.completionTime"), &end);
    cell_text(r, duration_human(r->a, (end - start) / 1000000));
}

ROW_CELLS(cells_job)
{
    struct row r = {a, object, now, cells};

    cell_text(&r, job_status(object));
    cell_completions(&r);
    cell_duration(&r);
    cell_age(&r);
    cell_template(&r, "spec.template.spec.containers");
    cell_selector(&r, json_path(object, "spec.selector"), "<none>");
}

ROW_CELLS(cells_cron_job)
{
    struct row r = {a, object, now, cells};
    const cJSON *suspend = json_path(object, "spec.suspend");
    struct str last = json_str_at(object, "status.lastScheduleTime");

    cell_text_at(&r, "spec.schedule");
    cell_text_or(&r, "spec.timeZone", "<none>");
    cell_text(&r, !suspend ? STR("<unset>") : json_true(suspend) ? STR("True") : STR("False"));
    cell_count(&r, "status.active");
    cell_text(&r, last.n ? since(&r, last) : STR("<none>"));
    cell_age(&r);
    cell_template(&r, "spec.jobTemplate.spec.template.spec.containers");
    cell_selector(&r, json_path(object, "spec.jobTemplate.spec.selector"), "<none>");
}

/* ---- HorizontalPodAutoscaler ---- */

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

/* Once its status is there, an amount that is not prints as Go's nil. */
static struct str amount(const cJSON *current, const char *key, bool required)
{
    struct str value = json_str(json_get(current, key));

    if (value.n)
        return value;
    return current && !required ? STR("<nil>") : STR("<unknown>");
}

static void print_metric(struct arena *a, struct buf *b, const struct metric_type *m,
                         const cJSON *spec, const cJSON *status)
{
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

static void print_one(struct arena *a, struct buf *b, const cJSON *spec, const cJSON *status)
{
    struct str type = json_str(json_get(spec, "type"));

    for (size_t i = 0; i < COUNT(METRICS); i++) {
        if (str_eqc(type, METRICS[i].type)) {
            print_metric(a, b, &METRICS[i], spec, status);
            return;
        }
    }
    buf_addc(b, "<unknown type>");
}

static void cell_metrics(const struct row *r, const cJSON *object)
{
    const cJSON *specs = json_path(object, "spec.metrics");
    const cJSON *statuses = json_path(object, "status.currentMetrics");
    struct buf b = BUF_INIT(0);
    size_t n = json_count(specs);

    for (size_t i = 0; i < n && i < 2; i++) {
        buf_addc(&b, i ? ", " : "");
        print_one(r->a, &b, json_at(specs, i), json_at(statuses, i));
    }
    if (n > 2)
        buf_printf(&b, " + %zu more...", n - 2);
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

/* A row of v1 is printed from what it means in v2. */
static const cJSON *as_v2(struct arena *a, const cJSON *object)
{
    cJSON *copy;

    if (!str_eqc(json_str(json_get(object, "apiVersion")), "autoscaling/v1"))
        return object;
    copy = json_copy(a, object);
    autoscaler_to_storage(a, copy);
    return copy;
}

ROW_CELLS(cells_autoscaler)
{
    struct row r = {a, object, now, cells};
    const cJSON *ref = json_path(object, "spec.scaleTargetRef");
    int64_t least;

    cell_text(&r, arena_printf(a, "%.*s/%.*s", STR_F(json_str(json_get(ref, "kind"))),
                               STR_F(json_str(json_get(ref, "name")))));
    cell_metrics(&r, as_v2(a, object));
    if (json_i64(json_path(object, "spec.minReplicas"), &least))
        cell_text(&r, arena_printf(a, "%lld", (long long)least));
    else
        cell_text(&r, STR("<unset>"));
    cell_number_at(&r, "spec.maxReplicas");
    cell_number_at(&r, "status.currentReplicas");
    cell_age(&r);
}

/* ---- PodDisruptionBudget ---- */

static void cell_int_or_string(const struct row *r, const char *path)
{
    const cJSON *value = json_path(r->object, path);
    int64_t number;

    if (json_i64(value, &number))
        cell_text(r, arena_printf(r->a, "%lld", (long long)number));
    else
        cell_text(r, value ? json_str(value) : STR("N/A"));
}

ROW_CELLS(cells_budget)
{
    struct row r = {a, object, now, cells};

    cell_int_or_string(&r, "spec.minAvailable");
    cell_int_or_string(&r, "spec.maxUnavailable");
    cell_number_at(&r, "status.disruptionsAllowed");
    cell_age(&r);
}
