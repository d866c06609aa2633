/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant sees of its quota beside the sums themselves: rates, the line of those that wait. */
#include "worlds.h"

#define POOL(caps, binding)                                                                        \
    "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [],\n"  \
    "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}, " caps "}\n"                                  \
    "bindings:\n- {pool: p, default: true, " binding "}\n"

/* The answer to the create of a pod; empty: it was created. */
static const char *refusal(struct sim *s, const char *name, const char *container)
{
    s->refusal[0] = 0;
    sim_create_pod(s, name, container, "");
    sim_writes_done(s);
    return s->refusal;
}

/* --- rates --- */

/* Right after a minute of the clock began, so that the test's creates are in one. */
static void to_next_minute(struct sim *s)
{
    sim_jump(s, 60 - clock_wall_s(&s->clock) % 60);
}

static void test_only_created_pods_count_for_the_rate(void **state)
{
    struct sim *s = sim_new_ready(31, POOL("caps: {gpuPodsPerMinute: 2}", "guarantee: 4"));

    (void)state;
    to_next_minute(s);
    for (int i = 0; i < 5; i++)
        assert_non_null(strstr(refusal(s, "large", GPU(9)), "exceeded quota: gpu/p"));
    assert_string_equal(refusal(s, "a", GPU(1)), "");
    assert_string_equal(refusal(s, "b", GPU(1)), "");
    assert_non_null(strstr(refusal(s, "c", GPU(1)),
                           "pods \"c\" is forbidden: guardrail gpu-pods-per-minute: pool \"p\" "
                           "allows 2; the next minute begins in "));
    assert_string_equal(refusal(s, "plain", ""), "");

    /* Nor does a restart begin the count again. */
    sim_close(s);
    sim_open(s);
    assert_non_null(strstr(refusal(s, "c", GPU(1)), "gpu-pods-per-minute"));
    to_next_minute(s);
    assert_string_equal(refusal(s, "c", GPU(1)), "");
    sim_free(s);
}

static void test_pods_without_devices_have_a_rate_of_their_own(void **state)
{
    struct sim *s =
        sim_new_ready(32, "policy: {podsPerMinute: 2}\n" POOL("caps: {}", "guarantee: 4"));

    (void)state;
    to_next_minute(s);
    assert_string_equal(refusal(s, "a", ""), "");
    assert_string_equal(refusal(s, "b", ""), "");
    assert_non_null(strstr(refusal(s, "c", ""),
                           "pods \"c\" is forbidden: guardrail pods-per-minute: "
                           "policy.podsPerMinute allows 2; the next minute begins in "));
    assert_string_equal(refusal(s, "gpu", GPU(1)), "");
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_created_pods_count_for_the_rate),
        cmocka_unit_test(test_pods_without_devices_have_a_rate_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
