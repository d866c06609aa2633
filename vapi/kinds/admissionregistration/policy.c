/* SPDX-License-Identifier: Apache-2.0 */
/* What admission policies and their bindings share. Must never judge an expression, of which only
 * that it is there is known here. Source: pkg/apis/admissionregistration/validation. */
#include "../rules/kind.h"
#include "policy.h"

#include <ctype.h>

static const struct default_rule MATCH[] = {
    SET_TEXT("matchPolicy", "Equivalent"),
    SET_OBJECT("namespaceSelector"),
    SET_OBJECT("objectSelector"),
    SET_TEXT("resourceRules[].scope", "*"),
    SET_TEXT("excludeResourceRules[].scope", "*"),
};

void policy_defaults(struct arena *a, cJSON *policy)
{
    static const struct default_rule rules[] = {SET_TEXT("spec.failurePolicy", "Fail")};

    defaults_apply(a, policy, rules, COUNT(rules));
    defaults_apply(a, json_path(policy, "spec.matchConstraints"), MATCH, COUNT(MATCH));
}

void policy_binding_defaults(struct arena *a, cJSON *binding)
{
    defaults_apply(a, json_path(binding, "spec.matchResources"), MATCH, COUNT(MATCH));
}

#define TWO_REFERENCES "name and selector are mutually exclusive"

/* Like check_enum(), where absent is missing and empty is one of the wrong ones. */
static void check_choice(struct field_errors *e, const struct field_path *p, const cJSON *value,
                         const char *const *supported)
{
    if (!value)
        field_required(e, p, "");
    else
        check_enum_if(e, p, value, supported);
}

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
    static const char *const selectors[] = {"namespaceSelector", "objectSelector"};

    if (!match)
        return;
    check_choice(e, FIELD(p, "matchPolicy"), given(match, "matchPolicy"), ENUM_MATCH_POLICY_TYPE);
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
void check_mutable(struct field_errors *e, const struct field_path *p, const cJSON *match)
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

/* What both kinds of policy begin with; conditions an update leaves are not looked at again. */
void check_policy_head(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                       const cJSON *old, bool mutates)
{
    const cJSON *match = given(spec, "matchConstraints");
    AT(at, p, "matchConstraints");

    check_choice(e, FIELD(p, "failurePolicy"), given(spec, "failurePolicy"),
                 ENUM_FAILURE_POLICY_TYPE);
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

void check_policy_binding(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    struct str policy = json_str(json_get(spec, "policyName"));

    if (check_given(e, FIELD(p, "policyName"), policy))
        check_rule(e, FIELD(p, "policyName"), NAME_DNS1123_SUBDOMAIN, policy);
    check_param_ref(e, FIELD(p, "paramRef"), given(spec, "paramRef"));
    check_match(e, FIELD(p, "matchResources"), given(spec, "matchResources"));
}

void cell_param_kind(const struct row *r, const struct column *c)
{
    const cJSON *kind = json_path(r->object, "spec.paramKind");

    (void)c;
    if (kind)
        cell_printf(r, "%.*s/%.*s", STR_F(json_str(json_get(kind, "apiVersion"))),
                    STR_F(json_str(json_get(kind, "kind"))));
    else
        cell_text(r, STR("<unset>"));
}

void cell_param_ref(const struct row *r, const struct column *c)
{
    const cJSON *ref = json_path(r->object, "spec.paramRef");
    struct str name = json_str(json_get(ref, "name")), ns = json_str(json_get(ref, "namespace"));

    (void)c;
    if (name.n)
        cell_printf(r, "%.*s/%.*s", STR_F(ns.n ? ns : STR("*")), STR_F(name));
    else if (json_get(ref, "selector"))
        cell_text(r, label_selector_text(r->a, json_get(ref, "selector")));
    else
        cell_text(r, STR("<unset>"));
}
