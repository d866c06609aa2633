/* SPDX-License-Identifier: Apache-2.0 */
/* A graph in two hash maps: dependents by their uid, owners by theirs, and an edge for every
 * reference, in a list of its owner. Must keep nothing of deleted objects, and take time
 * independent of the number of an owner's dependents. */
#include "gc_index.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/hash.h>

#define INDEX_MAGIC 0x67636978u
#define UID_MAX     48

struct edge {
    struct owner *owner;
    struct dependent *dependent;
    LIST_ENTRY(edge) place; /* of the owner */
    bool blocks;
};

struct owner {
    UT_hash_handle hh;
    char uid[UID_MAX];
    size_t n;
    LIST_HEAD(, edge) edges;
    bool gone;
};

struct dependent {
    UT_hash_handle hh;
    char uid[UID_MAX];
    struct gc_dependent d;
    struct edge *edges;
    size_t n;
};

struct gc_index {
    unsigned magic;
    struct owner *owners;
    struct dependent *dependents;
};

struct gc_index *gc_index_new(void)
{
    struct gc_index *x = NEW(struct gc_index);

    x->magic = INDEX_MAGIC;
    return x;
}

/* No object has a uid of another form. */
static bool uid_fits(struct str uid)
{
    return uid.n && uid.n < UID_MAX;
}

static struct owner *owner_find(const struct gc_index *x, struct str uid)
{
    struct owner *o = NULL;

    assert(x->magic == INDEX_MAGIC);
    if (uid_fits(uid))
        HASH_FIND(hh, x->owners, uid.p, (unsigned)uid.n, o);
    return o;
}

static struct dependent *dependent_find(const struct gc_index *x, struct str uid)
{
    struct dependent *d = NULL;

    assert(x->magic == INDEX_MAGIC);
    if (uid_fits(uid))
        HASH_FIND(hh, x->dependents, uid.p, (unsigned)uid.n, d);
    return d;
}

static struct owner *owner_get(struct gc_index *x, struct str uid)
{
    struct owner *o = owner_find(x, uid);

    if (o)
        return o;
    o = NEW(struct owner);
    memcpy(o->uid, uid.p, uid.n);
    HASH_ADD(hh, x->owners, uid[0], (unsigned)uid.n, o);
    return o;
}

/* ---- edges ---- */

static void unlink_edges(struct gc_index *x, struct dependent *d)
{
    for (size_t i = 0; i < d->n; i++) {
        struct edge *e = &d->edges[i];

        LIST_REMOVE(e, place);
        if (--e->owner->n == 0) {
            HASH_DEL(x->owners, e->owner);
            mem_free(e->owner);
        }
    }
    d->edges = mem_free(d->edges);
    d->n = 0;
}

/* The same owners in the same order, with equal blockOwnerDeletion. */
static bool same_edges(const struct dependent *d, const cJSON *refs)
{
    size_t i = 0;

    json_each(ref, refs)
    {
        struct str uid = json_str_at(ref, "uid");

        if (!uid_fits(uid))
            continue;
        if (i == d->n || !str_eqc(uid, d->edges[i].owner->uid) ||
            d->edges[i].blocks != json_true(json_get(ref, "blockOwnerDeletion")))
            return false;
        i++;
    }
    return i == d->n;
}

/* ---- dependents ---- */

static void dependent_free(struct gc_index *x, struct dependent *d)
{
    unlink_edges(x, d);
    HASH_DEL(x->dependents, d);
    mem_free(d->d.ns);
    mem_free(d->d.name);
    mem_free(d);
}

struct gc_index *gc_index_free(struct gc_index *x)
{
    struct dependent *d, *next;

    assert(x->magic == INDEX_MAGIC);
    HASH_ITER(hh, x->dependents, d, next)
    {
        dependent_free(x, d);
    }
    assert(!x->owners);
    x->magic = 0;
    return mem_free(x);
}

static struct dependent *dependent_get(struct gc_index *x, const struct store_object *o)
{
    struct dependent *d = dependent_find(x, o->uid);

    if (d)
        return d;
    d = NEW(struct dependent);
    memcpy(d->uid, o->uid.p, o->uid.n);
    d->d = (struct gc_dependent){o->resource, mem_strdup(o->ns), mem_strdup(o->name)};
    HASH_ADD(hh, x->dependents, uid[0], (unsigned)o->uid.n, d);
    return d;
}

bool gc_index_put(struct gc_index *x, const struct store_object *o, const cJSON *refs)
{
    struct dependent *d = dependent_find(x, o->uid);
    size_t n = json_count(refs);

    if (!uid_fits(o->uid) || (!d && !n))
        return false;
    if (!n) {
        dependent_free(x, d);
        return true;
    }
    d = dependent_get(x, o);
    if (d->n && same_edges(d, refs))
        return false;
    unlink_edges(x, d);
    d->edges = mem_alloc(n * sizeof(*d->edges));
    json_each(ref, refs)
    {
        if (uid_fits(json_str_at(ref, "uid"))) {
            struct edge *e = &d->edges[d->n++];

            e->owner = owner_get(x, json_str_at(ref, "uid"));
            e->dependent = d;
            e->blocks = json_true(json_get(ref, "blockOwnerDeletion"));
            LIST_INSERT_HEAD(&e->owner->edges, e, place);
            e->owner->n++;
        }
    }
    return true;
}

void gc_index_remove(struct gc_index *x, struct str uid)
{
    struct dependent *d = dependent_find(x, uid);

    if (d)
        dependent_free(x, d);
}

/* ---- look-ups ---- */

void gc_index_set_gone(struct gc_index *x, struct str uid)
{
    struct owner *o = owner_find(x, uid);

    if (o)
        o->gone = true;
}

bool gc_index_is_gone(const struct gc_index *x, struct str uid)
{
    const struct owner *o = owner_find(x, uid);

    return o && o->gone;
}

size_t gc_index_count(const struct gc_index *x, struct str owner_uid)
{
    const struct owner *o = owner_find(x, owner_uid);

    return o ? o->n : 0;
}

void gc_index_each(const struct gc_index *x, struct str owner_uid, gc_each_cb each, void *ctx)
{
    const struct owner *o = owner_find(x, owner_uid);

    const struct edge *e;

    if (!o)
        return;
    LIST_FOREACH(e, &o->edges, place)
    {
        each(ctx, &e->dependent->d);
    }
}

void gc_index_all(const struct gc_index *x, gc_each_cb each, void *ctx)
{
    struct dependent *d, *next;

    HASH_ITER(hh, x->dependents, d, next)
    {
        each(ctx, &d->d);
    }
}
