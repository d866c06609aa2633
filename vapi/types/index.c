/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing in an arena. Must never be quadratic in what a tenant sends: a patch of 100,000
 * keys for an object of 100,000 members is a legal body. */

#include "index.h"
#include "tree.h"

#include <sublet/hash.h>

#include <assert.h>

enum { SMALL_WORK = 1024 };

void index_init(struct index *x, struct arena *a, size_t most)
{
    size_t cap = 16;

    while (cap < most * 2)
        cap *= 2;
    *x = (struct index){
        .slots = arena_alloc(a, cap * sizeof *x->slots), .cap = cap, .seed = hash_seed()};
}

static struct index_slot *probe(const struct index *x, struct str key)
{
    size_t i = (size_t)str_hash(key, x->seed) & (x->cap - 1);

    while (x->slots[i].key.p && !str_eq(x->slots[i].key, key))
        i = (i + 1) & (x->cap - 1);
    return &x->slots[i];
}

struct index_slot *index_put(struct index *x, struct str key, bool *fresh)
{
    struct index_slot *slot = probe(x, key);

    assert(key.p);
    *fresh = !slot->key.p;
    slot->key = key;
    return slot;
}

struct index_slot *index_get(const struct index *x, struct str key)
{
    struct index_slot *slot = probe(x, key);

    return slot->key.p ? slot : NULL;
}

/* Members */

void members_open(struct members *m, struct arena *a, cJSON *object, size_t lookups)
{
    size_t n = json_count(object);
    bool fresh;

    *m = (struct members){.arena = a, .object = object};
    if ((n + lookups) * lookups <= SMALL_WORK)
        return;
    m->indexed = true;
    index_init(&m->index, a, n + lookups);
    json_each(member, object) index_put(&m->index, str_c(member->string), &fresh)->node = member;
}

cJSON *members_get(const struct members *m, const char *key)
{
    struct index_slot *slot;

    if (!m->indexed)
        return json_get(m->object, key);
    slot = index_get(&m->index, str_c(key));
    return slot ? slot->node : NULL;
}

void members_set(struct members *m, const char *key, cJSON *item)
{
    cJSON *old = members_get(m, key);
    bool fresh;

    if (old == item)
        return;
    if (old)
        json_replace(m->object, old, item);
    else
        json_add(m->object, key, item);
    if (m->indexed)
        index_put(&m->index, str_c(key), &fresh)->node = item;
}

void members_remove(struct members *m, const char *key)
{
    cJSON *old = members_get(m, key);

    if (!old)
        return;
    json_detach(m->object, old);
    if (m->indexed)
        index_get(&m->index, str_c(key))->node = NULL;
}
