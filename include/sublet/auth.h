/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Authentication and authorization: client certificates, tokens, RBAC. Roles and bindings are read
 * from the store (an index dropped at every change), so a change applies to the next request. */
#pragma once

#include <sublet/net.h>
#include <sublet/pki.h>
#include <sublet/resource.h>

struct auth;

struct user {
    struct str name, uid;
    const struct str *groups; /* with system:authenticated or system:unauthenticated */
    size_t n_groups;
    const cJSON *extra;      /* {key: [values]} or NULL */
    const struct user *real; /* the impersonating user; NULL: no impersonation */
    struct str constraint;   /* mode of an impersonation: "impersonate:user-info"; empty: legacy */
};
/* The identity of our own controllers: system:masters; admission treats them as internal. */
extern const struct user USER_INTERNAL;

struct attributes {
    const char *verb; /* get list watch create update patch delete deletecollection, or any */
    struct str group, version, resource, subresource, name, ns;
    struct str path; /* of a non-resource request; resource.p == NULL then */
};

struct auth *auth_new(struct vapi *api, struct store *store, struct pki *pki);
struct auth *auth_free(struct auth *auth);
/* A request whose token cannot be verified before its issuer's keys are fetched: again() is called
 * once, never before auth_await() returned, unless auth_wait_end() came first. The struct begins
 * zeroed but for the first two members; its owner must not move it. */
struct auth_wait {
    void (*again)(void *ctx);
    void *ctx;
    struct auth_wait *next, **prev;
    size_t *count;
};
/* True: w waits. False: call auth_authenticate(). Call it once per request. */
bool auth_await(struct auth *auth, struct arena *a, const struct net_request *r,
                struct auth_wait *w);
bool auth_await_token(struct auth *auth, struct arena *a, struct str jwt, struct auth_wait *w);
void auth_wait_end(struct auth_wait *w); /* may be called without a wait */
/* UNAUTHORIZED when credentials are invalid, or absent while the configuration requires some;
 * otherwise, without any: system:anonymous. Never waits. Applies Impersonate-* headers (authorized
 * for the real user and this request: FORBIDDEN). */
int auth_authenticate(struct auth *auth, struct arena *a, const struct net_request *r,
                      const struct attributes *what, struct user *ret, struct err *err) MUST_CHECK;
/* *ret_reason: RBAC's reason ("RBAC: allowed by ..."); may be NULL. */
bool auth_authorize(struct auth *auth, struct arena *a, const struct user *u,
                    const struct attributes *what, struct str *ret_reason);
/* The 403 for a request that was not authorized, with upstream's message and RBAC's reason or none;
 * returns -1. */
int auth_forbidden(struct err *err, struct arena *a, const struct user *u,
                   const struct attributes *what, struct str reason);
/* Creates or reconciles the roles and bindings every cluster has; runs at start, then done(). */
void auth_bootstrap(struct auth *auth, void (*done)(void *ctx, const struct err *err), void *ctx);
/* A full disk refused a write of the start, but an earlier start was complete: the next one adds
 * what this version of the program has in addition. */
bool auth_can_wait(struct vapi *api, const struct err *err);
/* Refuses a role or binding that grants more than u has (escalate, bind). Called by admission. */
int auth_check_escalation(struct auth *auth, struct arena *a, const struct user *u,
                          const struct resource *r, const cJSON *object, const cJSON *old,
                          struct err *err) MUST_CHECK;

/* Handlers of the review kinds and of serviceaccounts/token. */
void auth_handle_review(struct call *call);
/* A token request, in its three steps: defaults, then (admission may have changed it) the checks,
 * which complete it, then the token. */
void auth_default_token_request(struct call *call);
int auth_check_token_request(struct call *call, struct err *err) MUST_CHECK;
void auth_issue_token(struct call *call);
/* Issuer discovery (/.well-known/openid-configuration, /openid/v1/jwks): true when path is one of
 * these, and was answered. */
bool auth_handle_openid(struct call *call, struct str path);
