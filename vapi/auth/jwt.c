/* SPDX-License-Identifier: Apache-2.0
 *
 * Service account tokens. Why: pods authenticate with them, to us and (through the key set) to any
 * service that trusts us. Claims: k8s.io/kubernetes/pkg/serviceaccount/claims.go. Must never choose
 * an algorithm or a key from a token, and never read the claims of a token whose signature has not
 * been verified. jws.c has the signatures. */
#include "jwt.h"

#include <openssl/core_names.h>
#include <openssl/x509.h>

#include <sublet/encode.h>
#include <sublet/json.h>
#include <sublet/json_build.h>

#include "jws.h"
#include "pki_cert.h"

#define HALF          32ul /* bytes of r, of s, and of a coordinate */
#define MAX_AUDIENCES 64
#define LEEWAY        60 /* seconds of clock skew, as go-jose's DefaultLeeway */

/* Keys. */

int jwt_key_id(struct arena *a, EVP_PKEY *key, struct str *ret, struct err *err)
{
    unsigned char hash[32], *der = NULL;
    int n = i2d_PUBKEY(key, &der);

    if (n <= 0)
        return pki_fail(err, "encode a public key");
    sha256((struct str){(char *)der, (size_t)n}, hash);
    OPENSSL_free(der);
    *ret = base64url_encode(a, (struct str){(char *)hash, sizeof(hash)});
    return 0;
}

static struct str coordinate(struct arena *a, EVP_PKEY *key, const char *which)
{
    unsigned char bytes[HALF] = {0};
    BIGNUM *number = NULL;

    if (EVP_PKEY_get_bn_param(key, which, &number) == 1)
        BN_bn2binpad(number, bytes, HALF);
    BN_free(number);
    return base64url_encode(a, (struct str){(char *)bytes, HALF});
}

struct str jwt_key_set(struct arena *a, EVP_PKEY *key, struct str key_id)
{
    return arena_printf(a,
                        "{\"keys\":[{\"use\":\"sig\",\"kty\":\"EC\",\"kid\":\"%.*s\","
                        "\"crv\":\"P-256\",\"alg\":\"ES256\",\"x\":\"%s\",\"y\":\"%s\"}]}",
                        STR_F(key_id), coordinate(a, key, OSSL_PKEY_PARAM_EC_PUB_X).p,
                        coordinate(a, key, OSSL_PKEY_PARAM_EC_PUB_Y).p);
}

/* Signing. Keys of objects are in sorted order, as go-jose merges claims through a map. */

static struct str subject(struct arena *a, const struct token_claims *c)
{
    return arena_printf(a, "system:serviceaccount:%.*s:%.*s", STR_F(c->ns),
                        STR_F(c->service_account));
}

static void set_ref(struct arena *a, cJSON *object, const char *key, struct str name,
                    struct str uid)
{
    cJSON *ref = json_set(a, object, key, json_new_object(a));

    json_set_str(a, ref, "name", name);
    if (uid.n)
        json_set_str(a, ref, "uid", uid);
}

static struct str make_claims(struct arena *a, struct str issuer, const struct token_claims *c)
{
    cJSON *root = json_new_object(a);
    cJSON *audiences = json_set(a, root, "aud", json_new_array(a));
    cJSON *k;
    bool pod;

    for (size_t i = 0; i < c->n_audiences; i++)
        json_append(audiences, json_new_string(a, c->audiences[i]));
    json_put(a, root, JSON_I64("exp", c->expires), JSON_I64("iat", c->issued), JSON("iss", issuer),
             JSON_NONEMPTY("jti", c->id));

    k = json_set(a, root, "kubernetes.io", json_new_object(a));
    pod = str_eqc(c->bound_kind, "Pod");
    json_set_str(a, k, "namespace", c->ns);
    if (str_eqc(c->bound_kind, "Node"))
        set_ref(a, k, "node", c->bound_name, c->bound_uid);
    else if (pod && c->node_name.n)
        set_ref(a, k, "node", c->node_name, c->node_uid);
    if (pod)
        set_ref(a, k, "pod", c->bound_name, c->bound_uid);
    if (str_eqc(c->bound_kind, "Secret"))
        set_ref(a, k, "secret", c->bound_name, c->bound_uid);
    set_ref(a, k, "serviceaccount", c->service_account, c->service_account_uid);
    if (c->warn_after)
        json_set_i64(a, k, "warnafter", c->warn_after);

    json_set_i64(a, root, "nbf", c->not_before);
    json_set_str(a, root, "sub", subject(a, c));
    return json_text(a, root);
}

int jwt_sign(struct arena *a, EVP_PKEY *key, struct str key_id, struct str issuer,
             const struct token_claims *claims, struct str *ret, struct err *err)
{
    unsigned char raw[2 * HALF];
    struct str head = arena_printf(a, "{\"alg\":\"ES256\",\"kid\":\"%.*s\"}", STR_F(key_id));
    struct str text = arena_printf(a, "%s.%s", base64url_encode(a, head).p,
                                   base64url_encode(a, make_claims(a, issuer, claims)).p);

    if (jws_sign_es256(key, text, raw, err))
        return -1;
    *ret = arena_printf(a, "%s.%s", text.p,
                        base64url_encode(a, (struct str){(char *)raw, sizeof(raw)}).p);
    return 0;
}

/* Verifying. */

static int unauthorized(struct err *err, const char *why)
{
    return err_set(err, &ERR_UNAUTHORIZED, "%s", why);
}

/* The header decides nothing: it must name our algorithm and key. */
static bool header_ours(const struct jws *jws, struct str key_id)
{
    return str_eqc(jws_algorithm_name(jws), "ES256") &&
           (!jws->key_id.n || str_eq(jws->key_id, key_id));
}

static void read_ref(const cJSON *claims, const char *key, struct str *name, struct str *uid)
{
    const cJSON *ref = json_get(json_get(claims, "kubernetes.io"), key);

    *name = json_str(json_get(ref, "name"));
    *uid = json_str(json_get(ref, "uid"));
}

static void read_binding(const cJSON *claims, struct token_claims *ret)
{
    static const char *const BOUND[][2] = {{"pod", "Pod"}, {"secret", "Secret"}, {"node", "Node"}};

    for (size_t i = 0; i < 3 && !ret->bound_kind.n; i++) {
        read_ref(claims, BOUND[i][0], &ret->bound_name, &ret->bound_uid);
        if (ret->bound_name.n)
            ret->bound_kind = str_c(BOUND[i][1]);
    }
    if (str_eqc(ret->bound_kind, "Pod"))
        read_ref(claims, "node", &ret->node_name, &ret->node_uid);
}

static int read_claims(struct arena *a, const cJSON *claims, struct token_claims *ret)
{
    const cJSON *own = json_get(claims, "kubernetes.io");
    const cJSON *aud;
    size_t n;
    struct str *list;

    *ret = (struct token_claims){0};
    ret->ns = json_str(json_get(own, "namespace"));
    read_ref(claims, "serviceaccount", &ret->service_account, &ret->service_account_uid);
    read_binding(claims, ret);
    ret->id = json_str(json_get(claims, "jti"));
    ret->warn_after = json_i64_at(own, "warnafter", 0);
    if (!json_i64(json_get(claims, "exp"), &ret->expires) ||
        !json_i64(json_get(claims, "iat"), &ret->issued) ||
        !json_i64(json_get(claims, "nbf"), &ret->not_before))
        return -1;
    if (!ret->ns.n || !ret->service_account.n || !ret->service_account_uid.n)
        return -1;
    if (!str_eq(json_str(json_get(claims, "sub")), subject(a, ret)))
        return -1;

    aud = json_get(claims, "aud");
    n = json_is_string(aud) ? 1 : json_count(aud);
    if (n > MAX_AUDIENCES || !(json_is_string(aud) || json_is_array(aud)))
        return -1;
    list = arena_alloc(a, n * sizeof(*list) + 1);
    if (json_is_string(aud))
        list[ret->n_audiences++] = json_str(aud);
    else
        json_each(item, aud) list[ret->n_audiences++] = json_str(item);
    ret->audiences = list;
    return 0;
}

/* The messages of pkg/serviceaccount/claims.go. */
static int check_times(const struct token_claims *c, int64_t now, struct err *err)
{
    if (c->expires < now - LEEWAY)
        return unauthorized(err, "service account token has expired");
    if (c->not_before > now + LEEWAY)
        return unauthorized(err, "service account token is not valid yet");
    if (c->issued > now + LEEWAY)
        return unauthorized(err, "service account token is issued in the future");
    return 0;
}

int jwt_verify(struct arena *a, EVP_PKEY *key, struct str key_id, struct str issuer, int64_t now,
               struct str jwt, struct token_claims *ret, struct err *err)
{
    struct token_claims read;
    struct jws jws;

    if (jws_parse(a, jwt, &jws, err))
        return -1;
    if (!str_eq(json_str(json_get(jws.claims, "iss")), issuer))
        return unauthorized(err, "invalid bearer token");
    if (!header_ours(&jws, key_id))
        return unauthorized(err, "invalid signature, no keys found");
    if (!jws_verify(&jws, key))
        return unauthorized(err, "go-jose/go-jose: error in cryptographic primitive");
    if (read_claims(a, jws.claims, &read) < 0)
        return unauthorized(err, "service account token claims could not be validated");
    if (check_times(&read, now, err) < 0)
        return -1;
    *ret = read;
    return 0;
}
