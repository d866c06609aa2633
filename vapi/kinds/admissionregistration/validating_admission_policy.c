/* SPDX-License-Identifier: Apache-2.0 */
/* ValidatingAdmissionPolicies and their bindings. Source: pkg/apis/admissionregistration. */
#include "../rules/kind.h"
#include "policy.h"

#define MAX_AUDIT_ANNOTATIONS 20

#define MAX_AUDIT_EXPRESSION 5120

#define NOTHING_TO_CHECK "validations or auditAnnotations must contain at least one item"

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

static void validate_validating_policy(struct field_errors *e, const cJSON *object,
                                       const cJSON *old)
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

static void validate_validating_policy_status(struct field_errors *e, const cJSON *object,
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

static void validate_validating_binding(struct field_errors *e, const cJSON *object,
                                        const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *list = json_get(spec, "validationActions");
    struct names seen = {.arena = e->arena};
    AT(p, NULL, "spec");
    AT(at, p, "validationActions");
    size_t i = 0;

    (void)old;
    check_policy_binding(e, p, spec);
    json_each(action, list)
    {
        const struct field_path *item = FIELD_INDEX(at, i++);

        check_enum_if(e, item, action, ENUM_VALIDATION_ACTION);
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

/* ---- the kinds ---- */

static const struct column COLUMNS[] = {
    {"Validations", "integer", .cell = show_count, .path = "spec.validations"},
    {"ParamKind", "string", .cell = cell_param_kind},
    {"Age", "string", .cell = show_age},
    {NULL},
};

static const struct column BINDING_COLUMNS[] = {
    {"PolicyName", "string", .cell = show_text, .path = "spec.policyName"},
    {"ParamRef", "string", .cell = cell_param_ref},
    {"Age", "string", .cell = show_age},
    {NULL},
};

const struct kind KIND_VALIDATING_ADMISSION_POLICY = {
    .resource =
        {
            RESOURCE("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
                     "validatingadmissionpolicies", "validatingadmissionpolicy"),
            .categories = NAMES("api-extensions"),
            .verbs = VERBS_ALL,
            .flags = RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE |
                     RES_ANY_FINALIZER | RES_STATUS_KEEPS_META,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("ValidatingAdmissionPolicy")),
        },
    .defaults = policy_defaults,
    .new_status = "{}",
    .validate = validate_validating_policy,
    .validate_status = validate_validating_policy_status,
};

const struct kind KIND_VALIDATING_ADMISSION_POLICY_BINDING = {
    .resource =
        {
            RESOURCE("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
                     "validatingadmissionpolicybindings", "validatingadmissionpolicybinding"),
            .categories = NAMES("api-extensions"),
            .verbs = VERBS_ALL,
            .flags =
                RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
            .columns = BINDING_COLUMNS,
        },
    .defaults = policy_binding_defaults,
    .validate = validate_validating_binding,
};
