/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/admission)
 *
 * The parts of a webhook call: which hooks, the review that is sent, the answer that is read. */
#pragma once

#include <sublet/webhook.h>

/* One hook of one configuration. */
struct webhook_hook {
    struct str configuration, name;
    const cJSON *spec;
    size_t index;     /* among all hooks of the phase */
    bool ignores;     /* failurePolicy: Ignore */
    bool again;       /* reinvocationPolicy: IfNeeded */
    bool called, due; /* `due`: another hook changed the object after this one was called */
    const struct resource *as;
};

/* webhook_condition.c */
/* matchConditions of a hook that applies otherwise; object and old are in its version. 1: all hold;
 * 0: one does not, or errors are ignored; -1: with err, FORBIDDEN by what they say. */
int webhook_conditions(const struct webhook_review *r, const struct webhook_hook *h, cJSON *object,
                       cJSON *old, struct err *err) MUST_CHECK;
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
