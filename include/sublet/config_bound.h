/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * GPUBindings of the host (group sublet.dev), which `sublet fleet` grants: pools and bindings
 * beside those of the configuration file. All of them together are a set that is made whole, and
 * replaced as a whole: between two events of the loop, since code keeps no pointer into it for
 * longer. What outlives a call keeps the name of a pool.
 *
 *   spec            an item of `bindings:`, and `budget`, which is the fleet's to follow
 *   status.pool     an item of `pools:`, a copy of the GPUPool, `metering` as the fleet bills it
 *   status.grant    GPUs that may be held now; none where it is missing
 *   status.reclaim  {gpus, notBefore}: pods that hold more are ended after this time
 *   status.maintenance  {state, reason, until, grace}: why the grant is what it is
 *   status.budget   for tenants to read: {month, amount, currency, spent, percent, ...}
 */
#pragma once

#include <sublet/config_pool.h>

#define CONFIG_GROUP_FLEET "sublet.dev"
/* The path of their collection, with the host namespace. */
#define CONFIG_GPU_BINDINGS "/apis/" CONFIG_GROUP_FLEET "/v1alpha1/namespaces/%.*s/gpubindings"
/* The ConfigMap of a host namespace by which its virtual cluster reports what it wants:
 * `data: {POOL: "N"}`, whole GPUs. */
#define CONFIG_GPU_DEMAND  "sublet-gpu-demand"
#define CONFIG_MOST_BOUND  64    /* GPUBindings of one virtual cluster; more are refused */
#define CONFIG_BOUND_BYTES 65536 /* of one, as JSON */

struct config_bound;
/* A set with what the configuration itself has, which must outlive it. */
struct config_bound *config_bound_new(const struct config *config);
struct config_bound *config_bound_free(struct config_bound *set); /* takes NULL */
/* Adds a GPUBinding; object is not kept. BAD_REQUEST, and nothing is added, when its pool or its
 * binding is not what the file might have: `GPUBinding "a": status.pool.mode: ...`; or when the
 * pool's name is taken. ended: it grants nothing any more, and no pod resolves to it that does not
 * name its pool. A second default is none: *ret_default_lost. */
int config_bound_add(struct config_bound *set, const cJSON *object, bool ended,
                     bool *ret_default_lost, struct err *err) MUST_CHECK;
bool config_bound_has(const struct config_bound *set, struct str pool);
/* Makes *live, a copy of that configuration, have the pools and bindings of the set. */
void config_bound_install(const struct config_bound *set, struct config *live);
