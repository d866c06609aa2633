/* SPDX-License-Identifier: Apache-2.0 */
/* The worker on a real loop with a clock of the test's own: what runs when, how many at once, what
 * keeps the loop alive, and that closing waits for work in flight. */

#include "test.h"

#include <sublet/clock.h>
#include <sublet/queue.h>

#include <uv.h>

struct fixture {
    uv_loop_t loop;
    struct clock clock;
    int64_t now_ms;
    struct worker *worker;
    char log[512]; /* the keys in the order of their work(), each with a blank */
    bool synchronous, fail, add_again, close_inside, closed;
    int again;
};

static int64_t fixture_ms(void *ctx)
{
    return ((struct fixture *)ctx)->now_ms;
}

static void on_closed(void *ctx)
{
    struct fixture *f = ctx;

    assert_false(f->closed);
    f->closed = true;
    f->worker = NULL;
}

static void on_work(void *ctx, struct worker *w, struct str key)
{
    struct fixture *f = ctx;
    size_t n = strlen(f->log);

    assert_false(f->closed);
    snprintf(f->log + n, sizeof(f->log) - n, "%.*s ", STR_F(key));
    if (f->add_again && f->again-- > 0)
        worker_add(w, key);
    if (f->close_inside)
        worker_close(w, on_closed, f);
    if (f->synchronous)
        worker_done(w, key, f->fail);
}

static void start(struct fixture *f, unsigned max_working, const struct queue_options *options)
{
    memset(f, 0, sizeof(*f));
    f->clock = (struct clock){.mono_ms = fixture_ms, .ctx = f};
    assert_int_equal(uv_loop_init(&f->loop), 0);
    f->worker = worker_new(&f->loop, &f->clock, options, max_working, on_work, f);
}

static void tick(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void finish(struct fixture *f)
{
    if (f->worker)
        worker_close(f->worker, on_closed, f);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->closed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void runs_on_the_next_tick(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 4, NULL);
    f.synchronous = true;
    assert_int_equal(uv_loop_alive(&f.loop), 0); /* an idle worker keeps nothing alive */
    worker_add(f.worker, STR("a"));
    worker_add(f.worker, STR("b"));
    worker_add(f.worker, STR("a"));
    assert_string_equal(f.log, "");
    assert_int_equal(worker_length(f.worker), 2);
    assert_false(worker_idle(f.worker));
    tick(&f);
    assert_string_equal(f.log, "a b ");
    assert_true(worker_idle(f.worker));
    assert_int_equal(uv_loop_alive(&f.loop), 0);
    finish(&f);
}

static void bounds_the_work_in_flight(void **state)
{
    struct worker_stats stats;
    struct fixture f;

    (void)state;
    start(&f, 2, NULL);
    worker_add(f.worker, STR("a"));
    worker_add(f.worker, STR("b"));
    worker_add(f.worker, STR("c"));
    tick(&f);
    tick(&f);
    assert_string_equal(f.log, "a b ");
    assert_int_equal(uv_loop_alive(&f.loop), 0); /* full: it does not spin */
    worker_stats(f.worker, &stats);
    assert_int_equal(stats.adds, 3);
    assert_int_equal(stats.waiting, 1);
    assert_int_equal(stats.working, 2);
    assert_int_equal(stats.retries, 0);
    worker_done(f.worker, STR("b"), false);
    assert_string_equal(f.log, "a b ");
    tick(&f);
    assert_string_equal(f.log, "a b c ");
    worker_done(f.worker, STR("a"), false);
    worker_done(f.worker, STR("c"), false);
    assert_true(worker_idle(f.worker));
    finish(&f);
}

/* A timer of the loop that must get its turn while a key adds itself for ever. */
static void on_turn(uv_timer_t *timer)
{
    ((struct fixture *)timer->data)->again = 0;
    uv_close((uv_handle_t *)timer, NULL);
}

static void never_starves_the_loop(void **state)
{
    struct fixture f;
    uv_timer_t timer;

    (void)state;
    start(&f, 1, NULL);
    f.synchronous = f.add_again = true;
    f.again = INT32_MAX;
    worker_add(f.worker, STR(""));
    uv_timer_init(&f.loop, &timer);
    timer.data = &f;
    uv_timer_start(&timer, on_turn, 1, 0);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_true(worker_idle(f.worker));
    finish(&f);
}

static void waits_for_the_due_time(void **state)
{
    const struct queue_options options = {.backoff_base_ms = 1000};
    struct fixture f;

    (void)state;
    start(&f, 1, &options);
    f.synchronous = f.fail = true;
    worker_add_after(f.worker, STR("a"), 5000);
    tick(&f);
    assert_string_equal(f.log, "");
    assert_int_equal(uv_loop_alive(&f.loop), 1); /* the timer */
    f.now_ms = 5000;
    worker_wake(f.worker);
    tick(&f);
    assert_string_equal(f.log, "a ");
    assert_int_equal(worker_failures(f.worker, STR("a")), 1);
    f.now_ms = 5999;
    worker_wake(f.worker);
    tick(&f);
    assert_string_equal(f.log, "a ");
    f.fail = false;
    f.now_ms = 6000;
    worker_wake(f.worker);
    tick(&f);
    assert_string_equal(f.log, "a a ");
    assert_int_equal(worker_failures(f.worker, STR("a")), 0);
    assert_int_equal(uv_loop_alive(&f.loop), 0);
    finish(&f);
}

static void sleeps_on_a_timer(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 1, NULL);
    f.clock = CLOCK_SYSTEM;
    f.synchronous = true;
    worker_add_after(f.worker, STR("late"), 20);
    worker_add_after(f.worker, STR("early"), 5);
    worker_add_after(f.worker, STR("now"), -7);
    uv_run(&f.loop, UV_RUN_DEFAULT); /* ends by itself, when nothing waits any more */
    assert_string_equal(f.log, "now early late ");
    finish(&f);
}

static void closing_waits_for_work(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 2, NULL);
    worker_add(f.worker, STR("a"));
    worker_add(f.worker, STR("b"));
    tick(&f);
    worker_add(f.worker, STR("c"));
    worker_close(f.worker, on_closed, &f);
    worker_add(f.worker, STR("d"));
    tick(&f);
    worker_done(f.worker, STR("a"), true);
    tick(&f);
    assert_false(f.closed);
    worker_done(f.worker, STR("b"), false);
    assert_false(f.closed); /* from the loop, never from within a call */
    uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_true(f.closed);
    assert_string_equal(f.log, "a b ");
    finish(&f);
}

static void closes_from_within_work(void **state)
{
    struct fixture f;

    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        start(&f, 9, NULL);
        f.close_inside = true;
        f.synchronous = synchronous;
        worker_add(f.worker, STR("a"));
        worker_add(f.worker, STR("b"));
        tick(&f);
        assert_string_equal(f.log, "a ");
        if (!synchronous)
            worker_done(f.worker, STR("a"), false);
        uv_run(&f.loop, UV_RUN_DEFAULT);
        assert_true(f.closed);
        finish(&f);
    }
}

static void counts_what_it_drops(void **state)
{
    const struct queue_options options = {.max_keys = 1};
    struct fixture f;

    (void)state;
    start(&f, 1, &options);
    f.synchronous = true;
    worker_add(f.worker, STR("a"));
    worker_add(f.worker, STR("b"));
    assert_int_equal(worker_dropped(f.worker), 1);
    tick(&f);
    assert_string_equal(f.log, "a ");
    finish(&f);
}

static void works_in_batches(void **state)
{
    struct fixture f;
    char text[8];

    (void)state;
    start(&f, 1, NULL);
    f.synchronous = true;
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof(text), "%d", i);
        worker_add(f.worker, str_c(text));
    }
    tick(&f);
    assert_int_equal(worker_length(f.worker), 18);
    tick(&f);
    assert_true(worker_idle(f.worker));
    finish(&f);
}

static void rests_while_paused(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 1, NULL);
    f.synchronous = true;
    worker_add(f.worker, STR("a"));
    worker_pause(f.worker, true);
    worker_add(f.worker, STR("b"));
    assert_int_equal(worker_next_due(f.worker), INT64_MAX);
    tick(&f);
    assert_string_equal(f.log, "");
    worker_pause(f.worker, false);
    tick(&f);
    assert_string_equal(f.log, "a b ");
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_on_the_next_tick),   cmocka_unit_test(bounds_the_work_in_flight),
        cmocka_unit_test(never_starves_the_loop),  cmocka_unit_test(waits_for_the_due_time),
        cmocka_unit_test(sleeps_on_a_timer),       cmocka_unit_test(closing_waits_for_work),
        cmocka_unit_test(closes_from_within_work), cmocka_unit_test(counts_what_it_drops),
        cmocka_unit_test(works_in_batches),        cmocka_unit_test(rests_while_paused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
