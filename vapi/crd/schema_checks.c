/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of structural schemas: every part has a type, alternatives restrict values without
 * shaping them, there are no references. Also refuses schemas beyond our limits: depth, size,
 * patterns that do not compile. Source: apiextensions-apiserver pkg/apiserver/schema/validation.go,
 * pkg/apis/apiextensions/validation. */
#include "schema_checks.h"

#include <string.h>

#include <utlist.h>

#include "version.h"

/* Upstream walks a schema twice: first for its structure, whose errors it sorts because it walks
 * Go's maps, then for everything else. */
struct checker {
    struct field_errors *structure, *e;
    size_t nodes;
    size_t pattern_bytes;
};

#define MAX_PATTERN_BYTES 65536
#define MAX_ERRORS        255 /* as many as are kept */

#define PRESERVE      "x-kubernetes-preserve-unknown-fields"
#define EMBEDDED      "x-kubernetes-embedded-resource"
#define INT_OR_STRING "x-kubernetes-int-or-string"

enum level { LEVEL_ROOT, LEVEL_ITEM, LEVEL_FIELD };

/* The position of a schema. */
struct place {
    enum level level;
    unsigned depth;
    bool structural;        /* not below allOf and the like */
    bool either;            /* the anyOf that means "an integer or a string" may name its types */
    const char *no_default; /* "in top-level metadata": the reason defaults are refused */
};

static bool extension(const cJSON *s, const char *name)
{
    return json_true(json_get(s, name));
}

/* A value that Go's decoder would have left at its zero value. */
static bool is_zero(const cJSON *value)
{
    return !value || json_is_null(value) || (json_is_bool(value) && !json_true(value)) ||
           (json_is_string(value) && !json_str(value).n) ||
           ((json_is_array(value) || json_is_object(value)) && !json_count(value));
}

/* --- structure --- */

static void check_type(struct checker *c, const struct field_path *p, const cJSON *s,
                       enum level level)
{
    static const char *const whys[] = {[LEVEL_ROOT] = "must not be empty at the root",
                                       [LEVEL_ITEM] = "must not be empty for specified array items",
                                       [LEVEL_FIELD] =
                                           "must not be empty for specified object fields"};
    static const char embedded[] = "must be object if x-kubernetes-embedded-resource is true";
    struct str type = json_str_at(s, "type");

    if (extension(s, EMBEDDED) && !str_eqc(type, "object")) {
        if (type.n)
            field_invalid_str(c->structure, FIELD(p, "type"), type, embedded);
        else
            field_required(c->structure, FIELD(p, "type"), embedded);
    } else if (!type.n && !extension(s, INT_OR_STRING) && !extension(s, PRESERVE)) {
        field_required(c->structure, FIELD(p, "type"), whys[level]);
    }
    if (level == LEVEL_ROOT && type.n && !str_eqc(type, "object"))
        field_invalid_str(c->structure, FIELD(p, "type"), type, "must be object at the root");
    if (str_eqc(type, "array") && !json_get(s, "items"))
        field_required(c->structure, FIELD(p, "items"), "must be specified");
}

static void check_extensions(struct checker *c, const struct field_path *p, const cJSON *s,
                             enum level level)
{
    static const char either[] = "must be false if x-kubernetes-int-or-string is true";
    const cJSON *more = json_get(s, "additionalProperties");

    if (extension(s, INT_OR_STRING) && extension(s, PRESERVE))
        field_invalid(c->structure, FIELD(p, PRESERVE), json_get(s, PRESERVE), either);
    if (extension(s, INT_OR_STRING) && extension(s, EMBEDDED))
        field_invalid(c->structure, FIELD(p, EMBEDDED), json_get(s, EMBEDDED), either);
    if (level == LEVEL_ROOT && more)
        field_forbidden(c->structure, FIELD(p, "additionalProperties"),
                        "must not be used at the root");
    if (extension(s, EMBEDDED) && more)
        field_forbidden(c->structure, FIELD(p, "additionalProperties"),
                        "must not be used if x-kubernetes-embedded-resource is set");
    if (extension(s, EMBEDDED) && !extension(s, PRESERVE) && !json_count(json_get(s, "properties")))
        field_required(c->structure, FIELD(p, "properties"),
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
}

/* At the root, metadata may only restrict names: the API owns its other fields. */
static bool only_names(const cJSON *metadata)
{
    json_each(member, metadata)
    {
        const char *key = member->string;

        if (!strcmp(key, "type") || !strcmp(key, "default") || is_zero(member))
            continue;
        if (strcmp(key, "properties") != 0)
            return false;
        json_each(property, member)
        {
            if (strcmp(property->string, "name") != 0 &&
                strcmp(property->string, "generateName") != 0)
                return false;
        }
    }
    return true;
}

static void check_meta(struct checker *c, const struct field_path *p, const cJSON *s,
                       enum level level)
{
    static const char *const strings[] = {"kind", "apiVersion"};
    const cJSON *properties = json_get(s, "properties"),
                *metadata = json_get(properties, "metadata");
    const struct field_path *at = FIELD(p, "properties");

    if (level != LEVEL_ROOT && !extension(s, EMBEDDED))
        return;
    for (size_t i = 0; i < 2; i++) {
        const cJSON *property = json_get(properties, strings[i]);
        struct str type = json_str_at(property, "type");

        if (property && !str_eqc(type, "string"))
            field_invalid_str(c->structure, FIELD(FIELD_KEY(at, str_c(strings[i])), "type"), type,
                              "must be string");
    }
    if (!metadata)
        return;
    at = FIELD_KEY(at, STR("metadata"));
    if (!str_eqc(json_str_at(metadata, "type"), "object"))
        field_invalid_str(c->structure, FIELD(at, "type"), json_str_at(metadata, "type"),
                          "must be object");
    if (level == LEVEL_ROOT && !only_names(metadata))
        field_forbidden(c->structure, at,
                        "must not specify anything other than name and generateName, but metadata "
                        "is implicitly specified");
}

/* --- below allOf, anyOf, oneOf, not --- */

static void check_nested(struct checker *c, const struct field_path *p, const cJSON *s, bool either)
{
    static const char empty[] = "must be empty to be structural",
                      absent[] = "must be undefined to be structural",
                      not_true[] = "must be false to be structural";
    static const struct {
        const char *key, *why;
    } forbidden[] = {
        {"type", empty},
        {"additionalProperties", absent},
        {"default", absent},
        {"title", empty},
        {"description", empty},
        {"nullable", not_true},
        {PRESERVE, not_true},
        {EMBEDDED, not_true},
        {INT_OR_STRING, not_true},
        {"x-kubernetes-list-map-keys", empty},
        {"x-kubernetes-list-type", absent},
        {"x-kubernetes-map-type", absent},
        {"x-kubernetes-validations", empty},
    };

    for (size_t i = either ? 1 : 0; i < COUNT(forbidden); i++) {
        if (!is_zero(json_get(s, forbidden[i].key)))
            field_forbidden(c->structure, FIELD(p, forbidden[i].key), forbidden[i].why);
    }
    if (json_get(json_get(s, "properties"), "metadata"))
        field_forbidden(c->structure, FIELD_KEY(FIELD(p, "properties"), STR("metadata")),
                        "must not be specified in a nested context");
}

/* anyOf: [{type: integer}, {type: string}], exactly. */
static bool is_either(const cJSON *any_of)
{
    const cJSON *first = json_at(any_of, 0), *second = json_at(any_of, 1);

    return json_count(any_of) == 2 && json_count(first) == 1 && json_count(second) == 1 &&
           str_eqc(json_str_at(first, "type"), "integer") &&
           str_eqc(json_str_at(second, "type"), "string");
}

/* --- everywhere --- */

static void check_type_name(struct checker *c, const struct field_path *p, struct str type)
{
    static const char *const types[] = {"array",  "boolean", "integer", "number",
                                        "object", "string",  NULL};
    bool known = !type.n;

    for (size_t i = 0; types[i]; i++)
        known = known || str_eqc(type, types[i]);
    if (!known)
        field_not_supported(c->e, FIELD(p, "type"), type, types);
}

static void check_forbidden(struct checker *c, const struct field_path *p, const cJSON *s)
{
    static const struct {
        const char *key, *why;
    } forbidden[] = {
        {"id", "id is not supported"},
        {"additionalItems", "additionalItems is not supported"},
        {"patternProperties", "patternProperties is not supported"},
        {"definitions", "definitions is not supported"},
        {"dependencies", "dependencies is not supported"},
        {"$ref", "$ref is not supported"},
    };

    for (size_t i = 0; i < COUNT(forbidden); i++) {
        if (!is_zero(json_get(s, forbidden[i].key)))
            field_forbidden(c->e, FIELD(p, forbidden[i].key), forbidden[i].why);
    }
    if (str_eqc(json_str_at(s, "type"), "null"))
        field_forbidden(c->e, FIELD(p, "type"),
                        "type cannot be set to null, use nullable as an alternative");
    if (json_is_array(json_get(s, "items")))
        field_forbidden(c->e, FIELD(p, "items"), "items must be a schema object and not an array");
}

static void check_unsupported(struct checker *c, const struct field_path *p, const cJSON *s)
{
    const cJSON *more = json_get(s, "additionalProperties");

    if (!is_zero(json_get(s, "uniqueItems")))
        field_forbidden(c->e, FIELD(p, "uniqueItems"),
                        "uniqueItems cannot be set to true since the runtime complexity becomes "
                        "quadratic");
    if (more && !json_true(more) && json_count(json_get(s, "properties")))
        field_forbidden(c->e, FIELD(p, "additionalProperties"),
                        "additionalProperties and properties are mutual exclusive");
}

static void check_preserve(struct checker *c, const struct field_path *p, const cJSON *keep)
{
    if (json_is_bool(keep) && !json_true(keep))
        field_invalid(c->e, FIELD(p, PRESERVE), keep, "must be true or undefined");
}

static void check_pattern(struct checker *c, const struct field_path *p, const cJSON *s)
{
    struct str pattern = json_str_at(s, "pattern");

    if (!pattern.n)
        return;
    c->pattern_bytes += pattern.n;
    if (c->pattern_bytes > MAX_PATTERN_BYTES) {
        field_forbidden(c->e, FIELD(p, "pattern"),
                        "the patterns of one schema are too long in all");
        return;
    }
    const char *wrong = pattern_check(c->e->arena, pattern);
    if (wrong)
        field_invalid_str(
            c->e, FIELD(p, "pattern"), pattern,
            arena_printf(c->e->arena, "must be a valid regular expression, but isn't: %s", wrong)
                .p);
}

static void check(struct checker *c, const struct field_path *p, const cJSON *s,
                  const struct place *at);

static void check_junctors(struct checker *c, const struct field_path *p, const cJSON *s,
                           const struct place *at)
{
    static const char *const keys[] = {"allOf", "oneOf", "anyOf"};
    const cJSON *first = json_at(json_get(s, "allOf"), 0);
    struct place below = {.level = LEVEL_FIELD, .depth = at->depth + 1};

    if (json_get(s, "not"))
        check(c, FIELD(p, "not"), json_get(s, "not"), &below);
    for (size_t k = 0; k < 3; k++) {
        const cJSON *list = json_get(s, keys[k]);
        size_t i = 0;

        json_each(part, list)
        {
            const struct field_path *here = FIELD_INDEX(FIELD(p, keys[k]), i);

            below.either = k == 2 && (at->structural || at->either) && is_either(list);
            /* allOf: [{anyOf: [...]}, ...] means the same. */
            if (k == 0 && i == 0 && at->structural && is_either(json_get(first, "anyOf")))
                below.either = true;
            check(c, here, part, &below);
            i++;
        }
        below.either = false;
    }
}

static struct place place_below(const struct place *at, enum level level)
{
    return (struct place){.level = level,
                          .depth = at->depth + 1,
                          .structural = at->structural,
                          .no_default = at->no_default};
}

static void check_members(struct checker *c, const struct field_path *p, const cJSON *s,
                          const struct place *at)
{
    const cJSON *more = json_get(s, "additionalProperties");
    struct place below = place_below(at, LEVEL_FIELD);

    if (json_is_object(more) && at->structural)
        check(c, FIELD(p, "additionalProperties"), more, &below);
    json_each(property, json_get(s, "properties"))
    {
        const char *name = property->string;
        bool meta =
            !strcmp(name, "metadata") || !strcmp(name, "kind") || !strcmp(name, "apiVersion");

        below.no_default = at->no_default;
        if (at->structural && at->level == LEVEL_ROOT && meta)
            below.no_default = arena_printf(c->e->arena, "in top-level %s", name).p;
        check(c, FIELD_KEY(FIELD(p, "properties"), str_c(name)), property, &below);
    }
}

static void check_items(struct checker *c, const struct field_path *p, const cJSON *items,
                        const struct place *at)
{
    const struct place below = place_below(at, LEVEL_ITEM);

    if (json_is_object(items))
        check(c, FIELD(p, "items"), items, &below);
}

/* The decoder has checked the shape; the code below would not survive another. */
static bool has_shape(struct checker *c, const struct field_path *p, const cJSON *s)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf", "required", "enum"};
    const cJSON *properties = json_get(s, "properties"), *items = json_get(s, "items");
    size_t before = c->e->n;

    if (!json_is_object(s))
        field_invalid(c->e, p, s, "must be an object");
    if (properties && !json_is_object(properties) && !json_is_null(properties))
        field_invalid(c->e, FIELD(p, "properties"), properties, "must be an object");
    if (items && !json_is_object(items) && !json_is_array(items))
        field_invalid(c->e, FIELD(p, "items"), items, "must be an object");
    for (size_t i = 0; i < COUNT(lists); i++) {
        const cJSON *list = json_get(s, lists[i]);

        if (list && !json_is_array(list) && !json_is_null(list))
            field_invalid(c->e, FIELD(p, lists[i]), list, "must be an array");
    }
    return c->e->n == before;
}

static void check(struct checker *c, const struct field_path *p, const cJSON *s,
                  const struct place *at)
{
    size_t n = c->structure->n + c->e->n;

    if (at->depth > CRD_MAX_DEPTH || c->nodes > CRD_MAX_NODES || n > MAX_ERRORS ||
        json_count(json_get(s, "properties")) > CRD_MAX_FIELDS) {
        if (n <= MAX_ERRORS)
            field_forbidden(c->e, p, "the schema is too deep or too large");
        return;
    }
    c->nodes++;
    if (!has_shape(c, p, s))
        return;
    if (at->structural) {
        check_type(c, p, s, at->level);
        check_extensions(c, p, s, at->level);
        check_meta(c, p, s, at->level);
    } else {
        check_nested(c, p, s, at->either && json_get(s, "type"));
    }
    check_type_name(c, p, json_str_at(s, "type"));
    if (at->no_default && json_get(s, "default") && !json_is_null(json_get(s, "default")))
        field_forbidden(c->e, FIELD(p, "default"),
                        arena_printf(c->e->arena, "must not be set %s", at->no_default).p);
    check_forbidden(c, p, s);
    check_pattern(c, p, s);
    check_unsupported(c, p, s);
    check_members(c, p, s, at);
    check_junctors(c, p, s, at);
    check_items(c, p, json_get(s, "items"), at);
    check_preserve(c, p, json_get(s, PRESERVE));
    crd_check_lists(c->e, p, s);
}

/* --- the root --- */

/* All fields that alternatives at the root mention are specified. Upstream requires this only
 * there. */
static void check_complete(struct field_errors *e, const struct field_path *p, const cJSON *schema,
                           const struct field_path *nested_path, const cJSON *nested,
                           unsigned depth)
{
    static const char *const keys[] = {"allOf", "anyOf", "oneOf"};
    const cJSON *items = json_get(nested, "items");

    if (depth > CRD_MAX_DEPTH || e->n > MAX_ERRORS)
        return;
    if (!schema) {
        struct str at = field_path_text(e->arena, nested_path);

        field_required(e, p, arena_printf(e->arena, "because it is defined in %.*s", STR_F(at)).p);
        return;
    }
    if (json_get(nested, "not"))
        check_complete(e, p, schema, FIELD(nested_path, "not"), json_get(nested, "not"), depth + 1);
    for (size_t k = 0; k < 3; k++) {
        size_t i = 0;

        json_each(part, json_get(nested, keys[k])) check_complete(
            e, p, schema, FIELD_INDEX(FIELD(nested_path, keys[k]), i++), part, depth + 1);
    }
    if (nested == schema)
        return;
    if (items)
        check_complete(e, FIELD(p, "items"), json_get(schema, "items"), FIELD(nested_path, "items"),
                       items, depth + 1);
    json_each(property, json_get(nested, "properties"))
    {
        struct str name = str_c(property->string);

        check_complete(e, FIELD_KEY(FIELD(p, "properties"), name),
                       json_get_str(json_get(schema, "properties"), name),
                       FIELD_KEY(FIELD(nested_path, "properties"), name), property, depth + 1);
    }
}

/* With a status subresource, rules at the root would not apply to a write of the status alone. */
static void check_status_root(struct field_errors *e, const struct field_path *p,
                              const cJSON *schema)
{
    static const char *const allowed[] = {"description",  "type",
                                          "format",       "title",
                                          "maximum",      "exclusiveMaximum",
                                          "minimum",      "exclusiveMinimum",
                                          "maxLength",    "minLength",
                                          "pattern",      "maxItems",
                                          "minItems",     "uniqueItems",
                                          "multipleOf",   "required",
                                          "items",        "properties",
                                          "externalDocs", "example",
                                          PRESERVE,       "x-kubernetes-validations"};

    json_each(member, schema)
    {
        bool fine = is_zero(member);

        for (size_t i = 0; i < COUNT(allowed); i++)
            fine = fine || !strcmp(member->string, allowed[i]);
        if (fine)
            continue;
        field_invalid(e, p, schema,
                      "only [Description Type Format Title Maximum ExclusiveMaximum Minimum "
                      "ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems "
                      "MultipleOf Required Items Properties ExternalDocs Example "
                      "XPreserveUnknownFields XValidations] fields are allowed at the root of the "
                      "schema if the status subresource is enabled");
        return;
    }
}

static int by_place(const struct err_cause *a, const struct err_cause *b)
{
    int order = str_cmp(a->field, b->field);

    return order ? order : str_cmp(a->message, b->message);
}

void crd_check_schema(struct field_errors *e, const struct field_path *path, const cJSON *schema,
                      bool has_status, struct crd_effort *effort)
{
    struct field_errors root, structure, own; /* limits are of this schema, not of the whole CRD */
    struct checker c = {.structure = &structure, .e = &own};
    const struct place top = {.level = LEVEL_ROOT, .structural = true};

    field_errors_init(&root, e->arena);
    field_errors_init(&structure, e->arena);
    field_errors_init(&own, e->arena);
    if (has_status)
        check_status_root(&root, path, schema);
    if (extension(schema, "nullable"))
        field_forbidden(&root, FIELD(path, "nullable"), "nullable cannot be true at the root");
    check(&c, path, schema, &top);
    if (!root.n && !structure.n && !own.n)
        check_complete(&structure, path, schema, path, schema, 0);
    if (!root.n && !structure.n && !own.n && effort)
        crd_check_compiled(&own, path, schema, effort);
    LL_SORT(structure.first, by_place);
    structure.last = &structure.first;
    while (*structure.last)
        structure.last = &(*structure.last)->next;
    field_errors_append(e, &root);
    field_errors_append(e, &structure);
    field_errors_append(e, &own);
}
