/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * Users of other issuers (OpenID Connect): the issuer of a token, the keys that sign it, the user
 * it names. A worker fetches an issuer's documents when the first token needs them, and again when
 * a token's key is not among them or they are too old; requests wait for that without holding up
 * others. */
#pragma once

#include <stdatomic.h>

#include <sublet/auth.h>
#include <sublet/config.h>

#include "jws.h"

struct uv_loop_s;
struct oidc;

/* Gets a document over https; called in a worker thread. INTERNAL on failure. cancelled: give up
 * when it becomes true. */
typedef int (*oidc_get_cb)(void *ctx, struct arena *a, struct str url, struct str ca_pem,
                           const atomic_bool *cancelled, struct str *ret, struct err *err);

struct oidc_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    const struct config_issuer *issuers; /* must outlive the result */
    size_t n_issuers;
    oidc_get_cb get; /* NULL: oidc_http_get() */
    void *ctx;
};
struct oidc *oidc_new(const struct oidc_options *options);
/* Ends all waits; a worker that still runs ends by itself. Takes NULL. */
struct oidc *oidc_free(struct oidc *o);

/* True when the token names one of the configured issuers. o may be NULL. */
bool oidc_is_issuer(const struct oidc *o, const struct jws *jws);
/* True when the token might be valid with keys that are being fetched: w->again() will be called.
 * False: call oidc_authenticate() now. */
bool oidc_await(struct oidc *o, const struct jws *jws, struct auth_wait *w);
/* The user without system:authenticated; never waits. UNAUTHORIZED with upstream's message. */
int oidc_authenticate(struct oidc *o, struct arena *a, const struct jws *jws, struct user *ret,
                      struct err *err) MUST_CHECK;

/* oidc_user.c: checks claims (not the signature), and maps them to a user. */
int oidc_check_claims(const struct config_issuer *issuer, const cJSON *claims, int64_t now,
                      struct err *err) MUST_CHECK;
int oidc_map_user(const struct config_issuer *issuer, struct arena *a, const cJSON *claims,
                  struct user *ret, struct err *err) MUST_CHECK;

/* oidc_fetch.c */
/* Fetches the keys of an issuer through its discovery document. */
int oidc_fetch_keys(const struct config_issuer *issuer, oidc_get_cb get, void *ctx,
                    const atomic_bool *cancelled, struct key_set **ret, struct err *err) MUST_CHECK;
int oidc_http_get(void *ctx, struct arena *a, struct str url, struct str ca_pem,
                  const atomic_bool *cancelled, struct str *ret, struct err *err) MUST_CHECK;
