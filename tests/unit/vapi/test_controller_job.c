/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: completions, indexes, failures with their delay, suspension, and what is left behind. */
#include "controller_world.h"

#define JOBS "jobs.batch"
#define POD                                                                                        \
    "'template':{'spec':{'restartPolicy':'Never',"                                                 \
    "'containers':[{'name':'c','image':'i'}]}}"
#define JOB(more) "{'metadata':{'name':'j'},'spec':{" more POD "}}"

static cJSON *job(void)
{
    return world_get(W, JOBS, "n", "j");
}

static size_t tracked(void)
{
    size_t n = 0;

    json_each(pod, world_list(W, "pods", "n")) n +=
        json_count(json_path(pod, "metadata.finalizers"));
    return n;
}

static size_t live(void)
{
    size_t n = 0;

    json_each(pod, world_list(W, "pods", "n"))
    {
        struct str phase = json_str_at(pod, "status.phase");

        n += !json_path(pod, "metadata.deletionTimestamp") && !str_eqc(phase, "Succeeded") &&
             !str_eqc(phase, "Failed");
    }
    return n;
}

static void completes(void **state)
{
    (void)state;
    world_fate(POD_SUCCEEDS);
    world_create(W, JOBS, "n", JOB("'completions':5,'parallelism':2,"));
    world_settle(W);
    assert_int_equal(world_i64(job(), "status.succeeded"), 5);
    assert_int_equal(world_i64(job(), "status.active"), 0);
    assert_string_equal(world_condition(W, job(), "Complete"), "True");
    assert_string_equal(world_reason(W, job(), "Complete"), "CompletionsReached");
    assert_string_equal(world_condition(W, job(), "SuccessCriteriaMet"), "True");
    assert_non_null(json_path(job(), "status.completionTime"));
    assert_int_equal(json_count(json_path(job(), "status.uncountedTerminatedPods")), 0);
    assert_int_equal(tracked(), 0);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 5);
    assert_int_equal(world_events(W, "n", "Job", "SuccessfulCreate"), 5);
    assert_int_equal(world_events(W, "n", "Job", "Completed"), 1);
}

static void keeps_to_parallelism(void **state)
{
    (void)state;
    world_fate(POD_READY);
    world_create(W, JOBS, "n", JOB("'completions':5,'parallelism':2,"));
    world_settle(W);
    assert_int_equal(world_i64(job(), "status.active"), 2);
    assert_int_equal(world_i64(job(), "status.ready"), 2);
    assert_int_equal(tracked(), 2);
    world_patch(W, JOBS, "n", "j", "{'spec':{'parallelism':4}}");
    world_settle(W);
    assert_int_equal(world_i64(job(), "status.active"), 4);
    world_patch(W, JOBS, "n", "j", "{'spec':{'parallelism':1}}");
    world_settle(W);
    assert_int_equal(world_i64(job(), "status.active"), 1);
    assert_int_equal(world_i64(job(), "status.failed"), 0); /* given up, not failed */
}

static void gives_every_index_once(void **state)
{
    (void)state;
    world_fate(POD_READY);
    world_create(W, JOBS, "n", JOB("'completionMode':'Indexed','completions':4,'parallelism':3,"));
    world_settle(W);
    for (const char *i = "012"; *i; i++) {
        char text[2] = {*i, 0};

        assert_int_equal(
            world_count(W, "pods", "n", "batch.kubernetes.io/job-completion-index", text), 1);
    }
    json_each(pod, world_list(W, "pods", "n"))
    {
        struct str index = json_str(json_get(json_path(pod, "metadata.annotations"),
                                             "batch.kubernetes.io/job-completion-index"));
        struct str host = arena_concat(world_arena(W), 2, (struct str[]){STR("j-"), index});

        assert_true(index.n);
        assert_true(str_eq(json_str_at(pod, "spec.hostname"), host));
        assert_true(str_has_prefix(json_str_at(pod, "metadata.name"), host));
        assert_str(
            json_str_at(json_first(json_path(json_first(json_path(pod, "spec.containers")), "env")),
                        "name"),
            "JOB_COMPLETION_INDEX");
    }
    world_fate(POD_SUCCEEDS);
    world_settle(W);
    assert_string_equal(world_condition(W, job(), "Complete"), "True");
    assert_str(json_str_at(job(), "status.completedIndexes"), "0-3");
    assert_int_equal(world_i64(job(), "status.succeeded"), 4);
    assert_int_equal(tracked(), 0);
}

static void fails_after_growing_delays(void **state)
{
    (void)state;
    world_fate(POD_FAILS);
    world_create(W, JOBS, "n", JOB("'backoffLimit':2,"));
    world_settle(W);
    assert_int_equal(world_i64(job(), "status.failed"), 1);
    world_pass(W, 8);
    assert_int_equal(world_i64(job(), "status.failed"), 1);
    world_pass(W, 4);
    assert_int_equal(world_i64(job(), "status.failed"), 2);
    world_pass(W, 15);
    assert_int_equal(world_i64(job(), "status.failed"), 2);
    world_pass(W, 10);
    assert_int_equal(world_i64(job(), "status.failed"), 3);
    assert_string_equal(world_condition(W, job(), "Failed"), "True");
    assert_string_equal(world_reason(W, job(), "Failed"), "BackoffLimitExceeded");
    assert_string_equal(world_condition(W, job(), "FailureTarget"), "True");
    assert_null(json_path(job(), "status.completionTime"));
    assert_int_equal(world_events(W, "n", "Job", "BackoffLimitExceeded"), 1);
    assert_int_equal(tracked(), 0);
    world_pass(W, 1000);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 3);
}

static void ends_at_its_deadline(void **state)
{
    (void)state;
    world_fate(POD_READY);
    world_create(W, JOBS, "n", JOB("'activeDeadlineSeconds':30,'completions':2,'parallelism':2,"));
    world_settle(W);
    world_pass(W, 20);
    assert_int_equal(live(), 2);
    world_pass(W, 200);
    assert_int_equal(live(), 0);
    assert_string_equal(world_reason(W, job(), "Failed"), "DeadlineExceeded");
    assert_int_equal(world_i64(job(), "status.failed"), 2);
    assert_int_equal(tracked(), 0);
}

static void rests_while_suspended(void **state)
{
    (void)state;
    world_fate(POD_READY);
    world_create(W, JOBS, "n", JOB("'suspend':true,"));
    world_settle(W);
    assert_int_equal(live(), 0);
    assert_null(json_path(job(), "status.startTime"));
    assert_string_equal(world_condition(W, job(), "Suspended"), "True");
    world_patch(W, JOBS, "n", "j", "{'spec':{'suspend':false}}");
    world_settle(W);
    assert_int_equal(live(), 1);
    assert_string_equal(world_condition(W, job(), "Suspended"), "False");
    world_patch(W, JOBS, "n", "j", "{'spec':{'suspend':true}}");
    world_settle(W);
    assert_int_equal(live(), 0);
    assert_int_equal(world_i64(job(), "status.failed"), 0);
    assert_int_equal(world_events(W, "n", "Job", "Suspended"), 2);
    assert_int_equal(world_events(W, "n", "Job", "Resumed"), 1);
}

static void goes_when_its_time_is_over(void **state)
{
    (void)state;
    world_fate(POD_SUCCEEDS);
    world_create(W, JOBS, "n", JOB("'ttlSecondsAfterFinished':60,"));
    world_settle(W);
    world_pass(W, 50);
    assert_non_null(job());
    world_pass(W, 20);
    assert_null(job());
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
}

static void leaves_no_finalizer_behind(void **state)
{
    (void)state;
    world_fate(POD_READY);
    world_create(W, JOBS, "n", JOB("'completions':3,'parallelism':3,"));
    world_settle(W);
    assert_int_equal(tracked(), 3);
    world_delete(W, JOBS, "n", "j", "Orphan");
    /* Two controllers write the same pods: a conflict is tried again after a moment. */
    world_pass(W, 10);
    assert_null(job());
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 3);
    assert_int_equal(tracked(), 0);
}

static void takes_its_pods_along(void **state)
{
    (void)state;
    world_fate(POD_READY);
    world_create(W, JOBS, "n", JOB("'completions':3,'parallelism':3,"));
    world_settle(W);
    world_delete(W, JOBS, "n", "j", "Background");
    world_pass(W, 60);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
}

static void counts_a_deleted_pod_once(void **state)
{
    (void)state;
    world_fate(POD_READY);
    world_create(W, JOBS, "n", JOB(""));
    world_settle(W);
    const cJSON *pod = json_first(world_list(W, "pods", "n"));
    world_delete(W, "pods", "n", json_str_at(pod, "metadata.name").p, NULL);
    world_pass(W, 60);
    assert_int_equal(world_i64(job(), "status.failed"), 1);
    assert_int_equal(live(), 1);
}

/* ---- what the job's own rules make of failures ---- */

#define INDEXED "'completionMode':'Indexed',"

/* Pods of the indexes named in ctx fail, the others succeed. */
static enum fate some_fail(void *ctx, const cJSON *pod)
{
    struct str index = json_str(json_get(json_path(pod, "metadata.annotations"),
                                         "batch.kubernetes.io/job-completion-index"));

    return index.n == 1 && str_find(str_c(ctx), index.p[0]) < str_c(ctx).n ? POD_FAILS
                                                                           : POD_SUCCEEDS;
}

static void policy_fails_the_job(void **state)
{
    (void)state;
    world_fate(POD_FAILS);
    world_create(W, JOBS, "n",
                 JOB("'podFailurePolicy':{'rules':[{'action':'Ignore','onExitCodes':{"
                     "'operator':'In','values':[42]}},{'action':'FailJob','onExitCodes':{"
                     "'containerName':'c','operator':'In','values':[1,2]}}]},"));
    world_settle(W);
    assert_string_equal(world_reason(W, job(), "Failed"), "PodFailurePolicy");
    assert_true(
        str_has_suffix(json_str_at(json_at(json_path(job(), "status.conditions"), 0), "message"),
                       STR("failed with exit code 1 matching FailJob rule at index 1")));
    assert_int_equal(world_i64(job(), "status.failed"), 1);
    assert_int_equal(tracked(), 0);
    world_pass(W, 100);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 1);
}

static void policy_ignores_failures(void **state)
{
    (void)state;
    world_fate(POD_FAILS);
    world_create(W, JOBS, "n",
                 JOB("'backoffLimit':0,'podFailurePolicy':{'rules':[{'action':'Ignore',"
                     "'onExitCodes':{'operator':'NotIn','values':[42]}}]},"));
    world_pass(W, 40);
    assert_int_equal(world_i64(job(), "status.failed"), 0);
    assert_true(world_count(W, "pods", "n", NULL, NULL) > 1);
    world_fate(POD_SUCCEEDS);
    world_pass(W, 1000);
    assert_string_equal(world_condition(W, job(), "Complete"), "True");
    assert_int_equal(tracked(), 0);
}

static void policy_looks_at_conditions(void **state)
{
    (void)state;
    world_fate(POD_RUNS);
    world_create(W, JOBS, "n",
                 JOB("'podFailurePolicy':{'rules':[{'action':'FailJob','onPodConditions':[{"
                     "'type':'DisruptionTarget','status':'True'}]}]},"));
    world_settle(W);
    const cJSON *pod = json_first(world_list(W, "pods", "n"));
    world_freeze(W, true);
    world_patch_status(W, "pods", "n", json_str_at(pod, "metadata.name").p,
                       "{'status':{'phase':'Failed','conditions':[{'type':'DisruptionTarget',"
                       "'status':'True'}]}}");
    world_settle(W);
    assert_string_equal(world_reason(W, job(), "Failed"), "PodFailurePolicy");
}

static void an_index_fails_by_itself(void **state)
{
    (void)state;
    world_fates(W, some_fail, (char *)(uintptr_t) "1");
    world_create(W, JOBS, "n",
                 JOB(INDEXED "'completions':3,'parallelism':3,'backoffLimitPerIndex':1,"));
    world_settle(W);
    /* Index 1 waits for its second try. Its first pod stays, to pass its count on. */
    assert_str(json_str_at(job(), "status.completedIndexes"), "0,2");
    assert_str(json_str_at(job(), "status.failedIndexes"), "");
    assert_int_equal(tracked(), 1);
    assert_int_equal(world_i64(job(), "status.failed"), 0);
    world_pass(W, 15);
    assert_str(json_str_at(job(), "status.failedIndexes"), "1");
    assert_string_equal(world_reason(W, job(), "Failed"), "FailedIndexes");
    assert_int_equal(world_i64(job(), "status.failed"), 2);
    assert_int_equal(world_i64(job(), "status.succeeded"), 2);
    assert_int_equal(tracked(), 0);
    size_t counted = 0;
    json_each(pod, world_list(W, "pods", "n")) counted +=
        str_eqc(json_str(json_get(json_path(pod, "metadata.annotations"),
                                  "batch.kubernetes.io/job-index-failure-count")),
                "1");
    assert_int_equal(counted, 1);
}

static void too_many_indexes_end_it(void **state)
{
    (void)state;
    world_fates(W, some_fail, (char *)(uintptr_t) "012");
    world_create(W, JOBS, "n",
                 JOB(INDEXED "'completions':9,'parallelism':1,'backoffLimitPerIndex':0,"
                             "'maxFailedIndexes':1,"));
    world_pass(W, 60);
    assert_string_equal(world_reason(W, job(), "Failed"), "MaxFailedIndexesExceeded");
    assert_str(json_str_at(job(), "status.failedIndexes"), "0,1");
    assert_int_equal(tracked(), 0);
}

static void a_rule_gives_an_index_up(void **state)
{
    (void)state;
    world_fates(W, some_fail, (char *)(uintptr_t) "0");
    world_create(W, JOBS, "n",
                 JOB(INDEXED "'completions':2,'parallelism':2,'backoffLimitPerIndex':5,"
                             "'podFailurePolicy':{'rules':[{'action':'FailIndex','onExitCodes':{"
                             "'operator':'In','values':[1]}}]},"));
    world_settle(W);
    assert_str(json_str_at(job(), "status.failedIndexes"), "0");
    assert_string_equal(world_reason(W, job(), "Failed"), "FailedIndexes");
}

static enum fate first_succeeds(void *ctx, const cJSON *pod)
{
    (void)ctx;
    return some_fail((char *)(uintptr_t) "0", pod) == POD_FAILS ? POD_SUCCEEDS : POD_READY;
}

static void policy_has_enough_successes(void **state)
{
    (void)state;
    world_fates(W, first_succeeds, NULL);
    world_create(W, JOBS, "n",
                 JOB(INDEXED "'completions':4,'parallelism':4,'successPolicy':{'rules':["
                             "{'succeededIndexes':'2-3'},{'succeededIndexes':'0,2',"
                             "'succeededCount':1}]},"));
    world_pass(W, 60);
    assert_string_equal(world_condition(W, job(), "Complete"), "True");
    assert_string_equal(world_reason(W, job(), "Complete"), "SuccessPolicy");
    assert_string_equal(world_reason(W, job(), "SuccessCriteriaMet"), "SuccessPolicy");
    assert_str(json_str_at(job(), "status.completedIndexes"), "0");
    assert_int_equal(live(), 0);
    assert_int_equal(tracked(), 0);
}

static void ends_while_suspended(void **state)
{
    (void)state;
    world_fates(W, first_succeeds, NULL);
    world_create(W, JOBS, "n", JOB(INDEXED "'completions':2,'parallelism':2,"));
    world_settle(W);
    assert_int_equal(world_i64(job(), "status.succeeded"), 1);
    world_patch(W, JOBS, "n", "j", "{'spec':{'suspend':true}}");
    world_settle(W);
    assert_null(json_path(job(), "status.startTime"));
    world_patch(W, JOBS, "n", "j", "{'spec':{'completions':1,'parallelism':1}}");
    world_pass(W, 60);
    assert_string_equal(world_condition(W, job(), "Complete"), "True");
    assert_true(json_equal(json_path(job(), "status.startTime"),
                           json_path(job(), "status.completionTime")));
    assert_int_equal(tracked(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(completes),
        WORLD_TEST(keeps_to_parallelism),
        WORLD_TEST(gives_every_index_once),
        WORLD_TEST(fails_after_growing_delays),
        WORLD_TEST(ends_at_its_deadline),
        WORLD_TEST(rests_while_suspended),
        WORLD_TEST(goes_when_its_time_is_over),
        WORLD_TEST(leaves_no_finalizer_behind),
        WORLD_TEST(takes_its_pods_along),
        WORLD_TEST(counts_a_deleted_pod_once),
        WORLD_TEST(policy_fails_the_job),
        WORLD_TEST(policy_ignores_failures),
        WORLD_TEST(policy_looks_at_conditions),
        WORLD_TEST(an_index_fails_by_itself),
        WORLD_TEST(too_many_indexes_end_it),
        WORLD_TEST(a_rule_gives_an_index_up),
        WORLD_TEST(policy_has_enough_successes),
        WORLD_TEST(ends_while_suspended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
