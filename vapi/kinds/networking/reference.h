/* SPDX-License-Identifier: Apache-2.0 */
/* References to objects of any kind. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

void check_typed_reference(struct field_errors *e, const struct field_path *p, const cJSON *ref);
