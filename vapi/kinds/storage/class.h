/* SPDX-License-Identifier: Apache-2.0 */
/* What StorageClasses and VolumeAttributesClasses share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

#define MAX_SIZE (256 * 1024)

void check_provisioner(const struct check *c);
#define PARAMETERS(path, words_if_empty) ROW(path, check_parameters, .words = (words_if_empty))
rule_cb check_parameters;
