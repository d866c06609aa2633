/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * A hash map from strings to entries that are embedded in the caller's structs. It owns its buckets
 * only; keys and entries are the caller's. */
#pragma once

#include <sublet/mem.h>

struct map_entry {
    struct map_entry *next;
    uint64_t hash;
    struct str key;
};

struct map {
    struct map_entry **buckets;
    size_t n_buckets, n;
    uint64_t seed;
};

void sync_map_init(struct map *m, uint64_t seed);
void sync_map_fini(struct map *m); /* does not free the entries */
struct map_entry *sync_map_get(const struct map *m, struct str key);
void sync_map_put(struct map *m, struct map_entry *e,
                  struct str key); /* the key must not be there */
void sync_map_remove(struct map *m, struct map_entry *e);
/* In no particular order. each() may remove and free the entry it is given, and must add none. */
void sync_map_each(struct map *m, void (*each)(void *ctx, struct map_entry *e), void *ctx);
