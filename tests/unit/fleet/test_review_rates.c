/* SPDX-License-Identifier: Apache-2.0 */
/* No namespace makes the host review without limit, and strangers' tokens do not keep the process
 * of a tenant from being reviewed. */
#include "test.h"

#include "serve/review_rates.h"

#define HERE     STR("10.0.0.1:1234")
#define STRANGER STR("10.0.0.9:5678")

static unsigned taken(struct fleet_review_rates *r, struct str ns, const char *token,
                      struct str peer, int64_t until_ms)
{
    unsigned n = 0;

    for (int64_t now = 0; now < until_ms; now += 10)
        n += fleet_review_rates_take(r, ns, str_c(token), peer, now) != REVIEW_NOT_NOW;
    return n;
}

static void test_bounded_for_each(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    unsigned n = taken(r, STR("a"), "t", HERE, 60000);

    (void)state;
    assert_in_range(n, 126, 128); /* 100 requests a second: two, and 8 at once */
    assert_int_equal(fleet_review_rates_take(r, STR("b"), STR("t"), HERE, 59990), REVIEW_NOT_NOW);
    assert_int_equal(fleet_review_rates_take(r, STR("a"), STR("t"), STR("10.0.0.2:1"), 59990),
                     REVIEW_OF_UNKNOWN);
    fleet_review_rates_free(r);
}

/* From many addresses for one namespace: 4 a second, and 16 at once. */
static void test_a_namespace_is_bounded(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct arena *a = arena_new(0);
    unsigned n = 0;

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        n += fleet_review_rates_take(r, STR("a"), STR("t"),
                                     arena_printf(a, "10.0.%zu.%zu:1", i / 250, i % 250),
                                     (int64_t)i * 10) != REVIEW_NOT_NOW;
    assert_in_range(n, 54, 56);
    arena_free(a);
    fleet_review_rates_free(r);
}

static void test_bounded_for_all(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct arena *a = arena_new(0);
    unsigned n = 0;

    (void)state;
    for (size_t i = 0; i < 50000; i++) /* more names and addresses than are kept, at one moment */
        n += fleet_review_rates_take(r, arena_printf(a, "ns-%zu", i), STR("t"),
                                     arena_printf(a, "10.%zu.%zu.1:1", i / 250, i % 250),
                                     1) != REVIEW_NOT_NOW;
    assert_int_equal(n, 40);
    arena_free(a);
    fleet_review_rates_free(r);
}

static void test_a_known_token_has_its_own(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct str ns = STR("a"), own = STR("own");

    (void)state;
    assert_int_equal(fleet_review_rates_take(r, ns, own, HERE, 0), REVIEW_OF_UNKNOWN);
    fleet_review_rates_note(r, ns, own, HERE, true);
    taken(r, ns, "stranger", STRANGER, 10010);
    assert_int_equal(fleet_review_rates_take(r, ns, STR("stranger"), STRANGER, 10000),
                     REVIEW_NOT_NOW);
    assert_int_equal(fleet_review_rates_take(r, ns, own, HERE, 10000), REVIEW_OF_KNOWN);
    /* A stranger's refusal leaves it; its own does not. It is bounded, too, wherever it is from. */
    fleet_review_rates_note(r, ns, STR("stranger"), STRANGER, false);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fleet_review_rates_take(r, ns, own, STRANGER, 10000), REVIEW_OF_KNOWN);
    assert_int_equal(fleet_review_rates_take(r, ns, own, HERE, 10000), REVIEW_NOT_NOW);
    fleet_review_rates_note(r, ns, own, HERE, false);
    assert_int_equal(fleet_review_rates_take(r, ns, own, STR("10.0.0.3:1"), 30000),
                     REVIEW_OF_UNKNOWN);
    fleet_review_rates_free(r);
}

/* Strangers send as many tokens as they like when a process gets its next one. */
static void test_the_next_token_is_known_by_its_address(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct arena *a = arena_new(0);
    struct str ns = STR("a");

    (void)state;
    assert_int_equal(fleet_review_rates_take(r, ns, STR("first"), HERE, 0), REVIEW_OF_UNKNOWN);
    fleet_review_rates_note(r, ns, STR("first"), HERE, true);
    for (size_t i = 0; i < 60000; i++)
        fleet_review_rates_take(r, i % 2 ? ns : arena_printf(a, "ns-%zu", i), STR("stranger"),
                                arena_printf(a, "10.9.%zu.%zu:1", i / 250, i % 250), 5000);
    assert_int_equal(fleet_review_rates_take(r, ns, STR("next"), STR("10.0.0.8:1"), 5000),
                     REVIEW_NOT_NOW);
    assert_int_equal(fleet_review_rates_take(r, ns, STR("next"), STR("10.0.0.1:77"), 5000),
                     REVIEW_OF_KNOWN);
    for (size_t i = 0; i < 12; i++)
        fleet_review_rates_take(r, ns, STR("more"), HERE, 5000);
    assert_int_equal(fleet_review_rates_take(r, ns, STR("more"), HERE, 5000), REVIEW_NOT_NOW);
    arena_free(a);
    fleet_review_rates_free(r);
}

/* The host permitted it while names that strangers invented took its place. */
static void test_what_is_permitted_is_noted(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct arena *a = arena_new(0);
    struct str ns = STR("a");

    (void)state;
    assert_int_equal(fleet_review_rates_take(r, ns, STR("own"), HERE, 0), REVIEW_OF_UNKNOWN);
    for (size_t i = 0; i < 10001; i++)
        fleet_review_rates_take(r, arena_printf(a, "ns-%zu", i), STR("t"), STRANGER, 0);
    fleet_review_rates_note(r, ns, STR("own"), HERE, true);
    assert_int_equal(fleet_review_rates_take(r, ns, STR("own"), STRANGER, 0), REVIEW_OF_KNOWN);
    fleet_review_rates_note(r, STR("never-seen"), STR("t"), STRANGER, false);
    arena_free(a);
    fleet_review_rates_free(r);
}

/* Of IPv6 a machine has a network. */
static void test_networks_of_ipv6(void **state)
{
    struct fleet_review_rates *r = fleet_review_rates_new();
    struct arena *a = arena_new(0);
    unsigned n = 0;

    (void)state;
    for (size_t i = 0; i < 100; i++)
        n += fleet_review_rates_take(r, STR("a"), STR("t"),
                                     arena_printf(a, "[fd00:1:2:3::%zx]:1", i + 1),
                                     0) != REVIEW_NOT_NOW;
    assert_int_equal(n, 8);
    assert_int_equal(fleet_review_rates_take(r, STR("a"), STR("t"), STR("[fd00:1:2:4::1]:1"), 0),
                     REVIEW_OF_UNKNOWN);
    assert_int_equal(fleet_review_rates_take(r, STR("a"), STR("t"), STR("[::ffff:10.0.0.1]:1"), 0),
                     REVIEW_OF_UNKNOWN);
    arena_free(a);
    fleet_review_rates_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounded_for_each),
        cmocka_unit_test(test_bounded_for_all),
        cmocka_unit_test(test_a_known_token_has_its_own),
        cmocka_unit_test(test_a_namespace_is_bounded),
        cmocka_unit_test(test_the_next_token_is_known_by_its_address),
        cmocka_unit_test(test_what_is_permitted_is_noted),
        cmocka_unit_test(test_networks_of_ipv6),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
