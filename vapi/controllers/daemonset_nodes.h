/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes for a DaemonSet's pods. Internal to vapi/controllers. */
#pragma once

#include "util.h"

/* *ret_run: a pod should be created there; *ret_stay: an existing one may stay. */
void ds_node_fits(const cJSON *pod, const cJSON *node, bool *ret_run, bool *ret_stay);
/* Binds the pod to that node, and tolerates the taints that daemons tolerate. */
void ds_bind(struct arena *a, cJSON *pod, struct str node);
void ds_tolerate(struct arena *a, cJSON *pod);
/* The node a pod is on, or is bound to; STR_NULL when unknown. */
struct str ds_node_of(const cJSON *pod);
