/* SPDX-License-Identifier: Apache-2.0 */
/* Every create checks a quota against the sum over all objects of its namespace: parsing each of
 * them again would dominate its cost. The usage of a version of an object never changes, so it is
 * cached, in a table of a fixed size where an entry replaces the one it collides with. Must never
 * answer for another version: revisions that were never committed may be used again, so the bytes
 * themselves are part of the key. */
#include "counted.h"

#include <assert.h>
#include <string.h>

#include <sublet/object.h>

#define MEMO_MAGIC 0x636e7464u
#define SLOTS      4096u
#define N_CLASSES  (sizeof(((struct counted *)NULL)->classes) / sizeof(struct str))

struct entry {
    _Alignas(struct usage_item) uint64_t key; /* the quantities follow */
    uint64_t check;
    struct counted counted; /* everything it points to follows in the same allocation */
};

struct admission_memo {
    unsigned magic;
    uint64_t seed;
    struct arena *scratch;
    struct entry *slots[SLOTS];
};

struct admission_memo *admission_memo_new(const struct rng *rng)
{
    struct admission_memo *m = NEW(struct admission_memo);

    m->magic = MEMO_MAGIC;
    m->seed = rng_u64(rng);
    m->scratch = arena_new(0);
    return m;
}

struct admission_memo *admission_memo_free(struct admission_memo *m)
{
    if (!m)
        return NULL;
    assert(m->magic == MEMO_MAGIC);
    for (size_t i = 0; i < SLOTS; i++)
        mem_free(m->slots[i]);
    arena_free(m->scratch);
    m->magic = 0;
    return mem_free(m);
}

/* --- reading --- */

static bool crosses_namespaces(const cJSON *pod)
{
    static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};

    for (size_t i = 0; i < 2; i++) {
        const cJSON *affinity = json_get(json_path(pod, "spec.affinity"), kinds[i]);

        json_each(list, affinity)
        {
            json_each(term, list)
            {
                const cJSON *t = json_get(term, "podAffinityTerm");

                t = t ? t : term;
                if (json_count(json_get(t, "namespaces")) || json_get(t, "namespaceSelector"))
                    return true;
            }
        }
    }
    return false;
}

/* --- device claims instead of extended resources --- */

static const cJSON *pod_of(const cJSON *claim)
{
    const cJSON *made = json_get(json_path(claim, "metadata.annotations"),
                                 "resource.kubernetes.io/extended-resource-claim");

    const cJSON *ref = owner_controller(claim);
    bool by_pod =
        str_eqc(json_str_at(ref, "kind"), "Pod") && str_eqc(json_str_at(ref, "apiVersion"), "v1");

    return by_pod && str_eqc(json_str(made), "true") ? ref : NULL;
}

bool counted_is_extended(const cJSON *claim, struct str pod_uid)
{
    const cJSON *ref = pod_of(claim);

    return ref && (!pod_uid.n || str_eq(json_str_at(ref, "uid"), pod_uid));
}

void counted_read(struct arena *a, const struct resource *r, const cJSON *object,
                  struct counted *ret)
{
    *ret = (struct counted){.usage = {.arena = a}};
    usage_of_object(&ret->usage, r->group, r->plural, object);
    if (!r->group.n && str_eqc(r->plural, "persistentvolumeclaims")) {
        static const char *const places[N_CLASSES] = {
            "spec.volumeAttributesClassName", "status.currentVolumeAttributesClassName",
            "status.modifyVolumeStatus.targetVolumeAttributesClassName"};

        for (size_t i = 0; i < COUNT(places); i++)
            ret->classes[i] = json_str_at(object, places[i]);
    }
    if (str_eqc(r->group_resource, "resourceclaims.resource.k8s.io")) {
        const cJSON *ref = pod_of(object);

        if (ref) {
            ret->owner[COUNTED_POD] = json_str_at(ref, "name");
            ret->owner[COUNTED_POD_UID] = json_str_at(ref, "uid");
            ret->owner[COUNTED_CLAIM] = json_str_at(object, "metadata.name");
        }
    }
    if (r->group.n || !str_eqc(r->plural, "pods"))
        return;
    ret->deadline = json_path(object, "spec.activeDeadlineSeconds") != NULL;
    ret->best_effort = str_eqc(json_str_at(object, "status.qosClass"), "BestEffort");
    ret->crosses_namespaces = crosses_namespaces(object);
    ret->priority_class = json_str_at(object, "spec.priorityClassName");
}

/* --- cache --- */

static struct str put(char **at, struct str s)
{
    struct str kept = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return kept;
}

static struct entry *entry_new(const struct counted *from)
{
    size_t n = from->usage.n, bytes = from->priority_class.n;
    struct entry *e;
    char *text;

    for (size_t i = 0; i < n; i++)
        bytes += from->usage.items[i].name.n;
    for (size_t i = 0; i < N_CLASSES; i++)
        bytes += from->classes[i].n;
    for (size_t i = 0; i < COUNTED_OWNER_TEXTS; i++)
        bytes += from->owner[i].n;
    e = mem_alloc(sizeof(*e) + n * sizeof(struct usage_item) + bytes);
    e->counted = *from;
    e->counted.usage.arena = NULL; /* nothing is added any more */
    e->counted.usage.items = (struct usage_item *)(void *)(e + 1);
    e->counted.usage.cap = n;
    text = (char *)(e->counted.usage.items + n);
    for (size_t i = 0; i < n; i++) {
        e->counted.usage.items[i].q = from->usage.items[i].q;
        e->counted.usage.items[i].name = put(&text, from->usage.items[i].name);
    }
    e->counted.priority_class = put(&text, from->priority_class);
    for (size_t i = 0; i < N_CLASSES; i++)
        e->counted.classes[i] = put(&text, from->classes[i]);
    for (size_t i = 0; i < COUNTED_OWNER_TEXTS; i++)
        e->counted.owner[i] = put(&text, from->owner[i]);
    return e;
}

const struct counted *counted_of(struct admission_memo *m, const struct resource *r,
                                 const struct store_object *o)
{
    uint64_t key = str_hash(o->uid, m->seed), check = str_hash(o->bytes, ~m->seed);
    struct entry **slot = &m->slots[key % SLOTS];
    struct counted read;

    assert(m->magic == MEMO_MAGIC);
    if (*slot && (*slot)->key == key && (*slot)->check == check)
        return &(*slot)->counted;
    arena_reset(m->scratch);
    counted_read(m->scratch, r, vapi_tree(m->scratch, o), &read);
    mem_free(*slot);
    *slot = entry_new(&read);
    (*slot)->key = key;
    (*slot)->check = check;
    return &(*slot)->counted;
}
