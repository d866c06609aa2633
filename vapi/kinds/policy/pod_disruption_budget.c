/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets. Source: pkg/apis/policy/validation. */
#include "../rules/kind.h"

static const struct rule BUDGET_RULES[] = {
    WHEN_ALL("spec", NAMES("minAvailable", "maxUnavailable"),
             INVALID(NULL, "minAvailable and maxUnavailable cannot be both set")),
    INT_OR_PERCENT("spec.minAvailable"),
    AT_MOST_100_PERCENT("spec.minAvailable"),
    INT_OR_PERCENT("spec.maxUnavailable"),
    AT_MOST_100_PERCENT("spec.maxUnavailable"),
    LABEL_SELECTOR("spec.selector"),
    ENUM_IF_GIVEN("spec.unhealthyPodEvictionPolicy", ENUM_UNHEALTHY_POD_EVICTION_POLICY_TYPE),
};

static const struct rule STATUS_RULES[] = {
    CONDITIONS("status.conditions"),
    NONNEGATIVES("status", "disruptionsAllowed", "currentHealthy", "desiredHealthy",
                 "expectedPods"),
};

static void cell_int_or_string(const struct row *r, const struct column *c)
{
    const cJSON *value = json_path(r->object, c->path);
    int64_t number;

    if (json_i64(value, &number))
        cell_text(r, arena_printf(r->a, "%lld", (long long)number));
    else
        cell_text(r, value ? json_str(value) : STR("N/A"));
}

/* ---- the kind ---- */

const struct kind KIND_POD_DISRUPTION_BUDGET = {
    RESOURCE("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"),
    .resource.short_names = NAMES("pdb"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE |
                      RES_ANY_FINALIZER | RES_SYSTEM_NAME | RES_META_LAST,
    COLUMNS(
        {"Min Available", "string", .cell = cell_int_or_string, .path = "spec.minAvailable"},
        {"Max Unavailable", "string", .cell = cell_int_or_string, .path = "spec.maxUnavailable"},
        {"Allowed Disruptions", "integer", .cell = show_number,
         .path = "status.disruptionsAllowed"},
        {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("PodDisruptionBudget")),
    .new_status = "{\"currentHealthy\":0,\"desiredHealthy\":0,\"disruptionsAllowed\":0,"
                  "\"expectedPods\":0}",
    .rules = RULES(BUDGET_RULES),
    .status_rules = RULES(STATUS_RULES),
};
