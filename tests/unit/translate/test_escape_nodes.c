/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes a pod can reach: pools by their label, GPU nodes never without a GPU, nodes of the
 * host by name only where the virtual cluster shows them. */
#include "escape.h"

#define REQUIRE(terms)                                                                             \
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                   \
    "{nodeSelectorTerms: [" terms "]}}}"
#define PREFER(preference)                                                                         \
    "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "                  \
    "[{weight: 1, preference: " preference "}]}}"
#define KEYS                                                                                       \
    ": labels of sublet.dev are not a tenant's to choose nodes by; label sublet.dev/gpu-pool of "  \
    "the pod chooses its pool"
#define PROVIDERS                                                                                  \
    "{key: cloud.google.com/gke-accelerator, operator: DoesNotExist}, "                            \
    "{key: cloud.google.com/gke-tpu-accelerator, operator: DoesNotExist}, "                        \
    "{key: k8s.amazonaws.com/accelerator, operator: DoesNotExist}, "                               \
    "{key: kubernetes.azure.com/accelerator, operator: DoesNotExist}"
/* What keeps a pod without devices off pools and GPUs. */
#define FENCE                                                                                      \
    "{key: sublet.dev/pool, operator: DoesNotExist}, {key: nvidia.com/gpu.present, operator: "     \
    "NotIn, values: ['true']}, {key: feature.node.kubernetes.io/amd-gpu, operator: NotIn, "        \
    "values: ['true']}, " PROVIDERS

static void nodes_are_the_hosts(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"nodeName: gpu-1, " C "}]",
         "spec.nodeName: \"gpu-1\": this virtual cluster has no such node"},
        {REQUIRE("{matchExpressions: [{key: a, operator: Exists}]}, {matchFields: [{key: "
                 "metadata.name, operator: In, values: [gpu-1]}]}") ", " C "}]",
         "spec.affinity.nodeAffinity: matchFields metadata.name \"gpu-1\": this virtual cluster "
         "has "
         "no such node"},
        {PREFER("{matchFields: [{key: metadata.name, operator: NotIn, values: [gpu-1]}]}") ", " C
                                                                                           "}]",
         "spec.affinity.nodeAffinity: matchFields metadata.name \"gpu-1\": this virtual cluster "
         "has "
         "no such node"},
        {REQUIRE("{matchFields: [{key: spec.providerID, operator: In, values: [node-1]}]}") ", " C
                                                                                            "}]",
         "spec.affinity.nodeAffinity: matchFields are allowed on metadata.name only"},
        {"nodeSelector: {sublet.dev/pool: h100}, " C "}]",
         "spec.nodeSelector: sublet.dev/pool" KEYS},
        {REQUIRE("{matchExpressions: [{key: sublet.dev/pool, operator: Exists}]}") ", " C "}]",
         "spec.affinity.nodeAffinity: sublet.dev/pool" KEYS},
        {PREFER("{matchExpressions: [{key: sublet.dev/x, operator: Exists}]}") ", " C "}]",
         "spec.affinity.nodeAffinity: sublet.dev/x" KEYS},
        {"topologySpreadConstraints: [{topologyKey: sublet.dev/pool}], " C "}]",
         "spec.topologySpreadConstraints: sublet.dev/pool" KEYS},
        {"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
         "[{podAffinityTerm: {topologyKey: sublet.dev/pool}}]}}, " C "}]",
         "spec.affinity: sublet.dev/pool" KEYS},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        check_refused(*state, cases[i].spec, cases[i].message);
}

static void the_fence_is_in_every_term(void **state)
{
    struct fixture *f = *state;
    const char *key = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    cJSON *spec =
        emit_spec(f, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                     "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, "
                     "{matchExpressions: [{key: b, operator: DoesNotExist}]}, {}]}}}, " C "}]");

    assert_json(json_path(spec, key),
                "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}, " FENCE
                "]}, {matchExpressions: [{key: b, operator: DoesNotExist}, " FENCE "]}]}");
    /* A term that matches nothing must not become one that matches something. */
    spec = emit_spec(f, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                        "{nodeSelectorTerms: [{}]}}}, " C "}]");
    assert_json(json_path(spec, key),
                "{nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: "
                "Exists}, {key: kubernetes.io/os, operator: DoesNotExist}]}]}");
    spec = emit_spec(f, C ", resources: {limits: {nvidia.com/gpu: 1}}}]");
    assert_json(json_path(spec, key),
                "{nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.product, "
                "operator: In, values: [H100]}]}]}");
    assert_json(json_get(spec, "nodeSelector"), "{sublet.dev/pool: h100}");
    assert_str(json_str(json_get(spec, "runtimeClassName")), "nvidia");
}

#define REQUIRED_NODES                                                                             \
    "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
#define PREFERRED_NODES "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
#define NOWHERE                                                                                    \
    "[{matchExpressions: [{key: kubernetes.io/os, operator: Exists}, {key: kubernetes.io/os, "     \
    "operator: DoesNotExist}]}]"
#define ONLY_H100 "{key: nvidia.com/gpu.product, operator: In, values: [H100]}"
#define UNSHARED                                                                                   \
    "{key: nvidia.com/gpu.sharing-strategy, operator: NotIn, values: [time-slicing, mps]}"
#define NODE(op, name) "{key: metadata.name, operator: " op ", values: [" name "]}"

/* Whoever has no pools may share the host with those who do. */
static void the_fence_needs_no_pools(void **state)
{
    struct fixture *f = *state;
    cJSON *spec;

    use_config(f, "");
    spec = emit_spec(f, C "}]");
    assert_json(json_path(spec, REQUIRED_NODES), "[{matchExpressions: [" FENCE "]}]");
    assert_null(json_get(spec, "nodeSelector"));
    use_config(f, "{pools: [{name: a, nodeSelector: {gpus: a}}, {name: b, nodeSelector: {gpus: b, "
                  "zone: z}, tolerations: [{key: gpus, value: b}]}]}");
    assert_json(json_path(emit_spec(f, C "}]"), REQUIRED_NODES),
                "[{matchExpressions: [" FENCE ", {key: gpus, operator: NotIn, values: [a, b]}]}]");
    use_config(f, "policy: {cpuNodes: [sublet.dev/pool=cpu, tier=shared]}");
    spec = emit_spec(f, "nodeSelector: {a: b}, " C "}]");
    assert_json(json_get(spec, "nodeSelector"), "{sublet.dev/pool: cpu, tier: shared, a: b}");
    assert_json(json_path(spec, REQUIRED_NODES),
                "[{matchExpressions: [{key: nvidia.com/gpu.present, operator: NotIn, values: "
                "['true']}, {key: feature.node.kubernetes.io/amd-gpu, operator: NotIn, values: "
                "['true']}, " PROVIDERS "]}]");
}

/* Nodes that only their names keep it off: in each term, whatever the tenant wrote. */
static void unfenced_nodes_are_avoided_by_name(void **state)
{
    struct fixture *f = *state;
    struct str names[] = {STR("npu-1"), STR("npu-2")};
    const char *avoided = "[{key: metadata.name, operator: NotIn, values: [npu-1]}, "
                          "{key: metadata.name, operator: NotIn, values: [npu-2]}]";

    f->tenant.unfenced = (struct str_list){names, 2};
    assert_json(
        json_get(json_at(json_path(emit_spec(f, C "}]"), REQUIRED_NODES), 0), "matchFields"),
        avoided);
    assert_json(
        json_get(json_at(json_path(emit_spec(f, "affinity: {nodeAffinity: {"
                                                "requiredDuringSchedulingIgnoredDuringExecution: "
                                                "{nodeSelectorTerms: [{matchExpressions: [{key: a, "
                                                "operator: Exists}]}, {matchExpressions: [{key: b, "
                                                "operator: Exists}]}]}}}, " C "}]"),
                                   REQUIRED_NODES),
                         1),
                 "matchFields"),
        avoided);
    use_config(f,
               "pools: [{name: a, nodeSelector: {p: a}, resources: {nvidia.com/gpu: {gpuEq: '1'}}"
               "}]\nbindings: [{pool: a, guarantee: '1'}]");
    assert_json(
        json_path(emit_spec(f, C ", resources: {limits: {nvidia.com/gpu: 1}}}]"), REQUIRED_NODES),
        "[{matchExpressions: [" UNSHARED "]}]");
}

/* Whole devices are never those of a node whose device plugin gives them to several pods. */
static void whole_devices_are_not_shared(void **state)
{
    static const struct {
        const char *pool, *expressions;
    } cases[] = {
        {"resources: {nvidia.com/gpu: {gpuEq: 1}}", UNSHARED},
        {"mode: mig, profiles: {1g.10gb: {gpuEq: 1/7}}", UNSHARED},
        {"trust: adversarial, products: [H100]", UNSHARED ", " ONLY_H100},
        {"products: [H100]", ONLY_H100},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *device = strstr(cases[i].pool, "mig") ? "mig-1g.10gb" : "gpu";

        use_config(f, arena_printf(f->a,
                                   "pools: [{name: a, nodeSelector: {p: a}, %s}]\n"
                                   "bindings: [{pool: a, guarantee: '1'}]",
                                   cases[i].pool)
                          .p);
        assert_json(
            json_path(
                emit_spec(
                    f,
                    arena_printf(f->a, C ", resources: {limits: {nvidia.com/%s: 1}}}]", device).p),
                REQUIRED_NODES),
            arena_printf(f->a, "[{matchExpressions: [%s]}]", cases[i].expressions).p);
    }
    use_config(f, "pools: [{name: a, mode: mps, nodeSelector: {p: a}, resources: {nvidia.com/gpu: "
                  "{gpuEq: 1/4}}}]\nbindings: [{pool: a, guarantee: '1'}]");
    assert_null(
        json_path(emit_spec(f, C ", resources: {limits: {nvidia.com/gpu: 1}}}]"), REQUIRED_NODES));
}

static void nodes_by_name(void **state)
{
    struct fixture *f = *state;
    cJSON *spec = emit_spec(f, "nodeName: node-1, " C "}]");

    assert_null(json_get(spec, "nodeName"));
    assert_json(json_path(spec, REQUIRED_NODES),
                "[{matchExpressions: [" FENCE "], matchFields: [" NODE("In", "node-1") "]}]");
    /* ANDed into what is ORed, and into the fence of a pool. */
    spec = emit_spec(f, "nodeName: node-1, " REQUIRE("{matchFields: [" NODE(
                            "NotIn", "node-2") "]}, {matchExpressions: "
                                               "[{key: a, operator: Exists}]}, {}") ", " C "}]");
    assert_json(json_path(spec, REQUIRED_NODES),
                "[{matchExpressions: [" FENCE "], matchFields: [" NODE("NotIn", "node-2") ", " NODE(
                    "In", "node-1") "]}, {matchExpressions: [{key: a, operator: Exists}, " FENCE
                                    "], matchFields: [" NODE("In", "node-1") "]}]");
    spec = emit_spec(f, "nodeName: node-1, " C ", resources: {limits: {nvidia.com/gpu: 1}}}]");
    assert_json(json_path(spec, REQUIRED_NODES),
                "[{matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: "
                "[H100]}], matchFields: [" NODE("In", "node-1") "]}]");
    assert_json(json_get(spec, "nodeSelector"), "{sublet.dev/pool: h100}");
    spec = emit_spec(f, PREFER("{matchFields: [" NODE("In", "node-1") "]}") ", " C "}]");
    assert_json(json_path(spec, PREFERRED_NODES),
                "[{weight: 1, preference: {matchFields: [" NODE("In", "node-1") "]}}]");
}

/* A node of the tenant's own may have the name of one on the host that it is not shown. */
static void names_of_no_host_node_go_nowhere(void **state)
{
    struct fixture *f = *state;
    const cJSON *stored =
        doc(f, "{metadata: {name: p, namespace: ml, uid: u, resourceVersion: '5'}, spec: "
               "{nodeName: gpu-1, containers: [{name: c}]}}");
    cJSON *spec = emit_spec(f, "nodeName: own-1, " C "}]");

    assert_json(json_path(spec, REQUIRED_NODES), NOWHERE);
    spec = emit_spec(f, REQUIRE("{matchFields: [" NODE("In", "own-1") "]}") ", " C "}]");
    assert_json(json_path(spec, REQUIRED_NODES), NOWHERE);
    spec = emit_spec(f, PREFER("{matchFields: [" NODE("In", "own-1") "]}") ", " C "}]");
    assert_int_equal(json_count(json_path(spec, PREFERRED_NODES)), 0);
    /* Of a stored pod the node may have been shown once. */
    assert_json(json_path(json_get(emit(f, stored), "spec"), REQUIRED_NODES), NOWHERE);
}

/* Whoever owns a pod, or says so: nothing but what is shown. */
static void daemon_sets_pick_nodes(void **state)
{
#define DAEMON(name)                                                                               \
    "{metadata: {name: p, namespace: ml, uid: u, ownerReferences: [{kind: DaemonSet, controller: " \
    "true}]}, spec: {" REQUIRE("{matchFields: [" NODE("In", name) "]}") ", containers: [{name: "   \
                                                                        "c}]}}"
    struct fixture *f = *state;
    cJSON *spec = json_get(emit(f, doc(f, DAEMON("node-1"))), "spec");

    assert_json(json_path(spec, REQUIRED_NODES),
                "[{matchExpressions: [" FENCE "], matchFields: [" NODE("In", "node-1") "]}]");
    assert_error(
        translate_check_pod(f->a, &f->tenant, STR("ml"), doc(f, DAEMON("gpu-1")), &f->err),
        "pods \"p\" is forbidden: spec.affinity.nodeAffinity: matchFields metadata.name \"gpu-1\": "
        "this virtual cluster has no such node");
}

static void foreign_pods_are_out_of_sight(void **state)
{
    struct fixture *f = *state;
    const char *spec = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                       "[{topologyKey: t, "
                       "labelSelector: {}, namespaceSelector: {matchLabels: {x: y}}}, "
                       "{topologyKey: t, namespaces: "
                       "[other], labelSelector: {matchExpressions: [{key: sublet.dev/cluster, "
                       "operator: Exists}]}},"
                       "{topologyKey: t}]}}, " C "}]";
    const cJSON *terms = json_path(
        emit_spec(f, spec), "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution");

    /* No namespace of ours matches: a contradiction, not everything. */
    assert_json(json_at(terms, 0),
                "{topologyKey: t, labelSelector: {matchLabels: {sublet.dev/cluster: "
                "11111111-2222-3333-4444-555555555555}, matchExpressions: [{key: "
                "sublet.dev/cluster, operator: DoesNotExist}]}}");
    assert_str(json_str(json_get(json_path(json_at(terms, 1), "labelSelector.matchLabels"),
                                 "sublet.dev/namespace")),
               "other");
    assert_has(
        json_str(json_get(
            json_at(json_path(json_at(terms, 1), "labelSelector.matchExpressions"), 0), "key")),
        "sublet.dev/l-");
    assert_json(json_at(terms, 2), "{topologyKey: t}");
}

static void tolerations_are_bounded(void **state)
{
    struct fixture *f = *state;
    cJSON *spec = emit_spec(
        f, "tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}, {key: "
           "node.kubernetes.io/unreachable, effect: NoSchedule, operator: Exists}, {key: "
           "node.kubernetes.io/unreachable, effect: NoExecute, tolerationSeconds: 999999}, "
           "{key: node.kubernetes.io/unschedulable, operator: Exists}], " C "}]");

    assert_json(json_get(spec, "tolerations"),
                "[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, "
                "tolerationSeconds: 3600}, "
                "{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, "
                "tolerationSeconds: "
                "3600}]");
}

static const cJSON *pod_of_terms(struct fixture *f, int n, const char *metadata)
{
    struct buf b = BUF_INIT(0);
    const cJSON *pod;

    buf_printf(&b, "{metadata: {name: p, namespace: ml, uid: u%s}, spec: {" C "}], ", metadata);
    buf_addc(&b, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                 "{nodeSelectorTerms: [");
    for (int i = 0; i < n; i++)
        buf_printf(&b, "%s{matchExpressions: [{key: k%d, operator: Exists}]}", i ? ", " : "", i);
    buf_addc(&b, "]}}}}}");
    pod = doc(f, arena_cstr(f->a, buf_str(&b)));
    buf_fini(&b);
    return pod;
}

/* Each term has each node that is avoided by name: their product is bounded, whether the pod is
 * stored or not. */
static void node_terms_times_avoided_nodes_are_bounded(void **state)
{
    static const char *const stored[] = {"", ", resourceVersion: '7'"};
    struct fixture *f = *state;
    struct pool_choice none = {0};
    struct str names[128];
    cJSON *ret;

    for (size_t i = 0; i < COUNT(names); i++)
        names[i] = arena_printf(f->a, "npu-%0200zu", i);
    f->tenant.unfenced = (struct str_list){names, COUNT(names)};
    for (size_t i = 0; i < COUNT(stored); i++) {
        const cJSON *most = pod_of_terms(f, 64, stored[i]), *more = pod_of_terms(f, 65, stored[i]);
        const char *why = "pods \"p\" is forbidden: spec.affinity.nodeAffinity: more than 64 terms";

        assert_ok(translate_pod(f->a, &f->tenant, &none, most, NULL, &ret, &f->err));
        assert_int_equal(json_count(json_path(json_get(ret, "spec"), REQUIRED_NODES)), 64);
        assert_true(json_text(f->a, ret).n < 4 << 20);
        assert_error(translate_check_pod(f->a, &f->tenant, STR("ml"), more, &f->err), why);
        assert_error(translate_pod(f->a, &f->tenant, &none, more, NULL, &ret, &f->err), why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_are_the_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(the_fence_is_in_every_term, setup, teardown),
        cmocka_unit_test_setup_teardown(the_fence_needs_no_pools, setup, teardown),
        cmocka_unit_test_setup_teardown(node_terms_times_avoided_nodes_are_bounded, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(unfenced_nodes_are_avoided_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(whole_devices_are_not_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_no_host_node_go_nowhere, setup, teardown),
        cmocka_unit_test_setup_teardown(daemon_sets_pick_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_pods_are_out_of_sight, setup, teardown),
        cmocka_unit_test_setup_teardown(tolerations_are_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
