/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * ResourceSlices, ResourceClaims and, where the host serves them, DeviceTaintRules, watched for
 * GPUPools of mode dra. What the host refuses to show is said, and stops no other pool. */
#pragma once

#include <sublet/reflector.h>

#include "core/grant_claims.h"

struct grant_class_watch;
struct grant_class_watch_options {
    struct host *host;
    void (*changed)(void *ctx); /* what follows may be otherwise */
    void (*went_back)(void *ctx);
    void *ctx;
};
struct grant_class_watch *grant_class_watch_open(const struct grant_class_watch_options *options);
struct grant_class_watch *grant_class_watch_close(struct grant_class_watch *w); /* takes NULL */
void grant_class_watch_restart(struct grant_class_watch *w);                    /* takes NULL */
/* Are all read, or is it known why not? True for NULL. */
bool grant_class_watch_is_settled(const struct grant_class_watch *w);
/* Of this moment; of NULL: they are not enabled. */
struct grant_class_source grant_class_watch_source(const struct grant_class_watch *w);
void grant_class_watch_each(struct grant_class_watch *w,
                            void (*each)(void *ctx, const struct grant_claim *claim),
                            void *ctx); /* takes NULL */
