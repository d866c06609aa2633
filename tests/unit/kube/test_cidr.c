/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses: what is inside what, whatever way it is written. */
#include <sublet/cidr.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static struct cidr range(const char *text)
{
    struct cidr ret;

    if (!cidr_parse(str_c(text), &ret))
        fail_msg("%s", text);
    return ret;
}

static void ranges_are_read(void **state)
{
    static const char *const bad[] = {"",          "/8",          "10.0.0.0/33",  "10.0.0.0/-1",
                                      "10.0.0/8",  "10.0.0.0/",   "fd00::/129",   "fd00::g/8",
                                      "010.0.0.1", "10.0.0.0/8 ", "10.0.0.0/8/8", "a"};
    struct cidr ret;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (cidr_parse(str_c(bad[i]), &ret))
            fail_msg("%s", bad[i]);
    assert_false(cidr_parse((struct str){"10.0.0.0\0/8", 11}, &ret));
    assert_int_equal(range("10.0.0.1").bits, 32);
    assert_int_equal(range("fd00::1").bits, 128);
    assert_false(range("::ffff:10.0.0.0/104").v6);
    assert_int_equal(range("::ffff:10.0.0.0/104").bits, 8);
}

static void inside(void **state)
{
    static const struct {
        const char *inner, *outer;
        bool within, overlap;
    } cases[] = {
        {"10.1.0.0/16", "10.0.0.0/8", true, true},
        {"10.0.0.0/8", "10.1.0.0/16", false, true},
        {"10.0.0.0/8", "10.0.0.0/8", true, true},
        {"0.0.0.0/0", "10.0.0.0/8", false, true},
        {"11.0.0.0/8", "10.0.0.0/8", false, false},
        {"10.255.255.255", "10.0.0.0/8", true, true},
        {"::ffff:10.1.0.0/112", "10.0.0.0/8", true, true},
        {"::/0", "10.0.0.0/8", false, false},
        {"fd00:1::/32", "fd00::/8", true, true},
        {"10.0.0.0/8", "::/0", false, false},
        {"192.168.128.0/17", "192.168.0.0/17", false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cidr inner = range(cases[i].inner), outer = range(cases[i].outer);

        if (cidr_within(&inner, &outer) != cases[i].within ||
            cidr_overlap(&inner, &outer) != cases[i].overlap)
            fail_msg("%s in %s", cases[i].inner, cases[i].outer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_are_read), cmocka_unit_test(inside)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
