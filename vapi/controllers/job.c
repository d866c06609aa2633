/* SPDX-License-Identifier: Apache-2.0 */
/* Job: runs pods until enough of them succeeded, or too many failed. A run writes the status first
 * and acts afterwards: finalizers are removed and pods are created or deleted only once the counts
 * that include them are committed. Must never leave its finalizer on a pod whose job was deleted or
 * finished. */
#include "job.h"

#define POD_KEY "pod:" /* no job's name has a colon */

static const char OURS[] = "kubernetes.io/job-controller";

/* --- finalizers --- */

void job_pod_untrack(struct reconcile *r, const struct resource *pods, const cJSON *pod)
{
    if (job_pod_tracked(pod))
        metadata_finalizer_drop(r, pods, pod, JOB_FINALIZER);
}

/* --- pods whose job was replaced or deleted --- */

static bool job_is_finished(const cJSON *job)
{
    const cJSON *conditions = json_path(job, "status.conditions");

    return condition_is_true(conditions, "Complete") || condition_is_true(conditions, "Failed");
}

static bool is_elsewhere(const cJSON *job)
{
    struct str by = json_str_at(job, "spec.managedBy");

    return by.n && !str_eqc(by, OURS);
}

static void untrack_orphan(struct reconcile *r, const struct resource *pods, struct str ns,
                           struct str name)
{
    const cJSON *pod = reconcile_get(r, pods, ns, name);

    if (pod && !owner_controller(pod))
        job_pod_untrack(r, pods, pod);
}

/* --- a finished job --- */

static void after_finish(struct job_run *j)
{
    const cJSON *conditions = json_get(j->status, "conditions");
    const cJSON *end = condition_is_true(conditions, "Complete")
                           ? condition_get(conditions, "Complete")
                           : condition_get(conditions, "Failed");
    int64_t ttl = json_i64_at(j->job, "spec.ttlSecondsAfterFinished", -1), left;

    for (size_t i = 0; i < j->n_pods; i++)
        job_pod_untrack(j->run, j->pods_res, j->pods[i]);
    if (ttl < 0 || object_is_terminating(j->job))
        return;
    left = object_time_s(end, "lastTransitionTime") + ttl - j->now;
    if (left > 0)
        reconcile_again_after(j->run, left * 1000);
    else
        reconcile_delete_exact(j->run, j->res, j->job, "Foreground");
}

/* --- an active job --- */

/* A pod that was adopted, or lost its finalizer, could end without being counted. */
static void track(struct job_run *j)
{
    for (size_t i = 0; i < j->n_active; i++) {
        if (!job_pod_tracked(j->active[i]) && owner_controller(j->active[i]))
            metadata_finalizer_add(j->run, j->pods_res, j->active[i], JOB_FINALIZER);
    }
}

static void act(struct reconcile *r, void *ctx)
{
    struct job_run *j = ctx;

    if (!j->written)
        return; /* conflict: the frame retries */
    if (j->finished_event) {
        const cJSON *failed = condition_of(j->job, "Failed");
        struct str message = json_str_at(failed, "message");

        if (str_eqc(str_c(j->finished_event), "Completed"))
            reconcile_event(j->run, j->job, "Normal", "Completed", "Job completed");
        else
            reconcile_event(j->run, j->job, "Warning", j->finished_event, "%.*s", STR_F(message));
        if (!failed && j->completions >= 0 && j->succeeded > j->completions)
            reconcile_event(j->run, j->job, "Warning", "TooManySucceededPods",
                            "Too many succeeded pods running after completion count reached");
    }
    for (size_t i = 0; i < j->n_release; i++)
        job_pod_untrack(r, j->pods_res, j->release[i]);
    if (j->finished_event || object_is_terminating(j->job))
        return;
    if (!j->finishing) {
        track(j);
        job_manage(j);
        return;
    }
    for (size_t i = 0; i < j->n_active; i++) {
        const cJSON *pod = j->active[i];

        reconcile_delete(r, j->pods_res, meta_ns(pod), meta_name(pod), meta_uid(pod), NULL);
        reconcile_event(r, j->job, "Normal", "SuccessfulDelete", "Deleted pod: %.*s",
                        STR_F(meta_name(pod)));
    }
}

static void on_written(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    struct job_run *j = ctx;

    (void)object;
    j->written = !err;
    if (err)
        reconcile_take(r, err);
}

static void go_on(struct job_run *j)
{
    job_status(j);
    j->written = json_equal(j->job, j->as_read);
    if (j->written) {
        act(j->run, j);
        return;
    }
    reconcile_update_status(j->run, j->res, j->job);
    reconcile_then(j->run, on_written, j);
    reconcile_next(j->run, act, j);
}

/* --- reconcile --- */

static bool load(struct job_run *j)
{
    struct arena *a = reconcile_arena(j->run);
    struct selector selector;
    struct err err;

    err_init(&err, a);
    if (selector_from_json(a, json_path(j->job, "spec.selector"), &selector, &err)) {
        reconcile_fail(j->run, &err);
        return false;
    }
    j->pods = controller_items(a, objects_claim(j->run, j->pods_res, j->res, j->job, &selector),
                               &j->n_pods);
    j->as_read = json_copy(a, j->job);
    j->status = json_ensure_object(a, j->job, "status");
    j->now = reconcile_now_s(j->run);
    j->completions = json_i64_at(j->job, "spec.completions", -1);
    j->parallelism = json_i64_at(j->job, "spec.parallelism", 1);
    j->indexed = str_eqc(json_str_at(j->job, "spec.completionMode"), "Indexed");
    j->per_index = j->indexed && json_path(j->job, "spec.backoffLimitPerIndex");
    j->suspended = json_true(json_path(j->job, "spec.suspend"));
    j->only_failed = str_eqc(json_str_at(j->job, "spec.podReplacementPolicy"), "Failed");

    j->active = arena_alloc(reconcile_arena(j->run), (j->n_pods + 1) * sizeof(*j->active));
    for (size_t i = 0; i < j->n_pods; i++) {
        cJSON *pod = j->pods[i];

        if (pod_is_active(pod)) {
            j->active[j->n_active++] = pod;
            j->n_ready += pod_is_ready(pod);
        } else if (object_is_terminating(pod) && !pod_is_finished(pod))
            j->n_terminating++;
    }
    return true;
}

static void job_reconcile(struct reconcile *r)
{
    const struct resource *jobs = reconcile_resource(r, "batch", "jobs");
    const struct resource *pods = reconcile_resource(r, "", "pods");
    struct job_run *j = ARENA_NEW(reconcile_arena(r), struct job_run);
    struct str ns, name;
    struct str uid;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    if (str_has_prefix(name, STR(POD_KEY))) {
        untrack_orphan(r, pods, ns, str_from(name, sizeof(POD_KEY) - 1));
        return;
    }
    *j = (struct job_run){.run = r, .res = jobs, .pods_res = pods};
    j->job = reconcile_get(r, jobs, ns, name);

    /* Pods of earlier jobs of the same name. */
    uid = meta_uid(j->job);
    json_each(pod, reconcile_list(r, pods, ns, NULL))
    {
        const cJSON *owner = owner_controller(pod);

        if (str_eqc(json_str_at(owner, "kind"), "Job") &&
            str_eq(json_str_at(owner, "name"), name) && !str_eq(json_str_at(owner, "uid"), uid))
            job_pod_untrack(r, pods, pod);
    }

    if (!j->job || is_elsewhere(j->job) || !load(j))
        return;
    if (job_is_finished(j->job))
        after_finish(j);
    else
        go_on(j);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    const struct store_object *o = e->object;
    struct buf key = BUF_INIT(0);

    controller_map_dependent(c, e, "batch", "jobs", STR("Job"));
    if (e->type == STORE_DELETED || !str_contains(o->bytes, STR(JOB_FINALIZER)) ||
        str_contains(o->bytes, STR("\"controller\":true")))
        return;
    buf_add(&key, o->ns);
    buf_addc(&key, "/" POD_KEY);
    buf_add(&key, o->name);
    controller_add(c, buf_str(&key));
    buf_fini(&key);
}

static const struct controller_source SOURCES[] = {
    {"batch", "jobs", controller_map_self}, {"", "pods", map_pod}, {NULL, NULL, NULL}};

const struct controller_def JOB_CONTROLLER = {
    .name = "job-controller",
    .account = "job-controller",
    .retries = "Job",
    .sources = SOURCES,
    .reconcile = job_reconcile,
};
