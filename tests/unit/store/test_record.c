/* SPDX-License-Identifier: Apache-2.0
 * Records: the latest state at once, order, prefixes, restarts. Rollback is in test_fault.c. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    static struct fixture f;

    fixture_init(&f);
    fixture_open(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_fini(*state);
    return 0;
}

static const char *get(struct fixture *f, enum store_record kind, const char *key)
{
    static char text[64];
    struct str value;

    if (!store_record_get(f->store, kind, str_c(key), &value))
        return NULL;
    snprintf(text, sizeof(text), "%.*s", STR_F(value));
    return text;
}

static void set(struct fixture *f, enum store_record kind, const char *key, const char *value)
{
    store_record_put(f->store, kind, str_c(key), str_c(value));
}

static void test_put_get_delete(void **state)
{
    struct fixture *f = *state;

    assert_null(get(f, RECORD_META, "k"));
    store_record_delete(f->store, RECORD_META, STR("k"));
    set(f, RECORD_META, "k", "1");
    assert_string_equal(get(f, RECORD_META, "k"), "1");
    assert_null(get(f, RECORD_PKI, "k"));
    set(f, RECORD_META, "k", "2");
    store_record_delete(f->store, RECORD_META, STR("k"));
    assert_null(get(f, RECORD_META, "k"));
    set(f, RECORD_META, "k", "3");
    set(f, RECORD_PKI, "k", "other");
    set(f, RECORD_LEDGER, "empty", "");
    assert_true(fixture_sync(f));
    assert_string_equal(get(f, RECORD_META, "k"), "3");
    fixture_reopen(f);
    assert_string_equal(get(f, RECORD_META, "k"), "3");
    assert_string_equal(get(f, RECORD_PKI, "k"), "other");
    assert_string_equal(get(f, RECORD_LEDGER, "empty"), "");
    store_record_delete(f->store, RECORD_META, STR("k"));
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_null(get(f, RECORD_META, "k"));
}

/* Values change while older ones are with the writer. */
static void test_chains(void **state)
{
    struct fixture *f = *state;
    char value[32];

    for (int i = 0; i < 200; i++) {
        snprintf(value, sizeof(value), "value %d", i);
        set(f, RECORD_MAPPING, "k", value);
        if (i % 3 == 0)
            store_record_delete(f->store, RECORD_MAPPING, STR("k"));
        if (i % 5 == 0)
            uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_true(fixture_sync(f));
    assert_string_equal(get(f, RECORD_MAPPING, "k"), "value 199");
    fixture_reopen(f);
    assert_string_equal(get(f, RECORD_MAPPING, "k"), "value 199");
}

struct listing {
    char text[256];
    int left;
};

static bool on_record(void *ctx, struct str key, struct str value)
{
    struct listing *l = ctx;
    size_t n = strlen(l->text);

    snprintf(l->text + n, sizeof(l->text) - n, "%.*s=%.*s ", STR_F(key), STR_F(value));
    return --l->left > 0;
}

static const char *each(struct fixture *f, const char *prefix, int left)
{
    static struct listing l;

    l = (struct listing){.left = left};
    store_record_each(f->store, RECORD_CONTROLLER, str_c(prefix), on_record, &l);
    return l.text;
}

static void test_each(void **state)
{
    struct fixture *f = *state;

    set(f, RECORD_CONTROLLER, "b/2", "4");
    set(f, RECORD_CONTROLLER, "a", "1");
    set(f, RECORD_CONTROLLER, "b/1", "3");
    set(f, RECORD_CONTROLLER, "b", "2");
    set(f, RECORD_CONTROLLER, "c", "5");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(each(f, "", 99), "a=1 b=2 b/1=3 b/2=4 c=5 ");
        assert_string_equal(each(f, "b/", 99), "b/1=3 b/2=4 ");
        assert_string_equal(each(f, "b", 2), "b=2 b/1=3 ");
        assert_string_equal(each(f, "d", 99), "");
        assert_string_equal(each(f, "bb", 99), "");
        assert_true(fixture_sync(f));
        fixture_reopen(f);
    }
}

static void test_same_value_is_no_write(void **state)
{
    struct fixture *f = *state;

    set(f, RECORD_META, "k", "1");
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    set(f, RECORD_META, "k", "1");
    assert_true(fixture_sync(f));
    assert_int_equal(file_size(f, "state.db-wal"), EMPTY_LOG);
}

static void test_binary(void **state)
{
    struct fixture *f = *state;
    struct str key = {"a\0b\xff", 4}, value = {"\0\1\2\0", 4}, got;

    store_record_put(f->store, RECORD_PKI, key, value);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_true(store_record_get(f->store, RECORD_PKI, key, &got));
    assert_true(str_eq(got, value));
    assert_false(store_record_get(f->store, RECORD_PKI, STR("a"), &got));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(put_get_delete), TEST(chains), TEST(each), TEST(same_value_is_no_write), TEST(binary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
