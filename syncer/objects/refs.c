/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counts of the ConfigMaps, Secrets and claims that the tenant's pods refer to: only
 * those go to the host, and they are deleted there after the last pod. In memory only: the counts
 * follow from the pods. Must never keep a reference of a deleted pod. */

#include "objects/objects.h"
#include "host/map.h"
#include <assert.h>
#include <string.h>

#define MAX_REFS 1024 /* of one pod; the API's own limits are far lower */

struct ref {
    struct map_entry entry; /* "secrets/ns/name" */
    char *key;
    struct ref_pod **pods;
    size_t n, capacity;
};

struct ref_pod {
    struct map_entry entry; /* "ns/name" */
    char *key;
    struct ref **refs;
    size_t n;
};

struct refs {
    struct syncer *syncer;
    struct map refs, pods;
};

/* --- refs --- */

/* Adds the object to its controller. */
static void requeue(struct refs *r, struct str key)
{
    struct str rest = key, plural = str_cut(&rest, '/'), ns = str_cut(&rest, '/');

    for (int id = SYNC_CONFIG_MAPS; id <= SYNC_SECRETS; id++)
        if (str_eqc(plural, r->syncer->kinds[id].plural))
            syncer_add(r->syncer, (enum sync_id)id, ns, rest);
}

static struct ref *ref_get(struct refs *r, struct str key)
{
    struct map_entry *e = sync_map_get(&r->refs, key);
    struct ref *ref;

    if (e)
        return CONTAINER(e, struct ref, entry);
    ref = NEW(struct ref);
    ref->key = mem_strdup(key);
    sync_map_put(&r->refs, &ref->entry, str_c(ref->key));
    requeue(r, key);
    return ref;
}

static void ref_drop_pod(struct refs *r, struct ref *ref, const struct ref_pod *pod)
{
    for (size_t i = 0; i < ref->n; i++) {
        if (ref->pods[i] == pod) {
            ref->pods[i] = ref->pods[--ref->n];
            break;
        }
    }
    if (ref->n)
        return;
    sync_map_remove(&r->refs, &ref->entry);
    requeue(r, str_c(ref->key));
    mem_free(ref->pods);
    mem_free(ref->key);
    mem_free(ref);
}

/* --- pods --- */

struct gather {
    struct syncer *syncer;
    struct arena *arena;
    struct str ns;
    struct str *keys;
    size_t n;
};

static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    struct gather *g = ctx;
    enum sync_id id = sync_kind_of_ref(kind);
    struct str key;

    (void)optional;
    if (id == SYNC_NONE || g->n == MAX_REFS)
        return;
    key = arena_printf(g->arena, "%s/%.*s/%.*s", g->syncer->kinds[id].plural, STR_F(g->ns),
                       STR_F(name));
    for (size_t i = 0; i < g->n; i++)
        if (str_eq(g->keys[i], key))
            return;
    g->keys[g->n++] = key;
}

static void gather_refs(struct gather *g, struct syncer *s, struct arena *a, struct str pod_key,
                        const cJSON *pod)
{
    struct str name;

    *g = (struct gather){.syncer = s, .arena = a};
    g->keys = arena_alloc(a, MAX_REFS * sizeof(*g->keys));
    if (key_split(pod_key, &g->ns, &name))
        translate_pod_refs(pod, on_ref, g);
}

static bool same(const struct ref_pod *pod, const struct gather *g)
{
    if (pod->n != g->n)
        return false;
    for (size_t i = 0; i < g->n; i++)
        if (!str_eqc(g->keys[i], pod->refs[i]->key))
            return false;
    return true;
}

static void drop_all(struct refs *r, struct ref_pod *pod, struct ref **refs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ref_drop_pod(r, refs[i], pod);
    mem_free(refs);
}

static void pod_free(struct refs *r, struct ref_pod *pod)
{
    drop_all(r, pod, pod->refs, pod->n);
    sync_map_remove(&r->pods, &pod->entry);
    mem_free(pod->key);
    mem_free(pod);
}

static struct ref_pod *pod_get(struct refs *r, struct str key)
{
    struct map_entry *e = sync_map_get(&r->pods, key);
    struct ref_pod *pod;

    if (e)
        return CONTAINER(e, struct ref_pod, entry);
    pod = NEW(struct ref_pod);
    pod->key = mem_strdup(key);
    sync_map_put(&r->pods, &pod->entry, str_c(pod->key));
    return pod;
}

/* Adds the current references before it drops the previous ones, so that none that stays reaches 0.
 */
static void set_refs(struct refs *r, struct ref_pod *pod, const struct gather *g)
{
    struct ref **old = pod->refs;
    size_t n_old = pod->n;

    pod->n = g->n;
    pod->refs = g->n ? mem_alloc(g->n * sizeof(struct ref *)) : NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct ref *ref = ref_get(r, g->keys[i]);

        if (ref->n == ref->capacity) {
            ref->capacity = ref->capacity ? ref->capacity * 2 : 2;
            ref->pods = mem_realloc(ref->pods, ref->capacity * sizeof(*ref->pods));
        }
        ref->pods[ref->n++] = pod;
        pod->refs[i] = ref;
    }
    drop_all(r, pod, old, n_old);
}

void sync_refs_pod(struct refs *r, struct str pod_key, const cJSON *pod)
{
    struct map_entry *e = sync_map_get(&r->pods, pod_key);
    struct ref_pod *known = e ? CONTAINER(e, struct ref_pod, entry) : NULL;
    struct arena *a;
    struct gather g;

    if (!pod) {
        if (known)
            pod_free(r, known);
        return;
    }
    a = arena_new(0);
    gather_refs(&g, r->syncer, a, pod_key, pod);
    if (!known && g.n)
        known = pod_get(r, pod_key);
    if (known && !same(known, &g))
        set_refs(r, known, &g);
    arena_free(a);
}

static struct ref *lookup(const struct refs *r, enum sync_id id, struct str ns, struct str name)
{
    struct arena *a = arena_new(0);
    struct map_entry *e =
        sync_map_get(&r->refs, arena_printf(a, "%s/%.*s/%.*s", r->syncer->kinds[id].plural,
                                            STR_F(ns), STR_F(name)));

    arena_free(a);
    return e ? CONTAINER(e, struct ref, entry) : NULL;
}

bool sync_refs_wanted(const struct refs *r, enum sync_id id, struct str ns, struct str name)
{
    return lookup(r, id, ns, name) != NULL;
}

void sync_refs_wake(struct refs *r, enum sync_id id, struct str ns, struct str name)
{
    struct ref *ref = lookup(r, id, ns, name);

    for (size_t i = 0; ref && i < ref->n; i++) {
        struct str pod_ns, pod_name;

        if (key_split(str_c(ref->pods[i]->key), &pod_ns, &pod_name))
            syncer_add(r->syncer, SYNC_PODS, pod_ns, pod_name);
    }
}

/* --- life --- */

struct refs *sync_refs_new(struct syncer *s)
{
    struct refs *r = NEW(struct refs);

    r->syncer = s;
    sync_map_init(&r->refs, rng_u64(vapi_rng(s->api)));
    sync_map_init(&r->pods, rng_u64(vapi_rng(s->api)));
    return r;
}

static void free_pod(void *ctx, struct map_entry *e)
{
    pod_free(ctx, CONTAINER(e, struct ref_pod, entry));
}

struct refs *sync_refs_free(struct refs *r)
{
    if (!r)
        return NULL;
    sync_map_each(&r->pods, free_pod, r);
    assert(!r->refs.n);
    sync_map_fini(&r->refs);
    sync_map_fini(&r->pods);
    mem_free(r);
    return NULL;
}
