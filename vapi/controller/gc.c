/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage collection by ownerReferences: dependents of what is gone go too, at once, before or not
 * at all, as the deletion asked. Must never delete by a guess: an owner counts as gone only when
 * its kind is known and nothing of that name has its uid; an unknown kind keeps its dependents.
 *
 * Keys: "<storage>/<ns>/<name>" of an object to look at. An index of owner uid -> dependents, kept
 * by watching everything, says whom an event concerns. */
#include "util.h"

#include <assert.h>
#include <string.h>

#include "gc_index.h"

#define FOREGROUND "foregroundDeletion"
#define ORPHAN     "orphan"

static struct str object_key(struct arena *a, unsigned storage, struct str ns, struct str name)
{
    return arena_printf(a, "%u/%.*s/%.*s", storage, STR_F(ns), STR_F(name));
}

static void add_object(struct controller *c, unsigned storage, struct str ns, struct str name)
{
    struct arena *a = arena_new(0);

    controller_add(c, object_key(a, storage, ns, name));
    arena_free(a);
}

/* --- events --- */

static void on_dependent(void *ctx, const struct gc_dependent *d)
{
    add_object(ctx, d->storage, str_c(d->ns), str_c(d->name));
}

/* The owners of an object may wait for it. */
static void wake_owners(struct controller *c, const struct store_object *o)
{
    struct arena *a = arena_new(0);
    struct registry *g = vapi_registry(controller_api(c));

    json_each(ref, json_path(vapi_tree(a, o), "metadata.ownerReferences"))
    {
        const struct resource *r = gc_owner_resource(g, ref);

        if (r)
            add_object(c, r->storage, resource_namespaced(r) ? o->ns : STR(""),
                       json_str_at(ref, "name"));
    }
    arena_free(a);
}

static void map_any(struct controller *c, const struct store_event *e)
{
    struct gc_index *index = controller_state(c);
    const struct store_object *o = e->object;
    bool has_owners = str_contains(o->bytes, STR("\"ownerReferences\""));
    bool had_owners = e->previous && str_contains(e->previous->bytes, STR("\"ownerReferences\""));

    if (had_owners)
        gc_index_remove(index, e->previous);
    if (e->type == STORE_DELETED) {
        if (has_owners) {
            gc_index_remove(index, o);
            wake_owners(c, o);
        }
        gc_index_each(index, o->uid, on_dependent, c);
        return;
    }
    if (has_owners)
        gc_index_add(index, o);
    if (had_owners && !has_owners)
        wake_owners(c, e->previous);
    if (has_owners || str_contains(o->bytes, STR("\"deletionTimestamp\"")))
        add_object(c, o->resource, o->ns, o->name);
}

/* --- what is known of an object's owners --- */

enum owner_state { OWNER_SOLID, OWNER_WAITING, OWNER_GONE };

static bool has_finalizer(const cJSON *object, const char *name)
{
    return list_has(json_path(object, "metadata.finalizers"), name);
}

static enum owner_state owner_state(struct reconcile *r, struct str ns, const cJSON *ref)
{
    const struct resource *res = gc_owner_resource(vapi_registry(reconcile_api(r)), ref);

    if (!res || (resource_namespaced(res) && !ns.n))
        return OWNER_SOLID; /* not ours to judge */
    const struct store_object *o =
        store_get(vapi_store(reconcile_api(r)), res->storage,
                  resource_namespaced(res) ? ns : STR(""), json_str_at(ref, "name"));
    if (!o || !str_eq(o->uid, json_str_at(ref, "uid")))
        return OWNER_GONE;
    if (!str_contains(o->bytes, STR(FOREGROUND)))
        return OWNER_SOLID;
    const cJSON *owner = vapi_tree(reconcile_arena(r), o);
    return is_going(owner) && has_finalizer(owner, FOREGROUND) ? OWNER_WAITING : OWNER_SOLID;
}

/* --- writes --- */

static cJSON *metadata_patch(struct reconcile *r, const cJSON *object, const char *key, cJSON *list)
{
    struct arena *a = reconcile_arena(r);
    cJSON *patch = json_new_object(a), *meta = json_ensure_object(a, patch, "metadata");

    json_set_str(a, meta, "uid", meta_uid(object));
    json_set_str(a, meta, "resourceVersion", json_str_at(object, "metadata.resourceVersion"));
    json_set(a, meta, key, list);
    return patch;
}

static void drop_finalizer(struct reconcile *r, const struct resource *res, const cJSON *object,
                           const char *name)
{
    struct arena *a = reconcile_arena(r);
    cJSON *list = json_new_array(a);

    json_each(item, json_path(object, "metadata.finalizers"))
    {
        if (!str_eqc(json_str(item), name))
            json_append(list, json_copy(a, item));
    }
    reconcile_patch(r, res, STR_NULL, meta_ns(object), meta_name(object),
                    metadata_patch(r, object, "finalizers", list));
}

/* --- one object as a dependent --- */

static void attend_dependent(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    struct arena *a = reconcile_arena(r);
    const cJSON *refs = json_path(object, "metadata.ownerReferences");
    cJSON *kept = json_new_array(a);
    size_t solid = 0, waiting = 0;

    json_each(ref, refs)
    {
        enum owner_state state = owner_state(r, meta_ns(object), ref);

        solid += state == OWNER_SOLID;
        waiting += state == OWNER_WAITING;
        if (state == OWNER_SOLID)
            json_append(kept, json_copy(a, ref));
    }
    if (!json_count(refs) || is_going(object))
        return;
    if (solid && json_count(kept) == json_count(refs))
        return;
    if (solid) {
        reconcile_patch(r, res, STR_NULL, meta_ns(object), meta_name(object),
                        metadata_patch(r, object, "ownerReferences", kept));
        return;
    }
    bool owns = gc_index_count(controller_state(reconcile_controller(r)), meta_uid(object)) > 0;
    reconcile_delete(r, res, meta_ns(object), meta_name(object), meta_uid(object),
                     waiting && owns ? "Foreground" : "Background");
}

/* --- one object as an owner that is going --- */

struct going {
    struct reconcile *run;
    const cJSON *owner;
    size_t blocking;
    bool orphan;
};

static void orphan(struct going *g, const struct resource *res, const cJSON *dependent)
{
    struct arena *a = reconcile_arena(g->run);
    cJSON *kept = json_new_array(a);

    json_each(ref, json_path(dependent, "metadata.ownerReferences"))
    {
        if (!str_eq(json_str_at(ref, "uid"), meta_uid(g->owner)))
            json_append(kept, json_copy(a, ref));
    }
    reconcile_patch(g->run, res, STR_NULL, meta_ns(dependent), meta_name(dependent),
                    metadata_patch(g->run, dependent, "ownerReferences", kept));
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

static void on_dependent_of_going(void *ctx, const struct gc_dependent *d)
{
    struct going *g = ctx;
    struct vapi *api = reconcile_api(g->run);
    const struct resource *res = registry_by_storage(vapi_registry(api), d->storage);
    cJSON *dependent = res ? reconcile_get(g->run, res, str_c(d->ns), str_c(d->name)) : NULL;

    if (!dependent)
        return;
    if (g->orphan) {
        g->blocking++;
        orphan(g, res, dependent);
        return;
    }
    g->blocking += ref_blocks(dependent, meta_uid(g->owner));
    controller_add(reconcile_controller(g->run),
                   object_key(reconcile_arena(g->run), d->storage, str_c(d->ns), str_c(d->name)));
}

/* Without dependents left, the finalizer goes; each dependent's going brings this key back. */
static void attend_owner(struct reconcile *r, const struct resource *res, const cJSON *owner)
{
    struct gc_index *index = controller_state(reconcile_controller(r));
    struct going g = {.run = r, .owner = owner, .orphan = has_finalizer(owner, ORPHAN)};

    if (!g.orphan && !has_finalizer(owner, FOREGROUND))
        return;
    gc_index_each(index, meta_uid(owner), on_dependent_of_going, &g);
    if (!g.blocking)
        drop_finalizer(r, res, owner, g.orphan ? ORPHAN : FOREGROUND);
}

static void gc_reconcile(struct reconcile *r)
{
    struct str rest = reconcile_key(r), storage = str_cut(&rest, '/'), ns = str_cut(&rest, '/');
    const struct resource *res;
    uint64_t id;

    if (!str_to_u64(storage, &id))
        return;
    res = registry_by_storage(vapi_registry(reconcile_api(r)), (unsigned)id);
    cJSON *object = res ? reconcile_get(r, res, ns, rest) : NULL;
    if (!object)
        return;
    if (is_going(object))
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

static const struct controller_source SOURCES[] = {{"*", "*", map_any}, {NULL, NULL, NULL}};

const struct controller_def GARBAGE_COLLECTOR = {
    .name = "garbage-collector-controller",
    .sources = SOURCES,
    .reconcile = gc_reconcile,
    .start = gc_start,
    .stop = gc_stop,
    .workers = 20,
};
