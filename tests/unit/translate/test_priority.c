/* SPDX-License-Identifier: Apache-2.0 */
/* PriorityClasses of a tenant on the host: by name, by value, and never above the admin's cap. */

#include "test.h"

#include <string.h>

static const char CONFIG[] =
    "sync: {toHost: {priorityClasses: {enabled: true, mappings: {byName: {urgent: gold}}, ranges: "
    "[{upTo: -5, class: idle}, {upTo: 0, class: low}, {upTo: 1000, class: high}]}}}\n";

static int setup(void **state)
{
    *state = fixture_new(CONFIG);
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static cJSON *pod_of(struct fixture *f, const char *more)
{
    return doc(f,
               arena_printf(f->a,
                            "{metadata: {name: p, namespace: ml, uid: u}, spec: {%s, containers: "
                            "[{name: c, image: i}]}}",
                            more)
                   .p);
}

static struct str class_on_host(struct fixture *f, const char *more)
{
    struct pool_choice choice = {0};
    cJSON *host = NULL;

    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod_of(f, more), NULL, &host, &f->err));
    assert_null(json_path(host, "spec.priority"));
    return json_str_at(host, "spec.priorityClassName");
}

static void classes_are_mapped(void **state)
{
    static const char *const cases[][2] = {
        {"priorityClassName: urgent, priority: 2000000", "gold"},
        {"priorityClassName: urgent", "gold"},
        {"priorityClassName: gold, priority: -2000", "idle"},
        {"priorityClassName: a, priority: -5", "idle"},
        {"priorityClassName: a, priority: -4", "low"},
        {"priorityClassName: a, priority: 0", "low"},
        {"priorityClassName: a, priority: 1", "high"},
        {"priorityClassName: a, priority: 1000", "high"},
        /* never checked, or stored before the list was shorter: none rather than a higher one */
        {"priorityClassName: a, priority: 1001", ""},
        {"priorityClassName: a", ""},
        {"priorityClassName: system-cluster-critical, priority: 2000000000", ""},
        {"priority: 5", ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str(class_on_host(f, cases[i][0]), cases[i][1]);
}

/* --- sync.toHost.pods: of pods that get no other --- */

static struct str on_host(struct fixture *f, const char *more, const struct config_binding *binding,
                          const char *path)
{
    struct pool_choice choice = {.binding = binding};
    cJSON *host = NULL;

    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod_of(f, more), NULL, &host, &f->err));
    return json_str_at(host, path);
}

static void pods_without_a_class_get_that_of_all(void **state)
{
    static const char PODS[] = "sync: {toHost: {pods: {runtimeClassName: sandbox, "
                               "priorityClassName: teams}}}\n";
    static const char POOLS[] =
        "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [], "
        "runtimeClass: nvidia, priorityTiers: {low: gpu-low},\n"
        "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}}\n"
        "bindings:\n- {pool: p, guarantee: \"4\", overQuota: reject, default: true}\n";
    struct fixture *f = *state;
    const struct config_binding *binding;

    assert_str(on_host(f, "hostname: h", NULL, "spec.runtimeClassName"), "");
    use_config(f, arena_printf(f->a, "%s%s", PODS, POOLS).p);
    binding = &f->config.bindings[0];
    assert_str(on_host(f, "hostname: h", NULL, "spec.runtimeClassName"), "sandbox");
    assert_str(on_host(f, "hostname: h", NULL, "spec.priorityClassName"), "teams");
    /* what the tenant names is no way round it */
    assert_str(on_host(f, "runtimeClassName: runc", NULL, "spec.runtimeClassName"), "sandbox");
    assert_str(
        on_host(f, "priorityClassName: system-node-critical", NULL, "spec.priorityClassName"),
        "teams");
    assert_str(on_host(f, "hostname: h", binding, "spec.runtimeClassName"), "nvidia");
    assert_str(on_host(f, "priorityClassName: low", binding, "spec.priorityClassName"), "gpu-low");
}

static void what_is_above_the_cap_is_refused(void **state)
{
    static const char *const accepted[] = {
        "priorityClassName: urgent, priority: 2000000",
        "priorityClassName: a, priority: 1000",
        "priorityClassName: a",
        "priorityClassName: system-node-critical, priority: 2000001000",
        "priority: 0",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(accepted); i++)
        assert_ok(translate_check_pod_classes(&f->tenant, pod_of(f, accepted[i]), &f->err));
    assert_error(translate_check_pod_classes(
                     &f->tenant, pod_of(f, "priorityClassName: a, priority: 1001"), &f->err),
                 "pods \"p\" is forbidden: spec.priorityClassName: \"a\" has the value 1001; the "
                 "most that sync.toHost.priorityClasses grants is 1000");
}

static void names_alone(void **state)
{
    struct fixture *f = *state;

    use_config(f, "sync: {toHost: {priorityClasses: {enabled: true, mappings: {byName: {urgent: "
                  "gold}}}}}");
    assert_str(class_on_host(f, "priorityClassName: urgent, priority: 7"), "gold");
    assert_error(translate_check_pod_classes(
                     &f->tenant, pod_of(f, "priorityClassName: a, priority: 1"), &f->err),
                 "pods \"p\" is forbidden: spec.priorityClassName: \"a\" is not one of "
                 "sync.toHost.priorityClasses.mappings.byName");
    use_config(f, "sync: {toHost: {priorityClasses: {enabled: false, mappings: {byName: {urgent: "
                  "gold}}}}}");
    assert_str(class_on_host(f, "priorityClassName: urgent, priority: 7"), "");
}

/* --- the tiers of a pool --- */

static bool host_priority(void *ctx, struct str class, int64_t *ret)
{
    static const struct {
        const char *class;
        int64_t value;
    } classes[] = {{"gpu-1000", 1000}, {"gpu-500", 500}, {"gpu-100", 100}};

    (void)ctx;
    for (size_t i = 0; i < COUNT(classes); i++) {
        if (!str_eqc(class, classes[i].class))
            continue;
        *ret = classes[i].value;
        return true;
    }
    return false;
}

static struct str tier_on_host(struct fixture *f, const char *more)
{
    struct pool_choice choice = {.binding = &f->config.bindings[0]};
    cJSON *host = NULL;

    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod_of(f, more), NULL, &host, &f->err));
    return json_str_at(host, "spec.priorityClassName");
}

#define TIERS(tiers)                                                                               \
    "{pools: [{name: a, nodeSelector: {p: a}, " tiers "}], bindings: [{pool: a, guarantee: 1}]}"
#define THREE "priorityTiers: {high: gpu-1000, low: gpu-100, normal: gpu-500}"

/* A pod without a class never ranks below the lowest tier, and a tenant's own class ranks by
 * value. */
static void every_pod_of_a_pool_has_one_of_its_tiers(void **state)
{
    static const char *const cases[][2] = {
        {"priority: 0", "gpu-500"},
        {"priorityClassName: low, priority: 100", "gpu-100"},
        {"priorityClassName: high", "gpu-1000"},
        {"priorityClassName: mine, priority: 1000000", "gpu-1000"},
        {"priorityClassName: mine, priority: 999", "gpu-500"},
        {"priorityClassName: mine, priority: 500", "gpu-500"},
        {"priorityClassName: mine, priority: 499", "gpu-100"},
        {"priorityClassName: mine, priority: -5", "gpu-100"},
        {"priorityClassName: system-node-critical, priority: 2000001000", "gpu-500"},
        {"priorityClassName: mine", "gpu-500"}, /* a template */
    };
    struct fixture *f = *state;

    use_config(f, TIERS(THREE));
    f->tenant.host_priority = host_priority;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str(tier_on_host(f, cases[i][0]), cases[i][1]);
    f->tenant.host_priority = NULL; /* without the right to read the host's classes */
    assert_str(tier_on_host(f, "priorityClassName: mine, priority: 999"), "gpu-500");
}

static void the_default_tier(void **state)
{
    struct fixture *f = *state;

    use_config(f, TIERS(THREE ", defaultTier: low"));
    assert_str(tier_on_host(f, "priority: 0"), "gpu-100");
    use_config(f, TIERS("priorityTiers: {top: gpu-1000, rest: gpu-100}"));
    assert_str(tier_on_host(f, "priority: 0"), "gpu-100");
    use_config(f, TIERS("priorityTiers: {low: gpu-100, top: gpu-1000}"));
    assert_str(tier_on_host(f, "priority: 0"), "gpu-100");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(classes_are_mapped),
        TEST(pods_without_a_class_get_that_of_all),
        TEST(what_is_above_the_cap_is_refused),
        TEST(names_alone),
        TEST(every_pod_of_a_pool_has_one_of_its_tiers),
        TEST(the_default_tier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
