/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * Parts of GPUs by HAMi and by Volcano: on the host a part is three resources of one container. A
 * container has one GPU, and of its memory and compute the same share, in hundredths: so sums of
 * the compute are sums of GPUs, and a ResourceQuota, which does not multiply by the number of GPUs,
 * bounds them exactly. Pure.
 * Sources: HAMi 2.10.0, pkg/device/nvidia/device.go, pkg/device/devices.go; Volcano 1.10,
 * pkg/scheduler/api/devices/nvidia/vgpu */
#pragma once

#include <sublet/config_pool.h>

#define VGPU_WHOLE       INT64_C(100)
#define VGPU_HAMI_NUMBER "nvidia.com/gpu"
#define VGPU_HAMI_CORES  "nvidia.com/gpucores"
/* Annotations of a node: its GPUs. */
#define VGPU_HAMI_RECORD    "hami.io/node-nvidia-register"
#define VGPU_VOLCANO_RECORD "volcano.sh/node-vgpu-register"

struct vgpu_system {
    const char *number, *memory, *percentage, *cores; /* resources of a container on the host */
    enum pool_scheduler scheduler;
};
/* NULL: the mode does not share GPUs in this way. The same pointer each time. */
const struct vgpu_system *vgpu_system(enum pool_mode mode);

/* Which of a container's resources a tenant may write in such a pool beside
 * sublet.dev/gpu-percent, whichever of the two systems it is: HAMi's. */
bool vgpu_is_request(struct str name);
/* MiB that this share of a GPU of the pool has: never more than the share. */
int64_t vgpu_memory(const struct config_pool *pool, int64_t percent);
/* The least share that has at least these MiB; more than VGPU_WHOLE: no GPU has. */
int64_t vgpu_percent(const struct config_pool *pool, int64_t memory_mib);

/* The system whose compute the resource is; NULL: none's. */
const struct vgpu_system *vgpu_by_cores(struct str resource);
/* What a container of a host pod holds by the system, in hundredths: number x cores. One that has
 * GPUs and no share of their compute holds them whole. 0: it has none. */
int64_t vgpu_of_container(const struct vgpu_system *system, const cJSON *container);
/* Of a host node as it arrives: adds the hundredths of GPUs that HAMi or Volcano has registered
 * there to its capacity and allocatable, as `cores` of the system, where the kubelet does not count
 * those. Allocatable are those of GPUs that are healthy. */
void vgpu_note_node(struct arena *a, cJSON *node);
