/* SPDX-License-Identifier: Apache-2.0 */
/* NetworkPolicies. Source: pkg/apis/networking/v1/defaults.go, pkg/apis/networking/validation. */
#include "../rules/kind.h"

static void network_policy_defaults(struct arena *a, cJSON *policy)
{
    static const struct default_rule rules[] = {
        SET_TEXT("spec.ingress[].ports[].protocol", "TCP"),
        SET_TEXT("spec.egress[].ports[].protocol", "TCP"),
    };
    cJSON *spec = json_get(policy, "spec"), *types;

    defaults_apply(a, policy, rules, COUNT(rules));
    if (!json_is_object(spec) || json_count(json_get(spec, "policyTypes")))
        return;
    types = json_set(a, spec, "policyTypes", json_new_array(a));
    json_append(types, json_new_string(a, STR("Ingress")));
    if (json_count(json_get(spec, "egress")))
        json_append(types, json_new_string(a, STR("Egress")));
}

static void check_policy_port(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    static const char *const protocols[] = {"TCP", "UDP", "SCTP", NULL};
    const cJSON *port = given(item, "port"), *end = given(item, "endPort");
    AT(at, p, "endPort");
    int64_t first, last;

    check_enum_if(e, FIELD(p, "protocol"), given(item, "protocol"), protocols);
    if (!port) {
        if (end)
            field_invalid(e, at, end, "may not be specified when `port` is not specified");
        return;
    }
    if (json_is_string(port) && end)
        field_invalid(e, at, end, "may not be specified when `port` is non-numeric");
    check_port_or_name(e, FIELD(p, "port"), port);
    if (!end || !json_i64(port, &first) || !json_i64(end, &last))
        return;
    if (last < first)
        field_invalid(e, at, port, "must be greater than or equal to `port`");
    check_port(e, at, end);
}

static void check_peer(struct field_errors *e, const struct field_path *p, const cJSON *peer)
{
    const cJSON *pods = given(peer, "podSelector"), *spaces = given(peer, "namespaceSelector");
    const cJSON *block = given(peer, "ipBlock");
    AT(at, p, "ipBlock");
    size_t i = 0;

    validate_label_selector(e, FIELD(p, "podSelector"), pods);
    validate_label_selector(e, FIELD(p, "namespaceSelector"), spaces);
    if (block && check_given(e, FIELD(at, "cidr"), json_str(json_get(block, "cidr"))) &&
        check_cidr(e, FIELD(at, "cidr"), json_str(json_get(block, "cidr")))) {
        json_each(except, json_get(block, "except"))
        {
            const struct field_path *item = FIELD_INDEX(FIELD(at, "except"), i++);

            if (check_cidr(e, item, json_str(except)) &&
                !cidr_contains(json_str(json_get(block, "cidr")), json_str(except)))
                field_invalid(e, item, except, "must be a strict subset of `cidr`");
        }
    }
    if (!pods && !spaces && !block)
        field_required(e, p, "must specify a peer");
    else if (block && (pods || spaces))
        field_forbidden(e, p, "may not specify both ipBlock and another peer");
}

static void check_policy_rules(struct field_errors *e, const struct field_path *p,
                               const cJSON *rules, const char *peers)
{
    size_t i = 0;

    json_each(rule, rules)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        size_t k = 0, n = 0;

        json_each(port, json_get(rule, "ports"))
            check_policy_port(e, FIELD_INDEX(FIELD(at, "ports"), k++), port);
        json_each(peer, json_get(rule, peers))
            check_peer(e, FIELD_INDEX(FIELD(at, peers), n++), peer);
    }
}

/* What an update leaves as it was is not looked at again: it was accepted once. */
static void network_policy_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const types[] = {"Ingress", "Egress", NULL};
    const cJSON *spec = json_get(object, "spec"), *list = json_get(spec, "policyTypes");
    AT(p, NULL, "spec");
    size_t i = 0;

    if (old && same_value(spec, json_get(old, "spec")))
        return;
    validate_label_selector(e, FIELD(p, "podSelector"), given(spec, "podSelector"));
    check_policy_rules(e, FIELD(p, "ingress"), json_get(spec, "ingress"), "from");
    check_policy_rules(e, FIELD(p, "egress"), json_get(spec, "egress"), "to");
    if (json_count(list) > 2) {
        field_invalid(e, FIELD(p, "policyTypes"), list,
                      "may not specify more than two policyTypes");
        return;
    }
    json_each(type, list) check_enum_if(e, FIELD_INDEX(FIELD(p, "policyTypes"), i++), type, types);
}

static ROW_CELLS(cells_network_policy)
{
    struct row r = {a, object, now, cells};
    const cJSON *selector = json_path(object, "spec.podSelector");

    cell_selector(&r, selector, "<none>");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Pod-Selector", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_NETWORK_POLICY = {
    .resource =
        {
            RESOURCE("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies",
                     "networkpolicy"),
            .short_names = NAMES("netpol"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_GENERATION,
            .columns = COLUMNS,
        },
    .defaults = network_policy_defaults,
    .validate = network_policy_validate,
    .cells = cells_network_policy,
};
