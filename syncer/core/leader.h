/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Who leads, what it means for the API, and what is wrong with the host. */
#pragma once

#include "core/core.h"
#include "core/lease.h"

/* --- leader.c: what the Lease means for the API --- */
void leader_new(struct syncer *s);
void leader_start(struct syncer *s);
void leader_stop(struct syncer *s); /* answers what waits for the first decision */

/* --- lacking.c --- */
/* Finds out what of our data the life that took over lacks, writes all of it to `lacking.txt` in
 * the data directory, and says so to done(), at once or once deletions were read from disk. One at
 * a time. */
void lacking_start(struct syncer *s, struct str our_epoch, struct str fork,
                   void (*done)(struct syncer *s, struct str report));
void lacking_stop(struct syncer *s); /* done() is not called any more */

/* --- dialogue.c: what is wrong with the host, as standing notices --- */
void dialogue_watch(struct syncer *s);
/* A duty of its own towards the host is not done ("kubeconfig"); reason NULL: it is. */
void dialogue_note(struct syncer *s, const char *duty, const char *reason, struct str message,
                   struct str detail);
