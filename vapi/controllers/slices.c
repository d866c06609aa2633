/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes wanted endpoints over EndpointSlices: endpoints stay in their slice, changed slices
 * are filled before others are touched, and a slice to be deleted is reused for one to be created.
 * Must never list an endpoint twice, nor touch a slice of another manager. Source of the rules:
 * k8s.io/endpointslice of Kubernetes 1.36. */
#include "slices.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include <sublet/json_build.h>

/* A wanted endpoint, looked up by its identity. */
struct wanted {
    struct str key;
    cJSON *endpoint;
    bool placed;
};

enum slice_fate { SLICE_SAME, SLICE_CHANGED, SLICE_NEW, SLICE_DROPPED };

struct slice {
    struct slice *next;
    cJSON *tree, *endpoints;
    const char *address_type;
    size_t n;
    enum slice_fate fate;
};

struct layout {
    struct slice_plan *plan;
    struct arena *arena;
    struct slice *slices;
};

const char *slices_address_type(struct str ip)
{
    char text[64];
    unsigned char bytes[16];

    if (!ip.n || ip.n >= sizeof(text))
        return NULL;
    for (size_t i = 0; i < ip.n; i++)
        text[i] = ip.p[i];
    text[ip.n] = '\0';
    if (inet_pton(AF_INET, text, bytes) == 1)
        return "IPv4";
    return inet_pton(AF_INET6, text, bytes) == 1 ? "IPv6" : NULL;
}

/* --- groups --- */

static bool same_list(const cJSON *a, const cJSON *b)
{
    if (!json_count(a) || !json_count(b))
        return json_count(a) == json_count(b);
    return json_equal(a, b);
}

struct slice_group *slice_group_get(struct slice_plan *p, const char *address_type,
                                    const cJSON *ports)
{
    struct arena *a = reconcile_arena(p->run);
    struct slice_group **g = &p->groups;

    for (; *g; g = &(*g)->next) {
        if (str_eqc(str_c((*g)->address_type), address_type) && same_list((*g)->ports, ports))
            return *g;
    }
    *g = ARENA_NEW(a, struct slice_group);
    **g = (struct slice_group){
        .address_type = address_type, .ports = ports, .endpoints = json_new_array(a)};
    return *g;
}

static struct str endpoint_key(struct arena *a, const cJSON *endpoint)
{
    const cJSON *ref = json_get(endpoint, "targetRef");
    struct str parts[] = {json_str(json_at(json_get(endpoint, "addresses"), 0)),
                          STR("|"),
                          json_str_at(ref, "uid"),
                          STR("|"),
                          json_str_at(ref, "name"),
                          STR("|"),
                          json_str_at(endpoint, "hostname")};

    return arena_concat(a, 7, parts);
}

static int by_key(const void *pa, const void *pb)
{
    return str_cmp(((const struct wanted *)pa)->key, ((const struct wanted *)pb)->key);
}

static struct wanted *sort_wanted(struct arena *a, const struct slice_group *g, size_t *ret_n)
{
    struct wanted *list = arena_alloc(a, (json_count(g->endpoints) + 1) * sizeof(*list));
    size_t n = 0, kept = 0;

    json_each(e, g->endpoints) list[n++] = (struct wanted){endpoint_key(a, e), e, false};
    qsort(list, n, sizeof(*list), by_key);
    for (size_t i = 0; i < n; i++) {
        if (!kept || !str_eq(list[kept - 1].key, list[i].key))
            list[kept++] = list[i];
    }
    *ret_n = kept;
    return list;
}

/* --- slices --- */

static struct slice *slice_add(struct layout *l, cJSON *tree, const char *type,
                               enum slice_fate fate)
{
    struct slice *s = ARENA_NEW(l->arena, struct slice), **last = &l->slices;

    *s = (struct slice){.tree = tree, .address_type = type, .fate = fate};
    s->endpoints = json_new_array(l->arena);
    while (*last)
        last = &(*last)->next;
    *last = s;
    return s;
}

static cJSON *slice_tree(struct layout *l, const char *type, const cJSON *ports)
{
    struct slice_plan *p = l->plan;
    struct arena *a = l->arena;
    struct str name = meta_name(p->owner);
    struct str prefix = name.n < 253 ? arena_concat(a, 2, (struct str[]){name, STR("-")}) : name;
    cJSON *metadata = json_object(
        a, JSON("namespace", meta_ns(p->owner)), JSON("generateName", prefix),
        JSON("ownerReferences", json_array(a, metadata_owner_ref(a, p->owner_res, p->owner))));

    return json_object(a, JSON("metadata", metadata), JSON("addressType", type),
                       JSON("ports", json_copy(a, ports)));
}

static bool is_owned(const struct slice_plan *p, const cJSON *tree)
{
    json_each(ref, json_path(tree, "metadata.ownerReferences"))
    {
        if (str_eq(json_str_at(ref, "uid"), meta_uid(p->owner)))
            return true;
    }
    return false;
}

static void place(struct layout *l, struct slice *s, struct wanted *w)
{
    w->placed = true;
    json_append(s->endpoints, json_copy(l->arena, w->endpoint));
    s->n++;
}

static bool belongs(const struct slice_group *g, const struct slice *s)
{
    return s->tree && str_eqc(json_str_at(s->tree, "addressType"), g->address_type) &&
           same_list(json_get(s->tree, "ports"), g->ports);
}

/* The fullest slice of the group with a fate that has room for n more; NULL when there is none. */
static struct slice *roomy(struct layout *l, const struct slice_group *g, enum slice_fate fate,
                           size_t n)
{
    struct slice *best = NULL;

    for (struct slice *s = l->slices; s; s = s->next) {
        if (s->fate == fate && s->n + n <= l->plan->max && belongs(g, s) &&
            (!best || s->n > best->n))
            best = s;
    }
    return best;
}

/* Fills slices that are written anyway; then one that takes all; then creates some. */
static void place_rest(struct layout *l, const struct slice_group *g, struct wanted *wanted,
                       size_t n)
{
    size_t left = 0;
    struct slice *s = NULL;

    for (size_t i = 0; i < n; i++)
        left += !wanted[i].placed;
    for (size_t i = 0; i < n; i++) {
        if (wanted[i].placed)
            continue;
        if (!s || s->n >= l->plan->max)
            s = roomy(l, g, SLICE_CHANGED, 1);
        if (!s && left < l->plan->max && (s = roomy(l, g, SLICE_SAME, left)))
            s->fate = SLICE_CHANGED;
        if (!s)
            s = slice_add(l, slice_tree(l, g->address_type, g->ports), g->address_type, SLICE_NEW);
        place(l, s, &wanted[i]);
        left--;
    }
}

static void lay_out(struct layout *l, const struct slice_group *g)
{
    size_t n;
    struct wanted *wanted = sort_wanted(l->arena, g, &n);

    for (struct slice *s = l->slices; s; s = s->next) {
        if (s->fate == SLICE_SAME && belongs(g, s)) {
            /* Endpoints of a slice that are still wanted stay in it, with their wanted contents. */
            const cJSON *had = json_get(s->tree, "endpoints");

            json_each(endpoint, had)
            {
                struct wanted key = {.key = endpoint_key(l->arena, endpoint)};
                struct wanted *w = n ? bsearch(&key, wanted, n, sizeof(*wanted), by_key) : NULL;

                if (w && !w->placed)
                    place(l, s, w);
            }
            if (!s->n)
                s->fate = SLICE_DROPPED;
            else if (!json_equal(had, s->endpoints))
                s->fate = SLICE_CHANGED;
        }
    }
    place_rest(l, g, wanted, n);
}

/* --- present slices --- */

static void take_existing(struct layout *l)
{
    struct slice_plan *p = l->plan;
    size_t n;
    cJSON **trees = controller_items(
        l->arena, slices_list(p->run, meta_ns(p->owner), meta_name(p->owner), p->manager), &n);

    for (size_t i = 0; i < n; i++) {
        const char *type = arena_cstr(l->arena, json_str_at(trees[i], "addressType"));
        bool ours = is_owned(p, trees[i]), known = false;

        if (object_is_terminating(trees[i]))
            continue;
        for (struct slice_group *g = p->groups; g; g = g->next) {
            struct slice probe = {.tree = trees[i]};

            known |= belongs(g, &probe);
        }
        slice_add(l, trees[i], type, ours && known ? SLICE_SAME : SLICE_DROPPED);
    }
}

static bool is_empty(const struct slice *s)
{
    return s->tree && !json_count(json_get(s->tree, "endpoints")) &&
           !json_count(json_get(s->tree, "ports"));
}

/* A type without any endpoint keeps one empty slice, to publish that. */
static void keep_type(struct layout *l, const char *type)
{
    struct slice *spare = NULL;

    for (struct slice *s = l->slices; s; s = s->next) {
        if (!str_eqc(str_c(s->address_type), type))
            continue;
        if (s->fate != SLICE_DROPPED)
            return;
        if (is_empty(s) && is_owned(l->plan, s->tree))
            spare = s;
    }
    if (spare)
        spare->fate = SLICE_SAME;
    else
        slice_add(l, slice_tree(l, type, json_new_array(l->arena)), type, SLICE_NEW);
}

static void reuse_dropped(struct layout *l)
{
    for (struct slice *s = l->slices; s; s = s->next) {
        if (s->fate != SLICE_NEW)
            continue;
        for (struct slice *old = l->slices; old; old = old->next) {
            if (old->fate != SLICE_DROPPED || !is_owned(l->plan, old->tree) ||
                !str_eqc(str_c(old->address_type), s->address_type))
                continue;
            json_set(l->arena, old->tree, "ports", json_copy(l->arena, json_get(s->tree, "ports")));
            old->endpoints = s->endpoints;
            old->n = s->n;
            old->fate = SLICE_CHANGED;
            s->fate = SLICE_DROPPED;
            s->tree = NULL;
            break;
        }
    }
}

/* --- writing --- */

static bool set_metadata(struct layout *l, struct slice *s)
{
    struct slice_plan *p = l->plan;
    cJSON *meta = json_get(s->tree, "metadata");
    bool changed = !json_equal(json_get(meta, "labels"), p->labels);

    json_set(l->arena, meta, "labels", json_copy(l->arena, p->labels));
    if (!p->annotations)
        return changed;
    changed |= !same_list(json_get(meta, "annotations"), p->annotations);
    json_set(l->arena, meta, "annotations", json_copy(l->arena, p->annotations));
    return changed;
}

static void write_slice(struct layout *l, struct slice *s)
{
    struct reconcile *r = l->plan->run;
    const struct resource *res = reconcile_resource(r, "discovery.k8s.io", "endpointslices");

    if (!s->tree)
        return;
    if (s->fate == SLICE_DROPPED) {
        reconcile_delete(r, res, meta_ns(s->tree), meta_name(s->tree), meta_uid(s->tree), NULL);
        return;
    }
    bool relabelled = set_metadata(l, s);
    if (s->fate == SLICE_CHANGED || s->fate == SLICE_NEW)
        json_set(l->arena, s->tree, "endpoints", s->endpoints);
    if (s->fate == SLICE_NEW && !object_is_terminating(l->plan->owner))
        reconcile_create(r, res, meta_ns(l->plan->owner), s->tree);
    else if (s->fate == SLICE_CHANGED || (s->fate == SLICE_SAME && relabelled))
        reconcile_update(r, res, s->tree);
}

void slices_write(struct slice_plan *p)
{
    struct layout l = {.plan = p, .arena = reconcile_arena(p->run)};

    take_existing(&l);
    for (const struct slice_group *g = p->groups; g; g = g->next)
        lay_out(&l, g);
    json_each(type, p->keep_types) keep_type(&l, arena_cstr(l.arena, json_str(type)));
    reuse_dropped(&l);
    for (struct slice *s = l.slices; s; s = s->next)
        write_slice(&l, s);
}

/* --- by service --- */

cJSON *slices_list(struct reconcile *r, struct str ns, struct str service, struct str manager)
{
    struct selector_term terms[] = {
        {.key = STR(SLICE_SERVICE), .op = SEL_EQ, .n_values = 1, .values = &service},
        {.key = STR(SLICE_MANAGED_BY), .op = SEL_EQ, .n_values = 1, .values = &manager},
    };
    struct selector selector = {.n = 2, .terms = terms};

    return reconcile_list(r, reconcile_resource(r, "discovery.k8s.io", "endpointslices"), ns,
                          &selector);
}

void slices_remove(struct reconcile *r, struct str ns, struct str service, struct str manager)
{
    const struct resource *res = reconcile_resource(r, "discovery.k8s.io", "endpointslices");

    json_each(slice, slices_list(r, ns, service, manager))
    {
        if (!object_is_terminating(slice))
            reconcile_delete(r, res, ns, meta_name(slice), meta_uid(slice), NULL);
    }
}

void slices_map(struct controller *c, const struct store_event *e, struct str manager)
{
    const struct store_object *o = e->previous ? e->previous : e->object;
    struct str service, by;

    if (e->type == STORE_ADDED || !labels_get(o->labels, STR(SLICE_MANAGED_BY), &by) ||
        !str_eq(by, manager) || !labels_get(o->labels, STR(SLICE_SERVICE), &service))
        return;
    controller_add_name(c, o->ns, service);
}
