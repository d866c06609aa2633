/* SPDX-License-Identifier: Apache-2.0 */
/* A schema and an object, both from a tenant: JSON with a zero byte between. What the checks
 * take must compile, prune, default and judge any object, twice with the same outcome; what they
 * refuse must still be survived, for it may have been stored by another version. Must never take
 * longer than the bounds in version.h and judge.h allow. */

#include "../../vapi/crd/schema_checks.h"
#include "../../vapi/crd/version_new.h"
#include "patch_input.h"

static struct crd_version *version_of(struct arena *a, const cJSON *schema)
{
    cJSON *crd = json_new_object(a), *spec = json_ensure_object(a, crd, "spec");
    cJSON *versions = json_set(a, spec, "versions", json_new_array(a));
    cJSON *version = json_append(versions, json_new_object(a));

    json_set_str(a, spec, "group", STR("a.b"));
    json_set_str(a, version, "name", STR("v1"));
    json_set_bool(a, version, "storage", true);
    json_set_str(a, json_ensure_object(a, spec, "names"), "kind", STR("A"));
    json_set(a, json_ensure_object(a, version, "schema"), "openAPIV3Schema", json_copy(a, schema));
    return crd_version_new(crd, version, NULL);
}

static void judge_twice(struct arena *a, const struct crd_version *v, cJSON *object)
{
    struct strict_errors strict = {.arena = a};
    struct field_errors first, second, unchanged, kept;

    field_errors_init(&first, a);
    field_errors_init(&second, a);
    field_errors_init(&unchanged, a);
    field_errors_init(&kept, a);
    crd_prune(v, a, object, &strict);
    crd_default(v, a, object);
    patch_result_check(a, object);
    crd_validate(v, &first, NULL, object, NULL);
    /* Nothing is left to prune, and nothing to complain about. */
    struct str before = json_text(a, object);
    struct strict_errors again = {.arena = a};
    crd_prune(v, a, object, &again);
    assert(again.n == 0 && str_eq(before, json_text(a, object)));
    crd_validate(v, &second, NULL, object, NULL);
    assert(first.n == second.n);
    /* What did not change is not judged again, except by rules about a change. */
    crd_validate(v, &unchanged, &kept, object, object);
    assert(unchanged.n <= first.n || v->rules);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct crd_effort effort = crd_effort_new();
    struct patch_input in;
    struct field_errors e;

    if (size < 65536 && patch_input_read(a, data, size, &in)) {
        field_errors_init(&e, a);
        crd_check_schema(&e, FIELD(NULL, "schema"), in.object, size & 1, &effort);
        if (!e.n && json_is_object(in.patch)) {
            struct crd_version *v = version_of(a, in.object);
            struct resource *r = v->resource;

            judge_twice(a, v, in.patch);
            crd_version_free(v);
            mem_free(r);
        }
    }
    arena_free(a);
    return 0;
}
