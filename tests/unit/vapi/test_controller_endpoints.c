/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints and EndpointSlices of services. */
#include "controller_world.h"

#define SERVICE(more)                                                                              \
    "{'metadata':{'name':'s','labels':{'tier':'web'}},'spec':{'selector':{'app':'a'},"             \
    "'clusterIP':'10.9.0.1','clusterIPs':['10.9.0.1'],'ipFamilies':['IPv4'],"                      \
    "'ports':[{'name':'http','port':80,'targetPort':'web'},{'name':'raw','port':9,"                \
    "'targetPort':99}]" more "}}"

static int set_up(void **state)
{
    world_set_up(state);
    world_node(W, "node-0", "{'topology.kubernetes.io/zone':'z'}");
    world_node(W, "node-1", "{'topology.kubernetes.io/zone':'z'}");
    world_node(W, "node-2", "{'topology.kubernetes.io/zone':'z'}");
    world_settle(W);
    return 0;
}

static void pod(const char *name, int port)
{
    world_create(W, "pods", "n",
                 arena_printf(world_arena(W),
                              "{'metadata':{'name':'%s','labels':{'app':'a'}},'spec':{'containers':"
                              "[{'name':'c','image':'i','ports':[{'name':'web',"
                              "'containerPort':%d}]}]}}",
                              name, port)
                     .p);
}

static cJSON *slices(void)
{
    return world_list(W, "endpointslices.discovery.k8s.io", "n");
}

/* The endpoint of a pod in any slice, and what it says. */
static const cJSON *endpoint_of(const char *name)
{
    json_each(slice, slices())
    {
        json_each(e, json_get(slice, "endpoints"))
        {
            if (str_eqc(json_str_at(e, "targetRef.name"), name))
                return e;
        }
    }
    return NULL;
}

static bool says(const char *name, const char *path)
{
    return json_true(json_path(endpoint_of(name), path));
}

static size_t n_endpoints(void)
{
    size_t n = 0;

    json_each(slice, slices()) n += json_count(json_get(slice, "endpoints"));
    return n;
}

static void service_without_pods_has_an_empty_slice(void **state)
{
    (void)state;
    world_create(W, "services", "n", SERVICE(""));
    world_settle(W);
    const cJSON *slice = json_first(slices());
    assert_int_equal(json_count(slices()), 1);
    assert_int_equal(json_count(json_get(slice, "endpoints")), 0);
    assert_str(json_str_at(slice, "addressType"), "IPv4");
    const cJSON *labels = json_path(slice, "metadata.labels");
    assert_str(json_str(json_get(labels, "kubernetes.io/service-name")), "s");
    assert_str(json_str(json_get(labels, "endpointslice.kubernetes.io/managed-by")),
               "endpointslice-controller.k8s.io");
    assert_str(json_str(json_get(labels, "tier")), "web");
    const cJSON *endpoints = world_get(W, "endpoints", "n", "s");
    assert_non_null(endpoints);
    assert_int_equal(json_count(json_get(endpoints, "subsets")), 0);
}

static enum fate one_is_unready(void *ctx, const cJSON *p)
{
    (void)ctx;
    return str_eqc(json_str_at(p, "metadata.name"), "unready") ? POD_RUNS : POD_READY;
}

static void ready_and_unready(void **state)
{
    (void)state;
    world_fates(W, one_is_unready, NULL);
    pod("ready", 8080);
    pod("unready", 8080);
    world_create(W, "services", "n", SERVICE(""));
    world_settle(W);
    assert_int_equal(json_count(slices()), 1);
    assert_true(says("ready", "conditions.ready") && says("ready", "conditions.serving"));
    assert_false(says("ready", "conditions.terminating"));
    assert_false(says("unready", "conditions.ready"));
    assert_str(json_str_at(endpoint_of("ready"), "zone"), "z");
    const cJSON *ports = json_get(json_first(slices()), "ports");
    assert_int_equal(json_count(ports), 2);
    assert_int_equal(world_i64(json_at(ports, 0), "port"), 8080);
    assert_int_equal(world_i64(json_at(ports, 1), "port"), 99);

    const cJSON *subset = json_first(json_get(world_get(W, "endpoints", "n", "s"), "subsets"));
    assert_int_equal(json_count(json_get(subset, "addresses")), 1);
    assert_int_equal(json_count(json_get(subset, "notReadyAddresses")), 1);
    assert_str(json_str_at(json_first(json_get(subset, "addresses")), "targetRef.name"), "ready");

    world_patch(W, "services", "n", "s", "{'spec':{'publishNotReadyAddresses':true}}");
    world_settle(W);
    assert_true(says("unready", "conditions.ready"));
    world_fates(W, NULL, NULL);
}

static void ending_pods_stay_in_slices_until_gone(void **state)
{
    (void)state;
    pod("p", 8080);
    world_create(W, "services", "n", SERVICE(""));
    world_settle(W);
    world_freeze(W, true);
    world_delete(W, "pods", "n", "p", NULL);
    world_settle(W);
    assert_false(says("p", "conditions.ready"));
    assert_true(says("p", "conditions.serving") && says("p", "conditions.terminating"));
    assert_int_equal(json_count(json_get(world_get(W, "endpoints", "n", "s"), "subsets")), 0);
    world_freeze(W, false);
    world_settle(W);
    assert_null(endpoint_of("p"));
    assert_int_equal(json_count(slices()), 1);
}

static void pods_with_other_ports_have_other_slices(void **state)
{
    (void)state;
    pod("a", 8080);
    pod("b", 9090);
    world_create(W, "services", "n", SERVICE(""));
    world_settle(W);
    assert_int_equal(json_count(slices()), 2);
    assert_int_equal(n_endpoints(), 2);
    assert_int_equal(json_count(json_get(world_get(W, "endpoints", "n", "s"), "subsets")), 2);
    world_delete(W, "pods", "n", "b", NULL);
    world_settle(W);
    assert_int_equal(json_count(slices()), 1);
}

static void many_pods_fill_slices_of_a_hundred(void **state)
{
    (void)state;
    world_create(W, "services", "n", SERVICE(""));
    for (int i = 0; i < 130; i++)
        pod(arena_printf(world_arena(W), "p%d", i).p, 8080);
    world_settle(W);
    assert_int_equal(n_endpoints(), 130);
    assert_int_equal(json_count(slices()), 2);
    json_each(slice, slices()) assert_true(json_count(json_get(slice, "endpoints")) <= 100);
}

static void what_is_changed_behind_our_back_comes_back(void **state)
{
    (void)state;
    pod("p", 8080);
    world_create(W, "services", "n", SERVICE(""));
    world_settle(W);
    struct str name = json_str_at(json_first(slices()), "metadata.name");
    world_delete(W, "endpointslices.discovery.k8s.io", "n", name.p, NULL);
    world_delete(W, "endpoints", "n", "s", NULL);
    world_settle(W);
    assert_non_null(endpoint_of("p"));
    assert_non_null(world_get(W, "endpoints", "n", "s"));
    name = json_str_at(json_first(slices()), "metadata.name");
    world_patch(W, "endpointslices.discovery.k8s.io", "n", name.p, "{'endpoints':[]}");
    world_settle(W);
    assert_non_null(endpoint_of("p"));
}

static void nothing_is_written_twice(void **state)
{
    (void)state;
    pod("p", 8080);
    world_create(W, "services", "n", SERVICE(""));
    world_settle(W);
    const cJSON *slice = json_first(slices()), *endpoints = world_get(W, "endpoints", "n", "s");
    world_patch(W, "pods", "n", "p", "{'metadata':{'annotations':{'a':'b'}}}");
    world_patch(W, "services", "n", "s", "{'metadata':{'annotations':{'a':'b'}}}");
    world_settle(W);
    assert_true(str_eq(json_str_at(slice, "metadata.resourceVersion"),
                       json_str_at(json_first(slices()), "metadata.resourceVersion")));
    assert_true(
        str_eq(json_str_at(endpoints, "metadata.resourceVersion"),
               json_str_at(world_get(W, "endpoints", "n", "s"), "metadata.resourceVersion")));
}

static void labels_change_sides(void **state)
{
    (void)state;
    pod("p", 8080);
    world_create(W, "services", "n", SERVICE(""));
    world_settle(W);
    world_patch(W, "pods", "n", "p", "{'metadata':{'labels':{'app':'b'}}}");
    world_settle(W);
    assert_null(endpoint_of("p"));
    world_patch(W, "services", "n", "s", "{'spec':{'selector':{'app':'b'}}}");
    world_settle(W);
    assert_non_null(endpoint_of("p"));
    world_delete(W, "services", "n", "s", NULL);
    world_settle(W);
    assert_int_equal(json_count(slices()), 0);
    assert_null(world_get(W, "endpoints", "n", "s"));
}

static void headless_services_name_hosts(void **state)
{
    (void)state;
    world_create(W, "services", "n",
                 "{'metadata':{'name':'h'},'spec':{'clusterIP':'None','ipFamilies':['IPv4'],"
                 "'selector':{'app':'a'}}}");
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'p','labels':{'app':'a'}},'spec':{'hostname':'one',"
                 "'subdomain':'h','containers':[{'name':'c','image':'i'}]}}");
    world_settle(W);
    assert_str(json_str_at(endpoint_of("p"), "hostname"), "one");
    const cJSON *slice = json_first(slices());
    assert_true(json_is_string(
        json_get(json_path(slice, "metadata.labels"), "service.kubernetes.io/headless")));
    const cJSON *subset = json_first(json_get(world_get(W, "endpoints", "n", "h"), "subsets"));
    assert_str(json_str_at(json_first(json_get(subset, "addresses")), "hostname"), "one");
}

static void near_traffic_gets_hints(void **state)
{
    (void)state;
    pod("p", 8080);
    world_create(W, "services", "n", SERVICE(",'trafficDistribution':'PreferClose'"));
    world_settle(W);
    const cJSON *hint = json_first(json_path(endpoint_of("p"), "hints.forZones"));
    assert_str(json_str_at(hint, "name"), "z");
}

static void written_endpoints_are_mirrored(void **state)
{
    (void)state;
    world_create(W, "services", "n",
                 "{'metadata':{'name':'m'},'spec':{'clusterIP':'10.9.0.2','ipFamilies':['IPv4'],"
                 "'ports':[{'port':80}]}}");
    world_create(W, "endpoints", "n",
                 "{'metadata':{'name':'m','labels':{'x':'y'}},'subsets':[{'addresses':"
                 "[{'ip':'192.0.2.1'},{'ip':'2001:db8::1'}],'notReadyAddresses':"
                 "[{'ip':'192.0.2.2'}],'ports':[{'port':80,'protocol':'TCP'}]}]}");
    world_settle(W);
    assert_int_equal(json_count(slices()), 2);
    json_each(slice, slices())
    {
        bool six = str_eqc(json_str_at(slice, "addressType"), "IPv6");
        assert_int_equal(json_count(json_get(slice, "endpoints")), six ? 1 : 2);
        assert_str(json_str(json_get(json_path(slice, "metadata.labels"), "x")), "y");
    }
    world_patch(W, "endpoints", "n", "m",
                "{'metadata':{'labels':{'endpointslice.kubernetes.io/skip-mirror':'true'}}}");
    world_settle(W);
    assert_int_equal(json_count(slices()), 0);
}

static void service_ranges_are_ready(void **state)
{
    (void)state;
    static const char ranges[] = "servicecidrs.networking.k8s.io";

    assert_string_equal(world_condition(W, world_get(W, ranges, "", "kubernetes"), "Ready"),
                        "True");
    world_create(W, ranges, "", "{'metadata':{'name':'more'},'spec':{'cidrs':['10.90.0.0/24']}}");
    world_settle(W);
    assert_string_equal(world_condition(W, world_get(W, ranges, "", "more"), "Ready"), "True");
    world_delete(W, ranges, "", "more", NULL);
    world_delete(W, ranges, "", "kubernetes", NULL);
    world_settle(W);
    assert_null(world_get(W, ranges, "", "more"));
    assert_non_null(world_get(W, ranges, "", "kubernetes"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(service_without_pods_has_an_empty_slice),
        TEST(ready_and_unready),
        TEST(ending_pods_stay_in_slices_until_gone),
        TEST(pods_with_other_ports_have_other_slices),
        TEST(many_pods_fill_slices_of_a_hundred),
        TEST(what_is_changed_behind_our_back_comes_back),
        TEST(nothing_is_written_twice),
        TEST(labels_change_sides),
        TEST(headless_services_name_hosts),
        TEST(near_traffic_gets_hints),
        TEST(written_endpoints_are_mirrored),
        TEST(service_ranges_are_ready),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
