/* SPDX-License-Identifier: Apache-2.0
 *
 * fieldsV1, the serialized form of a set: one JSON object per step, "." for a path that is in the
 * set and has children. Must accept whatever a client stored. Source: structured-merge-diff
 * fieldpath/serialize.go. */
#include "fields.h"

#include "../tree.h"

/* A shared empty object would be linked into several lists: each member is a node of its own. */
static cJSON *print(struct arena *a, const struct field_set *x, bool self)
{
    cJSON *object = json_new_object(a);

    if (self)
        json_add(object, ".", json_new_object(a));
    for (uint32_t i = 0; x && i < x->n; i++) {
        const struct field_item *item = &x->items[i];

        json_add(object, element_print(a, &item->element),
                 print(a, item->below, item->member && item->below));
    }
    return object;
}

cJSON *set_to_json(struct arena *a, const struct field_set *x)
{
    return print(a, x, false);
}

/* *member: whether the path that ends here is in the set. */
static int parse(struct arena *a, const cJSON *fields, struct field_set **ret, bool *member,
                 unsigned depth)
{
    struct field_set *made = NULL;

    if (depth == FIELDS_DEPTH || (!json_is_object(fields) && !json_is_null(fields)))
        return -1;
    *member = false;
    json_each(step, fields)
    {
        struct field_set *below = NULL;
        struct element e;
        bool child;
        enum element_read read;

        if (step->string[0] == '.' && !step->string[1]) {
            *member = true;
            continue;
        }
        read = element_parse(a, step->string, &e);
        if (read == ELEMENT_IGNORED)
            continue;
        if (read == ELEMENT_BAD || parse(a, step, &below, &child, depth + 1))
            return -1;
        set_add(a, &made, &e, child, below);
    }
    *ret = set_finish(a, made);
    *member |= !made;
    return 0;
}

int set_from_json(struct arena *a, const cJSON *fields, struct field_set **ret)
{
    bool ignored;

    *ret = NULL;
    return fields ? parse(a, fields, ret, &ignored, 0) : 0;
}
