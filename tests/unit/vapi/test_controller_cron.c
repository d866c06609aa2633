/* SPDX-License-Identifier: Apache-2.0 */
/* CronJobs: when they are due, what they start, and what they forget. */
#include "../../../vapi/controller/cron_schedule.h"
#include "controller_world.h"

#include <sublet/clock.h>

#define CRONS "cronjobs.batch"
#define JOBS  "jobs.batch"
#define CRON(schedule, more)                                                                       \
    "{'metadata':{'name':'c'},'spec':{'schedule':'" schedule "'," more                             \
    "'jobTemplate':{'metadata':{'labels':{'a':'b'}},'spec':{'template':{'spec':{"                  \
    "'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}}}}}"

static struct world *W;
static enum fate FATE;

static enum fate always(void *ctx, const cJSON *pod)
{
    (void)pod;
    return *(enum fate *)ctx;
}

static int set_up(void **state)
{
    (void)state;
    W = world_new(1);
    FATE = POD_SUCCEEDS;
    world_fates(W, always, &FATE);
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

static cJSON *cron(void)
{
    return world_get(W, CRONS, "n", "c");
}

static size_t jobs(void)
{
    return json_count(world_list(W, JOBS, "n"));
}

/* ---- the schedule ---- */

static int64_t at(const char *text)
{
    int64_t us;

    assert_true(time_parse(str_c(text), &us));
    return us / 1000000;
}

static void finds_the_next_and_the_last(void **state)
{
    static const struct {
        const char *schedule, *now, *next, *last;
    } rows[] = {
        {"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z"},
        {"*/15 * * * *", "2026-01-01T10:07:30Z", "2026-01-01T10:15:00Z", "2026-01-01T10:00:00Z"},
        {"5-20/5,59 3 * * *", "2026-01-01T03:20:00Z", "2026-01-01T03:59:00Z",
         "2026-01-01T03:20:00Z"},
        {"40/10 * * * *", "2026-01-01T03:55:00Z", "2026-01-01T04:40:00Z", "2026-01-01T03:50:00Z"},
        {"0 0 29 2 *", "2026-06-01T00:00:00Z", "2028-02-29T00:00:00Z", "2024-02-29T00:00:00Z"},
        {"0 0 31 * *", "2026-04-01T00:00:00Z", "2026-05-31T00:00:00Z", "2026-03-31T00:00:00Z"},
        {"30 9 * * MON-fri", "2026-01-02T09:30:01Z", "2026-01-05T09:30:00Z",
         "2026-01-02T09:30:00Z"},
        {"0 0 13 * 5", "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z", "2026-01-30T00:00:00Z"},
        {"0 0 1 jan,JUL ?", "2026-03-01T00:00:00Z", "2026-07-01T00:00:00Z", "2026-01-01T00:00:00Z"},
        {"@hourly", "2026-01-01T23:30:00Z", "2026-01-02T00:00:00Z", "2026-01-01T23:00:00Z"},
        {"@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z", "2025-12-28T00:00:00Z"},
        {"@yearly", "2026-01-01T00:00:01Z", "2027-01-01T00:00:00Z", "2026-01-01T00:00:00Z"},
        {"@every 90s", "2026-01-01T00:01:40Z", "2026-01-01T00:03:00Z", "2026-01-01T00:01:30Z"},
    };
    int64_t start = at("2026-01-01T00:00:00Z");

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct cron_schedule s;

        assert_true(cron_parse(str_c(rows[i].schedule), &s));
        assert_int_equal(cron_next(&s, start, at(rows[i].now)), at(rows[i].next));
        assert_int_equal(cron_last(&s, start, at(rows[i].now)), at(rows[i].last));
    }
}

static void refuses_what_is_no_schedule(void **state)
{
    static const char *const rows[] = {
        "",          "* * * *",    "* * * * * *",   "60 * * * *",   "* 24 * * *",
        "* * 0 * *", "* * * 13 *", "* * * * 7",     "5-1 * * * *",  "*/0 * * * *",
        "a * * * *", "@often",     "1-2-3 * * * *", "1/2/3 * * * *"};
    struct cron_schedule s;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_false(cron_parse(str_c(rows[i]), &s));
    assert_true(cron_parse(STR("0 0 31 2 *"), &s));
    assert_int_equal(cron_next(&s, 0, at("2026-01-01T00:00:00Z")), 0);
}

/* ---- the controller ---- */

static void starts_on_time(void **state)
{
    (void)state;
    world_create(W, CRONS, "n", CRON("*/5 * * * *", ""));
    world_settle(W);
    assert_int_equal(jobs(), 0);
    world_pass(W, 301);
    assert_int_equal(jobs(), 1);
    const cJSON *job = json_first(world_list(W, JOBS, "n"));
    int64_t due = world_now(W) / 300 * 300;
    assert_true(str_eq(json_str_at(job, "metadata.name"),
                       arena_printf(world_arena(W), "c-%lld", (long long)(due / 60))));
    assert_str(json_str_at(job, "metadata.labels.a"), "b");
    assert_true(str_eq(json_str(json_get(json_path(job, "metadata.annotations"),
                                         "batch.kubernetes.io/cronjob-scheduled-timestamp")),
                       time_format_s(world_arena(W), due)));
    assert_true(
        str_eq(json_str_at(cron(), "status.lastScheduleTime"), time_format_s(world_arena(W), due)));
    assert_non_null(json_path(cron(), "status.lastSuccessfulTime"));
    assert_null(json_path(cron(), "status.active"));
    assert_int_equal(world_events(W, "n", "CronJob", "SuccessfulCreate"), 1);
    assert_int_equal(world_events(W, "n", "CronJob", "UnexpectedJob"), 0);
}

static void keeps_a_short_history(void **state)
{
    (void)state;
    world_create(W, CRONS, "n", CRON("* * * * *", "'successfulJobsHistoryLimit':2,"));
    world_settle(W);
    world_pass(W, 605); /* the clock moves in whole seconds */
    assert_int_equal(jobs(), 2);
    assert_int_equal(world_events(W, "n", "CronJob", "SuccessfulCreate"), 10);
}

static void forbids_company(void **state)
{
    (void)state;
    FATE = POD_READY;
    world_create(W, CRONS, "n", CRON("* * * * *", "'concurrencyPolicy':'Forbid',"));
    world_settle(W);
    world_pass(W, 305);
    assert_int_equal(jobs(), 1);
    assert_int_equal(json_count(json_path(cron(), "status.active")), 1);
    assert_true(world_events(W, "n", "CronJob", "JobAlreadyActive") > 0);
}

static void replaces_its_predecessor(void **state)
{
    (void)state;
    FATE = POD_READY;
    world_create(W, CRONS, "n", CRON("* * * * *", "'concurrencyPolicy':'Replace',"));
    world_settle(W);
    world_pass(W, 305);
    assert_int_equal(jobs(), 1);
    assert_int_equal(json_count(json_path(cron(), "status.active")), 1);
    assert_int_equal(world_events(W, "n", "CronJob", "SuccessfulCreate"), 5);
}

static void allows_company(void **state)
{
    (void)state;
    FATE = POD_READY;
    world_create(W, CRONS, "n", CRON("* * * * *", ""));
    world_settle(W);
    world_pass(W, 305);
    assert_int_equal(jobs(), 5);
    assert_int_equal(json_count(json_path(cron(), "status.active")), 5);
}

static void rests_while_suspended(void **state)
{
    (void)state;
    world_create(W, CRONS, "n", CRON("* * * * *", "'suspend':true,'startingDeadlineSeconds':30,"));
    world_settle(W);
    world_pass(W, 305);
    assert_int_equal(jobs(), 0);
    world_patch(W, CRONS, "n", "c", "{'spec':{'suspend':false}}");
    world_settle(W);
    assert_true(jobs() <= 1); /* what is past its deadline is not made up for */
    world_pass(W, 61);
    assert_true(jobs() >= 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_next_and_the_last),
        cmocka_unit_test(refuses_what_is_no_schedule),
        TEST(starts_on_time),
        TEST(keeps_a_short_history),
        TEST(forbids_company),
        TEST(replaces_its_predecessor),
        TEST(allows_company),
        TEST(rests_while_suspended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
