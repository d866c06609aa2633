/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of extended resources (requests.example.com/gpu) that devices provide: the devices a claim
 * counts under its class, it also counts under the class's extended resource, minus what its pod
 * already counts. That depends on classes and pods, so nothing of it is cached. Must never exempt a
 * claim because of a pod that another claim was made for. Source:
 * pkg/quota/v1/evaluator/core/resource_claims.go of Kubernetes 1.36. */
#include "counted.h"
#include "plugins.h"

#define DEVICES  ".deviceclass.resource.k8s.io/devices"
#define IMPLICIT "requests.deviceclass.resource.kubernetes.io/"

struct claim {
    struct vapi *api;
    struct arena *arena; /* scratch */
    struct str ns, owner[COUNTED_OWNER_TEXTS];
    struct usage more;
};

static const struct resource *resource_of(struct vapi *api, const char *group, const char *plural)
{
    return registry_find_group_resource(vapi_registry(api), str_c(group), str_c(plural));
}

/* ---- the names of a class ---- */

static void add_class(struct claim *c, const struct usage_item *devices)
{
    struct str class = str_sub(devices->name, 0, devices->name.n - (sizeof(DEVICES) - 1)), name;
    const struct store_object *o = store_latest(
        vapi_store(c->api), resource_of(c->api, "resource.k8s.io", "deviceclasses")->storage,
        STR(""), class);

    if (!o)
        return;
    usage_add(&c->more, arena_concat(c->arena, 2, (struct str[]){STR(IMPLICIT), class}),
              devices->q);
    name = json_str_at(vapi_tree(c->arena, o), "spec.extendedResourceName");
    if (name.n)
        usage_add(&c->more, arena_concat(c->arena, 2, (struct str[]){STR("requests."), name}),
                  devices->q);
}

/* ---- the pod of a claim ---- */

struct siblings {
    const struct claim *claim;
    struct str created; /* of the claim itself; empty: it is not stored yet */
    bool first;
};

/* A pod's oldest claim counts; of the same age, the first by name. */
static bool on_sibling(void *ctx, const struct store_object *o)
{
    struct siblings *s = ctx;
    const struct claim *c = s->claim;
    const cJSON *other;
    struct str created;
    int order;

    if (!str_contains(o->bytes, c->owner[COUNTED_POD_UID]) ||
        str_eq(o->name, c->owner[COUNTED_CLAIM]))
        return true;
    other = vapi_tree(c->arena, o);
    if (!counted_is_extended(other, c->owner[COUNTED_POD_UID]))
        return true;
    created = json_str_at(other, "metadata.creationTimestamp");
    order = s->created.n ? str_cmp(created, s->created) : -1;
    s->first = order > 0 || (order == 0 && str_cmp(o->name, c->owner[COUNTED_CLAIM]) > 0);
    return s->first;
}

static bool is_first(const struct claim *c)
{
    const struct resource *res = resource_of(c->api, "resource.k8s.io", "resourceclaims");
    const struct store_object *o =
        store_latest(vapi_store(c->api), res->storage, c->ns, c->owner[COUNTED_CLAIM]);
    struct siblings s = {.claim = c, .created = STR(""), .first = true};

    if (o)
        s.created = json_str_at(vapi_tree(c->arena, o), "metadata.creationTimestamp");
    store_scan_latest(vapi_store(c->api), res->storage, c->ns, on_sibling, &s);
    return s.first;
}

/* The usage of the claim's pod; NULL when no pod counts for this claim. */
static const struct usage *counted_by_pod(const struct claim *c)
{
    const struct resource *pods = resource_of(c->api, "", "pods");
    const struct store_object *o;
    const cJSON *status;

    if (!c->owner[COUNTED_POD].n)
        return NULL;
    o = store_latest(vapi_store(c->api), pods->storage, c->ns, c->owner[COUNTED_POD]);
    if (!o || !str_eq(o->uid, c->owner[COUNTED_POD_UID]))
        return NULL;
    status = json_path(vapi_tree(c->arena, o), "status.extendedResourceClaimStatus");
    if (status ? !str_eq(json_str_at(status, "resourceClaimName"), c->owner[COUNTED_CLAIM])
               : !is_first(c))
        return NULL;
    return &counted_of(vapi_admission_memo(c->api), pods, o)->usage;
}

/* ---- combined ---- */

void extended_add(struct vapi *api, struct str ns, const struct counted *claim, struct usage *to)
{
    struct claim c = {.api = api, .ns = ns};
    const struct usage *pod;

    c.arena = arena_new(0);
    c.more.arena = c.arena;
    for (size_t i = 0; i < COUNTED_OWNER_TEXTS; i++)
        c.owner[i] = arena_str(c.arena, claim->owner[i]);
    for (size_t i = 0; i < claim->usage.n; i++) {
        if (str_has_suffix(claim->usage.items[i].name, STR(DEVICES)))
            add_class(&c, &claim->usage.items[i]);
    }
    /* This may evict `claim` from the cache: the pod is looked up in the same table. */
    pod = c.more.n ? counted_by_pod(&c) : NULL;
    for (size_t i = 0; i < c.more.n; i++) {
        struct usage_item *m = &c.more.items[i];
        const struct quantity *had = pod ? usage_get(pod, m->name) : NULL;
        struct quantity rest = had ? quantity_sub(m->q, *had) : m->q;

        if (rest.nano > 0)
            usage_add(to, m->name, rest);
    }
    arena_free(c.arena);
}
