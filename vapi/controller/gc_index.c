/* SPDX-License-Identifier: Apache-2.0 */
/* The dependents of every owner, by its uid, in a hash map. Must hold nothing of objects that are
 * gone. */
#include "gc_index.h"

#include <assert.h>

#define uthash_malloc(size)  mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

#define INDEX_MAGIC 0x67636978u

struct owner {
    UT_hash_handle hh;
    char *uid;
    size_t n;
    struct gc_dependent *first;
};

struct gc_index {
    unsigned magic;
    struct owner *owners;
};

struct gc_index *gc_index_new(void)
{
    struct gc_index *x = NEW(struct gc_index);

    x->magic = INDEX_MAGIC;
    return x;
}

static struct owner *owner_find(const struct gc_index *x, struct str uid)
{
    struct owner *o = NULL;

    assert(x->magic == INDEX_MAGIC);
    if (uid.n)
        HASH_FIND(hh, x->owners, uid.p, (unsigned)uid.n, o);
    return o;
}

static struct gc_dependent *dependent_free(struct gc_dependent *d)
{
    mem_free(d->ns);
    mem_free(d->name);
    return mem_free(d);
}

static void owner_free(struct gc_index *x, struct owner *o)
{
    HASH_DEL(x->owners, o);
    mem_free(o->uid);
    mem_free(o);
}

struct gc_index *gc_index_free(struct gc_index *x)
{
    struct owner *o, *next;

    assert(x->magic == INDEX_MAGIC);
    HASH_ITER(hh, x->owners, o, next)
    {
        while (o->first) {
            struct gc_dependent *d = o->first;

            o->first = d->next;
            dependent_free(d);
        }
        owner_free(x, o);
    }
    x->magic = 0;
    return mem_free(x);
}

static struct gc_dependent **dependent_find(struct owner *owner, const struct store_object *o)
{
    struct gc_dependent **d = &owner->first;

    while (*d && !((*d)->storage == o->resource && str_eqc(o->name, (*d)->name) &&
                   str_eqc(o->ns, (*d)->ns)))
        d = &(*d)->next;
    return d;
}

static void add_one(struct gc_index *x, struct str uid, const struct store_object *o)
{
    struct owner *owner = owner_find(x, uid);

    if (!uid.n)
        return;
    if (!owner) {
        owner = NEW(struct owner);
        owner->uid = mem_strdup(uid);
        HASH_ADD_KEYPTR(hh, x->owners, owner->uid, (unsigned)uid.n, owner);
    }
    struct gc_dependent **d = dependent_find(owner, o);
    if (*d)
        return;
    *d = NEW(struct gc_dependent);
    **d = (struct gc_dependent){
        .storage = o->resource, .ns = mem_strdup(o->ns), .name = mem_strdup(o->name)};
    owner->n++;
}

static void remove_one(struct gc_index *x, struct str uid, const struct store_object *o)
{
    struct owner *owner = owner_find(x, uid);
    struct gc_dependent **d = owner ? dependent_find(owner, o) : NULL;

    if (!d || !*d)
        return;
    struct gc_dependent *gone = *d;
    *d = gone->next;
    dependent_free(gone);
    if (--owner->n == 0)
        owner_free(x, owner);
}

static void each_owner(struct gc_index *x, const struct store_object *o,
                       void (*change)(struct gc_index *, struct str, const struct store_object *))
{
    struct arena *a = arena_new(0);

    json_each(ref, json_path(vapi_tree(a, o), "metadata.ownerReferences"))
        change(x, json_str_at(ref, "uid"), o);
    arena_free(a);
}

void gc_index_add(struct gc_index *x, const struct store_object *o)
{
    each_owner(x, o, add_one);
}

void gc_index_remove(struct gc_index *x, const struct store_object *o)
{
    each_owner(x, o, remove_one);
}

size_t gc_index_count(const struct gc_index *x, struct str owner_uid)
{
    const struct owner *o = owner_find(x, owner_uid);

    return o ? o->n : 0;
}

void gc_index_each(struct gc_index *x, struct str owner_uid,
                   void (*each)(void *ctx, const struct gc_dependent *d), void *ctx)
{
    const struct owner *o = owner_find(x, owner_uid);

    for (const struct gc_dependent *d = o ? o->first : NULL; d; d = d->next)
        each(ctx, d);
}

const struct resource *gc_owner_resource(const struct registry *g, const cJSON *ref)
{
    struct str version = json_str_at(ref, "apiVersion"), group = str_cut(&version, '/');

    if (!version.p) {
        version = group;
        group = STR("");
    }
    return registry_find_kind(g, group, version, json_str_at(ref, "kind"));
}
