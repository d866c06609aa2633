/* SPDX-License-Identifier: Apache-2.0 */
/* CronJob: creates a Job at each scheduled time, and deletes old Jobs. The name of a Job contains
 * its scheduled time, so that a time creates one Job however often it is tried. Must never start
 * more than the latest of several missed times. */
#include "util.h"

#include "cron_schedule.h"

#include <stdlib.h>

#include <sublet/json_build.h>
#include <sublet/time_zone.h>

#define SCHEDULED_AT "batch.kubernetes.io/cronjob-scheduled-timestamp"

struct cron_run {
    struct reconcile *run;
    const struct resource *res, *jobs_res;
    cJSON *cron, *as_read, *status;
    cJSON **jobs;
    size_t n_jobs;
    int64_t now, due; /* due: the scheduled time of the Job */
};

/* --- jobs --- */

static bool has_ended(const cJSON *job, const char **ret_how)
{
    const cJSON *conditions = json_path(job, "status.conditions");

    *ret_how = condition_is_true(conditions, "Complete") ? "Complete" : "Failed";
    return condition_is_true(conditions, *ret_how);
}

static cJSON *active_of(struct cron_run *c)
{
    cJSON *list = json_get(c->status, "active");

    return json_is_array(list) ? list
                               : json_set(reconcile_arena(c->run), c->status, "active",
                                          json_new_array(reconcile_arena(c->run)));
}

static cJSON *find_by(const cJSON *list, const char *key, struct str value)
{
    json_each(ref, list)
    {
        if (str_eq(json_str_at(ref, key), value))
            return ref;
    }
    return NULL;
}

static void add_active(struct cron_run *c, struct str name, struct str uid, struct str version)
{
    struct arena *a = reconcile_arena(c->run);

    if (find_by(active_of(c), "uid", uid))
        return;
    json_append(active_of(c),
                json_object(a, JSON("kind", c->jobs_res->kind), JSON("namespace", meta_ns(c->cron)),
                            JSON("name", name), JSON("uid", uid),
                            JSON("apiVersion", c->jobs_res->api_version),
                            JSON("resourceVersion", version)));
}

static struct str job_name(struct cron_run *c, int64_t at)
{
    return arena_printf(reconcile_arena(c->run), "%.*s-%lld", STR_F(meta_name(c->cron)),
                        (long long)(at / 60));
}

static void see_job(struct cron_run *c, const cJSON *job)
{
    cJSON *active = active_of(c), *ref = find_by(active, "uid", meta_uid(job));
    const char *how;

    if (!has_ended(job, &how)) {
        if (!ref && !object_is_terminating(job))
            reconcile_event(c->run, c->cron, "Warning", "UnexpectedJob",
                            "Saw a job that the controller did not create or forgot: %.*s",
                            STR_F(meta_name(job)));
        return;
    }
    if (ref) {
        json_detach(active, ref);
        reconcile_event(c->run, c->cron, "Normal", "SawCompletedJob",
                        "Saw completed job: %.*s, condition: %s", STR_F(meta_name(job)), how);
    }
    if (str_eqc(str_c(how), "Complete")) {
        struct str at = json_str_at(job, "status.completionTime");

        if (object_time_s(job, "status.completionTime") >
            object_time_s(c->status, "lastSuccessfulTime"))
            json_set_str(reconcile_arena(c->run), c->status, "lastSuccessfulTime", at);
    }
}

static void drop_missing(struct cron_run *c)
{
    cJSON *active = active_of(c), *next;

    for (cJSON *ref = json_first(active); ref; ref = next) {
        struct str uid = json_str_at(ref, "uid");
        bool there = false;

        next = ref->next;
        for (size_t i = 0; i < c->n_jobs && !there; i++)
            there = str_eq(meta_uid(c->jobs[i]), uid);
        if (there)
            continue;
        reconcile_event(c->run, c->cron, "Normal", "MissingJob", "Active job went missing: %.*s",
                        STR_F(json_str_at(ref, "name")));
        json_detach(active, ref);
    }
}

/* --- history --- */

static int by_start(const void *a, const void *b)
{
    const cJSON *x = *(cJSON *const *)a, *y = *(cJSON *const *)b;
    int64_t s = object_time_s(x, "status.startTime"), t = object_time_s(y, "status.startTime");

    return s != t ? (s < t ? -1 : 1) : str_cmp(meta_name(x), meta_name(y));
}

static void keep_some(struct cron_run *c, const char *which, const char *limit)
{
    int64_t keep = json_i64_at(c->cron, limit, -1), n = 0;
    const char *how;

    for (size_t i = 0; i < c->n_jobs; i++)
        n += has_ended(c->jobs[i], &how) && str_eqc(str_c(how), which);
    for (size_t i = 0; keep >= 0 && i < c->n_jobs && n > keep; i++) {
        const cJSON *job = c->jobs[i];

        if (!has_ended(job, &how) || !str_eqc(str_c(how), which))
            continue;
        n--;
        if (object_is_terminating(job))
            continue;
        reconcile_delete(c->run, c->jobs_res, meta_ns(job), meta_name(job), meta_uid(job),
                         "Background");
        reconcile_event(c->run, c->cron, "Normal", "SuccessfulDelete", "Deleted job %.*s",
                        STR_F(meta_name(job)));
    }
}

/* --- creation --- */

/* The scheduled time in the CronJob's time zone: "2026-11-21T09:00:00+01:00". */
static struct str due_text(struct cron_run *c)
{
    struct arena *a = reconcile_arena(c->run);
    struct str zone = json_str_at(c->cron, "spec.timeZone"), local;
    const struct time_zone *z = zone.n ? time_zone_load(a, zone) : NULL;
    int64_t offset = z ? time_zone_at(z, c->due).offset : 0, minutes = offset / 60;

    if (!offset)
        return time_format_s(a, c->due);
    local = time_format_s(a, c->due + offset);
    minutes = minutes < 0 ? -minutes : minutes;
    return arena_printf(a, "%.*s%c%02d:%02d", (int)local.n - 1, local.p, offset < 0 ? '-' : '+',
                        (int)(minutes / 60), (int)(minutes % 60));
}

static cJSON *make_job(struct cron_run *c)
{
    struct arena *a = reconcile_arena(c->run);
    const cJSON *from = json_path(c->cron, "spec.jobTemplate");
    cJSON *annotations = json_copy(a, json_path(from, "metadata.annotations")), *metadata;

    annotations = json_is_object(annotations) ? annotations : json_new_object(a);
    json_set_str(a, annotations, SCHEDULED_AT, due_text(c));
    metadata =
        json_object(a, JSON("name", job_name(c, c->due)), JSON("namespace", meta_ns(c->cron)),
                    JSON("labels", json_copy(a, json_path(from, "metadata.labels"))),
                    JSON("annotations", annotations),
                    JSON("ownerReferences", json_array(a, metadata_owner_ref(a, c->res, c->cron))));
    return json_object(a, JSON("apiVersion", c->jobs_res->api_version),
                       JSON("kind", c->jobs_res->kind), JSON("metadata", metadata),
                       JSON("spec", json_copy(a, json_get(from, "spec"))));
}

static void finish(struct cron_run *c)
{
    if (!json_count(json_get(c->status, "active")))
        json_remove(c->status, "active");
    controller_status_commit(c->run, c->res, c->cron, c->as_read);
}

static void commit(struct reconcile *r, void *ctx)
{
    (void)r;
    finish(ctx);
}

static void started(struct cron_run *c, struct str name, struct str uid, struct str version)
{
    struct arena *a = reconcile_arena(c->run);

    add_active(c, name, uid, version);
    json_set_str(a, c->status, "lastScheduleTime", time_format_s(a, c->due));
}

/* An earlier run created it but did not write the status. */
static void take_existing(struct cron_run *c)
{
    const cJSON *job = reconcile_get(c->run, c->jobs_res, meta_ns(c->cron), job_name(c, c->due));

    if (job && metadata_owner_is(job, meta_uid(c->cron)))
        started(c, meta_name(job), meta_uid(job), json_str_at(job, "metadata.resourceVersion"));
}

static void on_made(struct reconcile *r, void *ctx, const struct err *err,
                    const struct store_object *job)
{
    struct cron_run *c = ctx;
    struct arena *a = reconcile_arena(r);

    if (err && err->kind == &ERR_ALREADY_EXISTS) {
        take_existing(c);
        return;
    }
    if (err) {
        reconcile_take(r, err);
        if (reconcile_error(r))
            reconcile_event(r, c->cron, "Warning", "FailedCreate", "Error creating job: %.*s",
                            STR_F(err->message));
        return;
    }
    const cJSON *tree = vapi_tree(a, job);
    started(c, meta_name(tree), meta_uid(tree), json_str_at(tree, "metadata.resourceVersion"));
    reconcile_event(r, c->cron, "Normal", "SuccessfulCreate", "Created job %.*s",
                    STR_F(meta_name(tree)));
}

/* --- schedule --- */

/* The latest scheduled time without a Job; 0 when there is none. */
static int64_t unmet(struct cron_run *c, const struct cron_schedule *s, int64_t start)
{
    int64_t last = object_time_s(c->status, "lastScheduleTime");
    int64_t at = cron_last(s, start, c->now);
    int64_t deadline = json_i64_at(c->cron, "spec.startingDeadlineSeconds", -1);

    if (at <= (last ? last : start))
        return 0;
    if (deadline < 0 || at + deadline >= c->now)
        return at;
    reconcile_event(c->run, c->cron, "Warning", "MissSchedule",
                    "Missed scheduled time to start a job: %.*s",
                    STR_F(time_format_s(reconcile_arena(c->run), at)));
    return 0;
}

static bool read_schedule(struct cron_run *c, struct cron_schedule *s)
{
    struct str zone = json_str_at(c->cron, "spec.timeZone");
    struct str text = json_str_at(c->cron, "spec.schedule");

    const struct time_zone *found = zone.n ? time_zone_load(reconcile_arena(c->run), zone) : NULL;

    if (zone.n && !found) {
        reconcile_event(c->run, c->cron, "Warning", "UnknownTimeZone",
                        "invalid timeZone: \"%.*s\": unknown time zone %.*s", STR_F(zone),
                        STR_F(zone));
        return false;
    }
    if (cron_parse(text, s)) {
        s->zone = found;
        return true;
    }
    reconcile_event(c->run, c->cron, "Warning", "UnparseableSchedule",
                    "unparseable schedule: \"%.*s\"", STR_F(text));
    return false;
}

static bool may_start(struct cron_run *c)
{
    struct str policy = json_str_at(c->cron, "spec.concurrencyPolicy");

    if (!c->due || find_by(active_of(c), "name", job_name(c, c->due)))
        return false;
    if (str_eqc(policy, "Replace")) {
        cJSON *active = active_of(c), *next;

        for (cJSON *ref = json_first(active); ref; ref = next) {
            next = ref->next;
            reconcile_delete(c->run, c->jobs_res, meta_ns(c->cron), json_str_at(ref, "name"),
                             json_str_at(ref, "uid"), "Background");
            reconcile_event(c->run, c->cron, "Normal", "SuccessfulDelete", "Deleted job %.*s",
                            STR_F(json_str_at(ref, "name")));
            json_detach(active, ref);
        }
    }
    if (!str_eqc(policy, "Forbid") || !json_count(active_of(c)))
        return true;
    reconcile_event(c->run, c->cron, "Normal", "JobAlreadyActive",
                    "Not starting job because prior execution is running and concurrency policy "
                    "is Forbid");
    return false;
}

static void on_time(struct cron_run *c)
{
    int64_t start = meta_created_s(c->cron), next;
    struct cron_schedule s;

    if (object_is_terminating(c->cron) || json_true(json_path(c->cron, "spec.suspend")) ||
        !read_schedule(c, &s)) {
        finish(c);
        return;
    }
    next = cron_next(&s, start, c->now);
    if (next)
        reconcile_again_after(c->run, (next - c->now) * 1000 + 100);
    c->due = unmet(c, &s, start);
    if (!may_start(c)) {
        finish(c);
        return;
    }
    reconcile_create(c->run, c->jobs_res, meta_ns(c->cron), make_job(c));
    reconcile_then(c->run, on_made, c);
    reconcile_next(c->run, commit, c);
}

/* --- reconcile --- */

static void cron_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    struct cron_run *c = ARENA_NEW(a, struct cron_run);
    struct str ns, name;

    *c = (struct cron_run){.run = r, .now = reconcile_now_s(r)};
    c->res = reconcile_resource(r, "batch", "cronjobs");
    c->jobs_res = reconcile_resource(r, "batch", "jobs");
    if (!key_split(reconcile_key(r), &ns, &name) || !(c->cron = reconcile_get(r, c->res, ns, name)))
        return;
    c->as_read = json_copy(a, c->cron);
    c->status = json_ensure_object(a, c->cron, "status");
    c->jobs = controller_items(a, objects_owned(r, c->jobs_res, ns, meta_uid(c->cron)), &c->n_jobs);
    qsort(c->jobs, c->n_jobs, sizeof(*c->jobs), by_start);
    for (size_t i = 0; i < c->n_jobs; i++)
        see_job(c, c->jobs[i]);
    drop_missing(c);
    keep_some(c, "Complete", "spec.successfulJobsHistoryLimit");
    keep_some(c, "Failed", "spec.failedJobsHistoryLimit");
    on_time(c);
}

static void map_job(struct controller *c, const struct store_event *e)
{
    controller_map_owner(c, e, STR("CronJob"));
}

static const struct controller_source SOURCES[] = {
    {"batch", "cronjobs", controller_map_self}, {"batch", "jobs", map_job}, {NULL, NULL, NULL}};

const struct controller_def CRON_JOB_CONTROLLER = {
    .name = "cronjob-controller",
    .account = "cronjob-controller",
    .sources = SOURCES,
    .reconcile = cron_reconcile,
};
