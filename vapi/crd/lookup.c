/* SPDX-License-Identifier: Apache-2.0 */
/* The members of one object and the items of one list, where those of another are visited in order:
 * an update is compared with the object before it. */
#include "judge.h"

#include <string.h>

struct mapped {
    struct map_entry by_key;
    const cJSON *member;
};

#define SMALL 32 /* members: a map costs more than a look at each of them */

struct lookup crd_lookup(const cJSON *object)
{
    return (struct lookup){.object = object, .next = json_first(object)};
}

void crd_lookup_end(struct lookup *l)
{
    map_clear(&l->map);
    arena_free(l->arena);
}

size_t crd_lookup_steps(const struct lookup *l, struct str key)
{
    size_t n = 0;

    if (json_is_object(l->object) && !l->arena && !(l->next && str_eq(json_key(l->next), key)))
        n = json_count(l->object);
    return n > SMALL ? n : 0;
}

static void map_members(struct lookup *l)
{
    l->arena = arena_new(0);
    json_each(member, l->object)
    {
        struct mapped *m = ARENA_NEW(l->arena, struct mapped);

        m->member = member;
        map_put(&l->map, &m->by_key, json_key(member));
    }
}

const cJSON *crd_look_up(struct lookup *l, struct str key)
{
    const cJSON *found = l->next;
    struct map_entry *e;

    if (!json_is_object(l->object))
        return NULL;
    if (!found || !str_eq(json_key(found), key)) {
        if (crd_lookup_steps(l, key))
            map_members(l);
        e = l->arena ? map_get(&l->map, key) : NULL;
        found = e          ? CONTAINER(e, struct mapped, by_key)->member
                : l->arena ? NULL
                           : json_get_str(l->object, key);
    }
    l->next = found ? found->next : l->next;
    return found;
}

const cJSON *crd_old_item(const struct schema *s, const struct schema_node *n, const cJSON *item,
                          const cJSON *old, const cJSON *hint, size_t *steps)
{
    if (n->list_type != LIST_MAP || !n->keys || !json_is_array(old))
        return NULL;
    for (int round = 0; round < 2; round++) {
        for (const cJSON *o = round ? json_first(old) : hint; o && *steps; o = o->next) {
            const char *key = schema_text(s, n->keys);
            bool same = true;

            --*steps;
            for (; *key && same; key += strlen(key) + 1) {
                const cJSON *a = json_get(item, key), *b = json_get(o, key);

                same = a && b ? json_equal(a, b) : a == b;
            }
            if (same)
                return o;
        }
    }
    return NULL;
}
