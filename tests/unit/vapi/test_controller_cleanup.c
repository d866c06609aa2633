/* SPDX-License-Identifier: Apache-2.0 */
/* What is deleted and what is created with a namespace: garbage collection, namespaces, accounts,
 * CA. */
#include "controller_world.h"

#include <sublet/pki.h>

/* A ConfigMap owned by others: "kind name" pairs of ConfigMaps in n; blocking. */
static void make(const char *name, const char *owner, bool blocks)
{
    cJSON *map = world_parse(W, "{'metadata':{}}"), *meta = json_get(map, "metadata");

    json_set_str(world_arena(W), meta, "name", str_c(name));
    if (owner) {
        const cJSON *o = world_get(W, "configmaps", "n", owner);
        cJSON *ref = world_parse(W, "{'apiVersion':'v1','kind':'ConfigMap'}");

        json_set_str(world_arena(W), ref, "name", str_c(owner));
        json_set_str(world_arena(W), ref, "uid", json_str_at(o, "metadata.uid"));
        json_set_bool(world_arena(W), ref, "blockOwnerDeletion", blocks);
        json_append(
            json_set(world_arena(W), meta, "ownerReferences", json_new_array(world_arena(W))), ref);
    }
    world_create_tree(W, "configmaps", "n", map);
}

static bool exists(const char *name)
{
    return world_get(W, "configmaps", "n", name) != NULL;
}

/* ---- garbage collection ---- */

static void background_takes_all_below(void **state)
{
    (void)state;
    make("a", NULL, false);
    make("b", "a", true);
    make("c", "b", true);
    make("other", NULL, false);
    world_settle(W);
    assert_true(exists("c"));
    world_delete(W, "configmaps", "n", "a", "Background");
    world_settle(W);
    assert_false(exists("a") || exists("b") || exists("c"));
    assert_true(exists("other"));
}

static void foreground_waits_for_blocking_dependents(void **state)
{
    (void)state;
    make("a", NULL, false);
    make("b", "a", true);
    world_patch(W, "configmaps", "n", "b", "{'metadata':{'finalizers':['example.com/hold']}}");
    world_settle(W);
    world_delete(W, "configmaps", "n", "a", "Foreground");
    world_settle(W);
    assert_true(exists("a") && exists("b"));
    assert_non_null(json_path(world_get(W, "configmaps", "n", "b"), "metadata.deletionTimestamp"));
    world_patch(W, "configmaps", "n", "b", "{'metadata':{'finalizers':null}}");
    world_settle(W);
    assert_false(exists("a") || exists("b"));
}

static void foreground_does_not_wait_for_others(void **state)
{
    (void)state;
    make("a", NULL, false);
    make("b", "a", false);
    world_patch(W, "configmaps", "n", "b", "{'metadata':{'finalizers':['example.com/hold']}}");
    world_settle(W);
    world_delete(W, "configmaps", "n", "a", "Foreground");
    world_settle(W);
    assert_false(exists("a"));
    assert_true(exists("b"));
    world_patch(W, "configmaps", "n", "b", "{'metadata':{'finalizers':null}}");
    world_settle(W);
    assert_false(exists("b"));
}

static void orphans_lose_their_owner(void **state)
{
    (void)state;
    make("a", NULL, false);
    make("b", "a", true);
    world_settle(W);
    world_delete(W, "configmaps", "n", "a", "Orphan");
    world_settle(W);
    assert_false(exists("a"));
    assert_true(exists("b"));
    assert_int_equal(
        json_count(json_path(world_get(W, "configmaps", "n", "b"), "metadata.ownerReferences")), 0);
}

static void owner_with_another_uid_is_gone(void **state)
{
    (void)state;
    make("a", NULL, false);
    world_create(W, "configmaps", "n",
                 "{'metadata':{'name':'b','ownerReferences':[{'apiVersion':'v1',"
                 "'kind':'ConfigMap','name':'a','uid':'11111111-1111-1111-1111-111111111111'}]}}");
    world_settle(W);
    assert_true(exists("a"));
    assert_false(exists("b"));
}

static void unknown_kind_keeps_its_dependents(void **state)
{
    (void)state;
    world_create(W, "configmaps", "n",
                 "{'metadata':{'name':'b','ownerReferences':[{'apiVersion':'example.com/v1',"
                 "'kind':'Nobody','name':'a','uid':'11111111-1111-1111-1111-111111111111'}]}}");
    world_settle(W);
    assert_true(exists("b"));
}

static void one_of_two_owners_goes(void **state)
{
    (void)state;
    make("a", NULL, false);
    make("b", "a", true);
    make("keep", NULL, false);
    cJSON *refs = json_copy(world_arena(W), json_path(world_get(W, "configmaps", "n", "b"),
                                                      "metadata.ownerReferences"));
    cJSON *ref = json_append(refs, json_copy(world_arena(W), json_first(refs)));
    json_set_str(world_arena(W), ref, "name", STR("keep"));
    json_set_str(world_arena(W), ref, "uid",
                 json_str_at(world_get(W, "configmaps", "n", "keep"), "metadata.uid"));
    struct str text = json_text(world_arena(W), refs);
    world_patch(
        W, "configmaps", "n", "b",
        arena_printf(world_arena(W), "{'metadata':{'ownerReferences':%.*s}}", STR_F(text)).p);
    world_settle(W);
    world_delete(W, "configmaps", "n", "a", "Foreground");
    world_settle(W);
    assert_false(exists("a"));
    const cJSON *left = json_path(world_get(W, "configmaps", "n", "b"), "metadata.ownerReferences");
    assert_int_equal(json_count(left), 1);
    assert_str(json_str_at(json_first(left), "name"), "keep");
}

/* a and b own each other, and both block: foreground deletion of a ends. */
static void circles_come_apart(void **state)
{
    (void)state;
    make("a", NULL, false);
    make("b", "a", true);
    world_patch(
        W, "configmaps", "n", "a",
        arena_printf(world_arena(W),
                     "{'metadata':{'ownerReferences':[{'apiVersion':'v1',"
                     "'kind':'ConfigMap','name':'b','uid':'%.*s',"
                     "'blockOwnerDeletion':true}]}}",
                     STR_F(json_str_at(world_get(W, "configmaps", "n", "b"), "metadata.uid")))
            .p);
    world_settle(W);
    world_delete(W, "configmaps", "n", "a", "Foreground");
    world_settle(W);
    assert_false(exists("a") || exists("b"));
}

static void deployment_takes_its_pods_along(void **state)
{
    static const char text[] =
        "{'metadata':{'name':'d'},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'a'}},"
        "'template':{'metadata':{'labels':{'app':'a'}},"
        "'spec':{'containers':[{'name':'c','image':'i'}]}}}}";

    (void)state;
    world_create(W, "deployments.apps", "n", text);
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 3);
    world_delete(W, "deployments.apps", "n", "d", "Foreground");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
    assert_int_equal(world_count(W, "replicasets.apps", "n", NULL, NULL), 0);
    assert_null(world_get(W, "deployments.apps", "n", "d"));
}

/* ---- namespaces ---- */

static void namespace_is_emptied(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n",
                 "{'metadata':{'name':'d'},'spec':{'replicas':2,'selector':{'matchLabels':"
                 "{'app':'a'}},'template':{'metadata':{'labels':{'app':'a'}},"
                 "'spec':{'containers':[{'name':'c','image':'i'}]}}}}");
    make("a", NULL, false);
    world_settle(W);
    world_freeze(W, true);
    world_delete(W, "namespaces", "", "n", NULL);
    world_settle(W);
    const cJSON *ns = world_get(W, "namespaces", "", "n");
    assert_non_null(ns);
    assert_str(json_str_at(ns, "status.phase"), "Terminating");
    assert_string_equal(world_reason(W, ns, "NamespaceContentRemaining"), "SomeResourcesRemain");
    assert_string_equal(world_try(W, "configmaps", "n", "{'metadata':{'name':'late'}}"),
                        "Forbidden");
    world_freeze(W, false);
    world_pass(W, 10);
    assert_null(world_get(W, "namespaces", "", "n"));
    assert_int_equal(world_count(W, "configmaps", "n", NULL, NULL), 0);
    assert_int_equal(world_count(W, "events", "n", NULL, NULL), 0);
}

static void namespace_tells_what_holds_it(void **state)
{
    (void)state;
    make("a", NULL, false);
    world_patch(W, "configmaps", "n", "a", "{'metadata':{'finalizers':['example.com/hold']}}");
    world_delete(W, "namespaces", "", "n", NULL);
    world_pass(W, 60);
    const cJSON *ns = world_get(W, "namespaces", "", "n");
    assert_string_equal(world_condition(W, ns, "NamespaceFinalizersRemaining"), "True");
    assert_string_equal(world_reason(W, ns, "NamespaceFinalizersRemaining"),
                        "SomeFinalizersRemain");
    json_each(c, json_path(ns, "status.conditions"))
    {
        if (str_eqc(json_str_at(c, "type"), "NamespaceFinalizersRemaining"))
            assert_str(json_str_at(c, "message"),
                       "Some content in the namespace has finalizers remaining: "
                       "example.com/hold in 1 resource instances");
        if (str_eqc(json_str_at(c, "type"), "NamespaceContentRemaining"))
            assert_str(json_str_at(c, "message"),
                       "Some resources are remaining: configmaps. has 1 resource instances");
    }
    world_patch(W, "configmaps", "n", "a", "{'metadata':{'finalizers':null}}");
    world_pass(W, 5);
    assert_null(world_get(W, "namespaces", "", "n"));
}

/* ---- what every namespace has ---- */

static void namespaces_have_an_account_and_the_ca(void **state)
{
    (void)state;
    assert_non_null(world_get(W, "serviceaccounts", "n", "default"));
    const cJSON *map = world_get(W, "configmaps", "n", "kube-root-ca.crt");
    struct str pem = pki_ca_pem(vapi_pki(world_api(W)));
    assert_true(str_eq(json_str(json_get(json_get(map, "data"), "ca.crt")), pem));

    world_delete(W, "serviceaccounts", "n", "default", NULL);
    world_patch(W, "configmaps", "n", "kube-root-ca.crt", "{'data':{'ca.crt':'forged'}}");
    world_settle(W);
    assert_non_null(world_get(W, "serviceaccounts", "n", "default"));
    map = world_get(W, "configmaps", "n", "kube-root-ca.crt");
    assert_true(str_eq(json_str(json_get(json_get(map, "data"), "ca.crt")), pem));
    assert_non_null(world_get(W, "configmaps", "kube-system", "kube-root-ca.crt"));
}

/* ---- APIServices ---- */

static bool service_exists(const char *name)
{
    return world_get(W, "apiservices.apiregistration.k8s.io", "", name) != NULL;
}

static void every_group_version_has_an_apiservice(void **state)
{
    static const char R[] = "apiservices.apiregistration.k8s.io";
    const cJSON *apps;

    (void)state;
    world_pass(W, 2);
    assert_true(service_exists("v1.") && service_exists("v2.autoscaling"));
    apps = world_get(W, R, "", "v1.apps");
    assert_int_equal(world_i64(apps, "spec.groupPriorityMinimum"), 17800);
    assert_string_equal(world_condition(W, apps, "Available"), "True");
    /* What is served comes back; what no longer is goes, unless a client made it. */
    world_delete(W, R, "", "v1.apps", NULL);
    world_create(
        W, R, "",
        "{'metadata':{'name':'v1.gone.example.com',"
        "'labels':{'kube-aggregator.kubernetes.io/automanaged':'true'}},'spec':{'group':"
        "'gone.example.com','version':'v1','groupPriorityMinimum':1,'versionPriority':1}}");
    world_create(W, R, "",
                 "{'metadata':{'name':'v1.own.example.com'},'spec':{'group':"
                 "'own.example.com','version':'v1','groupPriorityMinimum':1,'versionPriority':1}}");
    world_pass(W, 2);
    assert_true(service_exists("v1.apps") && service_exists("v1.own.example.com"));
    assert_false(service_exists("v1.gone.example.com"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(background_takes_all_below),
        WORLD_TEST(foreground_waits_for_blocking_dependents),
        WORLD_TEST(foreground_does_not_wait_for_others),
        WORLD_TEST(orphans_lose_their_owner),
        WORLD_TEST(owner_with_another_uid_is_gone),
        WORLD_TEST(unknown_kind_keeps_its_dependents),
        WORLD_TEST(one_of_two_owners_goes),
        WORLD_TEST(circles_come_apart),
        WORLD_TEST(deployment_takes_its_pods_along),
        WORLD_TEST(namespace_is_emptied),
        WORLD_TEST(namespace_tells_what_holds_it),
        WORLD_TEST(namespaces_have_an_account_and_the_ca),
        WORLD_TEST(every_group_version_has_an_apiservice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
