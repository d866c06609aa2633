/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-ups in a schema, and the two walks that need nothing else: pruning and defaulting. Works the
 * same for the built-in table and for compiled CRDs. Must never assume that an object has the shape
 * its schema says: values that do not fit are left unchanged. */

#include "builtin.h"
#include "tree.h"

#include <assert.h>
#include <string.h>

#include <sublet/published.h>

const struct schema_node *schema_node(const struct schema *s, uint32_t node)
{
    assert(node < s->n_nodes);
    return &s->nodes[node];
}

const char *schema_text(const struct schema *s, uint32_t offset)
{
    return s->strings + offset;
}

/* Compares a key, which may hold no NUL, with a NUL-terminated string of the table. */
static int compare_text(struct str key, const char *text)
{
    return str_cmp(key, str_c(text));
}

const struct schema_field *schema_field_of(const struct schema *s, const struct schema_node *n,
                                           const char *key, size_t hint)
{
    const struct schema_field *rows = &s->fields[n->first_field];
    size_t low = 0, high = n->kind == SCHEMA_OBJECT ? n->n_fields : 0;

    if (hint < high && *key && strcmp(key, s->strings + rows[hint].name) == 0)
        return &rows[hint];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(key, s->strings + rows[middle].name);

        if (order == 0)
            return rows[middle].flags & FIELD_INLINE ? NULL : &rows[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct schema_field *schema_field(const struct schema *s, uint32_t node, struct str name)
{
    const struct schema_node *n = schema_node(s, node);
    size_t low = 0, high = n->kind == SCHEMA_OBJECT ? n->n_fields : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct schema_field *field = &s->fields[n->first_field + middle];
        int order = compare_text(name, schema_text(s, field->name));

        if (order == 0)
            return field->flags & FIELD_INLINE ? NULL : field;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct schema_field *schema_field_pb(const struct schema *s, uint32_t node, unsigned number)
{
    const struct schema_node *n = schema_node(s, node);

    if (n->kind != SCHEMA_OBJECT || number == 0)
        return NULL;
    for (size_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &s->fields[n->first_field + i];

        if (field->pb == number)
            return field;
    }
    return NULL;
}

uint32_t schema_child(const struct schema *s, uint32_t node, struct str name)
{
    const struct schema_node *n = schema_node(s, node);
    const struct schema_field *field = schema_field(s, node, name);

    if (field)
        return field->node;
    return n->kind == SCHEMA_MAP || n->kind == SCHEMA_OBJECT ? n->elem : 0;
}

/* Roots */

static int compare_root(const struct schema_root *root, const struct str key[3])
{
    const uint32_t at[3] = {root->group, root->version, root->kind};

    for (size_t i = 0; i < 3; i++) {
        int order = compare_text(key[i], schema_text(&SCHEMA_BUILTIN, at[i]));

        if (order)
            return order;
    }
    return 0;
}

static uint32_t find_root(struct str group, struct str version, struct str kind)
{
    const struct str key[3] = {group, version, kind};
    size_t low = 0, high = SCHEMA_N_ROOTS;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_root(&SCHEMA_ROOTS[middle], key);

        if (order == 0)
            return SCHEMA_ROOTS[middle].node;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

/* Upstream registers DeleteOptions, Status and a few others in every group and version. */
uint32_t schema_builtin_root(struct str group, struct str version, struct str kind)
{
    uint32_t node = find_root(group, version, kind);

    return node ? node : find_root(STR("meta.k8s.io"), STR("v1"), kind);
}

bool schema_root_next(uint32_t node, uint32_t *at, struct schema_kind_name *ret)
{
    while (*at < SCHEMA_N_ROOTS) {
        const struct schema_root *root = &SCHEMA_ROOTS[(*at)++];

        if (root->node != node)
            continue;
        ret->group = str_c(schema_text(&SCHEMA_BUILTIN, root->group));
        ret->version = str_c(schema_text(&SCHEMA_BUILTIN, root->version));
        ret->kind = str_c(schema_text(&SCHEMA_BUILTIN, root->kind));
        return true;
    }
    return false;
}

const struct schema_field *schema_either(const struct schema *s, uint32_t wire, const cJSON *value,
                                         bool *flag)
{
    const struct schema_node *n = schema_node(s, wire);
    const struct schema_field *found = NULL;

    *flag = false;
    for (size_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &s->fields[n->first_field + i];
        uint8_t kind = schema_node(s, field->node)->kind;

        *flag |= kind == SCHEMA_BOOL;
        if ((kind == SCHEMA_OBJECT && json_is_object(value)) ||
            (kind == SCHEMA_LIST && json_is_array(value)) ||
            (kind == SCHEMA_BOOL && json_is_bool(value)))
            found = field;
    }
    return found;
}

/* The depth limit of the decoder bounds the recursion, which stops at TREE_DEPTH. */

static void add_defaults(struct arena *a, const struct schema *s, const struct schema_node *n,
                         cJSON *object)
{
    for (size_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &s->fields[n->first_field + i];
        const char *name = schema_text(s, field->name);
        cJSON *value;
        struct err err;

        if (!(field->flags & FIELD_HAS_DEFAULT) || json_get(object, name))
            continue;
        err_init(&err, a);
        if (json_parse(a, str_c(schema_text(s, field->default_json)), &value, &err) == 0)
            json_set(a, object, name, value);
    }
}

static void apply_defaults(struct arena *a, const struct schema *s, uint32_t node, cJSON *value,
                           unsigned depth);

static void default_members(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                            unsigned depth)
{
    const struct schema_node *n = schema_node(s, node);
    size_t row = 0;

    if (n->kind == SCHEMA_OBJECT)
        add_defaults(a, s, n, object);
    json_each(member, object)
    {
        const struct schema_field *field = schema_field_of(s, n, member->string, row);

        if (field) {
            row = (size_t)(field - &s->fields[n->first_field]) + 1;
            apply_defaults(a, s, field->node, member, depth + 1);
        } else if (n->kind != SCHEMA_ANY && n->elem) {
            apply_defaults(a, s, n->elem, member, depth + 1);
        }
    }
}

static void apply_defaults(struct arena *a, const struct schema *s, uint32_t node, cJSON *value,
                           unsigned depth)
{
    const struct schema_node *n = schema_node(s, node);

    if (depth == TREE_DEPTH)
        return;
    if (n->kind == SCHEMA_LIST && json_is_array(value)) {
        json_each(item, value) apply_defaults(a, s, n->elem, item, depth + 1);
    } else if (json_is_object(value)) {
        default_members(a, s, node, value, depth);
    }
}

void schema_default(struct arena *a, const struct schema *s, uint32_t node, cJSON *object)
{
    apply_defaults(a, s, node, object, 0);
}
