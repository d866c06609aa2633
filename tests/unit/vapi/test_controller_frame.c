/* SPDX-License-Identifier: Apache-2.0 */
/* The frame that all controllers run in: how often a key comes back, and that nothing is lost while
 * the process is read-only. */
#include "controller_world.h"

#include <uv.h>

#include <sublet/read_only.h>

#define SET(name, n)                                                                               \
    "{'metadata':{'name':'" name "'},'spec':{'replicas':" #n                                       \
    ",'selector':{'matchLabels':{'app':'a'}},'template':{'metadata':{'labels':{'app':'a'}},"       \
    "'spec':{'containers':[{'name':'c','image':'i'}]}}}}"

static void pauses_while_read_only(void **state)
{
    (void)state;
    world_create(W, "replicasets.apps", "n", SET("s", 1));
    world_settle(W);
    world_freeze(W, true);
    world_create(W, "replicasets.apps", "n", SET("late", 3)); /* its key waits */
    vapi_set_read_only(world_api(W), "another process writes");
    world_settle(W);
    world_pass(W, 120);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 1);
    assert_string_equal(world_try(W, "configmaps", "n", "{'metadata':{'name':'c'}}"),
                        "ServiceUnavailable");
    vapi_set_read_only(world_api(W), NULL);
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 4);
}

static unsigned runs;

/* Requeues itself at once, and fails all the same. */
static void fail_soon(struct reconcile *r)
{
    struct err err;

    if (!str_eqc(reconcile_key(r), "n/x"))
        return;
    runs++;
    err_init(&err, reconcile_arena(r));
    err_set(&err, &ERR_CONFLICT, "never");
    reconcile_again_after(r, 10);
    reconcile_fail(r, &err);
}

static const struct controller_source SOURCES[] = {{"", "configmaps", controller_map_self}, {0}};
static const struct controller_def FAILING = {
    .name = "failing", .sources = SOURCES, .reconcile = fail_soon};

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void pass_ms(struct controller *c, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        world_pass(W, 1);
        controller_wake(c);
        world_settle(W);
    }
}

/* Its own requeue must not keep it from backing off. */
static void a_failed_run_backs_off(void **state)
{
    struct controller *c = controller_start(world_api(W), &FAILING);
    bool closed = false;

    (void)state;
    runs = 0;
    controller_add_name(c, STR("n"), STR("x"));
    pass_ms(c, 60);
    controller_close(c, on_closed, &closed);
    while (!closed)
        uv_run(vapi_loop(world_api(W)), UV_RUN_NOWAIT);
    assert_in_range(runs, 4, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(pauses_while_read_only),
        WORLD_TEST(a_failed_run_backs_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
