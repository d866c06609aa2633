/* SPDX-License-Identifier: Apache-2.0
 *
 * The lifecycle of a proxied request: checked here, answered by the registered hook, piece by piece
 * and without a copy of the whole anywhere.
 *
 *   call -> target, options -> admission -> object -> connect() --+
 *                                                                 |
 *      over <- proxy_refuse() --------------------------------- --|
 *      over <- proxy_begin(), then write ... end -----------------|
 *      over <- proxy_upgrade(), then write ... end ---------------|
 *      over <- client gone: closed() -----------------------------'
 *
 * It must never forward a request its user has no permission for or admission refuses, nor touch p
 * after it is over. */
#include "impl.h"

#include "../request/request.h"
#include "../review/review.h"
#include "../watch/watch.h"

#include <assert.h>

#include <sublet/encode.h>

static struct proxy *proxy_of(struct call *c)
{
    struct proxy *p = c->state;

    assert(p->magic == PROXY_MAGIC);
    return p;
}

const struct proxy_request *proxy_request(const struct proxy *p)
{
    assert(p->magic == PROXY_MAGIC);
    return &p->request;
}

/* ---- events for the answering side ---- */

void proxy_on(struct proxy *p, const struct proxy_events *events, void *ctx)
{
    assert(p->magic == PROXY_MAGIC && events->closed);
    p->events = events;
    p->ctx = ctx;
}

static void on_gone(struct call *c)
{
    struct proxy *p = proxy_of(c);

    p->magic = 0;
    p->events->closed(p->ctx);
}

static void on_drained(struct call *c)
{
    struct proxy *p = proxy_of(c);

    if (p->events->drained)
        p->events->drained(p->ctx);
}

/* net_on() was given the call's address. */
static void on_received(void *ctx, struct str bytes)
{
    struct proxy *p = proxy_of(ctx);

    if (p->events->received)
        p->events->received(p->ctx, bytes);
}

/* The log's client has nothing to say: only its close counts. It may have ended meanwhile. */
static void on_log_received(void *ctx, struct str bytes)
{
    struct call *c = ctx;
    struct proxy *p = c->state;

    if (!p || p->magic != PROXY_MAGIC || !proxy_socket_received(p, bytes))
        return;
    watch_socket_goodbye(c);
    c->cancel = NULL;
    c->drained = NULL;
    on_gone(c);
    call_end(c);
}

/* ---- answers ---- */

/* p is invalid from here on; its memory is the call's. */
static struct call *take_call(struct proxy *p)
{
    struct call *c = p->call;

    assert(p->magic == PROXY_MAGIC);
    p->magic = 0;
    c->cancel = NULL;
    c->drained = NULL;
    return c;
}

void proxy_refuse(struct proxy *p, const struct err *err)
{
    assert(!p->begun);
    call_error(take_call(p), err);
}

void proxy_begin(struct proxy *p, int status, const struct net_header *headers, size_t n_headers)
{
    const struct net_header *list;
    size_t n;

    assert(p->magic == PROXY_MAGIC && !p->begun);
    p->begun = true;
    if (proxy_socket_requested(p) && proxy_socket_open(p, on_log_received))
        return;
    list = proxy_answer_headers(p->call, headers, n_headers, false, &n);
    call_streams(p->call, status);
    net_begin(p->call->exchange, status, list, n);
}

bool proxy_upgrade(struct proxy *p, const struct net_header *headers, size_t n_headers)
{
    const struct net_header *list;
    size_t n;

    assert(p->magic == PROXY_MAGIC && !p->begun);
    if (!p->request.upgrade.n)
        return false;
    list = proxy_answer_headers(p->call, headers, n_headers, true, &n);
    p->begun = net_upgrade(p->call->exchange, list, n, on_received);
    if (p->begun)
        call_streams(p->call, 101);
    return p->begun;
}

static void on_sent(void *ctx)
{
    mem_free(ctx);
}

size_t proxy_write(struct proxy *p, struct str bytes)
{
    char *copy;

    assert(p->magic == PROXY_MAGIC && p->begun);
    if (!bytes.n)
        return net_backlog(p->call->exchange);
    if (p->socket)
        return proxy_socket_write(p, bytes);
    copy = mem_strdup(bytes);
    return net_write(p->call->exchange, &(struct net_slice){{copy, bytes.n}, on_sent, copy}, 1);
}

void proxy_end(struct proxy *p)
{
    assert(p->begun);
    if (p->socket)
        watch_socket_goodbye(p->call);
    call_end(take_call(p));
}

void proxy_abort(struct proxy *p)
{
    struct call *c = take_call(p);

    assert(p->begun);
    net_abort(c->exchange);
    call_end(c);
}

void proxy_pause(struct proxy *p, bool pause)
{
    assert(p->magic == PROXY_MAGIC && p->begun);
    net_pause(p->call->exchange, pause);
}

int proxy_waiting(const struct proxy *p, const char *reason, struct err *err)
{
    const struct proxy_request *r = proxy_request(p);

    if (r->kind == PROXY_LOG)
        return err_set(err, &ERR_BAD_REQUEST,
                       "container \"%.*s\" in pod \"%.*s\" is waiting to start: %s",
                       STR_F(r->container), STR_F(r->name), reason);
    return err_set(err, &ERR_BAD_REQUEST, "pod %.*s does not have a host assigned", STR_F(r->name));
}

/* ---- requests ---- */

/* An upgrade by GET lets the client act in the pod, as a POST does: both need `create`. Source:
 * k8s.io/kubernetes pkg/registry/core/pod/rest/authorize.go. */
static int authorize_stream(struct call *c, const struct proxy_request *r, struct err *err)
{
    struct attributes what = {.verb = "create",
                              .group = c->resource->group,
                              .version = c->resource->version,
                              .resource = c->resource->plural,
                              .subresource = str_c(c->sub->name),
                              .name = c->name,
                              .ns = c->ns};
    struct str reason;
    bool acts = r->kind == PROXY_EXEC || r->kind == PROXY_ATTACH || r->kind == PROXY_PORT_FORWARD;

    if (!acts || c->verb == CALL_CREATE ||
        auth_authorize(vapi_auth(c->api), c->arena, &c->user, &what, &reason))
        return 0;
    return auth_forbidden(err, c->arena, &c->user, &what, reason);
}

static int find_object(struct call *c, const struct resource *resource, struct proxy_request *r,
                       struct err *err)
{
    const struct store_object *o = store_get(vapi_store(c->api), resource->storage, r->ns, r->name);

    if (!o)
        return err_not_found(err, resource->group, resource->plural, r->name);
    r->object = vapi_tree(c->arena, o);
    return 0;
}

static int find_target(struct call *c, struct proxy_request *r, struct err *err)
{
    const struct registry *g = vapi_registry(c->api);
    struct str node = r->name;

    if (find_object(c, c->resource, r, err))
        return -1;
    if (r->kind != PROXY_NODE || !proxy_is_container_log(r))
        return 0;
    /* What a kubelet calls /containerLogs is the log of a pod of that node. */
    if (proxy_read_container_log(r, err) ||
        find_object(c, registry_find(g, STR(""), STR("v1"), STR("pods")), r, err))
        return -1;
    if (!str_eq(json_str_at(r->object, "spec.nodeName"), node))
        return err_not_found(err, STR(""), STR("pods"), r->name);
    return 0;
}

static bool wants_dry_run(struct call *c)
{
    struct str rest = c->request->query, name;

    while (rest.p && rest.n) {
        struct str pair = str_cut(&rest, '&');

        if (url_decode(c->arena, str_sub(pair, 0, str_find(pair, '=')), true, &name) &&
            str_eqc(name, "dryRun"))
            return true;
    }
    return false;
}

/* What admission sees of a connection. */
static int read_connection(struct proxy *p, struct err *err)
{
    struct call *c = p->call;

    if (proxy_read_target(c, &p->request, err))
        return -1;
    if (p->request.kind == PROXY_LOG)
        return 0;
    if (wants_dry_run(c))
        return err_set(err, &ERR_BAD_REQUEST, "dryRun is not supported");
    if (proxy_connect_options(c, &p->request, &c->body, err))
        return -1;
    body_set_kind(c, c->body);
    return 0;
}

static int prepare(struct proxy *p, struct err *err)
{
    struct call *c = p->call;
    struct proxy_request *r = &p->request;

    if (authorize_stream(c, r, err))
        return -1;
    if (r->kind == PROXY_NODE && !vapi_get_hooks(c->api)->kubelets)
        return err_forbidden(err, c->resource->group, c->resource->plural, c->name,
                             "proxy of nodes belongs to the host cluster");
    if (find_target(c, r, err))
        return -1;
    if (!vapi_get_hooks(c->api)->connect)
        return err_set(err, &ERR_NOT_IMPLEMENTED, "%s of %.*s is not served here", c->sub->name,
                       STR_F(c->resource->group_resource));
    if (proxy_read_options(c, r->kind == PROXY_LOG ? NULL : c->body, r, err))
        return -1;
    proxy_read_headers(c, r);

    /* Exec, attach and port-forward require an upgrade. */
    if (r->kind == PROXY_LOG || proxy_is_http(r->kind) || r->upgrade.n)
        return 0;
    return err_set(err, &ERR_BAD_REQUEST, "Upgrade request required");
}

static void open_connection(struct call *c)
{
    struct proxy *p = proxy_of(c);
    struct err err;

    err_init(&err, c->arena);
    assert(c->exchange); /* a review of a client that has gone ends in an error */
    if (prepare(p, &err)) {
        call_error(c, &err);
        return;
    }
    if (proxy_socket_requested(p) && proxy_socket_refused(c))
        return;
    c->cancel = on_gone;
    c->drained = on_drained;
    net_patience(c->exchange);
    vapi_get_hooks(c->api)->connect(vapi_get_hooks(c->api)->ctx, p);
}

/* A log is read; everything else is a connection, which admission sees. */
void sub_proxy(struct call *c)
{
    static const struct reviewed_plan plan = {.operation = ADMISSION_CONNECT,
                                              .run = open_connection};
    struct proxy *p = ARENA_NEW(c->arena, struct proxy);
    struct err err;

    err_init(&err, c->arena);
    *p = (struct proxy){.magic = PROXY_MAGIC, .call = c};
    c->state = p;
    if (read_connection(p, &err))
        call_error(c, &err);
    else if (p->request.kind == PROXY_LOG)
        open_connection(c);
    else
        reviewed_start(c, &plan);
}
