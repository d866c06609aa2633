/* SPDX-License-Identifier: Apache-2.0 */
/* A job's status. Every pod is counted once: its uid is written to uncountedTerminatedPods, then
 * its finalizer is removed, then the uid becomes part of the count. Must never count a pod that
 * still has its finalizer, nor remove the finalizer of one that is not in the status. A completed
 * index needs no uid: it cannot complete twice. */
#include "job.h"

/* --- pods --- */

bool job_pod_tracked(const cJSON *pod)
{
    return finalizer_has(pod, JOB_FINALIZER);
}

bool job_pod_failed(const struct job_run *j, const cJSON *pod)
{
    struct str phase = json_str_at(pod, "status.phase");

    if (str_eqc(phase, "Failed"))
        return true;
    return !j->only_failed && object_is_terminating(pod) && !str_eqc(phase, "Succeeded");
}

static bool succeeded(const cJSON *pod)
{
    return str_eqc(json_str_at(pod, "status.phase"), "Succeeded");
}

int64_t job_pod_index(const struct job_run *j, const cJSON *pod)
{
    const cJSON *annotations = json_path(pod, "metadata.annotations");
    uint64_t index;

    if (!str_to_u64(json_str(json_get(annotations, JOB_INDEX)), &index) ||
        index >= (uint64_t)j->completions)
        return -1;
    return (int64_t)index;
}

static int64_t containers_ended_s(const cJSON *pod)
{
    int64_t latest = 0;

    json_each(c, json_path(pod, "status.containerStatuses"))
    {
        int64_t at = object_time_s(c, "state.terminated.finishedAt");

        if (!at)
            return 0;
        latest = at > latest ? at : latest;
    }
    return latest;
}

int64_t job_pod_ended_s(const cJSON *pod)
{
    const cJSON *ready = condition_of(pod, "Ready");
    int64_t at = containers_ended_s(pod);

    if (!at && str_eqc(json_str_at(ready, "status"), "False"))
        at = object_time_s(ready, "lastTransitionTime");
    if (!at && object_is_terminating(pod))
        at = object_time_s(pod, "metadata.deletionTimestamp") -
             json_i64_at(pod, "metadata.deletionGracePeriodSeconds", 0);
    return at ? at : meta_created_s(pod);
}

/* --- counting --- */

static cJSON *uncounted(struct job_run *j, const char *which)
{
    struct arena *a = reconcile_arena(j->run);
    cJSON *all = json_ensure_object(a, j->status, "uncountedTerminatedPods");
    cJSON *list = json_get(all, which);

    return json_is_array(list) ? list : json_set(a, all, which, json_new_array(a));
}

static bool uid_is_tracked(const struct job_run *j, struct str uid)
{
    for (size_t i = 0; i < j->n_pods; i++) {
        if (str_eq(meta_uid(j->pods[i]), uid))
            return job_pod_tracked(j->pods[i]);
    }
    return false;
}

/* Moves pods that lost their finalizer, or were deleted, into the counts. */
static void count_released(struct job_run *j, const char *which)
{
    struct arena *a = reconcile_arena(j->run);
    cJSON *list = uncounted(j, which), *left = json_new_array(a);
    int64_t n = json_i64_at(j->status, which, 0);

    json_each(uid, list)
    {
        if (uid_is_tracked(j, json_str(uid)))
            json_append(left, json_new_string(a, json_str(uid)));
        else
            n++;
    }
    json_set(a, json_get(j->status, "uncountedTerminatedPods"), which, left);
    controller_status_set(a, j->status, which, n, false);
}

struct tally {
    cJSON *succeeded, *failed; /* uncounted */
};

static bool is_held(const struct job_run *j, const cJSON *pod)
{
    for (size_t i = 0; i < j->n_held; i++) {
        if (j->held[i] == pod)
            return true;
    }
    return false;
}

/* A pod with its finalizer that has ended, or must end because the job has. True: its finalizer may
 * be removed once status is written. */
static bool tally(struct job_run *j, struct tally *t, const cJSON *pod)
{
    struct arena *a = reconcile_arena(j->run);
    int64_t index = j->indexed ? job_pod_index(j, pod) : 0;
    struct str uid = meta_uid(pod);

    if (json_list_has(t->succeeded, uid) || json_list_has(t->failed, uid))
        return true;
    if (succeeded(pod)) {
        if (!j->indexed)
            json_append(t->succeeded, json_new_string(a, uid));
        return true;
    }
    if (!job_pod_failed(j, pod))
        return object_is_terminating(j->job);
    if (is_held(j, pod))
        return false;
    if (index >= 0 && job_failure_counts(j, pod))
        json_append(t->failed, json_new_string(a, uid));
    return true;
}

/* The indexes of tracked pods that satisfy a predicate, with those already in status. */
static struct job_indexes indexes_of(struct job_run *j, const char *field,
                                     bool (*holds)(const struct job_run *j, const cJSON *pod))
{
    struct arena *a = reconcile_arena(j->run);
    struct job_indexes known = job_indexes_parse(a, json_str_at(j->status, field), j->completions);
    int64_t *found = arena_alloc(a, (j->n_pods + 1) * sizeof(*found));
    size_t n = 0;

    for (size_t i = 0; i < j->n_pods; i++) {
        int64_t index = job_pod_index(j, j->pods[i]);

        if (index >= 0 && job_pod_tracked(j->pods[i]) && holds(j, j->pods[i]))
            found[n++] = index;
    }
    return job_indexes_with(a, &known, found, n);
}

static bool pod_succeeded(const struct job_run *j, const cJSON *pod)
{
    (void)j;
    return succeeded(pod);
}

static bool index_is_active(const struct job_run *j, int64_t index)
{
    for (size_t i = 0; i < j->n_active; i++) {
        if (job_pod_index(j, j->active[i]) == index)
            return true;
    }
    return false;
}

/* When failures count per index, the last failed pod of a retried index stays until its replacement
 * has the failure count. */
static void hold(struct job_run *j, cJSON *pod)
{
    int64_t index = job_pod_index(j, pod);

    if (index < 0 || !job_pod_tracked(pod) || !job_pod_failed(j, pod) ||
        job_indexes_have(&j->done, index) || job_indexes_have(&j->lost, index) ||
        index_is_active(j, index))
        return;
    for (size_t i = 0; i < j->n_held; i++) {
        if (job_pod_index(j, j->held[i]) != index)
            continue;
        if (job_index_failures(j->held[i]) <= job_index_failures(pod) &&
            job_pod_ended_s(j->held[i]) <= job_pod_ended_s(pod))
            j->held[i] = pod;
        return;
    }
    j->held[j->n_held++] = pod;
}

static void read_indexes(struct job_run *j)
{
    struct arena *a = reconcile_arena(j->run);

    j->done = indexes_of(j, "completedIndexes", pod_succeeded);
    controller_status_set(a, j->status, "succeeded", job_indexes_total(&j->done), false);
    if (j->done.n)
        json_set_str(a, j->status, "completedIndexes", job_indexes_text(a, &j->done));
    else
        json_remove(j->status, "completedIndexes");
    if (!j->per_index)
        return;
    j->lost = indexes_of(j, "failedIndexes", job_index_failed);
    json_set_str(a, j->status, "failedIndexes", job_indexes_text(a, &j->lost));
    j->held = arena_alloc(a, (j->n_pods + 1) * sizeof(*j->held));
    for (size_t i = 0; i < j->n_pods && !j->finishing && !object_is_terminating(j->job); i++)
        hold(j, j->pods[i]);
}

static void count(struct job_run *j)
{
    struct arena *a = reconcile_arena(j->run);
    struct tally t;

    count_released(j, "succeeded");
    count_released(j, "failed");
    if (j->indexed)
        read_indexes(j);
    t = (struct tally){.succeeded = uncounted(j, "succeeded"), .failed = uncounted(j, "failed")};
    j->release = arena_alloc(a, (j->n_pods + 1) * sizeof(*j->release));
    for (size_t i = 0; i < j->n_pods && j->n_release < JOB_COUNTED_PER_RUN; i++) {
        if (job_pod_tracked(j->pods[i]) && tally(j, &t, j->pods[i]))
            j->release[j->n_release++] = j->pods[i];
    }
    j->failed = json_i64_at(j->status, "failed", 0) + (int64_t)json_count(t.failed);
    for (size_t i = 0; i < j->n_held; i++)
        j->failed += job_failure_counts(j, j->held[i]);
    j->succeeded = j->indexed
                       ? job_indexes_total(&j->done)
                       : json_i64_at(j->status, "succeeded", 0) + (int64_t)json_count(t.succeeded);
}

/* --- conditions --- */

static void set_condition(struct job_run *j, const char *type, const char *status,
                          const char *reason, struct str message)
{
    struct arena *a = reconcile_arena(j->run);

    if (condition_set(a, j->job, type, status, reason, message, j->now))
        json_set_str(a, condition_get(json_get(j->status, "conditions"), type), "lastProbeTime",
                     time_format_s(a, j->now));
}

/* With restartPolicy OnFailure containers restart in place: their restarts are the failures. */
static bool restarted_too_often(const struct job_run *j, int64_t limit)
{
    static const char *const lists[] = {"status.initContainerStatuses", "status.containerStatuses"};
    int64_t restarts = 0;

    if (!str_eqc(json_str_at(j->job, "spec.template.spec.restartPolicy"), "OnFailure"))
        return false;
    for (size_t i = 0; i < j->n_pods; i++) {
        struct str phase = json_str_at(j->pods[i], "status.phase");

        if (!str_eqc(phase, "Running") && !str_eqc(phase, "Pending"))
            continue;
        for (size_t k = 0; k < 2; k++)
            json_each(c, json_path(j->pods[i], lists[k])) restarts +=
                json_i64_at(c, "restartCount", 0);
    }
    return limit ? restarts >= limit : restarts > 0;
}

/* NULL: there is time left, and the run is requeued at the deadline. */
static bool past_deadline(struct job_run *j)
{
    int64_t seconds = json_i64_at(j->job, "spec.activeDeadlineSeconds", -1);

    if (seconds < 0 || j->suspended)
        return false;
    int64_t left = object_time_s(j->status, "startTime") + seconds - j->now;
    if (left > 0)
        reconcile_again_after(j->run, left * 1000);
    return left <= 0;
}

static void judge_lost_indexes(struct job_run *j)
{
    int64_t lost = job_indexes_total(&j->lost);

    if (lost > json_i64_at(j->job, "spec.maxFailedIndexes", INT64_MAX))
        set_condition(j, "FailureTarget", "True", "MaxFailedIndexesExceeded",
                      STR("Job has exceeded the specified maximal number of failed indexes"));
    else if (lost && lost + job_indexes_total(&j->done) >= j->completions)
        set_condition(j, "FailureTarget", "True", "FailedIndexes", STR("Job has failed indexes"));
}

static void judge_success(struct job_run *j)
{
    struct str message;

    if (job_succeeds_by_policy(j, &message)) {
        set_condition(j, "SuccessCriteriaMet", "True", "SuccessPolicy", message);
        return;
    }

    bool enough = j->completions < 0 ? j->succeeded > 0 : j->succeeded >= j->completions;

    if (enough && !j->n_active)
        set_condition(j, "SuccessCriteriaMet", "True", "CompletionsReached",
                      STR("Reached expected number of succeeded pods"));
}

static void judge_suspension(struct job_run *j)
{
    struct arena *a = reconcile_arena(j->run);
    const cJSON *conditions = json_get(j->status, "conditions");
    bool was = condition_is_true(conditions, "Suspended");

    if (j->suspended == was)
        return;
    set_condition(j, "Suspended", j->suspended ? "True" : "False",
                  j->suspended ? "JobSuspended" : "JobResumed",
                  j->suspended ? STR("Job suspended") : STR("Job resumed"));
    if (j->suspended)
        json_remove(j->status, "startTime");
    else
        json_set_str(a, j->status, "startTime", time_format_s(a, j->now));
    reconcile_event(j->run, j->job, "Normal", j->suspended ? "Suspended" : "Resumed", "%s",
                    j->suspended ? "Job suspended" : "Job resumed");
}

static const cJSON *target(const struct job_run *j)
{
    const cJSON *conditions = json_get(j->status, "conditions");

    if (condition_is_true(conditions, "SuccessCriteriaMet"))
        return condition_get(conditions, "SuccessCriteriaMet");
    if (condition_is_true(conditions, "FailureTarget"))
        return condition_get(conditions, "FailureTarget");
    return NULL;
}

/* A pod that still runs when the job has failed counts as failed once its deletion is requested;
 * counts those that have not ended by themselves. */
static void count_rest(struct job_run *j, bool failed)
{
    struct arena *a = reconcile_arena(j->run);
    cJSON *list = uncounted(j, "failed");

    for (size_t i = 0; i < j->n_pods && j->n_release < JOB_COUNTED_PER_RUN; i++) {
        const cJSON *pod = j->pods[i];

        if (!object_is_terminating(pod) || pod_is_finished(pod) || !job_pod_tracked(pod) ||
            !j->only_failed)
            continue;
        if (failed && !json_list_has(list, meta_uid(pod)))
            json_append(list, json_new_string(a, meta_uid(pod)));
        j->release[j->n_release++] = j->pods[i];
    }
}

/* All its pods are deleted or finished, and counted: sets the final condition. A job that ended
 * while suspended has no startTime, which every finished job must have. */
static void finish(struct job_run *j, const cJSON *as)
{
    struct arena *a = reconcile_arena(j->run);
    bool complete = str_eqc(json_str_at(as, "type"), "SuccessCriteriaMet");
    const char *reason = arena_cstr(a, json_str_at(as, "reason"));

    count_rest(j, !complete);
    if (j->n_active || j->n_terminating || j->n_release || j->n_held ||
        json_count(uncounted(j, "succeeded")) || json_count(uncounted(j, "failed")))
        return;
    set_condition(j, complete ? "Complete" : "Failed", "True", reason, json_str_at(as, "message"));
    if (!json_str_at(j->status, "startTime").n)
        json_set_str(a, j->status, "startTime", time_format_s(a, j->now));
    if (complete)
        json_set_str(a, j->status, "completionTime", time_format_s(a, j->now));
    j->finished_event = complete ? "Completed" : reason;
}

static void drop_empty(struct job_run *j)
{
    static const char *const lists[] = {"succeeded", "failed"};
    cJSON *all = json_get(j->status, "uncountedTerminatedPods");

    for (size_t i = 0; i < 2; i++) {
        if (!json_count(json_get(all, lists[i])))
            json_remove(all, lists[i]);
    }
}

void job_status(struct job_run *j)
{
    struct arena *a = reconcile_arena(j->run);
    const cJSON *as;

    if (!j->suspended && !json_get(j->status, "startTime"))
        json_set_str(a, j->status, "startTime", time_format_s(a, j->now));
    j->finishing = target(j) != NULL;
    count(j);
    if (!target(j)) {
        int64_t limit = json_i64_at(j->job, "spec.backoffLimit", 6);
        struct str message;

        if (job_fails_by_policy(j, &message))
            set_condition(j, "FailureTarget", "True", "PodFailurePolicy", message);
        else if (j->failed > limit || restarted_too_often(j, limit))
            set_condition(j, "FailureTarget", "True", "BackoffLimitExceeded",
                          STR("Job has reached the specified backoff limit"));
        else if (past_deadline(j))
            set_condition(j, "FailureTarget", "True", "DeadlineExceeded",
                          STR("Job was active longer than specified deadline"));
    }
    if (!target(j) && j->per_index)
        judge_lost_indexes(j);
    if (!target(j))
        judge_success(j);
    as = target(j);
    j->finishing = as != NULL;
    if (!as && !object_is_terminating(j->job))
        judge_suspension(j);
    controller_status_set(a, j->status, "active", (int64_t)j->n_active, false);
    controller_status_set(a, j->status, "ready", (int64_t)j->n_ready, true);
    controller_status_set(a, j->status, "terminating", (int64_t)j->n_terminating, true);
    if (as)
        finish(j, as);
    drop_empty(j);
}
