/* SPDX-License-Identifier: Apache-2.0 */
/* sync.nodes perPool: the node that stands for a pool's host nodes shows what the tenant has and
 * can still get, and nothing that names a machine; its name in a pod is settled before the host
 * sees it. */

#include <sublet/translate_pool_node.h>

#include "allowed.h"
#include "test.h"

#define POOLS                                                                                      \
    "sync: {nodes: perPool}\n"                                                                     \
    "pools:\n"                                                                                     \
    "- {name: a100, nodeSelector: {sublet.dev/pool: a100}, products: [A100],\n"                    \
    "   tolerations: [{key: sublet.dev/pool, value: a100, effect: NoSchedule}]}\n"                 \
    "- {name: mig, mode: mig, nodeSelector: {sublet.dev/pool: mig},\n"                             \
    "   profiles: {1g.10gb: {gpuEq: 1/7}, 2g.20gb: {gpuEq: 2/7}}}\n"                               \
    "- {name: other, nodeSelector: {sublet.dev/pool: other}}\n"                                    \
    "bindings:\n"                                                                                  \
    "- {pool: a100, guarantee: 4, burst: 2}\n"                                                     \
    "- {pool: mig, guarantee: 1}\n"

static enum translate_node pool_node(void *ctx, struct str name)
{
    const struct config_pool *pool;

    return translate_pool_node_find(ctx, name, &pool) ? NODE_POOL : NODE_UNKNOWN;
}

static int setup(void **state)
{
    struct fixture *f = fixture_new(POOLS);

    f->tenant.node = pool_node;
    f->tenant.node_ctx = &f->config;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

/* ---- the node ---- */

#define MACHINE(name, more, spec, ready)                                                           \
    "{metadata: {name: " name ", labels: {sublet.dev/pool: a100, nvidia.com/gpu.product: A100, "   \
    "kubernetes.io/hostname: " name ", kubernetes.io/os: linux, nvidia.com/gpu.count: '8'" more    \
    "}}, spec: {" spec "taints: [{key: sublet.dev/pool, value: a100, effect: NoSchedule}]},"       \
    " status: {conditions: [{type: Ready, status: '" ready "'}], addresses: [{type: InternalIP, "  \
    "address: 10.0.0.7}],"                                                                         \
    " capacity: {cpu: '32', memory: 64Gi, pods: '110', nvidia.com/gpu: '8'},"                      \
    " allocatable: {cpu: 31500m, memory: 60Gi, pods: '110', nvidia.com/gpu: '8'},"                 \
    " nodeInfo: {kubeletVersion: v1.36." ready ", osImage: Linux, machineID: secret}}}"
#define UP(name)       MACHINE(name, "", "", "True")
#define CORDONED(name) MACHINE(name, "", "unschedulable: true, ", "True")
#define DOWN(name)     MACHINE(name, ", zone: z", "", "False")

/* On "m-1" two GPUs and 10 CPUs in three pods, on "m-2" one and 1 in one. */
static __int128 held(void *ctx, struct str host_node, struct str resource)
{
    static const struct {
        const char *resource;
        int64_t first, second;
    } rows[] = {{"nvidia.com/gpu", 2, 1}, {"cpu", 10, 1}, {"pods", 3, 1}};

    if (!*(const bool *)ctx)
        return 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!str_eqc(resource, rows[i].resource))
            continue;
        return (__int128)1000000000 * (!host_node.p                ? rows[i].first + rows[i].second
                                       : str_eqc(host_node, "m-1") ? rows[i].first
                                       : str_eqc(host_node, "m-2") ? rows[i].second
                                                                   : 0);
    }
    return 0;
}

static const cJSON *node_of(struct fixture *f, const char *pool, const char *nodes,
                            const char *quotas, bool *holds)
{
    struct pool_node_facts facts = {.name = str_c(pool),
                                    .nodes = nodes ? doc(f, nodes) : NULL,
                                    .quotas = doc(f, quotas),
                                    .used = {3, 7},
                                    .held = held,
                                    .ctx = holds};

    assert_true(translate_pool_node_find(&f->config, str_c(pool), &facts.pool));
    for (size_t i = 0; i < f->config.n_bindings; i++)
        if (f->config.bindings[i].pool == facts.pool)
            facts.binding = &f->config.bindings[i];
    return translate_pool_node_up(f->a, &f->tenant, &facts);
}

static void it_shows_the_limit_within_what_the_host_has(void **state)
{
    struct fixture *f = *state;
    bool holds = false;
    const cJSON *node = node_of(f, "a100", "[" UP("m-1") "]", "[]", &holds);

    assert_json(node,
                "{apiVersion: v1, kind: Node, metadata: {name: a100, labels: {sublet.dev/pool: "
                "a100, nvidia.com/gpu.product: A100, kubernetes.io/hostname: a100, "
                "kubernetes.io/os: linux}}, spec: {taints: [{key: sublet.dev/pool, value: a100, "
                "effect: PreferNoSchedule}]}, status: {capacity: {cpu: '32', ephemeral-storage: "
                "'0', memory: 64Gi, pods: '110', nvidia.com/gpu: '6'}, allocatable: {cpu: 31500m, "
                "ephemeral-storage: '0', memory: 60Gi, pods: '110', nvidia.com/gpu: '6'}, "
                "conditions: [{type: Ready, status: 'True', reason: NodesReady, message: nodes of "
                "the host are ready}], addresses: [{type: Hostname, address: a100}], nodeInfo: "
                "{machineID: '', systemUUID: '', bootID: '', kernelVersion: '', osImage: Linux, "
                "containerRuntimeVersion: '', kubeletVersion: v1.36.True, kubeProxyVersion: '', "
                "operatingSystem: '', architecture: ''}}}");
}

#define ALLOCATABLE(node, key)                                                                     \
    json_str(json_get_str(json_path((node), "status.allocatable"), STR(key)))

/* A cordoned machine has nothing left but what pods hold there; one that is down counts the
 * same. */
static void what_cannot_be_placed_is_not_shown(void **state)
{
    struct fixture *f = *state;
    bool holds = true;
    const cJSON *node = node_of(f, "a100", "[" CORDONED("m-1") ", " DOWN("m-2") "]", "[]", &holds);

    assert_str(ALLOCATABLE(node, "nvidia.com/gpu"), "3");
    assert_str(ALLOCATABLE(node, "cpu"), "11");
    assert_str(ALLOCATABLE(node, "pods"), "4");
    assert_true(json_true(json_path(node, "spec.unschedulable")));
    assert_str(json_str_at(node, "status.nodeInfo.kubeletVersion"), "v1.36.False");
    node = node_of(f, "a100", "[" CORDONED("m-1") ", " UP("m-2") "]", "[]", &holds);
    assert_str(ALLOCATABLE(node, "nvidia.com/gpu"), "6");
    assert_str(ALLOCATABLE(node, "cpu"), "41500m");
    assert_null(json_path(node, "spec.unschedulable"));
    node = node_of(f, "a100", "[" DOWN("m-1") "]", "[]", &holds);
    assert_json(json_path(node, "spec.taints"),
                "[{key: sublet.dev/pool, value: a100, effect: PreferNoSchedule}, {key: "
                "node.kubernetes.io/not-ready, effect: NoSchedule}]");
    assert_str(json_str(json_get(json_first(json_path(node, "status.conditions")), "reason")),
               "NodesNotReady");
    node = node_of(f, "a100", "[]", "[]", &holds);
    assert_str(json_str(json_get(json_first(json_path(node, "status.conditions")), "reason")),
               "NoNodes");
}

/* What others in the namespace hold of a quota is not the tenant's: the control plane's 1 CPU
 * here. */
static void a_quota_of_the_host_bounds_it(void **state)
{
    struct fixture *f = *state;
    bool holds = true;
    const cJSON *node =
        node_of(f, "a100", "[" UP("m-1") ", " UP("m-2") "]",
                "[{status: {hard: {requests.cpu: '20', limits.memory: 8Gi, "
                "requests.nvidia.com/gpu: '5', count/pods: '10'}, used: {requests.cpu: '12', "
                "limits.memory: 1Gi, requests.nvidia.com/gpu: '3', count/pods: '5'}}},"
                " {spec: {scopes: [Terminating]}, status: {hard: {cpu: '1'}, used: {cpu: '0'}}}]",
                &holds);

    assert_str(ALLOCATABLE(node, "cpu"), "19");
    assert_str(ALLOCATABLE(node, "memory"), "7Gi");
    assert_str(ALLOCATABLE(node, "nvidia.com/gpu"), "5");
    assert_str(ALLOCATABLE(node, "pods"), "9");
    /* A quota that is exceeded leaves what pods hold. */
    node = node_of(f, "a100", "[" UP("m-1") "]",
                   "[{status: {hard: {cpu: '5'}, used: {cpu: '11'}}}]", &holds);
    assert_str(ALLOCATABLE(node, "cpu"), "11");
}

/* 3/7 are charged: a slice of two sevenths fits twice more, one of one seventh four times. */
static void slices_of_one_limit_are_what_is_left(void **state)
{
    struct fixture *f = *state;
    bool holds = false;
    const cJSON *node = node_of(f, "mig", NULL, "[]", &holds);

    assert_str(ALLOCATABLE(node, "nvidia.com/mig-1g.10gb"), "4");
    assert_str(ALLOCATABLE(node, "nvidia.com/mig-2g.20gb"), "2");
    assert_null(json_path(node, "status.allocatable.cpu")); /* nothing is known of it */
    assert_str(json_str(json_get(json_first(json_path(node, "status.conditions")), "reason")),
               "NodesNotReadable");
}

static void a_pool_that_is_not_bound_has_what_pods_hold(void **state)
{
    struct fixture *f = *state;
    bool holds = true;

    assert_str(ALLOCATABLE(node_of(f, "other", NULL, "[]", &holds), "nvidia.com/gpu"), "3");
}

/* ---- maintenance ---- */

#define CLOSED "{key: node.kubernetes.io/unschedulable, effect: NoSchedule}"

static void check_node(struct fixture *f, const char *host_node, const char *spec,
                       const char *conditions)
{
    const cJSON *node = translate_node_up(f->a, &f->tenant, doc(f, host_node));

    assert_json(json_get(node, "spec"), spec);
    assert_json(json_path(node, "status.conditions"), conditions);
}

/* A node of the host that is shown, and the one of the pool, say the same of its pool. */
static void a_pool_out_of_use_is_shown(void **state)
{
    static const char own[] = "taints: [{key: sublet.dev/pool, value: a100, effect: NoSchedule}";
    static const char ready[] = "[{type: Ready, status: 'True'}";
    struct fixture *f = *state;
    struct config_pool pool = f->config.pools[0];
    struct config_binding binding = f->config.bindings[0];
    struct config_maintenance *m = &pool.maintenance;
    static const struct {
        enum maintenance_state state;
        const char *reason, *message;
    } rows[] = {
        {MAINTENANCE_NONE, "Converting", "is being changed: why"},
        {MAINTENANCE_CORDON, "Cordoned", "takes no new pods: why"},
        {MAINTENANCE_DRAIN, "Draining", "is drained: why"},
    };
    bool holds = false;

    binding.pool = &pool;
    f->config.pools = &pool;
    f->config.bindings = &binding;
    f->config.n_pools = f->config.n_bindings = 1;
    check_node(f, UP("m-1"), arena_printf(f->a, "{%s]}", own).p,
               arena_printf(f->a, "%s]", ready).p);
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool closed = rows[i].state != MAINTENANCE_NONE;
        struct str said = arena_printf(
            f->a,
            "{type: PoolMaintenance, status: 'True', reason: %s, message: 'pool \"a100\" %s'}",
            rows[i].reason, rows[i].message);
        const cJSON *node;

        m->state = rows[i].state;
        m->reason = STR("why");
        check_node(f, UP("m-1"),
                   arena_printf(f->a, "{%s%s]%s}", own, closed ? ", " CLOSED : "",
                                closed ? ", unschedulable: true" : "")
                       .p,
                   arena_printf(f->a, "%s, %.*s]", ready, STR_F(said)).p);
        node = node_of(f, "a100", "[" UP("m-1") "]", "[]", &holds);
        assert_json(json_at(json_path(node, "status.conditions"), 1), arena_cstr(f->a, said));
        assert_true(json_true(json_path(node, "spec.unschedulable")) == closed);
    }
    /* What the host says is not said twice, and other nodes are as usual. */
    check_node(f,
               "{metadata: {labels: {sublet.dev/pool: a100, nvidia.com/gpu.product: A100}}, spec: "
               "{unschedulable: true, taints: [" CLOSED "]}, status: {conditions: [{type: "
               "PoolMaintenance, status: 'False'}]}}",
               "{taints: [" CLOSED "], unschedulable: true}",
               "[{type: PoolMaintenance, status: 'True', reason: Draining, message: 'pool "
               "\"a100\" is drained: why'}]");
    check_node(f, "{metadata: {labels: {sublet.dev/pool: mig}}, status: {conditions: []}}", "{}",
               "[]");
}

static void machines_of_a_pool(void **state)
{
    struct fixture *f = *state;
    const struct config_pool *a100 = &f->config.pools[0];
    static const char other[] =
        "{metadata: {labels: {sublet.dev/pool: a100, nvidia.com/gpu.product: T4}}}";
    static const char tainted[] =
        "{metadata: {labels: {sublet.dev/pool: a100, nvidia.com/gpu.product: A100-SHARED}},"
        " spec: {taints: [{key: maintenance, effect: NoSchedule}]}}";

    assert_true(translate_pool_node_has(f->a, &f->config, a100, doc(f, UP("m"))));
    assert_false(translate_pool_node_has(f->a, &f->config, NULL, doc(f, UP("m"))));
    assert_false(translate_pool_node_has(f->a, &f->config, a100, doc(f, other)));
    assert_false(translate_pool_node_has(f->a, &f->config, a100, doc(f, tainted)));
    assert_true(translate_pool_node_has(f->a, &f->config, NULL, doc(f, "{metadata: {name: n}}")));
}

/* As the scheduler counts: the larger of what runs at once and of what starts first. */
static void requests_of_a_pod(void **state)
{
    struct fixture *f = *state;
    struct pod_requests r;

    translate_pod_requests(
        f->a,
        doc(f, "{spec: {overhead: {cpu: 10m}, initContainers: [{restartPolicy: Always, resources: "
               "{requests: {cpu: 100m}}}, {resources: {requests: {cpu: '1', memory: 1Gi}}}], "
               "containers: [{resources: {requests: {cpu: 200m}}}, {resources: {requests: {cpu: "
               "300m, nvidia.com/gpu: 2}}}]}}"),
        &r);
    assert_int_equal(r.n, 3);
    assert_str(r.items[0].resource, "cpu");
    assert_true(r.items[0].nano == (__int128)1110 * 1000000);
    assert_str(r.items[1].resource, "memory");
    assert_true(r.items[1].nano == (__int128)1024 * 1024 * 1024 * 1000000000);
    assert_str(r.items[2].resource, "nvidia.com/gpu");
    assert_true(r.items[2].nano == (__int128)2 * 1000000000);
    translate_pod_requests(f->a,
                           doc(f, "{spec: {resources: {requests: {cpu: '5'}}, containers: "
                                  "[{resources: {requests: {cpu: '1'}}}]}}"),
                           &r);
    assert_true(r.items[0].nano == (__int128)5 * 1000000000);
}

/* ---- its name in a pod ---- */

static cJSON *down(struct fixture *f, const char *spec)
{
    const cJSON *pod = doc(
        f, arena_printf(f->a,
                        "{metadata: {name: p, namespace: d, uid: u, resourceVersion: '1'}, spec: "
                        "{%s containers: [{name: c, image: i, resources: {limits: "
                        "{nvidia.com/gpu: '1'}, requests: {nvidia.com/gpu: '1'}}, env: [{name: "
                        "NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: IP, "
                        "valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}]}}",
                        spec)
               .p);
    struct pool_choice choice;
    cJSON *ret = NULL;

    assert_ok(pool_resolve(f->a, &f->config, STR("d"), pod, NULL, &choice, &f->err));
    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod, NULL, &ret, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    return ret;
}

#define REQUIRED "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
#define PRODUCT  "{key: nvidia.com/gpu.product, operator: In, values: [A100]}"
#define FENCE    "{nodeSelectorTerms: [{matchExpressions: [" PRODUCT "]}]}"
#define NOWHERE                                                                                    \
    "{nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: Exists}, {key: "   \
    "kubernetes.io/os, operator: DoesNotExist}]}]}"
#define TERMS(terms)                                                                               \
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "                   \
    "{nodeSelectorTerms: [" terms "]}}},"
#define NAME(operator_, name)                                                                      \
    "{matchFields: [{key: metadata.name, operator: " operator_ ", values: [" name "]}]}"
#define HOST(operator_, name)                                                                      \
    "{key: kubernetes.io/hostname, operator: " operator_ ", values: [" name "]}"

static void its_name_becomes_the_fence(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *spec, *required;
    } cases[] = {
        {"nodeName: a100,", FENCE},
        {"nodeName: mig,", NOWHERE},
        {"nodeName: m-1,", NOWHERE},
        {"nodeSelector: {kubernetes.io/hostname: a100},", FENCE},
        {"nodeSelector: {kubernetes.io/hostname: m-1},", NOWHERE},
        {TERMS(NAME("In", "a100")), FENCE},
        {TERMS(NAME("In", "mig")), NOWHERE},
        {TERMS(NAME("NotIn", "mig")), FENCE},
        {TERMS(NAME("NotIn", "a100")), NOWHERE},
        {TERMS("{matchExpressions: [" HOST("In", "a100") "]}"), FENCE},
        /* The names of machines are no names here. */
        {TERMS("{matchExpressions: [" HOST("In", "m-1") "]}"), NOWHERE},
        {TERMS("{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}"), FENCE},
        {TERMS("{matchExpressions: [" HOST("In", "a100") ", {key: zone, operator: Exists}]}, " NAME(
             "In", "m-1")),
         "{nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}, " PRODUCT "]}]}"},
        {TERMS("{matchFields: [{key: metadata.uid, operator: NotIn, values: [x]}]}"), NOWHERE},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const cJSON *pod = down(f, cases[i].spec);

        print_message("%s\n", cases[i].spec);
        assert_json(json_path(pod, REQUIRED), cases[i].required);
        assert_json(json_path(pod, "spec.nodeSelector"), "{sublet.dev/pool: a100}");
        assert_null(json_path(pod, "spec.nodeName"));
    }
}

static void a_pod_learns_no_machine(void **state)
{
    struct fixture *f = *state;
    const cJSON *pod = down(f, ""), *last = NULL, *before = NULL;

    json_each(one, json_get(json_first(json_path(pod, "spec.containers")), "env"))
    {
        before = last;
        last = one;
    }
    assert_json(before, "{name: NODE, value: a100}");
    assert_json(last, "{name: IP, value: ''}");
}

static void a_preference_of_its_name_says_nothing(void **state)
{
    struct fixture *f = *state;
    const cJSON *pod = down(
        f,
        "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: ["
        "{weight: 1, preference: {matchExpressions: [" HOST(
            "In", "a100") "]}},"
                          "{weight: 2, preference: {matchExpressions: [" HOST(
                              "In",
                              "m-1") "]}},"
                                     "{weight: 3, preference: {matchExpressions: [" HOST(
                                         "In",
                                         "a100") ", {key: zone, operator: In, values: [z]}]}}]}},");

    assert_json(json_path(pod, "spec.affinity.nodeAffinity."
                               "preferredDuringSchedulingIgnoredDuringExecution"),
                "[{weight: 3, preference: {matchExpressions: [{key: zone, operator: In, values: "
                "[z]}]}}]");
}

static void the_node_of_another_pool_is_refused(void **state)
{
    struct fixture *f = *state;
    struct pool_choice none = {0}, own = {.binding = &f->config.bindings[0]};
    const cJSON *pod = doc(f, "{metadata: {name: p}}");

    assert_ok(translate_check_pool_node(&f->tenant, &own, pod, STR("a100"), &f->err));
    assert_ok(translate_check_pool_node(&f->tenant, &none, pod, STR("no-pool"), &f->err));
    assert_int_equal(translate_check_pool_node(&f->tenant, &none, pod, STR("a100"), &f->err), -1);
    assert_str(f->err.message,
               "pods \"p\" is forbidden: spec.nodeName: \"a100\": this pod runs on node "
               "\"no-pool\": the devices it requests decide its pool");
}

/* ---- what the host says ---- */

static struct str shown(void *ctx, struct str host_node)
{
    (void)ctx;
    return str_eqc(host_node, "m-1.rack.example") ? STR("a100")
           : str_eqc(host_node, "m-2")            ? STR("")
                                                  : STR_NULL;
}

static void machines_in_messages(void **state)
{
    struct fixture *f = *state;

    f->tenant.node_up = shown;
    assert_str(
        translate_text_up(f->a, &f->tenant,
                          STR("assigned d/p to m-1.rack.example. Then m-2, not (m-2x); end."),
                          STR("h"), STR("d"), STR("p")),
        "assigned d/p to a100. Then (hidden), not (m-2x); end.");
}

static void addresses_of_machines(void **state)
{
    struct fixture *f = *state;
    const cJSON *status = translate_pod_status_up(
        f->a, &f->tenant,
        doc(f, "{metadata: {name: h}, spec: {nodeName: m-1}, status: {phase: Running, hostIP: "
               "10.0.0.7, hostIPs: [{ip: 10.0.0.7}], podIP: 10.1.0.1}}"),
        doc(f, "{metadata: {name: p, namespace: d}}"), true);

    assert_json(status, "{phase: Running, podIP: 10.1.0.1}");
}

/* Sums of what pods hold go by it, up and down again. */
static void the_node_of_a_pod_outlives_its_pool(void **state)
{
    struct fixture *f = *state;
    cJSON *pod = doc(f, "{metadata: {labels: {sublet.dev/pool: a100}}}");

    assert_str(translate_pool_node_of(pod), "a100");
    pod = doc(f, "{metadata: {labels: {sublet.dev/pool: gone}}}");
    assert_str(translate_pool_node_of(pod), "gone");
    pod = doc(f, "{metadata: {name: x}}");
    assert_str(translate_pool_node_of(pod), POOL_NODE_NONE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_shows_the_limit_within_what_the_host_has),
        TEST(what_cannot_be_placed_is_not_shown),
        TEST(a_quota_of_the_host_bounds_it),
        TEST(slices_of_one_limit_are_what_is_left),
        TEST(a_pool_that_is_not_bound_has_what_pods_hold),
        TEST(a_pool_out_of_use_is_shown),
        TEST(machines_of_a_pool),
        TEST(requests_of_a_pod),
        TEST(its_name_becomes_the_fence),
        TEST(a_pod_learns_no_machine),
        TEST(a_preference_of_its_name_says_nothing),
        TEST(the_node_of_another_pool_is_refused),
        TEST(machines_in_messages),
        TEST(addresses_of_machines),
        TEST(the_node_of_a_pod_outlives_its_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
