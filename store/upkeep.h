/* SPDX-License-Identifier: Apache-2.0
 * What keeps the store within its limits, and whole: which events stay, what a disk without room
 * takes, a damaged file, and objects in memory. */
#pragma once

#include <sublet/store.h>
#include "db.h"

struct job;

/* retain.c: which events stay in the history, and which of them in memory */
int64_t store_now(const struct store *s); /* seconds since 1970 */
void store_retain(struct store *s);
void retain_nothing_warm(struct store *s);
void retain_nothing(struct store *s);      /* the history begins anew */
int64_t retain_due(const struct store *s); /* seconds until everything is too old; -1: never */

/* disk.c: what a disk that is full or read-only takes, and when it is looked at again */
int store_disk_check(const struct store *s, const struct store_write *w, size_t before,
                     size_t after, struct err *err) MUST_CHECK;
void store_disk_start(struct store *s, const struct disk_state *now);
void store_disk_learn(struct store *s, const struct disk_state *now);
/* A delete was stored on a disk without room: there may be some now. */
void store_disk_hope(struct store *s);

/* rebuild.c: a file whose structure is damaged is made again of what is in memory */
/* At most once in REBUILD_EVERY_MS; only where nothing is under way and no callback ran since. */
void rebuild_prepare(struct store *s);
void rebuild_post(struct store *s);
void rebuild_answer(struct store *s, const struct job *job);

/* pack.c: moves objects together; only where no borrowed pointer to one is in use */
void store_pack(struct store *s);
