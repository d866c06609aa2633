/* SPDX-License-Identifier: Apache-2.0 */
/* The mode that served a user last: users never displace each other while there is room. */
#include "../../../vapi/auth/last_modes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_users_beside_each_other(void **state)
{
    struct last_modes m = {0};

    (void)state;
    for (uint64_t user = 0; user < LAST_MODES_USERS; user++)
        assert_int_equal(last_modes_get(&m, user * 64), 0);
    for (uint64_t user = 0; user < LAST_MODES_USERS; user++)
        last_modes_put(&m, user * 64, 1 + user % 5);
    for (uint64_t user = 0; user < LAST_MODES_USERS; user++)
        assert_int_equal(last_modes_get(&m, user * 64), 1 + user % 5);
}

static void test_the_oldest_is_forgotten(void **state)
{
    struct last_modes m = {0};

    (void)state;
    for (uint64_t user = 0; user < LAST_MODES_USERS; user++)
        last_modes_put(&m, user, 1);
    last_modes_put(&m, 0, 2);
    last_modes_put(&m, 1000, 3);
    assert_int_equal(last_modes_get(&m, 0), 2);
    assert_int_equal(last_modes_get(&m, 1), 0);
    assert_int_equal(last_modes_get(&m, 2), 1);
    assert_int_equal(last_modes_get(&m, 1000), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users_beside_each_other),
        cmocka_unit_test(test_the_oldest_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
