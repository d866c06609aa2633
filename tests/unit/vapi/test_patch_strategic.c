/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategic merge patches against upstream's: results as the type holds them, and errors. */

#include "cases.h"

/* What Go's type cannot hold is dropped there, and kept by us until pruned. */
static void check(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "object")), *got;
    const cJSON *patch = json_get(t->json, "patch");
    struct str before = json_text(t->arena, patch);
    uint32_t node = case_root(t);
    struct err err;

    err_init(&err, t->arena);
    if (!case_returned(
            t, patch_strategic(t->arena, &SCHEMA_BUILTIN, node, object, patch, &got, &err), &err))
        return;
    if (schema_normalise(t->arena, &SCHEMA_BUILTIN, node, got, NULL, &err)) {
        case_fails(t, "normalise", err.message, STR("no error"));
        return;
    }
    case_compare(t, got, json_get(t->json, "result"));
    if (!str_eq(json_text(t->arena, patch), before))
        case_fails(t, "the patch was changed", json_text(t->arena, patch), before);
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("patch_strategic.jsonl", 200, check);
}

static struct str apply(struct arena *a, const char *object, const char *patch)
{
    uint32_t node = schema_builtin_root(STR(""), STR("v1"), STR("Pod"));
    cJSON *tree, *change, *got;
    struct err err;

    err_init(&err, a);
    assert_int_equal(json_parse(a, str_c(object), &tree, &err), 0);
    assert_int_equal(json_parse(a, str_c(patch), &change, &err), 0);
    if (patch_strategic(a, &SCHEMA_BUILTIN, node, tree, change, &got, &err))
        return err.message;
    return json_text(a, got);
}

/* Directives in what is new would be unknown fields of the type: they must not be stored. */
static void directives_do_not_stay(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    assert_str(apply(a, "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}",
                     "{\"spec\":{\"containers\":[{\"name\":\"b\",\"$setElementOrder/env\":[],"
                     "\"env\":[{\"name\":\"x\",\"$retainKeys\":[\"name\"]}]}]}}"),
               "{\"spec\":{\"containers\":[{\"name\":\"b\",\"env\":[{\"name\":\"x\"}]},{\"name\":"
               "\"a\"}]}}");
    assert_str(apply(a, "{}", "{\"spec\":{\"$retainKeys\":[\"a\"],\"nodeName\":\"n\"}}"),
               "{\"spec\":{\"nodeName\":\"n\"}}");
    assert_str(apply(a, "{}", "{\"metadata\":{\"annotations\":{\"$retainKeys\":\"mine\"}}}"),
               "{\"metadata\":{\"annotations\":{\"$retainKeys\":\"mine\"}}}");
    arena_free(a);
}

static void unknown_fields_survive(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    assert_str(apply(a, "{\"spec\":{\"newer\":{\"a\":1},\"nodeName\":\"n\"}}",
                     "{\"spec\":{\"nodeName\":null}}"),
               "{\"spec\":{\"newer\":{\"a\":1}}}");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_upstream),
        cmocka_unit_test(directives_do_not_stay),
        cmocka_unit_test(unknown_fields_survive),
    };

    return cmocka_run_group_tests_name("patch_strategic", tests, NULL, NULL);
}
