/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod must never do, item by item: refused at apply time, or, where it is let through on
 * purpose, absent from the host pod. In both cases what is emitted is an allowed host pod. */
#include "escape.h"

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
        cmocka_unit_test_setup_teardown(restricted, setup, teardown),
        cmocka_unit_test_setup_teardown(privileged_is_the_admins_word, setup, teardown),
        cmocka_unit_test_setup_teardown(dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(images_are_always_pulled, setup, teardown),
        cmocka_unit_test_setup_teardown(images_get_no_device, setup, teardown),
        cmocka_unit_test_setup_teardown(only_gpus_lift_their_vendors_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(debug_containers_get_no_device, setup, teardown),
        cmocka_unit_test_setup_teardown(data_that_would_become_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_left_out_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(the_account_on_the_host_is_the_admins, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
