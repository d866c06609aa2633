/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension API servers: the condition of their APIServices, how often they are called, what is
 * kept of what they serve, and as whom they see a user. Words are compared with a kube-apiserver in
 * tests/integration/test_aggregation.py. */

#include "controller_world.h"

#include "../../../vapi/extension/extension.h"

#include <stdio.h>
#include <string.h>

#include <uv.h>

#include <sublet/pki.h>
#include <sublet/vapi_hooks.h>

#define SERVICES "apiservices.apiregistration.k8s.io"
#define REMOTE                                                                                     \
    "{'metadata':{'name':'v1.x.dev'},'spec':{'group':'x.dev','version':'v1',"                      \
    "'groupPriorityMinimum':1000,'versionPriority':15,'insecureSkipTLSVerify':true,'service':{"    \
    "'namespace':'n','name':'s','port':8443}}}"
#define SERVICE                                                                                    \
    "{'metadata':{'name':'s'},'spec':{'selector':{'a':'b'},'clusterIP':'10.96.0.9','ports':[{"     \
    "'name':'api','port':8443}]}}"
#define POD                                                                                        \
    "{'metadata':{'name':'p','labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}" \
    "}"
#define LIST                                                                                       \
    "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"x.dev/v1\","           \
    "\"resources\":[{\"name\":\"gauges\",\"singularName\":\"gauge\",\"namespaced\":true,"          \
    "\"kind\":\"Gauge\",\"verbs\":[\"get\",\"list\"],\"shortNames\":[\"gg\"]},"                    \
    "{\"name\":\"gauges/reset\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Reset\","     \
    "\"group\":\"y.dev\",\"version\":\"v2\",\"verbs\":[\"create\"]}]}"

/* ---- a server, as the hook shows it ---- */

struct forward {
    uv_timer_t timer;
    struct forward_events events;
    void *ctx;
    bool insecure;
};

static struct {
    size_t calls, verified, open;
    int status;          /* of every answer */
    struct str body;     /* p NULL: LIST */
    const char *failure; /* message, in place of an answer */
    bool only_verified;  /* failure is of verified calls */
    bool refuse;
    char asked[256], user[64], group[64];
} SERVER;

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void close_forward(struct forward *f)
{
    SERVER.open--;
    uv_close((uv_handle_t *)&f->timer, on_closed);
}

static void pause_forward(struct forward *f, bool pause)
{
    (void)f;
    (void)pause;
}

static void on_timer(uv_timer_t *timer)
{
    struct forward *f = timer->data;
    struct forward_events events = f->events;
    void *ctx = f->ctx;
    bool fails = SERVER.failure && !(SERVER.only_verified && f->insecure);
    struct err err;

    close_forward(f);
    if (fails) {
        err_init(&err, NULL);
        err_set(&err, &ERR_UNAVAILABLE, "%s", SERVER.failure);
        events.end(ctx, &err);
        return;
    }
    events.head(ctx, SERVER.status, NULL, 0);
    events.data(ctx, SERVER.body.p ? SERVER.body : STR(LIST));
    events.end(ctx, NULL);
}

static void print_header(const struct forward_request *q, const char *name, char *out, size_t size)
{
    for (size_t i = 0; i < q->n_headers; i++)
        if (str_eqc(q->headers[i].name, name))
            snprintf(out, size, "%.*s", STR_F(q->headers[i].value));
}

static struct forward *open_forward(void *ctx, const struct forward_request *q,
                                    const struct forward_events *events, void *events_ctx,
                                    struct err *err)
{
    struct forward *f;

    (void)ctx;
    SERVER.calls++;
    SERVER.verified += !q->insecure;
    if (SERVER.refuse) {
        err_set(err, &ERR_FORBIDDEN, "not yours");
        return NULL;
    }
    f = NEW(struct forward);
    *f = (struct forward){.events = *events, .ctx = events_ctx, .insecure = q->insecure};
    uv_timer_init(vapi_loop(world_api(W)), &f->timer);
    f->timer.data = f;
    uv_timer_start(&f->timer, on_timer, 0, 0);
    SERVER.open++;
    snprintf(SERVER.asked, sizeof(SERVER.asked), "%s %.*s of %.*s/%.*s:%lld", q->method,
             STR_F(q->path), STR_F(q->ns), STR_F(q->service), (long long)q->port);
    print_header(q, "X-Remote-User", SERVER.user, sizeof(SERVER.user));
    print_header(q, "X-Remote-Group", SERVER.group, sizeof(SERVER.group));
    assert_true(q->certificate.n && q->key.n);
    return f;
}

static int set_up(void **state)
{
    static const struct forward_ops ops = {open_forward, pause_forward, close_forward};
    struct vapi_hooks hooks;

    memset(&SERVER, 0, sizeof(SERVER));
    SERVER.status = 200;
    if (world_set_up(state))
        return -1;
    hooks = *vapi_get_hooks(world_api(W));
    hooks.forward = &ops;
    vapi_set_hooks(world_api(W), &hooks);
    return 0;
}
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)

/* ---- the condition ---- */

static const cJSON *available(void)
{
    const cJSON *conditions =
        json_path(world_get(W, SERVICES, "", "v1.x.dev"), "status.conditions");

    assert_int_equal(json_count(conditions), 1);
    return json_at(conditions, 0);
}

static void assert_condition(const char *status, const char *reason, const char *message)
{
    assert_str(json_str_at(available(), "status"), status);
    assert_str(json_str_at(available(), "reason"), reason);
    assert_str(json_str_at(available(), "message"), message);
}

static void create_all(void)
{
    world_create(W, "services", "n", SERVICE);
    world_create(W, "pods", "n", POD);
    world_create(W, SERVICES, "", REMOTE);
    world_pass(W, 1);
}

static void conditions_say_what_is_missing(void **state)
{
    (void)state;
    world_create(W, SERVICES, "", REMOTE);
    world_settle(W);
    assert_condition("False", "ServiceNotFound", "service/s in \"n\" is not present");
    world_create(W, "services", "n",
                 "{'metadata':{'name':'s'},'spec':{'selector':{'a':'b'},'ports':[{'name':'api',"
                 "'port':1}]}}");
    world_pass(W, 1);
    assert_condition("False", "ServicePortError",
                     "service/s in \"n\" is not listening on port 8443");
    world_patch(W, "services", "n", "s", "{'spec':{'ports':[{'name':'api','port':8443}]}}");
    world_pass(W, 1);
    assert_condition("False", "MissingEndpoints",
                     "endpointslices for service/s in \"n\" have no addresses with port name "
                     "\"api\"");
    assert_int_equal(SERVER.calls, 0);
    world_create(W, "pods", "n", POD);
    world_pass(W, 2);
    assert_condition("True", "Passed", "all checks passed");
    assert_str(str_c(SERVER.asked), "GET /apis/x.dev/v1 of n/s:8443");
    assert_str(str_c(SERVER.user), "system:kube-aggregator");
    assert_str(str_c(SERVER.group), "system:masters");
}

static void a_check_is_repeated_by_time(void **state)
{
    size_t before;

    (void)state;
    create_all();
    before = SERVER.calls;
    world_pass(W, 29);
    assert_int_equal(SERVER.calls, before);
    world_pass(W, 61);
    assert_int_equal(SERVER.calls, before + 3);
    world_delete(W, SERVICES, "", "v1.x.dev", NULL);
    world_pass(W, 60);
    assert_int_equal(SERVER.calls, before + 3);
}

static void a_port_may_have_no_name(void **state)
{
    (void)state;
    world_create(W, "services", "n",
                 "{'metadata':{'name':'s'},'spec':{'selector':{'a':'b'},'ports':[{'port':8443}]}}");
    world_create(W, "pods", "n", POD);
    world_create(W, SERVICES, "", REMOTE);
    world_pass(W, 1);
    assert_condition("True", "Passed", "all checks passed");
}

static void without_extensions_nothing_is_called_or_kept(void **state)
{
    (void)state;
    world_create(W, "services", "n", SERVICE);
    world_create(W, "pods", "n", POD);
    world_pass(W, 120);
    assert_int_equal(SERVER.calls, 0);
    assert_null(world_api(W)->extensions);
}

static void failures_are_retried_less_and_less_often(void **state)
{
    size_t first;

    (void)state;
    SERVER.failure = "dial tcp 10.96.0.9:8443: connect: connection refused";
    create_all();
    assert_str(json_str_at(available(), "reason"), "FailedDiscoveryCheck");
    assert_true(str_has_prefix(json_str_at(available(), "message"),
                               STR("failing or missing response from https://")));
    assert_true(str_contains(json_str_at(available(), "message"),
                             STR(":8443/apis/x.dev/v1\": dial tcp 10.96.0.9:8443: connect: "
                                 "connection refused")));
    world_pass(W, 120);
    first = SERVER.calls;
    assert_true(first < 50);
    world_pass(W, 120);
    assert_in_range(SERVER.calls - first, 9, 15); /* four or five times, with all attempts */
    SERVER.failure = NULL;
    world_pass(W, 31);
    assert_condition("True", "Passed", "all checks passed");
}

static void bad_statuses_and_refusals(void **state)
{
    (void)state;
    SERVER.status = 403;
    create_all();
    assert_true(str_contains(json_str_at(available(), "message"), STR(": bad status from https:")));
    assert_true(str_contains(json_str_at(available(), "message"), STR("/apis/x.dev/v1: 403")));
    SERVER.refuse = true;
    world_pass(W, 31);
    assert_condition("False", "FailedDiscoveryCheck", "not yours");
}

static void another_certificate(void **state)
{
    (void)state;
    SERVER.failure = "tls: failed to verify certificate: x";
    SERVER.only_verified = true;
    create_all();
    assert_condition("True", "Passed", "all checks passed");
    world_patch(W, SERVICES, "", "v1.x.dev", "{'spec':{'insecureSkipTLSVerify':false}}");
    world_pass(W, 1);
    assert_str(json_str_at(available(), "reason"), "FailedDiscoveryCheck");
    assert_true(SERVER.verified > 0);
}

/* ---- documents ---- */

static void what_is_served_is_kept(void **state)
{
    struct arena *a = world_arena(W);
    struct extension *list;
    struct str before;
    bool stale;

    (void)state;
    create_all();
    assert_int_equal(extension_list(world_api(W), a, &list), 1);
    before = arena_str(a, extension_kept(world_api(W), &list[0], &stale));
    assert_false(stale);
    assert_true(json_equal(
        world_parse(W, "[{'resource':'gauges','responseKind':{'group':'','version':'','kind':"
                       "'Gauge'},'scope':'Namespaced','singularResource':'gauge','verbs':['get',"
                       "'list'],'shortNames':['gg'],'subresources':[{'subresource':'reset',"
                       "'responseKind':{'group':'y.dev','version':'v2','kind':'Reset'},'verbs':["
                       "'create']}]}]"),
        world_parse(W, arena_cstr(a, before))));
    SERVER.failure = "away";
    world_pass(W, 31);
    assert_str(json_str_at(available(), "status"), "False");
    assert_true(str_eq(extension_kept(world_api(W), &list[0], &stale), before));
    assert_true(stale);
    SERVER.failure = NULL;
    SERVER.body = STR("{\"kind\":\"Status\"}");
    world_pass(W, 31);
    assert_str(json_str_at(available(), "status"), "True");
    extension_kept(world_api(W), &list[0], &stale);
    assert_true(stale);
    world_delete(W, SERVICES, "", "v1.x.dev", NULL);
    world_pass(W, 1);
    assert_int_equal(extension_kept(world_api(W), &list[0], &stale).n, 0);
}

static void hostile_documents(void **state)
{
    static const char *const bodies[] = {
        "",
        "[]",
        "{",
        "{\"kind\":\"APIResourceList\"}",
        "{\"kind\":\"APIResourceList\",\"resources\":{}}",
        "{\"kind\":\"APIResourceList\",\"resources\":[1,null,{},{\"name\":1},{\"name\":\"/\"}]}",
        "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"a/\"},{\"name\":\"a\"}]}",
        "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"a\",\"verbs\":1,\"kind\":[]}]}",
    };
    struct arena *a = world_arena(W);

    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++)
        assert_int_equal(extension_resources(a, str_c(bodies[i])) != NULL, i >= 3);
}

/* ---- which ---- */

static void what_is_served_here_is_none(void **state)
{
    struct arena *a = world_arena(W);
    struct extension *list, x;

    (void)state;
    world_create(W, SERVICES, "", REMOTE);
    world_patch(W, SERVICES, "", "v1.apps",
                "{'spec':{'insecureSkipTLSVerify':true,'service':{'namespace':'n','name':'s'}}}");
    world_settle(W);
    assert_int_equal(extension_list(world_api(W), a, &list), 1);
    assert_str(list[0].name, "v1.x.dev");
    assert_false(extension_find(world_api(W), a, STR("apps"), STR("v1"), &x));
    assert_true(extension_find(world_api(W), a, STR("x.dev"), STR("v1"), &x));
    assert_false(extension_find(world_api(W), a, STR("x.dev"), STR("v2"), &x));
    assert_false(x.available);
}

static void the_order_is_upstreams(void **state)
{
    static const struct {
        const char *version, *group;
        int group_priority, version_priority;
    } services[] = {
        {"v1", "b.dev", 100, 10}, {"v2", "b.dev", 100, 10}, {"v1beta1", "b.dev", 100, 20},
        {"v1", "a.dev", 100, 10}, {"v1", "z.dev", 50, 10},  {"v2", "z.dev", 200, 5},
    };
    static const char *const wanted[] = {"v1.z.dev",      "v2.z.dev", "v1.a.dev",
                                         "v1beta1.b.dev", "v2.b.dev", "v1.b.dev"};
    struct arena *a = world_arena(W);
    struct extension *list;

    (void)state;
    for (size_t i = 0; i < COUNT(services); i++)
        world_create(
            W, SERVICES, "",
            arena_printf(a,
                         "{'metadata':{'name':'%s.%s'},'spec':{'group':'%s','version':'%s',"
                         "'groupPriorityMinimum':%d,'versionPriority':%d,'insecureSkipTLSVerify':"
                         "true,'service':{'namespace':'n','name':'s'}}}",
                         services[i].version, services[i].group, services[i].group,
                         services[i].version, services[i].group_priority,
                         services[i].version_priority)
                .p);
    assert_int_equal(extension_list(world_api(W), a, &list), COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_str(list[i].name, wanted[i]);
}

static void their_number_is_bounded(void **state)
{
    struct arena *a = world_arena(W);
    struct extension *list, x;

    (void)state;
    world_create(W, "services", "n", SERVICE);
    world_create(W, "pods", "n", POD);
    for (size_t i = 0; i < EXTENSION_MOST + 1; i++)
        world_create(
            W, SERVICES, "",
            arena_printf(a,
                         "{'metadata':{'name':'v1.x%02zu.dev'},'spec':{'group':'x%02zu.dev',"
                         "'version':'v1','groupPriorityMinimum':100,'versionPriority':10,"
                         "'insecureSkipTLSVerify':true,'service':{'namespace':'n','name':'s',"
                         "'port':8443}}}",
                         i, i)
                .p);
    world_pass(W, 1);
    assert_int_equal(extension_list(world_api(W), a, &list), EXTENSION_MOST);
    assert_true(extension_find(world_api(W), a, STR("x63.dev"), STR("v1"), &x) && x.available);
    assert_false(extension_find(world_api(W), a, STR("x64.dev"), STR("v1"), &x));
    assert_str(
        json_str_at(
            json_at(json_path(world_get(W, SERVICES, "", "v1.x64.dev"), "status.conditions"), 0),
            "message"),
        "only 64 APIServices with a service are used, by their names");
}

/* ---- who ---- */

static bool sends(const struct net_header *list, size_t n, const char *name, const char *value)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found +=
            str_eq_nocase(list[i].name, str_c(name)) && (!value || str_eqc(list[i].value, value));
    return found == 1;
}

static void identity_is_ours_alone(void **state)
{
    struct arena *a = world_arena(W);
    const struct net_header claims[] = {
        {STR("x-remote-user"), STR("root")},
        {STR("x-remote-group"), STR("system:masters")},
        {STR("x-remote-uid"), STR("0")},
        {STR("x-remote-extra-scopes"), STR("all")},
        {STR("authorization"), STR("Bearer t")},
        {STR("cookie"), STR("c")},
        {STR("impersonate-user"), STR("root")},
        {STR("x-forwarded-for"), STR("1.2.3.4")},
        {STR("connection"), STR("close")},
        {STR("accept"), STR("application/json")},
        {STR("x-custom"), STR("")},
    };
    const struct str groups[] = {STR("dev"), STR("system:authenticated")};
    struct user user = {.name = STR("jane"),
                        .uid = STR("u-1"),
                        .groups = groups,
                        .n_groups = 2,
                        .extra = world_parse(W, "{'Example.com/Key':['1','2']}")};
    struct extension_request q = {
        .method = "GET", .user = &user, .headers = claims, .n_headers = COUNT(claims)};
    const struct net_header *list;
    struct err err;
    size_t n;

    (void)state;
    err_init(&err, a);
    assert_int_equal(extension_headers(a, &q, &list, &n, &err), 0);
    assert_int_equal(n, 8);
    assert_true(sends(list, n, "x-remote-user", "jane") && sends(list, n, "x-remote-user", NULL));
    assert_true(sends(list, n, "x-remote-uid", "u-1") && sends(list, n, "x-remote-uid", NULL));
    assert_true(sends(list, n, "x-remote-group", "dev"));
    assert_true(sends(list, n, "x-remote-group", "system:authenticated"));
    assert_true(sends(list, n, "x-remote-extra-example.com%2fkey", "1"));
    assert_true(sends(list, n, "x-remote-extra-example.com%2fkey", "2"));
    assert_true(sends(list, n, "accept", NULL) && sends(list, n, "x-custom", ""));
    user.name = STR("jane\r\nX-Remote-Group: system:masters");
    assert_int_equal(extension_headers(a, &q, &list, &n, &err), -1);
    assert_str(err.message, "net/http: invalid header field value for \"X-Remote-User\"");
}

/* ---- how many ---- */

static void on_head(void *ctx, int status, const struct net_header *headers, size_t n)
{
    (void)ctx;
    (void)status;
    (void)headers;
    (void)n;
}

static void on_data(void *ctx, struct str bytes)
{
    (void)ctx;
    (void)bytes;
}

static void on_end(void *ctx, const struct err *err)
{
    (void)ctx;
    (void)err;
}

static void calls_at_once_are_bounded(void **state)
{
    static const struct forward_events events = {on_head, on_data, on_end};
    struct extension_call *calls[EXTENSION_MOST_CALLS];
    struct extension x = {.ns = STR("n"), .port = 443};
    const struct extension_request q = {.method = "GET", .path = STR("/"), .user = &USER_INTERNAL};
    struct arena *a = world_arena(W);
    struct err err;

    (void)state;
    err_init(&err, a);
    for (size_t i = 0; i < EXTENSION_MOST_CALLS; i++) {
        x.service = arena_printf(a, "s%zu", i / EXTENSION_MOST_CALLS_OF);
        calls[i] = extension_open(world_api(W), &x, &q, &events, NULL, &err);
        assert_non_null(calls[i]);
    }
    x.service = STR("another");
    assert_null(extension_open(world_api(W), &x, &q, &events, NULL, &err));
    assert_ptr_equal(err.kind, &ERR_TOO_MANY_REQUESTS);
    assert_int_equal(err.retry_after, 1);
    extension_close(calls[0]);
    x.service = STR("s1");
    err_clear(&err);
    assert_null(extension_open(world_api(W), &x, &q, &events, NULL, &err));
    x.service = STR("another");
    err_clear(&err);
    calls[0] = extension_open(world_api(W), &x, &q, &events, NULL, &err);
    assert_non_null(calls[0]);
    for (size_t i = 0; i < EXTENSION_MOST_CALLS; i++)
        extension_close(calls[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(conditions_say_what_is_missing),
        TEST(a_check_is_repeated_by_time),
        TEST(a_port_may_have_no_name),
        TEST(without_extensions_nothing_is_called_or_kept),
        TEST(failures_are_retried_less_and_less_often),
        TEST(bad_statuses_and_refusals),
        TEST(another_certificate),
        TEST(what_is_served_is_kept),
        TEST(hostile_documents),
        TEST(what_is_served_here_is_none),
        TEST(the_order_is_upstreams),
        TEST(their_number_is_bounded),
        TEST(identity_is_ours_alone),
        TEST(calls_at_once_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
