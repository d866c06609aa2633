/* SPDX-License-Identifier: Apache-2.0
 *
 * The enumerations of the built-in types: ENUM_SERVICE_TYPE and the like, NULL-ended lists of the
 * values upstream declares, sorted. Internal to vapi/kinds. */
#pragma once

#define ENUM(name, ...) extern const char *const ENUM_##name[];
#include "../../types/builtin_enums.h"
#undef ENUM
