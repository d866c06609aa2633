/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * What OpenAPI needs from the table of the built-in kinds: the names of types. */
#pragma once

#include <sublet/schema.h>

/* The kinds a built-in node is the root of: false when there are no more. *at starts at 0. Kinds of
 * every group are under meta.k8s.io, names used only by OpenAPI under "published". */
struct schema_kind_name {
    struct str group, version, kind;
};
bool schema_root_next(uint32_t node, uint32_t *at, struct schema_kind_name *ret);
