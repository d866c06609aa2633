/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes a DaemonSet's pods belong on. Internal to vapi/controllers. */
#pragma once

#include "util.h"

/* *ret_run: a new pod belongs there; *ret_stay: one that is there may stay. */
void ds_node_fits(const cJSON *pod, const cJSON *node, bool *ret_run, bool *ret_stay);
/* The pod is for that node and lives with the troubles a node's own agents live with. */
void ds_bind(struct arena *a, cJSON *pod, struct str node);
void ds_tolerate(struct arena *a, cJSON *pod);
/* The node a pod is on, or is meant for; STR_NULL when unknown. */
struct str ds_node_of(const cJSON *pod);
