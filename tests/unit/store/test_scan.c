/* SPDX-License-Identifier: Apache-2.0
 * Scans: order, ranges, starts, older revisions. test_model.c compares them with brute force. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

struct listing {
    char text[1024];
    size_t n;
    int left;
};

static bool on_object(void *ctx, const struct store_object *o)
{
    struct listing *l = ctx;

    l->n += (size_t)snprintf(l->text + l->n, sizeof(l->text) - l->n, "%.*s/%.*s=%d ", STR_F(o->ns),
                             STR_F(o->name), value_of(o));
    assert_true(l->n < sizeof(l->text));
    return --l->left != 0;
}

/* NULL strings are STR_NULL; most 0 means all. */
static const char *scan(struct fixture *f, const char *ns, const char *after_ns, const char *after,
                        int64_t revision, int most)
{
    static struct listing l;

    l = (struct listing){.left = most};
    err_clear(&f->err);
    if (scan_at(f, str_c(ns), str_c(after_ns), str_c(after), revision, on_object, &l))
        return NULL;
    return l.text;
}

static void test_ranges(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    assert_string_equal(scan(f, NULL, NULL, NULL, 0, 0), "");
    put(f, "b", "y", 4);
    put(f, "b", "x", 3);
    put(f, "a-b", "x", 2);
    put(f, "a", "x", 1);
    put(f, "c", "x", 5);
    assert_string_equal(scan(f, NULL, NULL, NULL, 0, 0), "");
    assert_true(fixture_sync(f));
    put(f, "a", "new", 9);
    delete (f, "c", "x");

    assert_string_equal(scan(f, NULL, NULL, NULL, 0, 0), "a/x=1 a-b/x=2 b/x=3 b/y=4 c/x=5 ");
    assert_string_equal(scan(f, NULL, NULL, NULL, 0, 2), "a/x=1 a-b/x=2 ");
    assert_string_equal(scan(f, NULL, "a-b", "x", 0, 2), "b/x=3 b/y=4 ");
    assert_string_equal(scan(f, NULL, "a", "", 0, 1), "a/x=1 ");
    assert_string_equal(scan(f, NULL, "b", "xx", 0, 0), "b/y=4 c/x=5 ");
    assert_string_equal(scan(f, NULL, "z", "z", 0, 0), "");
    assert_string_equal(scan(f, "b", NULL, NULL, 0, 0), "b/x=3 b/y=4 ");
    assert_string_equal(scan(f, "b", "b", "x", 0, 0), "b/y=4 ");
    assert_string_equal(scan(f, "b", "a", "x", 0, 0), "b/x=3 b/y=4 ");
    assert_string_equal(scan(f, "b", "c", "x", 0, 0), "");
    assert_string_equal(scan(f, "nope", NULL, NULL, 0, 0), "");
    assert_string_equal(scan(f, "", NULL, NULL, 0, 0), "");
    assert_true(fixture_sync(f));
    assert_string_equal(scan(f, NULL, NULL, NULL, 0, 0), "a/new=9 a/x=1 a-b/x=2 b/x=3 b/y=4 ");
}

static void test_cluster_scoped(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    put(f, "", "n2", 2);
    put(f, "", "n1", 1);
    assert_true(fixture_sync(f));
    assert_string_equal(scan(f, NULL, NULL, NULL, 0, 0), "/n1=1 /n2=2 ");
    assert_string_equal(scan(f, "", NULL, NULL, 0, 0), "/n1=1 /n2=2 ");
    assert_string_equal(scan(f, NULL, "", "n1", 0, 0), "/n2=2 ");
}

static void test_latest(void **state)
{
    struct fixture *f = *state;
    struct listing l = {0};

    fixture_open(f);
    put(f, "a", "x", 1);
    put(f, "a", "y", 1);
    put(f, "b", "z", 1);
    assert_true(fixture_sync(f));
    put(f, "a", "x", 2);
    delete (f, "a", "y");
    put(f, "a", "new", 3);
    store_scan_latest(f->store, f->pods, STR("a"), on_object, &l);
    assert_string_equal(l.text, "a/new=3 a/x=2 ");
    l = (struct listing){.left = 2};
    store_scan_latest(f->store, f->pods, STR_NULL, on_object, &l);
    assert_string_equal(l.text, "a/new=3 a/x=2 ");
    l = (struct listing){0};
    store_scan_latest(f->store, f->pods, STR_NULL, on_object, &l);
    assert_string_equal(l.text, "a/new=3 a/x=2 b/z=1 ");
}

static void check_revisions(struct fixture *f)
{
    assert_string_equal(scan(f, NULL, NULL, NULL, 2, 0), "a/x=1 ");
    assert_string_equal(scan(f, NULL, NULL, NULL, 3, 0), "a/x=1 a/y=1 ");
    assert_string_equal(scan(f, NULL, NULL, NULL, 4, 0), "a/x=2 a/y=1 ");
    assert_string_equal(scan(f, NULL, "a", "x", 4, 0), "a/y=1 ");
    assert_string_equal(scan(f, "b", NULL, NULL, 4, 0), "");
    assert_string_equal(scan(f, NULL, NULL, NULL, 5, 0), "a/x=2 ");
    assert_string_equal(scan(f, NULL, NULL, NULL, 6, 0), "a/x=2 a/y=3 ");
    assert_string_equal(scan(f, NULL, NULL, NULL, 6, 1), "a/x=2 ");
}

static void test_revisions(void **state)
{
    struct fixture *f = *state;

    f->options.history_events = 4;
    fixture_open(f);
    put(f, "a", "x", 1);  /* 2 */
    put(f, "a", "y", 1);  /* 3 */
    put(f, "a", "x", 2);  /* 4 */
    delete (f, "a", "y"); /* 5 */
    put(f, "a", "y", 3);  /* 6 */
    assert_true(fixture_sync(f));
    fixture_settle(f);
    assert_int_equal(store_oldest_revision(f->store), 2);
    check_revisions(f);

    assert_null(scan(f, NULL, NULL, NULL, 1, 0));
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
    assert_true(str_eq(f->err.message, STR("too old resource version: 1 (2)")));
    put(f, "a", "x", 7);
    assert_null(scan(f, NULL, NULL, NULL, 7, 0));
    assert_ptr_equal(f->err.kind, &ERR_TIMEOUT);
    assert_int_equal(f->err.retry_after, 1);
    assert_true(str_eq(f->err.message, STR("Timeout: Too large resource version: 7, current: 6")));

    f->options.history_events = 100;
    fixture_reopen(f);
    check_revisions(f);
    put(f, "b", "later", 1);
    delete (f, "a", "x");
    assert_true(fixture_sync(f));
    check_revisions(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(ranges),
        TEST(cluster_scoped),
        TEST(latest),
        TEST(revisions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
