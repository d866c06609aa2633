/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of authentication and authorization. Internal to vapi/auth. */
#pragma once

#include <sublet/vapi.h>

#include "last_modes.h"

#define AUTH_MAGIC    0x61757468u
#define CREDENTIAL_ID "authentication.kubernetes.io/credential-id"

struct rbac;
struct oidc;
struct token_cache;

struct auth {
    unsigned magic;
    struct vapi *api;
    struct store *store;
    struct pki *pki;
    struct rbac *rbac;
    struct token_cache *tokens;
    struct oidc *oidc;         /* NULL: no other issuers */
    int64_t refusal_logged_ms; /* when a refused token was last logged */
    struct last_modes modes;
};

struct rbac *auth_rbac(struct auth *auth);
struct vapi *auth_api(struct auth *auth);
bool auth_is_master(const struct user *u);

/* auth.c */
/* Groups, copied, with system:authenticated or system:unauthenticated. */
void auth_set_groups(struct arena *a, struct user *u, const struct str *groups, size_t n);
/* The user of a token, of any issuer; audiences (n 0: the API's own) are the acceptable ones, and
 * *ret_audiences (may be NULL) receives those among them that the token has. Never waits.
 * UNAUTHORIZED. */
int auth_token_user(struct auth *auth, struct arena *a, struct str jwt, const struct str *audiences,
                    size_t n, struct user *ret, struct str_list *ret_audiences,
                    struct err *err) MUST_CHECK;

/* bearer.c: the request's token, empty when it has none; UNAUTHORIZED when it is malformed. */
int auth_bearer(struct arena *a, const struct net_request *r, struct str *ret,
                struct err *err) MUST_CHECK;

/* impersonate.c: replaces *user by the impersonated one, for the request `what`. */
int auth_impersonate(struct auth *auth, struct arena *a, const struct net_request *r,
                     const struct attributes *what, struct user *user, struct err *err) MUST_CHECK;

/* review_access.c: SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview. */
void review_access(struct call *c);

/* account.c */
/* Checks signature, audience, and that everything the token is bound to still exists. */
int account_check_token(struct auth *auth, struct arena *a, struct str jwt,
                        const struct str *audiences, size_t n, struct token_claims *ret,
                        struct str_list *ret_audiences, struct err *err) MUST_CHECK;
void account_user(struct arena *a, const struct token_claims *claims, struct user *ret);
/* For reviews: a pod's token is made before the pod has a node, so that the node is not in its
 * claims, as upstream; the extra fields get the one where the pod is by now. */
void account_add_node(struct auth *auth, struct arena *a, struct user *u);
/* Those of the API's audiences that are among these (n 0: its first); false when there is none. */
bool account_own_audiences(struct auth *auth, struct arena *a, const struct str *audiences,
                           size_t n, struct str_list *ret);
