/* SPDX-License-Identifier: Apache-2.0 */
/* networking.k8s.io and discovery.k8s.io. Source: pkg/apis/networking/v1/defaults.go,
 * pkg/apis/discovery/v1/defaults.go. */
#include "cells.h"

/* ---- Ingress, IngressClass ---- */

static void ingress_prepare_create(struct arena *a, cJSON *ingress)
{
    set_status(a, ingress, "{\"loadBalancer\":{}}");
}

const struct kind_ops INGRESS_OPS = {
    .prepare_create = ingress_prepare_create,
    .cells = cells_ingress,
};

static void ingress_class_defaults(struct arena *a, cJSON *class)
{
    static const struct default_rule rules[] = {SET_TEXT("spec.parameters.scope", "Cluster")};

    defaults_apply(a, class, rules, COUNT(rules));
}

const struct kind_ops INGRESS_CLASS_OPS = {
    .defaults = ingress_class_defaults,
    .cells = cells_ingress_class,
};

/* ---- NetworkPolicy ---- */

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

const struct kind_ops NETWORK_POLICY_OPS = {
    .defaults = network_policy_defaults,
    .cells = cells_network_policy,
};

/* ---- IPAddress, ServiceCIDR ---- */

static void cidr_prepare_create(struct arena *a, cJSON *cidr)
{
    set_status(a, cidr, "{}");
}

const struct kind_ops IPADDRESS_OPS = {
    .cells = cells_ip_address,
};
const struct kind_ops SERVICE_CIDR_OPS = {
    .prepare_create = cidr_prepare_create,
    .cells = cells_service_cidr,
};

/* ---- EndpointSlice ---- */

static void slice_defaults(struct arena *a, cJSON *slice)
{
    static const struct default_rule rules[] = {
        SET_TEXT("ports[].name", ""),
        SET_TEXT("ports[].protocol", "TCP"),
    };

    defaults_apply(a, slice, rules, COUNT(rules));
}

static bool same_labels(const cJSON *a, const cJSON *b)
{
    const cJSON *x = json_path(a, "metadata.labels"), *y = json_path(b, "metadata.labels");

    return x && y ? json_equal(x, y) : x == y;
}

/* Labels say whose the slice is: they count as a change. */
static void slice_prepare_update(struct arena *a, cJSON *slice, const cJSON *old)
{
    if (!same_labels(slice, old))
        json_set_i64(a, json_get(slice, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

const struct kind_ops ENDPOINT_SLICE_OPS = {
    .defaults = slice_defaults,
    .prepare_update = slice_prepare_update,
    .cells = cells_endpoint_slice,
};
