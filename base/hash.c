/* SPDX-License-Identifier: Apache-2.0 */
/* The key of this process's hash maps, and the map from strings. Why: a tenant chooses what is
 * hashed, so it must not be able to compute which strings collide. */

#include <sublet/hash.h>

#include <assert.h>
#include <string.h>
#include <sys/auxv.h>

/* The kernel gives every program it executes 16 random bytes, see getauxval(3): a secret without a
 * global. */
uint64_t hash_seed(void)
{
    union {
        unsigned long number;
        const void *bytes;
    } random = {.number = getauxval(AT_RANDOM)};
    uint64_t seed = 0;

    if (random.bytes)
        memcpy(&seed, random.bytes, sizeof seed);
    return seed;
}

/* uthash evaluates the hash that it is given at every entry that it looks at. */
static unsigned hash_of(const struct map *m, struct str key)
{
    return (unsigned)str_hash(key, m->seed);
}

struct map_entry *map_get(const struct map *m, struct str key)
{
    struct map_entry *e = NULL;
    unsigned hash;

    if (!m->first)
        return NULL;
    hash = hash_of(m, key);
    HASH_FIND_BYHASHVALUE(hh, m->first, key.p, key.n, hash, e);
    return e;
}

void map_put(struct map *m, struct map_entry *e, struct str key)
{
    unsigned hash;

    assert(!map_get(m, key));
    if (!m->first)
        m->seed = hash_seed();
    hash = hash_of(m, key);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, m->first, key.p, key.n, hash, e);
}

void map_remove(struct map *m, struct map_entry *e)
{
    HASH_DEL(m->first, e);
}

size_t map_count(const struct map *m)
{
    return HASH_COUNT(m->first);
}

void map_each(struct map *m, void (*each)(void *ctx, struct map_entry *e), void *ctx)
{
    struct map_entry *e, *next;

    HASH_ITER(hh, m->first, e, next)
    each(ctx, e);
}

void map_clear(struct map *m)
{
    HASH_CLEAR(hh, m->first);
}
