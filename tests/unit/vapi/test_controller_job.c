/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: completions, indexes, failures with their delay, suspension, and what is left behind. */
#include "controller_world.h"

#define JOBS      "jobs.batch"
#define POD       "'template':{'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}"
#define JOB(more) "{'metadata':{'name':'j'},'spec':{" more POD "}}"

static struct world *W;

static int set_up(void **state)
{
    (void)state;
    W = world_new(1);
    world_create(W, "namespaces", "", "{'metadata':{'name':'n'}}");
    world_settle(W);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_free(W);
    return 0;
}

static enum fate always(void *ctx, const cJSON *pod)
{
    (void)pod;
    return *(enum fate *)ctx;
}

static enum fate FATE;

static void fate(enum fate f)
{
    FATE = f;
    world_fates(W, always, &FATE);
}

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
    fate(POD_SUCCEEDS);
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
    fate(POD_READY);
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
    fate(POD_READY);
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
    fate(POD_SUCCEEDS);
    world_settle(W);
    assert_string_equal(world_condition(W, job(), "Complete"), "True");
    assert_str(json_str_at(job(), "status.completedIndexes"), "0-3");
    assert_int_equal(world_i64(job(), "status.succeeded"), 4);
    assert_int_equal(tracked(), 0);
}

static void fails_after_growing_delays(void **state)
{
    (void)state;
    fate(POD_FAILS);
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
    fate(POD_READY);
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
    fate(POD_READY);
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
    fate(POD_SUCCEEDS);
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
    fate(POD_READY);
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
    fate(POD_READY);
    world_create(W, JOBS, "n", JOB("'completions':3,'parallelism':3,"));
    world_settle(W);
    world_delete(W, JOBS, "n", "j", "Background");
    world_pass(W, 60);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
}

static void counts_a_deleted_pod_once(void **state)
{
    (void)state;
    fate(POD_READY);
    world_create(W, JOBS, "n", JOB(""));
    world_settle(W);
    const cJSON *pod = json_first(world_list(W, "pods", "n"));
    world_delete(W, "pods", "n", json_str_at(pod, "metadata.name").p, NULL);
    world_pass(W, 60);
    assert_int_equal(world_i64(job(), "status.failed"), 1);
    assert_int_equal(live(), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(completes),
        TEST(keeps_to_parallelism),
        TEST(gives_every_index_once),
        TEST(fails_after_growing_delays),
        TEST(ends_at_its_deadline),
        TEST(rests_while_suspended),
        TEST(goes_when_its_time_is_over),
        TEST(leaves_no_finalizer_behind),
        TEST(takes_its_pods_along),
        TEST(counts_a_deleted_pod_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
