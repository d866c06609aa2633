/* SPDX-License-Identifier: Apache-2.0 */
/* Values that several parts read from objects and from the store. Must never write, and never know
 * a part. */
#include "object.h"

#include <assert.h>

const struct resource *embedded_resource(struct vapi *api, const char *group, const char *plural)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(api), str_c(group), str_c(plural));

    assert(r); /* built-in kinds only */
    return r;
}

cJSON *read_object(struct vapi *api, struct arena *a, const struct resource *r, struct str ns,
                   struct str name)
{
    const struct store_object *o = store_get(vapi_store(api), r->storage, ns, name);

    return o ? vapi_tree(a, o) : NULL;
}

struct str annotation_of(const cJSON *object, const char *key)
{
    return json_str(json_get(json_path(object, "metadata.annotations"), key));
}

struct str object_ns(const cJSON *object)
{
    return json_str_at(object, "metadata.namespace");
}

struct str object_name(const cJSON *object)
{
    return json_str_at(object, "metadata.name");
}

struct str object_uid(const cJSON *object)
{
    return json_str_at(object, "metadata.uid");
}

int64_t time_of(const cJSON *object, const char *path)
{
    int64_t us;

    return time_parse(json_str_at(object, path), &us) ? us / 1000000 : 0;
}

bool node_is_down(const cJSON *node)
{
    return str_eqc(annotation_of(node, HINT_NODE), "down") ||
           str_eqc(json_str(json_get(json_path(node, "metadata.labels"), HINT_NODE)), "down");
}

static bool tolerates(const cJSON *toleration, const cJSON *taint)
{
    struct str key = json_str_at(toleration, "key"), effect = json_str_at(toleration, "effect");

    if (effect.n && !str_eq(effect, json_str_at(taint, "effect")))
        return false;
    if (key.n && !str_eq(key, json_str_at(taint, "key")))
        return false;
    if (str_eqc(json_str_at(toleration, "operator"), "Exists"))
        return true;
    return key.n && str_eq(json_str_at(toleration, "value"), json_str_at(taint, "value"));
}

const cJSON *toleration_of(const cJSON *pod, const cJSON *taint)
{
    json_each(t, json_path(pod, "spec.tolerations"))
    {
        if (tolerates(t, taint))
            return t;
    }
    return NULL;
}

static struct str stored_field(const struct store_object *o, struct str key)
{
    struct str value;

    return labels_get(o->fields, key, &value) ? value : STR_NULL;
}

struct str stored_node(const struct store_object *pod)
{
    return stored_field(pod, STR("spec.nodeName"));
}

struct str stored_phase(const struct store_object *pod)
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

    if (str_eq(stored_node(o), s->node))
        controller_add_name(s->controller, o->ns, o->name);
    return true;
}

void add_pods_of_node(struct controller *c, struct str node)
{
    struct vapi *api = controller_api(c);
    struct on_node s = {c, node};
    int failed = store_scan(vapi_store(api), embedded_resource(api, "", "pods")->storage, STR_NULL,
                            STR_NULL, STR_NULL, 0, on_pod, &s, NULL);

    assert(!failed); /* the present can always be read */
}
