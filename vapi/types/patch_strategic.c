/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategic merge patch as the API server applies it to built-in kinds. Source: apimachinery
 * pkg/util/strategicpatch. Must never change the caller's patch (it is applied again after a
 * conflict), and never leave a directive in the result where the type has no such field. */

#include <string.h>

#include "index.h"
#include "strategic.h"
#include "tree.h"

/* Types. Go's struct tags come from the table; a type that is no struct in Go has no fields. */

static int no_struct(struct strategic *s, const char *kind)
{
    return err_set(s->err, &ERR_UNKNOWN,
                   "merging an object in json but data type is not struct, instead is: %s", kind);
}

static int no_field(struct strategic *s, const struct schema_node *n, const char *name)
{
    struct str type = str_c(schema_text(s->schema, n->type_name));

    return err_set(s->err, &ERR_UNKNOWN,
                   "unable to find api field in struct %.*s for the json field \"%s\"",
                   STR_F(str_from(type, str_rfind(type, '.') + 1)), name);
}

int strategic_meta(struct strategic *s, uint32_t node, const char *name, bool list,
                   struct patch_meta *ret)
{
    const struct schema_node *n = schema_node(s->schema, node), *type;
    const struct schema_field *field = schema_field(s->schema, node, str_c(name));

    if (n->kind == SCHEMA_MAP)
        return no_struct(s, "map");
    if (n->kind == SCHEMA_LIST || n->kind == SCHEMA_BYTES)
        return no_struct(s, "slice");
    if (!field)
        return no_field(s, n, name);
    type = schema_node(s->schema, field->node);
    if (list && type->kind != SCHEMA_LIST && !(field->flags & FIELD_POINTER))
        return err_set(s->err, &ERR_UNKNOWN, "expected slice or array type, but got: struct");
    *ret = (struct patch_meta){
        .node = list ? type->elem : field->node,
        .patch = field->patch,
        .key = schema_text(s->schema, field->patch_key),
    };
    return 0;
}

/* Directives of a whole object */

static bool is_list_directive(const char *key)
{
    return str_has_prefix(str_c(key), STR(DELETE_FROM_LIST)) ||
           str_has_prefix(str_c(key), STR(SET_ELEMENT_ORDER));
}

static int bad_retain_keys(struct strategic *s)
{
    return err_set(s->err, &ERR_BAD_REQUEST, "invalid patch format of retainKeys");
}

/* $retainKeys names all members the object may keep, the patch's own among them. */
static int retain_keys(struct strategic *s, cJSON *original, cJSON *patch)
{
    cJSON *list = json_get(patch, RETAIN_KEYS), *next;
    struct index kept;
    bool fresh;

    if (!list)
        return 0;
    json_detach(patch, list);
    if (!json_is_array(list))
        return bad_retain_keys(s);
    index_init(&kept, s->arena, json_count(list));
    json_each(name, list)
    {
        if (json_is_string(name))
            index_put(&kept, json_str(name), &fresh);
    }
    json_each(member, patch)
    {
        if (!json_is_null(member) && !is_list_directive(member->string) &&
            !index_get(&kept, str_c(member->string)))
            return bad_retain_keys(s);
    }
    for (cJSON *member = json_first(original); member; member = next) {
        next = member->next;
        if (!index_get(&kept, str_c(member->string)))
            json_detach(original, member);
    }
    return 0;
}

/* "$setElementOrder/containers" -> "containers"; NULL when key has another prefix. */
static const char *directive_field(const char *key, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(key, prefix, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

/* One $setElementOrder with the list it orders, both taken from the patch. */
struct ordered {
    const char *field;
    const cJSON *original, *patch; /* lists, or NULL */
    struct items order;
    struct patch_meta meta;
};

static int read_ordered(struct strategic *s, uint32_t node, struct members *original, cJSON *patch,
                        cJSON *directive, struct ordered *o)
{
    o->field = directive_field(directive->string, SET_ELEMENT_ORDER);
    if (!json_is_array(directive))
        return strategic_bad_type(s, "[]interface {}", directive);
    if (!o->field)
        return strategic_bad_order(s);
    o->order = value_items(s->arena, directive);
    o->original = members_get(original, o->field);
    o->patch = json_get(patch, o->field);
    if (o->original && !json_is_array(o->original))
        return strategic_bad_type(s, "[]interface {}", o->original);
    if (o->patch && !json_is_array(o->patch))
        return strategic_bad_type(s, "[]interface {}", o->patch);
    return strategic_meta(s, node, o->field, true, &o->meta);
}

/* The contents of the list before it is ordered. */
static int merge_ordered(struct strategic *s, struct ordered *o, struct items original,
                         struct items patch, unsigned depth, struct items *ret)
{
    *ret = original;
    if (!o->patch)
        return 0;
    if (o->original)
        return strategic_list(s, &o->meta, original, patch, false, depth, ret);

    ret->v = arena_alloc(s->arena, (patch.n + 1) * sizeof(cJSON *));
    ret->n = 0;
    for (size_t i = 0; i < patch.n; i++) {
        if (!value_drop_directives(patch.v[i], 0))
            continue;
        value_strip(s, o->meta.node, patch.v[i], 0);
        ret->v[ret->n++] = patch.v[i];
    }
    return 0;
}

static int apply_ordered(struct strategic *s, struct ordered *o, struct members *members,
                         cJSON *patch, unsigned depth)
{
    struct items original = value_items(s->arena, o->original),
                 changes = value_items(s->arena, o->patch), merged;
    bool keyed = *o->meta.key;

    if (strategic_check_order(s, changes, o->order, o->meta.key))
        return -1;
    if (!o->original && !o->patch)
        return 0;
    if (merge_ordered(s, o, original, changes, depth, &merged))
        return -1;
    if (original.n == 0 && changes.n == 0)
        return err_set(s->err, &ERR_UNKNOWN, "no elements in any of the given slices");
    if (strategic_order(s, merged, o->order, o->order, original, o->meta.key, keyed, &merged))
        return -1;
    json_remove(patch, o->field);
    members_set(members, o->field, value_array(s->arena, merged));
    return 0;
}

static int apply_orders(struct strategic *s, uint32_t node, struct members *original, cJSON *patch,
                        unsigned depth)
{
    cJSON *member = json_first(patch);

    while (member) {
        struct ordered o;
        cJSON *directive = member;

        if (!str_has_prefix(str_c(member->string), STR(SET_ELEMENT_ORDER))) {
            member = member->next;
            continue;
        }
        if (read_ordered(s, node, original, patch, directive, &o))
            return -1;
        json_detach(patch, directive);
        if (apply_ordered(s, &o, original, patch, depth))
            return -1;
        member = json_first(patch); /* the list may have been the next member */
    }
    return 0;
}

/* Members */

/* Takes a value of the patch unchanged. */
static void take_value(struct strategic *s, uint32_t node, struct members *original,
                       const char *key, cJSON *value)
{
    uint32_t type = schema_child(s->schema, node, str_c(key));

    value_drop_nulls(value, 0);
    if (!value_drop_directives(value, 0)) {
        members_remove(original, key);
        return;
    }
    value_strip(s, type, value, 0);
    value->next = value->prev = NULL;
    members_set(original, key, value);
}

static int merge_list(struct strategic *s, uint32_t node, struct members *original, const char *key,
                      cJSON *old, cJSON *change, bool is_delete, unsigned depth)
{
    struct patch_meta meta;
    struct items merged;

    if (strategic_meta(s, node, key, true, &meta) ||
        strategic_list(s, &meta, value_items(s->arena, old), value_items(s->arena, change),
                       is_delete, depth, &merged))
        return -1;
    members_set(original, key, value_array(s->arena, merged));
    return 0;
}

static int merge_member(struct strategic *s, uint32_t node, struct members *original, cJSON *change,
                        unsigned depth)
{
    bool is_delete = str_has_prefix(str_c(change->string), STR(DELETE_FROM_LIST));
    const char *key =
        is_delete ? directive_field(change->string, DELETE_FROM_LIST) : change->string;
    cJSON *old;

    if (!key)
        return err_set(s->err, &ERR_BAD_REQUEST, "invalid patch format of primitive list");
    old = members_get(original, key);
    if (json_is_null(change)) {
        members_remove(original, key);
        return 0;
    }
    if (json_is_object(old) && json_is_object(change)) {
        struct patch_meta meta;
        cJSON *merged = change;

        if (strategic_meta(s, node, key, false, &meta))
            return -1;
        if (meta.patch & PATCH_WHOLE)
            value_strip(s, meta.node, change, 0);
        else if (strategic_map(s, meta.node, old, change, depth + 1, &merged))
            return -1;
        members_set(original, key, merged);
        return 0;
    }
    if (json_is_array(old) && json_is_array(change))
        return merge_list(s, node, original, key, old, change, is_delete, depth);
    if (!is_delete || (old && value_type(s->arena, old) == value_type(s->arena, change)))
        take_value(s, node, original, key, change);
    return 0;
}

int strategic_map(struct strategic *s, uint32_t node, cJSON *original, cJSON *patch, unsigned depth,
                  cJSON **ret)
{
    const cJSON *directive = json_get(patch, DIRECTIVE);
    struct members members;
    cJSON *next;

    if (depth == TREE_DEPTH)
        return err_set(s->err, &ERR_BAD_REQUEST, "the patch is nested too deeply");
    if (arena_over(s->arena))
        return err_set(s->err, &ERR_TOO_LARGE, "Request entity is too large: the patched object");
    if (directive) {
        if (str_eqc(json_str(directive), "replace")) {
            json_remove(patch, DIRECTIVE);
            value_strip(s, node, patch, 0);
            *ret = patch;
            return 0;
        }
        if (str_eqc(json_str(directive), "delete")) {
            *ret = json_new_object(s->arena);
            return 0;
        }
        return strategic_bad_directive(s, directive, patch);
    }
    if (retain_keys(s, original, patch))
        return -1;
    members_open(&members, s->arena, original, json_count(patch));
    if (apply_orders(s, node, &members, patch, depth))
        return -1;
    for (cJSON *change = json_first(patch); change; change = next) {
        next = change->next;
        json_detach(patch, change);
        if (merge_member(s, node, &members, change, depth))
            return -1;
    }
    *ret = original;
    return 0;
}

int patch_strategic(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                    const cJSON *patch, cJSON **ret, struct err *err)
{
    struct strategic strategic = {.arena = a, .schema = s, .err = err};

    if (!json_is_object(patch) && !json_is_null(patch))
        return err_set(err, &ERR_BAD_REQUEST,
                       "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                       json_type_name(patch));
    if (json_is_null(patch)) {
        *ret = object;
        return 0;
    }
    return strategic_map(&strategic, node, object, json_copy(a, patch), 0, ret);
}

struct str patch_print(struct arena *a, const cJSON *patch)
{
    return value_print(a, patch);
}
