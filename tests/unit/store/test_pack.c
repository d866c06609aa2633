/* SPDX-License-Identifier: Apache-2.0
 * Objects move together when the store is quiet: only the holder of a pointer sees it, and who
 * holds a reference does not either. */
#include "harness.h"
#include "store/impl.h"
#include "store/upkeep.h"

#include <stdio.h>

#define OBJECTS 300

static const char *name_of(int i)
{
    static char name[16];

    snprintf(name, sizeof(name), "k%03d", i);
    return name;
}

static const struct store_object *object(struct fixture *f, int i)
{
    return store_get(f->store, f->pods, i % 2 ? STR("a") : STR("b"), str_c(name_of(i)));
}

/* Values i; returns with all of it committed. */
static void fill(struct fixture *f)
{
    for (int i = 0; i < OBJECTS; i++)
        put(f, i % 2 ? "a" : "b", name_of(i), i);
    assert_true(fixture_sync(f));
}

static uintptr_t place[OBJECTS];

static void note_places(struct fixture *f)
{
    for (int i = 0; i < OBJECTS; i++)
        place[i] = (uintptr_t)object(f, i);
}

static int moved(struct fixture *f)
{
    int n = 0;

    for (int i = 0; i < OBJECTS; i++) {
        assert_int_equal(value_of(object(f, i)), i);
        n += place[i] != (uintptr_t)object(f, i);
    }
    return n;
}

static bool on_object(void *ctx, const struct store_object *o)
{
    static int64_t last;
    int *n = ctx;

    assert_true(!*n || o->revision != last);
    last = o->revision;
    ++*n;
    return true;
}

static int scanned(struct fixture *f, struct str ns)
{
    int n = 0;

    assert_int_equal(
        store_scan(f->store, f->pods, ns, STR_NULL, STR_NULL, 0, on_object, &n, &f->err), 0);
    return n;
}

static void test_moves(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fill(f);
    note_places(f);
    size_t bytes = store_bytes(f->store);
    fixture_quiet(f);
    assert_int_equal(moved(f), OBJECTS);
    assert_int_equal(scanned(f, STR_NULL), OBJECTS);
    assert_int_equal(scanned(f, STR("a")), OBJECTS / 2);
    assert_int_equal(store_bytes(f->store), bytes);
    assert_int_equal(store_count(f->store, f->pods), OBJECTS);

    /* Once is enough, and a few writes are not worth it. */
    note_places(f);
    put(f, "c", "x", 1);
    assert_true(fixture_sync(f));
    fixture_quiet(f);
    assert_int_equal(moved(f), 0);

    /* Nor are they moved that did not change. */
    for (int i = 0; i < OBJECTS; i++)
        put(f, "c", "x", i);
    assert_true(fixture_sync(f));
    const struct store_object *x = store_get(f->store, f->pods, STR("c"), STR("x"));
    uintptr_t before = (uintptr_t)x;
    fixture_quiet(f);
    assert_int_equal(moved(f), 0);
    assert_int_not_equal((uintptr_t)store_get(f->store, f->pods, STR("c"), STR("x")), before);

    for (int i = 0; i < OBJECTS; i++)
        delete (f, i % 2 ? "a" : "b", name_of(i));
    assert_true(fixture_sync(f));
    assert_int_equal(scanned(f, STR_NULL), 1);
}

/* A start puts them side by side. */
static void test_not_after_a_start(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fill(f);
    fixture_reopen(f);
    note_places(f);
    put(f, "c", "x", 1);
    assert_true(fixture_sync(f));
    fixture_quiet(f);
    assert_int_equal(moved(f), 0);
}

static void test_owners(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fill(f);
    note_places(f);
    const struct store_object *mine = store_object_ref(object(f, 7));
    int64_t later = put(f, "b", name_of(8), 8); /* under way */
    retain_nothing_warm(f->store);
    store_pack(f->store);
    assert_int_equal(moved(f), OBJECTS - 2);
    assert_ptr_equal(object(f, 7), mine);
    store_object_unref(mine);
    assert_true(fixture_sync(f));
    assert_int_equal(object(f, 8)->revision, later);
    fixture_reopen(f);
    assert_int_equal(scanned(f, STR_NULL), OBJECTS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(moves),
        TEST(not_after_a_start),
        TEST(owners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
