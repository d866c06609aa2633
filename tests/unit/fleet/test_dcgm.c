/* SPDX-License-Identifier: Apache-2.0 */
/* What an exporter says, and what is no answer of one. The first answer has the form that the
 * documentation of dcgm-exporter shows. */
#include "test.h"

#include <sublet/buf.h>

#include "telemetry/dcgm.h"

struct parsed {
    struct arena *a;
    struct err err;
    struct dcgm d;
};

static void setup(struct parsed *t)
{
    t->a = arena_new(0);
    err_init(&t->err, t->a);
}

static void accept(struct parsed *t, const char *text)
{
    if (dcgm_parse(t->a, str_c(text), &t->d, &t->err))
        fail_msg("%.*s\n%s", STR_F(t->err.message), text);
}

static void refuse(struct parsed *t, struct str text, const char *want)
{
    err_clear(&t->err);
    if (!dcgm_parse(t->a, text, &t->d, &t->err))
        fail_msg("accepted: %.*s", STR_F(text));
    assert_str(t->err.message, want);
}

/* The samples as "family device value", a line each. */
static void check(struct parsed *t, const char *want)
{
    struct buf got = BUF_INIT(0);

    for (size_t i = 0; i < t->d.n_samples; i++) {
        const struct dcgm_sample *s = &t->d.samples[i];

        buf_printf(&got, "%.*s %u %g\n", STR_F(t->d.families[s->family].name), s->device, s->value);
    }
    assert_str(buf_str(&got), want);
    buf_fini(&got);
}

static void test_exporter(void **state)
{
    static const char text[] =
        "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
        "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-604ac76c\",pci_bus_id=\"00000000:07:00.0\","
        "device=\"nvidia0\",modelName=\"NVIDIA "
        "A100-SXM4-40GB\",Hostname=\"dgx\",container=\"main\","
        "namespace=\"team-a\",pod=\"train-0\"} 97\n"
        "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-1\",modelName=\"NVIDIA A100-SXM4-40GB\","
        "Hostname=\"dgx\"} 0\n"
        "# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time the graphics engine is active.\n"
        "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\n"
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"GPU-604ac76c\",GPU_I_PROFILE=\"1g.5gb\","
        "GPU_I_ID=\"7\",modelName=\"NVIDIA A100-SXM4-40GB\",hostname=\"dgx\",container=\"main\","
        "namespace=\"team-a\",pod=\"train-1\",pod_uid=\"u-1\"} 0.125000\n"
        "# TYPE go_goroutines gauge\n"
        "go_goroutines 12\n";
    struct parsed t;
    (void)state;

    setup(&t);
    accept(&t, text);
    check(&t, "DCGM_FI_DEV_GPU_UTIL 0 97\n"
              "DCGM_FI_DEV_GPU_UTIL 1 0\n"
              "DCGM_FI_PROF_GR_ENGINE_ACTIVE 2 0.125\n");
    assert_int_equal(t.d.n_devices, 3);
    assert_str(t.d.devices[0].labels[DCGM_UUID], "GPU-604ac76c");
    assert_str(t.d.devices[0].labels[DCGM_HOSTNAME], "dgx");
    assert_str(t.d.devices[0].labels[DCGM_POD], "train-0");
    assert_str(t.d.devices[0].labels[DCGM_NAMESPACE], "team-a");
    assert_str(t.d.devices[0].labels[DCGM_INSTANCE], "");
    assert_str(t.d.devices[1].labels[DCGM_POD], "");
    assert_str(t.d.devices[2].labels[DCGM_INSTANCE], "7");
    assert_str(t.d.devices[2].labels[DCGM_PROFILE], "1g.5gb");
    assert_str(t.d.devices[2].labels[DCGM_HOSTNAME], "dgx");
    assert_str(t.d.devices[2].labels[DCGM_POD_UID], "u-1");
    assert_int_equal(t.d.n_families, 2);
    assert_str(t.d.families[0].help, "GPU utilization (in %).");
    assert_str(t.d.families[0].type, "gauge");
    assert_int_equal(dcgm_family(&t.d, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), 1);
    assert_int_equal(dcgm_family(&t.d, "go_goroutines"), -1);
    arena_free(t.a);
}

/* What Prometheus' own parser takes as well. */
static void test_format(void **state)
{
    struct parsed t;
    (void)state;

    setup(&t);
    accept(&t, "");
    check(&t, "");
    accept(&t,
           "\n# a comment\n#\n#HELP\n   \t \n"
           " DCGM_FI_A\t{ gpu = \"0\" , UUID=\"a\\\\b\\\"c\\nd\", } \t 1.5e-3  1720948893123\r\n"
           "DCGM_FI_A{gpu=\"1\"} +2E2 -5\n"
           "DCGM_FI_A{gpu=\"2\"} .5\n"
           "DCGM_FI_A 7\n");
    check(&t, "DCGM_FI_A 0 0.0015\nDCGM_FI_A 1 200\nDCGM_FI_A 2 0.5\n");
    assert_str(t.d.devices[0].labels[DCGM_UUID], "a\\b\"c\nd");
    assert_str(t.d.families[0].type, "untyped");
    /* What is no number is no zero; of two samples the first counts; another family is another
     * one, in lower case as well. */
    accept(&t, "DCGM_FI_A{gpu=\"0\"} NaN\nDCGM_FI_A{gpu=\"1\"} +Inf\nDCGM_FI_A{gpu=\"2\"} -inf\n"
               "DCGM_FI_A{gpu=\"3\"} 1e999\n"
               "DCGM_FI_A{gpu=\"4\"} 1\nDCGM_FI_A{gpu=\"4\"} 2\ndcgm_fi_a{gpu=\"4\"} 3\n"
               "DCGM_FI_B{gpu=\"4\",other=\"}\"} 4\n");
    check(&t, "DCGM_FI_A 0 1\nDCGM_FI_B 0 4\n");
    arena_free(t.a);
}

static void test_refused(void **state)
{
    static const struct {
        struct str text;
        const char *why;
    } cases[] = {
        {STR("DCGM_FI_A 1\nDCGM_FI_A{gpu=\"0\"} 0"), "it ends within a line"},
        {STR("<html>\n"), "line 1: want a name of a metric"},
        {STR("\nDCGM_FI_A{gpu=\"0\" 1\n"), "line 2: want a comma or the end of the labels"},
        {STR("DCGM_FI_A{gpu=\"0} 1\n"),
         "line 1: a value of a label does not end, or has bytes that it may not have"},
        {STR("DCGM_FI_A{gpu=\"\\x\"} 1\n"),
         "line 1: a value of a label does not end, or has bytes that it may not have"},
        {STR("DCGM_FI_A{gpu=\"\xff\"} 1\n"),
         "line 1: a value of a label does not end, or has bytes that it may not have"},
        {STR("DCGM_FI_A{gpu=0} 1\n"), "line 1: want name=\"value\" in the labels"},
        {STR("DCGM_FI_A{,} 1\n"), "line 1: want name=\"value\" in the labels"},
        {STR("DCGM_FI_A\n"), "line 1: want a number"},
        {STR("DCGM_FI_A 0x1\n"), "line 1: want a number"},
        {STR("DCGM_FI_A 1e\n"), "line 1: want a number"},
        {STR("DCGM_FI_A \0\n"), "line 1: want a number"},
        {STR("DCGM_FI_A 1 now\n"), "line 1: want a time in milliseconds"},
        {STR("DCGM_FI_A 1 2 3\n"), "line 1: want the end of the line"},
        {STR("# TYPE DCGM_FI_A thermometer\n"), "line 1: an unknown type of metric"},
        {STR("# TYPE DCGM_FI_A-B gauge\n"), "line 1: a name of a metric is not valid"},
    };
    struct parsed t;
    (void)state;

    setup(&t);
    for (size_t i = 0; i < COUNT(cases); i++)
        refuse(&t, cases[i].text, cases[i].why);
    arena_free(t.a);
}

/* Labels of pods are a tenant's: however many there are, they cost no other line of the answer. */
static void test_lines_left_out(void **state)
{
    static const char gpu[] = "DCGM_FI_A{gpu=\"0\",UUID=\"u\",";
    struct buf text = BUF_INIT(0);
    struct parsed t;
    (void)state;

    setup(&t);
    buf_printf(&text, "%sl=\"\",l=\"\"", gpu);
    for (size_t i = 0; i < 1000; i++)
        buf_printf(&text, ",l%zu=\"\"", i);
    buf_printf(&text,
               "} 1\n%spod=\"a\",pod=\"b\"} 2\nDCGM_FI_A{nvlink=\"0\",namespace=\"a\"} 3\n"
               "DCGM_FI_A{UUID=\"u\"} 4\nDCGM_FI_A 5\n",
               gpu);
    assert_int_equal(dcgm_parse(t.a, buf_str(&text), &t.d, &t.err), 0);
    assert_int_equal(t.d.n_samples, 1);
    assert_true(t.d.samples[0].value == 1);
    assert_int_equal(t.d.n_devices, 1);
    buf_fini(&text);
    arena_free(t.a);
}

static void test_a_gpu_of_two_namespaces(void **state)
{
    static const char text[] =
        "DCGM_FI_A{gpu=\"0\",UUID=\"u\",namespace=\"a\",pod=\"p\"} 1\n"
        "DCGM_FI_A{gpu=\"0\",UUID=\"u\",namespace=\"b\",pod=\"p\"} 1\n"
        "DCGM_FI_A{gpu=\"1\",UUID=\"v\",namespace=\"a\",pod=\"p\"} 1\n"
        "DCGM_FI_A{gpu=\"1\",UUID=\"v\",namespace=\"a\",pod=\"q\"} 1\n"
        "DCGM_FI_A{gpu=\"1\",GPU_I_ID=\"2\",UUID=\"v\",namespace=\"b\",pod=\"q\"} 1\n"
        "DCGM_FI_A{gpu=\"0\",UUID=\"u\"} 1\n";
    static const bool disputed[] = {true, true, false, false, false, false};
    struct parsed t;
    (void)state;

    setup(&t);
    assert_int_equal(dcgm_parse(t.a, str_c(text), &t.d, &t.err), 0);
    assert_int_equal(t.d.n_devices, COUNT(disputed));
    for (size_t i = 0; i < COUNT(disputed); i++)
        assert_int_equal(t.d.devices[i].disputed, disputed[i]);
    arena_free(t.a);
}

/* --- limits --- */

static void refuse_buf(struct parsed *t, struct buf *text, const char *want)
{
    refuse(t, buf_str(text), want);
    buf_fini(text);
}

static void test_limits(void **state)
{
    struct buf lines = BUF_INIT(0), families = BUF_INIT(0), devices = BUF_INIT(0),
               name = BUF_INIT(0), value = BUF_INIT(0), bytes = BUF_INIT(0);
    struct parsed t;
    (void)state;

    setup(&t);
    for (size_t i = 0; i <= DCGM_MOST_LINES; i++)
        buf_char(&lines, '\n');
    refuse_buf(&t, &lines, "line 65537: too many lines");
    for (size_t i = 0; i <= DCGM_MOST_FAMILIES; i++)
        buf_printf(&families, "DCGM_FI_%zu{gpu=\"0\",UUID=\"u\"} 1\n", i);
    refuse_buf(&t, &families, "line 257: too many families");
    for (size_t i = 0; i <= DCGM_MOST_DEVICES; i++)
        buf_printf(&devices, "DCGM_FI_A{gpu=\"%zu\",UUID=\"u\"} 1\n", i);
    refuse_buf(&t, &devices, "line 4097: too many devices");
    for (size_t i = 0; i <= DCGM_MOST_NAME; i++)
        buf_char(&name, 'a');
    buf_addc(&name, " 1\n");
    refuse_buf(&t, &name, "line 1: want a name of a metric");
    buf_addc(&value, "x{pod=\"");
    for (size_t i = 0; i <= DCGM_MOST_VALUE; i++)
        buf_char(&value, 'a');
    buf_addc(&value, "\"} 1\n");
    refuse_buf(&t, &value, "line 1: a value of a label is too long");
    while (bytes.n <= DCGM_MOST_BYTES)
        buf_addc(&bytes,
                 "# nothing of interest is in this line, which is one of many like it ......\n");
    refuse_buf(&t, &bytes, "more than 4194304 bytes");
    arena_free(t.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exporter),       cmocka_unit_test(test_format),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_lines_left_out), cmocka_unit_test(test_a_gpu_of_two_namespaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
