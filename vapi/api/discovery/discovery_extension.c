/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of extension API servers in the lists of groups: from the APIServices, and from what
 * those servers said last that they serve; no call waits for one. It must never change what the
 * lists say of versions that are served here. Source: kube-aggregator pkg/apiserver:
 * handler_apis.go, handler_discovery.go. */
#include "discovery_extension.h"

#include <stdlib.h>

#include <sublet/api_version.h>
#include <sublet/json_build.h>

#include "../../extension/extension.h"

struct additions {
    struct vapi *api;
    struct arena *arena;
    cJSON *groups;
    const struct extension *list;
    size_t n;
    bool aggregated;
};

/* ---- order ---- */

struct priority {
    const struct additions *all;
    struct str group, version; /* version empty: of the group */
    int64_t value;
};

static bool on_resource(void *ctx, const struct resource *r)
{
    struct priority *p = ctx;
    int64_t value = p->version.n ? resource_version_priority(r) : resource_group_priority(r);

    if (str_eq(r->group, p->group) && (!p->version.n || str_eq(r->version, p->version)) &&
        value > p->value)
        p->value = value;
    return true;
}

/* Of what is served here or elsewhere. */
static int64_t priority_of(const struct additions *all, struct str group, struct str version)
{
    struct priority p = {all, group, version, 0};

    registry_each(vapi_registry(all->api), on_resource, &p);
    for (size_t i = 0; i < all->n; i++) {
        const struct extension *x = &all->list[i];
        int64_t value = version.n ? x->version_priority : x->group_priority;

        if (str_eq(x->group, group) && (!version.n || str_eq(x->version, version)) &&
            value > p.value)
            p.value = value;
    }
    return p.value;
}

struct place {
    cJSON *item;
    struct str name;
    int64_t priority;
    bool version;
};

static int in_order(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;

    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->version ? api_version_compare(a->name, b->name) : str_cmp(a->name, b->name);
}

static struct str group_name(const struct additions *all, const cJSON *item)
{
    return all->aggregated ? json_str_at(item, "metadata.name") : json_str(json_get(item, "name"));
}

/* Of groups, or of the versions of one. */
static void put_in_order(const struct additions *all, cJSON *items, struct str of_group)
{
    struct place *places = arena_alloc(all->arena, (json_count(items) + 1) * sizeof(*places));
    size_t n = 0;

    json_each(item, items)
    {
        struct place *p = &places[n++];

        *p = (struct place){.item = item, .version = of_group.n > 0};
        p->name = p->version ? json_str(json_get(item, "version")) : group_name(all, item);
        p->priority =
            p->version ? priority_of(all, of_group, p->name) : priority_of(all, p->name, STR(""));
    }
    qsort(places, n, sizeof(*places), in_order);
    for (size_t i = 0; i < n; i++)
        json_detach(items, places[i].item);
    for (size_t i = 0; i < n; i++)
        json_append(items, places[i].item);
}

/* ---- entries ---- */

static cJSON *group_of(const struct additions *all, struct str name)
{
    struct arena *a = all->arena;

    json_each(item, all->groups)
    {
        if (str_eq(group_name(all, item), name))
            return item;
    }
    if (all->aggregated)
        return json_append(all->groups,
                           json_object(a, JSON("metadata", json_object(a, JSON("name", name))),
                                       JSON("versions", json_new_array(a))));
    return json_append(all->groups,
                       json_object(a, JSON("name", name), JSON("versions", json_new_array(a))));
}

static cJSON *version_entry(struct arena *a, const struct extension *x)
{
    struct str both = arena_concat(a, 3, (struct str[]){x->group, STR("/"), x->version});

    return json_object(a, JSON("groupVersion", both), JSON("version", x->version));
}

static cJSON *aggregated_entry(const struct additions *all, const struct extension *x)
{
    cJSON *ret = json_object(all->arena, JSON("version", x->version)), *resources = NULL;
    struct err ignored;
    bool stale;
    struct str text = extension_kept(all->api, x, &stale);

    err_init(&ignored, all->arena);
    if (text.n && !json_parse(all->arena, text, &resources, &ignored) && json_count(resources))
        json_set(all->arena, ret, "resources", resources);
    json_set_str(all->arena, ret, "freshness", stale ? STR("Stale") : STR("Current"));
    return ret;
}

static void add(const struct additions *all, const struct extension *x)
{
    cJSON *versions = json_get(group_of(all, x->group), "versions");

    json_append(versions,
                all->aggregated ? aggregated_entry(all, x) : version_entry(all->arena, x));
}

/* The first of the list is preferred. */
static void finish(const struct additions *all, cJSON *group)
{
    cJSON *versions = json_get(group, "versions");

    put_in_order(all, versions, group_name(all, group));
    if (!all->aggregated)
        json_set(all->arena, group, "preferredVersion",
                 json_copy(all->arena, json_first(versions)));
}

void discovery_add_extensions(struct call *c, cJSON *groups, struct str only, bool aggregated)
{
    struct extension *list;
    size_t n = extension_list(c->api, c->arena, &list);
    struct additions all = {.api = c->api,
                            .arena = c->arena,
                            .groups = groups,
                            .list = list,
                            .n = n,
                            .aggregated = aggregated};
    bool any = false;

    for (size_t i = 0; i < n; i++)
        if (!only.p || str_eq(only, list[i].group)) {
            add(&all, &list[i]);
            any = true;
        }
    if (!any)
        return;
    for (size_t i = 0; i < n; i++)
        if ((!i || !str_eq(list[i].group, list[i - 1].group)) &&
            (!only.p || str_eq(only, list[i].group)))
            finish(&all, group_of(&all, list[i].group));
    put_in_order(&all, groups, STR(""));
}

void discovery_extension_paths(struct call *c, void (*each)(void *ctx, struct str path), void *ctx)
{
    struct extension *list;
    size_t n = extension_list(c->api, c->arena, &list);

    for (size_t i = 0; i < n; i++) {
        struct str group = arena_concat(c->arena, 2, (struct str[]){STR("/apis/"), list[i].group});

        each(ctx, group);
        each(ctx, arena_concat(c->arena, 3, (struct str[]){group, STR("/"), list[i].version}));
    }
}
