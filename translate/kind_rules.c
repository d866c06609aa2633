/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of each configured kind, and those that are a table alone. */

#include "kind_impl.h"

#include <sublet/object.h>

/* The status stays with the tenant's own disruption controller: evictions in the virtual cluster go
 * by it. On the host the budget is the host's to apply to drains of its nodes, and there pods have
 * no controller, from whose scale the host's disruption controller could count maxUnavailable or a
 * percentage: it expects no pods and permits no eviction, ever (getExpectedScale() in upstream's
 * pkg/controller/disruption). Only an integer minAvailable is judged by the pods themselves. */
static const struct kind_rule DISRUPTION_BUDGET[] = {
    {"spec.minAvailable", KIND_KEEP},
    {"spec.maxUnavailable", KIND_KEEP},
    {"spec.unhealthyPodEvictionPolicy", KIND_KEEP},
    {"spec.selector", KIND_SELECTOR},
    {0},
};

/* The controller could not count, and left the figures of before. */
static bool has_failed(const cJSON *v)
{
    const cJSON *allowed = condition_get(json_path(v, "status.conditions"), "DisruptionAllowed");

    return str_eqc(json_str(json_get(allowed, "reason")), "SyncFailed");
}

/* How many pods have to be healthy, as the tenant's disruption controller counted from the scales
 * of their controllers; -1: not known for this spec. Where it expects no pods, it permits no
 * eviction either. */
static int64_t counted(const cJSON *v)
{
    int64_t desired = json_i64_at(v, "status.desiredHealthy", -1);

    if (has_failed(v) ||
        json_i64_at(v, "status.observedGeneration", -1) !=
            json_i64_at(v, "metadata.generation", 0) ||
        json_i64_at(v, "status.expectedPods", 0) <= 0 || desired < 0 || desired > INT32_MAX)
        return -1;
    return desired;
}

static void settle_budget(const struct kind_call *c, cJSON *host)
{
    cJSON *spec = json_get(host, "spec");
    const cJSON *least = json_get(spec, "minAvailable");
    int64_t desired = counted(c->object);

    if ((!least && !json_get(spec, "maxUnavailable")) || json_is_number(least))
        return;
    json_remove(spec, "minAvailable");
    json_remove(spec, "maxUnavailable");
    json_set_i64(c->arena, spec, desired < 0 ? "maxUnavailable" : "minAvailable",
                 desired < 0 ? 0 : desired);
}

const struct kind_rules TRANSLATE_RULES_DISRUPTION_BUDGET = {.api_version = "policy/v1",
                                                             .kind = "PodDisruptionBudget",
                                                             .group = "policy",
                                                             .plural = "poddisruptionbudgets",
                                                             .down = DISRUPTION_BUDGET,
                                                             .finish = settle_budget};

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
