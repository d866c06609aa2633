/* SPDX-License-Identifier: Apache-2.0 */
/* Strategic merge patches from any bytes, for the kind the document names (a Pod otherwise): the
 * patch is not changed, the result is a document within the limits, and normalising it twice is
 * normalising it once. Must never keep a directive that is no field. */

#include "patch_input.h"

static uint32_t root_of(const cJSON *object)
{
    struct str version = json_str(json_get(object, "apiVersion")), group = STR("");
    uint32_t node;

    if (str_find(version, '/') < version.n)
        group = str_cut(&version, '/');
    node = schema_builtin_root(group, version, json_str(json_get(object, "kind")));
    return node ? node : schema_builtin_root(STR(""), STR("v1"), STR("Pod"));
}

static void normalise_twice(struct arena *a, uint32_t node, cJSON *object)
{
    struct strict_errors strict = {.arena = a};
    struct err err;
    cJSON *once;

    err_init(&err, a);
    if (schema_normalise(a, &SCHEMA_BUILTIN, node, object, &strict, &err)) {
        assert(err.kind == &ERR_BAD_REQUEST && err.message.n);
        return;
    }
    schema_default(a, &SCHEMA_BUILTIN, node, object);
    once = json_copy(a, object);
    int rc = schema_normalise(a, &SCHEMA_BUILTIN, node, object, NULL, &err);
    assert(rc == 0);
    /* A pointer to a zero time is printed as null, and null is read as no pointer. */
    rc = schema_normalise(a, &SCHEMA_BUILTIN, node, once, NULL, &err);
    assert(rc == 0 && json_equal(once, object));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct patch_input in;
    struct err err;
    cJSON *result;

    err_init(&err, a);
    if (!patch_input_read(a, data, size, &in) || !json_is_object(in.object))
        goto out;
    uint32_t node = root_of(in.object);
    if (patch_strategic(a, &SCHEMA_BUILTIN, node, in.object, in.patch, &result, &err)) {
        assert(err.message.n);
    } else {
        patch_result_check(a, result);
        normalise_twice(a, node, result);
    }
    patch_input_check(a, &in);
out:
    arena_free(a);
    return 0;
}
