/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * JSON Web Signatures in compact form (RFC 7515) and the public keys of a key set (RFC 7517), over
 * OpenSSL: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 (RFC 7518 3.1), the
 * algorithms kube-apiserver accepts. It knows neither issuers nor the meaning of claims. */
#pragma once

#include <openssl/evp.h>

#include <sublet/json.h>

struct jws_algorithm;

struct jws {
    const struct jws_algorithm *algorithm; /* NULL: not supported */
    struct str key_id;                     /* empty: absent */
    struct str text, signature;            /* the signed bytes, and the signature */
    const cJSON *claims;                   /* unverified */
};
/* Views into jwt and arena. UNAUTHORIZED when it is too long, not of three parts, not JSON, or
 * names critical headers. */
int jws_parse(struct arena *a, struct str jwt, struct jws *ret, struct err *err) MUST_CHECK;
struct str jws_algorithm_name(const struct jws *jws); /* "" when not supported */
/* True when key signed it; false also when the key does not have the algorithm's type. */
bool jws_verify(const struct jws *jws, EVP_PKEY *key);
/* r and s concatenated, as in ES256: 64 bytes. */
int jws_sign_es256(EVP_PKEY *key, struct str text, unsigned char ret[64],
                   struct err *err) MUST_CHECK;

struct key_set;
/* Unusable keys (other types, encryption, too small or large) are left out; at most 64 are kept.
 * BAD_REQUEST when it is not a key set. */
int key_set_parse(struct str text, struct key_set **ret, struct err *err) MUST_CHECK;
struct key_set *key_set_free(struct key_set *k); /* takes NULL */
size_t key_set_size(const struct key_set *k);
/* Uses the key the token names, or any if it names none. k may be NULL: no keys. */
bool key_set_verifies(const struct key_set *k, const struct jws *jws);
