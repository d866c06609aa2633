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

static void check(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "object"));
    struct strict_errors strict = {.arena = t->arena};
    uint32_t node = case_root(t);
    struct err err;

    err_init(&err, t->arena);
    if (!case_returned(t, schema_normalise(t->arena, &SCHEMA_BUILTIN, node, object, &strict, &err),
                       &err))
        return;
    check_strict(t, &strict);
    schema_prune(&SCHEMA_BUILTIN, node, object);
    case_compare(t, object, json_get(t->json, "result"));
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("decode.jsonl", 300, check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_upstream)};

    return cmocka_run_group_tests_name("schema_decode", tests, NULL, NULL);
}
