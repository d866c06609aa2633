/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Writes that wait or are refused while this process may not write, or its disk does not accept
 * writes. The store refuses as well, so that a write in progress when the order arrives is not
 * stored; here a refusal costs nothing. Must never refuse a request that persists nothing. */
#include "calls.h"

#include <assert.h>

#include <sublet/store_admin.h>
#include <sublet/store_disk.h>

struct held_call {
    STAILQ_ENTRY(held_call) place;
    struct call *call;
};

/* exec, attach, port-forward and proxies change what is behind them; log only reads. */
static bool is_tunnel(const struct subresource *s)
{
    return s && s->object_kind && str_has_suffix(str_c(s->object_kind), STR("Options")) &&
           !str_eqc(str_c(s->name), "log");
}

/* Reviews, and TokenRequests, which are never stored. A Binding writes its pod. */
static bool persists_nothing(const struct call *c)
{
    const struct resource *r = c->resource;

    if (c->sub)
        return str_eqc(str_c(c->sub->name), "token");
    return (r->flags & RES_REVIEW) && !str_eqc(r->plural, "bindings");
}

static bool writes(const struct call *c)
{
    if (is_tunnel(c->sub))
        return true;
    return c->verb != CALL_GET && c->verb != CALL_LIST && c->verb != CALL_WATCH &&
           !c->options.dry_run && !persists_nothing(c);
}

/* ---- held ---- */

static void cancel_held(struct call *c)
{
    struct held_call *h;

    STAILQ_FOREACH(h, &c->api->held, place)
    {
        if (h->call == c)
            break;
    }
    assert(h);
    STAILQ_REMOVE(&c->api->held, h, held_call, place);
}

static void hold(struct call *c)
{
    struct held_call *h = ARENA_NEW(c->arena, struct held_call);

    h->call = c;
    STAILQ_INSERT_TAIL(&c->api->held, h, place);
    c->cancel = cancel_held;
}

/* ---- refused ---- */

static void refuse(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    err_set(&err, &ERR_UNAVAILABLE, "%s", store_read_only(c->api->o.store));
    err.retry_after = STORE_READ_ONLY_RETRY_S;
    call_error(c, &err);
}

static void refuse_for_disk(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    (void)!store_disk_refuse(c->api->o.store, &err);
    call_error(c, &err);
}

/* Whether an update grows is known only after it is made: the store refuses it then. */
static bool is_too_much(const struct call *c)
{
    if (!store_disk(c->api->o.store) || is_tunnel(c->sub))
        return false;
    return store_disk_is_shut(c->api->o.store) || (c->verb == CALL_CREATE && !c->sub);
}

call_handler read_only_handler(const struct call *c)
{
    if (!writes(c))
        return NULL;
    if (store_read_only(c->api->o.store))
        return refuse;
    if (is_too_much(c))
        return refuse_for_disk;
    return c->api->holding ? hold : NULL;
}

/* ---- the order ---- */

void vapi_hold_writes(struct vapi *api)
{
    assert(api->magic == VAPI_MAGIC);
    api->holding = true;
}

static bool is_read_only(const struct vapi *api)
{
    return store_read_only(api->o.store) || store_disk_is_shut(api->o.store);
}

void read_only_settle(struct vapi *api)
{
    bool read_only = is_read_only(api);
    struct vapi_order *o, *next;

    for (o = LIST_FIRST(&api->orders); o; o = next) {
        next = LIST_NEXT(o, place);
        if (o->read_only == read_only)
            continue;
        o->read_only = read_only;
        o->changed(o);
    }
}

static void on_decided(void *ctx)
{
    struct vapi *api = ctx;
    struct held_call *h;
    size_t n = 0;

    if (api->holding)
        return;
    /* Running one may hold another behind it: runs only the present number. */
    STAILQ_FOREACH(h, &api->held, place)
    {
        n++;
    }
    for (; n && (h = STAILQ_FIRST(&api->held)); n--) {
        struct call *c = h->call;

        STAILQ_REMOVE_HEAD(&api->held, place);
        c->cancel = NULL;
        call_run(c);
    }
}

void vapi_set_read_only(struct vapi *api, const char *reason)
{
    assert(api->magic == VAPI_MAGIC);
    store_set_read_only(api->o.store, reason);
    read_only_settle(api);
    api->holding = false;
    if (!STAILQ_EMPTY(&api->held))
        api_defer(api, on_decided, api);
}

void vapi_order_watch(struct vapi *api, struct vapi_order *order)
{
    order->read_only = is_read_only(api);
    LIST_INSERT_HEAD(&api->orders, order, place);
}

void vapi_order_unwatch(struct vapi_order *order)
{
    LIST_REMOVE(order, place);
}
