/* SPDX-License-Identifier: Apache-2.0 */
/* What admission policies and their bindings share. Expressions are compiled for their problems
 * only. Source: pkg/apis/admissionregistration/validation. */
#include "../rules/kind.h"
#include "policy.h"

#include <ctype.h>

#include <sublet/api_version.h>
#include <sublet/cel_policy.h>

static const struct default_rule MATCH[] = {
    SET_TEXT("matchPolicy", "Equivalent"),
    SET_OBJECT("namespaceSelector"),
    SET_OBJECT("objectSelector"),
    SET_TEXT("resourceRules[].scope", "*"),
    SET_TEXT("excludeResourceRules[].scope", "*"),
};

void defaults_policy(struct arena *a, cJSON *policy)
{
    static const struct default_rule rules[] = {SET_TEXT("spec.failurePolicy", "Fail")};

    defaults_apply(a, policy, rules, COUNT(rules));
    defaults_apply(a, json_path(policy, "spec.matchConstraints"), MATCH, COUNT(MATCH));
}

void defaults_policy_binding(struct arena *a, cJSON *binding)
{
    defaults_apply(a, json_path(binding, "spec.matchResources"), MATCH, COUNT(MATCH));
}

#define TWO_REFERENCES "name and selector are mutually exclusive"

/* Upstream's paths have no index. */
static void check_operations(const struct check *c)
{
    json_each(rule, c->value) json_each(operation, json_get(rule, "operations")) check_enum_if(
        c->e, FIELD(c->at, "operations"), operation, NAMES("*", "CONNECT", "CREATE", "UPDATE"));
}

static const struct rule NAMED_RULE[] = {
    EACH("resourceNames", NAME_ALWAYS(NULL, PATH_SEGMENT), ONCE(NULL)),
    ALL(RULES_ADMISSION_RULE),
};

static const struct rule MATCH_RULES[] = {
    ENUM_GIVEN("matchPolicy", ENUM_MATCH_POLICY_TYPE),
    REQUIRED("namespaceSelector", ""),
    LABEL_SELECTOR("namespaceSelector"),
    REQUIRED("objectSelector", ""),
    LABEL_SELECTOR("objectSelector"),
    EACH("resourceRules", ALL(NAMED_RULE)),
    EACH("excludeResourceRules", ALL(NAMED_RULE)),
};

/* ---- parameters ---- */

static void check_param_version(struct field_errors *e, const struct field_path *p, struct str text)
{
    struct api_version v = api_version_read(text);
    const char *why;

    if (!check_given(e, p, text))
        return;
    if (str_find(v.version, '/') < v.version.n) {
        field_invalid_str_printf(e, p, text, "unexpected GroupVersion string: %.*s", STR_F(text));
        return;
    }
    why = v.group.n ? name_check_dns1123_subdomain(v.group) : NULL;
    if (why)
        field_invalid_str(e, p, v.group, why);
    if (!v.version.n) {
        field_invalid_str(e, p, text, "version must be specified");
        return;
    }
    why = name_check_dns1035_label(v.version);
    if (why)
        field_invalid_str(e, p, v.version, why);
}

static void check_param_kind(struct field_errors *e, const struct field_path *p, const cJSON *param)
{
    struct str kind = json_str(json_get(param, "kind"));
    const char *why = name_check_dns1035_label(kinds_lower_case(e->arena, kind));

    check_param_version(e, FIELD(p, "apiVersion"), json_str(json_get(param, "apiVersion")));
    if (check_given(e, FIELD(p, "kind"), kind) && why)
        field_invalid_str_printf(e, FIELD(p, "kind"), kind,
                                 "may have mixed case, but should otherwise match: %s", why);
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
    return s.n && !kinds_one_of(s, reserved);
}

static void check_variable(struct field_errors *e, const struct field_path *p,
                           const cJSON *variable)
{
    struct str name = json_str(json_get(variable, "name"));

    if (!kinds_trimmed(name).n)
        field_required(e, FIELD(p, "name"), "name is not specified");
    else if (!is_identifier(name))
        field_invalid_str(e, FIELD(p, "name"), name, "must be a valid CEL identifier");
    if (!kinds_trimmed(json_str(json_get(variable, "expression"))).n)
        field_required(e, FIELD(p, "expression"), "expression is not specified");
}

/* ---- policies and bindings ---- */

/* Conditions an update leaves are not checked again. */
static void check_conditions(const struct check *c)
{
    const cJSON *spec = json_get(c->object, "spec"), *old = json_get(c->before, "spec");

    if (!c->before || !kinds_same_value(json_get(spec, "paramKind"), json_get(old, "paramKind")) ||
        !kinds_same_value(c->value, c->old))
        validate_match_conditions(c->e, c->at, c->value);
}

static const struct rule CONSTRAINTS[] = {
    ALL(MATCH_RULES),
    SOME("resourceRules", ""),
};

const struct rule RULES_POLICY_MATCH[4] = {
    ENUM_GIVEN("spec.failurePolicy", ENUM_FAILURE_POLICY_TYPE),
    CHECK("spec.paramKind", check_param_kind),
    REQUIRED("spec.matchConstraints", ""),
    WITHIN("spec.matchConstraints", ALL(CONSTRAINTS)),
};
const struct rule RULES_POLICY_CONDITIONS[2] = {
    CALL("spec.matchConditions", check_conditions),
    CHECK_EACH("spec.variables", check_variable),
};
const struct rule RULES_POLICY_BINDING[3] = {
    NAME("spec.policyName", DNS1123_SUBDOMAIN),
    WITHIN("spec.paramRef", NAME_IF_SET("name", PATH_SEGMENT),
           WHEN_GIVEN(NULL, "selector", FORBIDDEN("name", TWO_REFERENCES)),
           LABEL_SELECTOR("selector"),
           WHEN_GIVEN(NULL, "name", FORBIDDEN("selector", TWO_REFERENCES)),
           WHEN_NONE(NULL, NAMES("name", "selector"),
                     MISSING(NULL, "one of name or selector must be specified")),
           ENUM("parameterNotFoundAction", NAMES("Deny", "Allow"))),
    WITHIN("spec.matchResources", ALL(MATCH_RULES)),
};
/* What is deleted can no longer be changed. */
const struct rule RULES_MUTABLE_MATCH[1] = {CALL("resourceRules", check_operations)};

void cell_param_kind(const struct row *r, const struct column *c)
{
    (void)c;
    cell_pair(r, json_path(r->object, "spec.paramKind"), "apiVersion", "kind", "<unset>");
}

CELL(cell_param_ref)
{
    const cJSON *ref = json_path(r->object, "spec.paramRef");
    struct str name = json_str(json_get(ref, "name")), ns = json_str(json_get(ref, "namespace"));

    if (name.n)
        cell_printf(r, "%.*s/%.*s", STR_F(ns.n ? ns : STR("*")), STR_F(name));
    else if (json_get(ref, "selector"))
        cell_text(r, show_label_selector_text(r->a, json_get(ref, "selector")));
    else
        cell_text(r, STR("<unset>"));
}

const struct column COLUMNS_POLICY_BINDING[] = {
    {"PolicyName", "string", .cell = show_text, .path = "spec.policyName"},
    {"ParamRef", "string", .cell = cell_param_ref},
    {"Age", "string", .cell = show_age},
    {NULL},
};

/* ---- expressions ---- */

static void report(const struct check *c, const struct cel_expressions *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct cel_expression *x = &list->items[i];
        const struct field_path *at = FIELD(FIELD_INDEX(FIELD(c->at, x->list), x->index), x->field);

        if (x->problem.n)
            field_invalid_str(c->e, at, x->source, arena_cstr(c->e->arena, x->problem));
    }
}

/* Programs are made for their problems only, in memory that is given back. */
void validate_policy_expressions(const struct check *c)
{
    struct arena *scratch;
    struct cel_policy policy;

    if (c->before && kinds_same_value(c->value, json_get(c->before, "spec")))
        return;
    scratch = arena_new(0);
    cel_policy_compile(scratch, c->value, &policy);
    report(c, &policy.conditions);
    report(c, &policy.variables);
    report(c, &policy.validations);
    report(c, &policy.messages);
    report(c, &policy.annotations);
    report(c, &policy.mutations);
    cel_policy_release(&policy);
    arena_free(scratch);
}
