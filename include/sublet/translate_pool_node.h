/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * sync.nodes perPool: one Node of the tenant for all host nodes of a pool, and one for those of
 * pods without devices. Pure functions, as all of the room. */
#pragma once

#include <sublet/pool.h>
#include <sublet/quantity.h>

struct translate_tenant;

struct str translate_pool_node_name(const struct config_pool *pool); /* NULL: POOL_NODE_NONE */
/* Is there a node of this name? *ret is its pool, NULL for POOL_NODE_NONE. */
bool translate_pool_node_find(const struct config *config, struct str name,
                              const struct config_pool **ret);
/* The node under which a host pod of ours is shown. It stays the same while the pod lives, whether
 * its pool is bound at the moment or not. */
struct str translate_pool_node_of(const cJSON *host_pod);
/* May pods of the pool (NULL: without devices) be placed on the host node, by labels and taints? */
bool translate_pool_node_has(struct arena *a, const struct config *config,
                             const struct config_pool *pool, const cJSON *host_node);
/* FORBIDDEN for a pod that names a node of another pool than its own. */
int translate_check_pool_node(const struct translate_tenant *t, const struct pool_choice *choice,
                              const cJSON *pod, struct str node, struct err *err) MUST_CHECK;

/* What a pod requests, as the scheduler counts. */
struct pod_request {
    struct str resource; /* the host's name */
    __int128 nano;
};
struct pod_requests {
    struct pod_request *items;
    size_t n;
};
void translate_pod_requests(struct arena *a, const cJSON *host_pod, struct pod_requests *ret);

/* What is known of the host for one of these nodes. */
struct pool_node_facts {
    struct str name;
    const struct config_pool *pool;       /* NULL: of pods without devices */
    const struct config_binding *binding; /* NULL: the pool is not bound (any more) */
    const cJSON *nodes;   /* array of the host nodes it stands for; NULL: they are not readable */
    const cJSON *quotas;  /* array of the ResourceQuotas of the host namespace */
    struct rational used; /* gpuEq charged to the pool */
    /* What the tenant's pods of this node hold of a resource of the host, "pods" included, on one
     * host node or (STR_NULL) all of them. */
    __int128 (*held)(void *ctx, struct str host_node, struct str resource);
    void *ctx;
};
/* The Node, without times. allocatable is what the tenant's pods there hold and can still get: the
 * limit of the binding, bounded by what the host's usable nodes have and by the host's quotas. */
cJSON *translate_pool_node_up(struct arena *a, const struct translate_tenant *t,
                              const struct pool_node_facts *facts);
