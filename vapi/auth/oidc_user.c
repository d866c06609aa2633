/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps the claims of a token to a user, by the rules of one issuer. Source of rules and messages:
 * k8s.io/apiserver plugin/pkg/authenticator/token/oidc and github.com/coreos/go-oidc v2. Must never
 * name a user when a required claim is missing or has another type. */
#include "oidc.h"

#include <stdarg.h>

#include <sublet/json_build.h>

#define NBF_LEEWAY    60 /* seconds; exp has no leeway */
#define MAX_GROUPS    1024
#define MAX_AUDIENCES 64
#define MESSAGE_MAX   511

static int refuse(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct err *err, const char *format, ...)
{
    struct buf message = BUF_INIT(0);
    va_list args;

    va_start(args, format);
    buf_vprintf(&message, format, args);
    va_end(args);
    err_set(err, &ERR_UNAUTHORIZED, "oidc: %.*s", STR_F(str_clip(buf_str(&message), MESSAGE_MAX)));
    buf_fini(&message);
    return -1;
}

/* ---- required claims ---- */

/* NumericDate (RFC 7519 2): seconds, perhaps with a fraction. */
static bool read_time(const cJSON *node, int64_t *ret)
{
    if (json_i64(node, ret))
        return true;
    if (!json_is_number(node) || !(node->valuedouble > -1e15 && node->valuedouble < 1e15))
        return false;
    *ret = (int64_t)node->valuedouble;
    return true;
}

static bool is_audience(const struct config_issuer *issuer, const cJSON *aud)
{
    size_t n = 0;

    if (json_is_string(aud))
        return str_list_has(issuer->audiences, json_str(aud));
    json_each(item, aud)
    {
        if (n++ < MAX_AUDIENCES && json_is_string(item) &&
            str_list_has(issuer->audiences, json_str(item)))
            return true;
    }
    return false;
}

int oidc_check_claims(const struct config_issuer *issuer, const cJSON *claims, int64_t now,
                      struct err *err)
{
    const cJSON *from;
    int64_t end, start;

    if (!is_audience(issuer, json_get(claims, "aud")))
        return refuse(err, "verify token: oidc: expected audience of issuer \"%.*s\" is missing",
                      STR_F(issuer->url));

    from = json_get(claims, "nbf");
    end = 0;
    start = 0;
    /* A token without exp counts as expired. */
    if (!read_time(json_get(claims, "exp"), &end) || end < now)
        return refuse(err, "verify token: oidc: token is expired (Token Expiry: %lld)",
                      (long long)end);
    if (!from || json_is_null(from))
        return 0;
    if (!read_time(from, &start) || now + NBF_LEEWAY < start)
        return refuse(
            err, "verify token: oidc: current time %lld before the nbf (not before) time: %lld",
            (long long)now, (long long)start);
    return 0;
}

/* ---- the user ---- */

static struct str prefixed(struct arena *a, struct str prefix, struct str text)
{
    return arena_concat(a, 2, (struct str[]){prefix, text});
}

/* OpenID Connect Core 5.1: an address that is not verified proves nothing. */
static int check_email(const cJSON *claims, struct err *err)
{
    const cJSON *verified = json_get(claims, "email_verified");

    if (!verified)
        return 0;
    if (!json_is_bool(verified) && !json_is_null(verified))
        return refuse(err, "parse 'email_verified' claim: want true or false");
    return json_true(verified) ? 0 : refuse(err, "email not verified");
}

static int map_name(const struct config_issuer *issuer, struct arena *a, const cJSON *claims,
                    struct user *ret, struct err *err)
{
    const struct config_claim *c = &issuer->username;
    const cJSON *claim = json_get_str(claims, c->claim);

    if (!claim)
        return refuse(err, "parse username claims \"%.*s\": claim not present", STR_F(c->claim));
    if (!json_is_string(claim) || !json_str(claim).n)
        return refuse(err, "parse username claims \"%.*s\": want a string", STR_F(c->claim));
    if (str_eqc(c->claim, "email") && check_email(claims, err))
        return -1;
    ret->name = prefixed(a, c->prefix, json_str(claim));
    return 0;
}

/* A list of strings, or one string. */
static int map_groups(const struct config_issuer *issuer, struct arena *a, const cJSON *claims,
                      struct user *ret, struct err *err)
{
    const struct config_claim *c = &issuer->groups;
    const cJSON *claim = c->claim.n ? json_get_str(claims, c->claim) : NULL;
    struct str *groups;

    if (!claim && c->claim.n && json_get_str(json_get(claims, "_claim_names"), c->claim))
        return refuse(err, "distributed claims are not fetched: claim \"%.*s\"", STR_F(c->claim));
    if (!claim || json_is_null(claim))
        return 0;
    if (json_count(claim) > MAX_GROUPS)
        return refuse(err, "parse groups claim \"%.*s\": more than %d", STR_F(c->claim),
                      MAX_GROUPS);
    groups = arena_alloc(a, (json_count(claim) + 1) * sizeof(*groups));
    if (json_is_string(claim))
        groups[ret->n_groups++] = prefixed(a, c->prefix, json_str(claim));
    else if (!json_is_array(claim))
        return refuse(err, "parse groups claim \"%.*s\": want texts", STR_F(c->claim));
    json_each(item, json_is_array(claim) ? claim : NULL)
    {
        if (!json_is_string(item))
            return refuse(err, "parse groups claim \"%.*s\": want texts", STR_F(c->claim));
        groups[ret->n_groups++] = prefixed(a, c->prefix, json_str(item));
    }
    ret->groups = groups;
    return 0;
}

static int map_uid(const struct config_issuer *issuer, struct arena *a, const cJSON *claims,
                   struct user *ret, struct err *err)
{
    const cJSON *claim = json_get_str(claims, issuer->uid_claim);

    if (!issuer->uid_claim.n)
        return 0;
    if (!json_is_string(claim))
        return refuse(err, "parse uid claim \"%.*s\": %s", STR_F(issuer->uid_claim),
                      claim ? "want a string" : "claim not present");
    ret->uid = arena_str(a, json_str(claim));
    return 0;
}

static int check_rules(const struct config_issuer *issuer, const cJSON *claims, struct err *err)
{
    for (size_t i = 0; i < issuer->n_rules; i++) {
        const struct config_claim_rule *rule = &issuer->rules[i];
        const cJSON *claim = json_get_str(claims, rule->claim);

        if (!claim)
            return refuse(err, "required claim %.*s not present in ID token", STR_F(rule->claim));
        if (!json_is_string(claim))
            return refuse(err, "parse claim %.*s: want a string", STR_F(rule->claim));
        if (!str_eq(json_str(claim), rule->value))
            return refuse(err, "required claim %.*s value does not match. Got = %.*s, want = %.*s",
                          STR_F(rule->claim), STR_F(json_str(claim)), STR_F(rule->value));
    }
    return 0;
}

int oidc_map_user(const struct config_issuer *issuer, struct arena *a, const cJSON *claims,
                  struct user *ret, struct err *err)
{
    struct user user = {.uid = STR("")};
    struct str id = json_str(json_get(claims, "jti"));

    if (map_name(issuer, a, claims, &user, err) || map_groups(issuer, a, claims, &user, err) ||
        map_uid(issuer, a, claims, &user, err) || check_rules(issuer, claims, err))
        return -1;
    /* The token's ID for audit, as with service account tokens. */
    if (id.n) {
        cJSON *value = json_new_string(a, prefixed(a, STR("JTI="), id));

        user.extra = json_object(
            a, JSON("authentication.kubernetes.io/credential-id", json_array(a, value)));
    }
    *ret = user;
    return 0;
}
