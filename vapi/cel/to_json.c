/* SPDX-License-Identifier: Apache-2.0 */
/* What an expression gives, as JSON: for a patch, or a configuration to apply. Must be bounded by
 * the arena and by depth. Source: k8s.io/apiserver pkg/cel/mutation/dynamic/objects.go, cel-go
 * ConvertToNative() of each type. */
#include "impl.h"

#include <math.h>

#include <sublet/encode.h>

#define MOST_BYTES ((size_t)1 << 20) /* left in the arena: below, the value is too large */

struct walk {
    struct arena *arena;
    struct str why; /* empty: no problem yet */
    unsigned depth;
};

/* path: the type that an object must have here. */
static cJSON *convert(struct walk *w, struct cel_value v, struct str path);

static cJSON *fail(struct walk *w, struct str why)
{
    if (!w->why.n)
        w->why = why;
    return json_new_null(w->arena);
}

static cJSON *convert_list(struct walk *w, struct cel_value v, struct str path)
{
    cJSON *ret = json_new_array(w->arena);

    for (size_t i = 0; i < v.list->n && !w->why.n; i++)
        json_append(ret, convert(w, v.list->items[i], path));
    return ret;
}

static cJSON *convert_map(struct walk *w, const struct cel_map *m, struct str path, bool is_object)
{
    cJSON *ret = json_new_object(w->arena);

    for (size_t i = 0; i < m->n && !w->why.n; i++) {
        struct str below = path;
        const char *key;

        if (m->keys[i].kind != CEL_STRING)
            return fail(w, arena_printf(w->arena, "map key is of type %.*s, not string",
                                        STR_F(cel_kind_name(m->keys[i]))));
        if (is_object)
            below = arena_printf(w->arena, "%.*s.%.*s", STR_F(path), STR_F(m->keys[i].s));
        key = arena_cstr(w->arena, m->keys[i].s);
        if (is_object) /* a field may be written twice */
            json_set(w->arena, ret, key, convert(w, m->values[i], below));
        else
            json_add(ret, key, convert(w, m->values[i], below));
    }
    return ret;
}

static cJSON *convert_object(struct walk *w, const struct cel_object *o, struct str path)
{
    if (path.n && !str_eq(path, o->type))
        return fail(w, arena_printf(w->arena,
                                    "type mismatch: unexpected type name %.*s, expected %.*s, "
                                    "which matches field name path from root Object type",
                                    STR_F(go_quote(w->arena, o->type)),
                                    STR_F(go_quote(w->arena, path))));
    if (str_eqc(o->type, "JSONPatch")) /* its value is the root of a path of its own */
        return convert_map(w, &o->fields, STR_NULL, false);
    return convert_map(w, &o->fields, o->type, true);
}

static cJSON *convert_other(struct walk *w, struct cel_value v)
{
    struct cel_run r = {.arena = w->arena, .limit = INT64_MAX};

    switch (v.kind) {
    case CEL_BOOL:
        return json_new_bool(w->arena, v.b);
    case CEL_INT:
        return json_new_i64(w->arena, v.i);
    case CEL_UINT:
        return v.u <= INT64_MAX ? json_new_i64(w->arena, (int64_t)v.u)
                                : json_new_double(w->arena, (double)v.u);
    case CEL_DOUBLE:
        return isfinite(v.d) ? json_new_double(w->arena, v.d)
                             : fail(w, STR("a number that JSON cannot have"));
    case CEL_STRING:
    case CEL_TIMESTAMP:
    case CEL_DURATION:
        return json_new_string(w->arena, cel_text(&r, v));
    case CEL_BYTES:
        return json_new_string(w->arena, base64_encode(w->arena, v.s));
    default:
        return fail(w, arena_printf(w->arena, "unsupported type: %.*s", STR_F(cel_kind_name(v))));
    }
}

static cJSON *convert(struct walk *w, struct cel_value v, struct str path)
{
    cJSON *ret;

    if (w->depth >= JSON_LIMITS.depth || arena_left(w->arena) < MOST_BYTES)
        return fail(w, STR("the value is too large"));
    w->depth++;
    if (v.kind == CEL_NULL)
        ret = json_new_null(w->arena);
    else if ((v.kind == CEL_LIST || v.kind == CEL_MAP) && v.is_json)
        ret = json_copy(w->arena, v.json);
    else if (v.kind == CEL_LIST)
        ret = convert_list(w, v, path);
    else if (v.kind == CEL_MAP)
        ret = convert_map(w, v.map, path, false);
    else if (v.kind == CEL_OBJECT)
        ret = convert_object(w, v.object, path);
    else
        ret = convert_other(w, v);
    w->depth--;
    return ret;
}

cJSON *cel_to_json(struct arena *a, struct cel_value v, struct str *ret_why)
{
    struct walk w = {.arena = a};
    cJSON *ret = convert(&w, v, STR_NULL);

    *ret_why = w.why;
    return w.why.n ? NULL : ret;
}
