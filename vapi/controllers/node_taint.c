/* SPDX-License-Identifier: Apache-2.0 */
/* Taints nodes by their conditions: taints with the effect NoSchedule follow the conditions and
 * spec.unschedulable, and the taint a node is created with is removed once it is ready. Eviction
 * from unreachable nodes is not done here. Beside upstream's manager, whose node controller is
 * disabled where nodes are mirrored from a host, only the taint of a created node is removed. Must
 * never touch a mirrored node: its taints are the host's. Source: doNoScheduleTaintingPass of
 * pkg/controller/nodelifecycle of Kubernetes 1.36. */
#include "util.h"

#include <sublet/json_build.h>

#define PREFIX "node.kubernetes.io/"
#define EFFECT "NoSchedule"

/* A taint is set while its condition has this status. */
static const struct rule {
    const char *condition, *status, *taint;
} RULES[] = {
    {"Ready", "False", PREFIX "not-ready"},
    {"Ready", "Unknown", PREFIX "unreachable"},
    {"MemoryPressure", "True", PREFIX "memory-pressure"},
    {"DiskPressure", "True", PREFIX "disk-pressure"},
    {"NetworkUnavailable", "True", PREFIX "network-unavailable"},
    {"PIDPressure", "True", PREFIX "pid-pressure"},
    {NULL, NULL, PREFIX "unschedulable"}, /* the taint of spec.unschedulable */
};
#define N_RULES   COUNT(RULES)
#define NOT_READY 0 /* set by admission on a created node */

static bool is_wanted(const cJSON *node, const struct rule *rule)
{
    if (!rule->condition)
        return json_true(json_path(node, "spec.unschedulable"));
    return str_eqc(json_str(json_get(condition_of(node, rule->condition), "status")), rule->status);
}

static const struct rule *rule_of(const cJSON *taint)
{
    for (size_t i = 0; i < N_RULES; i++) {
        if (str_eqc(json_str_at(taint, "effect"), EFFECT) &&
            str_eqc(json_str_at(taint, "key"), RULES[i].taint))
            return &RULES[i];
    }
    return NULL;
}

/* The correct taints; *ret_changed: the node's differ. */
static cJSON *wanted_taints(struct reconcile *r, const cJSON *node, bool *ret_changed)
{
    struct arena *a = reconcile_arena(r);
    cJSON *list = json_new_array(a);
    const cJSON *taints = json_path(node, "spec.taints");
    bool native = vapi_config(reconcile_api(r))->controllers_native;

    *ret_changed = false;
    json_each(t, taints)
    {
        const struct rule *rule = rule_of(t);

        if (!rule || is_wanted(node, rule) || !(native || rule == &RULES[NOT_READY]))
            json_append(list, json_copy(a, t));
        else
            *ret_changed = true;
    }
    for (size_t i = 0; native && i < N_RULES; i++) {
        if (!is_wanted(node, &RULES[i]) || taint_find(taints, RULES[i].taint, EFFECT))
            continue;
        json_append(list, json_object(a, JSON("key", RULES[i].taint), JSON("effect", EFFECT),
                                      JSON("timeAdded", time_format_s(a, reconcile_now_s(r)))));
        *ret_changed = true;
    }
    return list;
}

static void taint_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "", "nodes");
    struct arena *a = reconcile_arena(r);
    struct str ns, name;
    bool changed;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    const cJSON *node = reconcile_get(r, res, STR(""), name);
    if (!node || object_is_terminating(node))
        return;
    cJSON *taints = wanted_taints(r, node, &changed), *patch = json_new_object(a);
    if (!changed)
        return;
    json_set_str(a, json_ensure_object(a, patch, "metadata"), "resourceVersion",
                 json_str_at(node, "metadata.resourceVersion"));
    json_set(a, json_ensure_object(a, patch, "spec"), "taints",
             json_first(taints) ? taints : json_new_null(a));
    reconcile_patch(r, res, STR_NULL, STR(""), name, patch);
}

static void map_node(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED &&
        !str_contains(e->object->bytes, STR("\"" ANNOTATION_HOST_UID "\"")))
        controller_map_self(c, e);
}

static const struct controller_source SOURCES[] = {
    {"", "nodes", map_node},
    {NULL, NULL, NULL},
};

const struct controller_def NODE_TAINT_CONTROLLER = {
    .name = "node-controller",
    .sources = SOURCES,
    .reconcile = taint_reconcile,
};
