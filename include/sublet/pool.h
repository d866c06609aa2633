/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * GPU pools and bindings: to which pool a pod goes, how many GPUs (exactly) it takes, and what a
 * tenant may not request. Pure. The model and the messages are those of the pool model (docs: pools
 * and quota).
 *
 * Resolution: pod label, then namespace label `sublet.dev/gpu-pool`; else the single bound pool
 * that serves the resource (and the product its nodeSelector requests); else the default binding;
 * else 403. A pod without GPU resources resolves to no pool. Whatever the tenant wrote can only
 * narrow. */
#pragma once

#include <sublet/config_pool.h>

struct pool_choice {
    const struct config_binding *binding; /* NULL: no GPU requested, no pool */
    struct rational gpu_eq;               /* max(sum(app) + sum(sidecars), init peak) */
    struct rational limit;                /* of the binding, now */
    struct str requested; /* as the pod has it: "nvidia.com/mig-1g.10gb=2"; in the caller's arena */
    int64_t devices;      /* of a claim: those that have a weight */
    bool of_claim;        /* of a ResourceClaim, which is charged itself */
    bool by_claims;  /* of a pod whose devices are those of claims: nothing is charged for it */
    struct str gang; /* its group on the host (translate_gang.h); empty: none. Set by the syncer */
    int64_t gang_size; /* of that, when the pod was created */
};
/* Resolves and applies every guardrail of the pool to a virtual pod (already defaulted). FORBIDDEN
 * in the messages of the model: nodeSelector that contradicts, tolerations, product, profile, caps,
 * scheduler, GPU resources that no pool offers, NVIDIA_VISIBLE_DEVICES and its like. */
int pool_resolve(struct arena *a, const struct config *config, struct str ns, const cJSON *pod,
                 const cJSON *namespace_labels, struct pool_choice *ret,
                 struct err *err) MUST_CHECK;
/* The same for a pod that has devices by ResourceClaims: the pool of all its claims, and the sum of
 * their devices. claims NULL: it has none (that are known). */
struct pool_claims {
    const struct config_binding *binding;
    int64_t devices;
};
int pool_resolve_with(struct arena *a, const struct config *config, struct str ns, const cJSON *pod,
                      const cJSON *namespace_labels, const struct pool_claims *claims,
                      struct pool_choice *ret, struct err *err) MUST_CHECK;
/* Resolves a ResourceClaim, or a template of one, to the bound pool that grants every class it
 * names: by the label, the only one, or the default. gpu_eq: count times weight, of alternatives
 * the dearest. FORBIDDEN: a class, parameters of a driver, access or a number that is not
 * granted. */
int pool_resolve_claim(struct arena *a, const struct config *config, const cJSON *object,
                       bool is_template, const cJSON *namespace_labels, struct pool_choice *ret,
                       struct err *err) MUST_CHECK;
/* What a host claim of ours holds of a binding's pool, by its label; false: nothing. */
bool pool_of_host_claim(struct arena *a, const struct config *config, const cJSON *host_claim,
                        struct pool_choice *ret);
/* What a host pod of ours holds of a binding's pool: by its label and its containers. False:
 * nothing, or the pool is no longer bound. The limit is not set. */
bool pool_of_host_pod(struct arena *a, const struct config *config, const cJSON *host_pod,
                      struct pool_choice *ret);
/* The message of a 403 on gpu_quota: `exceeded quota: gpu/<pool>, requested: gpu=8, used: gpu=6,
 * limited: gpu=12` */
int pool_exceeded(struct arena *a, const struct pool_choice *choice, struct rational used,
                  struct str pod_name, struct err *err);
/* " (nvidia.com/mig-1g.10gb=2)": what the pod requests, unless gpu_eq has the same number. */
struct str pool_requested(struct arena *a, const struct pool_choice *choice);
/* Would this many pods of the choice exceed the limit of its pool? Then *ret_text says so, and how
 * many fit. together: they start together, or not at all. */
bool pool_exceeded_by(struct arena *a, const struct pool_choice *choice, int64_t pods,
                      bool together, struct str *ret_text);
/* What pods of the choice cost an hour by `metering` of the pool, exactly: `pool "a100": 2 GPU cost
 * 5.00 USD per hour (3 replicas: 15.00)`. Empty: the pool has no price, or they hold nothing of it,
 * as devices of claims. What is beyond the guarantee is said of a binding of the fleet alone, which
 * bills it so. */
struct pool_price_facts {
    struct str kind;             /* of the workload whose template the pod is; empty: none */
    int64_t copies;              /* that it wants at once; 0: not known */
    const struct rational *used; /* of the pool without the pod; NULL: not known */
};
struct str pool_price(struct arena *a, const struct pool_choice *choice,
                      const struct pool_price_facts *facts);
/* Warnings for the author of a pod that is admitted: tolerations that have no effect. choice is the
 * result of pool_resolve. */
void pool_warnings(struct arena *a, const struct config *config, const struct pool_choice *choice,
                   const cJSON *pod, void (*warn)(void *ctx, struct str text), void *ctx);

/* Does the host node have the labels of the pool? */
bool pool_has_node(const struct config_pool *pool, const cJSON *host_node);
/* May a pod of this choice be placed on the host node, given its fence and the tolerations it is
 * sent with? Taints of a node's condition (node.kubernetes.io/) are ignored. */
bool pool_admits_node(struct arena *a, const struct config *config,
                      const struct pool_choice *choice, const cJSON *host_node);
/* Do the host's nodes (an array of all) match the pool: some have its labels, and each of those has
 * a taint that repels other pods? False: *ret has the problem. message names no node, detail
 * does. */
struct pool_problem {
    const char *reason; /* CamelCase, static */
    struct str message, detail;
};
bool pool_check_nodes(struct arena *a, const struct config_pool *pool, const cJSON *host_nodes,
                      struct pool_problem *ret);
