/* SPDX-License-Identifier: Apache-2.0
 * What is kept beside the database is never replaced, and what a restore has left is never
 * overlooked, because the system could not say whether there is such a file. */
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_quarantine.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

/* The linker puts these in front of the system's, by the names they have with 64-bit offsets. */
int __wrap_lstat64(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st);
int __real_lstat64(const char *path, struct stat *st);
int __real_stat64(const char *path, struct stat *st);

static const char *unknown; /* the end of the paths that cannot be looked at */
static int refusals;

static bool refuses(const char *path)
{
    size_t n = strlen(path), end = unknown ? strlen(unknown) : 0;

    if (!unknown || n < end || strcmp(path + n - end, unknown))
        return false;
    refusals++;
    errno = EIO;
    return true;
}

int __wrap_lstat64(const char *path, struct stat *st)
{
    return refuses(path) ? -1 : __real_lstat64(path, st);
}

int __wrap_stat64(const char *path, struct stat *st)
{
    return refuses(path) ? -1 : __real_stat64(path, st);
}

static int teardown(void **state)
{
    unknown = NULL;
    return fixture_teardown(state);
}

static void write_file(struct fixture *f, const char *name, long at, const char *bytes, size_t n)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    FILE *file = fopen(path, at ? "r+" : "w");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void make_store(struct fixture *f, int objects)
{
    char name[16];

    fixture_open(f);
    for (int i = 0; i < objects; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_close(f);
}

static void check_refused(struct fixture *f, const char *name)
{
    err_clear(&f->err);
    refusals = 0;
    unknown = name;
    assert_int_equal(store_open(&f->loop, &f->options, &f->store, &f->err), -1);
    f->store = NULL;
    unknown = NULL;
    assert_true(refusals > 0);
    assert_true(str_contains(f->err.message, str_c(name)));
    assert_true(str_contains(f->err.message, STR("Input/output error")));
}

static void test_copy_is_not_replaced(void **state)
{
    static const char noise[PAGE] = {1, 2, 3};
    struct fixture *f = *state;
    struct store_damage d;

    make_store(f, 300);
    write_file(f, "state.db", 9 * PAGE, noise, PAGE);
    write_file(f, "state.db.damaged", 0, "evidence", 8);
    check_refused(f, "state.db.damaged");
    assert_int_equal(file_size(f, "state.db.damaged"), 8);
    fixture_open(f);
    store_damage(f->store, &d);
    assert_true(d.salvaged);
    assert_int_equal(file_size(f, "state.db.damaged"), 8);
    assert_true(file_size(f, "state.db.damaged.2") > 9 * PAGE);
}

static void test_restore_is_not_overlooked(void **state)
{
    struct fixture *f = *state;

    write_file(f, "state.db.restored", 0, "", 0);
    check_refused(f, "state.db.restored");
    assert_int_equal(file_size(f, "state.db"), -1);
}

static void test_restore_replaces_nothing(void **state)
{
    struct fixture *f = *state, backup;
    char from[128];

    fixture_init(&backup);
    make_store(&backup, 1);
    snprintf(from, sizeof(from), "%s/state.db", backup.dir);
    make_store(f, 2);
    unknown = "state.db";
    refusals = 0;
    err_clear(&f->err);
    assert_int_equal(store_restore(from, f->dir, &f->err), -1);
    unknown = NULL;
    assert_true(refusals > 0);
    fixture_open(f);
    assert_int_equal(store_count(f->store, f->pods), 2);
    fixture_fini(&backup);
}

/* A backup beside which there may be a log. */
static void test_restore_of_half_a_store(void **state)
{
    struct fixture *f = *state, backup;
    char from[128];

    fixture_init(&backup);
    make_store(&backup, 1);
    snprintf(from, sizeof(from), "%s/state.db", backup.dir);
    unknown = "state.db-wal";
    refusals = 0;
    err_clear(&f->err);
    assert_int_equal(store_restore(from, f->dir, &f->err), -1);
    unknown = NULL;
    assert_true(refusals > 0);
    fixture_fini(&backup);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(copy_is_not_replaced),
        TEST(restore_is_not_overlooked),
        TEST(restore_replaces_nothing),
        TEST(restore_of_half_a_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
