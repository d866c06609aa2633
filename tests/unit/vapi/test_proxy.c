/* SPDX-License-Identifier: Apache-2.0 */
/* What a proxied request says and what of it goes on: targets, options, containers, headers. The
 * whole way, with a client and a host at its ends, is in tests/integration/test_streams.py. */
#include "test.h"

#include <sublet/json_build.h>
#include <sublet/selector.h>

#include "../../../vapi/api/proxy/impl.h"

struct world_of_one {
    struct arena *arena;
    struct resource resource;
    struct subresource sub;
    struct net_request request;
    struct call call;
    struct proxy_request r;
    struct err err;
};

static void open_one(struct world_of_one *w, const char *plural, const char *sub, const char *name)
{
    *w = (struct world_of_one){.arena = arena_new(0)};
    w->resource = (struct resource){.plural = str_c(plural), .group_resource = str_c(plural)};
    w->resource.group = STR("");
    w->sub = (struct subresource){.name = sub, .kind = SUB_PROXY};
    w->request =
        (struct net_request){.arena = w->arena, .http_major = 1, .method_text = STR("GET")};
    w->call = (struct call){.arena = w->arena,
                            .request = &w->request,
                            .resource = &w->resource,
                            .sub = &w->sub,
                            .ns = STR("default"),
                            .name = str_c(name)};
    err_init(&w->err, w->arena);
}

static void close_one(struct world_of_one *w)
{
    arena_free(w->arena);
}

static const cJSON *pod_of(struct world_of_one *w, const char *json)
{
    cJSON *tree = NULL;

    assert_int_equal(json_parse(w->arena, str_c(json), &tree, &w->err), 0);
    return tree;
}

/* The options as admission would see them, forwarded as they are. */
static int forward(struct world_of_one *w)
{
    cJSON *connection = NULL;

    if (w->r.kind != PROXY_LOG && proxy_connect_options(&w->call, &w->r, &connection, &w->err))
        return -1;
    return proxy_read_options(&w->call, connection, &w->r, &w->err);
}

/* ---- targets ---- */

static void test_names(void **state)
{
    static const struct {
        const char *text, *scheme, *name, *port;
    } good[] = {
        {"web", "", "web", ""},
        {"web:80", "", "web", "80"},
        {"web:http-1", "", "web", "http-1"},
        {"https:web:443", "https", "web", "443"},
        {"http:web:", "http", "web", ""},
    };
    static const char *const bad[] = {"",        ":80",   "ftp:web:21", "a:b:c:d",
                                      "web:8/0", "web:A", "http::80"};
    struct world_of_one w;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        open_one(&w, "services", "proxy", good[i].text);
        w.request.path =
            arena_printf(w.arena, "/api/v1/namespaces/default/services/%s/proxy", good[i].text);
        assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
        assert_int_equal(w.r.kind, PROXY_SERVICE);
        assert_true(str_eq(w.r.scheme, str_c(good[i].scheme)) || !good[i].scheme[0]);
        assert_str(w.r.name, good[i].name);
        assert_true(str_eq(w.r.port, str_c(good[i].port)) || !good[i].port[0]);
        close_one(&w);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        open_one(&w, "services", "proxy", bad[i]);
        assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), -1);
        assert_ptr_equal(w.err.kind, &ERR_BAD_REQUEST);
        close_one(&w);
    }
}

static void test_paths(void **state)
{
    static const char *const good[] = {"", "/", "/a/b", "/a%20b/", "/a..b/...", "/x;y=1,2"};
    static const char *const bad[] = {"/..",    "/a/../b", "/%2e%2E/x", "/a%2f..%2fb", "/.",
                                      "/a%5cb", "/a%0db",  "/a%zz",     "/a b",        "/a\"b"};
    struct world_of_one w;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        open_one(&w, "pods", "proxy", "web:80");
        w.request.path =
            arena_printf(w.arena, "/api/v1/namespaces/default/pods/web%%3A80/proxy%s", good[i]);
        assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
        assert_true(str_eq(w.r.path, str_c(good[i])) || !good[i][0]);
        close_one(&w);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        open_one(&w, "pods", "proxy", "web:80");
        w.request.path =
            arena_printf(w.arena, "/api/v1/namespaces/default/pods/web:80/proxy%s", bad[i]);
        if (!proxy_read_target(&w.call, &w.r, &w.err))
            fail_msg("%s went through", bad[i]);
        close_one(&w);
    }
    /* Access was decided on another reading of the path. */
    open_one(&w, "pods", "proxy", "web");
    w.request.path = STR("/api/v1/namespaces/default/pods/other/proxy/x");
    assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), -1);
    close_one(&w);
}

static void test_nodes(void **state)
{
    static const struct net_header headers[] = {{STR("connection"), STR("Upgrade")},
                                                {STR("upgrade"), STR("websocket")},
                                                {STR("accept"), STR("text/plain")}};
    struct world_of_one w;

    (void)state;
    open_one(&w, "nodes", "proxy", "n1");
    w.call.ns = STR("");
    w.request.path = STR("/api/v1/nodes/n1/proxy/stats/summary");
    w.request.query = STR("x=1&only_cpu_and_memory=true&command=id&only_cpu_and_memory=x");
    w.request.body = STR("{}");
    w.request.headers = headers;
    w.request.n_headers = COUNT(headers);
    assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
    assert_int_equal(w.r.kind, PROXY_NODE);
    assert_str(w.r.path, "/stats/summary");
    proxy_read_headers(&w.call, &w.r);
    assert_int_equal(w.r.n_headers, 0);
    assert_int_equal(w.r.upgrade.n, 0);
    assert_int_equal(w.r.body.n, 0);
    assert_int_equal(forward(&w), 0);
    assert_str(w.r.query, "only_cpu_and_memory=true");
    w.request.query = STR("only_cpu_and_memory=true%26command=id&only_cpu_and_memory");
    assert_int_equal(forward(&w), 0);
    assert_int_equal(w.r.query.n, 0);
    w.request.path = STR("/api/v1/nodes/n2/proxy/stats/summary");
    assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), -1);
    close_one(&w);
}

static void test_container_log(void **state)
{
    static const char *const bad[] = {"",
                                      "default",
                                      "default/web",
                                      "default/web/",
                                      "default//a",
                                      "default/web/a/",
                                      "default/web/a/b",
                                      "default/we%2fb/a",
                                      "/default/web/a"};
    struct world_of_one w;

    (void)state;
    open_one(&w, "nodes", "proxy", "n1");
    w.call.ns = STR("");
    w.request.path = STR("/api/v1/nodes/n1/proxy/containerLogs/default/web/a");
    w.request.query = STR("tailLines=3&container=b");
    assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
    assert_true(proxy_is_container_log(&w.r));
    assert_int_equal(proxy_read_container_log(&w.r, &w.err), 0);
    assert_int_equal(w.r.kind, PROXY_LOG);
    assert_str(w.r.ns, "default");
    assert_str(w.r.name, "web");
    assert_str(w.r.container, "a");
    close_one(&w);
    for (size_t i = 0; i < COUNT(bad); i++) {
        open_one(&w, "nodes", "proxy", "n1");
        w.call.ns = STR("");
        w.request.path = arena_printf(w.arena, "/api/v1/nodes/n1/proxy/containerLogs/%s", bad[i]);
        if (!proxy_read_target(&w.call, &w.r, &w.err) && !proxy_read_container_log(&w.r, &w.err))
            fail_msg("%s went through", bad[i]);
        close_one(&w);
    }
}

/* ---- options ---- */

#define TWO                                                                                        \
    "{\"spec\":{\"initContainers\":[{\"name\":\"i\"}],\"containers\":[{\"name\":\"a\"},"           \
    "{\"name\":\"b\"}]}}"
#define ONE "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}"

static int read_options(struct world_of_one *w, const char *sub, const char *pod, const char *query)
{
    open_one(w, "pods", sub, "web");
    w->request.query = str_c(query);
    assert_int_equal(proxy_read_target(&w->call, &w->r, &w->err), 0);
    w->r.object = pod_of(w, pod);
    return forward(w);
}

static void test_log_options(void **state)
{
    static const struct {
        const char *query, *goes_on;
    } good[] = {
        {"", "container=a"},
        {"container=a&follow=true&previous=0&x=y", "follow=true&container=a"},
        {"follow&timestamps=FALSE", "follow=true&container=a"},
        {"tailLines=5&limitBytes=10&sinceSeconds=3",
         "sinceSeconds=3&tailLines=5&limitBytes=10&container=a"},
        {"sinceTime=2026-01-02T03:04:05Z", "sinceTime=2026-01-02T03%3A04%3A05Z&container=a"},
        {"stream=Stderr", "stream=Stderr&container=a"},
        {"stream=All&insecureSkipTLSVerifyBackend=true", "container=a"},
    };
    struct world_of_one w;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(read_options(&w, "log", ONE, good[i].query), 0);
        assert_str(w.r.query, good[i].goes_on);
        assert_str(w.r.container, "a");
        close_one(&w);
    }
    assert_int_equal(read_options(&w, "log", ONE, "follow=1&tailLines=0"), 0);
    assert_true(w.r.log.follow && !w.r.log.previous);
    assert_int_equal(w.r.log.tail_lines, 0);
    assert_int_equal(w.r.log.limit_bytes, -1);
    assert_int_equal(w.r.log.since_us, -1);
    close_one(&w);
}

static void test_log_refusals(void **state)
{
    static const struct {
        const char *query;
        int code;
        const char *text;
    } bad[] = {
        {"tailLines=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"},
        {"tailLines=-1", 422,
         "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or "
         "equal to 0"},
        {"limitBytes=0", 422,
         "PodLogOptions \"web\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"},
        {"sinceSeconds=0", 422,
         "PodLogOptions \"web\" is invalid: sinceSeconds: Invalid value: 0: must be greater than "
         "0"},
        {"container=c", 400, "container c is not valid for pod web"},
        {"", 400, "a container name must be specified for pod web, choose one of: [i a b]"},
    };
    struct world_of_one w;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(read_options(&w, "log", TWO, bad[i].query), -1);
        assert_int_equal(w.err.kind->code, bad[i].code);
        assert_str(w.err.message, bad[i].text);
        close_one(&w);
    }
    assert_int_equal(read_options(&w, "log", ONE, "sinceTime=2026-01-02T03:04:05Z&sinceSeconds=1"),
                     -1);
    assert_int_equal(w.err.kind->code, 422);
    close_one(&w);
    assert_int_equal(read_options(&w, "log", ONE, "stream=Stdout&tailLines=1"), -1);
    assert_int_equal(w.err.kind->code, 422);
    close_one(&w);
}

static void test_stream_options(void **state)
{
    struct world_of_one w;

    (void)state;
    assert_int_equal(read_options(&w, "exec", TWO,
                                  "command=sh&command=-c&command=a+%26%26+b&container=i&stdin=true&"
                                  "stdout=1&tty=false&watch=true"),
                     0);
    assert_str(w.r.query,
               "container=i&stdin=true&stdout=true&command=sh&command=-c&command=a%20%26%26%20b");
    close_one(&w);
    assert_int_equal(read_options(&w, "portforward", TWO, "ports=80&ports=90&x=1"), 0);
    assert_str(w.r.query, "ports=80&ports=90");
    close_one(&w);
}

/* What admission sees is what upstream's options have, and what it leaves is what is forwarded. */
static void test_connections(void **state)
{
    static const struct {
        const char *plural, *sub, *name, *path, *query, *object;
    } cases[] = {
        {"pods", "exec", "web", "", "command=sh&tty=0&stdin=&container=c&x=1",
         "{\"stdin\":true,\"container\":\"c\",\"command\":[\"sh\"]}"},
        {"pods", "exec", "web", "", "stdout=no", "{\"stdout\":true,\"command\":null}"},
        {"pods", "attach", "web", "", "stderr=FALSE&command=sh", "{}"},
        {"pods", "portforward", "web", "", "ports=80,81&ports=9", "{\"ports\":[80,81,9]}"},
        {"pods", "portforward", "web", "", "x=80", "{}"},
        {"pods", "proxy", "web:80", "/api/v1/namespaces/default/pods/web:80/proxy", "", "{}"},
        {"pods", "proxy", "web", "/api/v1/namespaces/default/pods/web/proxy/a%20b/", "path=c",
         "{\"path\":\"/a b/\"}"},
    };
    static const struct {
        const char *query, *why;
    } bad[] = {
        {"ports=x", "cannot convert to []int32: strconv.ParseUint: parsing \"x\": invalid syntax"},
        {"ports=1,", "cannot convert to []int32: strconv.ParseUint: parsing \"\": invalid syntax"},
        {"ports=65536",
         "cannot convert to []int32: strconv.ParseUint: parsing \"65536\": value out of range"},
    };
    struct world_of_one w;
    cJSON *got;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_one(&w, cases[i].plural, cases[i].sub, cases[i].name);
        w.request.path = str_c(cases[i].path);
        w.request.query = str_c(cases[i].query);
        assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
        assert_int_equal(proxy_connect_options(&w.call, &w.r, &got, &w.err), 0);
        assert_str(json_text(w.arena, got), cases[i].object);
        close_one(&w);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        open_one(&w, "pods", "portforward", "web");
        w.request.query = str_c(bad[i].query);
        assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
        assert_int_equal(proxy_connect_options(&w.call, &w.r, &got, &w.err), -1);
        assert_str(w.err.message, bad[i].why);
        close_one(&w);
    }
}

static void test_changed_connections(void **state)
{
    static const struct {
        const char *path, *forwarded; /* NULL: refused */
    } cases[] = {{"/a b", "/a b"}, {"/c d/e?", "/c%20d/e%3F"}, {"x", "/x"},
                 {"", ""},         {"/a/../b", NULL},          {"/..", NULL}};
    struct world_of_one w;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_one(&w, "pods", "proxy", "web");
        w.request.path = STR("/api/v1/namespaces/default/pods/web/proxy/a%20b");
        assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
        assert_int_equal(
            proxy_read_options(&w.call, json_object(w.arena, JSON("path", str_c(cases[i].path))),
                               &w.r, &w.err),
            cases[i].forwarded ? 0 : -1);
        if (i == 0)
            assert_str(w.r.path, "/a%20b"); /* unchanged: as the client encoded it */
        else if (cases[i].forwarded)
            assert_str(w.r.path, cases[i].forwarded);
        close_one(&w);
    }
    open_one(&w, "pods", "portforward", "web");
    assert_int_equal(proxy_read_target(&w.call, &w.r, &w.err), 0);
    assert_int_equal(
        proxy_read_options(
            &w.call,
            json_object(w.arena, JSON("ports", json_array(w.arena, json_new_i64(w.arena, -1)))),
            &w.r, &w.err),
        -1);
    close_one(&w);
}

/* ---- headers ---- */

static bool goes_on(const struct world_of_one *w, const char *name)
{
    for (size_t i = 0; i < w->r.n_headers; i++)
        if (str_eqc(w->r.headers[i].name, name))
            return true;
    return false;
}

static void test_headers(void **state)
{
    static const struct net_header sent[] = {
        {STR("host"), STR("x")},
        {STR("authorization"), STR("Bearer t")},
        {STR("impersonate-user"), STR("root")},
        {STR("x-remote-user"), STR("root")},
        {STR("x-forwarded-for"), STR("1.2.3.4")},
        {STR("connection"), STR("Upgrade, X-Hop")},
        {STR("x-hop"), STR("1")},
        {STR("upgrade"), STR("websocket")},
        {STR("x-mine"), STR("1")},
        {STR("sec-websocket-key"), STR("k")},
        {STR("sec-websocket-protocol"),
         STR("base64url.bearer.authorization.k8s.io.dG9rZW4, v5.channel.k8s.io")},
    };
    static const char *const never[] = {
        "host",  "authorization", "impersonate-user", "x-remote-user",
        "x-hop", "connection",    "x-forwarded-for",  "upgrade"};
    struct world_of_one w;

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        open_one(&w, "pods", whole ? "proxy" : "exec", "web");
        w.request.headers = sent;
        w.request.n_headers = COUNT(sent);
        w.r.kind = whole ? PROXY_POD : PROXY_EXEC;
        proxy_read_headers(&w.call, &w.r);
        assert_str(w.r.upgrade, "websocket");
        for (size_t i = 0; i < COUNT(never); i++)
            assert_false(goes_on(&w, never[i]));
        assert_true(goes_on(&w, "sec-websocket-key"));
        assert_int_equal(goes_on(&w, "x-mine"), whole);
        for (size_t i = 0; i < w.r.n_headers; i++)
            if (str_eqc(w.r.headers[i].name, "sec-websocket-protocol"))
                assert_str(w.r.headers[i].value, "v5.channel.k8s.io");
        close_one(&w);
    }
}

static void test_answer_headers(void **state)
{
    static const struct net_header from[] = {{STR("audit-id"), STR("1")},
                                             {STR("upgrade"), STR("websocket")},
                                             {STR("transfer-encoding"), STR("chunked")},
                                             {STR("content-type"), STR("text/html")}};
    struct world_of_one w;
    const struct net_header *list;
    size_t n;

    (void)state;
    open_one(&w, "pods", "log", "web");
    list = proxy_answer_headers(&w.call, NULL, 0, false, &n);
    assert_int_equal(n, 2);
    assert_str(list[0].value, "text/plain");
    list = proxy_answer_headers(&w.call, from, 4, false, &n);
    assert_int_equal(n, 2);
    assert_str(list[0].value, "text/html");
    assert_str(list[1].name, "cache-control");
    list = proxy_answer_headers(&w.call, from, 4, true, &n);
    assert_int_equal(n, 2);
    assert_str(list[0].name, "upgrade");
    close_one(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_container_log),
        cmocka_unit_test(test_log_options),
        cmocka_unit_test(test_log_refusals),
        cmocka_unit_test(test_stream_options),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_changed_connections),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_answer_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
