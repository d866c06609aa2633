/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways. Why: the host's controllers serve them for all tenants, so, as of an Ingress, the host
 * names of a listener and the class are the fence: only those of the admin's lists go down. Must
 * never send a listener for every host name, an address, or what configures a controller of the
 * host; and no route of another namespace of the host can ever attach. */

#include "kind_impl.h"

static const struct config_to_host *options(const struct kind_call *c)
{
    return c->tenant->config->to_host;
}

static int class_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str class = json_str(value);

    if (!str_list_has(options(c)->gateway_classes, class))
        return translate_kind_refuse(c, "class \"%.*s\" is not one of sync.toHost.gateways.classes",
                                     STR_F(class));
    *ret = json_new_string(c->arena, class);
    return 0;
}

static int host_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str host = json_str(value);

    if (!config_host_listed(options(c)->gateway_hosts, host))
        return translate_kind_refuse(
            c, "host name \"%.*s\" is not one of sync.toHost.gateways.hosts", STR_F(host));
    if (!options(c)->gateway_wildcards && str_has_prefix(host, STR("*")))
        return translate_kind_refuse(c,
                                     "host name \"%.*s\" takes names of any depth: "
                                     "sync.toHost.gateways.wildcards is off",
                                     STR_F(host));
    *ret = json_new_string(c->arena, host);
    return 0;
}

static int check_listener(const struct kind_call *c, const cJSON *listener, cJSON **ret)
{
    static const char *const protocols[] = {"HTTP", "HTTPS", "TLS"};
    struct str protocol = json_str(json_get(listener, "protocol"));
    bool known = false;

    (void)ret;
    for (size_t i = 0; i < COUNT(protocols); i++)
        known |= str_eqc(protocol, protocols[i]);
    if (!known)
        return translate_kind_refuse(
            c, "only listeners of HTTP, HTTPS and TLS go down: others have no host "
               "name");
    if (json_str(json_get(listener, "hostname")).n)
        return 0;
    return translate_kind_refuse(
        c, "a listener without a hostname would take the traffic of every host");
}

/* Which namespaces may attach was decided for each route; on the host all are in one. */
static int allowed_routes_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    static const char *const kept[] = {"group", "kind"};
    cJSON *kinds;

    *ret = json_new_object(c->arena);
    add_str(c->arena, json_ensure_object(c->arena, *ret, "namespaces"), "from", STR("Same"));
    if (!json_is_array(json_get(value, "kinds")))
        return 0;
    kinds = object_add(c->arena, *ret, STR("kinds"), json_new_array(c->arena));
    json_each(kind, json_get(value, "kinds"))
    {
        cJSON *one = json_append(kinds, json_new_object(c->arena));

        for (size_t i = 0; i < COUNT(kept); i++)
            if (json_is_string(json_get(kind, kept[i])))
                add_str(c->arena, one, kept[i], json_str(json_get(kind, kept[i])));
    }
    return 0;
}

#define L "spec.listeners[*]."
#define REFERENCE(path, kind)                                                                      \
    {path ".group", KIND_KEEP}, {path ".kind", KIND_KEEP},                                         \
    {                                                                                              \
        path ".name", KIND_CALL, .what = kind, .call = gateway_reference_down                      \
    }
#define VALIDATION(path) {path ".mode", KIND_KEEP}, REFERENCE(path ".caCertificateRefs[*]", "")

static const struct kind_rule DOWN[] = {
    {"spec.gatewayClassName", KIND_CALL, .call = class_down},
    {"spec.addresses[*]", KIND_REFUSE, .what = "addresses are the host's to choose"},
    {"spec.infrastructure", KIND_REFUSE, .what = "configures what the host runs for a Gateway"},
    {"spec.listeners[*]", KIND_CHECK, .call = check_listener},
    {L "name", KIND_KEEP},
    {L "hostname", KIND_CALL, .call = host_down},
    {L "port", KIND_KEEP},
    {L "protocol", KIND_KEEP},
    {L "allowedRoutes", KIND_CALL, .call = allowed_routes_down},
    {L "tls.mode", KIND_KEEP},
    {L "tls.options", KIND_REFUSE, .what = "configures a controller of the host"},
    REFERENCE(L "tls.certificateRefs[*]", "Secret"),
    REFERENCE("spec.tls.backend.clientCertificateRef", "Secret"),
    VALIDATION("spec.tls.frontend.default.validation"),
    {"spec.tls.frontend.perPort[*].port", KIND_KEEP},
    VALIDATION("spec.tls.frontend.perPort[*].tls.validation"),
    {0},
};

static int conditions_up(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    *ret = translate_kind_conditions(c->arena, value);
    return 0;
}

static const struct kind_rule UP[] = {
    {"status.addresses[*].type", KIND_KEEP},
    {"status.addresses[*].value", KIND_KEEP},
    {"status.conditions", KIND_CALL, .call = conditions_up},
    {"status.listeners[*].name", KIND_KEEP},
    {"status.listeners[*].attachedRoutes", KIND_KEEP},
    {"status.listeners[*].supportedKinds[*].group", KIND_KEEP},
    {"status.listeners[*].supportedKinds[*].kind", KIND_KEEP},
    {"status.listeners[*].conditions", KIND_CALL, .call = conditions_up},
    {0},
};

const struct kind_rules TRANSLATE_RULES_GATEWAY = {.api_version = GATEWAY_GROUP "/v1",
                                                   .kind = "Gateway",
                                                   .group = GATEWAY_GROUP,
                                                   .plural = "gateways",
                                                   .patched = 1 + DOWN_GATEWAYS,
                                                   .down = DOWN,
                                                   .up = UP,
                                                   .annotations = translate_kind_notes,
                                                   .reads_gateways = true};
