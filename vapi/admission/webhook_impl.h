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
    const struct webhook_parts *parts;
    size_t index;     /* among all hooks of the phase */
    bool ignores;     /* failurePolicy: Ignore */
    bool again;       /* reinvocationPolicy: IfNeeded */
    bool called, due; /* `due`: another hook changed the object after this one was called */
    const struct resource *as;
};

/* webhook_configurations.c */
struct webhook_parts {
    struct policy_match match;
    struct cel_policy expressions; /* conditions only */
    size_t n;
    bool left_out; /* those of the other hooks of the configuration are too large */
};
struct webhook_configuration {
    struct compiled head;
    bool ignores; /* each of its hooks ignores failures */
    const cJSON *hooks;
    struct webhook_parts *parts; /* of each hook */
    size_t n;
};
extern const struct compiled_kind WEBHOOK_CONFIGURATIONS[2]; /* by phase */

/* webhook_version.c: the object in a version that a conversion webhook makes, by versions.h. */
struct webhook_form {
    const struct resource *as; /* NULL: the objects are those of the review */
    const cJSON *object, *old;
    bool changed;  /* a hook changed `object` since it was made */
    bool replaced; /* the review's object is what was made of a form */
};
/* So that a hook that reads `as` can be shown the objects. 1; 0: it waits for what is wished for;
 * -1 with err. */
int webhook_form_open(struct webhook_form *f, enum webhook_phase phase, struct webhook_review *r,
                      const struct resource *as, struct err *err) MUST_CHECK;
/* So that the review's object is what hooks made of it; likewise. */
int webhook_form_close(struct webhook_form *f, struct webhook_review *r,
                       struct err *err) MUST_CHECK;
/* What a hook that reads `as` sees, a copy in a; NULL: there is no such object. */
cJSON *webhook_shown(struct arena *a, enum webhook_phase phase, const struct webhook_review *r,
                     const struct webhook_form *f, const struct resource *as, bool old);
/* What mutating hooks do not see comes back, as far as it is theirs to change. */
void webhook_unhide(const struct webhook_review *r, cJSON *object);

/* webhook_condition.c: which hooks see one write, with no pause between them. */
struct webhook_pass {
    enum webhook_phase phase;
    const struct webhook_review *review;
    const struct webhook_form *form;
    struct admission_call call;
    struct policy_request request; /* arena NULL: no hook was judged */
    struct arena *shown;           /* of the view: of the resource of the last hook */
    struct policy_view view;
};

void webhook_pass_begin(struct webhook_pass *p, enum webhook_phase phase,
                        const struct webhook_review *r, const struct webhook_form *f, int64_t left);
int64_t webhook_pass_end(struct webhook_pass *p); /* what is left of POLICY_REQUEST_LIMIT */
/* A write of admission's own objects, which no webhook sees: a broken one can be removed. */
bool webhook_is_exempt(const struct webhook_review *r);
/* By rules and selectors; h->as is the resource, in the version and group that the hook reads.
 * 1, 0, or -1 with err. */
int webhook_pass_matches(struct webhook_pass *p, struct webhook_hook *h,
                         struct err *err) MUST_CHECK;
/* A hook that matches, whose form is open. 1: it is called; 0: it is not; -1: FORBIDDEN by its
 * conditions. */
int webhook_pass_admits(struct webhook_pass *p, const struct webhook_hook *h,
                        struct err *err) MUST_CHECK;

/* webhook_review.c */
/* The request as hooks and their conditions see it: in a, but for q->left. */
void webhook_request(enum webhook_phase phase, const struct webhook_review *r, struct arena *a,
                     struct admission_call *call, struct policy_request *q);
/* The AdmissionReview for a hook that reads resource `as`; object and old are in its version. */
void webhook_print(const struct policy_request *q, const struct resource *as, struct str uid,
                   const cJSON *object, const cJSON *old, struct buf *out);
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
