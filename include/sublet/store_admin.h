/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * What the admin's commands and the metrics need of a store. store_restore and store_check work on
 * directories that no process has open. */
#pragma once

#include <sublet/store.h>

/* Makes the directory `path`, which must not hold a store, one from a backup. Errors: STORAGE. */
int store_restore(const char *backup, const char *path, struct err *err) MUST_CHECK;
/* Reads all of a store that no process has open, like a start would, and checks the file itself. */
int store_check(const char *path, struct err *err) MUST_CHECK;

/* Read-only by order, with a reason (copied; NULL: writes again): store_write() fails with
 * UNAVAILABLE and the reason. What is under way is committed; records may still be put, reads and
 * watches go on. */
#define STORE_READ_ONLY_RETRY_S 5
void store_set_read_only(struct store *s, const char *reason);
const char *store_read_only(const struct store *s); /* the reason, or NULL */

/* For metrics. */
struct store_stats {
    uint64_t commits, failures; /* transactions since the start */
    uint64_t operations;        /* writes in them, of objects and records */
    size_t events, event_bytes; /* history, and what it alone keeps in memory */
    size_t watches;
    size_t waiting_bytes; /* under way to the disk */
    size_t file_bytes, log_bytes;
};
void store_stats(const struct store *s, struct store_stats *ret);
