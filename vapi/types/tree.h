/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of this folder's walks beyond sublet/json.h: adding a member whose key is known to be
 * absent, without the look-up that would make large maps quadratic. */
#pragma once

#include <sublet/json.h>

/* No walk is deeper. JSON_LIMITS lets no decoded tree be deeper than 256. */
enum { TREE_DEPTH = 300 };

/* Sorts the members by key, bytewise, as Go prints maps. Of duplicates the last stays. */
void tree_sort_members(struct arena *a, cJSON *object);
/* The same at every level of any value. */
void tree_sort(struct arena *a, cJSON *value);
/* Turns a node into another one, in place: its key and neighbours stay. `value` must not be used
 * afterwards. */
void tree_become(cJSON *node, const cJSON *value);

/* Types as Go sees them: a number is an integer when its literal has no point and fits an int64. */
enum value_type {
    VALUE_NIL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_MAP,
    VALUE_LIST
};
enum value_type value_type(struct arena *a, const cJSON *value);
