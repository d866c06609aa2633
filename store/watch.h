/* SPDX-License-Identifier: Apache-2.0
 * A watch: a cursor in the history, the event it shows its caller, and its place among those that
 * wait for events to be read back. */
#pragma once

#include <sys/queue.h>
#include "impl.h"

#define WATCH_MAGIC 0x57617463u

struct store_watch {
    unsigned magic;
    struct store *store;
    struct table *table;           /* NULL: all resources */
    LIST_ENTRY(store_watch) other; /* in the list of the table, or of the store */
    uint64_t cursor;               /* the next event to look at */
    int64_t position; /* everything up to this revision was taken or did not concern it */
    bool expired;
    struct store_event event;  /* what store_watch_next() gave last: owns its objects */
    struct watch_queue *queue; /* NULL: it does not wait */
    TAILQ_ENTRY(store_watch) place;
    void (*wake)(void *ctx);
    void *ctx;
};

/* watch.c. Moves the cursor to the next event that concerns the watch, or to the end. */
void store_watch_skip(struct store_watch *w);
/* The first watch on a resource (0: on all of them), which may be dropped by now. */
struct store_watch *store_watch_first(const struct store *s, unsigned resource);

/* page.c: a run of cold events, read back for the watches that wait for one of them */
/* The objects of the event at the cursor, if they were read back. */
const struct history_pair *page_find(const struct store_watch *w);
bool page_has(const struct store_watch *w);
/* w waits: it is woken when the event at its cursor has been read, or cannot be. */
void page_want(struct store_watch *w);
void page_forget(struct store_watch *w); /* it waits no more */
/* Frees the page when no watch stands in it any more. */
void page_settle(struct store *s);
