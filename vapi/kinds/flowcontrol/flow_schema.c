/* SPDX-License-Identifier: Apache-2.0 */
/* FlowSchemas. Must never know who is served when: nothing here is obeyed. Source:
 * pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation. */
#include "../rules/kind.h"
#include "status.h"

#include <string.h>

static void schema_defaults(struct arena *a, cJSON *schema)
{
    static const struct default_rule rules[] = {SET_NUMBER_Z("spec.matchingPrecedence", 1000)};

    defaults_apply(a, schema, rules, COUNT(rules));
}

#define MAX_PRECEDENCE 10000

static const char *const VERBS[] = {"create", "delete", "deletecollection", "get",   "list",
                                    "patch",  "proxy",  "update",           "watch", NULL};

static void check_account(struct field_errors *e, const struct field_path *p, const cJSON *account)
{
    struct str name = json_str(json_get(account, "name")),
               ns = json_str(json_get(account, "namespace"));

    if (check_given(e, FIELD(p, "name"), name) && !str_eqc(name, "*"))
        check_rule(e, FIELD(p, "name"), NAME_DNS1123_SUBDOMAIN, name);
    if (ns.n)
        check_rule(e, FIELD(p, "namespace"), NAME_DNS1123_LABEL, ns);
    else
        field_required(e, FIELD(p, "namespace"), "must specify namespace for service account");
}

static void check_subject(struct field_errors *e, const struct field_path *p, const cJSON *subject)
{
    static const char *const kinds[] = {"Group", "ServiceAccount", "User", NULL};
    static const char *const members[] = {"group", "serviceAccount", "user"};
    static const size_t order[] = {1, 2, 0};
    struct str kind = json_str(json_get(subject, "kind"));

    if (!one_of(kind, kinds)) {
        field_not_supported(e, FIELD(p, "kind"), kind, kinds);
        return;
    }
    for (size_t i = 0; i < COUNT(members); i++) {
        const cJSON *member = given(subject, members[i]);
        AT(at, p, members[i]);

        if (!str_eqc(kind, kinds[i]))
            continue;
        if (!member)
            field_required(e, at,
                           arena_printf(e->arena, "%s is required when subject kind is '%s'",
                                        members[i], kinds[i])
                               .p);
        else if (i == 1)
            check_account(e, at, member);
        else
            check_given(e, FIELD(at, "name"), json_str(json_get(member, "name")));
    }
    for (size_t k = 0; k < COUNT(order); k++) {
        size_t i = order[k];

        if (!str_eqc(kind, kinds[i]) && given(subject, members[i]))
            field_forbidden(e, FIELD(p, members[i]),
                            arena_printf(e->arena, "%s is forbidden when subject kind is not '%s'",
                                         members[i], kinds[i])
                                .p);
    }
}

/* ---- FlowSchema: rules ---- */

/* True when "*" is in the list, alone or not. */
static bool check_star(struct field_errors *e, const struct field_path *p, const cJSON *list,
                       const char *others)
{
    if (!json_list_has(list, STR("*")))
        return false;
    if (json_count(list) > 1)
        field_invalid(
            e, p, list,
            arena_printf(e->arena, "if '*' is present, must not specify other %s", others).p);
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
    json_each(verb, list) known &= one_of(json_str(verb), VERBS);
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

static void check_namespaces(struct field_errors *e, const struct field_path *p, const cJSON *rule)
{
    const cJSON *list = json_get(rule, "namespaces");
    const char *messages[NAME_MESSAGES_MAX];
    size_t i = 0;

    if (!json_count(list) && !json_true(json_get(rule, "clusterScope"))) {
        field_required(e, p,
                       "resource rules that are not cluster scoped must supply at least one "
                       "namespace");
        return;
    }
    if (check_star(e, p, list, "namespaces"))
        return;
    json_each(ns, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        size_t n = name_check(NAME_DNS1123_LABEL, json_str(ns), messages);

        for (size_t k = 0; k < n; k++)
            field_invalid(e, at, ns,
                          arena_printf(e->arena,
                                       "each member of this list must be '*' or a DNS-1123 label; "
                                       "%s",
                                       messages[k])
                              .p);
    }
}

static void check_resource_rule(struct field_errors *e, const struct field_path *p,
                                const cJSON *rule)
{
    const cJSON *groups = json_get(rule, "apiGroups"), *resources = json_get(rule, "resources");

    check_verbs(e, FIELD(p, "verbs"), json_get(rule, "verbs"));
    if (!json_count(groups))
        field_required(e, FIELD(p, "apiGroups"),
                       "resource rules must supply at least one api group");
    check_star(e, FIELD(p, "apiGroups"), groups, "api groups");
    if (!json_count(resources))
        field_required(e, FIELD(p, "resources"),
                       "resource rules must supply at least one resource");
    check_star(e, FIELD(p, "resources"), resources, "resources");
    check_namespaces(e, FIELD(p, "namespaces"), rule);
}

static void check_flow_rule(struct field_errors *e, const struct field_path *p, const cJSON *rule)
{
    const cJSON *subjects = json_get(rule, "subjects");
    const cJSON *resources = json_get(rule, "resourceRules");
    const cJSON *urls = json_get(rule, "nonResourceRules");
    size_t i = 0, k = 0, n = 0;

    if (!json_count(subjects))
        field_required(e, FIELD(p, "subjects"), "subjects must contain at least one value");
    json_each(subject, subjects) check_subject(e, FIELD_INDEX(FIELD(p, "subjects"), i++), subject);
    if (!json_count(resources) && !json_count(urls))
        field_required(e, p,
                       "at least one of resourceRules and nonResourceRules has to be non-empty");
    json_each(item, resources)
        check_resource_rule(e, FIELD_INDEX(FIELD(p, "resourceRules"), k++), item);
    json_each(item, urls) check_url_rule(e, FIELD_INDEX(FIELD(p, "nonResourceRules"), n++), item);
}

static void check_precedence(struct field_errors *e, const struct field_path *p, int64_t value,
                             struct str name)
{
    const cJSON *shown = json_new_i64(e->arena, value);

    if (value <= 0)
        field_invalid(e, p, shown, "must be a positive value");
    if (value > MAX_PRECEDENCE)
        field_invalid(e, p, shown, "must not be greater than 10000");
    if (value == 1 && !str_eqc(name, "exempt"))
        field_invalid(e, p, shown, "only the schema named 'exempt' may have matchingPrecedence 1");
}

static void validate_flow_schema(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const methods[] = {"ByNamespace", "ByUser", NULL};
    const cJSON *spec = json_get(object, "spec"), *method = given(spec, "distinguisherMethod");
    struct str level = json_str(json_path(spec, "priorityLevelConfiguration.name"));
    AT(p, NULL, "spec");
    const struct field_path *at = FIELD(FIELD(p, "priorityLevelConfiguration"), "name");
    size_t i = 0;

    check_precedence(e, FIELD(p, "matchingPrecedence"), json_i64_at(spec, "matchingPrecedence", 0),
                     json_str(json_path(object, "metadata.name")));
    if (method && !one_of(json_str(json_get(method, "type")), methods))
        field_not_supported_value(e, FIELD(FIELD(p, "distinguisherMethod"), "type"), method,
                                  methods);
    if (level.n)
        check_rule(e, at, NAME_DNS1123_SUBDOMAIN, level);
    else
        field_required(e, at, "must reference a priority level");
    json_each(rule, json_get(spec, "rules"))
        check_flow_rule(e, FIELD_INDEX(FIELD(p, "rules"), i++), rule);
    validate_flow_status(e, object, old);
}

static ROW_CELLS(cells_flow_schema)
{
    struct row r = {a, object, now, cells};
    struct str missing = STR("?");

    cell_text_at(&r, "spec.priorityLevelConfiguration.name");
    cell_number_at(&r, "spec.matchingPrecedence");
    cell_text_or(&r, "spec.distinguisherMethod.type", "<none>");
    cell_age(&r);
    json_each(c, json_path(object, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), "Dangling")) {
            missing = json_str(json_get(c, "status"));
            break;
        }
    }
    cell_text(&r, missing);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"PriorityLevel", "string", "", "", 0},       {"MatchingPrecedence", "string", "", "", 0},
    {"DistinguisherMethod", "string", "", "", 0}, {"Age", "string", "", "", 0},
    {"MissingPL", "string", "", "", 0},           {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_FLOW_SCHEMA = {
    .resource =
        {
            RESOURCE("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas",
                     "flowschema"),
            .verbs = VERBS_ALL,
            .flags = RES_STATUS | RES_GENERATION | RES_NAME_ON_UPDATE | RES_STATUS_KEEPS_META,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("FlowSchema")),
        },
    .defaults = schema_defaults,
    .prepare_create = flow_prepare_create,
    .validate = validate_flow_schema,
    .validate_status = validate_flow_status,
    .cells = cells_flow_schema,
};
