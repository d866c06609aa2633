/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of other issuers, and their keys. Any bytes are a key set or none; claims of any shape
 * (before a zero byte) name a user completely or none, by the rules of an issuer that maps
 * everything; what follows the zero byte is a key set that judges their token. Must never
 * name a user whose name or groups lack their prefix. */

#include <assert.h>

#include <sublet/encode.h>

#include "../../vapi/auth/oidc.h"

#define NOW 1800000000

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const struct str AUDIENCES[] = {{"a", 1}, {"b", 1}};
static const struct config_claim_rule RULES[] = {{{"hd", 2}, {"x", 1}}};
static const struct config_issuer ISSUER = {
    .url = {"https://a", 9},
    .audiences = {AUDIENCES, 2},
    .username = {{"email", 5}, {"u:", 2}},
    .groups = {{"groups", 6}, {"g:", 2}},
    .uid_claim = {"sub", 3},
    .rules = RULES,
    .n_rules = 1,
};

static struct key_set *read_keys(struct str text)
{
    struct key_set *keys = NULL;
    struct err err;

    err_init(&err, NULL);
    if (key_set_parse(text, &keys, &err))
        assert(!keys && err.kind == &ERR_BAD_REQUEST);
    else
        assert(key_set_size(keys) <= 64);
    return keys;
}

static void check_user(const struct user *u)
{
    assert(str_has_prefix(u->name, STR("u:")) && u->name.n > 2);
    for (size_t i = 0; i < u->n_groups; i++)
        assert(str_has_prefix(u->groups[i], STR("g:")));
}

static void check_token(struct arena *a, struct str claims, const struct key_set *keys)
{
    struct str token =
        arena_printf(a, "%s.%s.%s", base64url_encode(a, STR("{\"alg\":\"RS256\"}")).p,
                     base64url_encode(a, claims).p, base64url_encode(a, STR("no signature")).p);
    struct jws jws;
    struct user user;
    struct err err;

    err_init(&err, a);
    if (jws_parse(a, token, &jws, &err)) {
        assert(err.kind == &ERR_UNAUTHORIZED);
        return;
    }
    assert(!key_set_verifies(keys, &jws));
    if (oidc_check_claims(&ISSUER, jws.claims, NOW, &err))
        assert(err.kind == &ERR_UNAUTHORIZED && err.message.n);
    err_clear(&err);
    if (oidc_map_user(&ISSUER, a, jws.claims, &user, &err))
        assert(err.kind == &ERR_UNAUTHORIZED && err.message.n);
    else
        check_user(&user);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str keys = {(const char *)data, size}, claims = str_cut(&keys, '\0');
    struct arena *a = arena_new(0);
    struct key_set *set = read_keys(keys.p ? keys : claims);
    struct jws jws;

    if (!jws_parse(a, claims, &jws, NULL))
        key_set_verifies(set, &jws);
    check_token(a, claims, set);
    key_set_free(set);
    arena_free(a);
    return 0;
}
