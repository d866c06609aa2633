/* SPDX-License-Identifier: Apache-2.0
 *
 * Which webhooks apply to a request: rules, scope, selectors, other versions of the object,
 * matchConditions. Configurations of admission itself are never reviewed. What is kept of
 * configurations follows the store, within a budget. What conditions decide is compared with a
 * kube-apiserver in tests/integration/test_webhooks.py. */

#include "controller_world.h"

#include "../../../vapi/admission/webhook_impl.h"
#include "../../../vapi/core/notice.h"

struct request {
    const char *group, *version, *plural, *ns, *sub, *object, *old;
    enum admission_operation operation;
};

/* Namespaces of these requests: `n` has the label team=a. */
static int judged(const struct request *q, const char *hook, const char **ret_version,
                  struct err *err)
{
    struct arena *a = world_arena(W);
    struct call *c = ARENA_NEW(a, struct call);
    struct webhook_review r = {.call = c, .operation = q->operation};
    struct webhook_parts parts = {0};
    struct webhook_hook h = {.parts = &parts};
    struct webhook_form form = {0};
    struct webhook_pass pass;
    int matches;

    err_init(err, a);
    c->api = world_api(W);
    c->arena = a;
    c->resource =
        registry_find(vapi_registry(c->api), str_c(q->group), str_c(q->version), str_c(q->plural));
    assert_non_null(c->resource);
    c->sub = q->sub ? resource_sub(c->resource, str_c(q->sub)) : NULL;
    c->ns = str_c(q->ns);
    c->name = STR("o");
    r.requested = c->resource;
    r.object = q->object ? world_parse(W, q->object) : NULL;
    r.old = q->old ? world_parse(W, q->old) : NULL;
    if (webhook_is_exempt(&r))
        return 0;
    policy_match_read(a, world_parse(W, hook), "rules", &parts.match);
    webhook_pass_begin(&pass, WEBHOOKS_VALIDATING, &r, &form, POLICY_REQUEST_LIMIT);
    matches = webhook_pass_matches(&pass, &h, err);
    webhook_pass_end(&pass);
    if (ret_version)
        *ret_version = matches > 0 ? arena_cstr(a, h.as->api_version) : "";
    return matches;
}

static bool applies(const struct request *q, const char *hook, const char **ret_version)
{
    struct err err;
    int matches = judged(q, hook, ret_version, &err);

    assert_true(matches >= 0 && !err.kind);
    return matches;
}

#define RULE(ops, groups, versions, resources, more)                                               \
    "'rules':[{'operations':[" ops "],'apiGroups':[" groups "],'apiVersions':[" versions           \
    "],'resources':[" resources "]" more "}]"
#define HOOK(rules, more) "{" rules more "}"
#define OBJECT            "{'metadata':{'name':'o','labels':{'x':'y'}}}"

static const struct request MAP = {"",   "v1",   "configmaps", "n",
                                   NULL, OBJECT, NULL,         ADMISSION_CREATE};
static const struct request NODE = {"", "v1", "nodes", "", NULL, OBJECT, NULL, ADMISSION_CREATE};
static const struct request STATUS = {"apps",   "v1",   "deployments", "n",
                                      "status", OBJECT, OBJECT,        ADMISSION_UPDATE};
static const struct request EXEC = {
    "", "v1", "pods", "n", "exec", "{'kind':'PodExecOptions'}", NULL, ADMISSION_CONNECT};
static const struct request PROXY = {
    "", "v1", "nodes", "", "proxy", "{'kind':'NodeProxyOptions'}", NULL, ADMISSION_CONNECT};
static const struct request SCALE = {"apps",
                                     "v1",
                                     "deployments",
                                     "n",
                                     "scale",
                                     "{'kind':'Scale','metadata':{'name':'o'}}",
                                     "{'kind':'Scale','metadata':{'name':'o'}}",
                                     ADMISSION_UPDATE};
#define NO_LABEL ",'objectSelector':{'matchExpressions':[{'key':'x','operator':'DoesNotExist'}]}"

static void rules(void **state)
{
    static const struct {
        const struct request *request;
        const char *hook;
        bool applies;
    } cases[] = {
        {&MAP, HOOK(RULE("'CREATE'", "''", "'v1'", "'configmaps'", ""), ""), true},
        {&MAP, HOOK(RULE("'*'", "'*'", "'*'", "'*'", ""), ""), true},
        {&MAP, HOOK(RULE("'*'", "'*'", "'*'", "'*/*'", ""), ""), true},
        {&MAP, HOOK(RULE("'UPDATE','DELETE'", "''", "'v1'", "'configmaps'", ""), ""), false},
        {&MAP, HOOK(RULE("'CREATE'", "'apps'", "'v1'", "'configmaps'", ""), ""), false},
        {&MAP, HOOK(RULE("'CREATE'", "''", "'v2'", "'configmaps'", ""), ""), false},
        {&MAP, HOOK(RULE("'CREATE'", "''", "'v1'", "'configmaps/status'", ""), ""), false},
        {&MAP, HOOK(RULE("'*'", "'*'", "'*'", "'*'", ",'scope':'Cluster'"), ""), false},
        {&MAP, HOOK(RULE("'*'", "'*'", "'*'", "'*'", ",'scope':'Namespaced'"), ""), true},
        {&NODE, HOOK(RULE("'*'", "'*'", "'*'", "'*'", ",'scope':'Cluster'"), ""), true},
        {&NODE, HOOK(RULE("'*'", "'*'", "'*'", "'*'", ",'scope':'Namespaced'"), ""), false},
        {&STATUS, HOOK(RULE("'*'", "'*'", "'*'", "'*'", ""), ""), false},
        {&STATUS, HOOK(RULE("'*'", "'*'", "'*'", "'deployments'", ""), ""), false},
        {&STATUS, HOOK(RULE("'*'", "'*'", "'*'", "'deployments/*'", ""), ""), true},
        {&STATUS, HOOK(RULE("'*'", "'*'", "'*'", "'*/status'", ""), ""), true},
        {&MAP, HOOK("'rules':[]", ""), false},
        {&EXEC, HOOK(RULE("'*'", "'*'", "'*'", "'pods/*'", ""), ""), true},
        {&EXEC, HOOK(RULE("'CONNECT'", "''", "'v1'", "'*/exec'", ""), ""), true},
        {&EXEC, HOOK(RULE("'CONNECT'", "'*'", "'*'", "'*/*'", ",'scope':'Namespaced'"), ""), true},
        {&EXEC, HOOK(RULE("'*'", "'*'", "'*'", "'pods'", ""), ""), false},
        {&EXEC, HOOK(RULE("'*'", "'*'", "'*'", "'*'", ""), ""), false},
        {&EXEC, HOOK(RULE("'CREATE','UPDATE'", "'*'", "'*'", "'*/*'", ""), ""), false},
        {&EXEC, HOOK(RULE("'*'", "'*'", "'*'", "'pods/exec'", ",'scope':'Cluster'"), ""), false},
        {&PROXY, HOOK(RULE("'*'", "'*'", "'*'", "'*/proxy'", ",'scope':'Cluster'"), ""), true},
        /* Options have no labels, not even none. */
        {&EXEC, HOOK(RULE("'*'", "'*'", "'*'", "'*/*'", ""), NO_LABEL), false},
        {&SCALE, HOOK(RULE("'*'", "'*'", "'*'", "'*/scale'", ""), NO_LABEL), true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        print_message("case %zu\n", i);
        assert_int_equal(applies(cases[i].request, cases[i].hook, NULL), cases[i].applies);
    }
}

#define ALL RULE("'*'", "'*'", "'*'", "'*'", "")

static void selectors(void **state)
{
    const struct request lost = {
        "", "v1", "configmaps", "n", NULL, "{'metadata':{}}", OBJECT, ADMISSION_UPDATE};

    (void)state;
    world_patch(W, "namespaces", "", "n", "{'metadata':{'labels':{'team':'a'}}}");
    assert_true(applies(&MAP, HOOK(ALL, ",'objectSelector':{'matchLabels':{'x':'y'}}"), NULL));
    assert_false(applies(&MAP, HOOK(ALL, ",'objectSelector':{'matchLabels':{'x':'z'}}"), NULL));
    /* One of the two versions of an object is enough: a label cannot be removed to escape. */
    assert_true(applies(&lost, HOOK(ALL, ",'objectSelector':{'matchLabels':{'x':'y'}}"), NULL));
    assert_true(
        applies(&MAP, HOOK(ALL, ",'namespaceSelector':{'matchLabels':{'team':'a'}}"), NULL));
    assert_false(
        applies(&MAP, HOOK(ALL, ",'namespaceSelector':{'matchLabels':{'team':'b'}}"), NULL));
    assert_true(
        applies(&NODE, HOOK(ALL, ",'namespaceSelector':{'matchLabels':{'team':'b'}}"), NULL));
}

/* A namespace that does not exist refuses what the rules match, and nothing else. */
static void a_namespace_that_is_gone(void **state)
{
    static const struct {
        const char *resources;
        int matches;
    } cases[] = {{"configmaps", -1}, {"secrets", 0}};
    struct request q = MAP;

    (void)state;
    q.ns = "gone";
    for (size_t i = 0; i < COUNT(cases); i++) {
        char hook[512];
        struct err err;

        snprintf(hook, sizeof(hook),
                 "{'namespaceSelector':{'matchLabels':{'team':'a'}},'rules':[{'operations':['*'],"
                 "'apiGroups':['*'],'apiVersions':['*'],'resources':['%s']}]}",
                 cases[i].resources);
        assert_int_equal(judged(&q, hook, NULL, &err), cases[i].matches);
        assert_str(err.kind ? err.message : STR(""),
                   cases[i].matches ? "namespaces \"gone\" not found" : "");
    }
}

static void versions(void **state)
{
    static const struct request v2 = {
        "autoscaling", "v2", "horizontalpodautoscalers", "n", NULL, OBJECT, NULL, ADMISSION_CREATE};
    static const char of_v1[] =
        RULE("'*'", "'autoscaling'", "'v1'", "'horizontalpodautoscalers'", "");
    char exact[512], equivalent[512];
    const char *version;

    (void)state;
    snprintf(exact, sizeof(exact), "{%s,'matchPolicy':'Exact'}", of_v1);
    snprintf(equivalent, sizeof(equivalent), "{%s,'matchPolicy':'Equivalent'}", of_v1);
    assert_false(applies(&v2, exact, NULL));
    assert_true(applies(&v2, equivalent, &version));
    assert_string_equal(version, "autoscaling/v1");
}

#define ANY "{'openAPIV3Schema':{'type':'object'}}"

/* An earlier rule decides the version, whatever the order of the versions themselves. */
static void earlier_rules_come_first(void **state)
{
    static const struct request v3 = {"x.dev", "v3",   "things", "n",
                                      NULL,    OBJECT, NULL,     ADMISSION_CREATE};
    static const char *const orders[][2] = {{"v1", "v2"}, {"v2", "v1"}};
    const char *version;

    (void)state;
    world_create(W, "customresourcedefinitions.apiextensions.k8s.io", "",
                 "{'metadata':{'name':'things.x.dev'},'spec':{'group':'x.dev','scope':'Namespaced',"
                 "'names':{'plural':'things','kind':'Thing'},'versions':["
                 "{'name':'v1','served':true,'storage':false,'schema':" ANY "},"
                 "{'name':'v2','served':true,'storage':false,'schema':" ANY "},"
                 "{'name':'v3','served':true,'storage':true,'schema':" ANY "}]}}");
    world_settle(W);
    for (size_t i = 0; i < COUNT(orders); i++) {
        char hook[512];

        snprintf(hook, sizeof(hook),
                 "{'matchPolicy':'Equivalent','rules':[{'operations':['*'],'apiGroups':['x.dev'],"
                 "'apiVersions':['%s'],'resources':['things']},{'operations':['*'],"
                 "'apiGroups':['x.dev'],'apiVersions':['%s'],'resources':['things']}]}",
                 orders[i][0], orders[i][1]);
        assert_true(applies(&v3, hook, &version));
        assert_string_equal(version + strlen("x.dev/"), orders[i][0]);
    }
}

/* Rules match what only a conversion webhook makes like any other version. */
static void versions_that_a_webhook_converts(void **state)
{
    static const struct request v1 = {"x.dev", "v1",   "pieces", "n",
                                      NULL,    OBJECT, NULL,     ADMISSION_CREATE};
    static const char hook[] =
        "{'matchPolicy':'%s','rules':[{'operations':['*'],'apiGroups':['x.dev'],'apiVersions':["
        "'%s'],'resources':['pieces']}]}";
    static const struct {
        const char *policy, *version;
        int matches;
    } cases[] = {{"Equivalent", "v1", 1}, {"Equivalent", "v2", 1}, {"Exact", "v2", 0}};

    (void)state;
    world_create(W, "customresourcedefinitions.apiextensions.k8s.io", "",
                 "{'metadata':{'name':'pieces.x.dev'},'spec':{'group':'x.dev','scope':'Namespaced',"
                 "'names':{'plural':'pieces','kind':'Piece'},'conversion':{'strategy':'Webhook',"
                 "'webhook':{'conversionReviewVersions':['v1'],'clientConfig':{'service':{"
                 "'namespace':'n','name':'s'}}}},'versions':["
                 "{'name':'v1','served':true,'storage':false,'schema':" ANY "},"
                 "{'name':'v2','served':true,'storage':true,'schema':" ANY "}]}}");
    world_settle(W);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        struct err err;

        snprintf(text, sizeof(text), hook, cases[i].policy, cases[i].version);
        assert_int_equal(judged(&v1, text, NULL, &err), cases[i].matches);
    }
}

static void admission_itself_is_exempt(void **state)
{
    static const struct request configuration = {"admissionregistration.k8s.io",
                                                 "v1",
                                                 "validatingwebhookconfigurations",
                                                 "",
                                                 NULL,
                                                 OBJECT,
                                                 NULL,
                                                 ADMISSION_CREATE};

    (void)state;
    assert_false(applies(&configuration, HOOK(ALL, ""), NULL));
}

/* ---- what is kept of configurations ---- */

#define HOOKS "validatingwebhookconfigurations.admissionregistration.k8s.io"

static void configure(const char *name, const char *policy, const char *conditions)
{
    world_create(
        W, HOOKS, "",
        arena_printf(world_arena(W),
                     "{'metadata':{'name':'%s'},'webhooks':[{'name':'a.b.c','sideEffects':'None',"
                     "'failurePolicy':'%s','admissionReviewVersions':['v1'],'clientConfig':{"
                     "'service':{'name':'s','namespace':'n'}},'matchConditions':%s}]}",
                     name, policy, conditions)
            .p);
}

#define ONE(expression) "[{'name':'a','expression':'" expression "'}]"

static struct compiled_list LIST;
static struct compiled_budget BUDGET;

static void open_list(void)
{
    BUDGET = COMPILED_BUDGET;
    compiled_list_init(&LIST, world_api(W), &WEBHOOK_CONFIGURATIONS[WEBHOOKS_VALIDATING], &BUDGET);
}

static void close_list(void)
{
    compiled_list_fini(&LIST);
    assert_int_equal(BUDGET.used, 0);
}

/* The one at a place, as of now. */
static const struct webhook_configuration *kept(size_t i)
{
    compiled_refresh(world_api(W), &LIST);
    assert_true(i < LIST.n);
    return (const struct webhook_configuration *)LIST.items[i];
}

static struct str compiled_source(const struct webhook_configuration *c)
{
    assert_non_null(c->head.arena);
    assert_int_equal(c->n, 1);
    assert_non_null(c->parts[0].expressions.conditions.items[0].program);
    return c->parts[0].expressions.conditions.items[0].source;
}

/* A write in a pause keeps what it began with; the next one sees the change. */
static void configurations_are_compiled_once(void **state)
{
    struct compiled *held;
    size_t used;

    (void)state;
    open_list();
    configure("c", "Fail", ONE("true"));
    assert_str(compiled_source(kept(0)), "true");
    held = compiled_ref(LIST.items[0]);
    used = BUDGET.used;
    assert_true(used > 0);
    configure("d", "Fail", ONE("1 == 1"));
    assert_ptr_equal(&kept(0)->head, held);
    assert_str(compiled_source(kept(1)), "1 == 1");
    world_patch(W, HOOKS, "", "c", "{'webhooks':[]}");
    assert_ptr_not_equal(&kept(0)->head, held);
    assert_int_equal(kept(0)->n, 0);
    world_delete(W, HOOKS, "", "c", NULL);
    assert_str(compiled_source(kept(0)), "1 == 1");
    assert_int_equal(LIST.n, 1);
    world_delete(W, HOOKS, "", "d", NULL);
    compiled_refresh(world_api(W), &LIST);
    assert_int_equal(LIST.n, 0);
    assert_str(compiled_source((struct webhook_configuration *)held), "true");
    assert_int_equal(BUDGET.used, used);
    compiled_unref(held);
    close_list();
}

static bool is_noticed(void)
{
    struct buf b = BUF_INIT(0);
    bool ret;

    notices_reasons(world_api(W), &b);
    ret = str_contains(buf_str(&b), STR("AdmissionTooLarge"));
    buf_fini(&b);
    return ret;
}

/* One beyond the budget is left out, also while a previous revision uses it up, and read when there
 * is room for it. */
static void configurations_have_a_budget(void **state)
{
    struct compiled *held;

    (void)state;
    open_list();
    configure("c", "Fail", ONE("true"));
    kept(0);
    held = compiled_ref(LIST.items[0]);
    BUDGET.most = held->size * 3 / 2;
    configure("d", "Ignore", ONE("true"));
    configure("e", "Fail", ONE("true"));
    assert_null(kept(1)->head.arena);
    assert_true(kept(1)->ignores);
    assert_null(kept(2)->head.arena);
    assert_false(kept(2)->ignores);
    assert_true(is_noticed());
    world_delete(W, HOOKS, "", "c", NULL);
    assert_null(kept(0)->head.arena);
    assert_true(BUDGET.used <= BUDGET.most);
    compiled_unref(held);
    assert_str(compiled_source(kept(0)), "true");
    assert_null(kept(1)->head.arena);
    world_delete(W, HOOKS, "", "d", NULL);
    assert_str(compiled_source(kept(0)), "true");
    assert_false(is_noticed());
    close_list();
}

/* Those behind the last place are one that refuses. */
static void configurations_have_a_number(void **state)
{
    (void)state;
    open_list();
    BUDGET.most_objects = 2;
    configure("a", "Ignore", ONE("true"));
    configure("b", "Ignore", ONE("true"));
    assert_str(compiled_source(kept(1)), "true");
    configure("c", "Ignore", ONE("true"));
    configure("d", "Ignore", ONE("true"));
    assert_null(kept(2)->head.arena);
    assert_false(kept(2)->ignores);
    assert_int_equal(LIST.n, 3);
    world_delete(W, HOOKS, "", "a", NULL);
    world_delete(W, HOOKS, "", "d", NULL);
    assert_str(compiled_source(kept(1)), "true");
    assert_int_equal(LIST.n, 2);
    close_list();
}

/* What controllers create passes a webhook whose condition is false: none is reached here. */
static void a_condition_spares_controllers(void **state)
{
    static const char set[] =
        "{'metadata':{'name':'%s'},'spec':{'replicas':1,'selector':{'matchLabels':{'a':'%s'}},"
        "'template':{'metadata':{'labels':{'a':'%s'}},'spec':{'containers':[{'name':'c','image':"
        "'i'}]}}}}";
    struct arena *a = world_arena(W);

    (void)state;
    world_create(
        W, "mutatingwebhookconfigurations.admissionregistration.k8s.io", "",
        "{'metadata':{'name':'m'},'webhooks':[{'name':'a.b.c','sideEffects':'None',"
        "'admissionReviewVersions':['v1'],'clientConfig':{'service':{'name':'s',"
        "'namespace':'n'}}," RULE(
            "'CREATE'", "''", "'v1'", "'pods'",
            "") ","
                "'matchConditions':[{'name':'a','expression':'request.userInfo.username != "
                "\\'system:serviceaccount:kube-system:replicaset-controller\\' || "
                "object.metadata.labels.a != \\'free\\''}]}]}");
    world_create(W, "replicasets.apps", "n", arena_printf(a, set, "free", "free", "free").p);
    world_create(W, "replicasets.apps", "n", arena_printf(a, set, "held", "held", "held").p);
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", "a", "free"), 1);
    assert_int_equal(world_count(W, "pods", "n", "a", "held"), 0);
}

/* Without a host no webhook can be reached. The test's own writes are in-process, of no client, and
 * pass; what a controller creates fails, and is tried again. */
static void controllers_wait_for_a_webhook(void **state)
{
    (void)state;
    world_create(W, "mutatingwebhookconfigurations.admissionregistration.k8s.io", "",
                 "{'metadata':{'name':'m'},'webhooks':[{'name':'a.b.c','sideEffects':'None',"
                 "'admissionReviewVersions':['v1'],'clientConfig':{'service':{'name':'s',"
                 "'namespace':'n'}}," RULE("'CREATE'", "''", "'v1'", "'pods'", "") "}]}");
    world_create(W, "replicasets.apps", "n",
                 "{'metadata':{'name':'r'},'spec':{'replicas':1,'selector':{'matchLabels':{'a':'b'}"
                 "},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
                 "'image':'i'}]}}}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
    assert_true(world_events(W, "n", "ReplicaSet", "FailedCreate") > 0);
    world_create(W, "configmaps", "n", "{'metadata':{'name':'c'}}");
    world_delete(W, "mutatingwebhookconfigurations.admissionregistration.k8s.io", "", "m", NULL);
    world_pass(W, 600);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(rules),
        WORLD_TEST(selectors),
        WORLD_TEST(a_namespace_that_is_gone),
        WORLD_TEST(versions),
        WORLD_TEST(earlier_rules_come_first),
        WORLD_TEST(versions_that_a_webhook_converts),
        WORLD_TEST(admission_itself_is_exempt),
        WORLD_TEST(configurations_are_compiled_once),
        WORLD_TEST(configurations_have_a_budget),
        WORLD_TEST(configurations_have_a_number),
        WORLD_TEST(a_condition_spares_controllers),
        WORLD_TEST(controllers_wait_for_a_webhook),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
