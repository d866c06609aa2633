/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/admission)
 *
 * The parts of a webhook call: which hooks, whether their matchConditions hold, the review that is
 * sent, the answer that is read. */
#pragma once

#include "compiled.h"
#include "policies.h"

#include <sublet/webhook.h>

/* One hook of one configuration. */
struct webhook_hook {
    struct str configuration, name;
    const cJSON *spec;
    const struct webhook_conditions *conditions;
    size_t index;     /* among all hooks of the phase */
    bool ignores;     /* failurePolicy: Ignore */
    bool again;       /* reinvocationPolicy: IfNeeded */
    bool called, due; /* `due`: another hook changed the object after this one was called */
    const struct resource *as;
};

/* webhook_configurations.c */
struct webhook_conditions {
    struct cel_policy expressions; /* conditions only */
    size_t n;
    bool left_out; /* those of the other hooks of the configuration are too large */
};
struct webhook_configuration {
    struct compiled head;
    bool ignores; /* each of its hooks ignores failures */
    const cJSON *hooks;
    struct webhook_conditions *conditions; /* of each hook */
    size_t n;
};
extern const struct compiled_kind WEBHOOK_CONFIGURATIONS[2]; /* by phase */

/* webhook_condition.c: the conditions of the hooks of one write, with no pause between them. */
struct webhook_pass {
    const struct webhook_review *review;
    struct admission_call call;
    struct policy_request request; /* arena NULL: nothing was evaluated */
    struct arena *shown;           /* of the view: of the resource of the last hook */
    struct policy_view view;
};
/* What a hook that reads `as` sees: a copy in a; NULL: there is no such object. */
typedef cJSON *(*webhook_show)(struct arena *a, void *ctx, const struct resource *as, bool old);

void webhook_pass_begin(struct webhook_pass *p, const struct webhook_review *r, int64_t left);
int64_t webhook_pass_end(struct webhook_pass *p); /* what is left of POLICY_REQUEST_LIMIT */
/* A hook that applies otherwise. 1: it is called; 0: it is not; -1: FORBIDDEN by its conditions. */
int webhook_pass_admits(struct webhook_pass *p, const struct webhook_hook *h, webhook_show show,
                        void *ctx, struct err *err) MUST_CHECK;

/* webhook_review.c */
/* Whose write it is, as hooks see it: a controller appears as upstream's, with its account. */
struct user webhook_user(struct arena *a, const struct call *c);
/* The AdmissionReview for a hook that reads resource `as`; object and old are in its version. */
void webhook_print(struct arena *a, const struct webhook_review *r, const struct resource *as,
                   struct str uid, const cJSON *object, const cJSON *old, struct buf *out);
struct webhook_verdict {
    bool allowed;
    cJSON *patch; /* NULL: none */
    const cJSON *result;
    const cJSON *warnings, *annotations;
};
/* Reads an answer of status 200; -1: err's message follows "failed calling webhook". */
int webhook_read(struct arena *a, enum webhook_phase phase, struct str body, struct str uid,
                 struct webhook_verdict *ret, struct err *err) MUST_CHECK;
/* Why an answer of another status is none; likewise. */
int webhook_refused(int status, struct str body, struct err *err) MUST_CHECK;
/* The tenant's refusal as the answer of the request. Returns -1. */
int webhook_denied(struct call *c, struct str name, const cJSON *result, struct err *err);
