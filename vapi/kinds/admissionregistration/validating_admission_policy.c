/* SPDX-License-Identifier: Apache-2.0 */
/* ValidatingAdmissionPolicies and their bindings. Source: pkg/apis/admissionregistration. */
#include "../rules/kind.h"
#include "policy.h"

#define MAX_AUDIT_EXPRESSION 5120

#define NOTHING_TO_CHECK "validations or auditAnnotations must contain at least one item"

static void check_filled(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    if (json_str(value).n && !kinds_trimmed(json_str(value)).n)
        field_invalid(e, p, value, "must be non-empty if specified");
}

static void check_one_line(struct field_errors *e, const struct field_path *p, const cJSON *message)
{
    struct str text = kinds_trimmed(json_str(message));

    if (str_find(text, '\n') < text.n || str_find(text, '\r') < text.n)
        field_invalid(e, p, message, "must not contain line breaks");
}

static void check_audit_key(const struct check *c)
{
    struct str policy = json_str_at(c->object, "metadata.name"), key = json_str(c->value);

    if (policy.n)
        check_rule(c->e, c->at, NAME_QUALIFIED,
                   arena_printf(c->e->arena, "%.*s/%.*s", STR_F(policy), STR_F(key)));
    else
        field_invalid_str(c->e, c->at, key, "requires metadata.name be non-empty");
}

static void check_audit_expression(struct field_errors *e, const struct field_path *p,
                                   struct str expression)
{
    if (kinds_trimmed(expression).n > MAX_AUDIT_EXPRESSION)
        field_required(e, p, "must not exceed 5120 bytes in length");
}

static const struct rule VALIDATING_RULES[] = {
    ALL(RULES_POLICY_MATCH),
    ALL(RULES_POLICY_CONDITIONS),
    WHEN_NONE("spec", NAMES("validations", "auditAnnotations"),
              MISSING("validations", NOTHING_TO_CHECK),
              MISSING("auditAnnotations", NOTHING_TO_CHECK)),
    EACH("spec.validations", NOT_BLANK("expression", "expression is not specified"),
         CHECK("messageExpression", check_filled), CHECK("message", check_filled),
         CHECK("message", check_one_line),
         ENUM_IF_GIVEN("reason", NAMES("Forbidden", "Invalid", "RequestEntityTooLarge"))),
    MAX_ITEMS_ELSE("spec.auditAnnotations", 20, "must not have more than 20 auditAnnotations"),
    EACH("spec.auditAnnotations", CALL("key", check_audit_key),
         NOT_BLANK("valueExpression", "valueExpression is not specified"),
         CHECK_STR("valueExpression", check_audit_expression), ONCE("key")),
    CALL("spec", validate_policy_expressions),
};

static const struct rule STATUS_RULES[] = {
    EACH("status.typeChecking.expressionWarnings", GIVEN("warning"), NOT_BLANK("fieldRef", "")),
    CONDITIONS("status.conditions"),
};

static void check_deny_or_warn(const struct check *c)
{
    if (json_list_has(c->value, STR("Deny")) && json_list_has(c->value, STR("Warn")))
        field_invalid(c->e, c->at, c->value,
                      "must not contain both Deny and Warn (repeating the same validation failure "
                      "information in the API response and headers serves no purpose)");
}

static const struct rule BINDING_RULES[] = {
    ALL(RULES_POLICY_BINDING),
    EACH("spec.validationActions", ENUM_IF_GIVEN(NULL, ENUM_VALIDATION_ACTION), ONCE(NULL)),
    CALL("spec.validationActions", check_deny_or_warn),
    SOME("spec.validationActions", "at least one validation action is required"),
};

/* ---- the kinds ---- */

const struct kind KIND_VALIDATING_ADMISSION_POLICY = {
    RESOURCE("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
             "validatingadmissionpolicies", "validatingadmissionpolicy"),
    .resource.categories = NAMES("api-extensions"),
    .resource.flags = RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE |
                      RES_ANY_FINALIZER | RES_STATUS_KEEPS_META,
    COLUMNS({"Validations", "integer", .cell = show_count, .path = "spec.validations"},
            {"ParamKind", "string", .cell = cell_param_kind}, {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("ValidatingAdmissionPolicy")),
    .defaults = defaults_policy,
    .new_status = "{}",
    .rules = RULES(VALIDATING_RULES),
    .status_rules = RULES(STATUS_RULES),
};

const struct kind KIND_VALIDATING_ADMISSION_POLICY_BINDING = {
    RESOURCE("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
             "validatingadmissionpolicybindings", "validatingadmissionpolicybinding"),
    .resource.categories = NAMES("api-extensions"),
    .resource.flags =
        RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
    .resource.columns = COLUMNS_POLICY_BINDING,
    .defaults = defaults_policy_binding,
    .rules = RULES(BINDING_RULES),
};
