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

static const char *const NO_GROUP[] = {"", NULL};
static const char *const GROUP[] = {RBAC_GROUP, NULL};
static const char *const ROLES[] = {"Role", "ClusterRole", NULL};
static const char *const CLUSTER_ROLES[] = {"ClusterRole", NULL};
static const char *const SUBJECTS[] = {"ServiceAccount", "User", "Group", NULL};

static const struct rule SUBJECT[] = {
    GIVEN("name"),
    ENUM_ALWAYS("kind", SUBJECTS),
    WHEN(NULL, "kind", "ServiceAccount", NAME_IF_SET("name", DNS1123_SUBDOMAIN),
         ENUM_ALWAYS("apiGroup", NO_GROUP)),
    WHEN(NULL, "kind", "User", ENUM_ALWAYS("apiGroup", GROUP)),
    WHEN(NULL, "kind", "Group", ENUM_ALWAYS("apiGroup", GROUP)),
};

static void check_role_kept(const struct check *c)
{
    static const char *const names[][2] = {
        {"APIGroup", "apiGroup"}, {"Kind", "kind"}, {"Name", "name"}};
    struct arena *a = c->e->arena;
    cJSON *shown = json_new_object(a); /* as upstream's internal type is printed */

    if (kinds_same_value(c->value, c->old))
        return;
    for (size_t i = 0; i < COUNT(names); i++)
        json_set_str(a, shown, names[i][0], json_str(json_get(c->value, names[i][1])));
    field_invalid(c->e, c->at, shown, "cannot change roleRef");
}

static const struct rule BINDING_RULES[] = {
    INSIDE("roleRef", ENUM_ALWAYS("apiGroup", GROUP), ENUM_ALWAYS("kind", ROLES),
           NAME("name", PATH_SEGMENT)),
    EACH("subjects", ALL(SUBJECT)),
    ON_UPDATE(CALL("roleRef", check_role_kept)),
};
static const struct rule CLUSTER_BINDING_RULES[] = {
    INSIDE("roleRef", ENUM_ALWAYS("apiGroup", GROUP), ENUM_ALWAYS("kind", CLUSTER_ROLES),
           NAME("name", PATH_SEGMENT)),
    EACH("subjects", ALL(SUBJECT), WHEN(NULL, "kind", "ServiceAccount", GIVEN("namespace"))),
    ON_UPDATE(CALL("roleRef", check_role_kept)),
};

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
    cell_pair(r, json_get(r->object, "roleRef"), "kind", "name", "/");
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
    RESOURCE("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings",
             "clusterrolebinding"),
    .resource.flags = RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
    .resource.columns = COLUMNS,
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = binding_defaults,
    .rules = RULES(CLUSTER_BINDING_RULES),
};

const struct kind KIND_ROLE_BINDING = {
    RESOURCE("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "rolebinding"),
    .resource.flags = RES_NAMESPACED | RES_SYSTEM_NAME | RES_CREATE_ON_UPDATE,
    .resource.columns = COLUMNS,
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = binding_defaults,
    .rules = RULES(BINDING_RULES),
};
