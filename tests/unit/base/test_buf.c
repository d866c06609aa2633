/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: appends, the sticky limit, and strings escaped as Go's encoding/json does it. Must never
 * look at bytes past n. */

#include "test.h"

#include <sublet/buf.h>
#include <sublet/mem.h>

static void appends(void **state)
{
    struct buf b = BUF_INIT(0);

    (void)state;
    buf_add(&b, STR_NULL);
    assert_int_equal(buf_str(&b).n, 0);
    buf_add(&b, STR("ab"));
    buf_char(&b, 'c');
    buf_addc(&b, "d");
    buf_printf(&b, "%d", 5);
    buf_i64(&b, INT64_MIN);
    buf_i64(&b, 0);
    buf_i64(&b, INT64_MAX);
    assert_str(buf_str(&b), "abcd5-922337203685477580809223372036854775807");
    buf_drop(&b, 5);
    assert_true(str_has_prefix(buf_str(&b), STR("-9223")));
    buf_drop(&b, b.n);
    assert_int_equal(b.n, 0);
    assert_false(b.failed);
    buf_fini(&b);
}

static void grows(void **state)
{
    struct buf b = BUF_INIT(0);
    struct str all;

    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_char(&b, (char)('a' + i % 26));
    assert_int_equal(b.n, 100000);
    buf_printf(&b, "%01000d", 1);
    assert_int_equal(b.n, 101000);

    all = buf_take(&b);
    assert_int_equal(all.n, 101000);
    assert_int_equal(all.p[27], 'b');
    assert_null(b.p);
    assert_int_equal(b.n, 0);
    mem_free(all.p);
    buf_fini(&b);
}

static void stops_at_the_limit(void **state)
{
    struct buf b = BUF_INIT(10);

    (void)state;
    buf_addc(&b, "0123456789");
    assert_false(b.failed);
    buf_char(&b, 'x');
    assert_true(b.failed);
    buf_add(&b, STR_NULL);
    assert_str(buf_str(&b), "0123456789");

    buf_clear(&b);
    assert_false(b.failed);
    buf_addc(&b, "012345");
    buf_addc(&b, "too long");
    assert_true(b.failed);
    buf_char(&b, 'x'); /* would fit, but the failure stays */
    assert_str(buf_str(&b), "012345");

    buf_clear(&b);
    buf_printf(&b, "%02000d", 1);
    assert_true(b.failed);
    assert_int_equal(b.n, 0);

    buf_clear(&b);
    buf_reserve(&b, SIZE_MAX);
    assert_true(b.failed);
    buf_fini(&b);
}

static void check_escaped(struct str text, const char *want)
{
    struct buf b = BUF_INIT(0);

    buf_json_string(&b, text);
    assert_str(buf_str(&b), want);
    buf_fini(&b);
}

static void escapes_like_go(void **state)
{
    (void)state;
    check_escaped(STR_NULL, "\"\"");
    check_escaped(STR("a\"\\/"), "\"a\\\"\\\\/\"");
    check_escaped(STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
    check_escaped(STR("\0\1\x0b\x1f\x7f"), "\"\\u0000\\u0001\\u000b\\u001f\x7f\"");
    check_escaped(STR("<a>&"), "\"\\u003ca\\u003e\\u0026\"");
    check_escaped(STR("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa"),
                  "\"\xe2\x80\xa7\\u2028\\u2029\xe2\x80\xaa\"");
    check_escaped(STR("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    check_escaped(STR("a\xff\xed\xa0\x80z"), "\"a\\ufffd\\ufffd\\ufffd\\ufffdz\"");
}

/* Every special byte at every place of a word, so that scanning by words and by bytes agree. */
static void escapes_at_any_place(void **state)
{
    (void)state;
    for (int c = 1; c < 128; c++) {
        for (size_t at = 0; at < 20; at++) {
            char text[21] = "abcdefghijklmnopqrst", one[8], want[64];
            struct buf b = BUF_INIT(0);

            text[at] = (char)c;
            buf_json_string(&b, (struct str){text + at, 1});
            snprintf(one, sizeof one, "%.*s", (int)b.n - 2, b.p + 1);
            snprintf(want, sizeof want, "\"%.*s%s%s\"", (int)at, text, one, text + at + 1);
            buf_fini(&b);
            check_escaped(str_c(text), want);
            assert_true(strchr("\"\\<>&", c) || c < 0x20 ? strlen(one) > 1 : one[0] == c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends),
        cmocka_unit_test(grows),
        cmocka_unit_test(stops_at_the_limit),
        cmocka_unit_test(escapes_like_go),
        cmocka_unit_test(escapes_at_any_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
