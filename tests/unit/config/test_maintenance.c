/* SPDX-License-Identifier: Apache-2.0 */
/* `maintenance` as an admin writes it: what is read, what is refused, what tenants read of it. */
#include "test.h"
#include "../../quoted.h"

#include <sublet/json.h>

/* JSON with ' for ". */
static int read_it(struct config_fixture *f, const char *text, struct config_maintenance *ret)
{
    return config_maintenance_parse(f->a, STR("maintenance"), quoted_json(f->a, str_c(text)), ret,
                                    &f->err);
}

static void all_of_it_is_read(void **state)
{
    struct config_fixture *f = *state;
    struct config_maintenance m;

    assert_ok(read_it(f,
                      "{'state':'drain','reason':'driver upgrade','start':'2026-12-01T08:00:00Z',"
                      "'until':'2026-12-01T09:00:00Z','grace':'1h30m'}",
                      &m));
    assert_int_equal(m.state, MAINTENANCE_DRAIN);
    assert_str(m.reason, "driver upgrade");
    assert_int_equal(m.until_s - m.start_s, 3600);
    assert_int_equal(m.grace_s, 5400);
    assert_ok(read_it(f, "{}", &m));
    assert_true(m.state == MAINTENANCE_NONE && !m.reason.n && !m.start_s && !m.grace_s);
    assert_ok(read_it(f, "{'state':'cordon'}", &m));
    assert_int_equal(m.state, MAINTENANCE_CORDON);
    m.state = MAINTENANCE_DRAIN;
    assert_ok(config_maintenance_parse(f->a, STR("maintenance"), NULL, &m, &f->err));
    assert_int_equal(m.state, MAINTENANCE_NONE);
}

/* None of it counts then: nothing is drained by half of what was meant. */
static void mistakes_count_as_none(void **state)
{
    static const char *const rows[][2] = {
        {"{'state':'drian'}",
         "maintenance.state: unknown value \"drian\": want one of none|cordon|drain"},
        {"{'state':'drain','start':'2026-12-01T08:00:00Z','until':'2026-12-01T08:00:00Z'}",
         "maintenance: until must be after start"},
        {"{'state':'drain','until':'tomorrow'}",
         "maintenance.until: want a time such as 2026-01-31T12:00:00Z"},
        {"{'state':'drain','start':'2026-02-30T08:00:00Z'}",
         "maintenance.start: want a time such as 2026-01-31T12:00:00Z"},
        {"{'state':'drain','grace':'0s'}",
         "maintenance.grace: want a duration of 1s to 24h, such as 10m"},
        {"{'state':'drain','grace':'86401s'}",
         "maintenance.grace: want a duration of 1s to 24h, such as 10m"},
        {"{'state':'drain','reason':'two\\nlines'}", "maintenance.reason: want one line"},
    };
    struct config_fixture *f = *state;
    char *longest = arena_alloc(f->a, 202);
    struct config_maintenance m;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_error(read_it(f, rows[i][0], &m), rows[i][1]);
        assert_int_equal(m.state, MAINTENANCE_NONE);
    }
    memset(longest, 'x', 201);
    longest[200] = '\0';
    assert_ok(read_it(f, arena_printf(f->a, "{'reason':'%s'}", longest).p, &m));
    longest[200] = 'x';
    longest[201] = '\0';
    assert_error(read_it(f, arena_printf(f->a, "{'reason':'%s'}", longest).p, &m),
                 "maintenance.reason: at most 200 bytes");
}

static void check_text(struct config_fixture *f, const char *maintenance, const char *want)
{
    struct config_pool pool = {.name = STR("a100")};

    assert_ok(read_it(f, maintenance, &pool.maintenance));
    assert_str(config_maintenance_text(f->a, &pool), want);
}

static void tenants_read_a_line(void **state)
{
    struct config_fixture *f = *state;

    check_text(f, "{}", "");
    check_text(f, "{'state':'none','until':'2026-12-01T09:00:00Z'}", "");
    check_text(f, "{'reason':'conversion from exclusive to mig'}",
               "pool \"a100\" is being changed: conversion from exclusive to mig");
    check_text(f, "{'state':'cordon'}", "pool \"a100\" takes no new pods");
    check_text(f, "{'state':'drain','reason':'firmware','until':'2026-12-01T09:00:00Z'}",
               "pool \"a100\" is drained: firmware, until 2026-12-01T09:00:00Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_of_it_is_read, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mistakes_count_as_none, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(tenants_read_a_line, config_setup, config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
