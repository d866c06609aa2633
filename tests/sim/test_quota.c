/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant sees of its quota beside the sums themselves: rates, the line of those that
 * wait. */
#include <sublet/config_pool.h>

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

/* --- the line --- */

#define LINE(order) POOL("caps: {}", "guarantee: 4, overQuota: queue" order)

static bool has_message(const cJSON *pod, const char *text)
{
    const cJSON *c = condition_find(json_path(pod, "status.conditions"), STR("PodScheduled"));

    return str_contains(json_str(json_get(c, "message")), str_c(text));
}

/* Does the pod of the note wait with the words of the note? "name: words" */
static bool waits(struct sim *s)
{
    struct str words = str_c(s->note), name = str_cut(&words, ':');
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", arena_cstr(a, name));
    bool ret = has_message(pod, arena_cstr(a, str_from(words, 1)));

    arena_free(a);
    return ret;
}

static void until_waits(struct sim *s, const char *note)
{
    snprintf(s->note, sizeof(s->note), "%s", note);
    sim_until(s, waits, note);
}

static bool charges_fit(struct sim *s, int64_t limit)
{
    struct arena *a = arena_new(0);
    int64_t sum = 0;

    json_each(pod, fake_host_list(s->host, a, "pods"))
    {
        const cJSON *c = json_at(json_path(pod, "spec.containers"), 0);
        int64_t n = 0;

        str_to_i64(json_str(json_get(json_path(c, "resources.limits"), "nvidia.com/gpu")), &n);
        sum += n;
    }
    arena_free(a);
    return sum <= limit;
}

static void test_what_never_fits_is_refused_at_once(void **state)
{
    struct sim *s = sim_new_ready(33, LINE(""));

    (void)state;
    assert_non_null(strstr(refusal(s, "large", GPU(5)),
                           "pods \"large\" is forbidden: exceeded quota: gpu/p, requested: gpu=5, "
                           "used: gpu=0, limited: gpu=4"));
    assert_string_equal(refusal(s, "a", GPU(4)), "");
    sim_until_runs(s, "a");
    sim_free(s);
}

/* Under a verdict that binds: the host's quota is as full as the tenant's own, which says what
 * becomes of a pod. */
static void test_the_hosts_full_quota_refuses_none_that_waits(void **state)
{
    struct sim *s = sim_new_ready(46, "policy: {verdict: enforce}\n" LINE(""));

    (void)state;
    assert_string_equal(refusal(s, "a", GPU(4)), "");
    sim_until_runs(s, "a");
    fake_host_faults(s->host)->full = "pods";
    fake_host_faults(s->host)->full_of = "requests.nvidia.com/gpu";
    assert_string_equal(refusal(s, "b", GPU(2)), "");
    until_waits(s, "b:waiting for 2 GPU in pool p: position 1, ahead 0 GPU");
    assert_non_null(strstr(refusal(s, "large", GPU(5)), "exceeded quota: gpu/p, requested: gpu=5"));
    fake_host_faults(s->host)->full_of = "requests.cpu";
    assert_non_null(
        strstr(refusal(s, "c", GPU(1)), "exceeded quota: team, requested: requests.cpu=1"));
    fake_host_faults(s->host)->full = NULL;
    sim_delete(s, "pods", "default", "a", 0);
    sim_until_runs(s, "b");
    fake_host_faults(s->host)->full = "pods"; /* and less than the tenant's own */
    fake_host_faults(s->host)->full_of = "requests.nvidia.com/gpu";
    assert_non_null(
        strstr(refusal(s, "d", GPU(2)), "exceeded quota: team, requested: requests.nvidia"));
    sim_free(s);
}

/* --- gangs --- */

#define GANGS(binding)                                                                             \
    POOL("scheduler: {kind: volcano, queueTemplate: q, gang: true}", "guarantee: 4" binding)

/* The answer to the create of a pod "a1" of owner "a", whose gang has so many pods. */
static const char *member(struct sim *s, const char *name, int size)
{
    char text[512];

    s->refusal[0] = 0;
    snprintf(text, sizeof(text),
             "{'metadata': {'name': '%s', 'annotations': {'sublet.dev/gang-size': '%d'}, "
             "'ownerReferences': [{'apiVersion': 'example.com/v1', 'kind': 'Training', 'name': "
             "'%.1s', 'uid': 'uid-%.1s', 'controller': true}]}, 'spec': {'containers': [{'name': "
             "'c', 'image': 'i', 'resources': {'limits': {'nvidia.com/gpu': '1'}}}]}}",
             name, size, name, name);
    sim_create(s, "pods", "default", text);
    sim_writes_done(s);
    return s->refusal;
}

/* However they are created, one of two gangs is charged as a whole, and the other holds what is
 * left until then. */
static void test_gangs_never_keep_each_other_from_starting(void **state)
{
    struct sim *s = sim_new_ready(38, GANGS(""));

    (void)state;
    assert_string_equal(member(s, "a1", 3), "");
    assert_string_equal(member(s, "b1", 3), "");
    assert_string_equal(member(s, "a2", 3), "");
    assert_non_null(strstr(member(s, "b2", 3),
                           "exceeded quota: gpu/p, requested: gpu=1 by each of a gang of 3 pods, "
                           "used: gpu=3, limited: gpu=4"));
    sim_close(s); /* what is charged is on record */
    sim_open(s);
    assert_non_null(strstr(member(s, "b2", 3), "by each of a gang of 3 pods"));
    assert_string_equal(member(s, "a3", 3), "");
    assert_non_null(strstr(member(s, "large", 5), "requested: gpu=1 by each of a gang of 5 pods"));
    sim_free(s);
}

/* The same in a line, where the second gang is ahead of what the first still lacks. */
static void test_gangs_in_a_line(void **state)
{
    static const char *const names[] = {"a1", "b1", "a2", "b2", "a3", "b3"};
    struct sim *s = sim_new_ready(39, GANGS(", overQuota: queue, queueOrder: strict"));

    (void)state;
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(member(s, names[i], 3), "");
    for (size_t i = 0; i < 6; i += 2)
        sim_until_runs(s, names[i]);
    until_waits(s, "b3: waiting for 1 GPU in pool p");
    for (size_t i = 0; i < 6; i += 2)
        sim_delete(s, "pods", "default", names[i], 0);
    sim_until_runs(s, "b2");
    sim_until_runs(s, "b3");
    sim_free(s);
}

static size_t count_host(struct sim *s, const char *resource)
{
    struct arena *a = arena_new(0);
    size_t n = json_count(fake_host_list(s->host, a, resource));

    arena_free(a);
    return n;
}

static bool has_a_group(struct sim *s)
{
    return count_host(s, "podgroups") == 1;
}

static bool has_no_group(struct sim *s)
{
    return count_host(s, "podgroups") == 0;
}

/* Between its PodGroup and its pods, and with all of them: pods go on, nothing is made twice, and
 * nothing is left. */
static void test_a_gang_survives_a_kill(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct sim *s = sim_new_ready(40 + i, GANGS(""));

        assert_string_equal(member(s, "a1", 2), "");
        if (i & 1)
            assert_string_equal(member(s, "a2", 2), "");
        sim_until(s, has_a_group, "its PodGroup");
        if (i & 2)
            sim_until_runs(s, "a1");
        sim_close(s);
        sim_open(s);
        if (!(i & 1))
            assert_string_equal(member(s, "a2", 2), "");
        sim_until_runs(s, "a1");
        sim_until_runs(s, "a2");
        assert_true(has_a_group(s));
        sim_delete(s, "pods", "default", "a1", 0);
        sim_delete(s, "pods", "default", "a2", 0);
        sim_until(s, has_no_group, "its PodGroup to be gone");
        assert_int_equal(count_host(s, "pods"), 0);
        sim_free(s);
    }
}

/* A uid that is none: no group, and the pod runs as it is. */
static void test_an_owner_without_a_plain_uid_has_no_gang(void **state)
{
    struct sim *s = sim_new_ready(45, GANGS(""));

    (void)state;
    sim_create(s, "pods", "default",
               "{'metadata': {'name': 'p', 'annotations': {'sublet.dev/gang-size': '2'}, "
               "'ownerReferences': [{'apiVersion': 'example.com/v1', 'kind': 'T', 'name': 't', "
               "'uid': 'U 1', 'controller': true}]}, 'spec': {'containers': [{'name': 'c', "
               "'image': 'i', 'resources': {'limits': {'nvidia.com/gpu': '1'}}}]}}");
    sim_until_runs(s, "p");
    assert_true(has_no_group(s));
    sim_free(s);
}

/* Pod a holds three of four GPUs, and pod large waits for three. */
static struct sim *with_a_large_pod_waiting(uint64_t seed, const char *config)
{
    struct sim *s = sim_new_ready(seed, config);

    sim_create_pod(s, "a", GPU(3), "");
    sim_until_runs(s, "a");
    sim_create_pod(s, "large", GPU(3), "");
    until_waits(s, "large: position 1, ahead 0 GPU");
    sim_run_ms(s, 2000); /* creationTimestamp has seconds */
    return s;
}

static void test_a_strict_line_is_not_overtaken(void **state)
{
    struct sim *s = with_a_large_pod_waiting(34, LINE(", queueOrder: strict, queueHold: 10s"));

    (void)state;
    sim_create_pod(s, "small", GPU(1), "");
    until_waits(s, "small: position 2, ahead 3 GPU");
    sim_run_ms(s, 15 * 1000);
    until_waits(s, "small: position 2, ahead 3 GPU");
    sim_delete(s, "pods", "default", "a", 0);
    sim_until_runs(s, "large");
    sim_until_runs(s, "small");
    sim_free(s);
}

static bool event_says(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "default")) found |=
        str_eqc(json_str_at(event, "reason"), "WaitingForQuota") &&
        str_eqc(json_str_at(event, "involvedObject.name"), "large") &&
        str_eqc(json_str_at(event, "message"),
                "waiting for 3 GPU in pool p: position 1, ahead 0 GPU");
    arena_free(a);
    return found;
}

/* Small pods go first for a minute; in the next one what comes free is kept for the large one; then
 * they go first again. */
static void test_neither_large_nor_small_pods_block_the_others(void **state)
{
    struct sim *s = with_a_large_pod_waiting(35, LINE(", queueHold: 1m"));

    (void)state;
    sim_until(s, event_says, "an Event that says why it waits");
    sim_create_pod(s, "one", GPU(1), "");
    sim_until_runs(s, "one");
    sim_create_pod(s, "two", GPU(1), "");
    until_waits(s, "two: position 2, ahead 3 GPU");

    sim_run_ms(s, 65 * 1000);
    sim_delete(s, "pods", "default", "one", 0);
    until_waits(s, "two: what comes free is kept for the first in line");
    assert_true(charges_fit(s, 3));
    sim_run_ms(s, 15 * 1000);
    until_waits(s, "two: what comes free is kept for the first in line");
    sim_run_ms(s, 45 * 1000);
    sim_until_runs(s, "two");
    assert_true(charges_fit(s, 4));

    sim_delete(s, "pods", "default", "a", 0);
    sim_until_runs(s, "large");
    sim_free(s);
}

/* A limit that was lowered, in a restart: what can never start does not hold the others. */
static void test_what_can_no_longer_start_holds_no_other(void **state)
{
    struct sim *s = sim_new_ready(36, LINE(", queueOrder: strict"));
    struct config_binding lower = s->config.bindings[0];

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    sim_create_pod(s, "large", GPU(4), "");
    until_waits(s, "large: position 1");
    sim_close(s);
    lower.guarantee = lower.most = lower.limit = (struct rational){3, 1};
    s->config.bindings = &lower;
    sim_open(s);
    until_waits(s, "large: whose limit is 3: it cannot start");
    sim_create_pod(s, "small", GPU(1), "");
    sim_until_runs(s, "small");
    sim_free(s);
}

/* --- workloads that were refused --- */

#define TEMPLATE(name, gpus)                                                                       \
    "'template':{'metadata':{'labels':{'app':'" name "'}},'spec':{'automountServiceAccountToken'"  \
    ":false,'containers':[{'name':'c','image':'i'" GPU(gpus) "}]"
#define SET(name, replicas, gpus)                                                                  \
    "{'metadata':{'name':'" name "'},'spec':{'replicas':" #replicas                                \
    ",'selector':{'matchLabels':{'app':'" name "'}}," TEMPLATE(name, gpus) "}}}}"
#define JOB(name, gpus)                                                                            \
    "{'metadata':{'name':'" name "'},'spec':{" TEMPLATE(name, gpus) ",'restartPolicy':'Never'}}}}"

static bool is_of(const cJSON *pod, const char *app)
{
    return str_eqc(json_str_at(pod, "metadata.labels.app"), app);
}

/* How many pods of the workload run. */
static int running(struct sim *s, const char *app)
{
    struct arena *a = arena_new(0);
    int n = 0;

    json_each(pod, sim_list(s, a, "pods", "default")) n +=
        is_of(pod, app) && str_eqc(json_str_at(pod, "status.phase"), "Running");
    arena_free(a);
    return n;
}

/* The workloads have been refused for 90 seconds: their next attempts are a minute away. */
static void release_a_late(struct sim *s)
{
    sim_run_ms(s, 90 * 1000);
    sim_delete(s, "pods", "default", "a", 0);
    sim_run_ms(s, 5000);
}

static void test_a_refused_workload_is_tried_again_when_gpus_come_free(void **state)
{
    struct sim *s = sim_new_ready(37, POOL("caps: {}", "guarantee: 4"));

    (void)state;
    sim_create_pod(s, "a", GPU(4), "");
    sim_until_runs(s, "a");
    sim_create(s, "replicasets.apps", "default", SET("set", 1, 1));
    sim_create(s, "statefulsets.apps", "default", SET("stateful", 1, 1));
    sim_create(s, "jobs.batch", "default", JOB("job", 1));
    sim_run_ms(s, 2000);
    assert_int_equal(running(s, "set") + running(s, "stateful") + running(s, "job"), 0);
    release_a_late(s);
    assert_int_equal(running(s, "set"), 1);
    assert_int_equal(running(s, "stateful"), 1);
    assert_int_equal(running(s, "job"), 1);
    assert_true(charges_fit(s, 4));
    sim_free(s);
}

/* Under a verdict that binds, too, the exact quota refuses it, which knows whom to try again. */
static void test_a_full_quota_of_the_host_hides_no_workload(void **state)
{
    struct sim *s =
        sim_new_ready(47, "policy: {verdict: enforce}\n" POOL("caps: {}", "guarantee: 4"));

    (void)state;
    sim_create_pod(s, "a", GPU(4), "");
    sim_until_runs(s, "a");
    fake_host_faults(s->host)->full = "pods";
    fake_host_faults(s->host)->full_of = "requests.nvidia.com/gpu";
    sim_create(s, "replicasets.apps", "default", SET("set", 1, 1));
    sim_run_ms(s, 90 * 1000);
    assert_int_equal(running(s, "set"), 0);
    fake_host_faults(s->host)->full = NULL;
    sim_delete(s, "pods", "default", "a", 0);
    sim_run_ms(s, 5000);
    assert_int_equal(running(s, "set"), 1);
    sim_free(s);
}

/* One GPU after the other comes free: the workload that was refused first gets the first, and the
 * other one the next, though the first needs more. */
static void test_refused_workloads_take_turns(void **state)
{
    struct sim *s = sim_new_ready(38, POOL("caps: {}", "guarantee: 2"));

    (void)state;
    sim_create_pod(s, "a", GPU(1), "");
    sim_create_pod(s, "b", GPU(1), "");
    sim_until_runs(s, "a");
    sim_until_runs(s, "b");
    sim_create(s, "replicasets.apps", "default", SET("older", 2, 1));
    sim_run_ms(s, 2000);
    sim_create(s, "replicasets.apps", "default", SET("newer", 1, 1));
    release_a_late(s);
    assert_int_equal(running(s, "older"), 1);
    assert_int_equal(running(s, "newer"), 0);
    sim_delete(s, "pods", "default", "b", 0);
    sim_run_ms(s, 5000);
    assert_int_equal(running(s, "older"), 1);
    assert_int_equal(running(s, "newer"), 1);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_created_pods_count_for_the_rate),
        cmocka_unit_test(test_pods_without_devices_have_a_rate_of_their_own),
        cmocka_unit_test(test_gangs_never_keep_each_other_from_starting),
        cmocka_unit_test(test_gangs_in_a_line),
        cmocka_unit_test(test_a_gang_survives_a_kill),
        cmocka_unit_test(test_an_owner_without_a_plain_uid_has_no_gang),
        cmocka_unit_test(test_what_never_fits_is_refused_at_once),
        cmocka_unit_test(test_the_hosts_full_quota_refuses_none_that_waits),
        cmocka_unit_test(test_a_strict_line_is_not_overtaken),
        cmocka_unit_test(test_neither_large_nor_small_pods_block_the_others),
        cmocka_unit_test(test_what_can_no_longer_start_holds_no_other),
        cmocka_unit_test(test_a_refused_workload_is_tried_again_when_gpus_come_free),
        cmocka_unit_test(test_a_full_quota_of_the_host_hides_no_workload),
        cmocka_unit_test(test_refused_workloads_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
