/* SPDX-License-Identifier: Apache-2.0 */
/* A live object and a configuration of any shape, applied: sets survive printing, an apply that
 * succeeded changes nothing when it comes again, and what was given stays as it was. Must never
 * assume that either has its type. */

#include "patch_input.h"

#include <sublet/fields.h>

static cJSON *convert(void *ctx, struct arena *a, const cJSON *object, struct str to)
{
    (void)ctx;
    (void)a;
    return str_eqc(to, "v1") ? (cJSON *)(uintptr_t)object : NULL;
}

static bool type_of(void *ctx, struct str version, struct field_type *ret)
{
    *ret = *(const struct field_type *)ctx;
    return str_eqc(version, "v1");
}

static void check_codec(struct arena *a, struct field_set *x)
{
    cJSON *text = set_to_json(a, x);
    struct field_set *again;
    int rc = set_from_json(a, text, &again);

    assert(rc == 0 && json_equal(set_to_json(a, again), text));
    assert(!set_difference(a, x, again) && !set_difference(a, again, x));
}

static void check_compare(struct arena *a, struct field_type t, const struct patch_input *in)
{
    struct field_diff d;
    struct err err;

    err_init(&err, a);
    if (typed_compare(a, t, in->object, in->patch, &d, &err))
        return;
    check_codec(a, d.removed);
    check_codec(a, d.modified);
    check_codec(a, d.added);
}

/* Twice the same: the second time nothing changes and nothing conflicts. */
static void check_apply(struct arena *a, struct field_type t, const struct patch_input *in)
{
    struct field_versions versions = {.ctx = &t, .convert = convert, .type_of = type_of};
    struct field_write w = {.arena = a,
                            .versions = &versions,
                            .version = STR("v1"),
                            .manager = STR("fuzz"),
                            .now = STR("2026-01-01T00:00:00Z")};
    struct managers m = {0};
    struct err err;
    cJSON *made, *again;

    err_init(&err, a);
    if (!json_is_object(in->object) || typed_validate(a, t, in->patch, &err))
        return;
    if (managers_apply(&w, &m, in->object, in->patch, true, &made, &err) || !made)
        return;
    int rc = managers_apply(&w, &m, made, in->patch, false, &again, &err);
    assert(rc == 0 && !again);
    check_codec(a, typed_set(a, t, made));
}

static void run(struct arena *a, struct field_type t, const struct patch_input *in)
{
    struct str before = json_text(a, in->object);

    check_compare(a, t, in);
    check_apply(a, t, in);
    assert(str_eq(json_text(a, in->object), before));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct field_type pod = {.schema = &SCHEMA_BUILTIN,
                             .node = schema_builtin_root(STR(""), STR("v1"), STR("Pod"))};
    struct field_type deduced = {.form = TYPE_DEDUCED};
    struct patch_input in;
    struct field_set *read;

    if (patch_input_read(a, data, size, &in)) {
        if (json_is_object(in.patch)) {
            run(a, pod, &in);
            run(a, deduced, &in);
        }
        if (set_from_json(a, in.object, &read) == 0)
            check_codec(a, read);
        patch_input_check(a, &in);
    }
    arena_free(a);
    return 0;
}
