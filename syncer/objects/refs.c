/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counts of the ConfigMaps, Secrets and claims that the tenant's pods and objects of
 * configured kinds refer to, and of the ServiceAccounts of pods: only those go to the host, and
 * they are deleted there after the last referrer. A ConfigMap or Secret that goes down by itself
 * refers to itself. In memory only: the counts follow from the referrers. Must never keep a
 * reference of a deleted one. */

#include "objects/objects.h"
#include <assert.h>
#include <string.h>

#include <sublet/hash.h>
#include <sublet/store_quarantine.h>

#define MAX_REFS 1024 /* of one object; a pod's own limits are far lower */

struct ref {
    struct map_entry entry; /* "secrets/ns/name" */
    char *key;
    struct referrer **from;
    size_t n, capacity;
    struct ref_copy copy;
};

struct referrer {
    struct map_entry entry; /* "pods/ns/name" */
    char *key;
    enum sync_id id;
    struct ref **refs;
    size_t n;
    bool partial; /* there may be more */
};

struct refs {
    struct syncer *syncer;
    struct map refs, referrers;
    size_t n_partial;
};

/* --- refs --- */

/* Adds the object to its controller, if it goes down because something refers to it. */
static void requeue(struct refs *r, struct str key)
{
    static const enum translate_ref_kind kinds[] = {REF_CONFIG_MAP, REF_SECRET,
                                                    REF_SERVICE_ACCOUNT};
    struct str rest = key, plural = str_cut(&rest, '/'), ns = str_cut(&rest, '/');

    for (size_t i = 0; i < COUNT(kinds); i++) {
        enum sync_id id = sync_kind_of_ref(r->syncer, kinds[i]);

        if (id != SYNC_NONE && str_eqc(plural, r->syncer->kinds[id].plural))
            syncer_add(r->syncer, id, ns, rest);
    }
}

static struct ref *ref_get(struct refs *r, struct str key)
{
    struct map_entry *e = map_get(&r->refs, key);
    struct ref *ref;

    if (e)
        return CONTAINER(e, struct ref, entry);
    ref = NEW(struct ref);
    ref->key = mem_strdup(key);
    map_put(&r->refs, &ref->entry, str_c(ref->key));
    requeue(r, key);
    return ref;
}

static void ref_drop(struct refs *r, struct ref *ref, const struct referrer *by)
{
    for (size_t i = 0; i < ref->n; i++) {
        if (ref->from[i] == by) {
            ref->from[i] = ref->from[--ref->n];
            break;
        }
    }
    if (ref->n)
        return;
    map_remove(&r->refs, &ref->entry);
    requeue(r, str_c(ref->key));
    mem_free(ref->from);
    mem_free(ref->key);
    mem_free(ref);
}

/* --- referrers --- */

struct gather {
    struct syncer *syncer;
    struct arena *arena;
    struct str ns;
    bool by_rules; /* the referrer is of a configured kind: see translate_kind_refs() */
    bool partial;
    struct str *keys;
    size_t n;
};

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    struct gather *g = ctx;
    enum sync_id id = sync_kind_of_ref(g->syncer, kind);
    struct str key;

    (void)optional;
    if (id == SYNC_NONE || g->n == MAX_REFS)
        return;
    if (g->by_rules && str_find(name, '/') < name.n) /* of another namespace */
        key = arena_printf(g->arena, "%s/%.*s", g->syncer->kinds[id].plural, STR_F(name));
    else
        key = arena_printf(g->arena, "%s/%.*s/%.*s", g->syncer->kinds[id].plural, STR_F(g->ns),
                           STR_F(name));
    for (size_t i = 0; i < g->n; i++)
        if (str_eq(g->keys[i], key))
            return;
    g->keys[g->n++] = key;
}

static void gather_refs(struct gather *g, struct syncer *s, struct arena *a, enum sync_id id,
                        struct str key, const cJSON *object)
{
    struct str name;

    *g = (struct gather){.syncer = s, .arena = a, .by_rules = s->kinds[id].rules != NULL};
    g->keys = arena_alloc(a, MAX_REFS * sizeof(*g->keys));
    if (key_split(key, &g->ns, &name))
        g->partial = !s->kinds[id].handlers->refs(s, a, id, object, on_ref, g);
}

static bool same(const struct referrer *by, const struct gather *g)
{
    if (by->n != g->n)
        return false;
    for (size_t i = 0; i < g->n; i++)
        if (!str_eqc(g->keys[i], by->refs[i]->key))
            return false;
    return true;
}

static void drop_all(struct refs *r, struct referrer *by, struct ref **refs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ref_drop(r, refs[i], by);
    mem_free(refs);
}

static void set_partial(struct refs *r, struct referrer *by, bool partial)
{
    r->n_partial -= by->partial;
    by->partial = partial;
    r->n_partial += partial;
}

static void referrer_free(struct refs *r, struct referrer *by)
{
    set_partial(r, by, false);
    drop_all(r, by, by->refs, by->n);
    map_remove(&r->referrers, &by->entry);
    mem_free(by->key);
    mem_free(by);
}

static struct referrer *referrer_get(struct refs *r, enum sync_id id, struct str key)
{
    struct map_entry *e = map_get(&r->referrers, key);
    struct referrer *by;

    if (e)
        return CONTAINER(e, struct referrer, entry);
    by = NEW(struct referrer);
    by->id = id;
    by->key = mem_strdup(key);
    map_put(&r->referrers, &by->entry, str_c(by->key));
    return by;
}

/* Adds the current references before it drops the previous ones, so that none that stays reaches 0.
 */
static void set_refs(struct refs *r, struct referrer *by, const struct gather *g)
{
    struct ref **old = by->refs;
    size_t n_old = by->n;

    by->n = g->n;
    by->refs = g->n ? mem_alloc(g->n * sizeof(struct ref *)) : NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct ref *ref = ref_get(r, g->keys[i]);

        if (ref->n == ref->capacity) {
            ref->capacity = ref->capacity ? ref->capacity * 2 : 2;
            ref->from = mem_realloc(ref->from, ref->capacity * sizeof(*ref->from));
        }
        ref->from[ref->n++] = by;
        by->refs[i] = ref;
    }
    drop_all(r, by, old, n_old);
}

void sync_refs_object(struct refs *r, enum sync_id id, struct str key, const cJSON *object)
{
    struct arena *a = arena_new(0);
    struct str full = arena_printf(a, "%s/%.*s", r->syncer->kinds[id].record, STR_F(key));
    struct map_entry *e = map_get(&r->referrers, full);
    struct referrer *known = e ? CONTAINER(e, struct referrer, entry) : NULL;
    struct gather g;

    if (object) {
        gather_refs(&g, r->syncer, a, id, key, object);
        if (!known && (g.n || g.partial))
            known = referrer_get(r, id, full);
        if (known)
            set_partial(r, known, g.partial);
        if (known && !same(known, &g))
            set_refs(r, known, &g);
    } else if (known) {
        referrer_free(r, known);
    }
    arena_free(a);
}

void sync_refs_self(struct refs *r, enum sync_id id, struct str key, bool wanted)
{
    struct arena *a = arena_new(0);
    struct str full = arena_printf(a, "%s/%.*s", r->syncer->kinds[id].plural, STR_F(key));
    struct map_entry *e = map_get(&r->referrers, full);
    struct gather g = {.keys = &full, .n = 1};

    if (wanted && !e)
        set_refs(r, referrer_get(r, id, full), &g);
    else if (!wanted && e)
        referrer_free(r, CONTAINER(e, struct referrer, entry));
    arena_free(a);
}

static struct ref *lookup(const struct refs *r, enum sync_id id, struct str ns, struct str name)
{
    struct arena *a = arena_new(0);
    struct map_entry *e =
        map_get(&r->refs, arena_printf(a, "%s/%.*s/%.*s", r->syncer->kinds[id].plural, STR_F(ns),
                                       STR_F(name)));

    arena_free(a);
    return e ? CONTAINER(e, struct ref, entry) : NULL;
}

bool sync_refs_wanted(const struct refs *r, enum sync_id id, struct str ns, struct str name)
{
    return lookup(r, id, ns, name) != NULL;
}

/* Pods refer to what their own namespace has, objects of configured kinds also to another's. */
bool sync_refs_are_whole(const struct refs *r, struct str ns)
{
    const struct syncer *s = r->syncer;

    for (size_t id = 0; id < s->n_kinds; id++) {
        const struct sync_kind *k = &s->kinds[id];

        if (k->handlers->refs && !store_is_whole(s->store, syncer_storage(s, (enum sync_id)id),
                                                 k->rules ? STR_NULL : ns))
            return false;
    }
    return !r->n_partial;
}

struct ref_copy *sync_refs_copy(const struct refs *r, enum sync_id id, struct str ns,
                                struct str name)
{
    struct ref *ref = lookup(r, id, ns, name);

    return ref ? &ref->copy : NULL;
}

void sync_refs_wake(struct refs *r, enum sync_id id, struct str ns, struct str name)
{
    struct ref *ref = lookup(r, id, ns, name);

    for (size_t i = 0; ref && i < ref->n; i++) {
        struct str rest = str_c(ref->from[i]->key), by_ns, by_name;

        str_cut(&rest, '/');
        if (ref->from[i]->id != id && key_split(rest, &by_ns, &by_name))
            syncer_add(r->syncer, ref->from[i]->id, by_ns, by_name);
    }
}

/* --- life --- */

struct refs *sync_refs_new(struct syncer *s)
{
    struct refs *r = NEW(struct refs);

    r->syncer = s;
    return r;
}

static void free_referrer(void *ctx, struct map_entry *e)
{
    referrer_free(ctx, CONTAINER(e, struct referrer, entry));
}

struct refs *sync_refs_free(struct refs *r)
{
    if (!r)
        return NULL;
    map_each(&r->referrers, free_referrer, r);
    assert(!map_count(&r->refs));
    mem_free(r);
    return NULL;
}
