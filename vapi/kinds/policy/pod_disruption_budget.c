/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets. Source: pkg/apis/policy/validation. */
#include "../rules/kind.h"

static void budget_prepare_create(struct arena *a, cJSON *budget)
{
    set_status(a, budget,
               "{\"currentHealthy\":0,\"desiredHealthy\":0,\"disruptionsAllowed\":0,"
               "\"expectedPods\":0}");
}

static void budget_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"AlwaysAllow", "IfHealthyBudget", NULL};
    static const char *const amounts[] = {"minAvailable", "maxUnavailable"};
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    (void)old;
    if (given(spec, "minAvailable") && given(spec, "maxUnavailable"))
        field_invalid(e, p, spec, "minAvailable and maxUnavailable cannot be both set");
    for (size_t i = 0; i < COUNT(amounts); i++) {
        const cJSON *amount = given(spec, amounts[i]);

        if (!amount)
            continue;
        check_int_or_percent(e, FIELD(p, amounts[i]), amount);
        check_not_over_100(e, FIELD(p, amounts[i]), amount);
    }
    validate_label_selector(e, FIELD(p, "selector"), given(spec, "selector"));
    check_enum_if(e, FIELD(p, "unhealthyPodEvictionPolicy"),
                  given(spec, "unhealthyPodEvictionPolicy"), policies);
}

static void budget_validate_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const counts[] = {"disruptionsAllowed", "currentHealthy", "desiredHealthy",
                                         "expectedPods", NULL};
    const cJSON *status = json_get(object, "status");
    AT(p, NULL, "status");

    (void)old;
    validate_conditions(e, FIELD(p, "conditions"), json_get(status, "conditions"));
    check_all_nonnegative(e, p, status, counts);
}

static void cell_int_or_string(const struct row *r, const char *path)
{
    const cJSON *value = json_path(r->object, path);
    int64_t number;

    if (json_i64(value, &number))
        cell_text(r, arena_printf(r->a, "%lld", (long long)number));
    else
        cell_text(r, value ? json_str(value) : STR("N/A"));
}

static ROW_CELLS(cells_budget)
{
    struct row r = {a, object, now, cells};

    cell_int_or_string(&r, "spec.minAvailable");
    cell_int_or_string(&r, "spec.maxUnavailable");
    cell_number_at(&r, "status.disruptionsAllowed");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Min Available", "string", "", "", 0},
    {"Max Unavailable", "string", "", "", 0},
    {"Allowed Disruptions", "integer", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_POD_DISRUPTION_BUDGET = {
    .resource =
        {
            RESOURCE("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets",
                     "poddisruptionbudget"),
            .short_names = NAMES("pdb"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE |
                     RES_ANY_FINALIZER | RES_SYSTEM_NAME | RES_META_LAST,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("PodDisruptionBudget")),
        },
    .prepare_create = budget_prepare_create,
    .validate = budget_validate,
    .validate_status = budget_validate_status,
    .cells = cells_budget,
};
