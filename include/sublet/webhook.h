/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Admission webhooks of the tenant: a write pauses while they are called. Source: apiserver
 * pkg/admission/plugin/webhook.
 *
 *   MUTATE -> mutating hooks, one after another, by the name of their configuration
 *          -> PREPARE, VALIDATE, ADMIT, CONFIRM -> validating hooks, all at once -> CONFIRM, COMMIT
 *
 * What is held: the call with its arena, a reference to the base; no lock, so that other writes of
 * the same object go on. When the base has changed after the pause, the write is repeated from it,
 * webhooks included, as upstream. What the built-in plug-ins decided before the pause of the
 * validating hooks is checked again after it. A write whose client has gone, or was answered at its
 * deadline, ends as soon as the call in progress is answered, without being stored; so does every
 * write once the API closes, whatever a failurePolicy says. Nothing is recorded before COMMIT: a
 * process that is killed in a pause has stored and answered nothing.
 *
 * Hooks whose rules name only another version of a custom resource than the request's see it in
 * that version; where a conversion webhook makes it, the write pauses for that first, and a patch
 * is converted back before a hook reads another version, or the mutating phase ends. Its failure
 * refuses the write, whatever a failurePolicy says, as upstream.
 *
 * Bounds: WEBHOOK_MOST_CALLS at once, and WEBHOOK_MOST_WAITING that wait for one of them; a body is
 * built when its call starts. WEBHOOK_MOST_HOOKS for one write; an answer has at most
 * WEBHOOK_MOST_ANSWER bytes. matchConditions have upstream's limits, and all of a phase one more:
 * beyond it they are errors, which failurePolicy judges. Configurations beyond the memory for them
 * are left out: each refuses what it might review, unless it ignores failures. */
#pragma once

#include <sublet/admission.h>
#include <sublet/call.h>

#define WEBHOOK_MOST_CALLS   64
#define WEBHOOK_MOST_WAITING 4096
#define WEBHOOK_MOST_HOOKS   128
#define WEBHOOK_MOST_ANSWER  (3u * 1024 * 1024)

enum webhook_phase { WEBHOOKS_MUTATING, WEBHOOKS_VALIDATING };

struct webhook_review {
    struct call *call;
    enum admission_operation operation;
    const struct resource *requested; /* the version of the request */
    cJSON *object; /* in the version of call->resource; NULL: a delete. Mutating hooks change it */
    const cJSON *old; /* likewise; NULL: a create */
    bool unnamed;     /* the server generated the object's name: the client gave none */
    bool apart;       /* as in struct admission_call */
};
/* err NULL: admitted; changed: *object is another one, valid and with defaults. */
typedef void (*webhook_done)(void *ctx, cJSON *object, bool changed, const struct err *err);
/* Decodes an object that a hook patched, as a body of resource r, and sets defaults. */
typedef int (*webhook_decode)(struct call *c, const struct resource *r, cJSON *object,
                              struct err *err);

/* Calls the hooks of this phase. False: none matches, and done() is not called. True: done() is
 * called exactly once, never before this returned. What r points to stays valid until then; r
 * itself is copied. decode: of the mutating phase. */
bool webhooks_run(enum webhook_phase phase, const struct webhook_review *r, webhook_decode decode,
                  webhook_done done, void *ctx);

/* The queue of calls; one for each API. */
struct webhooks *webhooks_new(struct vapi *api);
struct webhooks *webhooks_free(struct webhooks *w); /* takes NULL; no call is waiting */

/* vapi_create() for a controller with the account of this name (NULL: none): the tenant's webhooks
 * and policies see the write. */
void vapi_create_by(struct vapi *api, const char *account, const struct resource *r, struct str ns,
                    const cJSON *object, vapi_done_cb done, void *ctx);
