/* SPDX-License-Identifier: Apache-2.0 */
/* Where a tenant's extension API server is: its own Service, as a webhook's (webhooks.c). Must
 * never open an exchange with any other address, nor one that outlives the syncer. */
#include "admission/admission.h"

#include <assert.h>

#include <sublet/host_forward.h>

#define EXTENSIONS_MAGIC 0x73787465u

struct sync_extensions {
    unsigned magic;
    struct syncer *syncer;
    struct host_forwards *forwards; /* NULL until the first request */
};

struct sync_extensions *sync_extensions_new(struct syncer *s)
{
    struct sync_extensions *x = NEW(struct sync_extensions);

    *x = (struct sync_extensions){.magic = EXTENSIONS_MAGIC, .syncer = s};
    return x;
}

static struct forward *open_forward(void *ctx, const struct forward_request *q,
                                    const struct forward_events *events, void *events_ctx,
                                    struct err *err)
{
    struct syncer *s = ctx;
    struct sync_extensions *x = s->extensions;
    struct forward *f = NULL;
    struct str address;
    struct arena *a;

    assert(x->magic == EXTENSIONS_MAGIC);
    if (syncer_is_closing(s)) {
        err_set(err, &ERR_UNAVAILABLE, "the API server is shutting down");
        return NULL;
    }
    a = arena_new(0);
    if (!sync_service_address(s, a, q->ns, q->service, q->port, &address, err)) {
        if (!x->forwards)
            x->forwards = host_forwards_new(vapi_loop(s->api), vapi_clock(s->api));
        f = host_forward_open(x->forwards,
                              arena_printf(a, "%.*s.%.*s.svc", STR_F(q->service), STR_F(q->ns)),
                              address, q, events, events_ctx);
    }
    arena_free(a);
    return f;
}

const struct forward_ops SYNC_EXTENSION_OPS = {
    .open = open_forward,
    .pause = host_forward_pause,
    .close = host_forward_close,
};

bool sync_extensions_close(struct sync_extensions *x, void (*closed)(void *ctx), void *ctx)
{
    struct host_forwards *forwards = x->forwards;

    x->forwards = NULL;
    if (!forwards)
        return false;
    host_forwards_stop(forwards);
    host_forwards_close(forwards, closed, ctx);
    return true;
}

struct sync_extensions *sync_extensions_free(struct sync_extensions *x)
{
    assert(!x || !x->forwards);
    mem_free(x);
    return NULL;
}
