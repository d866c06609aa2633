/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and bindings. Who may grant what is auth's. Source: pkg/apis/rbac/v1/defaults.go. */
#include "validate.h"

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

/* ---- roles ---- */

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

/* ---- bindings ---- */

static void check_group(struct field_errors *e, const struct field_path *p, const cJSON *ref,
                        const char *group)
{
    const char *const supported[] = {group, NULL};
    struct str given_group = json_str(json_get(ref, "apiGroup"));

    if (!str_eqc(given_group, group))
        field_not_supported(e, FIELD(p, "apiGroup"), given_group, supported);
}

static void check_subject(struct field_errors *e, const struct field_path *p, const cJSON *subject,
                          bool namespaced)
{
    static const char *const kinds[] = {"ServiceAccount", "User", "Group", NULL};
    struct str kind = json_str(json_get(subject, "kind")),
               name = json_str(json_get(subject, "name"));

    check_given(e, FIELD(p, "name"), name);
    if (!one_of(kind, kinds)) {
        field_not_supported(e, FIELD(p, "kind"), kind, kinds);
        return;
    }
    if (!str_eqc(kind, "ServiceAccount")) {
        check_group(e, p, subject, RBAC_GROUP);
        return;
    }
    if (name.n)
        check_rule(e, FIELD(p, "name"), NAME_DNS1123_SUBDOMAIN, name);
    check_group(e, p, subject, "");
    if (!namespaced)
        check_given(e, FIELD(p, "namespace"), json_str(json_get(subject, "namespace")));
}

/* As upstream's internal type is printed. */
static cJSON *internal_ref(struct arena *a, const cJSON *ref)
{
    static const char *const names[][2] = {
        {"APIGroup", "apiGroup"}, {"Kind", "kind"}, {"Name", "name"}};
    cJSON *o = json_new_object(a);

    for (size_t i = 0; i < COUNT(names); i++)
        json_set_str(a, o, names[i][0], json_str(json_get(ref, names[i][1])));
    return o;
}

static void check_binding(struct field_errors *e, const cJSON *binding, const cJSON *old,
                          const char *const *kinds)
{
    const cJSON *ref = json_get(binding, "roleRef");
    struct str kind = json_str(json_get(ref, "kind")), name = json_str(json_get(ref, "name"));
    bool namespaced = kinds[1] != NULL; /* where a Role will do */
    AT(p, NULL, "roleRef");
    AT(list, NULL, "subjects");
    size_t i = 0;

    check_group(e, p, ref, RBAC_GROUP);
    if (!one_of(kind, kinds))
        field_not_supported(e, FIELD(p, "kind"), kind, kinds);
    if (check_given(e, FIELD(p, "name"), name))
        check_rule(e, FIELD(p, "name"), NAME_PATH_SEGMENT, name);
    json_each(subject, json_get(binding, "subjects"))
        check_subject(e, FIELD_INDEX(list, i++), subject, namespaced);
    if (old && !same_value(ref, json_get(old, "roleRef")))
        field_invalid(e, p, internal_ref(e->arena, ref), "cannot change roleRef");
}

static void binding_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const kinds[] = {"Role", "ClusterRole", NULL};

    check_binding(e, object, old, kinds);
}

static void cluster_binding_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const kinds[] = {"ClusterRole", NULL};

    check_binding(e, object, old, kinds);
}

const struct kind_ops ROLE_OPS = {
    .validate = role_validate,
    .cells = kinds_cells_created_at,
};
const struct kind_ops CLUSTER_ROLE_OPS = {
    .validate = cluster_role_validate,
    .cells = kinds_cells_created_at,
};
const struct kind_ops ROLE_BINDING_OPS = {
    .defaults = binding_defaults,
    .validate = binding_validate,
    .cells = cells_binding,
};
const struct kind_ops CLUSTER_ROLE_BINDING_OPS = {
    .defaults = binding_defaults,
    .validate = cluster_binding_validate,
    .cells = cells_binding,
};
