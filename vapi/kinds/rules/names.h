/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of strings in an arena, each with the node it came from. Internal to vapi/kinds. */
#pragma once

#include "../../types/index.h"

/* {.arena = a} is an empty one; nothing is to be freed. */
struct names {
    struct arena *arena;
    struct index index;
    size_t n;
};
/* The slots of a set that hold a key, in no order. */
#define names_each(slot, names)                                                                    \
    for (const struct index_slot *slot = (names)->index.slots;                                     \
         slot < (names)->index.slots + (names)->index.cap; slot++)                                 \
        if (!slot->key.p)                                                                          \
            ;                                                                                      \
        else

bool names_add(struct names *n, struct str key, const cJSON *node); /* false: it was there */
bool names_has(const struct names *n, struct str key);
const cJSON *names_get(const struct names *n, struct str key);
/* The keys of an object; the strings of a list; a member of each item of a list. */
void names_add_keys(struct names *n, const cJSON *object);
void names_add_texts(struct names *n, const cJSON *list);
void names_add_members(struct names *n, const cJSON *list, const char *key);
