/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate signing requests: records the requesting user, and requires permission on the signer
 * for approving or signing. Must never let a user request a certificate of the cluster's CA beyond
 * what a role could grant: system:masters bypasses all roles. Source:
 * plugin/pkg/admission/certificates, pkg/registry/certificates of Kubernetes 1.36. */
#include "plugins.h"

#include <sublet/encode.h>

#define API_CLIENT "kubernetes.io/kube-apiserver-client"

static bool concerns(const struct admission_call *c, const cJSON *object)
{
    return object && plugin_admits(c, "certificates.k8s.io", "certificatesigningrequests");
}

/* Overwrites the user a client claims to be. */
int certificate_request_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                              struct err *err)
{
    struct arena *a = c->arena;
    cJSON *spec, *groups;

    (void)old;
    (void)err;
    if (!concerns(c, object) || !plugin_is_create(c) || c->subresource.n)
        return 0;
    spec = json_ensure_object(a, object, "spec");
    json_remove(spec, "uid");
    json_remove(spec, "extra");
    json_set_str(a, spec, "username", c->user->name);
    if (c->user->uid.n)
        json_set_str(a, spec, "uid", c->user->uid);
    groups = json_set(a, spec, "groups", json_new_array(a));
    for (size_t i = 0; i < c->user->n_groups; i++)
        json_append(groups, json_new_string(a, c->user->groups[i]));
    if (json_count(c->user->extra))
        json_set(a, spec, "extra", json_copy(a, c->user->extra));
    return 0;
}

/* The signers trust that the requesting user holds the key. */
static int check_subject(const struct admission_call *c, const cJSON *object, struct err *err)
{
    const cJSON *text = json_path(object, "spec.request");
    struct str name = json_str_at(object, "metadata.name"), pem;
    struct pki_request request;
    struct field_errors e;
    struct err why;

    err_init(&why, c->arena);
    if (!base64_decode(c->arena, json_str(text), &pem))
        pem = STR("");
    if (pki_read_request(c->arena, pem, &request, &why)) {
        field_errors_init(&e, c->arena);
        field_invalid(&e, FIELD(FIELD(NULL, "spec"), "request"), text,
                      arena_cstr(c->arena, why.message));
        return field_errors_to_err(&e, c->resource->group, c->resource->kind, name, err);
    }
    for (size_t i = 0; i < request.n_organizations; i++) {
        if (str_eqc(json_str_at(object, "spec.signerName"), API_CLIENT) &&
            str_eqc(request.organizations[i], "system:masters"))
            return err_forbidden(err, c->resource->group, c->resource->plural, name,
                                 "use of %s signer with system:masters group is not allowed",
                                 API_CLIENT);
    }
    return 0;
}

static bool may(const struct admission_call *c, const char *verb, struct str name)
{
    struct attributes what = {.verb = verb,
                              .group = STR("certificates.k8s.io"),
                              .version = STR("*"),
                              .resource = STR("signers"),
                              .name = name};

    return auth_authorize(vapi_auth(c->api), c->arena, c->user, &what, NULL);
}

/* Permission for this signer, or for all of its domain. */
static int check_signer(const struct admission_call *c, const cJSON *old, const char *verb,
                        const char *doing, struct err *err)
{
    struct str signer = json_str_at(old, "spec.signerName");
    struct str domain = str_sub(signer, 0, str_find(signer, '/'));

    if (may(c, verb, signer) ||
        may(c, verb, arena_concat(c->arena, 2, (struct str[]){domain, STR("/*")})))
        return 0;
    return err_forbidden(err, c->resource->group, c->resource->plural, c->name,
                         "user not permitted to %s requests with signerName %.*s", doing,
                         STR_F(go_quote(c->arena, signer)));
}

static bool same(const cJSON *a, const cJSON *b)
{
    return (!json_count(a) && !json_count(b)) || json_equal(a, b);
}

int certificate_request_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                                 struct err *err)
{
    if (!concerns(c, object))
        return 0;
    if (plugin_is_create(c))
        return c->subresource.n ? 0 : check_subject(c, object, err);
    if (str_eqc(c->subresource, "approval"))
        return check_signer(c, old, "approve", "approve", err);
    if (!str_eqc(c->subresource, "status"))
        return 0;
    if (str_cmp(json_str_at(object, "status.certificate"),
                json_str_at(old, "status.certificate")) == 0 &&
        same(json_path(object, "status.conditions"), json_path(old, "status.conditions")))
        return 0;
    return check_signer(c, old, "sign", "sign", err);
}
