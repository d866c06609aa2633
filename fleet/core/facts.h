/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What objects of the host say about GPUs. Pure: JSON in, values out, whose strings live in the
 * tree or the arena. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/fleet_usage.h>

struct fact_node {
    struct str name;
    const struct config_pool *pool; /* whose nodeSelector matches; NULL: none */
    struct str product;
    struct rational total, unhealthy; /* of the pool's resources */
    bool down;                        /* not Ready */
    int64_t ready_us;                 /* when Ready became what it is; 0: not known */
    int64_t created_us;
};
void fact_node(const cJSON *node, const struct config_pool *pools, size_t n_pools,
               struct fact_node *ret);

struct fact_pod {
    struct fleet_hold hold; /* without pool, product, resources and gpu_eq; end_us FLEET_OPEN */
    bool on_node;           /* it has a node: the devices are not another pod's */
    bool ended;             /* ... and its last container has finished */
    int64_t end_us;         /* 0: the host does not say when */
    struct str reason;      /* of the end */
    /* The reason of condition DisruptionTarget, where it is True, else of the deletion by which a
     * virtual cluster gives GPUs back: ENDED_RECLAIMED. */
    struct str disrupted;
};
void fact_pod(struct arena *a, const cJSON *pod, struct fact_pod *ret);
/* Of one extended resource, whose name has a '/'. */
struct fact_units {
    struct str resource; /* in the tree */
    int64_t units;       /* more than 0; FACT_NO_NUMBER: the sum does not fit */
};
#define FACT_NO_NUMBER (-1)
/* What a pod takes of each, as the scheduler counts, and what a map of quantities has. Return how
 * many there are. */
size_t fact_pod_units(struct arena *a, const cJSON *pod, struct fact_units **ret);
/* What its containers have at once when it runs: init containers have ended, but for sidecars. */
size_t fact_pod_running_units(struct arena *a, const cJSON *pod, struct fact_units **ret);
size_t fact_node_units(struct arena *a, const cJSON *map, struct fact_units **ret);
/* In hundredths of GPUs of a pool of parts; 0: nothing, FACT_NO_NUMBER. */
int64_t fact_pod_parts(const cJSON *pod);
bool fact_node_is_down(const cJSON *node); /* not Ready */
/* Of them, in GPUs of a pool: the sum of what fits. False: nothing, or some does not. */
bool fact_gpus(const struct fact_units *units, size_t n, const struct config_pool *pool,
               struct rational *ret);
/* What it takes of a pool, as the scheduler counts; false: nothing, or no number of devices. */
bool fact_pod_devices(struct arena *a, const cJSON *pod, const struct config_pool *pool,
                      struct rational *ret_gpu_eq, struct str *ret_resources);

/* Labels that nodes of a pool have, each as a member of compact JSON, and whether an object of
 * labels, as compact JSON, has all of them; an empty one has none. */
struct str_list fact_selector(struct arena *a, const cJSON *node_selector);
bool fact_selected(struct str_list selector, struct str labels);

/* For reflectors: remove what these functions do not read. Of a pod without devices its metadata
 * stay (with claims, what names its owner as well) and, while it runs on a node that no DaemonSet
 * chose for it, the sum of its requests. */
void fact_reduce_node(struct arena *a, cJSON *node);
void fact_reduce_pod(struct arena *a, cJSON *pod);
void fact_reduce_claim(struct arena *a, cJSON *claim); /* of fact_claims.h */
/* That, of a pod that was reduced; false: it is no such. */
struct fact_asked {
    struct str node;
    int64_t cpu_milli, memory;
};
bool fact_asked(const cJSON *pod, struct fact_asked *ret);
