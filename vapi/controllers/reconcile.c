/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes of a run. Reads see committed state only; every write holds the run open until
 * it was answered. Must never report a refusal caused by a concurrent writer as a failure. */
#include <sublet/call.h>
#include <sublet/controller.h>
#include <sublet/store_quarantine.h>
#include <sublet/webhook.h>

#include <assert.h>
#include <stdarg.h>

#include "frame.h"

enum { MESSAGE_BYTES = 1023 }; /* of an Event */

/* Errors caused by a concurrent writer are retried without a log line. */
static bool error_is_quiet(const struct err *err, bool removes)
{
    if (err->kind == &ERR_CONFLICT || err->kind == &ERR_ALREADY_EXISTS)
        return true;
    return err->kind == &ERR_NOT_FOUND && !removes;
}

void reconcile_fail(struct reconcile *r, const struct err *err)
{
    assert(r->magic == RECONCILE_MAGIC);
    if (r->failed)
        return;
    r->failed = true;
    r->err.kind = err->kind;
    r->err.message = arena_str(r->arena, err->message);
}

static bool namespace_is_terminating(const struct err *err)
{
    for (const struct err_cause *c = err->causes; c; c = c->next) {
        if (str_eqc(c->type, "NamespaceTerminating"))
            return true;
    }
    return false;
}

static void take_error(struct reconcile *r, const struct err *err, bool removes)
{
    if (namespace_is_terminating(err))
        return; /* nothing can or needs to be created there any more */
    if (error_is_quiet(err, removes))
        r->quiet_retry = true;
    else
        reconcile_fail(r, err);
}

void reconcile_take(struct reconcile *r, const struct err *err)
{
    take_error(r, err, false);
}

static void on_answer(void *ctx, const struct err *err, const struct store_object *object)
{
    struct op *op = ctx;
    struct reconcile *r = op->run;

    assert(op->magic == OP_MAGIC && r->magic == RECONCILE_MAGIC);
    if (err && op->removes && err->kind == &ERR_NOT_FOUND)
        err = NULL; /* deleted, as wanted */
    if (op->then)
        op->then(r, op->then_ctx, err, object);
    else if (err)
        take_error(r, err, op->removes);
    op->magic = 0;
    controller_run_release(r);
}

static struct op *op_new(struct reconcile *r)
{
    assert(r->magic == RECONCILE_MAGIC);
    struct op *op = ARENA_NEW(r->arena, struct op);

    *op = (struct op){.magic = OP_MAGIC, .run = r};
    r->pending++;
    r->last = op;
    return op;
}

void reconcile_create(struct reconcile *r, const struct resource *res, struct str ns,
                      const cJSON *o)
{
    vapi_create_by(r->controller->api, r->controller->def->account, res, ns, o, on_answer,
                   op_new(r));
}

void reconcile_update(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    vapi_update(r->controller->api, res, STR_NULL, object, on_answer, op_new(r));
}

void reconcile_replace(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    vapi_replace(r->controller->api, res, object, on_answer, op_new(r));
}

void reconcile_update_at(struct reconcile *r, const struct resource *res, const char *subresource,
                         const cJSON *object)
{
    vapi_update(r->controller->api, res, str_c(subresource), object, on_answer, op_new(r));
}

void reconcile_update_status(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    reconcile_update_at(r, res, "status", object);
}

void reconcile_patch(struct reconcile *r, const struct resource *res, struct str subresource,
                     struct str ns, struct str name, const cJSON *patch)
{
    vapi_patch(r->controller->api, res, subresource, ns, name, patch, on_answer, op_new(r));
}

void reconcile_spare(struct reconcile *r)
{
    r->unreadable = true;
}

bool reconcile_spares(const struct reconcile *r)
{
    return r->unreadable;
}

static void issue_delete(struct reconcile *r, const struct resource *res, struct str ns,
                         struct str name, const struct vapi_delete *options)
{
    struct op *op;

    /* Nothing is deleted because an unreadable object appeared to be missing. */
    if (r->unreadable) {
        r->last = ARENA_NEW(r->arena, struct op);
        return;
    }
    op = op_new(r);
    op->removes = true;
    vapi_delete(r->controller->api, res, ns, name, options, on_answer, op);
}

void reconcile_delete(struct reconcile *r, const struct resource *res, struct str ns,
                      struct str name, struct str uid, const char *propagation)
{
    struct vapi_delete options = {.grace_seconds = -1, .uid = uid, .propagation = propagation};

    issue_delete(r, res, ns, name, &options);
}

void reconcile_delete_now(struct reconcile *r, const struct resource *res, struct str ns,
                          struct str name, struct str uid)
{
    struct vapi_delete options = {.grace_seconds = 0, .uid = uid};

    issue_delete(r, res, ns, name, &options);
}

void reconcile_delete_exact(struct reconcile *r, const struct resource *res, const cJSON *object,
                            const char *propagation)
{
    struct vapi_delete options = {.grace_seconds = -1,
                                  .uid = json_str_at(object, "metadata.uid"),
                                  .propagation = propagation};
    struct str ns = json_str_at(object, "metadata.namespace");

    str_to_i64(json_str_at(object, "metadata.resourceVersion"), &options.revision);
    issue_delete(r, res, ns.p ? ns : STR(""), json_str_at(object, "metadata.name"), &options);
}

void reconcile_then(struct reconcile *r, reconcile_cb then, void *ctx)
{
    assert(r->magic == RECONCILE_MAGIC && r->last);
    r->last->then = then;
    r->last->then_ctx = ctx;
}

void reconcile_next(struct reconcile *r, reconcile_phase next, void *ctx)
{
    assert(r->magic == RECONCILE_MAGIC && !r->next);
    r->next = next;
    r->next_ctx = ctx;
}

const struct err *reconcile_error(const struct reconcile *r)
{
    return r->failed ? &r->err : NULL;
}

void reconcile_hold(struct reconcile *r)
{
    assert(r->magic == RECONCILE_MAGIC);
    r->pending++;
}

void reconcile_release(struct reconcile *r, const struct err *err)
{
    assert(r->magic == RECONCILE_MAGIC);
    if (err)
        reconcile_fail(r, err);
    controller_run_release(r);
}

void reconcile_again_after(struct reconcile *r, int64_t delay_ms)
{
    if (r->again_ms < 0 || delay_ms < r->again_ms)
        r->again_ms = delay_ms < 0 ? 0 : delay_ms;
}

/* Accessors. */

struct arena *reconcile_arena(struct reconcile *r)
{
    return r->arena;
}

struct str reconcile_key(const struct reconcile *r)
{
    return r->key;
}

struct controller *reconcile_controller(struct reconcile *r)
{
    return r->controller;
}

struct vapi *reconcile_api(struct reconcile *r)
{
    return r->controller->api;
}

int64_t reconcile_now_s(const struct reconcile *r)
{
    return clock_wall_s(vapi_clock(r->controller->api));
}

unsigned reconcile_failures(const struct reconcile *r)
{
    return worker_failures(r->controller->worker, r->key);
}

const struct resource *reconcile_resource(struct reconcile *r, const char *group,
                                          const char *plural)
{
    return registry_find_group_resource(vapi_registry(r->controller->api), str_c(group),
                                        str_c(plural));
}

cJSON *reconcile_get(struct reconcile *r, const struct resource *res, struct str ns,
                     struct str name)
{
    const struct store_object *o =
        store_get(vapi_store(r->controller->api), res->storage, ns, name);

    if (!o && !store_is_absent(vapi_store(r->controller->api), res->storage, ns, name))
        r->unreadable = true;
    return o ? vapi_tree(r->arena, o) : NULL;
}

struct list_ctx {
    struct arena *arena;
    const struct selector *selector;
    cJSON *items;
};

static bool on_listed(void *ctx, const struct store_object *o)
{
    struct list_ctx *l = ctx;

    if (!l->selector || selector_match(l->selector, o->labels))
        json_append(l->items, vapi_tree(l->arena, o));
    return true;
}

cJSON *reconcile_list(struct reconcile *r, const struct resource *res, struct str ns,
                      const struct selector *selector)
{
    struct list_ctx l = {
        .arena = r->arena, .selector = selector, .items = json_new_array(r->arena)};
    struct err err;

    err_init(&err, r->arena);
    if (store_scan(vapi_store(r->controller->api), res->storage, ns, STR_NULL, STR_NULL, 0,
                   on_listed, &l, &err))
        reconcile_fail(r, &err);
    return l.items;
}

void reconcile_event(struct reconcile *r, const cJSON *involved, const char *type,
                     const char *reason, const char *format, ...)
{
    struct str message;
    va_list args;

    va_start(args, format);
    message = str_clip(arena_vprintf(r->arena, format, args), MESSAGE_BYTES);
    va_end(args);
    vapi_event(r->controller->api, involved, type, reason, message, r->controller->def->name);
}
