/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of structural schemas: every part has a type, values are judged but not shaped by
 * alternatives, nothing refers elsewhere. Also refuses what we could not hold: depth, size,
 * patterns that do not compile. Source: apiextensions-apiserver pkg/apiserver/schema/validation.go.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "schema_checks.h"

#include <string.h>

#include "version.h"

struct checker {
    struct field_errors *e;
    size_t nodes;
    size_t pattern_bytes;
};

#define MAX_PATTERN_BYTES 65536

static bool extension(const cJSON *s, const char *name)
{
    return json_true(json_get(s, name));
}

static void check_type(struct checker *c, const struct field_path *p, const cJSON *s, bool root)
{
    static const char *const types[] = {"array",  "boolean", "integer", "number",
                                        "object", "string",  NULL};
    struct str type = json_str_at(s, "type");
    bool known = false, either = extension(s, "x-kubernetes-int-or-string");

    for (size_t i = 0; types[i]; i++)
        known = known || str_eqc(type, types[i]);
    if (type.n && !known)
        field_not_supported(c->e, FIELD(p, "type"), type, types);
    if (type.n && either)
        field_invalid_str(c->e, FIELD(p, "type"), type,
                          "must be empty if x-kubernetes-int-or-string is true");
    if (!type.n && !either && !extension(s, "x-kubernetes-preserve-unknown-fields"))
        field_required(c->e, FIELD(p, "type"),
                       root ? "must not be empty at the root"
                            : "must not be empty for specified object fields");
    if (root && type.n && !str_eqc(type, "object"))
        field_invalid_str(c->e, FIELD(p, "type"), type, "must be object at the root");
}

static void check_forbidden(struct checker *c, const struct field_path *p, const cJSON *s)
{
    static const struct {
        const char *key, *why;
    } forbidden[] = {
        {"$ref", "$ref is not supported"},
        {"definitions", "definitions is not supported"},
        {"dependencies", "dependencies is not supported"},
        {"deprecated", "deprecated is not supported"},
        {"id", "id is not supported"},
        {"patternProperties", "patternProperties is not supported"},
        {"discriminator", "discriminator is not supported"},
        {"readOnly", "readOnly is not supported"},
        {"writeOnly", "writeOnly is not supported"},
        {"xml", "xml is not supported"},
        {"additionalItems", "additionalItems is not supported"},
    };

    for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++) {
        if (json_get(s, forbidden[i].key))
            field_forbidden(c->e, FIELD(p, forbidden[i].key), forbidden[i].why);
    }
    if (extension(s, "uniqueItems"))
        field_forbidden(
            c->e, FIELD(p, "uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    const cJSON *more = json_get(s, "additionalProperties");
    if (more && json_is_bool(more) && !json_true(more))
        field_forbidden(c->e, FIELD(p, "additionalProperties"),
                        "additionalProperties cannot be set to false");
    if (more && json_count(json_get(s, "properties")))
        field_forbidden(c->e, FIELD(p, "additionalProperties"),
                        "additionalProperties and properties are mutual exclusive");
    if (json_is_array(json_get(s, "items")))
        field_forbidden(c->e, FIELD(p, "items"), "items must be a schema object and not an array");
}

static void check_pattern(struct checker *c, const struct field_path *p, const cJSON *s)
{
    struct str pattern = json_str_at(s, "pattern");
    int code;
    size_t offset;

    if (!pattern.n)
        return;
    c->pattern_bytes += pattern.n;
    if (c->pattern_bytes > MAX_PATTERN_BYTES) {
        field_forbidden(c->e, FIELD(p, "pattern"),
                        "the patterns of one schema are too long in all");
        return;
    }
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n,
                                   PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset, NULL);
    if (re) {
        pcre2_code_free(re);
        return;
    }
    char why[128] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why));
    field_invalid_str(
        c->e, FIELD(p, "pattern"), pattern,
        arena_printf(c->e->arena, "must be a valid regular expression, but isn't: %s", why).p);
}

static void check_list(struct checker *c, const struct field_path *p, const cJSON *s)
{
    static const char *const types[] = {"atomic", "map", "set", NULL};
    struct str list = json_str_at(s, "x-kubernetes-list-type");
    const cJSON *keys = json_get(s, "x-kubernetes-list-map-keys");
    bool map = str_eqc(list, "map");

    if (list.n && !map && !str_eqc(list, "set") && !str_eqc(list, "atomic"))
        field_not_supported(c->e, FIELD(p, "x-kubernetes-list-type"), list, types);
    if (list.n && !str_eqc(json_str_at(s, "type"), "array"))
        field_invalid_str(c->e, FIELD(p, "type"), json_str_at(s, "type"),
                          "must be array if x-kubernetes-list-type is specified");
    if (map && !json_count(keys))
        field_required(c->e, FIELD(p, "x-kubernetes-list-map-keys"),
                       "must not be empty if x-kubernetes-list-type is map");
    if (!map && keys)
        field_invalid_str(c->e, FIELD(p, "x-kubernetes-list-type"), list,
                          "must be map if x-kubernetes-list-map-keys is non-empty");
    json_each(key, keys)
    {
        const cJSON *items = json_path(s, "items.properties");

        if (!json_get_str(items, json_str(key)))
            field_invalid(c->e, FIELD(p, "x-kubernetes-list-map-keys"), key,
                          "entries must all be names of item properties");
    }
}

static void check(struct checker *c, const struct field_path *p, const cJSON *s, unsigned depth,
                  bool structural);

/* allOf and the like judge values; they have no types, titles or extensions of their own. */
static void check_junctors(struct checker *c, const struct field_path *p, const cJSON *s,
                           unsigned depth)
{
    static const char *const keys[] = {"allOf", "anyOf", "oneOf"};

    for (size_t k = 0; k < 3; k++) {
        size_t i = 0;

        json_each(part, json_get(s, keys[k]))
            check(c, FIELD_INDEX(FIELD(p, keys[k]), i++), part, depth + 1, false);
    }
    if (json_get(s, "not"))
        check(c, FIELD(p, "not"), json_get(s, "not"), depth + 1, false);
}

static void check_unstructured(struct checker *c, const struct field_path *p, const cJSON *s)
{
    static const char *const keys[] = {"type",
                                       "default",
                                       "description",
                                       "title",
                                       "additionalProperties",
                                       "nullable",
                                       "x-kubernetes-preserve-unknown-fields",
                                       "x-kubernetes-embedded-resource"};
    /* The one pattern that says "a number or a string" is allowed to name its types. */
    struct str type = json_str_at(s, "type");
    bool either = (str_eqc(type, "integer") || str_eqc(type, "string")) && json_count(s) == 1;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && !either; i++) {
        if (json_get(s, keys[i]))
            field_forbidden(c->e, FIELD(p, keys[i]), "must be undefined to be structural");
    }
}

static void check(struct checker *c, const struct field_path *p, const cJSON *s, unsigned depth,
                  bool structural)
{
    if (depth > CRD_MAX_DEPTH || c->nodes > CRD_MAX_NODES || c->e->n > 100) {
        if (c->e->n <= 100)
            field_forbidden(c->e, p, "the schema is too deep or too large");
        return;
    }
    c->nodes++;
    if (!json_is_object(s)) {
        field_invalid(c->e, p, s, "must be an object");
        return;
    }
    if (structural) {
        check_type(c, p, s, depth == 0);
        check_list(c, p, s);
    } else {
        check_unstructured(c, p, s);
    }
    check_forbidden(c, p, s);
    check_pattern(c, p, s);
    json_each(property, json_get(s, "properties"))
        check(c, FIELD_KEY(FIELD(p, "properties"), str_c(property->string)), property, depth + 1,
              structural);
    if (json_is_object(json_get(s, "additionalProperties")))
        check(c, FIELD(p, "additionalProperties"), json_get(s, "additionalProperties"), depth + 1,
              structural);
    if (json_is_object(json_get(s, "items")))
        check(c, FIELD(p, "items"), json_get(s, "items"), depth + 1, structural);
    if (structural && str_eqc(json_str_at(s, "type"), "array") && !json_get(s, "items"))
        field_required(c->e, FIELD(p, "items"), "must be specified");
    check_junctors(c, p, s, depth);
}

void schema_check(struct field_errors *e, const struct field_path *path, const cJSON *schema)
{
    struct checker c = {.e = e};

    check(&c, path, schema, 0, true);
}
