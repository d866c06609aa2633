/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * Parts of a Node that both views share: each host node by itself, and one for a pool. */
#pragma once

#include "shape.h"

/* By allow-list. */
cJSON *translate_node_labels_up(struct arena *a, const struct translate_tenant *t,
                                const cJSON *labels);
/* What keeps new pods off nodes of a pool that is out of use: a condition, which has no times;
 * NULL: the pool is as usual. And is it closed, which is a cordon? */
cJSON *translate_node_maintenance(struct arena *a, const struct config_pool *pool);
bool translate_node_is_closed(const struct config_pool *pool);
cJSON *translate_node_taint(struct arena *a, const char *key, struct str value, const char *effect);
#define TAINT_CLOSED "node.kubernetes.io/unschedulable"
/* status.nodeInfo without the ids of the machine. */
cJSON *translate_node_info_up(struct arena *a, const cJSON *info);
