/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of Services. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

VALIDATES(validate_service);
VALIDATES(validate_service_addresses);
VALIDATES(validate_service_status);
