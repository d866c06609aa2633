/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Gangs (scheduler.gang of a pool): which group a pod is in, and the PodGroups of KAI and Volcano.
 */
#pragma once

#include "core/run.h"

struct gangs;
struct gangs *sync_gangs_new(struct syncer *s);
struct gangs *sync_gangs_free(struct gangs *all); /* takes NULL */
void sync_gangs_start(struct gangs *all);
void sync_gangs_rescan(struct gangs *all);
void sync_gangs_restart(struct gangs *all); /* the host was restored, or another one answers */
void sync_gangs_kick(struct gangs *all);
void sync_gangs_stop(struct gangs *all); /* closes the watches */
size_t sync_gangs_close(struct gangs *all, void (*closed)(void *ctx), void *ctx);

/* Sets the group of choice: the one its host pod is in, or that of its owner. */
void sync_gang_choose(struct syncer *s, struct arena *a, const cJSON *pod,
                      struct pool_choice *choice);
/* True: its PodGroup is on the host, or it needs none. False: the pod's key is added again when it
 * is; *ret says what it waits for, if that is the host's admin. */
bool sync_gang_ready(struct sync_run *run, const struct pool_choice *choice, struct str *ret);
/* A group that has ended in the virtual cluster, and whose pods Kueue holds: says that none is
 * replaced, or deletes its Workload. True: a request is pending. */
bool sync_gang_end(struct sync_run *run);
/* A host pod was deleted: its group may be unowned. */
void sync_gangs_host_pod_gone(struct gangs *all, const cJSON *host_pod);
