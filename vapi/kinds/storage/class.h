/* SPDX-License-Identifier: Apache-2.0 */
/* What StorageClasses and VolumeAttributesClasses share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

#define MAX_SIZE (256 * 1024)

void check_provisioner(const struct check *c);
void check_parameters(struct field_errors *e, const struct field_path *p, const cJSON *parameters,
                      bool may_be_empty);
