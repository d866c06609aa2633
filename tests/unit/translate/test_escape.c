/* SPDX-License-Identifier: Apache-2.0 */
/* What must never be possible, item by item: refused at apply time, or, where it is let through on
 * purpose, absent from the host pod. In both cases what is emitted is an allowed host pod. Over
 * 1000 lines, for all items are shown on pods of one fixture. */

#include "allowed.h"
#include "test.h"

static const char CONFIG[] =
    "pools: [{name: h100, nodeSelector: {sublet.dev/pool: h100}, products: [H100],\n"
    "  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}], runtimeClass: "
    "nvidia,\n"
    "  priorityTiers: {high: gpu-high}}]\n"
    "bindings: [{pool: h100, guarantee: 8}]\n";

static int setup(void **state)
{
    *state = fixture_new(CONFIG);
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static const cJSON *pod_of(struct fixture *f, const char *spec)
{
    return doc(
        f, arena_cstr(f->a,
                      arena_printf(f->a, "{metadata: {name: p, namespace: ml, uid: u}, spec: {%s}}",
                                   spec)));
}

static int check(struct fixture *f, const char *spec)
{
    return translate_check_pod(f->a, &f->tenant, STR("ml"), pod_of(f, spec), &f->err);
}

/* The host pod of a spec that is let through; every emitted pod is held against the walker. */
static cJSON *emit(struct fixture *f, const cJSON *pod)
{
    struct pool_choice choice;
    cJSON *ret = NULL;

    assert_ok(pool_resolve(f->a, &f->config, STR("ml"), pod, NULL, &choice, &f->err));
    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod, NULL, &ret, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    return ret;
}

static cJSON *emit_spec(struct fixture *f, const char *spec)
{
    return json_get(emit(f, pod_of(f, spec)), "spec");
}

#define C "containers: [{name: c, image: i"
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

/* At apply time, and by translation. */
static void check_refused(struct fixture *f, const char *spec, const char *message)
{
    const char *text = arena_cstr(f->a, arena_printf(f->a, "pods \"p\" is forbidden: %s", message));
    struct pool_choice none = {0};
    int rc = check(f, spec);
    cJSON *ret;

    assert_true(rc && f->err.kind == &ERR_FORBIDDEN);
    assert_error(rc, text);
    assert_error(translate_pod(f->a, &f->tenant, &none, pod_of(f, spec), NULL, &ret, &f->err),
                 text);
}

static void refused(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"hostNetwork: true, hostPID: true, hostIPC: true, " C "}]",
         "violates policy.podSecurity \"baseline\": host namespaces (hostNetwork=true, "
         "hostPID=true, hostIPC=true)"},
        {C
         ", securityContext: {privileged: true}}, {name: d, securityContext: {privileged: true}}]",
         "violates policy.podSecurity \"baseline\": privileged (container \"c\", \"d\" must not "
         "set "
         "securityContext.privileged=true)"},
        {C ", securityContext: {capabilities: {add: [SYS_ADMIN, KILL, NET_RAW]}}}]",
         "violates policy.podSecurity \"baseline\": non-default capabilities (container \"c\" must "
         "not include "
         "\"SYS_ADMIN\", \"NET_RAW\" in securityContext.capabilities.add)"},
        {"volumes: [{name: h, hostPath: {path: /}}], " C "}]",
         "violates policy.podSecurity \"baseline\": hostPath volumes (volume \"h\")"},
        {C ", ports: [{containerPort: 1, hostPort: 80}]}]",
         "violates policy.podSecurity \"baseline\": hostPort (container \"c\" uses hostPort 80)"},
        {C ", livenessProbe: {httpGet: {host: 169.254.169.254}}, lifecycle: {preStop: {tcpSocket: "
           "{host: x}}}}]",
         "violates policy.podSecurity \"baseline\": probe or lifecycle host (container \"c\" uses "
         "probe or "
         "lifecycle host \"169.254.169.254\", \"x\")"},
        {"securityContext: {appArmorProfile: {type: Unconfined}}, " C "}]",
         "violates policy.podSecurity \"baseline\": forbidden AppArmor profile (pod must not set "
         "AppArmor "
         "profile type to \"Unconfined\")"},
        {"securityContext: {seccompProfile: {type: Unconfined}}, " C
         ", securityContext: {seccompProfile: {type: Localhost, localhostProfile: x}}}]",
         "violates policy.podSecurity \"baseline\": seccompProfile (pod and container \"c\" must "
         "not set "
         "securityContext.seccompProfile.type to \"Unconfined\", \"Localhost\")"},
        {C ", securityContext: {seLinuxOptions: {type: spc_t, user: u, role: r}}}]",
         "violates policy.podSecurity \"baseline\": seLinuxOptions (container \"c\" set forbidden "
         "securityContext.seLinuxOptions: type \"spc_t\", user may not be set, role may not be "
         "set)"},
        {C ", securityContext: {procMount: Unmasked}}]",
         "violates policy.podSecurity \"baseline\": procMount (container \"c\" must not set "
         "securityContext.procMount to \"Unmasked\")"},
        {"securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}, {name: net.ipv4.tcp_rmem, "
         "value: x}]}, " C "}]",
         "violates policy.podSecurity \"baseline\": forbidden sysctls (kernel.msgmax)"},
        {"securityContext: {windowsOptions: {hostProcess: true}}, " C "}]",
         "violates policy.podSecurity \"baseline\": hostProcess (pod must not set "
         "securityContext.windowsOptions.hostProcess=true)"},
        {C ", volumeMounts: [{name: a, mountPath: /a, mountPropagation: Bidirectional}]}]",
         "violates policy.podSecurity \"baseline\": mount propagation (container \"c\" must not "
         "set "
         "volumeMounts.mountPropagation to \"Bidirectional\")"},
        {"ephemeralContainers: [{name: debug, securityContext: {privileged: true}}], " C "}]",
         "violates policy.podSecurity \"baseline\": privileged (container \"debug\" must not set "
         "securityContext.privileged=true); kubectl debug --profile=baseline adds a container that "
         "complies"},
        {"volumes: [{name: vol, nfs: {server: s, path: /}}], " C "}]",
         "volume \"vol\": type nfs needs policy.podSecurity privileged"},
        {"volumes: [{name: vol, csi: {driver: d}}], " C "}]",
         "volume \"vol\": type csi needs policy.podSecurity privileged"},
        {"volumes: [{name: vol, emptyDir: {}, iscsi: {}}], " C "}]",
         "volume \"vol\": type iscsi is not supported"},
        {"volumes: [{name: vol, projected: {sources: [{clusterTrustBundle: {name: x}}]}}], " C "}]",
         "volume \"vol\": projected source clusterTrustBundle is not supported"},
        {"volumes: [{name: vol, projected: {sources: [{podCertificate: {}}]}}], " C "}]",
         "volume \"vol\": projected source podCertificate is not supported"},
        {"resourceClaims: [{name: g, resourceClaimName: other}], " C "}]",
         "spec.resourceClaims: resource claims need sync.toHost.resourceClaims"},
        {"resources: {claims: [{name: g}]}, " C "}]",
         "spec.resources.claims: claims are of containers"},
        {C ", resources: {claims: [{name: g}]}}]",
         "container \"c\": resource claims need sync.toHost.resourceClaims"},
        {"schedulingGroup: {podGroupName: theirs}, " C "}]",
         "spec.schedulingGroup: pod groups are not supported by this version"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        check_refused(*state, cases[i].spec, cases[i].message);
}

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

static void restricted(void **state)
{
    struct fixture *f = *state;

    use_config(f, "policy: {podSecurity: restricted}");
    assert_error(check(f, C ", securityContext: {runAsUser: 0}}]"),
                 "pods \"p\" is forbidden: violates policy.podSecurity \"restricted\": "
                 "allowPrivilegeEscalation != false (container \"c\" must set "
                 "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities "
                 "(container \"c\" must "
                 "set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true "
                 "(container \"c\" must set "
                 "securityContext.runAsNonRoot=true), runAsUser=0 (container \"c\" must not set "
                 "runAsUser=0), "
                 "seccompProfile (container \"c\" must set securityContext.seccompProfile.type to "
                 "\"RuntimeDefault\")");
    assert_error(
        check(
            f,
            "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, " C
            ", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: "
            "[CHOWN]}}}]"),
        "pods \"p\" is forbidden: violates policy.podSecurity \"restricted\": unrestricted "
        "capabilities "
        "(container \"c\" must not include \"CHOWN\" in securityContext.capabilities.add)");
    assert_ok(check(
        f, "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, " C
           ", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: "
           "[NET_BIND_SERVICE]}}}]"));
}

static void privileged_is_the_admins_word(void **state)
{
    struct fixture *f = *state;
    cJSON *spec;

    use_config(f, "policy: {podSecurity: privileged}");
    spec = emit_spec(
        f, "hostNetwork: true, hostPID: true, volumes: [{name: h, hostPath: {path: /dev}}], " C
           ", securityContext: {privileged: true}, ports: [{containerPort: 1, hostPort: 1}], "
           "volumeMounts: [{name: h, mountPath: /h, mountPropagation: Bidirectional}]}]");
    assert_true(json_true(json_get(spec, "hostNetwork")));
    assert_str(json_str_at(json_at(json_get(spec, "volumes"), 0), "hostPath.path"), "/dev");
    assert_true(json_true(
        json_path(json_at(json_get(spec, "containers"), 0), "securityContext.privileged")));
    /* Not even then. */
    assert_int_equal(check(f, "nodeName: node, " C "}]"), -1);
    err_clear(&f->err);
    assert_int_equal(check(f, "volumes: [{name: f, flexVolume: {driver: x}}], " C "}]"), -1);
    err_clear(&f->err);
}

/* Fields that are accepted, because they are the virtual cluster's own, and stay there. */
static void dropped(void **state)
{
    static const char *const gone[] = {
        "nodeName", "serviceAccountName", "serviceAccount",    "schedulerName", "schedulingGates",
        "priority", "priorityClassName",  "preemptionPolicy",  "subdomain",     "runtimeClassName",
        "overhead", "setHostnameAsFQDN",  "nominatedNodeName", "unknown",       "hostNetwork",
        "hostPID",
    };
    struct fixture *f = *state;
    cJSON *host = emit(
        f,
        doc(f, "{metadata: {name: p, namespace: ml, uid: u, resourceVersion: '5', generateName: g, "
               "finalizers: [x], ownerReferences: [{kind: Node}], deletionGracePeriodSeconds: 5},"
               "spec: {nodeName: node, serviceAccountName: admin, serviceAccount: admin, "
               "schedulerName: default-scheduler, schedulingGates: [{name: g}], priority: "
               "2000001000, priorityClassName: system-node-critical, preemptionPolicy: "
               "PreemptLowerPriority, subdomain: s, runtimeClassName: kata, overhead: {cpu: 1}, "
               "setHostnameAsFQDN: true, nominatedNodeName: node, unknown: {a: b}, hostNetwork: "
               "false, hostPID: 'true', containers: [{name: c, unknown: 1, resources: {claims: "
               "[], limits: {nvidia.com/gpu: 0}}}]}, status: {phase: Running}}"));
    cJSON *spec = json_get(host, "spec");

    for (size_t i = 0; i < COUNT(gone); i++) {
        if (json_get(spec, gone[i]))
            fail_msg("spec.%s went down", gone[i]);
    }
    assert_null(json_get(host, "status"));
    assert_int_equal(json_count(json_get(host, "metadata")), 4);
    assert_json(json_path(json_at(json_get(spec, "containers"), 0), "resources.limits"), "{}");
    assert_true(translate_pod_gated(pod_of(f, "schedulingGates: [{name: g}]")));
    assert_false(translate_pod_gated(host));
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

/* An image of another tenant's that is on the node already is not had without its secret. */
static void images_are_always_pulled(void **state)
{
    static const char pod[] = "initContainers: [{name: i, image: i}], volumes: [{name: v, image: "
                              "{reference: r, pullPolicy: "
                              "IfNotPresent}}], " C ", imagePullPolicy: IfNotPresent}]";
    static const char *const paths[] = {"initContainers", "containers"};
    struct fixture *f = *state;
    cJSON *spec = emit_spec(f, pod);

    assert_str(json_str_at(json_at(json_get(spec, "containers"), 0), "imagePullPolicy"),
               "IfNotPresent");
    use_config(f, "policy: {imagePullPolicy: always}");
    spec = emit_spec(f, pod);
    for (size_t i = 0; i < COUNT(paths); i++)
        assert_str(json_str_at(json_at(json_get(spec, paths[i]), 0), "imagePullPolicy"), "Always");
    assert_str(json_str_at(json_at(json_get(spec, "volumes"), 0), "image.pullPolicy"), "Always");
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

static struct str env_of(const cJSON *container, const char *name)
{
    json_each(env, json_get(container, "env"))
    {
        if (str_eqc(json_str(json_get(env, "name")), name))
            return json_str(json_get(env, "value"));
    }
    return STR("not set");
}

/* An image may request every GPU in its own ENV; envFrom comes before env. */
static void images_get_no_device(void **state)
{
    static const char *const variables[] = {"NVIDIA_VISIBLE_DEVICES",    "NVIDIA_IMEX_CHANNELS",
                                            "AMD_VISIBLE_DEVICES",       "HABANA_VISIBLE_DEVICES",
                                            "ASCEND_VISIBLE_DEVICES",    "MTHREADS_VISIBLE_DEVICES",
                                            "IX_VISIBLE_DEVICES",        "METAX_VISIBLE_DEVICES",
                                            "CAMBRICON_VISIBLE_DEVICES", "ENFLAME_VISIBLE_DEVICES"};
    struct fixture *f = *state;
    cJSON *spec =
        emit_spec(f, "initContainers: [{name: a}, {name: s, restartPolicy: Always}], " C
                     ", env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}], "
                     "envFrom: [{configMapRef: {name: m}}], resources: {limits: {cpu: 1}}}]");

    for (size_t i = 0; i < COUNT(variables); i++) {
        json_each(container, json_get(spec, "initContainers"))
        {
            assert_str(env_of(container, variables[i]), "void");
        }
        assert_str(env_of(json_first(json_get(spec, "containers")), variables[i]),
                   i ? "void" : "none");
    }
    assert_json(json_get(json_at(json_get(spec, "containers"), 0), "resources"),
                "{limits: {cpu: 1}}");
}

#define MIXED                                                                                      \
    "{pools: [{name: h100, nodeSelector: {p: h100}, resources: {nvidia.com/gpu: {gpuEq: 1}, "      \
    "rdma/hca: {gpuEq: 0, perPod: 1}, nvidia.com/hostdev: {gpuEq: 0, perPod: 1}, x.example/npu: "  \
    "{gpuEq: 1, variables: [X_VISIBLE_DEVICES, NVIDIA_IMEX_CHANNELS]}}}, {name: amd, "             \
    "nodeSelector: {p: amd}, resources: {amd.com/gpu: {gpuEq: 1}}}], bindings: [{pool: h100, "     \
    "guarantee: 8}, {pool: amd, guarantee: 8}]}"

/* Each container by what it is itself given; a device that is no GPU lifts nothing. */
static void only_gpus_lift_their_vendors_variables(void **state)
{
    static const struct {
        const char *limits, *nvidia, *imex, *amd, *more;
    } cases[] = {
        {"rdma/hca: 1", "void", "void", "void", "void"},
        {"nvidia.com/hostdev: 1", "void", "void", "void", "void"},
        {"nvidia.com/gpu: 1", "not set", "void", "void", "void"},
        {"nvidia.com/gpu: 0, rdma/hca: 1", "void", "void", "void", "void"},
        {"x.example/npu: 1", "void", "not set", "void", "not set"},
        {"amd.com/gpu: 1", "void", "void", "not set", "void"},
        {"cpu: 1", "void", "void", "void", "void"},
    };
    struct fixture *f = *state;

    use_config(f, MIXED);
    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *spec = emit_spec(
            f, arena_cstr(f->a, arena_printf(f->a,
                                             "initContainers: [{name: i}], " C
                                             ", resources: {limits: {%s}}}, {name: beside}]",
                                             cases[i].limits)));
        const cJSON *asks = json_at(json_get(spec, "containers"), 0),
                    *beside = json_at(json_get(spec, "containers"), 1),
                    *init = json_first(json_get(spec, "initContainers"));

        assert_str(env_of(asks, "NVIDIA_VISIBLE_DEVICES"), cases[i].nvidia);
        assert_str(env_of(asks, "NVIDIA_IMEX_CHANNELS"), cases[i].imex);
        assert_str(env_of(asks, "AMD_VISIBLE_DEVICES"), cases[i].amd);
        assert_str(env_of(asks, "X_VISIBLE_DEVICES"), cases[i].more);
        assert_str(env_of(beside, "NVIDIA_VISIBLE_DEVICES"), "void");
        assert_str(env_of(init, "X_VISIBLE_DEVICES"), "void");
    }
}

/* A debug container of a pod with GPUs gets none, whatever it requests; and a variable that
 * is left out leaves no gap for the image's. */
static void debug_containers_get_no_device(void **state)
{
    struct fixture *f = *state;
    const cJSON *pod =
        doc(f, "{metadata: {name: p, namespace: ml, uid: u, resourceVersion: '1'}, spec: "
               "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}], "
               "ephemeralContainers: [{name: debug, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, "
               "value: all}], resources: {limits: {nvidia.com/gpu: 1}}}]}}");
    struct pool_choice choice = {.binding = &f->config.bindings[0]};
    const cJSON *debug;
    cJSON *patch = NULL;

    assert_ok(translate_ephemeral(f->a, &f->tenant, &choice, pod, doc(f, "{}"), &patch, &f->err));
    debug = json_first(json_path(patch, "spec.ephemeralContainers"));
    assert_str(env_of(debug, "NVIDIA_VISIBLE_DEVICES"), "void");
    assert_str(env_of(debug, "AMD_VISIBLE_DEVICES"), "void");
    assert_json(json_path(debug, "resources.limits"), "{}");
}

static void data_that_would_become_variables(void **state)
{
    struct fixture *f = *state;
    cJSON *map = translate_config_map(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: m, namespace: ml}, data: {NVIDIA_VISIBLE_DEVICES: all, "
               "NVIDIA_DRIVER_CAPABILITIES: compute, LD_PRELOAD: x, other: x, AMD_VISIBLE_DEVICES: "
               "all, HABANA_VISIBLE_DEVICES: void, MTHREADS_VISIBLE_DEVICES: '0', "
               "DOCKER_RESOURCE_X: '1'}, "
               "binaryData: {NVIDIA_IMEX_CHANNELS: MA==}, immutable: true}"));
    cJSON *secret = translate_secret(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: m, namespace: ml}, type: "
               "kubernetes.io/service-account-token, data: {NVIDIA_VISIBLE_DEVICES: "
               "YWxs, NVIDIA_DRIVER_CAPABILITIES: Y29tcHV0ZQ==, token: eA==}}"));

    assert_json(json_get(map, "data"),
                "{NVIDIA_DRIVER_CAPABILITIES: compute, LD_PRELOAD: x, other: x, "
                "HABANA_VISIBLE_DEVICES: void}");
    assert_json(json_get(map, "binaryData"), "{}");
    assert_null(json_get(map, "immutable"));
    assert_json(json_get(secret, "data"),
                "{NVIDIA_DRIVER_CAPABILITIES: Y29tcHV0ZQ==, token: eA==}");
    assert_str(json_str(json_get(secret, "type")), "Opaque");
    use_config(f, "{pools: [{name: t, nodeSelector: {p: t}, mode: mps, resources: {nvidia.com/gpu: "
                  "{gpuEq: '1/4'}}}], "
                  "bindings: [{pool: t, "
                  "burst: 1}]}");
    map = translate_config_map(
        f->a, &f->tenant, doc(f, "{metadata: {name: m, namespace: ml}, data: {LD_PRELOAD: x}}"));
    assert_json(json_get(map, "data"), "{}");
}

static void on_warning(void *ctx, struct str text)
{
    struct buf *b = ctx;

    buf_add(b, text);
    buf_char(b, '\n');
}

static void what_is_left_out_is_said(void **state)
{
    struct fixture *f = *state;
    struct buf b = BUF_INIT(0);

    translate_data_warnings(f->a, &f->tenant,
                            doc(f, "{kind: ConfigMap, data: {NVIDIA_VISIBLE_DEVICES: all, a: b, "
                                   "AMD_VISIBLE_DEVICES: void}}"),
                            on_warning, &b);
    translate_data_warnings(f->a, &f->tenant,
                            doc(f, "{kind: Secret, data: {NVIDIA_VISIBLE_DEVICES: dm9pZA==, "
                                   "NVIDIA_GDS: eA==}, stringData: {NVIDIA_MOFED: enabled}}"),
                            on_warning, &b);
    assert_str(
        buf_str(&b),
        "data[NVIDIA_VISIBLE_DEVICES] is left out of what pods get: devices are given by the "
        "scheduler, not by variables\n"
        "data[NVIDIA_GDS] is left out of what pods get: devices are given by the "
        "scheduler, not by variables\n"
        "stringData[NVIDIA_MOFED] is left out of what pods get: devices are given by the "
        "scheduler, not by variables\n");
    buf_fini(&b);
}

static void sizes_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct buf b = BUF_INIT(0);

    buf_addc(&b, "containers: [");
    for (int i = 0; i < 300; i++)
        buf_printf(&b, "%s{name: c%d}", i ? ", " : "", i);
    buf_addc(&b, "]");
    assert_error(check(f, arena_cstr(f->a, buf_str(&b))),
                 "pods \"p\" is forbidden: more than 256 containers");
    buf_clear(&b);
    buf_addc(&b,
             C "}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [");
    for (int i = 0; i < 100; i++)
        buf_printf(&b, "%s{topologyKey: t%d}", i ? ", " : "", i);
    buf_addc(&b, "]}}");
    assert_error(check(f, arena_cstr(f->a, buf_str(&b))),
                 "pods \"p\" is forbidden: spec.affinity.podAffinity: more than 64 terms");
    buf_fini(&b);
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

/* ---- Services and claims ---- */

/* They only narrow what a balancer lets through; each is a rule on every node. */
static void source_ranges(void **state)
{
    struct fixture *f = *state;
    struct buf many = BUF_INIT(0);
    cJSON *host = NULL, *none = NULL, *patch;
    const char *format = "{metadata: {name: s, namespace: ml}, spec: {type: LoadBalancer, ports: "
                         "[{port: 80}], loadBalancerSourceRanges: [%s]}}";

    for (unsigned i = 0; i < 64; i++)
        buf_printf(&many, "%s10.%u.0.0/16", i ? ", " : "", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_ok(translate_service(
        f->a, &f->tenant, doc(f, arena_printf(f->a, format, arena_cstr(f->a, buf_str(&many))).p),
        &host, &f->err));
    assert_allowed(allowed_service(f->a, &f->tenant, host));
    assert_int_equal(json_count(json_path(host, "spec.loadBalancerSourceRanges")), 64);
    buf_addc(&many, ", 192.0.2.0/24");
    assert_error(
        translate_service(f->a, &f->tenant,
                          doc(f, arena_printf(f->a, format, arena_cstr(f->a, buf_str(&many))).p),
                          &none, &f->err),
        "services \"s\" is forbidden: spec.loadBalancerSourceRanges: at most 64 ranges go "
        "down");
    assert_ok(translate_service(f->a, &f->tenant, doc(f, arena_printf(f->a, format, "").p), &none,
                                &f->err));
#pragma GCC diagnostic pop
    json_remove(json_get(none, "spec"), "loadBalancerSourceRanges");
    patch = translate_service_update(f->a, host, none);
    assert_json(patch, "{spec: {loadBalancerSourceRanges: null}}");
    buf_fini(&many);
}

static void services(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"externalIPs: [10.0.0.1]",
         "spec.externalIPs: external IPs are not allowed: they take over other tenants' traffic"},
        {"loadBalancerIP: 1.2.3.4", "spec.loadBalancerIP: the host chooses the address"},
        {"clusterIP: 10.96.0.1", "spec.clusterIP: picking a cluster IP is not allowed; leave it "
                                 "out and the host allocates one"},
        {"ports: [{port: 80, nodePort: 30000}]",
         "spec.ports.nodePort: picking a node port is not allowed; leave it out and the host "
         "allocates one"},
        {"healthCheckNodePort: 30001", "spec.healthCheckNodePort: picking a node port is not "
                                       "allowed; leave it out and the host allocates one"},
    };
    struct fixture *f = *state;
    cJSON *host;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *service =
            doc(f, arena_cstr(f->a,
                              arena_printf(f->a, "{metadata: {name: s, namespace: ml}, spec: {%s}}",
                                           cases[i].spec)));

        assert_error(translate_check_service(f->a, &f->tenant, service, &f->err),
                     arena_cstr(f->a, arena_printf(f->a, "services \"s\" is forbidden: %s",
                                                   cases[i].message)));
        assert_int_equal(translate_service(f->a, &f->tenant, service, &host, &f->err), -1);
        err_clear(&f->err);
    }
    /* What the host gave, in a stored Service, is neither refused nor sent. */
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml, uid: u, resourceVersion: '1', annotations: "
               "{service.beta.kubernetes.io/aws-load-balancer-internal: x}}, spec: {type: "
               "NodePort, clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1], ports: [{port: 80, "
               "nodePort: 30000}], selector: {}, externalName: x, topologyKeys: [a]}}"),
        &host, &f->err));
    assert_allowed(allowed_service(f->a, &f->tenant, host));
    assert_json(json_get(host, "spec"), "{type: NodePort, ports: [{port: 80}]}");
    /* A balancer that is named can only be the tenant's own. */
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml}, spec: {type: LoadBalancer, loadBalancerClass: "
               "x/y, allocateLoadBalancerNodePorts: true, externalTrafficPolicy: Local, ports: "
               "[{port: 80}], loadBalancerSourceRanges: [10.0.0.0/8]}}"),
        &host, &f->err));
    assert_allowed(allowed_service(f->a, &f->tenant, host));
    assert_json(json_get(host, "spec"),
                "{type: NodePort, ports: [{port: 80}], externalTrafficPolicy: Local}");
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml}, spec: {type: LoadBalancer, loadBalancerClass: "
               "x/y, allocateLoadBalancerNodePorts: false, externalTrafficPolicy: Cluster, ports: "
               "[{port: 80}]}}"),
        &host, &f->err));
    assert_json(json_get(host, "spec"), "{type: ClusterIP, ports: [{port: 80}]}");
    assert_ok(translate_service(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: s, namespace: ml}, spec: {type: ExternalName, externalName: "
               "metadata.internal}}"),
        &host, &f->err));
    assert_null(host);
}

static void claims(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"volumeName: pv-of-others", "spec.volumeName: picking a volume is not allowed"},
        {"selector: {}",
         "spec.selector: selecting volumes is not allowed: they could be another tenant's"},
        {"dataSource: {kind: VolumeSnapshot, apiGroup: snapshot.storage.k8s.io, name: s}",
         "dataSource: only a PersistentVolumeClaim may be a source"},
        {"dataSourceRef: {kind: PersistentVolumeClaim, name: s, namespace: other}",
         "dataSourceRef: a source in another namespace is not allowed"},
        {"volumeAttributesClassName: fast",
         "spec.volumeAttributesClassName: is not supported by this version"},
    };
    struct fixture *f = *state;
    cJSON *host;

    use_config(f, "policy: {storageClasses: [standard, fast]}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *claim =
            doc(f, arena_cstr(f->a,
                              arena_printf(f->a, "{metadata: {name: c, namespace: ml}, spec: {%s}}",
                                           cases[i].spec)));

        assert_error(
            translate_check_pvc(f->a, &f->tenant, claim, &f->err),
            arena_cstr(f->a, arena_printf(f->a, "persistentvolumeclaims \"c\" is forbidden: %s",
                                          cases[i].message)));
        assert_int_equal(translate_pvc(f->a, &f->tenant, claim, NULL, &host, &f->err), -1);
        err_clear(&f->err);
    }
    assert_ok(translate_pvc(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: c, namespace: ml, annotations: "
               "{volume.kubernetes.io/selected-node: node}}, spec: {accessModes: [ReadWriteOnce], "
               "resources: {requests: {storage: 1Gi}}, dataSource: {kind: PersistentVolumeClaim, "
               "name: other}}}"),
        NULL, &host, &f->err));
    assert_str(json_str_at(host, "spec.storageClassName"), "standard");
    assert_has(json_str_at(host, "spec.dataSource.name"), "other-");
    assert_null(
        json_get(json_path(host, "metadata.annotations"), "volume.kubernetes.io/selected-node"));
}

static struct str class_sent(struct fixture *f, const char *claim)
{
    cJSON *host;

    assert_ok(translate_pvc(f->a, &f->tenant, doc(f, claim), NULL, &host, &f->err));
    return json_str_at(host, "spec.storageClassName");
}

static void class_refused(struct fixture *f, const char *claim, const char *why)
{
    cJSON *host;
    const char *message =
        arena_cstr(f->a, arena_printf(f->a,
                                      "persistentvolumeclaims \"c\" is forbidden: "
                                      "spec.storageClassName: %s",
                                      why));

    assert_error(translate_check_pvc_class(&f->tenant, doc(f, claim), &f->err), message);
    assert_error(translate_pvc(f->a, &f->tenant, doc(f, claim), NULL, &host, &f->err), message);
}

#define CLAIM(spec) "{metadata: {name: c, namespace: ml}, spec: {" spec "}}"
#define OLD_CLAIM(class)                                                                           \
    "{metadata: {name: c, namespace: ml, annotations: "                                            \
    "{volume.beta.kubernetes.io/storage-class: " class "}}}"
#define BY_HAND "volumes without a class are bound by hand, which is not allowed"

/* No claim goes down without a class: it would bind to what an admin has lying about. */
static void classes_go_down_by_name(void **state)
{
    struct fixture *f = *state;
    cJSON *host;

    class_refused(f, CLAIM("storageClassName: ''"), BY_HAND);
    assert_error(translate_pvc(f->a, &f->tenant, doc(f, CLAIM("")), NULL, &host, &f->err),
                 "the storage class of the host cluster is not known yet");
    f->tenant.host_class_known = true;
    class_refused(f, CLAIM(""), "no storage class is offered to this virtual cluster");
    class_refused(f, CLAIM("storageClassName: gold"),
                  "no storage class is offered to this virtual cluster");

    f->tenant.host_class = STR("standard");
    assert_str(class_sent(f, CLAIM("")), "standard");
    assert_str(class_sent(f, CLAIM("storageClassName: standard")), "standard");
    assert_str(class_sent(f, OLD_CLAIM("standard")), "standard");
    class_refused(f, CLAIM("storageClassName: gold"),
                  "\"gold\" is not offered to this virtual cluster");
    class_refused(f, OLD_CLAIM("gold"), "\"gold\" is not offered to this virtual cluster");
    class_refused(f, OLD_CLAIM("''"), BY_HAND);

    use_config(f, "policy: {storageClasses: [fast, gold]}");
    assert_str(class_sent(f, CLAIM("")), "fast");
    assert_str(class_sent(f, CLAIM("storageClassName: gold")), "gold");
    class_refused(f, CLAIM("storageClassName: standard"),
                  "\"standard\" is not offered to this virtual cluster");
}

/* The tenant's own accounts say nothing to the host; the admin may name one for all its pods. */
static void the_account_on_the_host_is_the_admins(void **state)
{
    static const char spec[] =
        "serviceAccountName: mine, automountServiceAccountToken: true, " C "}]";
    struct fixture *f = *state;
    struct pool_choice choice = {0};
    const cJSON *pod = pod_of(f, spec);
    cJSON *host = NULL;

    assert_null(json_get(emit_spec(f, spec), "serviceAccountName"));
    f->config.pod_service_account = STR("research-pods");
    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod, NULL, &host, &f->err));
    assert_str(json_str_at(host, "spec.serviceAccountName"), "research-pods");
    assert_false(json_true(json_path(host, "spec.automountServiceAccountToken")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_are_the_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(restricted, setup, teardown),
        cmocka_unit_test_setup_teardown(privileged_is_the_admins_word, setup, teardown),
        cmocka_unit_test_setup_teardown(dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(the_fence_is_in_every_term, setup, teardown),
        cmocka_unit_test_setup_teardown(the_fence_needs_no_pools, setup, teardown),
        cmocka_unit_test_setup_teardown(node_terms_times_avoided_nodes_are_bounded, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(unfenced_nodes_are_avoided_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(whole_devices_are_not_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(images_are_always_pulled, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_no_host_node_go_nowhere, setup, teardown),
        cmocka_unit_test_setup_teardown(daemon_sets_pick_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_pods_are_out_of_sight, setup, teardown),
        cmocka_unit_test_setup_teardown(tolerations_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(images_get_no_device, setup, teardown),
        cmocka_unit_test_setup_teardown(only_gpus_lift_their_vendors_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(debug_containers_get_no_device, setup, teardown),
        cmocka_unit_test_setup_teardown(data_that_would_become_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_left_out_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(the_account_on_the_host_is_the_admins, setup, teardown),
        cmocka_unit_test_setup_teardown(source_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(services, setup, teardown),
        cmocka_unit_test_setup_teardown(claims, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_go_down_by_name, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
