/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of authentication and authorization share among themselves. Internal to vapi/auth.
 */
#pragma once

#include <sublet/vapi.h>

struct rbac;

struct rbac *auth_rbac(struct auth *auth);
struct vapi *auth_api(struct auth *auth);
bool user_is_master(const struct user *u);
/* Signature, audience (n 0: the API's own), and that everything the token stands for still exists.
 */
int auth_check_token(struct auth *auth, struct arena *a, struct str jwt,
                     const struct str *audiences, size_t n_audiences, struct token_claims *ret,
                     struct err *err) MUST_CHECK;
void auth_token_user(struct arena *a, const struct token_claims *claims, struct user *ret);
