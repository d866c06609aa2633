/* SPDX-License-Identifier: Apache-2.0
 *
 * Which webhooks apply to a request: rules, scope, selectors, other versions of the object.
 * Configurations of admission itself are never reviewed. */

#include "controller_world.h"

#include <sublet/webhook.h>

struct request {
    const char *group, *version, *plural, *ns, *sub, *object, *old;
    enum admission_operation operation;
};

/* Namespaces of these requests: `n` has the label team=a. */
static bool applies(const struct request *q, const char *hook, const char **ret_version)
{
    struct arena *a = world_arena(W);
    struct call *c = ARENA_NEW(a, struct call);
    const struct resource *as = NULL;
    struct webhook_review r = {.call = c, .operation = q->operation};
    bool matches;

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
    matches = webhook_matches(a, world_parse(W, hook), &r, &as);
    if (ret_version)
        *ret_version = matches ? arena_cstr(a, as->api_version) : "";
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
        WORLD_TEST(versions),
        WORLD_TEST(admission_itself_is_exempt),
        WORLD_TEST(controllers_wait_for_a_webhook),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
