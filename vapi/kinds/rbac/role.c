/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and ClusterRoles. Who may grant what is decided by auth. Source:
 * pkg/apis/rbac/validation. */
#include "../rules/kind.h"

static void check_policy_rule(struct field_errors *e, const struct field_path *p, const cJSON *rule,
                              bool namespaced)
{
    const cJSON *urls = json_get(rule, "nonResourceURLs"), *groups = json_get(rule, "apiGroups");
    const cJSON *resources = json_get(rule, "resources");

    if (!json_count(json_get(rule, "verbs")))
        field_required(e, FIELD(p, "verbs"), "verbs must contain at least one value");
    if (json_count(urls)) {
        if (namespaced)
            field_invalid(e, FIELD(p, "nonResourceURLs"), urls,
                          "namespaced rules cannot apply to non-resource URLs");
        if (json_count(groups) || json_count(resources) ||
            json_count(json_get(rule, "resourceNames")))
            field_invalid(e, FIELD(p, "nonResourceURLs"), urls,
                          "rules cannot apply to both regular resources and non-resource URLs");
        return;
    }
    if (!json_count(groups))
        field_required(e, FIELD(p, "apiGroups"),
                       "resource rules must supply at least one api group");
    if (!json_count(resources))
        field_required(e, FIELD(p, "resources"),
                       "resource rules must supply at least one resource");
}

static void check_rules(struct field_errors *e, const cJSON *role, bool namespaced)
{
    AT(p, NULL, "rules");
    size_t i = 0;

    json_each(rule, json_get(role, "rules"))
        check_policy_rule(e, FIELD_INDEX(p, i++), rule, namespaced);
}

static void role_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)old;
    check_rules(e, object, true);
}

static void cluster_role_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *aggregation = given(object, "aggregationRule");
    const cJSON *selectors = json_get(aggregation, "clusterRoleSelectors");
    const struct field_path *p = FIELD(FIELD(NULL, "aggregationRule"), "clusterRoleSelectors");
    size_t i = 0;

    (void)old;
    check_rules(e, object, false);
    if (aggregation && !json_count(selectors))
        field_required(e, p,
                       "at least one clusterRoleSelector required if aggregationRule is non-nil");
    json_each(selector, selectors)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        size_t before = e->n;

        validate_label_selector(e, at, selector);
        if (e->n > before)
            field_invalid(e, at, NULL, "invalid label selector.");
    }
}

/* ---- the kinds ---- */

static const struct column COLUMNS[] = {
    {"Created At", "date", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_CLUSTER_ROLE = {
    .resource =
        {
            RESOURCE("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles",
                     "clusterrole"),
            .verbs = VERBS_ALL,
            .flags = RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
            .columns = COLUMNS,
        },
    .validate = cluster_role_validate,
    .cells = kinds_cells_created_at,
};

const struct kind KIND_ROLE = {
    .resource =
        {
            RESOURCE("rbac.authorization.k8s.io", "v1", "Role", "roles", "role"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
            .columns = COLUMNS,
        },
    .validate = role_validate,
    .cells = kinds_cells_created_at,
};
