/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * From an HTTP request to a call with its handler. The order is upstream's: authentication,
 * authorization, resource, form of the answer, options, body. It must never reveal whether
 * something exists to a client without permission, so everything but the path is read after
 * authorization. */
#include "request.h"

#include "../flow/flow.h"
#include "../observe/observe.h"
#include "../respond/respond.h"

#include <assert.h>

#include <sublet/admission.h>
#include <sublet/crd.h>
#include <sublet/net.h>

#define MAX_AUDIT_ID 1024 /* bytes; it is part of each event of the audit log */

struct route {
    struct call *call;
    struct target target;
    struct query query;
    struct auth_wait wait; /* for keys of the token's issuer */
    struct err err;
};

static const struct verb_bit {
    const char *name;
    enum call_verb verb;
    unsigned bit;
} VERBS[] = {
    {"get", CALL_GET, VERB_GET},
    {"list", CALL_LIST, VERB_LIST},
    {"watch", CALL_WATCH, VERB_WATCH},
    {"create", CALL_CREATE, VERB_CREATE},
    {"update", CALL_UPDATE, VERB_UPDATE},
    {"patch", CALL_PATCH, VERB_PATCH},
    {"delete", CALL_DELETE, VERB_DELETE},
    {"deletecollection", CALL_DELETECOLLECTION, VERB_DELETECOLLECTION},
};
#define N_VERBS COUNT(VERBS)

/* OPTIONS has no verb of the API. Its handler is that of a read; access is decided on no verb. */
static const struct verb_bit NO_VERB = {"", CALL_GET, VERB_GET};

static const struct verb_bit *find_verb(const char *name)
{
    for (size_t i = 0; i < N_VERBS; i++)
        if (str_eqc(str_c(name), VERBS[i].name))
            return &VERBS[i];
    return NULL;
}

/* ---- refusals ---- */

static int no_such_method(struct err *err)
{
    return err_set(err, &ERR_METHOD_NOT_ALLOWED,
                   "the server does not allow this method on the requested resource");
}

/* The routes of upstream's router, besides /apis/GROUP and /apis/GROUP/VERSION: below these it
 * knows the resources and answers with Statuses; at these paths themselves it accepts only GET. */
static const char *const ROUTED[] = {"/api", "/version", "/openid/v1/jwks",
                                     "/.well-known/openid-configuration"};

/* The group of /apis/GROUP/...; STR_NULL when nothing follows it. */
static struct str group_of(struct str path, struct str *ret_rest)
{
    struct str rest = path, group;

    if (!str_has_prefix(path, STR("/apis/")))
        return STR_NULL;
    rest = str_from(path, 6);
    group = str_cut(&rest, '/');
    *ret_rest = rest;
    return rest.p ? group : STR_NULL;
}

static bool is_routed(struct route *r)
{
    struct str path = r->target.path, rest, group = group_of(path, &rest);

    for (size_t i = 0; i < COUNT(ROUTED); i++) {
        struct str root = str_c(ROUTED[i]);

        if (str_has_prefix(path, root) && path.n > root.n && path.p[root.n] == '/')
            return true;
    }
    return group.n && registry_has_group(vapi_registry(r->call->api), group, STR(""));
}

/* A list of versions or resources, the version, the keys. */
static bool reads_only(struct route *r)
{
    struct str path = r->target.path, rest, group;

    if (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    for (size_t i = 0; i < COUNT(ROUTED); i++)
        if (str_eqc(path, ROUTED[i]))
            return true;
    group = group_of(path, &rest);
    return str_eqc(path, "/api/v1") ||
           (group.n && registry_has_group(vapi_registry(r->call->api), group, rest));
}

static void answer_unknown(struct route *r)
{
    if (!is_routed(r)) {
        respond_text(r->call, 404, "404 page not found\n");
        return;
    }
    err_set(&r->err, &ERR_NOT_FOUND, "the server could not find the requested resource");
    call_error(r->call, &r->err);
}

/* ---- target and attributes ---- */

/* A GET without a name is a list or a watch; a field selector on one name restricts the request to
 * that name. */
static void refine_verb(struct route *r)
{
    struct target *t = &r->target;
    struct str watch = query_get(&r->query, "watch");
    struct str fields = query_get(&r->query, "fieldSelector");
    struct selector s;

    if (!t->is_resource || t->name.n)
        return;
    if (str_eqc(str_c(t->verb), "get"))
        t->verb = watch.p && query_truth(watch) ? "watch" : "list";
    else if (str_eqc(str_c(t->verb), "delete"))
        t->verb = "deletecollection";
    if (!fields.n || !(str_eqc(str_c(t->verb), "list") || str_eqc(str_c(t->verb), "watch")) ||
        selector_parse_fields(r->call->arena, fields, &s, NULL))
        return;
    for (size_t i = 0; i < s.n; i++)
        if (str_eqc(s.terms[i].key, "metadata.name") && s.terms[i].op == SEL_EQ &&
            !name_check_path_segment(s.terms[i].values[0]))
            t->name = s.terms[i].values[0];
}

static int authorize(struct route *r)
{
    struct target *t = &r->target;
    struct call *c = r->call;
    struct attributes what = request_attributes(t);
    struct str reason = STR_NULL, general = what.subresource;
    bool allowed;

    if (t->of_kubelet)
        what.subresource = request_kubelet_subresource(t->rest);
    allowed = auth_authorize(vapi_auth(c->api), c->arena, &c->user, &what, &reason);
    if (!allowed && t->of_kubelet && request_kubelet_is_part(t->rest)) {
        what.subresource = general;
        allowed = auth_authorize(vapi_auth(c->api), c->arena, &c->user, &what, &reason);
    }
    audit_authorized(c, allowed, reason);
    if (allowed)
        return 0;
    return auth_forbidden(&r->err, c->arena, &c->user, &what, reason);
}

/* ---- resource look-up ---- */

/* Connections (log, exec, proxy, ...): their bodies are no objects. */
static bool is_connection(const struct subresource *s)
{
    return s && s->kind == SUB_PROXY;
}

static bool has_paths_below(const struct subresource *s)
{
    return is_connection(s) && str_eqc(str_c(s->name), "proxy");
}

/* Reviews and Bindings are only created: none has a path of its own. */
static bool name_has_path(const struct resource *res, const struct subresource *sub,
                          const struct target *t)
{
    return !t->path_name.n || sub || res->verbs & VERBS_BY_NAME;
}

/* Whether the URL has a form this resource serves. */
static bool shape_exists(const struct resource *res, const struct subresource *sub,
                         const struct target *t)
{
    bool in_namespace = t->ns.n && !(str_eqc(t->resource, "namespaces") && str_eq(t->ns, t->name));

    /* Deprecated prefixes: /watch/ ends at a name, /proxy/ was removed. */
    if (t->by_path_watch ? t->sub.n || !(res->verbs & VERB_WATCH)
                         : str_eqc(str_c(t->verb), "proxy"))
        return false;
    if (!resource_namespaced(res) && in_namespace)
        return false;
    if (resource_namespaced(res) && !t->ns.n && t->path_name.n)
        return false;
    /* Across namespaces there are only reads, and some resources have none. */
    if (resource_namespaced(res) && !t->ns.n && !(res->verbs & VERBS_READ))
        return false;
    if (!name_has_path(res, sub, t))
        return false;
    if (t->sub.n && (!sub || !t->path_name.n))
        return false;
    return !t->rest.n || has_paths_below(sub);
}

/* Proxies forward every method they know; elsewhere HEAD and OPTIONS are not served. Source:
 * k8s.io/kubernetes pkg/registry/core/{pod,service,node}/rest, proxyMethods. */
static bool method_routed(const struct subresource *sub, enum net_method method)
{
    return has_paths_below(sub) || (method != NET_HEAD && method != NET_OPTIONS);
}

/* Across namespaces only reads are allowed. A POST names its object in the body, unless it is to a
 * subresource; a PUT or PATCH in the path. */
static bool method_allowed(const struct resource *res, const struct subresource *sub,
                           const struct target *t, const struct verb_bit *verb)
{
    unsigned verbs = sub ? sub->verbs : res->verbs;

    if (t->by_path_watch && t->method != NET_GET)
        return false;
    if (!method_routed(sub, t->method))
        return false;
    if (!verb || !(verbs & verb->bit))
        return false;
    if (verb->verb == CALL_CREATE && t->path_name.n && !sub)
        return false;
    if ((verb->verb == CALL_UPDATE || verb->verb == CALL_PATCH) && !t->path_name.n)
        return false;
    return !resource_namespaced(res) || t->ns.n || verb->verb == CALL_LIST ||
           verb->verb == CALL_WATCH;
}

/* FOUND sets c->resource; REFUSED: 405. */
enum look_up { FOUND, UNKNOWN, REFUSED };

static enum look_up find_resource(struct route *r)
{
    struct call *c = r->call;
    struct target *t = &r->target;
    const struct resource *res =
        registry_find(vapi_registry(c->api), t->group, t->version, t->resource);
    const struct subresource *sub = res && t->sub.n ? resource_sub(res, t->sub) : NULL;
    const struct verb_bit *verb = t->method == NET_OPTIONS ? &NO_VERB : find_verb(t->verb);

    if (!res || !shape_exists(res, sub, t))
        return UNKNOWN;
    if (!method_allowed(res, sub, t, verb)) {
        (void)no_such_method(&r->err);
        return REFUSED;
    }
    c->resource = res;
    c->sub = sub;
    c->verb = verb->verb;
    return FOUND;
}

/* A name must be valid as the last part of a path. */
static int check_name(const struct call *c, struct err *err)
{
    const char *why = c->name.n ? name_check_path_segment(c->name) : NULL;

    if (!why)
        return 0;
    return err_set(err, &ERR_BAD_REQUEST, "Name parameter invalid: \"%.*s\": %s", STR_F(c->name),
                   why);
}

/* Whether the selector requires exactly this name. */
static bool selects_name(const struct selector *s, struct str name)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eqc(s->terms[i].key, "metadata.name") && s->terms[i].op == SEL_EQ)
            return str_eq(s->terms[i].values[0], name);
    return false;
}

/* /watch/.../name is a watch with a selector on that name. */
static int select_name(struct call *c, struct err *err)
{
    struct str text = arena_printf(c->arena, "metadata.name=%.*s", STR_F(c->name));

    if (c->options.fields.n && selects_name(&c->options.fields, c->name))
        return 0;
    if (c->options.fields.n)
        return err_set(err, &ERR_BAD_REQUEST,
                       "fieldSelector metadata.name doesn't match requested name");
    c->options.field_selector = text;
    return selector_parse_fields(c->arena, text, &c->options.fields, err);
}

/* Source: k8s.io/api, the APILifecycleDeprecated methods that 1.36 has passed. */
static const struct deprecation {
    const char *resource, *text;
} DEPRECATIONS[] = {
    {"componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"},
    {"endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
};

static void warn_deprecated(struct call *c)
{
    const struct resource *r = c->resource;
    struct str text = r->crd ? crd_deprecation(r->crd) : STR_NULL;

    for (size_t i = 0; !r->crd && i < COUNT(DEPRECATIONS); i++)
        if (str_eqc(r->group_resource, DEPRECATIONS[i].resource))
            text = str_c(DEPRECATIONS[i].text);
    if (text.n)
        call_warn(c, text);
}

/* write.c reports the use of deprecated versions with whole objects, after defaulting. */
static bool checked_by_writer(const struct call *c)
{
    return (c->verb == CALL_CREATE || c->verb == CALL_UPDATE) &&
           !(c->resource->flags & RES_REVIEW) && (!c->sub || c->sub->kind == SUB_STATUS);
}

static int read_request(struct route *r)
{
    struct call *c = r->call;
    struct target *t = &r->target;

    c->ns = resource_namespaced(c->resource) ? arena_str(c->arena, t->ns) : STR("");
    c->name = arena_str(c->arena, t->path_name);
    if (check_name(c, &r->err))
        return -1;
    warn_deprecated(c);
    if (is_connection(c->sub))
        return 0;
    if (c->verb == CALL_PATCH && body_patch_type(c, &r->err))
        return -1;
    if (respond_negotiate(c, &r->query, &r->err) || options_parse(c, &r->query, &r->err))
        return -1;
    if (c->verb == CALL_WATCH && c->name.n && select_name(c, &r->err))
        return -1;
    if (body_decode(c, &r->err))
        return -1;
    if (c->body && !checked_by_writer(c))
        audit_request(c, c->body);
    /* Other writes are checked by write.c. */
    if (c->verb != CALL_CREATE || !c->sub)
        return 0;
    return body_take(c, &r->err);
}

/* ---- non-resource paths ---- */

static void run_plain(struct route *r)
{
    struct call *c = r->call;
    struct err *unacceptable = ARENA_NEW(c->arena, struct err);

    err_init(unacceptable, c->arena);
    /* Each endpoint negotiates in its own way: most have only one form. */
    if (respond_negotiate(c, &r->query, unacceptable) == 0)
        err_clear(unacceptable);
    call_entry(c)->unacceptable = unacceptable;
    if (c->request->method != NET_GET && reads_only(r)) {
        if (no_such_method(&r->err))
            call_error(c, &r->err);
        return;
    }
    for (size_t i = 0; c->api->handlers->endpoints[i]; i++)
        if (c->api->handlers->endpoints[i](c, r->target.path))
            return;
    answer_unknown(r);
}

/* ---- requests ---- */

static void set_audit_id(struct call *c)
{
    struct str given = net_header(c->request, "audit-id");
    char uuid[37];

    /* Any value is accepted: clients correlate a request across several servers by it. */
    if (given.n && given.n <= MAX_AUDIT_ID) {
        call_entry(c)->audit_id = arena_str(c->arena, given);
        return;
    }
    rng_uuid(vapi_rng(c->api), uuid);
    call_entry(c)->audit_id = arena_str(c->arena, str_c(uuid));
}

/* An extension API server answers it. */
static bool is_elsewhere(struct route *r)
{
    const struct target *t = &r->target;
    struct call *c = r->call;

    return t->group.n && c->api->handlers->elsewhere &&
           c->api->handlers->elsewhere(c, t->group, t->version);
}

/* Called when flow control lets the request run. */
static void run(void *ctx)
{
    struct route *r = ctx;

    if (authorize(r)) {
        call_header(r->call, "x-content-type-options", STR("nosniff")); /* the message quotes it */
        call_error(r->call, &r->err);
    } else if (r->target.is_resource) {
        enum look_up found = find_resource(r);

        if (found == UNKNOWN && !is_elsewhere(r))
            answer_unknown(r);
        else if (found == UNKNOWN)
            return;
        else if (found == REFUSED || read_request(r))
            call_error(r->call, &r->err);
        else
            call_run(r->call);
    } else {
        run_plain(r);
    }
}

static void admit(struct route *r)
{
    struct call *c = r->call;
    struct attributes what = request_attributes(&r->target);
    struct err unaudited;
    int refused =
        deadline_set(c, &r->query, &r->err) ||
        auth_authenticate(vapi_auth(c->api), c->arena, c->request, &what, &c->user, &r->err);

    err_init(&unaudited, c->arena);
    if (observe_attributes(c, &r->target, c->user.name.p ? &c->user : NULL, &unaudited)) {
        call_error(c, &unaudited);
        return;
    }
    if (refused) {
        call_error(c, &r->err);
        return;
    }
    flow_enter(c, &what, run, r);
    deadline_watch(c);
}

/* The keys that the token needs were fetched, or fetching failed. */
static void on_keys(void *ctx)
{
    struct route *r = ctx;

    r->call->cancel = NULL;
    r->call->state = NULL;
    admit(r);
}

static void cancel_wait(struct call *c)
{
    auth_wait_end(&((struct route *)c->state)->wait);
}

static void route(struct call *c)
{
    struct route *r = ARENA_NEW(c->arena, struct route);
    bool of_kubelet;

    r->call = c;
    err_init(&r->err, c->arena);
    of_kubelet = request_kubelet_address(c);
    if ((!request_target(c->arena, c->request, &r->target) &&
         err_set(&r->err, &ERR_BAD_REQUEST, "invalid URL escape in the request path")) ||
        query_parse_all(c->arena, c->request->query, &r->query, &r->err)) {
        call_error(c, &r->err);
        return;
    }
    r->target.of_kubelet = of_kubelet;
    refine_verb(r);
    call_entry(c)->long_running = observe_long_running(c, &r->target);
    r->wait = (struct auth_wait){.again = on_keys, .ctx = r};
    if (!auth_await(vapi_auth(c->api), c->arena, c->request, &r->wait)) {
        admit(r);
        return;
    }
    c->state = r;
    c->cancel = cancel_wait;
}

static void on_request(void *ctx, struct net_exchange *x, const struct net_request *request)
{
    struct vapi *api = ctx;
    struct call *c;

    assert(api->magic == VAPI_MAGIC);
    c = call_new(api);
    c->exchange = x;
    c->request = request;
    call_entry(c)->exchange_open = true;
    net_on(x, call_exchange_closed, call_exchange_drained, call_entry(c));
    observe_begin(c);
    set_audit_id(c);
    route(c);
}

void request_handler(struct vapi *api, struct net_handler *ret)
{
    *ret = (struct net_handler){on_request, api};
}
