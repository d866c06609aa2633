/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant may see of exporters' answers, and what no answer of another shows it. */
#include <sublet/buf.h>

#include "test.h"

#include "telemetry/telemetry_series.h"
#include "../../quoted.h"

struct world {
    struct arena *arena;
    struct activity *a;
    struct telemetry_series *s;
};

static void open_world(struct world *w)
{
    const struct activity_options o = {0.05, 0, 1000};

    *w = (struct world){arena_new(0), activity_new(&o), telemetry_series_new(1000, 7)};
}

static void close_world(struct world *w)
{
    telemetry_series_free(w->s);
    activity_free(w->a);
    arena_free(w->arena);
}

static void hold(struct world *w, const char *name, const char *node, size_t devices)
{
    const struct activity_hold h = {str_c(name), str_c(name), str_c(node),
                                    STR("pool"), {1, 1},      devices};

    activity_hold(w->a, &h, 0);
}

/* `'` stands for a quotation mark. */
static void answer(struct world *w, const char *node, int64_t now, const char *text)
{
    const char *copy = quoted(w->arena, str_c(text));
    struct dcgm d;

    assert_int_equal(dcgm_parse(w->arena, str_c(copy), &d, NULL), 0);
    telemetry_series_answer(w->s, w->a, str_c(node), &d, now);
}

static void check(struct world *w, const char *tenant, int64_t now, const char *want)
{
    struct buf out = BUF_INIT(0);
    const char *copy = quoted(w->arena, str_c(want));

    assert_true(telemetry_series_write(w->s, str_c(tenant), now, &out));
    assert_str(buf_str(&out), copy);
    buf_fini(&out);
}

static void test_own_series(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "a/train", "n1", 1);
    hold(&w, "a/more", "n2", 1);
    hold(&w, "b/train", "n1", 1);
    answer(&w, "n1", 0,
           "# HELP DCGM_FI_DEV_FB_USED Used (in MiB).\n# TYPE DCGM_FI_DEV_FB_USED gauge\n"
           "DCGM_FI_DEV_FB_USED{gpu='0',UUID='GPU-1',modelName='A',Hostname='secret',"
           "container='main',namespace='a',pod='train'} 12.5\n"
           "DCGM_FI_DEV_FB_USED{gpu='1',UUID='GPU-2',namespace='b',pod='train'} 99\n"
           "DCGM_FI_DEV_FB_USED{gpu='2',UUID='GPU-3'} 98\n"
           "DCGM_FI_DEV_FB_USED{gpu='3',UUID='GPU-4',namespace='a',pod='more'} 97\n"
           "DCGM_FI_DEV_GPU_TEMP{gpu='1',UUID='GPU-2',namespace='b',pod='train'} 60\n"
           "other{namespace='a',pod='train'} 1\n");
    answer(&w, "n2", 0,
           "DCGM_FI_DEV_FB_USED{gpu='0',UUID='GPU-1',namespace='a',pod='more'} 1720948893123\n");
    check(&w, "a", 0,
          "# HELP DCGM_FI_DEV_FB_USED Used (in MiB).\n# TYPE DCGM_FI_DEV_FB_USED gauge\n"
          "DCGM_FI_DEV_FB_USED{gpu='0',UUID='GPU-c1b16d6c-3078-4194-216d-4b96cfb316a3',"
          "modelName='A',container='main',namespace='a',pod='train'} 12.5\n"
          "DCGM_FI_DEV_FB_USED{gpu='0',UUID='GPU-c1b16d6c-3078-4194-216d-4b96cfb316a3',"
          "namespace='a',pod='more'} 1720948893123\n");
    check(&w, "c", 0, "");
    /* What it says now is in place of what it said; what is old is said no more. */
    answer(&w, "n1", 500, "DCGM_FI_DEV_XID_ERRORS{gpu='1',UUID='x',namespace='b',pod='train'} 0\n");
    check(&w, "a", 1001, "");
    close_world(&w);
}

/* Of an instance nothing about the whole GPU, of a shared one nothing at all. */
static void test_shared_devices(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "a/slice", "n1", 1);
    hold(&w, "a/shared", "n1", 0);
    answer(&w, "n1", 0,
           "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='0',UUID='u',GPU_I_PROFILE='1g.5gb',GPU_I_ID='7',"
           "namespace='a',pod='slice'} 0.5\n"
           "DCGM_FI_DEV_POWER_USAGE{gpu='0',UUID='u',GPU_I_PROFILE='1g.5gb',GPU_I_ID='7',"
           "namespace='a',pod='slice'} 300\n"
           "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='1',UUID='v',namespace='a',pod='shared'} 0.9\n");
    check(&w, "a", 0,
          "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE untyped\n"
          "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='0',UUID='GPU-3da5c566-9bac-c64c-9674-c56a1809ad42',"
          "GPU_I_PROFILE='1g.5gb',"
          "GPU_I_ID='7',namespace='a',pod='slice'} 0.5\n");
    close_world(&w);
}

/* A node that shares its GPUs although its pool says otherwise. */
static void test_a_gpu_of_two_tenants(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "a/train", "n1", 1);
    hold(&w, "b/train", "n1", 1);
    answer(&w, "n1", 0,
           "DCGM_FI_DEV_FB_USED{gpu='0',UUID='u',namespace='a',pod='train'} 1\n"
           "DCGM_FI_DEV_FB_USED{gpu='0',UUID='u',namespace='b',pod='train'} 1\n");
    check(&w, "a", 0, "");
    check(&w, "b", 0, "");
    close_world(&w);
}

static void test_who_asks_too_often(void **state)
{
    struct buf out = BUF_INIT(0);
    struct world w;
    (void)state;

    open_world(&w);
    for (int i = 0; i < 4; i++)
        assert_true(telemetry_series_write(w.s, STR("a"), 0, &out));
    assert_false(telemetry_series_write(w.s, STR("a"), 4999, &out));
    assert_true(telemetry_series_write(w.s, STR("b"), 0, &out));
    assert_true(telemetry_series_write(w.s, STR("a"), 5000, &out));
    buf_fini(&out);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_series),
        cmocka_unit_test(test_shared_devices),
        cmocka_unit_test(test_a_gpu_of_two_tenants),
        cmocka_unit_test(test_who_asks_too_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
