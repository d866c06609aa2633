/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Web Key Sets (RFC 7517, 7518 6): the public keys an issuer publishes. Must never keep a key
 * whose use costs more than a request may (huge moduli or exponents), nor private or symmetric
 * ones. */
#include <assert.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include <sublet/encode.h>

#include "jws.h"

#define SET_MAGIC    0x6b657973u
#define MAX_KEYS     64
#define MIN_RSA_BITS 1024 /* Go's crypto/rsa minimum */
#define MAX_RSA_BITS 8192
#define MAX_EXPONENT 4 /* bytes: Go's is at most 2^31-1 */

static const struct json_limits LIMITS = {.depth = 16, .nodes = 16384};

struct key {
    char *id;
    EVP_PKEY *pkey;
};

struct key_set {
    unsigned magic;
    struct key keys[MAX_KEYS];
    size_t n;
};

static EVP_PKEY *from_parameters(const char *type, OSSL_PARAM_BLD *build)
{
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;

    if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    ERR_clear_error();
    return key;
}

/* Decodes base64url of an unsigned number; NULL unless it has at most max bytes. */
static BIGNUM *read_number(struct arena *a, const cJSON *jwk, const char *name, size_t max)
{
    struct str bytes;

    if (!base64url_decode(a, json_str(json_get(jwk, name)), &bytes) || !bytes.n || bytes.n > max)
        return NULL;
    return BN_bin2bn((const unsigned char *)bytes.p, (int)bytes.n, NULL);
}

static EVP_PKEY *read_rsa(struct arena *a, const cJSON *jwk)
{
    BIGNUM *n = read_number(a, jwk, "n", MAX_RSA_BITS / 8 + 1);
    BIGNUM *e = read_number(a, jwk, "e", MAX_EXPONENT);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;

    if (n && e && build && BN_num_bits(n) >= MIN_RSA_BITS && BN_num_bits(n) <= MAX_RSA_BITS &&
        BN_is_odd(e) && !BN_is_one(e) && BN_num_bits(e) <= 31 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        key = from_parameters("RSA", build);
    OSSL_PARAM_BLD_free(build);
    BN_free(n);
    BN_free(e);
    return key;
}

/* An uncompressed point: 4, x, y (SEC 1, 2.3.3). OpenSSL refuses one that is not on the curve. */
static EVP_PKEY *read_ec(struct arena *a, const cJSON *jwk)
{
    static const struct {
        const char *name, *group;
        size_t bytes;
    } CURVES[] = {
        {"P-256", "prime256v1", 32}, {"P-384", "secp384r1", 48}, {"P-521", "secp521r1", 66}};
    struct str curve = json_str(json_get(jwk, "crv")), x, y;

    if (!base64url_decode(a, json_str(json_get(jwk, "x")), &x) ||
        !base64url_decode(a, json_str(json_get(jwk, "y")), &y))
        return NULL;
    for (size_t i = 0; i < COUNT(CURVES); i++) {
        if (!str_eqc(curve, CURVES[i].name) || x.n != CURVES[i].bytes || y.n != CURVES[i].bytes)
            continue;
        struct str point = arena_concat(a, 3, (struct str[]){{"\4", 1}, x, y});
        OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
        EVP_PKEY *key = NULL;

        if (build &&
            OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, CURVES[i].group,
                                            0) == 1 &&
            OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point.p, point.n) == 1)
            key = from_parameters("EC", build);
        OSSL_PARAM_BLD_free(build);
        return key;
    }
    return NULL;
}

static EVP_PKEY *read_key(struct arena *a, const cJSON *jwk)
{
    struct str use = json_str(json_get(jwk, "use")), type = json_str(json_get(jwk, "kty"));

    if (use.n && !str_eqc(use, "sig"))
        return NULL;
    if (str_eqc(type, "RSA"))
        return read_rsa(a, jwk);
    return str_eqc(type, "EC") ? read_ec(a, jwk) : NULL;
}

int key_set_parse(struct str text, struct key_set **ret, struct err *err)
{
    struct arena *a = arena_new(0);
    struct key_set *set;
    cJSON *tree;

    if (json_parse_strict(a, text, &LIMITS, NULL, NULL, &tree, err) ||
        !json_is_array(json_get(tree, "keys"))) {
        arena_free(a);
        return err_set(err, &ERR_BAD_REQUEST, "not a JSON Web Key Set");
    }
    set = NEW(struct key_set);
    set->magic = SET_MAGIC;
    json_each(jwk, json_get(tree, "keys"))
    {
        EVP_PKEY *key = set->n < MAX_KEYS ? read_key(a, jwk) : NULL;

        if (key)
            set->keys[set->n++] = (struct key){mem_strdup(json_str(json_get(jwk, "kid"))), key};
    }
    arena_free(a);
    *ret = set;
    return 0;
}

struct key_set *key_set_free(struct key_set *k)
{
    if (!k)
        return NULL;
    assert(k->magic == SET_MAGIC);
    for (size_t i = 0; i < k->n; i++) {
        mem_free(k->keys[i].id);
        EVP_PKEY_free(k->keys[i].pkey);
    }
    k->magic = 0;
    return mem_free(k);
}

size_t key_set_size(const struct key_set *k)
{
    return k ? k->n : 0;
}

bool key_set_verifies(const struct key_set *k, const struct jws *jws)
{
    for (size_t i = 0; k && i < k->n; i++) {
        assert(k->magic == SET_MAGIC);
        if ((!jws->key_id.n || str_eqc(jws->key_id, k->keys[i].id)) &&
            jws_verify(jws, k->keys[i].pkey))
            return true;
    }
    return false;
}
