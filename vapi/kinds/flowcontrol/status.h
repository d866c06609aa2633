/* SPDX-License-Identifier: Apache-2.0 */
/* The status of both kinds of flow control. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

extern const struct rule RULES_FLOW_STATUS[1];
