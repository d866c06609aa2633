/* SPDX-License-Identifier: Apache-2.0 */
/* What ConfigMaps and Secrets share. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

#define MAX_DATA 1048576

/* The bytes a base64 string stands for. */
size_t kinds_decoded_size(struct str text);
/* members: what an immutable object keeps, NULL-ended. */
void check_frozen(struct field_errors *e, const cJSON *object, const cJSON *old,
                  const char *const *members);
