/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * The set of an object's keys while the object is being read: finds a duplicate in constant time.
 * Must never be included outside base. */
#pragma once

#include <sublet/json.h>

/* A small object is searched in its list behind a 64-bit filter, which nearly always says no; a
 * larger one has an open-addressed table. Zero to begin with. */
struct json_keys {
    uint64_t filter, seed, hash;
    size_t count, cap;
    struct json_keys_slot {
        uint64_t hash;
        cJSON *node;
    } *slots, *found; /* found: where the last look-up ended */
};

/* The member of object with that key (NUL-terminated, no NUL inside), or NULL. */
cJSON *json_keys_find(struct json_keys *keys, const cJSON *object, struct str key);
/* Enters node, already a member of object, whose key the last find did not find. */
void json_keys_add(struct json_keys *keys, const cJSON *object, cJSON *node);
void json_keys_fini(struct json_keys *keys);
