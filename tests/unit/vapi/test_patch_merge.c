/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON merge patches against upstream's, and against the examples of RFC 7386. */

#include "cases.h"

static void check(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "object")), *got;
    struct err err;

    err_init(&err, t->arena);
    if (case_returned(t, patch_merge(t->arena, object, json_get(t->json, "patch"), &got, &err),
                      &err))
        case_compare(t, got, json_get(t->json, "result"));
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("patch_merge.jsonl", 100, check);
}

static void as_the_rfc(void **state)
{
    static const char *const examples[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(examples); i++) {
        cJSON *object, *patch, *got;
        struct err err;

        err_init(&err, a);
        assert_int_equal(json_parse(a, str_c(examples[i][0]), &object, &err), 0);
        assert_int_equal(json_parse(a, str_c(examples[i][1]), &patch, &err), 0);
        assert_int_equal(patch_merge(a, object, patch, &got, &err), 0);
        assert_str(json_text(a, got), examples[i][2]);
    }
    arena_free(a);
}

/* Large enough that walking a list per key would take minutes. */
static void large_maps(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *object = json_new_object(a), *patch, *got;
    struct buf text = BUF_INIT(0);
    struct err err;

    (void)state;
    err_init(&err, a);
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "%c\"key%d\":\"v\"", i ? ',' : '{', i);
    buf_char(&text, '}');
    assert_int_equal(json_parse(a, buf_str(&text), &patch, &err), 0);
    assert_int_equal(patch_merge(a, object, patch, &got, &err), 0);
    assert_int_equal(patch_merge(a, got, patch, &got, &err), 0);
    assert_int_equal(json_count(got), 100000);
    buf_fini(&text);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_upstream),
        cmocka_unit_test(as_the_rfc),
        cmocka_unit_test(large_maps),
    };

    return cmocka_run_group_tests_name("patch_merge", tests, NULL, NULL);
}
