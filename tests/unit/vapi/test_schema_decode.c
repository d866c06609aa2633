/* SPDX-License-Identifier: Apache-2.0
 *
 * What decoding a body into its Go type and printing it again gives, against upstream: results,
 * type errors and strict errors. */

#include "cases.h"

static void check_strict(struct tested *t, const struct strict_errors *strict)
{
    const cJSON *want = json_get(t->json, "strict");

    for (size_t i = 0; i < strict->n || json_at(want, i); i++) {
        struct str got = i < strict->n ? strict->text[i] : STR("nothing");

        if (!str_eq(got, json_str(json_at(want, i))))
            case_fails(t, "strict", got, json_str(json_at(want, i)));
    }
}

/* What comes from a strategic patch is converted, not decoded. */
static int decode(struct tested *t, uint32_t node, cJSON *object, struct strict_errors *strict,
                  struct err *err)
{
    if (str_eqc(json_str_at(t->json, "type"), "convert"))
        return schema_normalise_patched(t->arena, &SCHEMA_BUILTIN, node, object, true, strict, err);
    return schema_normalise(t->arena, &SCHEMA_BUILTIN, node, object, strict, err);
}

static void check(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "object"));
    struct strict_errors strict = {.arena = t->arena};
    uint32_t node = case_root(t);
    struct err err;

    err_init(&err, t->arena);
    if (!case_returned(t, decode(t, node, object, &strict, &err), &err))
        return;
    check_strict(t, &strict);
    case_compare(t, object, json_get(t->json, "result"));
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("decode.jsonl", 300, check);
}

static void converted_as_upstream(void **state)
{
    (void)state;
    run_cases("convert.jsonl", 200, check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_upstream),
        cmocka_unit_test(converted_as_upstream),
    };

    return cmocka_run_group_tests_name("schema_decode", tests, NULL, NULL);
}
