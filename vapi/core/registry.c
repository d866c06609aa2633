/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The resources the API serves: built-in descriptors copied from their templates, and those of
 * CRDs, which are added and removed at run time. Two orders are kept: by (group, plural, version)
 * for look-ups by bisection, and discovery's. A removed descriptor is kept until no call that could
 * hold it is left. It must never free a descriptor that a request in progress may still read. */
#include "core.h"

#include <assert.h>
#include <string.h>

#include <sublet/api_version.h>
#include <sublet/crd.h>
#include <sublet/fields.h>
#include <sublet/kinds.h>
#include <sublet/store_quarantine.h>

#define MAX_LISTENERS 8

struct removed {
    LIST_ENTRY(removed) place;
    struct resource *resource;
    uint64_t at; /* calls with a sequence up to this one may hold it */
    void (*freed)(void *ctx);
    void *ctx;
};

struct listener {
    void (*changed)(void *ctx);
    void *ctx;
};

struct registry {
    struct store *store;
    struct resource **sorted; /* by group, plural, version */
    struct resource **order;  /* discovery's */
    size_t n, cap;
    struct resource **by_storage; /* the descriptor of the storage version */
    size_t n_storage;
    uint64_t generation;
    const uint64_t *sequence;     /* of the newest call */
    LIST_HEAD(, removed) removed; /* the newest first */
    struct listener listeners[MAX_LISTENERS];
    size_t n_listeners;
};

/* Group and version priorities of the built-in groups; CRDs have 1000 and 100.
 * Source: k8s.io/kubernetes cmd/kube-apiserver/app/aggregator.go and pkg/controlplane/apiserver. */
static const struct priority {
    const char *group, *version;
    int group_priority, version_priority;
} PRIORITIES[] = {
    {"", "v1", 18000, 1},
    {"apps", "v1", 17800, 15},
    {"events.k8s.io", "v1", 17750, 15},
    {"authentication.k8s.io", "v1", 17700, 15},
    {"authorization.k8s.io", "v1", 17600, 15},
    {"autoscaling", "v1", 17500, 15},
    {"autoscaling", "v2", 17500, 30},
    {"batch", "v1", 17400, 15},
    {"certificates.k8s.io", "v1", 17300, 15},
    {"networking.k8s.io", "v1", 17200, 15},
    {"policy", "v1", 17100, 15},
    {"rbac.authorization.k8s.io", "v1", 17000, 15},
    {"storage.k8s.io", "v1", 16800, 15},
    {"apiextensions.k8s.io", "v1", 16700, 15},
    {"admissionregistration.k8s.io", "v1", 16700, 15},
    {"scheduling.k8s.io", "v1", 16600, 15},
    {"coordination.k8s.io", "v1", 16500, 15},
    {"node.k8s.io", "v1", 16300, 15},
    {"discovery.k8s.io", "v1", 16200, 15},
    {"resource.k8s.io", "v1", 16200, 21},
    {"flowcontrol.apiserver.k8s.io", "v1", 16100, 21},
    {"apiregistration.k8s.io", "v1", 20000, 15},
    {"metrics.k8s.io", "v1beta1", 100, 100}, /* as metrics-server registers it */
};
#define N_PRIORITIES         COUNT(PRIORITIES)
#define CRD_GROUP_PRIORITY   1000
#define CRD_VERSION_PRIORITY 100

static bool has_type(const struct resource *r, const char *type)
{
    return !r->crd && r->node &&
           str_eqc(str_c(schema_text(r->schema, schema_node(r->schema, r->node)->type_name)), type);
}

bool resource_is_pod(const struct resource *r)
{
    return has_type(r, "io.k8s.api.core.v1.Pod");
}

bool resource_is_namespace(const struct resource *r)
{
    return has_type(r, "io.k8s.api.core.v1.Namespace");
}

bool resource_of_crd(const struct resource *r)
{
    return r->crd && !(r->flags & RES_REVIEW);
}

bool resource_namespaced(const struct resource *r)
{
    return (r->flags & RES_NAMESPACED) != 0;
}

const struct subresource *resource_sub(const struct resource *r, struct str name)
{
    for (size_t i = 0; i < r->n_subresources; i++)
        if (str_eqc(name, r->subresources[i].name))
            return &r->subresources[i];
    return NULL;
}

/* ---- priorities ---- */

int resource_group_priority(const struct resource *r)
{
    for (size_t i = 0; i < N_PRIORITIES; i++)
        if (str_eqc(r->group, PRIORITIES[i].group))
            return PRIORITIES[i].group_priority;
    return CRD_GROUP_PRIORITY;
}

int resource_version_priority(const struct resource *r)
{
    for (size_t i = 0; i < N_PRIORITIES; i++)
        if (str_eqc(r->group, PRIORITIES[i].group) && str_eqc(r->version, PRIORITIES[i].version))
            return PRIORITIES[i].version_priority;
    return CRD_VERSION_PRIORITY;
}

/* ---- the two orders ---- */

static int compare_key(const struct resource *r, struct str group, struct str plural,
                       struct str version)
{
    int d = str_cmp(r->group, group);

    if (d == 0)
        d = str_cmp(r->plural, plural);
    if (d == 0 && version.p)
        d = str_cmp(r->version, version);
    return d;
}

static int compare_discovery(const struct resource *a, const struct resource *b)
{
    int d = resource_group_priority(b) - resource_group_priority(a);

    if (d == 0)
        d = str_cmp(a->group, b->group);
    if (d == 0)
        d = resource_version_priority(b) - resource_version_priority(a);
    if (d == 0)
        d = api_version_compare(a->version, b->version);
    if (d == 0)
        d = str_cmp(a->plural, b->plural);
    return d;
}

/* The first index whose key is not less than the given one. version.p NULL: before all versions. */
static size_t lower_bound(const struct registry *g, struct str group, struct str plural,
                          struct str version)
{
    size_t low = 0, high = g->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (compare_key(g->sorted[mid], group, plural, version) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static size_t order_place(const struct registry *g, const struct resource *r)
{
    size_t low = 0, high = g->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (compare_discovery(g->order[mid], r) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void insert_at(struct resource **list, size_t n, size_t at, struct resource *r)
{
    memmove(list + at + 1, list + at, (n - at) * sizeof(*list));
    list[at] = r;
}

static void erase(struct resource **list, size_t n, const struct resource *r)
{
    size_t i = 0;

    while (i < n && list[i] != r)
        i++;
    assert(i < n);
    memmove(list + i, list + i + 1, (n - i - 1) * sizeof(*list));
}

static bool is_storage_version(const struct resource *r)
{
    return str_eq(r->api_version, r->storage_version);
}

static void place(struct registry *g, struct resource *r)
{
    if (g->n == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 128;
        g->sorted = mem_realloc(g->sorted, g->cap * sizeof(struct resource *));
        g->order = mem_realloc(g->order, g->cap * sizeof(struct resource *));
    }
    insert_at(g->order, g->n, order_place(g, r), r);
    insert_at(g->sorted, g->n, lower_bound(g, r->group, r->plural, r->version), r);
    g->n++;

    if (!r->storage)
        return;
    if (r->storage >= g->n_storage) {
        size_t want = (size_t)r->storage + 64;

        g->by_storage = mem_realloc(g->by_storage, want * sizeof(struct resource *));
        memset(g->by_storage + g->n_storage, 0, (want - g->n_storage) * sizeof(struct resource *));
        g->n_storage = want;
    }
    if (!g->by_storage[r->storage] || is_storage_version(r))
        g->by_storage[r->storage] = r;
}

/* ---- built-ins ---- */

/* Sets the strings a template lacks. All are heap copies, owned by the registry's copy. */
static void complete(struct registry *g, struct resource *r)
{
    struct arena *a = arena_new(0);
    struct str group;

    r->api_version = mem_str(
        r->group.n ? arena_printf(a, "%.*s/%.*s", STR_F(r->group), STR_F(r->version)) : r->version);
    r->group_resource = mem_str(
        r->group.n ? arena_printf(a, "%.*s.%.*s", STR_F(r->plural), STR_F(r->group)) : r->plural);
    r->storage_version = mem_str(r->storage_version.n ? r->storage_version : r->api_version);
    if (!r->schema) {
        r->schema = &SCHEMA_BUILTIN;
        r->node = schema_builtin_root(r->group, r->version, r->kind);
    }
    /* One set of objects may be served in several groups (events): the stored group identifies
     * it. */
    group = api_version_read(r->storage_version).group;
    if (!(r->flags & RES_REVIEW))
        r->storage = store_resource(
            g->store,
            group.n ? arena_printf(a, "%.*s.%.*s", STR_F(r->plural), STR_F(group)) : r->plural);
    r->skip = (unsigned)(sizeof("{\"kind\":\"\",\"apiVersion\":\"\",") - 1 + r->kind.n +
                         r->storage_version.n);
    arena_free(a);
}

void registry_add_kinds(struct registry *g, const struct kind *const *kinds)
{
    for (; *kinds; kinds++) {
        struct resource *r = NEW(struct resource);

        *r = (*kinds)->resource;
        r->built_in = *kinds;
        complete(g, r);
        place(g, r);
    }
}

struct registry *registry_new(struct store *store)
{
    struct registry *g = NEW(struct registry);

    g->store = store;
    registry_add_kinds(g, KINDS);
    g->generation = 1;
    return g;
}

static void free_text(struct str s)
{
    union {
        const char *from;
        char *to;
    } text = {.from = s.p};

    mem_free(text.to);
}

/* True when no descriptor that is registered, or may still be read by a call, has its objects. */
static bool is_last_of_storage(const struct registry *g, const struct resource *r)
{
    for (size_t i = lower_bound(g, r->group, r->plural, STR_NULL);
         i < g->n && compare_key(g->sorted[i], r->group, r->plural, STR_NULL) == 0; i++) {
        if (g->sorted[i]->storage == r->storage)
            return false;
    }
    const struct removed *gone;
    LIST_FOREACH(gone, &g->removed, place)
    {
        if (gone->resource->storage == r->storage)
            return false;
    }
    return true;
}

static void free_resource(struct resource *r)
{
    if (!r->crd) {
        free_text(r->api_version);
        free_text(r->group_resource);
        free_text(r->storage_version);
    }
    mem_free(r);
}

struct registry *registry_free(struct registry *g)
{
    if (!g)
        return NULL;
    registry_sweep(g, UINT64_MAX);
    for (size_t i = 0; i < g->n; i++)
        free_resource(g->sorted[i]);
    mem_free(g->sorted);
    mem_free(g->order);
    mem_free(g->by_storage);
    return mem_free(g);
}

/* ---- look-ups ---- */

const struct resource *registry_find(const struct registry *g, struct str group, struct str version,
                                     struct str plural)
{
    size_t i = lower_bound(g, group, plural, version.p ? version : STR(""));

    if (i < g->n && compare_key(g->sorted[i], group, plural, version) == 0 &&
        str_eq(g->sorted[i]->version, version))
        return g->sorted[i];
    return NULL;
}

const struct resource *registry_find_group_resource(const struct registry *g, struct str group,
                                                    struct str plural)
{
    size_t first = lower_bound(g, group, plural, STR_NULL);
    const struct resource *best = NULL;

    for (size_t i = first; i < g->n && compare_key(g->sorted[i], group, plural, STR_NULL) == 0;
         i++) {
        if (is_storage_version(g->sorted[i]))
            return g->sorted[i];
        if (!best)
            best = g->sorted[i];
    }
    return best;
}

const struct resource *registry_find_kind(const struct registry *g, struct str group,
                                          struct str version, struct str kind)
{
    /* Discovery's order has the preferred version first. */
    for (size_t i = 0; i < g->n; i++) {
        const struct resource *r = g->order[i];

        if (str_eq(r->kind, kind) && str_eq(r->group, group) &&
            (!version.n || str_eq(r->version, version)))
            return r;
    }
    return NULL;
}

const struct resource *registry_find_reference(const struct registry *g, const cJSON *ref)
{
    struct api_version v = api_version_read(json_str(json_get(ref, "apiVersion")));
    struct str kind = json_str(json_get(ref, "kind"));
    const struct resource *r = registry_find_kind(g, v.group, v.version, kind);

    return r ? r : registry_find_kind(g, v.group, STR(""), kind);
}

const struct resource *registry_by_storage(const struct registry *g, unsigned storage)
{
    return storage < g->n_storage ? g->by_storage[storage] : NULL;
}

bool registry_has_group(const struct registry *g, struct str group, struct str version)
{
    size_t i = lower_bound(g, group, STR(""), STR_NULL);

    for (; i < g->n && str_eq(g->sorted[i]->group, group); i++)
        if (!version.n || str_eq(g->sorted[i]->version, version))
            return true;
    return false;
}

void registry_each(const struct registry *g, registry_cb each, void *ctx)
{
    for (size_t i = 0; i < g->n; i++)
        if (!each(ctx, g->order[i]))
            return;
}

/* ---- changes ---- */

static void changed(struct registry *g)
{
    g->generation++;
    for (size_t i = 0; i < g->n_listeners; i++)
        g->listeners[i].changed(g->listeners[i].ctx);
}

/* In any version: its objects are never a CRD's. */
static bool is_builtin(const struct registry *g, struct str group, struct str plural)
{
    const struct resource *r = registry_find_group_resource(g, group, plural);

    return r && !resource_of_crd(r);
}

int registry_add(struct registry *g, struct resource *r, struct err *err)
{
    assert(r->crd);

    if (!r->group.n || !r->version.n || !r->plural.n || !r->kind.n)
        return err_set(err, &ERR_INVALID,
                       "\"%.*s\" names no group, version, plural and kind to be served under",
                       STR_F(r->group_resource));
    if (is_builtin(g, r->group, r->plural) || registry_find(g, r->group, r->version, r->plural))
        return err_set(err, &ERR_ALREADY_EXISTS, "\"%.*s\" is already in use", STR_F(r->plural));

    if (r->flags & RES_REVIEW) {
        place(g, r);
        changed(g);
        return 0;
    }
    r->storage = store_resource(g->store, r->group_resource);
    if (!r->storage)
        return err_set(err, &ERR_TOO_MANY_REQUESTS, "the store has no id left for \"%.*s\"",
                       STR_F(r->group_resource));
    const struct resource *owner = registry_by_storage(g, r->storage);
    if (owner && (!owner->crd || !str_eq(owner->group_resource, r->group_resource)))
        return err_set(err, &ERR_ALREADY_EXISTS, "the objects of \"%.*s\" are those of \"%.*s\"",
                       STR_F(r->group_resource), STR_F(owner->group_resource));
    place(g, r);
    changed(g);
    return 0;
}

void registry_remove(struct registry *g, struct resource *r, void (*freed)(void *ctx), void *ctx)
{
    struct removed *gone = NEW(struct removed);

    erase(g->sorted, g->n, r);
    erase(g->order, g->n, r);
    g->n--;
    /* Another version of the same objects replaces the removed one, if there is one. */
    if (r->storage < g->n_storage && g->by_storage[r->storage] == r) {
        g->by_storage[r->storage] = NULL;
        for (size_t i = 0; i < g->n; i++)
            if (g->sorted[i]->storage == r->storage &&
                (!g->by_storage[r->storage] || is_storage_version(g->sorted[i])))
                g->by_storage[r->storage] = g->sorted[i];
    }
    *gone = (struct removed){
        .resource = r, .at = g->sequence ? *g->sequence : 0, .freed = freed, .ctx = ctx};
    LIST_INSERT_HEAD(&g->removed, gone, place);
    changed(g);
}

void registry_set_clock(struct registry *g, const uint64_t *sequence)
{
    g->sequence = sequence;
}

void registry_sweep(struct registry *g, uint64_t oldest_call)
{
    struct removed *gone, *next;

    for (gone = LIST_FIRST(&g->removed); gone; gone = next) {
        next = LIST_NEXT(gone, place);
        if (oldest_call <= gone->at)
            continue;
        LIST_REMOVE(gone, place);

        /* No descriptor of these objects is left: the store may release them. */
        if (gone->resource->storage && is_last_of_storage(g, gone->resource))
            store_resource_release(g->store, gone->resource->storage);

        free_resource(gone->resource);
        if (gone->freed)
            gone->freed(gone->ctx);
        mem_free(gone);
    }
}

uint64_t registry_generation(const struct registry *g)
{
    return g->generation;
}

void registry_on_change(struct registry *g, void (*on_change)(void *ctx), void *ctx)
{
    assert(g->n_listeners < MAX_LISTENERS);
    g->listeners[g->n_listeners++] = (struct listener){on_change, ctx};
}

void resource_field_type(const struct resource *r, struct field_type *ret)
{
    uint32_t root = 0;

    *ret = (struct field_type){.schema = r->schema, .node = r->node};
    if (!r->crd)
        return;
    ret->schema = crd_schema(r->crd, &root);
    ret->node = root;
    ret->root = true;
    ret->form = ret->schema ? TYPE_NODE : TYPE_DEDUCED;
}
