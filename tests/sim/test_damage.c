/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual cluster that is started on a damaged store: what the store lost is not gone, so nothing
 * of it is removed from the host, made a second time, or left out of the quota. */
#include "sim.h"

#include <sqlite3.h>

#include <sublet/store_quarantine.h>

#include "engine.h"

#define CONFIG                                                                                     \
    "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [],\n"  \
    "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}}\n"                                            \
    "bindings:\n- {pool: p, guarantee: \"2\", overQuota: reject, default: true}\n"
#define POD(name, more)                                                                            \
    "{'metadata':{'name':'" name "'},'spec':{'containers':[{'name':'c','image':'i'" more "}]}}"
#define GPU ",'resources':{'limits':{'nvidia.com/gpu':'1'}}"

static struct str host_uid(struct sim *s, const char *name)
{
    char host_name[64];

    translate_name(&s->syncer->tenant, STR("default"), str_c(name), host_name);
    json_each(o, fake_host_list(s->host, s->arena, "pods"))
    {
        if (str_eqc(json_str_at(o, "metadata.name"), host_name))
            return json_str_at(o, "metadata.uid");
    }
    return STR("");
}

static bool runs(struct sim *s, const char *name)
{
    return str_eqc(json_str_at(sim_get(s, s->arena, "pods", "default", name), "status.phase"),
                   "Running");
}

static bool has_account(struct sim *s)
{
    return sim_get(s, s->arena, "serviceaccounts", "default", "default") != NULL;
}

static bool both_run(struct sim *s)
{
    return runs(s, "a") && runs(s, "b");
}

static bool b_runs(struct sim *s)
{
    return runs(s, "b") && s->syncer->compared;
}

static bool a_is_off_the_host(struct sim *s)
{
    return !host_uid(s, "a").n;
}

/* Runs sql on the file while no process has it. */
static void damage(struct sim *s, const char *sql)
{
    struct str path = arena_printf(s->arena, "%s/state.db", s->dir);
    sqlite3 *db;

    sim_close(s);
    assert_int_equal(sqlite3_open_v2(path.p, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_total_changes(db) > 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    sim_open(s);
}

#define PODS_ID "resource = (SELECT id FROM resource WHERE name = 'pods')"

static const struct row {
    const char *sql;
    bool hides_a;
} ROWS[] = {
    /* The row of a; its name with it; and so that nothing says which object it was. */
    {"UPDATE version SET bytes = '{}' WHERE name = 'a' AND " PODS_ID, true},
    {"DELETE FROM version WHERE name = 'a' AND " PODS_ID, true},
    {"DELETE FROM trail WHERE revision IN (SELECT revision FROM version WHERE name = 'a' "
     "AND " PODS_ID "); UPDATE version SET name = 'q' WHERE name = 'a' AND " PODS_ID,
     true},
    {"DELETE FROM record WHERE kind = 3", false},
    {"UPDATE record SET value = x'00' WHERE kind = 3", false},
    {"DELETE FROM record WHERE kind = 4", false},
    {"DELETE FROM record WHERE kind = 1 AND key = CAST('life' AS BLOB)", false},
    {"UPDATE record SET value = x'32' WHERE kind = 1 AND key = CAST('life' AS BLOB)", false},
    {"DELETE FROM meta", false},
};

static void test_nothing_is_removed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct sim *s = sim_new(100 + i, CONFIG);
        struct str a, b;

        sim_until(s, has_account, "the service account");
        sim_create(s, "pods", "default", POD("a", GPU));
        sim_create(s, "pods", "default", POD("b", ""));
        sim_writes_done(s);
        sim_until(s, both_run, "the pods");
        a = host_uid(s, "a");
        b = host_uid(s, "b");
        /* Without its newest revision the data would be older than what the Lease has of it. */
        sim_create(s, "configmaps", "default", "{'metadata':{'name':'newest'}}");
        sim_writes_done(s);
        damage(s, ROWS[i].sql);
        sim_until(s, ROWS[i].hides_a ? b_runs : both_run, ROWS[i].sql);
        sim_jump(s, 600);
        sim_run_ms(s, 300);
        assert_int_equal(sim_get(s, s->arena, "pods", "default", "a") == NULL, ROWS[i].hides_a);
        assert_true(str_eq(host_uid(s, "a"), a) && str_eq(host_uid(s, "b"), b));
        assert_int_equal(fake_host_asked(s->host, "DELETE", "pods", false), 0);
        assert_int_equal(json_count(fake_host_list(s->host, s->arena, "pods")), 2);

        /* a has one GPU of two, whatever became of its records. */
        s->refusal[0] = '\0';
        sim_create(s, "pods", "default", POD("c", GPU));
        sim_writes_done(s);
        if (s->refusal[0])
            fail_msg("%s: %s", ROWS[i].sql, s->refusal);
        sim_create(s, "pods", "default", POD("d", GPU));
        sim_writes_done(s);
        if (!strstr(s->refusal, "used: gpu=2"))
            fail_msg("%s: %s", ROWS[i].sql, s->refusal);
        sim_free(s);
    }
}

/* --- other kinds --- */

/* How a row is lost: its content; the row, so that only the hash of its name is left; and so that
 * nothing says which object it was. */
static const char *const WAYS[] = {
    "UPDATE version SET bytes = '{}' WHERE %s",
    "DELETE FROM version WHERE %s",
    ("DELETE FROM trail WHERE revision IN (SELECT revision FROM version WHERE %s);"
     "UPDATE version SET name = 'q' WHERE %s"),
};
enum { UNATTRIBUTED = 2 };

static void lose(struct sim *s, size_t way, const char *resource, const char *name)
{
    const char *row = arena_printf(s->arena,
                                   "name = '%s' AND resource = (SELECT id FROM resource "
                                   "WHERE name = '%s')",
                                   name, resource)
                          .p;
    struct buf sql = BUF_INIT(0);

    for (const char *p = WAYS[way]; *p; p++) {
        if (*p == '%')
            buf_addc(&sql, row);
        else if (p == WAYS[way] || p[-1] != '%')
            buf_char(&sql, *p);
    }
    buf_char(&sql, '\0');
    damage(s, sql.p);
    buf_fini(&sql);
}

#define SERVICE "{'metadata':{'name':'a'},'spec':{'ports':[{'port':80}]}}"

static cJSON *host_service(struct sim *s)
{
    return json_first(fake_host_list(s->host, s->arena, "services"));
}

static bool service_is_off_the_host(struct sim *s)
{
    return fake_host_count(s->host, "services") == 0;
}

static bool is_compared(struct sim *s)
{
    return s->syncer->compared && has_account(s);
}

/* The tenant may create it again, as a client does that finds it missing. */
static void test_a_lost_service_keeps_its_address(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT(WAYS); way++) {
        struct sim *s = sim_new(200 + way, NULL);
        struct str address, uid;

        sim_until(s, has_account, "the service account");
        sim_create(s, "services", "default", SERVICE);
        sim_writes_done(s);
        address = json_str_at(host_service(s), "spec.clusterIP");
        uid = json_str_at(host_service(s), "metadata.uid");
        assert_true(address.n > 0);
        /* The end of the log stays: data that ends before what the Lease names is an older copy. */
        sim_create(s, "configmaps", "default", "{'metadata':{'name':'later'}}");
        sim_writes_done(s);
        lose(s, way, "services", "a");
        sim_until(s, is_compared, "the start");
        for (int i = 0; i < 8; i++) {
            s->refusal[0] = '\0';
            sim_create(s, "services", "default", SERVICE);
            sim_writes_done(s);
            sim_run_ms(s, 50);
            /* Where nothing says that its name is taken, it takes the host's over. */
            if (!strstr(s->refusal, "already exists") && (way != UNATTRIBUTED || i > 0))
                fail_msg("%s: %s", WAYS[way], s->refusal);
            assert_int_equal(fake_host_asked(s->host, "DELETE", "services", false), 0);
            assert_true(str_eq(json_str_at(host_service(s), "metadata.uid"), uid));
            assert_true(str_eq(json_str_at(host_service(s), "spec.clusterIP"), address));
        }
        if (way == UNATTRIBUTED) {
            const cJSON *again = sim_get(s, s->arena, "services", "default", "a");

            assert_true(str_eq(json_str_at(again, "spec.clusterIP"), address));
        } else {
            sim_delete(s, "services", "default", "a", -1);
            sim_writes_done(s);
            sim_until(s, service_is_off_the_host, "the end of the host Service");
        }
        sim_free(s);
    }
}

/* What a controller of the tenant does at once when it finds one missing: a claim's data, and a pod
 * that runs, are not given up for it. */
static const struct again {
    const char *resource, *json;
} AGAIN[] = {
    {"pods", POD("a", GPU)},
    {"persistentvolumeclaims", "{'metadata':{'name':'a'},'spec':{'accessModes':['ReadWriteOnce'],"
                               "'resources':{'requests':{'storage':'1Gi'}}}}"},
    {"configmaps", "{'metadata':{'name':'a'},'data':{'k':'v'}}"},
};

static const char *plural;

static const cJSON *on_host(struct sim *s, struct arena *a)
{
    char host_name[64];

    translate_name(&s->syncer->tenant, STR("default"), STR("a"), host_name);
    json_each(o, fake_host_list(s->host, a, plural))
    {
        if (str_eqc(json_str_at(o, "metadata.name"), host_name))
            return o;
    }
    return NULL;
}

static bool is_on_host(struct sim *s)
{
    return on_host(s, s->arena) != NULL;
}

static bool is_taken_over(struct sim *s)
{
    const cJSON *mine = sim_get(s, s->arena, plural, "default", "a");
    struct str uid =
        json_str(json_get(json_path(on_host(s, s->arena), "metadata.annotations"), ANNOTATION_UID));

    return mine && str_eq(json_str_at(mine, "metadata.uid"), uid);
}

static void test_created_again_it_takes_the_hosts_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(AGAIN); i++) {
        struct sim *s = sim_new(250 + i, CONFIG "policy: {storageClasses: [fast]}\n");
        struct str uid;

        plural = AGAIN[i].resource;
        sim_until(s, has_account, "the service account");
        if (!strcmp(plural, "configmaps")) {
            sim_create(s, "pods", "default",
                       "{'metadata':{'name':'reader'},'spec':{'containers':[{'name':'c',"
                       "'image':'i','envFrom':[{'configMapRef':{'name':'a'}}]}]}}");
            sim_writes_done(s);
        }
        sim_create(s, plural, "default", AGAIN[i].json);
        sim_writes_done(s);
        assert_string_equal(s->refusal, "");
        sim_until(s, is_on_host, plural);
        sim_run_ms(s, 300);
        uid = json_str_at(on_host(s, s->arena), "metadata.uid");
        lose(s, UNATTRIBUTED, plural, "a");
        sim_until(s, is_compared, "the start");
        sim_create(s, plural, "default", AGAIN[i].json);
        sim_writes_done(s);
        assert_string_equal(s->refusal, "");
        sim_until(s, is_taken_over, plural);
        sim_run_ms(s, 300);
        assert_true(str_eq(json_str_at(on_host(s, s->arena), "metadata.uid"), uid));
        assert_int_equal(fake_host_asked(s->host, "DELETE", plural, false), 0);
        assert_int_equal(fake_host_asked(s->host, "POST", "pods", false), i == 1 ? 0 : 1);
        sim_free(s);
    }
}

/* --- what only a lost object refers to --- */

#define KINDS                                                                                      \
    "sync: {toHost: {ingresses: {enabled: true, classes: [nginx], hosts: ['*.example.com']},\n"    \
    "  endpointSlices: {enabled: true, allowedCIDRs: [10.20.0.0/16]}}}\n"
#define READER                                                                                     \
    "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'c','image':'i','envFrom':["           \
    "{'configMapRef':{'name':'needed'}},{'secretRef':{'name':'needed'}}]}]}}"
#define INGRESS                                                                                    \
    "{'metadata':{'name':'a'},'spec':{'rules':[{'host':'x.example.com','http':{'paths':["          \
    "{'path':'/','pathType':'Prefix','backend':{'service':{'name':'web','port':{'number':80}}}}"   \
    "]}}],'tls':[{'hosts':['x.example.com'],'secretName':'needed'}]}}"
#define SLICE                                                                                      \
    "{'metadata':{'name':'needed','labels':{'kubernetes.io/service-name':'a'}},"                   \
    "'addressType':'IPv4','endpoints':[{'addresses':['10.20.0.1']}],'ports':[{'port':80}]}"

/* The host's copies of objects of the name "needed", but for a pod's token Secret. */
static size_t n_needed(struct sim *s)
{
    static const char *const plurals[] = {"configmaps", "secrets", "endpointslices"};
    struct arena *a = arena_new(0);
    size_t n = 0;

    for (size_t i = 0; i < COUNT(plurals); i++)
        json_each(o, fake_host_list(s->host, a, plurals[i])) n += str_eqc(
            json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/name")), "needed");
    arena_free(a);
    return n;
}

static unsigned n_deletes(struct sim *s)
{
    static const char *const plurals[] = {"pods",     "configmaps", "secrets",
                                          "services", "ingresses",  "endpointslices"};
    unsigned n = 0;

    for (size_t i = 0; i < COUNT(plurals); i++)
        n += fake_host_asked(s->host, "DELETE", plurals[i], false);
    return n;
}

static const struct referrer {
    const char *resource, *json; /* its name is a */
    const char *needed[2][2];    /* what goes down because of it: resource, object */
} REFERRERS[] = {
    {"pods",
     READER,
     {{"configmaps", "{'metadata':{'name':'needed'},'data':{'k':'v'}}"},
      {"secrets", "{'metadata':{'name':'needed'},'data':{'k':'dg=='}}"}}},
    {"ingresses.networking.k8s.io",
     INGRESS,
     {{"secrets", "{'metadata':{'name':'needed'},'data':{'k':'dg=='}}"}}},
    {"services", SERVICE, {{"endpointslices.discovery.k8s.io", SLICE}}},
};

static size_t n_wanted(const struct referrer *r)
{
    return r->needed[1][0] ? 2 : 1;
}

static size_t wanted;

static bool needed_is_there(struct sim *s)
{
    return n_needed(s) == wanted;
}

static bool needed_has_left(struct sim *s)
{
    return n_needed(s) == 0;
}

static void lose_a_referrer(const struct referrer *r, size_t way)
{
    struct sim *s = sim_new(300 + way, KINDS);

    sim_until(s, has_account, "the service account");
    sim_create(s, r->resource, "default", r->json);
    sim_writes_done(s);
    for (size_t i = 0; i < n_wanted(r); i++)
        sim_create(s, r->needed[i][0], "default", r->needed[i][1]);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    wanted = n_wanted(r);
    sim_until(s, needed_is_there, "the copies on the host");
    sim_run_ms(s, 200);
    lose(s, way, r->resource, "a");
    sim_until(s, is_compared, "the start");
    sim_jump(s, 600);
    sim_run_ms(s, 300);
    assert_int_equal(n_deletes(s), 0);
    assert_true(needed_is_there(s));
    if (way != UNATTRIBUTED) {
        sim_delete(s, r->resource, "default", "a", 0);
        sim_writes_done(s);
        sim_until(s, needed_has_left, "the end of what only it referred to");
    }
    sim_free(s);
}

static void test_what_a_lost_object_needs_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(REFERRERS); i++)
        for (size_t way = 0; way < COUNT(WAYS); way++)
            lose_a_referrer(&REFERRERS[i], way);
}

#define GATEWAY_GROUP "gateway.networking.k8s.io"
#define GRANT                                                                                      \
    "{'apiVersion':'" GATEWAY_GROUP "/v1','kind':'ReferenceGrant','metadata':{'name':'a'},"        \
    "'spec':{'from':[{'group':'" GATEWAY_GROUP "','kind':'Gateway','namespace':'default'}],"       \
    "'to':[{'group':'','kind':'Secret'}]}}"
#define GATEWAY                                                                                    \
    "{'apiVersion':'" GATEWAY_GROUP "/v1','kind':'Gateway','metadata':{'name':'gw'},'spec':{"      \
    "'gatewayClassName':'shared','listeners':[{'name':'web','hostname':'x.example.com',"           \
    "'port':443,'protocol':'HTTPS','tls':{'certificateRefs':[{'name':'needed',"                    \
    "'namespace':'other'}]}}]}}"

static void define(struct sim *s, const char *plural_name, const char *kind)
{
    const char *json =
        arena_printf(s->arena,
                     "{'metadata':{'name':'%s." GATEWAY_GROUP "','annotations':{"
                     "'api-approved.kubernetes.io':'https://example.com'}},'spec':{'group':"
                     "'" GATEWAY_GROUP "','scope':'Namespaced','names':{'plural':'%s','singular':"
                     "'%s','kind':'%s','listKind':'%sList'},'versions':[{'name':'v1','served':true,"
                     "'storage':true,'schema':{'openAPIV3Schema':{'type':'object','properties':{"
                     "'spec':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}}}}]}}",
                     plural_name, plural_name, plural_name, kind, kind)
            .p;

    sim_create(s, "customresourcedefinitions.apiextensions.k8s.io", "", json);
    sim_writes_done(s);
}

static bool grants_are_served(struct sim *s)
{
    return registry_find_group_resource(vapi_registry(s->api), STR(GATEWAY_GROUP),
                                        STR("referencegrants")) &&
           registry_find_group_resource(vapi_registry(s->api), STR(GATEWAY_GROUP), STR("gateways"));
}

/* The name that the host's Gateway has for the Secret. */
static struct str certificate(struct sim *s)
{
    const cJSON *listener = json_first(
        json_path(json_first(fake_host_list(s->host, s->arena, "gateways")), "spec.listeners"));

    return json_str_at(json_first(json_path(listener, "tls.certificateRefs")), "name");
}

static bool certificate_is_there(struct sim *s)
{
    return n_needed(s) == 1 && certificate(s).n > 0;
}

/* What permits a reference is lost: what it leads to, and the reference itself, stay. */
static void test_a_lost_grant_is_no_revoked_one(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT(WAYS); way++) {
        struct sim *s = sim_new(320 + way, "sync: {toHost: {gateways: {enabled: true, classes: "
                                           "[shared], hosts: ['*.example.com']}}}\n");
        struct str name;

        sim_until(s, has_account, "the service account");
        define(s, "referencegrants", "ReferenceGrant");
        define(s, "gateways", "Gateway");
        sim_until(s, grants_are_served, "the definitions");
        sim_create(s, "namespaces", "", "{'metadata':{'name':'other'}}");
        sim_writes_done(s);
        sim_create(s, "referencegrants." GATEWAY_GROUP, "other", GRANT);
        sim_create(s, "secrets", "other", "{'metadata':{'name':'needed'},'data':{'k':'dg=='}}");
        sim_writes_done(s);
        sim_create(s, "gateways." GATEWAY_GROUP, "default", GATEWAY);
        sim_writes_done(s);
        assert_string_equal(s->refusal, "");
        sim_until(s, certificate_is_there, "the Gateway and its certificate on the host");
        sim_run_ms(s, 200);
        name = certificate(s);
        lose(s, way, "referencegrants." GATEWAY_GROUP, "a");
        sim_until(s, is_compared, "the start");
        sim_jump(s, 600);
        sim_run_ms(s, 300);
        assert_int_equal(n_deletes(s), 0);
        assert_true(certificate_is_there(s) && str_eq(certificate(s), name));
        if (way != UNATTRIBUTED) {
            sim_delete(s, "referencegrants." GATEWAY_GROUP, "other", "a", 0);
            sim_writes_done(s);
            sim_until(s, needed_has_left, "the end of what it permitted");
            assert_false(str_eq(certificate(s), name));
        }
        sim_free(s);
    }
}

static struct str dns_uid(struct sim *s)
{
    return json_str_at(sim_get(s, s->arena, "services", "kube-system", "kube-dns"), "metadata.uid");
}

static bool has_dns_namespace(struct sim *s)
{
    return sim_get(s, s->arena, "namespaces", "", "kube-system") != NULL;
}

static bool dns_is_on_record(struct sim *s)
{
    struct mapping m =
        sync_mapping_get(s->syncer, s->arena, SYNC_SERVICES, STR("kube-system"), STR("kube-dns"));

    return m.host_uid.n > 0;
}

/* The tenant's own, from before network.dns: only its record says so. */
static void test_a_lost_record_gives_no_service_away(void **state)
{
    struct sim *s = sim_new(330, NULL);
    struct str uid;

    (void)state;
    sim_until(s, has_dns_namespace, "the namespace");
    sim_create(s, "services", "kube-system",
               "{'metadata':{'name':'kube-dns'},'spec':{'ports':[{'port':53}]}}");
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    uid = dns_uid(s);
    s->config.dns_listen = STR("127.0.0.1:53");
    s->config.dns_address = STR("10.0.0.53");
    damage(s, "DELETE FROM record WHERE kind = 3");
    sim_until(s, dns_is_on_record, "its record again");
    sim_run_ms(s, 300);
    assert_true(uid.n > 0 && str_eq(dns_uid(s), uid));
    assert_int_equal(n_deletes(s), 0);
    sim_free(s);
}

static bool finished(struct sim *s)
{
    return str_eqc(json_str_at(sim_get(s, s->arena, "pods", "default", "a"), "status.phase"),
                   "Succeeded");
}

/* A finished pod names a node that no host pod uses any more. */
static void test_the_node_of_a_lost_pod_stays(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT(WAYS); way++) {
        struct sim *s = sim_new(340 + way, NULL);
        struct str node;

        sim_until(s, has_account, "the service account");
        sim_create(s, "pods", "default", POD("a", ""));
        sim_writes_done(s);
        while (!fake_host_finish_pod(s->host, "Succeeded"))
            sim_run_ms(s, 5);
        sim_until(s, finished, "the end of the pod");
        node = json_str_at(sim_get(s, s->arena, "pods", "default", "a"), "spec.nodeName");
        fake_host_remove(s->host, "pods", NULL);
        sim_run_ms(s, 300);
        assert_non_null(sim_get(s, s->arena, "nodes", "", arena_cstr(s->arena, node)));
        lose(s, way, "pods", "a");
        sim_until(s, is_compared, "the start");
        sim_jump(s, 600);
        sim_run_ms(s, 300);
        assert_non_null(sim_get(s, s->arena, "nodes", "", arena_cstr(s->arena, node)));
        sim_free(s);
    }
}

static void on_compared(void *ctx, struct str json, const struct err *err)
{
    struct sim *s = ctx;

    assert_null(err);
    assert_true(str_contains(json, STR("\"state\":\"damaged\",\"resource\":\"pods\","
                                       "\"namespace\":\"default\",\"name\":\"a\"")));
    assert_false(str_contains(json, STR("\"state\":\"extra\"")));
    snprintf(s->note, sizeof(s->note), "compared");
}

static bool both_sides_are_compared(struct sim *s)
{
    return !strcmp(s->note, "compared");
}

/* What is lost ends when the tenant deletes it, and then its host pod goes. */
static void test_the_tenant_deletes_it(void **state)
{
    struct sim *s = sim_new(7, CONFIG);

    (void)state;
    sim_until(s, has_account, "the service account");
    sim_create(s, "pods", "default", POD("a", GPU));
    sim_create(s, "pods", "default", POD("b", ""));
    sim_writes_done(s);
    sim_until(s, both_run, "the pods");
    damage(s, ROWS[1].sql);
    sim_until(s, b_runs, "the other pod");
    syncer_compare_host(s->syncer, false, on_compared, s);
    sim_until(s, both_sides_are_compared, "the comparison");
    sim_delete(s, "pods", "default", "a", 0);
    sim_writes_done(s);
    sim_until(s, a_is_off_the_host, "the end of the host pod");
    sim_create(s, "pods", "default", POD("a", GPU));
    sim_writes_done(s);
    sim_until(s, both_run, "another pod of its name");
    sim_free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_removed),
        cmocka_unit_test(test_the_tenant_deletes_it),
        cmocka_unit_test(test_a_lost_service_keeps_its_address),
        cmocka_unit_test(test_created_again_it_takes_the_hosts_over),
        cmocka_unit_test(test_what_a_lost_object_needs_stays),
        cmocka_unit_test(test_a_lost_grant_is_no_revoked_one),
        cmocka_unit_test(test_a_lost_record_gives_no_service_away),
        cmocka_unit_test(test_the_node_of_a_lost_pod_stays),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
