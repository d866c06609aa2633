/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets, PriorityClasses, RuntimeClasses, Leases: small kinds others obey. */
#include "cells.h"

/* ---- PodDisruptionBudget ---- */

static void budget_prepare_create(struct arena *a, cJSON *budget)
{
    set_status(a, budget,
               "{\"currentHealthy\":0,\"desiredHealthy\":0,\"disruptionsAllowed\":0,"
               "\"expectedPods\":0}");
}

const struct kind_ops POD_DISRUPTION_BUDGET_OPS = {
    .prepare_create = budget_prepare_create,
    .cells = cells_budget,
};

/* ---- PriorityClass ---- */

static void priority_defaults(struct arena *a, cJSON *class)
{
    static const struct default_rule rules[] = {
        SET_TEXT("preemptionPolicy", "PreemptLowerPriority")};

    defaults_apply(a, class, rules, COUNT(rules));
}

/* It never counts on: what it says cannot change. */
static void priority_prepare_create(struct arena *a, cJSON *class)
{
    json_set_i64(a, json_ensure_object(a, class, "metadata"), "generation", 1);
}

const struct kind_ops PRIORITY_CLASS_OPS = {
    .defaults = priority_defaults,
    .prepare_create = priority_prepare_create,
    .cells = cells_priority_class,
};

/* ---- RuntimeClass, Lease ---- */

const struct kind_ops RUNTIME_CLASS_OPS = {
    .cells = cells_runtime_class,
};

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

const struct kind_ops LEASE_OPS = {
    .prepare_create = lease_prepare_create,
    .prepare_update = lease_prepare_update,
    .cells = cells_lease,
};
