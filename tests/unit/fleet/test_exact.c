/* SPDX-License-Identifier: Apache-2.0 */
/* 128-bit fractions: laws of arithmetic on random values, rounding, and refusal of what does not
 * fit. */
#include "test.h"

static struct exact of(int64_t num, int64_t den)
{
    struct exact v = {0, 1};

    assert_true(exact_mul((struct exact){num, 1}, (struct exact){1, den}, &v));
    return v;
}

static void prints_decimals(void **state)
{
    static const struct {
        int64_t num, den;
        unsigned places;
        const char *want;
    } facts[] = {
        {0, 1, 2, "0.00"},
        {1, 3, 4, "0.3333"},
        {2, 3, 4, "0.6667"},
        {1, 2, 0, "1"},
        {1, 8, 2, "0.13"},
        {-1, 8, 2, "-0.13"},
        {-1, 1000, 2, "0.00"},
        {999, 1000, 2, "1.00"},
        {1999, 1000, 2, "2.00"},
        {5, 1, 0, "5"},
        {7, 7, 3, "1.000"},
        {1, 7, 9, "0.142857143"},
        {INT64_MAX, 1, 1, "9223372036854775807.0"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++)
        assert_str(exact_decimal(a, of(facts[i].num, facts[i].den), facts[i].places),
                   facts[i].want);
    assert_str(exact_fraction(a, of(6, 4)), "3/2");
    assert_str(exact_fraction(a, of(-8, 4)), "-2");
    arena_free(a);
}

static void reads_what_it_prints(void **state)
{
    static const char *const good[] = {"0", "7", "3/2", "1/7",
                                       "170141183460469231731687303715884105727"};
    static const char *const bad[] = {
        "",    "/",   "1/",   "/2",    "-1",
        "+1",  "01",  "2/4",  "4/1",   "0/3",
        "1/0", "1.5", "1 /2", "1/2/3", "170141183460469231731687303715884105728"};
    struct arena *a = arena_new(0);
    struct exact v = {5, 3};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(exact_parse(a, str_c(bad[i]), &v));
    assert_str(exact_fraction(a, v), "5/3");
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(exact_parse(a, str_c(good[i]), &v));
        assert_str(exact_fraction(a, v), good[i]);
    }
    arena_free(a);
}

static void rounds_a_denominator_of_127_bits(void **state)
{
    struct arena *a = arena_new(0);
    __int128 most = (__int128)(~(unsigned __int128)0 >> 1);

    (void)state;
    assert_str(exact_decimal(a, (struct exact){most - 1, most}, 3), "1.000");
    assert_str(exact_decimal(a, (struct exact){most / 3, most}, 3), "0.333");
    arena_free(a);
}

static void obeys_the_laws_of_arithmetic(void **state)
{
    const struct exact large = {(__int128)1 << 70, 3}; /* compared in another way */
    uint64_t seed = 0x5eed;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct exact a = of(BELOW(&seed, 2000001) - 1000000, 1 + BELOW(&seed, 5040));
        struct exact b = of(BELOW(&seed, 2000001) - 1000000, 1 + BELOW(&seed, 5040));
        struct exact c = of(BELOW(&seed, 2001) - 1000, 1 + BELOW(&seed, 60));
        struct exact ab, ba = EXACT_ZERO, left = EXACT_ZERO, right = {-1, 1}, x, y;

        assert_true(exact_add(a, b, &ab) && exact_add(b, a, &ba));
        assert_int_equal(exact_cmp(ab, ba), 0);
        assert_true(exact_mul(ab, c, &left) && exact_mul(a, c, &x) && exact_mul(b, c, &y) &&
                    exact_add(x, y, &right));
        assert_int_equal(exact_cmp(left, right), 0);
        assert_true(exact_sub(ab, b, &x));
        assert_int_equal(exact_cmp(x, a), 0);
        assert_true(exact_sub(a, b, &x));
        assert_int_equal(exact_cmp(a, b), x.num > 0 ? 1 : x.num < 0 ? -1 : 0);
        assert_true(exact_mul(a, large, &left) && exact_mul(b, large, &right));
        assert_int_equal(exact_cmp(left, right), exact_cmp(a, b));
    }
}

static void refuses_what_does_not_fit(void **state)
{
    __int128 most = (__int128)(~(unsigned __int128)0 >> 1);
    struct exact v = {42, 1};

    (void)state;
    assert_false(exact_add((struct exact){most, 1}, (struct exact){1, 1}, &v));
    assert_false(exact_mul((struct exact){most, 1}, (struct exact){2, 1}, &v));
    assert_false(exact_add((struct exact){1, most}, (struct exact){1, most - 1}, &v));
    assert_true(v.num == 42 && v.den == 1);
    assert_true(exact_mul((struct exact){most, 3}, (struct exact){3, most}, &v));
    assert_true(v.num == 1 && v.den == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_decimals),
        cmocka_unit_test(reads_what_it_prints),
        cmocka_unit_test(rounds_a_denominator_of_127_bits),
        cmocka_unit_test(obeys_the_laws_of_arithmetic),
        cmocka_unit_test(refuses_what_does_not_fit),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
