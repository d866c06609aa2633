/* SPDX-License-Identifier: Apache-2.0 */
/* FlowSchemas. Must never know who is served when: nothing here is obeyed. Source:
 * pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation. */
#include "../rules/kind.h"
#include "status.h"

#include <string.h>

static const struct default_rule DEFAULT_RULES[] = {SET_NUMBER_Z("spec.matchingPrecedence", 1000)};

static const char *const VERBS[] = {"create", "delete", "deletecollection", "get",   "list",
                                    "patch",  "proxy",  "update",           "watch", NULL};

static void check_account_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    if (name.n && !str_eqc(name, "*"))
        check_rule(e, p, NAME_DNS1123_SUBDOMAIN, name);
}

static const struct rule ACCOUNT[] = {
    GIVEN("name"),
    CHECK_STR("name", check_account_name),
    NAME_IF_SET("namespace", DNS1123_LABEL),
    GIVEN_ELSE("namespace", "must specify namespace for service account"),
};

#define OF_KIND(member, kind)                                                                      \
    REQUIRED(member, member " is required when subject kind is '" kind "'")
#define NOT_OF_KIND(member, kind)                                                                  \
    FORBIDDEN(member, member " is forbidden when subject kind is not '" kind "'")
#define NO_GROUP   NOT_OF_KIND("group", "Group")
#define NO_ACCOUNT NOT_OF_KIND("serviceAccount", "ServiceAccount")
#define NO_USER    NOT_OF_KIND("user", "User")

static const struct rule SUBJECT[] = {
    ENUM_ALWAYS("kind", ENUM_SUBJECT_KIND),
    WHEN(NULL, "kind", "Group", OF_KIND("group", "Group"), WITHIN("group", GIVEN("name")),
         NO_ACCOUNT, NO_USER),
    WHEN(NULL, "kind", "ServiceAccount", OF_KIND("serviceAccount", "ServiceAccount"),
         WITHIN("serviceAccount", ALL(ACCOUNT)), NO_USER, NO_GROUP),
    WHEN(NULL, "kind", "User", OF_KIND("user", "User"), WITHIN("user", GIVEN("name")), NO_ACCOUNT,
         NO_GROUP),
};

/* ---- FlowSchema: rules ---- */

/* True when "*" is in the list, alone or not. */
static bool check_star(struct field_errors *e, const struct field_path *p, const cJSON *list,
                       const char *others)
{
    if (!json_list_has(list, STR("*")))
        return false;
    if (json_count(list) > 1)
        field_invalid_printf(e, p, list, "if '*' is present, must not specify other %s", others);
    return true;
}

static void check_verbs(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    bool known = true;

    if (!json_count(list)) {
        field_required(e, p, "verbs must contain at least one value");
        return;
    }
    if (check_star(e, p, list, "verbs"))
        return;
    json_each(verb, list) known &= kinds_one_of(json_str(verb), VERBS);
    if (!known)
        field_not_supported_value(e, p, list, VERBS);
}

static const char *path_problem(struct str path)
{
    size_t stars = 0;

    for (size_t i = 0; i < path.n; i++)
        stars += path.p[i] == '*';
    if (!path.n)
        return "must not be empty";
    if (str_eqc(path, "/"))
        return NULL;
    if (path.p[0] != '/')
        return "must start with slash";
    if (str_find(path, ' ') < path.n)
        return "must not contain white-space";
    if (memmem(path.p, path.n, "//", 2))
        return "must not contain double slash";
    if (stars > 1 || (stars == 1 && !str_has_suffix(path, STR("/*"))))
        return "wildcard can only do suffix matching";
    return NULL;
}

static void check_url_rule(struct field_errors *e, const struct field_path *p, const cJSON *rule)
{
    const cJSON *list = json_get(rule, "nonResourceURLs");
    AT(at, p, "nonResourceURLs");
    size_t i = 0;

    check_verbs(e, FIELD(p, "verbs"), json_get(rule, "verbs"));
    if (!json_count(list)) {
        field_required(e, at, "nonResourceURLs must contain at least one value");
        return;
    }
    if (check_star(e, at, list, "non-resource URLs"))
        return;
    json_each(path, list)
    {
        const char *why = path_problem(json_str(path));

        if (why)
            field_invalid(e, FIELD_INDEX(at, i), path, why);
        i++;
    }
}

static void check_namespaces(const struct check *c)
{
    const cJSON *rule = c->value, *list = json_get(rule, "namespaces");
    struct field_errors *e = c->e;
    AT(p, c->at, "namespaces");
    const char *messages[NAME_MESSAGES_MAX];

    if (!json_count(list) && !json_true(json_get(rule, "clusterScope"))) {
        field_required(e, p,
                       "resource rules that are not cluster scoped must supply at least one "
                       "namespace");
        return;
    }
    if (check_star(e, p, list, "namespaces"))
        return;
    field_each(ns, at, p, list)
    {
        size_t n = name_check(NAME_DNS1123_LABEL, json_str(ns), messages);

        for (size_t k = 0; k < n; k++)
            field_invalid_printf(e, at, ns,
                                 "each member of this list must be '*' or a DNS-1123 label; "
                                 "%s",
                                 messages[k]);
    }
}

/* ---- FlowSchema ---- */

static void check_precedence(const struct check *c)
{
    int64_t value = json_i64_at(c->object, "spec.matchingPrecedence", 0);
    const cJSON *shown = json_new_i64(c->e->arena, value);

    if (value <= 0)
        field_invalid(c->e, c->at, shown, "must be a positive value");
    if (value > 10000)
        field_invalid(c->e, c->at, shown, "must not be greater than 10000");
    if (value == 1 && !kinds_text_is(c->object, "metadata.name", "exempt"))
        field_invalid(c->e, c->at, shown,
                      "only the schema named 'exempt' may have matchingPrecedence 1");
}

static void check_method(const struct check *c)
{
    if (c->value &&
        !kinds_one_of(json_str(json_get(c->value, "type")), ENUM_FLOW_DISTINGUISHER_METHOD_TYPE))
        field_not_supported_value(c->e, FIELD(c->at, "type"), c->value,
                                  ENUM_FLOW_DISTINGUISHER_METHOD_TYPE);
}

static const struct rule SCHEMA_RULES[] = {
    CALL("spec.matchingPrecedence", check_precedence),
    CALL("spec.distinguisherMethod", check_method),
    NAME_IF_SET("spec.priorityLevelConfiguration.name", DNS1123_SUBDOMAIN),
    GIVEN_ELSE("spec.priorityLevelConfiguration.name", "must reference a priority level"),
    EACH("spec.rules", SOME("subjects", "subjects must contain at least one value"),
         EACH("subjects", ALL(SUBJECT)),
         SOME_OF(NULL, "at least one of resourceRules and nonResourceRules has to be non-empty",
                 "resourceRules", "nonResourceRules"),
         EACH("resourceRules", CHECK_ALWAYS("verbs", check_verbs),
              SOME("apiGroups", "resource rules must supply at least one api group"),
              STAR_ALONE("apiGroups", "api groups"),
              SOME("resources", "resource rules must supply at least one resource"),
              STAR_ALONE("resources", "resources"), CALL(NULL, check_namespaces)),
         CHECK_EACH("nonResourceRules", check_url_rule)),
    ALL(RULES_FLOW_STATUS),
};

/* ---- cells ---- */

CELL(cell_missing_level)
{
    const cJSON *dangling =
        condition_find(json_path(r->object, "status.conditions"), STR("Dangling"));

    cell_text(r, dangling ? json_str(json_get(dangling, "status")) : STR("?"));
}

/* ---- the kind ---- */

const struct kind KIND_FLOW_SCHEMA = {
    RESOURCE("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", "flowschema"),
    .resource.flags = RES_STATUS | RES_GENERATION | RES_NAME_ON_UPDATE | RES_STATUS_KEEPS_META,
    COLUMNS(
        {"PriorityLevel", "string", .cell = show_text,
         .path = "spec.priorityLevelConfiguration.name"},
        {"MatchingPrecedence", "string", .cell = show_number, .path = "spec.matchingPrecedence"},
        {"DistinguisherMethod", "string", .cell = show_text,
         .path = "spec.distinguisherMethod.type", .otherwise = "<none>"},
        {"Age", "string", .cell = show_age}, {"MissingPL", "string", .cell = cell_missing_level}),
    SUBRESOURCES(STATUS_OF("FlowSchema")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .new_status = "{}",
    .rules = RULES(SCHEMA_RULES),
    .status_rules = RULES(RULES_FLOW_STATUS),
};
