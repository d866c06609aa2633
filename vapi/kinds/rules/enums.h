/* SPDX-License-Identifier: Apache-2.0
 *
 * The enumerations of the built-in types: ENUM_SERVICE_TYPE and the like, NULL-ended lists of the
 * values upstream declares, sorted; ENUM_SERVICE_TYPE_DECLARED in the order of the declaration.
 * Upstream's messages show one or the other. The generator emits those named in vapi/kinds.
 * Internal to vapi/kinds. */
#pragma once

#define ENUM(name, declared, sorted)                                                               \
    extern const char *const ENUM_##name[], *const ENUM_##name##_DECLARED[];
#include "../../types/builtin_enums.h"
#undef ENUM
