/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of controllers: they pause while the process is read-only, and lose nothing by it. */
#include "controller_world.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(pauses_while_read_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
