/* SPDX-License-Identifier: Apache-2.0
 * Every byte of a small file is damaged in turn. Each object is then right
 * or known to be hidden; nothing crashes, and no wrong value is served. A file that cannot be
 * opened at all is refused with an error. */
#include "harness.h"
#include "store/impl.h"

#include <sublet/store_quarantine.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEYS 4

/* What is done to the byte at a position: one bit is flipped; with SUBLET_FLIP=all each of its bits
 * in turn, and all of them together. */
static int n_flips(void)
{
    const char *all = getenv("SUBLET_FLIP");

    return all && !strcmp(all, "all") ? 9 : 1;
}

static char flipped(char byte, size_t at, int flip)
{
    return (char)(byte ^ (flip == 8 ? 0xff : 1 << (at + (size_t)flip) % 8));
}

static char database[1 << 16];
static size_t n_database;

static size_t read_file(struct fixture *f, const char *name, char *bytes, size_t most)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    FILE *in = fopen(path, "r");
    if (!in)
        return 0;
    size_t n = fread(bytes, 1, most, in);
    fclose(in);
    assert_true(n < most);
    return n;
}

static void write_file(struct fixture *f, const char *name, const char *bytes, size_t n)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    unlink(path);
    if (!n)
        return;
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
}

/* Pages of 512 bytes: as many kinds of bytes, and fewer of each. */
static void make_small(struct fixture *f)
{
    char path[128];
    sqlite3 *db;

    fixture_open(f);
    fixture_close(f);
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM;"
                                  "DROP VIEW object",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* k0 to k3 have values 10 to 13; k4 was deleted. Before that, each had a value below 10. */
static void fill(struct fixture *f)
{
    char name[8];

    fixture_open(f);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KEYS; i++) {
            snprintf(name, sizeof(name), "k%d", i);
            put(f, "a", name, round * 10 + i);
        }
        put(f, "a", "k4", 4);
        assert_true(fixture_sync(f));
    }
    delete (f, "a", "k4");
    store_record_put(f->store, RECORD_MAPPING, STR("k"), STR("v"));
    assert_true(fixture_sync(f));
    fixture_close(f);
    n_database = read_file(f, "state.db", database, sizeof(database));
}

static bool count(void *ctx, const struct store_object *o)
{
    value_of(o);
    ++*(int *)ctx;
    return true;
}

static void check_served(struct store *s, size_t at)
{
    unsigned pods = store_resource(s, STR("pods"));
    int visible = 0, right = 0;
    struct str value;
    char name[8];

    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        const struct store_object *o = store_get(s, pods, STR("a"), str_c(name));
        if (o && value_of(o) != 10 + i)
            fail_msg("byte %zu: %s is %d", at, name, value_of(o));
        if (store_is_absent(s, pods, STR("a"), str_c(name)))
            fail_msg("byte %zu: %s is said to be absent", at, name);
        right += o != NULL;
    }
    assert_null(store_get(s, pods, STR("a"), STR("k4")));
    if (store_scan(s, pods, STR_NULL, STR_NULL, STR_NULL, 0, count, &visible, NULL))
        fail();
    assert_int_equal(visible, right);
    if (store_record_get(s, RECORD_MAPPING, STR("k"), &value))
        assert_true(str_eqc(value, "v"));
    else
        assert_true(store_record_damaged(s, RECORD_MAPPING, STR("k")));
}

static int refused, opened;

/* Without a loop: no thread, no timer, nothing written but what opening itself writes. */
static void open_and_check(struct fixture *f, size_t at)
{
    struct store *s = store_new(NULL, &f->options);
    struct db *db = NULL;

    err_clear(&f->err);
    if (store_open_db(&f->options, &db, &f->err) || store_load(s, db, &f->err)) {
        assert_ptr_equal(f->err.kind, &ERR_STORAGE);
        refused++;
    } else {
        opened++;
        s->closing = false;
        check_served(s, at);
    }
    db_close(db);
    s->closing = true;
    store_free(s);
}

static const char empty_log[EMPTY_LOG];

static void test_every_byte(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < n_database * (size_t)n_flips(); i++) {
        size_t at = i % n_database;
        char before = database[at];

        database[at] = flipped(before, at, (int)(i / n_database));
        write_file(f, "state.db", database, n_database);
        write_file(f, "state.db-wal", empty_log, sizeof(empty_log));
        write_file(f, "state.db.damaged", "", 0);
        open_and_check(f, at);
        database[at] = before;
    }
    print_message("%zu bytes: %d opened, %d refused\n", n_database, opened, refused);
    assert_true(opened > refused * 3);
}

/* ---- the log ---- */

#define ROUNDS 4

static char journal[1 << 16];
static size_t n_journal, last_commit; /* where the last transaction begins */

/* One transaction after another in the log of a process that was killed. */
static void fill_log(struct fixture *f)
{
    fixture_open(f);
    for (int round = 0; round < ROUNDS; round++) {
        last_commit = read_file(f, "state.db-wal", journal, sizeof(journal));
        put(f, "a", "k0", 20 + round);
        assert_true(fixture_sync(f));
    }
    n_database = read_file(f, "state.db", database, sizeof(database));
    n_journal = read_file(f, "state.db-wal", journal, sizeof(journal));
    /* Then no flip of one bit makes a commit look like another frame of its transaction. */
    const unsigned char *last = (const unsigned char *)journal + n_journal - (24 + 512);
    unsigned pages = (unsigned)last[6] << 8 | last[7];
    assert_true(n_journal > last_commit && pages && pages & (pages - 1));
    fixture_close(f);
}

/* Of the log as it is. */
static int64_t newest_of_log(struct fixture *f)
{
    write_file(f, "state.db", database, n_database);
    write_file(f, "state.db-wal", journal, n_journal);
    fixture_open(f);
    assert_int_equal(committed(f, "a", "k0"), 20 + ROUNDS - 1);
    int64_t revision = store_revision(f->store);
    fixture_close(f);
    assert_int_equal(file_size(f, "state.db-wal.damaged"), -1);
    return revision;
}

struct log_counts {
    int whole, reported, unknown;
};

static void check_log(struct fixture *f, size_t at, int64_t newest, struct log_counts *counts)
{
    struct store *s = store_new(NULL, &f->options);
    struct store_damage d;
    struct db *db = NULL;

    err_clear(&f->err);
    if (store_open_db(&f->options, &db, &f->err) || store_load(s, db, &f->err))
        fail_msg("byte %zu: %.*s", at, STR_F(f->err.message));
    unsigned pods = store_resource(s, STR("pods"));
    int value = value_of(store_get(s, pods, STR("a"), STR("k0")));
    store_damage(s, &d);
    if (d.log) {
        assert_true(store_revision(s) > newest + 1000000);
        assert_true(file_size(f, "state.db-wal.damaged") > 0);
        assert_int_equal(file_size(f, "state.db-wal.lost"), -1);
        counts->reported++;
    } else if (value == 20 + ROUNDS - 1) {
        assert_int_equal(store_revision(s), newest);
        counts->whole++;
    } else {
        /* The last transaction, which may be one that was never answered. */
        if (value != 20 + ROUNDS - 2 || at < last_commit)
            fail_msg("byte %zu of %zu: %d is served without a word", at, n_journal, value);
        counts->unknown++;
    }
    assert_int_equal(d.objects + d.nameless + d.records + d.unattributed, 0);
    db_close(db);
    store_free(s);
}

/* A damaged log loses what stands behind the damage. It is known to, unless that is only the last
 * transaction. */
static void test_every_byte_of_the_log(void **state)
{
    struct fixture *f = *state;
    struct log_counts counts = {0};

    write_file(f, "state.db", database, n_database);
    write_file(f, "state.db-wal", empty_log, sizeof(empty_log));
    fill_log(f);
    int64_t newest = newest_of_log(f);
    for (size_t i = 0; i < n_journal * (size_t)n_flips(); i++) {
        size_t at = i % n_journal;
        char before = journal[at];

        journal[at] = flipped(before, at, (int)(i / n_journal));
        write_file(f, "state.db", database, n_database);
        write_file(f, "state.db-wal", journal, n_journal);
        write_file(f, "state.db-wal.damaged", "", 0);
        check_log(f, at, newest, &counts);
        journal[at] = before;
    }
    print_message("%zu bytes of the log: %d harmless, %d reported, %d in the last transaction\n",
                  n_journal, counts.whole, counts.reported, counts.unknown);
    assert_true(counts.reported > counts.unknown);
}

/* The write of a transaction was cut off inside the header of its first frame. What stands behind
 * it is of a transaction that failed before, longer than one frame, and chains to the bytes of the
 * frame that were not overwritten. Neither was answered: nothing is lost. */
static void test_header_of_another_transaction(void **state)
{
    struct fixture *f = *state;
    struct log_counts counts = {0};

    write_file(f, "state.db", database, n_database);
    write_file(f, "state.db-wal", empty_log, sizeof(empty_log));
    fill_log(f);
    int64_t newest = newest_of_log(f);
    assert_true(n_journal >= last_commit + (size_t)2 * (24 + 512));
    memcpy(journal + last_commit, journal + n_journal - (24 + 512), 12);
    write_file(f, "state.db", database, n_database);
    write_file(f, "state.db-wal", journal, n_journal);
    check_log(f, last_commit, newest, &counts);
    assert_int_equal(counts.unknown, 1);
}

static int setup(void **state)
{
    static struct fixture f;

    fixture_init(&f);
    fixture_in_memory(&f);
    make_small(&f);
    fill(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_fini(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_byte),
                                       cmocka_unit_test(test_every_byte_of_the_log),
                                       cmocka_unit_test(test_header_of_another_transaction)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
