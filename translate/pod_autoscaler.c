/* SPDX-License-Identifier: Apache-2.0 */
/* An annotation of host pods for the host's cluster-autoscaler. Why: host pods have no controller,
 * and it keeps each node that has a pod without one. So the pod is judged here, by its controller
 * in the virtual cluster and the autoscaler's own rules (cluster-autoscaler/FAQ.md, "What types of
 * pods can prevent CA from removing a node?"; simulator/drainability). Budgets it reads by itself.
 * Must never mark a pod that the autoscaler would keep in a cluster of the tenant's own. */

#include "pod_marks.h"
#include "shape.h"

#include <sublet/object.h>

/* Controllers that make a pod again elsewhere. It does not trust others
 * (--skip-nodes-with-custom-controller-pods). Pods that are marked as a DaemonSet's
 * (daemonset-pod) it expects on each node that it might add, which would give a tenant a say in the
 * size of the host. Unmarked, they keep their nodes. */
static const struct {
    const char *kind, *api_version;
} CONTROLLERS[] = {
    {"ReplicaSet", "apps/v1"},
    {"StatefulSet", "apps/v1"},
    {"Job", "batch/v1"},
    {"ReplicationController", "v1"},
};

static bool is_made_again(const cJSON *pod)
{
    const cJSON *owner = owner_controller(pod);
    bool found = false;

    for (size_t i = 0; i < COUNT(CONTROLLERS); i++)
        found |= str_eqc(json_str(json_get(owner, "kind")), CONTROLLERS[i].kind) &&
                 str_eqc(json_str(json_get(owner, "apiVersion")), CONTROLLERS[i].api_version);
    return found;
}

/* Data that are gone with the machine; memory counts as lost with the pod. */
static bool has_local_storage(const cJSON *spec)
{
    json_each(volume, json_get(spec, "volumes"))
    {
        const cJSON *empty = json_get(volume, "emptyDir");

        if (json_get(volume, "hostPath") ||
            (empty && !str_eqc(json_str(json_get(empty, "medium")), "Memory")))
            return true;
    }
    return false;
}

void translate_pod_autoscaler_down(struct down *d, cJSON *notes)
{
    struct str owned = json_str(json_get(notes, ANNOTATION_OWNED));

    if (json_get(notes, AUTOSCALER_SAFE)) /* the tenant's, by policy.annotations.allow */
        return;
    if (!is_made_again(d->object) || str_eqc(d->ns, "kube-system") || has_local_storage(d->spec))
        return;
    json_set_str(
        d->arena, notes, ANNOTATION_OWNED,
        arena_printf(d->arena, "%.*s%sa:" AUTOSCALER_SAFE, STR_F(owned), owned.n ? "," : ""));
    json_set_str(d->arena, notes, AUTOSCALER_SAFE, STR("true"));
}

const cJSON *translate_pod_autoscaler_kept(struct arena *a, const cJSON *host_now,
                                           const cJSON *host_wanted)
{
    const cJSON *now = json_get(json_path(host_now, "metadata.annotations"), AUTOSCALER_SAFE);
    const cJSON *ours = json_get(json_path(host_wanted, "metadata.annotations"), AUTOSCALER_SAFE);
    cJSON *copy;

    if (!now || !str_eqc(json_str(ours), "true") || json_equal(now, ours))
        return host_wanted;
    copy = json_copy(a, host_wanted);
    json_set(a, json_path(copy, "metadata.annotations"), AUTOSCALER_SAFE, json_copy(a, now));
    return copy;
}
