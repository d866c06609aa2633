/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/discovery)
 *
 * Extension API servers in the lists of groups; where there are none, nothing changes. */
#pragma once

#include "discovery.h"

/* groups: an array in the aggregated form, or of the older one; only: one group, p == NULL: all. */
void discovery_add_extensions(struct call *c, cJSON *groups, struct str only, bool aggregated);
/* Their paths in the index: /apis/GROUP, /apis/GROUP/VERSION. */
void discovery_extension_paths(struct call *c, void (*each)(void *ctx, struct str path), void *ctx);
