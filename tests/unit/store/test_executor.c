/* SPDX-License-Identifier: Apache-2.0
 * A store whose writer's jobs an executor runs: nothing is durable before the first step of a job,
 * nothing answered before the second, and no thread is needed. */
#include "harness.h"

#include <sublet/store_executor.h>

struct slot {
    void (*run)(void *arg);
    void *arg;
};

static void post(void *ctx, void (*run)(void *arg), void *arg)
{
    struct slot *slot = ctx;

    assert_null(slot->run);
    *slot = (struct slot){run, arg};
}

static bool step(struct slot *slot)
{
    struct slot now = *slot;

    *slot = (struct slot){0};
    if (now.run)
        now.run(now.arg);
    return now.run != NULL;
}

static void on_answer(void *ctx, const struct err *err)
{
    assert_null(err);
    *(bool *)ctx = true;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void test_two_steps(void **state)
{
    struct slot slot = {0};
    struct store_executor executor = {post, &slot};
    struct fixture f;
    bool answered = false, closed = false;

    (void)state;
    fixture_init(&f);
    f.options.executor = &executor;
    fixture_open(&f);
    put(&f, "a", "x", 7);
    store_on_commit(f.store, on_answer, &answered);
    assert_null(slot.run);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_non_null(slot.run);
    assert_int_equal(committed(&f, "a", "x"), -1);

    assert_true(step(&slot));
    uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_false(answered);
    assert_int_equal(committed(&f, "a", "x"), -1);

    assert_true(step(&slot));
    assert_true(answered);
    assert_int_equal(committed(&f, "a", "x"), 7);

    store_close(f.store, on_closed, &closed);
    f.store = NULL;
    while (!closed) {
        uv_run(&f.loop, UV_RUN_NOWAIT);
        step(&slot);
    }
    f.options.executor = NULL;
    fixture_open(&f);
    assert_int_equal(committed(&f, "a", "x"), 7);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_steps)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
