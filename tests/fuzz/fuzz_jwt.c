/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens. Any bytes are no token of ours. A header and claims of any shape (with a zero byte
 * between), signed by our key, are refused in words or say who they are about, completely. Must
 * never accept a signature over other bytes. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ecdsa.h>

#include <sublet/encode.h>

#include "../../vapi/auth/jwt.h"

#define NOW  1800000000
#define HALF 32

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static EVP_PKEY *KEY;

static void free_key(void)
{
    EVP_PKEY_free(KEY);
}

/* The key is another one in each run: no input can depend on it. */
static void make_key(void)
{
    KEY = EVP_EC_gen("P-256");
    assert(KEY);
    atexit(free_key);
}

static struct str sign(struct arena *a, struct str text)
{
    unsigned char der[128], raw[2 * HALF];
    const unsigned char *p = der;
    size_t n = sizeof(der);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int good = EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, KEY) == 1 &&
               EVP_DigestSign(ctx, der, &n, (const unsigned char *)text.p, text.n) == 1;
    ECDSA_SIG *signature = good ? d2i_ECDSA_SIG(NULL, &p, (long)n) : NULL;

    assert(signature);
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, HALF);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + HALF, HALF);
    ECDSA_SIG_free(signature);
    EVP_MD_CTX_free(ctx);
    return base64url_encode(a, (struct str){(char *)raw, sizeof(raw)});
}

static bool verify(struct arena *a, struct str token, struct token_claims *ret)
{
    struct err err;

    err_init(&err, a);
    if (jwt_verify(a, KEY, STR("key"), STR("https://issuer"), NOW, token, ret, &err) == 0)
        return true;
    assert(err.kind == &ERR_UNAUTHORIZED && err.message.n && str_is_utf8(err.message));
    return false;
}

static void check_claims(const struct token_claims *c)
{
    assert(c->ns.n && c->service_account.n && c->service_account_uid.n);
    assert(c->expires >= NOW - 60 && c->not_before <= NOW + 60 && c->issued <= NOW + 60);
    assert(!c->bound_kind.n == !c->bound_name.n);
    for (size_t i = 0; i < c->n_audiences; i++)
        assert(!c->audiences[i].n || c->audiences[i].p);
}

static void check_signed(struct arena *a, struct str head, struct str claims)
{
    struct str text =
        arena_printf(a, "%s.%s", base64url_encode(a, head).p, base64url_encode(a, claims).p);
    struct str token = arena_printf(a, "%s.%s", text.p, sign(a, text).p);
    struct token_claims read;

    if (verify(a, token, &read))
        check_claims(&read);
    /* Any other character in what was signed. */
    char *bad = arena_cstr(a, token);
    bad[text.n / 2] = bad[text.n / 2] == 'A' ? 'B' : 'A';
    assert(!verify(a, (struct str){bad, token.n}, &read));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str claims = {(const char *)data, size}, head = str_cut(&claims, '\0');
    struct arena *a = arena_new(0);
    struct token_claims read;

    if (!KEY)
        make_key();
    assert(!verify(a, (struct str){(const char *)data, size}, &read));
    if (claims.p)
        check_signed(a, head, claims);
    arena_free(a);
    return 0;
}
