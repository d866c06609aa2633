/* SPDX-License-Identifier: Apache-2.0 */
/* What a virtual cluster reports of the GPUs it wants (ConfigMap sublet-gpu-demand): more at once,
 * less after a time, whatever waits, fails, restarts or stands in its place meanwhile. */
#include "worlds.h"

#include "engine.h"

#define FOLLOW "fleet: {bindings: true, lendAfter: 30s}\n"
#define DEMAND "sublet-gpu-demand"
#define BINDING(more, grant)                                                                       \
    "{\"metadata\":{\"name\":\"b\",\"namespace\":\"h\"},\"spec\":{\"pool\":\"p\",\"guarantee\":"   \
    "\"4\",\"burst\":\"4\",\"lend\":\"4\",\"default\":true" more "},\"status\":{\"grant\":"        \
    "\"" grant "\",\"pool\":{\"name\":\"p\",\"mode\":\"exclusive\",\"nodeSelector\":{\"pool\":"    \
    "\"p\"},\"resources\":{\"nvidia.com/gpu\":{\"gpuEq\":\"1\"}}}}}"
#define QUEUED ",\"overQuota\":\"queue\""
#define SET(replicas)                                                                              \
    "{'metadata':{'name':'set'},'spec':{'replicas':" replicas ",'selector':{'matchLabels':{"       \
    "'app':'set'}},'template':{'metadata':{'labels':{'app':'set'}},'spec':{"                       \
    "'automountServiceAccountToken':false,'containers':[{'name':'c','image':'i'" GPU(1) "}]}}}}"

static const cJSON *demand(struct sim *s, struct arena *a)
{
    json_each(one, fake_host_list(s->host, a, "configmaps"))
    {
        if (str_eqc(json_str_at(one, "metadata.name"), DEMAND))
            return one;
    }
    return NULL;
}

/* Is what is reported of pool p that of the note? "": nothing. */
static bool reports(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool ret = str_eqc(json_str_at(demand(s, a), "data.p"), s->note);

    arena_free(a);
    return ret;
}

static void until_reported(struct sim *s, const char *gpus)
{
    snprintf(s->note, sizeof(s->note), "%s", gpus);
    sim_until(s, reports, gpus);
}

static void check_reported(struct sim *s, const char *gpus)
{
    snprintf(s->note, sizeof(s->note), "%s", gpus);
    assert_true(reports(s));
}

static unsigned writes(struct sim *s)
{
    return fake_host_asked(s->host, "PATCH", "configmaps", false) +
           fake_host_asked(s->host, "POST", "configmaps", false);
}

static struct sim *with_binding(uint64_t seed, const char *binding)
{
    struct sim *s = sim_new_ready(seed, FOLLOW);

    fake_host_put(s->host, "gpubindings", binding);
    until_reported(s, "0");
    return s;
}

static void test_more_at_once_less_after_a_time(void **state)
{
    struct sim *s = with_binding(401, BINDING("", "4"));
    struct arena *a = arena_new(0);
    const cJSON *labels;
    unsigned before;

    (void)state;
    labels = json_path(demand(s, a), "metadata.labels");
    assert_true(str_eqc(json_str(json_get(labels, "app.kubernetes.io/managed-by")), "sublet") &&
                str_eqc(json_str(json_get(labels, "app.kubernetes.io/instance")), "sim") &&
                str_eq(json_str(json_get(json_path(demand(s, a), "metadata.annotations"),
                                         "sublet.dev/cluster-uid")),
                       s->syncer->tenant.cluster_uid));
    sim_create_pod(s, "a", GPU(2), "");
    sim_create_pod(s, "b", GPU(1), "");
    sim_until_runs(s, "a");
    sim_run_ms(s, 3000);
    check_reported(s, "3");
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pod_is_gone, "pod a");
    sim_run_ms(s, 20 * 1000);
    check_reported(s, "3");
    sim_create_pod(s, "c", GPU(1), ""); /* the most of the time since then is what is kept */
    sim_run_ms(s, 5000);
    check_reported(s, "3");
    sim_delete(s, "pods", "default", "c", 0);
    sim_run_ms(s, 10 * 1000);
    check_reported(s, "2");
    sim_run_ms(s, 40 * 1000);
    check_reported(s, "1");
    before = writes(s);
    sim_run_ms(s, 600 * 1000);
    assert_int_equal(writes(s), before);
    arena_free(a);
    sim_free(s);
}

/* One write for a burst; a flap within lendAfter is none. */
static void test_a_burst_is_written_once(void **state)
{
    struct sim *s = with_binding(402, BINDING("", "8"));
    unsigned before = writes(s);
    char name[8];

    (void)state;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        sim_create_pod(s, name, GPU(1), "");
    }
    until_reported(s, "8");
    assert_true(writes(s) - before <= 2);
    before = writes(s);
    for (int i = 0; i < 4; i++) {
        sim_delete(s, "pods", "default", "p0", 0);
        sim_run_ms(s, 4000);
        sim_create_pod(s, "p0", GPU(1), "");
        sim_run_ms(s, 4000);
    }
    assert_int_equal(writes(s), before);
    sim_free(s);
}

/* What stands in line counts; what no grant can ever hold is refused, and does not. */
static void test_the_line_counts(void **state)
{
    struct sim *s = with_binding(403, BINDING(QUEUED, "2"));

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    sim_create_pod(s, "huge", GPU(9), "");
    sim_create_pod(s, "b", GPU(3), "");
    until_reported(s, "5");
    sim_create_pod(s, "c", GPU(4), ""); /* the binding has no more than 8 */
    until_reported(s, "8");
    sim_delete(s, "pods", "default", "b", 0);
    sim_delete(s, "pods", "default", "c", 0);
    until_reported(s, "2");
    sim_free(s);
}

/* All that a workload lacks counts at once, though its controller tries pod by pod; that it was
 * scaled down is seen without another pod. */
static void test_what_a_workload_lacks_counts(void **state)
{
    struct sim *s = with_binding(404, BINDING("", "1"));
    int64_t began;

    (void)state;
    began = clock_mono_ms(&s->clock);
    sim_create(s, "replicasets.apps", "default", SET("5"));
    until_reported(s, "5");
    assert_true(clock_mono_ms(&s->clock) - began < 10 * 1000);
    sim_run_ms(s, 120 * 1000);
    check_reported(s, "5");
    sim_patch(s, "replicasets.apps", "default", "set", "{'spec':{'replicas':1}}");
    sim_run_ms(s, 70 * 1000);
    check_reported(s, "1");
    sim_patch(s, "replicasets.apps", "default", "set", "{'spec':{'replicas':1000000}}");
    until_reported(s, "8");
    sim_delete(s, "replicasets.apps", "default", "set", 0);
    until_reported(s, "0");
    sim_free(s);
}

/* Its user tries again: within lendAfter what was refused is there. */
static void test_a_refused_pod_is_wanted_for_a_time(void **state)
{
    struct sim *s = with_binding(405, BINDING("", "0"));

    (void)state;
    sim_create_pod(s, "huge", GPU(9), "");
    sim_create_pod(s, "a", GPU(3), "");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "exceeded quota"));
    until_reported(s, "3");
    sim_run_ms(s, 20 * 1000);
    check_reported(s, "3");
    fake_host_patch(s->host, "gpubindings", "b", "{\"status\":{\"grant\":\"3\"}}");
    sim_run_ms(s, 3000);
    sim_create_pod(s, "a", GPU(3), "");
    sim_until_runs(s, "a");
    sim_run_ms(s, 90 * 1000);
    check_reported(s, "3");
    sim_free(s);
}

/* Before the host has said what was reported last as well; and what no one tries again is wanted no
 * more, without another event. */
static void test_a_refused_pod_is_wanted_from_the_first_moment(void **state)
{
    struct sim *s = sim_new_ready(422, FOLLOW);

    (void)state;
    fake_host_faults(s->host)->slow = "configmaps";
    fake_host_put(s->host, "gpubindings", BINDING("", "0"));
    sim_run_ms(s, 400);
    sim_create_pod(s, "a", GPU(3), "");
    sim_run_ms(s, 100);
    for (int i = 0; i < 20; i++) {
        sim_create_pod(s, "b", GPU(1), "");
        sim_run_ms(s, 200);
    }
    until_reported(s, "3");
    sim_run_ms(s, 20 * 1000);
    check_reported(s, "3");
    sim_run_ms(s, 80 * 1000);
    check_reported(s, "0");
    sim_free(s);
}

/* What was reported last stands for lendAfter, whatever the successor has; then what it has. */
static void test_a_restart_lowers_nothing_at_once(void **state)
{
    struct sim *s = with_binding(406, BINDING("", "4"));

    (void)state;
    sim_create_pod(s, "a", GPU(4), "");
    until_reported(s, "4");
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pod_is_gone, "pod a");
    sim_run_ms(s, 25 * 1000);
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 20 * 1000);
    check_reported(s, "4");
    sim_run_ms(s, 30 * 1000);
    check_reported(s, "0");
    fake_host_patch(s->host, "configmaps", DEMAND,
                    "{\"data\":{\"p\":\"99999999999\",\"q\":\"7\"}}");
    sim_close(s);
    sim_open(s);
    until_reported(s, "8"); /* by another hand: no more than its own binding has */
    until_reported(s, "0");
    sim_free(s);
}

/* The report of before is stale, though what is wanted does not change. */
static void test_a_host_that_was_restored(void **state)
{
    struct sim *s = with_binding(420, BINDING("", "4"));
    struct fake_host_image *image;

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    until_reported(s, "2");
    image = fake_host_image(s->host);
    sim_create_pod(s, "b", GPU(2), "");
    until_reported(s, "4");
    sim_run_ms(s, 60 * 1000);
    fake_host_roll_back(s->host, image);
    check_reported(s, "2");
    until_reported(s, "4");
    sim_free(s);
}

static bool may_act(struct sim *s)
{
    return sync_lease_may_act(s->syncer->lease);
}

static bool may_not_act(struct sim *s)
{
    return !may_act(s);
}

/* What another process of this virtual cluster reported meanwhile is not this one's. */
static void test_another_process_led_meanwhile(void **state)
{
    struct sim *s = with_binding(421, BINDING("", "4"));
    unsigned before;

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    until_reported(s, "2");
    fake_host_faults(s->host)->down = true;
    sim_until(s, may_not_act, "the end of the Lease");
    fake_host_patch(s->host, "configmaps", DEMAND, "{\"data\":{\"p\":\"1\"}}");
    fake_host_faults(s->host)->down = false;
    sim_until(s, may_act, "the Lease");
    until_reported(s, "2");
    before = writes(s);
    sim_run_ms(s, 600 * 1000);
    assert_int_equal(writes(s), before);
    sim_free(s);
}

/* A pool that is bound no more is not reported. */
static void test_a_binding_that_ends_wants_nothing(void **state)
{
    struct sim *s = with_binding(407, BINDING("", "4"));
    struct arena *a = arena_new(0);

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    until_reported(s, "2");
    fake_host_remove(s->host, "gpubindings", "b");
    until_reported(s, "");
    assert_non_null(demand(s, a));
    arena_free(a);
    sim_free(s);
}

static bool is_noted(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "")) found |=
        str_eqc(json_str_at(event, "reason"), "GPUDemandExists");
    arena_free(a);
    return found;
}

/* One of that name that is another's, or a person's, stays as it is. */
static void test_anothers_is_left_alone(void **state)
{
    struct sim *s = sim_new_ready(408, FOLLOW);
    struct arena *a = arena_new(0);
    struct str version;

    (void)state;
    fake_host_put(s->host, "configmaps",
                  "{\"metadata\":{\"name\":\"" DEMAND "\",\"namespace\":\"h\"},"
                  "\"data\":{\"p\":\"1\"}}");
    version = json_str_at(demand(s, a), "metadata.resourceVersion");
    fake_host_put(s->host, "gpubindings", BINDING("", "4"));
    sim_until(s, is_noted, "the notice");
    sim_create_pod(s, "a", GPU(4), "");
    sim_until_runs(s, "a");
    sim_run_ms(s, 60 * 1000);
    check_reported(s, "1");
    assert_true(str_eq(json_str_at(demand(s, a), "metadata.resourceVersion"), version));
    arena_free(a);
    sim_free(s);
}

/* Without the option there is no report. */
static void test_without_the_option_there_is_none(void **state)
{
    struct sim *s = sim_new_ready(409, POOLS);
    struct arena *a = arena_new(0);

    (void)state;
    sim_create_pod(s, "a", GPU(4), "");
    sim_until_runs(s, "a");
    sim_run_ms(s, 60 * 1000);
    assert_null(demand(s, a));
    arena_free(a);
    sim_free(s);
}

/* Whatever fails on the way. */
static void test_it_ends_right(void **state)
{
    (void)state;
    for (uint64_t seed = 410; seed < 414; seed++) {
        struct sim *s = with_binding(seed, BINDING("", "4"));

        sim_spoil_host(s);
        sim_create_pod(s, "a", GPU(2), "");
        sim_run_ms(s, 5000);
        if (seed % 2) {
            sim_close(s);
            sim_open(s);
        }
        sim_create_pod(s, "b", GPU(1), "");
        sim_run_ms(s, 5000);
        sim_mend_host(s);
        until_reported(s, "3");
        assert_int_equal(fake_host_trespasses(s->host), 0);
        fake_host_remove(s->host, "configmaps", DEMAND);
        sim_create_pod(s, "c", GPU(1), "");
        until_reported(s, "4");
        sim_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_at_once_less_after_a_time),
        cmocka_unit_test(test_a_burst_is_written_once),
        cmocka_unit_test(test_the_line_counts),
        cmocka_unit_test(test_what_a_workload_lacks_counts),
        cmocka_unit_test(test_a_refused_pod_is_wanted_for_a_time),
        cmocka_unit_test(test_a_refused_pod_is_wanted_from_the_first_moment),
        cmocka_unit_test(test_a_restart_lowers_nothing_at_once),
        cmocka_unit_test(test_a_host_that_was_restored),
        cmocka_unit_test(test_another_process_led_meanwhile),
        cmocka_unit_test(test_a_binding_that_ends_wants_nothing),
        cmocka_unit_test(test_anothers_is_left_alone),
        cmocka_unit_test(test_without_the_option_there_is_none),
        cmocka_unit_test(test_it_ends_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
