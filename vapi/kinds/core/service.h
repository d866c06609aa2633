/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of Services. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

extern const struct rule SERVICE_RULES[9];
VALIDATES(validate_service_addresses);
VALIDATES(validate_service_status);
