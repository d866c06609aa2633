/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The pod controller: down, up, token Secrets, the cap on failed pods. */
#pragma once

#include "core/run.h"

/* --- pod_down.c, pod_up.c --- */
int sync_pod_choose(struct syncer *s, struct arena *a, const cJSON *pod, struct pool_choice *ret,
                    struct err *err) MUST_CHECK;
int sync_pod_translate(struct syncer *s, struct arena *a, const cJSON *pod,
                       const struct pool_choice *choice, bool with_services, cJSON **ret,
                       struct err *err) MUST_CHECK;
void sync_pod_create(struct sync_run *run);
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
