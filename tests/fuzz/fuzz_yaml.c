/* SPDX-License-Identifier: Apache-2.0 */
/* YAML from any bytes: what is accepted prints as YAML that is accepted with the same value, and as
 * JSON that is. Must never take memory out of proportion to its input. */

#include <assert.h>

#include <sublet/yaml.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void count(void *ctx, struct str path)
{
    size_t *n = ctx;

    assert(path.n < 4096);
    ++*n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct str text = {(const char *)data, size};
    struct buf b = BUF_INIT((size_t)64 << 20);
    size_t duplicates = 0;
    struct err err;
    cJSON *node, *second;

    err_init(&err, a);
    if (yaml_parse(a, text, count, &duplicates, &node, &err) < 0) {
        assert(err.kind == &ERR_BAD_REQUEST && err.message.n);
        goto out;
    }
    duplicates = 0;
    yaml_print(&b, node);
    if (b.failed)
        goto out;
    int rc = yaml_parse(a, buf_str(&b), count, &duplicates, &second, &err);
    assert(rc == 0 && duplicates == 0 && json_equal(node, second));

    rc = json_parse_strict(a, json_text(a, node), NULL, count, &duplicates, &second, &err);
    assert(rc == 0 && duplicates == 0 && json_equal(node, second));
out:
    buf_fini(&b);
    arena_free(a);
    return 0;
}
