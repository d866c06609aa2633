/* SPDX-License-Identifier: Apache-2.0 */
/* The values /scale reads from a custom resource must fit into a Scale, whatever its schema says:
 * an autoscaler fails on any other object. Must never report an unchanged invalid value again.
 * Source of the checks and messages: apiextensions-apiserver
 * pkg/registry/customresource/validator.go. */
#include "judge.h"

#include <string.h>

#include <sublet/patch.h>
#include <sublet/resource.h>

static const struct scale_paths *scale_of(const struct crd_version *v)
{
    const struct resource *r = v->resource;

    for (size_t i = 0; i < r->n_subresources; i++)
        if (r->subresources[i].kind == SUB_SCALE)
            return r->subresources[i].scale;
    return NULL;
}

/* Go's name of the type encoding/json decodes a value to. */
static const char *go_kind(const cJSON *value)
{
    int64_t number;

    if (json_is_null(value))
        return "<nil>";
    if (json_is_bool(value))
        return "bool";
    if (json_is_number(value))
        return json_i64(value, &number) ? "int64" : "float64";
    if (json_is_string(value))
        return "string";
    return json_is_array(value) ? "[]interface {}" : "map[string]interface {}";
}

struct number_place {
    struct field_errors *e;
    const struct field_path *field;
    const char *wanted; /* Go's type */
    const cJSON *nothing;
};

static void wrong(const struct number_place *at, struct str path, const cJSON *value,
                  const char *wanted)
{
    struct arena *a = at->e->arena;

    field_invalid(at->e, at->field, at->nothing,
                  arena_printf(a, ".%.*s accessor error: %.*s is of the type %s, expected %s",
                               STR_F(path), STR_F(patch_print(a, value)), go_kind(value), wanted)
                      .p);
}

/* The value at a dotted path; NULL when absent, or when an error was reported. */
static const cJSON *value_at(const struct number_place *at, const cJSON *object, struct str path)
{
    struct str rest = path;

    while (object && !json_is_null(object)) {
        struct str key = str_cut(&rest, '.');

        if (!json_is_object(object)) {
            wrong(at, (struct str){path.p, (size_t)(key.p + key.n - path.p)}, object,
                  "map[string]interface{}");
            return NULL;
        }
        object = json_get(object, arena_cstr(at->e->arena, key));
        if (!rest.n)
            return object;
    }
    return NULL;
}

static void judge_count(struct field_errors *e, const char *path, const cJSON *object,
                        const cJSON *old)
{
    struct field_path field = {.name = arena_printf(e->arena, ".%s", path).p};
    struct number_place at = {e, &field, "int64", json_new_i64(e->arena, 0)};
    const cJSON *value;
    int64_t n;

    if (old && json_equal(json_path(old, path), json_path(object, path)))
        return;
    value = value_at(&at, object, str_c(path));
    if (!value)
        return;
    if (!json_i64(value, &n))
        wrong(&at, str_c(path), value, at.wanted);
    else if (n < 0)
        field_invalid(e, &field, value, "should be a non-negative integer");
    else if (n > INT32_MAX)
        field_invalid(e, &field, value, "should be less than or equal to 2147483647");
}

static void judge_text(struct field_errors *e, const char *path, const cJSON *object,
                       const cJSON *old)
{
    struct field_path field = {.name = arena_printf(e->arena, ".%s", path).p};
    struct number_place at = {e, &field, "string", json_new_string(e->arena, STR(""))};
    const cJSON *value;

    if (old && json_equal(json_path(old, path), json_path(object, path)))
        return;
    value = value_at(&at, object, str_c(path));
    if (value && !json_is_string(value))
        wrong(&at, str_c(path), value, at.wanted);
}

void crd_judge_replicas(const struct crd_version *v, struct field_errors *e, const cJSON *object,
                        const cJSON *old)
{
    const struct scale_paths *p = scale_of(v);

    if (!p)
        return;
    if (p->spec_replicas)
        judge_count(e, p->spec_replicas, object, old);
    if (p->status_replicas)
        judge_count(e, p->status_replicas, object, old);
    if (p->selector)
        judge_text(e, p->selector, object, old);
}
