/* SPDX-License-Identifier: Apache-2.0 */
/* Validates the identity of lists and maps in a schema (x-kubernetes-list-type, -map-keys,
 * -map-type), on which server-side apply and the checks of duplicates depend. Source:
 * apiextensions-apiserver pkg/apis/apiextensions/validation. */
#include "schema_checks.h"

#include <string.h>

#define LIST_TYPE "x-kubernetes-list-type"
#define MAP_TYPE  "x-kubernetes-map-type"
#define MAP_KEYS  "x-kubernetes-list-map-keys"

static void must_be(struct field_errors *e, const struct field_path *p, const cJSON *schema,
                    const char *type, const char *detail)
{
    struct str found = json_str_at(schema, "type");

    if (!found.n)
        field_required(e, FIELD(p, "type"), detail);
    else if (!str_eqc(found, type))
        field_invalid_str(e, FIELD(p, "type"), found, detail);
}

static void check_map_type(struct field_errors *e, const struct field_path *p, const cJSON *schema)
{
    static const char *const types[] = {"atomic", "granular", NULL};
    struct str type = json_str(json_get(schema, MAP_TYPE));

    if (!json_get(schema, MAP_TYPE))
        return;
    must_be(e, p, schema, "object", "must be object if x-kubernetes-map-type is specified");
    if (!str_eqc(type, "atomic") && !str_eqc(type, "granular"))
        field_not_supported(e, FIELD(p, MAP_TYPE), type, types);
}

static void check_set_items(struct field_errors *e, const struct field_path *p, const cJSON *items)
{
    static const char why[] = "must be atomic as item of a list with x-kubernetes-list-type=set";
    struct str type = json_str_at(items, "type");
    const cJSON *list = json_get(items, LIST_TYPE), *map = json_get(items, MAP_TYPE);

    if (str_eqc(type, "array") && list && !str_eqc(json_str(list), "atomic"))
        field_invalid(e, FIELD(FIELD(p, "items"), LIST_TYPE), list, why);
    if (str_eqc(type, "object") && !str_eqc(json_str(map), "atomic"))
        field_invalid(e, FIELD(FIELD(p, "items"), MAP_TYPE), list,
                      why); /* upstream reports the wrong value, too */
}

static const cJSON *property_of(const cJSON *items, const cJSON *key)
{
    return json_get_str(json_get(items, "properties"), json_str(key));
}

static void check_key(struct field_errors *e, const struct field_path *p, const cJSON *schema,
                      const cJSON *key)
{
    const cJSON *items = json_get(schema, "items"), *keys = json_get(schema, MAP_KEYS);
    const cJSON *property = property_of(items, key);
    struct str type = json_str_at(property, "type");
    const struct field_path *at = FIELD_KEY(FIELD(FIELD(p, "items"), "properties"), json_str(key));

    if (!property)
        field_invalid(e, FIELD(p, MAP_KEYS), keys, "entries must all be names of item properties");
    else if (str_eqc(type, "array") || str_eqc(type, "object"))
        field_invalid_str(e, FIELD(at, "type"), json_str_at(items, "type"),
                          "must be a scalar type if parent array's x-kubernetes-list-type is map");
    for (const cJSON *before = json_first(keys); before && before != key; before = before->next) {
        if (str_eq(json_str(before), json_str(key))) {
            field_invalid(e, FIELD(p, MAP_KEYS), keys, "must not contain duplicate entries");
            break;
        }
    }
}

static void check_map_items(struct field_errors *e, const struct field_path *p, const cJSON *schema)
{
    const cJSON *items = json_get(schema, "items"), *keys = json_get(schema, MAP_KEYS);
    struct str type = json_str_at(items, "type");

    if (!json_count(keys))
        field_required(e, FIELD(p, MAP_KEYS), "must not be empty if x-kubernetes-list-type is map");
    if (!items)
        field_required(e, FIELD(p, "items"), "must have a schema if x-kubernetes-list-type is map");
    if (json_is_object(items) && !str_eqc(type, "object"))
        field_invalid_str(e, FIELD(FIELD(p, "items"), "type"), type,
                          "must be object if parent array's x-kubernetes-list-type is map");
    if (!str_eqc(type, "object"))
        return;
    json_each(key, keys) check_key(e, p, schema, key);
}

/* Items of sets and maps, and the keys of maps, are always there. */
static void check_always_set(struct field_errors *e, const struct field_path *p,
                             const cJSON *schema, bool map)
{
    const cJSON *items = json_get(schema, "items"), *required = json_get(items, "required");

    p = FIELD(p, "items");
    if (json_true(json_get(items, "nullable")))
        field_forbidden(e, FIELD(p, "nullable"),
                        map ? "cannot be nullable when x-kubernetes-list-type is map"
                            : "cannot be nullable when x-kubernetes-list-type is set");
    if (!map)
        return;
    json_each(key, json_get(schema, MAP_KEYS))
    {
        const cJSON *property = property_of(items, key);
        const struct field_path *at = FIELD_KEY(FIELD(p, "properties"), json_str(key));

        if (!property)
            continue;
        if (!json_list_has(required, json_str(key)) && !json_get(property, "default"))
            field_required(e, FIELD(at, "default"),
                           "this property is in x-kubernetes-list-map-keys, so it must have a "
                           "default or be a required property");
        if (json_true(json_get(property, "nullable")))
            field_forbidden(e, FIELD(at, "nullable"),
                            "this property is in x-kubernetes-list-map-keys, so it cannot be "
                            "nullable");
    }
}

static void check_map_keys(struct field_errors *e, const struct field_path *p, const cJSON *schema)
{
    static const char why[] = "must be map if x-kubernetes-list-map-keys is non-empty";
    const cJSON *type = json_get(schema, LIST_TYPE);

    if (!json_count(json_get(schema, MAP_KEYS)))
        return;
    if (!type)
        field_required(e, FIELD(p, LIST_TYPE), why);
    else if (!str_eqc(json_str(type), "map"))
        field_invalid(e, FIELD(p, LIST_TYPE), type, why);
}

void crd_check_lists(struct field_errors *e, const struct field_path *p, const cJSON *schema)
{
    static const char *const types[] = {"atomic", "set", "map", NULL};
    struct str type = json_str(json_get(schema, LIST_TYPE));
    bool typed = json_get(schema, LIST_TYPE) != NULL,
         array = str_eqc(json_str_at(schema, "type"), "array"), set = str_eqc(type, "set"),
         map = str_eqc(type, "map");

    check_map_type(e, p, schema);
    if (typed && !array)
        must_be(e, p, schema, "array", "must be array if x-kubernetes-list-type is specified");
    else if (set)
        check_set_items(e, p, json_get(schema, "items"));
    if (typed && !set && !map && !str_eqc(type, "atomic"))
        field_not_supported(e, FIELD(p, LIST_TYPE), type, types);
    check_map_keys(e, p, schema);
    if (map)
        check_map_items(e, p, schema);
    if (set || map)
        check_always_set(e, p, schema, map);
}
