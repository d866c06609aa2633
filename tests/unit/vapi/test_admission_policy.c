/* SPDX-License-Identifier: Apache-2.0
 *
 * ValidatingAdmissionPolicies on a whole control plane: whose writes they judge, that a change
 * applies to the next write, that nothing of our own is stopped, and that a request ends. What they
 * decide is compared with a kube-apiserver in tests/integration/test_admission_policies.py. */

#include "controller_world.h"

#include <sublet/admission.h>

#define POLICIES "validatingadmissionpolicies.admissionregistration.k8s.io"
#define BINDINGS "validatingadmissionpolicybindings.admissionregistration.k8s.io"

static const struct str GROUPS[] = {{"system:authenticated", 20}};
static const struct user USER = {.name = {"jo", 2}, .groups = GROUPS, .n_groups = 1};

static size_t warned;
static const char *controller; /* whose write judged() is */

static void on_warning(void *ctx, struct str message)
{
    (void)ctx;
    (void)message;
    warned++;
}

static void policy(const char *name, const char *rule, const char *validations)
{
    struct arena *a = world_arena(W);

    world_create(W, POLICIES, "",
                 arena_printf(a,
                              "{'metadata':{'name':'%s'},'spec':{'matchConstraints':{"
                              "'resourceRules':[%s]},%s}}",
                              name, rule, validations)
                     .p);
    world_create(W, BINDINGS, "",
                 arena_printf(a,
                              "{'metadata':{'name':'%s'},'spec':{'policyName':'%s',"
                              "'validationActions':['Deny']}}",
                              name, name)
                     .p);
    world_settle(W);
}

#define ALL_RULE "{'apiGroups':['*'],'apiVersions':['*'],'operations':['*'],'resources':['*/*']}"
#define REFUSE   "'validations':[{'expression':'false','message':'no'}]"

/* What a user is answered; "" when the write passes. */
static struct str judged(const struct user *u, const char *resource,
                         enum admission_operation operation, const char *json)
{
    struct arena *a = world_arena(W);
    struct str group = str_c(resource), plural = str_cut(&group, '.');
    cJSON *object = world_parse(W, json);
    struct admission_call c = {.api = world_api(W),
                               .arena = a,
                               .user = u,
                               .ns = STR("n"),
                               .operation = operation,
                               .controller = controller,
                               .warn = on_warning};
    struct err err;

    err_init(&err, a);
    c.resource = registry_find_group_resource(vapi_registry(world_api(W)),
                                              group.p ? group : STR(""), plural);
    c.name = json_str_at(object, "metadata.name");
    if (!resource_namespaced(c.resource))
        c.ns = STR("");
    if (operation == ADMISSION_DELETE)
        return admission_validate(&c, NULL, object, &err) ? err.message : STR("");
    return admission_validate(&c, object, operation == ADMISSION_UPDATE ? object : NULL, &err)
               ? err.message
               : STR("");
}

#define MAP "{'metadata':{'name':'m','namespace':'n','labels':{'a':'b'}},'data':{'n':'1'}}"
#define REFUSED                                                                                    \
    "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'all' with binding 'all' denied "    \
    "request: no"

static void users_are_judged(void **state)
{
    (void)state;
    assert_str(judged(&USER, "configmaps", ADMISSION_CREATE, MAP), "");
    policy("all", ALL_RULE, REFUSE);
    assert_str(judged(&USER, "configmaps", ADMISSION_CREATE, MAP), REFUSED);
    assert_str(judged(&USER, "configmaps", ADMISSION_UPDATE, MAP), REFUSED);
    assert_str(judged(&USER, "configmaps", ADMISSION_DELETE, MAP), REFUSED);
    world_delete(W, BINDINGS, "", "all", NULL);
    world_settle(W);
    assert_str(judged(&USER, "configmaps", ADMISSION_CREATE, MAP), "");
}

/* The way out of a policy that refuses everything. */
static void policies_do_not_judge_themselves(void **state)
{
    (void)state;
    policy("all", ALL_RULE, REFUSE);
    assert_str(judged(&USER, POLICIES, ADMISSION_DELETE, "{'metadata':{'name':'all'}}"), "");
    assert_str(judged(&USER, BINDINGS, ADMISSION_UPDATE, "{'metadata':{'name':'all'}}"), "");
}

/* Pods of a workload are judged as those upstream's controller creates; statuses, deletions, and
 * what has no owner are not. */
static void our_own_writes(void **state)
{
    (void)state;
    policy(
        "pods",
        "{'apiGroups':[''],'apiVersions':['v1'],'operations':['CREATE'],'resources':["
        "'pods']}",
        "'validations':[{'expression':'false','messageExpression':'request.userInfo.username'}]");
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'bare'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    world_create(W, "replicasets.apps", "n",
                 "{'metadata':{'name':'r'},'spec':{'replicas':1,'selector':{'matchLabels':{'a':'b'}"
                 "},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
                 "'image':'i'}]}}}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "a", "b"), 0);
    assert_true(world_events(W, "n", "ReplicaSet", "FailedCreate") > 0);
    assert_string_equal(json_str_at(world_get(W, "pods", "n", "bare"), "status.phase").p,
                        "Running");
    controller = "daemon-set-controller";
    assert_true(str_contains(
        judged(&USER_INTERNAL, "pods", ADMISSION_CREATE,
               "{'metadata':{'name':'p','namespace':'n'},'spec':{}}"),
        STR("denied request: system:serviceaccount:kube-system:daemon-set-controller")));
    controller = NULL;
    assert_str(judged(&USER_INTERNAL, "nodes", ADMISSION_CREATE, "{'metadata':{'name':'x'}}"), "");
    world_delete(W, BINDINGS, "", "pods", NULL);
    world_pass(W, 60);
    assert_int_equal(world_count(W, "pods", "n", "a", "b"), 1);
}

/* How many pods of a DaemonSet the policies let its controller create on one node. */
static unsigned pods_of_a_daemon_set(void)
{
    world_node(W, "a", "{}");
    world_create(W, "daemonsets.apps", "n",
                 "{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},'template':"
                 "{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}"
                 "}}}");
    world_settle(W);
    return (unsigned)world_count(W, "pods", "n", "a", "b");
}

/* Which are not always its own name. */
static void controllers_have_the_accounts_of_upstream(void **state)
{
    (void)state;
    policy("pods",
           "{'apiGroups':[''],'apiVersions':['v1'],'operations':['CREATE'],'resources':['pods']}",
           "'validations':[{'expression':'request.userInfo.username == "
           "\\'system:serviceaccount:kube-system:daemon-set-controller\\''}]");
    assert_int_equal(pods_of_a_daemon_set(), 1);
}

/* What is created for a workload has the rights of upstream's controller, not of this process. */
static void controllers_have_no_more_rights(void **state)
{
    (void)state;
    policy("rights",
           "{'apiGroups':[''],'apiVersions':['v1'],'operations':['CREATE'],'resources':['pods']}",
           "'validations':[{'expression':"
           "'!authorizer.group(\\\"\\\").resource(\\\"secrets\\\").check(\\\"delete\\\").allowed()'"
           "}]");
    assert_int_equal(pods_of_a_daemon_set(), 1);
}

/* Sixty dear policies end as one: the budget is of the request. */
static void a_request_ends(void **state)
{
    struct arena *a = world_arena(W);
    struct str answer;

    (void)state;
    for (int i = 0; i < 60; i++)
        policy(arena_printf(a, "dear-%02d", i).p, ALL_RULE,
               "'failurePolicy':'Ignore','validations':[{'expression':'[lists.range(1000)].all(l, "
               "l.all(x, l.all(y, x + y >= 0)))'}]");
    policy("last", ALL_RULE, REFUSE);
    answer = judged(&USER, "configmaps", ADMISSION_CREATE, MAP);
    assert_true(str_contains(answer, STR("running out of cost budget")));
}

static void variables_do_not_nest_without_end(void **state)
{
    struct arena *a = world_arena(W);
    struct buf b = BUF_INIT(0);
    struct str answer;

    (void)state;
    buf_addc(&b, "'variables':[{'name':'v0','expression':'1'}");
    for (int i = 1; i < 200; i++)
        buf_printf(&b, ",{'name':'v%d','expression':'variables.v%d + 1'}", i, i - 1);
    buf_addc(&b, "],'validations':[{'expression':'variables.v199 > 0'}]");
    policy("deep", ALL_RULE, arena_cstr(a, buf_str(&b)));
    buf_fini(&b);
    answer = judged(&USER, "configmaps", ADMISSION_CREATE, MAP);
    assert_true(str_contains(answer, STR("composited variable \"v198\" fails to evaluate")));
}

/* Each is as deep as a source may be, and each needs the one before: the stack holds. */
static void variables_nest_within_the_stack(void **state)
{
    struct arena *a = world_arena(W);
    struct buf b = BUF_INIT(0);

    (void)state;
    buf_addc(&b, "'variables':[{'name':'v0','expression':'object'}");
    for (int i = 1; i < 56; i++) {
        buf_printf(&b, ",{'name':'v%d','expression':'variables.v%d", i, i - 1);
        for (int k = 0; k < 980; k++)
            buf_addc(&b, ".a");
        buf_addc(&b, "'}");
    }
    buf_addc(&b, "],'validations':[{'expression':'variables.v55 == 0'}]");
    policy("tall", ALL_RULE, arena_cstr(a, buf_str(&b)));
    buf_fini(&b);
    assert_true(str_contains(judged(&USER, "configmaps", ADMISSION_CREATE, MAP),
                             STR("actual cost limit exceeded")));
}

/* The same policy, changed: the next write sees it. */
static void a_change_applies(void **state)
{
    (void)state;
    policy("all", ALL_RULE, REFUSE);
    world_patch(W, POLICIES, "", "all",
                "{'spec':{'validations':[{'expression':'object != null'}]}}");
    world_settle(W);
    assert_str(judged(&USER, "configmaps", ADMISSION_CREATE, MAP), "");
    world_patch(W, BINDINGS, "", "all", "{'spec':{'validationActions':['Warn']}}");
    world_patch(W, POLICIES, "", "all",
                "{'spec':{'validations':[{'expression':'object == null'}]}}");
    world_settle(W);
    warned = 0;
    assert_str(judged(&USER, "configmaps", ADMISSION_CREATE, MAP), "");
    assert_int_equal(warned, 1);
}

#define LEFT_OUT "it is left out: all together are too large, or too many"

/* What does not fit into the memory of all policies is answered as failurePolicy says. */
static void policies_have_a_budget(void **state)
{
    struct arena *a = world_arena(W);
    struct buf b = BUF_INIT(0);
    const char *large;

    (void)state;
    buf_addc(&b, "'validations':[");
    for (int i = 0; i < 17; i++) {
        buf_addc(&b, i ? ",{'expression':'[0" : "{'expression':'[0");
        for (int k = 0; k < 3000; k++)
            buf_addc(&b, ",0");
        buf_addc(&b, "].size() > 0'}");
    }
    buf_addc(&b, "]");
    large = arena_cstr(a, buf_str(&b));
    buf_fini(&b);
    for (int i = 0; i < 10; i++)
        policy(arena_printf(a, "large-%02d", i).p, ALL_RULE, large);
    policy("small", ALL_RULE, REFUSE);
    assert_str(
        judged(&USER, "configmaps", ADMISSION_CREATE, MAP),
        "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'large-08' denied request: "
        "failed to configure policy: " LEFT_OUT);
    for (int i = 0; i < 10; i++)
        world_patch(W, POLICIES, "", arena_printf(a, "large-%02d", i).p,
                    "{'spec':{'failurePolicy':'Ignore'}}");
    world_settle(W);
    assert_str(judged(&USER, "configmaps", ADMISSION_CREATE, MAP),
               "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'small' with binding "
               "'small' denied request: no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(users_are_judged),
        WORLD_TEST(policies_do_not_judge_themselves),
        WORLD_TEST(our_own_writes),
        WORLD_TEST(controllers_have_the_accounts_of_upstream),
        WORLD_TEST(controllers_have_no_more_rights),
        WORLD_TEST(a_request_ends),
        WORLD_TEST(variables_do_not_nest_without_end),
        WORLD_TEST(variables_nest_within_the_stack),
        WORLD_TEST(a_change_applies),
        WORLD_TEST(policies_have_a_budget),
    };

    return cmocka_run_group_tests_name("admission policies", tests, NULL, NULL);
}
