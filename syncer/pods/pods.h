/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The pod controller: down, up, token Secrets, the cap on failed pods. */
#pragma once

#include "core/run.h"
#include "gpu/refused.h"

/* --- pod_down.c, pod_up.c --- */
int sync_pod_choose(struct syncer *s, struct arena *a, const cJSON *pod, struct pool_choice *ret,
                    struct err *err) MUST_CHECK;
int sync_pod_translate(struct syncer *s, struct arena *a, const cJSON *pod,
                       const struct pool_choice *choice, bool with_services, cJSON **ret,
                       struct err *err) MUST_CHECK;
void sync_pod_create(struct sync_run *run);
/* The host pod for a dry run: its account may come to the host with it. A copy. */
cJSON *sync_pod_to_judge(struct syncer *s, struct arena *a, const cJSON *host_pod);
/* This pod's host pod, as cached; NULL: it has none. */
const cJSON *sync_pod_on_host(struct syncer *s, struct arena *a, const cJSON *pod);
/* ... is on the node? */
bool sync_pod_is_on(struct syncer *s, struct arena *a, const cJSON *pod, struct str node);
/* Has the tenant changed it since it was created? */
bool sync_pod_is_changed(const cJSON *pod);
/* Has the host pod all that the virtual pod's present generation changed? */
bool sync_pod_is_applied(struct sync_run *run);
/* True: a request is pending. */
bool sync_pod_update_down(struct sync_run *run);
/* True: a write is pending; if it turns out to change nothing, sync_pod_settled() follows. */
bool sync_pod_update_up(struct sync_run *run);
/* Writes the status of run->virtual_. sync_pod_settled() follows as well. */
void sync_pod_write_status(struct sync_run *run);
void sync_pod_settled(struct sync_run *run); /* the steps after the virtual pod is up to date */
void sync_pod_remove_virtual(struct sync_run *run, int64_t grace_s);
/* Clears its node and status: it will be created again. */
void sync_pod_unbind(struct sync_run *run);
/* Does the host pod, which carries another virtual uid, match this virtual pod's translation? */
bool sync_pod_fits_host(struct sync_run *run);
/* Sets the PodScheduled condition of a virtual pod that is not on the host. False: it has it. */
bool sync_pod_say_waiting(struct sync_run *run, const char *reason, struct str message);
/* Writes the last status of a pod whose host pod was deleted. False: the virtual pod has it. */
bool sync_pod_last_up(struct sync_run *run);
/* --- reclaim.c: GPUs that the fleet takes back --- */
struct reclaims;
struct reclaims *sync_reclaims_new(struct syncer *s);
struct reclaims *sync_reclaims_free(struct reclaims *r);
/* A pod of the host or a binding has changed: which pods are to end is chosen again. all: they are
 * looked at again as well, whether they are still the same or not. */
void sync_reclaims_look(struct reclaims *r, bool all);
/* Announces the end of a pod that is to end, takes that back, or ends it. True: a request or write
 * is pending. */
bool sync_pod_reclaim(struct sync_run *run);
/* Pods that ended by it since the process began, for vapi_add_metrics(). */
void sync_reclaims_metrics(void *syncer, struct buf *out);
/* The host was restored, or another one answers: what it says of a reclaim may be out of date. */
void sync_reclaims_host_changed(struct reclaims *r); /* takes NULL */

/* --- queued.c: pods that wait in a queue of the host --- */
struct queued;
struct queued *sync_queued_new(struct syncer *s);
struct queued *sync_queued_free(struct queued *q);
void sync_queued_stop(struct queued *q);
void sync_queued_kick(struct queued *q);
void sync_queued_restart(struct queued *q); /* the host was restored, or another one answers */
/* The uid of the Workload of this name; empty: there is none, or it is not known yet. */
struct str sync_queued_workload(struct queued *q, struct str name);
/* A host pod that waits in its queue: its condition in run->host says why. */
void sync_pod_explain_queue(struct sync_run *run);

/* --- last_status.c: of pods that were deleted on the host --- */
struct last_statuses *sync_last_statuses_new(void);
struct last_statuses *sync_last_statuses_free(struct last_statuses *l);
/* before and host: the host pod as cached, and its tree. */
void sync_last_status_note(struct syncer *s, const struct host_object *before, const cJSON *host);
void sync_last_status_drop(struct syncer *s, struct str key);
/* The status that the virtual pod has to get; NULL: it has it, or it was written. */
cJSON *sync_last_status(struct sync_run *run);
void sync_last_status_written(struct sync_run *run);
/* Was the deletion of the host pod requested? Not known after a restart. */
bool sync_last_was_deleted(const struct sync_run *run);

/* --- node_loss.c --- */
#define POD_NODE_LOST "NodeLost" /* status.reason, as upstream's */
/* A host pod whose node does not answer: its status says so in run->host, and after the time that
 * its pool allows it is deleted there for good. True: that request is pending. */
bool sync_pod_loss(struct sync_run *run);

/* --- retry.c --- */
/* ledger_options.retry; ctx is the syncer. */
bool sync_retry_owner(void *ctx, const struct refused_owner *owner);
/* ledger_options.lacks, the same */
size_t sync_owner_lacks(void *ctx, const struct refused_owner *owner, struct refused_count *known);

/* --- tokens.c --- */
/* True: the pod's token Secret is up to date, or it needs none. False: a request is pending. */
bool sync_tokens_ensure(struct sync_run *run);
/* True: it does not exist. */
bool sync_tokens_remove(struct sync_run *run);

/* --- failed.c: the cap on failed pods --- */
struct failed_pods *sync_failed_new(struct syncer *s);
struct failed_pods *sync_failed_free(struct failed_pods *f);
/* True: this one exceeds the cap and is to be deleted on the host. */
bool sync_failed_note(struct failed_pods *f, struct str key, bool failed);
