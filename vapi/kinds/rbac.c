/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and bindings. Who may grant what is auth's. Source: pkg/apis/rbac/v1/defaults.go. */
#include "cells.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

static void binding_defaults(struct arena *a, cJSON *binding)
{
    static const struct default_rule rules[] = {SET_TEXT_Z("roleRef.apiGroup", RBAC_GROUP)};

    defaults_apply(a, binding, rules, COUNT(rules));
    json_each(subject, json_get(binding, "subjects"))
    {
        struct str kind = json_str(json_get(subject, "kind"));

        if (!json_str(json_get(subject, "apiGroup")).n &&
            (str_eqc(kind, "User") || str_eqc(kind, "Group")))
            json_set_str(a, subject, "apiGroup", STR(RBAC_GROUP));
    }
}

const struct kind_ops ROLE_OPS = {
    .cells = kinds_cells_created_at,
};
const struct kind_ops CLUSTER_ROLE_OPS = {
    .cells = kinds_cells_created_at,
};
const struct kind_ops ROLE_BINDING_OPS = {
    .defaults = binding_defaults,
    .cells = cells_binding,
};
const struct kind_ops CLUSTER_ROLE_BINDING_OPS = {
    .defaults = binding_defaults,
    .cells = cells_binding,
};
