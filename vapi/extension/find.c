/* SPDX-License-Identifier: Apache-2.0 */
/* Which versions an extension API server serves: APIServices with a service, as they are in the
 * store now. Must never name a version that a built-in kind or a CRD serves. Source of the order:
 * kube-aggregator pkg/apis/apiregistration/v1/helper. */
#include "extension.h"

#include <stdlib.h>

#include <sublet/api_version.h>
#include <sublet/encode.h>
#include <sublet/object.h>

static const struct resource *services_of(struct vapi *api)
{
    return registry_find_group_resource(vapi_registry(api), STR("apiregistration.k8s.io"),
                                        STR("apiservices"));
}

/* Most APIServices are local: those need no tree. */
static bool may_be_remote(const struct store_object *o)
{
    return str_contains(o->bytes, STR("\"service\":{"));
}

bool extension_read(struct vapi *api, struct arena *a, const cJSON *service, struct extension *ret)
{
    const cJSON *spec = json_get(service, "spec"), *at = json_get(spec, "service");
    struct str ca = json_str(json_get(spec, "caBundle"));

    if (!json_is_object(at))
        return false;
    *ret = (struct extension){
        .name = meta_name(service),
        .uid = json_str_at(service, "metadata.uid"),
        .group = json_str(json_get(spec, "group")),
        .version = json_str(json_get(spec, "version")),
        .ns = json_str(json_get(at, "namespace")),
        .service = json_str(json_get(at, "name")),
        .port = json_i64_at(at, "port", 443),
        .group_priority = json_i64_at(spec, "groupPriorityMinimum", 0),
        .version_priority = json_i64_at(spec, "versionPriority", 0),
        .insecure = json_true(json_get(spec, "insecureSkipTLSVerify")),
        .available = condition_is_true(json_path(service, "status.conditions"), "Available"),
    };
    if (ca.n && !base64_decode(a, ca, &ret->ca))
        ret->ca = STR("no certificate");
    return ret->group.n && !registry_has_group(vapi_registry(api), ret->group, ret->version);
}

bool extension_find(struct vapi *api, struct arena *a, struct str group, struct str version,
                    struct extension *ret)
{
    const struct resource *r = services_of(api);
    struct str name = arena_concat(a, 3, (struct str[]){version, STR("."), group});
    const struct store_object *o = r ? store_get(vapi_store(api), r->storage, STR(""), name) : NULL;

    return o && may_be_remote(o) && extension_is_used(api, name) &&
           extension_read(api, a, vapi_tree(a, o), ret) && str_eq(ret->group, group) &&
           str_eq(ret->version, version);
}

/* --- all --- */

struct finding {
    struct vapi *api;
    struct arena *arena;
    struct extension *list; /* NULL: only counted */
    size_t n, seen;
    struct str until; /* counted are those before this name */
};

static bool on_counted(void *ctx, const struct store_object *o)
{
    struct finding *f = ctx;

    if (str_cmp(o->name, f->until) >= 0)
        return false;
    f->seen += may_be_remote(o);
    return f->seen < EXTENSION_MOST;
}

bool extension_is_used(struct vapi *api, struct str name)
{
    struct finding f = {.api = api, .until = name};
    const struct resource *r = services_of(api);
    struct err ignored;

    err_init(&ignored, NULL);
    return r &&
           !store_scan(vapi_store(api), r->storage, STR_NULL, STR_NULL, STR_NULL, 0, on_counted, &f,
                       &ignored) &&
           f.seen < EXTENSION_MOST;
}

static bool on_found(void *ctx, const struct store_object *o)
{
    struct finding *f = ctx;

    if (!may_be_remote(o))
        return true;
    if (!f->list)
        f->list = arena_alloc(f->arena, EXTENSION_MOST * sizeof(*f->list));
    if (extension_read(f->api, f->arena, vapi_tree(f->arena, o), &f->list[f->n]))
        f->n++;
    return ++f->seen < EXTENSION_MOST;
}

static int in_order(const void *pa, const void *pb)
{
    const struct extension *a = pa, *b = pb;
    int order = 0;

    if (a->group_priority != b->group_priority)
        return a->group_priority > b->group_priority ? -1 : 1;
    order = str_cmp(a->group, b->group);
    if (order)
        return order;
    if (a->version_priority != b->version_priority)
        return a->version_priority > b->version_priority ? -1 : 1;
    return api_version_compare(a->version, b->version);
}

/* A group has the highest priority that one of its versions gives it. */
static void raise_groups(struct extension *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (str_eq(list[i].group, list[k].group) &&
                list[k].group_priority > list[i].group_priority)
                list[i].group_priority = list[k].group_priority;
}

size_t extension_list(struct vapi *api, struct arena *a, struct extension **ret)
{
    struct finding f = {.api = api, .arena = a};
    const struct resource *r = services_of(api);
    struct err ignored;

    err_init(&ignored, NULL);
    *ret = NULL;
    if (!r || store_scan(vapi_store(api), r->storage, STR_NULL, STR_NULL, STR_NULL, 0, on_found, &f,
                         &ignored))
        return 0;
    if (f.n) {
        raise_groups(f.list, f.n);
        qsort(f.list, f.n, sizeof(*f.list), in_order);
    }
    *ret = f.list;
    return f.n;
}
