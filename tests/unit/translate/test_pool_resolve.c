/* SPDX-License-Identifier: Apache-2.0 */
/* To which pool a pod goes, how much it takes, and the words of every refusal. */

#include "test.h"

static const char CONFIG[] =
    "pools:\n"
    "- {name: h100, nodeSelector: {sublet.dev/pool: h100}, products: [NVIDIA-H100-80GB-HBM3],\n"
    "   tolerations: [{key: sublet.dev/pool, operator: Equal, value: h100, effect: NoSchedule}],\n"
    "   resources: {nvidia.com/gpu: {gpuEq: '1'}, rdma/hca: {gpuEq: '0', perPod: 1}}, caps: "
    "{perPodGPU: 4, "
    "perContainerGPU: 2}}\n"
    "- {name: h100-mig, nodeSelector: {sublet.dev/pool: mig}, mode: mig, profiles: {1g.10gb: "
    "{gpuEq: '1/7'}, 2g.20gb: {gpuEq: '2/7'}},\n"
    "   scheduler: {name: gang}}\n"
    "- {name: slices, nodeSelector: {gpus: sliced}, mode: time-slicing, products: [Tesla-T4], "
    "resources: {nvidia.com/gpu: "
    "{gpuEq: '1/4'}}}\n"
    "- {name: unbound, nodeSelector: {gpus: amd}, tolerations: [{key: gpus, value: amd}], "
    "resources: {amd.com/gpu: {gpuEq: '1'}}}\n"
    "bindings:\n"
    "- {pool: h100, guarantee: '4', burst: '8', default: true}\n"
    "- {pool: h100-mig, guarantee: '1'}\n"
    "- {pool: slices, burst: '1'}\n";

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

static int resolve(struct fixture *f, const char *pod, const char *ns_labels,
                   struct pool_choice *ret)
{
    return pool_resolve(f->a, &f->config, STR("ml"), doc(f, pod),
                        ns_labels ? doc(f, ns_labels) : NULL, ret, &f->err);
}

/* A pod of one container with these limits, and more of its spec. */
static const char *pod(struct fixture *f, const char *limits, const char *more)
{
    return arena_cstr(f->a,
                      arena_printf(f->a,
                                   "{metadata: {name: p}, spec: {containers: [{name: c, resources: "
                                   "{limits: {%s}}}]%s%s}}",
                                   limits, more[0] ? ", " : "", more));
}

#define assert_pool(yaml, ns, want) check_pool(f, (yaml), (ns), (want), __FILE__, __LINE__)
static void check_pool(struct fixture *f, const char *yaml, const char *ns, const char *want,
                       const char *file, int line)
{
    struct pool_choice choice;

    check_ok(&f->err, resolve(f, yaml, ns, &choice), file, line);
    check_str(choice.binding ? choice.binding->pool->name : STR("none"), want, file, line);
}

static void resolution(void **state)
{
    struct fixture *f = *state;
    const char *gpu = pod(f, "nvidia.com/gpu: 1", "");

    assert_pool(pod(f, "cpu: 1", ""), NULL, "none");
    assert_pool(pod(f, "nvidia.com/gpu: 0", ""), NULL, "none");
    assert_pool(gpu, NULL, "h100"); /* two serve it: the default */
    assert_pool(gpu, "{sublet.dev/gpu-pool: slices}", "slices");
    assert_pool(pod(f, "nvidia.com/mig-1g.10gb: 1", ""), NULL, "h100-mig");
    assert_pool(pod(f, "nvidia.com/gpu: 1", "nodeSelector: {nvidia.com/gpu.product: Tesla-T4}"),
                NULL, "slices");
    assert_pool(
        pod(f, "nvidia.com/gpu: 1", "nodeSelector: {nvidia.com/gpu.product: Tesla-T4-SHARED}"),
        NULL, "slices");
    assert_pool("{metadata: {name: p, labels: {sublet.dev/gpu-pool: slices}}, spec: {containers: "
                "[{resources: "
                "{limits: {nvidia.com/gpu: '1'}}}]}}",
                "{sublet.dev/gpu-pool: h100}", "slices");
}

static void wishes_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    assert_error(resolve(f, pod(f, "nvidia.com/mig-3g.40gb: 1", ""), NULL, &c),
                 "pods \"p\" is forbidden: nvidia.com/mig-3g.40gb is not offered by any pool of "
                 "this virtual "
                 "cluster: offered nvidia.com/gpu, rdma/hca, nvidia.com/mig-1g.10gb, "
                 "nvidia.com/mig-2g.20gb");
    assert_error(
        resolve(f, pod(f, "amd.com/gpu: 1", ""), NULL, &c),
        "pods \"p\" is forbidden: amd.com/gpu is not offered by any pool of this virtual cluster: "
        "offered nvidia.com/gpu, rdma/hca, nvidia.com/mig-1g.10gb, nvidia.com/mig-2g.20gb");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 1", ""), "{sublet.dev/gpu-pool: h100-mig}", &c),
                 "pods \"p\" is forbidden: nvidia.com/gpu is not offered by pool \"h100-mig\": "
                 "offered 1g.10gb, "
                 "2g.20gb");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 1", ""), "{sublet.dev/gpu-pool: unbound}", &c),
                 "pods \"p\" is forbidden: pool \"unbound\" is not bound to this virtual cluster: "
                 "bound h100, "
                 "h100-mig, slices");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1", ""), NULL, &c),
                 "pods \"p\" is forbidden: nvidia.com/gpu and nvidia.com/mig-1g.10gb are not "
                 "offered together "
                 "by any pool of this virtual cluster");
    use_config(
        f, "{pools: [{name: a, nodeSelector: {p: a}}, {name: b, nodeSelector: {p: b}}], bindings: "
           "[{pool: a, burst: 1}, {pool: b, burst: 1}]}");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 1", ""), NULL, &c),
                 "pods \"p\" is forbidden: several pools offer nvidia.com/gpu: set label "
                 "sublet.dev/gpu-pool to "
                 "one of a, b");
    use_config(f, "");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 1", ""), NULL, &c),
                 "pods \"p\" is forbidden: nvidia.com/gpu is not offered by any pool of this "
                 "virtual cluster: "
                 "offered nothing");
}

/* Every name with a domain is a device to us: there are many side doors. */
static void side_doors(void **state)
{
    static const char *const names[] = {"deviceclass.resource.kubernetes.io/gpu.nvidia.com",
                                        "amd.com/gpu", "nvidia.com/gpu.shared",
                                        "kubernetes.io/batteries", "smarter-devices/kvm"};
    struct fixture *f = *state;
    struct pool_choice c;

    for (size_t i = 0; i < COUNT(names); i++) {
        const char *one = arena_cstr(f->a, arena_printf(f->a, "%s: 1", names[i]));

        assert_int_equal(resolve(f, pod(f, one, ""), NULL, &c), -1);
        assert_has(f->err.message, "is not offered by any pool of this virtual cluster");
        assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
        assert_str(f->err.name, "p");
        assert_str(f->err.resource, "pods");
        err_clear(&f->err);
    }
    assert_error(resolve(f, pod(f, "cpu: 1", "resources: {limits: {nvidia.com/gpu: 8}}"), NULL, &c),
                 "pods \"p\" is forbidden: nvidia.com/gpu must be asked for by a container or init "
                 "container");
    assert_error(resolve(f,
                         pod(f, "cpu: 1",
                             "ephemeralContainers: [{resources: {limits: {nvidia.com/gpu: 1}}}]"),
                         NULL, &c),
                 "pods \"p\" is forbidden: nvidia.com/gpu must be asked for by a container or init "
                 "container");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 500m", ""), NULL, &c),
                 "pods \"p\" is forbidden: nvidia.com/gpu must be a whole number");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: -1", ""), NULL, &c),
                 "pods \"p\" is forbidden: nvidia.com/gpu must be a whole number");
}

static void where_contradictions(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    assert_error(
        resolve(f, pod(f, "nvidia.com/gpu: 1", "nodeSelector: {nvidia.com/gpu.product: A100}"),
                NULL, &c),
        "pods \"p\" is forbidden: nodeSelector nvidia.com/gpu.product=A100 contradicts pool "
        "\"h100\": "
        "allowed [NVIDIA-H100-80GB-HBM3]");
    assert_error(
        resolve(f, pod(f, "nvidia.com/gpu: 1", "nodeSelector: {sublet.dev/pool: other}"), NULL, &c),
        "pods \"p\" is forbidden: nodeSelector sublet.dev/pool=other contradicts pool \"h100\": "
        "allowed "
        "[h100]");
    assert_error(
        resolve(
            f,
            pod(f, "nvidia.com/gpu: 1",
                "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                "{nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.product, operator: "
                "In, values: [A100]}]}]}}}"),
            NULL, &c),
        "pods \"p\" is forbidden: gpu product \"A100\" is not offered by pool \"h100\": offered "
        "NVIDIA-H100-80GB-HBM3");
    assert_error(
        resolve(f,
                pod(f, "nvidia.com/gpu: 1",
                    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                    "{nodeSelectorTerms: [{matchExpressions: [{key: sublet.dev/pool, operator: "
                    "NotIn, values: [h100]}]}]}}}"),
                NULL, &c),
        "pods \"p\" is forbidden: nodeAffinity sublet.dev/pool NotIn [h100] contradicts pool "
        "\"h100\"");
    /* One of the ORed terms can be met. */
    assert_ok(resolve(
        f,
        pod(f, "nvidia.com/gpu: 1",
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.product, operator: "
            "In, values: [A100]}]}, {matchExpressions: [{key: zone, operator: Exists}]}]}}}"),
        NULL, &c));
}

static void count_warning(void *ctx, struct str text)
{
    struct fixture *f = ctx;

    f->warnings = arena_printf(f->a, "%.*s%s%.*s", STR_F(f->warnings), f->warnings.n ? "; " : "",
                               STR_F(text));
}

/* What the pod's author is warned of; fails when the pod is refused. */
static struct str warned(struct fixture *f, const char *yaml)
{
    struct pool_choice c;

    f->warnings = STR("");
    assert_ok(resolve(f, yaml, NULL, &c));
    pool_warnings(f->a, &f->config, &c, doc(f, yaml), count_warning, f);
    return f->warnings;
}

static const char *tolerating(struct fixture *f, const char *limits, const char *tolerations)
{
    return pod(f, limits, arena_cstr(f->a, arena_printf(f->a, "tolerations: [%s]", tolerations)));
}

static void tolerations_of_others_are_refused(void **state)
{
    static const struct {
        const char *limits, *toleration, *text;
    } cases[] = {
        {"cpu: 1", "{key: sublet.dev/pool, value: h100}", "sublet.dev/pool=h100"},
        {"cpu: 1", "{key: sublet.dev/pool, operator: Exists}", "sublet.dev/pool"},
        {"cpu: 1", "{key: sublet.dev/else, operator: Exists, effect: NoExecute}",
         "sublet.dev/else:NoExecute"},
        {"cpu: 1", "{key: gpus, value: amd}", "gpus=amd"}, /* of a pool that is not even bound */
        {"cpu: 1", "{key: node-role.kubernetes.io/control-plane, operator: Exists}",
         "node-role.kubernetes.io/control-plane"},
        {"cpu: 1", "{key: node-role.kubernetes.io/master, effect: NoSchedule}",
         "node-role.kubernetes.io/master:NoSchedule"},
        {"nvidia.com/gpu: 1", "{key: sublet.dev/pool, value: other}", "sublet.dev/pool=other"},
        {"nvidia.com/gpu: 1", "{key: sublet.dev/pool, operator: Exists}", "sublet.dev/pool"},
        {"nvidia.com/gpu: 1", "{key: gpus, operator: Exists}", "gpus"},
    };
    struct fixture *f = *state;
    struct pool_choice c;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(
            resolve(f, tolerating(f, cases[i].limits, cases[i].toleration), NULL, &c),
            arena_cstr(f->a, arena_printf(f->a,
                                          "pods \"p\" is forbidden: toleration [%s] is not "
                                          "allowed; tenant may tolerate only: "
                                          "node.kubernetes.io/not-ready, "
                                          "node.kubernetes.io/unreachable%s",
                                          cases[i].text,
                                          cases[i].limits[0] == 'n' ? ", sublet.dev/pool" : "")));
}

static void tolerations_nobody_grants_are_dropped(void **state)
{
    static const char *const tolerations[] = {
        "{operator: Exists}", "{operator: Exists, effect: NoExecute}",
        "{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}",
        "{key: dedicated, value: db}", "{key: node-role.kubernetes.io/edge, operator: Exists}"};
    struct fixture *f = *state;
    struct pool_choice c;

    for (size_t i = 0; i < COUNT(tolerations); i++)
        assert_has(warned(f, tolerating(f, "cpu: 1", tolerations[i])), "has no effect");
    assert_str(warned(f, tolerating(f, "cpu: 1",
                                    "{key: node.kubernetes.io/not-ready}, {key: dedicated, value: "
                                    "db, effect: NoSchedule}, {operator: Exists}")),
               "spec.tolerations[1]: [dedicated=db:NoSchedule] has no effect: this virtual cluster "
               "grants only node.kubernetes.io/not-ready, node.kubernetes.io/unreachable; "
               "spec.tolerations[2]: [Exists, all keys] has no effect: this virtual cluster grants "
               "only node.kubernetes.io/not-ready, node.kubernetes.io/unreachable");
    assert_str(warned(f, tolerating(f, "nvidia.com/gpu: 1",
                                    "{key: sublet.dev/pool, value: h100}, {key: nvidia.com/gpu, "
                                    "operator: Exists}, {key: node.kubernetes.io/not-ready, "
                                    "operator: Exists}, {key: node.kubernetes.io/disk-pressure, "
                                    "operator: Exists, effect: NoSchedule}")),
               "");
    use_config(f, "policy: {tolerations: refuse}");
    for (size_t i = 0; i < COUNT(tolerations); i++) {
        assert_int_equal(resolve(f, tolerating(f, "cpu: 1", tolerations[i]), NULL, &c), -1);
        assert_has(f->err.message, "is not allowed; tenant may tolerate only: ");
        err_clear(&f->err);
    }
}

static const cJSON *tolerations_of(struct fixture *f, const char *container)
{
    struct str yaml = arena_printf(f->a,
                                   "{metadata: {name: p, namespace: ml, uid: u}, spec: "
                                   "{containers: [{name: c, image: i%s}]}}",
                                   container);
    struct pool_choice c;
    cJSON *host = NULL;

    assert_ok(resolve(f, yaml.p, NULL, &c));
    assert_ok(translate_pod(f->a, &f->tenant, &c, doc(f, yaml.p), NULL, &host, &f->err));
    return json_path(host, "spec.tolerations");
}

/* sync.toHost.pods.enforceTolerations: with a pool and without one. */
static void tolerations_of_every_pod(void **state)
{
    static const char taints[] =
        "{metadata: {name: n}, spec: {taints: [{key: dedicated, value: %s, effect: NoSchedule}, "
        "{key: site, value: x, effect: NoExecute}]}}";
    struct fixture *f = *state;
    const struct config_to_host *every;
    const struct pool_choice none = {0};

    use_config(f,
               "pools: [{name: h100, nodeSelector: {sublet.dev/pool: h100}, tolerations: [{key: "
               "sublet.dev/pool, operator: Equal, value: h100, effect: NoSchedule}]}]\n"
               "bindings: [{pool: h100, guarantee: 8}]\n"
               "sync: {toHost: {pods: {enforceTolerations: ['dedicated=ml:NoSchedule', site]}}}\n");
    assert_json(tolerations_of(f, ""),
                "[{key: dedicated, operator: Equal, value: ml, effect: NoSchedule}, {key: site, "
                "operator: Exists}]");
    assert_json(tolerations_of(f, ", resources: {limits: {nvidia.com/gpu: 1}}"),
                "[{key: sublet.dev/pool, operator: Equal, value: h100, effect: NoSchedule}, {key: "
                "dedicated, operator: Equal, value: ml, effect: NoSchedule}, {key: site, operator: "
                "Exists}]");
    /* A tenant may say so itself, and not more. */
    assert_str(warned(f, tolerating(f, "cpu: 1",
                                    "{key: dedicated, value: ml, effect: NoSchedule}, {key: site, "
                                    "operator: Exists}")),
               "");
    assert_has(
        warned(f, tolerating(f, "cpu: 1", "{key: dedicated, value: db, effect: NoSchedule}")),
        "has no effect: this virtual cluster grants only node.kubernetes.io/not-ready, "
        "node.kubernetes.io/unreachable, dedicated, site");
    assert_has(warned(f, tolerating(f, "cpu: 1", "{key: dedicated, operator: Exists}")),
               "has no effect");

    /* Nodes that have them are open, and show none of them. */
    assert_true(
        pool_admits_node(f->a, &f->config, &none, doc(f, arena_printf(f->a, taints, "ml").p)));
    assert_false(
        pool_admits_node(f->a, &f->config, &none, doc(f, arena_printf(f->a, taints, "db").p)));
    assert_null(
        json_path(translate_node_up(f->a, &f->tenant, doc(f, arena_printf(f->a, taints, "ml").p)),
                  "spec.taints"));
    assert_json(
        json_path(translate_node_up(f->a, &f->tenant, doc(f, arena_printf(f->a, taints, "db").p)),
                  "spec.taints"),
        "[{key: dedicated, value: db, effect: NoSchedule}]");

    /* A pool that came since has the taint for its own: no other pod tolerates it. */
    every = f->config.to_host;
    use_config(f,
               "pools: [{name: ml, nodeSelector: {dedicated: ml}, tolerations: [{key: dedicated, "
               "value: ml, effect: NoSchedule}]}]");
    f->config.to_host = every;
    assert_json(tolerations_of(f, ""), "[{key: site, operator: Exists}]");
    assert_false(
        pool_admits_node(f->a, &f->config, &none, doc(f, arena_printf(f->a, taints, "ml").p)));
}

static void nodes_for_pods_without_gpus(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    use_config(f, "policy: {cpuNodes: [tier=shared]}");
    assert_ok(resolve(f, pod(f, "cpu: 1", "nodeSelector: {tier: shared, a: b}"), NULL, &c));
    assert_error(resolve(f, pod(f, "cpu: 1", "nodeSelector: {tier: other}"), NULL, &c),
                 "pods \"p\" is forbidden: nodeSelector tier=other contradicts the nodes of this "
                 "virtual cluster: allowed [shared]");
}

static void amounts(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    assert_ok(
        resolve(f, pod(f, "nvidia.com/mig-1g.10gb: 3, nvidia.com/mig-2g.20gb: 1", ""), NULL, &c));
    assert_true(c.gpu_eq.num == 5 && c.gpu_eq.den == 7);
    assert_ok(resolve(f, pod(f, "nvidia.com/gpu: 2, rdma/hca: 1", ""), NULL, &c));
    assert_true(c.gpu_eq.num == 2 && c.gpu_eq.den == 1 && c.limit.num == 12);

    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 1, rdma/hca: 2", ""), NULL, &c),
                 "pods \"p\" is forbidden: guardrail max-devices-per-pod: requested rdma/hca=2, "
                 "pool \"h100\" allows 1");
    assert_error(
        resolve(f, pod(f, "nvidia.com/gpu: 3", ""), NULL, &c),
        "pods \"p\" is forbidden: guardrail max-gpus-per-container: container \"c\" requested "
        "nvidia.com/gpu=3, pool \"h100\" allows 2");
    assert_error(
        resolve(f,
                "{metadata: {generateName: gen-}, spec: {containers: [{resources: {limits: "
                "{nvidia.com/gpu: 2}}}, {resources: {limits: {nvidia.com/gpu: 2}}}, {resources: "
                "{requests: {nvidia.com/gpu: 1}}}]}}",
                NULL, &c),
        "pods \"gen-\" is forbidden: guardrail max-gpus-per-pod: requested nvidia.com/gpu=5, pool "
        "\"h100\" allows 4");
    assert_error(resolve(f, pod(f, "nvidia.com/gpu: 2", ""), "{sublet.dev/gpu-pool: slices}", &c),
                 "pods \"p\" is forbidden: a shared GPU request must be 1 per container, got 2");
}

/* max(apps + sidecars, init peak), with each init container beside the sidecars before it. */
static void counted_like_the_scheduler(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    use_config(f,
               "{pools: [{name: a, nodeSelector: {p: a}}], bindings: [{pool: a, guarantee: 100}]}");
    assert_ok(resolve(
        f,
        "{metadata: {name: p}, spec: {initContainers: [{resources: {limits: {nvidia.com/gpu: "
        "5}}}, {restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 2}}}, {resources: "
        "{limits: {nvidia.com/gpu: 6}}}], containers: [{resources: {limits: {nvidia.com/gpu: "
        "3}}}, {resources: {limits: {nvidia.com/gpu: 1}}}]}}",
        NULL, &c));
    assert_true(c.gpu_eq.num == 8 && c.gpu_eq.den == 1); /* 2 + 6 while the last one initialises */
    assert_ok(resolve(
        f,
        "{metadata: {name: p}, spec: {initContainers: [{resources: {limits: {nvidia.com/gpu: "
        "5}}}, {restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 2}}}], containers: "
        "[{resources: {limits: {nvidia.com/gpu: 4}}}]}}",
        NULL, &c));
    assert_true(c.gpu_eq.num == 6); /* 2 + 4 */
    assert_error(
        resolve(f,
                "{metadata: {name: p}, spec: {containers: [{resources: {limits: {nvidia.com/gpu: "
                "9000000000000000000}}}, {resources: {limits: {nvidia.com/gpu: "
                "9000000000000000000}}}]}}",
                NULL, &c),
        "pods \"p\" is forbidden: nvidia.com/gpu is out of range");
}

static void schedulers(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    assert_error(
        resolve(f, pod(f, "nvidia.com/mig-1g.10gb: 1", "schedulerName: mine"), NULL, &c),
        "pods \"p\" is forbidden: schedulerName \"mine\" is not allowed; pool uses \"gang\"");
    assert_error(
        resolve(f, pod(f, "cpu: 1", "schedulerName: gang"), NULL, &c),
        "pods \"p\" is forbidden: schedulerName \"gang\" is not allowed; this virtual cluster uses "
        "\"default-scheduler\"");
    assert_ok(resolve(f, pod(f, "nvidia.com/mig-1g.10gb: 1", "schedulerName: gang"), NULL, &c));
    assert_ok(resolve(f, pod(f, "nvidia.com/mig-1g.10gb: 1", "schedulerName: default-scheduler"),
                      NULL, &c));
}

static int with_container(struct fixture *f, const char *list, const char *more)
{
    struct pool_choice c;

    return resolve(
        f,
        arena_cstr(f->a, arena_printf(f->a,
                                      "{metadata: {name: p}, spec: {containers: [{name: m, "
                                      "resources: {limits: {nvidia.com/gpu: 1}}}], %s: [{name: c, "
                                      "%s}]}}",
                                      list, more)),
        "{sublet.dev/gpu-pool: slices}", &c);
}

static void variables_and_mounts(void **state)
{
    static const char *const bad[] = {
        "env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]",
        "env: [{name: NVIDIA_VISIBLE_DEVICES, value: ''}]",
        "env: [{name: NVIDIA_VISIBLE_DEVICES}]",
        "env: [{name: NVIDIA_VISIBLE_DEVICES, value: 'void,0'}]",
        "env: [{name: NVIDIA_VISIBLE_DEVICES, value: $(A)}]",
        ("env: [{name: NVIDIA_VISIBLE_DEVICES, value: void, valueFrom: {configMapKeyRef: {name: a, "
         "key: b}}}]"),
        "env: [{name: NVIDIA_DRIVER_CAPABILITIES, value: 'compute,display'}]",
        "env: [{name: NVIDIA_MIG_MONITOR_DEVICES, value: all}]",
        "env: [{name: NVIDIA_IMEX_CHANNELS, value: '0'}]",
        "env: [{name: NVIDIA_GDS, value: enabled}]",
        "env: [{name: AMD_VISIBLE_DEVICES, value: all}]",
        "env: [{name: HABANA_VISIBLE_DEVICES, value: all}]",
        "env: [{name: ASCEND_VISIBLE_DEVICES, value: 0-7}]",
        "env: [{name: ASCEND_RUNTIME_OPTIONS, value: VIRTUAL}]",
        "env: [{name: ASCEND_VNPU_SPECS, value: vir04}]",
        "env: [{name: MTHREADS_VISIBLE_DEVICES, value: all}]",
        "env: [{name: CAMBRICON_VISIBLE_DEVICES, value: '0'}]",
        "env: [{name: IX_VISIBLE_DEVICES, value: all}]",
        "env: [{name: METAX_VISIBLE_DEVICES, value: all}]",
        "env: [{name: ENFLAME_VISIBLE_DEVICES, value: all}]",
        "env: [{name: DOCKER_RESOURCE_GPU, value: '0'}]",
        "env: [{name: AMD_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
        "envFrom: [{prefix: MTHREADS, secretRef: {name: a}}]",
        "env: [{name: CUDA_DISABLE_CONTROL, value: 'true'}]",
        "env: [{name: CUDA_DEVICE_MEMORY_LIMIT_0, value: 80g}]",
        "env: [{name: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, value: '100'}]",
        "env: [{name: LD_PRELOAD, value: /x.so}]",
        "envFrom: [{prefix: NVIDIA_, configMapRef: {name: a}}]",
        "envFrom: [{prefix: 'N', secretRef: {name: a}}]",
        "volumeMounts: [{mountPath: /var/run/nvidia-container-devices/all}]",
        "volumeMounts: [{mountPath: /var/run/../run//nvidia-container-devices/./0}]",
    };
    static const char *const good[] = {
        "env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}]",
        "env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}]",
        ("env: [{name: NVIDIA_IMEX_CHANNELS, value: void}, {name: AMD_VISIBLE_DEVICES, value: "
         "none}]"),
        "env: [{name: ASCEND_RT_VISIBLE_DEVICES, value: '0'}]",
        "env: [{name: NVIDIA_DRIVER_CAPABILITIES, value: 'compute,utility'}]",
        "env: [{name: CUDA_VISIBLE_DEVICES, value: '0'}]",
        "envFrom: [{prefix: CFG_, configMapRef: {name: a}}, {configMapRef: {name: b}}]",
        "volumeMounts: [{mountPath: /var/run/nvidia}]",
    };
    static const char *const lists[] = {"initContainers", "ephemeralContainers"};
    struct fixture *f = *state;

    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < COUNT(bad); i++) {
            if (with_container(f, lists[k], bad[i]) == 0)
                fail_msg("%s was accepted in %s", bad[i], lists[k]);
            assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
            assert_has(f->err.message, "of container \"c\" is not allowed");
            err_clear(&f->err);
        }
        for (size_t i = 0; i < COUNT(good); i++)
            assert_ok(with_container(f, lists[k], good[i]));
    }
}

/* What only matters where software shares a GPU is free elsewhere. */
static void variables_without_sharing(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    assert_ok(resolve(
        f,
        "{metadata: {name: p}, spec: {containers: [{name: c, env: [{name: LD_PRELOAD, value: "
        "/x}, {name: CUDA_MPS_PIPE_DIRECTORY, value: /tmp}]}]}}",
        NULL, &c));
}

static void quota_text(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;

    assert_ok(resolve(f, pod(f, "nvidia.com/gpu: 2", ""), NULL, &c));
    assert_error(pool_exceeded(f->a, &c, (struct rational){43, 4}, STR("p"), &f->err),
                 "pods \"p\" is forbidden: exceeded quota: gpu/h100, requested: gpu=2, used: "
                 "gpu=10.75, limited: "
                 "gpu=12");
    /* Where the units weigh something else, both are shown. */
    assert_ok(resolve(f, pod(f, "nvidia.com/mig-1g.10gb: 2", ""), NULL, &c));
    assert_error(pool_exceeded(f->a, &c, (struct rational){1, 1}, STR("p"), &f->err),
                 "pods \"p\" is forbidden: exceeded quota: gpu/h100-mig, requested: gpu=2/7 "
                 "(nvidia.com/mig-1g.10gb=2), used: gpu=1, limited: gpu=1");
    assert_ok(resolve(f, pod(f, "nvidia.com/gpu: 2, rdma/hca: 1", ""), NULL, &c));
    assert_str(pool_requested(f->a, &c), " (nvidia.com/gpu=2, rdma/hca=1)");
}

/* Of pods that are to run at once. */
static void several_pods(void **state)
{
    struct fixture *f = *state;
    struct pool_choice c;
    struct str text = STR_NULL;

    assert_ok(resolve(f, pod(f, "nvidia.com/gpu: 2", ""), NULL, &c));
    assert_false(pool_exceeded_by(f->a, &c, 6, false, &text));
    assert_true(pool_exceeded_by(f->a, &c, 7, false, &text));
    assert_str(text, "7 pods that request nvidia.com/gpu=2 each exceed the limit of pool \"h100\", "
                     "12 GPU: no more than 6 of them run at once");
    assert_true(pool_exceeded_by(f->a, &c, 7, true, &text));
    assert_str(text, "7 pods that request nvidia.com/gpu=2 each exceed the limit of pool \"h100\", "
                     "12 GPU, and are a gang: none of them starts");
    assert_ok(resolve(f, pod(f, "nvidia.com/mig-2g.20gb: 1", ""), NULL, &c));
    assert_true(pool_exceeded_by(f->a, &c, INT64_MAX, false, &text));
    assert_str(text, "9223372036854775807 pods that request nvidia.com/mig-2g.20gb=1 each exceed "
                     "the limit of pool \"h100-mig\", 1 GPU: no more than 3 of them run at once");
    assert_ok(resolve(f, pod(f, "cpu: 2", ""), NULL, &c));
    assert_false(pool_exceeded_by(f->a, &c, 1000, false, &text));
}

static void host_pods(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *pool, *limits, *amount; /* NULL: it holds nothing */
    } cases[] = {
        {"h100", "nvidia.com/gpu: 2, rdma/hca: 1", "2"},
        {"slices", "nvidia.com/gpu: 3", "0.75"},
        {"h100", "example.com/none: 2", "2"}, /* no longer offered: one each */
        {"h100", "cpu: 1", NULL},
        {"unbound", "amd.com/gpu: 1", NULL},
        {"", "nvidia.com/gpu: 1", NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pool_choice choice;
        cJSON *host = doc(f, pod(f, cases[i].limits, ""));

        json_set_str(f->a, json_ensure_path(f->a, host, "metadata.labels"), "sublet.dev/pool",
                     str_c(cases[i].pool));
        assert_int_equal(pool_of_host_pod(f->a, &f->config, host, &choice),
                         cases[i].amount != NULL);
        if (cases[i].amount)
            assert_str(rational_format(f->a, choice.gpu_eq), cases[i].amount);
    }
}

/* The host has it under the name that the pool gives it. */
static void host_pods_of_renamed_resources(void **state)
{
    struct fixture *f =
        fixture_new("pools:\n"
                    "- {name: mps, nodeSelector: {gpus: mps}, mode: mps, resources: "
                    "{nvidia.com/gpu: {gpuEq: '1/4'}}, "
                    "rename: {nvidia.com/gpu: nvidia.com/gpu.shared}}\n"
                    "bindings:\n"
                    "- {pool: mps, guarantee: '2'}\n");
    cJSON *host = doc(f, pod(f, "nvidia.com/gpu.shared: 3", ""));
    struct pool_choice choice;

    (void)state;
    json_set_str(f->a, json_ensure_path(f->a, host, "metadata.labels"), "sublet.dev/pool",
                 STR("mps"));
    assert_true(pool_of_host_pod(f->a, &f->config, host, &choice));
    assert_str(rational_format(f->a, choice.gpu_eq), "0.75");
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(resolution, setup, teardown),
        cmocka_unit_test_setup_teardown(wishes_that_cannot_be, setup, teardown),
        cmocka_unit_test_setup_teardown(side_doors, setup, teardown),
        cmocka_unit_test_setup_teardown(where_contradictions, setup, teardown),
        cmocka_unit_test_setup_teardown(tolerations_of_others_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(tolerations_nobody_grants_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(tolerations_of_every_pod, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_for_pods_without_gpus, setup, teardown),
        cmocka_unit_test_setup_teardown(amounts, setup, teardown),
        cmocka_unit_test_setup_teardown(counted_like_the_scheduler, setup, teardown),
        cmocka_unit_test_setup_teardown(schedulers, setup, teardown),
        cmocka_unit_test_setup_teardown(variables_and_mounts, setup, teardown),
        cmocka_unit_test_setup_teardown(variables_without_sharing, setup, teardown),
        cmocka_unit_test_setup_teardown(quota_text, setup, teardown),
        cmocka_unit_test_setup_teardown(several_pods, setup, teardown),
        cmocka_unit_test_setup_teardown(host_pods, setup, teardown),
        cmocka_unit_test(host_pods_of_renamed_resources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
