/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON tree: look-ups, exact integers, equality, builders and copies; after every change the
 * links must be cJSON's. Must never test the reader: test_json does. */

#include "test.h"

#include <math.h>

#include <sublet/json.h>

static struct arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena = arena_free(arena);
    return 0;
}

static cJSON *parse(const char *text)
{
    struct err err;
    cJSON *node = NULL;

    err_init(&err, arena);
    if (json_parse(arena, str_c(text), &node, &err) < 0)
        fail_msg("%s: %.*s", text, STR_F(err.message));
    return node;
}

static void looks_up(void **state)
{
    cJSON *node = parse("{\"metadata\":{\"name\":\"x\",\"labels\":{\"a.b\":\"c\"}},\"n\":[1,2,3],"
                        "\"t\":true,\"f\":false,\"z\":null,\"d\":1.5}");

    (void)state;
    assert_str(json_str_at(node, "metadata.name"), "x");
    assert_null(json_str_at(node, "metadata.nix.name").p);
    assert_null(json_path(node, "metadata.labels.a.b"));
    assert_str(json_str(json_get(json_path(node, "metadata.labels"), "a.b")), "c");
    assert_str(json_str(json_get_str(json_get(node, "metadata"), str_sub(STR("names"), 0, 4))),
               "x");
    assert_null(json_get_str(node, STR("n\0")));
    assert_null(json_get_str(node, STR("meta")));
    assert_null(json_get(json_get(node, "n"), "x"));
    assert_null(json_get(NULL, "x"));
    assert_int_equal(json_count(json_get(node, "n")), 3);
    assert_int_equal(json_count(NULL), 0);
    assert_int_equal(json_i64_at(json_at(json_get(node, "n"), 1), "x", -1), -1);
    assert_true(json_is_number(json_at(json_get(node, "n"), 2)));
    assert_null(json_at(json_get(node, "n"), 3));
    assert_null(json_at(node, 0));
    assert_true(json_true(json_get(node, "t")));
    assert_false(json_true(json_get(node, "f")));
    assert_true(json_is_bool(json_get(node, "f")));
    assert_true(json_is_null(json_get(node, "z")));
    assert_false(json_is_null(NULL));
    assert_false(json_is_object(NULL));
    assert_string_equal(json_type_name(node), "object");
    assert_string_equal(json_type_name(json_get(node, "n")), "array");
    assert_string_equal(json_type_name(json_get(node, "d")), "number");
    assert_string_equal(json_type_name(json_get(node, "t")), "bool");
    assert_string_equal(json_type_name(json_get(node, "z")), "null");
}

static void lists_strings(void **state)
{
    cJSON *node = parse("{\"verbs\":[\"get\",7,\"\"]}");
    struct str_list list = json_str_list(arena, json_get(node, "verbs"));

    (void)state;
    assert_int_equal(list.n, 3);
    assert_str(list.items[0], "get");
    assert_ptr_not_equal(list.items[0].p, json_str(json_at(json_get(node, "verbs"), 0)).p);
    assert_int_equal(list.items[1].n, 0);
    assert_int_equal(list.items[2].n, 0);
    assert_int_equal(json_str_list(arena, json_get(node, "none")).n, 0);
}

static void reads_integers_exactly(void **state)
{
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"-5", true, -5},
        {"1.0", true, 1},
        {"1e3", true, 1000},
        {"12.50e1", true, 125},
        {"12.5", false, 0},
        {"0.001", false, 0},
        {"0.001e3", true, 1},
        {"0.0", true, 0},
        {"0e9", true, 0},
        {"10.0", true, 10},
        {"1200e-2", true, 12},
        {"9007199254740993", true, 9007199254740993},
        {"9007199254740993.0", true, 9007199254740993},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"18446744073709551617", false, 0},
        {"1e18", true, 1000000000000000000},
        {"1e19", false, 0},
        {"1e300", false, 0},
        {"1e-300", false, 0},
        {"0e99999999999999999999", true, 0},
        {"1e-99999999999999999999", false, 0},
        {"\"1\"", false, 0},
        {"null", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t value = 0;

        if (json_i64(parse(cases[i].text), &value) != cases[i].fits || value != cases[i].value)
            fail_msg("%s: %lld", cases[i].text, (long long)value);
    }
    assert_false(json_i64(NULL, &(int64_t){0}));
    assert_false(json_i64(json_new_double(arena, 1e19), &(int64_t){0}));
    assert_false(json_i64(json_new_double(arena, (double)NAN), &(int64_t){0}));
}

static void compares(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"1", "1.0", true},
        {"1000", "1e3", true},
        {"0.5", "5e-1", true},
        {"0", "-0", true},
        {"0.0", "0e7", true},
        {"1", "-1", false},
        {"12.5", "1.25e1", true},
        {"12", "1.2", false},
        {"9007199254740993", "9007199254740992", false},
        {"1", "\"1\"", false},
        {"12", "123", false},
        {"1.20", "1.2", true},
        {"100000000000000000000", "1e20", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1.0}", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,2]", false},
        {"[]", "{}", false},
        {"null", "false", false},
        {"true", "true", true},
        {"\"a\\u0000b\"", "\"a\\u0000c\"", false},
        {"{}", "{}", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (json_equal(parse(cases[i].a), parse(cases[i].b)) != cases[i].equal)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
        assert_int_equal(json_equal(parse(cases[i].b), parse(cases[i].a)), cases[i].equal);
    }
    assert_true(json_equal(NULL, NULL));
    assert_false(json_equal(parse("null"), NULL));
    assert_true(json_equal(json_new_double(arena, 0.5), parse("5e-1")));
    assert_true(json_equal(json_new_i64(arena, INT64_MAX), parse("9223372036854775807")));
}

static void compares_large_objects(void **state)
{
    cJSON *a, *b;
    const int n = 200000;
    struct buf x = BUF_INIT(0), y = BUF_INIT(0);

    (void)state;
    for (int i = 0; i < n; i++) {
        buf_printf(&x, "%c\"k%d\":%d", i ? ',' : '{', i, i);
        buf_printf(&y, "%c\"k%d\":%d", i ? ',' : '{', n - 1 - i, n - 1 - i);
    }
    buf_addc(&x, "}");
    buf_addc(&y, "}");
    buf_char(&x, 0);
    buf_char(&y, 0);
    a = parse(x.p);
    b = parse(y.p);
    assert_true(json_equal(a, b));
    b->child->next->valuedouble = -1;
    assert_false(json_equal(a, b));
    buf_fini(&x);
    buf_fini(&y);
}

static void check_links(const cJSON *parent)
{
    const cJSON *last = NULL;

    json_each(child, parent)
    {
        if (last)
            assert_ptr_equal(child->prev, last);
        last = child;
    }
    if (last)
        assert_ptr_equal(parent->child->prev, last);
}

static void builds(void **state)
{
    cJSON *o = json_new_object(arena), *list;

    (void)state;
    json_set_str(arena, o, "b", STR("x"));
    json_set_i64(arena, o, "n", 5);
    json_set_bool(arena, o, "t", true);
    json_set_first(arena, o, "a", json_new_null(arena));
    list = json_set(arena, o, "l", json_new_array(arena));
    json_append(list, json_new_bool(arena, false));
    json_append(list, json_new_string(arena, STR("s")));
    assert_str(json_text(arena, o),
               "{\"a\":null,\"b\":\"x\",\"n\":5,\"t\":true,\"l\":[false,\"s\"]}");
    check_links(o);

    json_set_str(arena, o, "a", STR("first"));
    json_set_i64(arena, o, "n", 6);
    json_set_str(arena, o, "l", STR("last"));
    json_set_first(arena, o, "t", json_new_bool(arena, false));
    assert_str(json_text(arena, o),
               "{\"t\":false,\"a\":\"first\",\"b\":\"x\",\"n\":6,\"l\":\"last\"}");
    check_links(o);

    json_remove(o, "l");
    json_remove(o, "t");
    json_remove(o, "b");
    json_remove(o, "nix");
    assert_str(json_text(arena, o), "{\"a\":\"first\",\"n\":6}");
    check_links(o);
    json_remove(o, "a");
    json_remove(o, "n");
    assert_str(json_text(arena, o), "{}");
    json_set_first(arena, o, "z", json_new_null(arena));
    json_replace(o, o->child, json_new_i64(arena, 1));
    assert_str(json_text(arena, o), "{\"z\":1}");
    check_links(o);
}

static void ensures_paths(void **state)
{
    cJSON *o = parse("{\"a\":{\"x\":1},\"s\":\"text\",\"z\":null}");

    (void)state;
    json_set_i64(arena, json_ensure_path(arena, o, "a.b.c"), "d", 1);
    assert_ptr_equal(json_ensure_object(arena, o, "a"), json_get(o, "a"));
    json_ensure_object(arena, o, "z");
    json_ensure_path(arena, o, "s.t");
    assert_str(json_text(arena, o),
               "{\"a\":{\"x\":1,\"b\":{\"c\":{\"d\":1}}},\"s\":{\"t\":{}},\"z\":{}}");
}

static void copies(void **state)
{
    const char *text = "{\"a\":[1,{\"b\":\"x\\u0000y\"},[[],{}]],\"n\":9007199254740993,\"e\":{}}";
    struct arena *other = arena_new(0);
    cJSON *copy = json_copy(other, parse(text));

    (void)state;
    arena_reset(arena);
    assert_str(json_text(other, copy), text);
    check_links(copy);
    check_links(json_get(copy, "a"));
    assert_str(json_text(other, json_copy(other, json_get(copy, "a"))),
               "[1,{\"b\":\"x\\u0000y\"},[[],{}]]");
    assert_null(json_copy(other, json_get(copy, "a"))->string);
    assert_null(json_copy(other, NULL));
    arena_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_up), cmocka_unit_test(reads_integers_exactly),
        cmocka_unit_test(compares), cmocka_unit_test(compares_large_objects),
        cmocka_unit_test(builds),   cmocka_unit_test(ensures_paths),
        cmocka_unit_test(copies),   cmocka_unit_test(lists_strings),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
