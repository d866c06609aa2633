/* SPDX-License-Identifier: Apache-2.0 */
/* Leases. Source: pkg/apis/coordination/validation. */
#include "../rules/kind.h"

/* strategy and preferredHolder belong to a feature that is off upstream too. */
static void lease_drop(cJSON *lease, const cJSON *old)
{
    static const char *const fields[] = {"strategy", "preferredHolder"};
    cJSON *spec = json_get(lease, "spec");

    for (size_t i = 0; spec && i < COUNT(fields); i++) {
        if (!json_get(json_get(old, "spec"), fields[i]))
            json_remove(spec, fields[i]);
    }
}

static void lease_prepare_create(struct arena *a, cJSON *lease)
{
    (void)a;
    lease_drop(lease, NULL);
}

static void lease_prepare_update(struct arena *a, cJSON *lease, const cJSON *old)
{
    (void)a;
    lease_drop(lease, old);
}

static void lease_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *seconds = given(spec, "leaseDurationSeconds");
    AT(p, NULL, "spec");

    (void)old;
    if (seconds && json_i64_at(spec, "leaseDurationSeconds", 0) <= 0)
        field_invalid(e, FIELD(p, "leaseDurationSeconds"), seconds, "must be greater than 0");
    if (given(spec, "leaseTransitions"))
        check_nonnegative(e, FIELD(p, "leaseTransitions"), given(spec, "leaseTransitions"));
}

static ROW_CELLS(cells_lease)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "spec.holderIdentity");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Holder", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_LEASE = {
    .resource =
        {
            RESOURCE("coordination.k8s.io", "v1", "Lease", "leases", "lease"),
            .verbs = VERBS_ALL,
            .flags =
                RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_CONDITIONAL_UPDATE | RES_ANY_FINALIZER,
            .columns = COLUMNS,
        },
    .validate = lease_validate,
    .prepare_create = lease_prepare_create,
    .prepare_update = lease_prepare_update,
    .cells = cells_lease,
};
