/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * `pools:` and `bindings:` of the configuration, as structs. Their values were checked when they
 * were loaded; which pool a pod resolves to is in pool.h. */
#pragma once

#include <sublet/config.h>

#define LABEL_POOL "sublet.dev/pool" /* of a host node and of a host pod with devices: its pool */
/* The node of pods without devices, where sync.nodes is perPool; the others have their pools'
 * names. */
#define POOL_NODE_NONE "no-pool"

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

/* Which queueing system admits the pool's pods; NONE: the scheduler alone. */
enum pool_scheduler {
    SCHEDULER_NONE,
    SCHEDULER_KUEUE,
    SCHEDULER_KAI,
    SCHEDULER_VOLCANO,
    SCHEDULER_HAMI,
    SCHEDULER_NATIVE /* gangs of Kubernetes itself: no queues */
};

/* The key by which a queueing system reads the queue of a pod. */
struct queue_system {
    const char *key; /* of the pod's label, or annotation */
    bool by_annotation;
    const char *scheduler; /* NULL: it is none itself; else its usual name */
};

struct pool_resource {
    struct str name;        /* as tenants write it: "nvidia.com/gpu" */
    struct str host_name;   /* after `rename`; same as name otherwise */
    struct rational gpu_eq; /* per unit; zero only with per_pod */
    int64_t per_pod;        /* units one pod may have; 0: no cap of its own */
    struct str_list
        variables; /* variables by which a runtime hands it out, beside those of its vendor */
};

/* Of a pool of mode dra: a class of devices that ResourceClaims may name. */
struct pool_device_class {
    struct str name;
    struct rational gpu_eq; /* per device; zero only with per_claim */
    int64_t per_claim;      /* devices one claim may have; 0: no cap of its own */
    const cJSON *config;    /* [{driver, parameters}] that a claim may have; NULL: none */
    /* By which `sublet fleet` knows its devices in ResourceSlices. */
    struct str driver;       /* empty: not said */
    const cJSON *attributes; /* map of names and values, all of which a device has; NULL: any */
};

/* What an admin does with a pool. CORDON: pods that hold devices go on, and nothing new is granted;
 * DRAIN: they are ended as well, `grace` after the notice. */
enum maintenance_state { MAINTENANCE_NONE, MAINTENANCE_CORDON, MAINTENANCE_DRAIN };
#define CONFIG_DRAIN_GRACE_S INT64_C(120)
struct config_maintenance {
    enum maintenance_state state;
    struct str reason;        /* for tenants; also with NONE, where something else is under way */
    int64_t start_s, until_s; /* 0: not said. until: when it is to be over, which ends nothing */
    int64_t grace_s;          /* 0: the usual one */
};

struct config_pool {
    struct str name;
    struct config_maintenance maintenance; /* as it is now: of the file, or of status.maintenance */
    bool dedicated;                        /* else shared */
    bool adversarial;                      /* trust */
    enum pool_mode mode;
    const cJSON *node_selector; /* map, as configured; never empty */
    const char *fence_key;      /* the label of its nodes that other pods must avoid */
    const cJSON *tolerations;   /* array, as configured */
    struct str_list products;   /* values of nvidia.com/gpu.product, without -MIG-*, -SHARED */
    const struct pool_resource *resources;
    size_t n_resources; /* none in mode dra but in a fleet, device classes only there */
    const struct pool_device_class *device_classes;
    size_t n_device_classes;
    int64_t gpu_memory_mib;         /* of each GPU; of modes hami and volcano-vgpu */
    int64_t per_pod, per_container; /* units of the resource; 0: no cap */
    int64_t max_lifetime_s;         /* 0: none */
    int64_t node_loss_s; /* release.onNodeLossAfter; 0: a lost pod is charged until it is gone */
    struct str scheduler, runtime_class; /* empty: leave default */
    enum pool_scheduler scheduler_kind;
    bool gang;                   /* pods of one owner start together: see translate_gang.h */
    struct str queue;            /* of this virtual cluster, in the words of the scheduler's kind */
    const cJSON *priority_tiers; /* tenant tier -> host PriorityClass */
    struct str default_tier;     /* of pods without a class; empty without tiers */
    struct str price, currency;
    int64_t pods_per_minute;  /* caps.gpuPodsPerMinute; 0: no cap */
    struct str borrow_factor; /* of the price, for what exceeds the guarantee; empty: 1 */
};

enum over_quota { OVER_QUOTA_REJECT, OVER_QUOTA_QUEUE };
struct config_binding {
    const struct config_pool *pool;
    struct rational guarantee, burst; /* gpuEq */
    struct rational most;             /* guarantee + burst */
    struct rational limit;            /* what may be held now: most, or less by a GPUBinding */
    enum over_quota over_quota;
    bool strict;    /* of those that wait: none is overtaken */
    int64_t hold_s; /* else: GPUs are kept for the first in line every second period so long */
    bool is_default;
    bool ended; /* of a GPUBinding that grants nothing any more: for what is charged already */
    struct str object; /* the name of the GPUBinding; empty: it is the file's */
    bool reclaim;      /* what exceeds the limit is ended after this time */
    int64_t reclaim_not_before_s;
    struct rational lend; /* of an idle guarantee, at most */
    const cJSON *budget;  /* of a GPUBinding: its status.budget; NULL: it has none */
};

/* NULL: pods of the pool are in no queue. */
const struct queue_system *config_queue_system(enum pool_scheduler kind);
struct str config_mode_name(enum pool_mode mode); /* as configured: "time-slicing" */
/* "pool "a100" is drained: driver upgrade, until 2026-01-31T12:00:00Z"; empty: it is as usual. */
struct str config_maintenance_text(struct arena *a, const struct config_pool *pool);
/* `maintenance` of a GPUPool; the error names `where`. */
int config_maintenance_parse(struct arena *a, struct str where, const cJSON *value,
                             struct config_maintenance *ret, struct err *err) MUST_CHECK;
/* The resource of this name, as tenants write it; NULL when the pool does not offer it. */
const struct pool_resource *config_pool_resource(const struct config_pool *pool, struct str name);
/* The same for a class of devices. */
const struct pool_device_class *config_pool_device_class(const struct config_pool *pool,
                                                         struct str name);
/* The binding of the pool of this name; NULL when it is not bound. */
const struct config_binding *config_binding_of(const struct config *config, struct str pool);
/* A product without what the driver appends: -SHARED and -MIG-<profile>. */
struct str config_product_base(struct str product);
/* Is it the key of a taint that pods of a pool tolerate, by the configuration or for a device? */
bool config_pools_tolerate(const struct config *config, struct str key);
bool config_pool_has_product(const struct config_pool *pool, struct str product);
bool config_has_tiers(const struct config *config); /* of a bound pool */
/* A label or annotation by which a queueing system or a GPU scheduler takes orders: never a
 * tenant's, whatever policy.labels and policy.annotations list. */
bool config_key_steers(struct str key);
/* Is it a label by whose value, not by its key alone, such a scheduler takes orders? */
bool config_value_steers(struct str key, struct str value);
/* By which Helm, Argo CD and the like know what they have installed: never the host's to show. */
bool config_key_installs(struct str key);
/* The value of this label in policy.cpuNodes; p is NULL when the label is not listed. */
struct str config_cpu_node_value(const struct config *config, struct str key);
