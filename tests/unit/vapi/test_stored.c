/* SPDX-License-Identifier: Apache-2.0 */
/* A store with rows that are no objects of their resource: the whole API starts on it with all its
 * controllers, hides and reports what cannot be read, serves the other objects, and lets a tenant
 * delete such a row. And definitions that want a built-in kind's names. */
#include "controller_world.h"

#include <string.h>

#include <sublet/kinds.h>
#include <sublet/notice.h>
#include <sublet/selector.h>
#include <sublet/store_quarantine.h>

/* ---- rows of every kind ---- */

#define HEAD "{\"kind\":\"%K\",\"apiVersion\":\"%V\","
#define META "\"metadata\":{\"name\":\"%N\",%S\"uid\":\"%U\",\"resourceVersion\":\"%R\"}"

/* %K kind, %V version, %N name, %S namespace member, %U uid, %R revision. */
static const struct {
    const char *name, *bytes;
    bool hidden; /* of every kind; else it depends on what the kind requires */
} ROWS[] = {
    {"empty-object", "{}", true},
    {"no-bytes", "", true},
    {"list", "[]", true},
    {"null", "null", true},
    {"truncated", HEAD META ",\"spec\":{\"replicas\":", true},
    {"trailing", HEAD META "}}", true},
    {"not-text", "\xff\xfe{", true},
    {"null-metadata", HEAD "\"metadata\":null}", true},
    {"list-metadata", HEAD "\"metadata\":[1,2]}", true},
    {"number-name", HEAD "\"metadata\":{\"name\":5,\"uid\":7}}", true},
    {"other-name", HEAD "\"metadata\":{\"name\":\"x\",%S\"uid\":\"%U\"}}", true},
    {"other-uid", HEAD "\"metadata\":{\"name\":\"%N\",%S\"uid\":\"x\"}}", true},
    {"other-kind", "{\"kind\":5,\"apiVersion\":\"%V\"," META "}", true},
    {"meta-types",
     HEAD "\"metadata\":{\"name\":\"%N\",%S\"uid\":\"%U\",\"labels\":[1],\"annotations\":\"x\","
          "\"ownerReferences\":{\"a\":1},\"finalizers\":{},\"managedFields\":5,"
          "\"deletionTimestamp\":{},\"generation\":\"x\"}}",
     true},
    {"nothing-else", HEAD META "}", false},
    {"empty-spec", HEAD META ",\"spec\":{},\"status\":{},\"template\":{}}", false},
    {"empty-parts",
     HEAD META ",\"spec\":{\"selector\":{},\"template\":{\"metadata\":{},\"spec\":{}},"
               "\"jobTemplate\":{\"metadata\":{},\"spec\":{\"template\":{\"metadata\":{},\"spec\":"
               "{}}}},\"names\":{},\"scaleTargetRef\":{}},\"status\":{},\"roleRef\":{}}",
     false},
    {"marked",
     HEAD "\"metadata\":{\"name\":\"%N\",%S\"uid\":\"%U\","
          "\"deletionTimestamp\":\"2020-01-01T00:00:00Z\"}}",
     false},
};
#define N_ROWS COUNT(ROWS)

/* Fields that every kind has under other types or not at all: wrong everywhere at once. */
static const char WRONG[] = HEAD META
    ",\"spec\":[7],\"status\":\"x\",\"data\":[1],\"rules\":5,\"subjects\":{},\"roleRef\":[],"
    "\"webhooks\":{},\"subsets\":7,\"ports\":\"x\",\"endpoints\":{},\"addressType\":5,"
    "\"secrets\":\"x\",\"template\":[],\"value\":\"high\",\"provisioner\":{},\"handler\":[],"
    "\"driver\":[],\"involvedObject\":\"x\",\"reason\":{},\"revision\":\"x\",\"conditions\":7,"
    "\"nodeTopology\":5,\"driverName\":{}}";

struct kind_row {
    struct str resource, kind, version, group_resource;
    bool namespaced;
};

struct kinds_list {
    struct kind_row rows[128];
    size_t n;
};

static struct str replaced(struct arena *a, const char *text, const struct kind_row *k,
                           struct str name, int64_t revision)
{
    struct buf b = BUF_INIT(0);
    struct str made;

    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            buf_char(&b, *p);
            continue;
        }
        switch (*++p) {
        case 'K':
            buf_add(&b, k->kind);
            break;
        case 'V':
            buf_add(&b, k->version);
            break;
        case 'N':
            buf_add(&b, name);
            break;
        case 'S':
            buf_addc(&b, k->namespaced ? "\"namespace\":\"n\"," : "");
            break;
        case 'R':
            buf_printf(&b, "%lld", (long long)revision);
            break;
        default:
            buf_printf(&b, "u-%.*s-%.*s", STR_F(k->group_resource), STR_F(name));
        }
    }
    made = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return made;
}

static void plant(struct store *s, const struct kind_row *k, const char *name, const char *bytes)
{
    struct arena *a = arena_new(0);
    struct str filled = replaced(a, bytes, k, str_c(name), store_next_revision(s));
    struct store_write w = {
        .op = STORE_CREATE,
        .resource = store_resource(s, k->resource),
        .ns = k->namespaced ? STR("n") : STR(""),
        .name = str_c(name),
        .uid = replaced(a, "%U", k, str_c(name), 0),
        .bytes = filled,
    };
    struct err err;

    err_init(&err, a);
    assert_int_equal(store_write(s, &w, &err), 0);
    arena_free(a);
}

static bool on_kind(void *ctx, const struct resource *r)
{
    struct kinds_list *l = ctx;
    struct arena *a = world_arena(W);

    if (!r->storage || r->flags & RES_REVIEW || !str_eq(r->api_version, r->storage_version))
        return true;
    assert_true(l->n < 128);
    l->rows[l->n++] =
        (struct kind_row){arena_str(a, store_resource_name(vapi_store(world_api(W)), r->storage)),
                          arena_str(a, r->kind), arena_str(a, r->storage_version),
                          arena_str(a, r->group_resource), resource_namespaced(r)};
    return true;
}

static void plant_all(struct store *s, void *ctx)
{
    const struct kinds_list *l = ctx;

    for (size_t i = 0; i < l->n; i++) {
        for (size_t j = 0; j < N_ROWS; j++)
            plant(s, &l->rows[i], ROWS[j].name, ROWS[j].bytes);
        plant(s, &l->rows[i], "wrong-types", WRONG);
    }
}

static const struct store_object *hidden(const struct kind_row *k, const char *name)
{
    struct store *s = vapi_store(world_api(W));
    unsigned id = store_resource(s, k->resource);
    struct str ns = k->namespaced ? STR("n") : STR("");
    const struct store_object *o = store_quarantined(s, id, ns, str_c(name));

    if (o) {
        assert_null(store_get(s, id, ns, str_c(name)));
        assert_null(store_latest(s, id, ns, str_c(name)));
    }
    return o;
}

static void check_hidden(const struct kinds_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        for (size_t j = 0; j < N_ROWS; j++) {
            if (!hidden(&l->rows[i], ROWS[j].name) && ROWS[j].hidden)
                fail_msg("%.*s %s", STR_F(l->rows[i].resource), ROWS[j].name);
        }
    }
}

static void delete_hidden(const struct kinds_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct kind_row *k = &l->rows[i];

        for (size_t j = 0; j < N_ROWS; j++) {
            if (hidden(k, ROWS[j].name))
                world_delete(W, k->group_resource.p, k->namespaced ? "n" : "", ROWS[j].name, NULL);
        }
        world_settle(W);
        for (size_t j = 0; j < N_ROWS; j++)
            assert_null(hidden(k, ROWS[j].name));
    }
}

static bool on_left(void *ctx, const struct store_object *o)
{
    size_t *n = ctx;

    (void)o;
    ++*n;
    return true;
}

static void test_every_kind(void **state)
{
    struct kinds_list *l = ARENA_NEW(world_arena(W), struct kinds_list);
    size_t left = 0;

    (void)state;
    world_create(W, "customresourcedefinitions.apiextensions.k8s.io", "",
                 "{'metadata':{'name':'lamps.example.com'},'spec':{'group':'example.com','scope':"
                 "'Namespaced','names':{'plural':'lamps','kind':'Lamp'},'versions':[{'name':'v1',"
                 "'served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}}}]}}");
    world_settle(W);
    registry_each(vapi_registry(world_api(W)), on_kind, l);
    assert_true(l->n > 55);
    world_freeze(W, true); /* its kubelet takes every pod for a valid one */
    world_restart(W, plant_all, l);
    world_pass(W, 60);
    check_hidden(l);
    for (size_t i = 0; i < l->n; i++)
        world_list(W, l->rows[i].group_resource.p, l->rows[i].namespaced ? "n" : "");
    assert_string_equal(world_try(W, "configmaps", "n", "{'metadata':{'name':'null'}}"),
                        "AlreadyExists");
    world_create(W, "configmaps", "n", "{'metadata':{'name':'fine'}}");
    delete_hidden(l);
    store_scan_quarantined(vapi_store(world_api(W)), 0, STR_NULL, on_left, &left);
    for (size_t i = 0; i < l->n; i++)
        left -= hidden(&l->rows[i], "wrong-types") != NULL;
    assert_int_equal(left, 0);
}

/* ---- what is hidden is not gone ---- */

static struct str bytes_of(struct store *s, const struct resource *r, struct str ns,
                           struct str name, struct store_write *ret)
{
    const struct store_object *o = store_get(s, r->storage, ns, name);

    assert_non_null(o);
    *ret = (struct store_write){.op = STORE_UPDATE,
                                .resource = o->resource,
                                .expected = o->revision,
                                .ns = arena_str(world_arena(W), o->ns),
                                .name = arena_str(world_arena(W), o->name),
                                .uid = arena_str(world_arena(W), o->uid),
                                .labels = arena_str(world_arena(W), o->labels)};
    return o->bytes;
}

static struct store_write DAMAGE[2];

static void damage(struct store *s, void *ctx)
{
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < 2; i++) {
        DAMAGE[i].bytes = STR("{\"kind\":");
        err_init(&err, world_arena(W));
        assert_int_equal(store_write(s, &DAMAGE[i], &err), 0);
    }
}

static void test_owner_is_not_gone(void **state)
{
    size_t n_slices;
    const struct resource *sets, *services;
    struct registry *g = vapi_registry(world_api(W));
    struct store *s = vapi_store(world_api(W));

    (void)state;
    world_create(
        W, "replicasets.apps", "n",
        "{'metadata':{'name':'web'},'spec':{'replicas':2,'selector':{'matchLabels':{'a':'b'"
        "}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
        "'image':'i'}]}}}}");
    world_create(W, "services", "n",
                 "{'metadata':{'name':'web'},'spec':{'selector':{'a':'b'},'ports':[{'port':80}]}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 2);
    n_slices = world_count(W, "endpointslices.discovery.k8s.io", "n", NULL, NULL);
    sets = registry_find_group_resource(g, STR("apps"), STR("replicasets"));
    services = registry_find_group_resource(g, STR(""), STR("services"));
    bytes_of(s, sets, STR("n"), STR("web"), &DAMAGE[0]);
    bytes_of(s, services, STR("n"), STR("web"), &DAMAGE[1]);
    world_restart(W, damage, NULL);
    world_pass(W, 600);
    assert_null(world_get(W, "replicasets.apps", "n", "web"));
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 2);
    assert_int_equal(world_count(W, "endpointslices.discovery.k8s.io", "n", NULL, NULL), n_slices);
    /* The tenant deletes it: now it is. */
    world_delete(W, "replicasets.apps", "n", "web", NULL);
    world_delete(W, "services", "n", "web", NULL);
    world_pass(W, 60);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
    assert_int_equal(world_count(W, "endpointslices.discovery.k8s.io", "n", NULL, NULL), 0);
}

/* ---- what the store lost is not gone either ---- */

#define IS(name_)                                                                                  \
    "name = '" name_ "' AND resource = (SELECT id FROM resource WHERE name LIKE 'replicasets%')"

static const struct lost_row {
    const char *name, *sql;
    bool blind; /* nothing is left that names it */
} LOST[] = {
    {"torn", "UPDATE version SET uid = 'other' WHERE " IS("torn"), false},
    {"missing", "DELETE FROM version WHERE " IS("missing"), false},
    {"unknown",
     "DELETE FROM trail WHERE revision IN (SELECT revision FROM version WHERE " IS(
         "unknown") "); UPDATE version SET name = 'q' WHERE " IS("unknown"),
     true},
};

static struct str set_of(const char *name)
{
    return arena_printf(world_arena(W),
                        "{'metadata':{'name':'%s'},'spec':{'replicas':2,'selector':{'matchLabels':{"
                        "'a':'%s'}},'template':{'metadata':{'labels':{'a':'%s'}},'spec':{"
                        "'containers':[{'name':'c','image':'i'}]}}}}",
                        name, name, name);
}

static void test_lost_owner_is_not_gone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(LOST); i++) {
        const struct lost_row *row = &LOST[i];

        world_create(W, "replicasets.apps", "n", set_of(row->name).p);
        world_settle(W);
        assert_int_equal(world_count(W, "pods", "n", "a", row->name), 2);
        world_restart_on_file(W, row->sql);
        world_pass(W, 600);
        assert_null(world_get(W, "replicasets.apps", "n", row->name));
        assert_int_equal(world_count(W, "pods", "n", "a", row->name), 2);
        if (row->blind)
            continue;
        assert_string_equal(world_try(W, "replicasets.apps", "n", set_of(row->name).p),
                            "AlreadyExists");
        /* The tenant deletes it: now it is. */
        world_delete(W, "replicasets.apps", "n", row->name, NULL);
        world_pass(W, 60);
        assert_int_equal(world_count(W, "pods", "n", "a", row->name), 0);
    }
}

static void plant_in_namespace(struct store *s, void *ctx)
{
    struct kind_row row = {STR("configmaps"), STR("ConfigMap"), STR("v1"), STR("configmaps"), true};

    (void)ctx;
    plant(s, &row, "torn", "{\"kind\":");
}

static void test_namespace_empties(void **state)
{
    (void)state;
    world_restart(W, plant_in_namespace, NULL);
    world_delete(W, "namespaces", "", "n", NULL);
    world_pass(W, 60);
    assert_null(world_get(W, "namespaces", "", "n"));
    world_create(W, "namespaces", "", "{'metadata':{'name':'n'}}");
    world_settle(W);
    world_create(W, "configmaps", "n", "{'metadata':{'name':'torn'}}");
}

/* ---- definitions ---- */

#define CRDS "customresourcedefinitions.apiextensions.k8s.io"

static void define(const char *plural, const char *group, const char *names, const char *version)
{
    struct arena *a = world_arena(W);

    world_create(
        W, CRDS, "",
        arena_printf(a,
                     "{'metadata':{'name':'%s.%s','annotations':{'api-approved.kubernetes.io':"
                     "'unapproved, a test'}},'spec':{'group':'%s','scope':'Cluster','names':{"
                     "'plural':'%s',%s},'versions':[{'name':'%s','served':true,'storage':true,"
                     "'schema':{'openAPIV3Schema':{'type':'object'}}}]}}",
                     plural, group, group, plural, names, version)
            .p);
    world_settle(W);
}

static void expect(const char *name, const char *accepted, const char *reason, const char *message,
                   bool established)
{
    const cJSON *crd = world_get(W, CRDS, "", name);
    const cJSON *condition = condition_get(json_path(crd, "status.conditions"), "NamesAccepted");

    assert_string_equal(world_condition(W, crd, "NamesAccepted"), accepted);
    assert_string_equal(world_reason(W, crd, "NamesAccepted"), reason);
    assert_string_equal(json_str_at(condition, "message").p, message);
    assert_string_equal(world_condition(W, crd, "Established"), established ? "True" : "False");
}

static const struct resource *served(const char *group, const char *version, const char *plural)
{
    return registry_find(vapi_registry(world_api(W)), str_c(group), str_c(version), str_c(plural));
}

static void nothing(struct store *s, void *ctx)
{
    (void)s, (void)ctx;
}

static void test_shadows(void **state)
{
    static const char *const versions[] = {"v1", "v9"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        define("storageclasses", "storage.k8s.io", "'kind':'Odd','singular':'odd'", versions[i]);
        expect("storageclasses.storage.k8s.io", "False", "PluralConflict",
               "\"storageclasses\" is already in use", false);
        assert_null(served("storage.k8s.io", "v9", "storageclasses"));
        assert_null(served("storage.k8s.io", "v1", "storageclasses")->crd);
        world_restart(W, nothing, NULL);
        expect("storageclasses.storage.k8s.io", "False", "PluralConflict",
               "\"storageclasses\" is already in use", false);
        assert_null(served("storage.k8s.io", "v9", "storageclasses"));
        world_delete(W, CRDS, "", "storageclasses.storage.k8s.io", NULL);
        world_pass(W, 10);
        assert_null(world_get(W, CRDS, "", "storageclasses.storage.k8s.io"));
    }
    define("events", "events.k8s.io", "'kind':'Odd','singular':'odd'", "v9");
    assert_null(served("events.k8s.io", "v9", "events"));
    define("lamps", "storage.k8s.io", "'kind':'Lamp'", "v9");
    expect("lamps.storage.k8s.io", "True", "NoConflicts", "no conflicts found", true);
    assert_non_null(served("storage.k8s.io", "v9", "lamps"));
}

/* As an older version stored it: established, and forged objects beside the built-in's. */
static void plant_established(struct store *s, void *ctx)
{
    struct kind_row crds = {STR(CRDS), STR("CustomResourceDefinition"),
                            STR("apiextensions.k8s.io/v1"), STR(CRDS), false};
    struct kind_row forged = {STR("certificatesigningrequests.certificates.k8s.io"),
                              STR("CertificateSigningRequest"), STR("certificates.k8s.io/v9"),
                              STR("certificatesigningrequests.certificates.k8s.io"), false};

    (void)ctx;
    plant(s, &crds, "certificatesigningrequests.certificates.k8s.io",
          HEAD "\"metadata\":{\"name\":\"%N\",\"uid\":\"%U\",\"resourceVersion\":\"%R\","
               "\"annotations\":{\"api-approved."
               "kubernetes.io\":\"unapproved\"}},\"spec\":{\"group\":\"certificates.k8s.io\","
               "\"scope\":\"Cluster\",\"names\":{"
               "\"plural\":\"certificatesigningrequests\",\"singular\":\"x\",\"kind\":\"X\","
               "\"listKind\":\"XList\"},\"versions\":[{\"name\":\"v9\",\"served\":true,"
               "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}},{\"name\":"
               "\"v1\",\"served\":true,\"storage\":false,\"schema\":{\"openAPIV3Schema\":{\"type\":"
               "\"object\"}}}],\"conversion\":{\"strategy\":\"None\"}},"
               "\"status\":{\"acceptedNames\":{\"plural\":\"certificatesigningrequests\","
               "\"kind\":\"X\"},\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}"
               "],\"storedVersions\":[\"v9\"]}}");
    plant(s, &crds, "empties.example.com",
          HEAD META
          ",\"spec\":{\"group\":\"\",\"names\":{\"plural\":\"\",\"kind\":\"\"},\"scope\":"
          "\"\",\"versions\":[{\"name\":\"\",\"served\":true,\"storage\":true},{\"name\":"
          "\"\",\"served\":true,\"storage\":true}]},\"status\":{\"conditions\":[{\"type\":"
          "\"Established\",\"status\":\"True\"}]}}");
    plant(s, &forged, "forged",
          HEAD META ",\"status\":{\"conditions\":[{\"type\":\"Approved\",\"status\":\"True\"}]}}");
}

static void test_shadow_of_old(void **state)
{
    static const char name[] = "certificatesigningrequests.certificates.k8s.io";

    (void)state;
    world_restart(W, plant_established, NULL);
    world_pass(W, 10);
    expect(name, "False", "PluralConflict", "\"certificatesigningrequests\" is already in use",
           false);
    assert_null(served("certificates.k8s.io", "v9", "certificatesigningrequests"));
    assert_null(served("certificates.k8s.io", "v1", "certificatesigningrequests")->crd);
    assert_null(world_get(W, name, "", "forged"));
    world_delete(W, name, "", "forged", NULL);
    world_delete(W, CRDS, "", name, NULL);
    world_delete(W, CRDS, "", "empties.example.com", NULL);
    world_pass(W, 10);
    assert_null(world_get(W, CRDS, "", name));
}

static void test_names(void **state)
{
    (void)state;
    define("lamps", "example.com", "'kind':'Lamp','singular':'lamp','shortNames':['la','light']",
           "v1");
    expect("lamps.example.com", "True", "NoConflicts", "no conflicts found", true);
    define("bulbs", "example.com", "'kind':'Lamp','singular':'lamp','listKind':'BulbList'", "v1");
    expect("bulbs.example.com", "False", "KindConflict", "\"Lamp\" is already in use", false);
    define("torches", "example.com", "'kind':'Torch','shortNames':['la','light']", "v1");
    expect("torches.example.com", "False", "ShortNamesConflict",
           "[\"la\" is already in use, \"light\" is already in use]", false);
    define("others", "example.org", "'kind':'Lamp','singular':'lamp','shortNames':['la']", "v1");
    expect("others.example.org", "True", "NoConflicts", "no conflicts found", true);
    /* What goes frees its names for those that wait. */
    world_delete(W, CRDS, "", "lamps.example.com", NULL);
    world_pass(W, 10);
    expect("bulbs.example.com", "True", "NoConflicts", "no conflicts found", true);
    expect("torches.example.com", "True", "NoConflicts", "no conflicts found", true);
    assert_non_null(served("example.com", "v1", "torches"));
}

/* One definition may claim as many names as a body holds: they are looked at together, or this
 * runs into the test's time limit. */
static void test_many_names(void **state)
{
    enum { NAMES = 20000 };
    struct buf names = BUF_INIT(0);

    (void)state;
    buf_addc(&names, "'kind':'Bomb','singular':'bomb','shortNames':['b'");
    for (unsigned i = 0; i < NAMES; i++)
        buf_printf(&names, ",'s%u'", i);
    buf_char(&names, ']');
    define("bombs", "example.com", arena_str(world_arena(W), buf_str(&names)).p, "v1");
    buf_fini(&names);
    expect("bombs.example.com", "True", "NoConflicts", "no conflicts found", true);
    define("others", "example.com", "'kind':'Other','singular':'other','shortNames':['s19999']",
           "v1");
    expect("others.example.com", "False", "ShortNamesConflict", "\"s19999\" is already in use",
           false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(test_every_kind),        WORLD_TEST(test_owner_is_not_gone),
        WORLD_TEST(test_namespace_empties), WORLD_TEST(test_shadows),
        WORLD_TEST(test_shadow_of_old),     WORLD_TEST(test_names),
        WORLD_TEST(test_many_names),        WORLD_TEST(test_lost_owner_is_not_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
