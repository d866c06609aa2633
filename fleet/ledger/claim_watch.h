/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * ResourceSlices and ResourceClaims of the host, watched for the ledger: only where a metered pool
 * is of mode dra. Slices first, then the owner's nodes and pods, then claims, so that each finds
 * what it counts by. What the host refuses to show ends the process, as with pods. With slices
 * DeviceTaintRules, which the host may not serve. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/reflector.h>

#include "core/grant_devices.h"

struct claim_watch_options {
    void (*slices_listed)(void *ctx); /* once: nodes can be counted */
    void (*node)(void *ctx, struct str node);
    /* now NULL: it is gone, or another claim has its name. */
    void (*claim)(void *ctx, const struct host_object *now, const struct host_object *before);
    void (*claims_current)(void *ctx, bool listed);
    void (*refused)(void *ctx, const struct err *err);
    void (*went_back)(void *ctx);
    void *ctx;
};
struct claim_watch;
bool claim_watch_is_needed(const struct config_pool *pools, size_t n_pools);
struct claim_watch *claim_watch_new(const struct claim_watch_options *options);
struct claim_watch *claim_watch_free(struct claim_watch *w);       /* takes NULL, returns NULL */
void claim_watch_slices(struct claim_watch *w, struct host *host); /* begins, of this host */
void claim_watch_claims(struct claim_watch *w);           /* begins, if it did not, after slices */
bool claim_watch_is_current(const struct claim_watch *w); /* all of it is listed; true for NULL */
void claim_watch_restart(struct claim_watch *w);          /* takes NULL */
void claim_watch_each(struct claim_watch *w, void (*each)(void *ctx, const struct host_object *o),
                      void *ctx);
struct grant_devices *claim_watch_devices(struct claim_watch *w); /* NULL for NULL */
