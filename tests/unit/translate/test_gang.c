/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs: whose pods are one, of how many, in the keys of each scheduler. */

#include <sublet/translate_gang.h>

#include "allowed.h"
#include "test.h"

static const char CONFIG[] =
    "name: research\n"
    "pools:\n"
    "- {name: kueue, nodeSelector: {sublet.dev/pool: kueue}, resources: {nvidia.com/gpu: {gpuEq: "
    "1}}, scheduler: {kind: kueue, queueTemplate: q, gang: true}}\n"
    "- {name: kai, nodeSelector: {sublet.dev/pool: kai}, resources: {amd.com/gpu: {gpuEq: 1}}, "
    "scheduler: {kind: kai, queueTemplate: q, gang: true}}\n"
    "- {name: vol, nodeSelector: {sublet.dev/pool: vol}, resources: {nvidia.com/h200: {gpuEq: 1}}, "
    "scheduler: {kind: volcano, queueTemplate: q, gang: true}}\n"
    "- {name: native, nodeSelector: {sublet.dev/pool: native}, resources: {nvidia.com/b200: "
    "{gpuEq: 1}}, scheduler: {kind: native, gang: true}}\n"
    "- {name: alone, nodeSelector: {sublet.dev/pool: alone}, resources: {nvidia.com/l4: {gpuEq: "
    "1}}, scheduler: {kind: volcano, name: other, queueTemplate: q}}\n"
    "bindings: [{pool: kueue, guarantee: 8}, {pool: kai, guarantee: 8}, {pool: vol, guarantee: 8}, "
    "{pool: native, guarantee: 8}, {pool: alone, guarantee: 8}]\n";

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

static cJSON *pod(struct fixture *f, const char *meta, const char *resource)
{
    return doc(f, arena_printf(f->a,
                               "{metadata: {name: p, namespace: ml, uid: u, ownerReferences: "
                               "[{apiVersion: batch/v1, kind: Job, name: train, uid: j, "
                               "controller: true}], %s}, spec: {containers: [{name: c, image: i, "
                               "resources: {limits: {%s: 1}}}]}}",
                               meta, resource)
                      .p);
}

static const struct config_pool *pool(struct fixture *f, size_t i)
{
    return &f->config.pools[i];
}

static cJSON *down(struct fixture *f, const cJSON *vpod, const char *gang)
{
    struct pool_choice choice;
    cJSON *ret = NULL;

    assert_ok(pool_resolve(f->a, &f->config, STR("ml"), vpod, NULL, &choice, &f->err));
    choice.gang = str_c(gang);
    choice.gang_size = 3;
    assert_ok(translate_pod(f->a, &f->tenant, &choice, vpod, NULL, &ret, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    return ret;
}

static struct str note(const cJSON *host, const char *key)
{
    return json_str(json_get(json_path(host, "metadata.annotations"), key));
}

enum { KUEUE, KAI, VOLCANO, NATIVE, ALONE };

static void name_of(struct fixture *f, const char *pool, const char *ns, const char *owner,
                    char out[64])
{
    translate_gang_name(&f->tenant, str_c(pool), SCHEDULER_KAI, str_c(ns), str_c(owner), 0, out);
}

static void a_name_is_the_namespaces_and_the_owners(void **state)
{
    struct fixture *f = *state;
    char one[64], other[64];

    name_of(f, "kai", "ml", "j", one);
    assert_int_equal(strlen(one), 29);
    assert_memory_equal(one, "g-", 2);
    name_of(f, "kai", "ml", "k", other);
    assert_memory_equal(one, other, 13); /* the same virtual cluster */
    assert_string_not_equal(one, other);
    name_of(f, "kai", "m", "lj", other);
    assert_string_not_equal(one, other);
    name_of(f, "other", "ml", "j", other); /* whose queue is another */
    assert_string_not_equal(one, other);
    translate_gang_name(&f->tenant, STR("kai"), SCHEDULER_KAI, STR("ml"), STR("j"), 3, other);
    assert_string_not_equal(one, other);
    translate_gang_name(&f->tenant, STR("kai"), SCHEDULER_VOLCANO, STR("ml"), STR("j"), 0, other);
    assert_string_not_equal(one, other);
    f->tenant.host_namespace = STR("another");
    name_of(f, "kai", "ml", "j", other);
    assert_memory_not_equal(one, other, 13);
}

/* A pod may name any owner: what a record could be read wrongly by has no gang. */
static void owners_that_have_none(void **state)
{
    static const char *const bad[] = {
        "",    " 1",   "U 1",
        "a/b", "a\"b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(translate_gang_is_owner(str_c(bad[i])));
    assert_true(translate_gang_is_owner(STR("01b9fb2c-809e-4eeb-a0d3-3328ca716939")));
}

static void a_job_is_what_still_runs_at_once(void **state)
{
    static const struct {
        const char *job;
        int64_t kai, kueue;
    } cases[] = {
        {"{spec: {}}", 1, 0},
        {"{spec: {parallelism: 4}}", 4, 4},
        {"{spec: {parallelism: 4, completions: 4}}", 4, 4},
        {"{spec: {parallelism: 4, completions: 2}}", 2, 2},
        {"{spec: {parallelism: 4, completions: 8}}", 4, 0},
        {"{spec: {parallelism: 4, completions: 8}, status: {succeeded: 6}}", 2, 0},
        {"{spec: {parallelism: 4, completions: 4}, status: {succeeded: 1}}", 3, 4},
        {"{spec: {parallelism: 4, completions: 4}, status: {succeeded: 9}}", 1, 4},
        {"{spec: {parallelism: 4, completions: 5}, status: {failedIndexes: '0-2,4'}}", 1, 0},
        {"{spec: {parallelism: 4, completions: 5}, status: {succeeded: 1, failedIndexes: '0-1'}}",
         2, 0},
        {"{spec: {parallelism: 4, completions: 5}, status: {failedIndexes: "
         "'0-9223372036854775807,x,-,7-2'}}",
         1, 0},
        {"{spec: {parallelism: 0}}", 0, 0},
        {"{spec: {parallelism: -9223372036854775808, completions: 3}}", 0, 0},
        {"{spec: {parallelism: 9223372036854775807}}", INT32_MAX, INT32_MAX},
        {"{spec: {parallelism: 2, completions: -9223372036854775808}, status: {succeeded: "
         "9223372036854775807}}",
         1, 0},
    };
    struct fixture *f = *state;
    const cJSON *vpod = pod(f, "labels: {}", "cpu");

    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *job = doc(f, cases[i].job);

        assert_int_equal(translate_gang_size(pool(f, KAI), vpod, job, 0), cases[i].kai);
        assert_int_equal(translate_gang_size(pool(f, VOLCANO), vpod, job, 0), cases[i].kai);
        assert_int_equal(translate_gang_size(pool(f, NATIVE), vpod, job, 0), cases[i].kai);
        if (i != 14)
            assert_int_equal(translate_gang_size(pool(f, KUEUE), vpod, job, 0), cases[i].kueue);
        assert_int_equal(translate_gang_size(pool(f, ALONE), vpod, job, 0), 0);
    }
}

static void another_owner_says_its_size(void **state)
{
    struct fixture *f = *state;
    cJSON *vpod = pod(f, "annotations: {" GANG_SIZE_KEY ": '4'}", "amd.com/gpu");
    struct pool_choice choice;

    assert_int_equal(translate_gang_size(pool(f, KAI), vpod, NULL, 0), 4);
    assert_int_equal(translate_gang_size(pool(f, KAI), vpod, NULL, 1), 3);
    assert_int_equal(translate_gang_size(pool(f, KAI), vpod, NULL, 9), 1);
    assert_int_equal(translate_gang_size(pool(f, KUEUE), vpod, NULL, 1), 4);
    assert_int_equal(translate_gang_size(pool(f, KAI), vpod, doc(f, "{spec: {parallelism: 2}}"), 0),
                     2);
    assert_int_equal(translate_gang_size(pool(f, KAI), vpod, doc(f, "{spec: {parallelism: 6}}"), 0),
                     4);
    assert_int_equal(translate_gang_size(pool(f, KAI), pod(f, "labels: {}", "cpu"), NULL, 0), 0);
    json_remove(json_get(vpod, "metadata"), "ownerReferences");
    assert_int_equal(translate_gang_size(pool(f, KAI), vpod, NULL, 0), 0);

    for (size_t i = 0; i < 5; i++) {
        static const char *const bad[] = {"many", "0", "-1", "10001", "2.5"};

        vpod = pod(f, arena_printf(f->a, "annotations: {" GANG_SIZE_KEY ": '%s'}", bad[i]).p,
                   "amd.com/gpu");
        assert_int_equal(pool_resolve(f->a, &f->config, STR("ml"), vpod, NULL, &choice, &f->err),
                         -1);
        assert_has(f->err.message, "is not a number of pods from 1 to 10000");
    }
}

static void each_scheduler_has_its_keys(void **state)
{
    static const char theirs[] =
        "labels: {kueue.x-k8s.io/pod-group-name: theirs}, annotations: {pod-group-name: theirs, "
        "scheduling.k8s.io/group-name: theirs, kueue.x-k8s.io/pod-group-total-count: '9', "
        "kai.scheduler/skip-podgrouper: 'false'}";
    struct fixture *f = *state;
    char gang[64];
    cJSON *host;

    name_of(f, "kai", "ml", "j", gang);
    host = down(f, pod(f, theirs, "nvidia.com/gpu"), gang);
    assert_str(
        json_str(json_get(json_path(host, "metadata.labels"), "kueue.x-k8s.io/pod-group-name")),
        gang);
    assert_str(note(host, "kueue.x-k8s.io/pod-group-total-count"), "3");
    assert_str(note(host, "pod-group-name"), "");
    assert_str(translate_gang_of_host_pod(host, SCHEDULER_KUEUE), gang);

    host = down(f, pod(f, theirs, "amd.com/gpu"), gang);
    assert_str(note(host, "pod-group-name"), gang);
    assert_str(note(host, "kai.scheduler/skip-podgrouper"), "true");
    assert_str(note(host, "scheduling.k8s.io/group-name"), "");
    assert_str(translate_gang_of_host_pod(host, SCHEDULER_KAI), gang);
    assert_str(translate_gang_of_host_pod(host, SCHEDULER_VOLCANO), "");

    host = down(f, pod(f, theirs, "nvidia.com/h200"), gang);
    assert_str(note(host, "scheduling.k8s.io/group-name"), gang);
    assert_str(translate_gang_of_host_pod(host, SCHEDULER_VOLCANO), gang);

    host = down(f, pod(f, theirs, "nvidia.com/b200"), gang);
    assert_json(json_path(host, "spec.schedulingGroup"),
                arena_printf(f->a, "{podGroupName: %s}", gang).p);
    assert_str(note(host, "pod-group-name"), "");
    assert_str(note(host, "scheduling.k8s.io/group-name"), "");
    assert_str(translate_gang_of_host_pod(host, SCHEDULER_NATIVE), gang);
    assert_str(translate_gang_of_host_pod(host, SCHEDULER_KAI), "");
    host = down(f, pod(f, theirs, "nvidia.com/b200"), "");
    assert_null(json_path(host, "spec.schedulingGroup"));

    host = down(f, pod(f, theirs, "amd.com/gpu"), "");
    assert_str(note(host, "pod-group-name"), "");
    assert_str(note(host, "kai.scheduler/skip-podgrouper"), "");
}

static void a_pod_group_has_fields_of_ours(void **state)
{
    struct fixture *f = *state;
    const cJSON *vpod = pod(f, "labels: {a: b}", "amd.com/gpu");
    struct str ns, uid;
    char gang[64];
    cJSON *group, *now;

    name_of(f, "kai", "ml", "j", gang);
    group = translate_gang_group(f->a, &f->tenant, pool(f, KAI), vpod, str_c(gang), 3, STR("low"));
    assert_json(json_get(group, "spec"), "{minMember: 3, queue: q, priorityClassName: low}");
    assert_str(json_str(json_get(group, "apiVersion")), "scheduling.run.ai/v2alpha2");
    assert_true(translate_gang_owner(&f->tenant, SCHEDULER_KAI, group, &ns, &uid));
    assert_str(ns, "ml");
    assert_str(uid, "j");

    now = json_copy(f->a, group);
    json_set_str(f->a, json_get(now, "spec"), "markUnschedulable", STR("true"));
    assert_null(translate_gang_update(f->a, now, group));
    json_set_i64(f->a, json_get(now, "spec"), "minMember", 4);
    assert_json(translate_gang_update(f->a, now, group), "{spec: {minMember: 3}}");
    json_remove(json_get(group, "spec"), "priorityClassName");
    assert_json(translate_gang_update(f->a, now, group),
                "{spec: {minMember: 3, priorityClassName: null}}");

    assert_false(translate_gang_owner(&f->tenant, SCHEDULER_VOLCANO, now, &ns, &uid));
    json_set_str(f->a, json_get(now, "metadata"), "name", STR("copy"));
    assert_false(translate_gang_owner(&f->tenant, SCHEDULER_KAI, now, &ns, &uid));
    assert_null(translate_gang_root(SCHEDULER_KUEUE).p);
}

/* The class is the group's for good, and what the host defaults is no difference. */
static void of_a_native_group_the_size_alone_changes(void **state)
{
    struct fixture *f = *state;
    const cJSON *vpod = pod(f, "labels: {a: b}", "nvidia.com/b200");
    struct str ns, uid;
    char gang[64];
    cJSON *group, *now;

    translate_gang_name(&f->tenant, STR("native"), SCHEDULER_NATIVE, STR("ml"), STR("j"), 0, gang);
    group = translate_gang_group(f->a, &f->tenant, pool(f, NATIVE), vpod, str_c(gang), 3, STR(""));
    assert_json(json_get(group, "spec"), "{schedulingPolicy: {gang: {minCount: 3}}}");
    assert_str(json_str(json_get(group, "apiVersion")), "scheduling.k8s.io/v1beta1");
    assert_true(translate_gang_owner(&f->tenant, SCHEDULER_NATIVE, group, &ns, &uid));

    now = json_copy(f->a, group);
    json_set_str(f->a, json_get(now, "spec"), "priorityClassName", STR("the-default"));
    assert_null(translate_gang_update(f->a, now, group));
    group = translate_gang_group(f->a, &f->tenant, pool(f, NATIVE), vpod, str_c(gang), 2, STR("p"));
    assert_json(json_get(group, "spec"),
                "{priorityClassName: p, schedulingPolicy: {gang: {minCount: 2}}}");
    assert_json(translate_gang_update(f->a, now, group),
                "{spec: {schedulingPolicy: {gang: {minCount: 2}}}}");
}

/* What the scheduler says goes before, and a pod that is in no group says nothing. */
static void an_incomplete_native_gang_says_so(void **state)
{
    struct fixture *f = *state;
    const cJSON *vpod = pod(f, "labels: {a: b}", "nvidia.com/b200");
    char gang[64];
    cJSON *host, *up;

    translate_gang_name(&f->tenant, STR("native"), SCHEDULER_NATIVE, STR("ml"), STR("j"), 0, gang);
    host = down(f, vpod, gang);
    json_set_str(f->a, json_get(host, "metadata"), "creationTimestamp",
                 STR("2026-01-01T00:00:00Z"));
    json_set(f->a, host, "status", doc(f, "{phase: Pending, qosClass: BestEffort}"));
    up = translate_pod_status_up(f->a, &f->tenant, host, vpod, true);
    assert_json(json_get(up, "conditions"),
                "[{type: PodScheduled, status: 'False', lastTransitionTime: "
                "'2026-01-01T00:00:00Z', reason: Unschedulable, message: waiting for the other "
                "pods of its gang, lastProbeTime: null}]");
    json_set(f->a, json_get(host, "status"), "conditions",
             doc(f, "[{type: PodScheduled, status: 'True'}]"));
    up = translate_pod_status_up(f->a, &f->tenant, host, vpod, true);
    assert_json(json_get(up, "conditions"), "[{type: PodScheduled, status: 'True'}]");
    host = down(f, vpod, "");
    json_set(f->a, host, "status", doc(f, "{phase: Pending, qosClass: BestEffort}"));
    up = translate_pod_status_up(f->a, &f->tenant, host, vpod, true);
    assert_null(json_get(up, "conditions"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_name_is_the_namespaces_and_the_owners, setup, teardown),
        cmocka_unit_test_setup_teardown(owners_that_have_none, setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_is_what_still_runs_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(another_owner_says_its_size, setup, teardown),
        cmocka_unit_test_setup_teardown(each_scheduler_has_its_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pod_group_has_fields_of_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_native_group_the_size_alone_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(an_incomplete_native_gang_says_so, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
