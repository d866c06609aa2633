/* SPDX-License-Identifier: Apache-2.0
 * A log of another time or of another store beside the file: SQLite would apply it, and mix the
 * pages of both. It is quarantined instead, and reported; no log that belongs to its file is,
 * whatever fails and whenever the process is killed. See store/db_mark.c. */
#include "fault_vfs.h"
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

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

/* What a kill at this moment leaves. */
static void copy(struct fixture *f, struct fixture *ret)
{
    fixture_init(ret);
    fixture_in_memory(ret);
    copy_store(f->dir, ret->dir);
}

/* The file of one, the log of another. */
static void mix(struct fixture *file, struct fixture *log, struct fixture *ret)
{
    copy(file, ret);
    assert_int_equal(unlink(path_in(ret, "state.db-wal")), 0);
    assert_int_equal(rename(path_in(log, "state.db-wal"), path_in(ret, "state.db-wal")), 0);
}

static struct store_damage damage_of(struct fixture *f)
{
    struct store_damage d;

    store_damage(f->store, &d);
    return d;
}

static void write_some(struct fixture *f, const char *name, int n)
{
    for (int i = 1; i <= n; i++) {
        put(f, "a", name, i);
        assert_true(fixture_sync(f));
    }
}

/* Two stores that serve: `folded` is in the file of one, `logged` in its log, and `other` in the
 * log of the other one. */
static void begin_two(struct fixture *f, struct fixture *other)
{
    fixture_open(f);
    write_some(f, "folded", 3);
    fixture_quiet(f);
    write_some(f, "logged", 3);
    fixture_init(other);
    fixture_in_memory(other);
    fixture_open(other);
    write_some(other, "other", 4);
}

/* Of the file alone all is there, and nothing of the log; the log is kept, as it was. */
static void check_foreign(struct fixture *f, const char *folded, int value, int64_t newest)
{
    struct store_identity i;
    int64_t size = file_size(f, "state.db-wal");

    assert_int_equal(store_check(f->dir, &f->options, NULL, &f->err) > 0, 1);
    fixture_open(f);
    struct store_damage d = damage_of(f);
    assert_true(d.log);
    assert_false(d.log_missing || d.own_account || d.salvaged || d.objects || d.unattributed);
    assert_int_equal(committed(f, "a", folded), value);
    store_identity(f->store, &i);
    assert_true(i.restored && store_revision(f->store) > newest);
    assert_int_equal(file_size(f, "state.db-wal.damaged"), size);
    assert_int_equal(file_size(f, "state.db-wal.lost"), -1);
    write_some(f, "new", 1);
    fixture_next_day(f);
    fixture_reopen(f);
    assert_false(damage_of(f).log);
    assert_int_equal(committed(f, "a", "new"), 1);
    fixture_close(f);
    assert_int_equal(query(f, "SELECT count(*) FROM pragma_integrity_check"
                              " WHERE integrity_check = 'ok'"),
                     1);
}

static void test_another_store(void **state)
{
    struct fixture *f = *state, other, killed, mixed;

    begin_two(f, &other);
    for (int i = 0; i < 3; i++) { /* its first log, and later ones */
        copy(&other, &killed);
        mix(f, &killed, &mixed);
        check_foreign(&mixed, "folded", 3, store_revision(f->store));
        fixture_fini(&mixed);
        fixture_fini(&killed);
        fixture_quiet(&other);
        write_some(&other, "other", 4);
    }
    fixture_fini(&other);
}

/* Its log ends the file before pages that the file's first one counts: what both make cannot be
 * read, and folded it would cut the file off. */
static void test_a_smaller_store(void **state)
{
    struct fixture *f = *state, other, killed, mixed;

    fixture_open(f);
    for (int i = 0; i < 400; i++) {
        char name[16];
        snprintf(name, sizeof(name), "many-%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    write_some(f, "folded", 3);
    fixture_quiet(f);
    fixture_init(&other);
    fixture_in_memory(&other);
    fixture_open(&other);
    write_some(&other, "other", 4);
    copy(&other, &killed);
    mix(f, &killed, &mixed);
    assert_true(file_size(&mixed, "state.db") > 2 * file_size(&killed, "state.db"));
    check_foreign(&mixed, "folded", 3, store_revision(f->store));
    fixture_fini(&mixed);
    fixture_fini(&killed);
    fixture_fini(&other);
}

/* Each log of one store beside each other state of its file. The one before, all of which is in the
 * file, makes an earlier state of it that is whole. */
static void test_another_time(void **state)
{
    enum { TIMES = 5 };
    struct fixture *f = *state, at[TIMES], log, mixed;
    int values[TIMES], foreign = 0;

    fixture_open(f);
    write_some(f, "folded", 1);
    for (int i = 0; i < TIMES; i++) {
        fixture_quiet(f);
        values[i] = committed(f, "a", "folded");
        put(f, "a", "folded", 10 + i);
        assert_true(fixture_sync(f));
        copy(f, &at[i]);
    }
    for (int i = 0; i < TIMES; i++) {
        for (int j = 0; j < TIMES; j++) {
            copy(&at[j], &log);
            mix(&at[i], &log, &mixed);
            if (j == i || j == i - 1) {
                fixture_open(&mixed);
                assert_false(damage_of(&mixed).log);
                assert_int_equal(committed(&mixed, "a", "folded"), 10 + j);
            } else {
                check_foreign(&mixed, "folded", values[i], store_revision(f->store));
                foreign++;
            }
            fixture_fini(&mixed);
            fixture_fini(&log);
        }
    }
    for (int i = 0; i < TIMES; i++)
        fixture_fini(&at[i]);
    assert_int_equal(foreign, (TIMES - 1) * (TIMES - 1));
}

/* `cp backup.db state.db` beside the log that is there; and a salvaged file beside the log of the
 * damaged one. */
static void test_backup_beside_a_log(void **state)
{
    struct fixture *f = *state, killed, restored;

    fixture_open(f);
    write_some(f, "folded", 2);
    fixture_quiet(f);
    write_some(f, "logged", 2);
    copy(f, &killed);
    fixture_close(f);
    fixture_init(&restored);
    fixture_in_memory(&restored);
    if (store_restore(path_in(f, "state.db"), restored.dir, &f->err))
        fail_msg("%.*s", STR_F(f->err.message));
    assert_int_equal(rename(path_in(&killed, "state.db-wal"), path_in(&restored, "state.db-wal")),
                     0);
    fixture_open(&restored);
    assert_true(damage_of(&restored).log);
    assert_int_equal(committed(&restored, "a", "folded"), 2);
    assert_int_equal(committed(&restored, "a", "logged"), 2);
    fixture_fini(&restored);
    fixture_fini(&killed);
}

/* The file has what later transactions of its log brought: without them the log would take it
 * back. */
static void test_earlier_copy_of_its_log(void **state)
{
    struct fixture *f = *state, early, late, mixed;

    fixture_open(f);
    write_some(f, "folded", 1);
    fixture_quiet(f);
    put(f, "a", "folded", 2);
    assert_true(fixture_sync(f));
    copy(f, &early);
    put(f, "a", "folded", 3);
    assert_true(fixture_sync(f));
    fixture_quiet(f);
    copy(f, &late);
    mix(&late, &early, &mixed);
    check_foreign(&mixed, "folded", 3, store_revision(f->store));
    fixture_fini(&mixed);
    fixture_fini(&late);
    fixture_fini(&early);
}

/* A start that finds it, and fails or is killed at any step, applies none of it. */
static void test_every_failure_of_a_start(void **state)
{
    struct fixture *f = *state, other;

    begin_two(f, &other);
    for (int after = 0, failures = 1; failures; after++) {
        struct fixture g, killed, mixed;
        copy(&other, &killed);
        mix(f, &killed, &mixed);
        fixture_fini(&killed);
        fault_arm(FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE, FAULT_ANY, FAULT_IO, after, -1);
        if (store_open(&mixed.loop, &mixed.options, &mixed.store, &mixed.err))
            mixed.store = NULL;
        copy(&mixed, &g);
        failures = fault_disarm();
        fixture_fini(&mixed);
        fixture_open(&g);
        assert_true(damage_of(&g).log);
        assert_int_equal(committed(&g, "a", "folded"), 3);
        assert_int_equal(committed(&g, "a", "other"), -1);
        fixture_fini(&g);
    }
    fixture_fini(&other);
}

/* ---- no false alarm ---- */

static void check_own(struct fixture *f, int value)
{
    struct store_damage d;

    fixture_open(f);
    d = damage_of(f);
    assert_false(d.log || d.log_missing || d.own_account || d.salvaged);
    if (value)
        assert_true(committed(f, "a", "x") >= value);
}

/* One history: writes, folds, starts and kills in any order, with failures of the disk. The newest
 * answered value is there after each kill, and no log is taken for another one. */
static int run_history(unsigned seed)
{
    struct fixture two[2], *f = two;
    int kills = 0, value = 0;
    bool wrote = false;

    srand(seed);
    fixture_init(f);
    fixture_in_memory(f);
    fixture_open(f);
    for (int i = 1; i <= 25; i++) {
        if (rand() % 4 == 0)
            fault_arm(FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE, FAULT_ANY,
                      rand() % 2 ? FAULT_LATE : FAULT_IO, rand() % 12, 1 + rand() % 2);
        switch (rand() % 6) {
        case 0:
            if (wrote)
                fixture_quiet(f);
            break;
        case 1:
            copy(f, &two[f == two]);
            fault_disarm();
            fixture_fini(f);
            f = &two[f == two];
            check_own(f, value);
            kills++;
            wrote = false;
            break;
        default:
            put(f, "a", "x", i);
            if (fixture_sync(f)) {
                value = i;
                wrote = true;
            }
        }
        fault_disarm();
    }
    fixture_fini(f);
    return kills;
}

static void test_histories(void **state)
{
    const char *n = getenv("HISTORIES");
    int kills = 0, histories = n ? (int)strtol(n, NULL, 10) : 100;

    (void)state;
    for (int i = 1; i <= histories; i++)
        kills += run_history((unsigned)i);
    print_message("%d histories, %d kills\n", histories, kills);
    assert_true(kills > histories);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, fault_teardown)
    const struct CMUnitTest tests[] = {
        TEST(another_store),       TEST(a_smaller_store),         TEST(another_time),
        TEST(backup_beside_a_log), TEST(earlier_copy_of_its_log), TEST(every_failure_of_a_start),
        TEST(histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
