/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What the host would say to an object. */
#pragma once

#include "core/core.h"

/* --- dry_run.c --- */
struct dry_runs *dry_runs_new(struct syncer *s);
struct dry_runs *dry_runs_free(struct dry_runs *d);
void dry_runs_forget(struct dry_runs *d); /* the host answers otherwise by now */
enum dry_run_patience {
    DRY_RUN_NOW,    /* not asked when others have to go first */
    DRY_RUN_URGENT, /* a write waits for it */
    DRY_RUN_PATIENT /* a tenant's own dry run: after those */
};
struct dry_run {
    enum sync_id id;
    const cJSON *object;   /* of the host, under its real name */
    struct str also_named; /* what else in it is only its own */
    enum dry_run_patience patience;
    int64_t timeout_ms;
};
/* host_name: under which it was asked about. err NULL: admitted, and body is the answer unless that
 * was long. TOO_MANY_REQUESTS: it had no turn; refused: see below; other errors: no answer. */
typedef void (*dry_run_cb)(void *ctx, struct str host_name, struct str body, const struct err *err);
/* done() comes exactly once, from the loop. */
void dry_run_ask(struct syncer *s, struct arena *a, const struct dry_run *q, dry_run_cb done,
                 void *ctx);
bool dry_run_refused(const struct err *err); /* the host would refuse the object itself */
