/* SPDX-License-Identifier: Apache-2.0
 * The files: permissions, the lock, what is refused at open, and that they stay small. */
#include "harness.h"
#include "store/impl.h"

#include <sublet/store_identity.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mode_t mode_of(struct fixture *f, const char *name)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_permissions(void **state)
{
    struct fixture *f = *state;
    mode_t old = umask(0);
    char dir[80];

    snprintf(dir, sizeof(dir), "%s/new", f->dir);
    f->options.path = dir;
    fixture_open(f);
    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    assert_int_equal(mode_of(f, "new"), 0700);
    assert_int_equal(mode_of(f, "new/state.db"), 0600);
    assert_int_equal(mode_of(f, "new/state.db-wal"), 0600);
    assert_int_equal(mode_of(f, "new/lock"), 0600);
    assert_int_equal(file_size(f, "new/state.db-shm"), -1);
    umask(old);
    fixture_close(f);
    remove_dir(dir);
}

static void expect_refusal(struct fixture *f, const char *text)
{
    err_clear(&f->err);
    assert_int_equal(store_open(&f->loop, &f->options, &f->store, &f->err), -1);
    assert_ptr_equal(f->err.kind, &ERR_STORAGE);
    if (!str_contains(f->err.message, str_c(text)))
        fail_msg("\"%.*s\" does not say \"%s\"", STR_F(f->err.message), text);
    assert_true(str_contains(f->err.message, str_c(f->options.path)));
    assert_null(f->store);
}

static void test_lock(void **state)
{
    struct fixture *f = *state;
    struct fixture other;

    fixture_open(f);
    fixture_init(&other);
    other.options.path = f->dir;
    expect_refusal(&other, "is in use by another process");
    fixture_fini(&other);
    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_int_equal(committed(f, "a", "x"), 1);
}

static void write_file(struct fixture *f, const char *name, const char *bytes, size_t n)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
}

static void test_no_directory(void **state)
{
    struct fixture *f = *state;

    f->options.path = "/nonexistent/directory";
    expect_refusal(f, "No such file or directory");
    f->options.path = "/dev/null";
    expect_refusal(f, "Not a directory");
    f->options.path = f->dir;
}

static void test_foreign_files(void **state)
{
    struct fixture *f = *state;
    char path[128];
    static char noise[8192];

    memset(noise, 'x', sizeof(noise));
    write_file(f, "state.db", noise, sizeof(noise));
    expect_refusal(f, "file is not a database");

    write_file(f, "state.db", "", 0);
    query(f, "CREATE TABLE kine (id INTEGER)");
    expect_refusal(f, "is not a Sublet database");
    assert_int_equal(query(f, "SELECT count(*) FROM kine"), 0);
    query(f, "PRAGMA user_version=1");
    expect_refusal(f, "is not a Sublet database");

    /* Nothing is followed out of the directory. */
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    unlink(path);
    assert_int_equal(symlink("/tmp/elsewhere", path), 0);
    expect_refusal(f, "symbolic links");
}

/* The log of a file that was lost has the newest answered writes, and nothing to apply them to: a
 * file begun in the lost one's place would have SQLite remove it. */
static void test_lost_file(void **state)
{
    struct fixture *f = *state;
    char copy[80], path[96];

    fixture_open(f);
    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    snprintf(copy, sizeof(copy), "%s/copy", f->dir);
    assert_int_equal(mkdir(copy, 0700), 0);
    copy_store(f->dir, copy);
    fixture_close(f);
    f->options.path = copy;
    snprintf(path, sizeof(path), "%s/state.db", copy);
    int64_t log = file_size(f, "copy/state.db-wal");
    assert_true(log > 0);

    assert_int_equal(truncate(path, 0), 0);
    expect_refusal(f, "is missing or empty, and its log is not");
    assert_int_equal(unlink(path), 0);
    expect_refusal(f, "is missing or empty, and its log is not");
    assert_int_equal(file_size(f, "copy/state.db-wal"), log);
    remove_dir(copy);
    f->options.path = f->dir;
}

/* A store whose first transaction was answered is never an empty one: not without its log. */
static void test_lost_log_of_a_young_store(void **state)
{
    struct fixture *f = *state;
    struct store_identity before, after;
    struct str value;
    char copy[80];

    fixture_open(f);
    store_identity(f->store, &before);
    store_record_put(f->store, RECORD_META, STR("uid"), STR("u-1"));
    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    put(f, "a", "later", 1);
    assert_true(fixture_sync(f));
    snprintf(copy, sizeof(copy), "%s/copy", f->dir);
    assert_int_equal(mkdir(copy, 0700), 0);
    copy_store(f->dir, copy);
    fixture_close(f);
    f->options.path = copy;
    assert_true(file_size(f, "copy/state.db-wal") > 0);
    snprintf(copy + strlen(copy), 20, "/state.db-wal");
    assert_int_equal(unlink(copy), 0);
    *strrchr(copy, '/') = '\0';

    fixture_open(f);
    store_identity(f->store, &after);
    assert_string_equal(before.epoch, after.from); /* what was later is lost */
    assert_true(store_record_get(f->store, RECORD_META, STR("uid"), &value));
    assert_true(str_eqc(value, "u-1"));
    assert_int_equal(committed(f, "a", "x"), 1);
    fixture_close(f);
    remove_dir(copy);
    f->options.path = f->dir;
}

static void test_newer_schema(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fixture_close(f);
    query(f, "PRAGMA user_version=3");
    expect_refusal(f, "has format 3, this program knows formats 1 to 2: run the version of Sublet");
    query(f, "PRAGMA user_version=2");
    fixture_open(f);
}

static void test_stats(void **state)
{
    struct fixture *f = *state;
    struct store_stats stats;

    fixture_open(f);
    put(f, "a", "x", 1);
    put(f, "a", "x", 2);
    store_record_put(f->store, RECORD_META, STR("k"), STR("v"));
    store_stats(f->store, &stats);
    assert_true(stats.waiting_bytes > 0);
    assert_int_equal(stats.commits, 0);
    assert_true(fixture_sync(f));
    put(f, "a", "x", 3);
    assert_true(fixture_sync(f));
    store_stats(f->store, &stats);
    assert_int_equal(stats.commits, 2);
    assert_int_equal(stats.failures, 0);
    assert_int_equal(stats.operations, 5); /* the resource is one */
    assert_int_equal(stats.events, 3);
    assert_true(stats.event_bytes > 0);
    assert_int_equal(stats.waiting_bytes, 0);
    assert_int_equal(stats.file_bytes, file_size(f, "state.db"));
    assert_int_equal(stats.log_bytes, file_size(f, "state.db-wal"));
    assert_true(stats.log_bytes > 4096);
}

/* 100,000 updates of a few objects. */
static void test_bounded_by_updates(void **state)
{
    struct fixture *f = *state;
    int64_t log = 0, file = 0;
    char name[8];

    f->options.history_events = 1000;
    fixture_open(f);
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 100; k++) {
            snprintf(name, sizeof(name), "k%d", k % 7);
            put(f, "a", name, i);
        }
        assert_true(fixture_sync(f));
        int64_t size = file_size(f, "state.db-wal");
        log = size > log ? size : log;
        size = file_size(f, "state.db");
        file = size > file ? size : file;
    }
    assert_int_equal(store_revision(f->store), 100001);
    print_message("log %lld, file %lld pages\n", (long long)log / 4096, (long long)file / 4096);
    assert_true(log / 4096 < 1000);
    /* 1,007 rows of about 150 bytes are 40 pages; what batches in flight add comes on top. */
    assert_true(file / 4096 < 200);
    fixture_close(f);
    assert_true(query(f, "SELECT count(*) FROM version") < 1300);
}

static void test_given_back(void **state)
{
    struct fixture *f = *state;
    char name[16];

    f->options.history_events = 10;
    fixture_open(f);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_quiet(f);
    int64_t full = file_size(f, "state.db");
    assert_int_equal(file_size(f, "state.db-wal"), EMPTY_LOG);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        delete (f, "a", name);
    }
    assert_true(fixture_sync(f));

    /* Later writes take dead rows along, then give pages back in steps. */
    for (int i = 0; i < 400; i++) {
        put(f, "b", "x", i);
        assert_true(fixture_sync(f));
    }
    size_t before = f->store->history.n_drops;
    assert_true(before < 20000);
    fixture_quiet(f);
    assert_int_equal(f->store->history.n_drops, 0);
    assert_int_equal(file_size(f, "state.db-wal"), EMPTY_LOG);
    int64_t left = file_size(f, "state.db");
    print_message("%lld pages, then %lld\n", (long long)full / 4096, (long long)left / 4096);
    assert_true(left < full / 20);
    assert_int_equal(committed(f, "b", "x"), 399);
    fixture_reopen(f);
    assert_int_equal(committed(f, "b", "x"), 399);
}

/* A quiet store arms its timer once more, for the age of the history, and then no more. */
static int64_t fake_now = 1000;

static int64_t fake_wall(void)
{
    return fake_now * 1000000;
}

static void test_no_timer_is_left(void **state)
{
    struct fixture *f = *state;

    f->options.wall_us = fake_wall;
    f->options.history_seconds = 600;
    fixture_open(f);
    assert_false(uv_is_active((uv_handle_t *)&f->store->quiet));
    put(f, "a", "x", 1);
    put(f, "a", "x", 2);
    assert_true(fixture_sync(f));
    assert_in_range(uv_timer_get_due_in(&f->store->quiet), 1, STORE_QUIET_MS);
    fixture_quiet(f);
    assert_in_range(uv_timer_get_due_in(&f->store->quiet), 590000, 601000);
    fake_now += 601;
    fixture_quiet(f);
    assert_false(uv_is_active((uv_handle_t *)&f->store->quiet));
    assert_int_equal(store_oldest_revision(f->store), 3);
    fixture_close(f);
    assert_int_equal(query(f, "SELECT count(*) FROM version"), 1);
    assert_int_equal(query(f, "SELECT value FROM meta WHERE key = 'floor'"), 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(permissions),      TEST(lock),
        TEST(no_directory),     TEST(foreign_files),
        TEST(lost_file),        TEST(lost_log_of_a_young_store),
        TEST(newer_schema),     TEST(stats),
        TEST(given_back),       TEST(bounded_by_updates),
        TEST(no_timer_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
