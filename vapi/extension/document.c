/* SPDX-License-Identifier: Apache-2.0 */
/* What extension API servers said that they serve, as of the last check of each: the aggregated
 * discovery is answered from it, without a call. Bounded in all; a document beyond the bound is as
 * if the server had not answered. Source: apiserver pkg/endpoints/installer.go
 * (ConvertGroupVersionIntoToDiscovery). */
#include "extension.h"

#include <assert.h>

#include <sublet/json_build.h>

struct extension_document {
    LIST_ENTRY(extension_document) place;
    char *name, *uid;
    struct str text; /* owned; p == NULL: it never answered */
    bool stale;
};

/* --- the form --- */

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

/* The item of a resource; one that has subresources only is made for them. */
static cJSON *parent_of(struct arena *a, cJSON *resources, const cJSON *sub, struct str name)
{
    json_each(item, resources)
    {
        if (str_eq(json_str(json_get(item, "resource")), name))
            return item;
    }
    return json_append(
        resources, json_object(a, JSON("resource", name),
                               JSON("scope", json_true(json_get(sub, "namespaced")) ? "Namespaced"
                                                                                    : "Cluster"),
                               JSON("responseKind", response_kind(a, NULL)),
                               JSON("singularResource", ""), JSON("verbs", json_new_null(a))));
}

static void add_subresource(struct arena *a, cJSON *resources, const cJSON *sub)
{
    struct str rest = json_str(json_get(sub, "name")), name = str_cut(&rest, '/');
    cJSON *parent = parent_of(a, resources, sub, name);
    cJSON *list = json_get(parent, "subresources"), *item;

    if (!list)
        list = json_set(a, parent, "subresources", json_new_array(a));
    item = json_object(a, JSON("subresource", rest), JSON("responseKind", response_kind(a, sub)));
    take_list(a, item, sub, "verbs");
    json_append(list, item);
}

cJSON *extension_resources(struct arena *a, struct str list)
{
    cJSON *tree, *ret = json_new_array(a);
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
                add_subresource(a, ret, resource);
            else
                json_append(ret, resource_of(a, resource));
        }
    }
    return ret;
}

/* --- keeping --- */

static void document_drop(struct extensions *all, struct extension_document *d)
{
    all->kept -= d->text.n;
    mem_free(d->text.p);
    d->text = STR_NULL;
}

static void document_free(struct extensions *all, struct extension_document *d)
{
    LIST_REMOVE(d, place);
    document_drop(all, d);
    mem_free(d->name);
    mem_free(d->uid);
    mem_free(d);
}

static struct extension_document *document_of(struct vapi *api, struct str name)
{
    struct extension_document *d;

    if (!api->extensions)
        return NULL;
    LIST_FOREACH(d, &api->extensions->documents, place)
    {
        if (str_eqc(name, d->name))
            return d;
    }
    return NULL;
}

void extension_forget(struct vapi *api, struct str name)
{
    struct extension_document *d = document_of(api, name);

    if (d)
        document_free(api->extensions, d);
}

static void document_set(struct extensions *all, struct extension_document *d, struct str text)
{
    if (str_eq(d->text, text))
        return;
    document_drop(all, d);
    if (text.n > EXTENSION_MOST_KEPT || all->kept + text.n > EXTENSION_MOST_KEPT_ALL) {
        d->stale = true;
        return;
    }
    d->text = (struct str){mem_strdup(text), text.n};
    all->kept += text.n;
}

void extension_keep(struct vapi *api, const struct extension *x, const cJSON *resources)
{
    struct extensions *all = extensions_of(api);
    struct extension_document *d = document_of(api, x->name);
    struct arena *a;

    if (d && !str_eqc(x->uid, d->uid)) {
        document_free(all, d);
        d = NULL;
    }
    if (!d) {
        d = NEW(struct extension_document);
        d->name = mem_strdup(x->name);
        d->uid = mem_strdup(x->uid);
        LIST_INSERT_HEAD(&all->documents, d, place);
    }
    d->stale = !resources;
    if (!resources)
        return;
    a = arena_new(0);
    document_set(all, d, json_text(a, resources));
    arena_free(a);
}

struct str extension_kept(struct vapi *api, const struct extension *x, bool *ret_stale)
{
    const struct extension_document *d = document_of(api, x->name);
    bool same = d && str_eqc(x->uid, d->uid);

    *ret_stale = !same || d->stale || !d->text.p;
    return same && d->text.p ? d->text : STR("");
}

void extension_documents_free(struct extensions *all)
{
    while (!LIST_EMPTY(&all->documents))
        document_free(all, LIST_FIRST(&all->documents));
}
