/* SPDX-License-Identifier: Apache-2.0 */
/* Removals: finalizers, grace, propagation, preconditions, collections, and the subresources that
 * end in one. Messages and shapes are those of kube-apiserver 1.36.3. */
#include "api_harness.h"

#include "test.h"

#define CM         "/api/v1/namespaces/default/configmaps"
#define PODS       "/api/v1/namespaces/default/pods"
#define JOBS       "/apis/batch/v1/namespaces/default/jobs"
#define NAMESPACES "/api/v1/namespaces"
#define BUDGETS    "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

static int setup(void **state)
{
    *state = harness_new();
    return 0;
}

static int teardown(void **state)
{
    harness_free(*state);
    return 0;
}

static struct str text_at(struct answer a, const char *path)
{
    return json_str_at(a.json, path);
}

static bool has_item(struct answer a, const char *path, const char *text)
{
    json_each(item, json_path(a.json, path)) if (str_eqc(json_str(item), text)) return true;
    return false;
}

static void test_delete_at_once(void **state)
{
    struct harness *h = *state;
    struct answer made = post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");
    struct answer a = delete_(h, CM "/a", NULL);
    struct str want = arena_printf(
        harness_arena(h),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
        "\"details\":{\"name\":\"a\",\"kind\":\"configmaps\",\"uid\":\"%.*s\"}}\n",
        STR_F(text_at(made, "metadata.uid")));

    assert_int_equal(a.status, 200);
    assert_str(a.body, want.p);
    assert_int_equal(get(h, CM "/a").status, 404);
    a = delete_(h, CM "/a", NULL);
    assert_int_equal(a.status, 404);
    assert_str(text_at(a, "message"), "configmaps \"a\" not found");
}

static void test_preconditions(void **state)
{
    struct harness *h = *state;
    struct answer a;

    post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");
    a = delete_(h, CM "/a", "{\"preconditions\":{\"uid\":\"x\"}}");
    assert_int_equal(a.status, 409);
    assert_true(
        str_has_prefix(text_at(a, "message"),
                       STR("Operation cannot be fulfilled on ConfigMap \"a\": the UID in the "
                           "precondition (x) does not match the UID in record (")));
    a = delete_(h, CM "/a", "{\"preconditions\":{\"resourceVersion\":\"1\"}}");
    assert_int_equal(a.status, 409);
    a = delete_(h, CM "/a?dryRun=All", NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(get(h, CM "/a").status, 200);
    a = delete_(h, CM "/a", "{\"propagationPolicy\":\"Sometimes\"}");
    assert_int_equal(a.status, 422);
    assert_str(
        text_at(a, "message"),
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: "
        "\"Sometimes\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
}

static void test_finalizers_hold(void **state)
{
    struct harness *h = *state;
    struct answer a;

    post(h, CM, "{\"metadata\":{\"name\":\"f\",\"finalizers\":[\"example.com/a\"]}}");
    a = delete_(h, CM "/f", NULL);
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "kind"), "ConfigMap");
    assert_str(text_at(a, "metadata.deletionTimestamp"), "2027-01-15T08:00:00Z");
    assert_int_equal(json_i64_at(a.json, "metadata.deletionGracePeriodSeconds", -1), 0);

    /* A second one changes nothing. */
    assert_true(str_eq(delete_(h, CM "/f", NULL).body, a.body));
    a = merge(h, CM "/f", "{\"metadata\":{\"finalizers\":[\"example.com/a\",\"example.com/b\"]}}");
    assert_int_equal(a.status, 422);
    assert_str(
        text_at(a, "message"),
        "ConfigMap \"f\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be "
        "added if the object is being deleted, found new finalizers "
        "[]string{\"example.com/b\"}");
    assert_int_equal(post(h, CM, "{\"metadata\":{\"name\":\"f\"}}").status, 409);
    a = merge(h, CM "/f", "{\"metadata\":{\"finalizers\":null}}");
    assert_int_equal(a.status, 200);
    assert_int_equal(get(h, CM "/f").status, 404);
}

static void test_propagation(void **state)
{
    struct harness *h = *state;
    struct answer a;

    post(h, CM, "{\"metadata\":{\"name\":\"f\"}}");
    a = delete_(h, CM "/f", "{\"propagationPolicy\":\"Foreground\"}");
    assert_true(has_item(a, "metadata.finalizers", "foregroundDeletion"));
    a = delete_(h, CM "/f?propagationPolicy=Orphan", NULL);
    assert_true(has_item(a, "metadata.finalizers", "orphan"));
    assert_false(has_item(a, "metadata.finalizers", "foregroundDeletion"));
    a = delete_(h, CM "/f", "{\"propagationPolicy\":\"Background\"}");
    assert_str(text_at(a, "status"), "Success");

    post(h, JOBS, "{\"metadata\":{\"name\":\"j\"}}");
    a = delete_(h, JOBS "/j", NULL);
    assert_true(has_item(a, "metadata.finalizers", "orphan"));
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 2);
}

/* ---- pods ---- */

static void make_running(struct harness *h, const char *name)
{
    struct arena *a = harness_arena(h);
    struct answer made;

    post(h, PODS,
         arena_printf(a,
                      "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"x\"}},\"spec\":"
                      "{\"terminationGracePeriodSeconds\":30,\"containers\":[{\"name\":\"c\","
                      "\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
                      name)
             .p);
    made = post(h, arena_printf(a, PODS "/%s/binding", name).p,
                arena_printf(a,
                             "{\"metadata\":{\"name\":\"%s\"},\"target\":{\"kind\":\"Node\","
                             "\"name\":\"n1\"}}",
                             name)
                    .p);
    assert_int_equal(made.status, 201);
    made = merge(h, arena_printf(a, PODS "/%s/status", name).p,
                 "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                 "\"status\":\"True\"}]}}");
    assert_int_equal(made.status, 200);
}

static void test_graceful_pod(void **state)
{
    struct harness *h = *state;
    struct answer a;

    make_running(h, "p");
    a = delete_(h, PODS "/p", NULL);
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "metadata.deletionTimestamp"), "2027-01-15T08:00:30Z");
    assert_int_equal(json_i64_at(a.json, "metadata.deletionGracePeriodSeconds", 0), 30);
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 2);
    a = delete_(h, PODS "/p", "{\"gracePeriodSeconds\":60}");
    assert_str(text_at(a, "metadata.deletionTimestamp"), "2027-01-15T08:00:30Z");
    a = delete_(h, PODS "/p", "{\"gracePeriodSeconds\":10}");
    assert_str(text_at(a, "metadata.deletionTimestamp"), "2027-01-15T08:00:10Z");
    harness_set_time(h, 1800000020);
    a = delete_(h, PODS "/p?gracePeriodSeconds=5", NULL);
    assert_str(text_at(a, "metadata.deletionTimestamp"), "2027-01-15T08:00:20Z");
    assert_int_equal(json_i64_at(a.json, "metadata.deletionGracePeriodSeconds", 0), 1);
    a = delete_(h, PODS "/p", "{\"gracePeriodSeconds\":0}");
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "kind"), "Pod");
    assert_int_equal(get(h, PODS "/p").status, 404);
}

static void no_wake(void *ctx)
{
    (void)ctx;
}

static void assert_event(struct store_watch *w, enum store_event_type type, bool marked)
{
    bool expired = false;
    const struct store_event *e = store_watch_next(w, &expired);

    assert_non_null(e);
    assert_int_equal(e->type, type);
    assert_int_equal(str_contains(e->object->bytes, STR("\"deletionGracePeriodSeconds\":0")),
                     marked);
}

/* Watchers see that its time is up, and that it is gone. */
static void test_unscheduled_pod_leaves_at_once(void **state)
{
    struct harness *h = *state;
    const struct resource *pods = harness_resource(h, "", "pods");
    struct store_watch *w;
    struct err err;
    bool expired = false;

    err_init(&err, harness_arena(h));
    assert_int_equal(store_watch_open(harness_store(h), pods->storage,
                                      store_revision(harness_store(h)), no_wake, NULL, &w, &err),
                     0);
    post(h, PODS,
         "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"terminationGracePeriodSeconds\":30,"
         "\"containers\":[{\"name\":\"c\"}]}}");
    assert_int_equal(delete_(h, PODS "/p?dryRun=All", NULL).status, 200);
    assert_int_equal(delete_(h, PODS "/p", NULL).status, 200);
    assert_int_equal(get(h, PODS "/p").status, 404);
    assert_event(w, STORE_ADDED, false);
    assert_event(w, STORE_MODIFIED, true);
    assert_event(w, STORE_DELETED, true);
    assert_null(store_watch_next(w, &expired));
    store_watch_close(w);
}

static void test_binding(void **state)
{
    struct harness *h = *state;
    struct answer a;

    make_running(h, "p");
    a = get(h, PODS "/p");
    assert_str(text_at(a, "spec.nodeName"), "n1");
    assert_null(json_path(a.json, "metadata.labels.new"));
    assert_int_equal(post(h, PODS "/p/binding", "{\"target\":{\"name\":\"n2\"}}").status, 400);
    a = post(h, PODS "/p/binding", "{\"metadata\":{\"name\":\"p\"},\"target\":{\"name\":\"n2\"}}");
    assert_int_equal(a.status, 409);
    assert_str(text_at(a, "message"),
               "Operation cannot be fulfilled on pods/binding \"p\": pod p is "
               "already assigned to node \"n1\"");
    a = post(h, PODS "/q/binding", "{\"metadata\":{\"name\":\"q\"},\"target\":{\"name\":\"n\"}}");
    assert_int_equal(a.status, 404);
}

static void test_ephemeral_containers(void **state)
{
    struct harness *h = *state;
    struct answer a;

    make_running(h, "p");
    a = ask(h, "PATCH", PODS "/p/ephemeralcontainers", "application/strategic-merge-patch+json",
            STR("{\"metadata\":{\"labels\":{\"new\":\"x\"}},\"spec\":{\"nodeName\":\"zz\","
                "\"ephemeralContainers\":[{\"name\":\"dbg\","
                "\"image\":\"busybox\",\"targetContainerName\":\"c\"}]}}"),
            NULL);
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "spec.nodeName"), "n1");
    assert_int_equal(json_count(json_path(a.json, "spec.ephemeralContainers")), 1);
    a = merge(h, PODS "/p/ephemeralcontainers", "{\"spec\":{\"ephemeralContainers\":null}}");
    assert_int_equal(a.status, 422);
    a = get(h, PODS "/p");
    assert_int_equal(json_count(json_path(a.json, "spec.ephemeralContainers")), 1);
}

static struct answer resize(struct harness *h, const char *patch)
{
    return ask(h, "PATCH", PODS "/p/resize", "application/strategic-merge-patch+json", str_c(patch),
               NULL);
}

/* What is kept of a resize and what is refused is the kind's; fields are owned as they were sent
 * for. */
static void test_resize(void **state)
{
    struct harness *h = *state;
    struct answer a;

    make_running(h, "p");
    a = resize(h, "{\"metadata\":{\"labels\":{\"new\":\"x\"}},\"spec\":{\"containers\":[{\"name\":"
                  "\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]}}");
    assert_int_equal(a.status, 200);
    assert_null(json_path(a.json, "metadata.labels.new"));
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 2);
    const cJSON *c = json_at(json_path(a.json, "spec.containers"), 0);
    assert_str(json_str_at(c, "resources.requests.cpu"), "2");
    const cJSON *fields = NULL;
    json_each(entry, json_path(a.json, "metadata.managedFields"))
    {
        if (str_eqc(json_str(json_get(entry, "subresource")), "resize"))
            fields = json_get(entry, "fieldsV1");
    }
    assert_non_null(json_path(fields, "f:metadata.f:labels.f:new"));
    a = resize(h, "{\"spec\":{\"containers\":[{\"name\":\"d\",\"image\":\"i\"}]}}");
    assert_int_equal(a.status, 422);
    a = get(h, PODS "/p");
    assert_int_equal(json_count(json_path(a.json, "spec.containers")), 1);
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 2);
}

/* ---- eviction ---- */

static void make_budget(struct harness *h, int allowed)
{
    struct answer a = post(h, BUDGETS,
                           "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"minAvailable\":1,"
                           "\"selector\":{\"matchLabels\":{\"app\":\"x\"}}}}");

    assert_int_equal(a.status, 201);
    a = merge(h, BUDGETS "/b/status",
              arena_printf(harness_arena(h),
                           "{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":%d,"
                           "\"currentHealthy\":2,\"desiredHealthy\":1,\"expectedPods\":2}}",
                           allowed)
                  .p);
    assert_int_equal(a.status, 200);
}

static void test_eviction_charges_budget(void **state)
{
    struct harness *h = *state;
    struct answer a;

    make_running(h, "p");
    make_running(h, "q");
    make_budget(h, 1);
    a = post(h, PODS "/p/eviction", "{\"metadata\":{\"name\":\"p\"}}");
    assert_int_equal(a.status, 201);
    assert_str(text_at(a, "status"), "Success");
    a = get(h, PODS "/p");
    assert_true(text_at(a, "metadata.deletionTimestamp").n > 0);
    const cJSON *condition = json_at(json_path(a.json, "status.conditions"), 1);
    assert_str(json_str(json_get(condition, "type")), "DisruptionTarget");
    assert_str(json_str(json_get(condition, "reason")), "EvictionByEvictionAPI");
    a = get(h, BUDGETS "/b");
    assert_int_equal(json_i64_at(a.json, "status.disruptionsAllowed", -1), 0);
    assert_non_null(json_path(a.json, "status.disruptedPods.p"));

    a = post(h, PODS "/q/eviction", "{\"metadata\":{\"name\":\"q\"}}");
    assert_int_equal(a.status, 429);
    assert_str(text_at(a, "message"),
               "Cannot evict pod as it would violate the pod's disruption budget.");
    const cJSON *cause = json_at(json_path(a.json, "details.causes"), 0);
    assert_str(json_str(json_get(cause, "reason")), "DisruptionBudget");
    assert_str(json_str(json_get(cause, "message")),
               "The disruption budget b needs 1 healthy pods and has 2 currently");
    a = post(h, PODS "/none/eviction", "{\"metadata\":{\"name\":\"none\"}}");
    assert_int_equal(a.status, 404);
    a = post(h, PODS "/q/eviction", "{}");
    assert_int_equal(a.status, 400);
    assert_str(text_at(a, "message"), "name in URL does not match name in Eviction object");
}

static void test_eviction_dry_run(void **state)
{
    struct harness *h = *state;

    make_running(h, "p");
    make_budget(h, 1);
    assert_int_equal(post(h, PODS "/p/eviction",
                          "{\"metadata\":{\"name\":\"p\"},"
                          "\"deleteOptions\":{\"dryRun\":[\"All\"]}}")
                         .status,
                     201);
    assert_int_equal(text_at(get(h, PODS "/p"), "metadata.deletionTimestamp").n, 0);
    assert_int_equal(json_i64_at(get(h, BUDGETS "/b").json, "status.disruptionsAllowed", -1), 1);
}

/* ---- namespaces ---- */

static void test_namespace(void **state)
{
    struct harness *h = *state;
    struct answer a;

    assert_int_equal(post(h, NAMESPACES, "{\"metadata\":{\"name\":\"team\"}}").status, 201);
    a = delete_(h, NAMESPACES "/team", NULL);
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "kind"), "Namespace");
    assert_str(text_at(a, "status.phase"), "Terminating");
    assert_int_equal(delete_(h, NAMESPACES "/team", NULL).status, 200);
    a = put(h, NAMESPACES "/team/finalize",
            "{\"metadata\":{\"name\":\"team\"},\"spec\":{\"finalizers\":[]}}");
    assert_int_equal(a.status, 200);
    assert_int_equal(get(h, NAMESPACES "/team").status, 404);
}

/* ---- collections ---- */

static void test_collection(void **state)
{
    struct harness *h = *state;
    struct answer a;

    for (int i = 0; i < 600; i++) {
        struct str body =
            arena_printf(harness_arena(h),
                         "{\"metadata\":{\"name\":\"c%d\",\"labels\":{\"m\":\"%d\"}}}", i, i % 2);
        post(h, CM, body.p);
    }
    post(h, CM,
         "{\"metadata\":{\"name\":\"kept\",\"finalizers\":[\"a.b/c\"],\"labels\":{\"m\":\"1\"}}}");
    a = delete_(h, CM "?labelSelector=m%3D1", NULL);
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "kind"), "ConfigMapList");
    assert_int_equal(json_count(json_get(a.json, "items")), 301);
    a = get(h, CM);
    assert_int_equal(json_count(json_get(a.json, "items")), 301);
    a = delete_(h, CM "?dryRun=All", NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(json_count(json_get(get(h, CM).json, "items")), 301);
    a = delete_(h, CM "?limit=10", NULL);
    assert_int_equal(json_count(json_get(a.json, "items")), 10);
    assert_int_equal(delete_(h, "/api/v1/configmaps", NULL).status, 405);
    assert_int_equal(delete_(h, CM "?fieldSelector=x%3Dy", NULL).status, 400);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_delete_at_once),   TEST(test_preconditions),
        TEST(test_finalizers_hold),  TEST(test_propagation),
        TEST(test_graceful_pod),     TEST(test_unscheduled_pod_leaves_at_once),
        TEST(test_binding),          TEST(test_ephemeral_containers),
        TEST(test_resize),           TEST(test_eviction_charges_budget),
        TEST(test_eviction_dry_run), TEST(test_namespace),
        TEST(test_collection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
