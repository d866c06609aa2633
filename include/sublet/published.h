/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types
 *
 * What OpenAPI asks the table of the built-in kinds: how a type is called. */
#pragma once

#include <sublet/schema.h>

/* The kinds a built-in node is the root of: false when there are no more. *at starts as 0. Kinds of
 * every group are found under meta.k8s.io, what only OpenAPI names under "published". */
struct schema_kind_name {
    struct str group, version, kind;
};
bool schema_root_next(uint32_t node, uint32_t *at, struct schema_kind_name *ret);
