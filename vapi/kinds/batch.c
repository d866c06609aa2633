/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and CronJobs. Source: pkg/apis/batch/v1/defaults.go, pkg/registry/batch/job/strategy.go. */
#include "validate.h"

#include <stdint.h>

/* ---- Job ---- */

static const struct default_rule JOB[] = {
    SET_NUMBER("parallelism", 1),
    SET_TEXT("completionMode", "NonIndexed"),
    SET_BOOL("suspend", false),
    SET_BOOL("manualSelector", false),
    SET_TEXT_Z("podFailurePolicy.rules[].onPodConditions[].status", "True"),
};

static void job_spec_defaults(struct arena *a, cJSON *spec)
{
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
}

static void labels_from_template(struct arena *a, cJSON *job)
{
    const cJSON *labels = json_path(job, "spec.template.metadata.labels");

    if (labels && !json_count(json_path(job, "metadata.labels")))
        json_set(a, json_ensure_object(a, job, "metadata"), "labels", json_copy(a, labels));
}

static bool is_nameless(const cJSON *job)
{
    return json_str_at(job, "metadata.generateName").n && !json_str_at(job, "metadata.name").n;
}

/* A job without labels takes those of its template, the generated ones too: that waits until there
 * is a selector. Where the name is made up, upstream goes on with a copy, and only what was given
 * becomes the job's. */
static void job_defaults(struct arena *a, cJSON *job)
{
    cJSON *spec = json_get(job, "spec");

    if (!json_is_object(spec))
        return;
    job_spec_defaults(a, spec);
    if (json_get(spec, "selector") || is_nameless(job))
        labels_from_template(a, job);
}

static void set_missing(struct arena *a, cJSON *labels, const char *key, struct str value)
{
    if (!json_get(labels, key))
        json_set_str(a, labels, key, value);
}

/* Pods are matched by the job's uid; a conflict with what was given is validation's. */
static void generate_selector(struct arena *a, cJSON *job)
{
    cJSON *spec = json_get(job, "spec");
    struct str name = json_str_at(job, "metadata.name"), uid = json_str_at(job, "metadata.uid");
    cJSON *labels = json_ensure_path(a, spec, "template.metadata.labels");

    set_missing(a, labels, "job-name", name);
    set_missing(a, labels, "batch.kubernetes.io/job-name", name);
    set_missing(a, labels, "controller-uid", uid);
    set_missing(a, labels, "batch.kubernetes.io/controller-uid", uid);
    set_missing(a, json_ensure_path(a, spec, "selector.matchLabels"),
                "batch.kubernetes.io/controller-uid", uid);
}

static void job_prepare_create(struct arena *a, cJSON *job)
{
    set_status(a, job, "{}");
    if (!json_true(json_path(job, "spec.manualSelector")))
        generate_selector(a, job);
    labels_from_template(a, job);
}

const struct kind_ops JOB_OPS = {
    .defaults = job_defaults,
    .prepare_create = job_prepare_create,
    .validate = validate_job,
    .validate_status = validate_job_status,
    .warnings = warn_workload,
    .cells = cells_job,
};

/* ---- CronJob ---- */

static const struct default_rule CRON_JOB[] = {
    SET_TEXT_Z("spec.concurrencyPolicy", "Allow"),
    SET_BOOL("spec.suspend", false),
    SET_NUMBER("spec.successfulJobsHistoryLimit", 3),
    SET_NUMBER("spec.failedJobsHistoryLimit", 1),
    SET_TEXT_Z("spec.jobTemplate.spec.podFailurePolicy.rules[].onPodConditions[].status", "True"),
};

/* The job of a CronJob gets its defaults when it is made. */
static void cron_job_defaults(struct arena *a, cJSON *object)
{
    defaults_apply(a, object, CRON_JOB, COUNT(CRON_JOB));
    defaults_pod_template(a, json_path(object, "spec.jobTemplate.spec.template"));
}

static void cron_job_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{}");
}

const struct kind_ops CRON_JOB_OPS = {
    .defaults = cron_job_defaults,
    .prepare_create = cron_job_prepare_create,
    .validate = validate_cron_job,
    .warnings = warn_cron_job,
    .cells = cells_cron_job,
};
