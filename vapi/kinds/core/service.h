/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of Services. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

extern const struct rule RULES_SERVICE[13];
VALIDATES(validate_service_addresses);
VALIDATES(validate_service_status);
bool kinds_service_is(const cJSON *spec, const char *type);
bool kinds_service_is_external(const cJSON *spec); /* reachable from outside of the cluster */
bool kinds_service_wants_health_port(const cJSON *spec);
