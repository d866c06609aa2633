/* SPDX-License-Identifier: Apache-2.0 */
/* A Deployment's status: counts, and the conditions `kubectl rollout status` waits for. Must report
 * a rollout as stuck only after its deadline without any progress. Source of the rules:
 * pkg/controller/deployment (progress, sync) of Kubernetes 1.36. */
#include "deployment.h"

#include <sublet/json_build.h>

/* Same status and reason: unchanged. Same status: keeps the transition time. */
void rollout_condition(struct rollout *o, const char *type, const char *status, const char *reason,
                       struct str message)
{
    struct arena *a = o->arena;
    cJSON *parent = json_ensure_object(a, o->deployment, "status");
    cJSON *list = json_get(parent, "conditions"), *was = condition_get(list, type), *made;
    struct str now = time_format_s(a, reconcile_now_s(o->run)), since = now;

    if (was && str_eqc(json_str_at(was, "status"), status)) {
        if (str_eqc(json_str_at(was, "reason"), reason))
            return;
        since = json_str_at(was, "lastTransitionTime");
    }
    if (!json_is_array(list))
        list = json_set(a, parent, "conditions", json_new_array(a));
    if (was)
        json_detach(list, was);
    made = condition_new(a, type, status, reason, message, since.n ? since : now);
    json_append(list, json_put(a, made, JSON("lastUpdateTime", now)));
}

static const cJSON *progress_of(const struct rollout *o)
{
    return condition_of(o->deployment, "Progressing");
}

static bool progress_is(const struct rollout *o, const char *reason)
{
    return str_eqc(json_str_at(progress_of(o), "reason"), reason);
}

/* A pause must not count as lack of progress. */
void rollout_pause(struct rollout *o)
{
    bool paused = json_true(json_path(o->deployment, "spec.paused"));

    if (o->deadline < 0 || progress_is(o, "ProgressDeadlineExceeded"))
        return;
    if (paused)
        rollout_condition(o, "Progressing", "Unknown", "DeploymentPaused",
                          STR("Deployment is paused"));
    else if (progress_is(o, "DeploymentPaused"))
        rollout_condition(o, "Progressing", "Unknown", "DeploymentResumed",
                          STR("Deployment is resumed"));
}

/* --- progress --- */

bool rollout_complete(const struct rollout *o)
{
    return rollout_rs_count(o->new_rs, "replicas") == o->wanted &&
           rollout_total(o, "replicas") == o->wanted &&
           rollout_total(o, "availableReplicas") == o->wanted;
}

static int64_t count_in(const cJSON *object, const char *field)
{
    return json_i64_at(json_get(object, "status"), field, 0);
}

/* More updated pods, fewer outdated pods, more that are ready or available. */
static bool moved(const struct rollout *o)
{
    const cJSON *now = o->deployment, *was = o->as_read;
    int64_t old_now = count_in(now, "replicas") - count_in(now, "updatedReplicas");
    int64_t old_was = count_in(was, "replicas") - count_in(was, "updatedReplicas");

    return count_in(now, "updatedReplicas") > count_in(was, "updatedReplicas") ||
           old_now < old_was || count_in(now, "readyReplicas") > count_in(was, "readyReplicas") ||
           count_in(now, "availableReplicas") > count_in(was, "availableReplicas");
}

static struct str about(struct rollout *o, const char *what)
{
    const cJSON *of = o->new_rs ? o->new_rs : o->deployment;

    return arena_printf(o->arena, "%s \"%.*s\" %s", o->new_rs ? "ReplicaSet" : "Deployment",
                        STR_F(meta_name(of)), what);
}

/* Updated with every step: the deadline counts from lastUpdateTime. */
static void set_progressing(struct rollout *o)
{
    struct str since = json_str_at(progress_of(o), "lastTransitionTime");
    bool was_true = str_eqc(json_str_at(progress_of(o), "status"), "True");

    condition_remove(o->deployment, "Progressing");
    rollout_condition(o, "Progressing", "True", "ReplicaSetUpdated", about(o, "is progressing."));
    if (was_true && since.n)
        json_set_str(o->arena,
                     condition_get(json_path(o->deployment, "status.conditions"), "Progressing"),
                     "lastTransitionTime", since);
}

static void watch_deadline(struct rollout *o)
{
    int64_t since = object_time_s(progress_of(o), "lastUpdateTime");
    int64_t left = since + o->deadline - reconcile_now_s(o->run);

    if (!progress_of(o) || progress_is(o, "NewReplicaSetAvailable") ||
        progress_is(o, "ProgressDeadlineExceeded"))
        return;
    if (left < 0)
        rollout_condition(o, "Progressing", "False", "ProgressDeadlineExceeded",
                          about(o, "has timed out progressing."));
    else
        reconcile_again_after(o->run, (left + 1) * 1000);
}

static void judge(struct rollout *o)
{
    if (o->deadline < 0) {
        condition_remove(o->deployment, "Progressing");
        return;
    }
    bool settled =
        count_in(o->deployment, "replicas") == count_in(o->deployment, "updatedReplicas") &&
        progress_is(o, "NewReplicaSetAvailable");
    if (settled)
        return;
    if (rollout_complete(o))
        rollout_condition(o, "Progressing", "True", "NewReplicaSetAvailable",
                          about(o, "has successfully progressed."));
    else if (moved(o))
        set_progressing(o);
    if (!rollout_complete(o))
        watch_deadline(o);
}

/* A set that cannot create its pods sets ReplicaFailure; the current set's message has
 * precedence. */
static void set_failure(struct rollout *o)
{
    for (size_t i = 0; i <= o->n_old; i++) {
        const cJSON *c = condition_of(rollout_set(o, o->n_old - i), "ReplicaFailure");

        if (c) {
            rollout_condition(o, "ReplicaFailure", arena_cstr(o->arena, json_str_at(c, "status")),
                              arena_cstr(o->arena, json_str_at(c, "reason")),
                              json_str_at(c, "message"));
            return;
        }
    }
    condition_remove(o->deployment, "ReplicaFailure");
}

/* --- status --- */

void rollout_status(struct rollout *o, bool progress)
{
    bool enough = rollout_total(o, "availableReplicas") >= o->wanted - o->unavailable;
    cJSON *status = json_ensure_object(o->arena, o->deployment, "status");
    int64_t available = rollout_total(o, "availableReplicas");
    int64_t missing = rollout_wanted(o) - available;
    struct arena *a = o->arena;

    controller_status_set(a, status, "observedGeneration",
                          json_i64_at(o->deployment, "metadata.generation", 0), false);
    controller_status_set(a, status, "replicas", rollout_total(o, "replicas"), false);
    controller_status_set(a, status, "updatedReplicas", rollout_rs_count(o->new_rs, "replicas"),
                          false);
    controller_status_set(a, status, "readyReplicas", rollout_total(o, "readyReplicas"), false);
    controller_status_set(a, status, "availableReplicas", available, false);
    controller_status_set(a, status, "unavailableReplicas", missing > 0 ? missing : 0, false);
    controller_status_set(a, status, "terminatingReplicas", rollout_total(o, "terminatingReplicas"),
                          true);

    rollout_condition(o, "Available", enough ? "True" : "False",
                      enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                      enough ? STR("Deployment has minimum availability.")
                             : STR("Deployment does not have minimum availability."));
    if (progress) {
        judge(o);
        set_failure(o);
    }
    controller_status_commit(o->run, o->res, o->deployment, o->as_read);
}
