/* SPDX-License-Identifier: Apache-2.0 */
/* The way from a request to its handler and back: who may, what exists, which form. Messages are
 * those of kube-apiserver 1.36.3. */
#include "api_harness.h"

#include "test.h"

#include <stdio.h>

#include <zlib.h>

#include <sublet/notice.h>

#define CM "/api/v1/namespaces/default/configmaps"

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

static struct answer get_with(struct harness *h, const char *path, const char *header)
{
    return ask(h, "GET", path, NULL, STR_NULL, (const char *const[]){header, NULL});
}

static void test_unknown_paths(void **state)
{
    static const char *const plain[] = {"/foo", "/apis/foo", "/apis/foo/v1/bars", "/versions"};
    static const char *const routed[] = {"/api/v1/foos", "/api/v2/pods", "/api/v2", "/version/x"};
    struct harness *h = *state;
    struct answer a;

    for (size_t i = 0; i < COUNT(plain); i++) {
        a = get(h, plain[i]);
        assert_int_equal(a.status, 404);
        assert_str(a.body, "404 page not found\n");
        assert_true(has_header(&a, "x-content-type-options: nosniff"));
    }
    for (size_t i = 0; i < COUNT(routed); i++) {
        a = get(h, routed[i]);
        assert_int_equal(a.status, 404);
        assert_str(a.body,
                   "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                   "\"status\":\"Failure\",\"message\":\"the server could not find the requested "
                   "resource\",\"reason\":\"NotFound\",\"details\":{},\"code\":404}\n");
    }
    assert_int_equal(get(h, CM "/a/nothing").status, 404);
}

static void test_methods(void **state)
{
    struct harness *h = *state;
    static const char *const reading[] = {"/version", "/api", "/api/v1/", "/api/v1"};
    struct answer a = put(h, CM, "{}");

    assert_int_equal(a.status, 405);
    for (size_t i = 0; i < COUNT(reading); i++)
        assert_int_equal(put(h, reading[i], "{}").status, 405);
    assert_int_equal(put(h, "/apis", "{}").status, 200);
    assert_str(a.body,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
               "\"status\":\"Failure\",\"message\":\"the server does not allow this method on "
               "the requested resource\",\"reason\":\"MethodNotAllowed\",\"details\":{},"
               "\"code\":405}\n");
    assert_int_equal(ask(h, "OPTIONS", CM, NULL, STR_NULL, NULL).status, 405);
    assert_int_equal(delete_(h, "/api/v1/pods", NULL).status, 405);
    assert_int_equal(get(h, "/api/v1/namespaces/x/namespaces/default").status, 404);
    assert_int_equal(get(h, "/api/v1/pods/p").status, 404);
    assert_int_equal(get(h, "/api/v1/namespaces/default/pods/p/status/x").status, 404);
    assert_int_equal(get(h, "/api/v1/namespaces/default/pods/p/binding").status, 405);
    assert_int_equal(post(h, "/api/v1/pods", "{}").status, 405);
}

/* A proxy forwards every method; the other connections, and objects, take no HEAD and OPTIONS. */
static void test_methods_of_proxies(void **state)
{
    static const char *const methods[] = {"GET",    "POST", "PUT",    "PATCH",
                                          "DELETE", "HEAD", "OPTIONS"};
    static const char *const proxies[] = {"/api/v1/namespaces/default/pods/p/proxy",
                                          "/api/v1/namespaces/default/pods/http:p:80/proxy/a/b"};
    static const char *const others[] = {
        "/api/v1/namespaces/default/pods/p/log", "/api/v1/namespaces/default/pods/p/exec",
        "/api/v1/namespaces/default/pods/p/status", "/api/v1/namespaces/default/pods/p"};
    struct harness *h = *state;
    struct answer a;

    for (size_t i = 0; i < COUNT(proxies) * COUNT(methods); i++) {
        const char *method = methods[i % COUNT(methods)];
        bool bodyless = !strcmp(method, "HEAD");

        a = ask(h, method, proxies[i / COUNT(methods)], "text/x", STR("bytes"), NULL);
        assert_int_equal(a.status, 200);
        assert_str(a.body, bodyless ? "" : arena_printf(harness_arena(h), "%s bytes", method).p);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(ask(h, "HEAD", others[i], NULL, STR_NULL, NULL).status, 405);
        assert_int_equal(ask(h, "OPTIONS", others[i], NULL, STR_NULL, NULL).status, 405);
    }
    assert_int_equal(ask(h, "TRACE", proxies[0], NULL, STR_NULL, NULL).status, 405);

    STANDIN.user_denied = "eve";
    a = ask(h, "OPTIONS", proxies[0], NULL, STR_NULL, (const char *const[]){"x-user: eve", NULL});
    assert_int_equal(a.status, 403);
    assert_str(text_at(a, "message"),
               "pods \"p\" is forbidden: User \"eve\" cannot  resource \"pods/proxy\" in "
               "API group \"\" in the namespace \"default\"");
}

static void test_who_and_may_they(void **state)
{
    struct harness *h = *state;
    struct answer a = get_with(h, CM, "x-user: wrong");

    assert_int_equal(a.status, 401);
    assert_str(text_at(a, "reason"), "Unauthorized");
    STANDIN.user_denied = "eve";
    a = get_with(h, CM "/a", "x-user: eve");
    assert_int_equal(a.status, 403);
    assert_str(
        text_at(a, "message"),
        "configmaps \"a\" is forbidden: User \"eve\" cannot get resource \"configmaps\" in API "
        "group \"\" in the namespace \"default\"");
    a = get_with(h, "/apis/apps/v1/deployments?watch=1", "x-user: eve");
    assert_str(
        text_at(a, "message"),
        "deployments.apps is forbidden: User \"eve\" cannot watch resource \"deployments\" in "
        "API group \"apps\" at the cluster scope");
    a = get_with(h, "/no/such", "x-user: eve");
    assert_int_equal(a.status, 403);
    assert_str(text_at(a, "message"), "forbidden: User \"eve\" cannot get path \"/no/such\"");
    a = get_with(h, "/api/v1/namespaces/default/pods/p/status", "x-user: eve");
    assert_str(
        text_at(a, "message"),
        "pods \"p\" is forbidden: User \"eve\" cannot get resource \"pods/status\" in API group "
        "\"\" in the namespace \"default\"");
    a = get_with(h, CM "?fieldSelector=metadata.name%3Dz", "x-user: eve");
    assert_true(str_has_prefix(text_at(a, "message"), STR("configmaps \"z\" is forbidden")));
}

static void test_negotiation(void **state)
{
    struct harness *h = *state;
    struct answer a;

    post(h, CM, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"1\"}}");
    a = get_with(h, CM "/a", "accept: text/html");
    assert_int_equal(a.status, 406);
    assert_str(text_at(a, "reason"), "NotAcceptable");
    assert_str(text_at(a, "message"),
               "406: Not Acceptable\n\nAvailable representations: application/json, "
               "application/yaml, application/vnd.kubernetes.protobuf");
    assert_int_equal(get_with(h, CM "/a", "accept: application/json;v=v1").status, 406);
    assert_int_equal(get_with(h, CM "/a", "accept: text/html, */*;q=0.1").status, 200);
    a = get_with(h, CM "/a", "accept: application/json;q=0.1, application/yaml");
    assert_true(has_header(&a, "content-type: application/yaml"));
    a = get_with(h, CM "/a", "accept: application/vnd.kubernetes.protobuf, */*");
    assert_true(has_header(&a, "content-type: application/json"));

    a = get_with(h, CM "/a",
                 "accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    assert_str(text_at(a, "kind"), "Table");
    assert_int_equal(json_count(json_get(a.json, "rows")), 1);
    a = get_with(h, CM "/a",
                 "accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;"
                 "g=meta.k8s.io;v=v1, application/json;as=PartialObjectMetadata;"
                 "g=meta.k8s.io;v=v1");
    assert_str(text_at(a, "kind"), "PartialObjectMetadata");
    assert_null(json_get(a.json, "data"));
    assert_str(text_at(a, "metadata.name"), "a");
    a = get_with(h, CM "/a", "accept: application/vnd.kubernetes.protobuf");
    assert_true(has_header(&a, "content-type: application/vnd.kubernetes.protobuf"));
    assert_true(str_has_prefix(a.body, (struct str){"k8s", 4}));
    a = get(h, CM "/a?pretty=true");
    assert_true(str_has_prefix(a.body, STR("{\n  \"kind\": \"ConfigMap\",\n")));
}

static struct str inflate_all(struct arena *a, struct str in)
{
    z_stream z = {0};
    size_t cap = 4 << 20;
    unsigned char *out = arena_alloc(a, cap);

    inflateInit2(&z, 15 + 16);
    z.next_in = (unsigned char *)(uintptr_t)in.p;
    z.avail_in = (uInt)in.n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    cap = z.total_out;
    inflateEnd(&z);
    return (struct str){(char *)out, cap};
}

static void test_gzip(void **state)
{
    struct harness *h = *state;
    struct buf body = BUF_INIT(0);
    struct answer a, b;

    buf_addc(&body, "{\"metadata\":{\"name\":\"big\"},\"data\":{\"x\":\"");
    for (int i = 0; i < 200000; i++)
        buf_char(&body, (char)('a' + i % 7));
    buf_addc(&body, "\"}}");
    a = ask(h, "POST", CM, NULL, buf_str(&body), NULL);
    buf_fini(&body);
    assert_int_equal(a.status, 201);
    b = get_with(h, CM "/big", "accept-encoding: gzip");
    assert_true(has_header(&b, "content-encoding: gzip"));
    assert_true(b.body.n < 10000);
    assert_true(str_eq(inflate_all(harness_arena(h), b.body), a.body));
    post(h, CM, "{\"metadata\":{\"name\":\"small\"}}");
    b = get_with(h, CM "/small", "accept-encoding: gzip");
    assert_false(has_header(&b, "content-encoding"));
}

static void test_body_limit(void **state)
{
    struct harness *h = *state;
    struct str big = {arena_alloc(harness_arena(h), 3 * 1024 * 1024 + 10), 3 * 1024 * 1024 + 10};
    struct answer a;

    memset((char *)(uintptr_t)big.p, ' ', big.n);
    a = ask(h, "POST", CM, NULL, big, NULL);
    assert_int_equal(a.status, 413);
    assert_str(text_at(a, "message"), "Request entity too large: limit is 3145728");
}

static void test_audit_id(void **state)
{
    struct harness *h = *state;
    struct answer a = get_with(h, CM, "audit-id: mine-1");

    assert_true(has_header(&a, "audit-id: mine-1\r\n"));
    a = get_with(h, CM,
                 "audit-id: team/trace%2f..; more than the sixty-four characters of a log line "
                 "of upstream's");
    assert_true(has_header(&a,
                           "audit-id: team/trace%2f..; more than the sixty-four characters of a "
                           "log line of upstream's\r\n"));
}

/* A query of n parameters, the last of them one that is refused. */
static struct str query_of(struct harness *h, size_t n)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    buf_addc(&b, CM "?dryRun=All");
    for (size_t i = 2; i < n; i++)
        buf_char(&b, '&');
    buf_addc(&b, "&limit=x");
    buf_char(&b, '\0');
    text = arena_str(harness_arena(h), buf_str(&b));
    buf_fini(&b);
    return text;
}

/* What is not looked at could be what makes a write a dry run. */
static void test_no_parameter_is_lost(void **state)
{
    struct harness *h = *state;
    struct answer a = get(h, query_of(h, 1000).p);

    assert_int_equal(a.status, 400);
    assert_str(text_at(a, "message"), "strconv.ParseInt: parsing \"x\": invalid syntax");
    a = post(h, query_of(h, 1001).p, "{}");
    assert_int_equal(a.status, 400);
    assert_str(text_at(a, "message"), "too many query parameters: limit is 1000");
}

static void test_discovery_paths(void **state)
{
    static const struct {
        const char *path, *accept;
        int status;
        const char *kind; /* NULL: "404 page not found" */
    } cases[] = {
        {"/api/", NULL, 200, "APIVersions"},
        {"/api//", NULL, 200, "APIVersions"},
        {"/apis/apps//", NULL, 200, "APIGroup"},
        {"/apis/apps/v1//", NULL, 200, "APIResourceList"},
        {"/apis//", NULL, 404, NULL},
        {"/apis//v1", NULL, 404, NULL},
        /* A route says which types it has, whole words as they are; a handler finds one. */
        {"/api", "accept: application/*", 406, "Status"},
        {"/apis/apps", "accept: application/*", 200, "APIGroup"},
        {"/apis/apps/v1", "accept: application/*", 406, "Status"},
    };
    struct harness *h = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer a =
            cases[i].accept ? get_with(h, cases[i].path, cases[i].accept) : get(h, cases[i].path);

        if (a.status != cases[i].status)
            fail_msg("%s: %d", cases[i].path, a.status);
        if (cases[i].kind)
            assert_str(text_at(a, "kind"), cases[i].kind);
        else
            assert_str(a.body, "404 page not found\n");
    }
}

static void test_health(void **state)
{
    static const char *const all[] = {"/healthz", "/livez", "/readyz"};
    static const char *const fine[] = {"/healthz/etcd", "/livez/poststarthook/rbac/bootstrap-roles",
                                       "/readyz/informer-sync", "/readyz/shutdown",
                                       "/livez/loopback-serving-certificate"};
    static const char *const none[] = {"/readyz/loopback-serving-certificate", "/livez/shutdown",
                                       "/livez/informer-sync", "/livez/poststarthook",
                                       "/readyz/poststarthook/rbac"};
    struct harness *h = *state;
    struct answer a;

    for (size_t i = 0; i < COUNT(all); i++) {
        a = get(h, all[i]);
        assert_int_equal(a.status, 200);
        assert_str(a.body, "ok");
    }
    for (size_t i = 0; i < COUNT(fine); i++)
        assert_str(get(h, fine[i]).body, "ok");
    for (size_t i = 0; i < COUNT(none); i++)
        assert_int_equal(get(h, none[i]).status, 404);
    a = get(h, "/readyz?verbose&exclude=etcd");
    assert_true(
        str_contains(a.body, STR("[+]log ok\n[+]etcd excluded: ok\n[+]etcd-readiness ok\n")));
    assert_true(str_has_suffix(a.body, STR("[+]shutdown ok\nreadyz check passed\n")));
    a = get(h, "/");
    assert_true(str_contains(a.body, STR("\"/healthz/etcd\",")));
    assert_true(str_contains(a.body, STR("\"/readyz/shutdown\",\n    \"/version\"\n")));
}

static void notice(struct harness *h, const char *subject, const char *reason)
{
    struct vapi_notice n = {.topic = NOTICE_POOL_NODES,
                            .subject = str_c(subject),
                            .reason = reason,
                            .message = STR("a node lacks the taint of its pool"),
                            .detail = STR("node gpu-7")};

    vapi_notice(harness_api(h), &n);
}

static size_t count_events(struct harness *h)
{
    return json_count(json_get(get(h, "/api/v1/namespaces/default/events").json, "items"));
}

static void test_notices(void **state)
{
    struct harness *h = *state;
    size_t before = count_events(h);
    struct answer a;

    notice(h, "a100", "PoolNodesUntainted");
    notice(h, "l4", "PoolNodesUntainted");
    notice(h, "l4", "PoolNodesUntainted"); /* no change */
    notice(h, "l4", "PoolWithoutNodes");
    assert_str(get(h, "/readyz").body, "ok");
    a = get(h, "/readyz?verbose");
    assert_true(
        str_has_suffix(a.body, STR("[+]shutdown ok\n[!]pool-nodes warning: PoolWithoutNodes\n"
                                   "[!]pool-nodes warning: PoolNodesUntainted\n"
                                   "readyz check passed\n")));
    a = get(h, "/readyz/warnings");
    assert_true(str_contains(
        a.body, STR("pool-nodes PoolNodesUntainted a100: a node lacks the taint of its pool\n")));
    assert_false(str_contains(a.body, STR("gpu-7")));
    assert_false(str_contains(get(h, "/livez?verbose").body, STR("[!]")));
    a = get(h, "/metrics");
    assert_true(str_contains(
        a.body, STR("sublet_notices{topic=\"pool-nodes\",reason=\"PoolNodesUntainted\"} 1\n")));
    /* Events are written beside the work: an answer may come before they are durable. */
    for (int i = 0; i < 1000 && count_events(h) < before + 2; i++)
        ;
    assert_int_equal(count_events(h), before + 2); /* the same message twice is one, counted */

    vapi_notice_over(harness_api(h), NOTICE_POOL_NODES, STR("a100"));
    vapi_notice_over(harness_api(h), NOTICE_POOL_NODES, STR("a100"));
    vapi_notice_over(harness_api(h), NOTICE_POOL_NODES, STR("l4"));
    assert_str(get(h, "/readyz/warnings").body, "ok");
}

/* The number of subjects is a tenant's to choose: it decides neither memory nor output. */
static void test_notices_are_bounded(void **state)
{
    struct harness *h = *state;
    struct answer a;

    for (int i = 0; i < 3 * NOTICES_PER_TOPIC; i++) {
        char subject[16];

        snprintf(subject, sizeof(subject), "pool-%d", i);
        notice(h, subject, "PoolWithoutNodes");
    }
    a = get(h, "/readyz/warnings");
    assert_true(str_contains(a.body, STR("pool-nodes: 128 more are in the log\n")));
    assert_false(str_contains(a.body, STR("pool-64")));
    assert_true(str_contains(get(h, "/metrics").body, STR("reason=\"PoolWithoutNodes\"} 64\n")));
}

static void test_review(void **state)
{
    struct harness *h = *state;
    const char *path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    struct answer a = post(h, path,
                           "{\"nonsense\":1,\"metadata\":{\"uid\":\"x\"},\"spec\":{\"odd\":1,"
                           "\"nonResourceAttributes\":{\"path\":\"/x\",\"odd\":2}}}");

    assert_int_equal(a.status, 201);
    assert_str(text_at(a, "kind"), "SelfSubjectAccessReview");
    assert_str(text_at(a, "spec.nonResourceAttributes.path"), "/x");
    /* What its type does not know is not answered, nor what a server sets. */
    assert_false(str_contains(a.body, STR("odd")) || str_contains(a.body, STR("nonsense")) ||
                 str_contains(a.body, STR("uid")));
    assert_int_equal(get(h, path).status, 405);
}

static void test_options(void **state)
{
    static const struct {
        const char *query, *message;
        int status;
    } cases[] = {
        {"limit=", "strconv.ParseInt: parsing \"\": invalid syntax", 400},
        {"timeoutSeconds", "strconv.ParseInt: parsing \"\": invalid syntax", 400},
        {"limit=abc", "strconv.ParseInt: parsing \"abc\": invalid syntax", 400},
        {"timeoutSeconds=x", "strconv.ParseInt: parsing \"x\": invalid syntax", 400},
        {"resourceVersion=abc",
         "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: "
         "parsing \"abc\": invalid syntax",
         400},
        {"resourceVersionMatch=Exact",
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
         "resourceVersionMatch is forbidden unless resourceVersion is provided",
         422},
        {"timeout=abc",
         "invalid timeout specified in the request URL - time: invalid duration \"abc\"", 400},
        {"labelSelector=a,%20,%20=b", "found ',', expected: identifier after ','", 400},
        {"fieldSelector=foo", "invalid selector: 'foo'; can't understand 'foo'", 400},
    };
    struct harness *h = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer a = get(h, arena_printf(harness_arena(h), CM "?%s", cases[i].query).p);

        assert_int_equal(a.status, cases[i].status);
        assert_str(text_at(a, "message"), cases[i].message);
    }
    assert_int_equal(get(h, CM "?watch=false").status, 200);
    assert_int_equal(get(h, CM "?limit=-1").status, 200);
}

static void test_field_manager(void **state)
{
    struct harness *h = *state;
    struct answer a = post(h, CM "?fieldManager=a%01b", "{\"metadata\":{\"name\":\"a\"}}");

    assert_int_equal(a.status, 422);
    assert_true(
        str_has_suffix(text_at(a, "message"), STR(": invalid character U+0001 (at position 1)")));
    a = post(h, CM "?fieldValidation=x", "{}");
    assert_str(
        text_at(a, "message"),
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"x\": "
        "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
}

static struct answer list_from(struct harness *h, struct str token)
{
    return get(h, arena_printf(harness_arena(h), CM "?limit=1&continue=%.*s", STR_F(token)).p);
}

static void test_continue_tokens_age(void **state)
{
    struct harness *h = *state;
    struct answer a;
    struct str token, late, fresh;

    for (int i = 0; i < 3; i++)
        post(h, CM, arena_printf(harness_arena(h), "{\"metadata\":{\"name\":\"c%d\"}}", i).p);
    harness_set_time(h, 1000000);
    a = get(h, CM "?limit=1");
    token = text_at(a, "metadata.continue");
    assert_true(token.n > 0);
    harness_set_time(h, 1000299);
    assert_int_equal(list_from(h, token).status, 200);
    post(h, CM, "{\"metadata\":{\"name\":\"c0a\"}}");
    a = get(h, CM "?limit=1");
    fresh = text_at(a, "metadata.continue");
    harness_set_time(h, 1000301);
    a = list_from(h, token);
    assert_int_equal(a.status, 410);
    assert_str(text_at(a, "reason"), "Expired");
    assert_true(str_has_prefix(text_at(a, "message"),
                               STR("The provided continue parameter is too old to display a")));
    late = text_at(a, "metadata.continue");
    a = list_from(h, late);
    assert_int_equal(a.status, 200);
    assert_str(json_str_at(json_first(json_get(a.json, "items")), "metadata.name"), "c0a");
    assert_int_equal(list_from(h, fresh).status, 200);
}

/* Nothing is written: what is begun anew is of a later revision all the same. */
static void on_durable(void *ctx, const struct err *err)
{
    (void)err;
    *(bool *)ctx = true;
}

static void test_continue_tokens_age_at_rest(void **state)
{
    struct harness *h = *state;
    struct str token, late, first;
    struct answer a;
    bool durable = false;

    for (int i = 0; i < 3; i++)
        post(h, CM, arena_printf(harness_arena(h), "{\"metadata\":{\"name\":\"c%d\"}}", i).p);
    harness_set_time(h, 1000000);
    a = get(h, CM "?limit=1");
    token = text_at(a, "metadata.continue");
    first = text_at(a, "metadata.resourceVersion");
    assert_str(text_at(list_from(h, token), "metadata.resourceVersion"),
               arena_cstr(harness_arena(h), first));
    harness_set_time(h, 1000301);
    a = list_from(h, token);
    assert_int_equal(a.status, 410);
    late = text_at(a, "metadata.continue");
    store_on_commit(harness_store(h), on_durable, &durable); /* the revision that was used up */
    harness_run_until(h, &durable);
    a = list_from(h, late);
    assert_int_equal(a.status, 200);
    assert_false(str_eq(text_at(a, "metadata.resourceVersion"), first));
}

/* ---- addresses of nodes ---- */

static struct str node_at(void *ctx, struct str ip)
{
    (void)ctx;
    return str_eqc(ip, "10.9.0.7")  ? STR("cpu-1")
           : str_eqc(ip, "fd00::7") ? STR("cpu-2")
                                    : STR_NULL;
}

/* What a kubelet's webhook authorizer would be asked: pkg/kubelet/server/auth.go. */
static void test_a_kubelet_at_the_address_of_a_node(void **state)
{
    static const struct {
        const char *host, *method, *path, *asked;
    } cases[] = {
        {"10.9.0.7:10250", "GET", "/metrics", "get nodes/metrics cpu-1 "},
        {"10.9.0.7:10250", "GET", "/metrics/resource", "get nodes/metrics cpu-1 "},
        {"10.9.0.7:10250", "GET", "/metrics/cadvisor?x=y", "get nodes/metrics cpu-1 "},
        {"[fd00::7]:10250", "GET", "/stats/summary", "get nodes/stats cpu-2 "},
        {"10.9.0.7:10250", "GET", "/pods", "get nodes/pods cpu-1 get nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "GET", "/runningpods/", "get nodes/pods cpu-1 get nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "GET", "/healthz", "get nodes/healthz cpu-1 get nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "GET", "/configz", "get nodes/configz cpu-1 get nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "GET", "/logs/syslog", "get nodes/log cpu-1 "},
        {"10.9.0.7:10250", "GET", "/metricsx", "get nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "GET", "/", "get nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "GET", "/containerLogs/a/b/c", "get nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "POST", "/exec/a/b/c", "create nodes/proxy cpu-1 "},
        {"10.9.0.7:10250", "GET", "/api/v1/namespaces/a/secrets/b", "get nodes/proxy cpu-1 "},
        /* the API itself */
        {"10.9.0.7", "GET", "/api/v1/nodes/cpu-1/proxy/metrics", "get nodes/proxy cpu-1 "},
        {"10.9.0.8:10250", "GET", "/api/v1/nodes/cpu-1/proxy/metrics", "get nodes/proxy cpu-1 "},
        {"10.9.0.7:443", "GET", "/api/v1/nodes/cpu-1", "get nodes/ cpu-1 "},
        {"cpu-1:10250", "GET", "/api/v1/nodes/cpu-1", "get nodes/ cpu-1 "},
        {":10250", "GET", "/api/v1/nodes/cpu-1", "get nodes/ cpu-1 "},
    };
    const struct vapi_hooks hooks = {.node_at = node_at, .kubelets = true};
    struct harness *h = harness_new_with(&hooks);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const headers[] = {arena_printf(harness_arena(h), "host: %s", cases[i].host).p,
                                       NULL};
        struct answer a;

        STANDIN.deny = true;
        STANDIN.asked[0] = 0;
        a = ask(h, cases[i].method, cases[i].path, NULL, STR_NULL, headers);
        STANDIN.deny = false;
        assert_string_equal(STANDIN.asked, cases[i].asked);
        assert_int_equal(a.status, 403);
    }
    harness_free(h);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unknown_paths),
        TEST(test_methods),
        TEST(test_methods_of_proxies),
        TEST(test_who_and_may_they),
        cmocka_unit_test(test_a_kubelet_at_the_address_of_a_node),
        TEST(test_negotiation),
        TEST(test_gzip),
        TEST(test_body_limit),
        TEST(test_audit_id),
        TEST(test_no_parameter_is_lost),
        TEST(test_discovery_paths),
        TEST(test_health),
        TEST(test_notices),
        TEST(test_notices_are_bounded),
        TEST(test_review),
        TEST(test_options),
        TEST(test_field_manager),
        TEST(test_continue_tokens_age),
        TEST(test_continue_tokens_age_at_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
