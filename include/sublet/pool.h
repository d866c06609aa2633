/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * GPU pools and bindings: to which pool a pod goes, how many GPUs (exactly) it takes, and what a
 * tenant may not ask for. Pure. The model and the messages are those of the pool model (docs: pools
 * and quota).
 *
 * Resolution: pod label, then namespace label `sublet.dev/gpu-pool`; else the single bound pool
 * that serves the resource (and the product its nodeSelector asks for); else the default binding;
 * else 403. A pod without GPU resources resolves to no pool. Whatever the tenant wrote can only
 * narrow. */
#pragma once

#include <sublet/config.h>

enum pool_mode {
    POOL_EXCLUSIVE,
    POOL_MIG,
    POOL_TIME_SLICING,
    POOL_MPS,
    POOL_KAI,
    POOL_HAMI,
    POOL_VOLCANO,
    POOL_DRA
};

struct pool_resource {
    struct str name;           /* as tenants write it: "nvidia.com/gpu" */
    struct str host_name;      /* after `rename`; same as name otherwise */
    struct rational gpu_eq;    /* per unit; zero only with per_pod */
    int64_t per_pod;           /* units one pod may have; 0: no cap of its own */
    struct str_list variables; /* by which a runtime hands it out, beside those of its vendor */
};

struct config_pool {
    struct str name;
    bool dedicated;   /* else shared */
    bool adversarial; /* trust */
    enum pool_mode mode;
    const cJSON *node_selector; /* map, as configured; never empty */
    const char *fence_key;      /* its label that other pods must not find on a node */
    const cJSON *tolerations;   /* array, as configured */
    struct str_list products;   /* values of nvidia.com/gpu.product, without -MIG-*, -SHARED */
    const struct pool_resource *resources;
    size_t n_resources;
    int64_t per_pod, per_container;      /* units of the resource; 0: no cap */
    int64_t max_lifetime_s;              /* 0: none */
    struct str scheduler, runtime_class; /* empty: leave default */
    const cJSON *priority_tiers;         /* tenant tier -> host PriorityClass */
    struct str price, currency;
    int64_t pods_per_minute;  /* caps.gpuPodsPerMinute; 0: no cap */
    struct str borrow_factor; /* of the price, for what exceeds the guarantee; empty: 1 */
};

enum over_quota { OVER_QUOTA_REJECT, OVER_QUOTA_QUEUE };
struct config_binding {
    const struct config_pool *pool;
    struct rational guarantee, burst; /* gpuEq; the limit is guarantee + burst */
    enum over_quota over_quota;
    bool is_default;
    struct rational lend; /* of an idle guarantee, at most */
};

/* `pools:` and `bindings:` of the tree. Errors name the place. */
int pool_load(struct arena *a, const cJSON *tree, struct config *config,
              struct err *err) MUST_CHECK;

struct pool_choice {
    const struct config_binding *binding; /* NULL: no GPU asked, no pool */
    struct rational gpu_eq;               /* max(sum(app) + sum(sidecars), init peak) */
    struct rational limit;                /* guarantee + burst */
};
/* Resolves and applies every guardrail of the pool to a virtual pod (already defaulted). FORBIDDEN
 * in the messages of the model: nodeSelector that contradicts, tolerations, product, profile, caps,
 * scheduler, GPU resources nobody offers, NVIDIA_VISIBLE_DEVICES and its like. */
int pool_resolve(struct arena *a, const struct config *config, struct str ns, const cJSON *pod,
                 const cJSON *namespace_labels, struct pool_choice *ret,
                 struct err *err) MUST_CHECK;
/* What a host pod that we made holds of a binding's pool: by its label and its containers. False:
 * nothing, or the pool is no longer bound. Its limit is not set. */
bool pool_of_host_pod(struct arena *a, const struct config *config, const cJSON *host_pod,
                      struct pool_choice *ret);
/* gpu_quota text of a 403: `exceeded quota: gpu/<pool>, requested: gpu=8, used: gpu=6, limited:
 * gpu=12` */
int pool_exceeded(struct arena *a, const struct pool_choice *choice, struct rational used,
                  struct str pod_name, struct err *err);
/* What an author of a pod should know though it is let through: tolerations that have no effect.
 * choice is what pool_resolve said of the pod. */
void pool_warnings(struct arena *a, const struct config *config, const struct pool_choice *choice,
                   const cJSON *pod, void (*warn)(void *ctx, struct str text), void *ctx);

/* Has the host node the labels of the pool? */
bool pool_has_node(const struct config_pool *pool, const cJSON *host_node);
/* May a pod of this choice be placed on the host node, by the fence it gets and the tolerations it
 * is sent with? What the host's node controller says of a node's state (node.kubernetes.io/)
 * passes. */
bool pool_admits_node(struct arena *a, const struct config *config,
                      const struct pool_choice *choice, const cJSON *host_node);
/* Are the host's nodes (an array of all it has) what the pool says: some have its labels, and each
 * of those a taint that keeps others off? False: *ret says what is wrong. message names no node,
 * detail does. */
struct pool_problem {
    const char *reason; /* CamelCase, static */
    struct str message, detail;
};
bool pool_check_nodes(struct arena *a, const struct config_pool *pool, const cJSON *host_nodes,
                      struct pool_problem *ret);
