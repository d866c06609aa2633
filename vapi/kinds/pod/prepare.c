/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod gets when it is created: a fresh status with its quality of service, and the label
 * keys its affinity names. Must not default anything: defaults.c does. Source:
 * pkg/registry/core/pod/strategy.go, pkg/apis/core/helper/qos. */
#include "parts.h"

#include <sublet/json_build.h>
#include <sublet/quantity.h>

/* ---- quality of service ---- */

enum { CPU, MEMORY, N_COMPUTE };
static const char *const COMPUTE[N_COMPUTE] = {"cpu", "memory"};

struct compute {
    struct quantity total[N_COMPUTE]; /* of what was said, when it is above 0 */
    bool said[N_COMPUTE];
};

/* Adds the positive quantities of a list; returns whether it had both. */
static bool add_list(struct compute *c, const cJSON *list)
{
    unsigned found = 0;

    for (size_t i = 0; i < N_COMPUTE; i++) {
        struct quantity q;

        if (!quantity_parse(json_str(json_get(list, COMPUTE[i])), &q) || q.nano <= 0)
            continue;
        c->total[i] = c->said[i] ? quantity_add(c->total[i], q) : q;
        c->said[i] = true;
        found++;
    }
    return found == N_COMPUTE;
}

static bool add_containers(struct compute *requests, struct compute *limits,
                           const cJSON *containers)
{
    bool all = true;

    json_each(c, containers)
    {
        const cJSON *resources = json_get(c, "resources");

        add_list(requests, json_get(resources, "requests"));
        all &= add_list(limits, json_get(resources, "limits"));
    }
    return all;
}

static bool same_amounts(const struct compute *requests, const struct compute *limits)
{
    for (size_t i = 0; i < N_COMPUTE; i++) {
        if (requests->said[i] != limits->said[i] ||
            (requests->said[i] && quantity_cmp(requests->total[i], limits->total[i]) != 0))
            return false;
    }
    return true;
}

struct str kinds_pod_qos(const cJSON *pod)
{
    const cJSON *spec = json_get(pod, "spec"), *resources = json_get(spec, "resources");
    struct compute requests = {0}, limits = {0};
    bool all;

    if (resources) {
        const cJSON *list = json_get(resources, "limits");

        add_list(&requests, json_get(resources, "requests"));
        all = !json_count(list) || add_list(&limits, list);
    } else {
        all = add_containers(&requests, &limits, json_get(spec, "containers"));
        all &= add_containers(&requests, &limits, json_get(spec, "initContainers"));
    }
    if (!requests.said[CPU] && !requests.said[MEMORY] && !limits.said[CPU] && !limits.said[MEMORY])
        return STR("BestEffort");
    return all && same_amounts(&requests, &limits) ? STR("Guaranteed") : STR("Burstable");
}

/* ---- label keys of affinity terms become requirements ---- */

static void add_requirements(struct arena *a, cJSON *selector, const cJSON *keys, const char *op,
                             const cJSON *labels)
{
    json_each(key, keys)
    {
        cJSON *value = json_get_str(labels, json_str(key)), *list, *term;

        if (!value)
            continue;
        list = json_get(selector, "matchExpressions");
        if (!list)
            list = json_set(a, selector, "matchExpressions", json_new_array(a));
        term = json_append(list, json_new_object(a));
        json_set_str(a, term, "key", json_str(key));
        json_set_str(a, term, "operator", str_c(op));
        list = json_set(a, term, "values", json_new_array(a));
        json_append(list, json_copy(a, value))->string = NULL;
    }
}

static void apply_label_keys(struct arena *a, cJSON *term, const cJSON *labels)
{
    cJSON *selector = json_get(term, "labelSelector");

    if (!json_is_object(selector)) /* matches nothing, whatever is added */
        return;
    add_requirements(a, selector, json_get(term, "matchLabelKeys"), "In", labels);
    add_requirements(a, selector, json_get(term, "mismatchLabelKeys"), "NotIn", labels);
}

static void prepare_affinity(struct arena *a, const cJSON *affinity, const cJSON *labels)
{
    json_each(term, json_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution"))
        apply_label_keys(a, json_get(term, "podAffinityTerm"), labels);
    json_each(term, json_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
        apply_label_keys(a, term, labels);
}

/* ---- create and update ---- */

void prepare_pod_create(struct arena *a, cJSON *pod)
{
    cJSON *spec = json_get(pod, "spec"), *status = json_set(a, pod, "status", json_new_object(a));
    const cJSON *labels = json_path(pod, "metadata.labels");

    json_set_str(a, status, "phase", STR("Pending"));
    json_set_str(a, status, "qosClass", kinds_pod_qos(pod));
    /* UpdatePodCondition sets the time; upstream's now is our creation. */
    if (json_count(json_get(spec, "schedulingGates"))) {
        cJSON *condition =
            json_object(a, JSON("lastProbeTime", json_new_null(a)),
                        JSON("lastTransitionTime", json_str_at(pod, "metadata.creationTimestamp")),
                        JSON("message", "Scheduling is blocked due to non-empty scheduling gates"),
                        JSON("reason", "SchedulingGated"), JSON("status", "False"),
                        JSON("type", "PodScheduled"));

        json_set(a, status, "conditions", json_array(a, condition));
    }
    kinds_pod_sync_app_armor(a, pod);
    prepare_affinity(a, json_path(spec, "affinity.podAffinity"), labels);
    prepare_affinity(a, json_path(spec, "affinity.podAntiAffinity"), labels);
    json_each(constraint, json_get(spec, "topologySpreadConstraints"))
        apply_label_keys(a, constraint, labels);
}
