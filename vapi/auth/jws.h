/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * JSON Web Signatures in compact form (RFC 7515) and the public keys of a key set (RFC 7517), over
 * OpenSSL: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 (RFC 7518 3.1), as
 * kube-apiserver takes them. It knows neither issuers nor what claims mean. */
#pragma once

#include <openssl/evp.h>

#include <sublet/json.h>

struct jws_algorithm;

struct jws {
    const struct jws_algorithm *algorithm; /* NULL: none of ours */
    struct str key_id;                     /* empty: not told */
    struct str text, signature;            /* what is signed, and the signature's bytes */
    const cJSON *claims;                   /* unverified */
};
/* Views into jwt and arena. UNAUTHORIZED when it is too long, not of three parts, not JSON, or
 * names critical headers. */
int jws_parse(struct arena *a, struct str jwt, struct jws *ret, struct err *err) MUST_CHECK;
struct str jws_algorithm_name(const struct jws *jws); /* "" for none of ours */
/* Whether key signed it: false as well when the key is not of the algorithm's type. */
bool jws_verify(const struct jws *jws, EVP_PKEY *key);
/* r and s side by side, as ES256 has them: 64 bytes. */
int jws_sign_es256(EVP_PKEY *key, struct str text, unsigned char ret[64],
                   struct err *err) MUST_CHECK;

struct key_set;
/* Keys we cannot use (other types, encryption, too small or large) are left out; at most 64 are
 * kept. BAD_REQUEST when the text is no key set. */
int key_set_parse(struct str text, struct key_set **ret, struct err *err) MUST_CHECK;
struct key_set *key_set_free(struct key_set *k); /* takes NULL */
size_t key_set_size(const struct key_set *k);
/* By the key it names, or else any. k may be NULL: no keys. */
bool key_set_verifies(const struct key_set *k, const struct jws *jws);
