/* SPDX-License-Identifier: Apache-2.0 */
/* By how much a Deployment's replica sets grow and shrink, and what its status says of it. Source
 * of the rules: pkg/controller/deployment (rolling, recreate, sync, progress) of Kubernetes 1.36.
 */
#include "deployment.h"

#include <string.h>

/* --- bounds --- */

/* "25%" of total, rounded up or down, or a plain number. */
static int64_t scaled(const cJSON *value, int64_t total, bool up, int64_t otherwise_percent)
{
    int64_t n = otherwise_percent;
    struct str text = json_str(value);

    if (json_i64(value, &n))
        return n;
    if (text.n && str_has_suffix(text, STR("%")))
        str_to_i64(str_sub(text, 0, text.n - 1), &n);
    return up ? (total * n + 99) / 100 : total * n / 100;
}

void rollout_bounds(struct rollout *o)
{
    const cJSON *rolling = json_path(o->deployment, "spec.strategy.rollingUpdate");

    if (o->recreate)
        return;
    o->surge = scaled(json_get(rolling, "maxSurge"), o->wanted, true, 25);
    o->unavailable = scaled(json_get(rolling, "maxUnavailable"), o->wanted, false, 25);
    if (o->surge == 0 && o->unavailable == 0)
        o->unavailable = 1; /* something must be able to move */
    if (o->unavailable > o->wanted)
        o->unavailable = o->wanted;
}

static int64_t total(const struct rollout *o, const char *status_field)
{
    int64_t sum =
        o->new_rs ? (status_field ? rs_count(o->new_rs, status_field) : rs_wanted(o->new_rs)) : 0;

    for (size_t i = 0; i < o->n_old; i++)
        sum += status_field ? rs_count(o->old[i], status_field) : rs_wanted(o->old[i]);
    return sum;
}

static int64_t old_total(const struct rollout *o)
{
    return total(o, NULL) - (o->new_rs ? rs_wanted(o->new_rs) : 0);
}

/* --- scaling a rollout that stands or is paused --- */

bool rollout_resized(const struct rollout *o)
{
    for (size_t i = 0; i <= o->n_old; i++) {
        const cJSON *rs = i < o->n_old ? o->old[i] : o->new_rs;
        int64_t desired = o->wanted;

        if (!rs || rs_wanted(rs) == 0)
            continue;
        str_to_i64(json_str(json_get(json_path(rs, "metadata.annotations"),
                                     "deployment.kubernetes.io/desired-replicas")),
                   &desired);
        if (desired != o->wanted)
            return true;
    }
    return false;
}

static cJSON *only_active(const struct rollout *o)
{
    cJSON *found = NULL;

    for (size_t i = 0; i <= o->n_old; i++) {
        cJSON *rs = i < o->n_old ? o->old[i] : o->new_rs;

        if (!rs || rs_wanted(rs) == 0)
            continue;
        if (found)
            return NULL;
        found = rs;
    }
    return found ? found : o->new_rs;
}

/* Each set gets its share of what is added or taken, the rest goes to the newest. */
static void spread(struct rollout *o)
{
    int64_t now = total(o, NULL), allowed = o->wanted > 0 ? o->wanted + o->surge : 0;
    int64_t delta = allowed - now, left = delta;

    for (size_t i = 0; i <= o->n_old; i++) {
        cJSON *rs = i < o->n_old ? o->old[i] : o->new_rs;
        bool last = i == o->n_old;

        if (!rs)
            continue;
        int64_t size = rs_wanted(rs), share = now ? size * delta / now : 0;
        if (last)
            share = left;
        if (size + share < 0)
            share = -size;
        left -= share;
        if (size || last)
            rollout_scale(o, rs, size + share);
    }
}

void rollout_proportional(struct rollout *o)
{
    cJSON *one = only_active(o);

    if (one)
        rollout_scale(o, one, o->wanted);
    else if (!o->recreate && total(o, NULL) > 0)
        spread(o);
}

/* --- recreate --- */

static bool old_pods_live(struct rollout *o)
{
    const struct resource *pods = reconcile_resource(o->run, "", "pods");
    struct selector selector;
    struct err err;

    err_init(&err, o->arena);
    if (selector_from_json(o->arena, json_path(o->deployment, "spec.selector"), &selector, &err))
        return true;
    cJSON *list = reconcile_list(o->run, pods, meta_ns(o->deployment), &selector);
    json_each(pod, list)
    {
        if (pod_is_finished(pod))
            continue;
        for (size_t i = 0; i < o->n_old; i++) {
            if (owner_is(pod, meta_uid(o->old[i])))
                return true;
        }
    }
    return false;
}

void rollout_recreate(struct rollout *o)
{
    bool shrinking = false;

    for (size_t i = 0; i < o->n_old; i++) {
        if (rs_wanted(o->old[i]) > 0)
            shrinking |= rollout_scale(o, o->old[i], 0);
    }
    if (shrinking || old_pods_live(o))
        return;
    if (o->new_rs)
        rollout_scale(o, o->new_rs, o->wanted);
    else
        rollout_create(o, o->wanted);
}

/* --- rolling --- */

static int64_t new_size(const struct rollout *o)
{
    int64_t now = o->new_rs ? rs_wanted(o->new_rs) : 0, most = o->wanted + o->surge;
    int64_t all = total(o, NULL);

    if (now >= o->wanted)
        return o->wanted;
    if (all >= most)
        return now;
    int64_t room = most - all, lack = o->wanted - now;
    return now + (room < lack ? room : lack);
}

/* Old pods that are not available anyway go first, oldest set first. */
static int64_t drop_unhealthy(struct rollout *o, int64_t most, int64_t *sizes)
{
    int64_t dropped = 0;

    for (size_t i = 0; i < o->n_old && dropped < most; i++) {
        int64_t bad = sizes[i] - rs_count(o->old[i], "availableReplicas");

        if (bad <= 0)
            continue;
        if (bad > most - dropped)
            bad = most - dropped;
        sizes[i] -= bad;
        dropped += bad;
    }
    return dropped;
}

static void drop_available(struct rollout *o, int64_t most, int64_t *sizes)
{
    for (size_t i = 0; i < o->n_old && most > 0; i++) {
        int64_t n = sizes[i] < most ? sizes[i] : most;

        sizes[i] -= n;
        most -= n;
    }
}

static void shrink_old(struct rollout *o)
{
    int64_t *sizes = arena_alloc(o->arena, (o->n_old + 1) * sizeof(*sizes));
    int64_t least = o->wanted - o->unavailable, old = old_total(o);
    int64_t new_wanted = o->new_rs ? rs_wanted(o->new_rs) : 0;
    int64_t new_available = o->new_rs ? rs_count(o->new_rs, "availableReplicas") : 0;

    if (!old)
        return;
    for (size_t i = 0; i < o->n_old; i++)
        sizes[i] = rs_wanted(o->old[i]);
    int64_t most = total(o, NULL) - least - (new_wanted - new_available);
    if (most > 0) {
        int64_t dropped = drop_unhealthy(o, most, sizes);
        int64_t spare = total(o, "availableReplicas") - least;

        if (spare > most - dropped)
            spare = most - dropped;
        if (spare > 0)
            drop_available(o, spare, sizes);
    }
    for (size_t i = 0; i < o->n_old; i++) {
        if (sizes[i] != rs_wanted(o->old[i]))
            rollout_scale(o, o->old[i], sizes[i]);
    }
}

void rollout_rolling(struct rollout *o)
{
    int64_t size = new_size(o);

    if (!o->new_rs) {
        rollout_create(o, size);
        return;
    }
    if (!rollout_scale(o, o->new_rs, size))
        shrink_old(o);
}

/* --- status --- */

bool rollout_complete(const struct rollout *o)
{
    return o->new_rs && rs_count(o->new_rs, "replicas") == o->wanted &&
           total(o, "replicas") == o->wanted && total(o, "availableReplicas") == o->wanted &&
           rs_wanted(o->new_rs) == o->wanted;
}

static bool put_count(struct rollout *o, cJSON *status, const char *key, int64_t value)
{
    if (json_i64_at(status, key, 0) == value)
        return false;
    if (value)
        json_set_i64(o->arena, status, key, value);
    else
        json_remove(status, key);
    return true;
}

static bool set_available(struct rollout *o)
{
    bool enough = total(o, "availableReplicas") >= o->wanted - o->unavailable;

    return condition_set(o->arena, o->deployment, "Available", enough ? "True" : "False",
                         enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                         enough ? STR("Deployment has minimum availability.")
                                : STR("Deployment does not have minimum availability."),
                         reconcile_now_s(o->run));
}

static const char *progress_reason(const struct rollout *o)
{
    const cJSON *c = condition_get(json_path(o->deployment, "status.conditions"), "Progressing");

    return json_str_at(c, "reason").p ? json_str_at(c, "reason").p : "";
}

static void touch_progress(struct rollout *o)
{
    cJSON *c = condition_get(json_path(o->deployment, "status.conditions"), "Progressing");

    if (c)
        json_set_str(o->arena, c, "lastUpdateTime",
                     time_format_s(o->arena, reconcile_now_s(o->run)));
}

static int64_t progress_left(const struct rollout *o)
{
    const cJSON *c = condition_get(json_path(o->deployment, "status.conditions"), "Progressing");
    int64_t deadline = json_i64_at(o->deployment, "spec.progressDeadlineSeconds", INT32_MAX), since;

    if (deadline >= INT32_MAX || !time_parse(json_str_at(c, "lastUpdateTime"), &since))
        return INT64_MAX;
    return since / 1000000 + deadline - reconcile_now_s(o->run);
}

static bool say_progress(struct rollout *o, const char *status, const char *reason,
                         const char *what)
{
    struct str name = o->new_rs ? meta_name(o->new_rs) : meta_name(o->deployment);
    struct str message = arena_printf(o->arena, "%s \"%.*s\" %s",
                                      o->new_rs ? "ReplicaSet" : "Deployment", STR_F(name), what);
    bool changed = condition_set(o->arena, o->deployment, "Progressing", status, reason, message,
                                 reconcile_now_s(o->run));

    if (changed)
        touch_progress(o);
    return changed;
}

/* moved: replica counts changed, which is progress in itself. */
static bool set_progressing(struct rollout *o, bool moved)
{
    bool paused = json_true(json_path(o->deployment, "spec.paused"));
    bool was_paused = !strcmp(progress_reason(o), "DeploymentPaused");

    if (paused)
        return condition_set(o->arena, o->deployment, "Progressing", "Unknown", "DeploymentPaused",
                             STR("Deployment is paused"), reconcile_now_s(o->run));
    if (was_paused)
        return condition_set(o->arena, o->deployment, "Progressing", "Unknown", "DeploymentResumed",
                             STR("Deployment is resumed"), reconcile_now_s(o->run));
    if (rollout_complete(o))
        return say_progress(o, "True", "NewReplicaSetAvailable", "has successfully progressed.");
    if (moved) {
        say_progress(o, "True", "ReplicaSetUpdated", "is progressing.");
        touch_progress(o);
        return true;
    }
    if (!condition_get(json_path(o->deployment, "status.conditions"), "Progressing"))
        return say_progress(o, "True", "NewReplicaSetCreated", "is progressing.");
    int64_t left = progress_left(o);
    bool settled = !strcmp(progress_reason(o), "NewReplicaSetAvailable");
    if (settled || left == INT64_MAX)
        return false;
    if (left <= 0)
        return say_progress(o, "False", "ProgressDeadlineExceeded", "has timed out progressing.");
    reconcile_again_after(o->run, left * 1000);
    return false;
}

/* A set that cannot make its pods makes the deployment say so. */
static bool set_failure(struct rollout *o)
{
    for (size_t i = 0; i <= o->n_old; i++) {
        const cJSON *rs = i < o->n_old ? o->old[i] : o->new_rs;
        const cJSON *c = condition_get(json_path(rs, "status.conditions"), "ReplicaFailure");

        if (c)
            return condition_set(o->arena, o->deployment, "ReplicaFailure", "True", "FailedCreate",
                                 json_str_at(c, "message"), reconcile_now_s(o->run));
    }
    return condition_remove(o->deployment, "ReplicaFailure");
}

void rollout_status(struct rollout *o)
{
    cJSON *status = json_ensure_object(o->arena, o->deployment, "status");
    int64_t available = total(o, "availableReplicas"), all = total(o, "replicas");
    int64_t missing = total(o, NULL) - available;
    bool moved = false, changed;

    moved |= put_count(o, status, "replicas", all);
    moved |=
        put_count(o, status, "updatedReplicas", o->new_rs ? rs_count(o->new_rs, "replicas") : 0);
    moved |= put_count(o, status, "readyReplicas", total(o, "readyReplicas"));
    moved |= put_count(o, status, "availableReplicas", available);
    moved |= put_count(o, status, "unavailableReplicas", missing > 0 ? missing : 0);
    changed = put_count(o, status, "observedGeneration",
                        json_i64_at(o->deployment, "metadata.generation", 0));
    changed |= set_available(o);
    changed |= set_progressing(o, moved);
    changed |= set_failure(o);
    if (changed || moved)
        reconcile_update_status(o->run, o->res, o->deployment);
}
