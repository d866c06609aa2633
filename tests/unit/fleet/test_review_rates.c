/* SPDX-License-Identifier: Apache-2.0 */
/* No namespace makes the host review without limit, and strangers' tokens do not keep the process
 * of a tenant from being reviewed. */
#include "test.h"

#include "review_rates.h"

static unsigned taken(struct fleet_review_rates *r, struct str ns, const char *token,
                      int64_t until_ms)
{
    unsigned n = 0;

    for (int64_t now = 0; now < until_ms; now += 10)
        n += fleet_review_rates_take(r, ns, str_c(token), now) != REVIEW_NOT_NOW;
    return n;
}

static void test_bounded_for_each(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    unsigned n = taken(r, STR("a"), "t", 60000);

    (void)state;
    assert_in_range(n, 30, 34); /* 100 requests a second: one in 2 s, and 4 at once */
    assert_int_equal(fleet_review_rates_take(r, STR("b"), STR("t"), 60000), REVIEW_OF_UNKNOWN);
    fleet_review_rates_free(r);
}

static void test_bounded_for_all(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct arena *a = arena_new(0);
    unsigned n = 0;

    (void)state;
    for (size_t i = 0; i < 50000; i++) /* more names than are kept, all at one moment */
        n +=
            fleet_review_rates_take(r, arena_printf(a, "ns-%zu", i), STR("t"), 1) != REVIEW_NOT_NOW;
    assert_int_equal(n, 40);
    arena_free(a);
    fleet_review_rates_free(r);
}

static void test_a_known_token_has_its_own(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct str ns = STR("a"), own = STR("own");

    (void)state;
    assert_int_equal(fleet_review_rates_take(r, ns, own, 0), REVIEW_OF_UNKNOWN);
    fleet_review_rates_note(r, ns, own, true);
    taken(r, ns, "stranger", 10010);
    assert_int_equal(fleet_review_rates_take(r, ns, STR("stranger"), 10000), REVIEW_NOT_NOW);
    assert_int_equal(fleet_review_rates_take(r, ns, own, 10000), REVIEW_OF_KNOWN);
    /* A stranger's refusal leaves it; its own does not. It is bounded, too. */
    fleet_review_rates_note(r, ns, STR("stranger"), false);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fleet_review_rates_take(r, ns, own, 10000), REVIEW_OF_KNOWN);
    assert_int_equal(fleet_review_rates_take(r, ns, own, 10000), REVIEW_NOT_NOW);
    fleet_review_rates_note(r, ns, own, false);
    assert_int_equal(fleet_review_rates_take(r, ns, own, 30000), REVIEW_OF_UNKNOWN);
    fleet_review_rates_note(r, STR("never-seen"), own, true);
    fleet_review_rates_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounded_for_each),
        cmocka_unit_test(test_bounded_for_all),
        cmocka_unit_test(test_a_known_token_has_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
