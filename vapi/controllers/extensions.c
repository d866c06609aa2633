/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an extension API server answers: the condition Available of every APIService with a
 * service, and what that server says it serves. A check is one GET of its discovery document, after
 * every change of what it depends on and every half a minute; after a failure sooner, less and less
 * often. Without such APIServices nothing is checked. Must not let one server delay another's
 * check, or take a document from a server whose certificate is not the APIService's. Source:
 * kube-aggregator pkg/controllers/status/remote.
 *
 *   Service, port, endpoints -> GET -+- answered -> Passed, or its bad status
 *                                    '- no answer -> again, ATTEMPTS in all -> failed */
#include "slices.h"
#include "util.h"

#include "../extension/extension.h"

#include <sublet/clock.h>
#include <sublet/encode.h>

#define CHECK_MS       30000
#define FIRST_RETRY_MS 1000
#define CALM_MS        100
#define TIMEOUT_MS     5000
#define ATTEMPTS       3

struct check {
    struct reconcile *run;
    const struct resource *resource;
    cJSON *object, *as_read;
    struct extension x;
    struct str url;
    unsigned attempts;
    int status;
    struct buf body;
};

/* --- the result --- */

static void commit(struct check *k)
{
    controller_status_commit(k->run, k->resource, k->object, k->as_read);
}

static void set(struct check *k, bool available, const char *reason, struct str message)
{
    condition_set(reconcile_arena(k->run), k->object, "Available", available ? "True" : "False",
                  reason, message, reconcile_now_s(k->run));
    commit(k);
}

/* What can only change with an object is not checked again by time. */
static void decide(struct check *k, const char *reason, struct str message)
{
    extension_keep(reconcile_api(k->run), &k->x, NULL);
    set(k, false, reason, message);
}

/* As long after a failure as it lasts. */
static int64_t retry_ms(const struct check *k)
{
    const cJSON *condition = condition_of(k->object, "Available");
    int64_t us, since_ms = 0;

    if (time_parse(json_str(json_get(condition, "lastTransitionTime")), &us))
        since_ms = (reconcile_now_s(k->run) - us / 1000000) * 1000;
    if (since_ms < FIRST_RETRY_MS)
        return FIRST_RETRY_MS;
    return since_ms < CHECK_MS ? since_ms : CHECK_MS;
}

static void fail(struct check *k, struct str message)
{
    decide(k, "FailedDiscoveryCheck", message);
    reconcile_again_after(k->run, retry_ms(k));
}

static void succeed(struct check *k)
{
    struct arena *a = reconcile_arena(k->run);
    extension_keep(reconcile_api(k->run), &k->x,
                   k->body.failed ? NULL : extension_resources(a, buf_str(&k->body)));
    set(k, true, "Passed", STR("all checks passed"));
    reconcile_again_after(k->run, CHECK_MS);
}

/* --- the call --- */

static void ask(struct check *k);

static void on_head(void *ctx, int status, const struct net_header *headers, size_t n)
{
    struct check *k = ctx;

    (void)headers;
    (void)n;
    k->status = status;
}

static void on_data(void *ctx, struct str bytes)
{
    struct check *k = ctx;

    buf_add(&k->body, bytes);
}

static bool is_again(struct check *k, const struct err *err)
{
    return ++k->attempts < ATTEMPTS && err->kind != &ERR_TIMEOUT;
}

static void judge(struct check *k, const struct err *err)
{
    struct arena *a = reconcile_arena(k->run);

    if (err)
        fail(k, arena_printf(a, "failing or missing response from %.*s: Get \"%.*s\": %.*s",
                             STR_F(k->url), STR_F(k->url), STR_F(err->message)));
    else if (k->status < 200 || k->status >= 300)
        fail(k, arena_printf(a, "failing or missing response from %.*s: bad status from %.*s: %d",
                             STR_F(k->url), STR_F(k->url), k->status));
    else
        succeed(k);
}

/* The APIService is as it was when the check began: a later version checks again. */
static void on_end(void *ctx, const struct err *err)
{
    struct check *k = ctx;
    struct reconcile *r = k->run;

    if (err && is_again(k, err)) {
        buf_fini(&k->body);
        ask(k);
    } else {
        judge(k, err);
        buf_fini(&k->body);
    }
    reconcile_release(r, NULL);
}

/* Holds the run once more until the end of the call. */
static void ask(struct check *k)
{
    static const struct forward_events events = {on_head, on_data, on_end};
    const struct net_header accept = {STR("accept"), STR("application/json")};
    const struct str masters = STR("system:masters");
    const struct user aggregator = {
        .name = STR("system:kube-aggregator"), .groups = &masters, .n_groups = 1};
    struct arena *a = reconcile_arena(k->run);
    const struct extension_request q = {
        .method = "GET",
        .path = arena_printf(a, "/apis/%.*s/%.*s", STR_F(k->x.group), STR_F(k->x.version)),
        .user = &aggregator,
        .headers = &accept,
        .n_headers = 1,
        .timeout_ms = TIMEOUT_MS};
    struct err err;

    err_init(&err, a);
    k->body = BUF_INIT(EXTENSION_MOST_DISCOVERY);
    k->status = 0;
    if (extension_open(reconcile_api(k->run), &k->x, &q, &events, k, &err))
        reconcile_hold(k->run);
    else
        fail(k, err.message);
}

/* --- what is known without a call --- */

static cJSON *slices_of(struct check *k)
{
    struct arena *a = reconcile_arena(k->run);
    struct selector s;

    if (selector_parse(a, arena_printf(a, SLICE_SERVICE "=%.*s", STR_F(k->x.service)), &s, NULL))
        return NULL;
    return reconcile_list(k->run, reconcile_resource(k->run, "discovery.k8s.io", "endpointslices"),
                          k->x.ns, &s);
}

static bool has_ready(const cJSON *slice)
{
    json_each(endpoint, json_get(slice, "endpoints"))
    {
        const cJSON *ready = json_path(endpoint, "conditions.ready");

        if (!json_is_bool(ready) || json_true(ready))
            return true;
    }
    return false;
}

/* A port without a name is one with an empty name. */
static bool has_port(const cJSON *slice, struct str name)
{
    json_each(port, json_get(slice, "ports"))
    {
        if (str_eq(json_str(json_get(port, "name")), name) && json_get(port, "port"))
            return true;
    }
    return false;
}

static bool check_endpoints(struct check *k, struct str port_name)
{
    struct arena *a = reconcile_arena(k->run);
    const cJSON *slices = slices_of(k);

    if (!json_count(slices)) {
        decide(k, "EndpointsNotFound",
               arena_printf(a, "cannot find endpointslices for service/%.*s in %.*s",
                            STR_F(k->x.service), STR_F(go_quote(a, k->x.ns))));
        return false;
    }
    json_each(slice, slices)
    {
        if (has_ready(slice) && has_port(slice, port_name))
            return true;
    }
    decide(k, "MissingEndpoints",
           arena_printf(a,
                        "endpointslices for service/%.*s in %.*s have no addresses with port name "
                        "%.*s",
                        STR_F(k->x.service), STR_F(go_quote(a, k->x.ns)),
                        STR_F(go_quote(a, port_name))));
    return false;
}

static const cJSON *port_of(const cJSON *service, int64_t number)
{
    json_each(port, json_path(service, "spec.ports"))
    {
        if (json_i64_at(port, "port", 0) == number)
            return port;
    }
    return NULL;
}

static bool check_service(struct check *k, const cJSON *service)
{
    struct arena *a = reconcile_arena(k->run);
    const cJSON *port = port_of(service, k->x.port);

    if (!service)
        decide(k, "ServiceNotFound",
               arena_printf(a, "service/%.*s in %.*s is not present", STR_F(k->x.service),
                            STR_F(go_quote(a, k->x.ns))));
    else if (!str_eqc(json_str_at(service, "spec.type"), "ClusterIP"))
        return true;
    else if (!port)
        decide(k, "ServicePortError",
               arena_printf(a, "service/%.*s in %.*s is not listening on port %lld",
                            STR_F(k->x.service), STR_F(go_quote(a, k->x.ns)),
                            (long long)k->x.port));
    else
        return check_endpoints(k, json_str(json_get(port, "name")));
    return false;
}

static void check_used(struct check *k)
{
    struct arena *a = reconcile_arena(k->run);
    const cJSON *service =
        reconcile_get(k->run, reconcile_resource(k->run, "", "services"), k->x.ns, k->x.service);
    struct str ip = json_str_at(service, "spec.clusterIP");
    bool v6 = str_find(ip, ':') < ip.n;

    if (!check_service(k, service))
        return;
    k->url =
        arena_printf(a, "https://%s%.*s%s:%lld/apis/%.*s/%.*s", v6 ? "[" : "", STR_F(ip),
                     v6 ? "]" : "", (long long)k->x.port, STR_F(k->x.group), STR_F(k->x.version));
    ask(k);
}

static void extension_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    struct check *k = ARENA_NEW(a, struct check);
    struct str ignored, name;

    if (!key_split(reconcile_key(r), &ignored, &name))
        return;
    *k = (struct check){.run = r};
    k->resource = reconcile_resource(r, "apiregistration.k8s.io", "apiservices");
    k->object = reconcile_get(r, k->resource, STR(""), name);
    if (!k->object || !extension_read(reconcile_api(r), a, k->object, &k->x)) {
        extension_forget(reconcile_api(r), name);
        return;
    }
    k->as_read = json_copy(a, k->object);
    if (extension_is_used(reconcile_api(r), name)) {
        check_used(k);
        return;
    }
    extension_forget(reconcile_api(r), name);
    set(k, false, "FailedDiscoveryCheck",
        arena_printf(a, "only %d APIServices with a service are used, by their names",
                     EXTENSION_MOST));
}

/* --- events --- */

/* The check writes the status itself. */
static bool is_of_spec(const struct store_event *e)
{
    struct arena *a;
    bool ret;

    if (e->type != STORE_MODIFIED || !e->previous)
        return true;
    a = arena_new(0);
    ret = !json_equal(json_get(vapi_tree(a, e->object), "spec"),
                      json_get(vapi_tree(a, e->previous), "spec"));
    arena_free(a);
    return ret;
}

static bool is_remote(const struct store_object *o)
{
    return o && str_contains(o->bytes, STR("\"service\":{"));
}

static void map_api_service(struct controller *c, const struct store_event *e)
{
    if ((is_remote(e->object) || is_remote(e->previous)) && is_of_spec(e))
        controller_map_self(c, e);
}

static void add_of_service(struct controller *c, struct str ns, struct str name)
{
    struct extension *list;
    struct arena *a;
    size_t n;

    if (!controller_api(c)->extensions)
        return; /* none was checked */
    a = arena_new(0);
    n = extension_list(controller_api(c), a, &list);
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i].ns, ns) && str_eq(list[i].service, name))
            controller_add_after(c, key_join(a, STR(""), list[i].name), CALM_MS);
    arena_free(a);
}

static void map_service(struct controller *c, const struct store_event *e)
{
    add_of_service(c, e->object->ns, e->object->name);
}

static void map_slice(struct controller *c, const struct store_event *e)
{
    struct arena *a;

    if (!controller_api(c)->extensions)
        return;
    a = arena_new(0);
    add_of_service(
        c, e->object->ns,
        json_str(json_get(json_path(vapi_tree(a, e->object), "metadata.labels"), SLICE_SERVICE)));
    arena_free(a);
}

static const struct controller_source SOURCES[] = {
    {"apiregistration.k8s.io", "apiservices", map_api_service},
    {"", "services", map_service},
    {"discovery.k8s.io", "endpointslices", map_slice},
    {NULL, NULL, NULL},
};

const struct controller_def EXTENSION_CONTROLLER = {
    .name = "apiservice-availability-controller",
    .sources = SOURCES,
    .reconcile = extension_reconcile,
    .workers = 4,
};
