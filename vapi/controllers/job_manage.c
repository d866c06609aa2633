/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and deletes a job's pods. Must never create one for an index that has one or is complete,
 * nor before the backoff after failures ends; a doomed pod loses its finalizer before it is
 * deleted, so that it does not count as failed. */
#include "job.h"

#include <sublet/json_build.h>

#define BURST         500
#define DELAY_S       10
#define DELAY_MOST_S  600
#define NAME_PART_MAX 58 /* of generateName, to which names add five characters, up to 63 */

/* --- the backoff after failures --- */

/* How long to wait: 10 s after a failure, doubled after each further one. */
static int64_t delay_after(const struct job_run *j, int64_t failures, int64_t last)
{
    int64_t delay = DELAY_S, left;

    if (!failures)
        return 0;
    for (int64_t i = 1; i < failures && delay < DELAY_MOST_S; i++)
        delay *= 2;
    delay = delay < DELAY_MOST_S ? delay : DELAY_MOST_S;
    left = last + delay - j->now;
    return left < delay ? left : delay; /* a clock that lags must not prolong it */
}

/* Of failures since the last success, among the pods that still exist. */
static int64_t delay_left(const struct job_run *j)
{
    int64_t success = 0, last = 0, failures = 0;

    for (size_t i = 0; i < j->n_pods; i++) {
        if (str_eqc(json_str_at(j->pods[i], "status.phase"), "Succeeded")) {
            int64_t at = job_pod_ended_s(j->pods[i]);

            success = at > success ? at : success;
        }
    }
    for (size_t i = 0; i < j->n_pods; i++) {
        int64_t at = job_pod_ended_s(j->pods[i]);

        if (!job_pod_failed(j, j->pods[i]) || at <= success)
            continue;
        failures++;
        last = at > last ? at : last;
    }
    return delay_after(j, failures, last);
}

static const cJSON *held_of(const struct job_run *j, int64_t index)
{
    for (size_t i = 0; i < j->n_held; i++) {
        if (job_pod_index(j, j->held[i]) == index)
            return j->held[i];
    }
    return NULL;
}

/* Keeps the indexes whose own backoff is over; without any, the run is requeued for the first. */
static size_t keep_due(struct job_run *j, size_t n)
{
    int64_t first = INT64_MAX;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        const cJSON *failed = held_of(j, j->to_make[i]);
        int64_t wait =
            failed ? delay_after(j, job_index_failures(failed) + 1, job_pod_ended_s(failed)) : 0;

        if (wait <= 0)
            j->to_make[kept++] = j->to_make[i];
        else if (wait < first)
            first = wait;
    }
    if (first < INT64_MAX)
        reconcile_again_after(j->run, first * 1000);
    return kept;
}

/* --- creation --- */

static void add_index_env(struct arena *a, cJSON *containers)
{
    json_each(container, containers)
    {
        cJSON *env = json_get(container, "env"), *from;
        bool there = false;

        json_each(e, env) there |= str_eqc(json_str_at(e, "name"), "JOB_COMPLETION_INDEX");
        if (there)
            continue;
        if (!json_is_array(env))
            env = json_set(a, container, "env", json_new_array(a));
        from = json_object(a, JSON("fieldPath", "metadata.labels['" JOB_INDEX "']"));
        json_append(env, json_object(a, JSON("name", "JOB_COMPLETION_INDEX"),
                                     JSON("valueFrom", json_object(a, JSON("fieldRef", from)))));
    }
}

static cJSON *base_pod(struct job_run *j)
{
    struct arena *a = reconcile_arena(j->run);
    cJSON *pod =
        controller_pod_from_template(a, j->res, j->job, json_path(j->job, "spec.template"));
    cJSON *meta = json_get(pod, "metadata"), *finalizers = json_get(meta, "finalizers");

    if (!json_is_array(finalizers))
        finalizers = json_set(a, meta, "finalizers", json_new_array(a));
    if (!json_list_has(finalizers, STR(JOB_FINALIZER)))
        json_append(finalizers, json_new_string(a, STR(JOB_FINALIZER)));
    if (j->indexed) {
        add_index_env(a, json_path(pod, "spec.containers"));
        add_index_env(a, json_path(pod, "spec.initContainers"));
    }
    return pod;
}

static cJSON *indexed_pod(struct job_run *j, int64_t index)
{
    struct arena *a = reconcile_arena(j->run);
    cJSON *pod = json_copy(a, j->pod), *meta = json_get(pod, "metadata");
    struct str text = arena_printf(a, "%lld", (long long)index), name = meta_name(j->job);
    struct str stem = str_sub(name, 0, NAME_PART_MAX - text.n - 2);

    json_set_str(a, json_ensure_object(a, meta, "annotations"), JOB_INDEX, text);
    if (j->per_index)
        job_index_count_on(j, json_get(meta, "annotations"), held_of(j, index));
    json_set_str(a, json_ensure_object(a, meta, "labels"), JOB_INDEX, text);
    json_set_str(a, json_ensure_object(a, pod, "spec"), "hostname",
                 arena_concat(a, 3, (struct str[]){name, STR("-"), text}));
    json_set_str(a, meta, "generateName",
                 arena_concat(a, 4, (struct str[]){stem, STR("-"), text, STR("-")}));
    return pod;
}

static cJSON *make_pod(void *ctx, size_t i)
{
    struct job_run *j = ctx;

    return j->indexed ? indexed_pod(j, j->to_make[i]) : j->pod;
}

static void on_made(struct reconcile *r, void *ctx)
{
    /* The pods' events requeue the job; the next run sees them. */
    (void)r;
    (void)ctx;
}

/* The lowest indexes that are neither complete nor active; at most n of them. */
static size_t choose_indexes(struct job_run *j, size_t n)
{
    struct arena *a = reconcile_arena(j->run);
    int64_t *busy = arena_alloc(a, (j->n_pods + 1) * sizeof(*busy));
    struct job_indexes taken;
    size_t n_busy = 0, chosen = 0;

    for (size_t i = 0; i < j->n_pods; i++) {
        const cJSON *pod = j->pods[i];
        int64_t index = job_pod_index(j, pod);
        bool here = pod_is_active(pod) ||
                    (j->only_failed && object_is_terminating(pod) && !pod_is_finished(pod));

        if (here && index >= 0)
            busy[n_busy++] = index;
    }
    taken = job_indexes_with(a, &j->done, busy, n_busy);
    taken = job_indexes_merge(a, &taken, &j->lost);
    j->to_make = arena_alloc(a, (n + 1) * sizeof(*j->to_make));
    int64_t index = 0;
    for (size_t i = 0; i <= taken.n && chosen < n; i++) {
        int64_t end = i < taken.n ? taken.items[i].first : j->completions;

        while (index < end && chosen < n)
            j->to_make[chosen++] = index++;
        if (i < taken.n)
            index = taken.items[i].last + 1;
    }
    return chosen;
}

static void make(struct job_run *j, size_t missing)
{
    int64_t wait = j->per_index ? 0 : delay_left(j);
    size_t n = missing < BURST ? missing : BURST;

    if (wait > 0) {
        reconcile_again_after(j->run, wait * 1000);
        return;
    }
    if (j->indexed)
        n = choose_indexes(j, n);
    if (j->per_index)
        n = keep_due(j, n);
    if (!n)
        return;
    j->pod = base_pod(j);
    j->batch = (struct pod_batch){
        .run = j->run, .owner = j->job, .make = make_pod, .ctx = j, .wanted = n, .done = on_made};
    pods_create(&j->batch);
}

/* --- deletion --- */

static void delete_doomed(struct reconcile *r, void *ctx)
{
    struct job_run *j = ctx;

    if (j->still_tracked)
        return; /* one still has its finalizer and would count */
    for (size_t i = 0; i < j->n_doomed; i++) {
        const cJSON *pod = j->doomed[i];

        reconcile_delete(r, j->pods_res, meta_ns(pod), meta_name(pod), meta_uid(pod), NULL);
        reconcile_event(r, j->job, "Normal", "SuccessfulDelete", "Deleted pod: %.*s",
                        STR_F(meta_name(pod)));
    }
}

static void on_untracked(struct reconcile *r, void *ctx, const struct err *err,
                         const struct store_object *pod)
{
    struct job_run *j = ctx;

    (void)pod;
    if (!err)
        return;
    j->still_tracked = true;
    reconcile_take(r, err);
}

static bool is_doomed(const struct job_run *j, const cJSON *pod)
{
    for (size_t i = 0; i < j->n_doomed; i++) {
        if (j->doomed[i] == pod)
            return true;
    }
    return false;
}

static void choose_doomed(struct job_run *j, size_t at_least)
{
    struct arena *a = reconcile_arena(j->run);

    j->doomed = arena_alloc(a, (j->n_active + 1) * sizeof(*j->doomed));
    if (j->indexed) {
        struct job_indexes seen = j->done;

        /* Pods without a valid index, or whose index another active pod or a completion has. */
        pods_rank(a, j->active, j->n_active, j->active, j->n_active, j->now);
        for (size_t i = j->n_active; i-- > 0;) {
            int64_t index = job_pod_index(j, j->active[i]);

            if (index < 0 || job_indexes_have(&seen, index))
                j->doomed[j->n_doomed++] = j->active[i];
            else
                seen = job_indexes_with(a, &seen, &index, 1);
        }
    }
    if (j->n_doomed < at_least)
        pods_rank(a, j->active, j->n_active, j->active, j->n_active, j->now);
    for (size_t i = 0; i < j->n_active && j->n_doomed < at_least; i++) {
        if (!is_doomed(j, j->active[i]))
            j->doomed[j->n_doomed++] = j->active[i];
    }
    j->n_doomed = j->n_doomed < BURST ? j->n_doomed : BURST;
}

static int64_t wanted(const struct job_run *j)
{
    int64_t left;

    if (j->suspended)
        return 0;
    if (j->completions < 0)
        return j->succeeded ? (int64_t)j->n_active : j->parallelism;
    left = j->completions > j->succeeded ? j->completions - j->succeeded : 0;
    return left < j->parallelism ? left : j->parallelism;
}

void job_manage(struct job_run *j)
{
    int64_t want = wanted(j), active = (int64_t)j->n_active;

    choose_doomed(j, active > want ? (size_t)(active - want) : 0);
    if (j->n_doomed) {
        for (size_t i = 0; i < j->n_doomed; i++) {
            if (!job_pod_tracked(j->doomed[i]))
                continue;
            job_pod_untrack(j->run, j->pods_res, j->doomed[i]);
            reconcile_then(j->run, on_untracked, j);
        }
        reconcile_next(j->run, delete_doomed, j);
        return;
    }
    if (j->only_failed)
        want -= (int64_t)j->n_terminating;
    if (want > active)
        make(j, (size_t)(want - active));
}
