/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and ClusterRoles. Who may grant what is decided by auth. Source:
 * pkg/apis/rbac/validation. */
#include "../rules/kind.h"

#define NOT_OF_URLS                                                                                \
    WHEN_ANY(NULL, NAMES("apiGroups", "resources", "resourceNames"),                               \
             INVALID("nonResourceURLs",                                                            \
                     "rules cannot apply to both regular resources and non-resource URLs"))
#define OF_RESOURCES                                                                               \
    UNLESS_GIVEN(NULL, "nonResourceURLs",                                                          \
                 SOME("apiGroups", "resource rules must supply at least one api group"),           \
                 SOME("resources", "resource rules must supply at least one resource"))
#define VERBS_OF_RULE SOME("verbs", "verbs must contain at least one value")
static const struct rule ROLE_RULES[] = {
    EACH("rules", VERBS_OF_RULE,
         INVALID("nonResourceURLs", "namespaced rules cannot apply to non-resource URLs"),
         NOT_OF_URLS, OF_RESOURCES)};

static void check_selector(struct field_errors *e, const struct field_path *p,
                           const cJSON *selector)
{
    size_t before = e->n;

    validate_label_selector(e, p, selector);
    if (e->n > before)
        field_invalid(e, p, NULL, "invalid label selector.");
}

static const struct rule CLUSTER_ROLE_RULES[] = {
    EACH("rules", VERBS_OF_RULE, NOT_OF_URLS, OF_RESOURCES),
    WITHIN("aggregationRule",
           SOME("clusterRoleSelectors",
                "at least one clusterRoleSelector required if aggregationRule is non-nil"),
           CHECK_EACH("clusterRoleSelectors", check_selector)),
};

/* ---- the kinds ---- */

const struct kind KIND_CLUSTER_ROLE = {
    RESOURCE("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "clusterrole"),
    .resource.flags = RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
    .resource.columns = COLUMNS_CREATED,
    .rules = RULES(CLUSTER_ROLE_RULES),
};

const struct kind KIND_ROLE = {
    RESOURCE("rbac.authorization.k8s.io", "v1", "Role", "roles", "role"),
    .resource.flags = RES_NAMESPACED | RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
    .resource.columns = COLUMNS_CREATED,
    .rules = RULES(ROLE_RULES),
};
