/* SPDX-License-Identifier: Apache-2.0 */
/* Names: the edges of every rule, and upstream's messages (v0.36.3: object names
 * count "characters", label keys and values count "bytes"). */

#include "../base/test.h"

#include <sublet/selector.h>

#define A10  "aaaaaaaaaa"
#define A50  A10 A10 A10 A10 A10
#define A63  A50 A10 "aaa"
#define A64  A63 "a"
#define A253 A50 A50 A50 A50 A50 "aaa"
#define A254 A253 "a"

#define LABEL                                                                                      \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN                                                                                  \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL_1035                                                                                 \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "   \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123'," \
    " regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define KEY                                                                                        \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define VALUE                                                                                      \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', " \
    " or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

struct fact {
    enum name_rule rule;
    const char *text;
    const char *messages[NAME_MESSAGES_MAX];
};

static const struct fact FACTS[] = {
    {NAME_DNS1123_LABEL, "a", {0}},
    {NAME_DNS1123_LABEL, "1-a", {0}},
    {NAME_DNS1123_LABEL, A63, {0}},
    {NAME_DNS1123_LABEL, A64, {"must be no more than 63 characters"}},
    {NAME_DNS1123_LABEL, "a.b", {"must not contain dots"}},
    {NAME_DNS1123_LABEL, "", {LABEL}},
    {NAME_DNS1123_LABEL, "A", {LABEL}},
    {NAME_DNS1123_LABEL, "-a", {LABEL}},
    {NAME_DNS1123_LABEL, "a-", {LABEL}},
    {NAME_DNS1123_LABEL, "a_b", {LABEL}},
    {NAME_DNS1123_LABEL, "a\n", {LABEL}},
    {NAME_DNS1123_LABEL, "\xc3\xa9", {LABEL}},
    {NAME_DNS1123_LABEL, A64 ".", {"must be no more than 63 characters", LABEL}},
    {NAME_DNS1123_SUBDOMAIN, "a.b-c.1", {0}},
    {NAME_DNS1123_SUBDOMAIN, A253, {0}},
    {NAME_DNS1123_SUBDOMAIN, A254, {"must be no more than 253 characters"}},
    {NAME_DNS1123_SUBDOMAIN, "", {SUBDOMAIN}},
    {NAME_DNS1123_SUBDOMAIN, ".", {SUBDOMAIN}},
    {NAME_DNS1123_SUBDOMAIN, "a.", {SUBDOMAIN}},
    {NAME_DNS1123_SUBDOMAIN, ".a", {SUBDOMAIN}},
    {NAME_DNS1123_SUBDOMAIN, "a..b", {SUBDOMAIN}},
    {NAME_DNS1123_SUBDOMAIN, "a.-b", {SUBDOMAIN}},
    {NAME_DNS1123_SUBDOMAIN, "a/b", {SUBDOMAIN}},
    {NAME_DNS1035_LABEL, "a-1", {0}},
    {NAME_DNS1035_LABEL, "1a", {LABEL_1035}},
    {NAME_DNS1035_LABEL, "", {LABEL_1035}},
    {NAME_DNS1035_LABEL, A64 "-", {"must be no more than 63 characters", LABEL_1035}},
    {NAME_PATH_SEGMENT, "system:a B", {0}},
    {NAME_PATH_SEGMENT, "", {0}},
    {NAME_PATH_SEGMENT, "...", {0}},
    {NAME_PATH_SEGMENT, ".", {"may not be '.'"}},
    {NAME_PATH_SEGMENT, "..", {"may not be '..'"}},
    {NAME_PATH_SEGMENT, "a/%", {"may not contain '/'", "may not contain '%'"}},
    {NAME_QUALIFIED, "app.kubernetes.io/Name_1", {0}},
    {NAME_QUALIFIED, A253 "/" A63, {0}},
    {NAME_QUALIFIED, "", {"name part must be non-empty", "name part " KEY}},
    {NAME_QUALIFIED, "/a", {"prefix part must be non-empty"}},
    {NAME_QUALIFIED, "A/a", {"prefix part " SUBDOMAIN}},
    {NAME_QUALIFIED, A64, {"name part must be no more than 63 bytes"}},
    {NAME_QUALIFIED, A254 "/a", {"prefix part must be no more than 253 bytes"}},
    {NAME_QUALIFIED,
     A254 "./" A64 "-",
     {"prefix part must be no more than 253 bytes", "prefix part " SUBDOMAIN,
      "name part must be no more than 63 bytes", "name part " KEY}},
    {NAME_QUALIFIED,
     "a/b/c",
     {"a valid label key " KEY
      " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"}},
    {NAME_LABEL_VALUE, "", {0}},
    {NAME_LABEL_VALUE, "A_b.c-1", {0}},
    {NAME_LABEL_VALUE, A63, {0}},
    {NAME_LABEL_VALUE, A64, {"must be no more than 63 bytes"}},
    {NAME_LABEL_VALUE, A64 " ", {"must be no more than 63 bytes", VALUE}},
    {NAME_LABEL_VALUE, "-", {VALUE}},
};

static void agrees_with_upstream(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(FACTS); i++) {
        const struct fact *f = &FACTS[i];
        const char *messages[NAME_MESSAGES_MAX];
        size_t n = name_check(f->rule, str_c(f->text), messages), want = 0;
        while (want < NAME_MESSAGES_MAX && f->messages[want])
            want++;
        if (n != want)
            fail_msg("\"%s\": %zu messages", f->text, n);
        for (size_t m = 0; m < n; m++)
            assert_string_equal(messages[m], f->messages[m]);
    }
}

static void gives_the_first_message(void **state)
{
    (void)state;
    assert_null(name_check_dns1123_label(STR("a")));
    assert_string_equal(name_check_dns1123_label(STR("a.b")), "must not contain dots");
    assert_null(name_check_dns1123_subdomain(STR("a.b")));
    assert_string_equal(name_check_dns1123_subdomain(STR("A")), SUBDOMAIN);
    assert_null(name_check_dns1035_label(STR("a")));
    assert_string_equal(name_check_dns1035_label(STR("1")), LABEL_1035);
    assert_null(name_check_path_segment(STR("A:b")));
    assert_string_equal(name_check_path_segment(STR("..")), "may not be '..'");
    assert_null(name_check_qualified(STR("a/b")));
    assert_string_equal(name_check_qualified(STR("/b")), "prefix part must be non-empty");
    assert_null(name_check_label_value(STR("")));
    assert_string_equal(name_check_label_value(STR("!")), VALUE);
}

static void sees_every_byte(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[] = {'a', (char)c, 'a'};
        struct str s = {text, 3};
        bool lower = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        bool label = lower || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
        assert_int_equal(name_check_dns1123_label(s) == NULL, lower);
        assert_int_equal(name_check_dns1035_label(s) == NULL, lower);
        assert_int_equal(name_check_dns1123_subdomain(s) == NULL, lower || c == '.');
        assert_int_equal(name_check_label_value(s) == NULL, label);
        assert_int_equal(name_check_qualified(s) == NULL, label || c == '/');
    }
}

static void sees_a_domain(void **state)
{
    (void)state;
    assert_true(name_has_domain(STR("nvidia.com/gpu")));
    assert_true(name_has_domain(STR("/")));
    assert_false(name_has_domain(STR("cpu")));
    assert_false(name_has_domain(STR_NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_upstream),
        cmocka_unit_test(gives_the_first_message),
        cmocka_unit_test(sees_every_byte),
        cmocka_unit_test(sees_a_domain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
