/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * What the admin's commands and the metrics need of a store. store_restore works on a
 * directory that no process has open. */
#pragma once

#include <sublet/store.h>

/* Makes the directory `path`, which must not hold a store, one from a backup. Errors: STORAGE.
 * Killed at any moment, the directory is as it was, or complete, or refuses to be opened until a
 * restore finishes. So does one that holds STORE_RESTORE_INPUT, with or without ".partial", and no
 * store: a backup on its way from a pipe. A source that is no backup leaves no directory
 * that was not there. */
#define STORE_RESTORE_INPUT "restore.db"
int store_restore(const char *backup, const char *path, struct err *err) MUST_CHECK;

/* Syncs the directory of a file: the file's name is durable with it. Errors: STORAGE. */
int store_sync_dir_of(const char *path, struct err *err) MUST_CHECK;

/* Checks a store's directory that no process has open, or one file: a backup. The checksums of all
 * rows, the structure of the file, and everything a start would find. Works on a copy, in $TMPDIR
 * or /tmp or else beside it: what is checked is only read. Returns the number of findings, or -1
 * when nothing could be said: the directory is in use, there is no file, no space for the copy.
 * calls may be NULL, and each of them. */
struct store_finding {
    const char *what;              /* "object", "record", "history", "file", "log", "row" */
    struct str resource, ns, name; /* of an object; else empty */
    struct str why;
};
struct store_check_calls {
    void (*finding)(void *ctx, const struct store_finding *f);
    void (*opened)(void *ctx, struct store *s); /* for reading only; not when a start would fail */
    void *ctx;
};
int store_check(const char *path, const struct store_options *options,
                const struct store_check_calls *calls, struct err *err) MUST_CHECK;

/* Read-only by order, with a reason (copied; NULL: writes again): store_write() fails with
 * UNAVAILABLE and the reason. What is under way is committed; records may still be put, reads and
 * watches go on. */
#define STORE_READ_ONLY_RETRY_S 5
void store_set_read_only(struct store *s, const char *reason);
const char *store_read_only(const struct store *s); /* the reason, or NULL */

/* For metrics. */
struct store_stats {
    uint64_t commits, failures;    /* transactions since the start */
    uint64_t operations;           /* writes in them, of objects and records */
    uint64_t reads, read_failures; /* of the history */
    size_t events;                 /* in the history */
    size_t event_bytes;            /* what it alone keeps in memory */
    size_t history_bytes;          /* and on disk */
    size_t watches;
    size_t waiting_bytes; /* under way to the disk */
    size_t file_bytes, log_bytes;
};
void store_stats(const struct store *s, struct store_stats *ret);
