/* SPDX-License-Identifier: Apache-2.0 */
/* The answers to unusual requests: legacy prefixes, unknown forms,
 * options of the wrong type, tokens of other lists. Messages are those of kube-apiserver 1.36.3. */
#include "api_harness.h"

#include "test.h"

#define CM    "/api/v1/namespaces/default/configmaps"
#define WATCH "/api/v1/watch/namespaces/default/configmaps"

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

static struct answer with(struct harness *h, const char *method, const char *path,
                          const char *header)
{
    return ask(h, method, path, NULL, STR_NULL, (const char *const[]){header, NULL});
}

static void says(struct answer a, int status, const char *message)
{
    assert_int_equal(a.status, status);
    assert_str(json_str_at(a.json, "message"), message);
}

static void test_prefixes_of_old(void **state)
{
    static const char missing[] = "the server could not find the requested resource";
    struct harness *h = *state;

    says(post(h, "/api/v1/watch/configmaps", "{}"), 405,
         "the server does not allow this method on the requested resource");
    says(get(h, WATCH "/a/status"), 404, missing);
    says(get(h, "/api/v1/proxy/namespaces/default/pods/p"), 404, missing);
    says(get(h, WATCH "/a?fieldSelector=metadata.name%3Db"), 400,
         "fieldSelector metadata.name doesn't match requested name");
}

static void test_names_no_path_ends_in(void **state)
{
    struct harness *h = *state;

    says(get(h, CM "/%2e%2e"), 400, "Name parameter invalid: \"..\": may not be '..'");
    says(get(h, CM "/a%25b"), 400, "Name parameter invalid: \"a%b\": may not contain '%'");
}

static void test_forms_nobody_has(void **state)
{
    struct harness *h = *state;
    struct answer a = with(h, "GET", CM, "accept: text/plain");

    says(a, 406,
         "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
         "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
         "application/vnd.kubernetes.protobuf;stream=watch");
    assert_non_null(json_get(a.json, "details"));
    assert_int_equal(with(h, "GET", CM "?watch=1", "accept: application/yaml").status, 406);
    says(with(h, "GET", CM, "accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
         406,
         "you requested PartialObjectMetadata, but the requested object is a list "
         "(*core.ConfigMapList)");
    says(with(h, "GET", CM, "accept: application/json;as=Table;g=meta.k8s.io;v=v2"), 406,
         "only the following media types are accepted: application/json, application/yaml, "
         "application/vnd.kubernetes.protobuf");
    says(with(h, "GET", CM "?includeObject=Bad",
              "accept: application/json;as=Table;g=meta.k8s.io;v=v1"),
         400,
         "Unable to convert to Table as requested: includeObject: Invalid value: \"Bad\": must be "
         "'Metadata', 'Object', 'None', or empty");
    assert_int_equal(get(h, CM "?includeObject=Bad").status, 200);
}

static void test_tables_of_the_beta(void **state)
{
    struct harness *h = *state;
    struct answer a;
    const cJSON *row;

    post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");
    a = with(h, "GET", CM, "accept: application/json;as=Table;g=meta.k8s.io;v=v1beta1");
    assert_str(json_str_at(a.json, "apiVersion"), "meta.k8s.io/v1beta1");
    row = json_first(json_get(a.json, "rows"));
    assert_str(json_str_at(row, "object.apiVersion"), "meta.k8s.io/v1beta1");
    a = with(h, "GET", CM "/a",
             "accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1");
    assert_str(json_str_at(a.json, "apiVersion"), "meta.k8s.io/v1beta1");
}

static void test_delete_options_of_other_types(void **state)
{
#define CANNOT "json: cannot unmarshal "
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"{\"preconditions\":5}",
         CANNOT "number into Go struct field DeleteOptions.preconditions of type v1.Preconditions"},
        {"{\"preconditions\":{\"uid\":5}}",
         CANNOT "number into Go struct field Preconditions.preconditions.uid of type types.UID"},
        {"{\"dryRun\":\"All\"}",
         CANNOT "string into Go struct field DeleteOptions.dryRun of type []string"},
        {"{\"orphanDependents\":\"x\"}",
         CANNOT "string into Go struct field DeleteOptions.orphanDependents of type bool"},
        {"{\"gracePeriodSeconds\":1.5}",
         CANNOT "number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64"},
    };
    struct harness *h = *state;

    post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");
    for (size_t i = 0; i < COUNT(cases); i++)
        says(delete_(h, CM "/a", cases[i].body), 400, cases[i].message);
    assert_true(str_has_prefix(
        json_str_at(delete_(h, CM "/a", "{\"preconditions\":{\"resourceVersion\":\"abc\"}}").json,
                    "message"),
        STR("Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in the "
            "precondition (abc) does not match the ResourceVersion in record (")));
    assert_int_equal(delete_(h, CM "/a", "null").status, 200);
}

static void test_collections_in_other_forms(void **state)
{
    struct harness *h = *state;
    struct answer a;

    post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");
    post(h, CM, "{\"metadata\":{\"name\":\"b\"}}");
    a = with(h, "DELETE", CM "?limit=1", "accept: application/json;as=Table;g=meta.k8s.io;v=v1");
    assert_str(json_str_at(a.json, "kind"), "Table");
    assert_int_equal(json_count(json_get(a.json, "rows")), 1);
    assert_true(json_str_at(a.json, "metadata.continue").n > 0);
    says(delete_(h, CM "?continue=AAAA", NULL), 400,
         "invalid continue token: continue key is not valid: invalid character '\\x00' looking for "
         "beginning of value");
    assert_int_equal(get(h, CM "/b").status, 200);
    a = delete_(h, CM, NULL);
    assert_int_equal(json_count(json_get(a.json, "items")), 1);
    assert_int_equal(get(h, CM "/b").status, 404);
}

/* A token has its place from the beginning of its list. */
static void test_tokens_of_other_lists(void **state)
{
    struct harness *h = *state;
    struct answer a;
    struct str token;

    post(h, CM, "{\"metadata\":{\"name\":\"a\"}}");
    post(h, CM, "{\"metadata\":{\"name\":\"b\"}}");
    token = json_str_at(get(h, CM "?limit=1").json, "metadata.continue");
    a = get(h, arena_printf(harness_arena(h), "/api/v1/configmaps?continue=%.*s", STR_F(token)).p);
    assert_int_equal(a.status, 200);
    a = get(h, arena_printf(harness_arena(h), CM "?continue=%.*s", STR_F(token)).p);
    assert_int_equal(json_count(json_get(a.json, "items")), 1);
    assert_str(json_str_at(json_first(json_get(a.json, "items")), "metadata.name"), "b");
    /* {"v":"meta.k8s.io/v1","rv":1,"start":"/../x"} */
    says(get(h, CM "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvLi4veCJ9"), 400,
         "invalid continue token: continue key is not valid: /../x");
}

static void test_fields_nobody_selects_by(void **state)
{
    struct harness *h = *state;

    says(get(h, CM "?fieldSelector=x%3D1"), 400,
         "\"x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
}

static void test_discovery(void **state)
{
    struct harness *h = *state;
    struct answer a = get(h, "/apis/apps/v1");
    const cJSON *first = json_first(json_get(a.json, "resources"));

    assert_str(json_str_at(first, "name"), "deployments");
    assert_str(json_str_at(first, "storageVersionHash"), "8aSe+NMegvE=");
    assert_false(has_header(&a, "vary: Accept"));
    assert_int_equal(with(h, "GET", "/apis/apps/v1", "accept: text/plain").status, 406);
    a = with(h, "GET", "/apis/apps", "accept: application/yaml");
    assert_true(has_header(&a, "content-type: application/yaml"));
    a = with(h, "GET", "/apis",
             "accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    assert_true(has_header(&a, "cache-control: public"));
    assert_true(has_header(&a, "vary: Accept"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_prefixes_of_old),
        TEST(test_names_no_path_ends_in),
        TEST(test_forms_nobody_has),
        TEST(test_tables_of_the_beta),
        TEST(test_delete_options_of_other_types),
        TEST(test_collections_in_other_forms),
        TEST(test_tokens_of_other_lists),
        TEST(test_fields_nobody_selects_by),
        TEST(test_discovery),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
