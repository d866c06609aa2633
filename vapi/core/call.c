/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The lifecycle of a call. Two parties hold it: its handler, until it has answered, and its
 * exchange, until the bytes are sent; the last one frees it. An in-process call is answered through
 * its callback instead.
 *
 *   new -> handler -> answered --+-- exchange still sends --> exchange closed -> free
 *            |                   '-- in-process: done() -> free
 *            '-- client gone: cancel() and free, or the handler continues and its answer is dropped
 *
 * It must never call done() before the function that started the call has returned, and never
 * twice. */
#include "calls.h"

#include <assert.h>

#include <sublet/admission.h>
#include <sublet/net.h>

const char *const CALL_VERBS[CALL_N_VERBS] = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
};

#define MAX_WARNINGS     64
#define MAX_HEADERS      8            /* set by a handler */
#define MAX_WARNING_SIZE (16u * 1024) /* upstream's limit of a single warning */

struct call_entry *call_entry(struct call *c)
{
    assert(c->magic == CALL_MAGIC);
    return (struct call_entry *)c;
}

struct call *call_new(struct vapi *api)
{
    struct arena *a = arena_new(api->call_arena);
    struct call_entry *e = ARENA_NEW(a, struct call_entry);
    struct call *c = &e->call;

    assert(api->magic == VAPI_MAGIC && api->state != API_CLOSED);
    e->sequence = ++api->sequence;
    TAILQ_INSERT_TAIL(&api->calls, e, place);

    c->magic = CALL_MAGIC;
    c->api = api;
    c->arena = a;
    c->options.grace_seconds = -1;
    c->strict.arena = a;
    return c;
}

static void call_free(struct call_entry *e)
{
    struct vapi *api = e->call.api;

    api->handlers->ended(&e->call);
    TAILQ_REMOVE(&api->calls, e, place);
    store_object_unref(e->object);
    e->call.magic = 0;
    arena_free(e->call.arena);
    api->call_ended(api);
}

void call_enter(struct call_entry *e, enum call_stage to)
{
    static const unsigned next[] = {
        [CALL_RUNNING] = 1u << CALL_ANSWERING | 1u << CALL_DELIVERING | 1u << CALL_ANSWERED,
        [CALL_ANSWERING] = 1u << CALL_ANSWERED,
        [CALL_DELIVERING] = 0,
        [CALL_ANSWERED] = 0,
    };

    assert(next[e->stage] & 1u << to);
    e->stage = to;
}

static void free_when_over(struct call_entry *e)
{
    if (e->stage == CALL_ANSWERED && !e->exchange_open)
        call_free(e);
}

/* ---- in-process calls ---- */

static void deliver(void *ctx)
{
    struct call_entry *e = ctx;
    struct call *c = &e->call;

    assert(c->magic == CALL_MAGIC && e->stage == CALL_DELIVERING);
    c->done(c->done_ctx, e->error, e->object);
    call_free(e);
}

struct err *call_keep_error(struct arena *a, const struct err *err)
{
    struct err *kept = ARENA_NEW(a, struct err);

    err_init(kept, a);
    kept->kind = err->kind;
    kept->message = arena_str(a, err->message);
    kept->group = arena_str(a, err->group);
    kept->resource = arena_str(a, err->resource);
    kept->name = arena_str(a, err->name);
    kept->uid = arena_str(a, err->uid);
    kept->cont = arena_str(a, err->cont);
    kept->retry_after = err->retry_after;
    for (const struct err_cause *cause = err->causes; cause; cause = cause->next)
        err_cause(kept, cause->type, cause->field, cause->message);
    return kept;
}

void call_finish(struct call *c, const struct err *err, const struct store_object *object)
{
    struct call_entry *e = call_entry(c);

    call_enter(e, c->done ? CALL_DELIVERING : CALL_ANSWERED);
    c->cancel = NULL;
    c->drained = NULL;
    if (!c->done) {
        free_when_over(e);
        return;
    }

    e->error = err ? call_keep_error(c->arena, err) : NULL;
    e->object = err || !object ? NULL : store_object_ref(object);
    if (e->running)
        api_defer(c->api, deliver, e);
    else
        deliver(e);
}

struct call *call_inside(struct vapi *api, const struct user *user, enum call_verb verb,
                         const struct resource *r, const struct subresource *sub, struct str ns,
                         struct str name, vapi_done_cb done, void *ctx)
{
    struct call *c = call_new(api);

    assert(done);
    c->user = *user;
    c->verb = verb;
    c->resource = r;
    c->sub = sub;
    c->ns = arena_str(c->arena, ns);
    c->name = arena_str(c->arena, name);
    c->options.validation = VALIDATION_IGNORE;
    c->done = done;
    c->done_ctx = ctx;
    return c;
}

/* ---- from the network ---- */

void call_exchange_closed(void *ctx)
{
    struct call_entry *e = ctx;
    struct call *c = &e->call;

    assert(c->magic == CALL_MAGIC && e->exchange_open);
    e->exchange_open = false;
    c->exchange = NULL;
    c->request = NULL;
    c->gone = true;
    if (e->stage == CALL_RUNNING && c->cancel) {
        c->cancel(c);
        call_enter(e, CALL_ANSWERED);
    }
    free_when_over(e);
}

void call_exchange_drained(void *ctx)
{
    struct call *c = ctx;

    assert(c->magic == CALL_MAGIC);
    if (c->drained)
        c->drained(c);
}

void call_hold(struct call *c)
{
    call_enter(call_entry(c), CALL_ANSWERING);
}

void call_release(struct call *c)
{
    assert(!c->done && call_entry(c)->stage == CALL_ANSWERING);
    call_finish(c, NULL, NULL);
}

void call_end(struct call *c)
{
    call_hold(c);
    if (c->exchange)
        net_end(c->exchange);
    call_release(c);
}

/* ---- answers, through the registered functions ---- */

void call_error(struct call *c, const struct err *err)
{
    c->api->handlers->error(c, err);
}

void call_give_up(struct call *c, const struct err *err, struct str status)
{
    c->api->handlers->give_up(c, err, status);
}

void call_tree(struct call *c, int status, cJSON *object)
{
    c->api->handlers->tree(c, status, object);
}

void call_raw(struct call *c, int status, struct str content_type, struct str body)
{
    c->api->handlers->raw(c, status, content_type, body);
}

void call_header(struct call *c, const char *name, struct str value)
{
    struct call_entry *e = call_entry(c);

    if (!e->headers)
        e->headers = arena_alloc(c->arena, MAX_HEADERS * sizeof(*e->headers));
    assert(e->n_headers < MAX_HEADERS);
    e->headers[e->n_headers++] = (struct net_header){
        (struct str){arena_cstr(c->arena, str_c(name)), str_c(name).n}, arena_str(c->arena, value)};
}

void call_audit_annotate(struct call *c, struct str key, struct str value)
{
    c->api->handlers->annotate(c, key, value);
}

/* ---- warnings ---- */

void call_warn(struct call *c, struct str text)
{
    text = str_sub(text, 0, MAX_WARNING_SIZE);
    for (size_t i = 0; i < c->n_warnings; i++)
        if (str_eq(c->warnings[i], text))
            return;
    if (c->n_warnings == MAX_WARNINGS)
        return;
    if (!c->warnings)
        c->warnings = arena_alloc(c->arena, MAX_WARNINGS * sizeof(struct str));
    c->warnings[c->n_warnings++] = arena_str(c->arena, text);
}

/* ---- group and version of bodies, admission ---- */

void call_body_expected(const struct call *c, struct str *group, struct str *version,
                        struct str *kind)
{
    const struct subresource *s = c->sub;

    *group = c->resource->group;
    *version = c->resource->version;
    *kind = c->resource->kind;
    if (!s || !s->object_kind)
        return;
    *kind = str_c(s->object_kind);
    if (s->version && s->version[0]) {
        *group = str_c(s->group);
        *version = str_c(s->version);
    }
}

/* Deletions of a collection are in-process, in the name of its client. */
int call_check_over(const struct call *c, struct err *err)
{
    if (c->gone)
        return err_set(err, &ERR_TIMEOUT,
                       "Timeout: request did not complete within requested timeout - context "
                       "canceled");
    if (c->api->state >= API_DRAINING)
        return err_set(err, &ERR_UNAVAILABLE, "the API server is shutting down");
    return 0;
}

bool call_has_webhooks(const struct call *c)
{
    return !c->done || c->controller || c->user.groups != USER_INTERNAL.groups;
}

static void on_warning(void *ctx, struct str text)
{
    call_warn(ctx, text);
}

static void on_annotation(void *ctx, struct str key, struct str value)
{
    call_audit_annotate(ctx, key, value);
}

void call_admission(struct call *c, enum admission_operation operation, struct admission_call *ret)
{
    *ret = (struct admission_call){
        .api = c->api,
        .arena = c->arena,
        .user = &c->user,
        .resource = c->resource,
        .subresource = c->sub ? str_c(c->sub->name) : STR_NULL,
        .ns = c->ns,
        .name = c->name,
        .operation = operation,
        .dry_run = c->options.dry_run,
        .controller = c->controller,
        .options = &c->options,
        .warn = on_warning,
        .warn_ctx = c,
        .annotate = on_annotation,
        .path_name = c->verb == CALL_CREATE ? STR("") : c->name,
        .call = c,
    };
}

/* ---- dispatch ---- */

static call_handler handler_of(const struct call *c)
{
    call_handler instead = c->api->handlers->instead(c);

    if (instead)
        return instead;
    if ((c->resource->flags & RES_REVIEW) &&
        (c->verb == CALL_GET || c->verb == CALL_LIST || c->verb == CALL_WATCH))
        return c->api->handlers->measured;
    if (c->sub && c->sub->kind != SUB_STATUS)
        return c->api->handlers->subresources[c->sub->kind];
    return c->api->handlers->verbs[c->verb];
}

void call_run(struct call *c)
{
    struct call_entry *e = call_entry(c);
    call_handler run = handler_of(c);

    if (!c->done) {
        run(c);
        return;
    }
    /* The answer waits until this function returns, so that e stays valid. */
    e->running = true;
    run(c);
    e->running = false;
}
