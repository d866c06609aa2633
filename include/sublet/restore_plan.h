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
    RESTORE_CREATE,     /* missing on the host: created again under its uid */
    RESTORE_ADOPT,      /* newer than the backup, of the name of an object in it: taken over (a pod
                           that differs goes into quarantine) */
    RESTORE_QUARANTINE, /* newer than the backup: kept and charged */
    RESTORE_DELETE,     /* its deletion was under way when the backup was made */
    N_RESTORE_ACTIONS
};
typedef void (*restore_step_cb)(void *ctx, enum restore_action action, const char *plural,
                                struct str ns, struct str name);
/* Runs the loop until the host has answered. step() comes once for each object that is in the store
 * or on the host. Errors: of the host, with what was requested. */
int restore_plan(struct uv_loop_s *loop, struct store *store, const struct config *config,
                 restore_step_cb step, void *ctx, struct err *err) MUST_CHECK;
