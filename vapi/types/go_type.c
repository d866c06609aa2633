/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoder errors with Go's messages: clients and tests compare them. The names of Go's types come
 * from the table. Must never run for a valid body. */

#include "walk.h"

#include <string.h>

/* "io.k8s.api.core.v1.PodSpec" -> "v1.PodSpec"; a name with a bracket is already a type. */
static struct str short_name(struct str name, size_t parts)
{
    struct str head = name;
    size_t at = name.n;

    if (str_find(name, '[') < name.n)
        return name;
    for (; parts > 0; parts--) {
        at = str_rfind(head, '.');
        if (at == head.n)
            return name;
        head = str_sub(head, 0, at);
    }
    return str_from(name, at + 1);
}

static const char *const GO_SCALARS[] = {
    [SCHEMA_STRING] = "string", [SCHEMA_BOOL] = "bool",      [SCHEMA_INT32] = "int32",
    [SCHEMA_INT64] = "int64",   [SCHEMA_UINT32] = "uint32",  [SCHEMA_UINT64] = "uint64",
    [SCHEMA_UINT8] = "uint8",   [SCHEMA_DOUBLE] = "float64", [SCHEMA_BYTES] = "[]uint8",
};

const char *go_scalar(uint8_t kind)
{
    return kind < COUNT(GO_SCALARS) ? GO_SCALARS[kind] : NULL;
}

struct str go_type(struct arena *a, const struct schema *s, uint32_t node)
{
    const struct schema_node *n = schema_node(s, node);

    if (n->type_name)
        return short_name(str_c(schema_text(s, n->type_name)), 2);
    if (n->kind == SCHEMA_LIST)
        return arena_printf(a, "[]%.*s", STR_F(go_type(a, s, n->elem)));
    if (n->kind == SCHEMA_MAP)
        return arena_printf(a, "map[string]%.*s", STR_F(go_type(a, s, n->elem)));
    return go_scalar(n->kind) ? str_c(go_scalar(n->kind)) : STR("interface {}");
}

/* Go's path includes embedded structs: Volume.spec.volumes.VolumeSource.hostPath. */
static struct str embedded_names(struct arena *a, const struct schema *s, uint32_t node,
                                 struct str field)
{
    const struct schema_node *n = schema_node(s, node);

    for (size_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *row = &s->fields[n->first_field + i];
        struct str name;

        if (!(row->flags & FIELD_INLINE))
            break;
        if (!schema_field(s, row->node, field))
            continue;
        name = short_name(str_c(schema_text(s, schema_node(s, row->node)->type_name)), 1);
        return arena_printf(a, "%.*s.%.*s", STR_F(name),
                            STR_F(embedded_names(a, s, row->node, field)));
    }
    return STR_NULL;
}

static const struct frame *nearest_field(const struct frame *at)
{
    while (at && at->kind != FRAME_FIELD)
        at = at->up;
    return at;
}

/* Frames lead from the leaf to the root: each call prepends one name. */
static struct str go_path(struct walk *w, const struct frame *at)
{
    struct str path = STR_NULL;

    for (at = nearest_field(at); at; at = nearest_field(at->up)) {
        struct str parts[] = {embedded_names(w->arena, w->schema, at->node, at->name), at->name,
                              path.n ? STR(".") : STR(""), path};

        path = arena_concat(w->arena, 4, parts);
    }
    return path;
}

static struct str mismatch_text(struct walk *w, const struct frame *at, const char *value,
                                struct str type)
{
    const struct frame *field = nearest_field(at);
    struct str owner;

    if (!field)
        return arena_printf(w->arena, "json: cannot unmarshal %s into Go value of type %.*s", value,
                            STR_F(type));
    owner = short_name(
        str_c(schema_text(w->schema, schema_node(w->schema, field->node)->type_name)), 1);
    return arena_printf(w->arena,
                        "json: cannot unmarshal %s into Go struct field %.*s.%.*s of type %.*s",
                        value, STR_F(owner), STR_F(go_path(w, at)), STR_F(type));
}

void walk_note(struct walk *w, struct str text)
{
    if (!w->mismatched)
        w->mismatch = text;
    w->mismatched = true;
}

int walk_fail(struct walk *w, struct str text)
{
    return err_set(w->err, &ERR_BAD_REQUEST, "%.*s", STR_F(text));
}

/* Where a number was expected, numbers are shown as "number 1.5". */
static const char *value_name(struct walk *w, const cJSON *value, bool numeric)
{
    if (!json_is_number(value) || !numeric)
        return json_type_name(value);
    return arena_printf(w->arena, "number %.*s", STR_F(json_text(w->arena, value))).p;
}

void walk_note_mismatch(struct walk *w, const struct frame *at, const cJSON *value, bool numeric,
                        struct str type)
{
    if (!w->mismatched)
        walk_note(w, mismatch_text(w, at, value_name(w, value, numeric), type));
}

int walk_mismatch(struct walk *w, const struct frame *at, uint32_t node, const cJSON *value)
{
    uint8_t kind = schema_node(w->schema, node)->kind;
    bool numeric = (kind >= SCHEMA_INT32 && kind <= SCHEMA_DOUBLE) || kind == SCHEMA_INT_OR_STRING;

    if (w->converting)
        return walk_fail(w, convert_text(w, node, value));
    walk_note_mismatch(w, at, value, numeric, go_type(w->arena, w->schema, node));
    return 0;
}
int walk_mismatch_now(struct walk *w, const struct frame *at, const cJSON *value, const char *type)
{
    bool numeric = strcmp(type, "string") != 0;

    return walk_fail(
        w, mismatch_text(w, w->converting ? NULL : at, value_name(w, value, numeric), str_c(type)));
}

struct str walk_path(struct walk *w, const struct frame *at, struct str last)
{
    struct str path = last;
    const char *dot = ".";

    for (; at; at = at->up) {
        if (at->kind == FRAME_KEY && w->converting) /* upstream's converter omits these */
            continue;
        if (at->kind == FRAME_INDEX)
            path = arena_printf(w->arena, "[%zu]%s%.*s", at->index, dot, STR_F(path));
        else
            path = arena_printf(w->arena, "%.*s%s%.*s", STR_F(at->name), dot, STR_F(path));
        dot = at->kind == FRAME_INDEX ? "" : ".";
    }
    return path;
}
