/* SPDX-License-Identifier: Apache-2.0 */
/* The host cluster as a model: objects in one namespace, the history of every change, and a
 * scheduler and kubelet in a few lines. It can be put back to any earlier revision, as an admin
 * restores a cluster. It knows no network (wire.h) and no tenant: what a request may do is for
 * judge.h to say, before it is done. */
#pragma once

#include <sublet/json.h>

#include "../moment.h"

struct host_model;

struct host_event {
    const char *type; /* literal */
    char *plural, *name;
    struct str bytes;
    uint64_t revision;
    bool ours;
};

struct host_object_model {
    struct host_object_model *next;
    char *plural, *name;
    struct str bytes;
    uint64_t revision;
};

struct host_model *host_model_new(struct moment *m);
/* changed() after every change; also reported: an object of ours left and no request of the tenant
 * was the reason. */
void host_model_on_change(struct host_model *h, void (*changed)(void *ctx),
                          void (*left)(void *ctx, const char *plural, struct str virtual_uid),
                          void *ctx);

uint64_t host_model_revision(const struct host_model *h);
uint64_t host_model_forgotten(const struct host_model *h); /* watches from before it get 410 */
void host_model_forget(struct host_model *h);              /* a compaction */
const struct host_event *host_model_event(const struct host_model *h, size_t at); /* or NULL */
const struct host_object_model *host_model_first(const struct host_model *h);
const struct host_object_model *host_model_find(const struct host_model *h, const char *plural,
                                                const char *name);

/* Changes. Trees are the caller's; what the host adds to them is added in place. */
void host_model_create(struct host_model *h, struct arena *a, const char *plural, cJSON *tree);
void host_model_fill(struct host_model *h, struct arena *a, const char *plural, cJSON *tree);
void host_model_store(struct host_model *h, struct arena *a, const char *plural, cJSON *tree);
/* Without an event: only a list shows it. */
void host_model_put_unseen(struct host_model *h, struct arena *a, const char *plural, cJSON *tree);
void host_model_drop(struct host_model *h, const char *plural, const char *name, bool by_tenant);

/* The scheduler and the kubelet look at every pod. */
void host_model_tick(struct host_model *h);
/* Some pod that runs ends by itself. */
bool host_model_finish_pod(struct host_model *h, const char *phase);
/* The host's admin: removes, or puts a mark on, an object of ours. */
bool host_model_remove_any(struct host_model *h, const char *plural);
bool host_model_edit_any(struct host_model *h, const char *plural);
/* The admin restores the whole cluster to what it was at a revision; uids are never used again.
 * 0: to an empty cluster with the same nodes. */
void host_model_roll_back(struct host_model *h, uint64_t revision);

bool host_is_ours(const cJSON *tree);
struct str host_virtual_uid(const cJSON *tree);
cJSON *host_parse(struct arena *a, struct str bytes);
int64_t host_pod_gpus(const cJSON *pod);
bool host_pod_is_finished(const cJSON *pod);
