/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash look-ups by keys a tenant sent: members of large objects and items of keyed lists, for
 * patches, and the sets of names of vapi/kinds. The hash uses a secret of the process, so that keys
 * cannot be chosen to collide. */
#pragma once

#include <sublet/json.h>

struct index_slot {
    struct str key; /* key.p is NULL in an empty slot */
    size_t at;      /* the caller's: a position */
    union {
        cJSON *node;       /* the caller's: NULL once removed */
        const cJSON *seen; /* the same of a tree that is only read */
    };
};

struct index {
    struct index_slot *slots;
    size_t cap; /* a power of two */
    uint64_t seed;
};

/* Room for `most` keys; the caller must not put more. Keys are not copied. */
void index_init(struct index *x, struct arena *a, size_t most);
/* The slot of a key; *fresh when it was added. */
struct index_slot *index_put(struct index *x, struct str key, bool *fresh);
struct index_slot *index_get(const struct index *x, struct str key); /* NULL: none */

/* The members of an object while a patch is merged into it. Only these functions may change the
 * object then. */
struct members {
    struct arena *arena;
    cJSON *object;
    bool indexed;
    struct index index;
};

/* lookups: an upper bound of the keys that will be read or set. */
void members_open(struct members *m, struct arena *a, cJSON *object, size_t lookups);
cJSON *members_get(const struct members *m, const char *key);
void members_set(struct members *m, const char *key, cJSON *item); /* key must outlive the tree */
void members_remove(struct members *m, const char *key);
