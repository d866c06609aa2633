/* SPDX-License-Identifier: Apache-2.0
 * Events that left memory: read back for watches and for scans of an older state, in order, whole
 * or not at all. */
#include "harness.h"
#include "store/impl.h"

#include <sublet/store_admin.h>
#include <sublet/store_executor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_vfs.h"

#define ONE_BYTE 1 /* of memory: an event is cold once its watchers were woken */

static int setup(void **state)
{
    fault_setup(state);
    struct fixture *f = *state;

    f->options.history_memory = ONE_BYTE;
    return 0;
}

static size_t in_memory(struct fixture *f)
{
    struct store_stats stats;

    store_stats(f->store, &stats);
    return stats.event_bytes;
}

static uint64_t reads(struct fixture *f)
{
    struct store_stats stats;

    store_stats(f->store, &stats);
    return stats.reads;
}

/* Writes value 1..n to one object, in commits of ten. */
static void fill(struct fixture *f, const char *name, int n)
{
    for (int i = 1; i <= n; i++) {
        put(f, "a", name, i);
        if (i % 10 == 0 || i == n)
            assert_true(fixture_sync(f));
    }
    fixture_settle(f);
}

/* The next event must be of x, from `value` - 1 to `value`. */
static void expect(struct fixture *f, struct store_watch *w, int value)
{
    bool expired;
    const struct store_event *e = next_event(f, w, &expired);

    assert_non_null(e);
    assert_int_equal(e->type, value == 1 ? STORE_ADDED : STORE_MODIFIED);
    assert_int_equal(value_of(e->object), value);
    assert_int_equal(value_of(e->previous), value == 1 ? -1 : value - 1);
    assert_int_equal(e->revision, e->object->revision);
    assert_int_equal(store_watch_position(w), e->revision);
}

static void expect_expired(struct fixture *f, struct store_watch *w)
{
    bool expired;

    assert_null(next_event(f, w, &expired));
    assert_true(expired);
}

static void expect_end(struct fixture *f, struct store_watch *w)
{
    bool expired;

    assert_null(next_event(f, w, &expired));
    assert_false(expired);
    assert_true(store_watch_position(w) >= store_revision(f->store));
}

static void test_nothing_stays_in_memory(void **state)
{
    struct fixture *f = *state;

    f->options.history_memory = 5000;
    fixture_open(f);
    fill(f, "x", 500);
    assert_in_range(in_memory(f), 1000, 5000);
    fixture_reopen(f);
    assert_int_equal(in_memory(f), 0);
    assert_int_equal(store_oldest_revision(f->store), 1);
}

static int64_t fake_now;

static int64_t fake_wall(void)
{
    return fake_now * 1000000;
}

static void test_age(void **state)
{
    struct fixture *f = *state;

    fake_now = 1000;
    f->options.wall_us = fake_wall;
    f->options.history_memory = 0;
    fixture_open(f);
    fill(f, "x", 100);
    size_t young = in_memory(f);
    fake_now = 1020;
    put(f, "a", "y", 1);
    assert_true(fixture_sync(f));
    fixture_settle(f);
    assert_true(in_memory(f) < young / 10);
    assert_int_equal(store_oldest_revision(f->store), 1);
}

static void test_slow_watch(void **state)
{
    struct fixture *f = *state;
    int wakes = 0;

    fixture_open(f);
    struct store_watch *w = open_watch(f, f->pods, 1, &wakes);
    fill(f, "x", 1000);
    for (int i = 1; i <= 400; i++)
        expect(f, w, i);
    /* What is written meanwhile comes in its place. */
    put(f, "a", "x", 1001);
    put(f, "a", "x", 1002);
    for (int i = 401; i <= 1002; i++)
        expect(f, w, i);
    assert_true(fixture_sync(f));
    expect_end(f, w);
    assert_true(wakes > 5);
    put(f, "a", "x", 1003);
    assert_true(fixture_sync(f));
    expect(f, w, 1003);
    store_watch_close(w);
}

static void test_restart(void **state)
{
    struct fixture *f = *state;
    bool expired;

    fixture_open(f);
    fill(f, "x", 300);
    delete (f, "a", "x");
    assert_true(fixture_sync(f));
    for (int round = 0; round < 2; round++) {
        fixture_reopen(f);
        struct store_watch *w = open_watch(f, f->pods, 100, NULL);
        for (int i = 100; i <= 300; i++)
            expect(f, w, i);
        const struct store_event *e = next_event(f, w, &expired);
        assert_true(e && e->type == STORE_DELETED);
        assert_int_equal(value_of(e->previous), 300);
        assert_int_equal(value_of(e->object), 300);
        expect_end(f, w);
        store_watch_close(w);
    }
}

/* Events of other resources are neither read nor in the way. */
static void test_filter(void **state)
{
    struct fixture *f = *state;
    bool expired;

    fixture_open(f);
    unsigned maps = store_resource(f->store, STR("configmaps"));
    assert_int_equal(try_write_of(f, maps, STORE_CREATE, "a", "m", 7, 0), 2);
    fill(f, "x", 500);
    assert_int_equal(try_write_of(f, maps, STORE_UPDATE, "a", "m", 8, 2), 502 + 1);
    assert_true(fixture_sync(f));
    struct store_watch *w, *all;
    assert_int_equal(store_watch_open(f->store, maps, 1, count_wake, NULL, &w, &f->err), 0);
    uint64_t before = reads(f);
    const struct store_event *e = next_event(f, w, &expired);
    assert_int_equal(value_of(e->object), 7);
    e = next_event(f, w, &expired);
    assert_int_equal(value_of(e->object), 8);
    assert_int_equal(value_of(e->previous), 7);
    expect_end(f, w);
    assert_int_equal(reads(f), before + 1);
    assert_int_equal(
        store_watch_open(f->store, STORE_ALL_RESOURCES, 1, count_wake, NULL, &all, &f->err), 0);
    int n = 0;
    int64_t last = 1;
    while ((e = next_event(f, all, &expired))) {
        assert_int_equal(e->revision, ++last);
        n++;
    }
    assert_false(expired);
    assert_int_equal(n, 502);
    store_watch_close(w);
    store_watch_close(all);
}

/* As many as there are read the same page. */
struct crowd {
    struct fixture *f;
    struct store_watch *w[50];
    int taken[50];
};

struct member {
    struct crowd *crowd;
    int i;
};

static void on_crowd(void *ctx)
{
    struct member *m = ctx;
    const struct store_event *e;
    bool expired;

    while ((e = store_watch_next(m->crowd->w[m->i], &expired)))
        assert_int_equal(value_of(e->object), ++m->crowd->taken[m->i]);
    assert_false(expired);
}

static void test_crowd(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f};
    struct member members[50];

    fixture_open(f);
    fill(f, "x", 1000);
    uint64_t before = reads(f);
    for (int i = 0; i < 50; i++) {
        members[i] = (struct member){&crowd, i};
        assert_int_equal(
            store_watch_open(f->store, f->pods, 1, on_crowd, &members[i], &crowd.w[i], &f->err), 0);
    }
    for (int i = 0; i < 50; i++)
        on_crowd(&members[i]);
    fixture_settle(f);
    for (int i = 0; i < 50; i++)
        assert_int_equal(crowd.taken[i], 1000);
    assert_in_range(reads(f) - before, 2, 20);
}

/* A page is bounded in bytes, and one event is always read. */
static void test_large_objects(void **state)
{
    struct fixture *f = *state;
    char *bytes = malloc(300000);
    bool expired;

    fixture_open(f);
    memset(bytes, 'x', 300000);
    for (int i = 0; i < 20; i++) {
        struct store_write w = {.op = i ? STORE_UPDATE : STORE_CREATE,
                                .resource = f->pods,
                                .expected = i ? store_next_revision(f->store) - 1 : 0,
                                .ns = STR("a"),
                                .name = STR("x"),
                                .uid = STR("u"),
                                .bytes = {bytes, 300000}};
        memcpy(bytes, (char[]){(char)('a' + i)}, 1);
        assert_int_equal(store_write(f->store, &w, &f->err), 0);
    }
    free(bytes);
    assert_true(fixture_sync(f));
    fixture_settle(f);
    struct store_watch *w = open_watch(f, f->pods, 1, NULL);
    for (int i = 0; i < 20; i++) {
        const struct store_event *e = next_event(f, w, &expired);
        assert_true(e && e->object->bytes.n == 300000 && e->object->bytes.p[0] == 'a' + i);
        assert_true(!i || e->previous->bytes.p[0] == 'a' + i - 1);
    }
    expect_end(f, w);
    assert_in_range(reads(f), 10, 20);
    store_watch_close(w);
}

/* --- a read that is under way --- */

struct queue {
    void (*run)(void *arg);
    void *arg;
};

static void post(void *ctx, void (*run)(void *arg), void *arg)
{
    struct queue *q = ctx;

    assert_null(q->run);
    *q = (struct queue){run, arg};
}

static bool step(struct fixture *f, struct queue *q)
{
    struct queue now = *q;

    uv_run(&f->loop, UV_RUN_NOWAIT);
    if (!now.run)
        return false;
    *q = (struct queue){0};
    now.run(now.arg);
    return true;
}

static void steps(struct fixture *f, struct queue *q)
{
    do
        uv_run(&f->loop, UV_RUN_NOWAIT);
    while (step(f, q));
}

static void open_stepped(struct fixture *f, struct queue *q, struct store_executor *executor)
{
    *executor = (struct store_executor){post, q};
    f->options.executor = executor;
    fixture_open(f);
}

static void close_stepped(struct fixture *f, struct queue *q)
{
    store_close(f->store, NULL, NULL);
    f->store = NULL;
    steps(f, q);
}

/* The history leaves while its rows are being read: 410, and no gap. */
static void test_compaction_under_way(void **state)
{
    struct fixture *f = *state;
    struct store_executor executor;
    struct queue q = {0};
    bool expired;

    for (int half = 0; half < 2; half++) {
        f->options.history_events = 50;
        open_stepped(f, &q, &executor);
        for (int i = 1; i <= 40; i++)
            put(f, "a", half ? "x" : "y", i);
        steps(f, &q);
        struct store_watch *w = open_watch(f, f->pods, store_revision(f->store) - 30, NULL);
        assert_null(store_watch_next(w, &expired));
        assert_false(expired);
        uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_non_null(q.run); /* the read */
        if (half)
            assert_true(step(f, &q)); /* done, and not answered */
        for (int i = 1; i <= 60; i++)
            put(f, "a", half ? "x" : "y", 100 + i);
        /* The answer comes, then the commit that lets go of what was read. */
        steps(f, &q);
        assert_null(store_watch_next(w, &expired));
        assert_true(expired);
        store_watch_close(w);
        close_stepped(f, &q);
    }
    f->options.executor = NULL;
}

static void test_close_under_way(void **state)
{
    struct fixture *f = *state;
    struct store_executor executor;
    struct queue q = {0};
    bool expired;

    /* 0..2 steps into the read: the watch closed, or the store with it. */
    for (int run = 0; run < 6; run++) {
        open_stepped(f, &q, &executor);
        for (int i = 1; i <= 20; i++)
            put(f, "a", "x", i);
        steps(f, &q);
        struct store_watch *w = open_watch(f, f->pods, store_revision(f->store) - 20, NULL);
        assert_null(store_watch_next(w, &expired));
        struct store_recall *r =
            store_recall_open(f->store, f->pods, store_revision(f->store) - 10, count_wake, NULL);
        assert_false(store_recall_ready(r));
        uv_run(&f->loop, UV_RUN_NOWAIT);
        for (int i = 0; i < run % 3; i++)
            assert_true(step(f, &q));
        if (run >= 3) {
            store_watch_close(w);
            store_recall_close(r);
            steps(f, &q);
        }
        close_stepped(f, &q);
    }
    f->options.executor = NULL;
}

/* --- what cannot be read --- */

static void test_read_error(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fill(f, "x", 6000); /* more than the pages SQLite keeps */
    fixture_reopen(f);
    struct store_watch *w = open_watch(f, f->pods, 100, NULL);
    fault_arm(FAULT_READ, FAULT_ANY, FAULT_IO, 0, -1);
    expect_expired(f, w);
    assert_true(fault_disarm() > 0);
    expect_expired(f, w);
    store_watch_close(w);
    struct store_stats stats;
    store_stats(f->store, &stats);
    assert_int_equal(stats.read_failures, 1);

    /* Nothing is lost: who lists and watches again, or watches from there again, has it all. */
    w = open_watch(f, f->pods, 100, NULL);
    for (int i = 100; i <= 6000; i++)
        expect(f, w, i);
    expect_end(f, w);
    store_watch_close(w);
}

static int bad_value = -1;

static bool is_not_bad(struct str resource, const struct store_object *o)
{
    (void)resource;
    return value_of(o) != bad_value;
}

static bool on_none(void *ctx, const struct store_object *o)
{
    (void)ctx, (void)o;
    return false;
}

static void test_bad_row(void **state)
{
    struct fixture *f = *state;
    bool expired;

    bad_value = -1;
    f->options.readable = is_not_bad;
    fixture_open(f);
    fill(f, "x", 300);
    unsigned maps = store_resource(f->store, STR("configmaps"));
    int64_t of_map = try_write_of(f, maps, STORE_CREATE, "a", "m", 7, 0);
    assert_true(fixture_sync(f));
    bad_value = 150;
    struct store_watch *w = open_watch(f, f->pods, 1, NULL), *all, *other;
    assert_int_equal(
        store_watch_open(f->store, STORE_ALL_RESOURCES, 1, count_wake, NULL, &all, &f->err), 0);
    assert_int_equal(store_watch_open(f->store, maps, 1, count_wake, NULL, &other, &f->err), 0);
    for (int i = 1; i < 150; i++) {
        expect(f, w, i);
        expect(f, all, i);
    }
    expect_expired(f, w);
    expect_expired(f, all);
    const struct store_event *e = next_event(f, other, &expired);
    assert_true(e && e->revision == of_map);
    store_watch_close(w);
    store_watch_close(all);
    store_watch_close(other);

    /* The event after it shows it as well. */
    assert_null(open_watch(f, f->pods, 120, NULL));
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
    w = open_watch(f, f->pods, 151, NULL);
    expect_expired(f, w);
    store_watch_close(w);
    w = open_watch(f, f->pods, 152, NULL);
    expect(f, w, 152);
    store_watch_close(w);
    assert_int_equal(scan_at(f, STR_NULL, STR_NULL, STR_NULL, 140, on_none, NULL), -1);
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
}

/* A row that rots on the disk while the store is open: its checksum shows it. */
static void rot(struct fixture *f, const char *bytes)
{
    char path[128], text[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    file = fopen(path, "r+");
    assert_non_null(file);
    for (long at = 0;; at += 2048) {
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        size_t n = fread(text, 1, sizeof(text), file);
        assert_true(n > 0);
        char *found = memmem(text, n, bytes, strlen(bytes));
        if (!found)
            continue;
        assert_int_equal(fseek(file, at + (found - text) + 5, SEEK_SET), 0);
        assert_int_equal(fputc('9', file), '9');
        break;
    }
    assert_int_equal(fclose(file), 0);
}

static void test_rotten_row(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fill(f, "x", 6000);
    fixture_reopen(f);
    rot(f, "{\"v\":150,\"rv\":151}");
    struct store_watch *w = open_watch(f, f->pods, 100, NULL);
    for (int i = 100; i < 150; i++)
        expect(f, w, i);
    expect_expired(f, w);
    store_watch_close(w);
    w = open_watch(f, f->pods, 152, NULL);
    for (int i = 152; i <= 6000; i++)
        expect(f, w, i);
    expect_end(f, w);
    store_watch_close(w);
}

/* --- an older state --- */

static bool on_value(void *ctx, const struct store_object *o)
{
    *(int *)ctx += value_of(o);
    return true;
}

static void test_recall(void **state)
{
    struct fixture *f = *state;
    int sum = 0;

    fixture_open(f);
    fill(f, "x", 10);
    fill(f, "y", 100);
    int64_t then = store_revision(f->store);
    /* Kept from the present on, it needs no disk. */
    struct store_recall *kept = store_recall_open(f->store, f->pods, then, NULL, NULL);
    assert_true(store_recall_ready(kept));
    delete (f, "a", "x");
    fill(f, "y", 200);
    fill(f, "z", 3);
    uint64_t before = reads(f);
    assert_int_equal(
        store_scan(f->store, f->pods, STR_NULL, STR_NULL, STR_NULL, then, on_value, &sum, &f->err),
        0);
    assert_int_equal(sum, 110);
    assert_int_equal(reads(f), before);
    store_recall_close(kept);
    assert_int_equal(
        store_scan(f->store, f->pods, STR_NULL, STR_NULL, STR_NULL, then, on_value, &sum, &f->err),
        -1);
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
    err_clear(&f->err);
    sum = 0;
    assert_int_equal(scan_at(f, STR_NULL, STR_NULL, STR_NULL, then, on_value, &sum), 0);
    assert_int_equal(sum, 110);
    assert_int_equal(reads(f), before + 1);
}

static void test_recall_read_error(void **state)
{
    struct fixture *f = *state;
    int sum = 0;

    fixture_open(f);
    for (int i = 0; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        put(f, "a", name, 1);
    }
    assert_true(fixture_sync(f));
    int64_t then = store_revision(f->store);
    for (int i = 0; i < 3000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        put(f, "a", name, 2);
    }
    fixture_reopen(f);
    fault_arm(FAULT_READ, FAULT_ANY, FAULT_IO, 0, -1);
    assert_int_equal(scan_at(f, STR_NULL, STR_NULL, STR_NULL, then, on_value, &sum), -1);
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
    err_clear(&f->err);
    assert_true(fault_disarm() > 0);
    assert_int_equal(scan_at(f, STR_NULL, STR_NULL, STR_NULL, then, on_value, &sum), 0);
    assert_int_equal(sum, 3000);
}

/* A deleted object keeps memory for a while and within a bound, then a slot of the ring. */
static void test_deletes_leave_slots(void **state)
{
    struct fixture *f = *state;
    static char bytes[1024];
    enum { OBJECTS = 2000 };
    char name[16];

    f->options.history_memory = 0; /* the default */
    fixture_open(f);
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 2 * OBJECTS; i++) {
        snprintf(name, sizeof(name), "k%d", i % OBJECTS);
        const struct store_object *o =
            store_latest(f->store, f->pods, STR("a"), str_c(name)); /* deletes what it created */
        struct store_write w = {.op = o ? STORE_DELETE : STORE_CREATE,
                                .resource = f->pods,
                                .expected = o ? o->revision : 0,
                                .ns = STR("a"),
                                .name = str_c(name),
                                .bytes = {bytes, sizeof(bytes)}};
        assert_int_equal(store_write(f->store, &w, &f->err), 0);
    }
    assert_true(fixture_sync(f));
    assert_in_range(in_memory(f), (1 << 20) - 4096, 1 << 20);
    fixture_quiet(f);
    assert_int_equal(in_memory(f), 0);
    assert_int_equal(sizeof(struct history_slot), 32);
    assert_int_equal(history_count(&f->store->history), 2 * OBJECTS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, fault_teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_stays_in_memory),
        TEST(age),
        TEST(slow_watch),
        TEST(restart),
        TEST(filter),
        TEST(crowd),
        TEST(large_objects),
        TEST(compaction_under_way),
        TEST(close_under_way),
        TEST(read_error),
        TEST(bad_row),
        TEST(rotten_row),
        TEST(recall),
        TEST(recall_read_error),
        TEST(deletes_leave_slots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
