/* SPDX-License-Identifier: Apache-2.0 */
/* Webhook configurations and admission policies. Source:
 * pkg/apis/admissionregistration/v1/defaults.go. */
#include "validate.h"

/* ---- webhooks ---- */

static const struct default_rule WEBHOOK[] = {
    SET_TEXT("webhooks[].failurePolicy", "Fail"),
    SET_TEXT("webhooks[].matchPolicy", "Equivalent"),
    SET_OBJECT("webhooks[].namespaceSelector"),
    SET_OBJECT("webhooks[].objectSelector"),
    SET_NUMBER("webhooks[].timeoutSeconds", 10),
    SET_NUMBER("webhooks[].clientConfig.service.port", 443),
    SET_TEXT("webhooks[].rules[].scope", "*"),
};

static void validating_defaults(struct arena *a, cJSON *config)
{
    defaults_apply(a, config, WEBHOOK, COUNT(WEBHOOK));
}

static void mutating_defaults(struct arena *a, cJSON *config)
{
    static const struct default_rule rules[] = {SET_TEXT("webhooks[].reinvocationPolicy", "Never")};

    defaults_apply(a, config, WEBHOOK, COUNT(WEBHOOK));
    defaults_apply(a, config, rules, COUNT(rules));
}

const struct kind_ops VALIDATING_WEBHOOK_CONFIGURATION_OPS = {
    .defaults = validating_defaults,
    .validate = validate_webhooks,
    .cells = cells_webhooks,
};
const struct kind_ops MUTATING_WEBHOOK_CONFIGURATION_OPS = {
    .defaults = mutating_defaults,
    .validate = validate_webhooks,
    .cells = cells_webhooks,
};

/* ---- policies ---- */

static const struct default_rule MATCH[] = {
    SET_TEXT("matchPolicy", "Equivalent"),
    SET_OBJECT("namespaceSelector"),
    SET_OBJECT("objectSelector"),
    SET_TEXT("resourceRules[].scope", "*"),
    SET_TEXT("excludeResourceRules[].scope", "*"),
};

static void policy_defaults(struct arena *a, cJSON *policy)
{
    static const struct default_rule rules[] = {SET_TEXT("spec.failurePolicy", "Fail")};

    defaults_apply(a, policy, rules, COUNT(rules));
    defaults_apply(a, json_path(policy, "spec.matchConstraints"), MATCH, COUNT(MATCH));
}

static void binding_defaults(struct arena *a, cJSON *binding)
{
    defaults_apply(a, json_path(binding, "spec.matchResources"), MATCH, COUNT(MATCH));
}

static void policy_prepare_create(struct arena *a, cJSON *policy)
{
    set_status(a, policy, "{}");
}

const struct kind_ops VALIDATING_ADMISSION_POLICY_OPS = {
    .defaults = policy_defaults,
    .prepare_create = policy_prepare_create,
    .validate = validate_validating_policy,
    .validate_status = validate_validating_policy_status,
    .cells = cells_validating_policy,
};
const struct kind_ops VALIDATING_ADMISSION_POLICY_BINDING_OPS = {
    .defaults = binding_defaults,
    .validate = validate_validating_binding,
    .cells = cells_policy_binding,
};
const struct kind_ops MUTATING_ADMISSION_POLICY_OPS = {
    .defaults = policy_defaults,
    .validate = validate_mutating_policy,
    .cells = cells_mutating_policy,
};
const struct kind_ops MUTATING_ADMISSION_POLICY_BINDING_OPS = {
    .defaults = binding_defaults,
    .validate = validate_mutating_binding,
    .cells = cells_policy_binding,
};
