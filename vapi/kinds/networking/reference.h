/* SPDX-License-Identifier: Apache-2.0 */
/* References to objects of any kind. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

#define TYPED_REFERENCE                                                                            \
    NAME_IF_GIVEN("apiGroup", DNS1123_SUBDOMAIN), NAME("kind", PATH_SEGMENT),                      \
        NAME("name", PATH_SEGMENT)
