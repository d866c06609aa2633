/* SPDX-License-Identifier: Apache-2.0 */
/* Input of the fuzz targets of patches: a document and a patch, both JSON, with a zero byte
 * between. */
#pragma once

#include <assert.h>

#include <sublet/schema.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct patch_input {
    cJSON *object, *patch;
    struct str patch_text;
};

static inline bool patch_input_read(struct arena *a, const unsigned char *data, size_t size,
                                    struct patch_input *in)
{
    struct str patch = {(const char *)data, size}, object = str_cut(&patch, '\0');
    struct err err;

    err_init(&err, a);
    if (!patch.p || json_parse(a, object, &in->object, &err) ||
        json_parse(a, patch, &in->patch, &err))
        return false;
    in->patch_text = json_text(a, in->patch);
    return true;
}

/* The patch is as it was, so that it can be applied anew. */
static inline void patch_input_check(struct arena *a, const struct patch_input *in)
{
    assert(str_eq(json_text(a, in->patch), in->patch_text));
}

/* A result can be printed, and read again. */
static inline void patch_result_check(struct arena *a, const cJSON *result)
{
    struct str text;
    struct err err;
    cJSON *again;

    err_init(&err, a);
    assert(!json_deeper(result, JSON_LIMITS.depth));
    text = json_text(a, result);
    int rc = json_parse(a, text, &again, &err);
    assert(rc == 0 && json_equal(again, result));
}
