/* SPDX-License-Identifier: Apache-2.0 */
/* The status of both kinds of flow control. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

VALIDATES(validate_flow_status);
void flow_prepare_create(struct arena *a, cJSON *object);
