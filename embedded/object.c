/* SPDX-License-Identifier: Apache-2.0 */
/* Values that several parts read from objects and from the store. Must never write, and never
 * depend on a part. */
#include "object.h"

#include <assert.h>

const struct resource *embedded_resource(struct vapi *api, const char *group, const char *plural)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(api), str_c(group), str_c(plural));

    assert(r); /* built-in kinds only */
    return r;
}

cJSON *embedded_read(struct vapi *api, struct arena *a, const struct resource *r, struct str ns,
                     struct str name)
{
    const struct store_object *o = store_get(vapi_store(api), r->storage, ns, name);

    return o ? vapi_tree(a, o) : NULL;
}

bool embedded_node_is_down(const cJSON *node)
{
    return str_eqc(meta_annotation(node, HINT_NODE), "down") ||
           str_eqc(meta_label(node, HINT_NODE), "down");
}

static struct str stored_field(const struct store_object *o, struct str key)
{
    struct str value;

    return labels_get(o->fields, key, &value) ? value : STR_NULL;
}

struct str embedded_pod_node(const struct store_object *pod)
{
    return stored_field(pod, STR("spec.nodeName"));
}

struct str embedded_pod_phase(const struct store_object *pod)
{
    return stored_field(pod, STR("status.phase"));
}

struct on_node {
    struct controller *controller;
    struct str node;
};

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct on_node *s = ctx;

    if (str_eq(embedded_pod_node(o), s->node))
        controller_add_name(s->controller, o->ns, o->name);
    return true;
}

void embedded_add_pods_of_node(struct controller *c, struct str node)
{
    struct vapi *api = controller_api(c);
    struct on_node s = {c, node};
    int failed = store_scan(vapi_store(api), embedded_resource(api, "", "pods")->storage, STR_NULL,
                            STR_NULL, STR_NULL, 0, on_pod, &s, NULL);

    assert(!failed); /* a scan of the current state cannot fail */
}
