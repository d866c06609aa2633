/* SPDX-License-Identifier: Apache-2.0 */
/* JSON patches and merge patches from any bytes: errors are the client's, the patch is not changed,
 * the result is a document within the limits. Must never let a patch make more than it may. */

#include "patch_input.h"

static void run_json(struct arena *a, const struct patch_input *in)
{
    struct strict_errors strict = {.arena = a};
    struct err err;
    cJSON *result;

    err_init(&err, a);
    patch_json_unknown(in->patch, &strict);
    if (patch_json(a, json_copy(a, in->object), in->patch, &result, &err))
        assert(err.kind->code >= 400 && err.kind->code < 500 && err.message.n);
    else
        patch_result_check(a, result);
}

static void run_merge(struct arena *a, const struct patch_input *in)
{
    struct err err;
    cJSON *result;

    err_init(&err, a);
    if (!json_is_object(in->object))
        return;
    if (patch_merge(a, json_copy(a, in->object), in->patch, &result, &err))
        assert(err.kind == &ERR_BAD_REQUEST && err.message.n);
    else
        patch_result_check(a, result);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct patch_input in;

    if (patch_input_read(a, data, size, &in)) {
        run_json(a, &in);
        run_merge(a, &in);
        patch_input_check(a, &in);
    }
    arena_free(a);
    return 0;
}
