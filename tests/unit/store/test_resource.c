/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of resources: released ones come back once nothing of them is left, however many names a
 * tenant thinks of; and versions that cannot be read are hidden. */
#include "harness.h"

#include <sublet/store_quarantine.h>

#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));

    fixture_init(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_fini(*state);
    mem_free(*state);
    return 0;
}

static unsigned resource_of(struct fixture *f, unsigned i)
{
    char name[32];
    int n = snprintf(name, sizeof(name), "kind-%u", i);

    return store_resource(f->store, (struct str){name, (size_t)n});
}

/* More than there are ids, each with an object and its history, or without. */
static void cycle(struct fixture *f, unsigned from, unsigned n, bool written)
{
    for (unsigned i = from; i < from + n; i++) {
        unsigned id = resource_of(f, i);

        assert_true(id);
        if (written) {
            int64_t at = try_write_of(f, id, STORE_CREATE, "", "x", 1, 0);
            assert_true(at > 0);
            assert_true(try_write_of(f, id, STORE_DELETE, "", "x", 1, at) > 0);
        }
        store_resource_release(f->store, id);
        if (i % 500 == 499)
            assert_true(fixture_sync(f));
    }
    assert_true(fixture_sync(f));
}

static void test_ids_come_back(void **state)
{
    struct fixture *f = *state;

    f->options.history_events = 1000;
    fixture_open(f);
    put(f, "a", "x", 1);
    cycle(f, 0, 70000, false);
    cycle(f, 0, 70000, true);
    /* The last names go with their history; their rows leave disk with later writes. */
    for (int i = 0; i < 1200; i++) {
        put(f, "a", "x", i);
        if (i % 8 == 0)
            assert_true(fixture_sync(f));
    }
    assert_true(fixture_sync(f));
    for (int i = 0; i < 60; i++) {
        put(f, "a", "x", i);
        assert_true(fixture_sync(f));
    }
    assert_true(resource_of(f, 1) < 100);
    fixture_reopen(f);
    assert_int_equal(committed(f, "a", "x"), 59);
    fixture_close(f);
    assert_true(query(f, "SELECT count(*) FROM resource") < 100);
}

static void test_kept_while_needed(void **state)
{
    struct fixture *f = *state;
    struct store_watch *watch;
    unsigned id, other;

    fixture_open(f);
    id = resource_of(f, 1);
    assert_int_equal(
        store_watch_open(f->store, id, store_revision(f->store), count_wake, NULL, &watch, &f->err),
        0);
    store_resource_release(f->store, id);
    other = resource_of(f, 2);
    assert_int_not_equal(other, id); /* the watch has it */
    store_watch_close(watch);
    assert_int_equal(resource_of(f, 3), id);

    assert_true(try_write_of(f, other, STORE_CREATE, "", "x", 7, 0) > 0);
    store_resource_release(f->store, other); /* before it is durable */
    assert_true(fixture_sync(f));
    assert_int_equal(resource_of(f, 2), other);
    assert_int_equal(value_of(store_get(f->store, other, STR(""), STR("x"))), 7);
    store_resource_release(f->store, other);
    fixture_reopen(f);
    assert_int_equal(resource_of(f, 2), other); /* it has an object */
    assert_int_equal(value_of(store_get(f->store, other, STR(""), STR("x"))), 7);
}

/* A name whose row is about to go is written again in the same breath. */
static void test_back_before_gone(void **state)
{
    struct fixture *f = *state;
    int64_t at;
    unsigned id;

    f->options.history_events = 1;
    fixture_open(f);
    id = resource_of(f, 1);
    at = try_write_of(f, id, STORE_CREATE, "", "x", 1, 0);
    assert_true(try_write_of(f, id, STORE_DELETE, "", "x", 1, at) > 0);
    store_resource_release(f->store, id);
    for (int i = 0; i < 5; i++) {
        put(f, "a", "x", i);
        if (resource_of(f, 1) == id)
            store_resource_release(f->store, id);
        assert_true(fixture_sync(f));
    }
    id = resource_of(f, 1);
    store_resource_release(f->store, id);
    id = resource_of(f, 1);
    assert_true(try_write_of(f, id, STORE_CREATE, "", "x", 3, 0) > 0);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_int_equal(value_of(store_get(f->store, resource_of(f, 1), STR(""), STR("x"))), 3);
}

/* ---- what cannot be read ---- */

static bool is_even(struct str resource, const struct store_object *o)
{
    assert_true(str_eqc(resource, "pods"));
    return value_of(o) % 2 == 0;
}

static bool count(void *ctx, const struct store_object *o)
{
    size_t *n = ctx;

    (void)o;
    ++*n;
    return true;
}

static size_t scan(struct fixture *f, int64_t revision)
{
    size_t n = 0;

    if (scan_at(f, STR_NULL, STR_NULL, STR_NULL, revision, count, &n))
        return 99;
    return n;
}

static void test_quarantine(void **state)
{
    struct fixture *f = *state;
    const struct store_object *o;
    struct store_watch *watch;
    const struct store_event *e;
    int64_t before, after;
    bool expired;
    size_t n = 0;

    fixture_open(f);
    before = put(f, "a", "good", 2);
    put(f, "a", "bad", 3);
    put(f, "a", "mended", 5);
    after = put(f, "a", "mended", 6);
    put(f, "a", "late", 8);
    assert_true(fixture_sync(f));
    f->options.readable = is_even;
    fixture_reopen(f);

    assert_null(store_get(f->store, f->pods, STR("a"), STR("bad")));
    assert_null(store_latest(f->store, f->pods, STR("a"), STR("bad")));
    assert_int_equal(scan(f, 0), 3);
    store_scan_latest(f->store, f->pods, STR_NULL, count, &n);
    assert_int_equal(n, 3);
    store_scan_quarantined(f->store, 0, STR("a"), count, (n = 0, &n));
    assert_int_equal(n, 1);
    assert_int_equal(committed(f, "a", "mended"), 6);
    /* No event that shows it, nor what it was before, is delivered. */
    assert_int_equal(scan(f, before), 99);
    assert_int_equal(
        store_watch_open(f->store, f->pods, after - 1, count_wake, NULL, &watch, &f->err), -1);
    assert_int_equal(store_watch_open(f->store, f->pods, after, count_wake, NULL, &watch, &f->err),
                     0);
    e = next_event(f, watch, &expired);
    assert_true(e && str_eqc(e->object->name, "late"));

    /* The key is taken until it is deleted. */
    o = store_quarantined(f->store, f->pods, STR("a"), STR("bad"));
    assert_non_null(o);
    assert_int_equal(try_write(f, STORE_CREATE, "a", "bad", 4, 0), -1);
    assert_ptr_equal(f->err.kind, &ERR_ALREADY_EXISTS);
    err_clear(&f->err);
    assert_true(try_write(f, STORE_DELETE, "a", "bad", 4, o->revision) > 0);
    assert_true(fixture_sync(f));
    assert_null(store_quarantined(f->store, f->pods, STR("a"), STR("bad")));
    e = next_event(f, watch, &expired);
    assert_true(e && e->type == STORE_DELETED && e->previous->revision < e->revision &&
                str_eq(e->previous->bytes, e->object->bytes));
    store_watch_close(watch);
    assert_true(try_write(f, STORE_CREATE, "a", "bad", 10, 0) > 0);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_int_equal(committed(f, "a", "bad"), 10);
}

static bool has_bytes(struct str resource, const struct store_object *o)
{
    (void)resource;
    return o->bytes.n > 0;
}

/* What a list leaves out of an item was more than there is now. */
static void test_bytes_that_shrank(void **state)
{
    static const char *const edits[] = {"UPDATE version SET bytes = '' WHERE name = 'x'",
                                        "UPDATE version SET skip = 99999 WHERE name = 'x'",
                                        "UPDATE version SET skip = -1 WHERE name = 'x'"};
    struct fixture *f = *state;
    const struct store_object *o;

    f->options.readable = has_bytes;
    fixture_open(f);
    put(f, "a", "x", 1);
    put(f, "a", "y", 2);
    assert_true(fixture_sync(f));
    for (size_t i = 0; i < COUNT(edits); i++) {
        fixture_close(f);
        query(f, edits[i]);
        fixture_open(f);
        assert_int_equal(committed(f, "a", "y"), 2);
        o = store_quarantined(f->store, f->pods, STR("a"), STR("x"));
        assert_true(o && o->skip == 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ids_come_back), TEST(kept_while_needed), TEST(back_before_gone),
        TEST(quarantine),    TEST(bytes_that_shrank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
