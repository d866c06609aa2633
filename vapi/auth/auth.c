/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication (client certificate, service account token, token of another issuer, or anonymous)
 * and authorization. Must never treat invalid credentials as anonymous, and never report why they
 * are invalid. */
#include "rbac.h"

#include <assert.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/log.h>

#include "auth_impl.h"
#include "oidc.h"
#include "token_cache.h"

#define MAX_TOKENS     512   /* verified tokens kept */
#define REFUSAL_LOG_MS 10000 /* at most one refused token per interval is logged */

static struct oidc *open_oidc(struct vapi *api)
{
    const struct config *config = vapi_config(api);
    struct oidc_options options = {.loop = vapi_loop(api), .clock = vapi_clock(api)};

    if (!config || !config->n_issuers)
        return NULL;
    options.issuers = config->issuers;
    options.n_issuers = config->n_issuers;
    return oidc_new(&options);
}

struct auth *auth_new(struct vapi *api, struct store *store, struct pki *pki)
{
    struct auth *auth = NEW(struct auth);

    *auth = (struct auth){.magic = AUTH_MAGIC, .api = api, .store = store, .pki = pki};
    auth->rbac = rbac_new(api);
    auth->tokens = token_cache_new(MAX_TOKENS);
    auth->oidc = open_oidc(api);
    auth->refusal_logged_ms = INT64_MIN / 2;
    return auth;
}

struct auth *auth_free(struct auth *auth)
{
    if (!auth)
        return NULL;
    assert(auth->magic == AUTH_MAGIC);
    oidc_free(auth->oidc);
    token_cache_free(auth->tokens);
    rbac_free(auth->rbac);
    auth->magic = 0;
    return mem_free(auth);
}

struct rbac *auth_rbac(struct auth *auth)
{
    return auth->rbac;
}

struct vapi *auth_api(struct auth *auth)
{
    return auth->api;
}

/* --- authentication --- */

static bool has_group(const struct str *groups, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eqc(groups[i], name))
            return true;
    }
    return false;
}

/* Copies everything: a call may outlive its request and its connection. An impersonating user may
 * set system:unauthenticated. */
void auth_set_groups(struct arena *a, struct user *u, const struct str *groups, size_t n)
{
    bool anonymous = str_eqc(u->name, "system:anonymous");
    const char *known = anonymous ? "system:unauthenticated" : "system:authenticated";
    struct str *all = arena_alloc(a, (n + 1) * sizeof(*all));

    for (size_t i = 0; i < n; i++)
        all[i] = arena_str(a, groups[i]);
    if (!has_group(all, n, known) && (anonymous || !has_group(all, n, "system:unauthenticated")))
        all[n++] = str_c(known);
    u->groups = all;
    u->n_groups = n;
}

static void user_of_certificate(struct arena *a, const struct net_peer *peer, struct user *ret)
{
    struct str id[] = {STR("X509SHA256="), peer->fingerprint};
    cJSON *extra = json_new_object(a);

    *ret = (struct user){.name = arena_str(a, peer->cn), .uid = arena_str(a, peer->uid)};
    auth_set_groups(a, ret, peer->organizations, peer->n_organizations);
    if (!peer->fingerprint.n)
        return;
    json_append(json_set(a, extra, CREDENTIAL_ID, json_new_array(a)),
                json_new_string(a, arena_concat(a, 2, id)));
    ret->extra = extra;
}

/* True when the token is of another configured issuer. */
static bool is_foreign(struct auth *auth, struct arena *a, struct str jwt, struct jws *ret)
{
    return auth->oidc && !jws_parse(a, jwt, ret, NULL) && oidc_is_issuer(auth->oidc, ret);
}

int auth_token_user(struct auth *auth, struct arena *a, struct str jwt, const struct str *audiences,
                    size_t n, struct user *ret, struct str_list *ret_audiences, struct err *err)
{
    struct token_claims claims;
    struct jws jws;

    if (is_foreign(auth, a, jwt, &jws)) {
        struct user user;

        /* Their tokens are for this API, whatever its audiences are. */
        if (!account_own_audiences(auth, a, audiences, n, ret_audiences))
            return err_set(err, &ERR_UNAUTHORIZED, "invalid bearer token");
        if (oidc_authenticate(auth->oidc, a, &jws, &user, err))
            return -1;
        auth_set_groups(a, &user, user.groups, user.n_groups);
        *ret = user;
        return 0;
    }
    if (account_check_token(auth, a, jwt, audiences, n, &claims, ret_audiences, err))
        return -1;
    account_user(a, &claims, ret);
    return 0;
}

bool auth_await_token(struct auth *auth, struct arena *a, struct str jwt, struct auth_wait *w)
{
    struct jws jws;

    return is_foreign(auth, a, jwt, &jws) && oidc_await(auth->oidc, &jws, w);
}

bool auth_await(struct auth *auth, struct arena *a, const struct net_request *r,
                struct auth_wait *w)
{
    struct str jwt;
    struct err ignored;

    if (!auth->oidc || (r->tls && r->tls->cn.p))
        return false;
    err_init(&ignored, a);
    return !auth_bearer(a, r, &jwt, &ignored) && jwt.n && auth_await_token(auth, a, jwt, w);
}

/* The client receives no reason; the operator finds it in the log, at a limited rate. */
static int refuse_token(struct auth *auth, struct err *err)
{
    int64_t now = clock_mono_ms(vapi_clock(auth->api));

    if (now - auth->refusal_logged_ms >= REFUSAL_LOG_MS) {
        auth->refusal_logged_ms = now;
        log_info("token refused reason=\"%.*s\"", STR_F(err->message));
    }
    err_clear(err);
    return err_set(err, &ERR_UNAUTHORIZED, "Unauthorized");
}

static bool anonymous_allowed(struct auth *auth, struct arena *a, const struct net_request *r)
{
    const struct config *config = vapi_config(auth->api);
    struct str path;

    if (!config || !config->anonymous_paths.n)
        return !config || !config->anonymous_refused;
    return url_decode(a, r->path, false, &path) && str_list_has(config->anonymous_paths, path);
}

static int identify(struct auth *auth, struct arena *a, const struct net_request *r,
                    struct user *ret, struct err *err)
{
    struct str jwt;

    if (r->tls && r->tls->cn.p) {
        user_of_certificate(a, r->tls, ret);
        return 0;
    }
    if (auth_bearer(a, r, &jwt, err))
        return refuse_token(auth, err);
    if (jwt.n)
        return auth_token_user(auth, a, jwt, NULL, 0, ret, NULL, err) ? refuse_token(auth, err) : 0;
    if ((r->tls && r->tls->rejected.n) || !anonymous_allowed(auth, a, r))
        return err_set(err, &ERR_UNAUTHORIZED, "Unauthorized");
    *ret = (struct user){.name = STR("system:anonymous")};
    auth_set_groups(a, ret, NULL, 0);
    return 0;
}

int auth_authenticate(struct auth *auth, struct arena *a, const struct net_request *r,
                      const struct attributes *what, struct user *ret, struct err *err)
{
    assert(auth->magic == AUTH_MAGIC);
    if (identify(auth, a, r, ret, err))
        return -1;
    return auth_impersonate(auth, a, r, what, ret, err);
}

/* --- authorization --- */

struct decision {
    const struct attributes *what;
    struct arena *arena;
    struct str *reason;
    bool allowed;
    struct missing_roles missing;
};

static bool on_rule(void *ctx, const struct rule *rule, const struct rule_origin *o)
{
    struct decision *q = ctx;

    if (!rule && q->reason)
        rbac_missing_add(&q->missing, q->arena, o);
    if (!rule || !rbac_rule_allows(rule, q->what))
        return true;
    q->allowed = true;
    if (q->reason)
        *q->reason = arena_printf(
            q->arena, "RBAC: allowed by %s \"%.*s%s%.*s\" of %s \"%.*s\" to %s \"%.*s%s%.*s\"",
            o->binding_kind, STR_F(o->binding), o->ns.n ? "/" : "", STR_F(o->ns), o->role_kind,
            STR_F(o->role), o->subject_kind, STR_F(o->subject), o->subject_ns.n ? "/" : "",
            STR_F(o->subject_ns));
    return false;
}

bool auth_is_master(const struct user *u)
{
    for (size_t i = 0; i < u->n_groups; i++) {
        if (str_eqc(u->groups[i], "system:masters"))
            return true;
    }
    return false;
}

bool auth_authorize(struct auth *auth, struct arena *a, const struct user *u,
                    const struct attributes *what, struct str *ret_reason)
{
    struct decision q = {.what = what, .arena = a, .reason = ret_reason};

    assert(auth->magic == AUTH_MAGIC);
    if (ret_reason)
        *ret_reason = STR("");
    if (auth_is_master(u))
        return true;
    rbac_each(auth->rbac, u, what->ns, on_rule, &q);
    if (!q.allowed && q.missing.n)
        *ret_reason = arena_printf(a, "RBAC: %.*s", STR_F(rbac_missing_message(&q.missing, a)));
    return q.allowed;
}
