/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of autoscalers: replicas from usage, and how fast a target may follow. Expected
 * values are those of upstream's rules (pkg/controller/podautoscaler of Kubernetes 1.36). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <sublet/yaml.h>

#include "../../../vapi/controllers/autoscaler.h"

#define NOW 1767229200 /* 2026-01-01T01:00:00Z */

/* Pods that run and are ready since midnight; each requests 100m in container c. */
#define POD(name, more)                                                                            \
    "{metadata: {name: " name "}, spec: {containers: [{name: c, resources: {requests: {cpu: "      \
    "100m, memory: 1Ki}}}]}, status: {phase: Running, startTime: '2026-01-01T00:00:00Z', "         \
    "conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:00:05Z'}]" more \
    "}}"
#define STARTING(name)                                                                             \
    "{metadata: {name: " name "}, spec: {containers: [{name: c, resources: {requests: {cpu: "      \
    "100m}}}]}, status: {phase: Running, startTime: '2026-01-01T00:59:50Z', conditions: [{type: "  \
    "Ready, status: 'False', lastTransitionTime: '2026-01-01T00:59:50Z'}]}}"
#define PENDING(name)                                                                              \
    "{metadata: {name: " name "}, spec: {containers: [{name: c, resources: {requests: {cpu: "      \
    "100m}}}]}, status: {phase: Pending}}"
#define USES(name, cpu)                                                                            \
    "{metadata: {name: " name "}, timestamp: '2026-01-01T00:59:55Z', window: 15s, containers: "    \
    "[{name: c, usage: {cpu: " cpu ", memory: 2Ki}}]}"
#define HALF                                                                                       \
    "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}"

static const struct {
    const char *pods, *metrics, *metric;
    int64_t current, replicas; /* 0: why */
    const char *why;
} CASES[] = {
    /* the ratio, rounded up; a small one changes nothing */
    {POD("a", ""), USES("a", "150m"), HALF, 1, 3, NULL},
    {POD("a", "") "," POD("b", ""), USES("a", "10m") "," USES("b", "30m"), HALF, 2, 1, NULL},
    {POD("a", "") "," POD("b", ""), USES("a", "54m") "," USES("b", "55m"), HALF, 2, 2, NULL},
    /* a pod without a measurement: nothing on the way up, all of its request on the way down */
    {POD("a", "") "," POD("b", ""), USES("a", "150m"), HALF, 2, 3, NULL},
    {POD("a", "") "," POD("b", ""), USES("a", "10m"), HALF, 2, 2, NULL},
    {POD("a", "") "," POD("b", "") "," POD("c", ""), USES("a", "1m") "," USES("b", "1m"), HALF, 3,
     3, NULL},
    /* pods that start or wait do not raise it further */
    {POD("a", "") "," STARTING("b"), USES("a", "150m") "," USES("b", "900m"), HALF, 2, 3, NULL},
    {POD("a", "") "," PENDING("b"), USES("a", "60m"), HALF, 2, 2, NULL},
    {POD("a", "") "," PENDING("b"), USES("a", "10m"), HALF, 2, 1, NULL},
    /* an average value, of memory */
    {POD("a", ""), USES("a", "1m"),
     "{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Ki}}}",
     1, 2, NULL},
    /* one container */
    {POD("a", ""), USES("a", "150m"),
     "{type: ContainerResource, containerResource: {name: cpu, container: c, target: "
     "{type: Utilization, averageUtilization: 50}}}",
     1, 3, NULL},
    {POD("a", ""), USES("a", "150m"),
     "{type: ContainerResource, containerResource: {name: cpu, container: x, target: "
     "{type: Utilization, averageUtilization: 50}}}",
     1, 0,
     "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be "
     "unready)"},
    /* why there is none */
    {POD("a", ""), "", HALF, 1, 0,
     "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch "
     "metrics from resource metrics API: no metrics returned from resource metrics API"},
    {"", USES("a", "1m"), HALF, 1, 0,
     "failed to get cpu utilization: no pods returned by selector while calculating replica count"},
    {STARTING("a"), USES("a", "150m"), HALF, 1, 0,
     "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be "
     "unready)"},
    {"{metadata: {name: a}, spec: {containers: [{name: c}]}, status: {phase: Running, startTime: "
     "'2026-01-01T00:00:00Z', conditions: [{type: Ready, status: 'True', lastTransitionTime: "
     "'2026-01-01T00:00:05Z'}]}}",
     USES("a", "1m"), HALF, 1, 0,
     "failed to get cpu utilization: missing request for cpu in container c of Pod a"},
};

static cJSON *doc(struct arena *a, const char *text)
{
    cJSON *ret = NULL;

    assert_int_equal(yaml_parse(a, str_c(text), NULL, NULL, &ret, NULL), 0);
    return ret;
}

static void replicas_from_usage(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_new(0);
        struct hpa_usage u = {.current = CASES[i].current, .now_s = NOW, .hpa = doc(a, "{}")};
        struct hpa_proposal p = {0};
        struct str why = STR("");
        bool proposed;

        u.pods = doc(a, arena_printf(a, "[%s]", CASES[i].pods).p);
        u.metrics = doc(a, arena_printf(a, "[%s]", CASES[i].metrics).p);
        u.metric = doc(a, CASES[i].metric);
        proposed = hpa_propose(a, &u, &p, &why);
        if (proposed != !CASES[i].why || (proposed && p.replicas != CASES[i].replicas) ||
            (!proposed && !str_eqc(why, CASES[i].why)))
            fail_msg("case %zu: %lld replicas, %.*s", i, (long long)p.replicas, STR_F(why));
        arena_free(a);
    }
}

static void status_has_both(void **state)
{
    struct arena *a = arena_new(0);
    struct hpa_usage u = {.current = 1, .now_s = NOW, .hpa = doc(a, "{}")};
    struct hpa_proposal p;
    struct str why;

    (void)state;
    u.pods = doc(a, "[" POD("a", "") "]");
    u.metrics = doc(a, "[" USES("a", "150m") "]");
    u.metric = doc(a, HALF);
    assert_true(hpa_propose(a, &u, &p, &why));
    assert_true(str_eqc(p.name, "cpu resource utilization (percentage of request)"));
    assert_true(json_equal(p.status, doc(a, "{type: Resource, resource: {name: cpu, current: "
                                            "{averageValue: 150m, averageUtilization: 150}}}")));
    u.hpa = doc(a, "{spec: {behavior: {scaleUp: {tolerance: '3'}}}}");
    assert_true(hpa_propose(a, &u, &p, &why));
    assert_int_equal(p.replicas, 1);
    arena_free(a);
}

/* One autoscaler over time: at, current, wanted, and what is permitted for which reason. */
struct moment {
    int64_t at, current, wanted, permitted;
    const char *reason;
};

static void run(const char *spec, const struct moment *moments, size_t n)
{
    struct arena *a = arena_new(0);
    struct hpa_histories *all = hpa_histories_new();
    cJSON *hpa = doc(a, spec);

    for (size_t i = 0; i < n; i++) {
        const struct moment *m = &moments[i];
        struct hpa_history *h = hpa_history_get(all, STR("n/h"), m->current, NOW + m->at);
        struct hpa_limits limits;
        int64_t got = hpa_history_limit(h, hpa, m->current, m->wanted, NOW + m->at, &limits);

        if (got != m->permitted || strcmp(limits.reason, m->reason) != 0)
            fail_msg("moment %zu: %lld, %s", i, (long long)got, limits.reason);
        if (got != m->current)
            hpa_history_scaled(h, hpa, m->current, got, NOW + m->at);
    }
    hpa_history_forget(all, STR("n/h"));
    hpa_histories_free(all);
    arena_free(a);
}
#define RUN(spec, ...)                                                                             \
    do {                                                                                           \
        static const struct moment moments[] = {__VA_ARGS__};                                      \
        run(spec, moments, COUNT(moments));                                                        \
    } while (0)

static void without_a_behavior(void **state)
{
    (void)state;
    RUN("{spec: {minReplicas: 1, maxReplicas: 20}}", {0, 1, 9, 4, "ScaleUpLimit"},
        {15, 4, 30, 8, "ScaleUpLimit"}, {30, 12, 30, 20, "TooManyReplicas"},
        /* down only when nothing higher was recommended for five minutes */
        {60, 20, 2, 20, "TooManyReplicas"}, {329, 20, 2, 20, "TooManyReplicas"},
        {331, 20, 2, 2, "DesiredWithinRange"}, {700, 2, 0, 1, "TooFewReplicas"});
}

#define POLICIES                                                                                   \
    "{spec: {minReplicas: 1, maxReplicas: 20, behavior: {scaleUp: {stabilizationWindowSeconds: "   \
    "0, selectPolicy: Max, policies: [{type: Pods, value: 2, periodSeconds: 60}, {type: Percent, " \
    "value: 50, periodSeconds: 60}]}, scaleDown: {stabilizationWindowSeconds: 30, selectPolicy: "  \
    "Min, policies: [{type: Pods, value: 4, periodSeconds: 60}, {type: Percent, value: 50, "       \
    "periodSeconds: 60}]}}}}"

static void with_a_behavior(void **state)
{
    (void)state;
    RUN(POLICIES, {0, 2, 9, 4, "ScaleUpLimit"},
        /* the period's share is used up */
        {15, 4, 9, 4, "ScaleUpLimit"}, {61, 4, 9, 6, "ScaleUpLimit"},
        {125, 10, 20, 15, "ScaleUpLimit"}, {200, 15, 30, 20, "TooManyReplicas"});
    /* stabilized for 30 s, then the smallest step */
    RUN(POLICIES, {0, 10, 10, 10, "DesiredWithinRange"}, {15, 10, 1, 10, "DesiredWithinRange"},
        {46, 10, 1, 6, "ScaleDownLimit"}, {50, 6, 1, 6, "ScaleDownLimit"},
        {107, 6, 1, 3, "ScaleDownLimit"});
    RUN("{spec: {minReplicas: 1, maxReplicas: 20, behavior: {scaleUp: {stabilizationWindowSeconds: "
        "0, selectPolicy: Disabled}, scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Max, "
        "policies: [{type: Percent, value: 100, periodSeconds: 15}]}}}}",
        {0, 2, 9, 2, "ScaleUpLimit"}, {15, 2, 0, 1, "TooFewReplicas"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_from_usage),
        cmocka_unit_test(status_has_both),
        cmocka_unit_test(without_a_behavior),
        cmocka_unit_test(with_a_behavior),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
