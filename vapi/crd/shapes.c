/* SPDX-License-Identifier: Apache-2.0 */
/* A structural schema as CEL's types. What has no type, and lists and maps of it, are not visible
 * to expressions; neither are properties whose names are no identifiers even when escaped. Source:
 * k8s.io/apiserver pkg/cel/common/schemas.go SchemaDeclType(). */
#include "rules.h"

#include <stdlib.h>
#include <string.h>

/* Shapes that schemas share: those of scalars. */
enum {
    SHAPE_NONE,
    SHAPE_FIRST_SCALAR, /* a DYN; enum cel_shape_kind in order */
    SHAPE_FIRST_OTHER = SHAPE_FIRST_SCALAR + CEL_SHAPE_TIMESTAMP + 1,
};

static uint32_t scalar(enum cel_shape_kind kind)
{
    return SHAPE_FIRST_SCALAR + (uint32_t)kind;
}

static uint32_t shape_new(struct shaping *s, struct cel_shape shape)
{
    if (s->n == s->cap) {
        struct cel_shape *grown = arena_alloc(s->arena, 2 * s->cap * sizeof(*grown));

        memcpy(grown, s->items, s->n * sizeof(*grown));
        s->items = grown;
        s->cap *= 2;
    }
    s->items[s->n] = shape;
    return s->n++;
}

void crd_shapes_init(struct shaping *s, struct arena *a)
{
    *s = (struct shaping){.arena = a, .cap = 64};
    s->items = arena_alloc(a, s->cap * sizeof(*s->items));
    shape_new(s, (struct cel_shape){.kind = CEL_SHAPE_DYN});
    for (int kind = CEL_SHAPE_DYN; kind <= CEL_SHAPE_TIMESTAMP; kind++)
        shape_new(s, (struct cel_shape){.kind = (enum cel_shape_kind)kind});
}

static uint32_t string_shape(struct str format)
{
    return scalar(str_eqc(format, "byte")                                   ? CEL_SHAPE_BYTES
                  : str_eqc(format, "duration")                             ? CEL_SHAPE_DURATION
                  : str_eqc(format, "date") || str_eqc(format, "date-time") ? CEL_SHAPE_TIMESTAMP
                                                                            : CEL_SHAPE_STRING);
}

/* ---- objects ---- */

static int by_name(const void *a, const void *b)
{
    const struct cel_shape_field *x = a, *y = b;

    return str_cmp(x->name, y->name);
}

static int by_key(const void *a, const void *b, void *fields)
{
    const struct cel_shape_field *f = fields;

    return str_cmp(f[*(const uint32_t *)a].key, f[*(const uint32_t *)b].key);
}

static uint32_t object_new(struct shaping *s, struct cel_shape_field *fields, size_t n)
{
    uint32_t *keys = arena_alloc(s->arena, (n + 1) * sizeof(*keys));

    qsort(fields, n, sizeof(*fields), by_name);
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint32_t)i;
    qsort_r(keys, n, sizeof(*keys), by_key, fields);
    return shape_new(
        s, (struct cel_shape){
               .kind = CEL_SHAPE_OBJECT, .fields = fields, .by_key = keys, .n_fields = n});
}

static bool is_type(const cJSON *properties, const char *name, const char *type)
{
    return str_eqc(json_str(json_get(json_get(properties, name), "type")), type);
}

/* The root of a resource has these, unless its schema has all of them. */
static bool has_meta(const cJSON *properties)
{
    const cJSON *meta = json_get(json_get(properties, "metadata"), "properties");

    return is_type(properties, "kind", "string") && is_type(properties, "apiVersion", "string") &&
           is_type(properties, "metadata", "object") && is_type(meta, "name", "string") &&
           is_type(meta, "generateName", "string");
}

static uint32_t meta_shape(struct shaping *s)
{
    struct cel_shape_field *fields = arena_alloc(s->arena, 2 * sizeof(*fields));
    uint32_t text = scalar(CEL_SHAPE_STRING);

    fields[0] = (struct cel_shape_field){STR("name"), STR("name"), text};
    fields[1] = (struct cel_shape_field){STR("generateName"), STR("generateName"), text};
    return object_new(s, fields, 2);
}

static uint32_t object_shape(struct shaping *s, const cJSON *schema, bool is_resource,
                             unsigned depth)
{
    static const char meta[] = "kind|apiVersion|metadata";
    const cJSON *properties = json_get(schema, "properties");
    bool adds = is_resource && !has_meta(properties);
    struct cel_shape_field *fields =
        arena_alloc(s->arena, (json_count(properties) + 3) * sizeof(*fields));
    uint32_t text = scalar(CEL_SHAPE_STRING);
    size_t n = 0;

    json_each(p, properties)
    {
        struct cel_shape_field *f = &fields[n];

        *f = (struct cel_shape_field){.key = json_key(p)};
        if (adds && str_word_index(meta, f->key) >= 0)
            continue;
        if (!cel_escape(s->arena, f->key, &f->name))
            continue;
        f->shape = crd_shape(s, p, json_true(json_get(p, "x-kubernetes-embedded-resource")), depth);
        n += f->shape != SHAPE_NONE;
    }
    if (adds) {
        fields[n++] = (struct cel_shape_field){STR("kind"), STR("kind"), text};
        fields[n++] = (struct cel_shape_field){STR("apiVersion"), STR("apiVersion"), text};
        fields[n++] = (struct cel_shape_field){STR("metadata"), STR("metadata"), meta_shape(s)};
    }
    return object_new(s, fields, n);
}

/* ---- lists ---- */

static struct cel_shape list_shape(struct shaping *s, const cJSON *schema, uint32_t elem)
{
    struct str type = json_str(json_get(schema, "x-kubernetes-list-type"));
    const cJSON *keys = json_get(schema, "x-kubernetes-list-map-keys");
    struct str *names = arena_alloc(s->arena, (json_count(keys) + 1) * sizeof(*names));
    struct cel_shape shape = {.kind = CEL_SHAPE_LIST, .elem = elem};

    if (str_eqc(type, "set"))
        shape.kind = CEL_SHAPE_SET;
    if (!str_eqc(type, "map"))
        return shape;
    shape.kind = CEL_SHAPE_LIST_MAP;
    json_each(key, keys)
    {
        if (!cel_escape(s->arena, json_str(key), &names[shape.n_keys]))
            names[shape.n_keys] = json_str(key);
        shape.n_keys++;
    }
    shape.keys = names;
    return shape;
}

uint32_t crd_shape(struct shaping *s, const cJSON *schema, bool is_resource, unsigned depth)
{
    const cJSON *more = json_get(schema, "additionalProperties"), *items;
    struct str type = json_str(json_get(schema, "type"));
    uint32_t elem;

    if (depth > CRD_MAX_DEPTH || s->n >= CRD_MAX_NODES)
        return SHAPE_NONE;
    if (json_true(json_get(schema, "x-kubernetes-int-or-string")))
        return scalar(CEL_SHAPE_DYN);
    if (str_eqc(type, "string"))
        return string_shape(json_str(json_get(schema, "format")));
    if (str_eqc(type, "boolean"))
        return scalar(CEL_SHAPE_BOOL);
    if (str_eqc(type, "integer"))
        return scalar(CEL_SHAPE_INT);
    if (str_eqc(type, "number"))
        return scalar(CEL_SHAPE_DOUBLE);
    if (str_eqc(type, "object") && (is_resource || !json_is_object(more)))
        return object_shape(s, schema, is_resource, depth + 1);
    items = str_eqc(type, "array") ? json_get(schema, "items") : more;
    if (!json_is_object(items))
        return SHAPE_NONE;
    elem = crd_shape(s, items, json_true(json_get(items, "x-kubernetes-embedded-resource")),
                     depth + 1);
    if (!elem)
        return SHAPE_NONE;
    return shape_new(s, str_eqc(type, "array")
                            ? list_shape(s, schema, elem)
                            : (struct cel_shape){.kind = CEL_SHAPE_MAP, .elem = elem});
}
