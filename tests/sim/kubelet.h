/* SPDX-License-Identifier: Apache-2.0
 *
 * What the scheduler and the kubelet of both models of a host have in common. */
#pragma once

#include <sublet/json.h>

/* Sets the status of a pod whose containers all run. */
void kubelet_run_pod(struct arena *a, cJSON *pod, unsigned long long revision);
/* Sets its condition Ready by its readiness gates; false: it has that already. */
bool kubelet_judge_ready(struct arena *a, cJSON *pod);
/* The node that the first required term of a pod's node affinity names; empty: none. */
struct str scheduler_pinned_node(const cJSON *spec);
