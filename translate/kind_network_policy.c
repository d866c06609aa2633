/* SPDX-License-Identifier: Apache-2.0 */
/* NetworkPolicies. Why: policies add up on the host, so a rule of a tenant can permit what the
 * admin's policies do not. It therefore permits pods of this tenant only, and addresses only inside
 * the ranges that the admin lists: what a rule leaves open upstream ("from everywhere") is the sum
 * of these. Must never emit a rule without peers, nor a namespaceSelector: it would see the host's
 * namespaces. */

#include <sublet/cidr.h>

#include "kind_impl.h"

#define OPTION "sync.toHost.networkPolicies.allowedCIDRs"

static const struct str_list *listed(const struct kind_call *c)
{
    return &c->tenant->config->to_host->network_cidrs;
}

static int check_range(const struct kind_call *c, struct str text)
{
    struct cidr range, allowed;

    if (!cidr_parse(text, &range))
        return translate_kind_refuse(c, "ipBlock.cidr: \"%.*s\" is not a range of addresses",
                                     STR_F(text));
    for (size_t i = 0; i < listed(c)->n; i++)
        if (cidr_parse(listed(c)->items[i], &allowed) && cidr_within(&range, &allowed))
            return 0;
    return translate_kind_refuse(c, "ipBlock.cidr: %.*s is not inside a range of " OPTION,
                                 STR_F(text));
}

static cJSON *block_of(struct arena *a, struct str cidr)
{
    cJSON *peer = json_new_object(a), *block = json_ensure_object(a, peer, "ipBlock");

    add_str(a, block, "cidr", cidr);
    return peer;
}

static int block_down(const struct kind_call *c, const cJSON *block, cJSON **ret)
{
    struct str range = json_str(json_get(block, "cidr"));
    cJSON *except;

    if (check_range(c, range))
        return -1;
    *ret = block_of(c->arena, range);
    if (!json_count(json_get(block, "except")))
        return 0;
    except =
        object_add(c->arena, json_get(*ret, "ipBlock"), STR("except"), json_new_array(c->arena));
    json_each(one, json_get(block, "except")) if (json_is_string(one))
        json_append(except, json_new_string(c->arena, json_str(one)));
    return 0;
}

static cJSON *pods_of(const struct kind_call *c, struct scope scope, const cJSON *selector)
{
    cJSON *peer = json_new_object(c->arena);

    object_add(
        c->arena, peer, STR("podSelector"),
        translate_labels_selector(c->arena, c->tenant, scope,
                                  json_is_object(selector) ? selector : json_new_object(c->arena)));
    return peer;
}

static int peer_down(const struct kind_call *c, const cJSON *peer, cJSON **ret)
{
    const cJSON *block = json_get(peer, "ipBlock");

    if (json_is_object(block))
        return block_down(c, block, ret);
    *ret = pods_of(c,
                   translate_labels_scope(c->arena, c->tenant, c->ns, NULL,
                                          json_get(peer, "namespaceSelector")),
                   json_get(peer, "podSelector"));
    return 0;
}

/* All that the tenant can name: upstream no peers mean everywhere. */
static void add_all(const struct kind_call *c, cJSON *peers)
{
    json_append(peers, pods_of(c, (struct scope){.all = true}, NULL));
    for (size_t i = 0; i < listed(c)->n; i++)
        json_append(peers, block_of(c->arena, listed(c)->items[i]));
}

static void add_ports(const struct kind_call *c, const cJSON *ports, cJSON *rule)
{
    static const char *const keys[] = {"protocol", "port", "endPort"};
    cJSON *list;

    if (!json_count(ports))
        return;
    list = object_add(c->arena, rule, STR("ports"), json_new_array(c->arena));
    json_each(port, ports)
    {
        cJSON *one = json_append(list, json_new_object(c->arena));

        for (size_t i = 0; i < COUNT(keys); i++)
            if (json_is_scalar(json_get(port, keys[i])))
                object_add(c->arena, one, str_c(keys[i]),
                           json_copy(c->arena, json_get(port, keys[i])));
    }
}

static int rules_down(const struct kind_call *c, const cJSON *rules, const char *key, cJSON **ret)
{
    *ret = json_new_array(c->arena);
    json_each(rule, rules)
    {
        cJSON *one = json_append(*ret, json_new_object(c->arena)), *peers, *peer;

        add_ports(c, json_get(rule, "ports"), one);
        peers = object_add(c->arena, one, str_c(key), json_new_array(c->arena));
        json_each(from, json_get(rule, key))
        {
            if (!peer_down(c, from, &peer))
                json_append(peers, peer);
            else if (!translate_kind_leaves_out(c))
                return -1;
        }
        if (!json_count(json_get(rule, key)))
            add_all(c, peers);
        else if (!json_count(peers))
            json_append(peers, pods_of(c, (struct scope){0}, NULL)); /* none: no peers mean all */
    }
    return 0;
}

static int ingress_down(const struct kind_call *c, const cJSON *rules, cJSON **ret)
{
    return rules_down(c, rules, "from", ret);
}

static int egress_down(const struct kind_call *c, const cJSON *rules, cJSON **ret)
{
    return rules_down(c, rules, "to", ret);
}

enum { MOST_NAMES = 50000 };

static size_t wide_peers(const cJSON *rules, const char *key)
{
    size_t n = 0;

    json_each(rule, rules)
    {
        json_each(peer, json_get(rule, key)) n += json_get(peer, "namespaceSelector") != NULL;
    }
    return n;
}

/* Each peer with a namespaceSelector may become the names of all namespaces. */
static int check_names(const struct kind_call *c, const cJSON *spec, cJSON **ret)
{
    size_t peers =
        wide_peers(json_get(spec, "ingress"), "from") + wide_peers(json_get(spec, "egress"), "to");
    size_t most = MOST_NAMES / (translate_namespaces_count(c->tenant) + 1);

    (void)ret;
    if (peers <= most)
        return 0;
    return translate_kind_refuse(
        c, "at most %zu peers may have a namespaceSelector with so many namespaces", most);
}

static const struct kind_rule DOWN[] = {
    {"spec", KIND_CHECK, .call = check_names},
    {"spec.podSelector", KIND_SELECTOR},
    {"spec.policyTypes", KIND_KEEP},
    {"spec.ingress", KIND_CALL, .call = ingress_down},
    {"spec.egress", KIND_CALL, .call = egress_down},
    {0},
};

/* A policy without a podSelector, which a client may leave out, selects all pods of its
 * namespace. */
static void select_all(const struct kind_call *c, cJSON *host)
{
    cJSON *spec = json_ensure_object(c->arena, host, "spec");

    if (!json_get(spec, "podSelector"))
        object_add(c->arena, spec, STR("podSelector"),
                   translate_label_selector(c->arena, c->tenant, c->ns, json_new_object(c->arena)));
}

const struct kind_rules TRANSLATE_RULES_NETWORK_POLICY = {.api_version = "networking.k8s.io/v1",
                                                          .kind = "NetworkPolicy",
                                                          .group = "networking.k8s.io",
                                                          .plural = "networkpolicies",
                                                          .down = DOWN,
                                                          .reads_namespaces = true,
                                                          .is_fence = true,
                                                          .finish = select_all};
