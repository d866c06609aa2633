/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * What the resolver and the pod translation share about pools and devices. Must never be included
 * outside this room. */
#pragma once

#include <sublet/object.h>

#include "impl.h"

/* ---- gpu_count.c: how many devices a pod requests ---- */

/* A quantity that requests nothing; what is no quantity requests something. */
bool gpu_count_is_zero(const cJSON *quantity);
struct device_count {
    struct str name;
    int64_t units; /* what the scheduler reserves: max(apps + sidecars, init peak) */
};
struct device_counts {
    struct device_count *items;
    size_t n;
};
/* Units one container requests of each device, and the pod. FORBIDDEN (without prefix) on
 * quantities that are no counts, and for more resources than any pool offers. */
int gpu_count_resources(struct arena *a, const cJSON *resources, struct device_counts *ret,
                        struct err *err) MUST_CHECK;
int gpu_count_container(struct arena *a, const cJSON *container, struct device_counts *ret,
                        struct err *err) MUST_CHECK;
int gpu_count_pod(struct arena *a, const cJSON *pod, struct device_counts *ret,
                  struct err *err) MUST_CHECK;

/* ---- gpu_vendor.c: variables that name devices to a vendor's container runtime ---- */

/* All of them: those of the vendors, then what pools add. */
struct str_list gpu_variables(struct arena *a, const struct config *config);
bool gpu_is_variable(const struct config *config, struct str name);
bool gpu_variable_begins(const struct config *config, struct str prefix); /* any of them */
/* Is the variable how containers that request this resource get it? */
bool gpu_resource_grants(const struct pool_resource *resource, struct str variable);

/* ---- gpu_env.c: variables and mounts that container runtimes and sharing layers obey ---- */

/* Would this env entry reach devices, or lift a limit, in a pool of this mode? */
bool gpu_env_refused(const struct config *config, const cJSON *env, enum pool_mode mode);
/* Could an envFrom prefix and some key make up such a name? */
bool gpu_env_prefix_refused(const struct config *config, struct str prefix, enum pool_mode mode);
/* A ConfigMap or Secret key that envFrom must not turn into such a variable; value may be STR_NULL.
 */
bool gpu_env_key_refused(const struct config *config, struct str key, struct str value);
/* A mount under a directory whose files stand for devices. */
bool gpu_mount_refused(struct str mount_path);
/* One over what limits a container of such a pool to its part. */
bool gpu_mount_unlimits(struct str mount_path, enum pool_mode mode);

/* ---- gpu_vgpu.c: parts by HAMi and Volcano ---- */

struct resolve;
/* In such a pool: what its containers request becomes the sum of their shares, in r->counts. */
int gpu_vgpu_count(struct resolve *r);
/* In hundredths, at most VGPU_WHOLE, of a container with these counts; 0: nothing, or of another
 * pool (pool may be NULL). */
int64_t gpu_vgpu_share(const struct config_pool *pool, const struct device_counts *own);
/* What a host pod with these counts holds in such a pool. False: nothing, or out of range. */
bool gpu_vgpu_of_host(const struct config_pool *pool, const struct device_counts *counts,
                      struct rational *ret);

/* ---- gpu_fraction.c ---- */

/* In a pool of parts of GPUs: one part, less than a GPU, of one container. */
int gpu_fraction_guard(const struct resolve *r);

/* ---- pool_resolve.c and pod_affinity.c ---- */

/* Keys that any pod may tolerate; only the first two (with bounded seconds) go down. */
extern const char *const POOL_TOLERATED_KEYS[];
enum { TOLERATED_DOWN = 2 };
/* The label values of a product on the nodes of the chosen pool, for what the pod requests. */
struct str_list translate_pod_product_variants(struct arena *a, const struct config_pool *pool,
                                               const struct device_counts *requested,
                                               struct str product);

/* ---- pod_fence.c: pods without devices keep off pools and accelerators ---- */
/* Node selector requirements for every term of such a pod. */
cJSON *translate_pod_fence_expressions(struct arena *a, const struct config *config);

/* ---- pool_tolerations.c ---- */
/* A toleration of sync.toHost.pods.enforceTolerations: is it sent? A pool may have come since that
 * has the taint for its own. */
bool pool_enforces(const struct config *config, const cJSON *toleration);
/* Does one of those tolerate the taint? */
bool pool_enforced_tolerates(const struct config *config, const cJSON *taint);
int pool_guard_tolerations(const struct resolve *r);

/* ---- pool_guard.c: what a pod may not request, in any pool ---- */

struct resolve {
    struct arena *arena;
    const struct config *config;
    const cJSON *pod, *spec;
    struct str name;
    struct device_counts counts;
    const struct config_pool *pool; /* NULL: none */
    struct err *err;
};
/* A 403 in the form of the model: `pods "x" is forbidden: ...`. */
int pool_refuse(const struct resolve *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "a, b", up to the length a message needs. */
struct str pool_joined(struct arena *a, struct str so_far, struct str next);
/* Of the chosen pool: places, products, quantities. */
int pool_guard_pool(const struct resolve *r);
/* Of every pod: tolerations, scheduler, variables and mounts. */
int pool_guard_pod(const struct resolve *r);
/* Devices where no scheduler counts them. */
int pool_guard_side_doors(const struct resolve *r);

/* ---- queue_up.c ---- */
/* What a queueing system's own words become; false: they are not a queueing system's. pool: the
 * pod's; may be NULL. */
bool translate_queue_event_up(const struct config *config, struct str component, struct str reason,
                              struct str *ret);
bool translate_queue_condition_up(struct arena *a, const struct config_pool *pool,
                                  const cJSON *condition, struct str *ret);

/* ---- pool_queue.c ---- */
enum { POOL_WARNINGS_MAX = 8 };
/* A group of pods, in the keys of the pool's queueing system. */
int pool_guard_queue(const struct resolve *r);
/* Keys of queueing systems that have no effect. */
void pool_queue_warnings(const struct resolve *r, void (*warn)(void *ctx, struct str text),
                         void *ctx);
