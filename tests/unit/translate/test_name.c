/* SPDX-License-Identifier: Apache-2.0 */
/* Host names and ownership: injective, valid for every kind, and never those of a copy. */

#include <sublet/selector.h>
#include <sublet/translate_alias.h>

#include "test.h"

static int setup(void **state)
{
    *state = fixture_new("");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static const char *host_name(struct fixture *f, const char *ns, const char *name)
{
    char out[64];

    translate_name(&f->tenant, str_c(ns), str_c(name), out);
    return arena_cstr(f->a, str_c(out));
}

static void names_are_valid(void **state)
{
    static const char *const names[] = {
        "a",
        "web-0",
        "kube-root-ca.crt",
        "a.b.c",
        "a.-b",
        "0abc",
        "system:node:x",
        "UPPER",
        "--",
        "",
        "averyveryverylongpodname-that-is-longer-than-fortysix-characters-0",
        "x234567890123456789012345678901234567890123456-cut-after-the-dash",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(names); i++) {
        struct str got = str_c(host_name(f, "default", names[i]));

        assert_true(got.n <= 63);
        assert_null(name_check_dns1123_label(got));
        if (names[i][0] >= 'a' && names[i][0] <= 'z')
            assert_null(name_check_dns1035_label(got));
    }
}

static void names_keep_what_people_read(void **state)
{
    struct fixture *f = *state;

    assert_has(str_c(host_name(f, "default", "web-0")), "web-0-");
    assert_has(str_c(host_name(f, "default", "kube-root-ca.crt")), "kube-root-ca-crt-");
    assert_int_equal(strlen(host_name(f, "default", "web-0")), 5 + 17);
}

/* Joined without lengths, each of these pairs would be one string. */
static void names_are_injective(void **state)
{
    struct fixture *f = *state;
    const char *one = host_name(f, "a", "b-c"), *two = host_name(f, "a-b", "c");
    char first[64], second[64];

    assert_string_not_equal(strrchr(one, '-'), strrchr(two, '-'));
    assert_string_not_equal(host_name(f, "ab", "c"), host_name(f, "a", "bc"));
    assert_string_not_equal(host_name(f, "a", "x.y"), host_name(f, "a", "x-y"));
    translate_name(&f->tenant, STR("a"), STR("b"), first);
    translate_token_secret_name(&f->tenant, STR("a"), STR("b"), second);
    assert_string_not_equal(first, second);
    f->tenant.cluster_uid = STR("other");
    assert_string_not_equal(first, host_name(f, "a", "b"));
}

static void names_are_stable(void **state)
{
    struct fixture *f = *state;

    /* Objects on hosts carry these: a change of the rule would orphan them all. */
    assert_string_equal(host_name(f, "ml", "kube-root-ca.crt"),
                        "kube-root-ca-crt-igusprkq7qduizjc");
    assert_string_equal(host_name(f, "ml", "settings"), "settings-6nisyjfuyi6jnjut");
}

static const cJSON *host_object(struct fixture *f, const char *name, const char *cluster)
{
    return doc(
        f, arena_cstr(f->a, arena_printf(f->a,
                                         "{metadata: {name: %s, namespace: team-research, labels: "
                                         "{sublet.dev/cluster: %s, sublet.dev/namespace: ml}, "
                                         "annotations: {sublet.dev/name: settings, "
                                         "sublet.dev/namespace: ml, sublet.dev/uid: u1}}}",
                                         name, cluster)));
}

static void owner_is_read(void **state)
{
    struct fixture *f = *state;
    const char *uid = f->tenant.cluster_uid.p;
    const cJSON *object = host_object(f, host_name(f, "ml", "settings"), uid);
    struct str ns, name, owner;
    char token[64];

    assert_true(translate_owner(&f->tenant, object, &ns, &name, &owner));
    assert_str(ns, "ml");
    assert_str(name, "settings");
    assert_str(owner, "u1");
    translate_token_secret_name(&f->tenant, STR("ml"), STR("settings"), token);
    assert_true(translate_owner(&f->tenant, host_object(f, token, uid), &ns, &name, &owner));
}

static void foreign_objects_are_not_ours(void **state)
{
    struct fixture *f = *state;
    const char *uid = f->tenant.cluster_uid.p, *right = host_name(f, "ml", "settings");
    struct str ns, name, owner;

    /* A copy under another name, another tenant's, one without marks, one of another namespace. */
    assert_false(
        translate_owner(&f->tenant, host_object(f, "copy-of-settings", uid), &ns, &name, &owner));
    assert_false(translate_owner(&f->tenant, host_object(f, right, "another"), &ns, &name, &owner));
    assert_false(translate_owner(&f->tenant, doc(f, "{metadata: {name: x}}"), &ns, &name, &owner));
    assert_false(translate_owner(&f->tenant, NULL, &ns, &name, &owner));
    f->tenant.host_namespace = STR("other");
    assert_false(translate_owner(&f->tenant, host_object(f, right, uid), &ns, &name, &owner));
}

/* Under a name of the admin's: the name is part of the marks. */
static void aliases_are_read(void **state)
{
    struct fixture *f = *state;
    struct str ns, name, owner;
    cJSON *web = doc(f, "{metadata: {name: web, namespace: ml, uid: u1, labels: {app: web}}, spec:"
                        " {type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.0.0.7,"
                        " allocateLoadBalancerNodePorts: false, healthCheckNodePort: 30001,"
                        " selector: {app: web}, ports: [{port: 80, nodePort: 30080}]}}");
    cJSON *host = NULL, *copy;

    json_set_str(f->a, json_get(web, "metadata"), "resourceVersion", STR("7"));
    assert_ok(translate_service_alias(f->a, &f->tenant, web, STR("shop"), &host, &f->err));
    assert_str(json_str_at(host, "metadata.name"), "shop");
    assert_str(json_str_at(host, "metadata.namespace"), "team-research");
    assert_str(json_str(json_get(json_path(host, "metadata.annotations"), ANNOTATION_ALIAS)),
               "shop");
    assert_true(json_get(json_path(host, "spec.selector"), LABEL_CLUSTER) != NULL);
    json_remove(json_get(host, "spec"), "selector");
    assert_json(json_get(host, "spec"), "{type: ClusterIP, ports: [{port: 80}]}");
    assert_true(translate_alias_owner(&f->tenant, host, &ns, &name, &owner));
    assert_str(ns, "ml");
    assert_str(name, "web");
    assert_str(owner, "u1");
    assert_false(translate_owner(&f->tenant, host, &ns, &name, &owner));

    copy = json_copy(f->a, host);
    json_set_str(f->a, json_get(copy, "metadata"), "name", STR("copy"));
    assert_false(translate_alias_owner(&f->tenant, copy, &ns, &name, &owner));
    copy = json_copy(f->a, host);
    json_set_str(f->a, json_path(copy, "metadata.labels"), LABEL_CLUSTER, STR("other"));
    assert_false(translate_alias_owner(&f->tenant, copy, &ns, &name, &owner));
    assert_false(translate_alias_owner(
        &f->tenant, host_object(f, "settings", f->tenant.cluster_uid.p), &ns, &name, &owner));

    /* It would lead nowhere; a name for a name has nothing to lead to. */
    json_remove(json_get(web, "spec"), "selector");
    assert_error(translate_service_alias(f->a, &f->tenant, web, STR("shop"), &host, &f->err),
                 "services \"web\" is forbidden: spec.selector: sync.toHost.services maps it, and "
                 "needs one");
    web = doc(f, "{metadata: {name: web, namespace: ml}, spec: {type: ExternalName, externalName: "
                 "x.example}}");
    assert_ok(translate_service_alias(f->a, &f->tenant, web, STR("shop"), &host, &f->err));
    assert_null(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_are_valid, setup, teardown),
        cmocka_unit_test_setup_teardown(aliases_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(names_keep_what_people_read, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_injective, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_stable, setup, teardown),
        cmocka_unit_test_setup_teardown(owner_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_objects_are_not_ours, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
