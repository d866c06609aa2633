/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * What a start from a store would do to the host, found by comparing the two: for `sublet restore
 * --plan`. Reads only; the store and the host stay as they are. */
#pragma once

#include <sublet/config.h>

struct store;
struct uv_loop_s;

enum restore_action {
    RESTORE_KEEP,       /* on the host as recorded, or finished: nothing happens */
    RESTORE_CREATE,     /* missing on the host, or terminating there: created again under its uid */
    RESTORE_ADOPT,      /* newer than the backup, of the name of an object in it: taken over */
    RESTORE_QUARANTINE, /* newer than the backup: kept and charged */
    RESTORE_DELETE,     /* its deletion was under way when the backup was made */
    RESTORE_DAMAGED, /* the backup has it, and it cannot be read: what the host has of it stays */
    RESTORE_WAIT,    /* the Lease: the start waits before it changes the host; detail: why */
    N_RESTORE_ACTIONS
};
struct restore_step {
    enum restore_action action;
    struct str resource; /* "pods", "ingresses.networking.k8s.io" */
    struct str ns, name; /* ns may be empty */
    struct str detail;   /* may be empty; "tokens": the Secret with the tokens of that pod */
};
typedef void (*restore_step_cb)(void *ctx, const struct restore_step *step);
/* Runs the loop until the host has answered. step() comes once for each object that has been on the
 * host or is, in order of kind. Errors: of the host, with what was requested. */
int restore_plan(struct uv_loop_s *loop, struct store *store, const struct config *config,
                 restore_step_cb step, void *ctx, struct err *err) MUST_CHECK;
