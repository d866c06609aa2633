/* SPDX-License-Identifier: Apache-2.0 */
/* A pod counts once, for its reason; names of reasons and of lines are bounded. */
#include "test.h"

#include <sublet/json_build.h>

#include "ledger/disruptions.h"
#include "core/facts.h"

static const struct fleet_hold HOLD = {.pool = {"a100", 4}, .tenant = {"team-a", 6}};

/* reason NULL: it is not disrupted. */
static cJSON *pod(struct arena *a, const char *reason, const char *status)
{
    struct str text = arena_printf(
        a,
        "{\"metadata\":{\"namespace\":\"team-a\",\"name\":\"p\",\"uid\":\"u\"},\"spec\":{"
        "\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]},"
        "\"status\":{\"phase\":\"Running\",\"conditions\":[%s%s%s%s%s]}}",
        reason ? "{\"type\":\"DisruptionTarget\",\"status\":\"" : "", reason ? status : "",
        reason ? "\",\"reason\":\"" : "", reason ? reason : "", reason ? "\"}" : "");
    cJSON *tree;

    assert_int_equal(json_parse(a, text, &tree, NULL), 0);
    return tree;
}

static void is(const struct fleet_disruptions *d, const char *reason, unsigned n)
{
    struct buf out = BUF_INIT(0);
    char want[160];

    snprintf(
        want, sizeof(want),
        "sublet_fleet_gpu_pod_disruptions_total{pool=\"a100\",reason=\"%s\",tenant=\"team-a\"} "
        "%u\n",
        reason, n);
    fleet_disruptions_metrics(d, &out);
    if (!str_contains(buf_str(&out), str_c(want)))
        fail_msg("%s is not in\n%.*s", want, STR_F(buf_str(&out)));
    buf_fini(&out);
}

static void none_is(const struct fleet_disruptions *d)
{
    struct buf out = BUF_INIT(0);

    fleet_disruptions_metrics(d, &out);
    assert_false(str_contains(buf_str(&out), STR("tenant=")));
    buf_fini(&out);
}

static void test_counts_once(void **state)
{
    static const struct {
        const char *reason, *counted;
    } of[] = {{"EvictionByEvictionAPI", "evicted"},    {"PreemptionByScheduler", "preempted"},
              {"DeletionByTaintManager", "node-lost"}, {"DeletionByPodGC", "node-lost"},
              {"TerminationByKubelet", "kubelet"},     {"WorkloadEvictedDueToPreempted", "other"}};
    struct fleet_disruptions *d = fleet_disruptions_new();
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        cJSON *is_target = pod(a, of[i].reason, "True");

        fleet_disruptions_pod(d, pod(a, NULL, ""), is_target, &HOLD);
        fleet_disruptions_pod(d, is_target, is_target, &HOLD);
        fleet_disruptions_pod(d, is_target, NULL, &HOLD); /* gone */
        fleet_disruptions_pod(d, NULL, is_target, &HOLD); /* of a process that began just now */
        fleet_disruptions_pod(d, pod(a, NULL, ""), pod(a, of[i].reason, "False"), &HOLD);
    }
    fleet_disruptions_pod(d, NULL, pod(a, NULL, ""), &HOLD);
    is(d, "evicted", 1);
    is(d, "preempted", 1);
    is(d, "node-lost", 2);
    is(d, "kubelet", 1);
    is(d, "other", 1);
    arena_free(a);
    fleet_disruptions_free(d);
}

/* A virtual cluster has marked a pod, and deletes it. */
static cJSON *marked(struct arena *a, const char *label, const char *deleted, const char *why)
{
    cJSON *tree = pod(a, NULL, ""), *metadata = json_get(tree, "metadata");

    json_set_str(a, json_ensure_path(a, metadata, "labels"), label, STR("c"));
    json_set(a, metadata, "annotations", json_object(a, JSON("sublet.dev/ended", str_c(why))));
    if (deleted)
        json_set_str(a, metadata, "deletionTimestamp", str_c(deleted));
    fact_reduce_pod(a, tree);
    return tree;
}

/* The mark alone is no end, nor is it one of a pod of no virtual cluster, nor any other string. */
static void test_counts_what_the_fleet_took_back(void **state)
{
    static const char cluster[] = "sublet.dev/cluster", when[] = "2026-11-28T10:00:00Z",
                      why[] = "ReclaimedByFleet";
    struct fleet_disruptions *d = fleet_disruptions_new();
    struct arena *a = arena_new(0);
    cJSON *waits = marked(a, cluster, NULL, why), *ends = marked(a, cluster, when, why);

    (void)state;
    fleet_disruptions_pod(d, pod(a, NULL, ""), waits, &HOLD);
    fleet_disruptions_pod(d, waits, marked(a, "app", when, why), &HOLD);
    fleet_disruptions_pod(d, waits, marked(a, cluster, when, "PreemptionByScheduler"), &HOLD);
    fleet_disruptions_pod(d, pod(a, "PreemptionByScheduler", "True"), ends, &HOLD);
    none_is(d);
    fleet_disruptions_pod(d, waits, ends, &HOLD);
    fleet_disruptions_pod(d, ends, ends, &HOLD);
    fleet_disruptions_pod(d, ends, NULL, &HOLD);
    is(d, "reclaimed", 1);
    is(d, "preempted", 0);
    is(d, "other", 0);
    arena_free(a);
    fleet_disruptions_free(d);
}

static void test_lines_are_bounded(void **state)
{
    struct fleet_disruptions *d = fleet_disruptions_new();
    struct arena *a = arena_new(0);
    struct buf out = BUF_INIT(0);
    struct str rest;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < FLEET_DISRUPTIONS_LINES + 10; i++) {
        struct fleet_hold hold = HOLD;

        hold.tenant = arena_printf(a, "team-%zu", i);
        fleet_disruptions_pod(d, pod(a, NULL, ""), pod(a, "PreemptionByScheduler", "True"), &hold);
    }
    fleet_disruptions_metrics(d, &out);
    rest = buf_str(&out);
    while (rest.n)
        n += str_contains(str_cut(&rest, '\n'), STR("reason=\"preempted\""));
    assert_int_equal(n, FLEET_DISRUPTIONS_LINES);
    buf_fini(&out);
    arena_free(a);
    fleet_disruptions_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_once),
        cmocka_unit_test(test_counts_what_the_fleet_took_back),
        cmocka_unit_test(test_lines_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
