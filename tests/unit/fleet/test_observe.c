/* SPDX-License-Identifier: Apache-2.0 */
/* From what a process sees of the host to records: times of the host, repetition, processes that
 * are killed between any two writes, and what happened while none observed. */
#include "world.h"

static struct fleet_records records_of(struct world *w)
{
    struct fleet_records r;

    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    assert_int_equal(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err), 0);
    return r;
}

#define DO(call) assert_int_equal((call), 0)

static void listed(struct world *w, int64_t now)
{
    DO(observer_nodes_listed(w->observer, now, &w->err));
    DO(observer_pods_listed(w->observer, now, &w->err));
}

static void start_with_a_node(struct world *w)
{
    world_start(w, BEGIN);
    DO(observer_node(w->observer, world_node(w, "n1", 8, 8, true, BEGIN - HOUR), BEGIN + 7,
                     &w->err));
    listed(w, BEGIN + 8);
}

static void takes_the_times_of_the_host(void **state)
{
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 2, BEGIN + 3 * SECOND, 0),
                    BEGIN + 5 * SECOND, &w->err));
    DO(observer_pod(w->observer,
                    world_pod(w, "u1", "n1", 2, BEGIN + 3 * SECOND, BEGIN + 4 * SECOND),
                    BEGIN + 9 * SECOND, &w->err));
    r = records_of(w);
    assert_int_equal(r.n_holds, 1);
    assert_int_equal(r.holds[0].begin_us, BEGIN + 3 * SECOND);
    assert_int_equal(r.holds[0].end_us, BEGIN + 4 * SECOND);
    assert_str(r.holds[0].reason, "Succeeded");
    assert_str(r.holds[0].name, "u1");
    assert_str(r.holds[0].ns, "default");
    assert_str(r.holds[0].tenant, "team-a");
    assert_str(r.holds[0].product, "A100");
    assert_str(r.holds[0].resources, "nvidia.com/gpu=2");
    assert_false(r.holds[0].estimated);
    assert_int_equal(r.capacities[0].from_us, BEGIN); /* the ledger's, not the observation's */
    assert_str(r.prices[0].currency, "USD");
}

static void a_deleted_pod_ends_when_its_event_came(void **state)
{
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_seen(w->observer, BEGIN + 4 * SECOND, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 1, BEGIN, 0), BEGIN, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u2", "n1", 1, BEGIN, 0), BEGIN, &w->err));
    DO(observer_pod_gone(w->observer, STR("u1"), true, BEGIN + 5 * SECOND, &w->err));
    DO(observer_pod_gone(w->observer, STR("u2"), false, BEGIN + 5 * SECOND, &w->err));
    DO(observer_pod_gone(w->observer, STR("unknown"), true, BEGIN + 5 * SECOND, &w->err));
    r = records_of(w);
    assert_int_equal(r.holds[0].end_us, BEGIN + 5 * SECOND);
    assert_false(r.holds[0].estimated);
    assert_int_equal(r.holds[1].end_us, BEGIN + 4 * SECOND); /* missing from a list: seen until */
    assert_true(r.holds[1].estimated);
}

/* Its virtual cluster deletes it, since the fleet takes its GPUs back. */
static cJSON *reclaimed(struct world *w, const char *uid, int64_t end_us, const char *phase)
{
    cJSON *pod = world_pod(w, uid, "n1", 1, BEGIN, end_us), *metadata = json_get(pod, "metadata");

    json_set_str(w->a, json_get(pod, "status"), "phase", str_c(phase));
    json_set_str(w->a, metadata, "deletionTimestamp", STR("2026-11-28T10:00:00Z"));
    json_set_str(w->a, json_ensure_path(w->a, metadata, "labels"), "sublet.dev/cluster", STR("c"));
    json_set_str(w->a, json_ensure_path(w->a, metadata, "annotations"), "sublet.dev/ended",
                 STR("ReclaimedByFleet"));
    return pod;
}

static void an_end_says_that_the_fleet_took_it_back(void **state)
{
    static const struct {
        const char *uid, *phase, *reason;
        int64_t end_us;
    } pods[] = {
        {"u1", "Running", "ReclaimedByFleet", 0},
        {"u2", "Failed", "ReclaimedByFleet", BEGIN + SECOND},
        {"u3", "Succeeded", "Succeeded", BEGIN + SECOND},
    };
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_seen(w->observer, BEGIN + 4 * SECOND, &w->err));
    for (size_t i = 0; i < COUNT(pods); i++) {
        DO(observer_pod(w->observer, reclaimed(w, pods[i].uid, pods[i].end_us, pods[i].phase),
                        BEGIN + 2 * SECOND, &w->err));
        DO(observer_pod_gone(w->observer, str_c(pods[i].uid), true, BEGIN + 5 * SECOND, &w->err));
    }
    r = records_of(w);
    for (size_t i = 0; i < COUNT(pods); i++)
        assert_str(r.holds[i].reason, pods[i].reason);
}

static cJSON *disrupted(struct world *w, const char *uid, int64_t end_us, const char *phase,
                        const char *status)
{
    cJSON *pod = world_pod(w, uid, "n1", 1, BEGIN, end_us);

    json_set_str(w->a, json_get(pod, "status"), "phase", str_c(phase));
    json_append(json_path(pod, "status.conditions"),
                world_parse(w, arena_printf(w->a,
                                            "{\"type\":\"DisruptionTarget\",\"status\":\"%s\","
                                            "\"reason\":\"PreemptionByScheduler\"}",
                                            status)));
    return pod;
}

/* It is deleted, or fails; one that had succeeded by then, or was spared, was not disrupted. */
static void an_end_has_the_disruption_that_led_to_it(void **state)
{
    static const struct {
        const char *uid, *phase, *status, *reason;
        int64_t end_us;
    } pods[] = {
        {"u1", "Running", "True", "PreemptionByScheduler", 0},
        {"u2", "Failed", "True", "PreemptionByScheduler", BEGIN + SECOND},
        {"u3", "Succeeded", "True", "Succeeded", BEGIN + SECOND},
        {"u4", "Running", "False", "Deleted", 0},
    };
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_seen(w->observer, BEGIN + 4 * SECOND, &w->err));
    for (size_t i = 0; i < COUNT(pods); i++) {
        DO(observer_pod(w->observer,
                        disrupted(w, pods[i].uid, pods[i].end_us, pods[i].phase, pods[i].status),
                        BEGIN + 2 * SECOND, &w->err));
        DO(observer_pod_gone(w->observer, str_c(pods[i].uid), true, BEGIN + 5 * SECOND, &w->err));
    }
    r = records_of(w);
    for (size_t i = 0; i < COUNT(pods); i++)
        assert_str(r.holds[i].reason, pods[i].reason);
}

static void what_ended_unobserved_is_estimated(void **state)
{
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_node(w->observer, world_node(w, "n2", 4, 4, true, BEGIN), BEGIN, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 1, BEGIN, 0), BEGIN, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u2", "n1", 1, BEGIN, 0), BEGIN, &w->err));
    DO(observer_seen(w->observer, BEGIN + 10 * SECOND, &w->err));
    DO(ledger_commit(w->ledger, &w->err));
    world_kill(w);

    world_start(w, BEGIN + 60 * SECOND);
    DO(observer_node(w->observer, world_node(w, "n1", 8, 8, true, BEGIN), BEGIN + 60 * SECOND,
                     &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 1, BEGIN, 0), BEGIN + 60 * SECOND,
                    &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u3", "n1", 1, BEGIN + 30 * SECOND, 0),
                    BEGIN + 60 * SECOND, &w->err));
    listed(w, BEGIN + 60 * SECOND);
    DO(observer_seen(w->observer, BEGIN + 61 * SECOND, &w->err));
    r = records_of(w);
    assert_int_equal(r.n_holds, 3);
    assert_int_equal(r.holds[0].end_us, FLEET_OPEN);
    assert_int_equal(r.holds[1].end_us, BEGIN + 10 * SECOND);
    assert_true(r.holds[1].estimated);
    assert_int_equal(r.holds[2].begin_us, BEGIN + 30 * SECOND); /* as the host has it */
    assert_int_equal(r.n_capacities, 3);                        /* n1, n2, n2 gone */
    assert_int_equal(r.capacities[2].from_us, BEGIN + 10 * SECOND);
    assert_true(r.capacities[2].estimated && !r.capacities[2].total.num);
    assert_true(r.capacities[2].down); /* its pods do not run */
    assert_int_equal(r.n_gaps, 1);
    assert_int_equal(r.gaps[0].from_us, BEGIN + 10 * SECOND);
    assert_int_equal(r.n_prices, 1); /* the same price is one */
}

static void a_node_that_fails_has_the_hosts_time(void **state)
{
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_node(w->observer, world_node(w, "n1", 8, 6, true, BEGIN), BEGIN + 9 * SECOND,
                     &w->err));
    DO(observer_node(w->observer, world_node(w, "n1", 8, 6, false, BEGIN + 50 * SECOND),
                     BEGIN + 52 * SECOND, &w->err));
    DO(observer_node_gone(w->observer, STR("n1"), BEGIN + 90 * SECOND, &w->err));
    DO(observer_node(w->observer, world_node(w, "n1", 8, 8, true, BEGIN + 100 * SECOND),
                     BEGIN + 105 * SECOND, &w->err));
    r = records_of(w);
    assert_int_equal(r.n_capacities, 5);
    assert_int_equal(r.capacities[1].unhealthy.num, 2);
    assert_int_equal(r.capacities[2].from_us, BEGIN + 50 * SECOND);
    assert_true(r.capacities[2].down);
    assert_int_equal(r.capacities[3].total.num, 0);
    assert_true(r.capacities[3].down); /* deleted: what its pods hold is billed to no team */
    assert_false(r.capacities[4].down);
    assert_int_equal(r.capacities[4].from_us, BEGIN + 100 * SECOND); /* since it was created */
}

/* Its devices leave before it does. */
static void a_node_without_devices_is_deleted(void **state)
{
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_node(w->observer, world_node(w, "n1", 0, 0, true, BEGIN), BEGIN + 9 * SECOND,
                     &w->err));
    assert_false(records_of(w).capacities[1].down);
    DO(observer_node_gone(w->observer, STR("n1"), BEGIN + 20 * SECOND, &w->err));
    DO(observer_node_gone(w->observer, STR("n1"), BEGIN + 30 * SECOND, &w->err));
    r = records_of(w);
    assert_int_equal(r.n_capacities, 3);
    assert_int_equal(r.capacities[2].from_us, BEGIN + 20 * SECOND);
    assert_true(r.capacities[2].down);
}

static void a_pod_waits_for_its_node(void **state)
{
    struct world *w = *state;
    cJSON *pod;

    start_with_a_node(w);
    assert_true(observer_wants_pods(w->observer));
    assert_false(observer_wants_pods(w->observer));
    pod = world_pod(w, "u1", "n2", 1, BEGIN, 0);
    DO(observer_pod(w->observer, pod, BEGIN, &w->err));
    assert_int_equal(records_of(w).n_holds, 0);
    DO(observer_node(w->observer, world_node(w, "n2", 8, 8, true, BEGIN), BEGIN, &w->err));
    assert_true(observer_wants_pods(w->observer));
    DO(observer_pod(w->observer, pod, BEGIN, &w->err));
    assert_int_equal(records_of(w).n_holds, 1);
}

static void a_clock_that_goes_back_keeps_the_order(void **state)
{
    struct world *w = *state;
    struct fleet_records r;

    start_with_a_node(w);
    DO(observer_node(w->observer, world_node(w, "n1", 8, 7, true, BEGIN), BEGIN + 50 * SECOND,
                     &w->err));
    DO(observer_node(w->observer, world_node(w, "n1", 8, 8, true, BEGIN), BEGIN + 20 * SECOND,
                     &w->err));
    DO(observer_seen(w->observer, BEGIN + 55 * SECOND, &w->err));
    DO(observer_seen(w->observer, BEGIN + 25 * SECOND, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 1, BEGIN + 40 * SECOND, 0), BEGIN,
                    &w->err));
    DO(observer_pod_gone(w->observer, STR("u1"), true, BEGIN + 30 * SECOND, &w->err));
    r = records_of(w);
    assert_int_equal(r.capacities[2].from_us, BEGIN + 50 * SECOND);
    assert_int_equal(r.seen_us, BEGIN + 55 * SECOND);
    assert_int_equal(r.holds[0].end_us, BEGIN + 40 * SECOND);
}

/* --- killed between any two writes --- */

#define PODS  12
#define STEPS 60

/* Pod i runs from begin to end, on one of two nodes, and stays on the host once it ended. */
static int64_t begin_of(int i)
{
    return BEGIN + (1 + i * 3) * SECOND;
}

static int64_t end_of(int i)
{
    return begin_of(i) + (i % 5 ? 7 * i : 1) * SECOND;
}

static void see_pod(struct world *w, int i, int64_t now)
{
    char uid[16];

    snprintf(uid, sizeof(uid), "u%d", i);
    if (begin_of(i) <= now)
        DO(observer_pod(w->observer,
                        world_pod(w, uid, i % 2 ? "n1" : "n2", 1 + i % 3, begin_of(i),
                                  end_of(i) <= now ? end_of(i) : 0),
                        now, &w->err));
}

static void see_nodes(struct world *w, int64_t now)
{
    DO(observer_node(w->observer, world_node(w, "n1", 30, 30, true, BEGIN - HOUR), now, &w->err));
    DO(observer_node(w->observer, world_node(w, "n2", 30, 30, true, BEGIN - HOUR), now, &w->err));
}

/* Runs all of it; the process is killed whenever *kills has a bit for the number of writes so far,
 * before or after the commit. */
static struct exact run(struct world *w, uint64_t kills)
{
    struct fleet_records r;
    struct usage u;
    int written = 0;

    world_open(w);
    world_start(w, BEGIN);
    see_nodes(w, BEGIN);
    listed(w, BEGIN);
    DO(ledger_commit(w->ledger, &w->err));
    for (int step = 1; step < STEPS * 2; step++) {
        int64_t now = BEGIN + step * SECOND;

        for (int i = 0; i < PODS; i++) {
            see_pod(w, i, now);
            if (!(kills >> (written++ % 64) & 1))
                continue;
            if (written % 2)
                DO(ledger_commit(w->ledger, &w->err));
            world_kill(w);
            world_start(w, now);
            see_nodes(w, now);
            for (int k = 0; k < PODS; k++)
                see_pod(w, k, now);
            listed(w, now);
        }
        DO(observer_seen(w->observer, now, &w->err));
        DO(ledger_commit(w->ledger, &w->err));
    }
    r = records_of(w);
    assert_int_equal(r.n_holds, PODS);
    for (int i = 0; i < PODS; i++)
        assert_false(r.holds[i].estimated);
    DO(fleet_usage_compute(w->a, &r, 0, INT64_MAX, 1u << USAGE_TENANT, &u, &w->err));
    assert_int_equal(u.n_lines, 2);
    assert_int_equal(u.balances[0].unmatched.num, 0);
    return u.lines[0]->gpu_us;
}

static void killed_between_any_two_writes(void **state)
{
    uint64_t seed = 14;
    int64_t want = 0;

    (void)state;
    for (int i = 0; i < PODS; i++)
        want += (1 + i % 3) * (end_of(i) - begin_of(i));
    for (int round = 0; round < 12; round++) {
        struct world w;
        struct exact held = run(&w, round ? next_random(&seed) & next_random(&seed) : 0);

        assert_true(held.den == 1 && held.num == want);
        world_close(&w);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(takes_the_times_of_the_host),
        TEST(a_deleted_pod_ends_when_its_event_came),
        TEST(an_end_has_the_disruption_that_led_to_it),
        TEST(an_end_says_that_the_fleet_took_it_back),
        TEST(what_ended_unobserved_is_estimated),
        TEST(a_node_that_fails_has_the_hosts_time),
        TEST(a_node_without_devices_is_deleted),
        TEST(a_pod_waits_for_its_node),
        TEST(a_clock_that_goes_back_keeps_the_order),
        cmocka_unit_test(killed_between_any_two_writes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
