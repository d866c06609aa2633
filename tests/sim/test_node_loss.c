/* SPDX-License-Identifier: Apache-2.0 */
/* A node that does not answer any more: what the tenant sees of its pods, and who pays for them. */
#include <sublet/config_pool.h>
#include <sublet/translate.h>

#include "worlds.h"

#define POOL(more)                                                                                 \
    "pools:\n- {name: p, nodeSelector: {pool: p}, resources: {nvidia.com/gpu: {gpuEq: "            \
    "\"1\"}}" more "}\nbindings:\n- {pool: p, guarantee: \"1\"}\n"
#define NODE                                                                                       \
    "{\"metadata\":{\"name\":\"gpu-1\",\"labels\":{\"pool\":\"p\"}%s},\"status\":{\"conditions\":" \
    "["                                                                                            \
    "{\"type\":\"Ready\",\"status\":\"%s\",\"lastTransitionTime\":\"%.*s\"}]}}"

enum node_state {
    ANSWERS,
    DEAD, /* no kubelet runs there, and the host has not noticed it yet */
    SILENT,
};

static struct str now_of(struct sim *s, struct arena *a)
{
    return time_format_s(a, clock_wall_s(&s->clock));
}

static void set_node(struct sim *s, enum node_state state)
{
    struct arena *a = arena_new(0);
    struct str node = arena_printf(a, NODE, state == DEAD ? ",\"annotations\":{\"dead\":\"\"}" : "",
                                   state == SILENT ? "Unknown" : "True", STR_F(now_of(s, a)));

    fake_host_put(s->host, "nodes", node.p);
    arena_free(a);
}

static bool a_runs(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is =
        str_eqc(json_str_at(sim_get(s, a, "pods", "default", "a"), "status.phase"), "Running");

    arena_free(a);
    return is;
}

static bool a_is_lost(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    bool is = str_eqc(json_str_at(pod, "status.reason"), "NodeLost") &&
              str_eqc(json_str_at(pod, "status.message"),
                      "Node gpu-1 which was running pod a is unresponsive") &&
              json_path(pod, "metadata.deletionTimestamp");

    arena_free(a);
    return is;
}

static bool host_is_empty(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 0;
}

/* The pod of the only GPU runs on a node, which then falls silent; the host evicts the pod. */
static struct sim *with_a_lost_pod(uint64_t seed, const char *config)
{
    struct sim *s = sim_new_ready(seed, config);
    struct arena *a = arena_new(0);

    fake_host_place(s->host, "gpu-1");
    set_node(s, ANSWERS);
    sim_create_pod(s, "a", GPU(1), "");
    sim_until(s, a_runs, "the pod to run");
    set_node(s, SILENT);
    sim_run_ms(s, 10 * 1000);
    assert_false(a_is_lost(s)); /* it is not deleted: the node may answer again */
    json_each(pod, fake_host_list(s->host, a, "pods"))
    {
        struct str patch = arena_printf(a,
                                        "{\"metadata\":{\"deletionTimestamp\":\"%.*s\","
                                        "\"deletionGracePeriodSeconds\":30}}",
                                        STR_F(now_of(s, a)));

        fake_host_patch(s->host, "pods", arena_cstr(a, json_str_at(pod, "metadata.name")), patch.p);
    }
    sim_until(s, a_is_lost, "the tenant to see it");
    arena_free(a);
    return s;
}

static const char *create_another(struct sim *s)
{
    s->refusal[0] = 0;
    sim_create_pod(s, "b", GPU(1), "");
    sim_writes_done(s);
    return s->refusal;
}

static bool another_is_created(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = sim_get(s, a, "pods", "default", "b") != NULL;

    arena_free(a);
    return is;
}

/* Without a rule its charge outlives the tenant's object: it may still run. */
static void test_a_lost_pod_is_charged_until_it_is_gone(void **state)
{
    struct sim *s = with_a_lost_pod(41, POOL(""));

    (void)state;
    sim_run_ms(s, 90 * 1000);
    assert_non_null(strstr(create_another(s), "exceeded quota: gpu/p"));
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pod_is_gone, "the tenant's delete --force");
    sim_run_ms(s, 10 * 1000);
    assert_non_null(strstr(create_another(s), "exceeded quota: gpu/p"));
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 5000);
    assert_non_null(strstr(create_another(s), "exceeded quota: gpu/p"));

    set_node(s, ANSWERS);
    sim_until(s, host_is_empty, "the kubelet to end the pod");
    sim_run_ms(s, 2000);
    assert_string_equal(create_another(s), "");
    sim_free(s);
}

static bool successor_waits(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    const cJSON *scheduled =
        condition_find(json_path(pod, "status.conditions"), STR("PodScheduled"));
    bool waits = str_eqc(json_str(json_get(scheduled, "reason")), "PredecessorLost") &&
                 str_contains(json_str(json_get(scheduled, "message")), STR("gpu-1"));

    arena_free(a);
    return waits;
}

static bool successor_is_there(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 1 && !successor_waits(s);
}

/* A name is free for the tenant, not on the host: the pod that waits for it says why. */
static void test_a_successor_of_a_lost_pod_says_that_it_waits(void **state)
{
    struct sim *s = with_a_lost_pod(57, POOL(""));

    (void)state;
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pod_is_gone, "the tenant's delete --force");
    sim_create_pod(s, "a", "", "");
    sim_until(s, successor_waits, "its successor to say so");
    set_node(s, ANSWERS);
    sim_until(s, a_runs, "the successor to run");
    assert_true(successor_is_there(s));
    sim_free(s);
}

/* By the admin's rule it is given up after a minute, by the tenant's force or not. */
static void given_up(uint64_t seed, bool force)
{
    struct sim *s = with_a_lost_pod(seed, POOL(", release: {onNodeLossAfter: 1m}"));

    if (force) {
        sim_delete(s, "pods", "default", "a", 0);
        sim_until(s, sim_pod_is_gone, "the tenant's delete --force");
    }
    sim_run_ms(s, 50 * 1000);
    assert_non_null(strstr(create_another(s), "exceeded quota: gpu/p"));
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    sim_until(s, host_is_empty, "the host pod to be given up");
    sim_until(s, sim_pod_is_gone, "the tenant's pod to go with it");
    set_node(s, ANSWERS);
    sim_run_ms(s, 2000);
    assert_string_equal(create_another(s), "");
    sim_until(s, another_is_created, "another pod");
    sim_free(s);
}

static void test_a_lost_pod_is_given_up_by_rule(void **state)
{
    (void)state;
    given_up(42, false);
    given_up(43, true);
}

/* A node that answers in time ends its pod itself. */
static void test_a_node_that_answers_again_keeps_its_pod(void **state)
{
    struct sim *s = sim_new_ready(44, POOL(", release: {onNodeLossAfter: 1m}"));

    (void)state;
    fake_host_place(s->host, "gpu-1");
    set_node(s, ANSWERS);
    sim_create_pod(s, "a", GPU(1), "");
    sim_until(s, a_runs, "the pod to run");
    set_node(s, SILENT);
    sim_run_ms(s, 90 * 1000);
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    set_node(s, ANSWERS);
    sim_run_ms(s, 10 * 1000);
    assert_true(a_runs(s));
    sim_free(s);
}

/* --- a node that dies while the pod is terminating: no event of the pod reports it --- */

/* The tenant deletes the pod; its node dies before its kubelet ends it. */
static struct sim *with_a_node_dead_during_deletion(uint64_t seed)
{
    struct sim *s = sim_new_ready(seed, POOL(", release: {onNodeLossAfter: 1m}"));

    fake_host_place(s->host, "gpu-1");
    set_node(s, ANSWERS);
    sim_create_pod(s, "a", GPU(1), "");
    sim_until(s, a_runs, "the pod to run");
    set_node(s, DEAD);
    sim_delete(s, "pods", "default", "a", 30);
    sim_run_ms(s, 40 * 1000);
    assert_false(a_is_lost(s));
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    return s;
}

static void is_given_up_after_all(struct sim *s)
{
    sim_until(s, a_is_lost, "the tenant to see that its node is lost");
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    sim_until(s, host_is_empty, "the host pod to be given up");
    sim_until(s, sim_pod_is_gone, "the tenant's pod to go with it");
    sim_free(s);
}

static void test_a_node_that_falls_silent_during_the_deletion(void **state)
{
    struct sim *s = with_a_node_dead_during_deletion(45);

    (void)state;
    set_node(s, SILENT);
    is_given_up_after_all(s);
}

static void test_a_node_that_fell_silent_during_a_restart(void **state)
{
    struct sim *s = with_a_node_dead_during_deletion(46);

    (void)state;
    sim_close(s);
    set_node(s, SILENT);
    sim_open(s);
    is_given_up_after_all(s);
}

/* --- what must not be deleted --- */

/* The nodes' watch ends, and cannot be resumed. */
static void lose_sight_of_nodes(struct sim *s)
{
    struct fake_faults *faults = fake_host_faults(s->host);

    faults->unreadable = "nodes";
    faults->down = true;
    sim_run_ms(s, 8000);
    faults->down = false;
}

static void test_a_node_that_cannot_be_watched_is_not_known_to_be_lost(void **state)
{
    struct sim *s = with_a_lost_pod(47, POOL(", release: {onNodeLossAfter: 1m}"));

    (void)state;
    lose_sight_of_nodes(s);
    set_node(s, DEAD); /* it is Ready, and ends nothing yet */
    sim_run_ms(s, 90 * 1000);
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    sim_free(s);
}

/* The watch goes on, and delivers nothing: its connection may be half open. */
static void test_a_silent_watch_does_not_prove_a_loss(void **state)
{
    struct sim *s = with_a_lost_pod(49, POOL(", release: {onNodeLossAfter: 1m}"));

    (void)state;
    fake_host_faults(s->host)->deaf = "nodes";
    set_node(s, DEAD); /* it is Ready, and ends nothing yet */
    sim_run_ms(s, 90 * 1000);
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    set_node(s, SILENT);
    fake_host_faults(s->host)->deaf = NULL;
    sim_until(s, host_is_empty, "the host pod to be given up");
    sim_free(s);
}

static unsigned loss_events(struct sim *s)
{
    struct arena *a = arena_new(0);
    unsigned n = 0;

    json_each(event, sim_list(s, a, "events", "default"))
    {
        if (str_eqc(json_str_at(event, "reason"), "NodeLost"))
            n++;
    }
    arena_free(a);
    return n;
}

/* A process of a later epoch has the pod: this one neither deletes it nor reports that it does. */
static void test_a_pod_of_a_later_epoch_is_not_given_up(void **state)
{
    struct sim *s = with_a_lost_pod(48, POOL(", release: {onNodeLossAfter: 1m}"));
    struct arena *a = arena_new(0);

    (void)state;
    json_each(pod, fake_host_list(s->host, a, "pods"))
    {
        fake_host_patch(s->host, "pods", arena_cstr(a, json_str_at(pod, "metadata.name")),
                        "{\"metadata\":{\"annotations\":{\"" ANNOTATION_EPOCH "\":\"zzzz\"}}}");
    }
    sim_run_ms(s, 90 * 1000);
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    assert_int_equal(loss_events(s), 0);
    arena_free(a);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lost_pod_is_charged_until_it_is_gone),
        cmocka_unit_test(test_a_successor_of_a_lost_pod_says_that_it_waits),
        cmocka_unit_test(test_a_lost_pod_is_given_up_by_rule),
        cmocka_unit_test(test_a_node_that_answers_again_keeps_its_pod),
        cmocka_unit_test(test_a_node_that_falls_silent_during_the_deletion),
        cmocka_unit_test(test_a_node_that_fell_silent_during_a_restart),
        cmocka_unit_test(test_a_node_that_cannot_be_watched_is_not_known_to_be_lost),
        cmocka_unit_test(test_a_silent_watch_does_not_prove_a_loss),
        cmocka_unit_test(test_a_pod_of_a_later_epoch_is_not_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
