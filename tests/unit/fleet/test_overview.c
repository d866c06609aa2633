/* SPDX-License-Identifier: Apache-2.0 */
/* The page's data: pools that are metered and pools that are granted only, bindings, faults, the
 * month to date; rows are bounded, and a name stays a name. */
#include "world.h"

#include <sublet/fleet_report.h>
#include <uv.h>

#include "usage/month.h"
#include "serve/overview.h"

/* The state as a tree, with what the world's observer sees unless held is given. */
static cJSON *state_of(struct world *w, struct overview o, const struct fleet_records *held)
{
    struct fleet_records own;
    struct fleet_now now = {.leader = true, .held = held ? held : &own};
    struct buf out = BUF_INIT(0);
    cJSON *tree;

    observer_snapshot(w->observer, w->a, &own);
    o.now = &now;
    assert_int_equal(fleet_overview_write(w->a, &out, &o, &w->err), 0);
    assert_int_equal(str_find(buf_str(&out), '\n'), out.n); /* one line: an event's data */
    tree = world_parse(w, arena_str(w->a, buf_str(&out)));
    buf_fini(&out);
    return tree;
}

static void says(const cJSON *state, const char *path, size_t row, const char *key,
                 const char *value)
{
    struct str got = json_str(json_get(json_at(json_path(state, path), row), key));

    if (!str_eqc(got, value))
        fail_msg("%s[%zu].%s is \"%.*s\", not \"%s\"", path, row, key, STR_F(got), value);
}

static void pools_holders_and_faults(void **state)
{
    struct world *w = *state;
    cJSON *s;

    assert_int_equal(
        observer_node(w->observer, world_node(w, "n1", 8, 7, true, BEGIN), BEGIN, &w->err), 0);
    assert_int_equal(
        observer_node(w->observer, world_node(w, "n2", 8, 8, false, BEGIN), BEGIN, &w->err), 0);
    assert_int_equal(
        observer_pod(w->observer, world_pod(w, "u1", "n1", 3, BEGIN, 0), BEGIN, &w->err), 0);
    s = state_of(w, (struct overview){0}, NULL);
    assert_int_equal(json_count(json_get(s, "pools")), 1);
    says(s, "pools", 0, "name", "a100");
    says(s, "pools", 0, "capacity", "16.000");
    says(s, "pools", 0, "held", "3.000");
    says(s, "pools", 0, "idle", "4.000");
    says(s, "pools", 0, "unhealthy", "9.000");
    assert_int_equal(json_count(json_get(s, "holders")), 1);
    says(s, "holders", 0, "tenant", "team-a");
    says(s, "holders", 0, "held", "3.000");
    assert_int_equal(json_count(json_get(s, "faults")), 2);
    for (size_t i = 0; i < 2; i++) {
        bool first = str_eqc(json_str_at(json_at(json_get(s, "faults"), i), "node"), "n1");

        says(s, "faults", i, "unhealthy", first ? "1.000" : "8.000");
        assert_int_equal(json_true(json_get(json_at(json_get(s, "faults"), i), "ready")), first);
    }
    assert_int_equal(json_i64_at(s, "notShown", -1), 0);
    assert_int_equal(json_count(json_get(s, "month")), 0); /* not known yet */
}

/* Who does not use what it holds; without telemetry there is no member of it. */
static void hoarders(void **state)
{
    struct world *w = *state;
    const struct activity_idle idle[] = {{.name = STR("train"),
                                          .tenant = STR("team-a"),
                                          .node = STR("n1"),
                                          .pool = STR("a100"),
                                          .gpu_eq = {2, 7},
                                          .state = ACTIVITY_WARM,
                                          .idle_ms = 1}};
    const struct activity_view view = {.idle = idle, .n_idle = 1, .n_not_shown = 3};
    cJSON *s = state_of(w, (struct overview){.activity = &view}, NULL);

    says(s, "hoarders", 0, "tenant", "team-a");
    says(s, "hoarders", 0, "pod", "train");
    says(s, "hoarders", 0, "pool", "a100");
    says(s, "hoarders", 0, "node", "n1");
    says(s, "hoarders", 0, "state", "warm");
    says(s, "hoarders", 0, "since", "1970-01-01T00:00:00Z");
    assert_str(json_text(w->a, json_get(s, "notShown")), "3");
    assert_null(json_get(state_of(w, (struct overview){0}, NULL), "hoarders"));
}

static void nodes_and_misuse(void **state)
{
    struct world *w = *state;
    const struct fleet_watch_node nodes[] = {
        {.node = STR("n<1>"),
         .pool = STR("a100"),
         .states = 1u << FLEET_WATCH_UNHEALTHY | 1u << FLEET_WATCH_UNTAINTED,
         .conditions = STR("XIDError")},
        {.node = STR("n2"), .states = 1u << FLEET_WATCH_UNMATCHED},
    };
    const struct fleet_watch_misuse misuse[] = {
        {STR("a100"), STR("team-a"), 3, 2250, INT64_C(3) << 20}};
    const struct fleet_watch_view view = {
        .nodes = nodes, .misuse = misuse, .n_nodes = 2, .n_misuse = 1, .n_not_shown = 7};
    cJSON *s = state_of(w, (struct overview){.watched = &view}, NULL);

    says(s, "nodes", 0, "node", "n<1>");
    says(s, "nodes", 0, "conditions", "XIDError");
    assert_str(json_text(w->a, json_get(json_at(json_get(s, "nodes"), 0), "states")),
               "[\"unhealthy\",\"untainted\"]");
    assert_null(json_get(json_at(json_get(s, "nodes"), 1), "pool"));
    assert_str(json_text(w->a, json_get(s, "misuse")),
               "[{\"tenant\":\"team-a\",\"pool\":\"a100\",\"pods\":3,\"cpuMilli\":2250,"
               "\"memoryMiB\":3}]");
    assert_int_equal(json_i64_at(s, "notShown", -1), 7);
}

static void bindings_and_pools_that_are_granted_only(void **state)
{
    struct world *w = *state;
    const struct grants_row rows[] = {
        {.tenant = STR("team-a"),
         .pool = STR("l4"),
         .state = "Granted",
         .guarantee = {2, 1},
         .burst = {4, 1},
         .grant = {7, 3},
         .holds = {3, 1},
         .placed = {2, 1},
         .wants = {3, 1},
         .budget = {.is = true,
                    .currency = STR("USD"),
                    .amount = 1500000000,
                    .spent = 1201334512,
                    .forecast = 1800000000,
                    .percent = 80,
                    .enforcement = BUDGET_STOP}},
        {.tenant = STR("<script>"),
         .pool = STR("l4"),
         .state = "Overcommitted",
         .guarantee = RATIONAL_ZERO,
         .burst = {1, 1},
         .grant = RATIONAL_ZERO,
         .holds = RATIONAL_ZERO,
         .placed = RATIONAL_ZERO,
         .wants = {-1, 1},
         .reclaim_at = STR("2026-11-27T00:00:00Z")},
    };
    const struct grants_pool pools[] = {
        {STR("a100"), {8, 1}, {8, 1}, RATIONAL_ZERO, RATIONAL_ZERO, {5, 1}, {1, 2}},
        {STR("l4"),
         {8, 1},
         {6, 1},
         {56, 1},
         {2, 1},
         RATIONAL_ZERO,
         RATIONAL_ZERO,
         {0},
         "draining",
         STR("<b>firmware"),
         STR("2026-11-27T00:00:00Z"),
         true},
        {STR("gone"), {1, 1}, RATIONAL_ZERO, RATIONAL_ZERO, {1, 1}, RATIONAL_ZERO, RATIONAL_ZERO},
    };
    const struct overview o = {
        .grants = {rows, pools, COUNT(rows), COUNT(pools), .n_not_shown = 7, .current = false}};
    cJSON *s = state_of(w, o, NULL);

    assert_int_equal(json_count(json_get(s, "pools")), 3); /* a100 is metered: once */
    says(s, "pools", 0, "capacity", "0.000");
    says(s, "pools", 0, "guaranteed", "5.000");
    says(s, "pools", 0, "borrowed", "0.500");
    says(s, "pools", 1, "name", "l4");
    says(s, "pools", 1, "capacity", "8.000");
    says(s, "pools", 1, "absent", "56.000"); /* declared, not unhealthy */
    says(s, "pools", 1, "idle", "4.000");
    says(s, "pools", 1, "unhealthy", "2.000");
    says(s, "pools", 1, "state", "draining");
    says(s, "pools", 1, "reason", "<b>firmware"); /* the page escapes it */
    says(s, "pools", 1, "until", "2026-11-27T00:00:00Z");
    assert_true(json_true(json_get(json_at(json_get(s, "pools"), 1), "overdue")));
    assert_null(json_get(json_at(json_get(s, "pools"), 0), "state")); /* as usual */
    assert_null(json_get(json_at(json_get(s, "pools"), 0), "overdue"));
    says(s, "pools", 2, "idle", "0.000");
    says(s, "pools", 2, "unhealthy", "1.000");
    says(s, "bindings", 0, "state", "Granted");
    says(s, "bindings", 1, "state", "Overcommitted");
    assert_str(json_text(w->a, json_get(json_at(json_get(s, "bindings"), 0), "budget")),
               "{\"amount\":\"1500.00\",\"currency\":\"USD\",\"spent\":\"1201.334512\","
               "\"percent\":80,\"forecast\":\"1800.00\",\"enforcement\":\"Stop\"}");
    assert_null(json_get(json_at(json_get(s, "bindings"), 1), "budget"));
    says(s, "bindings", 0, "grant", "2.333");
    says(s, "bindings", 0, "wants", "3.000");
    assert_null(json_get(json_at(json_get(s, "bindings"), 0), "reclaimAt"));
    says(s, "bindings", 1, "tenant", "<script>"); /* the page escapes it */
    says(s, "bindings", 1, "reclaimAt", "2026-11-27T00:00:00Z");
    assert_null(json_get(json_at(json_get(s, "bindings"), 1), "wants"));
    assert_int_equal(json_i64_at(s, "notShown", 0), 7);
    assert_true(json_is_bool(json_get(s, "grantsCurrent")));
    assert_false(json_true(json_get(s, "grantsCurrent")));
}

static void rows_are_bounded(void **state)
{
    struct world *w = *state;
    struct fleet_records r = {.seen_us = 1, .n_holds = 2003};
    cJSON *s;

    r.holds = arena_alloc(w->a, r.n_holds * sizeof(*r.holds));
    for (size_t i = 0; i < r.n_holds; i++)
        r.holds[i] = (struct fleet_hold){.tenant = arena_printf(w->a, "t%zu", i),
                                         .pool = STR("a100"),
                                         .gpu_eq = {1, 7},
                                         .end_us = FLEET_OPEN};
    s = state_of(w, (struct overview){0}, &r);
    assert_int_equal(json_count(json_get(s, "holders")), 2000);
    assert_int_equal(json_i64_at(s, "notShown", 0), 3);
}

/* --- the month to date --- */

struct watch {
    uv_loop_t loop;
    int64_t wall_us, mono_ms;
    unsigned changes;
};

static int64_t wall(void *ctx)
{
    return ((struct watch *)ctx)->wall_us;
}

static int64_t mono(void *ctx)
{
    return ((struct watch *)ctx)->mono_ms;
}

static void on_changed(void *ctx)
{
    ((struct watch *)ctx)->changes++;
}

static void the_month_is_read_once_a_minute(void **state)
{
    struct world *w = *state;
    struct watch t = {.wall_us = BEGIN + 3600 * SECOND, .mono_ms = 5};
    const struct clock clock = {wall, mono, &t};
    const struct month_options o = {.loop = &t.loop,
                                    .clock = &clock,
                                    .location = w->location,
                                    .changed = on_changed,
                                    .ctx = &t};
    struct month *m;
    cJSON *s;

    uv_loop_init(&t.loop);
    m = fleet_month_new(&o);
    assert_int_equal(
        observer_node(w->observer, world_node(w, "n1", 8, 8, true, BEGIN), BEGIN, &w->err), 0);
    assert_int_equal(
        observer_pod(w->observer, world_pod(w, "u1", "n1", 2, BEGIN, 0), BEGIN, &w->err), 0);
    assert_int_equal(observer_seen(w->observer, BEGIN + 3600 * SECOND, &w->err), 0);
    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    assert_null(fleet_month_usage(m));
    fleet_month_ask(m);
    fleet_month_ask(m);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    assert_int_equal(t.changes, 1);
    s = state_of(
        w,
        (struct overview){.month = fleet_month_usage(m), .month_trouble = fleet_month_trouble(m)},
        NULL);
    says(s, "month.lines", 0, "gpuHours", "2.0");
    says(s, "month.lines", 0, "cost", "5.00");
    says(s, "month.lines", 0, "currency", "USD");
    assert_non_null(fleet_month_day(m)); /* of the last day what is on record: an hour */
    assert_int_equal(fleet_month_day(m)->until_us - fleet_month_day(m)->from_us, 3600 * SECOND);
    assert_str(exact_decimal(w->a, fleet_month_day(m)->lines[0]->cost, 2), "5.00");
    t.mono_ms += 59999;
    fleet_month_ask(m);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    assert_int_equal(t.changes, 1);

    /* A failure is said, and the last figures stay. */
    snprintf(w->directory + strlen(w->directory), 3, "/x");
    fleet_month_free(m);
    m = fleet_month_new(
        &(struct month_options){&t.loop, &clock, str_c(w->directory), on_changed, &t});
    w->directory[strlen(w->directory) - 2] = '\0';
    fleet_month_ask(m);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    assert_null(fleet_month_usage(m));
    assert_true(fleet_month_trouble(m).n > 0);
    s = state_of(w, (struct overview){.month_trouble = fleet_month_trouble(m)}, NULL);
    assert_true(json_str_at(s, "month.trouble").n > 0);

    /* What is under way when it is freed ends unheard. */
    t.mono_ms += 60000;
    fleet_month_ask(m);
    fleet_month_free(m);
    uv_run(&t.loop, UV_RUN_DEFAULT);
    assert_int_equal(t.changes, 2);
    assert_int_equal(uv_loop_close(&t.loop), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup_started, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(pools_holders_and_faults), TEST(hoarders),
        TEST(nodes_and_misuse),         TEST(bindings_and_pools_that_are_granted_only),
        TEST(rows_are_bounded),         TEST(the_month_is_read_once_a_minute),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
