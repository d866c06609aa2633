/* SPDX-License-Identifier: Apache-2.0 */
/* Times and durations against what Go 1.26 prints and reads for the same strings. Must never depend
 * on the machine's time zone. */

#include "test.h"

#include <sublet/clock.h>

static void formats_times(void **state)
{
    static const struct {
        int64_t us;
        const char *seconds, *micros;
    } facts[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {1, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z"},
        {951782400000000, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"},
        {951868799123456, "2000-02-29T23:59:59Z", "2000-02-29T23:59:59.123456Z"},
        {4107542400000000, "2100-03-01T00:00:00Z", "2100-03-01T00:00:00.000000Z"},
        {1735689599000000, "2024-12-31T23:59:59Z", "2024-12-31T23:59:59.000000Z"},
        {-62135596800000000, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
        {-62167219200000000, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z"},
        {253402300799999999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++) {
        int64_t seconds = facts[i].us / 1000000 - (facts[i].us % 1000000 < 0), back;
        assert_str(time_format_s(a, seconds), facts[i].seconds);
        assert_str(time_format_us(a, facts[i].us), facts[i].micros);
        assert_true(time_parse(str_c(facts[i].micros), &back));
        assert_int_equal(back, facts[i].us);
    }
    arena_free(a);
}

static void every_day_comes_back(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    for (int64_t day = -719528; day < 2932897; day += 97) { /* years 0 to 9999 */
        int64_t us;
        assert_true(time_parse(time_format_s(a, day * 86400 + 1), &us));
        assert_int_equal(us, (day * 86400 + 1) * 1000000);
        arena_reset(a);
    }
    arena_free(a);
}

static void parses_times(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } facts[] = {
        {"2024-02-29T12:34:56Z", 1709210096000000},
        {"2024-02-29T12:34:56.5Z", 1709210096500000},
        {"2024-02-29T12:34:56.1234567899Z", 1709210096123456},
        {"2024-02-29T12:34:56+00:00", 1709210096000000},
        {"2024-02-29T12:34:56-07:00", 1709235296000000},
        {"2024-02-29T12:34:56+05:30", 1709190296000000},
        {"2024-02-29T12:34:56+24:60", 1709120096000000},
    };
    static const char *const bad[] = {
        "",
        "2024-02-29",
        "2023-02-29T12:34:56Z",
        "1900-02-29T12:34:56Z",
        "2024-13-01T12:34:56Z",
        "2024-00-01T12:34:56Z",
        "2024-04-31T12:34:56Z",
        "2024-02-29T24:00:00Z",
        "2024-02-29T12:60:00Z",
        "2024-02-29T12:34:60Z",
        "2024-02-29T12:34:56",
        "2024-02-29T12:34:56.Z",
        "2024-02-29t12:34:56Z",
        "2024-02-29T12:34:56z",
        "2024-02-29T12:34:56Z ",
        " 2024-02-29T12:34:56Z",
        "2024-02-29T12:34:56+0100",
        "2024-02-29T12:34:56+25:00",
        "2024-02-29T12:34:56+01:61",
        "2024-02-29T12:34:56ZZ",
        "2024-2-29T12:34:56Z",
        "02024-02-29T12:34:56Z",
        "-024-02-29T12:34:56Z",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++) {
        int64_t us = 0;
        assert_true(time_parse(str_c(facts[i].text), &us));
        assert_int_equal(us, facts[i].us);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t us = 42;
        assert_false(time_parse(str_c(bad[i]), &us));
        assert_int_equal(us, 42);
    }
    for (size_t n = 0; n < 25; n++) { /* no prefix of a time is one */
        int64_t us;
        assert_false(time_parse(str_sub(STR("2024-02-29T12:34:56-07:00"), 0, n), &us));
    }
}

static void parses_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } facts[] = {
        {"0", 0},
        {"-0", 0},
        {"0s", 0},
        {"5s", 5000000000},
        {"300ms", 300000000},
        {"1h2m3.5s", 3723500000000},
        {"-1.5h", -5400000000000},
        {"+1m", 60000000000},
        {".5s", 500000000},
        {"1.s", 1000000000},
        {"1\xc2\xb5s", 1000},
        {"1\xce\xbcs", 1000},
        {"1us1ns", 1001},
        {"0.3333333333333333333h", 1200000000000},
        {"9223372036854775807ns", INT64_MAX},
        {"-9223372036854775808ns", INT64_MIN},
        {"2562047h47m16.854775807s", INT64_MAX},
    };
    static const char *const bad[] = {
        "",
        "-",
        "+",
        "3",
        ".",
        ".s",
        "1x",
        "1d",
        "s",
        "1 s",
        "1s ",
        "1e3s",
        "--1s",
        "9223372036854775808ns",
        "1ss",
        "1s1",
        "1s-",
        "-1s-1s",
        "99999999999999999999s",
        "2562047h47m16.854775808s",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++) {
        int64_t ns = 42;
        assert_true(duration_parse(str_c(facts[i].text), &ns));
        assert_int_equal(ns, facts[i].ns);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t ns = 42;
        assert_false(duration_parse(str_c(bad[i]), &ns));
        assert_int_equal(ns, 42);
    }
}

static void prints_ages(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } facts[] = {
        {-2, "<invalid>"},     {-1, "0s"},        {0, "0s"},
        {119, "119s"},         {120, "2m"},       {121, "2m1s"},
        {599, "9m59s"},        {600, "10m"},      {10799, "179m"},
        {10800, "3h"},         {10860, "3h1m"},   {28799, "7h59m"},
        {28800, "8h"},         {172799, "47h"},   {172800, "2d"},
        {176400, "2d1h"},      {691199, "7d23h"}, {691200, "8d"},
        {63071999, "729d"},    {63072000, "2y"},  {63158400, "2y1d"},
        {252287999, "7y364d"}, {252288000, "8y"}, {INT64_MAX, "292471208677y"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++)
        assert_str(duration_human(a, facts[i].seconds), facts[i].text);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_times), cmocka_unit_test(every_day_comes_back),
        cmocka_unit_test(parses_times),  cmocka_unit_test(parses_durations),
        cmocka_unit_test(prints_ages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
