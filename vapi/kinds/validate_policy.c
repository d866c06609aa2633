/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of admission policies and their bindings, in upstream's words and order: their structure.
 * Must never judge an expression, of which only that it is there is known here. Source:
 * pkg/apis/admissionregistration/validation. */
#include "validate.h"

#include <ctype.h>
#include <string.h>

#define MAX_AUDIT_ANNOTATIONS 20
#define MAX_AUDIT_EXPRESSION  5120
#define NOTHING_TO_CHECK      "validations or auditAnnotations must contain at least one item"
#define TWO_REFERENCES        "name and selector are mutually exclusive"

static const char *const FAILURES[] = {"Fail", "Ignore", NULL};

/* Like check_enum(), where absent is missing and empty is one of the wrong ones. */
static void check_choice(struct field_errors *e, const struct field_path *p, const cJSON *value,
                         const char *const *supported)
{
    if (!value)
        field_required(e, p, "");
    else
        check_enum_if(e, p, value, supported);
}

/* ---- matching ---- */

static void check_named_rules(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    size_t i = 0;

    json_each(rule, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct names seen = {.arena = e->arena};
        size_t k = 0;

        json_each(name, json_get(rule, "resourceNames"))
        {
            const struct field_path *item = FIELD_INDEX(FIELD(at, "resourceNames"), k++);

            check_rule(e, item, NAME_PATH_SEGMENT, json_str(name));
            if (!names_add(&seen, json_str(name), name))
                field_duplicate(e, item, name);
        }
        validate_admission_rule(e, at, rule);
    }
}

static void check_match(struct field_errors *e, const struct field_path *p, const cJSON *match)
{
    static const char *const policies[] = {"Equivalent", "Exact", NULL};
    static const char *const selectors[] = {"namespaceSelector", "objectSelector"};

    if (!match)
        return;
    check_choice(e, FIELD(p, "matchPolicy"), given(match, "matchPolicy"), policies);
    for (size_t i = 0; i < COUNT(selectors); i++) {
        const cJSON *selector = given(match, selectors[i]);

        if (!selector)
            field_required(e, FIELD(p, selectors[i]), "");
        validate_label_selector(e, FIELD(p, selectors[i]), selector);
    }
    check_named_rules(e, FIELD(p, "resourceRules"), json_get(match, "resourceRules"));
    check_named_rules(e, FIELD(p, "excludeResourceRules"), json_get(match, "excludeResourceRules"));
}

/* What is deleted can no longer be changed. */
static void check_mutable(struct field_errors *e, const struct field_path *p, const cJSON *match)
{
    static const char *const operations[] = {"*", "CONNECT", "CREATE", "UPDATE", NULL};
    const struct field_path *at = FIELD(FIELD(p, "resourceRules"), "operations");

    json_each(rule, json_get(match, "resourceRules"))
    {
        json_each(operation, json_get(rule, "operations"))
            check_enum_if(e, at, operation, operations);
    }
}

/* ---- parameters ---- */

static void check_param_version(struct field_errors *e, const struct field_path *p, struct str text)
{
    struct str version = text, group = str_cut(&version, '/');
    const char *why;

    if (!check_given(e, p, text))
        return;
    if (!version.p) {
        version = text;
        group = STR("");
    }
    if (str_find(version, '/') < version.n) {
        field_invalid_str(
            e, p, text,
            arena_printf(e->arena, "unexpected GroupVersion string: %.*s", STR_F(text)).p);
        return;
    }
    why = group.n ? name_check_dns1123_subdomain(group) : NULL;
    if (why)
        field_invalid_str(e, p, group, why);
    if (!version.n) {
        field_invalid_str(e, p, text, "version must be specified");
        return;
    }
    why = name_check_dns1035_label(version);
    if (why)
        field_invalid_str(e, p, version, why);
}

static void check_param_kind(struct field_errors *e, const struct field_path *p, const cJSON *param)
{
    struct str kind = json_str(json_get(param, "kind"));
    const char *why = name_check_dns1035_label(lower_case(e->arena, kind));

    if (!param)
        return;
    check_param_version(e, FIELD(p, "apiVersion"), json_str(json_get(param, "apiVersion")));
    if (check_given(e, FIELD(p, "kind"), kind) && why)
        field_invalid_str(
            e, FIELD(p, "kind"), kind,
            arena_printf(e->arena, "may have mixed case, but should otherwise match: %s", why).p);
}

static void check_param_ref(struct field_errors *e, const struct field_path *p, const cJSON *ref)
{
    static const char *const actions[] = {"Deny", "Allow", NULL};
    const cJSON *selector = given(ref, "selector");
    struct str name = json_str(json_get(ref, "name"));

    if (!ref)
        return;
    if (name.n) {
        check_rule(e, FIELD(p, "name"), NAME_PATH_SEGMENT, name);
        if (selector)
            field_forbidden(e, FIELD(p, "name"), TWO_REFERENCES);
    }
    validate_label_selector(e, FIELD(p, "selector"), selector);
    if (selector && name.n)
        field_forbidden(e, FIELD(p, "selector"), TWO_REFERENCES);
    if (!selector && !name.n)
        field_required(e, p, "one of name or selector must be specified");
    check_enum(e, FIELD(p, "parameterNotFoundAction"),
               json_str(json_get(ref, "parameterNotFoundAction")), actions);
}

/* ---- expressions ---- */

static bool is_identifier(struct str s)
{
    static const char *const reserved[] = {
        "true",      "false",  "null",     "in",   "as",     "break", "const", "continue",
        "else",      "for",    "function", "if",   "import", "let",   "loop",  "package",
        "namespace", "return", "var",      "void", "while",  NULL};

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '_' && !isalpha((unsigned char)s.p[i]) &&
            !(i && isdigit((unsigned char)s.p[i])))
            return false;
    }
    return s.n && !one_of(s, reserved);
}

static void check_variables(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    size_t i = 0;

    json_each(variable, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str name = json_str(json_get(variable, "name"));

        if (!trimmed(name).n)
            field_required(e, FIELD(at, "name"), "name is not specified");
        else if (!is_identifier(name))
            field_invalid_str(e, FIELD(at, "name"), name, "must be a valid CEL identifier");
        if (!trimmed(json_str(json_get(variable, "expression"))).n)
            field_required(e, FIELD(at, "expression"), "expression is not specified");
    }
}

static void check_filled(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    if (json_str(value).n && !trimmed(json_str(value)).n)
        field_invalid(e, p, value, "must be non-empty if specified");
}

static void check_validation(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    static const char *const reasons[] = {"Forbidden", "Invalid", "RequestEntityTooLarge", NULL};
    const cJSON *message = json_get(item, "message");
    struct str text = trimmed(json_str(message));

    if (!trimmed(json_str(json_get(item, "expression"))).n)
        field_required(e, FIELD(p, "expression"), "expression is not specified");
    check_filled(e, FIELD(p, "messageExpression"), json_get(item, "messageExpression"));
    check_filled(e, FIELD(p, "message"), message);
    if (str_find(text, '\n') < text.n || str_find(text, '\r') < text.n)
        field_invalid(e, FIELD(p, "message"), message, "must not contain line breaks");
    check_enum_if(e, FIELD(p, "reason"), given(item, "reason"), reasons);
}

static void check_audit(struct field_errors *e, const struct field_path *p, const cJSON *list,
                        struct str policy)
{
    struct names seen = {.arena = e->arena};
    size_t i = 0;

    if (json_count(list) > MAX_AUDIT_ANNOTATIONS)
        field_invalid(e, p, list, "must not have more than 20 auditAnnotations");
    json_each(annotation, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        const cJSON *key = json_get(annotation, "key");
        struct str value = trimmed(json_str(json_get(annotation, "valueExpression")));

        if (policy.n)
            check_rule(e, FIELD(at, "key"), NAME_QUALIFIED,
                       arena_printf(e->arena, "%.*s/%.*s", STR_F(policy), STR_F(json_str(key))));
        else
            field_invalid_str(e, FIELD(at, "key"), json_str(key),
                              "requires metadata.name be non-empty");
        if (!value.n)
            field_required(e, FIELD(at, "valueExpression"), "valueExpression is not specified");
        else if (value.n > MAX_AUDIT_EXPRESSION)
            field_required(e, FIELD(at, "valueExpression"), "must not exceed 5120 bytes in length");
        if (!names_add(&seen, json_str(key), annotation))
            field_duplicate(e, FIELD(at, "key"), key);
    }
}

/* ---- policies ---- */

/* What both kinds of policy begin with; conditions an update leaves are not looked at again. */
static void check_policy_head(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                              const cJSON *old, bool mutates)
{
    const cJSON *match = given(spec, "matchConstraints");
    AT(at, p, "matchConstraints");

    check_choice(e, FIELD(p, "failurePolicy"), given(spec, "failurePolicy"), FAILURES);
    check_param_kind(e, FIELD(p, "paramKind"), given(spec, "paramKind"));
    if (!match)
        field_required(e, at, "");
    check_match(e, at, match);
    if (match && !json_count(json_get(match, "resourceRules")))
        field_required(e, FIELD(at, "resourceRules"), "");
    if (mutates)
        check_mutable(e, at, match);
    if (!old || !same_value(json_get(spec, "paramKind"), json_get(old, "paramKind")) ||
        !same_value(json_get(spec, "matchConditions"), json_get(old, "matchConditions")))
        validate_match_conditions(e, FIELD(p, "matchConditions"),
                                  json_get(spec, "matchConditions"));
    check_variables(e, FIELD(p, "variables"), json_get(spec, "variables"));
}

void validate_validating_policy(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *validations = json_get(spec, "validations");
    const cJSON *audit = json_get(spec, "auditAnnotations");
    AT(p, NULL, "spec");
    size_t i = 0;

    check_policy_head(e, p, spec, json_get(old, "spec"), false);
    if (!json_count(validations) && !json_count(audit)) {
        field_required(e, FIELD(p, "validations"), NOTHING_TO_CHECK);
        field_required(e, FIELD(p, "auditAnnotations"), NOTHING_TO_CHECK);
        return;
    }
    json_each(item, validations)
        check_validation(e, FIELD_INDEX(FIELD(p, "validations"), i++), item);
    check_audit(e, FIELD(p, "auditAnnotations"), audit,
                json_str(json_path(object, "metadata.name")));
}

void validate_validating_policy_status(struct field_errors *e, const cJSON *object,
                                       const cJSON *old)
{
    const cJSON *warnings = json_path(object, "status.typeChecking.expressionWarnings");
    AT(status, NULL, "status");
    const struct field_path *p = FIELD(FIELD(status, "typeChecking"), "expressionWarnings");
    size_t i = 0;

    (void)old;
    json_each(warning, warnings)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        check_given(e, FIELD(at, "warning"), json_str(json_get(warning, "warning")));
        check_given(e, FIELD(at, "fieldRef"), trimmed(json_str(json_get(warning, "fieldRef"))));
    }
    validate_conditions(e, FIELD(status, "conditions"), json_path(object, "status.conditions"));
}

/* The way a mutation is written must be the one that is there. */
static void check_mutation(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    static const char *const types[] = {"ApplyConfiguration", "JSONPatch", NULL};
    static const char *const members[] = {"applyConfiguration", "jsonPatch"};
    struct str type = json_str(json_get(item, "patchType"));
    size_t wanted = str_eqc(type, "JSONPatch");

    if (!check_enum(e, FIELD(p, "patchType"), type, types))
        return;
    if (!given(item, members[wanted]))
        field_required(
            e, FIELD(p, members[wanted]),
            arena_printf(e->arena, "must be specified when patchType is %s", types[wanted]).p);
    else
        check_given(e, FIELD(FIELD(p, members[wanted]), "expression"),
                    trimmed(json_str(json_get(json_get(item, members[wanted]), "expression"))));
    if (given(item, members[!wanted]))
        field_invalid_str(
            e, FIELD(p, members[!wanted]), arena_printf(e->arena, "{%s}", members[!wanted]),
            arena_printf(e->arena, "must not be specified when patchType is %s", types[wanted]).p);
}

void validate_mutating_policy(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const again[] = {"IfNeeded", "Never", NULL};
    const cJSON *spec = json_get(object, "spec"), *mutations = json_get(spec, "mutations");
    AT(p, NULL, "spec");
    size_t i = 0;

    check_policy_head(e, p, spec, json_get(old, "spec"), true);
    if (!json_count(mutations))
        field_required(e, FIELD(p, "mutations"), "mutations must contain at least one item");
    json_each(item, mutations) check_mutation(e, FIELD_INDEX(FIELD(p, "mutations"), i++), item);
    check_enum(e, FIELD(p, "reinvocationPolicy"), json_str(json_get(spec, "reinvocationPolicy")),
               again);
}

/* ---- bindings ---- */

static void check_binding(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    struct str policy = json_str(json_get(spec, "policyName"));

    if (check_given(e, FIELD(p, "policyName"), policy))
        check_rule(e, FIELD(p, "policyName"), NAME_DNS1123_SUBDOMAIN, policy);
    check_param_ref(e, FIELD(p, "paramRef"), given(spec, "paramRef"));
    check_match(e, FIELD(p, "matchResources"), given(spec, "matchResources"));
}

void validate_validating_binding(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const actions[] = {"Audit", "Deny", "Warn", NULL};
    const cJSON *spec = json_get(object, "spec"), *list = json_get(spec, "validationActions");
    struct names seen = {.arena = e->arena};
    AT(p, NULL, "spec");
    AT(at, p, "validationActions");
    size_t i = 0;

    (void)old;
    check_binding(e, p, spec);
    json_each(action, list)
    {
        const struct field_path *item = FIELD_INDEX(at, i++);

        check_enum_if(e, item, action, actions);
        if (!names_add(&seen, json_str(action), action))
            field_duplicate(e, item, action);
    }
    if (names_has(&seen, STR("Deny")) && names_has(&seen, STR("Warn")))
        field_invalid(e, at, list,
                      "must not contain both Deny and Warn (repeating the same validation failure "
                      "information in the API response and headers serves no purpose)");
    if (!json_count(list))
        field_required(e, at, "at least one validation action is required");
}

void validate_mutating_binding(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    (void)old;
    check_binding(e, p, spec);
    check_mutable(e, FIELD(p, "matchResources"), given(spec, "matchResources"));
}
