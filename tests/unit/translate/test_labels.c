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
    cJSON *got = translate_labels(f->a, &f->tenant, STR("ml"),
                                  doc(f, "{app: web, app.kubernetes.io/name: web, job-name: j, "
                                         "team.example/a: b, sidecar: x, teamXexample: z}"));

    assert_str(json_str(json_get(got, "app")), "web");
    assert_str(json_str(json_get(got, "app.kubernetes.io/name")), "web");
    assert_str(json_str(json_get(got, "team.example/a")), "b");
    assert_str(json_str(json_get(got, "sidecar")), "x");
    assert_null(json_get(got, "teamXexample"));
    assert_int_equal(json_count(got), 8);
}

/* Keys that steer hosts, and ours, never go down as they are. */
static void steering_keys_are_hashed(void **state)
{
    static const char *const keys[] = {"kueue.x-k8s.io/queue-name", "project",
                                       "sublet.dev/cluster",        "sublet.dev/namespace",
                                       "hami.io/webhook",           "sublet.dev/l-aaaaaaaaaaaaaaaa",
                                       "app.kubernetes.io/",        "nvidia.com/gpu.product"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
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

static void empty_selectors_stay_in_the_namespace(void **state)
{
    struct fixture *f = *state;

    assert_json(translate_label_selector(f->a, &f->tenant, STR("ml"), doc(f, "{}")),
                "{matchLabels: {" OURS "}}");
    assert_null(translate_label_selector(f->a, &f->tenant, STR("ml"), NULL));
    assert_null(translate_label_selector(f->a, &f->tenant, STR("ml"), doc(f, "null")));
    assert_json(translate_match_labels(f->a, &f->tenant, STR("ml"), doc(f, "{app: web}")),
                "{app: web, " OURS "}");
}

static void metadata_by_list(void **state)
{
    struct fixture *f = *state;
    cJSON *got = translate_metadata(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: pod, namespace: ml, uid: u, generateName: g-, finalizers: [x], "
               "ownerReferences: [{name: o}], deletionTimestamp: t, resourceVersion: '1', "
               "labels: {app: web}, annotations: {a.example/x: '1', cni.example/net: evil, "
               "sublet.dev/uid: forged}}}"),
        STR("host"));

    assert_json(
        got,
        "{name: host, namespace: team-research, labels: {app: web, " OURS "}, annotations: "
        "{sublet.dev/name: pod, sublet.dev/namespace: ml, sublet.dev/uid: u, a.example/x: '1', "
        "sublet.dev/owned: 'l:app,a:a.example/x'}}");
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

    assert_json(translate_pod_update(f->a, now, wanted),
                "{metadata: {labels: {app: null, sublet.dev/l-aaaaaaaaaaaaaaaa: null, tier: b}, "
                "annotations: {sublet.dev/owned: 'l:tier', x.example/y: null}}}");
}

static void updates_end(void **state)
{
    struct fixture *f = *state;
    cJSON *now =
        pod_with(f, "{labels: {app: web, added: x}, annotations: {sublet.dev/owned: 'l:app'}}");
    cJSON *wanted = pod_with(f, "{labels: {app: web}, annotations: {sublet.dev/owned: 'l:app'}}");

    assert_null(translate_pod_update(f->a, now, wanted));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(labels_by_list, setup, teardown),
        cmocka_unit_test_setup_teardown(steering_keys_are_hashed, setup, teardown),
        cmocka_unit_test_setup_teardown(selectors_find_translated_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_selectors_stay_in_the_namespace, setup, teardown),
        cmocka_unit_test_setup_teardown(metadata_by_list, setup, teardown),
        cmocka_unit_test_setup_teardown(updates_touch_what_is_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(updates_end, setup, teardown),
        cmocka_unit_test_setup_teardown(data_is_owned_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(zones_are_the_hosts, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
