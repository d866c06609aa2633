/* SPDX-License-Identifier: Apache-2.0 */
/* A pod counts once, for its reason; names of reasons and of lines are bounded. */
#include "test.h"

#include "disruptions.h"

static const struct fleet_hold HOLD = {.pool = {"a100", 4}, .tenant = {"team-a", 6}};

/* reason NULL: it is not disrupted. */
static cJSON *pod(struct arena *a, const char *reason, const char *status)
{
    struct str text = arena_printf(
        a,
        "{\"metadata\":{\"namespace\":\"team-a\",\"name\":\"p\",\"uid\":\"u\"},\"spec\":{},"
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
        fleet_disruptions_pod(d, NULL, pod(a, "PreemptionByScheduler", "True"), &hold);
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
        cmocka_unit_test(test_lines_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
