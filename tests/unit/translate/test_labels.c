/* SPDX-License-Identifier: Apache-2.0 */
/* Labels, selectors, metadata, and what of metadata an update touches. */

#include <sublet/selector.h>

#include "test.h"

static int setup(void **state)
{
    *state = fixture_new(
        "policy: {labels: {allow: [team.example/, sidecar]}, annotations: {allow: [a.example/x]}}");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

#define OURS "sublet.dev/cluster: 11111111-2222-3333-4444-555555555555, sublet.dev/namespace: ml"

static void labels_by_list(void **state)
{
    struct fixture *f = *state;
    cJSON *got = translate_labels(
        f->a, &f->tenant, STR("ml"),
        doc(f, "{app: web, team.example/a: b, sidecar: x, sidecar/y: v, teamXexample: z}"));

    assert_str(json_str(json_get(got, "team.example/a")), "b");
    assert_str(json_str(json_get(got, "sidecar")), "x");
    assert_null(json_get(got, "app"));
    assert_null(json_get(got, "sidecar/y"));
    assert_null(json_get(got, "teamXexample"));
    assert_int_equal(json_count(got), 7);
}

/* What the admin's own objects on the host select by: a Service, PodMonitor, policy or mesh that
 * sees all namespaces, and the ReplicaSet, StatefulSet, DaemonSet and Job controllers, which adopt
 * pods without an owner. */
static void selectors_of_the_admin_match_no_pod(void **state)
{
    static const char *const selectors[] = {
        "{matchLabels: {app: web}}",
        "{matchLabels: {k8s-app: web}}",
        "{matchLabels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web}}",
        "{matchExpressions: [{key: app.kubernetes.io/part-of, operator: In, values: [web]}]}",
        "{matchExpressions: [{key: job-name, operator: Exists}]}",
        "{matchExpressions: [{key: batch.kubernetes.io/job-name, operator: Exists}]}",
        "{matchExpressions: [{key: controller-uid, operator: Exists}]}",
        "{matchExpressions: [{key: batch.kubernetes.io/controller-uid, operator: Exists}]}",
        "{matchExpressions: [{key: pod-template-hash, operator: Exists}]}",
        "{matchExpressions: [{key: pod-template-generation, operator: Exists}]}",
        "{matchLabels: {controller-revision-hash: web}}",
        "{matchLabels: {statefulset.kubernetes.io/pod-name: web}}",
        "{matchExpressions: [{key: apps.kubernetes.io/pod-index, operator: Exists}]}",
        "{matchLabels: {sublet.dev/cluster: web}}",
        "{matchLabels: {kueue.x-k8s.io/queue-name: web}}",
    };
    static const char *const keys[] = {"app",
                                       "k8s-app",
                                       "app.kubernetes.io/name",
                                       "app.kubernetes.io/instance",
                                       "app.kubernetes.io/part-of",
                                       "job-name",
                                       "batch.kubernetes.io/job-name",
                                       "controller-uid",
                                       "batch.kubernetes.io/controller-uid",
                                       "pod-template-hash",
                                       "pod-template-generation",
                                       "controller-revision-hash",
                                       "statefulset.kubernetes.io/pod-name",
                                       "apps.kubernetes.io/pod-index",
                                       "sublet.dev/cluster",
                                       "kueue.x-k8s.io/queue-name"};
    struct fixture *f = *state;
    cJSON *labels = json_new_object(f->a);
    struct str own, host;
    struct selector parsed;

    for (size_t i = 0; i < COUNT(keys); i++)
        json_set_str(f->a, labels, keys[i], STR("web"));
    own = labels_flatten(f->a, labels);
    host = labels_flatten(f->a, translate_labels(f->a, &f->tenant, STR("ml"), labels));
    for (size_t i = 0; i < COUNT(selectors); i++) {
        assert_ok(selector_from_json(f->a, doc(f, selectors[i]), &parsed, &f->err));
        assert_true(selector_match(&parsed, own));
        if (selector_match(&parsed, host))
            fail_msg("%s matches a host pod", selectors[i]);
    }
}

/* Keys that steer hosts, and ours, never go down as they are. */
static void steering_keys_are_hashed(void **state)
{
    static const char *const keys[] = {"kueue.x-k8s.io/queue-name", "project",
                                       "sublet.dev/cluster",        "sublet.dev/namespace",
                                       "hami.io/webhook",           "sublet.dev/l-aaaaaaaaaaaaaaaa",
                                       "app.kubernetes.io/",        "nvidia.com/gpu.product"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(keys); i++) {
        struct str key = translate_label_key(f->a, &f->tenant, str_c(keys[i]));

        assert_has(key, "sublet.dev/l-");
        assert_int_equal(key.n, 13 + 16);
        assert_null(name_check_qualified(key));
        assert_false(str_eqc(key, keys[i]));
    }
}

static void selectors_find_translated_labels(void **state)
{
    struct fixture *f = *state;
    const cJSON *labels = doc(f, "{app: web, tier: gpu, project: p}");
    const cJSON *selector =
        doc(f, "{matchLabels: {tier: gpu}, matchExpressions: [{key: project, operator: "
               "In, values: [p, q]}, {key: app, operator: Exists}]}");
    cJSON *down = translate_label_selector(f->a, &f->tenant, STR("ml"), selector);
    struct selector parsed;

    assert_ok(selector_from_json(f->a, down, &parsed, &f->err));
    assert_true(selector_match(
        &parsed, labels_flatten(f->a, translate_labels(f->a, &f->tenant, STR("ml"), labels))));
    assert_false(selector_match(
        &parsed, labels_flatten(f->a, translate_labels(f->a, &f->tenant, STR("web"), labels))));
    f->tenant.cluster_uid = STR("other");
    assert_false(selector_match(
        &parsed, labels_flatten(f->a, translate_labels(f->a, &f->tenant, STR("ml"), labels))));
}

/* ---- what selects pods of the same tenant still does ---- */

#define SPEC "containers: [{name: c, image: i}]"
#define LABELS                                                                                     \
    "labels: {app: web, app.kubernetes.io/name: web, pod-template-hash: h1, "                      \
    "statefulset.kubernetes.io/pod-name: web-0}"

static cJSON *pod_down(struct fixture *f, const char *text)
{
    static const struct pool_choice none;
    cJSON *ret = NULL;

    assert_ok(translate_pod(f->a, &f->tenant, &none, doc(f, text), NULL, &ret, &f->err));
    return ret;
}

static bool selects(struct fixture *f, const cJSON *selector, const cJSON *pod)
{
    struct selector parsed;

    assert_non_null(selector);
    assert_ok(selector_from_json(f->a, selector, &parsed, &f->err));
    return selector_match(&parsed, labels_flatten(f->a, json_path(pod, "metadata.labels")));
}

static void services_select(void **state)
{
    struct fixture *f = *state;
    const cJSON *web = pod_down(f, "{metadata: {name: web-0, namespace: ml, uid: u, " LABELS
                                   "}, spec: {" SPEC "}}");
    const cJSON *other =
        pod_down(f, "{metadata: {name: other, namespace: ml, uid: o, labels: {app: "
                    "other}}, spec: {" SPEC "}}");
    cJSON *service = NULL, *selector = json_new_object(f->a);

    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: web, namespace: ml, uid: s}, spec: {ports: [{port: 80}], "
               "selector: {app: web, statefulset.kubernetes.io/pod-name: web-0}}}"),
        &service, &f->err));
    json_set(f->a, selector, "matchLabels", json_copy(f->a, json_path(service, "spec.selector")));
    assert_true(selects(f, selector, web));
    assert_false(selects(f, selector, other));
}

/* The labelSelector at each place of a pod that has one, of a pod of hash h1: which of two pods, of
 * h1 and of h2, it selects. */
static void terms_of_pods_select(void **state)
{
    static const struct {
        const char *spec, *at;
        bool same, next;
    } cases[] = {
        {"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
         "t, labelSelector: {matchLabels: {app.kubernetes.io/name: web}}}]}}",
         "affinity.podAffinity", true, true},
        {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
         "[{topologyKey: t, labelSelector: {matchExpressions: [{key: app, operator: In, values: "
         "[web]}]}, matchLabelKeys: [pod-template-hash]}]}}",
         "affinity.podAntiAffinity", true, false},
        {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
         "[{topologyKey: t, labelSelector: {matchLabels: {app: web}}, mismatchLabelKeys: "
         "[pod-template-hash]}]}}",
         "affinity.podAntiAffinity", false, true},
        {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: t, whenUnsatisfiable: "
         "DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]",
         NULL, true, true},
        {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: t, whenUnsatisfiable: "
         "DoNotSchedule, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: "
         "[pod-template-hash]}]",
         NULL, true, false},
        {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: t, whenUnsatisfiable: "
         "DoNotSchedule, labelSelector: {matchLabels: {statefulset.kubernetes.io/pod-name: web-0}, "
         "matchExpressions: [{key: pod-template-hash, operator: NotIn, values: [h1]}]}}]",
         NULL, false, true},
    };
    struct fixture *f = *state;
    const cJSON *next =
        pod_down(f, "{metadata: {name: next, namespace: ml, uid: next, labels: {app: web, "
                    "app.kubernetes.io/name: web, pod-template-hash: h2, "
                    "statefulset.kubernetes.io/pod-name: web-0}}, spec: {" SPEC "}}");

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[1024];
        const cJSON *pod, *terms;

        snprintf(text, sizeof text,
                 "{metadata: {name: p, namespace: ml, uid: u, " LABELS "}, spec: {" SPEC ", %s}}",
                 cases[i].spec);
        pod = pod_down(f, text);
        terms = json_path(pod, "spec.topologySpreadConstraints");
        if (cases[i].at)
            terms = json_get(json_path(json_get(pod, "spec"), cases[i].at),
                             "requiredDuringSchedulingIgnoredDuringExecution");
        assert_int_equal(selects(f, json_get(json_at(terms, 0), "labelSelector"), pod),
                         cases[i].same);
        assert_int_equal(selects(f, json_get(json_at(terms, 0), "labelSelector"), next),
                         cases[i].next);
    }
}

static void empty_selectors_stay_in_the_namespace(void **state)
{
    struct fixture *f = *state;

    assert_json(translate_label_selector(f->a, &f->tenant, STR("ml"), doc(f, "{}")),
                "{matchLabels: {" OURS "}}");
    assert_null(translate_label_selector(f->a, &f->tenant, STR("ml"), NULL));
    assert_null(translate_label_selector(f->a, &f->tenant, STR("ml"), doc(f, "null")));
    assert_json(translate_match_labels(f->a, &f->tenant, STR("ml"), doc(f, "{sidecar: web}")),
                "{sidecar: web, " OURS "}");
}

static void metadata_by_list(void **state)
{
    struct fixture *f = *state;
    cJSON *got = translate_metadata(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: pod, namespace: ml, uid: u, generateName: g-, finalizers: [x], "
               "ownerReferences: [{name: o}], deletionTimestamp: t, resourceVersion: '1', "
               "labels: {sidecar: web}, annotations: {a.example/x: '1', cni.example/net: evil, "
               "sublet.dev/uid: forged}}}"),
        STR("host"));

    assert_json(
        got,
        "{name: host, namespace: team-research, labels: {sidecar: web, " OURS "}, annotations: "
        "{sublet.dev/name: pod, sublet.dev/namespace: ml, sublet.dev/uid: u, a.example/x: '1', "
        "sublet.dev/owned: 'l:sidecar,a:a.example/x'}}");
}

/* ---- updates ---- */

static cJSON *pod_with(struct fixture *f, const char *metadata)
{
    cJSON *ret = json_new_object(f->a);

    json_set(f->a, ret, "metadata", doc(f, metadata));
    return ret;
}

static void updates_touch_what_is_ours(void **state)
{
    struct fixture *f = *state;
    cJSON *now = pod_with(
        f, "{labels: {app: web, istio: injected, sublet.dev/l-aaaaaaaaaaaaaaaa: old, "
           "sublet.dev/custom: syncer}, annotations: {sublet.dev/owned: 'l:app,a:x.example/y', "
           "x.example/y: '1', scheduler.example/decision: node-1}}");
    cJSON *wanted = pod_with(f, "{labels: {tier: b}, annotations: {sublet.dev/owned: 'l:tier'}}");

    assert_json(translate_pod_update(f->a, now, wanted, true),
                "{metadata: {labels: {app: null, sublet.dev/l-aaaaaaaaaaaaaaaa: null, tier: b}, "
                "annotations: {sublet.dev/owned: 'l:tier', x.example/y: null}}}");
}

static void updates_end(void **state)
{
    struct fixture *f = *state;
    cJSON *now =
        pod_with(f, "{labels: {app: web, added: x}, annotations: {sublet.dev/owned: 'l:app'}}");
    cJSON *wanted = pod_with(f, "{labels: {app: web}, annotations: {sublet.dev/owned: 'l:app'}}");

    assert_null(translate_pod_update(f->a, now, wanted, true));
    assert_null(translate_data_update(f->a, now, wanted));
    assert_null(translate_service_update(f->a, now, wanted));
    assert_null(translate_pvc_update(f->a, now, wanted));
}

static void data_is_owned_whole(void **state)
{
    struct fixture *f = *state;
    cJSON *now = doc(f, "{data: {a: '1', b: '2'}, binaryData: {c: eA==}}");
    cJSON *wanted = doc(f, "{data: {a: '1', d: '4'}}");

    assert_json(translate_data_update(f->a, now, wanted),
                "{data: {b: null, d: '4'}, binaryData: {c: null}}");
}

/* A pod learns its zone from its API server, and its host pod from the host's. */
static void zones_are_the_hosts(void **state)
{
    struct fixture *f = *state;
    const cJSON *pod = doc(f, "{metadata: {name: p, namespace: ml, labels: {app: web, "
                              "topology.kubernetes.io/zone: z, topology.kubernetes.io/region: r, "
                              "topology.kubernetes.io/other: o}}}");
    cJSON *labels = json_get(translate_metadata(f->a, &f->tenant, pod, STR("p")), "labels");

    assert_str(translate_label_key(f->a, &f->tenant, STR("topology.kubernetes.io/zone")),
               "topology.kubernetes.io/zone");
    assert_null(json_get(labels, "topology.kubernetes.io/zone"));
    assert_null(json_get(labels, "topology.kubernetes.io/region"));
    assert_int_equal(json_count(labels), 4);
}

/* A host pod as a version left it that sent common keys as they were: its labels change in place.
 */
static void labels_of_before_are_replaced(void **state)
{
    struct fixture *f = *state;
    cJSON *wanted = pod_down(
        f, "{metadata: {name: p, namespace: ml, uid: u, labels: {app: web}}, spec: {" SPEC "}}");
    cJSON *now = json_copy(f->a, wanted), *labels = json_path(now, "metadata.labels");
    struct str key = translate_label_key(f->a, &f->tenant, STR("app"));
    struct str want =
        arena_printf(f->a,
                     "{metadata: {labels: {app: null, %.*s: web}, annotations: {sublet.dev/owned: "
                     "null}}}",
                     STR_F(key));

    json_remove(labels, arena_cstr(f->a, key));
    json_set_str(f->a, labels, "app", STR("web"));
    json_set_str(f->a, json_path(now, "metadata.annotations"), "sublet.dev/owned", STR("l:app"));
    assert_json(translate_pod_update(f->a, now, wanted, true), want.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(labels_by_list, setup, teardown),
        cmocka_unit_test_setup_teardown(selectors_of_the_admin_match_no_pod, setup, teardown),
        cmocka_unit_test_setup_teardown(steering_keys_are_hashed, setup, teardown),
        cmocka_unit_test_setup_teardown(selectors_find_translated_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(services_select, setup, teardown),
        cmocka_unit_test_setup_teardown(terms_of_pods_select, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_selectors_stay_in_the_namespace, setup, teardown),
        cmocka_unit_test_setup_teardown(metadata_by_list, setup, teardown),
        cmocka_unit_test_setup_teardown(updates_touch_what_is_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(updates_end, setup, teardown),
        cmocka_unit_test_setup_teardown(data_is_owned_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(zones_are_the_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(labels_of_before_are_replaced, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
