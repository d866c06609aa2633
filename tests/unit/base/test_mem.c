/* SPDX-License-Identifier: Apache-2.0 */
/* The heap's copies and the arena: zeroed, aligned, reusable, and honest about its limit. Must
 * never assume how chunks are laid out, which differs under ASan. */

#include "test.h"

#include <sublet/mem.h>

static void copies_on_the_heap(void **state)
{
    struct str s = mem_str(STR("a\0b"));
    char *text = mem_strdup(str_sub(STR("pods/x"), 0, 4)), *more;
    int *zero = NEW(int);

    (void)state;
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.p, "a\0b", 4);
    assert_string_equal(text, "pods");
    assert_int_equal(*zero, 0);
    more = mem_realloc(text, 1000);
    assert_string_equal(more, "pods");

    mem_free(s.p);
    mem_free(more);
    assert_null(mem_free(zero));
    assert_null(mem_free(NULL));
}

static void allocates_zeroed_and_aligned(void **state)
{
    static const size_t sizes[] = {1, 0, 15, 16, 17, 4000, 4096, 100000, 3, 64};
    struct arena *a = arena_new(0);

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 200; i++) {
            size_t size = sizes[i % COUNT(sizes)];
            unsigned char *p = arena_alloc(a, size);

            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t at = 0; at < size; at++)
                assert_int_equal(p[at], 0);
            memset(p, 0xA5, size);
        }
        arena_reset(a);
        assert_int_equal(arena_used(a), 0);
    }
    assert_null(arena_free(a));
    assert_null(arena_free(NULL));
}

static void keeps_allocations_apart(void **state)
{
    struct arena *a = arena_new(0);
    unsigned char *p[500];

    (void)state;
    for (size_t i = 0; i < 500; i++) {
        p[i] = arena_alloc(a, i + 1);
        memset(p[i], (int)(i & 0xFF), i + 1);
    }
    for (size_t i = 0; i < 500; i++) {
        assert_int_equal(p[i][0], i & 0xFF);
        assert_int_equal(p[i][i], i & 0xFF);
    }
    arena_free(a);
}

static void tells_when_over(void **state)
{
    struct arena *a = arena_new(1000);

    (void)state;
    arena_alloc(a, 992);
    assert_false(arena_over(a));
    assert_non_null(arena_alloc(a, 100));
    assert_true(arena_over(a));
    arena_reset(a);
    assert_false(arena_over(a));
    arena_free(a);
}

static void counts_what_is_in_use(void **state)
{
    size_t before = mem_in_use(), most;
    uint64_t freed = mem_freed();
    char *p = mem_alloc(100000);
    struct arena *a = arena_new(0);

    (void)state;
    assert_true(mem_in_use() >= before + 100000);
    p = mem_realloc(p, 300000);
    assert_true(mem_in_use() >= before + 300000);
    arena_alloc(a, 200000);
    most = mem_in_use();
    assert_true(most >= before + 500000 && most < before + 520000);
    arena_reset(a);
    assert_true(mem_in_use() < most - 190000);
    arena_free(a);
    mem_free(p);
    mem_free(mem_str(STR("text")).p);
    assert_int_equal(mem_in_use(), before);
    freed = mem_freed() - freed; /* the larger block, the arena, and the smaller one once it grew */
    assert_true(freed >= 600000 && freed < 620000);
}

static void makes_strings(void **state)
{
    struct arena *a = arena_new(0);
    struct str parts[] = {STR("a"), STR_NULL, STR("bc"), STR("")}, long_one;
    char wide[600];

    (void)state;
    assert_string_equal(arena_cstr(a, str_sub(STR("pods"), 0, 3)), "pod");
    assert_string_equal(arena_cstr(a, STR_NULL), "");
    assert_str(arena_str(a, STR("x")), "x");
    assert_str(arena_printf(a, "%s-%d", "n", 7), "n-7");
    assert_str(arena_concat(a, 4, parts), "abc");
    assert_string_equal(arena_concat(a, 4, parts).p, "abc");
    assert_str(arena_concat(a, 0, NULL), "");

    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    long_one = arena_printf(a, "<%s>", wide);
    assert_int_equal(long_one.n, sizeof wide + 1);
    assert_int_equal(long_one.p[0], '<');
    assert_int_equal(long_one.p[long_one.n - 1], '>');
    assert_int_equal(long_one.p[long_one.n], 0);
    arena_free(a);
}

static void grows_arrays(void **state)
{
    struct arena *a = arena_new(0);
    size_t n = 0, cap = 0, n2 = 0, cap2 = 0, moves = 0;
    int *heap = NULL, *kept = NULL;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int *before = kept;

        GROW(heap, n, cap);
        heap[n++] = i;
        ARENA_GROW(a, kept, n2, cap2);
        kept[n2++] = i;
        moves += kept != before;
    }
    for (int i = 0; i < 1000; i++)
        assert_true(heap[i] == i && kept[i] == i);
    assert_int_equal(cap, 1024);
    assert_int_equal(cap2, 1024);
    assert_int_equal(moves, 8); /* 8, 16, ... 1024 */
    mem_free(heap);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_on_the_heap),
        cmocka_unit_test(allocates_zeroed_and_aligned),
        cmocka_unit_test(keeps_allocations_apart),
        cmocka_unit_test(tells_when_over),
        cmocka_unit_test(counts_what_is_in_use),
        cmocka_unit_test(makes_strings),
        cmocka_unit_test(grows_arrays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
