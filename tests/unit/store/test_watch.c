/* SPDX-License-Identifier: Apache-2.0
 * Watches: order, filters, cursors, expiry, what was before, across restarts too. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

static struct fixture fixture;

static int setup(void **state)
{
    fixture_init(&fixture);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_fini(*state);
    return 0;
}

/* The next event as a string: "ADDED name value" or "MODIFIED name before>after", "" for none. */
static const char *next(struct store_watch *w)
{
    static const char *const TYPES[] = {"ADDED", "MODIFIED", "DELETED"};
    static char text[128];
    bool expired;
    const struct store_event *e = next_event(&fixture, w, &expired);

    if (!e)
        return expired ? "EXPIRED" : "";
    assert_false(expired);
    assert_int_equal(e->revision, e->object->revision);
    assert_int_equal(store_watch_position(w) >= e->revision, true);
    if (e->type == STORE_ADDED)
        assert_null(e->previous);
    else
        assert_true(e->previous->revision < e->revision);
    if (e->previous)
        snprintf(text, sizeof(text), "%s %.*s %d>%d", TYPES[e->type], STR_F(e->object->name),
                 value_of(e->previous), value_of(e->object));
    else
        snprintf(text, sizeof(text), "%s %.*s %d", TYPES[e->type], STR_F(e->object->name),
                 value_of(e->object));
    return text;
}

static void test_events(void **state)
{
    struct fixture *f = *state;
    int wakes = 0;

    fixture_open(f);
    struct store_watch *w = open_watch(f, f->pods, 1, &wakes);
    assert_string_equal(next(w), "");
    put(f, "a", "x", 1);
    put(f, "a", "x", 2);
    put(f, "b", "y", 3);
    assert_string_equal(next(w), "");
    assert_int_equal(wakes, 0);
    assert_true(fixture_sync(f));
    assert_int_equal(wakes, 1);
    assert_string_equal(next(w), "ADDED x 1");
    assert_string_equal(next(w), "MODIFIED x 1>2");
    assert_string_equal(next(w), "ADDED y 3");
    assert_string_equal(next(w), "");
    delete (f, "a", "x");
    put(f, "a", "x", 5);
    assert_true(fixture_sync(f));
    assert_int_equal(wakes, 2);
    assert_string_equal(next(w), "DELETED x 2>2");
    assert_string_equal(next(w), "ADDED x 5");
    assert_string_equal(next(w), "");
    assert_int_equal(store_watch_position(w), store_revision(f->store));
    assert_null(store_watch_close(w));
}

static void test_filter_and_position(void **state)
{
    struct fixture *f = *state;
    int wakes[3] = {0};

    fixture_open(f);
    unsigned maps = store_resource(f->store, STR("configmaps"));
    struct store_watch *pods = open_watch(f, f->pods, 1, &wakes[0]);
    struct store_watch *others = open_watch(f, maps, 1, &wakes[1]);
    struct store_watch *all = open_watch(f, STORE_ALL_RESOURCES, 1, &wakes[2]);

    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    assert_int_equal(wakes[0], 1);
    assert_int_equal(wakes[1], 0);
    assert_int_equal(wakes[2], 1);
    assert_int_equal(store_watch_position(pods), 1);
    assert_int_equal(store_watch_position(others), 2);
    assert_true(try_write_of(f, maps, STORE_CREATE, "a", "m", 9, 0) == 3);
    assert_true(fixture_sync(f));
    assert_int_equal(wakes[1], 1);
    assert_int_equal(wakes[2], 2);
    assert_string_equal(next(pods), "ADDED x 1");
    assert_int_equal(store_watch_position(pods), 3);
    assert_string_equal(next(pods), "");
    assert_int_equal(store_watch_position(others), 2);
    assert_string_equal(next(others), "ADDED m 9");
    assert_string_equal(next(all), "ADDED x 1");
    assert_string_equal(next(all), "ADDED m 9");
    assert_string_equal(next(all), "");
    store_watch_close(pods);
    store_watch_close(others);
    store_watch_close(all);
}

static void test_start(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    for (int i = 1; i <= 5; i++)
        put(f, "a", "x", i); /* revisions 2..6 */
    assert_true(fixture_sync(f));

    struct store_watch *w = open_watch(f, f->pods, 4, NULL);
    assert_string_equal(next(w), "MODIFIED x 3>4");
    assert_string_equal(next(w), "MODIFIED x 4>5");
    assert_string_equal(next(w), "");
    store_watch_close(w);

    /* The future: silent until it has come. */
    w = open_watch(f, f->pods, 8, NULL);
    assert_int_equal(store_watch_position(w), 8);
    put(f, "a", "x", 6);
    put(f, "a", "x", 7);
    assert_true(fixture_sync(f));
    assert_string_equal(next(w), "");
    assert_int_equal(store_watch_position(w), 8);
    put(f, "a", "x", 8);
    assert_true(fixture_sync(f));
    assert_string_equal(next(w), "MODIFIED x 7>8");
    store_watch_close(w);

    assert_null(open_watch(f, f->pods, 0, NULL));
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
    assert_true(str_eq(f->err.message, STR("too old resource version: 0 (1)")));
}

static void test_expiry(void **state)
{
    struct fixture *f = *state;

    f->options.history_events = 4;
    fixture_open(f);
    unsigned maps = store_resource(f->store, STR("configmaps"));
    assert_true(try_write_of(f, maps, STORE_CREATE, "a", "m", 1, 0) == 2);
    assert_true(fixture_sync(f));
    struct store_watch *slow = open_watch(f, f->pods, 2, NULL);
    struct store_watch *quiet = open_watch(f, maps, 2, NULL);
    struct store_watch *all = open_watch(f, STORE_ALL_RESOURCES, 2, NULL);

    for (int i = 1; i <= 6; i++) { /* revisions 3..8 */
        put(f, "a", "x", i);
        assert_true(fixture_sync(f));
    }
    assert_int_equal(store_oldest_revision(f->store), 4);
    assert_string_equal(next(slow), "EXPIRED");
    assert_string_equal(next(slow), "EXPIRED");
    assert_string_equal(next(all), "EXPIRED");
    /* None of its own events was lost. */
    assert_string_equal(next(quiet), "");
    assert_int_equal(store_watch_position(quiet), 8);
    assert_int_equal(try_write_of(f, maps, STORE_UPDATE, "a", "m", 2, 2), 9);
    assert_true(fixture_sync(f));
    assert_string_equal(next(quiet), "MODIFIED m 1>2");
    store_watch_close(slow);
    store_watch_close(all);
    store_watch_close(quiet);

    assert_int_equal(store_oldest_revision(f->store), 5);
    assert_null(open_watch(f, f->pods, 4, NULL));
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
    assert_null(open_watch(f, STORE_ALL_RESOURCES, 4, NULL));
    struct store_watch *w = open_watch(f, f->pods, 5, NULL);
    assert_string_equal(next(w), "MODIFIED x 3>4");
    store_watch_close(w);
    /* Revision 2 was the map's own; nothing of it was lost since then. */
    w = open_watch(f, maps, 2, NULL);
    assert_string_equal(next(w), "MODIFIED m 1>2");
    store_watch_close(w);
}

/* A batch larger than the history: watchers that take when woken lose nothing. */
static void on_take(void *ctx)
{
    struct store_watch **w = ctx;
    bool expired;
    int n = 0;

    while (store_watch_next(*w, &expired))
        n++;
    assert_false(expired);
    assert_int_equal(n, 20);
}

static void test_large_batch(void **state)
{
    struct fixture *f = *state;
    struct store_watch *w;

    f->options.history_events = 4;
    fixture_open(f);
    assert_int_equal(store_watch_open(f->store, f->pods, 1, on_take, &w, &w, &f->err), 0);
    for (int i = 0; i < 20; i++)
        put(f, "a", "x", i);
    assert_true(fixture_sync(f));
    fixture_settle(f);
    assert_int_equal(store_oldest_revision(f->store), 17);
    store_watch_close(w);
}

static void test_restart(void **state)
{
    struct fixture *f = *state;

    f->options.history_events = 5;
    fixture_open(f);
    put(f, "a", "kept", 1); /* 2 */
    put(f, "a", "gone", 2); /* 3 */
    put(f, "a", "x", 3);    /* 4 */
    for (int i = 4; i < 7; i++)
        put(f, "a", "x", i); /* 5..7 */
    delete (f, "a", "gone"); /* 8 */
    put(f, "a", "x", 7);     /* 9 */
    put(f, "a", "gone", 8);  /* 10 */
    assert_true(fixture_sync(f));
    put(f, "b", "last", 9); /* 11, takes the dead rows along */
    assert_true(fixture_sync(f));

    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_oldest_revision(f->store), 6);
        assert_int_equal(store_revision(f->store), 11);
        assert_null(open_watch(f, f->pods, 5, NULL));
        struct store_watch *w = open_watch(f, f->pods, 6, NULL);
        assert_string_equal(next(w), "MODIFIED x 5>6");
        assert_string_equal(next(w), "DELETED gone 2>2");
        assert_string_equal(next(w), "MODIFIED x 6>7");
        assert_string_equal(next(w), "ADDED gone 8");
        assert_string_equal(next(w), "ADDED last 9");
        assert_string_equal(next(w), "");
        assert_int_equal(store_watch_position(w), 11);
        store_watch_close(w);
        assert_int_equal(committed(f, "a", "kept"), 1);
        fixture_reopen(f);
    }
    fixture_close(f);
    /* The disk is one batch behind: kept; x of 5 and 6 (previous), 7, 9; gone of 3, 8, 10; last. */
    assert_int_equal(query(f, "SELECT count(*) FROM version"), 9);
    assert_int_equal(query(f, "SELECT value FROM meta WHERE key = 'floor'"), 5);
    assert_int_equal(query(f, "SELECT count(*) FROM object"), 4);
    assert_int_equal(query(f, "SELECT revision FROM object WHERE name = 'x'"), 9);
}

/* A smaller history at the next start: the surplus leaves the disk with the writes that follow. */
static void test_smaller_history(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    for (int i = 0; i < 500; i++)
        put(f, "a", "x", i);
    assert_true(fixture_sync(f));
    f->options.history_events = 2;
    fixture_reopen(f);
    assert_int_equal(store_oldest_revision(f->store), 499);
    for (int i = 0; i < 10; i++) {
        put(f, "a", "x", i);
        assert_true(fixture_sync(f));
    }
    fixture_close(f);
    int64_t left = query(f, "SELECT count(*) FROM version");
    assert_in_range(left, 3, 5);
    fixture_open(f);
    assert_int_equal(committed(f, "a", "x"), 9);
}

/* The newest revision survives although its row does not. */
static void test_revision_of_deleted(void **state)
{
    struct fixture *f = *state;

    f->options.history_events = 1;
    fixture_open(f);
    put(f, "a", "x", 1);
    delete (f, "a", "x");
    put(f, "a", "y", 2);
    delete (f, "a", "y"); /* 5 */
    assert_true(fixture_sync(f));
    for (int i = 0; i < 3; i++) {
        fixture_reopen(f);
        assert_int_equal(store_revision(f->store), 5 + 2 * i);
        put(f, "a", "z", 1);
        delete (f, "a", "z");
        assert_true(fixture_sync(f));
    }
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
    f->options.history_seconds = 60;
    fixture_open(f);
    put(f, "a", "x", 1); /* 2 */
    assert_true(fixture_sync(f));
    fake_now = 1050;
    put(f, "a", "x", 2); /* 3 */
    assert_true(fixture_sync(f));
    assert_int_equal(store_oldest_revision(f->store), 1);
    fake_now = 1061;
    put(f, "a", "x", 3); /* 4 */
    assert_true(fixture_sync(f));
    fixture_settle(f);
    assert_int_equal(store_oldest_revision(f->store), 2);
    /* Age is kept over a restart. */
    fake_now = 1111;
    fixture_reopen(f);
    assert_int_equal(store_oldest_revision(f->store), 3);
}

static void test_bytes(void **state)
{
    struct fixture *f = *state;

    f->options.history_bytes = 2000;
    fixture_open(f);
    /* Objects that live anyway cost the history next to nothing. */
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_settle(f);
    assert_int_equal(store_oldest_revision(f->store), 1);
    for (int i = 0; i < 200; i++)
        put(f, "a", "x", i);
    assert_true(fixture_sync(f));
    fixture_settle(f);
    assert_in_range(store_oldest_revision(f->store), 205, 218);
}

/* Watches that close each other and open others while they are woken. */
struct ring {
    struct fixture *f;
    struct store_watch *w[6];
    int woken;
};

static void on_mutual(void *ctx)
{
    struct ring *r = ctx;

    r->woken++;
    for (int i = 0; i < 6; i += 2)
        r->w[i] = store_watch_close(r->w[i]);
    if (!r->w[0])
        assert_int_equal(store_watch_open(r->f->store, r->f->pods, store_revision(r->f->store),
                                          on_mutual, r, &r->w[0], &r->f->err),
                         0);
}

static void test_mutation_while_waking(void **state)
{
    struct fixture *f = *state;
    struct ring r = {.f = f};

    fixture_open(f);
    for (int i = 0; i < 6; i++)
        assert_int_equal(store_watch_open(f->store, f->pods, 1, on_mutual, &r, &r.w[i], &f->err),
                         0);
    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    assert_int_equal(r.woken, 3); /* 5, which closes 4, 2 and 0; then 3 and 1 */
    put(f, "a", "x", 2);
    assert_true(fixture_sync(f));
    assert_int_equal(r.woken, 7);
    /* The other watches are closed with the store. */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(events),          TEST(filter_and_position),   TEST(start),
        TEST(expiry),          TEST(large_batch),           TEST(restart),
        TEST(smaller_history), TEST(revision_of_deleted),   TEST(age),
        TEST(bytes),           TEST(mutation_while_waking),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
