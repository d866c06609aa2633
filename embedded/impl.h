/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the embedded host share. Each part is a controller over the in-process client;
 * they meet in the API's objects, and here only in what is not an object: addresses in use. */
#pragma once

#include <sublet/controller.h>
#include <sublet/embedded.h>
#include <sublet/hash.h>
#include <sublet/proxy.h>

#include "object.h"

#define EMBEDDED_MAGIC 0x656d6265u

/* Ranges, as IPv4 numbers in the host's byte order. All of them are simulated. */
#define SERVICE_NET       0x0a600000u /* 10.96.0.0/16 */
#define SERVICE_BITS      16u
#define POD_NET           0x0a800000u /* 10.128.0.0/12 */
#define POD_BITS          20u
#define NODE_NET          0xac1e0000u /* 172.30.0.0/16 */
#define NODE_BITS         16u
#define CONTROL_PLANE     (NODE_NET + 1)
#define API_SERVICE       (SERVICE_NET + 1) /* default/kubernetes */
#define NODE_PORT_LOW     30000u
#define NODE_PORT_HIGH    32767u
#define DEFAULT_SCHEDULER "default-scheduler"

/* --- numbers.c: a range of which each number has at most one owner --- */

struct numbers;
struct numbers *numbers_new(uint32_t first, uint32_t last);
struct numbers *numbers_free(struct numbers *n);
/* False when another owner holds it. The owner's name is copied. */
bool numbers_take(struct numbers *n, uint32_t number, struct str owner);
/* A free one, from a cursor that starts at `from` (tried modulo the range). False when full. */
bool numbers_find(const struct numbers *n, uint32_t from, uint32_t *ret_number);
bool numbers_owned_by(const struct numbers *n, uint32_t number, struct str owner);
void numbers_drop(struct numbers *n, uint32_t number, struct str owner); /* of that owner only */
bool numbers_in(const struct numbers *n, uint32_t number);
bool numbers_ip_parse(struct str text, uint32_t *ret);
struct str numbers_ip_format(struct arena *a, uint32_t ip);

/* --- node_file.c --- */

extern const char NODES_BUILT_IN[];
/* An array of Node objects. */
int node_file_parse(struct arena *a, struct str text, cJSON **ret, struct err *err) MUST_CHECK;

/* --- the parts --- */

enum embedded_part {
    PART_NODES,
    PART_EVICT,
    PART_SCHEDULER,
    PART_KUBELET,
    PART_CLAIMS,
    PART_VOLUMES,
    PART_SERVICES,
    N_PARTS
};
struct scheduler;
struct kubelet;
struct evictions;
struct services;
struct logs;
struct embedded {
    unsigned magic;
    struct vapi *api;
    struct str nodes; /* YAML of the file; owned */
    bool external_scheduler;
    bool external_controllers;         /* upstream's manager judges nodes and binds claims */
    struct controller *parts[N_PARTS]; /* the n_parts that run */
    size_t n_parts;
    struct scheduler *scheduler;
    struct kubelet *kubelet;
    struct evictions *evictions;
    struct services *services;
    struct logs *logs;
    size_t open; /* parts that are not closed yet */
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

extern const struct controller_def NODE_PART, EVICT_PART, SCHEDULER_PART, KUBELET_PART, CLAIM_PART,
    VOLUME_PART, SERVICE_PART;

struct scheduler *scheduler_new(struct embedded *e);
struct scheduler *scheduler_free(struct scheduler *s);
struct kubelet *kubelet_new(struct embedded *e);
struct kubelet *kubelet_free(struct kubelet *k);
struct evictions *evictions_new(void);
struct evictions *evictions_free(struct evictions *v);

/* Creates the nodes of the file that do not exist, and the storage classes. */
void nodes_seed(struct embedded *e);
void volumes_seed(struct embedded *e);

/* services.c */
struct services *services_new(struct embedded *e);
void services_close(struct services *s, void (*closed)(void *ctx), void *ctx);
bool services_want(const struct resource *r, const cJSON *object);
void services_admit(struct services *s, struct arena *a, cJSON *object, const cJSON *old,
                    bool dry_run, void (*done)(void *ctx, const struct err *err), void *ctx);
void services_undo(struct services *s, const cJSON *object);
void services_seed(struct embedded *e);

/* logs.c */
struct logs *logs_new(struct embedded *e);
struct logs *logs_free(struct logs *l);
void logs_connect(struct logs *l, struct proxy *p);
void logs_pod_changed(struct logs *l, const struct store_object *pod, bool gone);

/* --- volumes, for the scheduler --- */

/* Upstream's message for a pod whose claims can never be bound; empty: none. */
struct str volumes_missing(struct reconcile *r, const cJSON *pod);
/* Claims that wait for the pod's node learn it; true while one is not bound. */
bool volumes_pending(struct reconcile *r, const cJSON *pod, struct str node);
