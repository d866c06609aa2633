/* SPDX-License-Identifier: Apache-2.0 */
/* The way back: status, events, messages, and what a Service or claim got from the host. */

#include "test.h"

static int setup(void **state)
{
    *state =
        fixture_new("{pools: [{name: t4, nodeSelector: {p: t4}, mode: time-slicing, resources: "
                    "{nvidia.com/gpu: {gpuEq: "
                    "'1/4'}}, rename: "
                    "{nvidia.com/gpu: nvidia.com/gpu.shared}}], bindings: [{pool: t4, burst: 1}]}");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static const char *host_name(struct fixture *f, const char *name)
{
    char out[64];

    translate_name(&f->tenant, STR("ml"), str_c(name), out);
    return arena_cstr(f->a, str_c(out));
}

/* A host pod of this status. */
static cJSON *host_pod(struct fixture *f, const char *status)
{
    return doc(
        f, arena_cstr(f->a,
                      arena_printf(
                          f->a, "{metadata: {name: %s, labels: {sublet.dev/pool: t4}}, status: %s}",
                          host_name(f, "web-0"), status)));
}

static const char VPOD[] = "metadata: {name: web-0, namespace: ml, generation: 3}, spec: "
                           "{readinessGates: [{conditionType: "
                           "gate.example/a}], initContainers: [{name: init}], containers: [{name: "
                           "main}], ephemeralContainers: "
                           "[{name: debug}]}";

static cJSON *vpod(struct fixture *f, const char *status)
{
    return doc(f, arena_cstr(f->a, arena_printf(f->a, "{%s, status: %s}", VPOD, status)));
}

static cJSON *up(struct fixture *f, const char *host, const char *virtual_status)
{
    return translate_pod_status_up(f->a, &f->tenant, host_pod(f, host), vpod(f, virtual_status),
                                   true);
}

static void fields_by_list(void **state)
{
    struct fixture *f = *state;

    assert_json(
        up(f,
           "{phase: Running, hostIP: 10.0.0.1, podIP: 10.1.0.1, podIPs: [{ip: 10.1.0.1, future: "
           "x}], "
           "startTime: t, qosClass: Burstable, observedGeneration: 77, nominatedNodeName: x, "
           "resourceClaimStatuses: [{name: a}], extendedResourceClaimStatus: {resourceClaimName: "
           "b}}",
           "{qosClass: BestEffort, phase: Pending}"),
        "{phase: Running, hostIP: 10.0.0.1, podIP: 10.1.0.1, podIPs: [{ip: 10.1.0.1, future: x}], "
        "startTime: "
        "t, qosClass: BestEffort, observedGeneration: 3}");
}

static void injected_containers_are_hidden(void **state)
{
    struct fixture *f = *state;

    assert_json(
        up(f,
           "{containerStatuses: [{name: istio-proxy, ready: false}, {name: main, ready: true, "
           "future: 1, "
           "allocatedResources: {nvidia.com/gpu.shared: '1'}, allocatedResourcesStatus: [{name: "
           "nvidia.com/gpu, resources: [{resourceID: GPU-uuid}]}], resources: {limits: "
           "{nvidia.com/gpu.shared: '1', cpu: '1'}}}], initContainerStatuses: [{name: istio-init}, "
           "{name: "
           "init}], ephemeralContainerStatuses: [{name: debug}, {name: theirs}]}",
           "{}"),
        "{containerStatuses: [{name: main, ready: true, future: 1, allocatedResources: "
        "{nvidia.com/gpu: "
        "'1'}, resources: {limits: {nvidia.com/gpu: '1', cpu: '1'}}}], initContainerStatuses: "
        "[{name: "
        "init}], ephemeralContainerStatuses: [{name: debug}]}");
}

static void conditions(void **state)
{
    struct fixture *f = *state;

    assert_json(up(f,
                   "{conditions: [{type: Ready, status: 'True', observedGeneration: 9}, {type: "
                   "gate.example/a, "
                   "status: 'False'}, {type: DisruptionTarget, status: 'True', reason: host}]}",
                   "{conditions: [{type: Ready, status: 'False'}, {type: gate.example/a, status: "
                   "'True'}, {type: "
                   "own.example/b, status: 'True'}, {type: DisruptionTarget, reason: virtual}, "
                   "{type: Stale, status: "
                   "'True'}]}"),
                "{conditions: [{type: Ready, status: 'True', observedGeneration: 3}, {type: "
                "DisruptionTarget, status: "
                "'True', reason: host}, {type: gate.example/a, status: 'True'}, {type: "
                "own.example/b, status: "
                "'True'}]}");
}

/* A host pod of generation 5, as its kubelet and a virtual status of generation 2 leave it. */
static cJSON *observed(struct fixture *f, const char *host_status, bool applied)
{
    cJSON *host = host_pod(f, host_status);

    json_set_i64(f->a, json_get(host, "metadata"), "generation", 5);
    return translate_pod_status_up(f->a, &f->tenant, host,
                                   vpod(f, "{observedGeneration: 2, conditions: [{type: Ready, "
                                           "status: 'True', observedGeneration: 1}]}"),
                                   applied);
}

static void generations(void **state)
{
    struct fixture *f = *state;
    static const char caught_up[] =
        "{phase: Running, observedGeneration: 5, conditions: [{type: Ready, status: 'True', "
        "observedGeneration: 4}, {type: PodResizePending, status: 'True', observedGeneration: 5}]}";
    static const char behind[] = "{phase: Running, observedGeneration: 4, conditions: [{type: "
                                 "PodResizePending, status: 'True', observedGeneration: 4}]}";

    assert_json(observed(f, caught_up, true),
                "{phase: Running, conditions: [{type: Ready, status: 'True', observedGeneration: "
                "1}, {type: PodResizePending, status: 'True', observedGeneration: 3}], "
                "observedGeneration: 3}");
    /* The kubelet has seen all of the host pod, which lacks the last change. */
    assert_json(observed(f, caught_up, false),
                "{phase: Running, conditions: [{type: Ready, status: 'True', observedGeneration: "
                "1}, {type: PodResizePending, status: 'True', observedGeneration: 2}], "
                "observedGeneration: 2}");
    assert_json(observed(f, behind, true),
                "{phase: Running, conditions: [{type: PodResizePending, status: 'True', "
                "observedGeneration: 2}], observedGeneration: 2}");
    /* A kubelet that reports no generation. */
    assert_json(observed(f, "{phase: Running}", true), "{phase: Running, observedGeneration: 3}");
    assert_json(observed(f, "{phase: Running}", false), "{phase: Running, observedGeneration: 2}");
    assert_json(observed(f, "{phase: Pending}", true), "{phase: Pending, observedGeneration: 2}");
}

static void nothing_to_say(void **state)
{
    struct fixture *f = *state;

    assert_null(up(f, "{phase: Running}", "{observedGeneration: 3, phase: Running}"));
    assert_null(up(f, "{}", "{}"));
    assert_null(translate_pod_status_up(f->a, &f->tenant, NULL, vpod(f, "{}"), true));
}

static void gates_go_down(void **state)
{
    struct fixture *f = *state;
    cJSON *v = vpod(
        f,
        "{conditions: [{type: gate.example/a, status: 'True', reason: r, extra: x}, {type: Ready, "
        "status: 'True'}]}");

    assert_json(translate_pod_gates_down(f->a, host_pod(f, "{}"), v),
                "{status: {conditions: [{type: gate.example/a, status: 'True', reason: r}]}}");
    assert_null(translate_pod_gates_down(
        f->a, host_pod(f, "{conditions: [{type: gate.example/a, status: 'True'}]}"), v));
    /* A gate of the host's stays the host's. */
    assert_null(translate_pod_gates_down(
        f->a, host_pod(f, "{conditions: [{type: gate.example/a, status: 'True'}]}"),
        vpod(f, "{conditions: [{type: Ready, status: 'True'}]}")));
}

/* A stored pod may name them: nothing lets its tenant set them on the host. */
static void reserved_gates_never_go_down(void **state)
{
    static const char *const types[] = {"Ready",        "ContainersReady",  "Initialized",
                                        "PodScheduled", "DisruptionTarget", "PodResizePending"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(types); i++) {
        cJSON *v = json_new_object(f->a), *gate, *one;

        gate = json_append(json_set(f->a, json_ensure_object(f->a, v, "spec"), "readinessGates",
                                    json_new_array(f->a)),
                           json_new_object(f->a));
        json_set_str(f->a, gate, "conditionType", str_c(types[i]));
        one = json_append(json_set(f->a, json_ensure_object(f->a, v, "status"), "conditions",
                                   json_new_array(f->a)),
                          json_new_object(f->a));
        json_set_str(f->a, one, "type", str_c(types[i]));
        json_set_str(f->a, one, "status", STR("True"));
        assert_null(translate_pod_gates_down(f->a, host_pod(f, "{}"), v));
        assert_int_equal(translate_check_pod(f->a, &f->tenant, STR("ml"), v, &f->err), -1);
        assert_has(f->err.message, "spec.readinessGates");
        err_clear(&f->err);
        json_set_str(f->a, json_ensure_object(f->a, v, "metadata"), "resourceVersion", STR("1"));
        assert_ok(translate_check_pod(f->a, &f->tenant, STR("ml"), v, &f->err));
    }
}

static struct str text(struct fixture *f, const char *host_text)
{
    return translate_text_up(f->a, &f->tenant, str_c(host_text), str_c(host_name(f, "web-0")),
                             STR("ml"), STR("web-0"));
}

static void messages(void **state)
{
    struct fixture *f = *state;
    const char *pod = host_name(f, "web-0"), *map = host_name(f, "settings");

    assert_str(
        text(f, arena_cstr(
                    f->a,
                    arena_printf(f->a, "back-off restarting container=main pod=%s_team-research(u)",
                                 pod))),
        "back-off restarting container=main pod=web-0_ml(u)");
    assert_str(
        text(f, arena_cstr(f->a,
                           arena_printf(f->a,
                                        "configmap \"%s\" not found in namespace \"team-research\"",
                                        map))),
        "configmap \"settings\" not found in namespace \"ml\"");
    assert_str(text(f, arena_cstr(f->a, arena_printf(f->a, "team-research/%s: %s.", map, map))),
               "ml/settings: settings.");
    /* A word that only looks like ours, the namespace as a common word, the taints of others. */
    assert_str(text(f, "the team-research group, settings-aaaaaaaaaaaaaaaa"),
               "the team-research group, settings-aaaaaaaaaaaaaaaa");
    assert_str(text(f, "0/3 nodes are available: 1 node(s) had untolerated taint {sublet.dev/pool: "
                       "other-team}, 2 x."),
               "no node of the host cluster can take the pod: node(s) didn't match Pod's node "
               "affinity/selector or had untolerated taints.");
    assert_str(text(f, "ünïcode {"), "ünïcode {");
    assert_str(text(f, "untolerated taint {open"), "untolerated taint");
    assert_str(text(f, ""), "");
}

static void long_names_are_known_by_the_pod(void **state)
{
    struct fixture *f = *state;
    struct str name = STR("averyveryverylongpodname-that-is-longer-than-fortysix-characters-0");
    char host[64];

    translate_name(&f->tenant, STR("ml"), name, host);
    assert_str(translate_text_up(f->a, &f->tenant, str_c(host), str_c(host), STR("ml"), name),
               name.p);
}

/* A name with a dot cannot be read back from its host name; the pod that refers to it knows it. */
static void names_a_pod_refers_to(void **state)
{
    struct fixture *f = *state;
    cJSON *host = host_pod(f, "{}"), *v = vpod(f, "{}"), *got;
    const char *text = "configmap \"%s\" not found";

    json_set(f->a, json_get(v, "spec"), "volumes",
             doc(f, "[{configMap: {name: kube-root-ca.crt}}]"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    json_set_str(f->a, json_get(host, "status"), "message",
                 arena_printf(f->a, text, host_name(f, "kube-root-ca.crt")));
#pragma GCC diagnostic pop
    got = translate_pod_status_up(f->a, &f->tenant, host, v, true);
    assert_str(json_str(json_get(got, "message")), "configmap \"kube-root-ca.crt\" not found");
}

static void events(void **state)
{
    struct fixture *f = *state;
    const char *pod = host_name(f, "web-0");
    const char *format =
        "{metadata: {name: %s.17ab, namespace: team-research, uid: h, labels: {a: b}}, "
        "involvedObject: "
        "{kind: %s, namespace: %s, name: %s, uid: hu, fieldPath: 'spec.containers{main}', "
        "resourceVersion: '7'}, related: {kind: Node, name: x}, reason: Failed, message: 'pod %s', "
        "type: "
        "Warning, count: 2, source: {component: kubelet, host: node-1}, firstTimestamp: t}";
#define EVENT(kind, ns, name)                                                                      \
    translate_event_up(                                                                            \
        f->a, &f->tenant,                                                                          \
        doc(f, arena_cstr(f->a, arena_printf(f->a, format, pod, kind, ns, name, pod))), STR("ml"), \
        STR("web-0"), STR("vu"))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_json(EVENT("Pod", "team-research", pod),
                "{apiVersion: v1, kind: Event, metadata: {name: web-0.17ab, namespace: ml}, "
                "involvedObject: {kind: Pod, "
                "fieldPath: 'spec.containers{main}', namespace: ml, name: web-0, uid: vu}, "
                "message: pod web-0, reason: "
                "Failed, type: Warning, count: 2, firstTimestamp: t, source: {component: kubelet, "
                "host: node-1}}");
    assert_non_null(EVENT("ServiceAccount", "team-research", pod));
    assert_null(EVENT("Node", "team-research", pod));
    assert_null(EVENT("Pod", "other", pod));
    assert_null(EVENT("Pod", "team-research", "web-0"));
#pragma GCC diagnostic pop
}

static void services(void **state)
{
    struct fixture *f = *state;
    cJSON *host = doc(f, "{spec: {type: NodePort, clusterIP: 10.96.5.5, clusterIPs: [10.96.5.5], "
                         "ipFamilies: [IPv4], "
                         "ipFamilyPolicy: SingleStack, externalTrafficPolicy: Cluster, ports: "
                         "[{port: 80, protocol: TCP, "
                         "targetPort: 80, nodePort: 31000}, {port: 80, protocol: UDP, targetPort: "
                         "80, nodePort: 31001}]}, "
                         "status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}");
    cJSON *v = doc(f, "{spec: {type: NodePort, selector: {a: b}, ports: [{port: 80, protocol: UDP, "
                      "name: u}, {port: 80, "
                      "name: t}, {port: 9, nodePort: 5}]}}");
    cJSON *spec = translate_service_spec_up(f->a, host, v);

    assert_json(spec, "{type: NodePort, selector: {a: b}, ports: [{port: 80, protocol: UDP, name: "
                      "u, nodePort: 31001}, "
                      "{port: 80, name: t, nodePort: 31000}, {port: 9}], clusterIP: 10.96.5.5, "
                      "clusterIPs: [10.96.5.5], "
                      "ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}");
    json_set(f->a, v, "spec", spec);
    assert_null(translate_service_spec_up(f->a, host, v));
    assert_json(translate_service_status_up(f->a, host, v),
                "{loadBalancer: {ingress: [{ip: 1.2.3.4}]}}");
    /* The status is written by the tenant's own balancer. */
    v = doc(f, "{spec: {type: LoadBalancer, loadBalancerClass: x/y, ports: [{port: 80}]}, status: "
               "{loadBalancer: {ingress: [{ip: 9.9.9.9}]}}}");
    assert_null(translate_service_status_up(f->a, host, v));
}

static void claims(void **state)
{
    struct fixture *f = *state;
    cJSON *host = doc(f, "{spec: {volumeName: pv-1, storageClassName: gold, volumeMode: "
                         "Filesystem}, status: {phase: Bound, "
                         "capacity: {storage: 1Gi}, secret: x, conditions: [{type: "
                         "ControllerResizeError, message: \"resize claim team-research/data: read "
                         "tcp 10.0.0.7:4312->10.0.0.9:443: reset\"}]}}");
    cJSON *v = doc(f, "{metadata: {name: data, namespace: ml}, spec: {accessModes: "
                      "[ReadWriteOnce]}, status: {phase: Pending}}");

    assert_json(translate_pvc_spec_up(f->a, &f->tenant, host, v),
                "{accessModes: [ReadWriteOnce], volumeName: pv-1, storageClassName: gold, "
                "volumeMode: Filesystem}");
    assert_json(
        translate_pvc_status_up(f->a, &f->tenant, host, v),
        "{phase: Bound, capacity: {storage: 1Gi}, conditions: [{type: ControllerResizeError, "
        "message: \"resize claim ml/data: read tcp (hidden)->10.0.0.9:443: reset\"}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_by_list, setup, teardown),
        cmocka_unit_test_setup_teardown(injected_containers_are_hidden, setup, teardown),
        cmocka_unit_test_setup_teardown(conditions, setup, teardown),
        cmocka_unit_test_setup_teardown(generations, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_to_say, setup, teardown),
        cmocka_unit_test_setup_teardown(gates_go_down, setup, teardown),
        cmocka_unit_test_setup_teardown(reserved_gates_never_go_down, setup, teardown),
        cmocka_unit_test_setup_teardown(messages, setup, teardown),
        cmocka_unit_test_setup_teardown(long_names_are_known_by_the_pod, setup, teardown),
        cmocka_unit_test_setup_teardown(names_a_pod_refers_to, setup, teardown),
        cmocka_unit_test_setup_teardown(events, setup, teardown),
        cmocka_unit_test_setup_teardown(services, setup, teardown),
        cmocka_unit_test_setup_teardown(claims, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
