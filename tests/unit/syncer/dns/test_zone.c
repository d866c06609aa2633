/* SPDX-License-Identifier: Apache-2.0 */
/* The index under sequences of events: what is answered is what the objects say now, in whatever
 * order they came. */
#include "world.h"

static bool found(struct world *w, const char *question)
{
    return str_has_prefix(str_c(world_ask(w, question)), STR("NOERROR aa\n")) &&
           !str_contains(str_c(world_ask(w, question)), STR("SOA"));
}

#define SLICE(address)                                                                             \
    "{kind: EndpointSlice, metadata: {namespace: team, name: late-1, labels: "                     \
    "{kubernetes.io/service-name: late}}, endpoints: [{addresses: [" address "], hostname: a}]}"
#define SERVICE "{kind: Service, metadata: {namespace: team, name: late}, spec: {clusterIP: None}}"

static void test_a_slice_before_its_service(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    world_put(&w, SLICE("10.2.0.1"));
    assert_false(found(&w, "A late.team.svc.cluster.local"));
    assert_false(found(&w, "PTR 1.0.2.10.in-addr.arpa"));
    world_put(&w, SERVICE);
    assert_true(found(&w, "A late.team.svc.cluster.local"));
    assert_true(found(&w, "PTR 1.0.2.10.in-addr.arpa"));
    world_put(&w, SLICE("10.2.0.2"));
    assert_true(found(&w, "PTR 2.0.2.10.in-addr.arpa"));
    assert_false(found(&w, "PTR 1.0.2.10.in-addr.arpa"));
    world_remove(&w, ZONE_SERVICES, "team", "late");
    assert_false(found(&w, "A late.team.svc.cluster.local"));
    world_remove(&w, ZONE_SLICES, "team", "late-1");
    world_put(&w, SERVICE);
    assert_false(found(&w, "A late.team.svc.cluster.local"));
    world_fini(&w);
}

static void test_a_service_that_changes(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    world_put(&w, "{kind: Service, metadata: {namespace: team, name: web}, spec: {type: "
                  "ExternalName, externalName: www.example.com}}");
    assert_false(found(&w, "PTR 5.0.96.10.in-addr.arpa"));
    assert_true(str_has_prefix(str_c(world_ask(&w, "A web.team.svc.cluster.local")),
                               STR("forward www.example.com.")));
    world_remove(&w, ZONE_SERVICES, "team", "web");
    assert_false(found(&w, "CNAME web.team.svc.cluster.local"));
    world_fini(&w);
}

static bool is_pods(struct world *w, const char *ip)
{
    struct dns_ip address;

    assert_true(dns_ip_parse(str_c(ip), &address));
    return dns_zone_has_pod(w->zone, STR_NULL, &address);
}

/* An address belongs to a pod for as long as that runs; two may have the node's. */
static void test_addresses_of_pods(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    assert_true(is_pods(&w, "10.1.0.9") && is_pods(&w, "fd01::9"));
    assert_false(is_pods(&w, "10.1.0.8"));
    world_put(&w, "{kind: Pod, metadata: {namespace: team, name: b}, status: {phase: Running, "
                  "podIP: 10.1.0.9}}");
    world_put(&w, "{kind: Pod, metadata: {namespace: team, name: a}, status: {phase: Failed, "
                  "podIP: 10.1.0.9}}");
    assert_true(is_pods(&w, "10.1.0.9"));
    assert_false(is_pods(&w, "fd01::9"));
    world_remove(&w, ZONE_PODS, "team", "b");
    assert_false(is_pods(&w, "10.1.0.9"));
    world_fini(&w);
}

static void test_a_namespace_that_goes(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    world_remove(&w, ZONE_NAMESPACES, "", "team");
    assert_false(found(&w, "A web.team.svc.cluster.local"));
    world_put(&w, "{kind: Namespace, metadata: {name: team}}");
    assert_true(found(&w, "A web.team.svc.cluster.local"));
    world_fini(&w);
}

static void test_everything_is_listed_again(void **state)
{
    struct world w;
    uint32_t before;

    (void)state;
    world_init(&w);
    before = dns_zone_serial(w.zone);
    dns_zone_clear(w.zone, ZONE_SERVICES);
    assert_false(found(&w, "A db.team.svc.cluster.local"));
    world_put(&w, "{kind: Service, metadata: {namespace: team, name: db}, spec: {clusterIP: "
                  "None}}");
    assert_true(found(&w, "A db.team.svc.cluster.local")); /* its slices are still known */
    dns_zone_clear(w.zone, ZONE_SLICES);
    assert_false(found(&w, "A db.team.svc.cluster.local"));
    assert_true(dns_zone_serial(w.zone) > before);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slice_before_its_service),
        cmocka_unit_test(test_a_service_that_changes),
        cmocka_unit_test(test_addresses_of_pods),
        cmocka_unit_test(test_a_namespace_that_goes),
        cmocka_unit_test(test_everything_is_listed_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
