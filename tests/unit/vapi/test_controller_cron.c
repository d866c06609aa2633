/* SPDX-License-Identifier: Apache-2.0 */
/* CronJobs: when they are due, what they start, and what they forget. */
#include "../../../vapi/controllers/cron_schedule.h"
#include "controller_world.h"

#include <stdlib.h>
#include <time.h>

#include <sublet/clock.h>
#include <sublet/time_zone.h>

#define CRONS "cronjobs.batch"
#define JOBS  "jobs.batch"
#define CRON(schedule, more)                                                                       \
    "{'metadata':{'name':'c'},'spec':{'schedule':'" schedule "'," more                             \
    "'jobTemplate':{'metadata':{'labels':{'a':'b'}},'spec':{'template':{'spec':{"                  \
    "'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}}}}}"

static int set_up(void **state)
{
    world_set_up(state);
    world_fate(POD_SUCCEEDS);
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
    for (size_t i = 0; i < COUNT(rows); i++) {
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
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_false(cron_parse(str_c(rows[i]), &s));
    assert_true(cron_parse(STR("0 0 31 2 *"), &s));
    assert_int_equal(cron_next(&s, 0, at("2026-01-01T00:00:00Z")), 0);
}

/* ---- time zones ---- */

/* What glibc says of the system's database, at many times, is what we say of it. */
static void zones_agree_with_the_system(void **state)
{
    static const char *const names[] = {"Europe/Berlin",
                                        "America/New_York",
                                        "Asia/Kolkata",
                                        "Australia/Lord_Howe",
                                        "America/Sao_Paulo",
                                        "Africa/Casablanca",
                                        "Antarctica/Troll",
                                        "Pacific/Apia",
                                        "America/Argentina/Buenos_Aires",
                                        "UTC",
                                        "Etc/GMT+12"};
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct time_zone *z = time_zone_load(a, str_c(names[i]));

        assert_non_null(z);
        setenv("TZ", names[i], 1);
        tzset();
        for (int64_t t = -1000000000; t < 4200000000; t += 1000003) {
            struct time_span span = time_zone_at(z, t);
            time_t at = (time_t)t;
            struct tm tm;

            localtime_r(&at, &tm);
            assert_int_equal(span.offset, tm.tm_gmtoff);
            assert_true(span.from <= t && t < span.to);
        }
    }
    unsetenv("TZ");
    tzset();
    arena_free(a);
}

/* A file of version 2 without changes: only a rule. */
static struct str zone_file(struct arena *a, const char *rule)
{
    static const char header[44] = {'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 1};
    struct str h = {header, sizeof(header)}, body = {"\0\0\0\0\0\0\0", 7};

    return arena_concat(a, 6,
                        (struct str[]){h, body, h, body, STR("\n"), arena_printf(a, "%s\n", rule)});
}

static void rules_are_read(void **state)
{
    static const char *const bad[] = {"X",
                                      "CET",
                                      "CET-1CEST",
                                      "CET-1CEST,M3.5.0",
                                      "CET-1CEST,M13.5.0,M10.5.0",
                                      "CET-1CEST,M3.6.0,M10.5.0",
                                      "CET-1CEST,M3.5.0,M10.5.0x",
                                      "<CET-1",
                                      "CET-1CEST,J0,J366"};
    struct arena *a = arena_new(0);
    const struct time_zone *z;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_null(time_zone_parse(a, zone_file(a, bad[i])));
    z = time_zone_parse(a, zone_file(a, "CET-1CEST,M3.5.0,M10.5.0/3"));
    assert_non_null(z);
    assert_int_equal(time_zone_at(z, at("2026-03-29T00:59:59Z")).offset, 3600);
    assert_int_equal(time_zone_at(z, at("2026-03-29T01:00:00Z")).offset, 7200);
    assert_int_equal(time_zone_at(z, at("2026-10-25T00:59:59Z")).offset, 7200);
    assert_int_equal(time_zone_at(z, at("2026-10-25T01:00:00Z")).offset, 3600);
    z = time_zone_parse(a, zone_file(a, "<-03>3<-02>,J60/0,300"));
    assert_non_null(z);
    assert_int_equal(time_zone_at(z, at("2024-03-01T02:59:59Z")).offset, -3 * 3600);
    assert_int_equal(time_zone_at(z, at("2024-03-01T03:00:00Z")).offset, -2 * 3600);
    /* Cut anywhere, it is none, and nothing is read behind its end. */
    struct str whole = zone_file(a, "CET-1");
    assert_non_null(time_zone_parse(a, whole));
    for (size_t n = 0; n < whole.n; n++) {
        char *copy = mem_alloc(n + 1);

        for (size_t i = 0; i < n; i++)
            copy[i] = whole.p[i];
        assert_null(time_zone_parse(a, (struct str){copy, n}));
        mem_free(copy);
    }
    arena_free(a);
}

static void names_stay_in_the_folder(void **state)
{
    static const char *const bad[] = {"",
                                      "/etc/localtime",
                                      "../zoneinfo/UTC",
                                      "Europe/../UTC",
                                      "Europe//Berlin",
                                      "Europe/",
                                      "Mars/Base",
                                      "a b"};
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_null(time_zone_load(a, str_c(bad[i])));
    arena_free(a);
}

static void schedules_follow_the_clocks(void **state)
{
    static const struct {
        const char *zone, *schedule, *now, *next, *last;
    } rows[] = {
        {"Europe/Berlin", "0 9 * * 1-5", "2026-01-02T12:00:00Z", "2026-01-05T08:00:00Z",
         "2026-01-02T08:00:00Z"},
        {"Europe/Berlin", "0 9 * * *", "2026-07-02T12:00:00Z", "2026-07-03T07:00:00Z",
         "2026-07-02T07:00:00Z"},
        /* Left out when the clocks go forward, and there twice when they go back. */
        {"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z",
         "2026-03-28T01:30:00Z"},
        {"Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z",
         "2026-10-25T00:30:00Z"},
        {"Europe/Berlin", "0 3 * * *", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z",
         "2026-03-28T02:00:00Z"},
        {"America/New_York", "0 0 1 * *", "2026-11-01T12:00:00Z", "2026-12-01T05:00:00Z",
         "2026-11-01T04:00:00Z"},
        {"Asia/Kolkata", "0 0 * * *", "2026-01-01T00:00:00Z", "2026-01-01T18:30:00Z",
         "2025-12-31T18:30:00Z"},
        {"Etc/UTC", "0 0 29 2 *", "2026-06-01T00:00:00Z", "2028-02-29T00:00:00Z",
         "2024-02-29T00:00:00Z"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cron_schedule s;

        assert_true(cron_parse(str_c(rows[i].schedule), &s));
        s.zone = time_zone_load(a, str_c(rows[i].zone));
        assert_int_equal(cron_next(&s, 0, at(rows[i].now)), at(rows[i].next));
        assert_int_equal(cron_last(&s, 0, at(rows[i].now)), at(rows[i].last));
    }
    struct cron_schedule never;
    assert_true(cron_parse(STR("0 0 31 2 *"), &never));
    never.zone = time_zone_load(a, STR("Europe/Berlin"));
    assert_int_equal(cron_next(&never, 0, at("2026-01-01T00:00:00Z")), 0);
    arena_free(a);
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

/* A zone leaves the database after it was checked. */
static void lose_zone(struct store *s, void *ctx)
{
    struct arena *a = arena_new(0);
    unsigned resource = store_resource(s, STR(CRONS));
    const struct store_object *o = store_get(s, resource, STR("n"), STR("c"));
    cJSON *object = NULL;
    struct err err;

    (void)ctx;
    err_init(&err, a);
    assert_int_equal(json_parse(a, o->bytes, &object, &err), 0);
    json_set_str(a, json_get(object, "spec"), "timeZone", STR("Europe/Nowhere"));
    json_set_str(a, json_get(object, "metadata"), "resourceVersion",
                 arena_printf(a, "%llu", (unsigned long long)store_next_revision(s)));
    struct store_write w = {.op = STORE_UPDATE,
                            .resource = resource,
                            .skip = o->skip,
                            .expected = o->revision,
                            .ns = STR("n"),
                            .name = STR("c"),
                            .uid = o->uid,
                            .bytes = json_text(a, object)};

    assert_int_equal(store_write(s, &w, &err), 0);
    arena_free(a);
}

static void keeps_its_time_zone(void **state)
{
    (void)state;
    world_create(W, CRONS, "n", CRON("*/5 * * * *", "'timeZone':'Asia/Kolkata',"));
    world_pass(W, 301);
    assert_int_equal(jobs(), 1);
    const cJSON *job = json_first(world_list(W, JOBS, "n"));
    assert_true(
        str_has_suffix(json_str(json_get(json_path(job, "metadata.annotations"),
                                         "batch.kubernetes.io/cronjob-scheduled-timestamp")),
                       STR("+05:30")));
    assert_string_equal(world_try(W, CRONS, "n", CRON("* * * * *", "'timeZone':'Europe/Nowhere',")),
                        "Invalid");
    world_restart(W, lose_zone, NULL);
    world_pass(W, 301);
    assert_int_equal(jobs(), 1);
    assert_true(world_events(W, "n", "CronJob", "UnknownTimeZone") > 0);
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
    world_fate(POD_READY);
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
    world_fate(POD_READY);
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
    world_fate(POD_READY);
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
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_next_and_the_last),
        cmocka_unit_test(zones_agree_with_the_system),
        cmocka_unit_test(rules_are_read),
        cmocka_unit_test(names_stay_in_the_folder),
        cmocka_unit_test(schedules_follow_the_clocks),
        cmocka_unit_test(refuses_what_is_no_schedule),
        TEST(starts_on_time),
        TEST(keeps_its_time_zone),
        TEST(keeps_a_short_history),
        TEST(forbids_company),
        TEST(replaces_its_predecessor),
        TEST(allows_company),
        TEST(rests_while_suspended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
