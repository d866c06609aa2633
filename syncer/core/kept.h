/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Fields that the host accepted and did not keep. */
#pragma once

#include "core/compare.h"

#define DROPPED_WHY "its version or its feature gates lack them, or a webhook there removes them"

enum { DROPPED_MAX = 16 };
struct dropped {
    struct str paths[DROPPED_MAX]; /* the first ones, in the arena */
    size_t n;                      /* all of them */
};
/* Of sync_compare_kept(). An answer too large to be compared has those that were found. */
void sync_dropped(struct arena *a, const cJSON *sent, const cJSON *answer, struct dropped *ret);
/* Leaves those that the other one has too. */
void sync_dropped_both(struct dropped *d, const struct dropped *other);
/* "spec.hostUsers, spec.volumes[v].image and 3 more"; empty: everything was kept. */
struct str sync_dropped_text(struct arena *a, const struct dropped *d);
/* Is one of them such that the pod is another one without it: its volumes, devices, gates, user
 * namespace or security contexts? Requests and limits are not: policies of a host remove them. */
bool sync_dropped_changes_pod(const struct dropped *d);
