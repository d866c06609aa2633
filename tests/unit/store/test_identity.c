/* SPDX-License-Identifier: Apache-2.0
 * Lives of one cluster's data: a restored copy is another one, and shares no revision with any. */
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define YEAR_2026 INT64_C(1767225600)
#define LEAP      INT64_C(1000000000)

static int64_t now_s, now_us; /* the sum of both */

static int64_t fake_wall(void)
{
    return now_s * 1000000 + now_us;
}

static int setup(void **state)
{
    static struct fixture f;

    fixture_init(&f);
    f.options.wall_us = fake_wall;
    now_s = YEAR_2026 + 100;
    now_us = 0;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_fini(*state);
    return 0;
}

static void on_done(void *ctx, const struct err *err)
{
    *(int *)ctx = err ? -1 : 1;
}

static void backup(struct fixture *f, char path[128])
{
    int done = 0;

    snprintf(path, 128, "%s/backup", f->dir);
    store_backup(f->store, path, on_done, &done);
    fixture_settle(f);
    assert_int_equal(done, 1);
}

static void restore(struct fixture *f, const char *from)
{
    fixture_init(f);
    f->options.wall_us = fake_wall;
    if (store_restore(from, f->dir, &f->err))
        fail_msg("%.*s", STR_F(f->err.message));
    fixture_open(f);
}

static void test_first_life(void **state)
{
    struct fixture *f = *state;
    struct store_identity first, again;

    fixture_open(f);
    store_identity(f->store, &first);
    assert_int_equal(strlen(first.epoch), STORE_EPOCH_LEN);
    assert_int_equal(strspn(first.epoch, "0123456789abcdef"), STORE_EPOCH_LEN);
    unsigned long long ms;
    assert_int_equal(sscanf(first.epoch, "%12llx", &ms), 1);
    assert_int_equal(ms, now_s * 1000);
    assert_false(first.restored);
    assert_string_equal(first.from, "");
    assert_int_equal(first.from_revision, 0);
    now_s += 1000;
    fixture_reopen(f);
    store_identity(f->store, &again);
    assert_memory_equal(&first, &again, sizeof(first));
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

static void test_two_restores(void **state)
{
    struct fixture *f = *state, one, two;
    struct store_identity of, of_one, of_two;
    struct store_watch *w;
    char path[128];

    fixture_open(f);
    put(f, "a", "x", 1);
    int64_t last = put(f, "a", "x", 2);
    backup(f, path);
    store_identity(f->store, &of);

    restore(&one, path);
    int64_t first = put(&one, "a", "only-one", 1);
    assert_true(fixture_sync(&one));
    for (int i = 0; i < 100; i++)
        put(&one, "a", "only-one", i);
    assert_true(fixture_sync(&one));
    now_s++;
    restore(&two, path);
    int64_t second = put(&two, "a", "only-two", 1);
    assert_true(fixture_sync(&two));

    assert_int_equal(first, 100 * 1000000 + 1);
    assert_true(second > store_revision(one.store));
    assert_int_equal(second, 101 * 1000000 + 1);
    store_identity(one.store, &of_one);
    store_identity(two.store, &of_two);
    assert_true(of_one.restored && of_two.restored);
    assert_string_equal(of_one.from, of.epoch);
    assert_string_equal(of_two.from, of.epoch);
    assert_int_equal(of_one.from_revision, last);
    assert_int_equal(of_two.from_revision, last);
    assert_true(strcmp(of.epoch, of_one.epoch) < 0 && strcmp(of_one.epoch, of_two.epoch) < 0);

    /* Who watched the life before lists again. */
    assert_int_equal(store_watch_open(two.store, two.pods, last, on_wake, NULL, &w, &two.err), -1);
    assert_ptr_equal(two.err.kind, &ERR_EXPIRED);
    assert_int_equal(committed(&two, "a", "x"), 2);
    fixture_reopen(&two);
    struct store_identity later;
    store_identity(two.store, &later);
    assert_memory_equal(&later, &of_two, sizeof(later));
    fixture_fini(&one);
    fixture_fini(&two);
}

static void test_two_restores_of_one_second(void **state)
{
    struct fixture *f = *state, one, two;
    char path[128];

    now_s = YEAR_2026 + 5000;
    fixture_open(f);
    put(f, "a", "x", 1);
    backup(f, path);
    restore(&one, path);
    for (int i = 0; i < 100; i++)
        put(&one, "a", "only-one", i);
    assert_true(fixture_sync(&one));
    now_us += 1000;
    restore(&two, path);
    assert_true(put(&two, "a", "only-two", 1) > store_revision(one.store));
    fixture_fini(&one);
    fixture_fini(&two);
}

/* Of a life that was itself restored a moment ago. */
static void test_two_restores_of_a_restore(void **state)
{
    struct fixture *f = *state, one, two, three;
    char path[128];

    fixture_open(f);
    put(f, "a", "x", 1);
    backup(f, path);
    restore(&one, path);
    int64_t last = put(&one, "a", "y", 1);
    backup(&one, path);
    now_s++;
    restore(&two, path);
    int64_t of_two = put(&two, "a", "y", 2);
    now_s++;
    restore(&three, path);
    int64_t of_three = put(&three, "a", "y", 3);

    assert_true(last < of_two && of_two < of_three);
    fixture_settle(&two);
    fixture_settle(&three);
    fixture_fini(&one);
    fixture_fini(&two);
    fixture_fini(&three);
}

/* The clock went back, between the lives and before 2026. */
static void test_restore_of_a_restore(void **state)
{
    struct fixture *f = *state, one, two;
    struct store_identity of_one, of_two;
    char path[128];

    now_s = YEAR_2026 + 50000000;
    fixture_open(f);
    put(f, "a", "x", 1);
    backup(f, path);
    restore(&one, path);
    store_identity(one.store, &of_one);
    int64_t last = put(&one, "a", "y", 1);
    assert_int_equal(last, INT64_C(50000000) * 1000000 + 1);
    assert_true(last < INT64_C(1) << 53);
    backup(&one, path);

    now_s = 1000;
    restore(&two, path);
    store_identity(two.store, &of_two);
    assert_string_equal(of_two.from, of_one.epoch);
    assert_int_equal(of_two.from_revision, last);
    assert_true(strcmp(of_one.epoch, of_two.epoch) < 0);
    assert_int_equal(put(&two, "a", "z", 1), last + LEAP + 1);
    assert_true(fixture_sync(&two));
    assert_int_equal(committed(&two, "a", "y"), 1);
    fixture_fini(&one);
    fixture_fini(&two);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(first_life), TEST(two_restores),
                                       TEST(two_restores_of_one_second),
                                       TEST(two_restores_of_a_restore), TEST(restore_of_a_restore)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
