/* SPDX-License-Identifier: Apache-2.0 */
/* Services between a tenant and its host: which addresses are ever requested, and how many Services
 * a tenant may have there. A tenant never chooses an address of the host's, by whatever detour. */
#include "sim.h"

#include <stdlib.h>

#include "engine.h"

#define PORTS "'ports':[{'port':80}]"
#define EXTERNAL                                                                                   \
    "{'metadata':{'name':'%s'},'spec':{'type':'ExternalName','externalName':'a.example'}}"

static void create(struct sim *s, const char *name, const char *spec)
{
    char text[512];

    snprintf(text, sizeof(text), "{'metadata':{'name':'%s'},'spec':{%s}}", name, spec);
    sim_create(s, "services", "default", text);
}

static void write_done(struct sim *s)
{
    sim_writes_done(s);
}

static void create_external(struct sim *s, const char *name)
{
    char text[256];

    snprintf(text, sizeof(text), EXTERNAL, name);
    sim_create(s, "services", "default", text);
    write_done(s);
}

static bool refused(struct sim *s, const char *part)
{
    bool said = strstr(s->refusal, part) != NULL;

    if (!said)
        print_error("last refusal: %s\n", s->refusal);
    s->refusal[0] = 0;
    return said;
}

static cJSON *host_service(struct sim *s, struct arena *a, const char *name)
{
    json_each(o, fake_host_list(s->host, a, "services"))
    {
        if (str_eqc(json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/name")),
                    name))
            return o;
    }
    return NULL;
}

static struct str host_address(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    struct str ip = arena_str(s->arena, json_str_at(host_service(s, a, name), "spec.clusterIP"));

    arena_free(a);
    return ip;
}

static struct str virtual_address(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    struct str ip = arena_str(
        s->arena, json_str_at(sim_get(s, a, "services", "default", name), "spec.clusterIP"));

    arena_free(a);
    return ip;
}

static bool a_is_on_the_host(struct sim *s)
{
    return host_address(s, "a").n > 0;
}

static bool a_is_off_the_host(struct sim *s)
{
    return !host_address(s, "a").n;
}

static bool nothing_recorded(struct sim *s)
{
    return sync_mapping_count_services(s->syncer, false, STR(""), STR("")) == 0 &&
           sync_mapping_count_services(s->syncer, true, STR(""), STR("")) == 0;
}

static bool event_says(struct sim *s, const char *part)
{
    struct arena *a = arena_new(0);
    bool said = false;

    json_each(event, sim_list(s, a, "events", "")) said |=
        str_contains(json_str_at(event, "message"), str_c(part));
    arena_free(a);
    return said;
}

/* --- addresses --- */

/* No part of these waits for the host, and what is stored with an external IP stays. */
static void test_refused_before_it_is_stored(void **state)
{
    struct sim *s = sim_new(1, NULL);

    (void)state;
    sim_create(s, "services", "default",
               "{'metadata':{'name':'h'},'spec':{'clusterIP':'None',"
               "'externalIPs':['192.0.2.1']," PORTS "}}");
    write_done(s);
    assert_true(refused(s, "services \"h\" is forbidden: spec.externalIPs"));
    sim_create(s, "services", "default",
               "{'metadata':{'name':'e'},'spec':{'type':'ExternalName',"
               "'externalName':'a.example','externalIPs':['192.0.2.1']}}");
    write_done(s);
    assert_int_equal(s->refusal[0], 0);
    sim_patch(s, "services", "default", "e",
              "{'spec':{'type':'ClusterIP','externalName':null," PORTS "}}");
    write_done(s);
    assert_true(refused(s, "services \"e\" is forbidden: spec.externalIPs"));
    sim_free(s);
}

static void test_no_address_by_way_of_another_type(void **state)
{
    struct sim *s = sim_new(1, NULL);

    (void)state;
    create_external(s, "a");
    sim_patch(s, "services", "default", "a",
              "{'spec':{'type':'ClusterIP','externalName':null,'clusterIP':'10.0.9.9'," PORTS "}}");
    write_done(s);
    assert_true(refused(s, "services \"a\" is forbidden: spec.clusterIP: picking a cluster IP"));
    sim_patch(s, "services", "default", "a",
              "{'spec':{'type':'NodePort','externalName':null,"
              "'ports':[{'port':80,'nodePort':30777}]}}");
    write_done(s);
    assert_true(refused(s, "spec.ports.nodePort: picking a node port"));
    sim_patch(s, "services", "default", "a",
              "{'spec':{'type':'LoadBalancer','externalName':null,'healthCheckNodePort':30777,"
              "'externalTrafficPolicy':'Local'," PORTS "}}");
    write_done(s);
    assert_true(refused(s, "spec.healthCheckNodePort: picking a node port"));
    sim_patch(
        s, "services", "default", "a",
        "{'spec':{'type':'LoadBalancer','externalName':null,'loadBalancerIP':'192.0.2.1'," PORTS
        "}}");
    write_done(s);
    assert_true(refused(s, "spec.loadBalancerIP"));
    assert_int_equal(fake_host_asked(s->host, "POST", "services", false), 0);
    sim_patch(s, "services", "default", "a",
              "{'spec':{'type':'ClusterIP','externalName':null," PORTS "}}");
    write_done(s);
    assert_int_equal(s->refusal[0], 0);
    assert_true(str_eq(host_address(s, "a"), virtual_address(s, "a")));
    sim_free(s);
}

static void test_no_forbidden_field_by_an_update(void **state)
{
    struct sim *s = sim_new(2, NULL);

    (void)state;
    create(s, "a", PORTS);
    write_done(s);
    sim_patch(s, "services", "default", "a", "{'spec':{'externalIPs':['192.0.2.1']}}");
    write_done(s);
    assert_true(refused(s, "spec.externalIPs"));
    sim_patch(s, "services", "default", "a", "{'spec':{'type':'NodePort'}}");
    write_done(s);
    assert_int_equal(s->refusal[0], 0);
    sim_patch(s, "services", "default", "a",
              "{'spec':{'ports':[{'port':80,'nodePort':30777,'protocol':'TCP'}]}}");
    write_done(s);
    assert_true(refused(s, "spec.ports.nodePort"));
    sim_free(s);
}

/* The host's object is removed by another: the Service keeps its address, which is on record. */
static void test_given_address_comes_back(void **state)
{
    struct sim *s = sim_new(3, NULL);
    struct str ip;

    (void)state;
    create(s, "a", PORTS);
    write_done(s);
    ip = host_address(s, "a");
    assert_true(ip.n > 0);
    assert_true(str_eq(virtual_address(s, "a"), ip));
    assert_true(fake_host_remove(s->host, "services", NULL));
    sim_until(s, a_is_on_the_host, "the Service to be made again");
    assert_true(str_eq(host_address(s, "a"), ip));
    sim_free(s);
}

/* However late the last sight of the host object is noted, its record knows no address. */
static bool says_not_allocated(struct sim *s)
{
    struct arena *a = arena_new(0);
    struct mapping m = sync_mapping_get(s->syncer, a, SYNC_SERVICES, STR("default"), STR("a"));

    if (m.given.n) {
        m.given = STR("");
        sync_mapping_put(s->syncer, SYNC_SERVICES, STR("default"), STR("a"), &m);
        fake_host_remove(s->host, "services", NULL);
    }
    arena_free(a);
    return event_says(s, "the host did not allocate this address");
}

/* What an earlier version let in, or a copy of another cluster's store: the object has an address
 * that no record knows. It is not requested. */
static void test_address_without_a_record_is_not_sent(void **state)
{
    struct sim *s = sim_new(4, NULL);
    struct mapping m;
    struct arena *a = arena_new(0);

    (void)state;
    create(s, "a", PORTS);
    write_done(s);
    m = sync_mapping_get(s->syncer, a, SYNC_SERVICES, STR("default"), STR("a"));
    assert_true(str_eq(m.given, host_address(s, "a")));
    sim_until(s, says_not_allocated, "the refusal");
    assert_true(a_is_off_the_host(s));
    sim_delete(s, "services", "default", "a", -1);
    write_done(s);
    sim_until(s, nothing_recorded, "the record to go");
    create(s, "a", PORTS);
    write_done(s);
    assert_true(str_eq(host_address(s, "a"), virtual_address(s, "a")));
    arena_free(a);
    sim_free(s);
}

/* A successor under the same name starts without what its predecessor had. */
static void test_successor_gets_its_own(void **state)
{
    struct sim *s = sim_new(5, NULL);
    struct mapping m = {.exists = true,
                        .uid = STR("one"),
                        .host_uid = STR("host-one"),
                        .given = STR("10.0.0.7,30080"),
                        .headless = true};

    (void)state;
    assert_true(sync_mapping_begin(&m, STR("two")));
    assert_int_equal(m.given.n, 0);
    assert_false(m.headless);
    create(s, "a", PORTS);
    write_done(s);
    sim_delete(s, "services", "default", "a", -1);
    sim_create(s, "services", "default",
               "{'metadata':{'name':'a'},'spec':{'clusterIP':'10.0.0.1'," PORTS "}}");
    write_done(s);
    assert_true(refused(s, "picking a cluster IP"));
    sim_free(s);
}

static unsigned host_requests(struct sim *s)
{
    static const char *const methods[] = {"GET", "POST", "PATCH", "DELETE"};
    unsigned n = 0;

    for (size_t i = 0; i < COUNT(methods); i++)
        n += fake_host_asked(s->host, methods[i], "services", false);
    return n;
}

static struct str record_of(struct sim *s, const char *key)
{
    struct str value = STR("");

    store_record_get(s->store, RECORD_MAPPING, str_c(key), &value);
    return arena_str(s->arena, value);
}

static void test_duplicate_changes_nothing(void **state)
{
    struct sim *s = sim_new(9, NULL);
    struct str record;
    unsigned requests;

    (void)state;
    create(s, "a", PORTS);
    write_done(s);
    sim_run_ms(s, 200);
    record = record_of(s, "services/default/a");
    assert_true(str_contains(record, host_address(s, "a")));
    requests = host_requests(s);
    for (int i = 0; i < 3; i++) {
        create(s, "a", PORTS);
        write_done(s);
        assert_true(refused(s, "services \"a\" already exists"));
        assert_true(str_eq(record_of(s, "services/default/a"), record));
    }
    sim_run_ms(s, 200);
    assert_int_equal(host_requests(s), requests);
    assert_true(str_eq(record_of(s, "services/default/a"), record));
    sim_free(s);
}

static void test_records_of_before_are_read(void **state)
{
    struct sim *s = sim_new(6, NULL);
    struct arena *a = arena_new(0);
    struct mapping m;

    (void)state;
    store_record_put(s->store, RECORD_MAPPING, STR("services/default/x"),
                     STR("uid-1 host-1 t 77 old-1 old-2"));
    m = sync_mapping_get(s->syncer, a, SYNC_SERVICES, STR("default"), STR("x"));
    assert_true(m.exists && m.tried && !m.headless && m.lost_s == 77 && m.n_old == 2);
    assert_int_equal(m.given.n, 0);
    assert_true(str_eqc(m.old[1], "old-2"));
    m.given = STR("10.0.0.7,30080");
    m.headless = true;
    sync_mapping_put(s->syncer, SYNC_SERVICES, STR("default"), STR("x"), &m);
    m = sync_mapping_get(s->syncer, a, SYNC_SERVICES, STR("default"), STR("x"));
    assert_true(m.tried && m.headless && m.n_old == 2 && str_eqc(m.old[0], "old-1"));
    assert_true(str_eqc(m.given, "10.0.0.7,30080"));
    sync_mapping_remove(s->syncer, SYNC_SERVICES, STR("default"), STR("x"));
    arena_free(a);
    sim_free(s);
}

/* --- how many --- */

static size_t count_virtual(struct sim *s)
{
    struct arena *a = arena_new(0);
    size_t n = (size_t)json_count(sim_list(s, a, "services", "default"));

    arena_free(a);
    return n - 1; /* default/kubernetes */
}

static void create_many(struct sim *s, const char *prefix, unsigned n, const char *spec)
{
    char name[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s%u", prefix, i);
        create(s, name, spec);
    }
}

static bool a_few_headless(struct sim *s)
{
    return fake_host_count(s->host, "services") == 6;
}

static bool host_has_none(struct sim *s)
{
    return fake_host_count(s->host, "services") == 0 && nothing_recorded(s);
}

/* All at once: none of them waits for another, and still no more than three get in. */
static void test_services_are_bounded_exactly(void **state)
{
    struct sim *s = sim_new(7, "sync: {maxServices: 3}\n");

    (void)state;
    create_many(s, "s", 20, PORTS);
    write_done(s);
    assert_true(refused(s, "is forbidden: exceeded quota: sync.maxServices, requested: services=1, "
                           "used: services=3, limited: services=3"));
    assert_int_equal(count_virtual(s), 3);
    assert_int_equal(fake_host_count(s->host, "services"), 3);
    assert_int_equal(fake_host_asked(s->host, "POST", "services", false), 3);
    create_many(s, "h", 20, "'clusterIP':'None'," PORTS);
    write_done(s);
    assert_true(refused(s, "requested: services.headless=1, used: services.headless=3"));
    assert_int_equal(count_virtual(s), 6);
    sim_until(s, a_few_headless, "the headless ones");
    create_external(s, "e"); /* those take nothing of the host's */
    assert_int_equal(s->refusal[0], 0);
    sim_patch(s, "services", "default", "e",
              "{'spec':{'type':'ClusterIP','externalName':null," PORTS "}}");
    write_done(s);
    assert_true(refused(s, "exceeded quota"));
    sim_free(s);
}

static void test_room_comes_back(void **state)
{
    struct sim *s = sim_new(8, "sync: {maxServices: 1}\n");

    (void)state;
    create(s, "a", PORTS);
    write_done(s);
    sim_delete(s, "services", "default", "a", -1);
    write_done(s);
    sim_until(s, host_has_none, "the Service to leave");
    create(s, "b", PORTS);
    write_done(s);
    assert_int_equal(s->refusal[0], 0);
    assert_int_equal(fake_host_count(s->host, "services"), 1);
    sim_free(s);
}

/* Newer data led here: what has its epoch is neither changed nor made this data's own. */
static void test_a_service_of_a_later_epoch_is_not_changed(void **state)
{
    struct sim *s = sim_new(1, NULL);
    struct arena *a = arena_new(0);
    const cJSON *host;

    (void)state;
    create(s, "a", PORTS);
    write_done(s);
    host = host_service(s, a, "a");
    fake_host_patch(s->host, "services", arena_cstr(a, json_str_at(host, "metadata.name")),
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/epoch\":"
                    "\"ffffffffffffffffffffffffffffffff\"}}}");
    sim_run_ms(s, 100);
    sim_patch(s, "services", "default", "a", "{'spec':{'type':'NodePort'}}");
    write_done(s);
    assert_true(refused(s, "of a later epoch of this virtual cluster"));
    assert_int_equal(fake_host_asked(s->host, "PATCH", "services", false), 0);
    arena_free(a);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_before_it_is_stored),
        cmocka_unit_test(test_no_address_by_way_of_another_type),
        cmocka_unit_test(test_no_forbidden_field_by_an_update),
        cmocka_unit_test(test_given_address_comes_back),
        cmocka_unit_test(test_address_without_a_record_is_not_sent),
        cmocka_unit_test(test_successor_gets_its_own),
        cmocka_unit_test(test_duplicate_changes_nothing),
        cmocka_unit_test(test_records_of_before_are_read),
        cmocka_unit_test(test_services_are_bounded_exactly),
        cmocka_unit_test(test_room_comes_back),
        cmocka_unit_test(test_a_service_of_a_later_epoch_is_not_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
