/* SPDX-License-Identifier: Apache-2.0
 * What a start finds and makes good is reported by all starts of a day: a process that is killed
 * right after it, by whatever failed, takes no report with it. */
#include "fault_vfs.h"
#include "harness.h"

#include <sublet/clock.h>
#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DAY_S 86400

static int64_t later_s;

static int64_t wall(void)
{
    return clock_wall_us(&CLOCK_SYSTEM) + later_s * 1000000;
}

static int setup(void **state)
{
    struct fixture *f;

    fault_setup(state);
    f = *state;
    fixture_in_memory(f);
    f->options.wall_us = wall;
    later_s = 0;
    return 0;
}

/* What a kill at this moment leaves. */
static void copy(struct fixture *f, struct fixture *ret)
{
    fixture_init(ret);
    fixture_in_memory(ret);
    ret->options.wall_us = wall;
    copy_store(f->dir, ret->dir);
}

static void spoil(const char *path, long at)
{
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    assert_int_equal(fwrite("noise", 1, 5, file), 5);
    fclose(file);
}

/* ---- what is reported ---- */

static void lose_log(struct fixture *f)
{
    assert_int_equal(unlink(path_in(f, "state.db-wal")), 0);
}

static bool log_missing(const struct store_damage *d)
{
    return d->log_missing;
}

/* A frame with others behind it. */
static void spoil_log(struct fixture *f)
{
    spoil(path_in(f, "state.db-wal"), 32 + 24 + 100);
}

static bool log_damaged(const struct store_damage *d)
{
    return d->log;
}

static void spoil_page(struct fixture *f)
{
    int64_t page = query(f, "SELECT rootpage FROM sqlite_schema WHERE name = 'trail'");

    spoil(path_in(f, "state.db"), (long)((page - 1) * 4096));
}

static bool salvaged(const struct store_damage *d)
{
    return d->salvaged;
}

static void spoil_account(struct fixture *f)
{
    query(f, "UPDATE meta SET value = value + 1 WHERE key = 'floor'");
}

static bool own_account(const struct store_damage *d)
{
    return d->own_account;
}

static const struct loss {
    void (*lose)(struct fixture *f);
    bool (*is)(const struct store_damage *d);
    bool folded; /* before it is lost */
} LOSSES[] = {
    {lose_log, log_missing, false},
    {spoil_log, log_damaged, false},
    {spoil_page, salvaged, true},
    {spoil_account, own_account, true},
};

static void fill(struct fixture *f)
{
    fixture_open(f);
    put(f, "a", "folded", 1);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    for (int i = 0; i < 5; i++) {
        put(f, "a", "logged", i);
        assert_true(fixture_sync(f));
    }
}

static void lose(struct fixture *f, struct fixture *ret, const struct loss *l)
{
    copy(f, ret);
    if (l->folded) {
        fixture_open(ret);
        fixture_close(ret);
    }
    l->lose(ret);
}

static bool is_reported(struct fixture *f, const struct loss *l)
{
    struct store_damage d;

    store_damage(f->store, &d);
    assert_int_equal(d.reported_at > 0, d.log_missing || d.log || d.salvaged || d.own_account);
    return l->is(&d);
}

static int64_t reported_at(struct fixture *f)
{
    struct store_damage d;

    store_damage(f->store, &d);
    return d.reported_at;
}

/* ---- tests ---- */

/* Killed, closed, or for a day: by each start, and with one time. */
static void test_for_a_day(void **state)
{
    struct fixture *f = *state;

    fill(f);
    for (size_t i = 0; i < COUNT(LOSSES); i++) {
        struct fixture g, killed;
        later_s = 0;
        lose(f, &g, &LOSSES[i]);
        fixture_open(&g);
        assert_true(is_reported(&g, &LOSSES[i]));
        int64_t at = reported_at(&g);
        assert_true(at <= wall() / 1000000 && at > wall() / 1000000 - 60);

        copy(&g, &killed);
        fixture_open(&killed);
        assert_true(is_reported(&killed, &LOSSES[i]));
        assert_int_equal(reported_at(&killed), at);
        fixture_fini(&killed);

        for (later_s = DAY_S / 2; later_s < DAY_S; later_s += DAY_S / 2 - 60) {
            fixture_reopen(&g);
            assert_true(is_reported(&g, &LOSSES[i]));
            assert_int_equal(reported_at(&g), at);
        }
        later_s = DAY_S + 60;
        assert_true(is_reported(&g, &LOSSES[i])); /* as long as it runs */
        fixture_reopen(&g);
        assert_false(is_reported(&g, &LOSSES[i]));
        assert_int_equal(reported_at(&g), 0);
        later_s = 0; /* a clock that is set back brings nothing back */
        fixture_reopen(&g);
        assert_false(is_reported(&g, &LOSSES[i]));
        fixture_fini(&g);
    }
}

/* Whatever fails in the start, and wherever it is killed then. */
static void test_every_failure_of_a_start(void **state)
{
    struct fixture *f = *state;

    fill(f);
    for (size_t i = 0; i < COUNT(LOSSES); i++) {
        for (int after = 0, failures = 1; failures; after++) {
            struct fixture g, killed;
            lose(f, &g, &LOSSES[i]);
            fault_arm(FAULT_WRITE | FAULT_SYNC | FAULT_OPEN | FAULT_TRUNCATE, FAULT_ANY, FAULT_IO,
                      after, -1);
            if (store_open(&g.loop, &g.options, &g.store, &g.err))
                g.store = NULL;
            copy(&g, &killed);
            failures = fault_disarm();
            fixture_fini(&g);
            fixture_open(&killed);
            assert_true(is_reported(&killed, &LOSSES[i]));
            fixture_fini(&killed);
        }
    }
}

/* A clock that was a year ahead when the loss was found keeps no report for a year. */
static void test_clock_that_was_ahead(void **state)
{
    struct fixture *f = *state, g;

    fill(f);
    later_s = 365 * DAY_S;
    lose(f, &g, &LOSSES[0]);
    fixture_open(&g);
    later_s = 0;
    fixture_reopen(&g);
    assert_true(is_reported(&g, &LOSSES[0]));
    assert_true(reported_at(&g) <= wall() / 1000000);
    later_s = DAY_S + 60;
    fixture_reopen(&g);
    assert_false(is_reported(&g, &LOSSES[0]));
    fixture_fini(&g);
}

/* A second loss is reported with its own time, and the first one with it. */
static void test_two(void **state)
{
    struct fixture *f = *state, g;

    fill(f);
    lose(f, &g, &LOSSES[0]);
    fixture_open(&g);
    int64_t first = reported_at(&g);
    put(&g, "a", "x", 1);
    assert_true(fixture_sync(&g));
    fixture_close(&g);
    later_s = 3600;
    spoil_page(&g);
    fixture_open(&g);
    assert_true(is_reported(&g, &LOSSES[0]) && is_reported(&g, &LOSSES[2]));
    assert_true(reported_at(&g) >= first + 3600);
    fixture_fini(&g);
}

static void on_finding(void *ctx, const struct store_finding *f)
{
    int *n = ctx;

    *n += str_has_prefix(f->why, STR("a start made good at 20"));
}

/* Of the directory, and of the copy that a process which serves makes of it. */
static void test_check(void **state)
{
    struct fixture *f = *state;

    fill(f);
    for (size_t i = 0; i < COUNT(LOSSES); i++) {
        struct fixture g;
        int n = 0;
        struct store_check_calls calls = {.finding = on_finding, .ctx = &n};
        later_s = 0;
        lose(f, &g, &LOSSES[i]);
        fixture_open(&g);
        fixture_close(&g);
        assert_true(store_check(g.dir, &g.options, &calls, &g.err) > 0);
        assert_true(n > 0);
        later_s = DAY_S + 60;
        n = 0;
        fixture_reopen(&g);
        fixture_close(&g);
        assert_true(store_check(g.dir, &g.options, &calls, &g.err) >= 0);
        assert_int_equal(n, 0);
        fixture_fini(&g);
    }
}

/* An expired report is no reason not to start. */
static void test_over_on_a_full_disk(void **state)
{
    struct fixture *f = *state, g;

    fill(f);
    lose(f, &g, &LOSSES[0]);
    fixture_open(&g);
    fixture_close(&g);
    later_s = DAY_S + 60;
    fault_arm(FAULT_WRITE, FAULT_LOG, FAULT_FULL, 0, -1);
    fixture_open(&g);
    assert_false(is_reported(&g, &LOSSES[0]));
    fault_disarm();
    put(&g, "a", "x", 1);
    assert_true(fixture_sync(&g));
    fixture_reopen(&g);
    assert_false(is_reported(&g, &LOSSES[0]));
    assert_int_equal(committed(&g, "a", "x"), 1);
    fixture_fini(&g);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, fault_teardown)
    const struct CMUnitTest tests[] = {
        TEST(for_a_day), TEST(every_failure_of_a_start), TEST(clock_that_was_ahead), TEST(two),
        TEST(check),     TEST(over_on_a_full_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
