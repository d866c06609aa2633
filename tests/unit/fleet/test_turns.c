/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters that hang do not keep others from being read, none is read twice before each was once,
 * and of a node one at a time. */
#include "test.h"

#include "telemetry/turns.h"

#include <limits.h>

enum { N = 100, INTERVAL = 60000, DEADLINE = 10000 };

struct exporter {
    struct turn turn;
    bool hangs;
    int64_t ends_ms; /* of a read that hangs */
    unsigned reads;
};

/* Reads what may be read now: one that does not hang answers at once. Returns how many. */
static unsigned read_all(struct turns *t, int64_t now)
{
    unsigned n = 0;
    struct turn *turn;
    int64_t wait;

    while ((turn = exporter_turns_next(t, now, &wait)) != NULL) {
        struct exporter *x = CONTAINER(turn, struct exporter, turn);

        x->reads++;
        n++;
        if (x->hangs)
            x->ends_ms = now + DEADLINE;
        else
            exporter_turns_end(t, turn, true, now + INTERVAL);
    }
    return n;
}

static void end_reads(struct turns *t, struct exporter *all, int64_t now)
{
    for (size_t i = 0; i < N; i++)
        if (all[i].turn.under_way && now >= all[i].ends_ms)
            exporter_turns_end(t, &all[i].turn, false, now + INTERVAL);
}

static void make(struct turns *t, struct arena *a, struct exporter *all, size_t every)
{
    exporter_turns_init(t);
    for (size_t i = 0; i < N; i++) {
        all[i].hangs = i % every != 0;
        exporter_turns_add(t, &all[i].turn, arena_printf(a, "n%zu", i), (int64_t)i);
    }
}

static void unmake(struct turns *t, struct arena *a, struct exporter *all)
{
    for (size_t i = 0; i < N; i++)
        exporter_turns_remove(t, &all[i].turn);
    arena_free(a);
}

/* Nine of ten hang: those that answered are read in each interval all the same. */
static void test_who_hangs_delays_none_that_answers(void **state)
{
    struct exporter all[N] = {0};
    struct arena *a = arena_new(0);
    struct turns t;

    (void)state;
    make(&t, a, all, 10);
    for (int64_t now = 0; now < 20 * INTERVAL; now += 1000) {
        end_reads(&t, all, now);
        read_all(&t, now);
        for (size_t i = 0; i < N; i++)
            assert_true(t.under_way[TURN_PROVEN] + t.under_way[TURN_UNPROVEN] <=
                        2 * TURNS_UNDER_WAY);
    }
    for (size_t i = 0; i < N; i += 10) {
        /* The first one came after those before it hung: 90 of them, eight at a time. */
        assert_in_range(all[i].reads, 20 - 90 / TURNS_UNDER_WAY * DEADLINE / INTERVAL - 2, 20);
        assert_int_equal(all[i].turn.lane, TURN_PROVEN);
    }
    unmake(&t, a, all);
}

/* Before one is read again, every other one that is due in its lane was read. */
static void test_none_twice_before_all_once(void **state)
{
    struct exporter all[N] = {0};
    struct arena *a = arena_new(0);
    struct turns t;

    (void)state;
    make(&t, a, all, N + 1); /* all but the first hang */
    for (int64_t now = N; now < 5 * INTERVAL; now += 1000) {
        unsigned least = UINT_MAX, most = 0;

        end_reads(&t, all, now);
        read_all(&t, now);
        for (size_t i = 1; i < N; i++) {
            least = all[i].reads < least ? all[i].reads : least;
            most = all[i].reads > most ? all[i].reads : most;
        }
        assert_true(most - least <= 1);
    }
    assert_true(all[N - 1].reads >= 1);
    unmake(&t, a, all);
}

static void test_one_of_a_node_at_a_time(void **state)
{
    struct turn a = {0}, b = {0}, c = {0};
    struct turns t;
    int64_t wait = 0;

    (void)state;
    exporter_turns_init(&t);
    exporter_turns_add(&t, &a, STR("n1"), 0);
    exporter_turns_add(&t, &b, STR("n1"), 1);
    exporter_turns_add(&t, &c, STR("n2"), 500);
    assert_ptr_equal(exporter_turns_next(&t, 10, &wait), &a);
    assert_null(exporter_turns_next(&t, 10, &wait));
    assert_int_equal(wait, 490);
    assert_ptr_equal(exporter_turns_next(&t, 500, &wait), &c);
    assert_null(exporter_turns_next(&t, 500, &wait));
    assert_true(wait == INT64_MAX);
    exporter_turns_end(&t, &a, true, 1000);
    assert_ptr_equal(exporter_turns_next(&t, 501, &wait), &b);
    exporter_turns_remove(&t, &b); /* while it is under way */
    assert_ptr_equal(exporter_turns_next(&t, 1000, &wait), &a);
    exporter_turns_remove(&t, &a);
    exporter_turns_remove(&t, &c);
    assert_int_equal(t.under_way[TURN_PROVEN] + t.under_way[TURN_UNPROVEN], 0);
    assert_null(exporter_turns_next(&t, 1000, &wait));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_hangs_delays_none_that_answers),
        cmocka_unit_test(test_none_twice_before_all_once),
        cmocka_unit_test(test_one_of_a_node_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
