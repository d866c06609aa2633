/* SPDX-License-Identifier: Apache-2.0 */
/* The room's hash map: chained, doubling, seeded so that tenants cannot construct collisions. Must
 * never copy or free keys and entries. */
#include "host/map.h"

#include <assert.h>
#include <string.h>

enum { FIRST_BUCKETS = 16 };

void sync_map_init(struct map *m, uint64_t seed)
{
    *m = (struct map){.seed = seed};
}

void sync_map_fini(struct map *m)
{
    mem_free(m->buckets);
    *m = (struct map){0};
}

static struct map_entry **bucket(const struct map *m, uint64_t hash)
{
    return &m->buckets[hash & (m->n_buckets - 1)];
}

static void grow(struct map *m)
{
    struct map old = *m;

    m->n_buckets = old.n_buckets ? old.n_buckets * 2 : FIRST_BUCKETS;
    m->buckets = mem_alloc(m->n_buckets * sizeof(*m->buckets));
    for (size_t i = 0; i < old.n_buckets; i++) {
        struct map_entry *e = old.buckets[i];

        while (e) {
            struct map_entry *next = e->next, **b = bucket(m, e->hash);

            e->next = *b;
            *b = e;
            e = next;
        }
    }
    mem_free(old.buckets);
}

struct map_entry *sync_map_get(const struct map *m, struct str key)
{
    if (!m->n)
        return NULL;
    uint64_t hash = str_hash(key, m->seed);
    for (struct map_entry *e = *bucket(m, hash); e; e = e->next)
        if (e->hash == hash && str_eq(e->key, key))
            return e;
    return NULL;
}

void sync_map_put(struct map *m, struct map_entry *e, struct str key)
{
    struct map_entry **b;

    assert(!sync_map_get(m, key));
    if (m->n == m->n_buckets)
        grow(m);
    e->key = key;
    e->hash = str_hash(key, m->seed);
    b = bucket(m, e->hash);
    e->next = *b;
    *b = e;
    m->n++;
}

void sync_map_remove(struct map *m, struct map_entry *e)
{
    struct map_entry **at = bucket(m, e->hash);

    while (*at != e) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = e->next;
    m->n--;
}

void sync_map_each(struct map *m, void (*each)(void *ctx, struct map_entry *e), void *ctx)
{
    for (size_t i = 0; i < m->n_buckets; i++) {
        struct map_entry *next;

        for (struct map_entry *e = m->buckets[i]; e; e = next) {
            next = e->next;
            each(ctx, e);
        }
    }
}
