/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces and Nodes. */
#include "cells.h"

/* ---- Namespace ---- */

static void set_name_label(struct arena *a, cJSON *ns)
{
    struct str name = json_str_at(ns, "metadata.name");

    if (name.n)
        json_set_str(a, json_ensure_path(a, ns, "metadata.labels"), "kubernetes.io/metadata.name",
                     name);
}

static void namespace_defaults(struct arena *a, cJSON *ns)
{
    static const struct default_rule rules[] = {SET_TEXT_Z("status+.phase", "Active")};

    set_name_label(a, ns);
    defaults_apply(a, ns, rules, COUNT(rules));
}

static void namespace_prepare_create(struct arena *a, cJSON *ns)
{
    cJSON *spec = json_ensure_object(a, ns, "spec"), *list = json_get(spec, "finalizers");

    set_status(a, ns, "{\"phase\":\"Active\"}");
    set_name_label(a, ns); /* the name may be made up only now */
    if (!json_is_array(list))
        list = json_set(a, spec, "finalizers", json_new_array(a));
    json_each(f, list) if (str_eqc(json_str(f), "kubernetes")) return;
    json_append(list, json_new_string(a, STR("kubernetes")));
}

static void namespace_prepare_update(struct arena *a, cJSON *ns, const cJSON *old)
{
    const cJSON *finalizers = json_path(old, "spec.finalizers");
    cJSON *spec = json_ensure_object(a, ns, "spec");

    set_name_label(a, ns);
    if (finalizers)
        json_set(a, spec, "finalizers", json_copy(a, finalizers));
    else
        json_remove(spec, "finalizers");
}

const struct kind_ops NAMESPACE_OPS = {
    .defaults = namespace_defaults,
    .prepare_create = namespace_prepare_create,
    .prepare_update = namespace_prepare_update,
    .cells = cells_namespace,
};

/* ---- Node ---- */

/* podCIDR is the first of podCIDRs; where they differ, podCIDR is right (old clients). */
static void sync_ranges(struct arena *a, cJSON *spec)
{
    struct str one = json_str(json_get(spec, "podCIDR"));
    struct str first = json_str(json_at(json_get(spec, "podCIDRs"), 0));

    if (one.n && !str_eq(one, first))
        json_append(json_set(a, spec, "podCIDRs", json_new_array(a)), json_new_string(a, one));
    else if (!one.n && first.n)
        json_set_str(a, spec, "podCIDR", first);
}

static void node_defaults(struct arena *a, cJSON *node)
{
    cJSON *status = json_get(node, "status"), *capacity = json_get(status, "capacity");

    if (capacity && !json_get(status, "allocatable"))
        json_set(a, status, "allocatable", json_copy(a, capacity));
    defaults_resource_list(a, json_get(status, "capacity"));
    defaults_resource_list(a, json_get(status, "allocatable"));
    sync_ranges(a, json_get(node, "spec"));
}

const struct kind_ops NODE_OPS = {
    .defaults = node_defaults,
    .cells = cells_node,
};
