/* SPDX-License-Identifier: Apache-2.0 */
/* Service account tokens of this cluster: signature, audience, and the existence of every object
 * they are bound to. Source of rules and messages: k8s.io/kubernetes pkg/serviceaccount (jwt.go,
 * claims.go). Must never accept a token whose service account or bound object was deleted, nor one
 * issued for another API's audience. */
#include <string.h>

#include <sublet/encode.h>
#include <sublet/object.h>

#include "auth_impl.h"
#include "token_cache.h"

#define DELETED_LEEWAY 60 /* seconds a terminating object remains valid */
#define ACCOUNT_PREFIX "system:serviceaccount:"
#define POD_NAME       "authentication.kubernetes.io/pod-name"
#define POD_UID        "authentication.kubernetes.io/pod-uid"
#define NODE_NAME      "authentication.kubernetes.io/node-name"
#define NODE_UID       "authentication.kubernetes.io/node-uid"

static void extra_add(struct arena *a, cJSON *extra, const char *key, struct str value)
{
    if (value.n)
        json_append(json_set(a, extra, key, json_new_array(a)), json_new_string(a, value));
}

void account_user(struct arena *a, const struct token_claims *claims, struct user *ret)
{
    struct str groups[] = {STR("system:serviceaccounts"),
                           arena_printf(a, "system:serviceaccounts:%.*s", STR_F(claims->ns))};
    cJSON *extra = json_new_object(a);

    *ret = (struct user){
        .name = arena_printf(a, ACCOUNT_PREFIX "%.*s:%.*s", STR_F(claims->ns),
                             STR_F(claims->service_account)),
        .uid = claims->service_account_uid,
        .extra = extra,
    };
    auth_set_groups(a, ret, groups, 2);
    if (claims->id.n)
        extra_add(a, extra, CREDENTIAL_ID,
                  arena_concat(a, 2, (struct str[]){STR("JTI="), claims->id}));
    if (str_eqc(claims->bound_kind, "Node")) {
        extra_add(a, extra, NODE_NAME, claims->bound_name);
        extra_add(a, extra, NODE_UID, claims->bound_uid);
    }
    if (!str_eqc(claims->bound_kind, "Pod"))
        return;
    extra_add(a, extra, POD_NAME, claims->bound_name);
    extra_add(a, extra, POD_UID, claims->bound_uid);
    extra_add(a, extra, NODE_NAME, claims->node_name);
    extra_add(a, extra, NODE_UID, claims->node_uid);
}

/* ---- bound objects ---- */

static const struct store_object *find(struct auth *auth, const char *plural, struct str ns,
                                       struct str name)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(auth->api), STR(""), str_c(plural));

    return r ? store_get(auth->store, r->storage, ns, name) : NULL;
}

static struct str extra_of(const struct user *u, const char *key)
{
    return json_str(json_first(json_get(u->extra, key)));
}

void account_add_node(struct auth *auth, struct arena *a, struct user *u)
{
    struct str rest = u->name, uid = extra_of(u, POD_UID), ns, name;
    const struct store_object *pod, *node;
    cJSON *extra;

    if (!uid.n || extra_of(u, NODE_NAME).n || !str_has_prefix(rest, STR(ACCOUNT_PREFIX)))
        return;
    rest = str_from(rest, strlen(ACCOUNT_PREFIX));
    ns = str_cut(&rest, ':');
    pod = find(auth, "pods", ns, extra_of(u, POD_NAME));
    name = pod && str_eq(pod->uid, uid) ? json_str_at(vapi_tree(a, pod), "spec.nodeName") : STR("");
    if (!name.n)
        return;
    extra = json_copy(a, u->extra);
    node = find(auth, "nodes", STR(""), name);
    extra_add(a, extra, NODE_NAME, name);
    extra_add(a, extra, NODE_UID, node ? node->uid : STR(""));
    u->extra = extra;
}

/* Only terminating objects are parsed; there are few. */
static bool is_deleted(struct auth *auth, struct arena *a, const struct store_object *o)
{
    int64_t at;

    if (!object_may_be_terminating(o->bytes))
        return false;
    return time_parse(json_str_at(vapi_tree(a, o), "metadata.deletionTimestamp"), &at) &&
           at / 1000000 < clock_wall_s(vapi_clock(auth->api)) - DELETED_LEEWAY;
}

static int check_account(struct auth *auth, struct arena *a, const struct token_claims *c,
                         struct err *err)
{
    const struct store_object *o = find(auth, "serviceaccounts", c->ns, c->service_account);

    if (!o)
        return err_set(err, &ERR_UNAUTHORIZED, "serviceaccounts \"%.*s\" not found",
                       STR_F(c->service_account));
    if (!str_eq(o->uid, c->service_account_uid))
        return err_set(err, &ERR_UNAUTHORIZED,
                       "service account UID (%.*s) does not match claim (%.*s)", STR_F(o->uid),
                       STR_F(c->service_account_uid));
    if (is_deleted(auth, a, o))
        return err_set(err, &ERR_UNAUTHORIZED, "service account %.*s/%.*s has been deleted",
                       STR_F(c->ns), STR_F(c->service_account));
    return 0;
}

static int check_bound(struct auth *auth, struct arena *a, const struct token_claims *c,
                       struct err *err)
{
    static const struct {
        const char *kind, *plural, *claim;
        bool namespaced;
    } bound[] = {
        {"Pod", "pods", "pod", true},
        {"Secret", "secrets", "secret", true},
        {"Node", "nodes", "node", false},
    };

    for (size_t i = 0; i < COUNT(bound); i++) {
        if (!str_eqc(c->bound_kind, bound[i].kind))
            continue;
        const struct store_object *o =
            find(auth, bound[i].plural, bound[i].namespaced ? c->ns : STR(""), c->bound_name);
        if (!o || (str_eq(o->uid, c->bound_uid) && is_deleted(auth, a, o)))
            return err_set(err, &ERR_UNAUTHORIZED, "service account token has been invalidated");
        if (str_eq(o->uid, c->bound_uid))
            return 0;
        return err_set(err, &ERR_UNAUTHORIZED,
                       "%s UID (%.*s) does not match service account %s ref claim (%.*s)",
                       bound[i].claim, STR_F(o->uid), bound[i].claim, STR_F(c->bound_uid));
    }
    return c->bound_kind.n ? err_set(err, &ERR_UNAUTHORIZED, "invalid bearer token") : 0;
}

/* ---- audiences ---- */

/* The audiences of this API; the second is for clients that know no cluster domain. */
static struct str_list own_audiences(struct auth *auth, struct arena *a)
{
    struct str *own = arena_alloc(a, 2 * sizeof(*own));

    own[0] = pki_issuer(auth->pki);
    own[1] = STR("https://kubernetes.default.svc");
    return (struct str_list){own, 2};
}

static struct str_list both(struct arena *a, struct str_list have, struct str_list wanted)
{
    struct str *items = arena_alloc(a, (wanted.n + 1) * sizeof(*items));
    size_t n = 0;

    for (size_t i = 0; i < wanted.n; i++) {
        if (str_list_has(have, wanted.items[i]))
            items[n++] = wanted.items[i];
    }
    return (struct str_list){items, n};
}

bool account_own_audiences(struct auth *auth, struct arena *a, const struct str *audiences,
                           size_t n, struct str_list *ret)
{
    struct str_list own = own_audiences(auth, a), same;

    same = n ? both(a, own, (struct str_list){audiences, n}) : (struct str_list){own.items, 1};
    if (ret)
        *ret = same;
    return same.n > 0;
}

static struct str quoted(struct arena *a, struct str_list list)
{
    struct buf b = BUF_INIT(8192);
    struct str text;

    buf_char(&b, '[');
    for (size_t i = 0; i < list.n; i++) {
        buf_addc(&b, i ? " " : "");
        buf_add(&b, go_quote(a, list.items[i]));
    }
    buf_char(&b, ']');
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static int check_audience(struct auth *auth, struct arena *a, const struct token_claims *c,
                          struct str_list wanted, struct str_list *ret, struct err *err)
{
    struct str_list have = {c->audiences, c->n_audiences};
    struct str_list same = both(a, have, wanted.n ? wanted : own_audiences(auth, a));

    if (!same.n)
        return err_set(
            err, &ERR_UNAUTHORIZED, "token audiences %.*s is invalid for the target audiences %.*s",
            STR_F(quoted(a, have)),
            STR_F(
                quoted(a, wanted.n ? wanted : (struct str_list){own_audiences(auth, a).items, 1})));
    if (ret)
        *ret = same;
    return 0;
}

/* ---- verification ---- */

static int verify(struct auth *auth, struct arena *a, struct str jwt, struct token_claims *ret,
                  struct err *err)
{
    int64_t now = clock_wall_s(vapi_clock(auth->api));

    if (token_cache_get(auth->tokens, a, jwt, now, ret))
        return 0;
    if (pki_verify_token(auth->pki, a, jwt, ret, err))
        return -1;
    token_cache_put(auth->tokens, jwt, now, ret);
    return 0;
}

/* Only the signature check is cached: the bound objects are looked up every time. */
int account_check_token(struct auth *auth, struct arena *a, struct str jwt,
                        const struct str *audiences, size_t n, struct token_claims *ret,
                        struct str_list *ret_audiences, struct err *err)
{
    return verify(auth, a, jwt, ret, err) ||
                   check_audience(auth, a, ret, (struct str_list){audiences, n}, ret_audiences,
                                  err) ||
                   check_account(auth, a, ret, err) || check_bound(auth, a, ret, err)
               ? -1
               : 0;
}
