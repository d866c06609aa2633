/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and bindings as an admin writes them, and every way of getting them wrong. */

#include "test.h"

static void assert_rational(struct rational r, int64_t num, int64_t den)
{
    assert_true(r.num == num && r.den == den);
}

static void the_example_of_the_model(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(load_config(
        f, "pools:\n"
           "- name: h100-dedicated-fraud\n"
           "  kind: dedicated\n"
           "  trust: adversarial\n"
           "  nodeSelector: {sublet.dev/pool: h100-dedicated-fraud}\n"
           "  tolerations: [{key: sublet.dev/pool, operator: Equal, value: h100-dedicated-fraud, "
           "effect: NoSchedule}, {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]\n"
           "  products: [NVIDIA-H100-80GB-HBM3]\n"
           "  mode: exclusive\n"
           "  resources: {nvidia.com/gpu: {gpuEq: '1'}}\n"
           "  profiles: []\n"
           "  rename: {}\n"
           "  deviceClasses: []\n"
           "  caps: {perPodGPU: 2, perContainerGPU: 1, gpuPodsPerMinute: 60, maxLifetime: 72h}\n"
           "  scheduler: {name: default-scheduler, kind: none}\n"
           "  runtimeClass: nvidia\n"
           "  priorityTiers: {high: gpu-1000, normal: gpu-500, low: gpu-100}\n"
           "  metering: {price: '2.50', currency: USD, per: GPUHour, borrowFactor: '0.8'}\n"
           "bindings:\n"
           "- {pool: h100-dedicated-fraud, guarantee: '4', burst: '1/2', lend: '2', overQuota: "
           "queue, queueOrder: strict, queueHold: 5m, default: true}\n"));
    p = &f->config.pools[0];
    assert_int_equal(f->config.n_pools, 1);
    assert_true(p->dedicated && p->adversarial);
    assert_int_equal(p->per_pod, 2);
    assert_int_equal(p->per_container, 1);
    assert_int_equal(p->pods_per_minute, 60);
    assert_int_equal(p->max_lifetime_s, 72 * 3600);
    assert_int_equal(json_count(p->tolerations), 2);
    assert_str(p->price, "2.50");
    assert_str(p->borrow_factor, "0.8");
    assert_str(p->currency, "USD");
    assert_str(p->runtime_class, "nvidia");
    assert_int_equal(p->n_resources, 1);
    assert_rational(p->resources[0].gpu_eq, 1, 1);
    assert_ptr_equal(f->config.bindings[0].pool, p);
    assert_rational(f->config.bindings[0].guarantee, 4, 1);
    assert_rational(f->config.bindings[0].burst, 1, 2);
    assert_rational(f->config.bindings[0].lend, 2, 1);
    assert_int_equal(f->config.bindings[0].over_quota, OVER_QUOTA_QUEUE);
    assert_true(f->config.bindings[0].is_default && f->config.bindings[0].strict);
    assert_int_equal(f->config.bindings[0].hold_s, 300);
}

static void defaults_of_a_pool(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(load_config(
        f, "{pools: [{name: a, nodeSelector: {p: a}}], bindings: [{pool: a, guarantee: 2}]}"));
    p = &f->config.pools[0];
    assert_false(p->dedicated || p->adversarial);
    assert_int_equal(p->mode, POOL_EXCLUSIVE);
    assert_str(p->resources[0].name, "nvidia.com/gpu");
    assert_str(p->resources[0].host_name, "nvidia.com/gpu");
    assert_rational(p->resources[0].gpu_eq, 1, 1);
    assert_int_equal(f->config.bindings[0].over_quota, OVER_QUOTA_REJECT);
    assert_false(f->config.bindings[0].strict);
    assert_int_equal(f->config.bindings[0].hold_s, 600);
}

static void mig_profiles_are_resources(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(
        load_config(f, "pools:\n"
                       "- {name: m, mode: mig, nodeSelector: {p: m}, profiles: {1g.10gb: {gpuEq: "
                       "'1/7'}, 1g.10gb+me: {gpuEq: '1/7'}},\n"
                       "   rename: {nvidia.com/mig-1g.10gb: nvidia.com/gpu}}\n"));
    p = &f->config.pools[0];
    assert_int_equal(p->n_resources, 2);
    assert_str(p->resources[0].name, "nvidia.com/mig-1g.10gb");
    assert_str(p->resources[0].host_name, "nvidia.com/gpu");
    assert_rational(p->resources[0].gpu_eq, 1, 7);
    assert_str(p->resources[1].name, "nvidia.com/mig-1g.10gb.me");
}

static void parts_of_gpus(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(load_config(f, "name: research\n"
                             "pools: [{name: a, mode: kai-fraction, nodeSelector: {p: a}, "
                             "scheduler: {kind: kai, queueTemplate: 't-{tenant}'}}]\n"
                             "bindings: [{pool: a, guarantee: '0.5', burst: 1}]\n"));
    p = &f->config.pools[0];
    assert_int_equal(p->mode, POOL_KAI);
    assert_int_equal(p->n_resources, 1);
    assert_str(p->resources[0].name, "sublet.dev/gpu-percent");
    assert_rational(p->resources[0].gpu_eq, 1, 100);
    assert_str(p->scheduler, "kai-scheduler");
    assert_str(p->queue, "t-research");
    assert_rational(f->config.bindings[0].limit, 3, 2);
}

static void a_queue_is_named_after_the_host_namespace(void **state)
{
#define PARTS                                                                                      \
    "name: research\n"                                                                             \
    "pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: kai, queueTemplate: "               \
    "'{namespace}-{tenant}-parts'}}]\n"
    struct config_fixture *f = *state;
    char text[512];

    assert_ok(load_config(f, PARTS "host: {namespace: team-a}"));
    assert_str(f->config.pools[0].queue, "team-a-research-parts");
    assert_error(load_config(f, PARTS), "config: pools[0].scheduler.queueTemplate: host.namespace "
                                        "is needed for {namespace}");
    snprintf(text, sizeof(text), "%shost: {namespace: n%049d}", PARTS, 7);
    assert_error(
        load_config(f, text),
        "config: pools[0].scheduler.queueTemplate: queue "
        "\"n0000000000000000000000000000000000000000000000007-research-parts\": must be no "
        "more than 63 bytes");
#undef PARTS
}

static void mistakes_about_parts(void **state)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"pools: [{name: a, mode: kai-fraction}]",
         "config: pools[0]: scheduler.kind kai is needed for mode kai-fraction"},
        {"pools: [{name: a, mode: kai-fraction, scheduler: {kind: volcano}}]",
         "config: pools[0]: scheduler.kind kai is needed for mode kai-fraction"},
        {"pools: [{name: a, mode: kai-fraction, nodeSelector: {p: a}, scheduler: {kind: kai}}]",
         "config: pools[0].scheduler.queueTemplate: the name of a queue is needed, such as gpu or "
         "t-{tenant}"},
        {"pools: [{name: a, mode: kai-fraction, trust: adversarial, scheduler: {kind: kai}}]",
         "config: pools[0]: mode: trust adversarial allows only exclusive|mig"},
        {"pools: [{name: a, mode: kai-fraction, resources: {nvidia.com/gpu: {gpuEq: 1}}, "
         "scheduler: {kind: kai}}]",
         "config: pools[0]: resources, profiles and rename are not for mode kai-fraction: pods "
         "request sublet.dev/gpu-percent"},
        {"pools: [{name: a, mode: kai-fraction, caps: {perPodGPU: 1}, scheduler: {kind: kai}}]",
         "config: pools[0]: caps.perPodGPU and caps.perContainerGPU are not for mode kai-fraction: "
         "a pod has less than a GPU"},
        {"pools: [{name: a, resources: {sublet.dev/gpu-percent: {gpuEq: 1}}}]",
         "config: pools[0].resources.sublet.dev/gpu-percent: is of pools of modes "
         "kai-fraction, hami and volcano-vgpu, which need no resources"},
        {"pools: [{name: a, rename: {nvidia.com/gpu: sublet.dev/gpu-percent}}]",
         "config: pools[0].rename.nvidia.com/gpu: want the name of an extended resource"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(load_config(f, cases[i].yaml), cases[i].message);
}

static void a_queue_is_named_after_the_virtual_cluster(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(load_config(
        f,
        "name: research\n"
        "pools:\n"
        "- {name: a, nodeSelector: {p: a}, scheduler: {kind: kueue, queueTemplate: gpu}}\n"
        "- {name: b, nodeSelector: {p: b}, scheduler: {kind: kueue, queueTemplate: "
        "'t-{tenant}-{tenant}.b'}}\n"
        "- {name: c, nodeSelector: {p: c}}\n"
        "- {name: d, nodeSelector: {p: d}, scheduler: {kind: kai, queueTemplate: default, gang: "
        "true}}\n"
        "- {name: e, nodeSelector: {p: e}, scheduler: {kind: volcano, queueTemplate: '{tenant}', "
        "name: ours}}\n"
        "- {name: f, nodeSelector: {p: f}, scheduler: {kind: native, gang: true}}\n"));
    p = f->config.pools;
    assert_str(p[3].scheduler, "kai-scheduler");
    assert_str(p[3].queue, "default");
    assert_true(p[3].gang);
    assert_false(p[4].gang);
    assert_str(p[4].scheduler, "ours");
    assert_str(p[4].queue, "research");
    assert_int_equal(p[0].scheduler_kind, SCHEDULER_KUEUE);
    assert_str(p[0].queue, "gpu");
    assert_str(p[0].scheduler, "");
    assert_str(p[1].queue, "t-research-research.b");
    assert_int_equal(p[2].scheduler_kind, SCHEDULER_NONE);
    assert_str(p[2].queue, "");
    assert_int_equal(p[5].scheduler_kind, SCHEDULER_NATIVE);
    assert_true(p[5].gang);
    assert_str(p[5].scheduler, "");
}

static void resources_have_a_weight_or_a_cap(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(
        load_config(f, "pools: [{name: a, nodeSelector: {zone: z, p: a}, tolerations: [{key: p, "
                       "value: a}, {key: nvidia.com/gpu, operator: Exists}], resources: {rdma/hca: "
                       "{gpuEq: 0, perPod: 2}, x.example/npu: {gpuEq: '1/2', variables: "
                       "[X_VISIBLE_DEVICES]}}}]"));
    p = &f->config.pools[0];
    assert_string_equal(p->fence_key, "p");
    assert_rational(p->resources[0].gpu_eq, 0, 1);
    assert_int_equal(p->resources[0].per_pod, 2);
    assert_rational(p->resources[1].gpu_eq, 1, 2);
    assert_int_equal(p->resources[1].per_pod, 0);
    assert_true(str_list_has(p->resources[1].variables, STR("X_VISIBLE_DEVICES")));
}

static void mistakes_about_device_classes(void **state)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"pools: [{name: a, mode: dra}]",
         "config: pools[0]: deviceClasses are needed for mode dra"},
        {"pools: [{name: a, deviceClasses: {gpu: {gpuEq: 1}}}]",
         "config: pools[0]: deviceClasses are for mode dra"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 1}}, resources: "
         "{nvidia.com/gpu: {gpuEq: 1}}}]",
         "config: pools[0]: resources: pods of mode dra have devices by claims only"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 1}}, caps: "
         "{perContainerGPU: 1}}]",
         "config: pools[0]: caps.perContainerGPU is not for mode dra: claims are of pods"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {}}}]",
         "config: pools[0].deviceClasses.gpu: gpuEq is needed"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 0}}}]",
         "config: pools[0].deviceClasses.gpu: perClaim is needed with gpuEq 0: what no quota "
         "counts has a cap"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 1, config: [{driver: d}]}}}]",
         "config: pools[0].deviceClasses.gpu.config[0]: driver and parameters are needed"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 1, config: [{driver: d, "
         "parameters: x}]}}}]",
         "config: pools[0].deviceClasses.gpu.config[0].parameters: want an object, got string"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 1, devices: {attributes: {a: b}"
         "}}}}]",
         "config: pools[0].deviceClasses.gpu.devices: driver is needed"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 1, devices: {driver: 1}}}}]",
         "config: pools[0].deviceClasses.gpu.devices.driver: want a string, got number"},
        {"pools: [{name: a, mode: dra, deviceClasses: {gpu: {gpuEq: 1, devices: {driver: d, "
         "attributes: {a: true}}}}}]",
         "config: pools[0].deviceClasses.gpu.devices.attributes.a: want a string, got bool"},
        {"{pools: [{name: a, mode: dra, nodeSelector: {sublet.dev/pool: a}, deviceClasses: {gpu: "
         "{gpuEq: 1}}}], bindings: [{pool: a, guarantee: 1, overQuota: queue}]}",
         "config: bindings[0]: overQuota queue is for pods: a claim in pool \"a\" is charged when "
         "it is created, or refused"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(load_config(f, cases[i].yaml), cases[i].message);
}

static void grants_of_device_classes(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(load_config(
        f,
        "{pools: [{name: a, mode: dra, nodeSelector: {sublet.dev/pool: a}, deviceClasses: {gpu: "
        "{gpuEq: '1/2', perClaim: 3, config: [{driver: d, parameters: {x: 1}}]}, nic: {gpuEq: 0, "
        "perClaim: 1}}}], bindings: [{pool: a, guarantee: 1}]}"));
    p = &f->config.pools[0];
    assert_int_equal(p->mode, POOL_DRA);
    assert_int_equal(p->n_resources, 0);
    assert_int_equal(p->n_device_classes, 2);
    assert_rational(config_pool_device_class(p, STR("gpu"))->gpu_eq, 1, 2);
    assert_int_equal(config_pool_device_class(p, STR("gpu"))->per_claim, 3);
    assert_int_equal(json_count(config_pool_device_class(p, STR("gpu"))->config), 1);
    assert_null(config_pool_device_class(p, STR("nic"))->config);
    assert_null(config_pool_device_class(p, STR("other")));
}

static void mistakes_about_queues(void **state)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"pools: [{name: a, scheduler: {kind: hami}}]",
         "config: pools[0]: scheduler.kind hami is for mode hami"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: kueue}}]",
         "config: pools[0].scheduler.queueTemplate: the name of a queue is needed, such as gpu or "
         "t-{tenant}"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {name: kai-scheduler}}]",
         "config: pools[0].scheduler: \"kai-scheduler\" has queues of its own: kind is needed"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: kueue, name: volcano, "
         "queueTemplate: a}}]",
         "config: pools[0].scheduler: \"volcano\" has queues of its own: kind is needed"},
        {"pools: [{name: a, nodeSelector: {p: a}, mode: dra, deviceClasses: {c: {gpuEq: 1}}, "
         "scheduler: {kind: volcano, queueTemplate: a}}]",
         "config: pools[0]: mode, resources: the queues of scheduler \"volcano\" do not count "
         "them"},
        {"pools: [{name: a, nodeSelector: {p: a}, rename: {nvidia.com/gpu: x.example/gpu}, "
         "scheduler: {kind: kai, queueTemplate: a}}]",
         "config: pools[0]: mode, resources: the queues of scheduler \"kai-scheduler\" do not "
         "count them"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: volcano}}]",
         "config: pools[0].scheduler.queueTemplate: the name of a queue is needed, such as gpu or "
         "t-{tenant}"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {gang: true}}]",
         "config: pools[0].scheduler: gang: needs a scheduler kind that knows gangs: kueue, kai, "
         "volcano or native"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: native}}]",
         "config: pools[0].scheduler: kind native is of gangs alone: gang: true is needed"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: native, gang: true, "
         "queueTemplate: q}}]",
         "config: pools[0].scheduler.queueTemplate: needs a scheduler kind with queues"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {queueTemplate: gpu}}]",
         "config: pools[0].scheduler.queueTemplate: needs a scheduler kind with queues"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: kueue, queueTemplate: A_b}}]",
         "config: pools[0].scheduler.queueTemplate: queue \"A_b\": a lowercase RFC 1123 subdomain "
         "must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
         "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: kueue, queueTemplate: "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}]",
         "config: pools[0].scheduler.queueTemplate: queue "
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": must be no more "
         "than 63 bytes"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(load_config(f, cases[i].yaml), cases[i].message);
}

static void mistakes(void **state)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"pools: [5]", "config: pools[0]: want an object, got number"},
        {"pools: [{}]", "config: pools[0]: name is needed"},
        {"pools: [{name: a, nodeSelector: {p: a}}, {name: a, nodeSelector: {p: a}}]",
         "config: pools[1]: name \"a\" is taken by pools[0]"},
        {"pools: [{name: a, mode: fast}]",
         "config: pools[0].mode: unknown value \"fast\": want one of "
         "exclusive|mig|time-slicing|mps|kai-fraction|hami|volcano-vgpu|dra"},
        {"pools: [{name: a, trust: adversarial, mode: mps, resources: {nvidia.com/gpu: {gpuEq: "
         "'1/4'}}}]",
         "config: pools[0]: mode: trust adversarial allows only exclusive|mig"},
        {"pools: [{name: a, trust: adversarial, mode: time-slicing, resources: {nvidia.com/gpu: "
         "{gpuEq: 1}}}]",
         "config: pools[0]: mode: trust adversarial allows only exclusive|mig"},
        {"pools: [{name: a, mode: mps}]",
         "config: pools[0]: resources are needed for a shared mode: gpuEq is 1/replicas"},
        {"pools: [{name: a, mode: mig}]",
         "config: pools[0]: profiles or resources are needed for mode mig"},
        {"pools: [{name: a, profiles: {1g.5gb: {gpuEq: '1/7'}}}]",
         "config: pools[0]: profiles are for mode mig"},
        {"pools: [{name: a, kind: own}]",
         "config: pools[0].kind: unknown value \"own\": want one of shared|dedicated"},
        {"pools: [{name: a, gpus: 3}]",
         "config: pools[0].gpus: unknown key: known here are name, "
         "kind, trust, nodeSelector, tolerations, "
         "products, mode, resources, profiles, rename, "
         "deviceClasses, gpuMemoryMiB, caps, release, scheduler, runtimeClass, "
         "priorityTiers, defaultTier, metering, maintenance"},
        {"pools: [{name: a, nodeSelector: {p: a}, priorityTiers: {high: x}, defaultTier: low}]",
         "config: pools[0].defaultTier: \"low\" is not one of priorityTiers"},
        {"pools: [{name: a, caps: {perPodGPU: -1}}]",
         "config: pools[0].caps.perPodGPU: want a whole number of at least 0"},
        {"pools: [{name: a, release: {onNodeLossAfter: 0s}}]",
         "config: pools[0].release.onNodeLossAfter: want a duration of at least 1s, such as 10m"},
        {"pools: [{name: a, caps: {maxLifetime: 3}}]",
         "config: pools[0].caps.maxLifetime: want a duration such as 72h, got number"},
        {"pools: [{name: a, caps: {maxLifetime: 5ms}}]",
         "config: pools[0].caps.maxLifetime: want a duration of at least 1s, such as 72h"},
        {"pools: [{name: a, resources: {cpu: {gpuEq: '1'}}}]",
         "config: pools[0].resources.cpu: want the name of an extended resource such as "
         "nvidia.com/gpu"},
        {"pools: [{name: a, resources: {nvidia.com/gpu: {}}}]",
         "config: pools[0].resources.nvidia.com/gpu: gpuEq is needed"},
        {"pools: [{name: a, resources: {nvidia.com/gpu: {gpuEq: lots}}}]",
         "config: pools[0].resources.nvidia.com/gpu.gpuEq: want an amount of at least 0 such as "
         "\"4\", "
         "\"0.25\" or \"1/7\""},
        {"pools: [{name: a, rename: {nvidia.com/other: nvidia.com/gpu}}]",
         "config: pools[0]: rename.nvidia.com/other: not a resource of this pool"},
        {"pools: [{name: a, products: [A100-SHARED]}]",
         "config: pools[0].products[0]: want a product without -MIG-* and -SHARED"},
        {"pools: [{name: a, nodeSelector: {x: 5}}]",
         "config: pools[0].nodeSelector.x: want a string, got number"},
        {"pools: [{name: a, deviceClasses: [gpu]}]",
         "config: pools[0].deviceClasses: want an object, got array"},
        {"pools: [{name: a, metering: {price: cheap}}]",
         "config: pools[0].metering.price: want an amount of at least 0 such as \"4\", \"0.25\" or "
         "\"1/7\""},
        {"bindings: [{pool: a, guarantee: 1}]",
         "config: bindings[0].pool: no pool is called \"a\""},
        {"{pools: [{name: a, nodeSelector: {p: a}}], bindings: [{guarantee: 1}]}",
         "config: bindings[0]: pool is needed"},
        {"{pools: [{name: a, nodeSelector: {p: a}}], bindings: [{pool: a}]}",
         "config: bindings[0]: guarantee or burst is needed"},
        {"{pools: [{name: a, nodeSelector: {p: a}}], bindings: [{pool: a, guarantee: 1, lend: 2}]}",
         "config: bindings[0]: lend must not exceed guarantee"},
        {"{pools: [{name: a, nodeSelector: {p: a}}], bindings: [{pool: a, burst: 1}, {pool: a, "
         "burst: 1}]}",
         "config: bindings[1]: pool is bound by bindings[0] already"},
        {"{pools: [{name: a, nodeSelector: {p: a}}, {name: b, nodeSelector: {p: b}}], bindings: "
         "[{pool: a, burst: 1, default: true}, {pool: b, "
         "burst: 1, "
         "default: true}]}",
         "config: bindings[1]: default is bindings[0] already"},
        {"{pools: [{name: a, nodeSelector: {p: a}}], bindings: [{pool: a, burst: 1, overQuota: "
         "wait}]}",
         "config: bindings[0].overQuota: unknown value \"wait\": want one of reject|queue"},
        {"{policy: {podSecurity: privileged}, pools: [{name: a, trust: adversarial, nodeSelector: "
         "{p: a}}], bindings: "
         "[{pool: a, "
         "burst: 1}]}",
         "config: bindings[0]: policy.podSecurity privileged voids the trust of pool \"a\""},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(load_config(f, cases[i].yaml), cases[i].message);
}

/* What keeps a tenant off the nodes of others, and devices that no quota counts. */
/* The driver shares slices of MIG by time: they do not keep the pods of tenants apart then. */
static void slices_are_shared_by_one_tenant(void **state)
{
    struct config_fixture *f = *state;

    assert_ok(load_config(
        f, "pools:\n"
           "- {name: slices, kind: dedicated, mode: time-slicing, nodeSelector: {p: a},\n"
           "   resources: {nvidia.com/mig-1g.10gb: {gpuEq: 1/14}},\n"
           "   rename: {nvidia.com/mig-1g.10gb: nvidia.com/mig-1g.10gb.shared}}\n"));
    assert_rational(f->config.pools[0].resources[0].gpu_eq, 1, 14);
}

static void mistakes_of_the_fence(void **state)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"pools: [{name: a, kind: dedicated}]",
         "config: pools[0]: nodeSelector is needed: it is the fence around the pool's nodes"},
        {"pools: [{name: a, tolerations: [{operator: Exists}]}]",
         "config: pools[0].tolerations[0]: key is needed: a pool must not tolerate every taint"},
        {"pools: [{name: a, tolerations: [{key: x, effect: Never}]}]",
         "config: pools[0].tolerations[0].effect: unknown value \"Never\": want one of "
         "NoSchedule|PreferNoSchedule|NoExecute"},
        {"pools: [{name: a, resources: {rdma/hca: {gpuEq: 0}}}]",
         "config: pools[0].resources.rdma/hca: perPod is needed with gpuEq 0: what no quota counts "
         "has a cap"},
        {"pools: [{name: a, mode: mig, profiles: {1g.5gb: {gpuEq: 0}}}]",
         "config: pools[0].profiles.1g.5gb: perPod is needed with gpuEq 0: what no quota counts "
         "has "
         "a cap"},
        {"pools: [{name: a, trust: adversarial, rename: {nvidia.com/gpu: nvidia.com/gpu.shared}, "
         "nodeSelector: {p: a}, resources: {nvidia.com/gpu: {gpuEq: 1/4}}}]",
         "config: pools[0]: resources: \"nvidia.com/gpu.shared\" is a shared device, and trust "
         "adversarial allows none"},
        {"pools: [{name: a, trust: adversarial, mode: mig, nodeSelector: {p: a}, resources: "
         "{nvidia.com/mig-1g.10gb.shared: {gpuEq: 1/14}}}]",
         "config: pools[0]: resources: \"nvidia.com/mig-1g.10gb.shared\" is a shared device, and "
         "trust adversarial allows none"},
        {"pools: [{name: a, nodeSelector: {p: a}, rename: {nvidia.com/gpu: nvidia.com/gpu.shared}, "
         "resources: {nvidia.com/gpu: {gpuEq: 1/4}}}]",
         "config: pools[0]: resources: \"nvidia.com/gpu.shared\" is a shared device: mode "
         "time-slicing or mps is needed"},
        {"pools: [{name: a, nodeSelector: {p: a}, mode: mig, resources: "
         "{nvidia.com/mig-1g.10gb.shared: {gpuEq: 1/14}}}]",
         "config: pools[0]: resources: \"nvidia.com/mig-1g.10gb.shared\" is a shared device: mode "
         "time-slicing or mps is needed"},
        {"pools: [{name: a, nodeSelector: {p: a}, mode: mps, kind: dedicated, resources: "
         "{nvidia.com/mig-1g.10gb: {gpuEq: 1/14}}}]",
         "config: pools[0]: resources: \"nvidia.com/mig-1g.10gb\" is a MIG slice, and MPS shares "
         "whole GPUs only"},
        {"pools: [{name: a, nodeSelector: {p: a}, mode: time-slicing, rename: "
         "{nvidia.com/gpu: nvidia.com/mig-1g.10gb.shared}, resources: {nvidia.com/gpu: {gpuEq: "
         "1/14}}}]",
         "config: pools[0]: resources: \"nvidia.com/mig-1g.10gb.shared\" is a MIG slice that pods "
         "share, which those of one tenant may: kind dedicated is needed"},
        {"pools: [{name: a, resources: {x.example/npu: {gpuEq: 1, variables: [A B]}}}]",
         "config: pools[0].resources.x.example/npu.variables[0]: want the name of a variable such "
         "as EXAMPLE_VISIBLE_DEVICES"},
        {"pools: [{name: a}]",
         "config: pools[0]: nodeSelector is needed: it is the fence around the pool's nodes"},
        {"pools: [{name: a, nodeSelector: {}}]",
         "config: pools[0]: nodeSelector is needed: it is the fence around the pool's nodes"},
        {"pools: [{name: a, nodeSelector: {p: ''}}]",
         "config: pools[0]: nodeSelector.p: a value is needed"},
        {"pools: [{name: a, nodeSelector: {zone: z1, p: a}}]",
         "config: pools[0]: nodeSelector: one of its labels must be sublet.dev/pool or have a "
         "toleration of the same key: it keeps other pods off the pool's nodes"},
        {"pools: [{name: a, nodeSelector: {p: a}, tolerations: [{key: sublet.dev/pool, operator: "
         "Exists}]}]",
         "config: pools[0].tolerations[0]: operator Equal with a value is needed: it is the taint "
         "of one pool"},
        {"pools: [{name: a, nodeSelector: {p: a}, tolerations: [{key: sublet.dev/x}]}]",
         "config: pools[0].tolerations[0]: operator Equal with a value is needed: it is the taint "
         "of one pool"},
        {"pools: [{name: a, nodeSelector: {p: a}, tolerations: [{key: nvidia.com/gpu, operator: "
         "Exists}, {key: p, operator: Exists}]}]",
         "config: pools[0].tolerations[1]: operator Equal with value \"a\" is needed, as in "
         "nodeSelector"},
        {"pools: [{name: a, nodeSelector: {p: a}, tolerations: [{key: p, operator: Equal, value: "
         "b}]}]",
         "config: pools[0].tolerations[0]: operator Equal with value \"a\" is needed, as in "
         "nodeSelector"},
        {"{policy: {cpuNodes: [p=a]}, pools: [{name: a, nodeSelector: {p: a}}]}",
         "config: pools[0]: nodeSelector.p: policy.cpuNodes has the same nodes"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(load_config(f, cases[i].yaml), cases[i].message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_example_of_the_model, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(defaults_of_a_pool, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mig_profiles_are_resources, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(parts_of_gpus, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(a_queue_is_named_after_the_host_namespace, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(mistakes_about_parts, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(a_queue_is_named_after_the_virtual_cluster, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(mistakes_about_queues, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(resources_have_a_weight_or_a_cap, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(grants_of_device_classes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mistakes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mistakes_about_device_classes, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(slices_are_shared_by_one_tenant, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(mistakes_of_the_fence, config_setup, config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
