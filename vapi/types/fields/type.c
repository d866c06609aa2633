/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes a value of a type may have, from the schemas of built-in kinds and CRDs. A field
 * unknown to a built-in kind was kept from a newer client: it is merged by its JSON type. Must
 * never assume that a value has its type. Source: kube-openapi pkg/schemaconv,
 * structured-merge-diff typed/helpers.go. */
#include "fields.h"

#include <sublet/crd.h>

#include "../builtin.h"

#include <string.h>

static const struct field_type NONE = {.form = TYPE_NONE};

static struct field_type deduced(void)
{
    return (struct field_type){.form = TYPE_DEDUCED};
}

static const struct schema_node *node_of(struct field_type t)
{
    return schema_node(t.schema, t.node);
}

/* ---- atoms ---- */

static const struct {
    uint8_t bits, scalar;
} KINDS[] = {
    [SCHEMA_OBJECT] = {ATOM_MAP, 0},
    [SCHEMA_MAP] = {ATOM_MAP, 0},
    [SCHEMA_LIST] = {ATOM_LIST, 0},
    [SCHEMA_STRING] = {ATOM_SCALAR, SCALAR_STRING},
    [SCHEMA_BOOL] = {ATOM_SCALAR, SCALAR_BOOL},
    [SCHEMA_INT32] = {ATOM_SCALAR, SCALAR_NUMBER},
    [SCHEMA_INT64] = {ATOM_SCALAR, SCALAR_NUMBER},
    [SCHEMA_UINT32] = {ATOM_SCALAR, SCALAR_NUMBER},
    [SCHEMA_UINT64] = {ATOM_SCALAR, SCALAR_NUMBER},
    [SCHEMA_UINT8] = {ATOM_SCALAR, SCALAR_NUMBER},
    [SCHEMA_DOUBLE] = {ATOM_SCALAR, SCALAR_NUMBER},
    [SCHEMA_BYTES] = {ATOM_SCALAR, SCALAR_STRING},
    [SCHEMA_QUANTITY] = {ATOM_SCALAR, SCALAR_UNTYPED},
    [SCHEMA_TIME] = {ATOM_SCALAR, SCALAR_UNTYPED},
    [SCHEMA_MICRO_TIME] = {ATOM_SCALAR, SCALAR_UNTYPED},
    [SCHEMA_DURATION] = {ATOM_SCALAR, SCALAR_STRING},
    [SCHEMA_FIELDS_V1] = {ATOM_MAP, 0},
    [SCHEMA_UNSTRUCTURED] = {ATOM_MAP, 0},
};

static void atom_of_node(struct field_type t, struct atom *ret)
{
    const struct schema_node *n = node_of(t);
    bool known = n->kind < COUNT(KINDS) && KINDS[n->kind].bits;

    /* ANY and IntOrString: OpenAPI gives them no type. */
    ret->bits = known ? KINDS[n->kind].bits : ATOM_MAP | ATOM_SCALAR | ATOM_LIST;
    ret->scalar = known ? KINDS[n->kind].scalar : SCALAR_UNTYPED;
    ret->atomic_map =
        (n->kind == SCHEMA_ANY || n->kind == SCHEMA_OBJECT || n->kind == SCHEMA_MAP) &&
        n->list_type == LIST_ATOMIC;
    ret->atomic_list = n->kind != SCHEMA_LIST || n->list_type == LIST_ATOMIC;
    if (n->flags & NODE_FORMATTED && ret->scalar == SCALAR_STRING)
        ret->scalar = SCALAR_UNTYPED;
    if (n->flags & NODE_PRESERVE)
        ret->type.preserve = true;
}

void atom_of(struct field_type t, struct atom *ret)
{
    *ret = (struct atom){.type = t};
    switch (t.form) {
    case TYPE_NODE:
        atom_of_node(t, ret);
        return;
    case TYPE_DEDUCED:
    case TYPE_UNTYPED:
        ret->bits = ATOM_MAP | ATOM_SCALAR | ATOM_LIST;
        ret->atomic_list = true;
        ret->atomic_map = t.form == TYPE_UNTYPED;
        return;
    default:
        return;
    }
}

unsigned atom_deduce(const struct atom *t, const cJSON *value)
{
    unsigned bit = 0;

    if (json_is_object(value))
        bit = ATOM_MAP;
    else if (json_is_array(value))
        bit = ATOM_LIST;
    else if (value && !json_is_null(value))
        bit = ATOM_SCALAR;
    return t->bits & bit ? bit : t->bits;
}

unsigned atom_choose(unsigned bits)
{
    static const unsigned order[] = {ATOM_MAP, ATOM_SCALAR, ATOM_LIST};

    for (size_t i = 0; i < COUNT(order); i++)
        if (bits & order[i])
            return order[i];
    return 0;
}

/* ---- children ---- */

static struct field_type child(const struct atom *t, uint32_t node)
{
    struct field_type c = t->type;

    c.node = node;
    c.root = false;
    return c;
}

/* apiVersion, kind and metadata have the same type in every object. */
static bool is_type_meta(const char *key)
{
    return strcmp(key, "metadata") == 0 || strcmp(key, "kind") == 0 ||
           strcmp(key, "apiVersion") == 0;
}

/* The type of keys that are no fields. */
static struct field_type other_keys(const struct atom *t)
{
    const struct schema_node *n = node_of(t->type);

    if (n->kind == SCHEMA_OBJECT || n->kind == SCHEMA_MAP) {
        if (n->elem)
            return child(t, n->elem);
        if (n->flags & NODE_CLOSED)
            return NONE;
        if (n->kind == SCHEMA_OBJECT && n->n_fields && !t->type.preserve)
            return NONE;
    }
    return deduced();
}

struct field_type type_member(const struct atom *t, const char *key, bool *declared)
{
    const struct schema_field *f;
    uint32_t root;

    *declared = false;
    if (t->type.form == TYPE_UNTYPED)
        return t->type;
    if (t->type.form == TYPE_DEDUCED)
        return deduced();
    if ((t->type.root || node_of(t->type)->flags & NODE_EMBEDDED) && is_type_meta(key)) {
        *declared = true;

        root = schema_builtin_root(STR(""), STR("v1"), str_c("ConfigMap"));
        return (struct field_type){.schema = &SCHEMA_BUILTIN,
                                   .node = schema_child(&SCHEMA_BUILTIN, root, str_c(key))};
    }
    f = schema_field_of(t->type.schema, node_of(t->type), key, 0);
    if (!f)
        return other_keys(t);
    *declared = true;
    return child(t, f->node);
}

struct field_type type_item(const struct atom *t)
{
    if (t->type.form == TYPE_NODE && node_of(t->type)->kind == SCHEMA_LIST)
        return child(t, node_of(t->type)->elem);
    return (struct field_type){.form = TYPE_UNTYPED};
}

bool type_is_free(const struct atom *t)
{
    const struct schema_node *n;

    if (t->type.form != TYPE_NODE)
        return t->type.form == TYPE_DEDUCED;
    n = node_of(t->type);
    return !t->type.root && !n->n_fields && !(n->flags & NODE_EMBEDDED) &&
           other_keys(t).form == TYPE_DEDUCED;
}

/* ---- scalars ---- */

/* Go's %v of upstream's wrapper of a value. */
const char *go_value(struct arena *a, const cJSON *value)
{
    return arena_printf(a, "&{%.*s}", STR_F(patch_print(a, value))).p;
}

static const char *go_type_name(const cJSON *value)
{
    if (json_is_object(value))
        return "map[string]interface {}";
    if (json_is_array(value))
        return "[]interface {}";
    if (json_is_bool(value))
        return "bool";
    return "string";
}

const char *atom_problem(struct arena *a, const struct atom *t, const cJSON *value)
{
    bool container = json_is_object(value) || json_is_array(value);

    if (!value || json_is_null(value))
        return NULL;
    switch (t->scalar) {
    case SCALAR_NUMBER:
        if (!json_is_number(value))
            return arena_printf(a, "expected numeric (int or float), got %s", go_type_name(value))
                .p;
        return NULL;
    case SCALAR_STRING:
        if (!json_is_string(value))
            return arena_printf(a, "expected string, got &value.valueUnstructured{Value:%.*s}",
                                STR_F(patch_print_syntax(a, value)))
                .p;
        return NULL;
    case SCALAR_BOOL:
        if (!json_is_bool(value))
            return arena_printf(a, "expected boolean, got %s", go_value(a, value)).p;
        return NULL;
    case SCALAR_UNTYPED:
    default:
        return container ? arena_printf(a, "expected any scalar, got %s", go_value(a, value)).p
                         : NULL;
    }
}
