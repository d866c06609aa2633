/* SPDX-License-Identifier: Apache-2.0
 * A log that is lost as a whole, between two runs: never silent where it had answered writes, and
 * not reported where it had none. See store/db_log.c. */
#include "fault_vfs.h"
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int setup(void **state)
{
    fault_setup(state);
    fixture_in_memory(*state);
    return 0;
}

static void fill(struct fixture *f)
{
    fixture_open(f);
    put(f, "a", "folded", 1);
    store_record_put(f->store, RECORD_META, STR("uid"), STR("1"));
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    put(f, "a", "logged", 2);
    assert_true(fixture_sync(f));
}

/* What a kill at this moment leaves. */
static void copy(struct fixture *f, struct fixture *ret)
{
    fixture_init(ret);
    fixture_in_memory(ret);
    copy_store(f->dir, ret->dir);
}

static bool is_missing(struct fixture *f)
{
    struct store_damage d;

    store_damage(f->store, &d);
    assert_false(d.log || d.own_account || d.salvaged || d.objects || d.unattributed);
    return d.log_missing;
}

/* Opened as what it is: a store that has lost writes, in a life of its own. */
static void check_lost(struct fixture *f, int64_t newest)
{
    struct store_identity i, again;

    fixture_open(f);
    assert_true(is_missing(f));
    store_identity(f->store, &i);
    assert_true(i.restored);
    assert_true(store_revision(f->store) > newest);
    assert_int_equal(committed(f, "a", "folded"), 1);
    put(f, "a", "new", 3);
    assert_true(fixture_sync(f));
    fixture_next_day(f);
    fixture_reopen(f);
    assert_false(is_missing(f));
    store_identity(f->store, &again);
    assert_string_equal(i.epoch, again.epoch);
    assert_int_equal(committed(f, "a", "new"), 3);
}

static void check_whole(struct fixture *f)
{
    struct store_identity i;

    fixture_open(f);
    assert_false(is_missing(f));
    store_identity(f->store, &i);
    assert_false(i.restored);
    assert_int_equal(committed(f, "a", "folded"), 1);
    assert_int_equal(committed(f, "a", "logged"), 2);
    put(f, "a", "new", 3);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_false(is_missing(f));
}

static void lose_log(struct fixture *f)
{
    assert_int_equal(unlink(path_in(f, "state.db-wal")), 0);
}

/* Removed, emptied, or of a copy that was cut off at once. */
static void test_lost(void **state)
{
    struct fixture *f = *state;

    fill(f);
    int64_t newest = store_revision(f->store);
    for (int size = -1; size < EMPTY_LOG; size += EMPTY_LOG / 2) {
        struct fixture g;
        copy(f, &g);
        if (size < 0)
            lose_log(&g);
        else
            assert_int_equal(truncate(path_in(&g, "state.db-wal"), size), 0);
        assert_int_equal(store_check(g.dir, &g.options, NULL, &g.err), 1);
        assert_int_equal(store_check(path_in(&g, "state.db"), &g.options, NULL, &g.err), 0);
        check_lost(&g, newest);
        assert_int_equal(file_size(&g, "state.db-wal.lost"), -1);
        fixture_fini(&g);
    }
}

/* A restored store has no log until it is opened, and one from then on. */
static void test_restored(void **state)
{
    struct fixture *f = *state, g, cut;

    fill(f);
    fixture_close(f);
    fixture_init(&g);
    if (store_restore(path_in(f, "state.db"), g.dir, &g.err))
        fail_msg("%.*s", STR_F(g.err.message));
    fixture_open(&g);
    assert_false(is_missing(&g));
    assert_int_equal(committed(&g, "a", "logged"), 2);
    for (int i = 0; i < 2; i++) {
        copy(&g, &cut);
        lose_log(&cut);
        fixture_open(&cut);
        assert_true(is_missing(&cut));
        assert_int_equal(committed(&cut, "a", "logged"), 2);
        fixture_fini(&cut);
        put(&g, "a", "later", 3);
        assert_true(fixture_sync(&g));
    }
    fixture_fini(&g);
}

static void test_nothing_is_lost(void **state)
{
    struct fixture *f = *state, g;

    fixture_open(f);
    copy(f, &g); /* before anything was answered */
    unlink(path_in(&g, "state.db-wal"));
    fixture_open(&g);
    assert_false(is_missing(&g));
    fixture_fini(&g);
    fixture_close(f);
    fill(f);
    copy(f, &g); /* killed */
    check_whole(&g);
    fixture_fini(&g);
    fixture_quiet(f);
    copy(f, &g); /* killed after a fold */
    assert_int_equal(file_size(&g, "state.db-wal"), EMPTY_LOG);
    check_whole(&g);
    fixture_fini(&g);
    fixture_close(f);
    check_whole(f);
}

/* Another program that closes the file folds the log and removes it: that costs a new life. */
static void test_removed_by_another_program(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db;

    fill(f);
    int64_t newest = store_revision(f->store);
    fixture_close(f);
    assert_int_equal(sqlite3_open_v2(path_in(f, "state.db"), &db, SQLITE_OPEN_READWRITE, "unix"),
                     0);
    assert_int_equal(sqlite3_exec(db, "SELECT * FROM meta", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(file_size(f, "state.db-wal"), -1);
    check_lost(f, newest);
    assert_int_equal(committed(f, "a", "logged"), 2);
}

/* Nothing was promised by an earlier program: from the first start on it is. */
static void test_not_promised(void **state)
{
    struct fixture *f = *state, g;

    fill(f);
    fixture_close(f);
    query(f, "DELETE FROM meta WHERE key = 'logged'");
    lose_log(f);
    check_whole(f);
    copy(f, &g);
    lose_log(&g);
    check_lost(&g, store_revision(f->store));
    fixture_fini(&g);
}

/* A promise that cannot be read is one, and damage: of its value, its sum, its type or its key. */
static void test_damaged_promise(void **state)
{
    static const char *const ways[] = {
        "UPDATE meta SET value = 0 WHERE key = 'logged'",
        "UPDATE meta SET sum = sum + 1 WHERE key = 'logged'",
        "UPDATE meta SET value = x'01' WHERE key = 'logged'",
        "UPDATE meta SET key = 'mogged' WHERE key = 'logged'",
    };
    struct fixture *f = *state, g;
    struct store_identity i;
    struct store_damage d;

    fill(f);
    fixture_close(f);
    for (size_t way = 0; way < 2 * COUNT(ways); way++) {
        bool lost = way % 2;
        copy(f, &g);
        query(&g, ways[way / 2]);
        if (lost)
            unlink(path_in(&g, "state.db-wal"));
        fixture_open(&g);
        store_damage(g.store, &d);
        assert_true(d.own_account);
        assert_true(!lost || d.log_missing);
        store_identity(g.store, &i);
        assert_true(i.restored);
        assert_int_equal(committed(&g, "a", "logged"), 2);
        fixture_next_day(&g);
        fixture_reopen(&g);
        assert_false(is_missing(&g));
        fixture_fini(&g);
    }
}

/* Where the disk does not take the promise at the start, it is in the file with the first write. */
static void test_promised_late(void **state)
{
    static const unsigned files[] = {FAULT_LOG, FAULT_MAIN};
    struct fixture *f = *state, g, killed;

    fill(f);
    fixture_close(f);
    query(f, "DELETE FROM meta WHERE key = 'logged'");
    for (size_t i = 0; i < COUNT(files); i++) {
        copy(f, &g);
        fault_arm(FAULT_WRITE, files[i], FAULT_FULL, 0, -1);
        fixture_open(&g);
        assert_false(is_missing(&g));
        assert_true(fault_disarm() > 0);
        if (store_disk(g.store) != STORE_DISK_WRITABLE)
            fixture_await(&g, STORE_DISK_WRITABLE);
        put(&g, "a", "new", 3);
        assert_true(fixture_sync(&g));
        copy(&g, &killed);
        fixture_fini(&g);
        lose_log(&killed);
        check_lost(&killed, 1);
        fixture_fini(&killed);
    }
}

/* A start that finds the loss, and fails or is killed at any step: the next one finds it as well,
 * or goes on with the life that the first one began. */
static void test_every_failure_of_a_start(void **state)
{
    static const enum fault_kind kinds[] = {FAULT_IO, FAULT_FULL, FAULT_LATE};
    struct fixture *f = *state;

    fill(f);
    int64_t newest = store_revision(f->store);
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        for (int after = 0, failures = 1; failures; after++) {
            struct fixture g, killed;
            copy(f, &g);
            lose_log(&g);
            fault_arm(FAULT_WRITE | FAULT_SYNC | FAULT_OPEN | FAULT_TRUNCATE, FAULT_ANY,
                      kinds[kind], after, -1);
            bool open = !store_open(&g.loop, &g.options, &g.store, &g.err);
            if (open)
                assert_true(is_missing(&g));
            else
                g.store = NULL;
            copy(&g, &killed);
            failures = fault_disarm();
            fixture_fini(&g);
            fixture_open(&killed);
            assert_true(is_missing(&killed));
            struct store_identity i;
            store_identity(killed.store, &i);
            assert_true(i.restored && store_revision(killed.store) > newest);
            fixture_fini(&killed);
        }
    }
}

/* Whatever fails on the way, and whenever the process is killed then: with its log, nothing is
 * lost, nor said to be. */
static void test_every_failure(void **state)
{
    (void)state;
    for (int after = 0, failures = 1; failures; after++) {
        struct fixture f, killed[6];
        int64_t newest[6];
        fixture_init(&f);
        fixture_in_memory(&f);
        fill(&f);
        fault_arm(FAULT_WRITE | FAULT_SYNC | FAULT_OPEN | FAULT_TRUNCATE, FAULT_ANY,
                  after % 2 ? FAULT_LATE : FAULT_IO, after / 2, 1);
        for (int i = 0; i < 6; i++) {
            if (i % 2)
                fixture_quiet(&f);
            else
                put(&f, "b", "x", i);
            (void)fixture_sync(&f);
            copy(&f, &killed[i]);
            newest[i] = store_revision(f.store);
        }
        failures = fault_disarm();
        fixture_fini(&f);
        for (int i = 0; i < 6; i++) {
            fixture_open(&killed[i]);
            assert_false(is_missing(&killed[i]));
            assert_true(store_revision(killed[i].store) >= newest[i]);
            fixture_fini(&killed[i]);
        }
    }
}

/* ---- a log that is lost again ---- */

static void damage_log(struct fixture *f)
{
    FILE *log = fopen(path_in(f, "state.db-wal"), "r+");

    assert_non_null(log);
    fseek(log, EMPTY_LOG + 24 + 100, SEEK_SET);
    assert_int_equal(fwrite("noise", 1, 5, log), 5);
    fclose(log);
}

static void damage_account(struct fixture *f)
{
    query(f, "UPDATE meta SET value = value + 1 WHERE key = 'floor'");
}

static void overtake(struct fixture *f)
{
    static struct store_predecessor after;
    struct store_identity i;

    fixture_open(f);
    store_identity(f->store, &i);
    fixture_close(f);
    snprintf(after.epoch, sizeof(after.epoch), "%s", i.epoch);
    after.epoch[0]++;
    f->options.after = &after;
}

/* A new life that was served is the one that the next one comes from, whatever began it. */
static void test_of_a_new_life(void **state)
{
    static void (*const causes[])(struct fixture *) = {lose_log, damage_log, damage_account,
                                                       overtake};
    struct fixture *f = *state;

    fill(f);
    for (int i = 0; i < 4; i++) {
        put(f, "a", "logged", 2);
        assert_true(fixture_sync(f));
    }
    for (size_t i = 0; i < COUNT(causes); i++) {
        struct store_identity second, third;
        struct fixture g, killed;
        copy(f, &g);
        causes[i](&g);
        fixture_open(&g);
        store_identity(g.store, &second);
        assert_true(second.restored && second.from[0]);
        copy(&g, &killed);
        fixture_fini(&g);
        lose_log(&killed);
        fixture_open(&killed);
        store_identity(killed.store, &third);
        assert_string_equal(third.from, second.epoch);
        assert_true(store_revision(killed.store) > third.from_revision);
        fixture_fini(&killed);
    }
}

/* Where the file takes it with the first write alone, that is answered once it has it. */
static void test_of_a_new_life_on_a_full_disk(void **state)
{
    struct fixture *f = *state, g, killed;
    struct store_identity second, third;

    fill(f);
    copy(f, &g);
    lose_log(&g);
    fault_arm(FAULT_WRITE, FAULT_MAIN, FAULT_FULL, 0, -1);
    fixture_open(&g);
    store_identity(g.store, &second);
    assert_true(second.restored);
    put(&g, "a", "new", 3);
    assert_false(fixture_sync(&g));
    fault_disarm();
    fixture_await(&g, STORE_DISK_WRITABLE);
    put(&g, "a", "new", 3);
    assert_true(fixture_sync(&g));
    copy(&g, &killed);
    fixture_fini(&g);
    lose_log(&killed);
    fixture_open(&killed);
    store_identity(killed.store, &third);
    assert_string_equal(third.from, second.epoch);
    assert_int_equal(committed(&killed, "a", "new"), 3);
    fixture_fini(&killed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, fault_teardown)
    const struct CMUnitTest tests[] = {
        TEST(lost),
        TEST(restored),
        TEST(nothing_is_lost),
        TEST(removed_by_another_program),
        TEST(not_promised),
        TEST(damaged_promise),
        TEST(promised_late),
        TEST(every_failure_of_a_start),
        TEST(every_failure),
        TEST(of_a_new_life),
        TEST(of_a_new_life_on_a_full_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
