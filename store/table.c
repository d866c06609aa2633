/* SPDX-License-Identifier: Apache-2.0
 * Resources and their objects in memory: one ordered tree per resource, each entry with a committed
 * version and what the writes under way make of it. Knows nothing of revisions' order or of disks.
 */
#include "batch.h"
#include "impl.h"
#include "op.h"

#include <assert.h>

int table_key_cmp(const struct store_object *a, const struct store_object *b)
{
    int c = str_cmp(a->ns, b->ns);

    return c ? c : str_cmp(a->name, b->name);
}

static int entry_cmp(const struct object_entry *a, const struct object_entry *b)
{
    return table_key_cmp(table_entry_key(a), table_entry_key(b));
}

static int table_cmp(const struct table *a, const struct table *b)
{
    return str_cmp(a->name, b->name);
}

TREE_GENERATE(object_tree, object_entry, link, entry_cmp)
TREE_GENERATE(table_tree, table, link, table_cmp)

struct table *table_get(const struct store *s, unsigned id)
{
    assert(id < s->n_tables && s->tables[id]);
    return s->tables[id];
}

struct table *table_add(struct store *s, unsigned id, struct str name)
{
    if (id >= s->cap_tables) {
        size_t cap = s->cap_tables ? s->cap_tables : 64;
        while (cap <= id)
            cap *= 2;
        s->tables = mem_realloc(s->tables, cap * sizeof(struct table *));
        s->cap_tables = cap;
    }
    while (s->n_tables <= id)
        s->tables[s->n_tables++] = NULL;
    if (s->tables[id])
        return NULL;

    struct table *t = NEW(struct table);
    t->id = id;
    t->name = mem_str(name);
    t->floor = s->load_floor;
    RB_INIT(&t->objects);
    if (RB_INSERT(table_tree, &s->names, t)) {
        str_drop(&t->name);
        mem_free(t);
        return NULL;
    }
    s->tables[id] = t;
    return t;
}

unsigned store_resource(struct store *s, struct str name)
{
    assert(s->magic == STORE_MAGIC && name.n);
    struct table probe = {.name = name};
    struct table *t = RB_FIND(table_tree, &s->names, &probe);

    if (t) {
        t->released = false;
        return t->id;
    }
    /* Ids that nothing was written under before a restart are holes, and used again. */
    while (s->free_id < s->n_tables && s->tables[s->free_id])
        s->free_id++;
    if (s->free_id > STORE_MAX_RESOURCES)
        return 0;
    return table_add(s, s->free_id, name)->id;
}

struct str store_resource_name(const struct store *s, unsigned resource)
{
    assert(s->magic == STORE_MAGIC);
    return table_get(s, resource)->name;
}

static void table_free(struct table *t);

/* An object, an event that can be watched, a row on disk that still names the id, and a watch keep
 * a table; so do operations under way, which point to it. */
static bool is_kept(const struct table *t)
{
    return !t->released || !RB_EMPTY(&t->objects) || t->rows || !LIST_EMPTY(&t->watches) ||
           t->touched || t->saving || t->dropping;
}

void table_settle(struct store *s, struct table *t)
{
    if (s->closing || is_kept(t))
        return;
    if (t->saved) {
        t->dropping = true;
        struct op *op = batch_add(s, OP_RESOURCE_DROP, 0);
        op->resource.table = t;
        op->resource.id = t->id;
        return;
    }
    RB_REMOVE(table_tree, &s->names, t);
    s->tables[t->id] = NULL;
    if (t->id < s->free_id)
        s->free_id = t->id;
    table_free(t);
}

void store_resource_release(struct store *s, unsigned resource)
{
    assert(s->magic == STORE_MAGIC);
    struct table *t = table_get(s, resource);

    t->released = true;
    table_settle(s, t);
}

static void table_free(struct table *t)
{
    struct object_entry *e, *next;

    RB_FOREACH_SAFE(e, object_tree, &t->objects, next)
    {
        RB_REMOVE(object_tree, &t->objects, e);
        store_object_unref(e->committed);
        store_object_unref(e->pending);
        mem_free(e);
    }
    str_drop(&t->name);
    mem_free(t);
}

void tables_fini(struct store *s)
{
    for (size_t i = 0; i < s->n_tables; i++) {
        if (s->tables[i])
            table_free(s->tables[i]);
    }
    s->tables = mem_free(s->tables);
    s->n_tables = s->cap_tables = 0;
}

struct object_entry *table_find(struct table *t, struct str ns, struct str name)
{
    struct store_object key = {.ns = ns, .name = name};
    struct object_entry probe = {.committed = &key};

    return RB_FIND(object_tree, &t->objects, &probe);
}

struct object_entry *table_find_or_add(struct table *t, const struct store_object *key)
{
    struct object_entry *e = table_find(t, key->ns, key->name);

    if (e)
        return e;
    e = NEW(struct object_entry);
    e->committed = key;
    RB_INSERT(object_tree, &t->objects, e);
    e->committed = NULL;
    return e;
}

struct object_entry *table_seek(struct table *t, struct str ns, struct str name)
{
    struct store_object key = {.ns = ns, .name = name};
    struct object_entry probe = {.committed = &key};

    return RB_NFIND(object_tree, &t->objects, &probe);
}

struct object_entry *table_first(struct table *t)
{
    return RB_MIN(object_tree, &t->objects);
}

struct object_entry *table_next(struct object_entry *e)
{
    return RB_NEXT(object_tree, NULL, e);
}

const struct store_object *table_entry_latest(const struct object_entry *e)
{
    if (!e->n_pending)
        return e->committed;
    return e->deleting ? NULL : e->pending;
}

const struct store_object *table_entry_visible(const struct object_entry *e)
{
    return e->quarantined ? NULL : e->committed;
}

const struct store_object *table_entry_commit(struct store *s, struct table *t,
                                              struct object_entry *e,
                                              const struct store_object *object)
{
    const struct store_object *before = e->committed;

    e->committed = object;
    s->quarantined -= e->quarantined;
    e->quarantined = false;
    if (before) {
        t->count--;
        s->live_objects--;
        s->live_bytes -= store_object_size(before);
    }
    if (object) {
        t->count++;
        s->live_objects++;
        s->live_bytes += store_object_size(object);
    }
    return before;
}

void table_entry_push(struct object_entry *e, const struct store_object *object, bool deleting)
{
    const struct store_object *old = e->pending;

    e->pending = store_object_ref(object);
    e->deleting = deleting;
    e->n_pending++;
    store_object_unref(old);
}

void table_entry_pop(struct table *t, struct object_entry *e)
{
    assert(e->n_pending);
    if (--e->n_pending)
        return;
    e->pending = store_object_unref(e->pending);
    e->deleting = false;
    table_entry_settle(t, e);
}

struct object_entry *table_entry_move(struct table *t, struct object_entry *e)
{
    struct object_entry *copy = NEW(struct object_entry), *parent = RB_PARENT(e, link);

    assert(e->committed && !e->n_pending);
    *copy = *e;
    if (!parent)
        RB_ROOT(&t->objects) = copy;
    else if (RB_LEFT(parent, link) == e)
        RB_LEFT(parent, link) = copy;
    else
        RB_RIGHT(parent, link) = copy;
    if (RB_LEFT(e, link))
        RB_PARENT(RB_LEFT(e, link), link) = copy;
    if (RB_RIGHT(e, link))
        RB_PARENT(RB_RIGHT(e, link), link) = copy;
    return copy;
}

void table_entry_settle(struct table *t, struct object_entry *e)
{
    if (e->committed || e->n_pending)
        return;
    RB_REMOVE(object_tree, &t->objects, e); /* compares no keys: there is none left */
    mem_free(e);
}

const struct store_object *store_get(struct store *s, unsigned resource, struct str ns,
                                     struct str name)
{
    assert(s->magic == STORE_MAGIC);
    struct object_entry *e = damage_entry(s, table_get(s, resource), ns, name);

    return e ? table_entry_visible(e) : NULL;
}

const struct store_object *store_latest(struct store *s, unsigned resource, struct str ns,
                                        struct str name)
{
    assert(s->magic == STORE_MAGIC);
    struct object_entry *e = damage_entry(s, table_get(s, resource), ns, name);

    if (!e || (e->quarantined && !e->n_pending))
        return NULL;
    return table_entry_latest(e);
}

const struct store_object *store_quarantined(struct store *s, unsigned resource, struct str ns,
                                             struct str name)
{
    assert(s->magic == STORE_MAGIC);
    struct object_entry *e = s->quarantined || s->damage.n_lost
                                 ? damage_entry(s, table_get(s, resource), ns, name)
                                 : NULL;

    return e && e->quarantined && !e->n_pending ? e->committed : NULL;
}

static bool scan_quarantined(struct table *t, struct str ns, store_scan_cb each, void *ctx)
{
    struct object_entry *e;

    RB_FOREACH(e, object_tree, &t->objects)
    {
        if (e->quarantined && !e->n_pending && (!ns.p || str_eq(ns, table_entry_key(e)->ns)) &&
            !each(ctx, e->committed))
            return false;
    }
    return true;
}

void store_scan_quarantined(struct store *s, unsigned resource, struct str ns, store_scan_cb each,
                            void *ctx)
{
    assert(s->magic == STORE_MAGIC);
    for (size_t id = 1; s->quarantined && id < s->n_tables; id++) {
        if (s->tables[id] && (!resource || resource == id) &&
            !scan_quarantined(s->tables[id], ns, each, ctx))
            return;
    }
}

bool store_is_whole(const struct store *s, unsigned resource, struct str ns)
{
    struct table *t = table_get(s, resource);
    struct object_entry *e;

    if (s->state.behind || store_is_damaged(s) || s->damage.n_lost)
        return false;
    if (!s->quarantined)
        return true;
    RB_FOREACH(e, object_tree, &t->objects)
    {
        if (e->quarantined && (!ns.p || str_eq(ns, table_entry_key(e)->ns)))
            return false;
    }
    return true;
}

size_t store_count(const struct store *s, unsigned resource)
{
    assert(s->magic == STORE_MAGIC);
    return resource ? table_get(s, resource)->count : s->live_objects;
}
