/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and randomness: the system's move and differ, a test's own is used for everything. Must
 * never assert how long anything takes. */

#include "test.h"

#include <sublet/clock.h>

static int64_t fixed_us(void *ctx)
{
    return *(int64_t *)ctx;
}

static int64_t fixed_ms(void *ctx)
{
    return *(int64_t *)ctx / 1000;
}

static void reads_the_given_clock(void **state)
{
    int64_t now = 1999999;
    struct clock c = {.wall_us = fixed_us, .mono_ms = fixed_ms, .ctx = &now};

    (void)state;
    assert_int_equal(clock_wall_us(&c), 1999999);
    assert_int_equal(clock_wall_s(&c), 1);
    assert_int_equal(clock_mono_ms(&c), 1999);
    now = -1;
    assert_int_equal(clock_wall_s(&c), -1);
    now = -1000000;
    assert_int_equal(clock_wall_s(&c), -1);
    now = -1000001;
    assert_int_equal(clock_wall_s(&c), -2);
}

static void system_clock_moves_forward(void **state)
{
    int64_t before = clock_mono_ms(&CLOCK_SYSTEM);

    (void)state;
    assert_true(clock_mono_ms(&CLOCK_SYSTEM) >= before);
    assert_true(clock_wall_s(&CLOCK_SYSTEM) > 1700000000);
}

/* Counts up from the byte in ctx. */
static void count(void *ctx, void *out, size_t n)
{
    unsigned char *next = ctx, *p = out;

    for (size_t i = 0; i < n; i++)
        p[i] = (*next)++;
}

static void draws_uuids(void **state)
{
    unsigned char next = 0;
    struct rng r = {.fill = count, .ctx = &next};
    char uuid[37], other[37];

    (void)state;
    rng_uuid(&r, uuid);
    assert_string_equal(uuid, "00010203-0405-4607-8809-0a0b0c0d0e0f");
    next = 0xf0;
    rng_uuid(&r, uuid);
    assert_string_equal(uuid, "f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff");
    rng_uuid(&RNG_SYSTEM, uuid);
    rng_uuid(&RNG_SYSTEM, other);
    assert_string_not_equal(uuid, other);
}

static void draws_suffixes(void **state)
{
    unsigned char next =
        243; /* 243 to 255 would make the first letters likelier: they are skipped */
    struct rng r = {.fill = count, .ctx = &next};
    unsigned seen[128] = {0};
    char text[2701];

    (void)state;
    rng_suffix(&r, text, 5);
    assert_int_equal(strlen(text), 5);

    next = 0;
    rng_suffix(&r, text, 2700);
    for (size_t i = 0; text[i]; i++) {
        assert_non_null(strchr("bcdfghjklmnpqrstvwxz2456789", text[i]));
        seen[(unsigned char)text[i]]++;
    }
    assert_true(seen['b'] >= 90 && seen['b'] <= 110);
    assert_true(seen['9'] >= 90 && seen['9'] <= 110);

    memset(text, 'x', sizeof(text));
    rng_suffix(&RNG_SYSTEM, text, 0);
    assert_string_equal(text, "");
    assert_true(rng_u64(&RNG_SYSTEM) != rng_u64(&RNG_SYSTEM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_given_clock),
        cmocka_unit_test(system_clock_moves_forward),
        cmocka_unit_test(draws_uuids),
        cmocka_unit_test(draws_suffixes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
