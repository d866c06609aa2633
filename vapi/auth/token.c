/* SPDX-License-Identifier: Apache-2.0 */
/* serviceaccounts/token: issues short-lived tokens, bound to an object if requested. Must never
 * issue one for an account or object that does not exist under the given uid. */
#include <sublet/api_version.h>
#include <sublet/call.h>
#include <sublet/json_build.h>

#include "auth_impl.h"

#define MIN_SECONDS     600
#define DEFAULT_SECONDS 3600
#define MAX_SECONDS     (1LL << 32)
/* A pod's projected token requests 3607 s: upstream extends it to a year and renews it hourly; ours
 * is renewed by its mounter, so it lives as long as it says. */

static const struct {
    const char *kind, *plural;
    bool namespaced;
} BOUND[] = {{"Pod", "pods", true}, {"Secret", "secrets", true}, {"Node", "nodes", false}};

static int check_spec(struct call *c, int64_t seconds, struct err *err)
{
    struct field_errors e;
    const struct field_path *path = FIELD(FIELD(NULL, "spec"), "expirationSeconds");

    field_errors_init(&e, c->arena);
    if (seconds < MIN_SECONDS)
        field_invalid(&e, path, json_new_i64(c->arena, seconds),
                      "may not specify a duration less than 10 minutes");
    if (seconds > MAX_SECONDS)
        field_invalid(&e, path, json_new_i64(c->arena, seconds),
                      "may not specify a duration larger than 2^32 seconds");
    return field_errors_to_err(&e, STR("authentication.k8s.io"), STR("TokenRequest"), STR(""), err);
}

static const struct store_object *find_node(struct call *c, struct str name)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(c->api), STR(""), STR("nodes"));

    return r ? store_get(vapi_store(c->api), r->storage, STR(""), name) : NULL;
}

/* Binds also to the pod's node, if it is scheduled. */
static int bind_pod(struct call *c, const struct store_object *pod, struct token_claims *claims,
                    struct err *err)
{
    cJSON *tree = vapi_tree(c->arena, pod);
    struct str account = json_str_at(tree, "spec.serviceAccountName");
    const struct store_object *node;

    if (!str_eq(account, c->name))
        return err_set(
            err, &ERR_BAD_REQUEST,
            "cannot bind token for serviceaccount \"%.*s\" to pod running with different "
            "serviceaccount name.",
            STR_F(c->name));
    claims->node_name = json_str_at(tree, "spec.nodeName");
    node = claims->node_name.n ? find_node(c, claims->node_name) : NULL;
    if (node)
        claims->node_uid = arena_str(c->arena, node->uid);
    return 0;
}

static int bind_nothing(struct str api_version, struct str kind, struct err *err)
{
    struct api_version v = api_version_read(api_version);

    return err_set(err, &ERR_BAD_REQUEST,
                   "cannot bind token to object of type %.*s/%.*s, Kind=%.*s", STR_F(v.group),
                   STR_F(v.version), STR_F(kind));
}

static int bind(struct call *c, const cJSON *ref, struct token_claims *claims, struct err *err)
{
    struct str kind = json_str_at(ref, "kind"), name = json_str_at(ref, "name");
    struct str uid = json_str_at(ref, "uid"), version = json_str_at(ref, "apiVersion");

    if (!ref || json_is_null(ref))
        return 0;
    for (size_t i = 0; i < COUNT(BOUND); i++) {
        if (!str_eqc(kind, BOUND[i].kind) || str_find(version, '/') != version.n)
            continue;
        const struct resource *r =
            registry_find_group_resource(vapi_registry(c->api), STR(""), str_c(BOUND[i].plural));
        const struct store_object *o =
            store_get(vapi_store(c->api), r->storage, BOUND[i].namespaced ? c->ns : STR(""), name);
        if (!o)
            return err_not_found(err, STR(""), r->plural, name);
        claims->bound_kind = kind;
        claims->bound_name = name;
        claims->bound_uid = arena_str(c->arena, o->uid);
        if (i == 0 && bind_pod(c, o, claims, err))
            return -1;
        if (!uid.n || str_eq(uid, o->uid))
            return 0;
        return err_conflict(err, STR(""), kind, name,
                            arena_printf(c->arena,
                                         "the UID in the bound object reference (%.*s) does not "
                                         "match the UID in record. The object might have been "
                                         "deleted and then recreated",
                                         STR_F(uid))
                                .p);
    }
    return bind_nothing(version, kind, err);
}

static void read_audiences(struct call *c, const cJSON *spec, struct token_claims *claims)
{
    const cJSON *list = json_get(spec, "audiences");
    struct str *audiences = arena_alloc(c->arena, (json_count(list) + 1) * sizeof(*audiences));

    json_each(audience, list) audiences[claims->n_audiences++] = json_str(audience);
    claims->audiences = audiences;
}

/* The metadata in the body must match the account. */
static int check_metadata(struct call *c, struct err *err)
{
    struct str name = json_str_at(c->body, "metadata.name");
    struct field_errors e;

    field_errors_init(&e, c->arena);
    if (name.n && !str_eq(name, c->name))
        field_invalid_str(&e, FIELD(FIELD(NULL, "metadata"), "name"), name,
                          "must match the service account name if specified");
    return field_errors_to_err(&e, STR("authentication.k8s.io"), STR("TokenRequest"), c->name, err);
}

void auth_default_token_request(struct call *c)
{
    cJSON *spec = json_ensure_object(c->arena, c->body, "spec");

    if (!json_get(spec, "expirationSeconds") || json_is_null(json_get(spec, "expirationSeconds")))
        json_set_i64(c->arena, spec, "expirationSeconds", DEFAULT_SECONDS);
}

static void complete(struct call *c, const struct store_object *account)
{
    struct arena *a = c->arena;
    cJSON *spec = json_ensure_object(a, c->body, "spec");
    cJSON *meta = json_ensure_object(a, c->body, "metadata");

    if (!json_count(json_get(spec, "audiences")))
        json_set(a, spec, "audiences",
                 json_array(a, json_new_string(a, pki_issuer(vapi_pki(c->api)))));
    json_put(a, meta, JSON("name", c->name), JSON("namespace", c->ns),
             JSON("uid", arena_str(a, account->uid)),
             JSON("creationTimestamp", time_format_s(a, clock_wall_s(vapi_clock(c->api)))));
    json_set(a, c->body, "status",
             json_object(a, JSON("token", ""), JSON("expirationTimestamp", json_new_null(a))));
}

int auth_check_token_request(struct call *c, struct err *err)
{
    const struct store_object *account =
        store_get(vapi_store(c->api), c->resource->storage, c->ns, c->name);
    struct str uid = json_str_at(c->body, "metadata.uid");

    if (check_metadata(c, err))
        return -1;
    if (!account)
        return err_not_found(err, STR(""), STR("serviceaccounts"), c->name);
    if (uid.n && !str_eq(uid, account->uid))
        return err_conflict(err, STR("authentication.k8s.io"), STR("TokenRequest"), c->name,
                            arena_printf(c->arena,
                                         "the UID in the token request (%.*s) does not match the "
                                         "UID of the service account (%.*s)",
                                         STR_F(uid), STR_F(account->uid))
                                .p);
    auth_default_token_request(c);
    complete(c, account);
    return check_spec(c, json_i64_at(c->body, "spec.expirationSeconds", 0), err);
}

/* The account may have been deleted while webhooks were called. */
static int issue(struct call *c, struct str *ret_jwt, struct token_claims *claims, struct err *err)
{
    const struct store_object *account =
        store_get(vapi_store(c->api), c->resource->storage, c->ns, c->name);
    const cJSON *spec = json_get(c->body, "spec");
    char id[37];

    if (!account || !str_eq(account->uid, json_str_at(c->body, "metadata.uid")))
        return err_not_found(err, STR(""), STR("serviceaccounts"), c->name);
    rng_uuid(vapi_rng(c->api), id);
    *claims = (struct token_claims){
        .ns = c->ns,
        .service_account = c->name,
        .service_account_uid = arena_str(c->arena, account->uid),
        .issued = clock_wall_s(vapi_clock(c->api)),
        .id = arena_str(c->arena, str_c(id)),
    };
    claims->not_before = claims->issued;
    claims->expires = claims->issued + json_i64_at(spec, "expirationSeconds", 0);
    read_audiences(c, spec, claims);
    if (bind(c, json_get(spec, "boundObjectRef"), claims, err))
        return -1;
    return pki_sign_token(vapi_pki(c->api), c->arena, claims, ret_jwt, err);
}

void auth_issue_token(struct call *c)
{
    struct arena *a = c->arena;
    struct token_claims claims;
    struct str jwt;
    struct err err;

    err_init(&err, a);
    if (issue(c, &jwt, &claims, &err)) {
        call_error(c, &err);
        return;
    }
    call_audit_annotate(c, STR("authentication.kubernetes.io/issued-credential-id"),
                        arena_concat(a, 2, (struct str[]){STR("JTI="), claims.id}));
    json_set_str(a, json_get(c->body, "metadata"), "creationTimestamp",
                 time_format_s(a, claims.issued));
    json_set(a, c->body, "status",
             json_object(a, JSON("token", jwt),
                         JSON("expirationTimestamp", time_format_s(a, claims.expires))));
    call_tree(c, 201, c->body);
}
