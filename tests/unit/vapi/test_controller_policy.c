/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets and sums of ClusterRoles: what their controllers say, and when. */
#include "controller_world.h"

#define ROLES   "clusterroles.rbac.authorization.k8s.io"
#define BUDGETS "poddisruptionbudgets.policy"
#define DEPLOYMENT                                                                                 \
    "{'metadata':{'name':'d'},'spec':{'replicas':4,'selector':{'matchLabels':{'app':'a'}},"        \
    "'template':{'metadata':{'labels':{'app':'a'}},'spec':{'containers':[{'name':'c',"             \
    "'image':'i'}]}}}}"
#define BUDGET(rule)                                                                               \
    "{'metadata':{'name':'b'},'spec':{" rule ",'selector':{'matchLabels':{'app':'a'}}}}"

/* ---- budgets ---- */

static const cJSON *budget(void)
{
    return world_get(W, BUDGETS, "n", "b");
}

static int64_t status_of(const char *field)
{
    return world_i64(json_get(budget(), "status"), field);
}

static void budget_counts_from_the_owners_scale(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT);
    world_create(W, BUDGETS, "n", BUDGET("'maxUnavailable':'25%'"));
    world_settle(W);
    assert_int_equal(status_of("expectedPods"), 4);
    assert_int_equal(status_of("desiredHealthy"), 3);
    assert_int_equal(status_of("currentHealthy"), 4);
    assert_int_equal(status_of("disruptionsAllowed"), 1);
    assert_int_equal(status_of("observedGeneration"), 1);
    assert_string_equal(world_condition(W, budget(), "DisruptionAllowed"), "True");
    assert_string_equal(world_reason(W, budget(), "DisruptionAllowed"), "SufficientPods");
    assert_null(json_path(budget(), "status.disruptedPods"));
}

static void budget_closes_when_pods_are_sick(void **state)
{
    (void)state;
    world_create(W, "deployments.apps", "n", DEPLOYMENT);
    world_create(W, BUDGETS, "n", BUDGET("'minAvailable':4"));
    world_settle(W);
    assert_int_equal(status_of("desiredHealthy"), 4);
    assert_int_equal(status_of("disruptionsAllowed"), 0);
    assert_string_equal(world_reason(W, budget(), "DisruptionAllowed"), "InsufficientPods");
    world_patch(W, BUDGETS, "n", "b", "{'spec':{'minAvailable':2}}");
    world_settle(W);
    assert_int_equal(status_of("disruptionsAllowed"), 2);
    world_fate(POD_RUNS);
    const cJSON *pod = json_first(world_list(W, "pods", "n"));
    world_delete(W, "pods", "n", json_str_at(pod, "metadata.name").p, NULL);
    world_settle(W);
    assert_int_equal(status_of("currentHealthy"), 0);
    assert_int_equal(status_of("disruptionsAllowed"), 0);
}

static void budget_fails_safe(void **state)
{
    (void)state;
    world_create(W, BUDGETS, "n", BUDGET("'maxUnavailable':1"));
    /* What owns the pod has no size. */
    world_create(W, "configmaps", "n", "{'metadata':{'name':'m'}}");
    struct str uid = json_str_at(world_get(W, "configmaps", "n", "m"), "metadata.uid");
    world_create(
        W, "pods", "n",
        arena_printf(world_arena(W),
                     "{'metadata':{'name':'p','labels':{'app':'a'},'ownerReferences':[{"
                     "'apiVersion':'v1','kind':'ConfigMap','name':'m','uid':'%.*s',"
                     "'controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}",
                     STR_F(uid))
            .p);
    world_pass(W, 1);
    assert_int_equal(status_of("disruptionsAllowed"), 0);
    assert_string_equal(world_reason(W, budget(), "DisruptionAllowed"), "SyncFailed");
    assert_true(world_events(W, "n", "PodDisruptionBudget", "CalculateExpectedPodCountFailed") > 0);
}

static void labels_change_sides(void **state)
{
    (void)state;
    world_create(W, BUDGETS, "n", BUDGET("'minAvailable':1"));
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'p','labels':{'app':'a'}},"
                 "'spec':{'containers':[{'name':'c','image':'i'}]}}");
    world_settle(W);
    assert_int_equal(status_of("currentHealthy"), 1);
    world_patch(W, "pods", "n", "p", "{'metadata':{'labels':{'app':'b'}}}");
    world_settle(W);
    assert_int_equal(status_of("currentHealthy"), 0);
    assert_int_equal(status_of("expectedPods"), 0);
}

/* ---- sums ---- */

#define SUM(key)                                                                                   \
    "{'metadata':{'name':'sum'},'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'" key  \
    "':'yes'}}]}}"
#define PART(name, label, verb)                                                                    \
    "{'metadata':{'name':'" name "','labels':{'" label "':'yes'}},'rules':[{'apiGroups':[''],"     \
    "'resources':['pods'],'verbs':['" verb "']}]}"

static size_t rules(void)
{
    return json_count(json_get(world_get(W, ROLES, "", "sum"), "rules"));
}

static void sum_follows_its_parts(void **state)
{
    (void)state;
    world_create(W, ROLES, "", PART("one", "add", "get"));
    world_create(W, ROLES, "", SUM("add"));
    world_settle(W);
    assert_int_equal(rules(), 1);
    world_create(W, ROLES, "", PART("two", "add", "list"));
    world_settle(W);
    assert_int_equal(rules(), 2);
    world_create(W, ROLES, "", PART("same", "add", "list"));
    world_settle(W);
    assert_int_equal(rules(), 2);
    world_patch(W, ROLES, "", "one", "{'metadata':{'labels':{'add':'no'}}}");
    world_settle(W);
    assert_int_equal(rules(), 1);
    world_delete(W, ROLES, "", "two", NULL);
    world_delete(W, ROLES, "", "same", NULL);
    world_settle(W);
    assert_int_equal(rules(), 0);
}

static void sum_takes_back_what_was_written_into_it(void **state)
{
    (void)state;
    world_create(W, ROLES, "", PART("one", "add", "get"));
    world_create(W, ROLES, "", SUM("add"));
    world_settle(W);
    world_patch(W, ROLES, "", "sum", "{'rules':[]}");
    world_settle(W);
    assert_int_equal(rules(), 1);
    world_patch(W, ROLES, "", "sum",
                "{'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'other':'yes'}}]}}");
    world_create(W, ROLES, "", PART("two", "other", "list"));
    world_create(W, ROLES, "", PART("three", "other", "watch"));
    world_settle(W);
    assert_int_equal(rules(), 2);
}

static void sums_of_sums_settle(void **state)
{
    (void)state;
    world_create(W, ROLES, "", PART("one", "add", "get"));
    world_create(W, ROLES, "", SUM("add"));
    world_create(W, ROLES, "",
                 "{'metadata':{'name':'top'},'aggregationRule':{'clusterRoleSelectors':"
                 "[{'matchLabels':{'top':'yes'}}]}}");
    world_patch(W, ROLES, "", "sum", "{'metadata':{'labels':{'top':'yes'}}}");
    world_settle(W);
    assert_int_equal(json_count(json_get(world_get(W, ROLES, "", "top"), "rules")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(budget_counts_from_the_owners_scale),
        WORLD_TEST(budget_closes_when_pods_are_sick),
        WORLD_TEST(budget_fails_safe),
        WORLD_TEST(labels_change_sides),
        WORLD_TEST(sum_follows_its_parts),
        WORLD_TEST(sum_takes_back_what_was_written_into_it),
        WORLD_TEST(sums_of_sums_settle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
