/* SPDX-License-Identifier: Apache-2.0
 *
 * "1Gi" and "1024Mi" are the same quantity: replacing one by the other changes no spec, breaks no
 * immutable field, and starts no new generation, but the new spelling is stored. Must never make
 * two different quantities equal. Source: apimachinery pkg/api/equality. */
#include <sublet/spelling.h>

#include <sublet/quantity.h>

#define MAX_DEPTH 64

/* Changes only before, a copy. */
static void respell(const struct schema *s, uint32_t node, cJSON *before, const cJSON *now,
                    unsigned depth);

static void respell_quantity(cJSON *before, const cJSON *now)
{
    struct quantity a, b;

    if (!json_is_string(before) || !json_is_string(now) ||
        str_eq(json_str(before), json_str(now)) || !quantity_parse(json_str(before), &a) ||
        !quantity_parse(json_str(now), &b) || quantity_cmp(a, b) != 0)
        return;
    before->valuestring = now->valuestring;
    before->valueint = now->valueint;
}

static void respell_members(const struct schema *s, uint32_t node, cJSON *before, const cJSON *now,
                            unsigned depth)
{
    json_each(member, before)
    {
        const cJSON *other = json_get(now, member->string);
        uint32_t child = other ? schema_child(s, node, str_c(member->string)) : 0;

        if (child)
            respell(s, child, member, other, depth);
    }
}

static void respell(const struct schema *s, uint32_t node, cJSON *before, const cJSON *now,
                    unsigned depth)
{
    const struct schema_node *n = schema_node(s, node);
    const cJSON *other = json_first(now);

    if (depth == MAX_DEPTH)
        return;
    switch (n->kind) {
    case SCHEMA_QUANTITY:
        respell_quantity(before, now);
        break;
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        if (json_is_object(before) && json_is_object(now))
            respell_members(s, node, before, now, depth + 1);
        break;
    case SCHEMA_LIST:
        if (!json_is_array(before) || !json_is_array(now))
            break;
        json_each(item, before)
        {
            if (!other)
                break;
            respell(s, n->elem, item, other, depth + 1);
            other = other->next;
        }
        break;
    default:
        break;
    }
}

cJSON *schema_respell(struct arena *a, const struct schema *s, uint32_t node, const cJSON *before,
                      const cJSON *now)
{
    cJSON *made = json_copy(a, before);

    respell(s, node, made, now, 0);
    return made;
}
