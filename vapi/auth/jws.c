/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Web Signatures. Why: tokens of pods and of users have this form, signed by keys of many
 * types. Must never accept an algorithm that is not in the table (`none`, and HMAC, whose key would
 * be the public one), and never let a token choose how its key is used: type and curve must fit. */
#include "jws.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

#include <sublet/encode.h>

#include "pki_cert.h"

#define MAX_TOKEN 32768u /* longer tokens are refused */

static const struct json_limits LIMITS = {.depth = 32, .nodes = 8192};

enum key_use { KEY_PKCS1, KEY_PSS, KEY_EC };

static const struct jws_algorithm {
    const char *name;
    enum key_use use;
    const EVP_MD *(*digest)(void);
    int bits; /* of the curve */
} ALGORITHMS[] = {
    {"RS256", KEY_PKCS1, EVP_sha256, 0}, {"RS384", KEY_PKCS1, EVP_sha384, 0},
    {"RS512", KEY_PKCS1, EVP_sha512, 0}, {"PS256", KEY_PSS, EVP_sha256, 0},
    {"PS384", KEY_PSS, EVP_sha384, 0},   {"PS512", KEY_PSS, EVP_sha512, 0},
    {"ES256", KEY_EC, EVP_sha256, 256},  {"ES384", KEY_EC, EVP_sha384, 384},
    {"ES512", KEY_EC, EVP_sha512, 521},
};

static const struct jws_algorithm *find_algorithm(struct str name)
{
    for (size_t i = 0; i < COUNT(ALGORITHMS); i++) {
        if (str_eqc(name, ALGORITHMS[i].name))
            return &ALGORITHMS[i];
    }
    return NULL;
}

struct str jws_algorithm_name(const struct jws *jws)
{
    return jws->algorithm ? str_c(jws->algorithm->name) : STR("");
}

/* Reading. */

static bool parse_part(struct arena *a, struct str part, cJSON **ret)
{
    struct str text;

    return base64url_decode(a, part, &text) &&
           json_parse_strict(a, text, &LIMITS, NULL, NULL, ret, NULL) == 0 && json_is_object(*ret);
}

/* kube-apiserver's answer to any invalid token. */
static int unauthorized(struct err *err)
{
    return err_set(err, &ERR_UNAUTHORIZED, "invalid bearer token");
}

int jws_parse(struct arena *a, struct str jwt, struct jws *ret, struct err *err)
{
    struct str rest = jwt, head, body, signature;
    cJSON *header, *claims;

    if (jwt.n > MAX_TOKEN)
        return unauthorized(err);
    head = str_cut(&rest, '.');
    body = str_cut(&rest, '.');
    if (!rest.p || str_find(rest, '.') != rest.n || !base64url_decode(a, rest, &signature) ||
        !parse_part(a, head, &header))
        return unauthorized(err);
    if (json_get(header, "crit"))
        return unauthorized(err);
    if (!parse_part(a, body, &claims))
        return unauthorized(err);
    *ret = (struct jws){
        .algorithm = find_algorithm(json_str(json_get(header, "alg"))),
        .key_id = json_str(json_get(header, "kid")),
        .text = str_sub(jwt, 0, head.n + 1 + body.n),
        .signature = signature,
        .claims = claims,
    };
    return 0;
}

/* Signatures over curves: OpenSSL uses DER, a JWS has r and s concatenated. */

static bool der_to_raw(const unsigned char *der, size_t n, unsigned char *raw, int half)
{
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);
    bool ok = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, half) == half &&
              BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + half, half) == half;

    ECDSA_SIG_free(sig);
    return ok;
}

/* Allocates *ret; 0 on failure. */
static int raw_to_der(struct str raw, unsigned char **ret)
{
    const unsigned char *bytes = (const unsigned char *)raw.p;
    int half = (int)(raw.n / 2), n = 0;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, half, NULL);
    BIGNUM *s = BN_bin2bn(bytes + half, half, NULL);

    if (sig && r && s && ECDSA_SIG_set0(sig, r, s) == 1) {
        r = s = NULL;
        n = i2d_ECDSA_SIG(sig, ret);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return n > 0 ? n : 0;
}

int jws_sign_es256(EVP_PKEY *key, struct str text, unsigned char ret[64], struct err *err)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    unsigned char der[128];
    size_t n = sizeof(der);
    bool ok = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(ctx, der, &n, (const unsigned char *)text.p, text.n) == 1 &&
              der_to_raw(der, n, ret, 32);

    EVP_MD_CTX_free(ctx);
    return ok ? 0 : pki_fail(err, "sign a token");
}

/* Verifying. */

static bool key_fits(const struct jws_algorithm *alg, EVP_PKEY *key)
{
    if (alg->use == KEY_EC)
        return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_bits(key) == alg->bits;
    return EVP_PKEY_is_a(key, "RSA");
}

/* Accepts a salt of any length, as go-jose does. */
static bool set_padding(EVP_PKEY_CTX *ctx, const struct jws_algorithm *alg)
{
    return alg->use != KEY_PSS ||
           (EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
            EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_AUTO) == 1);
}

static bool digest_verify(const struct jws *jws, EVP_PKEY *key, const unsigned char *sig, size_t n)
{
    const struct jws_algorithm *alg = jws->algorithm;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *padding = NULL;
    bool good = ctx && EVP_DigestVerifyInit(ctx, &padding, alg->digest(), NULL, key) == 1 &&
                set_padding(padding, alg) &&
                EVP_DigestVerify(ctx, sig, n, (const unsigned char *)jws->text.p, jws->text.n) == 1;

    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return good;
}

bool jws_verify(const struct jws *jws, EVP_PKEY *key)
{
    struct str raw = jws->signature;
    unsigned char *der = NULL;
    bool good;
    int n;

    if (!jws->algorithm || !key_fits(jws->algorithm, key))
        return false;
    if (jws->algorithm->use != KEY_EC)
        return digest_verify(jws, key, (const unsigned char *)raw.p, raw.n);
    if (raw.n != 2 * (size_t)((jws->algorithm->bits + 7) / 8))
        return false;
    n = raw_to_der(raw, &der);
    good = n && digest_verify(jws, key, der, (size_t)n);
    OPENSSL_free(der);
    return good;
}
