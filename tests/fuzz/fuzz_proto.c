/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf bodies from any bytes: what is decoded is a tree within the limits of JSON, whose print
 * parses to the same value, and normalising it again changes nothing. Must never read outside of
 * the input. */

#include <assert.h>

#include <sublet/schema.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static uint32_t root_of(const cJSON *object)
{
    struct str version = json_str(json_get(object, "apiVersion")), group = STR("");

    if (str_find(version, '/') < version.n)
        group = str_cut(&version, '/');
    return schema_builtin_root(group, version, json_str(json_get(object, "kind")));
}

/* A decoded tree and its print are one. */
static void check_text(struct arena *a, const cJSON *object)
{
    struct str text = json_text(a, object);
    struct err err;
    cJSON *again;

    err_init(&err, a);
    assert(str_is_utf8(text) && !json_deeper(object, JSON_LIMITS.depth));
    int rc = json_parse(a, text, &again, &err);
    assert(rc == 0 && json_equal(object, again));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)64 << 20);
    struct str body = {(const char *)data, size};
    cJSON *object, *copy;
    struct err err;

    err_init(&err, a);
    if (proto_decode(a, body, &object, &err)) {
        assert(err.kind == &ERR_BAD_REQUEST && err.message.n);
        goto out;
    }
    check_text(a, object);

    copy = json_copy(a, object);
    int rc = schema_normalise(a, &SCHEMA_BUILTIN, root_of(object), copy, NULL, &err);
    assert(rc == 0);
    rc = schema_normalise(a, &SCHEMA_BUILTIN, root_of(object), copy, NULL, &err);
    assert(rc == 0);
    check_text(a, copy);
out:
    arena_free(a);
    return 0;
}
