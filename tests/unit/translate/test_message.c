/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as Kubernetes 1.36 and common policy engines write them, and what the tenant reads: its
 * own names, what it can do something about, and nothing of whose the host is. POD stands for the
 * host's name of pod web-0 of namespace ml. */

#include "test.h"

static int setup(void **state)
{
    struct fixture *f = fixture_new("");

    f->tenant.nodes_shown = 4;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

/* POD and MAP written out. */
static struct str host_text(struct fixture *f, const char *text)
{
    struct str rest = str_c(text), ret = STR("");
    char pod[64];

    translate_name(&f->tenant, STR("ml"), STR("web-0"), pod);
    for (;;) {
        size_t at = 0;

        while (at < rest.n && !str_has_prefix(str_from(rest, at), STR("POD")))
            at++;
        ret = arena_printf(f->a, "%.*s%.*s%s", STR_F(ret), STR_F(str_sub(rest, 0, at)),
                           at < rest.n ? pod : "");
        if (at == rest.n)
            return ret;
        rest = str_from(rest, at + 3);
    }
}

static struct str up(struct fixture *f, const char *text)
{
    struct str host = host_text(f, "POD");

    return translate_text_up(f->a, &f->tenant, host_text(f, text), host, STR("ml"), STR("web-0"));
}

#define NOWHERE "no node of the host cluster can take the pod"
#define FENCED  "node(s) didn't match Pod's node affinity/selector or had untolerated taints"

/* Events and conditions: scheduler, kubelet, controllers, autoscaler. */
static void host_components(void **state)
{
    static const struct {
        const char *host, *tenant;
    } cases[] = {
        /* kube-scheduler, FitError.Error() */
        {"0/5 nodes are available: 1 Insufficient nvidia.com/gpu, 4 node(s) didn't match Pod's "
         "node affinity/selector. preemption: 0/5 nodes are available: 1 No preemption victims "
         "found for incoming pod, 4 Preemption is not helpful for scheduling.",
         "0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3 " FENCED "."},
        {"0/120 nodes are available: 110 node(s) had untolerated taint {sublet.dev/pool: team-d}, "
         "2 Insufficient cpu, 8 node(s) were unschedulable. preemption: 0/120 nodes are available: "
         "120 Preemption is not helpful for scheduling.",
         "0/4 nodes are available: 2 Insufficient cpu, 2 " FENCED "."},
        {"0/9 nodes are available: 9 node(s) had untolerated taint(s).",
         "0/4 nodes are available: 4 " FENCED "."},
        {"0/90 nodes are available: 30 Insufficient memory, 60 Insufficient cpu. preemption: not "
         "eligible due to preemptionPolicy=Never.",
         "0/4 nodes are available: 4 Insufficient memory, 4 Insufficient cpu."},
        {"0/5 nodes are available: 2 node(s) didn't match pod anti-affinity rules, 3 node(s) "
         "didn't match pod topology spread constraints (missing required label).",
         "0/4 nodes are available: 2 node(s) didn't match pod anti-affinity rules, 3 node(s) "
         "didn't "
         "match pod topology spread constraints (missing required label)."},
        {"0/7 nodes are available: 7 node(s) didn't like the look of machine gpu-secret-3.",
         "0/4 nodes are available: 4 " FENCED "."},
        {"0/5 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: "
         "0/5 nodes are available: 5 Preemption is not helpful for scheduling.",
         "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
        {"0/5 nodes are available: persistentvolumeclaim \"POD\" not found.",
         "0/4 nodes are available: persistentvolumeclaim \"web-0\" not found."},
        /* other forms, other schedulers */
        {"0/5 nodes are unavailable: 5 Insufficient nvidia.com/gpu.", NOWHERE},
        {"running PreFilter: 0/5 nodes are available: 1 Insufficient cpu.", NOWHERE},
        {"0/5 nodes are available: some are full", NOWHERE},
        {"0/5 nodes are available: 1 Insufficient cpu", NOWHERE},
        {"0/5 nodes are available: 1 Insufficient cpu of 12 nodes.",
         "0/4 nodes are available: 4 " FENCED "."},
        {"0/9999999999999999999999 nodes are available: 1 Insufficient cpu.", NOWHERE},
        {"3/12 nodes failed", NOWHERE},
        {"no nodes available to schedule pods", "no nodes available to schedule pods"},
        {"waiting for minCount pods from a gang to appear in scheduling queue",
         "waiting for the other pods of its gang"},
        {"waiting for pods's pod group \"g-1\" to appear in scheduling queue",
         "waiting for the other pods of its gang"},
        {"Preempted by team-d/train-7 on node gpu-secret-3",
         "Preempted by a pod of higher priority"},
        {"Preempted by pod 0c7d1f7e-93a1-4d68-8b0f-6cc1f3d1a001 on node gpu-secret-3",
         "Preempted by a pod of higher priority"},
        /* cluster-autoscaler */
        {"pod triggered scale-up: [{https://www.googleapis.com/compute/v1/projects/acme/zones/x/"
         "instanceGroups/gke-gpu 0->1 (max: 3)}]",
         "pod triggered scale-up"},
        {"pod didn't trigger scale-up: 2 max node group size reached, 1 Insufficient cpu",
         "pod didn't trigger scale-up"},
        /* kubelet */
        {"Back-off restarting failed container main in pod POD_team-research(0c7d1f7e-93a1-4d68-"
         "8b0f-6cc1f3d1a001)",
         "Back-off restarting failed container main in pod web-0_ml((hidden))"},
        {"MountVolume.SetUp failed for volume \"pvc-0c7d1f7e-93a1-4d68-8b0f-6cc1f3d1a001\" : rpc "
         "error: mkdir /var/lib/kubelet/pods/1c7d1f7e-93a1-4d68-8b0f-6cc1f3d1a001/volumes: busy",
         "MountVolume.SetUp failed for volume \"pvc-0c7d1f7e-93a1-4d68-8b0f-6cc1f3d1a001\" : rpc "
         "error: mkdir /var/lib/kubelet/pods/(hidden)/volumes: busy"},
        {"Failed to pull image \"registry.example/x:1\": dial tcp: lookup registry.example on "
         "10.3.0.2:53: no such host",
         "Failed to pull image \"registry.example/x:1\": dial tcp: lookup registry.example on "
         "(hidden): no such host"},
        {"Readiness probe failed: Get \"http://10.244.1.7:8080/healthz\": read tcp "
         "192.168.7.3:51234->10.244.1.7:8080: read: connection reset by peer",
         "Readiness probe failed: Get \"http://10.244.1.7:8080/healthz\": read tcp "
         "(hidden)->10.244.1.7:8080: read: connection reset by peer"},
        {"Readiness probe failed: dial tcp 10.244.1.7:8080: connect: connection refused",
         "Readiness probe failed: dial tcp 10.244.1.7:8080: connect: connection refused"},
        {"node \"x\" cannot get secrets: User \"system:node:gpu-secret-3\" cannot get resource",
         "node \"x\" cannot get secrets: User \"(hidden)\" cannot get resource"},
        {"Node is not ready", "Node is not ready"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str(up(f, cases[i].host), cases[i].tenant);
}

/* Where nodes cannot be read, none may be shown: then there is nothing to count. */
static void without_nodes_nothing_is_counted(void **state)
{
    struct fixture *f = *state;

    f->tenant.nodes_shown = 0;
    assert_str(up(f, "0/5 nodes are available: 1 Insufficient nvidia.com/gpu, 4 node(s) were "
                     "unschedulable."),
               NOWHERE ": Insufficient nvidia.com/gpu.");
    assert_str(up(f, "0/5 nodes are available: 5 node(s) were unschedulable."),
               NOWHERE ": " FENCED ".");
}

/* What kube-apiserver answers to the syncer. */
static void refusals(void **state)
{
    static const char RIGHTS[] = "the host cluster does not let Sublet do this";
    static const char WEBHOOK[] = "an admission webhook of the host cluster does not answer";
    static const struct {
        const struct err_kind *kind;
        const char *host, *tenant;
    } cases[] = {
        {&ERR_FORBIDDEN,
         "pods is forbidden: User \"system:serviceaccount:team-d:sublet\" cannot create resource "
         "\"pods\" in API group \"\" in the namespace \"team-research\"",
         RIGHTS},
        {&ERR_FORBIDDEN,
         "persistentvolumeclaims \"POD\" is forbidden: User "
         "\"system:serviceaccount:team-d:sublet\" "
         "cannot patch resource \"persistentvolumeclaims\" in API group \"\" in the namespace "
         "\"team-research\": RBAC: role.rbac.authorization.k8s.io \"x\" not found",
         RIGHTS},
        {&ERR_FORBIDDEN, "forbidden: User \"admin@acme.example\" cannot get path \"/x\"", RIGHTS},
        {&ERR_UNAUTHORIZED, "Unauthorized", RIGHTS},
        {&ERR_INTERNAL,
         "Internal error occurred: failed calling webhook \"validate.kyverno.svc-fail\": failed to "
         "call webhook: Post \"https://kyverno-svc.kyverno.svc:443/validate/fail?timeout=10s\": "
         "dial tcp 10.96.3.4:443: connect: connection refused",
         WEBHOOK},
        {&ERR_INTERNAL, "the host answered 502: <html>proxy.acme.internal</html>",
         "the host cluster's answer is no Status"},
        /* words that are wanted */
        {&ERR_FORBIDDEN,
         "pods \"POD\" is forbidden: exceeded quota: gpu, requested: requests.nvidia.com/gpu=8, "
         "used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=4",
         "pods \"web-0\" is forbidden: exceeded quota: gpu, requested: requests.nvidia.com/gpu=8, "
         "used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=4"},
        {&ERR_FORBIDDEN,
         "pods \"POD\" is forbidden: violates PodSecurity \"restricted:latest\": "
         "allowPrivilegeEscalation != false (container \"c\" must set "
         "securityContext.allowPrivilegeEscalation=false)",
         "pods \"web-0\" is forbidden: violates PodSecurity \"restricted:latest\": "
         "allowPrivilegeEscalation != false (container \"c\" must set "
         "securityContext.allowPrivilegeEscalation=false)"},
        {&ERR_FORBIDDEN,
         "pods \"POD\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'all' "
         "denied request: images need a digest",
         "pods \"web-0\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'all' "
         "denied request: images need a digest"},
        {&ERR_FORBIDDEN,
         "admission webhook \"validation.gatekeeper.sh\" denied the request: [team-labels] "
         "Pod/team-research/POD by system:serviceaccount:team-d:sublet lacks label team",
         "admission webhook \"validation.gatekeeper.sh\" denied the request: [team-labels] "
         "Pod/ml/web-0 by (hidden) lacks label team"},
        {&ERR_BAD_REQUEST,
         "admission webhook \"validate.kyverno.svc-fail\" denied the request: resource "
         "Pod/team-research/POD was blocked due to the following policies: see "
         "https://policies.example/latest",
         "admission webhook \"validate.kyverno.svc-fail\" denied the request: resource "
         "Pod/ml/web-0 was blocked due to the following policies: see "
         "https://policies.example/latest"},
        {&ERR_FORBIDDEN,
         "pods \"POD\" is forbidden: unable to create new content in namespace team-research "
         "because it is being terminated",
         "pods \"web-0\" is forbidden: unable to create new content in namespace ml because it is "
         "being terminated"},
        {&ERR_NOT_FOUND, "namespaces \"team-research\" not found", "namespaces \"ml\" not found"},
        {&ERR_INVALID, "Pod \"POD\" is invalid: spec.containers[0].image: Required value",
         "Pod \"web-0\" is invalid: spec.containers[0].image: Required value"},
        {&ERR_CONFLICT,
         "Operation cannot be fulfilled on pods \"POD\": the UID in the precondition "
         "(0c7d1f7e-93a1-4d68-8b0f-6cc1f3d1a001) does not match the UID in record "
         "(1c7d1f7e-93a1-4d68-8b0f-6cc1f3d1a001)",
         "Operation cannot be fulfilled on pods \"web-0\": the UID in the precondition ((hidden)) "
         "does not match the UID in record ((hidden))"},
        {&ERR_INTERNAL,
         "error dialing backend: dial tcp 192.168.7.3:10250: connect: connection refused",
         "error dialing backend: dial tcp (hidden): connect: connection refused"},
        {&ERR_INTERNAL,
         "Get \"https://gpu-secret-3:10250/containerLogs/team-research/POD/c\": context deadline "
         "exceeded",
         "Get (hidden): context deadline exceeded"},
    };
    struct fixture *f = *state;
    struct str host = host_text(f, "POD");

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err;

        err_init(&err, f->a);
        err_set(&err, cases[i].kind, "%.*s", STR_F(host_text(f, cases[i].host)));
        assert_str(translate_refusal_up(f->a, &f->tenant, &err, host, STR("ml"), STR("web-0")),
                   cases[i].tenant);
        assert_int_equal(translate_refusal_is_of_rights(&err), cases[i].tenant == RIGHTS);
    }
}

/* The end of a program's log is its own. */
static void programs_speak_for_themselves(void **state)
{
    static const char words[] =
        "User \\\"system:serviceaccount:ml:op\\\" cannot list; 0/5 nodes are available; "
        "0c7d1f7e-93a1-4d68-8b0f-6cc1f3d1a001";
    struct fixture *f = *state;
    const cJSON *v = doc(f, "{metadata: {name: web-0, namespace: ml}, spec: {containers: [{name: "
                            "c}]}}");
    char host[512];
    cJSON *got;

    for (int program = 0; program < 2; program++) {
        snprintf(host, sizeof host,
                 "{metadata: {name: x}, status: {containerStatuses: [{name: c, state: {terminated: "
                 "{reason: %s, message: \"%s\"}}}]}}",
                 program ? "Error" : "ContainerCannotRun", words);
        got = translate_pod_status_up(f->a, &f->tenant, doc(f, host), v, true);
        got = json_path(json_at(json_get(got, "containerStatuses"), 0), "state.terminated");
        assert_int_equal(str_contains(json_str(json_get(got, "message")), STR("0/5 nodes")),
                         program);
    }
}

/* Who reports an event on the host is a machine, or a pod, of the admin's. */
static void reporters(void **state)
{
    struct fixture *f = *state;
    const char *event = "{metadata: {name: POD.1}, involvedObject: {kind: Pod, namespace: "
                        "team-research, name: POD}, %s}";
    static const struct {
        const char *host, *source, *component, *instance;
    } cases[] = {
        {"source: {component: kubelet, host: cpu-1}, reportingComponent: kubelet, "
         "reportingInstance: cpu-1",
         "{component: kubelet, host: cpu-1}", "kubelet", "cpu-1"},
        {"source: {component: default-scheduler, host: master-secret}, reportingComponent: "
         "default-scheduler, reportingInstance: default-scheduler-master-secret",
         "{component: default-scheduler}", "default-scheduler", "default-scheduler"},
        {"source: {component: ebs.csi.aws.com_ebs-csi-controller-7d9f_1f0c}, reportingComponent: "
         "ebs.csi.aws.com_ebs-csi-controller-7d9f_1f0c, reportingInstance: ''",
         "{component: ebs.csi.aws.com}", "ebs.csi.aws.com", "ebs.csi.aws.com"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        cJSON *got;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, event, cases[i].host);
#pragma GCC diagnostic pop
        got = translate_event_up(f->a, &f->tenant, doc(f, arena_cstr(f->a, host_text(f, text))),
                                 STR("ml"), STR("web-0"), STR("u"));
        assert_non_null(got);
        assert_json(json_get(got, "source"), cases[i].source);
        assert_str(json_str(json_get(got, "reportingComponent")), cases[i].component);
        assert_str(json_str(json_get(got, "reportingInstance")), cases[i].instance);
    }
}

/* A resource has the name that the tenant wrote, whole or not at all. */
static void renamed_resources(void **state)
{
    struct fixture *f = *state;

    use_config(f, "pools: [{name: s, nodeSelector: {p: s}, mode: time-slicing, resources: "
                  "{nvidia.com/gpu: {gpuEq: '1/4'}}, rename: {nvidia.com/gpu: "
                  "nvidia.com/gpu.shared}}]\nbindings: [{pool: s, guarantee: '1'}]");
    assert_str(up(f, "exceeded quota: q, requested: requests.nvidia.com/gpu.shared=1, used: "
                     "requests.nvidia.com/gpu.shared=4"),
               "exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: "
               "requests.nvidia.com/gpu=4");
    assert_str(up(f, "Node didn't have enough resource: nvidia.com/gpu.shared."),
               "Node didn't have enough resource: nvidia.com/gpu.");
    assert_str(
        up(f, "of x.nvidia.com/gpu.shared, nvidia.com/gpu.shared-x, nvidia.com/gpu.shared.x"),
        "of x.nvidia.com/gpu.shared, nvidia.com/gpu.shared-x, nvidia.com/gpu.shared.x");
    use_config(f,
               "pools: [{name: s, nodeSelector: {p: s}, resources: {nvidia.com/gpu: {gpuEq: "
               "'1'}}, rename: {nvidia.com/gpu: x.example/gpu}}, {name: t, nodeSelector: {p: t}, "
               "resources: {x.example/gpu: {gpuEq: '1'}}}]\n"
               "bindings: [{pool: s, guarantee: '1'}, {pool: t, guarantee: '1'}]");
    assert_str(up(f, "no x.example/gpu left"), "no x.example/gpu left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(host_components, setup, teardown),
        cmocka_unit_test_setup_teardown(without_nodes_nothing_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(programs_speak_for_themselves, setup, teardown),
        cmocka_unit_test_setup_teardown(reporters, setup, teardown),
        cmocka_unit_test_setup_teardown(renamed_resources, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
