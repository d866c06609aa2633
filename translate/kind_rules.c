/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of each configured kind, and those that are a table alone. */

#include "kind_impl.h"

/* The status stays with the tenant's own disruption controller: evictions in the virtual cluster go
 * by it. On the host the budget is the host's to apply to drains of its nodes. */
static const struct kind_rule DISRUPTION_BUDGET[] = {
    {"spec.minAvailable", KIND_KEEP},
    {"spec.maxUnavailable", KIND_KEEP},
    {"spec.unhealthyPodEvictionPolicy", KIND_KEEP},
    {"spec.selector", KIND_SELECTOR},
    {0},
};

const struct kind_rules TRANSLATE_RULES_DISRUPTION_BUDGET = {.api_version = "policy/v1",
                                                             .kind = "PodDisruptionBudget",
                                                             .group = "policy",
                                                             .plural = "poddisruptionbudgets",
                                                             .down = DISRUPTION_BUDGET};

const struct kind_rules *translate_kind_rules(enum sync_down kind)
{
    static const struct kind_rules *const rules[N_SYNC_DOWN] = {
        [DOWN_NETWORK_POLICIES] = &TRANSLATE_RULES_NETWORK_POLICY,
        [DOWN_INGRESSES] = &TRANSLATE_RULES_INGRESS,
        [DOWN_DISRUPTION_BUDGETS] = &TRANSLATE_RULES_DISRUPTION_BUDGET,
        [DOWN_ENDPOINT_SLICES] = &TRANSLATE_RULES_ENDPOINT_SLICE,
        [DOWN_GATEWAYS] = &TRANSLATE_RULES_GATEWAY,
        [DOWN_HTTP_ROUTES] = &TRANSLATE_RULES_HTTP_ROUTE,
        [DOWN_GRPC_ROUTES] = &TRANSLATE_RULES_GRPC_ROUTE,
        [DOWN_TLS_ROUTES] = &TRANSLATE_RULES_TLS_ROUTE,
        [DOWN_BACKEND_TLS] = &TRANSLATE_RULES_BACKEND_TLS,
        [DOWN_RESOURCE_CLAIMS] = &TRANSLATE_RULES_RESOURCE_CLAIM,
        [DOWN_SERVICE_ACCOUNTS] = &TRANSLATE_RULES_SERVICE_ACCOUNT,
        [DOWN_STORAGE_CLASSES] = &TRANSLATE_RULES_STORAGE_CLASS,
        [DOWN_VOLUMES] = &TRANSLATE_RULES_VOLUME,
    };

    return rules[kind];
}
