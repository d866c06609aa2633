/* SPDX-License-Identifier: Apache-2.0 */
/* CRDs in a whole control plane: what is served follows the stored definition. */
#include "controller_world.h"

#include <sublet/object.h>

#define CRD_OF(member)                                                                             \
    "{'metadata': {'name': 'lots.example.com'}, 'spec': {'conversion': {'strategy': 'None'}, "     \
    "'group': 'example.com', 'names': {'kind': 'Lot', 'plural': 'lots'}, 'scope': 'Namespaced', "  \
    "'versions': [{'name': 'v1', 'served': true, 'storage': true, 'schema': {'openAPIV3Schema': "  \
    "{'type': 'object', 'properties': {'" member "': {'type': 'string'}}}}}]}}"
#define LOT(name) "{'metadata': {'name': '" name "'}, '" FIRST "': 'a', '" SECOND "': 'b'}"
#define FIRST     "ejekohdcglifmccp"
#define SECOND    "celjedhljejnlpbi"

/* The specs of the two definitions have the same str_hash() under the seed 0, f0d488b3efbbe9d6: a
 * digest with a key that is known hides the change. */
static void test_colliding_change(void **state)
{
    const cJSON *lot;

    (void)state;
    world_create(W, "customresourcedefinitions.apiextensions.k8s.io", "", CRD_OF(FIRST));
    world_settle(W);
    world_create(W, "lots.example.com", "n", LOT("a"));
    lot = world_get(W, "lots.example.com", "n", "a");
    assert_non_null(json_get(lot, FIRST));
    assert_null(json_get(lot, SECOND));

    world_patch(W, "customresourcedefinitions.apiextensions.k8s.io", "", "lots.example.com",
                CRD_OF(SECOND));
    world_settle(W);
    world_create(W, "lots.example.com", "n", LOT("b"));
    lot = world_get(W, "lots.example.com", "n", "b");
    assert_null(json_get(lot, FIRST));
    assert_non_null(json_get(lot, SECOND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {WORLD_TEST(test_colliding_change)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
