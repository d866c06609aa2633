/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * PersistentVolumes that `sync.toHost.persistentVolumes` sends down, by down.c, and the claims that
 * name them, by claims.c. */
#pragma once

#include "core/run.h"

/* translate_tenant.volume_down; ctx: the syncer. */
bool sync_volume_is_for_host(void *ctx, struct str volume);
void sync_volume_rescan(struct syncer *s); /* adds all, where they go down */
/* At admission. FORBIDDEN for a created volume that can never go down. */
int sync_volume_check(const struct syncer *s, const cJSON *object, const cJSON *old,
                      struct err *err) MUST_CHECK;
/* Creates the host object, unless another volume of the host has its handle. */
void sync_volume_create(struct sync_run *run, const cJSON *wanted);
/* What the host object lacks of the wanted one; see struct sync_change. */
cJSON *sync_volume_lacks(struct sync_run *run, const cJSON *wanted);
/* A volume that may not go down, or has no claim: nothing on the host is deleted for that. */
void sync_volume_stays(struct sync_run *run);
bool sync_volume_fits_host(struct sync_run *run);
/* Of a claim that names such a volume: binds both in the virtual cluster, waits for the volume and
 * creates the host claim. err: the claim is refused. */
void sync_volume_claim(struct sync_run *run, struct err *err);
