/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a structural OpenAPI v3 schema into arrays of nodes, fields and rules, the form of the
 * built-in kinds' table. Must stay bounded in depth and nodes: the schema comes from a tenant. */
#include "rules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct compiler {
    struct arena *arena;
    struct schema_node *nodes;
    struct schema_rules *rules;
    struct schema_field *fields;
    uint32_t n_nodes, cap_nodes, n_fields, cap_fields;
    struct buf strings;
    struct pattern *patterns;
};

static void *grow(struct arena *a, void *old, size_t n, size_t cap, size_t size)
{
    void *grown = arena_alloc(a, cap * size);

    if (n)
        memcpy(grown, old, n * size);
    return grown;
}

static uint32_t node_new(struct compiler *c)
{
    if (c->n_nodes == c->cap_nodes) {
        c->cap_nodes = c->cap_nodes ? 2 * c->cap_nodes : 64;
        c->nodes = grow(c->arena, c->nodes, c->n_nodes, c->cap_nodes, sizeof(*c->nodes));
        c->rules = grow(c->arena, c->rules, c->n_nodes, c->cap_nodes, sizeof(*c->rules));
    }
    c->nodes[c->n_nodes] = (struct schema_node){.kind = SCHEMA_ANY};
    c->rules[c->n_nodes] = (struct schema_rules){.min_length = -1,
                                                 .max_length = -1,
                                                 .min_items = -1,
                                                 .max_items = -1,
                                                 .min_properties = -1,
                                                 .max_properties = -1};
    return c->n_nodes++;
}

static uint32_t fields_new(struct compiler *c, size_t n)
{
    uint32_t first = c->n_fields;

    if (first + n > c->cap_fields) {
        while (first + n > c->cap_fields)
            c->cap_fields = c->cap_fields ? 2 * c->cap_fields : 64;
        c->fields = grow(c->arena, c->fields, c->n_fields, c->cap_fields, sizeof(*c->fields));
    }
    c->n_fields += (uint32_t)n;
    return first;
}

static uint32_t text_new(struct compiler *c, struct str s)
{
    uint32_t at = (uint32_t)c->strings.n;

    buf_add(&c->strings, s);
    buf_char(&c->strings, '\0');
    return at;
}

static uint32_t compile(struct compiler *c, const cJSON *schema, unsigned depth);

/* --- structure --- */

static const struct {
    const char *type;
    enum schema_kind kind;
} TYPES[] = {
    {"string", SCHEMA_STRING}, {"boolean", SCHEMA_BOOL},  {"integer", SCHEMA_INT64},
    {"number", SCHEMA_DOUBLE}, {"object", SCHEMA_OBJECT}, {"array", SCHEMA_LIST},
};

static enum schema_kind kind_of(const cJSON *schema)
{
    struct str type = json_str_at(schema, "type");

    if (json_true(json_get(schema, "x-kubernetes-int-or-string")))
        return SCHEMA_INT_OR_STRING;
    for (size_t i = 0; i < COUNT(TYPES); i++) {
        if (str_eqc(type, TYPES[i].type))
            return TYPES[i].kind;
    }
    return json_get(schema, "properties") ? SCHEMA_OBJECT : SCHEMA_ANY;
}

static int by_key(const void *pa, const void *pb)
{
    return strcmp((*(cJSON *const *)pa)->string, (*(cJSON *const *)pb)->string);
}

static void compile_properties(struct compiler *c, uint32_t node, const cJSON *properties,
                               unsigned depth)
{
    size_t n = json_count(properties), i = 0;
    cJSON **sorted = arena_alloc(c->arena, (n + 1) * sizeof(*sorted));

    json_each(p, properties) sorted[i++] = p;
    qsort(sorted, n, sizeof(*sorted), by_key);
    uint32_t first = fields_new(c, n);
    c->nodes[node].first_field = first;
    c->nodes[node].n_fields = (uint16_t)n;
    for (i = 0; i < n; i++) {
        const cJSON *otherwise = json_get(sorted[i], "default");
        struct schema_field f = {.name = text_new(c, str_c(sorted[i]->string))};

        f.node = compile(c, sorted[i], depth + 1);
        if (otherwise && !json_is_null(otherwise)) {
            f.default_json = text_new(c, json_text(c->arena, otherwise));
            f.flags |= FIELD_HAS_DEFAULT;
        }
        c->fields[first + i] = f;
    }
}

static void compile_list_type(struct compiler *c, uint32_t node, const cJSON *schema)
{
    struct str list = json_str_at(schema, "x-kubernetes-list-type");
    struct str map = json_str_at(schema, "x-kubernetes-map-type");
    const cJSON *keys = json_get(schema, "x-kubernetes-list-map-keys");
    bool is_list = c->nodes[node].kind == SCHEMA_LIST;

    if (is_list)
        c->nodes[node].list_type = str_eqc(list, "set")   ? LIST_SET
                                   : str_eqc(list, "map") ? LIST_MAP
                                                          : LIST_ATOMIC;
    else
        c->nodes[node].list_type = str_eqc(map, "atomic") ? LIST_ATOMIC : LIST_MAP;
    if (!is_list || !json_count(keys))
        return;
    c->nodes[node].keys = (uint32_t)c->strings.n;
    json_each(key, keys) text_new(c, json_str(key));
    buf_char(&c->strings, '\0');
}

/* The flags of a node that walks by type need, without its rules. */
static uint32_t node_flags(const cJSON *schema)
{
    const cJSON *more = json_get(schema, "additionalProperties");
    struct str format = json_str_at(schema, "format");
    uint32_t flags = 0;

    if (json_true(json_get(schema, "x-kubernetes-preserve-unknown-fields")))
        flags |= NODE_PRESERVE;
    if (json_true(json_get(schema, "x-kubernetes-embedded-resource")))
        flags |= NODE_EMBEDDED;
    if (json_is_bool(more) && !json_true(more))
        flags |= NODE_CLOSED;
    if (format.n && !str_eqc(format, "byte"))
        flags |= NODE_FORMATTED;
    return flags;
}

/* --- rules --- */

static void number(const cJSON *schema, const char *key, uint16_t flag, uint16_t *flags,
                   double *ret)
{
    const cJSON *value = json_get(schema, key);

    if (json_is_number(value)) {
        *flags |= flag;
        *ret = value->valuedouble;
    }
}

static void flag(const cJSON *schema, const char *key, uint16_t bit, uint16_t *flags)
{
    if (json_true(json_get(schema, key)))
        *flags |= bit;
}

static uint32_t *compile_all(struct compiler *c, const cJSON *list, unsigned depth, size_t *ret_n)
{
    size_t n = json_count(list), i = 0;
    uint32_t *nodes = arena_alloc(c->arena, (n + 1) * sizeof(*nodes));

    json_each(schema, list) nodes[i++] = compile(c, schema, depth + 1);
    *ret_n = n;
    return nodes;
}

static void compile_words(struct compiler *c, const cJSON *schema, struct schema_rules *r)
{
    const cJSON *required = json_get(schema, "required"), *pattern = json_get(schema, "pattern");
    struct str *names = arena_alloc(c->arena, (json_count(required) + 1) * sizeof(*names));
    struct str format = json_str_at(schema, "format");

    json_each(name, required) names[r->n_required++] = json_str(name);
    r->required = names;
    if (json_str(pattern).n)
        r->pattern = c->patterns = pattern_new(c->arena, json_str(pattern), c->patterns);
    if (json_count(json_get(schema, "enum")))
        r->enumeration = json_get(schema, "enum");
    r->format = crd_format_find(json_str_at(schema, "type"), format);
    r->format_text = format.p;
    if (!json_is_null(json_get(schema, "default")))
        r->default_value = json_get(schema, "default");
}

static void compile_rules(struct compiler *c, uint32_t node, const cJSON *schema, unsigned depth)
{
    struct schema_rules r = c->rules[node];
    const cJSON *not_schema = json_get(schema, "not"),
                *more = json_get(schema, "additionalProperties");

    flag(schema, "nullable", RULE_NULLABLE, &r.flags);
    flag(schema, "x-kubernetes-preserve-unknown-fields", RULE_PRESERVE, &r.flags);
    flag(schema, "x-kubernetes-embedded-resource", RULE_EMBEDDED, &r.flags);
    flag(schema, "x-kubernetes-int-or-string", RULE_INT_OR_STRING, &r.flags);
    flag(schema, "exclusiveMinimum", RULE_MIN_EXCLUSIVE, &r.flags);
    flag(schema, "exclusiveMaximum", RULE_MAX_EXCLUSIVE, &r.flags);
    if (json_str_at(schema, "type").n || r.flags & RULE_INT_OR_STRING)
        r.flags |= RULE_TYPED;
    if (json_is_bool(more) || json_is_object(more))
        r.flags |= RULE_MORE;
    if (json_is_bool(more) && !json_true(more))
        r.flags |= RULE_CLOSED;
    number(schema, "minimum", RULE_MIN, &r.flags, &r.min);
    number(schema, "maximum", RULE_MAX, &r.flags, &r.max);
    number(schema, "multipleOf", RULE_MULTIPLE, &r.flags, &r.multiple);
    r.min_length = json_i64_at(schema, "minLength", -1);
    r.max_length = json_i64_at(schema, "maxLength", -1);
    r.min_items = json_i64_at(schema, "minItems", -1);
    r.max_items = json_i64_at(schema, "maxItems", -1);
    r.min_properties = json_i64_at(schema, "minProperties", -1);
    r.max_properties = json_i64_at(schema, "maxProperties", -1);
    compile_words(c, schema, &r);
    r.all_of = compile_all(c, json_get(schema, "allOf"), depth, &r.n_all_of);
    r.any_of = compile_all(c, json_get(schema, "anyOf"), depth, &r.n_any_of);
    r.one_of = compile_all(c, json_get(schema, "oneOf"), depth, &r.n_one_of);
    if (not_schema)
        r.not_node = compile(c, not_schema, depth + 1);
    c->rules[node] = r;
}

static uint32_t compile(struct compiler *c, const cJSON *schema, unsigned depth)
{
    if (depth > CRD_MAX_DEPTH || c->n_nodes >= CRD_MAX_NODES || !json_is_object(schema))
        return 0; /* any value: the checks refuse such schemas before they are stored */
    uint32_t node = node_new(c);
    c->nodes[node].kind = (uint8_t)kind_of(schema);
    const cJSON *properties = json_get(schema, "properties");
    const cJSON *more = json_get(schema, "additionalProperties"),
                *items = json_get(schema, "items");
    if (json_count(properties))
        compile_properties(c, node, properties, depth);
    uint32_t elem = 0;
    if (json_is_object(more))
        elem = compile(c, more, depth + 1);
    if (json_is_object(items))
        elem = compile(c, items, depth + 1);
    c->nodes[node].elem = elem;
    if (c->nodes[node].kind == SCHEMA_OBJECT && more && !json_count(properties) &&
        (json_is_object(more) || json_true(more)))
        c->nodes[node].kind = SCHEMA_MAP;
    compile_list_type(c, node, schema);
    c->nodes[node].flags = node_flags(schema);
    compile_rules(c, node, schema, depth);
    return node;
}

/* The root always knows apiVersion, kind and metadata, whatever the schema says. */
void crd_version_compile(struct crd_version *v)
{
    struct compiler c = {.arena = arena_new(0), .strings = BUF_INIT(0)};
    struct err err;

    assert(v->magic == CRD_VERSION_MAGIC && !v->compiled && v->schema_text);
    err_init(&err, c.arena);
    int failed =
        json_parse(c.arena, (struct str){v->schema_text, v->schema_bytes}, &v->openapi, &err);
    assert(!failed); /* we printed it */
    buf_char(&c.strings, '\0');
    node_new(&c); /* node 0: any value */
    v->root = compile(&c, v->openapi, 0);
    struct str strings = arena_str(c.arena, buf_str(&c.strings));
    buf_fini(&c.strings);
    v->compiled = c.arena;
    v->patterns = c.patterns;
    v->schema = (struct schema){
        .nodes = c.nodes,
        .fields = c.fields,
        .strings = strings.p,
        .rules = c.rules,
        .n_nodes = c.n_nodes,
        .n_fields = c.n_fields,
        .preserves_unknown_by_rule = true,
    };
    if (str_contains((struct str){v->schema_text, v->schema_bytes},
                     STR("\"x-kubernetes-validations\":")))
        v->rules = crd_rules_compile(v->compiled, &v->schema, v->root, v->openapi);
}

void crd_version_release(struct crd_version *v)
{
    crd_rules_release(v->rules);
    pattern_free_all(v->patterns);
    v->compiled = arena_free(v->compiled);
    v->rules = NULL;
    v->patterns = NULL;
}

const struct crd_version *crd_version_ready(const struct crd_version *v)
{
    assert(v->magic == CRD_VERSION_MAGIC);
    /* Compiling has no effect visible to the caller. */
    if (!v->compiled && v->schema_text)
        crd_version_compile((struct crd_version *)(uintptr_t)v);
    return v;
}

const struct schema_rules *crd_version_rules(const struct crd_version *v, uint32_t node)
{
    return &v->schema.rules[node];
}

const cJSON *crd_openapi(const struct crd_version *v)
{
    static const cJSON none = {.type = cJSON_Object};

    return v->schema_text ? crd_version_ready(v)->openapi : &none;
}

struct str crd_schema_text(const struct crd_version *v)
{
    return (struct str){v->schema_text, v->schema_bytes};
}

bool crd_preserves_all(const struct crd_version *v)
{
    return v->preserve_all;
}

const struct schema *crd_schema(const struct crd_version *v, uint32_t *ret_root)
{
    if (v->preserve_all || !v->schema_text)
        return NULL;
    *ret_root = crd_version_ready(v)->root;
    return &v->schema;
}

struct str crd_deprecation(const struct crd_version *v)
{
    return v->deprecation;
}

bool crd_defaults_on_read(const struct crd_version *v)
{
    return v->has_defaults || (v->changed && !v->preserve_all);
}
