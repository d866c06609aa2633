/* SPDX-License-Identifier: Apache-2.0 */
/* StatefulSet: pods with stable names and claims, created from the lowest ordinal up and deleted
 * from the highest down. Must never have two pods of one ordinal: one is created only after its
 * predecessor is deleted from the store. Source of the rules: pkg/controller/statefulset of
 * Kubernetes 1.36. */
#include "statefulset.h"

/* --- decisions --- */

static bool is_up(const cJSON *pod)
{
    return str_eqc(json_str_at(pod, "status.phase"), "Running") && pod_is_ready(pod);
}

static bool is_available(struct sts *s, const cJSON *pod)
{
    int64_t wait;
    bool available = is_up(pod) && controller_pod_is_available(
                                       pod, json_i64_at(s->owner, "spec.minReadySeconds", 0),
                                       reconcile_now_s(s->run), &wait);

    if (!available && is_up(pod) && wait)
        reconcile_again_after(s->run, wait * 1000);
    return available;
}

static bool is_healthy(struct sts *s, const cJSON *pod)
{
    return !object_is_terminating(pod) && is_available(s, pod);
}

static bool drop(struct sts *s, const cJSON *pod)
{
    if (s->n_drop == STS_BURST)
        return false;
    s->drop[s->n_drop++] = pod;
    return true;
}

/* Visits the ordinals that should exist. True: nothing has to be waited for. */
static bool fill(struct sts *s)
{
    size_t i = 0;

    while (i < s->n_pods && s->pods[i].ordinal < s->start)
        i++;
    for (int64_t ordinal = s->start; sts_in_range(s, ordinal); ordinal++) {
        const cJSON *pod = i < s->n_pods && s->pods[i].ordinal == ordinal ? s->pods[i++].pod : NULL;

        if (!pod) {
            if (s->n_make == STS_BURST)
                return false;
            s->make[s->n_make++] = ordinal;
        } else if (pod_is_finished(pod) && !object_is_terminating(pod) && !drop(s, pod))
            return false;
        if (s->ordered && (!pod || !is_healthy(s, pod)))
            return false;
    }
    return true;
}

/* The lowest unhealthy pod: the only one that may be deleted while others are unhealthy. */
static const cJSON *first_unhealthy(struct sts *s)
{
    for (int in_range = 1; in_range >= 0; in_range--) {
        for (size_t i = 0; i < s->n_pods; i++) {
            if (sts_in_range(s, s->pods[i].ordinal) == (in_range != 0) &&
                !is_healthy(s, s->pods[i].pod))
                return s->pods[i].pod;
        }
    }
    return NULL;
}

static bool shrink(struct sts *s)
{
    const cJSON *sick = first_unhealthy(s);

    for (size_t i = s->n_pods; i-- > 0;) {
        const cJSON *pod = s->pods[i].pod;

        if (sts_in_range(s, s->pods[i].ordinal))
            continue;
        if (!object_is_terminating(pod)) {
            if (s->ordered && !is_healthy(s, pod) && pod != sick)
                return false;
            if (!drop(s, pod))
                return false;
        }
        if (s->ordered)
            return false;
    }
    return true;
}

/* Deletes old pods from the highest ordinal down while no more than allowed are unavailable. */
static void renew(struct sts *s)
{
    const cJSON *allowed = json_path(s->owner, "spec.updateStrategy.rollingUpdate.maxUnavailable");
    int64_t left = controller_scaled_value(allowed, s->wanted, true, 1);
    struct str update = meta_name(s->revisions.update);

    left = (left > 1 ? left : 1) - (int64_t)s->n_make;
    for (size_t i = s->n_pods; i-- > 0 && left > 0;) {
        const struct sts_pod *p = &s->pods[i];

        if (!sts_in_range(s, p->ordinal))
            continue;
        if (p->ordinal < s->start + s->partition)
            return;
        if (!str_eq(revision_of_pod(p->pod), update) && pod_is_active(p->pod)) {
            if (!drop(s, p->pod))
                return;
            left--;
        } else if (!is_healthy(s, p->pod))
            left--;
    }
}

/* --- status --- */

static void set_counts(struct sts *s, cJSON *status, const cJSON *current)
{
    struct arena *a = reconcile_arena(s->run);
    struct str update = meta_name(s->revisions.update), now = meta_name(current);
    int64_t ready = 0, available = 0, at_current = 0, at_update = 0;

    for (size_t i = 0; i < s->n_pods; i++) {
        const cJSON *pod = s->pods[i].pod;
        struct str revision = revision_of_pod(pod);

        ready += is_up(pod);
        available += is_available(s, pod);
        if (object_is_terminating(pod))
            continue;
        at_current += str_eq(revision, now);
        at_update += str_eq(revision, update);
    }
    controller_status_set(a, status, "replicas", (int64_t)s->n_pods, true);
    controller_status_set(a, status, "readyReplicas", ready, false);
    controller_status_set(a, status, "availableReplicas", available, true);
    controller_status_set(a, status, "currentReplicas", at_current, false);
    controller_status_set(a, status, "updatedReplicas", at_update, false);
}

/* All pods have the update revision and are healthy: it becomes the current one. */
static bool rolled_out(const struct sts *s, const cJSON *status)
{
    return !s->on_delete && json_i64_at(status, "updatedReplicas", 0) == s->wanted &&
           json_i64_at(status, "readyReplicas", 0) == s->wanted &&
           json_i64_at(status, "replicas", 0) == s->wanted;
}

static void finish(struct sts *s)
{
    cJSON **pods = arena_alloc(reconcile_arena(s->run), (s->n_pods + 1) * sizeof(*pods));
    struct arena *a;
    cJSON *status;
    const cJSON *current;

    for (size_t i = 0; i < s->n_pods; i++)
        pods[i] = s->pods[i].pod;

    a = reconcile_arena(s->run);
    status = json_ensure_object(a, s->owner, "status");
    current = s->current;
    set_counts(s, status, current);
    if (current != s->revisions.update && rolled_out(s, status)) {
        current = s->revisions.update;
        set_counts(s, status, current);
    }
    controller_set_str(a, status, "currentRevision", meta_name(current));
    controller_set_str(a, status, "updateRevision", meta_name(s->revisions.update));
    controller_status_set(a, status, "collisionCount", json_i64_at(status, "collisionCount", 0),
                          true);
    controller_status_set(a, status, "observedGeneration",
                          json_i64_at(s->owner, "metadata.generation", 0), false);
    controller_status_commit(s->run, s->res, s->owner, s->as_read);

    revisions_prune(&s->revisions, s->current, pods, s->n_pods);
}

/* --- reconcile --- */

static void sts_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    struct sts *s = ARENA_NEW(a, struct sts);
    struct selector selector;
    const cJSON *policy;

    s->run = r;
    s->pods_res = reconcile_resource(r, "", "pods");
    s->claims_res = reconcile_resource(r, "", "persistentvolumeclaims");
    if (!revisions_load(&s->revisions, r, "statefulsets", "controller.kubernetes.io/hash",
                        &selector))
        return;
    s->res = s->revisions.owner_res;
    s->owner = s->revisions.owner;
    s->as_read = s->revisions.as_read;

    policy = json_path(s->owner, "spec.persistentVolumeClaimRetentionPolicy");
    s->start = json_i64_at(s->owner, "spec.ordinals.start", 0);
    s->wanted = json_i64_at(s->owner, "spec.replicas", 1);
    s->partition = json_i64_at(s->owner, "spec.updateStrategy.rollingUpdate.partition", 0);
    s->ordered = !str_eqc(json_str_at(s->owner, "spec.podManagementPolicy"), "Parallel");
    s->on_delete = str_eqc(json_str_at(s->owner, "spec.updateStrategy.type"), "OnDelete");
    s->retain = !str_eqc(json_str_at(policy, "whenDeleted"), "Delete") &&
                !str_eqc(json_str_at(policy, "whenScaled"), "Delete");

    s->current = revision_find(&s->revisions, json_str_at(s->owner, "status.currentRevision"));
    if (!s->current)
        s->current = s->revisions.update;
    sts_find_pods(s, &selector);
    if (!reconcile_error(r)) {
        if (fill(s) && shrink(s) && !s->on_delete)
            renew(s);
        s->done = finish;
        sts_carry_out(s);
    }
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    controller_map_dependent(c, e, "apps", "statefulsets", STR("StatefulSet"));
}

static void map_revision(struct controller *c, const struct store_event *e)
{
    controller_map_owner(c, e, STR("StatefulSet"));
}

static const struct controller_source SOURCES[] = {{"apps", "statefulsets", controller_map_self},
                                                   {"", "pods", map_pod},
                                                   {"apps", "controllerrevisions", map_revision},
                                                   {NULL, NULL, NULL}};

const struct controller_def STATEFUL_SET_CONTROLLER = {
    .name = "statefulset-controller",
    .account = "statefulset-controller",
    .retries = "StatefulSet",
    .sources = SOURCES,
    .reconcile = sts_reconcile,
};
