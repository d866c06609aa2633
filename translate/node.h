/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * Parts of a Node that both views share: each host node by itself, and one for a pool. */
#pragma once

#include "shape.h"

/* By allow-list. */
cJSON *translate_node_labels_up(struct arena *a, const struct translate_tenant *t,
                                const cJSON *labels);
/* status.nodeInfo without the ids of the machine. */
cJSON *translate_node_info_up(struct arena *a, const cJSON *info);
