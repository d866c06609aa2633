/* SPDX-License-Identifier: Apache-2.0 */
/* Who is asking: client certificate, service account token or nobody, and whom the asker acts for.
 * Must never take a name from a header without having authorised the real user for it, and never
 * accept a token whose service account or bound object is gone. */
#include "rbac.h"

#include <assert.h>
#include <string.h>

#include <sublet/encode.h>

#include "auth_impl.h"
#include "token_cache.h"

#define AUTH_MAGIC 0x61757468u
#define MAX_GROUPS 64
#define MAX_TOKENS 512 /* remembered as verified */

static const struct str INTERNAL_GROUPS[] = {{"system:masters", 14}, {"system:authenticated", 20}};
const struct user USER_INTERNAL = {
    .name = {"system:sublet", 13},
    .groups = INTERNAL_GROUPS,
    .n_groups = 2,
};

struct auth {
    unsigned magic;
    struct vapi *api;
    struct store *store;
    struct pki *pki;
    struct rbac *rbac;
    struct token_cache *tokens;
};

struct auth *auth_new(struct vapi *api, struct store *store, struct pki *pki)
{
    struct auth *auth = NEW(struct auth);

    *auth = (struct auth){.magic = AUTH_MAGIC, .api = api, .store = store, .pki = pki};
    auth->rbac = rbac_new(api);
    auth->tokens = token_cache_new(MAX_TOKENS);
    return auth;
}

struct auth *auth_free(struct auth *auth)
{
    if (!auth)
        return NULL;
    assert(auth->magic == AUTH_MAGIC);
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

/* Copies, as everything in a user is copied: a call may outlive its request and its connection. */
static void set_groups(struct arena *a, struct user *u, const struct str *groups, size_t n)
{
    bool anonymous = str_eqc(u->name, "system:anonymous");
    struct str *all = arena_alloc(a, (n + 1) * sizeof(*all));

    for (size_t i = 0; i < n; i++)
        all[i] = arena_str(a, groups[i]);
    all[n] = anonymous ? STR("system:unauthenticated") : STR("system:authenticated");
    for (size_t i = 0; i < n; i++) {
        if (str_eq(all[i], all[n])) {
            u->groups = all;
            u->n_groups = n;
            return;
        }
    }
    u->groups = all;
    u->n_groups = n + 1;
}

static void user_of_certificate(struct arena *a, const struct net_peer *peer, struct user *ret)
{
    *ret = (struct user){.name = arena_str(a, peer->cn), .uid = arena_str(a, peer->uid)};
    set_groups(a, ret, peer->organizations, peer->n_organizations);
}

static void extra_add(struct arena *a, cJSON *extra, const char *key, struct str value)
{
    if (value.n)
        json_append(json_set(a, extra, key, json_new_array(a)), json_new_string(a, value));
}

void auth_token_user(struct arena *a, const struct token_claims *claims, struct user *ret)
{
    struct str groups[] = {STR("system:serviceaccounts"),
                           arena_printf(a, "system:serviceaccounts:%.*s", STR_F(claims->ns))};
    cJSON *extra = json_new_object(a);

    *ret = (struct user){
        .name = arena_printf(a, "system:serviceaccount:%.*s:%.*s", STR_F(claims->ns),
                             STR_F(claims->service_account)),
        .uid = claims->service_account_uid,
        .extra = extra,
    };
    set_groups(a, ret, groups, 2);
    if (claims->id.n)
        extra_add(a, extra, "authentication.kubernetes.io/credential-id",
                  arena_concat(a, 2, (struct str[]){STR("JTI="), claims->id}));
    if (str_eqc(claims->bound_kind, "Pod")) {
        extra_add(a, extra, "authentication.kubernetes.io/pod-name", claims->bound_name);
        extra_add(a, extra, "authentication.kubernetes.io/pod-uid", claims->bound_uid);
    }
    extra_add(a, extra, "authentication.kubernetes.io/node-name", claims->node_name);
    extra_add(a, extra, "authentication.kubernetes.io/node-uid", claims->node_uid);
}

static bool object_lives(struct auth *auth, const char *plural, struct str ns, struct str name,
                         struct str uid)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(auth->api), STR(""), str_c(plural));
    const struct store_object *o = r ? store_get(auth->store, r->storage, ns, name) : NULL;

    return o && str_eq(o->uid, uid);
}

/* What a token is bound to must still be there, under the same uid. */
static bool token_lives(struct auth *auth, const struct token_claims *c)
{
    static const struct {
        const char *kind, *plural;
        bool namespaced;
    } bound[] = {{"Pod", "pods", true}, {"Secret", "secrets", true}, {"Node", "nodes", false}};

    if (!object_lives(auth, "serviceaccounts", c->ns, c->service_account, c->service_account_uid))
        return false;
    if (!c->bound_kind.n)
        return true;
    for (size_t i = 0; i < sizeof(bound) / sizeof(*bound); i++) {
        if (str_eqc(c->bound_kind, bound[i].kind))
            return object_lives(auth, bound[i].plural, bound[i].namespaced ? c->ns : STR(""),
                                c->bound_name, c->bound_uid);
    }
    return false;
}

static bool audience_matches(struct auth *auth, const struct token_claims *c,
                             const struct str *audiences, size_t n)
{
    struct str own = pki_issuer(auth->pki);

    for (size_t i = 0; i < c->n_audiences; i++) {
        if (!n && (str_eq(c->audiences[i], own) ||
                   str_has_prefix(c->audiences[i], STR("https://kubernetes.default.svc"))))
            return true;
        for (size_t j = 0; j < n; j++) {
            if (str_eq(c->audiences[i], audiences[j]))
                return true;
        }
    }
    return false;
}

static int verify_token(struct auth *auth, struct arena *a, struct str jwt,
                        struct token_claims *ret, struct err *err)
{
    int64_t now = clock_wall_s(vapi_clock(auth->api));

    if (token_cache_get(auth->tokens, a, jwt, now, ret))
        return 0;
    if (pki_verify_token(auth->pki, a, jwt, ret, err))
        return -1;
    token_cache_put(auth->tokens, jwt, now, ret);
    return 0;
}

/* Only the signature is remembered: what else a token stands on is looked at every time. */
int auth_check_token(struct auth *auth, struct arena *a, struct str jwt,
                     const struct str *audiences, size_t n_audiences, struct token_claims *ret,
                     struct err *err)
{
    if (verify_token(auth, a, jwt, ret, err))
        return -1;
    if (!audience_matches(auth, ret, audiences, n_audiences))
        return err_set(err, &ERR_UNAUTHORIZED, "token audiences do not match");
    if (!token_lives(auth, ret))
        return err_set(err, &ERR_UNAUTHORIZED,
                       "the token's service account or bound object no longer exists");
    return 0;
}

static int user_of_token(struct auth *auth, struct arena *a, struct str header, struct user *ret,
                         struct err *err)
{
    struct token_claims claims;
    struct str jwt = str_trim(str_from(header, sizeof("Bearer ") - 1));

    if (auth_check_token(auth, a, jwt, NULL, 0, &claims, err)) {
        err_clear(err);
        return err_set(err, &ERR_UNAUTHORIZED, "Unauthorized");
    }
    auth_token_user(a, &claims, ret);
    return 0;
}

static bool is_bearer(struct str header)
{
    return header.n > 7 && !strncasecmp(header.p, "bearer ", 7);
}

static int identify(struct auth *auth, struct arena *a, const struct net_request *r,
                    struct user *ret, struct err *err)
{
    struct str header = net_header(r, "authorization");

    if (r->tls && r->tls->cn.p) {
        user_of_certificate(a, r->tls, ret);
        return 0;
    }
    if (is_bearer(header))
        return user_of_token(auth, a, header, ret, err);
    if (header.n || (r->tls && r->tls->rejected.n))
        return err_set(err, &ERR_UNAUTHORIZED, "Unauthorized");
    *ret = (struct user){.name = STR("system:anonymous")};
    set_groups(a, ret, NULL, 0);
    return 0;
}

/* --- impersonation --- */

static int may_impersonate(struct auth *auth, struct arena *a, const struct user *u,
                           struct str group, struct str resource, struct str sub, struct str ns,
                           struct str name, struct err *err)
{
    struct attributes what = {.verb = "impersonate",
                              .group = group,
                              .version = STR("v1"),
                              .resource = resource,
                              .subresource = sub,
                              .name = name,
                              .ns = ns};

    if (auth_authorize(auth, a, u, &what, NULL))
        return 0;
    return auth_forbidden(err, a, u, &what);
}

static int impersonate_user(struct auth *auth, struct arena *a, const struct user *u,
                            struct str name, struct err *err)
{
    struct str rest = name;

    if (!str_has_prefix(name, STR("system:serviceaccount:")))
        return may_impersonate(auth, a, u, STR(""), STR("users"), STR(""), STR(""), name, err);
    rest = str_from(name, sizeof("system:serviceaccount:") - 1);
    struct str ns = str_cut(&rest, ':');
    return may_impersonate(auth, a, u, STR(""), STR("serviceaccounts"), STR(""), ns, rest, err);
}

static int impersonate_extra(struct auth *auth, struct arena *a, const struct user *u,
                             const struct net_header *h, cJSON *extra, struct err *err)
{
    struct str key;

    if (!url_decode(a, str_from(h->name, sizeof("impersonate-extra-") - 1), false, &key) || !key.n)
        return err_set(err, &ERR_BAD_REQUEST, "invalid Impersonate-Extra header");
    if (may_impersonate(auth, a, u, STR("authentication.k8s.io"), STR("userextras"), key, STR(""),
                        h->value, err))
        return -1;
    const char *name = arena_cstr(a, key);
    cJSON *values = json_get(extra, name);
    if (!values)
        values = json_set(a, extra, name, json_new_array(a));
    json_append(values, json_new_string(a, h->value));
    return 0;
}

static bool is_impersonation(struct str name)
{
    return str_has_prefix(name, STR("impersonate-"));
}

static int impersonate_groups(struct auth *auth, struct arena *a, const struct user *u,
                              const struct net_request *r, struct str *groups, size_t *n,
                              struct err *err)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        if (!str_eqc(r->headers[i].name, "impersonate-group"))
            continue;
        if (*n == MAX_GROUPS)
            return err_set(err, &ERR_BAD_REQUEST, "too many Impersonate-Group headers");
        if (may_impersonate(auth, a, u, STR(""), STR("groups"), STR(""), STR(""),
                            r->headers[i].value, err))
            return -1;
        groups[(*n)++] = r->headers[i].value;
    }
    return 0;
}

/* A service account is in its groups even when acted for. */
static void account_groups(struct arena *a, struct str name, struct str *groups, size_t *n)
{
    if (*n || !str_has_prefix(name, STR("system:serviceaccount:")))
        return;
    struct str rest = str_from(name, sizeof("system:serviceaccount:") - 1);
    struct str ns = str_cut(&rest, ':');

    groups[(*n)++] = STR("system:serviceaccounts");
    groups[(*n)++] = arena_printf(a, "system:serviceaccounts:%.*s", STR_F(ns));
}

static int impersonate(struct auth *auth, struct arena *a, const struct net_request *r,
                       struct user *user, struct err *err)
{
    struct str name = net_header(r, "impersonate-user"), uid = net_header(r, "impersonate-uid");
    struct str *groups = arena_alloc(a, (MAX_GROUPS + 2) * sizeof(*groups));
    size_t n = 0, asked = 0;
    cJSON *extra = json_new_object(a);

    for (size_t i = 0; i < r->n_headers; i++)
        asked += is_impersonation(r->headers[i].name);
    if (!asked)
        return 0;
    if (!name.n)
        return err_set(err, &ERR_BAD_REQUEST,
                       "requested impersonation without impersonating a user");
    if (impersonate_user(auth, a, user, name, err) ||
        impersonate_groups(auth, a, user, r, groups, &n, err))
        return -1;
    if (uid.n && may_impersonate(auth, a, user, STR("authentication.k8s.io"), STR("uids"), STR(""),
                                 STR(""), uid, err))
        return -1;
    for (size_t i = 0; i < r->n_headers; i++) {
        if (str_has_prefix(r->headers[i].name, STR("impersonate-extra-")) &&
            impersonate_extra(auth, a, user, &r->headers[i], extra, err))
            return -1;
    }
    *user = (struct user){.name = arena_str(a, name),
                          .uid = arena_str(a, uid),
                          .extra = json_first(extra) ? extra : NULL};
    account_groups(a, name, groups, &n);
    set_groups(a, user, groups, n);
    return 0;
}

int auth_authenticate(struct auth *auth, struct arena *a, const struct net_request *r,
                      struct user *ret, struct err *err)
{
    assert(auth->magic == AUTH_MAGIC);
    if (identify(auth, a, r, ret, err))
        return -1;
    return impersonate(auth, a, r, ret, err);
}

/* --- authorization --- */

struct question {
    const struct attributes *what;
    struct arena *arena;
    struct str *reason;
    bool allowed;
};

static bool on_rule(void *ctx, const struct rule *rule, const struct rule_origin *o)
{
    struct question *q = ctx;

    if (!rule_allows(rule, q->what))
        return true;
    q->allowed = true;
    if (q->reason)
        *q->reason = arena_printf(
            q->arena, "RBAC: allowed by %s \"%.*s%s%.*s\" of %s \"%.*s\" to %s \"%.*s\"",
            o->binding_kind, STR_F(o->binding), o->ns.n ? "/" : "", STR_F(o->ns), o->role_kind,
            STR_F(o->role), o->subject_kind, STR_F(o->subject));
    return false;
}

bool user_is_master(const struct user *u)
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
    struct question q = {.what = what, .arena = a, .reason = ret_reason};

    assert(auth->magic == AUTH_MAGIC);
    if (ret_reason)
        *ret_reason = STR("");
    if (user_is_master(u))
        return true;
    rbac_each(auth->rbac, u, what->ns, on_rule, &q);
    return q.allowed;
}

/* `User "x" cannot list resource "pods" in API group "" in the namespace "y"`, as upstream. */
int auth_forbidden(struct err *err, struct arena *a, const struct user *u,
                   const struct attributes *what)
{
    struct str where = what->ns.n ? arena_printf(a, " in the namespace \"%.*s\"", STR_F(what->ns))
                                  : STR(" at the cluster scope");
    struct str resource = what->resource;

    if (!what->resource.p) {
        err_set(err, &ERR_FORBIDDEN, "forbidden: User \"%.*s\" cannot %s path \"%.*s\"",
                STR_F(u->name), what->verb, STR_F(what->path));
        return -1;
    }
    if (what->subresource.n)
        resource = arena_concat(a, 3, (struct str[]){resource, STR("/"), what->subresource});
    return err_forbidden(err, what->group, what->resource, what->name,
                         "User \"%.*s\" cannot %s resource \"%.*s\" in API group \"%.*s\"%.*s",
                         STR_F(u->name), what->verb, STR_F(resource), STR_F(what->group),
                         STR_F(where));
}
