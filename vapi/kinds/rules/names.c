/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of strings, for what must be unique or is looked up in lists a client sends: with plain
 * loops a hostile object would cost the square of its size. */
#include "names.h"

static uint64_t slot_of(const struct names *n, struct str key)
{
    return str_hash(key, (uint64_t)(uintptr_t)n->arena) & (n->cap - 1);
}

static struct name *find(const struct names *n, struct str key)
{
    uint64_t at = slot_of(n, key);

    while (n->slots[at].used && !str_eq(n->slots[at].key, key))
        at = (at + 1) & (n->cap - 1);
    return &n->slots[at];
}

static void grow(struct names *n)
{
    struct names bigger = {.arena = n->arena, .cap = n->cap ? n->cap * 2 : 16};

    bigger.slots = arena_alloc(n->arena, bigger.cap * sizeof(struct name));
    for (size_t i = 0; i < n->cap; i++) {
        if (n->slots[i].used)
            *find(&bigger, n->slots[i].key) = n->slots[i];
    }
    bigger.n = n->n;
    *n = bigger;
}

bool names_add(struct names *n, struct str key, const cJSON *node)
{
    struct name *slot;

    if (n->n * 4 >= n->cap * 3)
        grow(n);
    slot = find(n, key);
    if (slot->used)
        return false;
    *slot = (struct name){key, node, true};
    n->n++;
    return true;
}

bool names_has(const struct names *n, struct str key)
{
    return n->n && find(n, key)->used;
}

const cJSON *names_get(const struct names *n, struct str key)
{
    return n->n ? find(n, key)->node : NULL;
}

void names_add_keys(struct names *n, const cJSON *object)
{
    json_each(member, object) names_add(n, str_c(member->string), member);
}

void names_add_texts(struct names *n, const cJSON *list)
{
    json_each(item, list) names_add(n, json_str(item), item);
}

void names_add_members(struct names *n, const cJSON *list, const char *key)
{
    json_each(item, list) names_add(n, json_str(json_get(item, key)), item);
}
