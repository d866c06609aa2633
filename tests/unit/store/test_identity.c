/* SPDX-License-Identifier: Apache-2.0
 * Lives of one cluster's data: a restored copy is another one, and shares no revision with any. */
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <sublet/clock.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define YEAR_2026 INT64_C(1767225600)
#define LEAP      INT64_C(1000000000)
#define HOUR      3600
#define SPREAD    (INT64_C(1) << 32) /* microseconds: 72 minutes */
#define WIDE      (INT64_C(1) << 44)

static int64_t now_s, now_us; /* the sum of both */
static uint64_t dice;

static int64_t fake_wall(void)
{
    return now_s * 1000000 + now_us;
}

static int64_t now_of_2026(void)
{
    return fake_wall() - YEAR_2026 * 1000000;
}

static void fake_fill(void *ctx, void *out, size_t n)
{
    unsigned char *p = out;

    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        p[i] = (unsigned char)(dice >> 56);
    }
}

static const struct rng FAKE_RNG = {fake_fill, NULL};

static void prepare(struct fixture *f)
{
    fixture_init(f);
    f->options.wall_us = fake_wall;
    f->options.rng = &FAKE_RNG;
}

static int setup(void **state)
{
    static struct fixture f;

    prepare(&f);
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
    prepare(f);
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
    now_s += 2 * HOUR;
    restore(&two, path);
    int64_t second = put(&two, "a", "only-two", 1);
    assert_true(fixture_sync(&two));

    assert_in_range(first, 100 * 1000000 + 1, 100 * 1000000 + SPREAD);
    assert_true(second > store_revision(one.store));
    assert_in_range(second, now_of_2026() + 1, now_of_2026() + SPREAD);
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

/* `n` revisions of each life, none of them in both. */
static void check_apart(struct fixture *one, struct fixture *two, int n)
{
    int64_t first[2] = {put(one, "a", "n", 0), put(two, "a", "n", 0)}, last[2] = {0};

    for (int i = 1; i < n; i++) {
        last[0] = put(one, "a", "n", i);
        last[1] = put(two, "a", "n", i);
    }
    assert_true(fixture_sync(one) && fixture_sync(two));
    assert_true(last[0] < first[1] || last[1] < first[0]);
}

/* A machine whose clock begins with the same moment at every boot, one that was resumed from a
 * snapshot, a clock that was set back between the two by what passed. */
static void test_two_restores_at_one_time(void **state)
{
    struct fixture *f = *state, one, two;
    char path[128];

    now_s = YEAR_2026 + 5000;
    fixture_open(f);
    put(f, "a", "x", 1);
    backup(f, path);
    restore(&one, path);
    restore(&two, path);
    check_apart(&one, &two, 500);
    fixture_fini(&one);
    fixture_fini(&two);
}

/* Both begin above the copy, which is all that is known of time. */
static void test_two_restores_without_a_clock(void **state)
{
    struct fixture *f = *state, one, two;
    char path[128];

    fixture_open(f);
    int64_t last = put(f, "a", "x", 1);
    backup(f, path);
    now_s = 1000;
    restore(&one, path);
    restore(&two, path);
    assert_in_range(store_revision(one.store), last + LEAP, last + LEAP + WIDE);
    assert_in_range(store_revision(two.store), last + LEAP, last + LEAP + WIDE);
    check_apart(&one, &two, 500);
    fixture_fini(&one);
    fixture_fini(&two);
}

/* Of a life that was itself restored a moment ago: its revisions may be ahead of the clock. */
static void test_restores_of_a_restore(void **state)
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
    now_s++;
    restore(&three, path);
    assert_true(last < store_revision(two.store) && last < store_revision(three.store));
    assert_true(store_revision(two.store) < last + LEAP + SPREAD);
    check_apart(&two, &three, 500);
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
    assert_in_range(last, now_of_2026() + 1, now_of_2026() + SPREAD);
    assert_true(last < INT64_C(1) << 53);
    backup(&one, path);

    now_s = 1000;
    restore(&two, path);
    store_identity(two.store, &of_two);
    assert_string_equal(of_two.from, of_one.epoch);
    assert_int_equal(of_two.from_revision, last);
    assert_true(strcmp(of_one.epoch, of_two.epoch) < 0);
    assert_in_range(put(&two, "a", "z", 1), last + LEAP + 1, last + LEAP + WIDE);
    assert_true(fixture_sync(&two));
    assert_int_equal(committed(&two, "a", "y"), 1);
    fixture_fini(&one);
    fixture_fini(&two);
}

/* A revision that a restored life has not reached is another life's: who watches from there would
 * wait for events that never come, or be sent those of another history. */
static void test_a_revision_to_come(void **state)
{
    struct fixture *f = *state, one;
    struct store_watch *w;
    char path[128];
    int64_t now;

    fixture_open(f);
    now = put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    assert_non_null(w = open_watch(f, f->pods, now + 5, NULL)); /* upstream's watches wait */
    store_watch_close(w);
    backup(f, path);
    restore(&one, path);
    now = put(&one, "a", "y", 1);
    assert_true(fixture_sync(&one));
    assert_null(open_watch(&one, one.pods, now + 1, NULL));
    assert_ptr_equal(one.err.kind, &ERR_EXPIRED);
    assert_non_null(w = open_watch(&one, one.pods, now, NULL));
    store_watch_close(w);
    fixture_fini(&one);
}

static void reopen_after(struct fixture *f, const struct store_predecessor *p,
                         struct store_identity *ret)
{
    f->options.after = p;
    fixture_reopen(f);
    store_identity(f->store, ret);
}

/* Data that a later life overtook goes on in one that is later than both. */
static void test_after_another_life(void **state)
{
    struct fixture *f = *state, one;
    struct store_identity old, of_one, new, again;
    struct store_predecessor p = {0};
    char path[128];

    fixture_open(f);
    store_identity(f->store, &old);
    put(f, "a", "x", 1);
    backup(f, path);
    now_s += 5000;
    restore(&one, path);
    store_identity(one.store, &of_one);
    p.revision = put(&one, "a", "x", 2);
    assert_true(fixture_sync(&one));
    fixture_fini(&one);

    now_s -= 4000; /* set back */
    int64_t last = put(f, "a", "only-here", 1);
    assert_true(fixture_sync(f));
    memcpy(p.epoch, of_one.epoch, sizeof(p.epoch));
    reopen_after(f, &p, &new);
    assert_true(strcmp(new.epoch, of_one.epoch) > 0 && new.restored);
    assert_string_equal(new.from, old.epoch);
    assert_int_equal(new.from_revision, last);
    assert_true(store_oldest_revision(f->store) > p.revision);
    assert_int_equal(committed(f, "a", "only-here"), 1);

    reopen_after(f, &p, &again); /* it is later already */
    assert_memory_equal(&again, &new, sizeof(new));
    memcpy(p.epoch, new.epoch, sizeof(p.epoch)); /* an older copy of this very life led */
    p.revision = 0;
    reopen_after(f, &p, &again);
    assert_true(strcmp(again.epoch, new.epoch) > 0);
    assert_string_equal(again.from, new.epoch);
    reopen_after(f, NULL, &new);
    assert_memory_equal(&again, &new, sizeof(new));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(first_life),
                                       TEST(two_restores),
                                       TEST(two_restores_at_one_time),
                                       TEST(two_restores_without_a_clock),
                                       TEST(restores_of_a_restore),
                                       TEST(restore_of_a_restore),
                                       TEST(a_revision_to_come),
                                       TEST(after_another_life)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
