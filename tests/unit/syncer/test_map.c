/* SPDX-License-Identifier: Apache-2.0 */
/* The room's hash map against what it promises: look-ups, growth, removal while walking. */
#include "test.h"

#include "host/map.h"

struct item {
    struct map_entry entry;
    char key[16];
    bool seen;
};

enum { N = 1000 };

static void see(void *ctx, struct map_entry *e)
{
    struct item *item = CONTAINER(e, struct item, entry);

    (void)ctx;
    assert_false(item->seen);
    item->seen = true;
}

static void remove_odd(void *ctx, struct map_entry *e)
{
    struct item *item = CONTAINER(e, struct item, entry);

    if ((item->key[strlen(item->key) - 1] - '0') % 2)
        sync_map_remove(ctx, e);
}

static void test_everything_is_found(void **state)
{
    struct item *items = mem_alloc(N * sizeof(*items));
    struct map m;

    (void)state;
    sync_map_init(&m, 7);
    assert_null(sync_map_get(&m, STR("none")));
    for (int i = 0; i < N; i++) {
        snprintf(items[i].key, sizeof(items[i].key), "k%d", i);
        sync_map_put(&m, &items[i].entry, str_c(items[i].key));
    }
    for (int i = 0; i < N; i++)
        assert_ptr_equal(sync_map_get(&m, str_c(items[i].key)), &items[i].entry);
    sync_map_each(&m, see, NULL);
    for (int i = 0; i < N; i++)
        assert_true(items[i].seen);

    sync_map_each(&m, remove_odd, &m);
    assert_int_equal(m.n, N / 2);
    assert_null(sync_map_get(&m, STR("k1")));
    assert_non_null(sync_map_get(&m, STR("k2")));
    sync_map_fini(&m);
    mem_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything_is_found)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
