/* SPDX-License-Identifier: Apache-2.0 */
/* Validating- and MutatingAdmissionPolicies: what the files policy_*.c share. Internal to
 * vapi/admission. */
#pragma once

#include "compiled.h"

#include <sublet/admission_policies.h>
#include <sublet/cel_policy.h>
#include <sublet/selector.h>

/* What one request may spend in all policies: steps of CEL, and what finding them takes. */
#define POLICY_REQUEST_LIMIT 20000000
#define POLICY_MEMORY        ((size_t)32 << 20) /* of the evaluations of one request */
#define POLICY_OUT_OF_BUDGET                                                                       \
    "validation failed due to running out of cost budget, no further validation rules will be run"

/* matchConstraints of a policy, matchResources of a binding, a webhook. */
struct policy_match {
    const cJSON *rules, *excluded;
    bool equivalent;
    struct selector ns, object;
    struct err ns_error, object_error; /* kind NULL: parsed */
};

/* One that is left out has only its head, `ignores`, and for a binding an empty policy_name. */
struct policy {
    struct compiled head;
    const cJSON *spec;
    bool ignores; /* failurePolicy Ignore */
    struct policy_match match;
    struct cel_policy expressions; /* of a policy */
    struct str policy_name;        /* of a binding */
};

/* One write, on its way through all policies. */
struct policy_request {
    const struct admission_call *call;
    struct arena *arena; /* of evaluations, with a limit */
    const cJSON *object, *old;
    struct str ns, name;  /* as upstream's attributes have them */
    struct user user;     /* as policies see it */
    struct str labels[2]; /* of object and old, once they are needed */
    bool has_labels[2];
    int64_t left; /* of POLICY_REQUEST_LIMIT */
    bool waits;   /* for a version that a webhook makes: the request is judged once more, then */
};

/* The resource a policy sees the request as: the request's own, or an equivalent one. */
struct policy_view {
    const struct resource *resource;
    cJSON *object, *old;
};

/* policies.c */
enum policy_kind { POLICIES_VALIDATING, POLICIES_MUTATING };
/* Policies and bindings as they are now, by name; NULL when there are none to apply. */
const struct policy *const *policies_current(const struct policy_request *q, enum policy_kind kind,
                                             size_t *ret_n);
const struct policy *const *policies_bindings(const struct policy_request *q, enum policy_kind kind,
                                              size_t *ret_n);

/* policy.c */
/* A policy, a review, or a write of our own that no policy judges. */
bool policy_is_exempt(const struct admission_call *c);
/* The server generated the object's name. */
bool policy_is_unnamed(const struct admission_call *c, const cJSON *object);
void policy_begin(struct policy_request *q); /* who writes, and the names */

/* policy_match.c */
/* rules: the key of the list. Without rules a policy matches every resource, a webhook none. */
void policy_match_read(struct arena *a, const cJSON *spec, const char *rules,
                       struct policy_match *ret);
/* 1, 0, or -1 with err: a selector that cannot be read, a namespace that is gone. */
int policy_matches(struct policy_request *q, const struct policy_match *m,
                   const struct resource **ret_as, struct err *err);

/* policy_params.c */
struct policy_params {
    cJSON **items; /* NULL: evaluated without params */
    size_t n;
};
/* Why the binding cannot be used, in upstream's words; NULL: it can. */
const char *policy_params_collect(struct policy_request *q, const struct policy *p,
                                  const struct policy *binding, struct policy_params *ret);
/* Why paramKind cannot be used; NULL: it can, or there is none. */
const char *policy_params_problem(const struct policy_request *q, const struct policy *p);

/* policy_invoke.c */
/* A policy with a binding and a parameter that apply to a request. */
struct policy_invocation {
    const struct policy *policy, *binding;
    const struct resource *as; /* what the policy sees the request as */
    const cJSON *params;       /* NULL: none */
};
typedef void (*policy_invocation_cb)(void *ctx, const struct policy_invocation *x);
/* Why the policy (binding NULL) or the binding cannot be used. */
typedef void (*policy_problem_cb)(void *ctx, const struct policy *p, const struct policy *binding,
                                  const char *why);
/* By binding, then by parameter. A policy without bindings applies to nothing, whatever its
 * problem. */
void policy_each_invocation(struct policy_request *q, enum policy_kind kind, const struct policy *p,
                            policy_invocation_cb each, policy_problem_cb problem, void *ctx);

/* policy_request.c */
struct policy_body_kind {
    struct str group, version, kind;
};
/* That of the subresource, where it has one of its own. */
struct policy_body_kind policy_body_kind(const struct resource *r, struct str subresource);
/* Whose write it is, as the tenant's admission sees it: a controller appears with the account of
 * upstream's. */
struct user policy_request_user(struct arena *a, const struct admission_call *c);
/* The AdmissionRequest without objects, uid. as: the resource of `kind`, named: of `resource`. */
cJSON *policy_request_tree(const struct policy_request *q, const struct resource *as,
                           const struct resource *named);
cJSON *policy_namespace_tree(const struct policy_request *q);
bool policy_request_authorize(void *request, const struct cel_check *check, struct str *ret_reason);

/* policy_evaluate.c */
struct policy_decision {
    size_t index; /* of the validation */
    struct str message, reason;
};
struct policy_annotation {
    struct str key, value;
    struct str problem; /* with failurePolicy Fail: a refusal */
};
struct policy_result {
    struct policy_decision *refusals;
    struct policy_annotation *annotations;
    size_t n_refusals, n_annotations;
};
void policy_evaluate(struct policy_request *q, const struct policy *p, const struct policy_view *v,
                     const cJSON *params, struct policy_result *ret);
/* matchConditions alone, of a webhook or a mutating policy: without `namespaceObject`. 1: all hold;
 * 0: one does not; -1: errors decide, in *ret_error. */
int policy_conditions_hold(struct policy_request *q, const struct policy *p,
                           const struct policy_view *v, const cJSON *params, struct str *ret_error);
/* What a mutation of the policy gives. False with *ret_error. */
bool policy_mutation(struct policy_request *q, const struct policy *p, const struct policy_view *v,
                     const cJSON *params, size_t index, struct cel_value *ret,
                     struct str *ret_error);

/* policy_patch.c */
/* The object of the view after a mutation; NULL: as it was. False with *ret_error. */
bool policy_patch(struct policy_request *q, const struct policy *p, const struct policy_view *v,
                  const cJSON *params, size_t index, cJSON **ret, struct str *ret_error);
