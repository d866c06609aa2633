/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that is set to another month counts once it has stayed there; time that passes always. */
#include "test.h"

#include "usage/month_clock.h"

#define MINUTE    INT64_C(60000)
#define DAY       (24 * 60 * MINUTE)
#define SEPTEMBER INT64_C(1789000000000)
#define OCTOBER   INT64_C(1790812800000)

static void a_month_begins_by_time_that_passes(void **state)
{
    struct month_clock c = {0};
    int64_t mono = 5;

    (void)state;
    for (int64_t wall = OCTOBER - DAY; wall < OCTOBER + DAY; wall += MINUTE, mono += MINUTE)
        assert_int_equal(fleet_month_clock(&c, wall, mono), wall / 1000);
    /* also of a process that did not look for long, and of a clock that is some minutes off */
    assert_int_equal(fleet_month_clock(&c, OCTOBER + 40 * DAY, mono + 39 * DAY),
                     (OCTOBER + 40 * DAY) / 1000);
}

static void one_that_is_set_and_set_back_changes_nothing(void **state)
{
    struct month_clock c = {0};
    int64_t mono = 5;

    (void)state;
    assert_int_equal(fleet_month_clock(&c, SEPTEMBER, mono), SEPTEMBER / 1000);
    for (int64_t t = 0; t < MONTH_CLOCK_SETTLES_MS; t += MINUTE)
        assert_int_equal(fleet_month_clock(&c, OCTOBER + 5 * DAY + t, mono + t),
                         (SEPTEMBER + t) / 1000);
    mono += MONTH_CLOCK_SETTLES_MS;
    assert_int_equal(fleet_month_clock(&c, SEPTEMBER + MONTH_CLOCK_SETTLES_MS, mono),
                     (SEPTEMBER + MONTH_CLOCK_SETTLES_MS) / 1000);
    /* the next one begins to count anew */
    assert_int_equal(fleet_month_clock(&c, OCTOBER, mono + MINUTE),
                     (SEPTEMBER + MONTH_CLOCK_SETTLES_MS + MINUTE) / 1000);
}

static void one_that_stays_counts(void **state)
{
    struct month_clock c = {0};

    (void)state;
    fleet_month_clock(&c, OCTOBER + 3 * DAY, 5); /* a process that starts with a wrong one */
    assert_int_equal(fleet_month_clock(&c, SEPTEMBER, 5), (OCTOBER + 3 * DAY) / 1000);
    assert_int_equal(fleet_month_clock(&c, OCTOBER + 60 * DAY, 5 + 9 * MINUTE),
                     (OCTOBER + 3 * DAY + 9 * MINUTE) / 1000); /* yet another one */
    assert_int_equal(fleet_month_clock(&c, OCTOBER + 60 * DAY + 9 * MINUTE, 5 + 18 * MINUTE),
                     (OCTOBER + 3 * DAY + 18 * MINUTE) / 1000);
    assert_int_equal(fleet_month_clock(&c, OCTOBER + 60 * DAY + 10 * MINUTE, 5 + 19 * MINUTE),
                     (OCTOBER + 60 * DAY + 10 * MINUTE) / 1000);
}

static void within_a_month_each_one_counts(void **state)
{
    struct month_clock c = {0};

    (void)state;
    fleet_month_clock(&c, OCTOBER + DAY, 5);
    assert_int_equal(fleet_month_clock(&c, OCTOBER + 20 * DAY, 6), (OCTOBER + 20 * DAY) / 1000);
    assert_int_equal(fleet_month_clock(&c, OCTOBER + 2 * DAY, 7), (OCTOBER + 2 * DAY) / 1000);
    assert_true(fleet_is_one_month(OCTOBER / 1000, OCTOBER / 1000 + 86400));
    assert_false(fleet_is_one_month(OCTOBER / 1000 - 1, OCTOBER / 1000));
    assert_false(fleet_is_one_month(OCTOBER / 1000, OCTOBER / 1000 + 365 * 86400)); /* of a year */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_month_begins_by_time_that_passes),
        cmocka_unit_test(one_that_is_set_and_set_back_changes_nothing),
        cmocka_unit_test(one_that_stays_counts),
        cmocka_unit_test(within_a_month_each_one_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
