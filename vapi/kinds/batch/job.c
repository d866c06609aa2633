/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs. Source: pkg/apis/batch/v1/defaults.go, pkg/apis/batch/validation,
 * pkg/registry/batch/job/strategy.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "job.h"

#include <sublet/clock.h>
#include <sublet/object.h>
#include <stdint.h>

static const struct default_rule JOB[] = {
    SET_NUMBER("parallelism", 1),
    SET_TEXT("completionMode", "NonIndexed"),
    SET_BOOL("suspend", false),
    SET_BOOL("manualSelector", false),
    SET_TEXT_Z("podFailurePolicy.rules[].onPodConditions[].status", "True"),
};

static void labels_from_template(struct arena *a, cJSON *job)
{
    const cJSON *labels = json_path(job, "spec.template.metadata.labels");

    if (labels && !json_count(json_path(job, "metadata.labels")))
        json_set(a, json_ensure_object(a, job, "metadata"), "labels", json_copy(a, labels));
}

/* A job without labels takes those of its template, the generated ones too: that waits until there
 * is a selector. Where the name is made up, upstream goes on with a copy, and only what was given
 * becomes the job's. */
static void job_defaults(struct arena *a, cJSON *job)
{
    cJSON *spec = json_get(job, "spec");

    if (!json_is_object(spec))
        return;
    if (!json_get(spec, "completions") && !json_get(spec, "parallelism"))
        json_set_i64(a, spec, "completions", 1);
    defaults_apply(a, spec, JOB, COUNT(JOB));
    if (!json_get(spec, "backoffLimit"))
        json_set_i64(a, spec, "backoffLimit",
                     json_get(spec, "backoffLimitPerIndex") ? INT32_MAX : 6);
    if (!json_get(spec, "podReplacementPolicy"))
        json_set_str(a, spec, "podReplacementPolicy",
                     json_get(spec, "podFailurePolicy") ? STR("Failed")
                                                        : STR("TerminatingOrFailed"));
    defaults_pod_template(a, json_get(spec, "template"));
    if (json_get(spec, "selector") ||
        (json_str_at(job, "metadata.generateName").n && !json_str_at(job, "metadata.name").n))
        labels_from_template(a, job);
}

static void set_missing(struct arena *a, cJSON *labels, const char *key, struct str value)
{
    if (!json_get(labels, key))
        json_set_str(a, labels, key, value);
}

static void job_prepare_create(struct arena *a, cJSON *job)
{
    defaults_set_status(a, job, "{}");
    if (!json_true(json_path(job, "spec.manualSelector"))) {
        cJSON *spec = json_get(job, "spec");
        struct str name = json_str_at(job, "metadata.name"), uid = json_str_at(job, "metadata.uid");
        cJSON *labels = json_ensure_path(a, spec, "template.metadata.labels");

        /* Pods are matched by the job's uid; a conflict with what was given is validation's. */
        set_missing(a, labels, "job-name", name);
        set_missing(a, labels, "batch.kubernetes.io/job-name", name);
        set_missing(a, labels, "controller-uid", uid);
        set_missing(a, labels, "batch.kubernetes.io/controller-uid", uid);
        set_missing(a, json_ensure_path(a, spec, "selector.matchLabels"),
                    "batch.kubernetes.io/controller-uid", uid);
    }
    labels_from_template(a, job);
}

static void check_generated(const struct check *c)
{
    struct field_errors *e = c->e;
    const cJSON *job = c->value;
    const cJSON *labels = json_path(job, "spec.template.metadata.labels");
    static const char *const keys[] = {"controller-uid", "job-name",
                                       "batch.kubernetes.io/controller-uid",
                                       "batch.kubernetes.io/job-name"}; /* a uid, a name */
    const cJSON *selector = kinds_given(job, "spec.selector");
    cJSON *generated = json_new_object(e->arena);
    AT(p, &KINDS_SPEC, "template.metadata.labels");
    struct str uid = json_str_at(job, "metadata.uid"), name = json_str_at(job, "metadata.name");
    struct selector s;
    struct err err;

    if (!selector || json_true(json_path(job, "spec.manualSelector")))
        return;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const cJSON *value = json_get(labels, keys[i]);
        struct str want = i % 2 ? name : uid;

        json_set_str(e->arena, generated, keys[i], want);
        if (!value)
            field_required_printf(e, FIELD_KEY(p, str_c(keys[i])), "must be '%.*s'", STR_F(want));
        else if (!str_eq(json_str(value), want))
            field_invalid_printf(e, FIELD_KEY(p, str_c(keys[i])), labels, "must be '%.*s'",
                                 STR_F(want));
    }
    err_init(&err, e->arena);
    if (selector_from_json(e->arena, selector, &s, &err) == 0 &&
        !selector_match(&s, labels_flatten(e->arena, generated)))
        field_invalid(e, FIELD(&KINDS_SPEC, "selector"), selector, "`selector` not auto-generated");
}

static void check_job_selector(const struct check *c)
{
    const cJSON *labels = json_path(c->object, "spec.template.metadata.labels");
    struct selector s;
    struct err err;

    err_init(&err, c->e->arena);
    if (c->value)
        validate_label_selector(c->e, c->at, c->value);
    else
        field_required(c->e, c->at, "");
    if (selector_from_json(c->e->arena, c->value, &s, &err) == 0 &&
        !selector_match(&s, labels_flatten(c->e->arena, labels)))
        field_invalid(c->e, FIELD(&KINDS_SPEC, "template.metadata.labels"), labels,
                      "`selector` does not match template `labels`");
}

/* Pods of an indexed job are called after it. */
static void check_pod_names(const struct check *c)
{
    struct field_errors *e = c->e;
    const cJSON *job = c->value;
    const cJSON *spec = json_get(job, "spec"), *name = json_path(job, "metadata.name");
    int64_t completions = json_i64_at(spec, "completions", 0);
    struct str last;

    if (!kinds_job_is_indexed(spec) || completions <= 0)
        return;
    last = arena_printf(e->arena, "%.*s-%lld", STR_F(json_str(name)), (long long)completions - 1);
    if (name_check_dns1123_label(last))
        field_invalid_printf(e, FIELD(FIELD(NULL, "metadata"), "name"), name,
                             "will not able to create pod with invalid DNS label: %.*s",
                             STR_F(last));
}

static void take_resources(struct arena *a, cJSON *to, const cJSON *from, const char *list)
{
    const cJSON *theirs = json_first(json_get(from, list));

    if (json_count(json_get(to, list)) != json_count(json_get(from, list)))
        return;
    json_each(container, json_get(to, list))
    {
        if (json_equal(json_get(container, "name"), json_get(theirs, "name")))
            defaults_keep_old(a, container, theirs, "resources");
        theirs = theirs->next;
    }
}

/* Where and with what the pods of a job that waits will run may still change. */
static void check_template_change(const struct check *c)
{
    struct field_errors *e = c->e;
    const cJSON *job = c->value, *old = c->old;
    static const char *const movable[] = {"nodeSelector", "tolerations", "schedulingGates"};
    struct arena *a = e->arena;
    const struct field_path *p = FIELD(&KINDS_SPEC, "template");
    const cJSON *template_ = json_path(job, "spec.template"), *spec = json_get(template_, "spec");
    cJSON *before = json_copy(a, json_path(old, "spec.template")), *pod = json_get(before, "spec");
    bool suspended = json_true(json_path(old, "spec.suspend"));
    bool waits =
        suspended && !json_i64_at(old, "status.active", 0) &&
        (!json_path(old, "status.startTime") || kinds_job_condition_true(old, "Suspended"));

    if (waits) {
        cJSON *affinity = json_ensure_object(a, pod, "affinity");

        defaults_keep_old(a, affinity, json_get(spec, "affinity"), "nodeAffinity");
        if (!affinity->child && !json_get(spec, "affinity"))
            json_remove(pod, "affinity");
        for (size_t i = 0; i < COUNT(movable); i++)
            defaults_keep_old(a, pod, spec, movable[i]);
        defaults_keep_old(a, before, template_, "metadata");
        take_resources(a, pod, spec, "containers");
        take_resources(a, pod, spec, "initContainers");
        if (!json_equal(pod, spec))
            field_invalid(e, FIELD(&KINDS_SPEC, "template.spec"), spec, IMMUTABLE);
        return;
    }
    check_immutable(e, p, template_, before);
}

static void check_completions(const struct check *c)
{
    const cJSON *spec = json_get(c->object, "spec");

    if (!kinds_job_is_indexed(spec))
        check_immutable(c->e, c->at, c->value, c->old);
    else if (c->value && !kinds_same_value(c->value, c->old) &&
             !kinds_same_value(c->value, json_get(spec, "parallelism")))
        field_invalid(c->e, c->at, c->value,
                      "can only be modified in tandem with spec.parallelism");
}

static const struct rule JOB_RULES[] = {
    CALL(NULL, check_generated),
    CHECK_ALWAYS("spec", validate_job_spec),
    CALL("spec.selector", check_job_selector),
    CALL(NULL, check_pod_names),
    ON_UPDATE(CALL("spec.completions", check_completions), FIXED("spec.selector"),
              CALL(NULL, check_template_change),
              ALL_FIXED("spec", "completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                        "managedBy", "successPolicy")),
};

/* ---- cells ---- */

static bool job_is(const cJSON *job, const char *type)
{
    json_each(c, json_path(job, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), type))
            return str_eqc(json_str(json_get(c, "status")), "True");
    }
    return false;
}

CELL(cell_status)
{
    static const char *const types[] = {"Complete",  "Failed",        "Terminating",
                                        "Suspended", "FailureTarget", "SuccessCriteriaMet"};
    bool deleted = object_is_terminating(r->object);

    for (size_t i = 0; i < COUNT(types); i++) {
        if (i == 2 ? deleted : job_is(r->object, types[i])) {
            cell_text(r, str_c(types[i]));
            return;
        }
    }
    cell_text(r, STR("Running"));
}

CELL(cell_completions)
{
    long long done = json_i64_at(r->object, "status.succeeded", 0);
    long long parallel = json_i64_at(r->object, "spec.parallelism", 0);
    int64_t wanted;

    if (json_i64(json_path(r->object, "spec.completions"), &wanted))
        cell_printf(r, "%lld/%lld", done, (long long)wanted);
    else if (parallel > 1)
        cell_printf(r, "%lld/1 of %lld", done, parallel);
    else
        cell_printf(r, "%lld/1", done);
}

CELL(cell_duration)
{
    int64_t start, end = r->now * 1000000;

    if (!time_parse(json_str_at(r->object, "status.startTime"), &start)) {
        cell_text(r, STR(""));
        return;
    }
    time_parse(json_str_at(r->object, "status.completionTime"), &end);
    cell_text(r, duration_human(r->a, (end - start) / 1000000));
}

/* ---- the kind ---- */

const struct kind KIND_JOB = {
    RESOURCE("batch", "v1", "Job", "jobs", "job"),
    .resource.categories = NAMES("all"),
    .resource.flags =
        RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_ORPHAN_DEFAULT | RES_NAME_ON_UPDATE,
    COLUMNS({"Status", "string", .cell = cell_status},
            {"Completions", "string", .cell = cell_completions},
            {"Duration", "string", .cell = cell_duration}, {"Age", "string", .cell = show_age},
            TEMPLATE_COLUMNS("spec.template"),
            {"Selector", "string", .priority = 1, .cell = show_selector, .path = "spec.selector",
             .otherwise = "<none>"}),
    FIELDS({"status.successful", "status.succeeded", "0"}),
    SUBRESOURCES(STATUS_OF("Job")),
    .defaults = job_defaults,
    .prepare_create = job_prepare_create,
    .rules = RULES(JOB_RULES),
    .validate_status = validate_job_status,
    .warnings = warn_workload,
};
