/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes the pods of a DaemonSet run on: node selector, required affinity and taints,
 * as the scheduler would. Must stay pure: trees in, answers out. */
#include "daemonset_nodes.h"

#include <sublet/json_build.h>

/* --- selector and affinity --- */

static bool compare_numbers(const cJSON *values, struct str value, bool greater)
{
    int64_t wanted, has;

    if (json_count(values) != 1 || !str_to_i64(json_str(json_at(values, 0)), &wanted) ||
        !str_to_i64(value, &has))
        return false;
    return greater ? has > wanted : has < wanted;
}

/* value.p NULL: the label is absent. */
static bool requirement_holds(const cJSON *requirement, struct str value)
{
    struct str op = json_str_at(requirement, "operator");
    const cJSON *values = json_get(requirement, "values");
    bool has = value.p != NULL;

    if (str_eqc(op, "In"))
        return has && json_list_has(values, value);
    if (str_eqc(op, "NotIn"))
        return !has || !json_list_has(values, value);
    if (str_eqc(op, "Exists"))
        return has;
    if (str_eqc(op, "DoesNotExist"))
        return !has;
    if (str_eqc(op, "Gt") || str_eqc(op, "Lt"))
        return has && compare_numbers(values, value, str_eqc(op, "Gt"));
    return false;
}

static bool term_holds(const cJSON *term, const cJSON *node)
{
    const cJSON *labels = json_path(node, "metadata.labels");
    const cJSON *expressions = json_get(term, "matchExpressions");
    const cJSON *fields = json_get(term, "matchFields");

    if (!json_count(expressions) && !json_count(fields))
        return false;
    json_each(e, expressions)
    {
        if (!requirement_holds(e, json_str(json_get_str(labels, json_str_at(e, "key")))))
            return false;
    }
    json_each(f, fields)
    {
        if (!str_eqc(json_str_at(f, "key"), "metadata.name") ||
            !requirement_holds(f, meta_name(node)))
            return false;
    }
    return true;
}

static const cJSON *required_of(const cJSON *pod)
{
    return json_path(pod,
                     "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution");
}

static bool is_chosen(const cJSON *pod, const cJSON *node)
{
    const cJSON *required = required_of(pod);
    struct str name = json_str_at(pod, "spec.nodeName");

    if (name.n && !str_eq(name, meta_name(node)))
        return false;
    if (!labels_cover(json_path(pod, "spec.nodeSelector"), json_path(node, "metadata.labels")))
        return false;
    if (!required)
        return true;
    json_each(term, json_get(required, "nodeSelectorTerms"))
    {
        if (term_holds(term, node))
            return true;
    }
    return false;
}

/* --- taints --- */

void ds_node_fits(const cJSON *pod, const cJSON *node, bool *ret_run, bool *ret_stay)
{
    *ret_run = *ret_stay = is_chosen(pod, node);
    if (!*ret_run)
        return;
    json_each(taint, json_path(node, "spec.taints"))
    {
        struct str effect = json_str_at(taint, "effect");
        bool evicts = str_eqc(effect, "NoExecute");

        if ((!evicts && !str_eqc(effect, "NoSchedule")) ||
            toleration_find(json_path(pod, "spec.tolerations"), taint))
            continue;
        *ret_run = false;
        if (evicts)
            *ret_stay = false;
    }
}

/* --- the pod --- */

static const struct {
    const char *key, *effect;
    bool host_network; /* only for pods that have it */
} AUTOMATIC[] = {
    {"node.kubernetes.io/not-ready", "NoExecute", false},
    {"node.kubernetes.io/unreachable", "NoExecute", false},
    {"node.kubernetes.io/disk-pressure", "NoSchedule", false},
    {"node.kubernetes.io/memory-pressure", "NoSchedule", false},
    {"node.kubernetes.io/pid-pressure", "NoSchedule", false},
    {"node.kubernetes.io/unschedulable", "NoSchedule", false},
    {"node.kubernetes.io/network-unavailable", "NoSchedule", true},
};

/* A toleration equal in key, effect, operator and value is not repeated. */
static cJSON *same_toleration(cJSON *list, const char *key, const char *effect)
{
    json_each(t, list)
    {
        if (str_eqc(json_str_at(t, "key"), key) && str_eqc(json_str_at(t, "effect"), effect) &&
            str_eqc(json_str_at(t, "operator"), "Exists") && !json_str_at(t, "value").n)
            return t;
    }
    return NULL;
}

void ds_tolerate(struct arena *a, cJSON *pod)
{
    cJSON *spec = json_ensure_object(a, pod, "spec"), *list = json_get(spec, "tolerations");
    bool host_network = json_true(json_get(spec, "hostNetwork"));

    if (!json_is_array(list))
        list = json_set(a, spec, "tolerations", json_new_array(a));
    for (size_t i = 0; i < COUNT(AUTOMATIC); i++) {
        if (AUTOMATIC[i].host_network && !host_network)
            continue;
        cJSON *t = same_toleration(list, AUTOMATIC[i].key, AUTOMATIC[i].effect);

        if (!t)
            t = json_append(list, json_new_object(a));
        json_put(a, t, JSON("key", AUTOMATIC[i].key), JSON("operator", "Exists"),
                 JSON("effect", AUTOMATIC[i].effect));
        json_remove(t, "tolerationSeconds");
    }
}

void ds_bind(struct arena *a, cJSON *pod, struct str node)
{
    cJSON *required = json_ensure_path(a, pod,
                                       "spec.affinity.nodeAffinity."
                                       "requiredDuringSchedulingIgnoredDuringExecution");
    cJSON *terms = json_get(required, "nodeSelectorTerms");

    if (!json_is_array(terms))
        terms = json_set(a, required, "nodeSelectorTerms", json_new_array(a));
    if (!json_count(terms))
        json_append(terms, json_new_object(a));
    json_each(term, terms)
    {
        cJSON *values = json_array(a, json_new_string(a, node));

        json_set(a, term, "matchFields",
                 json_array(a, json_object(a, JSON("key", "metadata.name"), JSON("operator", "In"),
                                           JSON("values", values))));
    }
}

struct str ds_node_of(const cJSON *pod)
{
    struct str name = json_str_at(pod, "spec.nodeName");

    if (name.n)
        return name;
    json_each(term, json_get(required_of(pod), "nodeSelectorTerms"))
    {
        json_each(f, json_get(term, "matchFields"))
        {
            if (str_eqc(json_str_at(f, "key"), "metadata.name") &&
                str_eqc(json_str_at(f, "operator"), "In") && json_count(json_get(f, "values")) == 1)
                return json_str(json_at(json_get(f, "values"), 0));
        }
    }
    return STR_NULL;
}
