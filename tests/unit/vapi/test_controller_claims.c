/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims that are made of templates: one for each entry of a pod, named in its status, and
 * deleted with the pod or once it has finished. */
#include "controller_world.h"

#define CLAIMS    "resourceclaims.resource.k8s.io"
#define TEMPLATES "resourceclaimtemplates.resource.k8s.io"

static void template_(void)
{
    world_create(W, TEMPLATES, "n",
                 "{'metadata':{'name':'t'},'spec':{'metadata':{'labels':{'a':'b'},'annotations':"
                 "{'c':'d'}},'spec':{'devices':{'requests':[{'name':'r','exactly':"
                 "{'deviceClassName':'gpu'}}]}}}}");
}

static void pod(const char *name, const char *entries)
{
    world_create(W, "pods", "n",
                 arena_printf(world_arena(W),
                              "{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c',"
                              "'image':'i'}],'resourceClaims':[%s]}}",
                              name, entries)
                     .p);
}

#define ENTRY(name) "{'name':'" name "','resourceClaimTemplateName':'t'}"

static void one_for_each_entry(void **state)
{
    const cJSON *claim, *now, *owner;

    (void)state;
    template_();
    pod("p", ENTRY("x") "," ENTRY("y") ",{'name':'z','resourceClaimName':'other'}");
    world_settle(W);
    assert_int_equal(json_count(world_list(W, CLAIMS, "n")), 2);
    now = world_get(W, "pods", "n", "p");
    assert_int_equal(json_count(json_path(now, "status.resourceClaimStatuses")), 2);
    json_each(one, json_path(now, "status.resourceClaimStatuses"))
    {
        struct str entry = json_str_at(one, "name");

        claim = world_get(W, CLAIMS, "n", json_str_at(one, "resourceClaimName").p);
        owner = json_first(json_path(claim, "metadata.ownerReferences"));
        assert_true(str_has_prefix(json_str_at(claim, "metadata.name"),
                                   arena_printf(world_arena(W), "p-%.*s-", STR_F(entry))));
        assert_str(json_str_at(owner, "uid"), json_str_at(now, "metadata.uid").p);
        assert_true(json_true(json_get(owner, "controller")));
        assert_str(json_str(json_get(json_path(claim, "metadata.annotations"),
                                     "resource.kubernetes.io/pod-claim-name")),
                   entry.p);
        assert_str(json_str_at(claim, "metadata.labels.a"), "b");
        assert_str(json_str_at(claim, "metadata.annotations.c"), "d");
        assert_int_equal(json_count(json_path(claim, "spec.devices.requests")), 1);
    }
}

static void a_template_may_come_later(void **state)
{
    (void)state;
    pod("p", ENTRY("x"));
    world_settle(W);
    assert_int_equal(json_count(world_list(W, CLAIMS, "n")), 0);
    assert_true(world_events(W, "n", "Pod", "FailedResourceClaimCreation") > 0);
    template_();
    world_pass(W, 120);
    assert_int_equal(json_count(world_list(W, CLAIMS, "n")), 1);
    assert_int_equal(
        json_count(json_path(world_get(W, "pods", "n", "p"), "status.resourceClaimStatuses")), 1);
}

static void a_finished_pod_has_none(void **state)
{
    (void)state;
    template_();
    pod("p", ENTRY("x"));
    pod("q", ENTRY("x"));
    world_settle(W);
    assert_int_equal(json_count(world_list(W, CLAIMS, "n")), 2);
    world_patch_status(W, "pods", "n", "p", "{'status':{'phase':'Succeeded'}}");
    world_delete(W, "pods", "n", "q", NULL);
    world_pass(W, 60);
    assert_int_equal(json_count(world_list(W, CLAIMS, "n")), 0);
    assert_non_null(world_get(W, "pods", "n", "p"));
}

/* A lost claim is made again under another name. */
static void a_deleted_claim_is_made_again(void **state)
{
    (void)state;
    template_();
    pod("p", ENTRY("x"));
    world_settle(W);
    struct str first = json_str_at(json_first(world_list(W, CLAIMS, "n")), "metadata.name");

    world_delete(W, CLAIMS, "n", first.p, NULL);
    world_settle(W);
    const cJSON *now = json_first(world_list(W, CLAIMS, "n"));

    assert_non_null(now);
    assert_false(str_eq(json_str_at(now, "metadata.name"), first));
    assert_str(json_str_at(json_first(json_path(world_get(W, "pods", "n", "p"),
                                                "status.resourceClaimStatuses")),
                           "resourceClaimName"),
               json_str_at(now, "metadata.name").p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(one_for_each_entry),
        WORLD_TEST(a_template_may_come_later),
        WORLD_TEST(a_finished_pod_has_none),
        WORLD_TEST(a_deleted_claim_is_made_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
