/* SPDX-License-Identifier: Apache-2.0 */
/* Records in the status of ValidatingAdmissionPolicies which generation is in effect: here each, at
 * once. Must report no type warnings: expressions are not typed by the resources they are about.
 * MutatingAdmissionPolicies have no status. Source: pkg/controller/validatingadmissionpolicystatus
 * of Kubernetes 1.36. */
#include "util.h"

static void policy_reconcile(struct reconcile *r)
{
    const struct resource *res =
        reconcile_resource(r, "admissionregistration.k8s.io", "validatingadmissionpolicies");
    struct arena *a = reconcile_arena(r);
    struct str ns, name;
    int64_t generation;
    cJSON *policy, *status;

    if (!key_split(reconcile_key(r), &ns, &name) ||
        !(policy = reconcile_get(r, res, STR(""), name)))
        return;
    generation = json_i64_at(policy, "metadata.generation", 0);
    if (generation <= json_i64_at(policy, "status.observedGeneration", 0))
        return;
    status = json_ensure_object(a, policy, "status");
    json_set_i64(a, status, "observedGeneration", generation);
    json_set(a, status, "typeChecking", json_new_object(a));
    reconcile_update_status(r, res, policy);
}

static const struct controller_source SOURCES[] = {
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", controller_map_self},
    {NULL, NULL, NULL},
};

const struct controller_def POLICY_STATUS_CONTROLLER = {
    .name = "validatingadmissionpolicy-status-controller",
    .sources = SOURCES,
    .reconcile = policy_reconcile,
};
