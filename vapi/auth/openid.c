/* SPDX-License-Identifier: Apache-2.0 */
/* Issuer discovery: the documents a service outside the cluster needs to verify its service account
 * tokens (OpenID Connect Discovery 1.0; k8s.io/kubernetes pkg/serviceaccount/openidmetadata.go).
 * RBAC decides who may read them (system:service-account-issuer-discovery). Must never reveal more
 * than the public key. */
#include <sublet/auth.h>
#include <sublet/call.h>

#define KEY_SET_PATH "/openid/v1/jwks"

static void add_word(struct arena *a, cJSON *object, const char *key, struct str word)
{
    cJSON *list = json_set(a, object, key, json_new_array(a));

    json_append(list, json_new_string(a, word));
}

static struct str configuration(struct call *call)
{
    struct arena *a = call->arena;
    struct str issuer = pki_issuer(vapi_pki(call->api));
    cJSON *o = json_new_object(a);

    json_set_str(a, o, "issuer", issuer);
    json_set_str(a, o, "jwks_uri", arena_concat(a, 2, (struct str[]){issuer, STR(KEY_SET_PATH)}));
    add_word(a, o, "response_types_supported", STR("id_token"));
    add_word(a, o, "subject_types_supported", STR("public"));
    add_word(a, o, "id_token_signing_alg_values_supported", STR("ES256"));
    return json_text(a, o);
}

bool auth_handle_openid(struct call *call, struct str path)
{
    bool keys = str_eqc(path, KEY_SET_PATH);

    if (!keys && !str_eqc(path, "/.well-known/openid-configuration"))
        return false;
    call_header(call, "cache-control", STR("public, max-age=3600"));
    if (keys)
        call_raw(call, 200, STR("application/jwk-set+json"),
                 pki_jwks(vapi_pki(call->api), call->arena));
    else
        call_raw(call, 200, STR("application/json"), configuration(call));
    return true;
}
