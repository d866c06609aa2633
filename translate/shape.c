/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by allow-list. Why: a host object is built from what is known, so a field of a newer
 * version, a misspelt one or one of the wrong type never reaches the host by accident. Must never
 * copy a subtree whole. */

#include <string.h>

#include "shape.h"

struct str shape_name_down(struct down *d, struct str name)
{
    char out[64];

    translate_name(d->tenant, d->ns, name, out);
    return arena_str(d->arena, str_c(out));
}

static cJSON *scalars(struct down *d, const cJSON *value, bool object)
{
    cJSON *ret = object ? json_new_object(d->arena) : json_new_array(d->arena);

    json_each(item, value)
    {
        if (!json_is_scalar(item))
            continue;
        if (object)
            object_add(d->arena, ret, json_key(item), json_copy(d->arena, item));
        else
            json_append(ret, json_copy(d->arena, item));
    }
    return ret;
}

static cJSON *list(struct down *d, const struct field *field, const cJSON *value)
{
    cJSON *ret = json_new_array(d->arena);

    json_each(item, value)
    {
        cJSON *made = NULL;

        if (json_is_object(item))
            made = field->how == FIELD_LIST ? shape_copy(d, field->fields, item)
                                            : field->make(d, item);
        if (made)
            json_append(ret, made);
    }
    return ret;
}

static cJSON *copy_field(struct down *d, const struct field *field, const cJSON *value)
{
    switch (field->how) {
    case FIELD_SCALAR:
        return json_is_scalar(value) ? json_copy(d->arena, value) : NULL;
    case FIELD_SCALARS:
        return json_is_array(value) ? scalars(d, value, false) : NULL;
    case FIELD_MAP:
        return json_is_object(value) ? scalars(d, value, true) : NULL;
    case FIELD_OBJECT:
        return json_is_object(value) ? shape_copy(d, field->fields, value) : NULL;
    case FIELD_LIST:
    case FIELD_EACH:
        return json_is_array(value) ? list(d, field, value) : NULL;
    case FIELD_NAME:
        return json_str(value).n ? json_new_string(d->arena, shape_name_down(d, json_str(value)))
                                 : NULL;
    case FIELD_MAKE:
        return field->make(d, value);
    }
    return NULL;
}

void shape_into(struct down *d, const struct field *fields, const cJSON *value, cJSON *to)
{
    for (; fields->key; fields++) {
        const cJSON *member = json_get(value, fields->key);
        cJSON *copy;

        if (!member || json_is_null(member) || (fields->privileged && !d->privileged))
            continue;
        copy = copy_field(d, fields, member);
        if (copy)
            object_add(d->arena, to, str_c(fields->key), copy);
    }
}

cJSON *shape_copy(struct down *d, const struct field *fields, const cJSON *value)
{
    cJSON *ret = json_new_object(d->arena);

    shape_into(d, fields, value, ret);
    return ret;
}
