/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage collection by ownerReferences: dependents of a deleted owner are deleted too, in the
 * background, in the foreground, or orphaned, as its deletion requested. Must never delete without
 * proof: an owner counts as deleted only when its deletion was observed, or its kind is served and
 * no object of that name has its uid; dependents of an owner of an unknown kind stay.
 *
 * Keys: "<storage>/<ns>/<name>" of an object to check. An index of owner uid -> dependents,
 * maintained from watches of all resources, maps an event to keys. Source of the rules:
 * pkg/controller/garbagecollector of Kubernetes 1.36. */
#include "util.h"

#include <sublet/store_quarantine.h>

#include "gc_index.h"

#define FOREGROUND "foregroundDeletion"
#define ORPHAN     "orphan"
#define EVERYTHING STR("*") /* the key that checks every dependent again */
#define SETTLE_MS  1000

static void add_object(struct controller *c, unsigned storage, struct str ns, struct str name)
{
    struct buf key = BUF_INIT(0);

    buf_printf(&key, "%u/%.*s/%.*s", storage, STR_F(ns), STR_F(name));
    controller_add(c, buf_str(&key));
    buf_fini(&key);
}

/* --- events --- */

static void on_dependent(void *ctx, const struct gc_dependent *d)
{
    add_object(ctx, d->storage, str_c(d->ns), str_c(d->name));
}

/* The owners of an object may wait for it. */
static void wake_owners(struct controller *c, const struct store_object *o, const cJSON *refs)
{
    struct registry *g = vapi_registry(controller_api(c));

    json_each(ref, refs)
    {
        const struct resource *r = registry_find_reference(g, ref);

        if (r)
            add_object(c, r->storage, resource_namespaced(r) ? o->ns : STR(""),
                       json_str_at(ref, "name"));
    }
}

static const cJSON *refs_of(struct arena *a, const struct store_object *o)
{
    /* Most objects have none: searches the bytes before building a tree. */
    if (!o || !str_contains(o->bytes, STR("\"ownerReferences\"")))
        return NULL;
    return json_path(vapi_tree(a, o), "metadata.ownerReferences");
}

static bool may_be_collecting(const struct store_object *o)
{
    return object_may_be_terminating(o->bytes) &&
           (str_contains(o->bytes, STR("\"" FOREGROUND "\"")) ||
            str_contains(o->bytes, STR("\"" ORPHAN "\"")));
}

static void map_deleted(struct controller *c, struct arena *a, const struct store_object *o)
{
    struct gc_index *index = controller_state(c);

    if (!o->uid.n) { /* its row was damaged: its uid is unknown */
        controller_add_after(c, EVERYTHING, SETTLE_MS);
        return;
    }
    gc_index_set_gone(index, o->uid);
    gc_index_each(index, o->uid, on_dependent, c);
    gc_index_remove(index, o->uid);
    wake_owners(c, o, refs_of(a, o));
}

static void map_any(struct controller *c, const struct store_event *e)
{
    const struct store_object *o = e->object;
    struct arena *a = arena_new(0);

    if (e->type == STORE_DELETED) {
        map_deleted(c, a, o);
    } else if (gc_index_put(controller_state(c), o, refs_of(a, o))) {
        wake_owners(c, o, refs_of(a, e->previous));
        add_object(c, o->resource, o->ns, o->name);
    } else if (may_be_collecting(o)) {
        add_object(c, o->resource, o->ns, o->name);
    }
    arena_free(a);
}

/* A kind that was unknown may be served now. */
static void map_definition(struct controller *c, const struct store_event *e)
{
    if (e->type == STORE_MODIFIED)
        controller_add_after(c, EVERYTHING, SETTLE_MS);
}

/* --- the owners of an object --- */

enum owner_state { OWNER_SOLID, OWNER_WAITING, OWNER_GONE };

static enum owner_state owner_state(struct reconcile *r, struct str ns, const cJSON *ref)
{
    const struct gc_index *index = controller_state(reconcile_controller(r));
    const struct resource *res = registry_find_reference(vapi_registry(reconcile_api(r)), ref);
    struct str uid = json_str_at(ref, "uid");

    if (gc_index_is_gone(index, uid))
        return OWNER_GONE;
    if (!res || (resource_namespaced(res) && !ns.n))
        return OWNER_SOLID; /* cannot be decided here */
    struct str where = resource_namespaced(res) ? ns : STR(""), name = json_str_at(ref, "name");
    struct store *store = vapi_store(reconcile_api(r));
    const struct store_object *o = store_get(store, res->storage, where, name);
    if (!o && !store_is_absent(store, res->storage, where, name))
        return OWNER_SOLID; /* unreadable, but it exists */
    if (!o || !str_eq(o->uid, uid))
        return OWNER_GONE;
    if (!may_be_collecting(o))
        return OWNER_SOLID;
    const cJSON *owner = vapi_tree(reconcile_arena(r), o);
    return object_is_terminating(owner) && finalizer_has(owner, FOREGROUND) ? OWNER_WAITING
                                                                            : OWNER_SOLID;
}

/* --- one object as a dependent --- */

struct circle {
    struct reconcile *run;
    bool closed;
};

static cJSON *get_dependent(struct reconcile *r, const struct gc_dependent *d,
                            const struct resource **ret)
{
    *ret = registry_by_storage(vapi_registry(reconcile_api(r)), d->storage);
    return *ret ? reconcile_get(r, *ret, str_c(d->ns), str_c(d->name)) : NULL;
}

static void on_circle(void *ctx, const struct gc_dependent *d)
{
    struct circle *c = ctx;
    const struct resource *res;
    const cJSON *dependent = c->closed ? NULL : get_dependent(c->run, d, &res);

    c->closed |=
        dependent && object_is_terminating(dependent) && finalizer_has(dependent, FOREGROUND);
}

/* Owners that wait for each other would wait for ever: this object stops blocking its owners. */
static bool break_circle(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    struct circle c = {.run = r};
    bool blocks = false;

    gc_index_each(controller_state(reconcile_controller(r)), meta_uid(object), on_circle, &c);
    if (!c.closed)
        return false;
    cJSON *refs = json_copy(reconcile_arena(r), json_path(object, "metadata.ownerReferences"));
    json_each(ref, refs)
    {
        blocks |= json_true(json_get(ref, "blockOwnerDeletion"));
        json_set_bool(reconcile_arena(r), ref, "blockOwnerDeletion", false);
    }
    if (blocks)
        owner_refs_write(r, res, object, refs);
    return blocks;
}

static const char *propagation_of(const cJSON *object)
{
    if (finalizer_has(object, ORPHAN))
        return "Orphan";
    return finalizer_has(object, FOREGROUND) ? "Foreground" : "Background";
}

static void collect(struct reconcile *r, const struct resource *res, const cJSON *object,
                    bool waiting)
{
    bool owns = gc_index_count(controller_state(reconcile_controller(r)), meta_uid(object)) > 0;

    if (waiting && owns && break_circle(r, res, object))
        return; /* the event of the patch requeues the key */
    reconcile_delete_exact(r, res, object, waiting && owns ? "Foreground" : propagation_of(object));
}

static void attend_dependent(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    struct arena *a = reconcile_arena(r);
    const cJSON *refs = json_path(object, "metadata.ownerReferences");
    cJSON *kept = json_new_array(a);
    size_t waiting = 0;

    if (!json_count(refs))
        return;
    json_each(ref, refs)
    {
        enum owner_state state = owner_state(r, meta_ns(object), ref);

        waiting += state == OWNER_WAITING;
        if (state == OWNER_SOLID)
            json_append(kept, json_copy(a, ref));
    }
    if (!json_count(kept))
        collect(r, res, object, waiting > 0);
    else if (json_count(kept) != json_count(refs))
        owner_refs_write(r, res, object, kept);
}

/* --- an object as a terminating owner --- */

struct terminating {
    struct reconcile *run;
    const cJSON *owner;
    size_t left; /* dependents it still waits for */
    bool orphan;
};

static void orphan(struct terminating *g, const struct resource *res, const cJSON *dependent)
{
    struct arena *a = reconcile_arena(g->run);
    cJSON *kept = json_new_array(a);

    json_each(ref, json_path(dependent, "metadata.ownerReferences"))
    {
        if (!str_eq(json_str_at(ref, "uid"), meta_uid(g->owner)))
            json_append(kept, json_copy(a, ref));
    }
    owner_refs_write(g->run, res, dependent, kept);
}

static bool ref_blocks(const cJSON *dependent, struct str uid)
{
    json_each(ref, json_path(dependent, "metadata.ownerReferences"))
    {
        if (str_eq(json_str_at(ref, "uid"), uid))
            return json_true(json_get(ref, "blockOwnerDeletion"));
    }
    return false;
}

static void on_dependent_of_terminating(void *ctx, const struct gc_dependent *d)
{
    struct terminating *g = ctx;
    const struct resource *res;
    const cJSON *dependent = get_dependent(g->run, d, &res);

    if (!dependent)
        return;
    if (g->orphan) {
        g->left++;
        orphan(g, res, dependent);
        return;
    }
    g->left += ref_blocks(dependent, meta_uid(g->owner));
    if (!object_is_terminating(dependent))
        add_object(reconcile_controller(g->run), d->storage, str_c(d->ns), str_c(d->name));
}

/* Without dependents left, the finalizer is removed; the deletion of each dependent requeues this
 * key. */
static void attend_owner(struct reconcile *r, const struct resource *res, const cJSON *owner)
{
    struct gc_index *index = controller_state(reconcile_controller(r));
    struct terminating g = {.run = r, .owner = owner, .orphan = finalizer_has(owner, ORPHAN)};

    if (!g.orphan && !finalizer_has(owner, FOREGROUND))
        return;
    gc_index_each(index, meta_uid(owner), on_dependent_of_terminating, &g);
    if (!g.left)
        metadata_finalizer_drop(r, res, owner, g.orphan ? ORPHAN : FOREGROUND);
}

static void gc_reconcile(struct reconcile *r)
{
    struct str rest = reconcile_key(r), storage = str_cut(&rest, '/'), ns = str_cut(&rest, '/');
    struct controller *c = reconcile_controller(r);
    const struct resource *res;
    uint64_t id;

    if (str_eq(storage, EVERYTHING))
        gc_index_all(controller_state(c), on_dependent, c);
    if (!str_to_u64(storage, &id))
        return;
    res = registry_by_storage(vapi_registry(reconcile_api(r)), (unsigned)id);
    cJSON *object = res ? reconcile_get(r, res, ns, rest) : NULL;
    if (!object)
        return;
    if (object_is_terminating(object))
        attend_owner(r, res, object);
    else
        attend_dependent(r, res, object);
}

static void *gc_start(struct controller *c)
{
    (void)c;
    return gc_index_new();
}

static void gc_stop(struct controller *c, void *state)
{
    (void)c;
    gc_index_free(state);
}

static const struct controller_source SOURCES[] = {
    {"*", "*", map_any},
    {"apiextensions.k8s.io", "customresourcedefinitions", map_definition},
    {NULL, NULL, NULL},
};

const struct controller_def GARBAGE_COLLECTOR = {
    .name = "garbage-collector-controller",
    .sources = SOURCES,
    .reconcile = gc_reconcile,
    .start = gc_start,
    .stop = gc_stop,
    .workers = 20,
};
