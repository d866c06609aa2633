/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The Lease and its effect on the API; standing notices about the host. */
#pragma once

#include "core/core.h"
#include "core/lease.h"

/* --- leader.c: the Lease's effect on the API --- */
void sync_leader_new(struct syncer *s);
void sync_leader_start(struct syncer *s);
void sync_leader_stop(struct syncer *s); /* refuses the writes that wait for the first decision */

/* --- lacking.c --- */
/* Of so many lives before its own a process records on the host where it branched off. */
#define SYNC_MOST_ANCESTORS 16
/* Finds the writes that the life which took over lacks, lists them in `lacking.txt` of the data
 * directory, and calls done() with a summary: once pending writes were committed and deletions read
 * from disk, or within this call where it is not known. One at a time. */
void sync_lacking_start(struct syncer *s, struct str our_epoch, struct str fork,
                        void (*done)(struct syncer *s, struct str report));
void sync_lacking_stop(struct syncer *s); /* done() is not called afterwards */

/* --- dialogue.c: standing notices about the host --- */
void sync_dialogue_watch(struct syncer *s);
/* A task of this process on the host fails ("kubeconfig"); reason NULL: it succeeds again. */
void sync_dialogue_note(struct syncer *s, const char *duty, const char *reason, struct str message,
                        struct str detail);
