/* SPDX-License-Identifier: Apache-2.0 */
/* What webhooks, admission policies and their bindings share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

#define NO_ADMISSION "requests are admitted without it"

void policy_defaults(struct arena *a, cJSON *policy);
void policy_binding_defaults(struct arena *a, cJSON *binding);
/* Of a policy: what it matches; then, of a mutating one, that this can be changed; conditions. */
extern const struct rule POLICY_MATCH[4], MUTABLE_MATCH[1], POLICY_CONDITIONS[2];
extern const struct rule POLICY_BINDING[3];
extern const struct rule ADMISSION_RULE[10];
void validate_match_conditions(struct field_errors *e, const struct field_path *p,
                               const cJSON *list);
void cell_param_kind(const struct row *r, const struct column *c);
extern const struct column POLICY_BINDING_COLUMNS[];
