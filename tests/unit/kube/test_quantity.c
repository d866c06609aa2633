/* SPDX-License-Identifier: Apache-2.0 */
/* resource.Quantity against k8s.io/apimachinery v0.36.3: the table is what its ParseQuantity,
 * String and CanonicalizeBytes answered for these strings. Where upstream's numbers overflow (Value
 * of more than int64) ours saturate: those rows hold our answer. */

#include "../base/test.h"

#include <sublet/quantity.h>

#define D QUANTITY_DECIMAL_SI
#define B QUANTITY_BINARY_SI
#define E QUANTITY_DECIMAL_EXPONENT

static const struct fact {
    const char *text, *canonical, *kept; /* kept: what a round trip through an object leaves */
    enum quantity_format format;
    int64_t units, milli;
} FACTS[] = {
    {"0", "0", "0", D, 0, 0},
    {"00", "0", "0", D, 0, 0},
    {"-0", "0", "0", D, 0, 0},
    {"+", "0", "0", D, 0, 0},
    {".", "0", "0", D, 0, 0},
    {"Mi", "0", "0", B, 0, 0},
    {"m", "0", "0", D, 0, 0},
    {"Ti", "0", "0", B, 0, 0},
    {".Mi", "0", "0", B, 0, 0},
    {"1", "1", "1", D, 1, 1000},
    {"+5", "5", "+5", D, 5, 5000},
    {"007", "7", "007", D, 7, 7000},
    {"1.", "1", "1.", D, 1, 1000},
    {"0.5", "500m", "500m", D, 1, 500},
    {".5", "500m", "500m", D, 1, 500},
    {"1.5", "1500m", "1500m", D, 2, 1500},
    {"1.500", "1500m", "1.500", D, 2, 1500},
    {"0.001", "1m", "1m", D, 1, 1},
    {"-0.5", "-500m", "-500m", D, -1, -500},
    {"-1.5", "-1500m", "-1500m", D, -2, -1500},
    {"100m", "100m", "100m", D, 1, 100},
    {"1000m", "1", "1", D, 1, 1000},
    {"1500m", "1500m", "1500m", D, 2, 1500},
    {"0.1m", "100u", "100u", D, 1, 1},
    {"1n", "1n", "1n", D, 1, 1},
    {"0.1n", "1n", "1n", D, 1, 1},
    {"0.0000000001", "1n", "1n", D, 1, 1},
    {"1u", "1u", "1u", D, 1, 1},
    {"1000u", "1m", "1m", D, 1, 1},
    {"1k", "1k", "1k", D, 1000, 1000000},
    {"1000k", "1M", "1M", D, 1000000, 1000000000},
    {"1001k", "1001k", "1001k", D, 1001000, 1001000000},
    {"1M", "1M", "1M", D, 1000000, 1000000000},
    {"1G", "1G", "1G", D, 1000000000, 1000000000000},
    {"1T", "1T", "1T", D, 1000000000000, 1000000000000000},
    {"1P", "1P", "1P", D, 1000000000000000, 1000000000000000000},
    {"1E", "1E", "1E", D, 1000000000000000000, INT64_MAX},
    {"999E", "999E", "999E", D, INT64_MAX, INT64_MAX},
    {"1Ki", "1Ki", "1Ki", B, 1024, 1024000},
    {"1024", "1024", "1024", D, 1024, 1024000},
    {"1024Ki", "1Mi", "1Mi", B, 1048576, 1048576000},
    {"1024Mi", "1Gi", "1Gi", B, 1073741824, 1073741824000},
    {"1000Mi", "1000Mi", "1000Mi", B, 1048576000, 1048576000000},
    {"1.5Gi", "1536Mi", "1536Mi", B, 1610612736, 1610612736000},
    {"0.5Gi", "512Mi", "512Mi", B, 536870912, 536870912000},
    {"0.5Ki", "512", "512", B, 512, 512000},
    {"512Ki", "512Ki", "512Ki", B, 524288, 524288000},
    {"0.1Ki", "102400m", "102400m", B, 103, 102400},
    {"0.0001Ki", "102400u", "102400u", D, 1, 103},
    {"-0.5Ki", "-512", "-512", B, -512, -512000},
    {"1.1Ki", "1126400m", "1126400m", B, 1127, 1126400},
    {"1.00000000000000000000000001Ki", "1024000000001n", "1024000000001n", B, 1025, 1024001},
    {"0.000000001Ki", "1024n", "1024n", D, 1, 1},
    {"3Gi", "3Gi", "3Gi", B, 3221225472, 3221225472000},
    {"2Pi", "2Pi", "2Pi", B, 2251799813685248, 2251799813685248000},
    {"7Ei", "7Ei", "7Ei", B, 8070450532247928832, INT64_MAX},
    {"8Ei", "9223372036854775807", "9223372036854775807", B, INT64_MAX, INT64_MAX},
    {"100000Ei", "9223372036854775807", "9223372036854775807", B, INT64_MAX, INT64_MAX},
    {"-8Ei", "-9223372036854775807", "-9223372036854775807", B, -9223372036854775807, INT64_MIN},
    {"9223372036854775807", "9223372036854775807", "9223372036854775807", D, INT64_MAX, INT64_MAX},
    {"9223372036854775808", "9223372036854775808", "9223372036854775808", D, INT64_MAX, INT64_MAX},
    {"123456789012345678901234", "123456789012345678901234", "123456789012345678901234", D,
     INT64_MAX, INT64_MAX},
    {"1e3", "1e3", "1e3", E, 1000, 1000000},
    {"1E3", "1e3", "1E3", E, 1000, 1000000},
    {"12e6", "12e6", "12e6", E, 12000000, 12000000000},
    {"100e1", "1e3", "1e3", E, 1000, 1000000},
    {"1e-3", "1e-3", "1e-3", E, 1, 1},
    {"1e-9", "1e-9", "1e-9", E, 1, 1},
    {"1e-10", "1e-9", "1e-9", E, 1, 1},
    {"1.5e3", "1500", "1500", E, 1500, 1500000},
    {"1e+09", "1e9", "1e+09", E, 1000000000, 1000000000000},
    {"5e0", "5", "5e0", E, 5, 5000},
    {"1e18", "1e18", "1e18", E, 1000000000000000000, INT64_MAX},
    {"-1e3", "-1e3", "-1e3", E, -1000, -1000000},
    {"0.0001e3", "100e-3", "100e-3", E, 1, 100},
    {"2000000000", "2G", "2G", D, 2000000000, 2000000000000},
    {"64Gi", "64Gi", "64Gi", B, 68719476736, 68719476736000},
    {"16384Mi", "16Gi", "16Gi", B, 17179869184, 17179869184000},
    {"1536Mi", "1536Mi", "1536Mi", B, 1610612736, 1610612736000},
    {"128974848", "128974848", "128974848", D, 128974848, 128974848000},
    {"129e6", "129e6", "129e6", E, 129000000, 129000000000},
    {"129M", "129M", "129M", D, 129000000, 129000000000},
    {"123Mi", "123Mi", "123Mi", B, 128974848, 128974848000},
    {"8", "8", "8", D, 8, 8000},
    {"80", "80", "80", D, 80, 80000},
    {"800", "800", "800", D, 800, 800000},
    {"8000", "8k", "8k", D, 8000, 8000000},
    {"80000", "80k", "80k", D, 80000, 80000000},
    {"0.25", "250m", "250m", D, 1, 250},
    {"250m", "250m", "250m", D, 1, 250},
    {"1.333333333", "1333333333n", "1.333333333", D, 2, 1334},
    {"1.3333333333", "1333333334n", "1333333334n", D, 2, 1334},
    {"0.333333333333333333333333333333333333333Ei", "384307168202282325333333334n",
     "384307168202282325333333334n", B, 384307168202282326, INT64_MAX},
};

static void agrees_with_upstream(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(FACTS); i++) {
        const struct fact *f = &FACTS[i];
        struct quantity q, again;
        struct str text;
        assert_true(quantity_parse(str_c(f->text), &q));
        assert_str(quantity_format(a, q), f->canonical);
        assert_int_equal(q.format, f->format);
        assert_int_equal(quantity_units(q), f->units);
        assert_int_equal(quantity_milli(q), f->milli);
        assert_true(quantity_text(a, str_c(f->text), &text));
        assert_str(text, f->kept);
        assert_true(quantity_parse(str_c(f->canonical), &again));
        assert_int_equal(quantity_cmp(q, again), 0);
    }
    arena_free(a);
}

static void refuses(void **state)
{
    static const char *const bad[] = {
        "",         "1Kii",
        "1ki",      "1i",
        "1.2.3",    "1e",
        "1e+",      "1e-+3",
        "1e+-3",    "1eE5",
        "e",        "--1",
        "1-1",      "Ei",
        "+Ei",      "1Mi5",
        "abc",      "0x10",
        "1_000",    "NaN",
        " 1",       "1 ",
        "1\n",      "1 Ki",
        "1,5",      "1e99999999999999999999",
        "\xd9\xa1", "1e ",
        "Infinity",
    };
    struct arena *a = arena_new(0);
    struct quantity q;
    struct str text;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(quantity_parse(str_c(bad[i]), &q));
    assert_false(quantity_parse((struct str){"1\0M", 3}, &q));
    assert_false(quantity_parse(STR_NULL, &q));
    assert_false(quantity_text(a, STR("  "), &text));
    assert_true(quantity_text(a, STR(" 1024Mi\n"), &text));
    assert_str(text, "1Gi");
    arena_free(a);
}

static struct quantity of(const char *text)
{
    struct quantity q;

    assert_true(quantity_parse(str_c(text), &q));
    return q;
}

/* Above E upstream prints a number without its suffix ("1000E" becomes "1"); we keep the value. */
static void keeps_values_beyond_exa(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    assert_str(quantity_format(a, of("1000E")), "1000E");
    assert_str(quantity_format(a, of("1e21")), "1e21");
    struct quantity cap = of("8Ei");
    assert_str(quantity_format(a, quantity_add(cap, of("1"))), "8Ei");
    cap = quantity_add(cap, cap);
    assert_str(quantity_format(a, quantity_add(cap, of("2"))), "16Ei");
    for (int i = 0; i < 10; i++)
        cap = quantity_add(cap, cap);
    assert_str(quantity_format(a, quantity_add(cap, of("2048"))), "16384Ei");
    arena_free(a);
}

static void saturates(void **state)
{
    static const char *const huge[] = {"1e29", "1e30", "1e1000000000",
                                       "99999999999999999999999999999999E",
                                       "123456789012345678901234567890123456789012"};
    struct quantity most = of("1e29");

    (void)state;
    for (size_t i = 0; i < COUNT(huge); i++)
        assert_int_equal(quantity_cmp(of(huge[i]), most), 0);
    assert_int_equal(quantity_cmp(quantity_add(most, most), most), 0);
    assert_int_equal(quantity_cmp(quantity_sub(quantity_sub(of("0"), most), most), of("-1e29")), 0);
    assert_int_equal(quantity_units(most), INT64_MAX);
    assert_int_equal(quantity_units(of("-1e29")), INT64_MIN);
    assert_int_equal(quantity_cmp(of("1e-1000000000"), of("1n")), 0);
    assert_int_equal(quantity_cmp(of("0e1000000000"), of("0")), 0);
}

static void adds(void **state)
{
    static const struct {
        const char *a, *b, *sum, *difference;
    } facts[] = {
        {"1", "500m", "1500m", "500m"},
        {"0", "1Gi", "1Gi", "-1Gi"},
        {"1Gi", "0", "1Gi", "1Gi"},
        {"1Gi", "1M", "1074741824", "1072741824"},
        {"1M", "1Gi", "1074741824", "-1072741824"},
        {"1e3", "1k", "2e3", "0"},
        {"1500m", "1.5", "3", "0"},
        {"512Mi", "512Mi", "1Gi", "0"},
        {"-1", "1n", "-999999999n", "-1000000001n"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++) {
        struct quantity left = of(facts[i].a), right = of(facts[i].b);
        assert_str(quantity_format(a, quantity_add(left, right)), facts[i].sum);
        assert_str(quantity_format(a, quantity_sub(left, right)), facts[i].difference);
    }
    assert_str(quantity_format(a, quantity_from_i64(INT64_MIN, D)), "-9223372036854775808");
    assert_str(quantity_format(a, quantity_from_i64(4096, B)), "4Ki");
    arena_free(a);
}

static void compares(void **state)
{
    (void)state;
    assert_int_equal(quantity_cmp(of("1Gi"), of("1024Mi")), 0);
    assert_int_equal(quantity_cmp(of("1Gi"), of("1G")), 1);
    assert_int_equal(quantity_cmp(of("-1"), of("1n")), -1);
    assert_true(quantity_is_integer(of("1000m")));
    assert_false(quantity_is_integer(of("1001m")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_upstream),
        cmocka_unit_test(refuses),
        cmocka_unit_test(keeps_values_beyond_exa),
        cmocka_unit_test(saturates),
        cmocka_unit_test(adds),
        cmocka_unit_test(compares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
