/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of Services and Endpoints. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

void check_named_port(const struct check *c); /* at its name: several ports need names */
