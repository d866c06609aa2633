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

static void test_parts(void **state)
{
    static const char *const CASES[][3] = {
        {"v1", "", "v1"},  {"apps/v1", "apps", "v1"}, {"a.io/v1/v2", "a.io", "v1/v2"},
        {"/v1", "", "v1"}, {"apps/", "apps", ""},     {"", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct api_version got = api_version_read(str_c(CASES[i][0]));

        assert_true(str_eqc(got.group, CASES[i][1]) && str_eqc(got.version, CASES[i][2]));
    }
    assert_true(!api_version_read(STR_NULL).version.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_parts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
