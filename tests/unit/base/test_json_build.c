/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON builder: every type of value, members that are left out, and what json_put does to an
 * object that has some. */

#include "test.h"

#include <sublet/json_build.h>

static void builds_an_object(void **state)
{
    struct arena *a = arena_new(0);
    struct str none = STR_NULL, name = STR("n");
    char local[] = "local";
    cJSON *absent = NULL;
    int64_t big = INT64_MAX;
    bool yes = true;

    (void)state;
    assert_str(
        json_text(a, json_object(a, JSON("s", name), JSON("c", "literal"),
                                 JSON("local", (const char *)local), JSON_I64("i", big),
                                 JSON_BOOL("b", yes), JSON_BOOL("no", 1 == 2), JSON("none", none),
                                 JSON("null", json_new_null(a)), JSON("absent", absent))),
        "{\"s\":\"n\",\"c\":\"literal\",\"local\":\"local\",\"i\":9223372036854775807,"
        "\"b\":true,\"no\":false,\"none\":\"\",\"null\":null}");
    assert_str(json_text(a, json_object(a, JSON("absent", absent))), "{}");
    arena_free(a);
}

static void nests(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *event = json_object(
        a,
        JSON("metadata",
             json_object(a, JSON("name", "e"), JSON("labels", json_object(a, JSON("a", "b"))))),
        JSON("list",
             json_array(a, json_new_string(a, STR("x")), NULL, json_object(a, JSON("k", "v")))),
        JSON("empty", json_array(a, NULL)));

    (void)state;
    assert_str(json_text(a, event), "{\"metadata\":{\"name\":\"e\",\"labels\":{\"a\":\"b\"}},"
                                    "\"list\":[\"x\",{\"k\":\"v\"}],\"empty\":[]}");
    /* It is a tree like any other: it can be searched, changed and copied. */
    json_set_str(a, json_path(event, "metadata.labels"), "a", STR("c"));
    json_remove(event, "list");
    assert_str(json_text(a, json_copy(a, event)),
               "{\"metadata\":{\"name\":\"e\",\"labels\":{\"a\":\"c\"}},\"empty\":[]}");
    arena_free(a);
}

static void leaves_out(void **state)
{
    struct arena *a = arena_new(0);
    struct str message = STR(""), reason = STR("r");

    (void)state;
    assert_str(json_text(a, json_object(a, JSON_NONEMPTY("message", message),
                                        JSON_NONEMPTY("reason", reason), JSON("x", "y"))),
               "{\"reason\":\"r\",\"x\":\"y\"}");
    arena_free(a);
}

static void puts_into_an_object(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *object = json_object(a, JSON("a", "1"), JSON("b", "2"), JSON("c", "3")), *same,
          *absent = NULL;

    (void)state;
    same = json_put(a, object, JSON_BOOL("d", true), JSON_I64("b", 7), JSON("c", absent),
                    JSON_NONEMPTY("a", STR("")), JSON("d", "last"));
    assert_ptr_equal(same, object);
    assert_str(json_text(a, object), "{\"a\":\"1\",\"b\":7,\"c\":\"3\",\"d\":\"last\"}");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_an_object),
        cmocka_unit_test(nests),
        cmocka_unit_test(leaves_out),
        cmocka_unit_test(puts_into_an_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
