/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalising trees this folder decoded itself. */
#pragma once

#include <sublet/schema.h>

/* Like schema_normalise for a tree made from protobuf. Errors carry no kind: the caller adds it. */
int normalise_decoded(struct arena *a, const struct schema *s, uint32_t node, cJSON *object,
                      struct err *err) MUST_CHECK;
