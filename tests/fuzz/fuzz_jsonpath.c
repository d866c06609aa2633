/* SPDX-License-Identifier: Apache-2.0 */
/* JSONPath of printer columns: a path, a zero byte, and the object it is looked up in. Must never
 * find what is not in the object, nor continue after a stop. */

#include <assert.h>

#include <sublet/crd.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct count {
    const cJSON *root;
    size_t n;
};

static bool on_node(void *ctx, const cJSON *node)
{
    struct count *c = ctx;

    assert(node && c->n < 16);
    return ++c->n < 16;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)64 << 20);
    struct str text = {(const char *)data, size}, path = str_cut(&text, '\0');
    struct count count = {.n = 0};
    struct jsonpath *compiled;
    struct err err;
    cJSON *object;

    err_init(&err, a);
    if (text.p && !json_parse(a, text, &object, &err)) {
        count.root = object;
        if (!jsonpath_compile(a, path, &compiled, &err))
            jsonpath_eval(compiled, object, on_node, &count);
        else
            assert(err.kind == &ERR_BAD_REQUEST && err.message.n);
    }
    arena_free(a);
    return 0;
}
