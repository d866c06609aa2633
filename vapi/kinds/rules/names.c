/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of strings, for what must be unique or is looked up in lists a client sends: with plain
 * loops a hostile object would cost the square of its size. */
#include "names.h"

/* The index knows empty slots by a key without bytes. */
static struct str key_of(struct str s)
{
    return s.p ? s : STR("");
}

static void grow(struct names *n)
{
    struct index bigger;
    bool fresh;

    index_init(&bigger, n->arena, n->index.cap);
    names_each(slot, n) index_put(&bigger, slot->key, &fresh)->seen = slot->seen;
    n->index = bigger;
}

bool names_add(struct names *n, struct str key, const cJSON *node)
{
    struct index_slot *slot;
    bool fresh;

    if (n->n * 4 >= n->index.cap * 3)
        grow(n);
    slot = index_put(&n->index, key_of(key), &fresh);
    if (!fresh)
        return false;
    slot->seen = node;
    n->n++;
    return true;
}

bool names_has(const struct names *n, struct str key)
{
    return n->n && index_get(&n->index, key_of(key));
}

const cJSON *names_get(const struct names *n, struct str key)
{
    const struct index_slot *slot = n->n ? index_get(&n->index, key_of(key)) : NULL;

    return slot ? slot->seen : NULL;
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
