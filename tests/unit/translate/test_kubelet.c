/* SPDX-License-Identifier: Apache-2.0 */
/* What a kubelet says of its pods, cut to one tenant's: documents, and metrics line by line. */
#include <sublet/translate_kubelet.h>

#include "test.h"

#define HOST_NS "team-research"

static int setup(void **state)
{
    *state = fixture_new("{}");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

struct view {
    struct fixture *f;
    struct kubelet_view view;
};

/* Of the tenant: pod h-web (uid 11, virtual v-11) and claim h-data. */
static const cJSON *own(void *ctx, enum kubelet_kind kind, struct str host_name,
                        struct str host_uid)
{
    struct view *v = ctx;

    if (kind == KUBELET_CLAIM && str_eqc(host_name, "h-data"))
        return doc(v->f, "{metadata: {name: data, namespace: ml, uid: v-22}}");
    if (kind != KUBELET_POD || !str_eqc(host_name, "h-web") ||
        (host_uid.n && !str_eqc(host_uid, "11")))
        return NULL;
    return doc(v->f, "{metadata: {name: web, namespace: ml, uid: v-11}, spec: {initContainers: "
                     "[{name: init}], containers: [{name: main}], volumes: [{name: disk, "
                     "persistentVolumeClaim: {claimName: data}}, {name: tmp, emptyDir: {}}]}}");
}

static void view_of(struct view *v, struct fixture *f, bool whole)
{
    v->f = f;
    v->view = (struct kubelet_view){&f->tenant, own, v, whole};
    assert_true(str_eqc(f->tenant.host_namespace, HOST_NS));
}

/* ---- documents ---- */

#define ITEMS(spec)                                                                                \
    "{items: [{metadata: {name: h-web, namespace: " HOST_NS ", uid: '11'}" spec                    \
    "}, {metadata: {name: h-web, namespace: " HOST_NS                                              \
    ", uid: '12'}}, {metadata: {name: h-web, namespace: other, uid: '11'}}, {metadata: {name: "    \
    "h-db, namespace: " HOST_NS ", uid: '13'}}, {metadata: {name: h-web, namespace: " HOST_NS      \
    "}}, 7, {}]}"

static void pods(void **state)
{
    struct fixture *f = *state;
    struct view v;

    view_of(&v, f, true);
    assert_json(translate_kubelet_pods(f->a, &v.view, doc(f, ITEMS(", spec: {nodeName: x}"))),
                "{kind: PodList, apiVersion: v1, metadata: {}, items: [{metadata: {name: web, "
                "namespace: ml, uid: v-11}, spec: {initContainers: [{name: init}], containers: "
                "[{name: main}], volumes: [{name: disk, persistentVolumeClaim: {claimName: data}}, "
                "{name: tmp, emptyDir: {}}]}}]}");
    assert_json(
        translate_kubelet_running(f->a, &v.view,
                                  doc(f, ITEMS(", spec: {hostname: x, containers: [{name: main, "
                                               "image: 'sha256:1', env: [{name: A}]}, {name: "
                                               "istio-proxy, image: theirs}]}"))),
        "{kind: PodList, apiVersion: v1, metadata: {}, items: [{metadata: {name: web, namespace: "
        "ml, uid: v-11}, spec: {containers: [{name: main, image: 'sha256:1', resources: {}}]}, "
        "status: {}}]}");
    assert_json(translate_kubelet_pods(f->a, &v.view, doc(f, "{items: null}")),
                "{kind: PodList, apiVersion: v1, metadata: {}, items: []}");
    assert_null(translate_kubelet_pods(f->a, &v.view, doc(f, "[]")));
    assert_null(translate_kubelet_running(f->a, &v.view, doc(f, "{items: {}}")));
}

/* A short item stands for a whole pod: a kubelet that repeats it would fill the memory. */
static void a_pod_is_shown_once(void **state)
{
    struct fixture *f = *state;
    static const char item[] = "{metadata: {name: h-web, namespace: " HOST_NS ", uid: '11'}}";
    static const char stats[] = "{podRef: {name: h-web, namespace: " HOST_NS ", uid: '11'}}";
    struct view v;
    const cJSON *twice, *summary;

    view_of(&v, f, false);
    twice = doc(f, arena_printf(f->a, "{items: [%s, %s]}", item, item).p);
    summary = doc(f, arena_printf(f->a, "{node: {}, pods: [%s, %s]}", stats, stats).p);
    assert_int_equal(json_count(json_get(translate_kubelet_pods(f->a, &v.view, twice), "items")),
                     1);
    assert_int_equal(json_count(json_get(translate_kubelet_running(f->a, &v.view, twice), "items")),
                     1);
    assert_int_equal(
        json_count(json_get(translate_kubelet_summary(f->a, &v.view, summary), "pods")), 1);
}

static const char SUMMARY[] =
    "{node: {nodeName: n1, startTime: t0, secret: 1, cpu: {time: t, usageNanoCores: 9000}, fs: "
    "{availableBytes: 7}, systemContainers: [{name: kubelet, cpu: {usageNanoCores: 5}}]}, pods: "
    "[{podRef: {name: h-web, namespace: " HOST_NS ", uid: '11'}, startTime: t1, other: {x: 1}, "
    "containers: [{name: main, startTime: t2, cpu: {time: t, usageNanoCores: 10, host: x, psi: "
    "{full: {total: 3}}}, rootfs: {time: t, usedBytes: 1, availableBytes: 100, capacityBytes: "
    "200, inodesFree: 3, inodes: 4, inodesUsed: 2}}, {name: istio-proxy, cpu: {usageNanoCores: "
    "1}}], network: {time: t, name: eth0, rxBytes: 5, interfaces: [{name: eth0, rxBytes: 5}]}, "
    "volume: [{time: t, name: disk, usedBytes: 2, capacityBytes: 50, pvcRef: {name: h-data, "
    "namespace: " HOST_NS "}}, {name: tmp, usedBytes: 3, capacityBytes: 200}, {name: "
    "injected, usedBytes: 4}], ephemeral-storage: {usedBytes: 6, availableBytes: 100}}, {podRef: "
    "{name: h-db, namespace: " HOST_NS ", uid: '13'}, cpu: {usageNanoCores: 77}}, {podRef: {name: "
    "h-web, namespace: other, uid: '11'}}]}";

static void summary(void **state)
{
    struct fixture *f = *state;
    struct view v;
    cJSON *whole;

    view_of(&v, f, false);
    assert_json(
        translate_kubelet_summary(f->a, &v.view, doc(f, SUMMARY)),
        "{node: {nodeName: n1}, pods: [{podRef: {name: web, namespace: ml, uid: v-11}, startTime: "
        "t1, network: {time: t, name: eth0, rxBytes: 5, interfaces: [{name: eth0, rxBytes: 5}]}, "
        "ephemeral-storage: {usedBytes: 6}, containers: [{name: main, startTime: t2, cpu: {time: "
        "t, usageNanoCores: 10, psi: {full: {total: 3}}}, rootfs: {time: t, usedBytes: 1, "
        "inodesUsed: 2}}], volume: [{time: t, name: disk, usedBytes: 2, capacityBytes: 50, pvcRef: "
        "{name: data, namespace: ml}}, {name: tmp, usedBytes: 3}]}]}");
    view_of(&v, f, true);
    whole = translate_kubelet_summary(f->a, &v.view, doc(f, SUMMARY));
    assert_json(json_get(whole, "node"),
                "{nodeName: n1, startTime: t0, cpu: {time: t, usageNanoCores: 9000}, fs: "
                "{availableBytes: 7}, systemContainers: [{name: kubelet, cpu: {usageNanoCores: "
                "5}}]}");
    assert_int_equal(json_count(json_get(whole, "pods")), 1);
    assert_null(translate_kubelet_summary(f->a, &v.view, doc(f, "{pods: []}")));
}

/* ---- metrics ---- */

/* In pieces of so many bytes. */
static const char *filtered(struct fixture *f, const char *text, bool whole, size_t piece)
{
    struct view v;
    struct series_filter *filter;
    struct buf out = BUF_INIT(0);
    struct str rest = str_c(text);
    const char *ret;

    view_of(&v, f, whole);
    filter = series_filter_new(&v.view);
    for (; rest.n; rest = str_from(rest, piece))
        series_filter_add(filter, str_sub(rest, 0, piece), &out);
    series_filter_end(filter, &out);
    series_filter_free(filter);
    ret = arena_cstr(f->a, buf_str(&out));
    buf_fini(&out);
    return ret;
}

#define NS "namespace=\"" HOST_NS "\""

static const char METRICS[] =
    "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time\n"
    "# TYPE container_cpu_usage_seconds_total counter\n"
    "container_cpu_usage_seconds_total{container=\"\",cpu=\"total\",id=\"/\",image=\"\",name=\"\","
    "namespace=\"\",pod=\"\"} 123.5 1700000000000\n"
    "container_cpu_usage_seconds_total{container=\"x\",id=\"/kubepods/pod99/abc\",namespace="
    "\"other\",pod=\"h-web\"} 1\n"
    "container_cpu_usage_seconds_total{container=\"main\",cpu=\"total\",id=\"/kubepods/pod11/abc\","
    "image=\"a:1\",name=\"abc\"," NS ",pod=\"h-web\"} 2.5e-05 1700000000000\n"
    "container_cpu_usage_seconds_total{container=\"istio-proxy\"," NS ",pod=\"h-web\"} 3\n"
    "container_cpu_usage_seconds_total{container=\"main\"," NS ",pod=\"h-db\"} 4\n"
    "container_cpu_usage_seconds_total{container=\"POD\",future=\"x\"," NS ",pod=\"h-web\",} 5\n"
    "# HELP other_tenants_total h-db has some\n"
    "# TYPE other_tenants_total counter\n"
    "other_tenants_total{pod=\"h-db\"} 1\n"
    "# TYPE prober_probe_total counter\n"
    "prober_probe_total{container=\"main\"," NS ",pod=\"h-web\",pod_uid=\"11\",probe_type="
    "\"Liveness\",result=\"successful\"} 7\n"
    "prober_probe_total{container=\"main\"," NS ",pod=\"h-web\",pod_uid=\"12\"} 8\n"
    "# TYPE kubelet_volume_stats_used_bytes gauge\n"
    "kubelet_volume_stats_used_bytes{" NS ",persistentvolumeclaim=\"h-data\"} 9\n"
    "kubelet_volume_stats_used_bytes{" NS ",persistentvolumeclaim=\"h-theirs\"} 10\n"
    "kubelet_volume_stats_used_bytes{" NS "} 11\n"
    "node_cpu_usage_seconds_total 12\n"
    "rest_client_requests_total{host=\"10.0.0.1:6443\"} 13\n"
    "container_fs_usage_bytes{device=\"/dev/sda\",id=\"/kubepods/pod99\"} 14\n"
    "# TYPE container_start_time_seconds gauge\n"
    "container_start_time_seconds{container=\"main\"," NS ",pod=\"h-web\"} NaN";

#define OWN_ "namespace=\"ml\",pod=\"web\""

static void metrics(void **state)
{
    struct fixture *f = *state;
    static const char head[] =
        "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time\n"
        "# TYPE container_cpu_usage_seconds_total counter\n";
    static const char rest[] =
        "container_cpu_usage_seconds_total{container=\"main\",cpu=\"total\",image=\"a:1\",name="
        "\"abc\"," OWN_ "} 2.5e-05 1700000000000\n"
        "container_cpu_usage_seconds_total{container=\"POD\"," OWN_ "} 5\n"
        "# TYPE prober_probe_total counter\n"
        "prober_probe_total{container=\"main\"," OWN_ ",pod_uid=\"v-11\",probe_type=\"Liveness\","
        "result=\"successful\"} 7\n"
        "# TYPE kubelet_volume_stats_used_bytes gauge\n"
        "kubelet_volume_stats_used_bytes{namespace=\"ml\",persistentvolumeclaim=\"data\"} 9\n";
    static const char last[] = "# TYPE container_start_time_seconds gauge\n"
                               "container_start_time_seconds{container=\"main\"," OWN_ "} NaN\n";
    const struct str own_only[] = {str_c(head), str_c(rest), str_c(last)};
    const struct str whole[] = {
        str_c(head),
        STR("container_cpu_usage_seconds_total{container=\"\",cpu=\"total\",id=\"/\",image=\"\","
            "name=\"\"} 123.5 1700000000000\n"),
        str_c(rest), STR("node_cpu_usage_seconds_total 12\n"), str_c(last)};

    for (size_t piece = 1; piece < sizeof(METRICS); piece = piece * 3 + 1) {
        assert_string_equal(filtered(f, METRICS, false, piece), arena_concat(f->a, 3, own_only).p);
        assert_string_equal(filtered(f, METRICS, true, piece), arena_concat(f->a, 5, whole).p);
    }
}

static void lines_that_do_not_fit(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "m{" NS ",pod=\"h-web\"}",
        "m{" NS ",pod=\"h-web\"} ",
        "m{" NS ",pod=\"h-web\"} 1 # {trace=\"x\"} 1",
        "m{" NS ",pod=\"h-web\"} $(id)",
        "m{" NS ",pod=\"h-web\"1",
        "m{" NS ",pod=\"h-db\",pod=\"h-web\"} 1",
        "m{" NS ",pod=\"h-web\",namespace=\"other\"} 1",
        "m{" NS ",pod=\"h-web\",image=\"a\\x\"} 1",
        "m{" NS ",pod=\"h-web\",image=\"a",
        "m{" NS ",pod=h-web} 1",
        "m{" NS " pod=\"h-web\"} 1",
        "m{\"quoted\"," NS ",pod=\"h-web\"} 1",
        "{" NS ",pod=\"h-web\"} 1",
        "1m{" NS ",pod=\"h-web\"} 1",
        "m {" NS ",pod=\"h-web\"} 1",
        "m{pod=\"h-web\"} 1",
        "m 1",
        "",
        "m{" NS ",pod=\"h-web\"} 1 2 3",
        "m{" NS ",pod=\"h-web\"} 1 1.5",
        "m{" NS ",pod=\"h-web\"} 1  2",
        "m{" NS ",pod=\"h-web\"} 1 99999999999999999999",
        "m{" NS ",pod=\"h-web\"} 1-2",
        "m{" NS ",pod=\"h-web\"} NaNNaN",
        "m{" NS ",pod=\"h-web\"} -",
        "m{" NS ",pod=\"h-web\"} 1e",
        "m{" NS ",pod=\"h-web\"} .",
        "m{" NS ",pod=\"h-web\"} 0x1",
        "m{" NS ",pod=\"h-web\"}1",
        "m{" NS ",pod=\"h-web\",pod=\"h-web\"} 1",
        "m{pod=\"h-web\"," NS ",pod=\"h-db\"} 1",
        "m{" NS ",pod=\"h-web\",container=\"main\",container=\"x\"} 1",
        "m{" NS ",pod=\"h-web\\n\"} 1",
        "m{" NS ",pod=\"h-web\\\"\"} 1",
        "m{" NS "\\\",pod=\"h-web\"} 1",
        "m{" NS ",x=\"\",pod=\"h-db\"} 1",
        "m{" NS ",x=\"\\\",pod=\\\"h-web\"} 1",
        "m{" NS ",pod =\"h-web\"} 1",
        "m{" NS ", pod=\"h-web\"} 1",
        "m{" NS ",pod=\"h-web\",image=\"a\x01\"} 1",
        "m{" NS ",pod=\"h-web\",image=\"a\x7f\"} 1",
        "m{" NS ",pod=\"h-web\",image=\"a\xff\"} 1",
        "m{" NS ",pod=\"h-web\",image=\"\xc0\xaf\"} 1",
        "container_fs_limit_bytes{" NS ",pod=\"h-web\",device=\"/dev/sda\"} 1",
    };
    struct str parts[3] = {STR("m{" NS ",pod=\"h-web\",image=\""),
                           {NULL, 0},
                           STR("\"} 1\nm{" NS ",pod=\"h-web\"} 2\n")};
    char *image = arena_alloc(f->a, SERIES_LINE_MAX);

    for (size_t i = 0; i < COUNT(bad); i++)
        assert_string_equal(filtered(f, bad[i], false, 100), "");
    assert_string_equal(
        filtered(f, "m{" NS ",pod=\"h-web\",image=\"a\\\"\\\\\\n}\"} +Inf", false, 9),
        "m{" OWN_ ",image=\"a\\\"\\\\\\n}\"} +Inf\n");
    assert_string_equal(
        filtered(f, "m{pod=\"h-web\",container=\"\"," NS "} -1e+06 -5\r\n", false, 9),
        "m{pod=\"web\",container=\"\",namespace=\"ml\"} -1e+06 -5\n");
    assert_string_equal(filtered(f, "container_fs_limit_bytes{" NS ",pod=\"h-web\"} 1", true, 9),
                        "container_fs_limit_bytes{" OWN_ "} 1\n");
    for (size_t i = 0; i < SERIES_LINE_MAX; i++)
        image[i] = 'x';
    parts[1] = (struct str){image, SERIES_LINE_MAX};
    assert_string_equal(filtered(f, arena_concat(f->a, 3, parts).p, false, 1000),
                        "m{" OWN_ "} 2\n");
}

/* Series of GPUs: labels of a device, the node that the tenant is shown, and nothing but pods. */
static void devices(void **state)
{
    struct fixture *f = *state;
    static const char text[] =
        "# TYPE DCGM_FI_DEV_FB_USED gauge\n"
        "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-1\",modelName=\"A\",GPU_I_PROFILE=\"1g\",GPU_I_"
        "ID="
        "\"7\",pci_bus_id=\"0\",Hostname=\"host\"," NS ",pod=\"h-web\"} 1\n"
        "DCGM_FI_DEV_FB_USED{gpu=\"1\"," NS ",pod=\"h-other\"} 2\n"
        "DCGM_FI_DEV_FB_USED{gpu=\"2\",namespace=\"other\",pod=\"h-web\"} 3\n"
        "DCGM_FI_DEV_FB_USED{gpu=\"3\"} 4\n"
        "node_gpus 5\n";
    struct view v;
    struct series_filter *filter;
    struct buf out = BUF_INIT(0);

    view_of(&v, f, true);
    v.view.devices = true;
    filter = series_filter_new(&v.view);
    series_filter_add(filter, str_c(text), &out);
    series_filter_end(filter, &out);
    series_filter_free(filter);
    buf_char(&out, '\0');
    assert_string_equal(out.p, "# TYPE DCGM_FI_DEV_FB_USED gauge\n"
                               "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-1\",modelName=\"A\","
                               "GPU_I_PROFILE=\"1g\",GPU_I_ID=\"7\"," OWN_ ",Hostname=\"\"} 1\n");
    buf_fini(&out);
}

/* HELP and TYPE are shown with a series of their own family, and not of one that is left out. */
static void heads(void **state)
{
    struct fixture *f = *state;
    static const char *const none[] = {
        "# TYPE container_cpu counter\ncontainer_cpu_usage",
        "# TYPE a gauge\n# HELP a of h-db\na{" NS ",pod=\"h-db\"} 1\nb",
        "# HELP a of h-db\n# HELP b\nb",
        "# TYPE a secret\na",
        "# TYPE a counter x\na",
        "# TYPE  counter\na",
        "# HELP a x\x01\na",
        "# HELP a x\xff\na",
        "# EOF\n# UNIT a bytes\n#HELP a x\n#\n# HELP\n# TYPE a\na",
        "# TYPE a histogram\na_bucketed",
    };
    static const char histogram[] = "# HELP a x \\\\ \\n y\n# TYPE a histogram\na_bucket{" NS
                                    ",pod=\"h-web\",le=\"+Inf\"} 1\na_sum{" NS
                                    ",pod=\"h-web\"} 2\na_count{" NS ",pod=\"h-web\"} 3\n";
    struct buf many = BUF_INIT(0);
    const char *out;

    for (size_t i = 0; i < COUNT(none); i++) {
        struct str name = str_c(strrchr(none[i], '\n') + 1);

        assert_string_equal(
            filtered(f, arena_printf(f->a, "%s{" NS ",pod=\"h-web\"} 1", none[i]).p, false, 11),
            arena_printf(f->a, "%.*s{" OWN_ "} 1\n", STR_F(name)).p);
    }
    assert_string_equal(filtered(f, histogram, false, 11),
                        "# HELP a x \\\\ \\n y\n# TYPE a histogram\na_bucket{" OWN_
                        ",le=\"+Inf\"} 1\na_sum{" OWN_ "} 2\na_count{" OWN_ "} 3\n");
    for (size_t i = 0; i < 4096; i++)
        buf_addc(&many, "# HELP a again\n");
    buf_addc(&many, "a{" NS ",pod=\"h-web\"} 1");
    out = filtered(f, arena_cstr(f->a, buf_str(&many)), false, 4096);
    buf_fini(&many);
    assert_true(strlen(out) < 8192 + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pods, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pod_is_shown_once, setup, teardown),
        cmocka_unit_test_setup_teardown(summary, setup, teardown),
        cmocka_unit_test_setup_teardown(metrics, setup, teardown),
        cmocka_unit_test_setup_teardown(lines_that_do_not_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(heads, setup, teardown),
        cmocka_unit_test_setup_teardown(devices, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
