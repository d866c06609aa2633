/* SPDX-License-Identifier: Apache-2.0 */
/* A store that is opened at once on a copy of a disk, outside any process of the history: what a
 * start would find there. It passes no virtual time. */
#pragma once

#include <uv.h>

#include <sublet/store.h>
#include <sublet/store_executor.h>

struct opened {
    struct store *store;
    uv_loop_t loop;
    struct store_executor executor;
    void (*run)(void *arg); /* the writer's next job, or its answer */
    void *arg;
};

/* 0, or -1 with err: nothing to close then. */
int opened_open(struct opened *o, const char *path, struct err *err) MUST_CHECK;
void opened_close(struct opened *o);
/* Writes n objects, each answered before the next one. */
void opened_write(struct opened *o, unsigned n);
/* Of all objects, with their revisions. */
uint64_t opened_hash(struct opened *o);
/* Of the closed file at this path: removes a row of meta from it, and leaves it without a log. */
void opened_forget(const char *path, const char *key);
/* Which log the closed file at this path belongs to, by store/db_mark.c; 0: it does not say. */
int64_t opened_mark(const char *path);
