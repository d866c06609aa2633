/* SPDX-License-Identifier: Apache-2.0 */
/* A discovery document of an extension API server, in the form of aggregated discovery. Must never
 * take longer than in proportion to the document: a metrics adapter names thousands of metrics, and
 * a hostile server as many as fit. Source: apiserver pkg/endpoints/installer.go
 * (ConvertGroupVersionIntoToDiscovery). */
#include "extension.h"

#include <sublet/hash.h>
#include <sublet/json_build.h>

static cJSON *response_kind(struct arena *a, const cJSON *resource)
{
    return json_object(a, JSON("group", json_str(json_get(resource, "group"))),
                       JSON("version", json_str(json_get(resource, "version"))),
                       JSON("kind", json_str(json_get(resource, "kind"))));
}

/* Its strings alone: everything that is kept can be encoded in every form. */
static void take_list(struct arena *a, cJSON *into, const cJSON *resource, const char *key)
{
    const cJSON *list = json_get(resource, key);
    cJSON *taken;

    if (!json_is_array(list))
        return;
    taken = json_set(a, into, key, json_new_array(a));
    json_each(item, list)
    {
        if (json_is_string(item))
            json_append(taken, json_new_string(a, json_str(item)));
    }
}

static cJSON *resource_of(struct arena *a, const cJSON *resource)
{
    bool namespaced = json_true(json_get(resource, "namespaced"));
    cJSON *ret =
        json_object(a, JSON("resource", json_str(json_get(resource, "name"))),
                    JSON("responseKind", response_kind(a, resource)),
                    JSON("scope", namespaced ? "Namespaced" : "Cluster"),
                    JSON("singularResource", json_str(json_get(resource, "singularName"))));

    take_list(a, ret, resource, "verbs");
    take_list(a, ret, resource, "shortNames");
    take_list(a, ret, resource, "categories");
    return ret;
}

struct parent {
    struct map_entry entry; /* by the name of the resource */
    cJSON *item, *subresources;
};

/* The first of that name. */
static void add_parent(struct arena *a, struct map *parents, struct str name, cJSON *item)
{
    struct parent *p;

    if (map_get(parents, name))
        return;
    p = ARENA_NEW(a, struct parent);
    *p = (struct parent){.item = item};
    map_put(parents, &p->entry, name);
}

/* The item of a resource; one that has subresources only is made for them. */
static struct parent *parent_of(struct arena *a, cJSON *resources, struct map *parents,
                                const cJSON *sub, struct str name)
{
    bool namespaced = json_true(json_get(sub, "namespaced"));

    if (!map_get(parents, name))
        add_parent(
            a, parents, name,
            json_append(resources, json_object(a, JSON("resource", name),
                                               JSON("scope", namespaced ? "Namespaced" : "Cluster"),
                                               JSON("responseKind", response_kind(a, NULL)),
                                               JSON("singularResource", ""),
                                               JSON("verbs", json_new_null(a)))));
    return (struct parent *)map_get(parents, name);
}

static void add_subresource(struct arena *a, cJSON *resources, struct map *parents,
                            const cJSON *sub)
{
    struct str rest = json_str(json_get(sub, "name")), name = str_cut(&rest, '/');
    struct parent *parent = parent_of(a, resources, parents, sub, name);
    cJSON *item =
        json_object(a, JSON("subresource", rest), JSON("responseKind", response_kind(a, sub)));

    if (!parent->subresources)
        parent->subresources = json_set(a, parent->item, "subresources", json_new_array(a));
    take_list(a, item, sub, "verbs");
    json_append(parent->subresources, item);
}

cJSON *extension_resources(struct arena *a, struct str list)
{
    cJSON *tree, *ret = json_new_array(a);
    struct map parents = {0};
    struct err ignored;

    err_init(&ignored, a);
    if (json_parse(a, list, &tree, &ignored) || !json_is_object(tree) ||
        !str_eqc(json_str(json_get(tree, "kind")), "APIResourceList"))
        return NULL;
    for (int subs = 0; subs < 2; subs++) {
        json_each(resource, json_get(tree, "resources"))
        {
            struct str name = json_str(json_get(resource, "name"));

            if (!name.n || (str_find(name, '/') < name.n) != (subs == 1))
                continue;
            if (subs)
                add_subresource(a, ret, &parents, resource);
            else
                add_parent(a, &parents, name, json_append(ret, resource_of(a, resource)));
        }
    }
    map_clear(&parents);
    return ret;
}
