/* SPDX-License-Identifier: Apache-2.0 */
/* NetworkPolicies. Source: pkg/apis/networking/v1/defaults.go, pkg/apis/networking/validation. */
#include "../rules/kind.h"

static const struct default_rule DEFAULT_RULES[] = {
    SET_TEXT("spec.ingress[].ports[].protocol", "TCP"),
    SET_TEXT("spec.egress[].ports[].protocol", "TCP"),
};

static void network_policy_defaults(struct arena *a, cJSON *policy)
{
    cJSON *spec = json_get(policy, "spec"), *types;

    if (!json_is_object(spec) || json_count(json_get(spec, "policyTypes")))
        return;
    types = json_set(a, spec, "policyTypes", json_new_array(a));
    json_append(types, json_new_string(a, STR("Ingress")));
    if (json_count(json_get(spec, "egress")))
        json_append(types, json_new_string(a, STR("Egress")));
}

/* ---- validation ---- */

static void check_port_range(const struct check *c)
{
    const cJSON *port = kinds_given(c->value, "port"), *end = kinds_given(c->value, "endPort");
    AT(at, c->at, "endPort");
    int64_t first, last;

    if (!port && end)
        field_invalid(c->e, at, end, "may not be specified when `port` is not specified");
    if (json_is_string(port) && end)
        field_invalid(c->e, at, end, "may not be specified when `port` is non-numeric");
    if (port)
        check_port_or_name(c->e, FIELD(c->at, "port"), port);
    if (!json_i64(port, &first) || !json_i64(end, &last))
        return;
    if (last < first)
        field_invalid(c->e, at, port, "must be greater than or equal to `port`");
    check_port(c->e, at, end);
}

static void check_block(struct field_errors *e, const struct field_path *p, const cJSON *block)
{
    struct str cidr = json_str(json_get(block, "cidr"));

    if (!check_given(e, FIELD(p, "cidr"), cidr) || !check_cidr(e, FIELD(p, "cidr"), cidr))
        return;
    member_each(except, at, p, block, "except")
    {
        if (check_cidr(e, at, json_str(except)) && !check_cidr_contains(cidr, json_str(except)))
            field_invalid(e, at, except, "must be a strict subset of `cidr`");
    }
}

static const struct rule PORT_RULES[] = {
    ENUM_IF_GIVEN("protocol", ENUM_PROTOCOL_DECLARED),
    CALL(NULL, check_port_range),
};
static const struct rule PEER[] = {
    LABEL_SELECTOR("podSelector"),
    LABEL_SELECTOR("namespaceSelector"),
    CHECK("ipBlock", check_block),
    WHEN_NONE(NULL, NAMES("ipBlock", "podSelector", "namespaceSelector"),
              MISSING(NULL, "must specify a peer")),
    WHEN_GIVEN(NULL, "ipBlock",
               WHEN_ANY(NULL, NAMES("podSelector", "namespaceSelector"),
                        FORBIDDEN(NULL, "may not specify both ipBlock and another peer"))),
};
static const struct rule INGRESS[] = {EACH("ports", ALL(PORT_RULES)), EACH("from", ALL(PEER))};
static const struct rule EGRESS[] = {EACH("ports", ALL(PORT_RULES)), EACH("to", ALL(PEER))};

static const struct rule SPEC_RULES[] = {
    LABEL_SELECTOR("podSelector"),
    EACH("ingress", ALL(INGRESS)),
    EACH("egress", ALL(EGRESS)),
    EACH_OF_AT_MOST_ELSE("policyTypes", 2, "may not specify more than two policyTypes",
                         ENUM_IF_GIVEN(NULL, ENUM_POLICY_TYPE_DECLARED)),
};

static const struct rule POLICY_RULES[] = {CHANGED("spec", ALL(SPEC_RULES))};

/* ---- the kind ---- */

static const struct no_effect NO_EFFECT[] = {
    {NULL, "NetworkPolicy", "the traffic of pods is not restricted by it"}, {NULL}};

const struct kind KIND_NETWORK_POLICY = {
    RESOURCE("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "networkpolicy"),
    .resource.short_names = NAMES("netpol"),
    .resource.flags = RES_NAMESPACED | RES_GENERATION,
    COLUMNS({"Pod-Selector", "string", .cell = show_selector, .path = "spec.podSelector",
             .otherwise = "<none>"},
            {"Age", "string", .cell = show_age}),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = network_policy_defaults,
    .rules = RULES(POLICY_RULES),
    .no_effect = NO_EFFECT,
};
