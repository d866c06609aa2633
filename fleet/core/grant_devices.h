/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The devices that ResourceSlices of the host show on its nodes, and how many GPUs of a pool of
 * mode dra they are. Kept as slices change, so that a turn parses none. Pure. For its room.
 *
 *   slice    counts by its nodeName; one by nodeSelector, allNodes or device is of no node
 *   pool     of a driver on a node: the newest generation of which all slices are there, with no
 *            name twice. While a newer one is incomplete, what was complete is there, unhealthy
 *   device   is of the class of the pool that it matches and that weighs most, and of no other;
 *            unhealthy with a taint NoSchedule or NoExecute, of its own or of a DeviceTaintRule
 *   counters devices that share counters (a GPU and its slices) count as far as these suffice, the
 *            heaviest first
 *
 * Source: resource.k8s.io/v1, ResourceSliceSpec; v1beta2, DeviceTaintRuleSpec; the scheduler's
 * structured allocator. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/json.h>

#define GRANT_NODE_DEVICES 1024 /* of one node, and ... */
#define GRANT_POOL_SLICES  64   /* ... slices of one driver's pool: what is beyond counts nothing */
#define GRANT_DEVICE_NOTES 64   /* attributes of one device, and counters that it consumes */
#define GRANT_DEVICE_RULES 256  /* that taint: where there are more, every device is tainted */
#define GRANT_RULES_PATH   "/apis/resource.k8s.io/v1beta2/devicetaintrules" /* off by default */

struct grant_devices;
struct grant_devices *grant_devices_new(void);
struct grant_devices *grant_devices_free(struct grant_devices *d); /* takes NULL, returns NULL */
/* A ResourceSlice as it is now, under its name. NULL: it is gone. */
void grant_devices_slice(struct grant_devices *d, struct str name, const cJSON *tree);
/* For reflectors: what that does not read goes. */
void grant_devices_reduce(struct arena *a, cJSON *slice);
/* A DeviceTaintRule, likewise. Are devices tainted otherwise than before, by it? */
bool grant_devices_rule(struct grant_devices *d, struct str name, const cJSON *tree);
/* The nodes that have devices. each() must not change them. */
void grant_devices_each_node(struct grant_devices *d, void (*each)(void *ctx, struct str node),
                             void *ctx);

/* In GPUs of the pool, by its device classes. d may be NULL: nothing is known. */
void grant_devices_count(struct grant_devices *d, struct str node, const struct config_pool *pool,
                         struct rational *ret_total, struct rational *ret_healthy);
struct grant_device_name {
    struct str driver, pool, device;
};
/* What a device weighs, by the class of the pool that it is of, whatever shares its counters.
 * False: it is of none, or no slice of the node shows it. */
bool grant_devices_weight(struct grant_devices *d, struct str node, const struct config_pool *pool,
                          const struct grant_device_name *name, struct rational *ret);
/* The node of a slice, by the slice's name; empty: none is known. */
struct str grant_devices_node_of(const struct grant_devices *d, struct str slice);
/* What a device was in the last count of its node, and is no more: once. Of one that shares
 * counters with devices that counted, the heaviest of these. */
struct rational grant_devices_take(struct grant_devices *d, struct str node,
                                   const struct grant_device_name *name);
