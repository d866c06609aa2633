/* SPDX-License-Identifier: Apache-2.0 */
/* The enumerations of the built-in types. Must hold nothing upstream does not declare: a list of
 * values that differs from it belongs to the kind that checks it. */
#include "enums.h"

#include <stddef.h>

#define ENUM(name, ...) const char *const ENUM_##name[] = {__VA_ARGS__, NULL};
#include "../../types/builtin_enums.h"
