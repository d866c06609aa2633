/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of HAMi and Volcano: what they need, what a container holds there, and what nodes have. */

#include "test.h"

#include <sublet/vgpu.h>
#include <sublet/yaml.h>

static void assert_rational(struct rational r, int64_t num, int64_t den)
{
    assert_true(r.num == num && r.den == den);
}

static void pools_of_these_modes(void **state)
{
    struct config_fixture *f = *state;
    const struct config_pool *p;

    assert_ok(load_config(
        f, "name: research\n"
           "pools:\n"
           "- {name: h, mode: hami, nodeSelector: {p: h}, gpuMemoryMiB: 40960, scheduler: {kind: "
           "hami}}\n"
           "- {name: v, mode: volcano-vgpu, nodeSelector: {p: v}, gpuMemoryMiB: 24576, scheduler: "
           "{kind: volcano, queueTemplate: 't-{tenant}'}}\n"
           "- {name: o, mode: hami, nodeSelector: {p: o}, gpuMemoryMiB: 100, scheduler: {kind: "
           "hami, name: shares}}\n"));
    p = &f->config.pools[0];
    assert_int_equal(p->mode, POOL_HAMI);
    assert_int_equal(p->n_resources, 1);
    assert_str(p->resources[0].name, "sublet.dev/gpu-percent");
    assert_str(p->resources[0].host_name, "nvidia.com/gpucores");
    assert_rational(p->resources[0].gpu_eq, 1, 100);
    assert_str(p->scheduler, "hami-scheduler");
    assert_int_equal(p->gpu_memory_mib, 40960);
    p = &f->config.pools[1];
    assert_str(p->resources[0].host_name, "volcano.sh/vgpu-cores");
    assert_str(p->scheduler, "volcano");
    assert_str(p->queue, "t-research");
    assert_str(f->config.pools[2].scheduler, "shares");
}

#define HAMI(more) "pools: [{name: a, mode: hami, nodeSelector: {p: a}, " more "}]"

static void mistakes(void **state)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {HAMI("scheduler: {kind: hami}"),
         "config: pools[0]: gpuMemoryMiB is needed for mode hami, at least 100: what each GPU of "
         "the pool has, as its node says in label nvidia.com/gpu.memory"},
        {HAMI("gpuMemoryMiB: 99, scheduler: {kind: hami}"),
         "config: pools[0]: gpuMemoryMiB is needed for mode hami, at least 100: what each GPU of "
         "the pool has, as its node says in label nvidia.com/gpu.memory"},
        {HAMI("gpuMemoryMiB: 40Gi, scheduler: {kind: hami}"),
         "config: pools[0].gpuMemoryMiB: want a whole number, got string"},
        {HAMI("gpuMemoryMiB: 40960"),
         "config: pools[0]: scheduler.kind hami is needed for mode hami"},
        {HAMI("gpuMemoryMiB: 40960, scheduler: {kind: volcano, queueTemplate: q}"),
         "config: pools[0]: scheduler.kind hami is needed for mode hami"},
        {HAMI("gpuMemoryMiB: 40960, trust: adversarial, scheduler: {kind: hami}"),
         "config: pools[0]: mode: trust adversarial allows only exclusive|mig"},
        {HAMI("gpuMemoryMiB: 40960, resources: {nvidia.com/gpu: {gpuEq: 1}}, scheduler: {kind: "
              "hami}"),
         "config: pools[0]: resources, profiles and rename are not for mode hami: pods request a "
         "GPU or a part of one"},
        {HAMI("gpuMemoryMiB: 40960, caps: {perPodGPU: 1}, scheduler: {kind: hami}"),
         "config: pools[0]: caps.perPodGPU and caps.perContainerGPU are not for mode hami: a "
         "container has at most one GPU"},
        {HAMI("gpuMemoryMiB: 40960, scheduler: {kind: hami, gang: true}"),
         "config: pools[0].scheduler: gang: needs a scheduler kind that knows gangs: kueue, kai, "
         "volcano or native"},
        {HAMI("gpuMemoryMiB: 40960, scheduler: {kind: hami, queueTemplate: q}"),
         "config: pools[0].scheduler.queueTemplate: needs a scheduler kind with queues"},
        {"pools: [{name: a, mode: volcano-vgpu, nodeSelector: {p: a}, gpuMemoryMiB: 100}]",
         "config: pools[0]: scheduler.kind volcano is needed for mode volcano-vgpu"},
        {"pools: [{name: a, nodeSelector: {p: a}, gpuMemoryMiB: 40960}]",
         "config: pools[0]: gpuMemoryMiB is for modes hami and volcano-vgpu"},
        {"pools: [{name: a, nodeSelector: {p: a}, scheduler: {kind: hami}}]",
         "config: pools[0]: scheduler.kind hami is for mode hami"},
        {"pools: [{name: a, nodeSelector: {p: a}, resources: {sublet.dev/gpu-percent: {gpuEq: "
         "1}}}]",
         "config: pools[0].resources.sublet.dev/gpu-percent: is of pools of modes kai-fraction, "
         "hami and volcano-vgpu, which need no resources"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_error(load_config(f, cases[i].yaml), cases[i].message);
}

/* Memory is never more than the share, and a share never less than the memory it is for. */
static void shares_and_memory(void **state)
{
    struct config_pool p = {.mode = POOL_HAMI};

    (void)state;
    for (p.gpu_memory_mib = 100; p.gpu_memory_mib < 90000; p.gpu_memory_mib += 997) {
        int64_t sum = 0;

        for (int64_t i = 1; i <= VGPU_WHOLE; i++) {
            int64_t memory = vgpu_memory(&p, i);

            assert_true(memory >= 1 && memory * 100 <= p.gpu_memory_mib * i);
            assert_true(vgpu_percent(&p, memory) <= i);
            assert_true(vgpu_memory(&p, vgpu_percent(&p, memory)) >= memory);
            sum += i == 1 ? 100 * memory : 0;
        }
        assert_true(sum <= p.gpu_memory_mib);
        assert_int_equal(vgpu_memory(&p, VGPU_WHOLE), p.gpu_memory_mib);
        assert_int_equal(vgpu_percent(&p, p.gpu_memory_mib + 1), VGPU_WHOLE + 1);
        assert_int_equal(vgpu_percent(&p, INT64_MAX), VGPU_WHOLE + 1);
    }
}

static void what_a_container_holds(void **state)
{
    static const struct {
        const char *resources;
        int64_t holds;
    } rows[] = {
        {"{}", 0},
        {"{limits: {cpu: 1}}", 0},
        {"{limits: {nvidia.com/gpu: '1', nvidia.com/gpumem: '10240', nvidia.com/gpucores: '25'}}",
         25},
        {"{requests: {nvidia.com/gpu: '1', nvidia.com/gpucores: '25'}}", 25},
        {"{limits: {nvidia.com/gpu: '2', nvidia.com/gpucores: '30'}}", 60},
        {"{limits: {nvidia.com/gpucores: '30'}}", 30}, /* HAMi makes one GPU of it */
        {"{limits: {nvidia.com/gpu: '1'}}", 100},
        {"{limits: {nvidia.com/gpu: '3'}}", 300},
        {"{limits: {nvidia.com/gpu: '1', nvidia.com/gpumem: '1'}}", 100},
        {"{limits: {nvidia.com/gpumem: '1'}}", 100},
        {"{limits: {nvidia.com/gpu: '1', nvidia.com/gpucores: '0'}}", 100},
        {"{limits: {nvidia.com/gpu: '1', nvidia.com/gpucores: '500'}}", 100},
        {"{limits: {nvidia.com/gpu: '1', nvidia.com/gpucores: '10', "
         "nvidia.com/gpumem-percentage: '40'}}",
         40},
        {"{limits: {nvidia.com/gpu: '0', nvidia.com/gpucores: '10'}}", 0},
        {"{limits: {nvidia.com/gpu: '9223372036854775807'}}", INT64_MAX},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *tree = NULL;

        assert_ok(yaml_parse(f->a, arena_printf(f->a, "{resources: %s}", rows[i].resources), NULL,
                             NULL, &tree, &f->err));
        assert_int_equal(vgpu_of_container(vgpu_system(POOL_HAMI), tree), rows[i].holds);
    }
}

#define GPU(cores, health, mode)                                                                   \
    "{\"id\":\"GPU-1\",\"count\":10,\"devmem\":40960,\"devcore\":" #cores                          \
    ",\"type\":\"A100\",\"health\":" #health ",\"mode\":\"" mode "\"}"

static void what_a_node_has(void **state)
{
    static const struct {
        const char *record, *capacity, *allocatable;
    } rows[] = {
        {"[" GPU(100, true, "hami-core") "," GPU(100, true, "") "]", "200", "200"},
        {"[" GPU(100, true, "hami-core") "," GPU(100, false, "") "]", "200", "100"},
        {"[" GPU(300, true, "hami-core") "," GPU(50, true, "") "]", "150", "150"}, /* scaled */
        {"[" GPU(100, true, "mig") "," GPU(-7, true, "") "]", "0", "0"},
        {"GPU-1,10,40960,100,A100,0,true,0,hami-core:GPU-2,10,40960,100,A100,0,false,1,hami-core:",
         "200", "100"},
        {"GPU-1,10,40960,100,A100,0,true:", "100", "100"},
        {"GPU-1,10,40960,1e9,A100,0,true:GPU-2,10", "100", "100"},
        {"[7, {}, null, \"x\"]", "0", "0"},
        {"[{\"devcore\": 100", "0", "0"},
        {"::::", "0", "0"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *node = NULL;

        assert_ok(yaml_parse(f->a,
                             STR("{metadata: {annotations: {}}, status: {capacity: "
                                 "{nvidia.com/gpu: '20'}, allocatable: {nvidia.com/gpu: '20'}}}"),
                             NULL, NULL, &node, &f->err));
        vgpu_note_node(f->a, node);
        assert_null(json_get(json_path(node, "status.capacity"), VGPU_HAMI_CORES));
        json_set_str(f->a, json_path(node, "metadata.annotations"), VGPU_HAMI_RECORD,
                     str_c(rows[i].record));
        vgpu_note_node(f->a, node);
        assert_str(json_str(json_get(json_path(node, "status.capacity"), VGPU_HAMI_CORES)),
                   rows[i].capacity);
        assert_str(json_str(json_get(json_path(node, "status.allocatable"), VGPU_HAMI_CORES)),
                   rows[i].allocatable);
        json_set_str(f->a, json_path(node, "status.allocatable"), "nvidia.com/gpu", STR("0"));
        vgpu_note_node(f->a, node);
        assert_str(json_str(json_get(json_path(node, "status.allocatable"), VGPU_HAMI_CORES)), "0");
    }
}

static void what_a_node_of_volcano_has(void **state)
{
    static const struct {
        const char *record, *allocatable;
    } rows[] = {
        {"GPU-1,10,24576,NVIDIA-L4,true,hami-core:GPU-2,10,24576,NVIDIA-L4,false,hami-core:",
         "100"},
        {"GPU-1,10,24576,NVIDIA-L4,true:GPU-2,10,24576,NVIDIA-L4,true:", "200"},
        {"GPU-1,10,24576,NVIDIA-L4,true,mig:GPU-2,10:", "0"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        cJSON *node = NULL;

        assert_ok(yaml_parse(
            f->a,
            arena_printf(f->a,
                         "{metadata: {annotations: {volcano.sh/node-vgpu-register: '%s'}}, status: "
                         "{capacity: {volcano.sh/vgpu-number: '20', volcano.sh/vgpu-cores: '170'}, "
                         "allocatable: {volcano.sh/vgpu-number: '20'}}}",
                         rows[i].record),
            NULL, NULL, &node, &f->err));
        vgpu_note_node(f->a, node);
        assert_str(json_str(json_get(json_path(node, "status.capacity"), "volcano.sh/vgpu-cores")),
                   "170");
        assert_str(
            json_str(json_get(json_path(node, "status.allocatable"), "volcano.sh/vgpu-cores")),
            rows[i].allocatable);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pools_of_these_modes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mistakes, config_setup, config_teardown),
        cmocka_unit_test(shares_and_memory),
        cmocka_unit_test_setup_teardown(what_a_container_holds, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(what_a_node_has, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(what_a_node_of_volcano_has, config_setup, config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
