/* SPDX-License-Identifier: Apache-2.0
 * Random writes, batches and restarts, compared with brute force at every revision that can be had.
 * The seed is printed when it fails; STORE_SEED repeats a run. */
#include "model.h"
#include "store/impl.h"
#include "store/upkeep.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct model model;

static unsigned seed(void)
{
    const char *text = getenv("STORE_SEED");

    return text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
}

static void run(unsigned with_seed, size_t events, size_t memory)
{
    struct fixture f;

    print_message("STORE_SEED=%u, history of %zu, %zu bytes in memory\n", with_seed, events,
                  memory);
    model = (struct model){.seed = with_seed};
    fixture_init(&f);
    f.options.history_events = events;
    f.options.history_memory = memory;
    fixture_open(&f);
    for (int i = 0; i < 60; i++) {
        for (unsigned n = model_random(&model, 20); n; n--) {
            assert_true(model_step(&model, &f));
            if (!model_random(&model, 5))
                uv_run(&f.loop, UV_RUN_NOWAIT);
        }
        if (!model_random(&model, 3)) {
            assert_true(fixture_sync(&f));
            fixture_settle(&f);
        }
        if (!model_random(&model, 4)) {
            f.store->packed = -1000; /* all objects are worth moving */
            store_pack(f.store);
        }
        if (!model_random(&model, 8))
            fixture_reopen(&f);
        if (store_revision(f.store) + 1 == store_next_revision(f.store))
            model_check_all(&model, &f);
    }
    fixture_reopen(&f);
    model_check_all(&model, &f);
    fixture_fini(&f);
}

static void test_long_history(void **state)
{
    (void)state;
    run(seed(), 4000, 0);
}

static void test_short_history(void **state)
{
    (void)state;
    run(seed() + 1, 25, 0);
}

static void test_one_event(void **state)
{
    (void)state;
    run(seed() + 2, 1, 0);
}

static void test_history_on_disk(void **state)
{
    (void)state;
    run(seed() + 3, 4000, 1);
}

static void test_history_half_on_disk(void **state)
{
    (void)state;
    run(seed() + 4, 200, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_history),
        cmocka_unit_test(test_short_history),
        cmocka_unit_test(test_one_event),
        cmocka_unit_test(test_history_on_disk),
        cmocka_unit_test(test_history_half_on_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
