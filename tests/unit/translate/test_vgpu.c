/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs by HAMi and Volcano: one manifest becomes the resources of either, the share that
 * is charged is the share that is sent, and nothing a tenant writes reaches the two systems. */

#include <sublet/translate_pool_node.h>
#include <sublet/fraction.h>
#include <sublet/vgpu.h>

#include "allowed.h"
#include "test.h"

#define POOLS(mode, scheduler)                                                                     \
    "name: research\n"                                                                             \
    "policy: {annotations: {allow: [team.example/]}}\n"                                            \
    "pools:\n"                                                                                     \
    "- {name: parts, mode: " mode ", nodeSelector: {sublet.dev/pool: parts}, products: [A100], "   \
    "gpuMemoryMiB: 40960, tolerations: [{key: sublet.dev/pool, value: parts}], scheduler: "        \
    "{" scheduler "}}\n"                                                                           \
    "bindings: [{pool: parts, guarantee: '1.5'}]\n"

static const char HAMI[] = POOLS("hami", "kind: hami");
static const char VOLCANO[] = POOLS("volcano-vgpu", "kind: volcano, queueTemplate: 't-{tenant}'");

static int setup(void **state)
{
    *state = fixture_new(HAMI);
    return 0;
}

static int setup_volcano(void **state)
{
    *state = fixture_new(VOLCANO);
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

#define LIMITS(text) "resources: {limits: {" text "}}"

static cJSON *pod(struct fixture *f, const char *meta, const char *spec)
{
    return doc(f, arena_printf(f->a, "{metadata: {name: p, namespace: ml, uid: u, %s}, spec: {%s}}",
                               meta, spec)
                      .p);
}

static cJSON *one(struct fixture *f, const char *limits)
{
    return pod(f, "labels: {x: y}",
               arena_printf(f->a, "containers: [{name: c, image: i, " LIMITS("%s") "}]", limits).p);
}

static cJSON *down(struct fixture *f, const cJSON *vpod, struct pool_choice *choice)
{
    cJSON *ret = NULL;

    assert_ok(pool_resolve(f->a, &f->config, STR("ml"), vpod, NULL, choice, &f->err));
    assert_ok(translate_pod(f->a, &f->tenant, choice, vpod, NULL, &ret, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    return ret;
}

static void assert_charged(struct fixture *f, const cJSON *host, const struct pool_choice *choice,
                           int64_t hundredths)
{
    struct pool_choice held;

    assert_int_equal(rational_cmp(choice->gpu_eq, (struct rational){hundredths, 100}), 0);
    assert_true(pool_of_host_pod(f->a, &f->config, host, &held));
    assert_int_equal(rational_cmp(held.gpu_eq, choice->gpu_eq), 0);
}

/* What tenants write, and the share that it is; of GPUs of 40960 MiB. */
static const struct {
    const char *limits;
    int share;
} WISHES[] = {
    {"sublet.dev/gpu-percent: 25", 25},
    {"sublet.dev/gpu-percent: 100", 100},
    {"sublet.dev/gpu-percent: 1", 1},
    {"nvidia.com/gpu: 1", 100},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 10240", 25},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 10241", 26}, /* rounded up, and charged so */
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 1", 1},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 40960", 100},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 10Ki", 25},
    {"nvidia.com/gpu: 1, nvidia.com/gpucores: 30", 30},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 10240, nvidia.com/gpucores: 30", 30},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 10240, nvidia.com/gpucores: 10", 25},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 40", 40},
    {"nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 40, nvidia.com/gpucores: 50", 50},
    {"nvidia.com/gpumem: 10240", 25}, /* HAMi makes one GPU of it */
    {"nvidia.com/gpu: 1, nvidia.com/gpumem: 0", 100},
};

static void one_manifest_becomes_the_resources_of_the_pool(void **state)
{
    struct fixture *f = *state;
    bool hami = f->config.pools[0].mode == POOL_HAMI;

    for (size_t i = 0; i < COUNT(WISHES); i++) {
        struct pool_choice choice;
        cJSON *host = down(f, one(f, WISHES[i].limits), &choice);
        int share = WISHES[i].share, memory = 40960 * share / 100;
        struct str want =
            hami ? arena_printf(f->a,
                                "{nvidia.com/gpu: '1', nvidia.com/gpumem: '%d', "
                                "nvidia.com/gpucores: '%d'}",
                                memory, share)
                 : arena_printf(f->a,
                                "{volcano.sh/vgpu-number: '1', volcano.sh/vgpu-memory: '%d', "
                                "volcano.sh/vgpu-cores: '%d'}",
                                memory, share);
        const cJSON *container = json_at(json_path(host, "spec.containers"), 0);

        assert_json(json_path(container, "resources.limits"), want.p);
        assert_json(json_path(container, "resources.requests"), want.p);
        assert_charged(f, host, &choice, share);
        assert_int_equal(vgpu_of_container(vgpu_system(f->config.pools[0].mode), container), share);
        assert_str(json_str_at(host, "spec.schedulerName"), hami ? "hami-scheduler" : "volcano");
        assert_false(
            str_contains(json_text(f->a, json_get(host, "spec")), STR("NVIDIA_VISIBLE_DEVICES")));
        assert_false(str_contains(json_text(f->a, host), STR("gpu-percent")));
        assert_false(str_contains(json_text(f->a, host), STR("SHARED")));
    }
}

/* Every share that can be requested is charged as it is. */
static void every_share_is_charged_exactly(void **state)
{
    struct fixture *f = *state;

    for (int i = 1; i <= 100; i++) {
        struct pool_choice choice;
        cJSON *host =
            down(f, one(f, arena_printf(f->a, "sublet.dev/gpu-percent: %d", i).p), &choice);

        assert_charged(f, host, &choice, i);
    }
}

static void containers_add_up(void **state)
{
    struct fixture *f = *state;
    struct pool_choice choice;
    cJSON *host =
        down(f,
             pod(f, "labels: {x: y}",
                 "initContainers: [{name: i, image: i}], containers: [{name: a, image: i, " LIMITS(
                     "sublet.dev/gpu-percent: 60") "}, {name: b, image: i}, {name: c, image: "
                                                   "i, " LIMITS("nvidia.com/gpu: 1") "}]"),
             &choice);
    struct pod_requests requests;
    bool seen = false;

    assert_charged(f, host, &choice, 160);
    assert_true(str_contains(json_text(f->a, json_at(json_path(host, "spec.containers"), 1)),
                             STR("{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"void\"}")));
    assert_true(str_contains(json_text(f->a, json_at(json_path(host, "spec.initContainers"), 0)),
                             STR("{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"void\"}")));
    translate_pod_requests(f->a, host, &requests);
    for (size_t i = 0; i < requests.n; i++) {
        if (!str_eqc(requests.items[i].resource, "nvidia.com/gpucores"))
            continue;
        seen = true;
        assert_true(requests.items[i].nano == (__int128)160 * 1000000000);
    }
    assert_true(seen);
}

#define HOLDER(limits) "containers: [{name: c, image: i, " LIMITS(limits) "}]"

static void what_is_refused(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {HOLDER("nvidia.com/gpu: 2"),
         "pods \"p\" is forbidden: a shared GPU request must be 1 per container, got 2"},
        {HOLDER("nvidia.com/gpu: 2, nvidia.com/gpumem: 10"),
         "pods \"p\" is forbidden: a shared GPU request must be 1 per container, got 2"},
        {HOLDER("sublet.dev/gpu-percent: 101"),
         "pods \"p\" is forbidden: sublet.dev/gpu-percent=101 of container \"c\": a container of "
         "pool \"parts\" has at most one GPU, 1 to 100"},
        {HOLDER("nvidia.com/gpu: 1, nvidia.com/gpucores: 101"),
         "pods \"p\" is forbidden: nvidia.com/gpucores=101 of container \"c\": a container of pool "
         "\"parts\" has at most one GPU, 1 to 100"},
        {HOLDER("nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 200"),
         "pods \"p\" is forbidden: nvidia.com/gpumem-percentage=200 of container \"c\": a "
         "container of pool \"parts\" has at most one GPU, 1 to 100"},
        {HOLDER("nvidia.com/gpu: 1, nvidia.com/gpumem: 40961"),
         "pods \"p\" is forbidden: nvidia.com/gpumem=40961 of container \"c\": a GPU of pool "
         "\"parts\" has 40960 MiB"},
        {HOLDER("nvidia.com/gpumem: 10, nvidia.com/gpumem-percentage: 10"),
         "pods \"p\" is forbidden: nvidia.com/gpumem and nvidia.com/gpumem-percentage of container "
         "\"c\": only one of them can say how much"},
        {HOLDER("sublet.dev/gpu-percent: 10, nvidia.com/gpumem: 10"),
         "pods \"p\" is forbidden: sublet.dev/gpu-percent and nvidia.com/gpumem of container "
         "\"c\": only one of them can say how much"},
        {HOLDER("sublet.dev/gpu-percent: 10, nvidia.com/gpu: 1"),
         "pods \"p\" is forbidden: sublet.dev/gpu-percent and nvidia.com/gpu of container \"c\": "
         "only one of them can say how much"},
        {HOLDER("sublet.dev/gpu-percent: 10, nvidia.com/gpucores: 10"),
         "pods \"p\" is forbidden: sublet.dev/gpu-percent and nvidia.com/gpucores of container "
         "\"c\": only one of them can say how much"},
        {HOLDER("volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 5"),
         "pods \"p\" is forbidden: volcano.sh/vgpu-number is not offered by any pool of this "
         "virtual cluster: offered sublet.dev/gpu-percent"},
        {HOLDER("nvidia.com/gpu: 1, nvidia.com/priority: 0, rdma/hca: 1"),
         "pods \"p\" is forbidden: rdma/hca is not offered by any pool of this virtual cluster: "
         "offered sublet.dev/gpu-percent"},
        {"initContainers: [{name: j, image: i, " LIMITS(
             "nvidia.com/gpumem: 5") "}], containers: [{name: c, image: i}]",
         "pods \"p\" is forbidden: nvidia.com/gpumem of init container \"j\": a part of a GPU is "
         "for a container"},
        {"initContainers: [{name: j, image: i, restartPolicy: Always, " LIMITS(
             "sublet.dev/gpu-percent: 5") "}], containers: [{name: c, image: i}]",
         "pods \"p\" is forbidden: sublet.dev/gpu-percent of init container \"j\": a part of a "
         "GPU is for a container"},
        {"resources: {limits: {nvidia.com/gpucores: 50}}, containers: [{name: c, image: i}]",
         "pods \"p\" is forbidden: nvidia.com/gpucores must be asked for by a container or init "
         "container"},
        {"containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: "
         "/etc/../etc/ld.so.preload}], " LIMITS("nvidia.com/gpu: 1") "}]",
         "pods \"p\" is forbidden: mountPath /etc/../etc/ld.so.preload of container \"c\" is not "
         "allowed: the library that limits it to its part of a GPU is there"},
        {"initContainers: [{name: j, image: i, volumeMounts: [{name: v, mountPath: "
         "/usr/local/vgpu/libvgpu.so}]}], " HOLDER("nvidia.com/gpu: 1"),
         "pods \"p\" is forbidden: mountPath /usr/local/vgpu/libvgpu.so of container \"j\" is not "
         "allowed: the library that limits it to its part of a GPU is there"},
    };
    struct fixture *f = *state;
    struct pool_choice choice;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(pool_resolve(f->a, &f->config, STR("ml"),
                                  pod(f, "labels: {x: y}", cases[i].spec), NULL, &choice, &f->err),
                     cases[i].message);
    assert_error(
        pool_resolve(
            f->a, &f->config, STR("ml"),
            pod(f, "labels: {sublet.dev/gpu-pool: parts}", HOLDER("nvidia.com/mig-1g.5gb: 1")),
            NULL, &choice, &f->err),
        "pods \"p\" is forbidden: nvidia.com/mig-1g.5gb is not offered by any pool of this "
        "virtual cluster: offered sublet.dev/gpu-percent");
}

/* HAMi's webhook denies it: better now than never to start. */
static void privileged_pods_get_no_gpu_of_hami(void **state)
{
    static const char spec[] =
        "containers: [{name: c, image: i, " LIMITS("nvidia.com/gpu: 1") "}, {name: d, image: i, "
                                                                        "securityContext: "
                                                                        "{privileged: true}}]";
    struct fixture *f = *state;
    struct pool_choice choice;
    int rc = pool_resolve(f->a, &f->config, STR("ml"), pod(f, "labels: {x: y}", spec), NULL,
                          &choice, &f->err);

    if (f->config.pools[0].mode == POOL_HAMI)
        assert_error(rc, "pods \"p\" is forbidden: container \"d\" is privileged, and HAMi gives "
                         "such a pod no GPU");
    else
        assert_ok(rc);
}

static void variables_that_lift_limits_are_refused(void **state)
{
    static const char *const names[] = {
        "CUDA_DISABLE_CONTROL",
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_LIMIT_0",
        "CUDA_DEVICE_SM_LIMIT",
        "CUDA_DEVICE_SM_LIMIT_1",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
        "CUDA_OVERSUBSCRIBE",
        "CUDA_TASK_PRIORITY",
        "GPU_CORE_UTILIZATION_POLICY",
        "ACTIVE_OOM_KILLER",
        "LD_PRELOAD",
        "NVIDIA_VISIBLE_DEVICES",
    };
    static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};
    struct fixture *f = *state;
    struct pool_choice choice;

    for (size_t i = 0; i < COUNT(names); i++) {
        for (size_t k = 0; k < COUNT(lists); k++) {
            cJSON *p = one(f, "nvidia.com/gpu: 1");
            cJSON *c =
                doc(f, arena_printf(f->a, "{name: x, image: i, env: [{name: %s, value: '1'}]}",
                                    names[i])
                           .p);
            cJSON *list = json_get(json_get(p, "spec"), lists[k]);

            if (!list)
                list = json_set(f->a, json_get(p, "spec"), lists[k], json_new_array(f->a));
            json_append(list, c);
            assert_error(pool_resolve(f->a, &f->config, STR("ml"), p, NULL, &choice, &f->err),
                         arena_printf(f->a,
                                      "pods \"p\" is forbidden: env %s of container \"x\" is not "
                                      "allowed: devices are given by the scheduler, not by "
                                      "variables",
                                      names[i])
                             .p);
        }
    }
    assert_error(
        pool_resolve(f->a, &f->config, STR("ml"),
                     pod(f, "labels: {x: y}",
                         "containers: [{name: c, image: i, envFrom: [{prefix: CUDA_, configMapRef: "
                         "{name: m}}], " LIMITS("nvidia.com/gpu: 1") "}]"),
                     NULL, &choice, &f->err),
        "pods \"p\" is forbidden: envFrom prefix \"CUDA_\" of container \"c\" is not allowed: it "
        "could name a variable that gives devices");
}

/* Keys of the two systems that a tenant writes go nowhere. */
static void keys_of_a_tenant_have_no_effect(void **state)
{
    static const char theirs[] =
        "annotations: {hami.io/vgpu-devices-allocated: 'GPU-1,NVIDIA,1,1:;', hami.io/vgpu-node: n, "
        "hami.io/vgpu-devices-to-allocate: x, hami.io/bind-phase: success, hami.io/vgpu-time: '1', "
        "hami.io/gpu-scheduler-policy: mutex, nvidia.com/use-gpuuuid: GPU-1, "
        "nvidia.com/nouse-gpuuuid: GPU-2, nvidia.com/use-gputype: A, nvidia.com/nouse-gputype: B, "
        "nvidia.com/vgpu-mode: mig, nvidia.com/numa-bind: 'true', volcano.sh/vgpu-ids-new: x, "
        "volcano.sh/vgpu-node: n, volcano.sh/devices-to-allocate: x, volcano.sh/vgpu-mode: mig, "
        "volcano.sh/vgpu-use-gpuuuid: GPU-1, volcano.sh/bind-phase: success}, labels: "
        "{hami.io/webhook: ignore, hami.io/gpu-scheduler-policy: binpack, "
        "volcano.sh/preemptable: 'true'}";
    struct fixture *f = *state;
    struct pool_choice choice;
    cJSON *host = down(f, pod(f, theirs, HOLDER("sublet.dev/gpu-percent: 25")), &choice);
    struct str meta = json_text(f->a, json_get(host, "metadata"));
    const cJSON *maps[] = {json_path(host, "metadata.labels"),
                           json_path(host, "metadata.annotations")};

    assert_false(str_contains(meta, STR("GPU-1")));
    for (size_t i = 0; i < COUNT(maps); i++) {
        json_each(member, maps[i])
        {
            assert_false(str_contains(json_key(member), STR("hami.io")));
            assert_false(str_has_prefix(json_key(member), STR("nvidia.com/")));
            assert_false(str_has_prefix(json_key(member), STR("volcano.sh/")));
        }
    }
    assert_charged(f, host, &choice, 25);
    host = down(f, pod(f, theirs, "containers: [{name: c, image: i}]"), &choice);
    assert_null(choice.binding);
    assert_false(str_contains(json_text(f->a, json_get(host, "metadata")), STR("GPU-1")));
}

/* What HAMi wrote since stays its own. */
static void an_update_leaves_what_was_written(void **state)
{
    struct fixture *f = *state;
    struct pool_choice choice;
    cJSON *now = down(f, one(f, "sublet.dev/gpu-percent: 25"), &choice);
    cJSON *vpod = one(f, "sublet.dev/gpu-percent: 25"), *patch;

    json_set_str(f->a, json_path(vpod, "metadata.labels"), "x", STR("z"));
    json_set_str(f->a, json_path(now, "metadata.annotations"), "hami.io/vgpu-devices-allocated",
                 STR("GPU-1,NVIDIA,10240,25:;"));
    json_set_str(f->a, json_path(now, "metadata.annotations"), "volcano.sh/vgpu-ids-new",
                 STR("GPU-1,NVIDIA,10240,25:;"));
    patch = translate_pod_update(f->a, now, down(f, vpod, &choice), true);
    assert_non_null(patch);
    assert_false(str_contains(json_text(f->a, patch), STR("vgpu")));
    assert_false(str_contains(json_text(f->a, patch), STR("gpucores")));
}

static void nodes_show_parts(void **state)
{
    struct fixture *f = *state;
    bool hami = f->config.pools[0].mode == POOL_HAMI;
    cJSON *host = doc(f, hami ? "{metadata: {name: n, labels: {sublet.dev/pool: parts, "
                                "nvidia.com/gpu.product: A100}, "
                                "annotations: {hami.io/node-nvidia-register: '[{\"devcore\": 100, "
                                "\"health\": true}, {\"devcore\": 100, \"health\": true}]'}}, "
                                "status: {capacity: {nvidia.com/gpu: '20'}, allocatable: "
                                "{nvidia.com/gpu: '20'}}}"
                              : "{metadata: {name: n, labels: {sublet.dev/pool: parts, "
                                "nvidia.com/gpu.product: A100}}, status: "
                                "{capacity: {volcano.sh/vgpu-number: '20', volcano.sh/vgpu-cores: "
                                "'200'}, allocatable: {volcano.sh/vgpu-number: '20', "
                                "volcano.sh/vgpu-cores: '200'}}}");
    cJSON *node;

    vgpu_note_node(f->a, host);
    node = translate_node_up(f->a, &f->tenant, host);
    assert_json(json_path(node, "status.capacity"), "{sublet.dev/gpu-percent: '200'}");
    assert_json(json_path(node, "status.allocatable"), "{sublet.dev/gpu-percent: '150'}");
}

static struct str event_of(struct fixture *f, const char *reason, const char *message)
{
    struct pool_choice choice;
    cJSON *host = down(f, one(f, "sublet.dev/gpu-percent: 25"), &choice), *event;

    event = doc(f, "{metadata: {name: e.1}, involvedObject: {kind: Pod, namespace: team-research}, "
                   "source: {component: hami-scheduler}}");
    json_set_str(f->a, json_get(event, "involvedObject"), "name",
                 json_str_at(host, "metadata.name"));
    json_set_str(f->a, event, "reason", str_c(reason));
    json_set_str(f->a, event, "message", str_c(message));
    event = translate_event_up(f->a, &f->tenant, event, STR("ml"), STR("p"), STR("u"));
    return json_str_at(event, "message");
}

/* HAMi's own Events name nodes. */
static void events_name_no_node(void **state)
{
    struct fixture *f = *state;

    assert_str(event_of(f, "FilteringSucceed", "find fit node(gpu-7), 2 nodes not fit"),
               "A node has room for its part of a GPU");
    assert_str(event_of(f, "FilteringFailed", "no available node, 3 nodes do not meet"),
               "No node has room for its part of a GPU yet");
    assert_str(event_of(f, "BindingSucceed", "Successfully binding node [gpu-7] to team/p"),
               "It is bound to its node");
    assert_str(event_of(f, "FailedScheduling",
                        "0/3 nodes are available: 1 Insufficient nvidia.com/gpucores, 2 "
                        "NodeUnfitPod."),
               "no node of the host cluster can take the pod: Insufficient "
               "sublet.dev/gpu-percent.");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define BOTH(name)                                                                                 \
    TEST(name),                                                                                    \
    {                                                                                              \
        #name " (volcano)", name, setup_volcano, teardown, NULL                                    \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(one_manifest_becomes_the_resources_of_the_pool),
        BOTH(every_share_is_charged_exactly),
        TEST(containers_add_up),
        BOTH(what_is_refused),
        BOTH(privileged_pods_get_no_gpu_of_hami),
        BOTH(variables_that_lift_limits_are_refused),
        BOTH(keys_of_a_tenant_have_no_effect),
        BOTH(an_update_leaves_what_was_written),
        BOTH(nodes_show_parts),
        TEST(events_name_no_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
