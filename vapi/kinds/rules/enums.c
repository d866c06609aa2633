/* SPDX-License-Identifier: Apache-2.0 */
/* The enumerations of the built-in types. Must hold nothing upstream does not declare: a list of
 * values that differs from it belongs to the kind that checks it. */
#include "enums.h"

#include <stddef.h>

#define VALUES(...)                                                                                \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define ENUM(name, declared, sorted)                                                               \
    const char *const ENUM_##name[] = sorted;                                                      \
    const char *const ENUM_##name##_DECLARED[] = declared;
#include "../../types/builtin_enums.h"
