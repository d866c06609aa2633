/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs: one spelling for each hundredth, and what a host pod has by its annotations. */

#include "test.h"

#include <sublet/fraction.h>

static void every_hundredth_has_a_spelling(void **state)
{
    struct config_fixture *f = *state;

    for (int64_t i = 1; i <= FRACTION_WHOLE; i++) {
        int64_t again = 0;

        assert_true(fraction_parse(fraction_format(f->a, i), &again));
        assert_int_equal(again, i);
    }
    assert_str(fraction_format(f->a, 5), "0.05");
    assert_str(fraction_format(f->a, 100), "1.00");
}

static void what_is_a_part(void **state)
{
    static const struct {
        const char *text;
        int64_t hundredths;
    } rows[] = {{"0.01", 1},  {"0.1", 10}, {"0.10", 10}, {"0.5", 50},
                {"0.99", 99}, {"1", 100},  {"1.0", 100}, {"1.00", 100}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t got = -1;

        assert_true(fraction_parse(str_c(rows[i].text), &got));
        assert_int_equal(got, rows[i].hundredths);
    }
}

static void what_is_none(void **state)
{
    static const char *const texts[] = {
        "",     "0",    "0.0",  "0.00", "1.01",  "1.1",  "2",    "0.001", "0.500",
        ".5",   "0.",   "1.",   "00.5", "01",    "+0.5", "-0.5", "5e-1",  "0,5",
        " 0.5", "0.5 ", "0x.8", "1/2",  "50%",   "NaN",  "inf",  "0.5a",  "0..5",
        "0.-1", "1.-1", "0.0:", "0. 5", "0.5\n", "9",    "0.0/",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        int64_t got = -1;

        if (fraction_parse(str_c(texts[i]), &got))
            fail_msg("\"%s\" is taken for a part", texts[i]);
        assert_int_equal(got, -1);
    }
}

static int64_t of_pod(struct config_fixture *f, const char *notes)
{
    cJSON *pod = NULL;
    struct str text = arena_printf(f->a, "{\"metadata\":{\"annotations\":%s}}", notes);

    assert_int_equal(json_parse(f->a, text, &pod, NULL), 0);
    return fraction_of_pod(pod);
}

static void what_a_pod_has(void **state)
{
    struct config_fixture *f = *state;

    assert_int_equal(of_pod(f, "{}"), 0);
    assert_int_equal(of_pod(f, "null"), 0);
    assert_int_equal(of_pod(f, "{\"gpu-fraction\":\"0.25\"}"), 25);
    assert_int_equal(of_pod(f, "{\"gpu-fraction\":\"0.25\",\"gpu-fraction-num-devices\":\"3\"}"),
                     75);
    assert_int_equal(of_pod(f, "{\"gpu-fraction\":\"0.25\",\"gpu-fraction-num-devices\":\"x\"}"),
                     25);
    /* What is not counted exactly is never less than it is. */
    assert_int_equal(of_pod(f, "{\"gpu-fraction\":\"0.333\"}"), 100);
    assert_int_equal(of_pod(f, "{\"gpu-fraction\":5}"), 100);
    assert_int_equal(of_pod(f, "{\"gpu-memory\":\"1024\"}"), 100);
    assert_int_equal(of_pod(f, "{\"gpu-fraction\":\"0.01\",\"gpu-memory\":\"81920\"}"), 100);
    assert_int_equal(of_pod(f, "{\"gpu-memory\":\"1\",\"gpu-fraction-num-devices\":"
                               "\"99999999999999999999999\"}"),
                     100 * 1024);
}

static void what_a_node_has(void **state)
{
    static const struct {
        const char *text;
        int64_t hundredths;
    } rows[] = {{"{\"nvidia.com/gpu\":\"8\"}", 800},
                {"{\"nvidia.com/gpu\":\"0\"}", 0},
                {"{\"nvidia.com/gpu\":\"-1\"}", 0},
                {"{\"nvidia.com/gpu\":\"9223372036854775807\"}", 0},
                {"{\"cpu\":\"8\"}", 0},
                {"null", 0}};
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *node = NULL;

        assert_int_equal(json_parse(f->a, str_c(rows[i].text), &node, NULL), 0);
        assert_int_equal(fraction_of_node(node), rows[i].hundredths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_hundredth_has_a_spelling, config_setup,
                                        config_teardown),
        cmocka_unit_test(what_is_a_part),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test_setup_teardown(what_a_pod_has, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(what_a_node_has, config_setup, config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
