/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Who is asking, and may they: client certificates, service account tokens, RBAC. Roles and
 * bindings are read from the store at every question (an index kept by watching), so a change works
 * at once. */
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
    const struct user *real; /* who acts as this user (impersonation); NULL: itself */
    struct str constraint;   /* of an impersonation: "impersonate:user-info"; empty: the old way */
};
/* The identity of our own controllers: system:masters; admission knows them as internal. */
extern const struct user USER_INTERNAL;

struct attributes {
    const char *verb; /* get list watch create update patch delete deletecollection, or any */
    struct str group, version, resource, subresource, name, ns;
    struct str path; /* of a non-resource request; resource.p == NULL then */
};

struct auth *auth_new(struct vapi *api, struct store *store, struct pki *pki);
struct auth *auth_free(struct auth *auth);
/* A request whose token cannot be judged before its issuer's keys are fetched: again() is called
 * once, never before auth_await() returned, unless auth_wait_end() came first. The struct begins
 * zeroed but for the first two; it is its owner's, and stays where it is. */
struct auth_wait {
    void (*again)(void *ctx);
    void *ctx;
    struct auth_wait *next, **prev;
    size_t *count;
};
/* True: w waits. False: auth_authenticate() will say. Call it once per request. */
bool auth_await(struct auth *auth, struct arena *a, const struct net_request *r,
                struct auth_wait *w);
bool auth_await_token(struct auth *auth, struct arena *a, struct str jwt, struct auth_wait *w);
void auth_wait_end(struct auth_wait *w); /* may be called when nothing waits */
/* UNAUTHORIZED when credentials were given and are wrong, or none are and the configuration wants
 * some; without any: system:anonymous. Never waits.
 * Applies Impersonate-* headers (authorised against the real user, for what is asked: FORBIDDEN).
 */
int auth_authenticate(struct auth *auth, struct arena *a, const struct net_request *r,
                      const struct attributes *what, struct user *ret, struct err *err) MUST_CHECK;
/* *ret_reason: what RBAC said ("RBAC: allowed by ..."); may be NULL. */
bool auth_authorize(struct auth *auth, struct arena *a, const struct user *u,
                    const struct attributes *what, struct str *ret_reason);
/* The 403 for a question that was answered no, in upstream's words, with RBAC's reason or none;
 * returns -1. */
int auth_forbidden(struct err *err, struct arena *a, const struct user *u,
                   const struct attributes *what, struct str reason);
/* Roles and bindings every cluster has, created or reconciled; runs at start, then done. */
void auth_bootstrap(struct auth *auth, void (*done)(void *ctx, const struct err *err), void *ctx);
/* A full disk refused what a start writes, but an earlier start was complete: the next one has what
 * is new in this version of the program. */
bool auth_can_wait(struct vapi *api, const struct err *err);
/* Refuses a role or binding that gives more than u has (escalate, bind). Called by admission. */
int auth_check_escalation(struct auth *auth, struct arena *a, const struct user *u,
                          const struct resource *r, const cJSON *object, const cJSON *old,
                          struct err *err) MUST_CHECK;

/* Handlers of the review kinds and of serviceaccounts/token. */
void auth_handle_review(struct call *call);
void auth_handle_token_request(struct call *call);
/* Issuer discovery (/.well-known/openid-configuration, /openid/v1/jwks): true when path was theirs,
 * and answered. */
bool auth_handle_openid(struct call *call, struct str path);
