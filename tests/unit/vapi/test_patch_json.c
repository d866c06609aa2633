/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON patches against upstream's, and their limits. */

#include "cases.h"

static void check_strict(struct tested *t)
{
    struct strict_errors strict = {.arena = t->arena};
    const cJSON *want = json_get(t->json, "strict");

    patch_json_unknown(json_get(t->json, "patch"), &strict);
    for (size_t i = 0; i < strict.n || json_at(want, i); i++) {
        struct str got = i < strict.n ? strict.text[i] : STR("nothing");

        if (!str_eq(got, json_str(json_at(want, i))))
            case_fails(t, "strict", got, json_str(json_at(want, i)));
    }
}

static void check(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "object")), *got;
    struct err err;

    err_init(&err, t->arena);
    if (!case_returned(t, patch_json(t->arena, object, json_get(t->json, "patch"), &got, &err),
                       &err))
        return;
    case_compare(t, got, json_get(t->json, "result"));
    check_strict(t);
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("patch_json.jsonl", 100, check);
}

/* Applies to {"a":{}, "l":[]}; returns the error's code, 0 for none. */
static int apply(struct arena *a, struct str patch_text, struct str *message)
{
    cJSON *object, *patch, *got;
    struct err err;

    err_init(&err, a);
    assert_int_equal(json_parse(a, STR("{\"a\":{},\"l\":[]}"), &object, &err), 0);
    assert_int_equal(json_parse(a, patch_text, &patch, &err), 0);
    if (patch_json(a, object, patch, &got, &err) == 0)
        return 0;
    *message = err.message;
    return err.kind->code;
}

static struct str repeated(struct arena *a, size_t n, const char *operation)
{
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%c%s", i ? ',' : '[', operation);
    buf_char(&b, ']');

    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static void too_many_operations(void **state)
{
    struct arena *a = arena_new(0);
    struct str message = STR_NULL;

    (void)state;
    assert_int_equal(
        apply(a, repeated(a, 10000, "{\"op\":\"test\",\"path\":\"/l\",\"value\":[]}"), &message),
        0);
    assert_int_equal(
        apply(a, repeated(a, 10001, "{\"op\":\"test\",\"path\":\"/l\",\"value\":[]}"), &message),
        413);
    assert_str(message,
               "Request entity too large: The allowed maximum operations in a JSON patch is "
               "10000, got 10001");
    arena_free(a);
}

/* A copy makes the document deeper by one, or doubles it: neither may get out of hand. */
static void copies_are_bounded(void **state)
{
    struct arena *a = arena_new(0);
    struct str message = STR_NULL;

    (void)state;
    assert_int_equal(
        apply(a, repeated(a, 300, "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/b\"}"), &message),
        422);
    assert_int_equal(
        apply(a, repeated(a, 64, "{\"op\":\"copy\",\"from\":\"/l\",\"path\":\"/l/-\"}"), &message),
        422);
    arena_free(a);
}

static void work_is_bounded(void **state)
{
    struct arena *a = arena_new(0);
    struct str message = STR_NULL;
    struct buf b = BUF_INIT(0);

    (void)state;
    buf_addc(&b, "[{\"op\":\"add\",\"path\":\"/l\",\"value\":[0");
    for (int i = 0; i < 300000; i++)
        buf_addc(&b, ",0");
    buf_addc(&b, "]}");
    for (int i = 0; i < 9000; i++)
        buf_addc(&b, ",{\"op\":\"test\",\"path\":\"/l/300000\",\"value\":0}");
    buf_char(&b, ']');
    assert_int_equal(apply(a, buf_str(&b), &message), 413);
    buf_fini(&b);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_upstream),
        cmocka_unit_test(too_many_operations),
        cmocka_unit_test(copies_are_bounded),
        cmocka_unit_test(work_is_bounded),
    };

    return cmocka_run_group_tests_name("patch_json", tests, NULL, NULL);
}
