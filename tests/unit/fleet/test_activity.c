/* SPDX-License-Identifier: Apache-2.0 */
/* What pods do with the GPUs they hold: of answers of exporters, and of silence. */
#include <sublet/buf.h>

#include "test.h"

#include "telemetry/activity.h"
#include "../../quoted.h"

#define MINUTE INT64_C(60000)

struct world {
    struct arena *arena;
    struct activity *a;
    struct activity_view view;
};

static void open_world(struct world *w)
{
    const struct activity_options o = {0.05, 30 * MINUTE, 3 * MINUTE};

    *w = (struct world){arena_new(0), activity_new(&o), {0}};
}

static void close_world(struct world *w)
{
    activity_free(w->a);
    arena_free(w->arena);
}

static void hold_as(struct world *w, const char *name, const char *uid, const char *node,
                    struct rational gpus, size_t devices, int64_t now)
{
    const struct activity_hold h = {str_c(name), str_c(uid), str_c(node),
                                    STR("a100"), gpus,       devices};

    activity_hold(w->a, &h, now);
}

static void hold(struct world *w, const char *name, int64_t gpus)
{
    hold_as(w, name, name, "n1", (struct rational){gpus, 1}, (size_t)gpus, 0);
}

/* `'` stands for a quotation mark. */
static void answer(struct world *w, const char *node, int64_t now, const char *text)
{
    const char *copy = quoted(w->arena, str_c(text));
    struct dcgm d;

    assert_int_equal(dcgm_parse(w->arena, str_c(copy), &d, NULL), 0);
    activity_answer(w->a, str_c(node), &d, now);
}

#define LABELS(gpu, ns, pod) "{gpu='" gpu "',namespace='" ns "',pod='" pod "'} "
#define ACTIVE(gpu, pod)     "DCGM_FI_PROF_GR_ENGINE_ACTIVE" LABELS(gpu, "team-a", pod)
#define UTIL(gpu, pod)       "DCGM_FI_DEV_GPU_UTIL" LABELS(gpu, "team-a", pod)
#define USED(gpu, pod)       "DCGM_FI_DEV_FB_USED" LABELS(gpu, "team-a", pod)

/* A line for each tenant: GPUs busy, warm, unused, unknown; utilised; idle seconds warm, unused. */
static void check(struct world *w, int64_t now, const char *want)
{
    struct buf got = BUF_INIT(0);

    activity_look(w->a, w->arena, now, &w->view);
    for (size_t i = 0; i < w->view.n_lines; i++) {
        const struct activity_line *l = &w->view.lines[i];

        buf_printf(&got, "%.*s %.*s %g %g %g %g; %g; %g %g\n", STR_F(l->pool), STR_F(l->tenant),
                   l->gpus[ACTIVITY_BUSY], l->gpus[ACTIVITY_WARM], l->gpus[ACTIVITY_UNUSED],
                   l->gpus[ACTIVITY_UNKNOWN], l->utilised, l->idle_seconds[ACTIVITY_WARM],
                   l->idle_seconds[ACTIVITY_UNUSED]);
    }
    assert_str(buf_str(&got), want);
    buf_fini(&got);
}

static void test_idle_in_time(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "team-a/train", 2);
    check(&w, 0, "a100 team-a 0 0 0 2; 0; 0 0\n");
    answer(&w, "n1", MINUTE,
           ACTIVE("0", "train") "0.5\n" ACTIVE("1", "train") "0\n" USED("0", "train") "8000\n");
    check(&w, MINUTE, "a100 team-a 2 0 0 0; 0.5; 0 0\n");
    for (int64_t m = 2; m <= 31; m++)
        answer(&w, "n1", m * MINUTE,
               ACTIVE("0", "train") "0.04\n" ACTIVE("1", "train") "0.04\n" USED(
                   "0", "train") "8000\n" USED("1", "train") "8000\n");
    check(&w, 31 * MINUTE, "a100 team-a 2 0 0 0; 0.08; 0 0\n");
    assert_int_equal(w.view.n_idle, 0);
    answer(&w, "n1", 32 * MINUTE,
           ACTIVE("0", "train") "0.04\n" ACTIVE("1", "train") "0.04\n" USED(
               "0", "train") "8000\n" USED("1", "train") "3\n");
    check(&w, 32 * MINUTE, "a100 team-a 0 2 0 0; 0.08; 0 0\n");
    assert_int_equal(w.view.n_idle, 1);
    assert_str(w.view.idle[0].name, "train");
    assert_str(w.view.idle[0].node, "n1");
    assert_int_equal(w.view.idle[0].idle_ms, 30 * MINUTE);
    /* Two GPUs for two minutes; then no memory is in use any more. */
    answer(&w, "n1", 34 * MINUTE,
           ACTIVE("0", "train") "0\n" ACTIVE("1", "train") "0\n" USED("0", "train") "3\n" USED(
               "1", "train") "3\n");
    check(&w, 34 * MINUTE, "a100 team-a 0 0 2 0; 0; 240 0\n");
    check(&w, 35 * MINUTE, "a100 team-a 0 0 2 0; 0; 240 120\n");
    /* Silence: it counts while the sample is fresh, and no further. */
    check(&w, 37 * MINUTE, "a100 team-a 0 0 2 0; 0; 240 360\n");
    check(&w, 50 * MINUTE, "a100 team-a 0 0 0 2; 0; 240 360\n");
    /* What comes after silence begins anew. */
    answer(&w, "n1", 51 * MINUTE, ACTIVE("0", "train") "0\n" ACTIVE("1", "train") "0\n");
    check(&w, 51 * MINUTE, "a100 team-a 2 0 0 0; 0; 240 360\n");
    activity_release(w.a, STR("team-a/train"), 52 * MINUTE);
    check(&w, 52 * MINUTE, "a100 team-a 0 0 0 0; 0; 240 360\n");
    close_world(&w);
}

/* One GPU of a pod that works is enough; one that was not measured proves nothing. */
static void test_pods_with_many(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "team-a/train", 2);
    for (int64_t m = 0; m <= 40; m++)
        answer(&w, "n1", m * MINUTE, ACTIVE("0", "train") "0\n" ACTIVE("1", "train") "0.05\n");
    check(&w, 40 * MINUTE, "a100 team-a 2 0 0 0; 0.05; 0 0\n");
    for (int64_t m = 41; m <= 80; m++)
        answer(&w, "n1", m * MINUTE, ACTIVE("0", "train") "0\n");
    check(&w, 80 * MINUTE, "a100 team-a 0 0 0 2; 0; 0 0\n");
    /* Its activity is absent: of the second GPU only its memory is known. */
    answer(&w, "n1", 81 * MINUTE, ACTIVE("0", "train") "0\n" USED("1", "train") "1\n");
    check(&w, 81 * MINUTE, "a100 team-a 0 0 0 2; 0; 0 0\n");
    close_world(&w);
}

/* Without profiling fields the utilisation counts; memory that was not measured may be in use. */
static void test_fallback(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "team-a/one", 1);
    hold(&w, "team-a/two", 1);
    hold_as(&w, "team-b/slice", "u", "n1", (struct rational){2, 7}, 2, 0);
    for (int64_t m = 0; m <= 30; m++)
        answer(&w, "n1", m * MINUTE,
               UTIL("0", "one") "4\n" UTIL("1", "two") "90\n" ACTIVE("1", "two") "0\n" USED(
                   "1", "two") "0\n"
                               "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='2',GPU_I_ID='1',namespace='team-"
                               "b',pod='slice'} "
                               "1\n"
                               "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='2',GPU_I_ID='2',namespace='team-"
                               "b',pod='slice'} "
                               "0.5\n");
    check(&w, 30 * MINUTE,
          "a100 team-a 0 1 1 0; 0.04; 0 0\n"
          "a100 team-b 0.285714 0 0 0; 0.214286; 0 0\n");
    close_world(&w);
}

static void check_refused(struct world *w, uint64_t pod, uint64_t node, uint64_t uid,
                          uint64_t range)
{
    activity_look(w->a, w->arena, 0, &w->view);
    assert_int_equal(w->view.refused[ACTIVITY_NO_POD], pod);
    assert_int_equal(w->view.refused[ACTIVITY_OTHER_NODE], node);
    assert_int_equal(w->view.refused[ACTIVITY_OTHER_UID], uid);
    assert_int_equal(w->view.refused[ACTIVITY_OUT_OF_RANGE], range);
}

/* What an exporter claims of a pod that is not there counts for none. */
static void test_attribution(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "team-a/train", 1);
    answer(&w, "n1", 0, ACTIVE("0", "other") "1\n" USED("0", "other") "1\n");
    check_refused(&w, 2, 0, 0, 0);
    answer(&w, "n2", 0, ACTIVE("0", "train") "1\n");
    check_refused(&w, 2, 1, 0, 0);
    answer(&w, "n1", 0,
           "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='0',namespace='team-b',pod='train'} 1\n"
           "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='0',pod='train'} 1\n"
           "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='0',namespace='team-a'} 1\n"
           "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='0',namespace='team-a',pod='train',pod_uid='x'} 1\n");
    check_refused(&w, 5, 1, 1, 0);
    /* A GPU of no pod is none's; values that cannot be are none. */
    answer(&w, "n1", 0, "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='7'} 0.5\n");
    answer(&w, "n1", 0, ACTIVE("0", "train") "1.5\n" USED("0", "train") "-1\n");
    check_refused(&w, 5, 1, 1, 2);
    check(&w, 0, "a100 team-a 0 0 0 1; 0; 0 0\n");
    answer(&w, "n1", 0,
           "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu='0',namespace='team-a',pod='train',"
           "pod_uid='team-a/train'} 1\n");
    check(&w, 0, "a100 team-a 1 0 0 0; 1; 0 0\n");
    /* Another pod of its name: what was measured of the first is not of it. */
    hold_as(&w, "team-a/train", "new", "n1", (struct rational){1, 1}, 1, 0);
    check(&w, 0, "a100 team-a 0 0 0 1; 0; 0 0\n");
    close_world(&w);
}

static void test_order(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "team-a/small", 1);
    hold(&w, "team-a/big", 4);
    for (int64_t m = 0; m <= 60; m++) {
        answer(&w, "n1", m * MINUTE, ACTIVE("0", "small") "0\n");
        if (m >= 30)
            answer(&w, "n1", m * MINUTE,
                   ACTIVE("1", "big") "0\n" ACTIVE("2", "big") "0\n" ACTIVE(
                       "3", "big") "0\n" ACTIVE("4", "big") "0\n");
    }
    activity_look(w.a, w.arena, 60 * MINUTE, &w.view);
    assert_int_equal(w.view.n_idle, 2);
    assert_str(w.view.idle[0].name, "big");
    assert_str(w.view.idle[1].name, "small");
    assert_str(w.view.idle[1].tenant, "team-a");
    close_world(&w);
}

#define XID(gpu, ns, pod) "DCGM_FI_DEV_XID_ERRORS{gpu='" gpu "',namespace='" ns "',pod='" pod "'} "

static void check_xids(struct world *w, uint64_t a, uint64_t b)
{
    activity_look(w->a, w->arena, 0, &w->view);
    assert_int_equal(w->view.n_lines, 2);
    assert_int_equal(w->view.lines[0].xids, a);
    assert_int_equal(w->view.lines[1].xids, b);
}

/* An exporter repeats the last error of a GPU: a change counts, for who holds the GPU then. */
static void test_xid_errors(void **state)
{
    struct world w;
    (void)state;

    open_world(&w);
    hold(&w, "team-a/train", 2);
    hold(&w, "team-b/train", 1);
    answer(&w, "n1", 0,
           XID("0", "team-a", "train") "31\n" XID("1", "team-a", "train") "0\n" XID("2", "team-b",
                                                                                    "train") "0\n");
    check_xids(&w, 0, 0); /* 31 may be older than the pod */
    answer(&w, "n1", MINUTE,
           XID("0", "team-a", "train") "31\n" XID("1", "team-a", "train") "79\n" XID(
               "2", "team-b", "train") "0\n");
    check_xids(&w, 1, 0);
    answer(&w, "n1", 2 * MINUTE,
           XID("0", "team-a", "train") "48\n" XID("1", "team-a", "train") "79\n" XID(
               "2", "team-b", "train") "13\n");
    check_xids(&w, 2, 1);
    /* The driver was loaded again: no error. On another node, without a pod, or not a number of
     * an error: none's. */
    answer(&w, "n1", 3 * MINUTE, XID("0", "team-a", "train") "0\n");
    answer(&w, "n2", 3 * MINUTE, XID("2", "team-b", "train") "31\n");
    answer(&w, "n1", 3 * MINUTE, "DCGM_FI_DEV_XID_ERRORS{gpu='2'} 31\n");
    answer(&w, "n1", 3 * MINUTE, XID("2", "team-b", "train") "-1\n");
    check_xids(&w, 2, 1);
    /* Two containers with one GPU: one error. What was counted stays when the pod is gone. */
    answer(&w, "n1", 4 * MINUTE,
           "DCGM_FI_DEV_XID_ERRORS{gpu='0',namespace='team-a',pod='train',container='a'} 43\n"
           "DCGM_FI_DEV_XID_ERRORS{gpu='0',namespace='team-a',pod='train',container='b'} 43\n");
    activity_release(w.a, STR("team-a/train"), 5 * MINUTE);
    check_xids(&w, 3, 1);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_in_time), cmocka_unit_test(test_pods_with_many),
        cmocka_unit_test(test_fallback),     cmocka_unit_test(test_attribution),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_xid_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
