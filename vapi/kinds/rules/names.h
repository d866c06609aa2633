/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of strings in an arena, each with the node it came from. Internal to vapi/kinds. */
#pragma once

#include <sublet/json.h>

struct name {
    struct str key;
    const cJSON *node;
    bool used;
};
/* {.arena = a} is an empty one; nothing is to be freed. */
struct names {
    struct arena *arena;
    struct name *slots;
    size_t n, cap;
};

bool names_add(struct names *n, struct str key, const cJSON *node); /* false: it was there */
bool names_has(const struct names *n, struct str key);
const cJSON *names_get(const struct names *n, struct str key);
/* The keys of an object; the strings of a list; a member of each item of a list. */
void names_add_keys(struct names *n, const cJSON *object);
void names_add_texts(struct names *n, const cJSON *list);
void names_add_members(struct names *n, const cJSON *list, const char *key);
