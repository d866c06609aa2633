/* SPDX-License-Identifier: Apache-2.0 */
/* Leases. Source: pkg/apis/coordination/validation. */
#include "../rules/kind.h"

/* strategy and preferredHolder belong to a feature that is off upstream too. */
static void lease_prepare_update(struct arena *a, cJSON *lease, const cJSON *old)
{
    static const char *const fields[] = {"strategy", "preferredHolder"};

    (void)a;
    for (size_t i = 0; i < COUNT(fields); i++) {
        if (!json_get(json_get(old, "spec"), fields[i]))
            json_remove(json_get(lease, "spec"), fields[i]);
    }
}

static void lease_prepare_create(struct arena *a, cJSON *lease)
{
    lease_prepare_update(a, lease, NULL);
}

static const struct rule LEASE_RULES[] = {
    AT_LEAST("spec.leaseDurationSeconds", 1, "must be greater than 0"),
    NONNEGATIVE("spec.leaseTransitions"),
};

/* ---- the kind ---- */

const struct kind KIND_LEASE = {
    RESOURCE("coordination.k8s.io", "v1", "Lease", "leases", "lease"),
    .resource.flags =
        RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_CONDITIONAL_UPDATE | RES_ANY_FINALIZER,
    COLUMNS({"Holder", "string", .cell = show_text, .path = "spec.holderIdentity"},
            {"Age", "string", .cell = show_age}),
    .rules = RULES(LEASE_RULES),
    .prepare_create = lease_prepare_create,
    .prepare_update = lease_prepare_update,
};
