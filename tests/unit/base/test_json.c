/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: what the reader takes and refuses, that what was read comes out as it was, and the tree's
 * operations. Must never print through anything but the printer under test. */

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

/* The input is copied to its exact size, so that ASan sees a reader that goes past it. */
static cJSON *parse_n(struct str text, struct err *err)
{
    struct str exact = {memcpy(mem_alloc(text.n), text.n ? text.p : "", text.n), text.n};
    cJSON *node = NULL;

    err_init(err, arena);
    if (json_parse(arena, exact, &node, err) < 0) {
        assert_ptr_equal(err->kind, &ERR_BAD_REQUEST);
        assert_null(node);
    }
    mem_free(exact.p);
    return node;
}

static cJSON *parse(const char *text)
{
    struct err err;
    cJSON *node = parse_n(str_c(text), &err);

    if (!node)
        fail_msg("%s: %.*s", text, STR_F(err.message));
    return node;
}

static void check_round_trip(const char *text, const char *want)
{
    assert_str(json_text(arena, parse(text)), want);
}

static void check_error(struct str text, const char *want)
{
    struct err err;

    assert_null(parse_n(text, &err));
    assert_str(err.message, want);
}

static void prints_what_it_read(void **state)
{
    static const char *const same[] = {
        "null", "true", "false", "{}", "[]", "\"\"", "[[],{}]", "{\"\":0}",
        "{\"a\":{\"b\":[1,\"x\",null,true,false]},\"c\":{}}",
        /* numbers keep their spelling */
        "0", "-0", "1.0", "1e3", "1E+2", "-1.5e-10", "0.1", "10.50", "123456789012345",
        "9007199254740993", "-9223372036854775808", "9223372036854775807", "18446744073709551615",
        "123456789012345678901234567890", "0e0", "5e-324", "1.7976931348623157e308",
        "1720948893123456789", "999999999999999", "1e-400"};

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++)
        check_round_trip(same[i], same[i]);
    check_round_trip(" \t\r\n[ 1 ,\n2 ] \n", "[1,2]");
    check_round_trip("\"\\u003c\\/\\b\\u00E9\\ud83d\\ude00\"",
                     "\"\\u003c/\\b\xc3\xa9\xf0\x9f\x98\x80\"");
    check_round_trip("\"a\\u0000b\"", "\"a\\u0000b\"");
    check_round_trip("\"\\ud83d\"", "\"\xef\xbf\xbd\"");
    check_round_trip("\"\\ude00x\"", "\"\xef\xbf\xbdx\"");
    check_round_trip("\"\\ud83d\\ud83d\\ude00\"", "\"\xef\xbf\xbd\xf0\x9f\x98\x80\"");
    check_round_trip("\"\\ud83d\\n\"", "\"\xef\xbf\xbd\\n\"");
}

static void refuses_what_is_not_json(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "unexpected end of JSON input (offset 0)"},
        {" ", "unexpected end of JSON input (offset 1)"},
        {"{", "unexpected end of JSON input (offset 1)"},
        {"[", "unexpected end of JSON input (offset 1)"},
        {"[1", "unexpected end of JSON input (offset 2)"},
        {"[1,", "unexpected end of JSON input (offset 3)"},
        {"{\"a\"", "unexpected end of JSON input (offset 4)"},
        {"{\"a\":", "unexpected end of JSON input (offset 5)"},
        {"{\"a\":1", "unexpected end of JSON input (offset 6)"},
        {"\"a", "unexpected end of JSON input (offset 2)"},
        {"\"a\\", "unexpected end of JSON input (offset 3)"},
        {"\"\\u00", "unexpected end of JSON input (offset 5)"},
        {"\"\\ud800\\u", "unexpected end of JSON input (offset 9)"},
        {"-", "unexpected end of JSON input (offset 1)"},
        {"1.", "unexpected end of JSON input (offset 2)"},
        {"1e", "unexpected end of JSON input (offset 2)"},
        {"nul", "unexpected end of JSON input (offset 3)"},
        {"x", "invalid character 'x' looking for beginning of value (offset 0)"},
        {"'a'", "invalid character '\\'' looking for beginning of value (offset 0)"},
        {"[1,]", "invalid character ']' looking for beginning of value (offset 3)"},
        {"{,}", "invalid character ',' looking for beginning of object key string (offset 1)"},
        {"{\"a\":1,}",
         "invalid character '}' looking for beginning of object key string (offset 7)"},
        {"{a:1}", "invalid character 'a' looking for beginning of object key string (offset 1)"},
        {"{\"a\" 1}", "invalid character '1' after object key (offset 5)"},
        {"{\"a\":1]", "invalid character ']' after object key:value pair (offset 6)"},
        {"[1 2]", "invalid character '2' after array element (offset 3)"},
        {"01", "invalid character '1' after top-level value (offset 1)"},
        {"[-01]", "invalid character '1' after array element (offset 3)"},
        {"{} {}", "invalid character '{' after top-level value (offset 3)"},
        {"[+1]", "invalid character '+' looking for beginning of value (offset 1)"},
        {"-a", "invalid character 'a' in numeric literal (offset 1)"},
        {"1.x", "invalid character 'x' after decimal point in numeric literal (offset 2)"},
        {"1e+x", "invalid character 'x' in exponent of numeric literal (offset 3)"},
        {"truE", "invalid character 'E' in literal true (expecting 'e') (offset 3)"},
        {"\"\t\"", "invalid character '\\t' in string literal (offset 1)"},
        {"\"12345678\x01\"", "invalid character '\\x01' in string literal (offset 9)"},
        {"\"\\x\"", "invalid character 'x' in string escape code (offset 2)"},
        {"\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape (offset 5)"},
        {"\"\xff\"", "invalid UTF-8 in string literal (offset 1)"},
        {"\"\xed\xa0\x80\"", "invalid UTF-8 in string literal (offset 1)"},
        {"\"\xc3", "invalid UTF-8 in string literal (offset 1)"},
        {"{\"a\\u0000\":1}", "object key contains U+0000 (offset 10)"},
        {"1e400", "number is out of range (offset 0)"},
        {"\xef\xbb\xbf{}",
         "invalid character '\xc3\xaf' looking for beginning of value (offset 0)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        check_error(str_c(cases[i].text), cases[i].message);
    check_error(STR("[1]\0"), "invalid character '\\x00' after top-level value (offset 3)");
}

/* Each stop character at each place of a word, with and without the end of the input behind it. */
static void scans_strings_at_any_place(void **state)
{
    (void)state;
    for (size_t at = 0; at < 24; at++) {
        for (int c = 1; c < 128; c++) {
            char text[32] = "\"abcdefghijklmnopqrstuvwx\"";
            bool plain = c >= 0x20 && c != '"' && c != '\\';
            struct err err;
            cJSON *node;

            text[1 + at] = (char)c;
            node = parse_n(str_c(text), &err);
            if (c == '\\' && strchr("bfnrt", text[2 + at]))
                continue; /* an escape */
            assert_int_equal(node != NULL, plain);
            if (node)
                assert_memory_equal(json_str(node).p, text + 1, 24);
        }
    }
}

static void keeps_strings_whole(void **state)
{
    cJSON *node = parse("{\"k\":\"a\\u0000b\"}");
    struct str s = json_str(json_get(node, "k"));

    (void)state;
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.p, "a\0b", 4);
    assert_null(json_get(node, "K"));
    assert_null(json_str(node).p);
}

static void limits_depth_and_nodes(void **state)
{
    struct json_limits limits = {.depth = 3, .nodes = 5};
    struct arena *small = arena_new(2000);
    struct buf deep = BUF_INIT(0);
    struct err err;
    cJSON *node;

    (void)state;
    err_init(&err, arena);
    assert_int_equal(json_parse_strict(arena, STR("[[[]]]"), &limits, NULL, NULL, &node, &err), 0);
    assert_int_equal(json_parse_strict(arena, STR("[[[[]]]]"), &limits, NULL, NULL, &node, &err),
                     -1);
    assert_str(err.message, "invalid character '[' exceeded max depth (offset 3)");
    assert_int_equal(json_parse_strict(arena, STR("[1,2,3,4]"), &limits, NULL, NULL, &node, &err),
                     0);
    assert_int_equal(json_parse_strict(arena, STR("[1,2,3,4,5]"), &limits, NULL, NULL, &node, &err),
                     -1);
    assert_str(err.message, "document has too many values (offset 9)");

    for (int i = 0; i < 100000; i++)
        buf_char(&deep, '[');
    assert_int_equal(json_parse(arena, buf_str(&deep), &node, &err), -1);
    assert_str(err.message, "invalid character '[' exceeded max depth (offset 256)");
    limits = (struct json_limits){.depth = 1000000, .nodes = 1000000};
    assert_int_equal(json_parse_strict(arena, buf_str(&deep), &limits, NULL, NULL, &node, &err),
                     -1);
    buf_fini(&deep);

    assert_int_equal(json_parse(small, STR("[1,2,3]"), &node, &err), 0);
    for (int i = 0; i < 100; i++)
        buf_addc(&deep, i ? ",1" : "[1");
    buf_char(&deep, ']');
    assert_int_equal(json_parse(small, buf_str(&deep), &node, &err), -1);
    buf_fini(&deep);
    arena_free(small);
}

static void note_path(void *ctx, struct str path)
{
    struct buf *b = ctx;

    buf_add(b, path);
    buf_char(b, ';');
}

static void check_duplicates(struct str text, const char *paths, const char *after)
{
    struct buf b = BUF_INIT(0);
    struct err err;
    cJSON *node;

    err_init(&err, arena);
    assert_int_equal(json_parse_strict(arena, text, NULL, note_path, &b, &node, &err), 0);
    assert_str(buf_str(&b), paths);
    if (after)
        assert_str(json_text(arena, node), after);
    buf_fini(&b);
}

static void reports_duplicates(void **state)
{
    (void)state;
    check_duplicates(STR("{\"a\":1,\"b\":2}"), "", NULL);
    check_duplicates(STR("{\"a\":1,\"b\":2,\"a\":[3]}"), "a;", "{\"a\":[3],\"b\":2}");
    check_duplicates(STR("{\"a\":{\"b\":1},\"a\":{\"c\":1}}"), "a;", "{\"a\":{\"c\":1}}");
    check_duplicates(STR("{\"a\":1,\"a\":2,\"a\":3}"), "a;", "{\"a\":3}");
    check_duplicates(STR("{\"\":1,\"\":2}"), ";", "{\"\":2}");
    check_duplicates(STR("{\"spec\":{\"containers\":[{},{\"name\":\"a\",\"name\":\"b\"}]}}"),
                     "spec.containers[1].name;", NULL);
    check_duplicates(STR("[[{\"a\":1,\"a\":1}]]"), "[0][0].a;", NULL);
    check_duplicates(STR("{\"a\":1,\"\\u0061\":2}"), "a;", "{\"a\":2}");
}

/* 200,000 keys, each of them twice: quadratic work would not end. */
static void finds_duplicates_of_large_objects(void **state)
{
    struct buf b = BUF_INIT(0), seen = BUF_INIT(0);
    struct err err;
    cJSON *node;

    (void)state;
    err_init(&err, arena);
    for (int i = 0; i < 400000; i++)
        buf_printf(&b, "%c\"key%d\":%d", i ? ',' : '{', i % 200000, i);
    buf_char(&b, '}');
    assert_int_equal(json_parse_strict(arena, buf_str(&b), NULL, note_path, &seen, &node, &err), 0);
    assert_int_equal(json_count(node), 200000);
    assert_int_equal(json_i64_at(node, "key0", 0), 200000);
    assert_int_equal(json_i64_at(node, "key199999", 0), 399999);
    assert_true(str_has_prefix(buf_str(&seen), STR("key0;key1;")));
    assert_true(str_has_suffix(buf_str(&seen), STR("key98;key99;"))); /* no more than 100 */
    buf_fini(&b);
    buf_fini(&seen);
}

static void bounds_duplicate_paths(void **state)
{
    struct buf b = BUF_INIT(0), seen = BUF_INIT(0);
    struct err err;
    cJSON *node;

    (void)state;
    err_init(&err, arena);
    buf_printf(&b, "{\"%0100000d\":{\"a\":1,\"a\":2}}", 0);
    assert_int_equal(json_parse_strict(arena, buf_str(&b), NULL, note_path, &seen, &node, &err), 0);
    assert_true(seen.n > 1000 && seen.n < 3000);
    buf_fini(&b);
    buf_fini(&seen);
}

static void prints_doubles_like_go(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-2.5, "-2.5"},
        {0.1, "0.1"},
        {100, "100"},
        {1e20, "100000000000000000000"},
        {1e21, "1e+21"},
        {1.5e22, "1.5e+22"},
        {123456789012345680000.0, "123456789012345680000"},
        {1e-6, "0.000001"},
        {9.5e-7, "9.5e-7"},
        {1e-7, "1e-7"},
        {1.25e-10, "1.25e-10"},
        {0.00012345, "0.00012345"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {123456.789, "123456.789"},
        {1e100, "1e+100"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {9007199254740992, "9007199254740992"},
        {9007199254740994, "9007199254740994"},
        {0.1 + 0.2, "0.30000000000000004"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str(json_text(arena, json_new_double(arena, cases[i].value)), cases[i].text);
    assert_str(json_text(arena, json_new_i64(arena, INT64_MIN)), "-9223372036854775808");
    assert_str(json_text(arena, json_new_i64(arena, (INT64_C(1) << 53) + 1)), "9007199254740993");
    assert_str(json_text(arena, json_new_i64(arena, -7)), "-7");
}

static void prints_pretty(void **state)
{
    struct buf b = BUF_INIT(0);

    (void)state;
    json_print_pretty(&b, parse("{\"a\":{\"b\":[1,{}],\"c\":[]},\"d\":\"x\"}"));
    assert_str(buf_str(&b), "{\n  \"a\": {\n    \"b\": [\n      1,\n      {}\n    ],\n"
                            "    \"c\": []\n  },\n  \"d\": \"x\"\n}");
    buf_fini(&b);
}

static void refuses_to_print_the_abyss(void **state)
{
    cJSON *top = json_new_array(arena), *at = top;
    struct buf b = BUF_INIT(0);

    (void)state;
    for (int i = 0; i < 300000; i++)
        at = json_append(at, json_new_array(arena));
    json_print(&b, top);
    assert_true(b.failed);
    assert_true(json_deeper(top, 256));
    assert_false(json_deeper(parse("[[1]]"), 2));
    assert_true(json_deeper(parse("[[1]]"), 1));
    assert_true(json_deeper(parse("[1,[2,{\"a\":[]}]]"), 3));
    assert_false(json_deeper(parse("[1,[2,{\"a\":[]}]]"), 4));
    assert_false(json_deeper(parse("1"), 0));
    assert_false(json_equal(top, json_copy(arena, top)));
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_what_it_read),
        cmocka_unit_test(refuses_what_is_not_json),
        cmocka_unit_test(scans_strings_at_any_place),
        cmocka_unit_test(keeps_strings_whole),
        cmocka_unit_test(limits_depth_and_nodes),
        cmocka_unit_test(reports_duplicates),
        cmocka_unit_test(finds_duplicates_of_large_objects),
        cmocka_unit_test(bounds_duplicate_paths),
        cmocka_unit_test(prints_doubles_like_go),
        cmocka_unit_test(prints_pretty),
        cmocka_unit_test(refuses_to_print_the_abyss),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
