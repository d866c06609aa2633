/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * Parts of GPUs in hundredths: the resource by which a tenant requests them, and the annotations by
 * which KAI reads them from a host pod. Pure.
 * Source: KAI 0.12.0, pkg/common/constants, pkg/scheduler/api/pod_info, gpu_request_validator.go */
#pragma once

#include <sublet/json.h>
#include <sublet/mem.h>

/* What tenants request; no node of a host has it: a GPU there is 100 of it. */
#define FRACTION_RESOURCE "sublet.dev/gpu-percent"
#define FRACTION_WHOLE    INT64_C(100)

#define FRACTION_NOTE           "gpu-fraction"
#define FRACTION_NOTE_CONTAINER "gpu-fraction-container-name"
#define FRACTION_NOTE_DEVICES   "gpu-fraction-num-devices"
#define FRACTION_NOTE_MEMORY    "gpu-memory"
/* The beginning of the names of the ConfigMaps in which KAI says which device a container has. */
#define FRACTION_NOTE_MAPS "runai/shared-gpu-configmap"

/* "0.01" to "1", at most two places: the hundredths, 1 to 100. False, and *ret untouched, for
 * everything else, also where KAI would read a number (".5", "5e-1", "0.500"). */
bool fraction_parse(struct str text, int64_t *ret);
/* "0.05": always with two places; of 1 to 100. */
struct str fraction_format(struct arena *a, int64_t hundredths);
/* What KAI gives a host pod by its annotations; 0: nothing. What this version does not count
 * exactly is a whole GPU: never less than the pod has. */
int64_t fraction_of_pod(const cJSON *host_pod);
/* What the quantities of a host's node (capacity, allocatable) are in hundredths. */
int64_t fraction_of_node(const cJSON *quantities);
