/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of the host's objects: devices as the scheduler counts them, times, and names that a
 * hostile tenant's process wrote. */
#include "world.h"

#include <sublet/fraction.h>
#include <sublet/vgpu.h>

#include "core/facts.h"

static void counts_devices_as_the_scheduler(void **state)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"\"containers\":[]", "0"},
        {"\"containers\":[{\"resources\":{\"limits\":{\"cpu\":\"4\"}}}]", "0"},
        {"\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}},"
         "{\"resources\":{\"requests\":{\"nvidia.com/gpu\":1}}}]",
         "3"},
        {"\"initContainers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"4\"}}}],"
         "\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}}]",
         "4"},
        {"\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{\"limits\":"
         "{\"nvidia.com/gpu\":\"1\"}}},{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"4\"}}}],"
         "\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}}]",
         "5"},
        {"\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"-1\"}}}]", "0"},
        {"\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":{}}}}]", "0"},
        {"\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":9223372036854775807}}},"
         "{\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]",
         "0"},
    };
    struct world w;

    (void)state;
    world_open(&w);
    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *pod = world_parse(&w, arena_printf(w.a, "{\"spec\":{%s}}", cases[i].spec));
        struct rational gpu_eq;
        struct str names;
        bool any = fact_pod_devices(w.a, pod, &w.pool, &gpu_eq, &names);

        assert_int_equal(any, strcmp(cases[i].want, "0") != 0);
        if (any)
            assert_str(rational_format(w.a, gpu_eq), cases[i].want);
        fact_reduce_pod(w.a, pod);
        assert_int_equal(any, fact_pod_devices(w.a, pod, &w.pool, &gpu_eq, &names));
    }
    world_close(&w);
}

/* Parts of GPUs: by KAI's annotations, and whole GPUs beside them, but for KAI's own pods. */
static void counts_parts_of_gpus(void **state)
{
    static const struct {
        const char *meta, *gpus, *want;
    } cases[] = {
        {"\"annotations\":{\"gpu-fraction\":\"0.07\"}", "0", "0.07"},
        {"\"annotations\":{\"gpu-fraction\":\"0.5\",\"gpu-fraction-num-devices\":\"2\"}", "0", "1"},
        {"\"annotations\":{\"gpu-fraction\":\"0.333\"}", "0", "1"},
        {"\"annotations\":{\"gpu-memory\":\"100\"}", "0", "1"},
        {"\"annotations\":{\"x\":\"y\"}", "2", "2"},
        {"\"annotations\":{\"gpu-fraction\":\"0.25\"}", "1", "1.25"},
        {"\"annotations\":{\"gpu-fraction\":\"0.25\"}", "9223372036854775807", "0"},
        {"\"labels\":{\"app\":\"kai-resource-reservation\"}", "1", "1"},
        {"\"namespace\":\"kai-resource-reservation\"", "1", "0"},
        {"\"annotations\":{}", "0", "0"},
    };
    struct world w;

    (void)state;
    world_open(&w);
    w.resource = (struct pool_resource){
        .name = STR(FRACTION_RESOURCE), .host_name = STR(FRACTION_RESOURCE), .gpu_eq = {1, 100}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *pod = world_parse(
            &w, arena_printf(w.a,
                             "{\"metadata\":{%s},\"spec\":{\"nodeName\":\"n\",\"containers\":[{"
                             "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"%s\"}}}]}}",
                             cases[i].meta, cases[i].gpus));
        struct rational gpu_eq;
        struct str names;
        bool any = fact_pod_devices(w.a, pod, &w.pool, &gpu_eq, &names);

        assert_int_equal(any, strcmp(cases[i].want, "0") != 0);
        if (any)
            assert_str(rational_format(w.a, gpu_eq), cases[i].want);
        fact_reduce_pod(w.a, pod);
        assert_int_equal(any, fact_pod_devices(w.a, pod, &w.pool, &gpu_eq, &names));
        if (any)
            assert_str(rational_format(w.a, gpu_eq), cases[i].want);
    }
    world_close(&w);
}

static void a_node_of_a_pool_of_parts(void **state)
{
    struct world w;
    struct fact_node fact;

    (void)state;
    world_open(&w);
    w.resource = (struct pool_resource){
        .name = STR(FRACTION_RESOURCE), .host_name = STR(FRACTION_RESOURCE), .gpu_eq = {1, 100}};
    fact_node(world_node(&w, "n1", 8, 6, true, BEGIN), &w.pool, 1, &fact);
    assert_str(rational_format(w.a, fact.total), "8");
    assert_str(rational_format(w.a, fact.unhealthy), "2");
    world_close(&w);
}

/* Shares of HAMi: what a container has of a GPU, whatever it leaves out; what a node registered. */
static void counts_shares_of_gpus(void **state)
{
    static const struct {
        const char *containers, *want;
    } cases[] = {
        {"[{'nvidia.com/gpu':'1','nvidia.com/gpumem':'10240','nvidia.com/gpucores':'25'}]", "0.25"},
        {"[{'nvidia.com/gpu':'1','nvidia.com/gpucores':'25'},{'nvidia.com/gpu':'1',"
         "'nvidia.com/gpucores':'60'}]",
         "0.85"},
        {"[{'nvidia.com/gpu':'2','nvidia.com/gpucores':'25'}]", "0.5"},
        {"[{'nvidia.com/gpu':'1'}]", "1"},
        {"[{'nvidia.com/gpu':'1','nvidia.com/gpumem':'1'}]", "1"},
        {"[{'nvidia.com/gpumem':'1'},{'nvidia.com/gpucores':'5'}]", "1.05"},
        {"[{'cpu':'1'}]", "0"},
    };
    struct world w;
    struct fact_node fact;
    cJSON *node;

    (void)state;
    world_open(&w);
    w.resource = (struct pool_resource){
        .name = STR(FRACTION_RESOURCE), .host_name = STR(VGPU_HAMI_CORES), .gpu_eq = {1, 100}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = arena_cstr(w.a, str_c(cases[i].containers));
        cJSON *pod = world_parse(&w, STR("{\"metadata\":{},\"spec\":{\"nodeName\":\"n\"}}"));
        cJSON *list = json_set(w.a, json_get(pod, "spec"), "containers", json_new_array(w.a));
        struct rational gpu_eq, units;
        struct fact_units *all;
        struct str names;
        size_t n;

        for (char *p = text; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        json_each(limits, world_parse(&w, str_c(text)))
        {
            cJSON *c = json_append(list, json_new_object(w.a));

            json_set(w.a, json_ensure_object(w.a, c, "resources"), "limits",
                     json_copy(w.a, limits));
        }
        n = fact_pod_units(w.a, pod, &all);
        assert_int_equal(fact_gpus(all, n, &w.pool, &units), !str_eqc(STR("0"), cases[i].want));
        assert_str(rational_format(w.a, units), cases[i].want);
        if (fact_pod_devices(w.a, pod, &w.pool, &gpu_eq, &names))
            assert_str(rational_format(w.a, gpu_eq), cases[i].want);
        else
            assert_str(STR("0"), cases[i].want);
    }
    node = world_node(&w, "n1", 80, 80, true, BEGIN);
    json_set_str(w.a, json_ensure_object(w.a, json_get(node, "metadata"), "annotations"),
                 VGPU_HAMI_RECORD,
                 STR("[{\"devcore\":100,\"health\":true},{\"devcore\":100,\"health\":false}]"));
    fact_reduce_node(w.a, node);
    fact_node(node, &w.pool, 1, &fact);
    assert_str(rational_format(w.a, fact.total), "2");
    assert_str(rational_format(w.a, fact.unhealthy), "1");
    world_close(&w);
}

static void names_are_bounded_and_on_one_line(void **state)
{
    struct world w;
    struct fact_pod fact;
    char longest[2000];

    (void)state;
    world_open(&w);
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    fact_pod(w.a,
             world_parse(&w, arena_printf(w.a,
                                          "{\"metadata\":{\"uid\":\"u\",\"namespace\":\"team-a\","
                                          "\"labels\":{\"sublet.dev/cluster\":\"c\"},"
                                          "\"annotations\":{\"sublet.dev/name\":\"%s\","
                                          "\"sublet.dev/namespace\":\"a\\nb\\u0000\\u001b[2J\"}}}",
                                          longest)),
             &fact);
    assert_int_equal(fact.hold.name.n, 253);
    assert_str(fact.hold.ns, "a?b??[2J");
    assert_str(fact.hold.tenant, "team-a");
    assert_false(fact.on_node || fact.ended);
    world_close(&w);
}

static void a_pod_of_no_tenant_has_its_own_names(void **state)
{
    struct world w;
    struct fact_pod fact;

    (void)state;
    world_open(&w);
    fact_pod(w.a,
             world_parse(&w, STR("{\"metadata\":{\"uid\":\"u\",\"name\":\"dcgm-x\",\"namespace\":"
                                 "\"gpu-operator\",\"annotations\":{\"sublet.dev/name\":\"forged\"}"
                                 ",\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"name\":\"dcgm\","
                                 "\"controller\":true}]},\"spec\":{\"nodeName\":\"n1\"},\"status\":"
                                 "{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}")),
             &fact);
    assert_str(fact.hold.name, "dcgm-x");
    assert_str(fact.hold.owner, "DaemonSet/dcgm");
    assert_str(fact.hold.cluster, "");
    assert_true(fact.on_node && fact.ended && fact.end_us == 0);
    assert_str(fact.reason, "Evicted");
    world_close(&w);
}

static void a_node_is_what_its_labels_and_status_say(void **state)
{
    struct world w;
    struct fact_node fact;
    cJSON *node;

    (void)state;
    world_open(&w);
    node = world_node(&w, "n1", 8, 6, true, BEGIN);
    fact_reduce_node(w.a, node);
    fact_node(node, &w.pool, 1, &fact);
    assert_ptr_equal(fact.pool, &w.pool);
    assert_str(fact.product, "A100");
    assert_int_equal(fact.total.num, 8);
    assert_int_equal(fact.unhealthy.num, 2);
    assert_false(fact.down);
    assert_int_equal(fact.ready_us, BEGIN);
    json_set_str(w.a, json_path(node, "metadata.labels"), "sublet.dev/pool", STR("other"));
    fact_node(node, &w.pool, 1, &fact);
    assert_null(fact.pool);
    fact_node(world_parse(&w, STR("{}")), &w.pool, 1, &fact);
    assert_true(fact.down && !fact.pool);
    world_close(&w);
}

static void a_pod_without_devices_is_not_kept(void **state)
{
    struct world w;
    cJSON *pod;

    (void)state;
    world_open(&w);
    pod = world_pod(&w, "u1", "n1", 2, BEGIN, BEGIN + SECOND);
    fact_reduce_pod(w.a, pod);
    assert_true(str_contains(json_text(w.a, pod), STR("finishedAt")));
    pod = world_parse(&w, STR("{\"metadata\":{\"name\":\"x\",\"uid\":\"u\",\"labels\":{\"a\":\"b\"}"
                              "},\"spec\":{\"containers\":[{\"image\":\"i\"}]}}"));
    fact_reduce_pod(w.a, pod);
    assert_str(json_text(w.a, pod), "{\"metadata\":{\"name\":\"x\",\"uid\":\"u\"}}");
    world_close(&w);
}

/* A pod of the host may name any number of resources, in any container. */
static void units_of_many_names(void **state)
{
    struct arena *a = arena_new(0);
    struct buf text = BUF_INIT(0);
    struct fact_units *units;
    cJSON *pod;

    (void)state;
    buf_printf(&text, "{\"spec\":{\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":"
                      "{\"limits\":{\"a/0\":\"2\"}}},{\"resources\":{\"limits\":{\"a/1\":\"9\"}}}],"
                      "\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"");
    for (int i = 0; i < 50000; i++)
        buf_printf(&text, ",\"a/%d\":\"1\"", i);
    buf_printf(&text, "},\"limits\":{\"a/0\":\"3\",\"a/2\":\"0\"}}}]}}");
    assert_int_equal(json_parse(a, buf_str(&text), &pod, NULL), 0);
    assert_int_equal(fact_pod_units(a, pod, &units), 50000);
    assert_int_equal(units[0].units, 2 + 3);
    assert_int_equal(units[1].units, 9);
    assert_int_equal(units[2].units, 1);
    buf_fini(&text);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_of_many_names),
        cmocka_unit_test(counts_devices_as_the_scheduler),
        cmocka_unit_test(counts_parts_of_gpus),
        cmocka_unit_test(a_node_of_a_pool_of_parts),
        cmocka_unit_test(counts_shares_of_gpus),
        cmocka_unit_test(names_are_bounded_and_on_one_line),
        cmocka_unit_test(a_pod_of_no_tenant_has_its_own_names),
        cmocka_unit_test(a_node_is_what_its_labels_and_status_say),
        cmocka_unit_test(a_pod_without_devices_is_not_kept),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
