/* SPDX-License-Identifier: Apache-2.0 */
/* Jain's index of hand-made shares, and metrics without a series of a pool that is none. */
#include "test.h"

#include "grants/fairness.h"
#include "grants/grant_write.h"

static struct grants_row row(const char *tenant, int64_t grant, int64_t wants, int64_t placed)
{
    return (struct grants_row){.tenant = str_c(tenant),
                               .pool = STR("a100"),
                               .state = GRANT_REASONS[SHARE_READY],
                               .counts = true,
                               .guarantee = {4, 1},
                               .grant = {grant, 1},
                               .wants = {wants, 1},
                               .placed = {placed, 1}};
}

static double index_of(const struct grants_row *rows, size_t n)
{
    const struct grants_view v = {.rows = rows, .n_rows = n};

    return fleet_fairness_index(&v, STR("a100"));
}

static bool is_near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

static void test_index(void **state)
{
    const struct grants_row even[] = {row("a", 8, 8, 4), row("b", 2, 8, 1)};
    const struct grants_row one[] = {row("a", 4, 4, 4), row("b", 4, 4, 0), row("c", 4, 4, 0)};
    /* Who wants nothing is none; who wants little has all of it; who has more has no more;
     * of one that says nothing the grant counts. */
    const struct grants_row asked[] = {row("a", 4, 0, 0), row("b", 4, 1, 1), row("c", 4, 8, 6),
                                       row("d", 4, -1, 4)};
    const struct grants_row uneven[] = {row("a", 4, 4, 4), row("b", 4, 4, 2)};

    (void)state;
    assert_true(is_near(index_of(even, COUNT(even)), 1));
    assert_true(is_near(index_of(one, COUNT(one)), 1.0 / 3));
    assert_true(is_near(index_of(asked, COUNT(asked)), 1));
    assert_true(is_near(index_of(uneven, COUNT(uneven)), 1.5 * 1.5 / (2 * 1.25)));
    assert_true(is_near(index_of(NULL, 0), 1));
}

static void test_metrics(void **state)
{
    struct grants_row rows[] = {row("a", 4, 4, 4), row("b", 4, -1, 0), row("c", 0, 0, 0)};
    const struct grants_pool pool = {.name = STR("a100")};
    const struct grants_view v = {.rows = rows, .n_rows = 3, .pools = &pool, .n_pools = 1};
    static const char *const want[] = {
        "sublet_fleet_guaranteed_gpus{pool=\"a100\",tenant=\"b\"} 4\n",
        "sublet_fleet_wanted_gpus{pool=\"a100\",tenant=\"a\"} 4\n",
        "sublet_fleet_fairness_index{pool=\"a100\"} 0.5\n",
        "sublet_fleet_bindings{pool=\"a100\",state=\"Granted\"} 2\n",
        "sublet_fleet_bindings{pool=\"\",state=\"PoolNotFound\"} 1\n",
        "sublet_fleet_bindings{pool=\"\",state=\"Granted\"} 0\n"};
    struct buf out = BUF_INIT(0);

    (void)state;
    rows[2].pool = STR("nowhere");
    rows[2].state = GRANT_REASONS[SHARE_POOL_NOT_FOUND];
    rows[2].counts = false;
    fleet_fairness_metrics(&out, &v);
    for (size_t i = 0; i < COUNT(want); i++)
        if (!str_contains(buf_str(&out), str_c(want[i])))
            fail_msg("%s is not in\n%.*s", want[i], STR_F(buf_str(&out)));
    assert_false(str_contains(buf_str(&out), STR("nowhere")));
    assert_false(str_contains(buf_str(&out), STR("wanted_gpus{pool=\"a100\",tenant=\"b\"}")));
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_metrics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
