/* SPDX-License-Identifier: Apache-2.0 */
/* What webhooks, admission policies and their bindings share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

void policy_defaults(struct arena *a, cJSON *policy);
void policy_binding_defaults(struct arena *a, cJSON *binding);
/* What both kinds of policy begin with; conditions an update leaves are not checked again. */
void check_policy_head(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                       const cJSON *old, bool mutates);
void check_policy_binding(struct field_errors *e, const struct field_path *p, const cJSON *spec);
/* What is deleted can no longer be changed. */
void check_mutable(struct field_errors *e, const struct field_path *p, const cJSON *match);
void validate_admission_rule(struct field_errors *e, const struct field_path *p, const cJSON *rule);
void validate_match_conditions(struct field_errors *e, const struct field_path *p,
                               const cJSON *list);
struct str trimmed(struct str s); /* without white space around it */
void cell_param_kind(const struct row *r, const struct column *c);
void cell_param_ref(const struct row *r, const struct column *c);
