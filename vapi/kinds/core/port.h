/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of Services and Endpoints. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

void check_named_port(struct field_errors *e, const struct field_path *p, const cJSON *port,
                      bool name_needed);
