/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and ports of Services: given once, given back, in upstream's words when they cannot be
 * had. */
#include "host_world.h"

static const char *text(const cJSON *object, const char *path)
{
    return arena_cstr(world_arena(H), json_str_at(object, path));
}

static cJSON *service(const char *name, const char *spec)
{
    world_create(H, "services", "n",
                 arena_printf(world_arena(H),
                              "{'metadata':{'name':'%s'},'spec':{%s%s'ports':[{'port':80}]}}", name,
                              spec, *spec ? "," : "")
                     .p);
    world_settle(H);
    return world_get(H, "services", "n", name);
}

static int64_t node_port(const char *name)
{
    return world_i64(json_at(json_path(world_get(H, "services", "n", name), "spec.ports"), 0),
                     "nodePort");
}

static void test_each_has_an_address_of_its_own(void **state)
{
    const cJSON *a = service("a", ""), *b = service("b", "");

    (void)state;
    assert_true(str_has_prefix(json_str_at(a, "spec.clusterIP"), STR("10.96.")));
    assert_string_not_equal(text(a, "spec.clusterIP"), text(b, "spec.clusterIP"));
    assert_true(str_eq(json_str(json_at(json_path(a, "spec.clusterIPs"), 0)),
                       json_str_at(a, "spec.clusterIP")));
    assert_string_equal(text(a, "spec.ipFamilyPolicy"), "SingleStack");
    assert_string_equal(
        text(service("h", "'clusterIP':'None','selector':{'a':'b'}"), "spec.clusterIP"), "None");
    assert_string_equal(text(world_get(H, "services", "default", "kubernetes"), "spec.clusterIP"),
                        "10.96.0.1");
    assert_non_null(world_get(H, "endpointslices.discovery.k8s.io", "default", "kubernetes"));
}

static void test_what_is_taken_is_refused(void **state)
{
    (void)state;
    service("a", "'clusterIP':'10.96.7.7'");
    assert_string_equal(
        world_try(H, "services", "n",
                  "{'metadata':{'name':'b'},'spec':{'clusterIP':'10.96.7.7','ports':"
                  "[{'port':80}]}}"),
        "Invalid");
    assert_string_equal(
        world_try(H, "services", "n",
                  "{'metadata':{'name':'b'},'spec':{'clusterIP':'10.96.0.1','ports':"
                  "[{'port':80}]}}"),
        "Invalid");
    assert_string_equal(
        world_try(H, "services", "n",
                  "{'metadata':{'name':'b'},'spec':{'clusterIP':'1.2.3.4','ports':[{"
                  "'port':80}]}}"),
        "Invalid");
    world_delete(H, "services", "n", "a", NULL);
    world_settle(H);
    assert_string_equal(text(service("b", "'clusterIP':'10.96.7.7'"), "spec.clusterIP"),
                        "10.96.7.7");
}

static void test_node_ports_come_and_go(void **state)
{
    int64_t port;

    (void)state;
    service("a", "'type':'NodePort'");
    port = node_port("a");
    assert_in_range(port, 30000, 32767);
    assert_string_equal(
        world_try(
            H, "services", "n",
            arena_printf(world_arena(H),
                         "{'metadata':{'name':'b'},'spec':{'type':'NodePort','ports':[{'port':80,"
                         "'nodePort':%d}]}}",
                         (int)port)
                .p),
        "Invalid");
    assert_string_equal(world_try(H, "services", "n",
                                  "{'metadata':{'name':'b'},'spec':{'type':'NodePort','ports':[{"
                                  "'port':80,'nodePort':20}]}}"),
                        "Invalid");
    world_patch(H, "services", "n", "a", "{'spec':{'type':'ClusterIP'}}");
    world_settle(H);
    assert_int_equal(node_port("a"), 0);
    world_create(
        H, "services", "n",
        arena_printf(world_arena(H),
                     "{'metadata':{'name':'c'},'spec':{'type':'NodePort','ports':[{'port':80,"
                     "'nodePort':%d}]}}",
                     (int)port)
            .p);
    world_settle(H);
    assert_int_equal(node_port("c"), port);
}

static void test_a_refused_request_keeps_nothing(void **state)
{
    (void)state;
    service("a", "'clusterIP':'10.96.9.9'");
    /* The second port is wrong: the address and the first one must be free after it. */
    assert_string_equal(world_try(H, "services", "n",
                                  "{'metadata':{'name':'b'},'spec':{'type':'NodePort','clusterIP':"
                                  "'10.96.9.8','ports':[{'name':'x','port':80,'nodePort':30123},{"
                                  "'name':'y','port':81,'nodePort':9}]}}"),
                        "Invalid");
    /* The name exists: refused by the store, after the admission. */
    assert_string_equal(world_try(H, "services", "n",
                                  "{'metadata':{'name':'a'},'spec':{'type':'NodePort','clusterIP':"
                                  "'10.96.9.8','ports':[{'port':80,'nodePort':30123}]}}"),
                        "AlreadyExists");
    world_settle(H);
    world_create(
        H, "services", "n",
        "{'metadata':{'name':'c'},'spec':{'type':'NodePort','clusterIP':'10.96.9.8','ports':"
        "[{'port':80,'nodePort':30123}]}}");
}

static void test_an_update_keeps_what_it_has(void **state)
{
    const char *ip = text(service("a", ""), "spec.clusterIP");

    (void)state;
    world_patch(H, "services", "n", "a",
                "{'spec':{'type':'NodePort'},'metadata':{'labels':{'x':'y'}}}");
    world_settle(H);
    assert_string_equal(text(world_get(H, "services", "n", "a"), "spec.clusterIP"), ip);
    int64_t port = node_port("a");
    assert_in_range(port, 30000, 32767);
    world_patch(H, "services", "n", "a", "{'metadata':{'labels':{'x':'z'}}}");
    world_settle(H);
    assert_int_equal(node_port("a"), port);
    world_patch(
        H, "services", "n", "a",
        "{'spec':{'type':'ExternalName','externalName':'a.b','clusterIP':null,'clusterIPs':null"
        "}}");
    world_settle(H);
    assert_string_equal(text(service("b", arena_printf(world_arena(H), "'clusterIP':'%s'", ip).p),
                             "spec.clusterIP"),
                        ip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_each_has_an_address_of_its_own),
        HOST_TEST(test_what_is_taken_is_refused),
        HOST_TEST(test_node_ports_come_and_go),
        HOST_TEST(test_a_refused_request_keeps_nothing),
        HOST_TEST(test_an_update_keeps_what_it_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
