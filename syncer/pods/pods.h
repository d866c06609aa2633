/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Pods: down, up, their token Secrets, the cap on failed ones. */
#pragma once

#include "core/run.h"

/* --- pod_down.c, pod_up.c --- */
int pod_choose(struct syncer *s, struct arena *a, const cJSON *pod, struct pool_choice *ret,
               struct err *err) MUST_CHECK;
int pod_translate(struct syncer *s, struct arena *a, const cJSON *pod,
                  const struct pool_choice *choice, bool with_services, cJSON **ret,
                  struct err *err) MUST_CHECK;
void pod_create(struct sync_run *run);
/* Does this pod's host pod, as watched, run on the node? */
bool pod_is_on(struct syncer *s, struct arena *a, const cJSON *pod, struct str node);
/* True: a change is under way. */
bool pod_update_down(struct sync_run *run);
/* True: a write is under way; when it turns out to have changed nothing, pod_settled() follows. */
bool pod_update_up(struct sync_run *run);
void pod_settled(struct sync_run *run); /* what is left to do when the tenant knows it all */
void pod_remove_virtual(struct sync_run *run, int64_t grace_s);
/* It has to run again: its node and what was reported of it are taken back. */
void pod_unbind(struct sync_run *run);
/* Is the host's pod, of another uid, what this virtual pod would be made into? */
bool pod_fits_host(struct sync_run *run);
/* The virtual pod's PodScheduled condition while it is not on the host. */
void pod_say_waiting(struct sync_run *run, const char *reason, struct str message);

/* --- tokens.c --- */
/* True: the pod's token Secret is as it must be (or none is wanted). False: the run does it, or
 * waits. */
bool tokens_ensure(struct sync_run *run);
/* True: it is gone. */
bool tokens_remove(struct sync_run *run);

/* --- failed.c: the cap on failed pods --- */
struct failed_pods *failed_new(struct syncer *s);
struct failed_pods *failed_free(struct failed_pods *f);
/* True: this one has to go. */
bool failed_note(struct failed_pods *f, struct str key, bool failed);
