/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * The hash map: uthash with our memory and our hash, keyed with a secret of the process. Include
 * this, not <uthash.h>. A walk over a map is in the order of insertion, whatever the secret.
 *
 * struct map is the plain case, strings to entries that are embedded in the caller's structs; the
 * macros of uthash serve other keys. */
#pragma once

#include <sublet/mem.h>

uint64_t hash_seed(void); /* the same during the life of a process, random in each */

#define uthash_malloc(size)    mem_alloc(size)
#define uthash_free(ptr, size) ((void)(size), mem_free(ptr))
#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
    ((hashv) = (unsigned)str_hash((struct str){(const char *)(keyptr), (keylen)}, hash_seed()))
#include <uthash.h>

struct map_entry {
    UT_hash_handle hh;
};

/* All zero: an empty one. It owns its table only, which it has while it has entries; keys and
 * entries are the caller's. */
struct map {
    struct map_entry *first;
    uint64_t seed;
};

struct map_entry *map_get(const struct map *m, struct str key);
void map_put(struct map *m, struct map_entry *e, struct str key); /* the key must not be there */
void map_remove(struct map *m, struct map_entry *e);
size_t map_count(const struct map *m);
/* each() may remove and free the entry it is given, and must add none. */
void map_each(struct map *m, void (*each)(void *ctx, struct map_entry *e), void *ctx);
void map_clear(struct map *m); /* of entries that are all still there */
