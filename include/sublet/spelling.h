/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * A quantity has many spellings, and another spelling is not another value: comparisons of two
 * objects of a built-in type call this first. Source: apimachinery pkg/api/equality. */
#pragma once

#include <sublet/schema.h>

/* A copy of before in a, in which each quantity equal to the one in now has its spelling, so that
 * json_equal() sees changes of value only. Lists are matched by position. node: the type of both in
 * s, a built-in table. */
cJSON *schema_respell(struct arena *a, const struct schema *s, uint32_t node, const cJSON *before,
                      const cJSON *now);
