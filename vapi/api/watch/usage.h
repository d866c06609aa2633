/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * LIST and WATCH of GPUUsage and ClusterGPUUsage, which are computed when they are read: what a
 * list or a watch has shown is compared with what the hook `gpu_usage` says later. */
#pragma once

#include "../../core/calls.h"

struct watch_usages;
struct watch_usages *watch_usages_new(void);
struct watch_usages *watch_usages_free(struct watch_usages *u); /* takes NULL */

/* The objects that c's options select, with a resourceVersion of their own, from which a watch may
 * go on soon; *ret_revision: the list's. */
cJSON *watch_usage_list(struct call *c, int64_t *ret_revision);
void call_watch_usage(struct call *c);
