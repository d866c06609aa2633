/* SPDX-License-Identifier: Apache-2.0 */
/* The order of API versions, as apimachinery documents it. */

#include "../base/test.h"

#include <sublet/api_version.h>

static void test_order(void **state)
{
    static const char *const order[] = {"v10",      "v2",      "v1",        "v11beta2",
                                        "v10beta3", "v3beta1", "v12alpha1", "v11alpha2",
                                        "foo1",     "foo10",   "v0"};

    (void)state;
    for (size_t i = 0; i < COUNT(order); i++) {
        for (size_t k = 0; k < COUNT(order); k++) {
            int found = api_version_compare(str_c(order[i]), str_c(order[k]));

            assert_int_equal((found > 0) - (found < 0), (i > k) - (i < k));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
