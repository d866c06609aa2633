/* SPDX-License-Identifier: Apache-2.0 */
/* Exact fractions: sums of shares come out whole, and what does not fit is refused untouched. */

#include "test.h"

#include <sublet/rational.h>

static struct rational of(const char *text)
{
    struct rational r = {42, 42};

    assert_true(rational_parse(str_c(text), &r));
    return r;
}

static void parses_and_prints(void **state)
{
    static const char *const facts[][2] = {
        {"0", "0"},
        {"4", "4"},
        {"0.25", "0.25"},
        {"1/4", "0.25"},
        {"1/7", "1/7"},
        {"2/14", "1/7"},
        {"8/2", "4"},
        {"-3/6", "-0.5"},
        {"-0", "0"},
        {"0.10", "0.1"},
        {"007", "7"},
        {"-1/3", "-1/3"},
        {"1.50000000000000000000000", "1.5"},
        {"0/5", "0"},
        {"-0.125", "-0.125"},
        {"9223372036854775807", "9223372036854775807"},
        {"1/131072", "0.00000762939453125"},
        {"1/262144", "1/262144"},
        {"9223372036854775807/131072", "70368744177663.99999237060546875"},
    };
    static const char *const bad[] = {
        "",
        "-",
        "+1",
        "1/",
        "/2",
        "1/0",
        "1.",
        ".5",
        "1e3",
        " 1",
        "1 ",
        "1/-2",
        "1/2/3",
        "1.2/3",
        "0x1",
        "--1",
        "1,5",
        "9223372036854775808",
        "0.0000000000000000001",
        "99999999999999999999999999999999999999999999999999999999/3",
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++)
        assert_str(rational_format(a, of(facts[i][0])), facts[i][1]);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct rational r = {1, 7};
        assert_false(rational_parse(str_c(bad[i]), &r));
        assert_true(r.num == 1 && r.den == 7);
    }
    arena_free(a);
}

static void sums_are_exact(void **state)
{
    struct rational sum = RATIONAL_ZERO, third = of("1/3");

    (void)state;
    for (int i = 0; i < 3000; i++)
        assert_true(rational_add(sum, third, &sum));
    assert_true(sum.num == 1000 && sum.den == 1);
    for (int i = 0; i < 3000; i++)
        assert_true(rational_sub(sum, third, &sum));
    assert_true(sum.num == 0 && sum.den == 1);

    assert_true(rational_sub(of("1/6"), of("1/2"), &sum));
    assert_true(sum.num == -1 && sum.den == 3);
    assert_true(rational_mul(of("-2/3"), of("3/4"), &sum));
    assert_true(sum.num == -1 && sum.den == 2);
}

static void orders(void **state)
{
    (void)state;
    assert_int_equal(rational_cmp(of("1/3"), of("2/6")), 0);
    assert_int_equal(rational_cmp(of("0.333"), of("1/3")), -1);
    assert_int_equal(rational_cmp(of("1/3"), of("-1/3")), 1);
    assert_int_equal(rational_cmp(of("9223372036854775807/9223372036854775806"), of("1")), 1);
}

static void refuses_overflow(void **state)
{
    struct rational big = of("9223372036854775807"), small = of("1/9223372036854775807");
    struct rational r = {1, 7};

    (void)state;
    assert_false(rational_add(big, of("1"), &r));
    assert_false(rational_sub(of("-2"), big, &r));
    assert_false(rational_mul(big, of("2"), &r));
    assert_false(rational_mul(small, of("1/2"), &r));
    assert_false(rational_add(small, of("1/2"), &r));
    assert_true(r.num == 1 && r.den == 7);
    assert_true(rational_mul(big, small, &r));
    assert_true(r.num == 1 && r.den == 1);
}

static void a_sum_that_does_not_fit_is_the_most(void **state)
{
    struct rational big = of("9223372036854775807"), odd = of("1/9223372036854775807"), sum;

    (void)state;
    sum = of("1/3");
    rational_add_most(&sum, of("1/6"));
    assert_int_equal(rational_cmp(sum, of("1/2")), 0);
    rational_add_most(&sum, odd); /* no fraction holds it */
    assert_int_equal(rational_cmp(sum, RATIONAL_MOST), 0);
    sum = of("1");
    rational_add_most(&sum, big);
    rational_add_most(&sum, of("2"));
    rational_add_most(&sum, of("1/2"));
    assert_int_equal(rational_cmp(sum, RATIONAL_MOST), 0);
    sum = of("9223372036854775807/7");
    rational_add_most(&sum, RATIONAL_ZERO);
    assert_int_equal(rational_cmp(sum, of("9223372036854775807/7")), 0);
    assert_true(i64_add_most(INT64_MAX - 1, 1) == INT64_MAX);
    assert_true(i64_add_most(i64_add_most(INT64_MAX, INT64_MAX), 5) == INT64_MAX);
    assert_true(i64_add_most(3, 4) == 7);
}

/* Against fractions that were computed by another program, of any size. */
static void money_is_exact_and_rounded_once(void **state)
{
    static const struct {
        const char *factors[RATIONAL_FACTORS], *text;
    } cases[] = {
        {{NULL}, "1.00"},
        {{"0", "2.50"}, "0.00"},
        {{"2.50", "2", "3"}, "15.00"},
        {{"2.50", "1/7"}, "0.357143"},
        {{"1/3", "3"}, "1.00"}, /* not 0.999999 */
        {{"0.0000005"}, "0.000001"},
        {{"0.00000049"}, "0.00"},
        {{"0.1", "0.125"}, "0.0125"},
        {{"1999999/2000000"}, "1.00"},
        {{"9223372036854775807", "2147483647"}, "19807040619342712359383728129.00"},
        {{"9223372036854775807", "9223372036854775807", "9223372036854775807",
          "9223372036854775807"},
         "7237005577332262210834635695349653859421902880380109739573089701262786560001.00"},
        {{"1/9223372036854775807", "9223372036854775807", "1/9223372036854775807",
          "9223372036854775807"},
         "1.00"},
        {{"9223372036854775807/9223372036854775806", "9223372036854775807",
          "9223372036854775805/9223372036854775806", "1"},
         "9223372036854775807.00"},
        {{"1/9223372036854775807", "1/9223372036854775807", "1/9223372036854775807",
          "1/9223372036854775807"},
         "0.00"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rational factors[RATIONAL_FACTORS];
        size_t n = 0;

        while (n < RATIONAL_FACTORS && cases[i].factors[n]) {
            factors[n] = of(cases[i].factors[n]);
            n++;
        }
        assert_str(rational_money(a, factors, n), cases[i].text);
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_and_prints),
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(orders),
        cmocka_unit_test(refuses_overflow),
        cmocka_unit_test(a_sum_that_does_not_fit_is_the_most),
        cmocka_unit_test(money_is_exact_and_rounded_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
