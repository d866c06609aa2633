/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler and the kubelet of a model of a host. Must never store anything itself. */
#include "kubelet.h"

void kubelet_run_pod(struct arena *a, cJSON *pod, unsigned long long revision)
{
    cJSON *status = json_ensure_object(a, pod, "status"), *one;

    json_set_str(a, status, "phase", STR("Running"));
    json_set_str(a, status, "podIP", arena_printf(a, "10.1.0.%llu", revision % 250));
    json_set_str(a, status, "startTime", STR("2026-01-01T00:00:00Z"));
    one = json_append(json_set(a, status, "conditions", json_new_array(a)), json_new_object(a));
    json_set_str(a, one, "type", STR("Ready"));
    json_set_str(a, one, "status", STR("True"));
}

struct str scheduler_pinned_node(const cJSON *spec)
{
    const cJSON *terms = json_path(spec, "affinity.nodeAffinity."
                                         "requiredDuringSchedulingIgnoredDuringExecution."
                                         "nodeSelectorTerms");
    const cJSON *field = json_first(json_get(json_first(terms), "matchFields"));

    return json_str(json_first(json_get(field, "values")));
}
