/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * JSON Web Tokens as kube-apiserver writes and reads them, with one algorithm: ES256 (RFC
 * 7518 3.4). It knows keys and claims, neither store nor service accounts. */
#pragma once

#include <openssl/evp.h>

#include <sublet/pki.h>

/* base64url(sha256(SubjectPublicKeyInfo)), as k8s.io/kubernetes/pkg/serviceaccount derives it. */
int jwt_key_id(struct arena *a, EVP_PKEY *key, struct str *ret, struct err *err) MUST_CHECK;
int jwt_sign(struct arena *a, EVP_PKEY *key, struct str key_id, struct str issuer,
             const struct token_claims *claims, struct str *ret, struct err *err) MUST_CHECK;
/* now: wall clock seconds. */
int jwt_verify(struct arena *a, EVP_PKEY *key, struct str key_id, struct str issuer, int64_t now,
               struct str jwt, struct token_claims *ret, struct err *err) MUST_CHECK;
/* A key set (RFC 7517) with this one key. */
struct str jwt_key_set(struct arena *a, EVP_PKEY *key, struct str key_id);
