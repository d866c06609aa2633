/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Dry runs: would the host accept this object, or this resize of a pod? */
#pragma once

#include "core/core.h"

/* --- dry_run.c --- */
struct dry_runs *sync_dry_runs_new(struct syncer *s);
struct dry_runs *sync_dry_runs_free(struct dry_runs *d);
void sync_dry_runs_forget(struct dry_runs *d); /* cached answers are out of date */
enum dry_run_patience {
    DRY_RUN_NOW,    /* fails at once where the rate leaves no room */
    DRY_RUN_URGENT, /* a write waits for it */
    DRY_RUN_PATIENT /* a tenant's own dry run: after the urgent ones */
};
struct dry_run {
    enum sync_id id;
    const cJSON *object;   /* of the host, under its real name; or a patch of `resizes` */
    struct str resizes;    /* the host pod to be resized; empty: the object is to be created */
    struct str also_named; /* another name in it that is unique to the object; may be empty */
    enum dry_run_patience patience;
    int64_t timeout_ms;
};
struct dry_result {
    struct str host_name; /* metadata.name in the dry run */
    struct str body;      /* the answer, empty where it was too long */
    struct str dropped;   /* what the answer lacks (core/kept.h), as text; empty: nothing */
    bool changes_pod;     /* sync_dropped_changes_pod() */
};
/* err NULL: admitted. TOO_MANY_REQUESTS: not sent, for lack of rate. Refused: see
 * sync_dry_run_refused(). Other errors: no answer. */
typedef void (*dry_run_cb)(void *ctx, const struct dry_result *result, const struct err *err);
/* Calls done() exactly once, from the loop. */
void sync_dry_run_send(struct syncer *s, struct arena *a, const struct dry_run *q, dry_run_cb done,
                       void *ctx);
bool sync_dry_run_refused(const struct err *err); /* the host would refuse the object itself */
