/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to extension API servers, a bounded number at once. Must never send one that the bounds,
 * the front proxy's certificate or its headers do not admit.
 *
 *   extension_open() -> under way -> end() | extension_close() -> forgotten */
#include "extension.h"

#include <assert.h>

#include <sublet/pki.h>

#define EXTENSION_CALL_MAGIC 0x65787463u

struct extension_call {
    unsigned magic;
    LIST_ENTRY(extension_call) place;
    struct vapi *api;
    struct forward *forward;
    struct forward_events events;
    void *ctx;
    char *service; /* "namespace/name" */
};

struct extensions *extensions_of(struct vapi *api)
{
    if (!api->extensions)
        api->extensions = NEW(struct extensions);
    return api->extensions;
}

struct extensions *extensions_free(struct extensions *all)
{
    if (!all)
        return NULL;
    assert(LIST_EMPTY(&all->calls));
    extension_documents_free(all);
    return mem_free(all);
}

static void call_over(struct extension_call *e)
{
    LIST_REMOVE(e, place);
    e->api->extensions->n_calls--;
    e->magic = 0;
    mem_free(e->service);
    mem_free(e);
}

/* --- events --- */

static void on_head(void *ctx, int status, const struct net_header *headers, size_t n)
{
    struct extension_call *e = ctx;

    assert(e->magic == EXTENSION_CALL_MAGIC);
    e->events.head(e->ctx, status, headers, n);
}

static void on_data(void *ctx, struct str bytes)
{
    struct extension_call *e = ctx;

    assert(e->magic == EXTENSION_CALL_MAGIC);
    e->events.data(e->ctx, bytes);
}

static void on_end(void *ctx, const struct err *err)
{
    struct extension_call *e = ctx;
    struct forward_events events = e->events;
    void *events_ctx = e->ctx;

    assert(e->magic == EXTENSION_CALL_MAGIC);
    call_over(e);
    events.end(events_ctx, err);
}

/* --- opening --- */

static int too_many(struct err *err)
{
    err_set(err, &ERR_TOO_MANY_REQUESTS,
            "too many requests to extension API servers, please try "
            "again later");
    if (err)
        err->retry_after = 1;
    return -1;
}

static int check_bounds(struct extensions *all, struct str service, struct err *err)
{
    const struct extension_call *e;
    size_t n = 0;

    LIST_FOREACH(e, &all->calls, place) n += str_eqc(service, e->service);
    return all->n_calls < EXTENSION_MOST_CALLS && n < EXTENSION_MOST_CALLS_OF ? 0 : too_many(err);
}

static int prepare(struct vapi *api, struct arena *a, const struct extension *x,
                   const struct extension_request *q, struct forward_request *ret, struct err *err)
{
    *ret = (struct forward_request){.ns = x->ns,
                                    .service = x->service,
                                    .port = x->port,
                                    .method = q->method,
                                    .path = q->path,
                                    .body = q->body,
                                    .ca = x->ca,
                                    .insecure = x->insecure,
                                    .timeout_ms = q->timeout_ms};
    if (!vapi_get_hooks(api)->forward)
        return err_set(err, &ERR_UNAVAILABLE, "this virtual cluster has no host cluster");
    return extension_headers(a, q, &ret->headers, &ret->n_headers, err) ||
                   pki_front_proxy(vapi_pki(api), &ret->certificate, &ret->key, err)
               ? -1
               : 0;
}

struct extension_call *extension_open(struct vapi *api, const struct extension *x,
                                      const struct extension_request *q,
                                      const struct forward_events *events, void *ctx,
                                      struct err *err)
{
    static const struct forward_events own = {on_head, on_data, on_end};
    const struct vapi_hooks *hooks = vapi_get_hooks(api);
    struct extensions *all = extensions_of(api);
    struct arena *a = arena_new(0);
    struct str service = arena_concat(a, 3, (struct str[]){x->ns, STR("/"), x->service});
    struct extension_call *e = NULL;
    struct forward_request request;

    if (!check_bounds(all, service, err) && !prepare(api, a, x, q, &request, err)) {
        e = NEW(struct extension_call);
        *e = (struct extension_call){.magic = EXTENSION_CALL_MAGIC,
                                     .api = api,
                                     .events = *events,
                                     .ctx = ctx,
                                     .service = mem_strdup(service)};
        LIST_INSERT_HEAD(&all->calls, e, place);
        all->n_calls++;
        e->forward = hooks->forward->open(hooks->ctx, &request, &own, e, err);
        if (!e->forward) {
            call_over(e);
            e = NULL;
        }
    }
    arena_free(a);
    return e;
}

void extension_pause(struct extension_call *e, bool pause)
{
    assert(e->magic == EXTENSION_CALL_MAGIC);
    vapi_get_hooks(e->api)->forward->pause(e->forward, pause);
}

void extension_close(struct extension_call *e)
{
    if (!e)
        return;
    assert(e->magic == EXTENSION_CALL_MAGIC);
    vapi_get_hooks(e->api)->forward->close(e->forward);
    call_over(e);
}
