/* SPDX-License-Identifier: Apache-2.0
 *
 * RBAC: what a rule allows, what rules cover, and, on a whole control plane, whose rules hold
 * where, the roles of every cluster, and that no user grants what they do not hold. */

#include "controller_world.h"

#include <sublet/admission.h>

#include "../../../vapi/auth/rbac.h"

#define RBAC "rbac.authorization.k8s.io"

/* "verbs|groups|resources|names|urls", lists by comma, "-" for the core group. */
static struct rule rule_of(struct arena *a, const char *text)
{
    struct rule rule = {.verbs = {NULL, 0}};
    struct str_list *lists[] = {&rule.verbs, &rule.groups, &rule.resources, &rule.names,
                                &rule.urls};
    struct str rest = str_c(text);

    for (size_t i = 0; i < 5 && rest.p; i++) {
        struct str part = str_cut(&rest, '|');
        struct str *items = arena_alloc(a, 16 * sizeof(*items));

        lists[i]->items = items;
        while (part.p && part.n && lists[i]->n < 16) {
            struct str word = str_cut(&part, ',');

            items[lists[i]->n++] = str_eqc(word, "-") ? STR("") : word;
        }
    }
    return rule;
}

/* "verb group resource[/sub] [name]" or "verb /path". */
static struct attributes question_of(struct arena *a, const char *text)
{
    struct str rest = str_c(text);
    struct attributes what = {
        .verb = arena_cstr(a, str_cut(&rest, ' ')), .subresource = STR(""), .name = STR("")};
    struct str group = str_cut(&rest, ' ');

    if (group.p[0] == '/') {
        what.path = group;
        return what;
    }
    what.group = str_eqc(group, "-") ? STR("") : group;
    struct str resource = str_cut(&rest, ' ');
    what.resource = str_cut(&resource, '/');
    if (resource.p)
        what.subresource = resource;
    if (rest.p)
        what.name = rest;
    return what;
}

static void rule_matrix(void **state)
{
    static const struct {
        const char *rule, *question;
        bool allowed;
    } rows[] = {
        {"get|-|pods", "get - pods", true},
        {"get|-|pods", "get - pods x", true},
        {"get|-|pods", "list - pods", false},
        {"get|-|pods", "get apps pods", false},
        {"get|apps|pods", "get - pods", false},
        {"get,list|-,apps|pods,deployments", "list apps deployments", true},
        {"*|*|*", "delete apps deployments", true},
        {"*|*|*", "get /healthz", false},
        {"*|*|*", "get - pods/exec", true},
        /* subresources */
        {"get|-|pods", "get - pods/log", false},
        {"get|-|pods/log", "get - pods/log", true},
        {"get|-|pods/log", "get - pods", false},
        {"get|-|*/log", "get - pods/log", true},
        {"get|-|*/log", "get - pods/status", false},
        {"get|-|*/log", "get - pods", false},
        {"update|apps|*/scale", "update apps deployments/scale", true},
        {"get|-|pods/*", "get - pods/log", false},
        {"get|-|pods/", "get - pods", false},
        {"get|-|*/", "get - pods", false},
        {"get|-|pods/log/x", "get - pods/log/x", true},
        {"get|-|*/log/x", "get - pods/log/x", true},
        /* names */
        {"get|-|pods|a,b", "get - pods a", true},
        {"get|-|pods|a,b", "get - pods c", false},
        {"list|-|pods|a", "list - pods", false},
        {"create|-|pods|a", "create - pods", false},
        /* URLs */
        {"get||||/healthz", "get /healthz", true},
        {"get||||/healthz", "get /healthz/ping", false},
        {"get||||/healthz", "post /healthz", false},
        {"get||||/healthz/*", "get /healthz/ping", true},
        {"get||||/healthz/*", "get /healthz", false},
        {"get||||/apis*", "get /apis/apps", true},
        {"*||||*", "get /anything/at/all", true},
        {"*||||*", "get - pods", false},
        {"get||||/a/*/b", "get /a/x/b", false},
        {"||", "get - pods", false},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rule rule = rule_of(a, rows[i].rule);
        struct attributes what = question_of(a, rows[i].question);

        if (rbac_rule_allows(&rule, &what) != rows[i].allowed)
            fail_msg("%s: %s", rows[i].rule, rows[i].question);
    }
    arena_free(a);
}

static void covering(void **state)
{
    static const struct {
        const char *held[3];
        const char *wanted;
        bool covered;
    } rows[] = {
        {{"get|-|pods"}, "get|-|pods", true},
        {{"get|-|pods"}, "get|-|pods/", false},
        {{"get|-|pods/"}, "get|-|pods/", true},
        {{"get|-|*/log"}, "get|-|pods/log", true},
        {{"get|-|pods"}, "get,list|-|pods", false},
        {{"get|-|pods", "list|-|pods"}, "get,list|-|pods", true},
        {{"get,list|-|pods,secrets"}, "list|-|secrets|a", true},
        {{"get|-|pods|a"}, "get|-|pods", false},
        {{"get|-|pods|a"}, "get|-|pods|a,b", false},
        {{"get|-|pods|a", "get|-|pods|b"}, "get|-|pods|a,b", true},
        {{"*|*|*"}, "*|*|*", true},
        {{"*|*|*"}, "get||||/x", false},
        {{"get|*|*"}, "*|*|*", false},
        {{"get|-|pods"}, "get|*|pods", false},
        {{"get|-|pods"}, "get|-|*", false},
        {{"get|-|*"}, "get|-|pods/exec", true},
        {{"get|-|*/scale"}, "get|-|deployments/scale,*/scale", true},
        {{"get|-|deployments/scale"}, "get|-|*/scale", false},
        {{"get|-|pods"}, "get|-|pods/exec", false},
        {{"get||||/a/*"}, "get||||/a/b,/a/*", true},
        {{"get||||/a/b"}, "get||||/a/*", false},
        {{"*||||*"}, "get||||/a/*,*", true},
        {{"get|-|pods"}, "get|-|", true},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rule held[3], wanted = rule_of(a, rows[i].wanted);
        size_t n = 0;

        for (; n < 3 && rows[i].held[n]; n++)
            held[n] = rule_of(a, rows[i].held[n]);
        if (rbac_rules_cover(held, n, &wanted) != rows[i].covered)
            fail_msg("%s by %s", rows[i].wanted, rows[i].held[0]);
    }
    arena_free(a);
}

/* Its four lists multiply: such a rule is not looked into, and so not given. */
static void covering_is_bounded(void **state)
{
    static struct str words[1000];
    struct rule held = {.verbs = {words, 1}, .groups = {words, 1}, .resources = {words, 1}};
    struct rule wanted = {.verbs = {words, 1000},
                          .groups = {words, 1000},
                          .resources = {words, 1000},
                          .names = {words, 1000}};

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        words[i] = STR("*");
    assert_false(rbac_rules_cover(&held, 1, &wanted));
    wanted = (struct rule){.verbs = {words, 10}, .groups = {words, 10}, .resources = {words, 10}};
    assert_true(rbac_rules_cover(&held, 1, &wanted));
}

/* ---- on a whole control plane ---- */

static int set_up(void **state)
{
    world_set_up(state);
    world_create(W, "namespaces", "", "{'metadata':{'name':'m'}}");
    world_settle(W);
    return 0;
}

static bool may(const char *user, const char *group, const char *ns, const char *question)
{
    struct arena *a = world_arena(W);
    struct attributes what = question_of(a, question);
    struct str *groups = arena_alloc(a, sizeof(*groups));
    struct user u = {.name = str_c(user), .groups = groups, .n_groups = 1};

    groups[0] = str_c(group);
    what.ns = str_c(ns);
    what.version = STR("v1");
    return auth_authorize(vapi_auth(world_api(W)), a, &u, &what, NULL);
}

static void subjects_and_namespaces(void **state)
{
    (void)state;
    world_create(W, "roles." RBAC, "n",
                 "{'metadata':{'name':'r'},'rules':[{'verbs':['get'],'apiGroups':[''],"
                 "'resources':['pods']}]}");
    assert_false(may("jane", "g", "n", "get - pods"));
    world_create(W, "rolebindings." RBAC, "n",
                 "{'metadata':{'name':'b'},'roleRef':{'apiGroup':'" RBAC "','kind':'Role',"
                 "'name':'r'},'subjects':[{'kind':'User','apiGroup':'" RBAC "','name':'jane'},"
                 "{'kind':'Group','apiGroup':'" RBAC "','name':'ops'},"
                 "{'kind':'ServiceAccount','name':'own','namespace':'n'},"
                 "{'kind':'ServiceAccount','name':'far','namespace':'m'}]}");
    world_settle(W);
    assert_true(may("jane", "g", "n", "get - pods"));
    assert_false(may("jane", "g", "m", "get - pods"));
    assert_false(may("jane", "g", "", "get - pods"));
    assert_false(may("Jane", "g", "n", "get - pods"));
    assert_true(may("x", "ops", "n", "get - pods"));
    assert_false(may("ops", "g", "n", "get - pods"));
    assert_true(may("system:serviceaccount:n:own", "g", "n", "get - pods"));
    assert_true(may("system:serviceaccount:m:far", "g", "n", "get - pods"));
    assert_false(may("system:serviceaccount:m:own", "g", "n", "get - pods"));
    assert_false(may("own", "g", "n", "get - pods"));

    /* A change of the role, and the binding's end, hold at once. */
    world_patch(W, "roles." RBAC, "n", "r",
                "{'rules':[{'verbs':['list'],'apiGroups':[''],'resources':['pods']}]}");
    world_settle(W);
    assert_false(may("jane", "g", "n", "get - pods"));
    assert_true(may("jane", "g", "n", "list - pods"));
    world_delete(W, "rolebindings." RBAC, "n", "b", NULL);
    world_settle(W);
    assert_false(may("jane", "g", "n", "list - pods"));
}

static void cluster_roles(void **state)
{
    (void)state;
    world_create(
        W, "rolebindings." RBAC, "n",
        "{'metadata':{'name':'view'},'roleRef':{'apiGroup':'" RBAC
        "','kind':'ClusterRole','name':'view'},'subjects':[{'kind':'User','apiGroup':'" RBAC
        "','name':'vic'}]}");
    world_create(W, "clusterrolebindings." RBAC, "",
                 "{'metadata':{'name':'adm'},'roleRef':{'apiGroup':'" RBAC
                 "','kind':'ClusterRole','name':'cluster-admin'},'subjects':[{'kind':'Group',"
                 "'apiGroup':'" RBAC "','name':'admins'}]}");
    world_settle(W);
    assert_true(may("vic", "g", "n", "list - pods"));
    assert_true(may("vic", "g", "n", "get - pods/log x"));
    assert_false(may("vic", "g", "n", "get - secrets x"));
    assert_false(may("vic", "g", "m", "list - pods"));
    assert_true(may("x", "admins", "m", "delete apps deployments y"));
    assert_true(may("x", "admins", "", "get /metrics"));
    assert_true(may("x", "system:masters", "", "anything x y/z"));
    /* What everybody may. */
    assert_true(may("x", "system:authenticated", "", "get /api"));
    assert_true(may("x", "system:authenticated", "",
                    "create authorization.k8s.io selfsubjectaccessreviews"));
    assert_true(may("system:anonymous", "system:unauthenticated", "", "get /healthz"));
    assert_false(may("system:anonymous", "system:unauthenticated", "", "get /metrics"));
    assert_true(may("x", "system:serviceaccounts", "", "get /openid/v1/jwks"));
}

/* edit and admin are made of parts, and a CRD's author may add one. */
static void aggregation(void **state)
{
    const cJSON *role = world_get(W, "clusterroles." RBAC, "", "edit");

    (void)state;
    assert_true(json_count(json_get(role, "rules")) > 5);
    world_create(
        W, "rolebindings." RBAC, "n",
        "{'metadata':{'name':'adm'},'roleRef':{'apiGroup':'" RBAC
        "','kind':'ClusterRole','name':'admin'},'subjects':[{'kind':'User','apiGroup':'" RBAC
        "','name':'ann'}]}");
    world_settle(W);
    assert_true(may("ann", "g", "n", "get - pods"));
    assert_true(may("ann", "g", "n", "create - secrets"));
    assert_true(may("ann", "g", "n", "create " RBAC " roles"));
    assert_false(may("ann", "g", "n", "update - resourcequotas x"));
    assert_false(may("ann", "g", "n", "get my.group things"));
    world_create(W, "clusterroles." RBAC, "",
                 "{'metadata':{'name':'things','labels':{'" RBAC "/aggregate-to-admin':'true'}},"
                 "'rules':[{'verbs':['get'],'apiGroups':['my.group'],'resources':['things']}]}");
    world_settle(W);
    assert_true(may("ann", "g", "n", "get my.group things"));
}

static cJSON *named(const struct resource *r, const char *name, const char *object)
{
    struct arena *a = world_arena(W);
    cJSON *tree = object ? world_parse(W, object) : NULL;

    if (!tree)
        return NULL;
    json_set_str(a, json_ensure_object(a, tree, "metadata"), "name", str_c(name));
    if (resource_namespaced(r))
        json_set_str(a, json_get(tree, "metadata"), "namespace", STR("n"));
    return tree;
}

/* What ann receives; `path`: the name in the path of the request. */
static struct str refusal_of(const char *resource, const char *name, const char *path,
                             const char *object, const char *old)
{
    struct arena *a = world_arena(W);
    static const struct str groups[] = {{"g", 1}};
    const struct user u = {.name = STR("ann"), .groups = groups, .n_groups = 1};
    const struct resource *r =
        registry_find_group_resource(vapi_registry(world_api(W)), STR(RBAC), str_c(resource));
    struct admission_call c = {.api = world_api(W),
                               .arena = a,
                               .user = &u,
                               .resource = r,
                               .ns = resource_namespaced(r) ? STR("n") : STR(""),
                               .name = str_c(name),
                               .operation = old ? ADMISSION_UPDATE : ADMISSION_CREATE,
                               .path_name = str_c(path)};
    struct err err;

    err_init(&err, a);
    return admission_mutate(&c, named(r, name, object), named(r, name, old), &err) ? err.message
                                                                                   : STR("");
}

static struct str refusal(const char *resource, const char *name, const char *object)
{
    return refusal_of(resource, name, "", object, NULL);
}

#define STARS           "{'verbs':['*'],'apiGroups':['*'],'resources':['*']}"
#define ALL             "{'rules':[" STARS "]}"
#define REF(kind, name) "{'roleRef':{'apiGroup':'" RBAC "','kind':'" kind "','name':'" name "'}}"

static void escalation(void **state)
{
    (void)state;
    world_create(
        W, "rolebindings." RBAC, "n",
        "{'metadata':{'name':'adm'},'roleRef':{'apiGroup':'" RBAC
        "','kind':'ClusterRole','name':'admin'},'subjects':[{'kind':'User','apiGroup':'" RBAC
        "','name':'ann'}]}");
    world_settle(W);
    assert_str(refusal("roles", "r",
                       "{'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['pods']}]}"),
               "");
    assert_str(refusal("roles", "r",
                       "{'rules':[{'verbs':['get'],'apiGroups':['my.group'],'resources':['a']},"
                       "{'verbs':['*'],'apiGroups':['*'],'resources':['*']}]}"),
               "roles." RBAC " \"r\" is forbidden: user \"ann\" (groups=[\"g\"]) is attempting to "
               "grant RBAC permissions not currently held:\n"
               "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n"
               "{APIGroups:[\"my.group\"], Resources:[\"a\"], Verbs:[\"get\"]}");
    /* What is held of a rule is not reported. */
    assert_str(
        refusal("roles", "r",
                "{'rules':[{'verbs':['get','fly','run'],'apiGroups':[''],'resources':['pods'],"
                "'resourceNames':['a','b']},{'verbs':['get'],'nonResourceURLs':['/x']}]}"),
        "roles." RBAC " \"r\" is forbidden: user \"ann\" (groups=[\"g\"]) is attempting to "
        "grant RBAC permissions not currently held:\n"
        "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"a\"], Verbs:[\"fly\" "
        "\"run\"]}\n"
        "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"b\"], Verbs:[\"fly\" "
        "\"run\"]}\n"
        "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}");
    assert_str(refusal("rolebindings", "b", REF("ClusterRole", "view")), "");
    assert_true(str_contains(refusal("rolebindings", "b", REF("ClusterRole", "cluster-admin")),
                             STR("not currently held")));
    assert_str(refusal("rolebindings", "b", REF("Role", "none")),
               "rolebindings." RBAC " \"none\" not found");
    /* Held in one namespace, not in all. */
    assert_true(str_contains(refusal("clusterrolebindings", "b", REF("ClusterRole", "view")),
                             STR("not currently held")));
    assert_str(refusal("clusterroles", "c",
                       "{'aggregationRule':{'clusterRoleSelectors':[{}]},'rules':[]}"),
               "clusterroles." RBAC
               " \"c\" is forbidden: must have cluster-admin privileges to use "
               "the aggregationRule");
}

/* Who may `bind` or `escalate` needs nothing else. */
static void bind_and_escalate(void **state)
{
    (void)state;
    world_create(W, "clusterroles." RBAC, "",
                 "{'metadata':{'name':'maker'},'rules':[{'verbs':['bind'],'apiGroups':['" RBAC
                 "'],'resources':['clusterroles'],'resourceNames':['view']},{'verbs':['escalate'],"
                 "'apiGroups':['" RBAC "'],'resources':['roles']}]}");
    world_create(
        W, "rolebindings." RBAC, "n",
        "{'metadata':{'name':'m'},'roleRef':{'apiGroup':'" RBAC
        "','kind':'ClusterRole','name':'maker'},'subjects':[{'kind':'User','apiGroup':'" RBAC
        "','name':'ann'}]}");
    world_settle(W);
    assert_str(refusal("rolebindings", "b", REF("ClusterRole", "view")), "");
    assert_true(refusal("rolebindings", "b", REF("ClusterRole", "edit")).n > 0);
    assert_str(refusal("roles", "r", ALL), "");
    world_patch(W, "clusterroles." RBAC, "", "maker",
                "{'rules':[{'verbs':['escalate'],'apiGroups':['" RBAC "'],'resources':['roles'],"
                "'resourceNames':['r']}]}");
    world_settle(W);
    /* By name only where the path has it: a new role is of no name yet. */
    assert_true(refusal("roles", "r", ALL).n > 0);
    assert_str(refusal_of("roles", "r", "r", ALL, NULL), "");
    assert_true(refusal_of("roles", "s", "s", ALL, NULL).n > 0);
}

/* Many groups are found as few are. */
static void many_groups(void **state)
{
    static struct str groups[1000];
    struct user u = {.name = STR("ann"), .groups = groups};
    struct attributes what = question_of(world_arena(W), "get - pods");

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        groups[i] = arena_printf(world_arena(W), "g%zu", (i * 7) % 1000);
    world_create(
        W, "clusterrolebindings." RBAC, "",
        "{'metadata':{'name':'m'},'roleRef':{'apiGroup':'" RBAC
        "','kind':'ClusterRole','name':'view'},'subjects':[{'kind':'Group','apiGroup':'" RBAC
        "','name':'none'},{'kind':'Group','apiGroup':'" RBAC "','name':'g500'}]}");
    world_settle(W);
    for (u.n_groups = 0; u.n_groups <= 1000; u.n_groups += 10) {
        bool in = false;

        for (size_t i = 0; i < u.n_groups; i++)
            in |= str_eqc(groups[i], "g500");
        assert_int_equal(auth_authorize(vapi_auth(world_api(W)), world_arena(W), &u, &what, NULL),
                         in);
    }
}

/* Rules one by one small enough, together not: what is one too many is not held. */
static void a_role_is_bounded(void **state)
{
    struct arena *a = world_arena(W);
    cJSON *role = world_parse(W, "{'rules':[]}"), *rules = json_get(role, "rules"), *rule;
    static const char *const lists[] = {"verbs", "resources", "resourceNames"};
    size_t n = 0;

    (void)state;
    world_create(W, "rolebindings." RBAC, "n",
                 "{'metadata':{'name':'adm'},'roleRef':{'apiGroup':'" RBAC
                 "','kind':'ClusterRole','name':'cluster-admin'},'subjects':[{'kind':'User','"
                 "apiGroup':'" RBAC "','name':'ann'}]}");
    world_patch(W, "clusterroles." RBAC, "", "cluster-admin",
                "{'rules':[{'verbs':['get'],'apiGroups':[''],'resources':['pods']}]}");
    world_settle(W);
    rule = world_parse(W, "{'apiGroups':['']}");
    for (size_t l = 0; l < 3; l++) {
        cJSON *list = json_set(a, rule, lists[l], json_new_array(a));

        for (size_t i = 0; i < 100; i++)
            json_append(list, json_new_string(a, str_c(l == 0 ? "get" : "pods")));
    }
    json_append(rules, json_copy(a, rule));
    assert_str(refusal("roles", "r", json_text(a, role).p), "");
    while (n++ < 1000)
        json_append(rules, json_copy(a, rule));
    assert_true(refusal("roles", "r", json_text(a, role).p).n > 0);
}

/* A label may be what puts a role's rules into another. */
static void changes_of_metadata(void **state)
{
    static const struct {
        const char *now;
        bool refused;
    } rows[] = {
        {"{'rules':[" STARS "],'metadata':{'labels':{'a':'b'}}}", false},
        {"{'rules':[" STARS "],'metadata':{'labels':{'a':'b'},'finalizers':['x/y'],"
         "'ownerReferences':[{'uid':'1'}]}}",
         false},
        {"{'rules':[" STARS "],'metadata':{'labels':{'a':'c'}}}", true},
        {"{'rules':[" STARS "],'metadata':{'labels':{'a':'b'},'annotations':{'x':'y'}}}", true},
        {"{'rules':[" STARS "]}", true},
        {"{'rules':[]}", false}, /* less is always given */
    };
    const char *old = "{'rules':[" STARS "],'metadata':{'labels':{'a':'b'}}}";
    const char *sum = "{'rules':[],'aggregationRule':{'clusterRoleSelectors':[{}]}}";

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(refusal_of("clusterroles", "r", "r", rows[i].now, old).n > 0,
                         rows[i].refused);
    assert_true(str_contains(refusal_of("clusterroles", "r", "r", "{'rules':[]}", sum),
                             STR("must have cluster-admin privileges")));
    assert_str(refusal_of("clusterroles", "r", "r", sum, sum), "");
    assert_true(refusal_of("clusterrolebindings", "b", "b",
                           "{'metadata':{'labels':{'a':'b'}},'roleRef':{'kind':'ClusterRole',"
                           "'name':'view'}}",
                           "{'roleRef':{'kind':'ClusterRole','name':'view'}}")
                    .n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_matrix),
        cmocka_unit_test(covering),
        cmocka_unit_test(covering_is_bounded),
        cmocka_unit_test_setup_teardown(subjects_and_namespaces, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(cluster_roles, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(aggregation, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(escalation, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(bind_and_escalate, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(changes_of_metadata, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_role_is_bounded, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(many_groups, set_up, world_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
