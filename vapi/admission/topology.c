/* SPDX-License-Identifier: Apache-2.0 */
/* PodTopologyLabels: a pod created on a node, and a Binding, which passes them on, get the node's
 * zone and region as labels, where the downward API exposes them. Source:
 * plugin/pkg/admission/podtopologylabels. */
#include "plugins.h"

static const char *const LABELS[] = {"topology.kubernetes.io/zone",
                                     "topology.kubernetes.io/region"};

int topology_labels_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err)
{
    bool binds = c->apart && str_eqc(c->subresource, "binding");
    struct str node = json_str_at(object, binds ? "target.name" : "spec.nodeName");
    const struct store_object *o;

    (void)old;
    (void)err;
    if (!object || !plugin_admits(c, "", "pods") || !node.n || !(binds || plugin_is_new_pod(c)))
        return 0;
    o = plugin_stored(c, "", "nodes", STR(""), node);
    if (!o || !str_contains(o->bytes, STR("\"topology.kubernetes.io/")))
        return 0;
    const cJSON *labels = json_path(vapi_tree(c->arena, o), "metadata.labels");
    for (size_t i = 0; i < COUNT(LABELS); i++) {
        const cJSON *value = json_get(labels, LABELS[i]);

        if (value)
            json_set_str(c->arena, json_ensure_path(c->arena, object, "metadata.labels"), LABELS[i],
                         json_str(value));
    }
    return 0;
}
