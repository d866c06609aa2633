/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Admission of a body that is an object of its own and is not what is stored: a Binding, an
 * Eviction, a token request, a review, the options of a connection. It must never let a request run
 * that a policy or a webhook refused, nor one whose client has gone while a webhook was called.
 *
 *   lifecycle, policies -> mutating webhooks -> check -> policies -> validating webhooks -> run
 *
 * Source: apiserver pkg/endpoints/handlers (createHandler, ConnectResource). */
#include "review.h"

#include "../request/request.h"

#include <assert.h>

#include <sublet/webhook.h>

#define REVIEW_MAGIC 0x72657677u

struct review {
    unsigned magic;
    struct call *call;
    const struct reviewed_plan *plan;
    enum webhook_phase phase;
    bool paused;
    struct err err;
};

/* ---- what a webhook or a policy made of the body ---- */

void reviewed_unwrap(struct err *err)
{
    size_t colon = str_find(err->message, ':');

    if (str_contains(err->message, STR(" cannot be handled as a ")) && colon < err->message.n)
        err->message = str_trim(str_from(err->message, colon + 1));
}

int reviewed_decode(struct call *c, const struct resource *as, cJSON *object, struct err *err)
{
    (void)as;
    body_set_kind(c, object);
    if (!body_normalise(c, object, err))
        return 0;
    reviewed_unwrap(err);
    return -1;
}

/* ---- phases ---- */

static void fail(struct review *r, const struct err *err)
{
    r->magic = 0;
    call_error(r->call, err);
}

static void admission_of(struct review *r, struct admission_call *ret)
{
    call_admission(r->call, r->plan->operation, ret);
    ret->apart = true;
}

/* What was decided before the pause may no longer hold. */
static int confirm(struct review *r)
{
    struct admission_call a;

    admission_of(r, &a);
    if (r->paused && admission_lifecycle(&a, r->call->body, &r->err))
        return -1;
    return admission_validate(&a, r->call->body, NULL, &r->err);
}

/* ---- webhooks ---- */

static void validate(struct review *r);

static void run(struct review *r)
{
    r->magic = 0;
    r->plan->run(r->call);
}

static void on_reviewed(void *ctx, cJSON *object, bool changed, const struct err *err)
{
    struct review *r = ctx;

    (void)changed;
    assert(r->magic == REVIEW_MAGIC);
    r->call->body = object;
    if (err)
        fail(r, err);
    else if (r->phase == WEBHOOKS_MUTATING)
        validate(r);
    else if (confirm(r))
        fail(r, &r->err);
    else
        run(r);
}

/* False: no webhook is called. */
static bool call_webhooks(struct review *r, enum webhook_phase phase)
{
    const struct webhook_review review = {.call = r->call,
                                          .operation = r->plan->operation,
                                          .requested = r->call->resource,
                                          .object = r->call->body,
                                          .apart = true};

    r->phase = phase;
    if (!call_has_webhooks(r->call) ||
        !webhooks_run(phase, &review, reviewed_decode, on_reviewed, r))
        return false;
    r->paused = true;
    return true;
}

static void validate(struct review *r)
{
    if ((r->plan->check && r->plan->check(r->call, &r->err)) || confirm(r))
        fail(r, &r->err);
    else if (!call_webhooks(r, WEBHOOKS_VALIDATING))
        run(r);
}

static int mutate(struct review *r)
{
    struct admission_call a;
    cJSON *before = NULL;

    admission_of(r, &a);
    a.decode = reviewed_decode;
    a.replaced = &before;
    if (call_has_webhooks(r->call) && admission_lifecycle(&a, r->call->body, &r->err))
        return -1;
    return admission_mutate(&a, r->call->body, NULL, &r->err);
}

void reviewed_start(struct call *c, const struct reviewed_plan *plan)
{
    struct review *r = ARENA_NEW(c->arena, struct review);

    r->magic = REVIEW_MAGIC;
    r->call = c;
    r->plan = plan;
    err_init(&r->err, c->arena);
    if (mutate(r))
        fail(r, &r->err);
    else if (!call_webhooks(r, WEBHOOKS_MUTATING))
        validate(r);
}
