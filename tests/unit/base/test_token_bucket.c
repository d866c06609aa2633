/* SPDX-License-Identifier: Apache-2.0 */
/* A rate is kept to the token, over any time and in any steps of the clock. */
#include "test.h"

#include <sublet/token_bucket.h>

static size_t take_all(struct token_bucket *b, const struct token_rate *rate, int64_t now)
{
    size_t n = 0;

    while (token_bucket_take(b, rate, now))
        n++;
    return n;
}

static void a_zeroed_one_is_full(void **state)
{
    const struct token_rate rate = {5, 2, 1000};
    struct token_bucket b = {0}, early = {0};

    (void)state;
    assert_true(token_bucket_has(&b, &rate, 7, 5));
    assert_false(token_bucket_has(&b, &rate, 7, 6));
    assert_int_equal(take_all(&b, &rate, 7), 5);
    assert_int_equal(take_all(&early, &rate, -5000), 5);
}

/* 7 in 1,000 ms, looked at every millisecond, every 3 and every 999: what was taken is what was
 * earned, rounded down once. */
static void no_token_is_lost_or_invented(void **state)
{
    static const int64_t steps[] = {1, 3, 142, 143, 999, 1000};
    const struct token_rate rate = {100, 7, 1000};

    (void)state;
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct token_bucket b = {0};
        int64_t taken = (int64_t)take_all(&b, &rate, 50) - 100, now = 50;

        while (now < 500050) {
            now += steps[i];
            taken += (int64_t)take_all(&b, &rate, now);
            assert_int_equal(taken, (now - 50) * 7 / 1000);
        }
    }
}

static void it_holds_no_more_than_its_burst(void **state)
{
    const struct token_rate rate = {3, 1, 10};
    struct token_bucket b = {0};

    (void)state;
    assert_int_equal(take_all(&b, &rate, 0), 3);
    assert_int_equal(take_all(&b, &rate, 25), 2);
    assert_int_equal(take_all(&b, &rate, 29), 0);
    assert_int_equal(take_all(&b, &rate, 30), 1);
    assert_int_equal(take_all(&b, &rate, 1000), 3);
    assert_int_equal(take_all(&b, &rate, 1009), 0);
    assert_int_equal(take_all(&b, &rate, INT64_MAX), 3);
}

/* Neither tokens for nothing nor a wait until the clock is where it was. */
static void a_clock_that_steps_back_is_harmless(void **state)
{
    const struct token_rate rate = {3, 1, 10};
    struct token_bucket b = {0};

    (void)state;
    assert_int_equal(take_all(&b, &rate, 1000000), 3);
    assert_int_equal(take_all(&b, &rate, 500), 0);
    assert_int_equal(take_all(&b, &rate, 509), 0);
    assert_int_equal(take_all(&b, &rate, 510), 1);
    assert_int_equal(take_all(&b, &rate, INT64_MIN), 0);
    assert_int_equal(take_all(&b, &rate, INT64_MIN + 10), 1);
    assert_int_equal(take_all(&b, &rate, INT64_MAX), 3);
}

static void it_says_when(void **state)
{
    const struct token_rate rate = {4, 3, 1000};
    struct token_bucket b = {0};

    (void)state;
    assert_int_equal(token_bucket_when(&b, &rate, 100, 4), 100);
    assert_true(token_bucket_when(&b, &rate, 100, 5) == INT64_MAX);
    assert_int_equal(take_all(&b, &rate, 100), 4);
    assert_int_equal(token_bucket_when(&b, &rate, 100, 1), 434);
    assert_int_equal(token_bucket_when(&b, &rate, 100, 3), 1100);
    assert_int_equal(token_bucket_when(&b, &rate, 433, 1), 434);
    assert_false(token_bucket_take(&b, &rate, 433));
    assert_true(token_bucket_take(&b, &rate, 434));
    assert_true(token_bucket_when(&b, &rate, INT64_MAX, 1) == INT64_MAX);
}

/* Another rate from one call to the next: what lacks is never more than a bucket. */
static void the_rate_may_change(void **state)
{
    struct token_rate rate = {1000, 1, 1000};
    struct token_bucket b = {0};

    (void)state;
    assert_int_equal(take_all(&b, &rate, 0), 1000);
    rate = (struct token_rate){2, 10, 1000};
    assert_int_equal(take_all(&b, &rate, 0), 0);
    assert_int_equal(take_all(&b, &rate, 100), 1);
    assert_int_equal(take_all(&b, &rate, 10000), 2);
}

static void extremes_are_harmless(void **state)
{
    const struct token_rate fast = {1, INT64_MAX, 1}, slow = {1, 1, INT64_MAX};
    const struct token_rate huge = {INT64_MAX, INT64_MAX, 1000};
    struct token_bucket b = {0}, c = {0}, d = {0};

    (void)state;
    assert_int_equal(take_all(&b, &fast, 0), 1);
    assert_int_equal(take_all(&b, &fast, 1), 1);
    assert_int_equal(take_all(&b, &fast, INT64_MAX), 1);
    assert_int_equal(take_all(&c, &slow, 0), 1);
    assert_int_equal(take_all(&c, &slow, INT64_MAX - 1), 0);
    assert_int_equal(take_all(&c, &slow, INT64_MAX), 1);
    assert_true(token_bucket_take(&d, &huge, 0));
    assert_true(token_bucket_has(&d, &huge, 1, INT64_MAX / 1000));
    assert_false(token_bucket_has(&d, &huge, 1, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_one_is_full),
        cmocka_unit_test(no_token_is_lost_or_invented),
        cmocka_unit_test(it_holds_no_more_than_its_burst),
        cmocka_unit_test(a_clock_that_steps_back_is_harmless),
        cmocka_unit_test(it_says_when),
        cmocka_unit_test(the_rate_may_change),
        cmocka_unit_test(extremes_are_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
