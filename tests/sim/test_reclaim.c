/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that the fleet takes back: pods are announced, then end in order, and only by what the host
 * says at that moment. */
#include "worlds.h"

#include "engine.h"
#include "pods/pods.h"
#include "../quoted.h"

#include <stdlib.h>

#define FOLLOW "fleet: {bindings: true}\n"
#define BINDING                                                                                    \
    "{\"metadata\":{\"name\":\"b\",\"namespace\":\"h\"},\"spec\":{\"pool\":\"p\",\"guarantee\":"   \
    "\"2\",\"burst\":\"6\",\"default\":true},\"status\":{\"grant\":\"8\",\"pool\":{\"name\":"      \
    "\"p\",\"nodeSelector\":{\"pool\":\"p\"},\"resources\":{\"nvidia.com/gpu\":{\"gpuEq\":1}}}}}"

enum { GRACE_S = 6 };

/* NULL: the host has none. */
static const cJSON *host_pod(struct sim *s, struct arena *a, const char *name)
{
    json_each(pod, fake_host_list(s->host, a, "pods"))
    {
        if (str_eqc(meta_annotation(pod, "sublet.dev/name"), name))
            return pod;
    }
    return NULL;
}

static void patch_host_pod(struct sim *s, const char *name, const char *text)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = host_pod(s, a, name);

    assert_non_null(pod);
    fake_host_patch(s->host, "pods", arena_cstr(a, json_str_at(pod, "metadata.name")), text);
    arena_free(a);
}

static bool is_marked(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    bool is =
        str_eqc(meta_annotation(host_pod(s, a, name), "sublet.dev/ended"), "ReclaimedByFleet");

    arena_free(a);
    return is;
}

static bool c_terminates(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = host_pod(s, a, "c");
    bool is = pod && object_is_terminating(pod);

    arena_free(a);
    return is;
}

/* The value of a counter of pool p. */
static double counted(struct sim *s, const char *metric)
{
    struct buf out = BUF_INIT(0);
    struct str rest, line, name = str_c(metric);
    double value = -1;
    char number[32];

    sync_reclaims_metrics(s->syncer, &out);
    rest = buf_str(&out);
    while (rest.n) {
        line = str_cut(&rest, '\n');
        if (!str_eq(str_cut(&line, '{'), name))
            continue;
        str_cut(&line, ' ');
        snprintf(number, sizeof(number), "%.*s", STR_F(line));
        value = strtod(number, NULL);
    }
    buf_fini(&out);
    return value;
}

/* The fake host gives all its objects the same time. */
static void set_created(struct sim *s, const char *name, const char *minute)
{
    struct arena *a = arena_new(0);
    char text[128];

    snprintf(text, sizeof(text), "{\"metadata\":{\"creationTimestamp\":\"2026-02-01T00:%s:00Z\"}}",
             minute);
    patch_host_pod(s, name, text);
    arena_free(a);
}

static void run_pod(struct sim *s, const char *name, const char *gpus, const char *minute)
{
    sim_create_pod(s, name, gpus, "");
    sim_until_runs(s, name);
    set_created(s, name, minute);
}

static bool is_bound(struct sim *s)
{
    return config_binding_of(s->syncer->config, STR("p")) != NULL;
}

/* Pods a, b and c hold one, two and one of eight granted GPUs; a is the oldest. */
static struct sim *with_pods(uint64_t seed)
{
    struct sim *s = sim_new_ready(seed, FOLLOW);

    fake_host_put(s->host, "gpubindings", BINDING);
    sim_until(s, is_bound, "the binding");
    run_pod(s, "a", GPU(1), "01");
    run_pod(s, "b", GPU(2), "02");
    run_pod(s, "c", GPU(1), "03");
    return s;
}

/* What the fleet writes when it takes GPUs back after a grace. */
static void take_back(struct sim *s, unsigned grant)
{
    struct arena *a = arena_new(0);
    struct str when = time_format_s(a, clock_wall_s(&s->clock) + GRACE_S);
    struct str text = arena_printf(a,
                                   "{\"status\":{\"grant\":\"%u\",\"reclaim\":{\"gpus\":\"%u\","
                                   "\"notBefore\":\"%.*s\"}}}",
                                   grant, 4 - grant, STR_F(when));

    fake_host_patch(s->host, "gpubindings", "b", text.p);
    arena_free(a);
}

static int64_t used(struct sim *s)
{
    struct config_pool pool = {.name = STR("p")};

    return sync_ledger_used(s->syncer->ledger, &pool).num;
}

static bool has_ended(struct sim *s)
{
    const struct config_binding *b = config_binding_of(s->syncer->config, STR("p"));

    return b && b->ended;
}

/* Is the end of the pod announced, or that it was taken back? */
static bool is_target(struct sim *s, const char *name, const char *status)
{
    struct arena *a = arena_new(0);
    const cJSON *c = condition_of(sim_get(s, a, "pods", "default", name), "DisruptionTarget");
    bool ret = str_eqc(json_str(json_get(c, "status")), status) &&
               str_eqc(json_str(json_get(c, "reason")), "ReclaimedByFleet");

    arena_free(a);
    return ret;
}

static bool c_is_target(struct sim *s)
{
    return is_target(s, "c", "True");
}

static bool c_is_free(struct sim *s)
{
    return is_target(s, "c", "False");
}

/* The pods there are, by name: "ab" */
static const char *pods(struct sim *s)
{
    struct arena *a = arena_new(0);
    size_t n = 0;

    json_each(pod, sim_list(s, a, "pods", "default")) if (n + 1 < sizeof(s->note)) s->note[n++] =
        json_str_at(pod, "metadata.name").p[0];
    s->note[n] = 0;
    arena_free(a);
    return s->note;
}

static bool event_says(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "default")) found |=
        str_eqc(json_str_at(event, "reason"), "ReclaimedByFleet") &&
        str_eqc(json_str_at(event, "involvedObject.name"), "c") &&
        str_contains(json_str_at(event, "message"),
                     STR("pool p takes GPUs back: 3 may be held now, and this pod ends after 20"));
    arena_free(a);
    return found;
}

static bool notice_names_the_budget(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *c = condition_of(sim_get(s, a, "pods", "default", "c"), "DisruptionTarget");
    bool ret = str_has_suffix(json_str(json_get(c, "message")),
                              STR("Z; the budget of 1500.00 USD for 2026-11 is spent"));

    arena_free(a);
    return ret;
}

/* A budget that is not spent, or takes nothing back, is no reason. */
static void test_a_notice_says_what_it_is_for(void **state)
{
#define BUDGET(percent, enforcement)                                                               \
    "{'status':{'budget':{'month':'2026-11','amount':'1500.00','currency':'USD','percent'"         \
    ":" percent ",'enforcement':'" enforcement "'}}}"
    static const struct {
        const char *budget;
        bool is_named;
    } cases[] = {{BUDGET("100", "Queue"), true},
                 {BUDGET("99", "Queue"), false},
                 {BUDGET("120", "Warn"), false}};
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sim *s = with_pods(191);
        struct arena *a = arena_new(0);

        fake_host_patch(s->host, "gpubindings", "b", quoted(a, str_c(cases[i].budget)));
        take_back(s, 3);
        sim_until(s, c_is_target, "the notice");
        assert_int_equal(notice_names_the_budget(s), cases[i].is_named);
        arena_free(a);
        sim_free(s);
    }
#undef BUDGET
}

static bool b_is_gone(struct sim *s)
{
    return !strcmp(pods(s), "a");
}

static bool c_is_gone(struct sim *s)
{
    return !strcmp(pods(s), "ab");
}

static void test_pods_end_after_the_notice(void **state)
{
    struct sim *s = with_pods(81);

    (void)state;
    take_back(s, 3);
    sim_until(s, c_is_target, "the notice");
    sim_until(s, event_says, "the Event");
    assert_string_equal(pods(s), "abc");
    sim_run_ms(s, (GRACE_S - 4) * 1000);
    assert_string_equal(pods(s), "abc");
    sim_until(s, c_is_gone, "pod c to end");
    sim_run_ms(s, GRACE_S * 1000);
    assert_string_equal(pods(s), "ab");
    assert_int_equal(used(s), 3);
    assert_int_equal(fake_host_count(s->host, "pods"), 2);
    assert_false(is_target(s, "a", "True") || is_target(s, "b", "True"));

    take_back(s, 1); /* once more: now b is the newest */
    sim_until(s, b_is_gone, "pod b to end");
    assert_int_equal(used(s), 1);
    sim_free(s);
}

static bool c_runs_unmarked(struct sim *s)
{
    return !is_marked(s, "c");
}

/* The fleet and the tenant's metrics count each pod that was taken back, and no other end. */
static void test_what_is_taken_back_is_counted(void **state)
{
    struct sim *s = with_pods(92);
    char text[160];
    struct arena *a = arena_new(0);

    (void)state;
    assert_int_equal(counted(s, "sublet_gpu_pods_reclaimed_total"), 0);
    assert_int_equal(counted(s, "sublet_gpu_reclaimed_gpu_seconds_total"), 0);
    snprintf(text, sizeof(text),
             "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","
             "\"lastTransitionTime\":\"%.*s\"}]}}",
             STR_F(time_format_s(a, clock_wall_s(&s->clock))));
    patch_host_pod(s, "c", text);
    take_back(s, 3);
    sim_until(s, c_is_target, "the notice");
    assert_false(is_marked(s, "c"));
    patch_host_pod(s, "c", "{\"metadata\":{\"finalizers\":[\"example.com/stays\"]}}");
    sim_until(s, c_terminates, "pod c to be deleted");
    assert_true(is_marked(s, "c"));
    patch_host_pod(s, "c", "{\"metadata\":{\"finalizers\":null}}");
    sim_until(s, c_is_gone, "pod c to end");
    sim_run_ms(s, GRACE_S * 1000);
    assert_int_equal(counted(s, "sublet_gpu_pods_reclaimed_total"), 1);
    assert_in_range(counted(s, "sublet_gpu_reclaimed_gpu_seconds_total"), GRACE_S, 4 * GRACE_S);
    assert_false(is_marked(s, "a") || is_marked(s, "b"));
    sim_delete(s, "pods", "default", "b", 0);
    sim_until(s, b_is_gone, "pod b to end");
    assert_int_equal(counted(s, "sublet_gpu_pods_reclaimed_total"), 1);
    arena_free(a);
    sim_free(s);
}

/* A host that takes no mark keeps no GPUs from the fleet; a mark of a pod that stays is removed. */
static void test_a_mark_is_no_condition(void **state)
{
    struct sim *s = with_pods(93);

    (void)state;
    patch_host_pod(s, "c",
                   "{\"metadata\":{\"annotations\":{\"sublet.dev/ended\":"
                   "\"ReclaimedByFleet\"}}}");
    sim_until(s, c_runs_unmarked, "the mark to be removed");
    fake_host_deny(s->host, "patch pods", true);
    take_back(s, 3);
    sim_until(s, c_is_gone, "pod c to end");
    assert_int_equal(counted(s, "sublet_gpu_pods_reclaimed_total"), 1);
    sim_free(s);
}

static bool all_are_gone(struct sim *s)
{
    return !*pods(s) && used(s) == 0;
}

/* One that was made invalid in a drain has ended, and what runs by it is taken back all the same;
 * one that was deleted takes nothing back. */
static void test_one_that_is_not_ready_gives_back(void **state)
{
    struct sim *s = with_pods(90);

    (void)state;
    take_back(s, 0);
    sim_until(s, c_is_target, "the notice");
    fake_host_patch(s->host, "gpubindings", "b",
                    "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
                    "\"reason\":\"Invalid\"}]}}");
    sim_until(s, has_ended, "the end of the binding");
    assert_string_equal(pods(s), "abc");
    sim_until(s, all_are_gone, "all pods to end");
    sim_free(s);

    s = with_pods(91);
    take_back(s, 0);
    sim_until(s, c_is_target, "the notice");
    fake_host_remove(s->host, "gpubindings", "b");
    sim_until(s, c_is_free, "the notice to be taken back");
    sim_run_ms(s, 2 * GRACE_S * 1000);
    assert_string_equal(pods(s), "abc");
    sim_free(s);
}

/* The grant was raised again, or the tenant has deleted enough itself. */
static void test_a_withdrawn_notice_ends_nothing(void **state)
{
    struct sim *s = with_pods(82);

    (void)state;
    take_back(s, 3);
    sim_until(s, c_is_target, "the notice");
    fake_host_patch(s->host, "gpubindings", "b", "{\"status\":{\"grant\":\"8\",\"reclaim\":null}}");
    sim_until(s, c_is_free, "the notice to be taken back");
    sim_run_ms(s, 2 * GRACE_S * 1000);
    assert_string_equal(pods(s), "abc");

    take_back(s, 3);
    sim_until(s, c_is_target, "the notice");
    sim_delete(s, "pods", "default", "b", 0);
    sim_until(s, c_is_free, "the notice to be taken back");
    sim_run_ms(s, 2 * GRACE_S * 1000);
    assert_string_equal(pods(s), "ac");
    sim_free(s);
}

/* The watch is silent, and what it showed last is not so any more. */
static void test_a_stale_binding_ends_nothing(void **state)
{
    struct sim *s = with_pods(83);

    (void)state;
    take_back(s, 3);
    sim_until(s, c_is_target, "the notice");
    fake_host_faults(s->host)->deaf = "gpubindings";
    fake_host_patch(s->host, "gpubindings", "b", "{\"status\":{\"grant\":\"8\",\"reclaim\":null}}");
    sim_run_ms(s, 2 * GRACE_S * 1000);
    assert_string_equal(pods(s), "abc");
    fake_host_remove(s->host, "gpubindings", "b");
    sim_run_ms(s, GRACE_S * 1000);
    assert_string_equal(pods(s), "abc");
    sim_free(s);
}

/* Nor one that a restarted process has on record, while the host does not answer. */
static void test_a_recorded_binding_ends_nothing(void **state)
{
    struct sim *s = with_pods(84);

    (void)state;
    take_back(s, 3);
    sim_until(s, c_is_target, "the notice");
    fake_host_faults(s->host)->down = true;
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 2 * GRACE_S * 1000);
    assert_string_equal(pods(s), "abc");
    assert_int_equal(used(s), 4);
    fake_host_faults(s->host)->down = false;
    sim_until(s, c_is_gone, "pod c to end");
    assert_int_equal(used(s), 3);
    sim_free(s);
}

/* A host that was restored to a state in which GPUs were taken back says so until the fleet has
 * corrected it: that ends nothing. */
static void test_a_restored_host_ends_nothing(void **state)
{
    struct sim *s = with_pods(88);
    struct fake_host_image *image;

    (void)state;
    take_back(s, 3);
    sim_until(s, c_is_target, "the notice");
    image = fake_host_image(s->host);
    fake_host_patch(s->host, "gpubindings", "b", "{\"status\":{\"grant\":\"8\",\"reclaim\":null}}");
    sim_until(s, c_is_free, "the notice to be taken back");
    sim_run_ms(s,
               60 * 1000); /* the Lease is renewed meanwhile: the restored one is an earlier one */
    fake_host_roll_back(s->host, image);
    sim_run_ms(s, 30 * 1000);
    assert_string_equal(pods(s), "abc");
    fake_host_patch(s->host, "gpubindings", "b", "{\"status\":{\"grant\":\"8\",\"reclaim\":null}}");
    sim_run_ms(s, 90 * 1000);
    assert_string_equal(pods(s), "abc");
    take_back(s, 3); /* from now on it is the fleet's word again */
    sim_until(s, c_is_gone, "pod c to end");
    assert_int_equal(used(s), 3);
    sim_free(s);
}

/* However requests fail, and whenever the process ends: no more end than must, and the others go
 * on. */
static void test_no_more_end_than_must(void **state)
{
    (void)state;
    for (uint64_t seed = 85; seed < 87; seed++) {
        struct sim *s = with_pods(seed);

        take_back(s, 3);
        sim_spoil_host(s);
        for (int i = 0; i < 6; i++) {
            sim_run_ms(s, 3 * 1000);
            if (i == 3) {
                sim_close(s);
                sim_open(s);
            }
            assert_true(!strcmp(pods(s), "abc") || !strcmp(s->note, "ab"));
        }
        sim_mend_host(s);
        sim_until(s, c_is_gone, "pod c to end");
        sim_run_ms(s, GRACE_S * 1000);
        assert_string_equal(pods(s), "ab");
        assert_int_equal(used(s), 3);
        sim_free(s);
    }
}

static bool c_waits_for_the_pool(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "default")) found |=
        str_eqc(json_str_at(event, "reason"), "PoolUnavailable") &&
        str_eqc(json_str_at(event, "involvedObject.name"), "d") &&
        str_contains(json_str_at(event, "message"),
                     STR("pool \"p\" takes no new pods: driver upgrade, until 2030-01-01"));
    arena_free(a);
    return found;
}

static bool d_runs(struct sim *s)
{
    return used(s) == 5;
}

/* Nothing new starts, and a pod that waits says why; what runs goes on. */
static void test_a_cordoned_pool_lets_none_in(void **state)
{
    struct arena *a = arena_new(0);
    struct sim *s = sim_new_ready(87, FOLLOW);
    cJSON *binding = NULL;

    (void)state;
    if (json_parse(a, STR(BINDING), &binding, NULL))
        fail_msg("the binding");
    json_set_str(a, json_get(binding, "spec"), "overQuota", STR("queue"));
    fake_host_put(s->host, "gpubindings", arena_cstr(a, json_text(a, binding)));
    sim_until(s, is_bound, "the binding");
    run_pod(s, "a", GPU(4), "01");
    fake_host_patch(s->host, "gpubindings", "b",
                    "{\"status\":{\"maintenance\":{\"state\":\"cordon\",\"reason\":\"driver "
                    "upgrade\",\"until\":\"2030-01-01T00:00:00Z\"}}}");
    sim_run_ms(s, 1000);
    sim_create_pod(s, "d", GPU(1), "");
    sim_until(s, c_waits_for_the_pool, "the Event");
    assert_int_equal(used(s), 4);
    assert_string_equal(pods(s), "ad");
    fake_host_patch(s->host, "gpubindings", "b", "{\"status\":{\"maintenance\":null}}");
    sim_until(s, d_runs, "pod d to be charged");
    sim_free(s);
    arena_free(a);
}

/* All pods end, also those whose own grace is longer than the drain's. */
static void test_a_drain_ends_all(void **state)
{
    struct sim *s = with_pods(88);

    (void)state;
    sim_create_pod(s, "d", GPU(1), ",'terminationGracePeriodSeconds':100000");
    sim_until_runs(s, "d");
    take_back(s, 0);
    fake_host_patch(s->host, "gpubindings", "b",
                    "{\"status\":{\"maintenance\":{\"state\":\"drain\",\"reason\":\"MIG\","
                    "\"grace\":\"2s\"}}}");
    sim_until(s, c_is_target, "the notice");
    assert_string_equal(pods(s), "abcd");
    sim_until(s, all_are_gone, "all to end");
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_end_after_the_notice),
        cmocka_unit_test(test_a_notice_says_what_it_is_for),
        cmocka_unit_test(test_what_is_taken_back_is_counted),
        cmocka_unit_test(test_a_mark_is_no_condition),
        cmocka_unit_test(test_one_that_is_not_ready_gives_back),
        cmocka_unit_test(test_a_withdrawn_notice_ends_nothing),
        cmocka_unit_test(test_a_stale_binding_ends_nothing),
        cmocka_unit_test(test_a_recorded_binding_ends_nothing),
        cmocka_unit_test(test_a_restored_host_ends_nothing),
        cmocka_unit_test(test_no_more_end_than_must),
        cmocka_unit_test(test_a_cordoned_pool_lets_none_in),
        cmocka_unit_test(test_a_drain_ends_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
