/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings: the vectors of RFC 4648 and FIPS 180-4, what strict decoders must refuse, and that
 * every byte comes back. */

#include "test.h"

#include <sublet/encode.h>

static void base64(void **state)
{
    static const char *const facts[][3] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xff\xef\xbe", "/+++", "_---"},
    };
    struct arena *a = arena_new(0);
    struct str out;

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++) {
        assert_str(base64_encode(a, str_c(facts[i][0])), facts[i][1]);
        assert_str(base64url_encode(a, str_c(facts[i][0])), facts[i][2]);
        assert_true(base64_decode(a, str_c(facts[i][1]), &out));
        assert_str(out, facts[i][0]);
        assert_true(base64url_decode(a, str_c(facts[i][2]), &out));
        assert_str(out, facts[i][0]);
    }
    assert_true(base64_decode(a, STR("Zm9v\nYm\r\nE\n=\n"), &out));
    assert_str(out, "fooba");
    assert_true(base64_decode(a, STR("Zh=="), &out)); /* as Go: spare bits are not looked at */
    assert_str(out, "f");
    arena_free(a);
}

static void base64_refuses(void **state)
{
    static const char *const bad[] = {
        "Z",    "Zg",       "Zg=",  "Zg===", "Zm8",   "Zm8==", "Zm9v=", "=",      "====",
        "Z===", "Zg==Zg==", "Zg=g", " Zg==", "Zg== ", "Z-==",  "Z_==",  "Zg\t==", "Z\xc3\xa9==",
    };
    static const char *const bad_url[] = {
        "Z", "Zg==", "Zm8=", "Zm9vY", "Z+", "Z/", "Z g", "Zg\n", "Zh", "Zm9",
    };
    struct arena *a = arena_new(0);
    struct str out = STR("untouched");

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (base64_decode(a, str_c(bad[i]), &out))
            fail_msg("accepted: %s", bad[i]);
    for (size_t i = 0; i < COUNT(bad_url); i++)
        if (base64url_decode(a, str_c(bad_url[i]), &out))
            fail_msg("accepted: %s", bad_url[i]);
    assert_false(base64_decode(a, (struct str){"Zg=\0", 4}, &out));
    assert_str(out, "untouched");
    arena_free(a);
}

static void every_byte_comes_back(void **state)
{
    struct arena *a = arena_new(0);
    char bytes[300];
    struct str out;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        struct str s = {bytes, n};
        assert_true(base64_decode(a, base64_encode(a, s), &out));
        assert_true(str_eq(out, s));
        assert_true(base64url_decode(a, base64url_encode(a, s), &out));
        assert_true(str_eq(out, s));
        assert_true(url_decode(a, url_encode(a, s), true, &out));
        assert_true(str_eq(out, s));
        arena_reset(a);
    }
    arena_free(a);
}

static void hex_and_base32(void **state)
{
    struct arena *a = arena_new(0);
    char out[17] = {0};

    (void)state;
    assert_str(hex_encode(a, (struct str){"\x00\x9f\xff", 3}), "009fff");
    assert_str(hex_encode(a, STR_NULL), "");
    base32_lower((const unsigned char *)"foobar", 6, out, 10);
    assert_string_equal(out, "mzxw6ytboi");
    memset(out, 0, sizeof(out));
    base32_lower((const unsigned char *)"foobar", 6, out, 3);
    assert_string_equal(out, "mzx");
    memset(out, 0, sizeof(out));
    base32_lower((const unsigned char *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10, out, 16);
    assert_string_equal(out, "7777777777777777");
    arena_free(a);
}

static void digests(void **state)
{
    struct arena *a = arena_new(0);
    const struct str joined[] = {STR("ab"), STR("c")}, other[] = {STR("a"), STR("bc")};
    unsigned char x[32], y[32];

    (void)state;
    sha256(STR("abc"), x);
    assert_str(hex_encode(a, (struct str){(const char *)x, 32}),
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256(STR_NULL, x);
    assert_str(hex_encode(a, (struct str){(const char *)x, 32}),
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

    sha256_parts(2, joined, x);
    sha256_parts(2, other, y);
    assert_memory_not_equal(x, y, 32);
    sha256((struct str){"\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\1c", 19}, y);
    assert_memory_equal(x, y, 32);
    sha256_parts(0, NULL, x);
    sha256(STR(""), y);
    assert_memory_equal(x, y, 32);
    arena_free(a);
}

static void urls(void **state)
{
    static const char *const bad[] = {"%", "a%", "%2", "a%2", "%zz", "%2g", "%g2", "%%20"};
    struct arena *a = arena_new(0);
    struct str out;

    (void)state;
    assert_true(url_decode(a, STR("a%2Fb%2fc+d%20e"), true, &out));
    assert_str(out, "a/b/c d e");
    assert_true(url_decode(a, STR("a+b"), false, &out));
    assert_str(out, "a+b");
    assert_true(url_decode(a, STR("%00"), false, &out));
    assert_int_equal(out.n, 1);
    assert_true(url_decode(a, STR_NULL, false, &out));
    assert_int_equal(out.n, 0);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(url_decode(a, str_c(bad[i]), true, &out));
    assert_str(url_encode(a, STR("a/b c+~-_.%\xff")), "a%2Fb%20c%2B~-_.%25%FF");
    arena_free(a);
}

static void quotes(void **state)
{
    static const char *const facts[][2] = {
        {"", "\"\""},
        {"a \"b\" \\c", "\"a \\\"b\\\" \\\\c\""},
        {"\a\b\f\n\r\t\v\x01\x7f", "\"\\a\\b\\f\\n\\r\\t\\v\\x01\\x7f\""},
        {"\xc3\xa9\xf0\x9f\x98\x80<>&", "\"\xc3\xa9\xf0\x9f\x98\x80<>&\""},
        {"\xff"
         "a\xc3",
         "\"\\xffa\\xc3\""},
        {"\xc2\xad\xe2\x80\x8b\xef\xbb\xbf\xc2\xa0", "\"\\u00ad\\u200b\\ufeff\\u00a0\""},
        {"\xf3\xa0\x80\x81", "\"\\U000e0001\""},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++)
        assert_str(go_quote(a, str_c(facts[i][0])), facts[i][1]);
    assert_str(go_quote(a, (struct str){"\0", 1}), "\"\\x00\"");
    assert_str(go_quote(a, STR_NULL), "\"\"");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64),
        cmocka_unit_test(base64_refuses),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(hex_and_base32),
        cmocka_unit_test(digests),
        cmocka_unit_test(urls),
        cmocka_unit_test(quotes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
