/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which of a DaemonSet's pods are deleted, and where pods are created: one per node, or,
 * during a rolling update with maxSurge, an outdated pod and its replacement. Must never delete
 * more available pods than maxUnavailable allows. Source of the rules: pkg/controller/daemon
 * (update, manage) of Kubernetes 1.36. */
#include "daemonset.h"

#include <sublet/hash.h>

#define FAILURE_DELAY_MOST_S 900

void ds_bounds(struct ds *s)
{
    const cJSON *rolling = json_path(s->owner, "spec.updateStrategy.rollingUpdate");

    for (size_t i = 0; i < s->n_nodes; i++)
        s->desired += s->nodes[i].run;
    s->surge = controller_scaled_value(json_get(rolling, "maxSurge"), s->desired, true, 0);
    s->unavailable =
        controller_scaled_value(json_get(rolling, "maxUnavailable"), s->desired, true, 1);
    if (s->surge <= 0 && s->unavailable < 1)
        s->unavailable = 1; /* the update must be able to progress */
}

static bool surges(const struct ds *s)
{
    int64_t n = controller_scaled_value(
        json_path(s->owner, "spec.updateStrategy.rollingUpdate.maxSurge"), 100, true, 0);

    return n > 0;
}

/* --- independent of the update strategy --- */

/* Remaining backoff after failures of this set on this node; 0: none. An entry replaces the one it
 * collides with: losing one costs an extra pod, never memory. */
static int64_t failure_delay(struct ds *s, const cJSON *pod)
{
    struct ds_failures *all = controller_state(reconcile_controller(s->run));
    struct str node = ds_node_of(pod);
    uint64_t key = str_hash(node, str_hash(meta_uid(s->owner), hash_seed()));
    struct ds_failure *f = &all->slots[key % DS_FAILURES];
    int64_t now = reconcile_now_s(s->run), delay, left;

    if (f->key != key || now - f->last_s > 2 * FAILURE_DELAY_MOST_S)
        *f = (struct ds_failure){.key = key};
    delay = f->n ? INT64_C(1) << (f->n < 10 ? f->n - 1 : 10) : 0;
    delay = delay < FAILURE_DELAY_MOST_S ? delay : FAILURE_DELAY_MOST_S;
    left = f->last_s + delay - now;
    if (left > 0)
        return left;
    f->n++;
    f->last_s = now;
    return 0;
}

/* Deletes a finished pod to make room for another: at once, or, after repeated failures, with
 * backoff. True when it was deleted now. */
static bool drop_ended(struct ds *s, const cJSON *pod)
{
    bool failed = str_eqc(json_str_at(pod, "status.phase"), "Failed");
    int64_t wait = failed ? failure_delay(s, pod) : 0;

    if (wait) {
        reconcile_again_after(s->run, wait * 1000);
        return false;
    }
    reconcile_event(s->run, s->owner, failed ? "Warning" : "Normal",
                    failed ? "FailedDaemonPod" : "SucceededDaemonPod",
                    "Found %s daemon pod %.*s/%.*s on node %.*s, will try to %s it",
                    failed ? "failed" : "succeeded", STR_F(meta_ns(pod)), STR_F(meta_name(pod)),
                    STR_F(ds_node_of(pod)), failed ? "kill" : "delete");
    ds_drop(s, pod);
    return true;
}

/* Of several of a kind the oldest stays. */
static const cJSON *keep_oldest(struct ds *s, const cJSON *kept, const cJSON *pod)
{
    bool older = kept && meta_created_s(pod) < meta_created_s(kept);

    if (kept)
        ds_drop(s, older ? kept : pod);
    return !kept || older ? pod : kept;
}

/* Deletes an old pod when its replacement is available, or when it is unavailable itself. */
static void relieve(struct ds *s, const cJSON *old, const cJSON *new)
{
    if (old && new && (!pod_is_ready(old) || ds_is_available(s, new)))
        ds_drop(s, old);
}

void ds_tend(struct ds *s, struct ds_node *node)
{
    const cJSON *old = NULL, *new = NULL;
    bool surging = surges(s), waiting = false;

    for (size_t i = 0; i < node->n; i++) {
        cJSON *pod = node->pods[i];

        if (object_is_terminating(pod))
            continue;
        if (!node->stay)
            ds_drop(s, pod);
        else if (pod_is_finished(pod))
            waiting |= !drop_ended(s, pod);
        else if (surging && !ds_is_new(s, pod))
            old = keep_oldest(s, old, pod);
        else
            new = keep_oldest(s, new, pod);
    }
    relieve(s, old, new);
    /* Without surge a terminating pod still occupies its node. */
    if (node->run && (surging ? !old && !new && !waiting : !node->n))
        ds_make(s, node);
}

/* --- rolling without surge --- */

/* Old unavailable pods are deleted at once, available ones only as far as allowed. */
static void replace(struct ds *s)
{
    const cJSON **old = arena_alloc(reconcile_arena(s->run), (s->n_nodes + 1) * sizeof(*old));
    size_t n_old = 0;
    int64_t away = 0;

    for (size_t i = 0; i < s->n_nodes; i++) {
        const cJSON *pod = s->nodes[i].n == 1 ? s->nodes[i].pods[0] : NULL;

        if (!s->nodes[i].run)
            continue;
        if (!pod || !ds_is_available(s, pod)) {
            away++;
            if (pod && pod_is_active(pod) && !ds_is_new(s, pod))
                ds_drop(s, pod);
        } else if (!ds_is_new(s, pod)) {
            old[n_old++] = pod;
        }
    }
    for (size_t i = 0; i < n_old && away < s->unavailable; i++, away++)
        ds_drop(s, old[i]);
}

/* --- rolling with surge --- */

/* The old and the updated pod of a node that are not terminating; false when there are more. */
static bool pair_of(const struct ds *s, const struct ds_node *node, const cJSON **old,
                    const cJSON **new)
{
    *old = *new = NULL;
    for (size_t i = 0; i < node->n; i++) {
        const cJSON *pod = node->pods[i], **to = ds_is_new(s, pod) ? new : old;

        if (object_is_terminating(pod))
            continue;
        if (*to)
            return false;
        *to = pod;
    }
    return true;
}

static void surge(struct ds *s)
{
    struct ds_node **ready =
        arena_alloc(reconcile_arena(s->run), (s->n_nodes + 1) * sizeof(*ready));
    size_t n_ready = 0;
    int64_t under_way = 0;

    for (size_t i = 0; i < s->n_nodes; i++) {
        struct ds_node *node = &s->nodes[i];
        const cJSON *old, *new;

        if (!pair_of(s, node, &old, &new)) {
            under_way++; /* counted as in progress */
        } else if (old && new) {
            under_way += !ds_is_available(s, new);
        } else if (old && node->run) {
            /* Nothing is lost when the old pod is unavailable. */
            if (!ds_is_available(s, old))
                ds_make(s, node);
            else
                ready[n_ready++] = node;
        }
    }
    for (size_t i = 0; i < n_ready && under_way < s->surge; i++, under_way++)
        ds_make(s, ready[i]);
}

void ds_renew(struct ds *s)
{
    if (str_eqc(json_str_at(s->owner, "spec.updateStrategy.type"), "OnDelete"))
        return;
    if (surges(s))
        surge(s);
    else
        replace(s);
}
