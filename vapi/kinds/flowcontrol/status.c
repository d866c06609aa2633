/* SPDX-License-Identifier: Apache-2.0 */
/* The status of both kinds of flow control. */
#include "../rules/kind.h"
#include "status.h"

const struct rule RULES_FLOW_STATUS[1] = {EACH("status.conditions", ONCE("type"), GIVEN("type"))};
