/* SPDX-License-Identifier: Apache-2.0
 *
 * Protobuf bodies with random contents against upstream's decoder, and what is malformed or
 * hostile. */

#include "cases.h"

#include <sublet/encode.h>

static void check(struct tested *t)
{
    struct str body;
    cJSON *got;
    struct err err;

    err_init(&err, t->arena);
    assert_true(base64_decode(t->arena, json_str_at(t->json, "object"), &body));
    if (case_returned(t, proto_decode(t->arena, body, &got, &err), &err))
        case_compare(t, got, json_get(t->json, "result"));
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("proto.jsonl", 100, check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_upstream),
    };

    return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
