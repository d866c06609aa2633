/* SPDX-License-Identifier: Apache-2.0
 *
 * When memory is given back: once after the start, once after each burst, and never by waking a
 * quiet loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <uv.h>

#include <sublet/mem.h>

#include "../../../cli/trim.h"

static uv_loop_t loop;
static int released;

static void release(void)
{
    released++;
    uv_stop(&loop); /* else this turn would go on to wait for something that never comes */
}

static void on_idle(uv_idle_t *handle)
{
    unsigned *left = handle->data;

    if (!--*left)
        uv_idle_stop(handle);
}

/* So many turns of the loop that do not wait. */
static void turn(unsigned n)
{
    uv_idle_t idle;

    uv_idle_init(&loop, &idle);
    idle.data = &n;
    uv_idle_start(&idle, on_idle);
    while (n)
        uv_run(&loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&idle, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

/* Runs the loop until memory was given back n times in all. */
static void wait_for(int n)
{
    uv_async_t keep; /* trim's handles alone do not keep the loop alive */

    uv_async_init(&loop, &keep, NULL);
    while (released < n)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&keep, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static bool any_timer;

static void on_handle(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    any_timer |= handle->type == UV_TIMER && uv_is_active(handle);
}

static bool sleeps(void)
{
    any_timer = false;
    uv_walk(&loop, on_handle, NULL);
    return !any_timer;
}

static void once_per_burst(void **state)
{
    struct trim *t;

    (void)state;
    released = 0;
    uv_loop_init(&loop);
    t = trim_new(&loop, 1, release);
    assert_false(sleeps());
    wait_for(1);
    assert_true(sleeps());

    turn(5); /* not worth it */
    assert_true(sleeps());
    assert_int_equal(released, 1);

    turn(500);
    wait_for(2);
    assert_true(sleeps());
    assert_int_equal(released, 2);
    trim_close(t);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* One turn of the loop that frees as much as a large answer, or a cache whose time is over. */
static void after_few_turns_that_free_much(void **state)
{
    struct trim *t;

    (void)state;
    released = 0;
    uv_loop_init(&loop);
    t = trim_new(&loop, 1, release);
    wait_for(1);
    mem_free(mem_alloc(100));
    turn(1);
    assert_true(sleeps());

    mem_free(mem_alloc(1 << 20));
    turn(1);
    wait_for(2);
    assert_true(sleeps());
    assert_int_equal(released, 2);

    for (int i = 0; i < 100; i++) { /* and many that free little */
        mem_free(mem_alloc(20000));
        if (i % 20 == 0)
            turn(1);
    }
    wait_for(3);
    assert_true(sleeps());
    trim_close(t);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void not_while_busy(void **state)
{
    struct trim *t;

    (void)state;
    released = 0;
    uv_loop_init(&loop);
    t = trim_new(&loop, 1000000, release);
    turn(1000);
    assert_int_equal(released, 0);
    assert_false(sleeps());
    trim_close(t);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_per_burst),
        cmocka_unit_test(after_few_turns_that_free_much),
        cmocka_unit_test(not_while_busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
