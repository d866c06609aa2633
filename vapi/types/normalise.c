/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives a decoded body the form it would have after Go decoded it into its type and printed it
 * again: type errors, nulls, omitempty, zero values of fields without it, canonical scalars, maps
 * in the order of their keys. Unknown fields are recorded and dropped. Must never change the
 * contents of a RawExtension.
 *
 * Go's rules in short: a field is printed unless it has omitempty and is empty, and a struct is
 * never empty; a nil pointer, slice or map without omitempty is printed as null; null leaves a
 * value alone. */

#include "normalise.h"
#include "builtin.h"
#include "tree.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/api_version.h>

enum { SEEN_MAX = 256 };

static int normalise_value(struct walk *w, uint32_t node, cJSON *value, const struct frame *at,
                           unsigned depth);
static void make_zero(struct walk *w, uint32_t node, bool pointer, cJSON *value, unsigned depth);

/* True for the kinds whose zero value Go prints as null. */
static bool zero_is_null(uint8_t kind)
{
    switch (kind) {
    case SCHEMA_ANY:
    case SCHEMA_MAP:
    case SCHEMA_LIST:
    case SCHEMA_BYTES:
    case SCHEMA_TIME:
    case SCHEMA_MICRO_TIME:
    case SCHEMA_FIELDS_V1:
    case SCHEMA_UNSTRUCTURED:
        return true;
    default:
        return false;
    }
}

/* Values that omitempty drops. */
static bool is_empty(const struct schema_node *n, bool pointer, const cJSON *value)
{
    if (pointer)
        return json_is_null(value);
    switch (n->kind) {
    case SCHEMA_STRING:
    case SCHEMA_BYTES:
        return json_is_null(value) || (json_is_string(value) && value->valueint == 0);
    case SCHEMA_BOOL:
        return json_is_bool(value) && !json_true(value);
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_UINT32:
    case SCHEMA_UINT64:
    case SCHEMA_UINT8:
    case SCHEMA_DOUBLE:
        return json_is_number(value) && value->valuedouble == 0;
    case SCHEMA_LIST:
    case SCHEMA_MAP:
        return json_is_null(value) || !value->child;
    default: /* structs in Go */
        return false;
    }
}

/* Values that omitzero drops: zero values, structs included. */
static bool is_zero(const struct schema_node *n, bool pointer, const cJSON *value)
{
    if (json_is_null(value))
        return pointer || zero_is_null(n->kind);
    if (pointer)
        return false;
    return n->kind == SCHEMA_OBJECT ? !value->child : is_empty(n, false, value);
}

/* Adds the absent fields that Go would print. seen: bit per row of the node. */
static void fill_absent(struct walk *w, uint32_t node, cJSON *object, const uint64_t *seen,
                        unsigned depth)
{
    const struct schema_node *n = node_at(w->schema, node);
    const struct schema_field *field = &w->schema->fields[n->first_field];

    for (size_t i = 0; i < n->n_fields; i++, field++) {
        const char *name;
        cJSON *value;

        if (!(field->flags & FIELD_PRINTED))
            continue;
        name = schema_text(w->schema, field->name);
        if (seen && i < SEEN_MAX ? seen[i / 64] >> (i % 64) & 1 : json_get(object, name) != NULL)
            continue;
        value = json_new_null(w->arena);
        make_zero(w, field->node, field->flags & FIELD_POINTER, value, depth);
        json_add(object, name, value);
    }
}

static const struct {
    int type;
    struct str text;
} ZEROS[] = {
    [SCHEMA_STRING] = {cJSON_String, {"", 0}},
    [SCHEMA_BOOL] = {cJSON_False, {NULL, 0}},
    [SCHEMA_INT32] = {cJSON_Number, {NULL, 0}},
    [SCHEMA_INT64] = {cJSON_Number, {NULL, 0}},
    [SCHEMA_UINT32] = {cJSON_Number, {NULL, 0}},
    [SCHEMA_UINT64] = {cJSON_Number, {NULL, 0}},
    [SCHEMA_UINT8] = {cJSON_Number, {NULL, 0}},
    [SCHEMA_DOUBLE] = {cJSON_Number, {NULL, 0}},
    [SCHEMA_QUANTITY] = {cJSON_String, {"0", 1}},
    [SCHEMA_INT_OR_STRING] = {cJSON_Number, {NULL, 0}},
    [SCHEMA_DURATION] = {cJSON_String, {"0s", 2}},
};

/* Sets value to the zero value of a type. */
static void make_zero(struct walk *w, uint32_t node, bool pointer, cJSON *value, unsigned depth)
{
    const struct schema_node *n = node_at(w->schema, node);
    cJSON zero = {.type = cJSON_NULL};

    if (pointer || zero_is_null(n->kind)) {
        tree_become(value, &zero);
        return;
    }
    if (n->kind == SCHEMA_OBJECT) {
        zero.type = cJSON_Object;
        tree_become(value, &zero);
        if (depth < TREE_DEPTH)
            fill_absent(w, node, value, NULL, depth + 1);
        return;
    }
    zero.type = ZEROS[n->kind].type;
    if (zero.type == cJSON_String) {
        zero.valuestring = arena_cstr(w->arena, ZEROS[n->kind].text);
        zero.valueint = (int)ZEROS[n->kind].text.n;
    }
    tree_become(value, &zero);
}

/* One member that the table knows. *ret_drop: it must be removed from the object. */
static int normalise_member(struct walk *w, uint32_t node, const struct schema_field *field,
                            cJSON *member, const struct frame *at, unsigned depth, bool *ret_drop)
{
    const struct schema_node *type = node_at(w->schema, field->node);
    struct frame here = {
        .up = at, .kind = FRAME_FIELD, .node = node, .name = str_c(member->string)};
    bool pointer = field->flags & FIELD_POINTER;

    *ret_drop = false;
    if (w->decoded && json_is_null(member) && pointer)
        return 0; /* a message that was present but empty: the pointer is not nil */
    if (json_is_null(member))
        make_zero(w, field->node, pointer, member, depth);
    else if (normalise_value(w, field->node, member, &here, depth))
        return -1;
    else if (pointer)
        return 0; /* also when it became null, like a zero time */
    *ret_drop = ((field->flags & FIELD_OMITEMPTY) && is_empty(type, pointer, member)) ||
                ((field->flags & FIELD_OMITZERO) && is_zero(type, pointer, member));
    return 0;
}

static int normalise_object(struct walk *w, uint32_t node, cJSON *object, const struct frame *at,
                            unsigned depth)
{
    const struct schema_node *n = node_at(w->schema, node);
    uint64_t seen[SEEN_MAX / 64] = {0};
    size_t row = 0;
    cJSON *next;

    if (arena_over(w->arena)) /* zero values may make a body many times larger */
        return walk_fail(w, STR("the object is too large"));
    for (cJSON *member = object->child; member; member = next) {
        const struct schema_field *field = schema_field_of(w->schema, n, member->string, row);
        bool drop;

        next = member->next;
        if (!field) {
            if (w->strict)
                strict_add(w->strict, "unknown field", walk_path(w, at, str_c(member->string)));
            json_detach(object, member);
            continue;
        }
        if (normalise_member(w, node, field, member, at, depth, &drop))
            return -1;
        row = (size_t)(field - &w->schema->fields[n->first_field]);
        if (row < SEEN_MAX)
            seen[row / 64] |= UINT64_C(1) << (row % 64);
        row++;
        if (drop)
            json_detach(object, member);
    }
    fill_absent(w, node, object, seen, depth);
    return 0;
}

static int normalise_item(struct walk *w, uint32_t node, cJSON *item, const struct frame *at,
                          unsigned depth)
{
    if (!json_is_null(item))
        return normalise_value(w, node, item, at, depth);
    make_zero(w, node, false, item, depth);
    return 0;
}

static int normalise_list(struct walk *w, uint32_t elem, cJSON *array, const struct frame *at,
                          unsigned depth)
{
    struct frame here = {.up = at, .kind = FRAME_INDEX};

    json_each(item, array)
    {
        if (normalise_item(w, elem, item, &here, depth))
            return -1;
        here.index++;
    }
    return 0;
}

static int normalise_map(struct walk *w, uint32_t elem, cJSON *object, const struct frame *at,
                         unsigned depth)
{
    struct frame here = {.up = at, .kind = FRAME_KEY};

    if (w->decoded)
        tree_sort_members(w->arena, object);
    json_each(member, object)
    {
        here.name = str_c(member->string);
        if (normalise_item(w, elem, member, &here, depth))
            return -1;
    }
    if (!w->decoded)
        tree_sort_members(w->arena, object); /* not before: errors come in the order of the body */
    return 0;
}

/* A JSON value that is one of the alternatives in the message `wire`. Go decodes these with a
 * decoder of their own: it reports no strict errors, and its type errors end the walk. A value that
 * fits no alternative, and an empty list, become null. Source: apiextensions v1 marshal.go. */
static int normalise_either(struct walk *w, uint32_t wire, cJSON *value, const struct frame *at,
                            unsigned depth)
{
    struct walk inner = *w;
    bool flag;
    const struct schema_field *field = schema_either(w->schema, wire, value, &flag);

    if (!field && flag)
        return walk_fail(w, STR("boolean or JSON schema expected"));
    if (!field || (json_is_array(value) && !value->child)) {
        make_zero(w, 0, true, value, depth);
        return 0;
    }
    inner.strict = NULL;
    inner.mismatched = inner.converting = false;
    if (normalise_value(&inner, field->node, value, w->converting ? NULL : at, depth))
        return -1;
    return inner.mismatched ? walk_fail(w, inner.mismatch) : 0;
}

static int normalise_value(struct walk *w, uint32_t node, cJSON *value, const struct frame *at,
                           unsigned depth)
{
    const struct schema_node *n = node_at(w->schema, node);
    bool fits;

    if (depth == TREE_DEPTH)
        return walk_fail(w, STR("the object is nested too deeply"));
    switch (n->kind) {
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        fits = json_is_object(value);
        break;
    case SCHEMA_LIST:
        fits = json_is_array(value);
        break;
    case SCHEMA_ANY:
        return n->elem ? normalise_either(w, n->elem, value, at, depth + 1) : 0;
    default:
        return walk_scalar(w, node, value, at);
    }
    if (!fits)
        return walk_mismatch(w, at, node, value);
    if (n->kind == SCHEMA_OBJECT)
        return normalise_object(w, node, value, at, depth + 1);
    if (n->kind == SCHEMA_MAP)
        return normalise_map(w, n->elem, value, at, depth + 1);
    return normalise_list(w, n->elem, value, at, depth + 1);
}

static int run(struct walk *w, uint32_t node, cJSON *object)
{
    if (normalise_value(w, node, object, NULL, 0))
        return -1;
    return w->mismatched ? walk_fail(w, w->mismatch) : 0;
}

int normalise_decoded(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                      struct err *err)
{
    struct walk w = {.arena = a, .schema = s, .err = err, .decoded = true};

    return run(&w, node, object);
}

int schema_normalise(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                     struct strict_errors *strict, struct err *err)
{
    struct walk w = {.arena = a, .schema = s, .strict = strict, .err = err};
    struct str kind = json_str(json_get(object, "kind"));
    struct str version = json_str(json_get(object, "apiVersion"));

    if (run(&w, node, object)) {
        /* `Deployment in version "v1" cannot be handled as a Deployment: ...`. Source: apiserver
         * pkg/endpoints/handlers/rest.go transformDecodeError. */
        struct str type = str_c(schema_text(s, schema_node(s, node)->type_name));

        if (kind.n == 0)
            return -1;
        return err_wrap(err, "%.*s in version \"%.*s\" cannot be handled as a %.*s", STR_F(kind),
                        STR_F(api_version_read(version).version),
                        STR_F(str_from(type, str_rfind(type, '.') + 1)));
    }
    return 0;
}

int schema_normalise_patched(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                             bool converted, struct strict_errors *strict, struct err *err)
{
    struct walk w = {
        .arena = a, .schema = s, .strict = strict, .err = err, .converting = converted};
    size_t before = strict ? strict->n : 0;

    if (run(&w, node, object))
        return -1;
    if (converted && strict && strict->n > before)
        qsort(strict->text + before, strict->n - before, sizeof *strict->text, str_order);
    return 0;
}
