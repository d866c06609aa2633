/* SPDX-License-Identifier: Apache-2.0 */
/* JSON from any bytes: what is accepted is UTF-8 and prints, plain and pretty, as JSON that is
 * accepted with the same value and no duplicates, and prints the same again; a copy is equal. Must
 * never accept what it cannot give back. */

#include <assert.h>

#include <sublet/json.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void count(void *ctx, struct str path)
{
    size_t *n = ctx;

    assert(path.n < 4096);
    ++*n;
}

/* Parses what must parse. */
static cJSON *again(struct arena *a, struct str text)
{
    size_t duplicates = 0;
    struct err err;
    cJSON *node;

    err_init(&err, a);
    int rc = json_parse_strict(a, text, NULL, count, &duplicates, &node, &err);
    assert(rc == 0 && duplicates == 0);
    return node;
}

static void check_numbers(struct arena *a, const cJSON *node)
{
    int64_t i;

    if (json_i64(node, &i))
        assert(json_equal(node, json_new_i64(a, i)));
    json_each(child, node)
    {
        check_numbers(a, child);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)64 << 20);
    struct str text = {(const char *)data, size};
    struct buf b = BUF_INIT((size_t)64 << 20);
    size_t duplicates = 0;
    struct err err;
    cJSON *node;

    err_init(&err, a);
    if (json_parse_strict(a, text, NULL, count, &duplicates, &node, &err) < 0) {
        assert(err.kind == &ERR_BAD_REQUEST && err.message.n && str_is_utf8(err.message));
        goto out;
    }
    assert(str_is_utf8(text));
    json_print(&b, node);
    assert(!b.failed && str_is_utf8(buf_str(&b)));
    cJSON *second = again(a, buf_str(&b));
    assert(json_equal(node, second) && json_equal(second, node));
    assert(str_eq(json_text(a, second), buf_str(&b)));
    assert(str_eq(json_text(a, json_copy(a, node)), buf_str(&b)));
    check_numbers(a, node);

    buf_clear(&b);
    json_print_pretty(&b, node);
    assert(b.failed || json_equal(node, again(a, buf_str(&b))));
out:
    buf_fini(&b);
    arena_free(a);
    return 0;
}
