/* SPDX-License-Identifier: Apache-2.0 */
/* What a scrape says of now: capacity is what is held, idle and unhealthy; series are bounded. */
#include "world.h"

#include "serve/metrics.h"

static struct str scrape(struct world *w, int64_t now_us)
{
    struct fleet_records held;
    struct fleet_now now = {.leader = true,
                            .now_us = now_us,
                            .seen_us = ledger_seen_us(w->ledger),
                            .unobserved_us = observer_unobserved_us(w->observer),
                            .held = &held};
    struct buf out = BUF_INIT(0);
    struct str copy;

    observer_snapshot(w->observer, w->a, &held);
    assert_int_equal(fleet_metrics(w->a, &out, &now, &w->err), 0);
    copy = arena_str(w->a, buf_str(&out));
    buf_fini(&out);
    return copy;
}

static void has(struct str all, const char *line)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (!str_contains(all, str_c(whole)))
        fail_msg("\"%s\" is not in:\n%.*s", line, STR_F(all));
}

static void node(struct world *w, const char *name, bool ready, int64_t at)
{
    assert_int_equal(observer_node(w->observer, world_node(w, name, 8, 7, ready, at), at, &w->err),
                     0);
}

static void pod(struct world *w, const char *uid, const char *on, int gpus, int64_t end)
{
    assert_int_equal(
        observer_pod(w->observer, world_pod(w, uid, on, gpus, BEGIN, end), BEGIN, &w->err), 0);
}

static void a_pool_without_nodes_is_zero(void **state)
{
    struct world *w = *state;
    struct str all = scrape(w, BEGIN + 7 * SECOND / 2);

    has(all, "sublet_fleet_capacity_gpus{pool=\"a100\"} 0");
    has(all, "sublet_fleet_idle_gpus{pool=\"a100\"} 0");
    has(all, "sublet_fleet_leader 1");
    has(all, "sublet_fleet_unseen_seconds 3.5");
    has(all, "sublet_fleet_unobserved_seconds_total 0");
    assert_false(str_contains(all, STR("tenant=")));
}

static void counts_what_is_held_now(void **state)
{
    struct world *w = *state;
    struct str all;

    node(w, "n1", true, BEGIN);
    node(w, "n2", true, BEGIN);
    pod(w, "u1", "n1", 3, 0);
    pod(w, "u2", "n1", 2, 0);
    pod(w, "u3", "n2", 1, 0);
    pod(w, "u4", "n2", 1, BEGIN + SECOND); /* it has ended */
    all = scrape(w, BEGIN);
    has(all, "sublet_fleet_capacity_gpus{pool=\"a100\"} 16");
    has(all, "sublet_fleet_held_gpus{pool=\"a100\",tenant=\"team-a\"} 6");
    has(all, "sublet_fleet_pods{pool=\"a100\",tenant=\"team-a\"} 3");
    has(all, "sublet_fleet_idle_gpus{pool=\"a100\"} 8");
    has(all, "sublet_fleet_unhealthy_gpus{pool=\"a100\"} 2");
    has(all, "sublet_fleet_unmatched_gpus{pool=\"a100\"} 0");
    has(all, "sublet_fleet_series_not_shown 0");

    /* What is not billed is not held. */
    node(w, "n1", false, BEGIN + SECOND);
    all = scrape(w, BEGIN);
    has(all, "sublet_fleet_held_gpus{pool=\"a100\",tenant=\"team-a\"} 1");
    has(all, "sublet_fleet_unhealthy_gpus{pool=\"a100\"} 9");
    assert_int_equal(observer_node_gone(w->observer, STR("n1"), BEGIN + 2 * SECOND, &w->err), 0);
    all = scrape(w, BEGIN);
    has(all, "sublet_fleet_capacity_gpus{pool=\"a100\"} 8");
    has(all, "sublet_fleet_held_gpus{pool=\"a100\",tenant=\"team-a\"} 1");
    assert_int_equal(observer_pod_gone(w->observer, STR("u3"), true, BEGIN + 3 * SECOND, &w->err),
                     0);
    assert_false(str_contains(scrape(w, BEGIN), STR("tenant=")));
}

static void a_restart_knows_what_is_held(void **state)
{
    struct world *w = *state;
    struct str all;

    node(w, "n1", true, BEGIN);
    pod(w, "u1", "n1", 3, 0);
    assert_int_equal(observer_seen(w->observer, BEGIN + SECOND, &w->err), 0);
    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    world_kill(w);
    world_start(w, BEGIN + 61 * SECOND);
    assert_int_equal(observer_seen(w->observer, BEGIN + 61 * SECOND, &w->err), 0);
    all = scrape(w, BEGIN + 61 * SECOND);
    has(all, "sublet_fleet_held_gpus{pool=\"a100\",tenant=\"team-a\"} 3");
    has(all, "sublet_fleet_unobserved_seconds_total 60");
    has(all, "sublet_fleet_unseen_seconds 0");
}

static void series_are_bounded(void **state)
{
    struct world *w = *state;
    struct fleet_records r = {.seen_us = 1, .n_holds = 10003};
    struct fleet_now now = {.held = &r};
    struct buf out = BUF_INIT(0);
    size_t lines = 0;

    r.holds = arena_alloc(w->a, r.n_holds * sizeof(*r.holds));
    for (size_t i = 0; i < r.n_holds; i++)
        r.holds[i] = (struct fleet_hold){.tenant = arena_printf(w->a, "t\"\\%zu", i),
                                         .pool = STR("a100"),
                                         .gpu_eq = {1, 7},
                                         .end_us = FLEET_OPEN};
    assert_int_equal(fleet_metrics(w->a, &out, &now, &w->err), 0);
    has(buf_str(&out), "sublet_fleet_series_not_shown 3");
    has(buf_str(&out), "sublet_fleet_held_gpus{pool=\"a100\",tenant=\"t\\\"\\\\0\"} 0.142857143");
    for (struct str rest = buf_str(&out); rest.p;)
        lines += str_has_prefix(str_cut(&rest, '\n'), STR("sublet_fleet_held_gpus{"));
    assert_int_equal(lines, 10000);
    buf_fini(&out);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup_started, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_pool_without_nodes_is_zero),
        TEST(counts_what_is_held_now),
        TEST(a_restart_knows_what_is_held),
        TEST(series_are_bounded),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
