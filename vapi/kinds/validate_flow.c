/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of FlowSchemas and PriorityLevelConfigurations, in upstream's words and order. Must never
 * know who is served when: nothing here is obeyed. Source: pkg/apis/flowcontrol/validation. */
#include "validate.h"

#include <math.h>
#include <string.h>

#define MAX_PRECEDENCE 10000
#define MAX_QUEUES     10000000
#define MAX_HASH_BITS  60

static const char *const VERBS[] = {"create", "delete", "deletecollection", "get",   "list",
                                    "patch",  "proxy",  "update",           "watch", NULL};

/* ---- FlowSchema: subjects ---- */

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

/* ---- what both have ---- */

void validate_flow_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *p = FIELD(FIELD(NULL, "status"), "conditions");
    struct names seen = {.arena = e->arena};
    size_t i = 0;

    (void)old;
    json_each(condition, json_path(object, "status.conditions"))
    {
        const struct field_path *at = FIELD(FIELD_INDEX(p, i++), "type");
        struct str type = json_str(json_get(condition, "type"));

        if (!names_add(&seen, type, condition))
            field_duplicate(e, at, json_new_string(e->arena, type));
        check_given(e, at, type);
    }
}

/* ---- FlowSchema ---- */

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

void validate_flow_schema(struct field_errors *e, const cJSON *object, const cJSON *old)
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

/* ---- PriorityLevelConfiguration ---- */

static void check_percent(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    int64_t percent;

    if (json_i64(value, &percent) && (percent < 0 || percent > 100))
        field_invalid(e, p, value, "must be between 0 and 100, inclusive");
}

static void check_shares(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    int64_t shares;

    if (json_i64(value, &shares) && shares < 0)
        field_invalid(e, p, value, "must be a non-negative integer");
}

static void check_queuing(struct field_errors *e, const struct field_path *p, const cJSON *queuing)
{
    int64_t queues = json_i64_at(queuing, "queues", 0), hand = json_i64_at(queuing, "handSize", 0);
    const cJSON *many = json_new_i64(e->arena, queues), *cards = json_new_i64(e->arena, hand);
    int64_t length = json_i64_at(queuing, "queueLengthLimit", 0);

    if (length <= 0)
        field_invalid(e, FIELD(p, "queueLengthLimit"), json_new_i64(e->arena, length),
                      "must be positive");
    if (queues <= 0)
        field_invalid(e, FIELD(p, "queues"), many, "must be positive");
    else if (queues > MAX_QUEUES)
        field_invalid(e, FIELD(p, "queues"), many, "must not be greater than 10000000");
    if (hand <= 0)
        field_invalid(e, FIELD(p, "handSize"), cards, "must be positive");
    else if (hand > queues)
        field_invalid(
            e, FIELD(p, "handSize"), cards,
            arena_printf(e->arena, "should not be greater than queues (%lld)", (long long)queues)
                .p);
    else if (ceil(log2((double)queues) * (double)hand) > MAX_HASH_BITS)
        field_invalid(e, FIELD(p, "handSize"), cards,
                      arena_printf(e->arena,
                                   "required entropy bits of deckSize %lld and handSize %lld "
                                   "should not be greater than 60",
                                   (long long)queues, (long long)hand)
                          .p);
}

static void check_response(struct field_errors *e, const struct field_path *p,
                           const cJSON *response)
{
    static const char *const types[] = {"Queue", "Reject", NULL};
    const cJSON *queuing = given(response, "queuing");
    struct str type = json_str(json_get(response, "type"));

    if (!check_enum(e, FIELD(p, "type"), type, types))
        return;
    if (str_eqc(type, "Queue") && queuing)
        check_queuing(e, FIELD(p, "queuing"), queuing);
    else if (str_eqc(type, "Queue"))
        field_required(e, FIELD(p, "queuing"),
                       "must not be empty if limited.limitResponse.type is Limited");
    else if (queuing)
        field_forbidden(e, FIELD(p, "queuing"),
                        "must be nil if limited.limitResponse.type is not Limited");
}

static void check_limited(struct field_errors *e, const struct field_path *p, const cJSON *limited)
{
    const cJSON *borrowing = given(limited, "borrowingLimitPercent");

    check_shares(e, FIELD(p, "nominalConcurrencyShares"),
                 given(limited, "nominalConcurrencyShares"));
    check_response(e, FIELD(p, "limitResponse"), json_get(limited, "limitResponse"));
    check_percent(e, FIELD(p, "lendablePercent"), given(limited, "lendablePercent"));
    if (borrowing && json_i64_at(limited, "borrowingLimitPercent", 0) < 0)
        field_invalid(e, FIELD(p, "borrowingLimitPercent"), borrowing,
                      "if specified, must be a non-negative integer");
}

void validate_priority_level(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const types[] = {"Exempt", "Limited", NULL};
    const cJSON *spec = json_get(object, "spec");
    const cJSON *limited = given(spec, "limited"), *exempt = given(spec, "exempt");
    struct str type = json_str(json_get(spec, "type"));
    bool is_exempt = str_eqc(type, "Exempt");
    AT(p, NULL, "spec");

    if (str_eqc(json_str(json_path(object, "metadata.name")), "exempt") != is_exempt)
        field_invalid_str(e, FIELD(p, "type"), type,
                          "must be 'Exempt' if and only if `name` is 'exempt'");
    if (check_enum(e, FIELD(p, "type"), type, types) && is_exempt) {
        if (limited)
            field_forbidden(e, FIELD(p, "limited"), "must be nil if the type is not Limited");
        check_shares(e, FIELD(FIELD(p, "exempt"), "nominalConcurrencyShares"),
                     given(exempt, "nominalConcurrencyShares"));
        check_percent(e, FIELD(FIELD(p, "exempt"), "lendablePercent"),
                      given(exempt, "lendablePercent"));
    } else if (str_eqc(type, "Limited")) {
        if (exempt)
            field_forbidden(e, FIELD(p, "exempt"), "must be nil if the type is Limited");
        if (limited)
            check_limited(e, FIELD(p, "limited"), limited);
        else
            field_required(e, FIELD(p, "limited"), "must not be empty when type is Limited");
    }
    validate_flow_status(e, object, old);
}
