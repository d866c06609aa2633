/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and defaults of nodes. TaintNodesByCondition: a node is created not ready, so that no pod
 * is scheduled to it before a controller that watches its conditions (the controllers'
 * node_taint.c, or upstream's manager) removes the taint. Must not change nodes the syncer mirrors:
 * their taints are the host's. NodeDeclaredFeatureValidator: a change of a running pod needs a
 * kubelet with the feature. Source: plugin/pkg/admission/{nodetaint,nodedeclaredfeatures},
 * k8s.io/component-helpers/nodedeclaredfeatures. */
#include "plugins.h"

#include <sublet/object.h>

/* --- TaintNodesByCondition --- */

#define NOT_READY "node.kubernetes.io/not-ready"

int node_taint_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                     struct err *err)
{
    cJSON *spec, *list, *taint;

    (void)old;
    (void)err;
    if (!object || !plugin_is_create(c) || c->subresource.n || !plugin_admits(c, "", "nodes") ||
        c->user->groups == USER_INTERNAL.groups)
        return 0;
    spec = json_ensure_object(c->arena, object, "spec");
    list = json_get(spec, "taints");
    if (taint_find(list, NOT_READY, "NoSchedule"))
        return 0;
    if (!json_is_array(list))
        list = json_set(c->arena, spec, "taints", json_new_array(c->arena));
    taint = json_append(list, json_new_object(c->arena));
    json_set_str(c->arena, taint, "key", STR(NOT_READY));
    json_set_str(c->arena, taint, "effect", STR("NoSchedule"));
    return 0;
}

/* --- NodeDeclaredFeatureValidator --- */

static const cJSON *spec_of(const cJSON *pod, const char *key)
{
    return json_get(json_get(pod, "spec"), key);
}

static bool pod_level_changed(const cJSON *pod, const cJSON *old)
{
    return !json_equal(spec_of(pod, "resources"), spec_of(old, "resources"));
}

/* Sidecars are resized like any other container. */
static bool init_changed(const cJSON *pod, const cJSON *old)
{
    const cJSON *now = json_first(spec_of(pod, "initContainers"));

    json_each(before, spec_of(old, "initContainers"))
    {
        if (now && !str_eqc(json_str_at(before, "restartPolicy"), "Always") &&
            !json_equal(json_get(before, "resources"), json_get(now, "resources")))
            return true;
        now = now ? now->next : NULL;
    }
    return false;
}

/* Features a kubelet needs for an update. */
static const struct feature {
    const char *name;
    bool (*needed)(const cJSON *pod, const cJSON *old);
} FEATURES[] = {
    {"InPlacePodLevelResourcesVerticalScaling", pod_level_changed},
    {"InPlacePodVerticalScalingInitContainers", init_changed},
};

/* The next plug-in refuses an unknown node. */
int node_features_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                           struct err *err)
{
    struct str name = json_str_at(object, "spec.nodeName"), missing = STR("");
    const struct store_object *o;
    const cJSON *node;

    if (!object || !old || !plugin_admits(c, "", "pods") || !str_eqc(c->subresource, "resize") ||
        !name.n)
        return 0;
    o = plugin_stored(c, "", "nodes", STR(""), name);
    node = o ? vapi_tree(c->arena, o) : NULL;
    for (size_t i = 0; node && i < COUNT(FEATURES); i++) {
        if (FEATURES[i].needed(object, old) &&
            !json_list_has(json_path(node, "status.declaredFeatures"), str_c(FEATURES[i].name)))
            missing = arena_printf(c->arena, "%.*s%s%s", STR_F(missing), missing.n ? ", " : "",
                                   FEATURES[i].name);
    }
    if (!missing.n)
        return 0;
    return err_forbidden(err, STR(""), c->resource->plural, c->name,
                         "pod update requires features %.*s which are not available on node "
                         "\"%.*s\"",
                         STR_F(missing), STR_F(name));
}
