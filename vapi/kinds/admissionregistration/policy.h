/* SPDX-License-Identifier: Apache-2.0 */
/* What webhooks, admission policies and their bindings share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

void defaults_policy(struct arena *a, cJSON *policy);
void defaults_policy_binding(struct arena *a, cJSON *binding);
/* Of a policy: what it matches; then, of a mutating one, that this can be changed; conditions. */
extern const struct rule RULES_POLICY_MATCH[4], RULES_MUTABLE_MATCH[1], RULES_POLICY_CONDITIONS[2];
extern const struct rule RULES_POLICY_BINDING[3];
extern const struct rule RULES_ADMISSION_RULE[10];
void validate_match_conditions(struct field_errors *e, const struct field_path *p,
                               const cJSON *list);
void validate_policy_expressions(const struct check *c); /* of a policy's spec: each compiles */
void cell_param_kind(const struct row *r, const struct column *c);
extern const struct column COLUMNS_POLICY_BINDING[];
