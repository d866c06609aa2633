/* SPDX-License-Identifier: Apache-2.0
 * kill -9 and power losses at random moments: everything answered is there, and revisions go on
 * upwards. */
#include "crash.h"
#include "fault_vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void on_wake(void *ctx)
{
    (void)ctx;
}

/* Events have gapless predecessors: what was before each is the event before it of the same key. */
static void check_history(struct fixture *f)
{
    struct store_watch *w;
    const struct store_event *e;
    int64_t last = store_oldest_revision(f->store);
    bool expired;

    assert_int_equal(store_watch_open(f->store, f->pods, last, on_wake, NULL, &w, &f->err), 0);
    while ((e = next_event(f, w, &expired))) {
        assert_true(e->revision > last);
        assert_int_equal(!e->previous, e->type == STORE_ADDED);
        if (e->previous)
            assert_true(e->previous->revision < e->revision);
        last = e->revision;
    }
    assert_false(expired);
    assert_int_equal(last, store_revision(f->store));
    store_watch_close(w);
}

static void run(size_t padding, int rounds, bool power)
{
    struct fixture f;
    unsigned seed = (unsigned)time(NULL);
    struct crash c = {.f = &f, .padding = padding, .power = power};

    print_message("seed %u\n", seed);
    fixture_init(&f);
    f.options.history_events = 200;
    for (int i = 0; i < rounds; i++) {
        crash_run(&c, seed + (unsigned)i, rand_r(&seed) % 25);
        if (power)
            crash_power_loss(&c, seed + (unsigned)i);
        fixture_open(&f);
        crash_check(&c);
        check_history(&f);
        fixture_close(&f);
        assert_int_equal(query(&f, "SELECT count(*) FROM pragma_integrity_check"
                                   " WHERE integrity_check = 'ok'"),
                         1);
    }
    print_message("%ld answers over %d kills, revision %lld\n", c.answers, rounds,
                  (long long)c.newest);
    assert_true(c.answers > rounds);
    fixture_fini(&f);
}

static void test_small_objects(void **state)
{
    (void)state;
    run(0, 50, false);
}

/* Large enough that the log is folded into the file many times. */
static void test_large_objects(void **state)
{
    (void)state;
    run(50000, 25, false);
}

static void test_power_small(void **state)
{
    (void)state;
    run(0, 60, true);
}

static void test_power_large(void **state)
{
    (void)state;
    run(30000, 40, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_objects),
        cmocka_unit_test(test_large_objects),
        cmocka_unit_test(test_power_small),
        cmocka_unit_test(test_power_large),
    };

    fault_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
