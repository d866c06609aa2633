/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: the edges (empty, NULL, no NUL at the end), the limits of numbers, and UTF-8 as RFC 3629
 * has it. Must never depend on bytes after the end of a string. */

#include <stdlib.h>

#include "test.h"

static void compares(void **state)
{
    (void)state;
    assert_true(str_eq(STR_NULL, STR("")));
    assert_true(str_eqc(STR("a"), "a"));
    assert_false(str_eqc(STR("a"), "ab"));
    assert_false(str_eqc(STR("ab"), "a"));
    assert_true(str_eq(str_c(NULL), STR_NULL));
    assert_null(str_c(NULL).p);
    assert_int_equal(str_cmp(STR("a"), STR("a")), 0);
    assert_true(str_cmp(STR("a"), STR("b")) < 0);
    assert_true(str_cmp(STR("a"), STR("aa")) < 0);
    assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
    assert_true(str_cmp(STR_NULL, STR("a")) < 0);
}

static void searches(void **state)
{
    (void)state;
    assert_true(str_has_prefix(STR("abc"), STR("ab")));
    assert_true(str_has_prefix(STR("abc"), STR_NULL));
    assert_false(str_has_prefix(STR("ab"), STR("abc")));
    assert_true(str_has_suffix(STR("abc"), STR("bc")));
    assert_false(str_has_suffix(STR("c"), STR("bc")));
    assert_true(str_contains(STR("abc"), STR("b")));
    assert_true(str_contains(STR_NULL, STR("")));
    assert_false(str_contains(STR("abc"), STR("cb")));
    assert_int_equal(str_find(STR("a.b.c"), '.'), 1);
    assert_int_equal(str_rfind(STR("a.b.c"), '.'), 3);
    assert_int_equal(str_find(STR("abc"), '.'), 3);
    assert_int_equal(str_rfind(STR_NULL, '.'), 0);
}

static void cuts(void **state)
{
    struct str rest = STR("a//b");

    (void)state;
    assert_str(str_cut(&rest, '/'), "a");
    assert_str(str_cut(&rest, '/'), "");
    assert_non_null(rest.p);
    assert_str(str_cut(&rest, '/'), "b");
    assert_null(rest.p);

    rest = STR("a/");
    assert_str(str_cut(&rest, '/'), "a");
    assert_non_null(rest.p);
    assert_str(str_cut(&rest, '/'), "");
    assert_null(rest.p);

    assert_str(str_sub(STR("abc"), 1, 1), "b");
    assert_str(str_sub(STR("abc"), 1, 9), "bc");
    assert_str(str_sub(STR("abc"), 9, 9), "");
    assert_str(str_from(STR("abc"), 2), "c");
    assert_str(str_trim(STR(" \t\r\n a b \v\f")), "a b");
    assert_str(str_trim(STR("   ")), "");
}

static void reads_numbers(void **state)
{
    uint64_t u = 7;
    int64_t i = 7;

    (void)state;
    assert_true(str_to_u64(STR("18446744073709551615"), &u));
    assert_true(u == UINT64_MAX);
    assert_true(str_to_i64(STR("-9223372036854775808"), &i));
    assert_true(i == INT64_MIN);
    assert_true(str_to_i64(STR("9223372036854775807"), &i));
    assert_true(i == INT64_MAX);

    u = 7;
    i = 7;
    assert_false(str_to_u64(STR("18446744073709551616"), &u));
    assert_false(str_to_u64(STR(""), &u));
    assert_false(str_to_u64(STR("+1"), &u));
    assert_false(str_to_u64(STR("-1"), &u));
    assert_false(str_to_u64(STR(" 1"), &u));
    assert_false(str_to_u64(STR("1x"), &u));
    assert_false(str_to_i64(STR("9223372036854775808"), &i));
    assert_false(str_to_i64(STR("-9223372036854775809"), &i));
    assert_false(str_to_i64(STR("-"), &i));
    assert_false(str_to_i64(STR("--1"), &i));
    assert_int_equal(u, 7);
    assert_int_equal(i, 7);
}

static void checks_utf8(void **state)
{
    static const char *const good[] = {"",
                                       "abc",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2\x41",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "a\xfe"};

    (void)state;
    assert_true(str_is_utf8(STR_NULL));
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(str_is_utf8(str_c(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(str_is_utf8(str_c(bad[i])));
    assert_false(str_is_utf8(str_sub(STR("\xe2\x82\xac"), 0, 2)));
}

static void lists(void **state)
{
    struct str items[] = {STR("watch"), STR("get"), STR("")}, star[] = {STR("*")};
    struct str_list list = {items, 3}, any = {star, 1}, none = {NULL, 0};

    (void)state;
    assert_true(str_list_has(list, STR("get")) && str_list_has(list, STR("")));
    assert_false(str_list_has(list, STR("ge")) || str_list_has(none, STR("")));
    assert_true(str_list_has_or_star(any, STR("get")) && str_list_has_or_star(list, STR("get")));
    assert_false(str_list_has(any, STR("get")) || str_list_has_or_star(list, STR("put")));

    qsort(items, 3, sizeof(*items), str_order);
    assert_true(str_eqc(items[0], "") && str_eqc(items[1], "get") && str_eqc(items[2], "watch"));
}

static void hashes(void **state)
{
    uint64_t seen[64];

    (void)state;
    for (size_t n = 0; n < 64; n++) {
        static const char text[64] = {0};

        seen[n] = str_hash((struct str){text, n}, 42);
        for (size_t i = 0; i < n; i++)
            assert_true(seen[i] != seen[n]);
    }
    assert_true(str_hash(STR("pods"), 1) == str_hash(STR("pods"), 1));
    assert_true(str_hash(STR("pods"), 1) != str_hash(STR("pods"), 2));
    assert_true(str_hash(STR("podsandmore"), 1) != str_hash(STR("podsandmorf"), 1));
    assert_true(str_hash(STR_NULL, 1) == str_hash(STR(""), 1));
}

static void words_in_any_case(void **state)
{
    struct str list = STR("keep-alive, Upgrade ,X");

    (void)state;
    assert_true(str_eq_nocase(STR("WebSocket"), STR("websocket")));
    assert_true(str_eq_nocase(STR_NULL, STR("")));
    assert_false(str_eq_nocase(STR("web"), STR("websocket")));
    assert_true(str_lists_word(list, STR("upgrade")));
    assert_true(str_lists_word(list, STR("x")));
    assert_false(str_lists_word(list, STR("keep")));
    assert_false(str_lists_word(STR_NULL, STR("x")));
}

static void clips_between_characters(void **state)
{
    struct str euro = STR("a\xe2\x82\xac"); /* 1 + 3 bytes */

    (void)state;
    assert_str(str_clip(euro, 4), "a\xe2\x82\xac");
    assert_str(str_clip(euro, 3), "a");
    assert_str(str_clip(euro, 2), "a");
    assert_str(str_clip(euro, 1), "a");
    assert_str(str_clip(euro, 0), "");
    assert_str(str_clip(STR_NULL, 0), "");
    assert_int_equal(str_characters(euro), 2);
    assert_int_equal(str_characters(STR_NULL), 0);
}

static void finds_a_word_of_a_table(void **state)
{
    (void)state;
    assert_int_equal(str_word_index("off|warn|enforce", STR("off")), 0);
    assert_int_equal(str_word_index("off|warn|enforce", STR("enforce")), 2);
    assert_int_equal(str_word_index("off|warn|enforce", STR("enf")), -1);
    assert_int_equal(str_word_index("off|warn|enforce", STR("")), -1);
    assert_int_equal(str_word_index("", STR("off")), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_in_any_case),
        cmocka_unit_test(compares),
        cmocka_unit_test(searches),
        cmocka_unit_test(cuts),
        cmocka_unit_test(reads_numbers),
        cmocka_unit_test(checks_utf8),
        cmocka_unit_test(hashes),
        cmocka_unit_test(lists),
        cmocka_unit_test(clips_between_characters),
        cmocka_unit_test(finds_a_word_of_a_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
