/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of the type kubernetes.io/service-account-token: filled with a token of the account they
 * name, the CA and the namespace, and deleted with the account. The token is bound to its Secret:
 * deleting the Secret revokes it. Must never fill a Secret whose account does not exist under the
 * uid the Secret may name. Source of the rules: pkg/controller/serviceaccount (tokens_controller)
 * of Kubernetes 1.36. */
#include "util.h"

#include <sublet/encode.h>

#define TOKEN_TYPE "kubernetes.io/service-account-token"
#define ACCOUNT    "kubernetes.io/service-account.name"
#define UID        "kubernetes.io/service-account.uid"
#define LIFETIME_S (100LL * 365 * 24 * 3600)

static bool is_token(const struct store_object *o)
{
    return str_contains(o->bytes, STR("\"" TOKEN_TYPE "\""));
}

static struct str annotation(const cJSON *secret, const char *key)
{
    return json_str(json_get(json_path(secret, "metadata.annotations"), key));
}

/* True when the value changed. */
static bool set_data(struct arena *a, cJSON *data, const char *key, struct str value)
{
    return controller_set_str(a, data, key, base64_encode(a, value));
}

static int make_token(struct reconcile *r, const cJSON *secret, const cJSON *account,
                      struct str *ret, struct err *err)
{
    struct vapi *api = reconcile_api(r);
    struct str audience = pki_issuer(vapi_pki(api));
    char id[37];

    rng_uuid(vapi_rng(api), id);
    struct token_claims claims = {
        .ns = meta_ns(secret),
        .service_account = meta_name(account),
        .service_account_uid = meta_uid(account),
        .bound_kind = STR("Secret"),
        .bound_name = meta_name(secret),
        .bound_uid = meta_uid(secret),
        .audiences = &audience,
        .n_audiences = 1,
        .issued = reconcile_now_s(r),
        .not_before = reconcile_now_s(r),
        .expires = reconcile_now_s(r) + LIFETIME_S,
        .id = str_c(id),
    };
    return pki_sign_token(vapi_pki(api), reconcile_arena(r), &claims, ret, err);
}

static void fill(struct reconcile *r, const struct resource *res, cJSON *secret,
                 const cJSON *account)
{
    struct arena *a = reconcile_arena(r);
    cJSON *data = json_ensure_object(a, secret, "data");
    cJSON *annotations = json_ensure_path(a, secret, "metadata.annotations");
    bool changed = controller_set_str(a, annotations, UID, meta_uid(account));
    struct str token;
    struct err err;

    changed |= set_data(a, data, "ca.crt", pki_ca_pem(vapi_pki(reconcile_api(r))));
    changed |= set_data(a, data, "namespace", meta_ns(secret));
    if (!json_str(json_get(data, "token")).n) {
        err_init(&err, a);
        if (make_token(r, secret, account, &token, &err)) {
            reconcile_fail(r, &err);
            return;
        }
        changed |= set_data(a, data, "token", token);
    }
    if (changed)
        reconcile_update(r, res, secret);
}

static void token_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "", "secrets");
    const cJSON *account;
    struct str ns, name;
    cJSON *secret;

    if (!key_split(reconcile_key(r), &ns, &name) || !(secret = reconcile_get(r, res, ns, name)) ||
        object_is_terminating(secret) || !str_eqc(json_str_at(secret, "type"), TOKEN_TYPE) ||
        !annotation(secret, ACCOUNT).n)
        return;
    account = reconcile_get(r, reconcile_resource(r, "", "serviceaccounts"), ns,
                            annotation(secret, ACCOUNT));
    if (!account ||
        (annotation(secret, UID).n && !str_eq(annotation(secret, UID), meta_uid(account))))
        reconcile_delete_exact(r, res, secret, NULL);
    else
        fill(r, res, secret, account);
}

static void map_secret(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED && is_token(e->object))
        controller_map_self(c, e);
}

static bool on_secret(void *ctx, const struct store_object *o)
{
    if (is_token(o))
        controller_add_name(ctx, o->ns, o->name);
    return true;
}

/* A created or deleted account affects the token Secrets of its namespace. */
static void map_account(struct controller *c, const struct store_event *e)
{
    struct vapi *api = controller_api(c);
    const struct resource *secrets =
        registry_find_group_resource(vapi_registry(api), STR(""), STR("secrets"));

    if (e->type != STORE_MODIFIED)
        store_scan_latest(vapi_store(api), secrets->storage, e->object->ns, on_secret, c);
}

static const struct controller_source SOURCES[] = {
    {"", "secrets", map_secret},
    {"", "serviceaccounts", map_account},
    {NULL, NULL, NULL},
};

const struct controller_def ACCOUNT_TOKEN_CONTROLLER = {
    .name = "service-account-token-controller",
    .sources = SOURCES,
    .reconcile = token_reconcile,
};
