/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler and the kubelet of a model of a host. Must never store anything itself. */
#include "kubelet.h"

static cJSON *condition(const cJSON *pod, struct str type)
{
    json_each(one, json_path(pod, "status.conditions"))
    {
        if (str_eq(json_str(json_get(one, "type")), type))
            return one;
    }
    return NULL;
}

bool kubelet_judge_ready(struct arena *a, cJSON *pod)
{
    cJSON *status = json_ensure_object(a, pod, "status"), *ready = condition(pod, STR("Ready"));
    struct str is = STR("True");

    json_each(gate, json_path(pod, "spec.readinessGates"))
    {
        const cJSON *one = condition(pod, json_str(json_get(gate, "conditionType")));

        if (!str_eqc(json_str(json_get(one, "status")), "True"))
            is = STR("False");
    }
    if (ready && str_eq(json_str(json_get(ready, "status")), is))
        return false;
    if (!json_is_array(json_get(status, "conditions")))
        json_set(a, status, "conditions", json_new_array(a));
    if (!ready)
        ready = json_append(json_get(status, "conditions"), json_new_object(a));
    json_set_str(a, ready, "type", STR("Ready"));
    json_set_str(a, ready, "status", is);
    return true;
}

void kubelet_run_pod(struct arena *a, cJSON *pod, unsigned long long revision)
{
    cJSON *status = json_ensure_object(a, pod, "status");

    json_set_str(a, status, "phase", STR("Running"));
    json_set_str(a, status, "podIP", arena_printf(a, "10.1.0.%llu", revision % 250));
    json_set_str(a, status, "startTime", STR("2026-01-01T00:00:00Z"));
    kubelet_judge_ready(a, pod);
}

struct str scheduler_pinned_node(const cJSON *spec)
{
    const cJSON *terms = json_path(spec, "affinity.nodeAffinity."
                                         "requiredDuringSchedulingIgnoredDuringExecution."
                                         "nodeSelectorTerms");
    const cJSON *field = json_first(json_get(json_first(terms), "matchFields"));

    return json_str(json_first(json_get(field, "values")));
}
