/* SPDX-License-Identifier: Apache-2.0 */
/* RoleBindings and ClusterRoleBindings. Who may grant what is decided by auth. Source:
 * pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation. */
#include "../rules/kind.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

static const struct default_rule DEFAULT_RULES[] = {SET_TEXT_Z("roleRef.apiGroup", RBAC_GROUP)};

static void binding_defaults(struct arena *a, cJSON *binding)
{
    json_each(subject, json_get(binding, "subjects"))
    {
        struct str kind = json_str(json_get(subject, "kind"));

        if (!json_str(json_get(subject, "apiGroup")).n &&
            (str_eqc(kind, "User") || str_eqc(kind, "Group")))
            json_set_str(a, subject, "apiGroup", STR(RBAC_GROUP));
    }
}

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

/* path: the kind of the subjects. */
static void cell_subjects(const struct row *r, const struct column *c)
{
    struct buf b = BUF_INIT(0);
    bool account = str_eqc(str_c(c->path), "ServiceAccount"), some = false;

    json_each(s, json_get(r->object, "subjects"))
    {
        if (!str_eqc(json_str(json_get(s, "kind")), c->path))
            continue;
        buf_addc(&b, some ? ", " : "");
        some = true;
        if (account) {
            buf_add(&b, json_str(json_get(s, "namespace")));
            buf_char(&b, '/');
        }
        buf_add(&b, json_str(json_get(s, "name")));
    }
    cell_text(r, buf_str(&b));
    buf_fini(&b);
}

CELL(cell_role)
{
    cell_printf(r, "%.*s/%.*s", STR_F(json_str_at(r->object, "roleRef.kind")),
                STR_F(json_str_at(r->object, "roleRef.name")));
}

/* ---- the kinds ---- */

static const struct column COLUMNS[] = {
    {"Role", "string", .cell = cell_role},
    {"Age", "string", .cell = show_age},
    {"Users", "string", .priority = 1, .cell = cell_subjects, .path = "User"},
    {"Groups", "string", .priority = 1, .cell = cell_subjects, .path = "Group"},
    {"ServiceAccounts", "string", .priority = 1, .cell = cell_subjects, .path = "ServiceAccount"},
    {NULL},
};

const struct kind KIND_CLUSTER_ROLE_BINDING = {
    .resource =
        {
            RESOURCE("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings",
                     "clusterrolebinding"),
            .verbs = VERBS_ALL,
            .flags = RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
            .columns = COLUMNS,
        },
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = binding_defaults,
    .validate = cluster_binding_validate,
};

const struct kind KIND_ROLE_BINDING = {
    .resource =
        {
            RESOURCE("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings",
                     "rolebinding"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
            .columns = COLUMNS,
        },
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = binding_defaults,
    .validate = binding_validate,
};
