/* SPDX-License-Identifier: Apache-2.0 */
/* The sums that the GPU ledger keeps beside its rows: after every history of charges, releases and
 * failed transactions they are those of the rows, and the rows those of a model. */
#include "gpu/ledger.h"

#include "harness.h"

#include "fault_vfs.h"

#include <sublet/store_failure.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOLS = 3, PODS = 40 };

#define MINUTE   INT64_C(60000000)
#define HOUR     (60 * MINUTE)
#define NOVEMBER INT64_C(1793491200000000) /* 2026-11-01T00:00:00Z */

struct world {
    struct fixture *f;
    struct config_pool pools[POOLS];
    struct config_binding bindings[POOLS];
    struct config config;
    struct clock clock;
    int64_t now_us;
    struct ledger *ledger;
    struct rational model[POOLS][PODS], durable[POOLS][PODS]; /* zero: not charged */
    uint64_t seed;
};

static int64_t now(void *ctx)
{
    return ((struct world *)ctx)->now_us;
}

static void on_wake(void *ctx, struct str key)
{
    (void)ctx;
    (void)key;
}

static void on_event(void *ctx)
{
    (void)ctx;
}

static struct str pool_name(size_t i)
{
    static const char *const names[POOLS] = {"p", "pq", "q"};

    return str_c(names[i]);
}

static void open_ledger(struct world *w)
{
    w->ledger = sync_ledger_new(&(struct ledger_options){.store = w->f->store,
                                                         .config = &w->config,
                                                         .clock = &w->clock,
                                                         .wake = on_wake,
                                                         .changed = on_event,
                                                         .released = on_event,
                                                         .ctx = w});
}

static void world_init(struct world *w, struct fixture *f, uint64_t seed)
{
    *w = (struct world){.f = f, .seed = seed};
    for (size_t i = 0; i < POOLS; i++) {
        w->pools[i].name = pool_name(i);
        w->bindings[i] = (struct config_binding){
            .pool = &w->pools[i], .most = {1000, 1}, .limit = {1000, 1}, .hold_s = 60};
        for (size_t k = 0; k < PODS; k++)
            w->model[i][k] = w->durable[i][k] = RATIONAL_ZERO;
    }
    w->config.bindings = w->bindings;
    w->config.n_bindings = POOLS;
    w->now_us = NOVEMBER;
    w->clock = (struct clock){.mono_ms = now, .wall_us = now, .ctx = w};
    open_ledger(w);
}

static uint64_t random_below(struct world *w, uint64_t n)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (w->seed >> 33) % n;
}

static void force(struct world *w, size_t pool, size_t pod, struct rational gpus)
{
    struct pool_choice choice = {.binding = &w->bindings[pool], .gpu_eq = gpus};
    char uid[16], ns[16];

    snprintf(uid, sizeof(uid), "u-%zu", pod);
    snprintf(ns, sizeof(ns), "ns-%zu", pod % 4);
    for (size_t i = 0; i < POOLS; i++)
        if (w->model[i][pod].num)
            return;
    sync_ledger_force(w->ledger, &choice, str_c(ns), str_c(uid));
    w->model[pool][pod] = gpus;
}

static void release(struct world *w, size_t pod)
{
    char uid[16];

    snprintf(uid, sizeof(uid), "u-%zu", pod);
    sync_ledger_release(w->ledger, str_c(uid));
    for (size_t i = 0; i < POOLS; i++)
        w->model[i][pod] = RATIONAL_ZERO;
}

static void check(struct world *w, uint64_t seed)
{
    struct rational sum;

    for (size_t i = 0; i < POOLS; i++) {
        sum = RATIONAL_ZERO;
        for (size_t k = 0; k < PODS; k++)
            assert_true(rational_add(sum, w->model[i][k], &sum));
        if (rational_cmp(sync_ledger_used(w->ledger, &w->pools[i]), sum) != 0)
            fail_msg("seed %llu: a sum of pool %zu that is not the model's",
                     (unsigned long long)seed, i);
    }
    assert_true(sync_ledger_adds_up(w->ledger));
}

/* Either all since the last one is durable, or none of it. */
static void commit(struct world *w, bool fails)
{
    if (fails)
        fault_arm(FAULT_SYNC | FAULT_WRITE, FAULT_LOG, FAULT_IO, 0, -1);
    if (fixture_sync(w->f))
        memcpy(w->durable, w->model, sizeof(w->model));
    else
        memcpy(w->model, w->durable, sizeof(w->model));
    if (fails) {
        fault_disarm();
        fixture_settle(w->f);
    }
}

static void step(struct world *w)
{
    static const struct rational shares[] = {{1, 1}, {1, 2}, {1, 7}, {3, 10}, {8, 1}, {5, 3}};
    uint64_t what = random_below(w, 20);

    if (what < 10)
        force(w, random_below(w, POOLS), random_below(w, PODS),
              shares[random_below(w, COUNT(shares))]);
    else if (what < 17)
        release(w, random_below(w, PODS));
    else
        commit(w, what == 17);
}

static void a_sum_is_that_of_its_rows_in_every_history(void **state)
{
    struct world w;

    fixture_open(*state);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world_init(&w, *state, seed);
        for (unsigned i = 0; i < 100; i++) {
            step(&w);
            check(&w, seed);
        }
        commit(&w, false);
        sync_ledger_free(w.ledger);
        open_ledger(&w); /* a process that starts */
        check(&w, seed);
        for (size_t i = 0; i < PODS; i++)
            release(&w, i);
        check(&w, seed);
        commit(&w, false);
        sync_ledger_free(w.ledger);
    }
    assert_true(store_undone(w.f->store) > 20);
}

/* The check above can fail: a row that the ledger did not write. */
static void a_row_behind_its_back_is_seen(void **state)
{
    struct fixture *f = *state;
    struct world w;

    fixture_open(f);
    world_init(&w, f, 1);
    force(&w, 0, 1, (struct rational){2, 1});
    check(&w, 1);
    store_record_put(f->store, RECORD_LEDGER, STR("gpu/p/u-2"), STR("1"));
    assert_false(sync_ledger_adds_up(w.ledger));
    store_record_delete(f->store, RECORD_LEDGER, STR("gpu/p/u-2"));
    assert_true(sync_ledger_adds_up(w.ledger));
    sync_ledger_free(w.ledger);
}

/* A row that says nothing, a sum that no number can be: the pool is full until they are gone. */
static void what_cannot_be_summed_up_fills_the_pool(void **state)
{
    struct fixture *f = *state;
    struct world w;

    fixture_open(f);
    store_record_put(f->store, RECORD_LEDGER, STR("gpu/p/u-1"), STR("damaged"));
    world_init(&w, f, 1);
    assert_true(sync_ledger_used(w.ledger, &w.pools[0]).num == INT64_MAX);
    force(&w, 0, 2, (struct rational){2, 1});
    assert_true(sync_ledger_used(w.ledger, &w.pools[0]).num == INT64_MAX);
    sync_ledger_release(w.ledger, STR("u-1"));
    assert_int_equal(sync_ledger_used(w.ledger, &w.pools[0]).num, 2);
    force(&w, 0, 3, (struct rational){INT64_MAX, 1});
    assert_true(sync_ledger_used(w.ledger, &w.pools[0]).num == INT64_MAX);
    release(&w, 3);
    assert_int_equal(sync_ledger_used(w.ledger, &w.pools[0]).num, 2);
    sync_ledger_free(w.ledger);
}

struct line {
    size_t n, last;
    struct rational ahead;
};

static void on_waiting(void *ctx, const struct ledger_waiting *w)
{
    struct line *line = ctx;

    line->n++;
    line->last = w->position;
    line->ahead = w->ahead;
}

/* What no number holds waits ahead: the places behind it are counted all the same. */
static void a_line_is_counted_whatever_it_requests(void **state)
{
    struct fixture *f = *state;
    struct line line = {0};
    struct ledger_wait wait = {0};
    struct arena *a = arena_new(0);
    struct world w;
    char uid[16];

    fixture_open(f);
    world_init(&w, f, 1);
    for (size_t i = 0; i < 4; i++) {
        struct pool_choice choice = {
            .binding = &w.bindings[0], .gpu_eq = RATIONAL_MOST, .limit = {1000, 1}};
        struct ledger_pod pod = {.created = STR("2026-01-01T00:00:00Z"), .key = STR("n/a")};

        snprintf(uid, sizeof(uid), "u-%zu", i);
        pod.uid = str_c(uid);
        w.bindings[0].most = RATIONAL_MOST;
        assert_false(sync_ledger_admit(w.ledger, a, &choice, &pod, &wait));
    }
    assert_true(str_contains(wait.message, STR("position 4, ahead 9223372036854775807 GPU")));
    sync_ledger_each_waiting(w.ledger, STR("p"), on_waiting, &line);
    assert_int_equal(line.n, 4);
    assert_int_equal(line.last, 4);
    assert_int_equal(rational_cmp(line.ahead, RATIONAL_MOST), 0);
    arena_free(a);
    sync_ledger_free(w.ledger);
}

static int64_t milli_hours(struct world *w)
{
    struct rational milli;

    assert_true(
        rational_mul(sync_ledger_hours(w->ledger, STR("p")), (struct rational){1000, 1}, &milli));
    assert_int_equal(milli.den, 1);
    return milli.num;
}

static void hours_are_those_of_all_charges(void **state)
{
    struct world w;

    fixture_open(*state);
    world_init(&w, *state, 1);
    assert_int_equal(milli_hours(&w), 0);
    force(&w, 0, 1, (struct rational){2, 1});
    w.now_us += HOUR;
    assert_int_equal(milli_hours(&w), 2000);
    force(&w, 0, 2, (struct rational){1, 7});
    force(&w, 1, 3, (struct rational){8, 1});
    w.now_us += 7 * HOUR;
    assert_int_equal(milli_hours(&w), 2000 + 14000 + 1000);
    release(&w, 1);
    w.now_us += 7 * MINUTE;
    assert_int_equal(milli_hours(&w), 17000 + 16); /* 16.66 */
    commit(&w, false);
    sync_ledger_free(w.ledger); /* no process runs, pods do */
    w.now_us += 7 * HOUR - 7 * MINUTE;
    open_ledger(&w);
    assert_int_equal(milli_hours(&w), 18000);
    release(&w, 2);
    w.now_us += HOUR;
    assert_int_equal(milli_hours(&w), 18000);
    sync_ledger_free(w.ledger);
}

static void hours_begin_with_the_month(void **state)
{
    struct world w;

    fixture_open(*state);
    world_init(&w, *state, 1);
    w.now_us = NOVEMBER - HOUR;
    sync_ledger_free(w.ledger);
    open_ledger(&w);
    force(&w, 0, 1, (struct rational){4, 1});
    w.now_us = NOVEMBER - 1;
    assert_int_equal(milli_hours(&w), 3999);
    w.now_us = NOVEMBER;
    assert_int_equal(milli_hours(&w), 0);
    w.now_us = NOVEMBER + HOUR;
    assert_int_equal(milli_hours(&w), 4000);
    force(&w, 0, 2, (struct rational){1, 1});
    w.now_us = NOVEMBER + 2 * HOUR;
    assert_int_equal(milli_hours(&w), 9000);
    sync_ledger_free(w.ledger);
}

static void hours_count_no_time_twice(void **state)
{
    struct world w;

    fixture_open(*state);
    world_init(&w, *state, 1);
    force(&w, 0, 1, (struct rational){1, 1});
    w.now_us += 3 * HOUR;
    force(&w, 0, 2, (struct rational){1, 1});
    w.now_us -= 2 * HOUR;
    assert_int_equal(milli_hours(&w), 3000);
    release(&w, 2);
    w.now_us += 2 * HOUR;
    assert_int_equal(milli_hours(&w), 3000);
    w.now_us += HOUR;
    assert_int_equal(milli_hours(&w), 4000);
    sync_ledger_free(w.ledger);
}

/* What a failed transaction charged was never charged. */
static void hours_go_back_with_their_charges(void **state)
{
    struct world w;

    fixture_open(*state);
    world_init(&w, *state, 1);
    force(&w, 0, 1, (struct rational){1, 1});
    commit(&w, false);
    force(&w, 0, 2, (struct rational){99, 1});
    w.now_us += HOUR;
    release(&w, 2);
    commit(&w, true);
    assert_int_equal(milli_hours(&w), 1000);
    w.now_us += HOUR;
    release(&w, 1);
    assert_int_equal(milli_hours(&w), 2000);
    sync_ledger_free(w.ledger);
}

/* The rows of the list, in thousandths, as "ns-1=2000 ns-2=1000 others=0". All are the total. */
static const char *listed(struct world *w, size_t most)
{
    static char text[512];
    struct arena *a = arena_new(0);
    struct hours_list list = sync_ledger_hours_list(w->ledger, a, STR("p"), most);
    struct rational sum = list.others, milli;
    size_t n = 0;

    assert_true(list.n <= most);
    for (size_t i = 0; i < list.n; i++) {
        assert_true(rational_add(sum, list.lines[i].hours, &sum));
        assert_true(rational_mul(list.lines[i].hours, (struct rational){1000, 1}, &milli));
        assert_true(milli.den == 1 && milli.num > 0);
        if (n < sizeof(text) / 2)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s=%lld ", STR_F(list.lines[i].ns),
                                  (long long)milli.num);
    }
    assert_true(rational_mul(list.others, (struct rational){1000, 1}, &milli));
    snprintf(text + n, sizeof(text) - n, "others=%lld", (long long)milli.num);
    assert_int_equal(rational_cmp(sum, list.total), 0);
    assert_int_equal(rational_cmp(sum, sync_ledger_hours(w->ledger, STR("p"))), 0);
    arena_free(a);
    return text;
}

static void hours_are_those_of_namespaces(void **state)
{
    struct world w;

    fixture_open(*state);
    world_init(&w, *state, 1);
    assert_string_equal(listed(&w, 9), "others=0");
    force(&w, 0, 1, (struct rational){2, 1}); /* ns-1, as are 5 and 9 */
    force(&w, 0, 2, (struct rational){3, 1});
    force(&w, 1, 3, (struct rational){8, 1}); /* of another pool */
    w.now_us += HOUR;
    assert_string_equal(listed(&w, 9), "ns-2=3000 ns-1=2000 others=0");
    release(&w, 1);
    force(&w, 0, 5, (struct rational){1, 1});
    w.now_us += 2 * HOUR;
    assert_string_equal(listed(&w, 9), "ns-2=9000 ns-1=4000 others=0");
    assert_string_equal(listed(&w, 1), "ns-2=9000 others=4000");
    assert_string_equal(listed(&w, 0), "others=13000");
    commit(&w, false);
    sync_ledger_free(w.ledger); /* no process runs, pods do */
    w.now_us += HOUR;
    open_ledger(&w);
    assert_string_equal(listed(&w, 9), "ns-2=12000 ns-1=5000 others=0");
    force(&w, 0, 4, (struct rational){1, 1}); /* ns-0: counted until here */
    w.now_us -= 30 * MINUTE;                  /* the clock is set back */
    release(&w, 2);
    w.now_us += 30 * MINUTE;
    assert_string_equal(listed(&w, 9), "ns-2=12000 ns-1=5000 others=0");
    sync_ledger_free(w.ledger);
}

/* What a month's end parts, and what an earlier version charged. */
static void hours_of_namespaces_begin_with_the_month(void **state)
{
    struct fixture *f = *state;
    struct world w;

    fixture_open(f);
    store_record_put(f->store, RECORD_LEDGER, STR("gpu/p/u-0"), STR("1"));
    world_init(&w, f, 1);
    w.now_us = NOVEMBER - HOUR;
    sync_ledger_free(w.ledger);
    open_ledger(&w);
    force(&w, 0, 1, (struct rational){4, 1});
    force(&w, 0, 2, (struct rational){1, 1});
    w.now_us = NOVEMBER - 30 * MINUTE;
    release(&w, 2);
    assert_string_equal(listed(&w, 9), "ns-1=2000 ns-2=500 others=500");
    w.now_us = NOVEMBER;
    assert_string_equal(listed(&w, 9), "others=0");
    w.now_us = NOVEMBER + HOUR;
    assert_string_equal(listed(&w, 9), "ns-1=4000 others=1000");
    release(&w, 1);
    release(&w, 0);
    w.now_us += HOUR;
    assert_string_equal(listed(&w, 9), "ns-1=4000 others=1000");
    sync_ledger_free(w.ledger);
}

/* In every history, with clocks that are set back and transactions that fail. */
static void hours_of_namespaces_are_all_hours(void **state)
{
    struct world w;

    fixture_open(*state);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        world_init(&w, *state, seed);
        for (unsigned i = 0; i < 100; i++) {
            step(&w);
            w.now_us += (int64_t)random_below(&w, 100) * MINUTE + 7;
            w.now_us -= random_below(&w, 10) ? 0 : 3 * HOUR;
            assert_non_null(strstr(listed(&w, 9), "others=0"));
            (void)listed(&w, 2);
        }
        for (size_t i = 0; i < PODS; i++)
            release(&w, i);
        assert_non_null(strstr(listed(&w, 9), "others=0"));
        commit(&w, false);
        sync_ledger_free(w.ledger);
    }
}

static bool count_row(void *ctx, struct str key, struct str value)
{
    (void)key;
    (void)value;
    ++*(size_t *)ctx;
    return true;
}

/* The first has the most, and is not the one that gives its place away. */
static void namespaces_that_are_kept_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct world w;
    size_t rows = 0;
    char ns[16];

    fixture_open(f);
    world_init(&w, f, 1);
    for (size_t i = 0; i < HOURS_NAMESPACES + 20; i++) {
        struct pool_choice choice = {.binding = &w.bindings[0], .gpu_eq = {1, 1}};

        snprintf(ns, sizeof(ns), "n-%zu", i);
        sync_ledger_force(w.ledger, &choice, str_c(ns), STR("u"));
        w.now_us += i ? MINUTE / 10 : HOUR;
        sync_ledger_release(w.ledger, STR("u"));
    }
    store_record_each(f->store, RECORD_LEDGER, STR("spent/"), count_row, &rows);
    store_record_each(f->store, RECORD_LEDGER, STR("since/"), count_row, &rows);
    assert_int_equal(rows, HOURS_NAMESPACES);
    assert_non_null(strstr(listed(&w, 50), "n-0=1000 "));
    (void)listed(&w, 2 * HOURS_NAMESPACES);
    sync_ledger_free(w.ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sum_is_that_of_its_rows_in_every_history, fault_setup,
                                        fault_teardown),
        cmocka_unit_test_setup_teardown(a_row_behind_its_back_is_seen, fault_setup, fault_teardown),
        cmocka_unit_test_setup_teardown(a_line_is_counted_whatever_it_requests, fault_setup,
                                        fault_teardown),
        cmocka_unit_test_setup_teardown(hours_are_those_of_all_charges, fault_setup,
                                        fault_teardown),
        cmocka_unit_test_setup_teardown(hours_begin_with_the_month, fault_setup, fault_teardown),
        cmocka_unit_test_setup_teardown(hours_count_no_time_twice, fault_setup, fault_teardown),
        cmocka_unit_test_setup_teardown(hours_go_back_with_their_charges, fault_setup,
                                        fault_teardown),
        cmocka_unit_test_setup_teardown(hours_are_those_of_namespaces, fault_setup, fault_teardown),
        cmocka_unit_test_setup_teardown(hours_of_namespaces_begin_with_the_month, fault_setup,
                                        fault_teardown),
        cmocka_unit_test_setup_teardown(hours_of_namespaces_are_all_hours, fault_setup,
                                        fault_teardown),
        cmocka_unit_test_setup_teardown(namespaces_that_are_kept_are_bounded, fault_setup,
                                        fault_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_summed_up_fills_the_pool, fault_setup,
                                        fault_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
