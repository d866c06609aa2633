/* SPDX-License-Identifier: Apache-2.0 */
/* Create, update and patch over HTTP: what is stored, what is answered, what is refused and in
 * which words. The messages are those of kube-apiserver 1.36.3. */
#include "api_harness.h"

#include "test.h"

#define CM          "/api/v1/namespaces/default/configmaps"
#define BUDGETS     "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"

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

static void check_status(struct answer a, int code, const char *reason, const char *message)
{
    if (a.status != code)
        print_error("%.*s\n", STR_F(a.body));
    assert_int_equal(a.status, code);
    assert_str(text_at(a, "kind"), "Status");
    assert_str(text_at(a, "reason"), reason);
    assert_str(text_at(a, "message"), message);
    assert_int_equal(json_i64_at(a.json, "code", 0), code);
}

/* ---- create ---- */

static void test_create_fills_metadata(void **state)
{
    struct harness *h = *state;
    struct answer a = post(h, CM,
                           "{\"data\":{\"k\":\"v\"},\"metadata\":{\"labels\":{\"a\":\"b\"},"
                           "\"name\":\"one\",\"uid\":\"mine\",\"generation\":7}}");
    struct answer b;

    assert_int_equal(a.status, 201);
    assert_true(str_has_prefix(
        a.body, STR("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"one\","
                    "\"namespace\":\"default\",\"uid\":\"")));
    assert_str(text_at(a, "metadata.creationTimestamp"), "2027-01-15T08:00:00Z");
    assert_int_equal(text_at(a, "metadata.uid").n, 36);
    assert_true(text_at(a, "metadata.resourceVersion").n > 0);
    assert_true(has_header(&a, "audit-id: "));
    assert_true(has_header(&a, "content-type: application/json\r\n"));

    b = get(h, CM "/one");
    assert_int_equal(b.status, 200);
    assert_true(str_eq(a.body, b.body));
}

static void test_create_twice(void **state)
{
    struct harness *h = *state;

    assert_int_equal(post(h, CM, "{\"metadata\":{\"name\":\"one\"}}").status, 201);
    check_status(post(h, CM, "{\"metadata\":{\"name\":\"one\"}}"), 409, "AlreadyExists",
                 "configmaps \"one\" already exists");
}

static void test_create_refusals(void **state)
{
    struct harness *h = *state;
    struct answer a;

    check_status(
        post(h, CM, "{}"), 422, "Invalid",
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is "
        "required");
    check_status(post(h, CM, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}"), 400,
                 "BadRequest",
                 "the namespace of the provided object does not match the namespace sent on the "
                 "request");
    check_status(post(h, CM, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}"), 400, "BadRequest",
                 "Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to "
                 "(core.ConfigMap): unknown conversion");
    check_status(post(h, CM, "{\"kind\":\"Foo\",\"apiVersion\":\"apps/v1\"}"), 400, "BadRequest",
                 "Foo in version \"v1\" cannot be handled as a ConfigMap: no kind \"Foo\" is "
                 "registered for version \"apps/v1\" in scheme \"pkg/runtime/scheme.go:111\"");
    check_status(post(h, CM, ""), 400, "BadRequest",
                 "the object provided is unrecognized (must be of type ConfigMap): couldn't get "
                 "version/kind; json parse error: unexpected end of JSON input (<empty>)");
    a = ask(h, "POST", CM, "text/plain", STR("{}"), NULL);
    check_status(a, 415, "UnsupportedMediaType",
                 "the body of the request was in an unknown format - accepted media types include: "
                 "application/json, application/yaml, application/vnd.kubernetes.protobuf");
    assert_int_equal(post(h, "/api/v1/configmaps", "{\"metadata\":{\"name\":\"a\"}}").status, 405);
    assert_int_equal(post(h, CM "/a", "{\"metadata\":{\"name\":\"a\"}}").status, 405);
}

static void test_create_generates_name(void **state)
{
    struct harness *h = *state;
    struct answer a = post(h, CM, "{\"metadata\":{\"generateName\":\"job-\"}}");
    struct str name = text_at(a, "metadata.name");

    assert_int_equal(a.status, 201);
    assert_int_equal(name.n, 9);
    assert_true(str_has_prefix(name, STR("job-")));
}

/* With chance fixed every try makes the same name: after eight the server gives up. */
static void test_generated_name_clash(void **state)
{
    struct harness *h = *state;
    struct answer a;

    harness_set_random(h, STR("\x07"));
    assert_int_equal(post(h, CM, "{\"metadata\":{\"generateName\":\"x-\"}}").status, 201);
    a = post(h, CM, "{\"metadata\":{\"generateName\":\"x-\"}}");
    assert_int_equal(a.status, 409);
    assert_str(text_at(a, "reason"), "AlreadyExists");
    assert_true(str_has_suffix(text_at(a, "message"),
                               STR("already exists, the server was not able to generate a unique "
                                   "name for the object")));
    assert_int_equal(json_i64_at(a.json, "details.retryAfterSeconds", 0), 1);
}

static void test_create_yaml(void **state)
{
    struct harness *h = *state;
    static const char *const accept[] = {"accept: application/yaml", NULL};
    struct answer a = ask(h, "POST", CM, "application/yaml",
                          STR("metadata:\n  name: yam\ndata:\n  a: \"1\"\n"), accept);

    assert_int_equal(a.status, 201);
    assert_true(has_header(&a, "content-type: application/yaml"));
    assert_true(str_contains(a.body, STR("name: yam\n")));
    assert_str(text_at(get(h, CM "/yam"), "data.a"), "1");
}

static void test_dry_run_stores_nothing(void **state)
{
    struct harness *h = *state;
    int64_t before = store_revision(harness_store(h));
    struct answer a = post(h, CM "?dryRun=All", "{\"metadata\":{\"name\":\"dry\"}}");

    assert_int_equal(a.status, 201);
    assert_int_equal(text_at(a, "metadata.uid").n, 36);
    assert_int_equal(get(h, CM "/dry").status, 404);
    assert_int_equal(store_revision(harness_store(h)), before);
    a = post(h, CM "?dryRun=all", "{\"metadata\":{\"name\":\"dry\"}}");
    check_status(a, 422, "Invalid",
                 "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"all\"]: "
                 "supported values: \"All\"");
}

static void test_field_validation(void **state)
{
    struct harness *h = *state;
    const char *body =
        "{\"metadata\":{\"name\":\"f\"},\"spec\":{\"foo\":1},\"data\":{},\"data\":{}}";
    struct answer a = post(h, CM "?fieldValidation=Strict", body);

    check_status(a, 400, "BadRequest",
                 "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding "
                 "error: unknown field \"spec\", duplicate field \"data\"");
    a = post(h, CM "?dryRun=All", body);
    assert_int_equal(a.status, 201);
    assert_true(has_header(&a, "warning: 299 - \"unknown field \\\"spec\\\"\"\r\n"));
    a = post(h, CM "?fieldValidation=Ignore&dryRun=All", body);
    assert_false(has_header(&a, "warning:"));
}

static void test_duplicates_in_yaml(void **state)
{
    struct harness *h = *state;
    const char *body = "metadata: {name: f}\ndata:\n  a: x\n  a: y\nspec: 1\ndata: {}\n";
    struct answer a =
        ask(h, "POST", CM "?fieldValidation=Strict", "application/yaml", str_c(body), NULL);

    check_status(
        a, 400, "BadRequest",
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding "
        "error: yaml: unmarshal errors:\n  line 4: key \"a\" already set in map\n  line 6: "
        "key \"data\" already set in map, unknown field \"spec\"");
    a = ask(h, "POST", CM "?dryRun=All", "application/yaml", str_c(body), NULL);
    assert_int_equal(a.status, 201);
    assert_true(has_header(&a, "warning: 299 - \"line 4: key \\\"a\\\" already set in map\"\r\n"));
    a = ask(
        h, "PATCH", CM "/f?fieldManager=t&fieldValidation=Strict", "application/apply-patch+yaml",
        STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\n\"data\":{\"a\":\"1\",\"a\":\"2\"}}"),
        NULL);
    check_status(a, 400, "BadRequest",
                 "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal "
                 "errors:\n  line 2: key \"a\" already set in map");
}

static void test_wrong_type(void **state)
{
    struct harness *h = *state;
    struct answer a = post(h, CM, "{\"metadata\":{\"name\":\"t\"},\"data\":\"x\"}");

    check_status(a, 400, "BadRequest",
                 "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot "
                 "unmarshal string into Go struct field ConfigMap.data of type map[string]string");
}

static void test_metadata_is_checked(void **state)
{
    struct harness *h = *state;
    struct answer a = post(h, CM,
                           "{\"metadata\":{\"name\":\"A\",\"labels\":{\"a b\":\"c d\"},"
                           "\"finalizers\":[\"x y\"],\"ownerReferences\":[{\"kind\":\"\"}]}}");

    assert_int_equal(a.status, 422);
    assert_int_equal(json_count(json_path(a.json, "details.causes")), 9);
    assert_str(json_str(json_get(json_at(json_path(a.json, "details.causes"), 0), "field")),
               "metadata.name");
}

static struct answer post_budget(struct harness *h, const char *label, const char *spec)
{
    char body[256];

    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"A_b\",\"labels\":{\"%s\":\"c\"}},\"spec\":%s}", label,
             spec);
    return post(h, BUDGETS, body);
}

/* Of some kinds upstream looks at the metadata last, of some at a part of the spec first. */
static void test_order_of_validation(void **state)
{
    struct harness *h = *state;
    struct answer a = post_budget(h, "a b", "{\"minAvailable\":-1,\"maxUnavailable\":-1}");

    check_status(
        a, 422, "Invalid",
        "PodDisruptionBudget.policy \"A_b\" is invalid: spec.minAvailable: Required value");
    a = post_budget(h, "a b", "{\"minAvailable\":1,\"maxUnavailable\":-1}");
    check_status(a, 422, "Invalid",
                 "PodDisruptionBudget.policy \"A_b\" is invalid: spec.maxUnavailable: Required "
                 "value");
    a = post_budget(h, "a b", "{\"minAvailable\":1,\"maxUnavailable\":1}");
    assert_int_equal(a.status, 422);
    assert_str(json_str(json_get(json_at(json_path(a.json, "details.causes"), 0), "field")),
               "metadata.labels");
    a = post_budget(h, "a", "{\"maxUnavailable\":1}"); /* the name is a part of a path, no more */
    assert_int_equal(a.status, 201);
}

static void test_unreadable_body(void **state)
{
    struct harness *h = *state;

    check_status(post(h, CM, "{\"metadata\":{\"name\":\"u\",\"labels\":{\"unreadable\":\"\"}}}"),
                 400, "BadRequest",
                 "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: it says so");
}

static void test_owner_duplicates_leave(void **state)
{
    struct harness *h = *state;
    struct answer a =
        post(h, CM,
             "{\"metadata\":{\"name\":\"o\",\"ownerReferences\":["
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u\"},"
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u\"}]}}");

    assert_int_equal(a.status, 201);
    assert_int_equal(json_count(json_path(a.json, "metadata.ownerReferences")), 1);
    assert_true(has_header(&a, "duplicate UID(s) observed: u"));
}

/* ---- update ---- */

static void test_update(void **state)
{
    struct harness *h = *state;
    struct str rv, uid;
    struct answer a;

    a = post(h, CM, "{\"metadata\":{\"name\":\"u\"},\"data\":{\"a\":\"1\"}}");
    rv = text_at(a, "metadata.resourceVersion");
    uid = text_at(a, "metadata.uid");
    a = put(h, CM "/u", "{\"metadata\":{\"name\":\"u\"},\"data\":{\"a\":\"2\"}}");
    assert_int_equal(a.status, 200);
    assert_true(str_eq(text_at(a, "metadata.uid"), uid));
    assert_false(str_eq(text_at(a, "metadata.resourceVersion"), rv));
    assert_str(text_at(get(h, CM "/u"), "data.a"), "2");

    a = put(h, CM "/u",
            arena_printf(harness_arena(h),
                         "{\"metadata\":{\"name\":\"u\",\"resourceVersion\":\"%.*s\"}}", STR_F(rv))
                .p);
    check_status(a, 409, "Conflict",
                 "Operation cannot be fulfilled on configmaps \"u\": the object has been modified; "
                 "please apply your changes to the latest version and try again");
    check_status(put(h, CM "/u", "{\"metadata\":{\"name\":\"v\"}}"), 400, "BadRequest",
                 "the name of the object (v) does not match the name on the URL (u)");
    check_status(put(h, CM "/none", "{\"metadata\":{\"name\":\"none\"}}"), 404, "NotFound",
                 "configmaps \"none\" not found");
    a = put(h, CM "/u", "{\"metadata\":{\"name\":\"u\",\"uid\":\"other\"}}");
    assert_int_equal(a.status, 409);
}

static void test_update_without_change(void **state)
{
    struct harness *h = *state;
    struct answer a =
        post(h, CM, "{\"metadata\":{\"name\":\"s\"},\"data\":{\"a\":\"1\",\"b\":\"2\"}}");
    struct answer b =
        put(h, CM "/s", "{\"data\":{\"b\":\"2\",\"a\":\"1\"},\"metadata\":{\"name\":\"s\"}}");

    assert_int_equal(b.status, 200);
    assert_true(str_eq(a.body, b.body));
}

static void test_status_and_spec_are_apart(void **state)
{
    struct harness *h = *state;
    struct answer a = post(h, DEPLOYMENTS,
                           "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":3},"
                           "\"status\":{\"replicas\":9}}");

    assert_int_equal(a.status, 201);
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 1);
    assert_int_equal(json_i64_at(a.json, "status.replicas", -1), -1);

    a = merge(h, DEPLOYMENTS "/d/status",
              "{\"spec\":{\"replicas\":7},\"status\":{\"replicas\":2}}");
    assert_int_equal(a.status, 200);
    assert_int_equal(json_i64_at(a.json, "spec.replicas", 0), 3);
    assert_int_equal(json_i64_at(a.json, "status.replicas", 0), 2);
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 1);

    a = merge(h, DEPLOYMENTS "/d", "{\"spec\":{\"replicas\":7},\"status\":{\"replicas\":5}}");
    assert_int_equal(json_i64_at(a.json, "spec.replicas", 0), 7);
    assert_int_equal(json_i64_at(a.json, "status.replicas", 0), 2);
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 2);
    a = merge(h, DEPLOYMENTS "/d", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    assert_int_equal(json_i64_at(a.json, "metadata.generation", 0), 2);
}

static void test_kind_is_validated(void **state)
{
    struct harness *h = *state;
    struct answer a =
        post(h, DEPLOYMENTS, "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":-1}}");

    check_status(a, 422, "Invalid",
                 "Deployment.apps \"d\" is invalid: spec.replicas: Invalid value: -1: must be "
                 "greater than or equal to 0");
    assert_str(text_at(a, "details.group"), "apps");
    assert_str(text_at(a, "details.kind"), "Deployment");
}

static void test_create_on_update(void **state)
{
    struct harness *h = *state;
    const char *path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    struct answer a = put(h, path, "{\"metadata\":{\"name\":\"l\"}}");

    assert_int_equal(a.status, 201);
    a = put(h, path, "{\"metadata\":{\"name\":\"l\",\"labels\":{\"a\":\"b\"}}}");
    check_status(a, 422, "Invalid",
                 "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid "
                 "value: 0: must be specified for an update");
}

/* ---- patch ---- */

static void test_patches(void **state)
{
    struct harness *h = *state;
    struct answer a;

    post(h, CM, "{\"metadata\":{\"name\":\"p\"},\"data\":{\"a\":\"1\",\"b\":\"2\"}}");
    a = merge(h, CM "/p", "{\"data\":{\"a\":null,\"c\":\"3\"}}");
    assert_int_equal(a.status, 200);
    assert_null(json_path(a.json, "data.a"));
    assert_str(text_at(a, "data.c"), "3");
    a = ask(h, "PATCH", CM "/p", "application/json-patch+json",
            STR("[{\"op\":\"replace\",\"path\":\"/data/b\",\"value\":\"4\"}]"), NULL);
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "data.b"), "4");
    a = ask(h, "PATCH", CM "/p", "application/strategic-merge-patch+json",
            STR("{\"data\":{\"$patch\":\"replace\",\"z\":\"1\"}}"), NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(json_count(json_get(a.json, "data")), 1);
    a = ask(h, "PATCH", CM "/p", "application/json", STR("{}"), NULL);
    check_status(a, 415, "UnsupportedMediaType", "415: Unsupported Media Type");
    check_status(merge(h, CM "/none", "{}"), 404, "NotFound", "configmaps \"none\" not found");
    a = merge(h, CM "/p", "{\"metadata\":{\"resourceVersion\":\"1\"}}");
    assert_int_equal(a.status, 409);
    a = merge(h, CM "/p?force=true", "{}");
    check_status(a, 422, "Invalid",
                 "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified "
                 "for non-apply patch");
    check_status(merge(h, CM "/p", "{\"metadata\":{\"name\":\"q\"}}"), 400, "BadRequest",
                 "the name of the object (q) does not match the name on the URL (p)");
    assert_int_equal(merge(h, CM "/p", "{\"kind\":\"Secret\"}").status, 422);
    assert_str(text_at(get(h, CM "/p"), "kind"), "ConfigMap");
}

/* ---- scale ---- */

static void test_scale(void **state)
{
    struct harness *h = *state;
    struct answer a;

    post(h, DEPLOYMENTS,
         "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":3,\"selector\":"
         "{\"matchLabels\":{\"app\":\"x\"}}}}");
    a = get(h, DEPLOYMENTS "/d/scale");
    assert_int_equal(a.status, 200);
    assert_str(text_at(a, "kind"), "Scale");
    assert_int_equal(json_i64_at(a.json, "spec.replicas", 0), 3);
    assert_str(text_at(a, "status.selector"), "app=x");
    a = merge(h, DEPLOYMENTS "/d/scale", "{\"spec\":{\"replicas\":5}}");
    assert_int_equal(a.status, 200);
    assert_int_equal(json_i64_at(a.json, "spec.replicas", 0), 5);
    assert_int_equal(json_i64_at(get(h, DEPLOYMENTS "/d").json, "metadata.generation", 0), 2);
    a = put(h, DEPLOYMENTS "/d/scale",
            "{\"metadata\":{\"name\":\"d\",\"namespace\":\"default\"},\"spec\":{\"replicas\":0}}");
    assert_int_equal(a.status, 200);
    assert_null(json_path(a.json, "spec.replicas"));
    assert_int_equal(json_i64_at(get(h, DEPLOYMENTS "/d").json, "spec.replicas", 9), 0);
    a = merge(h, DEPLOYMENTS "/d/scale", "{\"spec\":{\"replicas\":-5}}");
    assert_int_equal(a.status, 422);
    assert_int_equal(get(h, DEPLOYMENTS "/none/scale").status, 404);
}

/* ---- the rooms around ---- */

static void test_quota_is_asked(void **state)
{
    struct harness *h = *state;

    STANDIN.refuse_quota = 1;
    check_status(post(h, CM, "{\"metadata\":{\"name\":\"q\"}}"), 403, "Forbidden",
                 "configmaps \"q\" is forbidden: exceeded quota");
    assert_int_equal(get(h, CM "/q").status, 404);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_create_fills_metadata),
        TEST(test_create_twice),
        TEST(test_create_refusals),
        TEST(test_create_generates_name),
        TEST(test_generated_name_clash),
        TEST(test_create_yaml),
        TEST(test_dry_run_stores_nothing),
        TEST(test_field_validation),
        TEST(test_duplicates_in_yaml),
        TEST(test_wrong_type),
        TEST(test_metadata_is_checked),
        TEST(test_order_of_validation),
        TEST(test_unreadable_body),
        TEST(test_owner_duplicates_leave),
        TEST(test_update),
        TEST(test_update_without_change),
        TEST(test_status_and_spec_are_apart),
        TEST(test_kind_is_validated),
        TEST(test_create_on_update),
        TEST(test_patches),
        TEST(test_scale),
        TEST(test_quota_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
