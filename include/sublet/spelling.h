/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * One amount has many spellings, and another spelling is no other value: whoever compares two
 * objects of a built-in type asks this first. Source: apimachinery pkg/api/equality. */
#pragma once

#include <sublet/schema.h>

/* A copy in a of before in which each quantity that is the same amount in now is spelled as it is
 * there, so that json_equal() sees changes of meaning only. Lists are matched by position. node:
 * the type of both in s, a built-in table. */
cJSON *schema_respell(struct arena *a, const struct schema *s, uint32_t node, const cJSON *before,
                      const cJSON *now);
