/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an object being read. Why: duplicates must be found (the last one wins, and strict
 * decoding reports them) in objects as large as a body. Must never take quadratic time: the hash is
 * keyed with a secret of this process, so a tenant cannot make its keys collide. */

#include "json_keys.h"

#include <string.h>

#include <sublet/hash.h>

#include "json_impl.h"

static struct json_keys_slot *probe(const struct json_keys *keys, uint64_t hash, const char *key)
{
    size_t i = hash & (keys->cap - 1);

    while (keys->slots[i].node &&
           (keys->slots[i].hash != hash || strcmp(keys->slots[i].node->string, key) != 0))
        i = (i + 1) & (keys->cap - 1);
    return &keys->slots[i];
}

static void rehash(struct json_keys *keys, size_t cap)
{
    struct json_keys bigger = {.seed = keys->seed, .count = keys->count, .cap = cap};

    bigger.slots = mem_alloc(cap * sizeof *bigger.slots);
    for (size_t i = 0; keys->slots && i < keys->cap; i++)
        if (keys->slots[i].node)
            *probe(&bigger, keys->slots[i].hash, keys->slots[i].node->string) = keys->slots[i];
    mem_free(keys->slots);
    *keys = bigger;
}

static uint64_t filter_bit(struct str key)
{
    unsigned mix = (unsigned)key.n * 7;

    if (key.n)
        mix += (unsigned char)key.p[0] * 31u + (unsigned char)key.p[key.n - 1];
    return UINT64_C(1) << (mix & 63);
}

cJSON *json_keys_find(struct json_keys *keys, const cJSON *object, struct str key)
{
    uint64_t bit;
    bool maybe;

    if (keys->slots) {
        keys->hash = str_hash(key, keys->seed);
        keys->found = probe(keys, keys->hash, key.p);
        return keys->found->node;
    }

    bit = filter_bit(key);
    maybe = keys->filter & bit;
    keys->filter |= bit;
    for (cJSON *child = maybe ? object->child : NULL; child; child = child->next)
        if (strcmp(child->string, key.p) == 0)
            return child;
    return NULL;
}

void json_keys_add(struct json_keys *keys, const cJSON *object, cJSON *node)
{
    keys->count++;
    if (keys->slots) {
        *keys->found = (struct json_keys_slot){keys->hash, node};
        if (keys->count * 2 > keys->cap)
            rehash(keys, keys->cap * 2);
    } else if (keys->count > JSON_SMALL) {
        /* Leaves the list behind: all members so far go into a table. */
        keys->seed = hash_seed();
        rehash(keys, (size_t)JSON_SMALL * 4);
        json_each(child, object)
        {
            uint64_t hash = str_hash(str_c(child->string), keys->seed);

            *probe(keys, hash, child->string) = (struct json_keys_slot){hash, child};
        }
    }
}

void json_keys_fini(struct json_keys *keys)
{
    keys->slots = mem_free(keys->slots);
}
