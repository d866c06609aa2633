/* SPDX-License-Identifier: Apache-2.0
 * Rows read back from the disk, by the writer, for those that meet cold events of the history:
 * pages for watches (page.c), recalls for scans (recall.c). One reading at a time. */
#pragma once

#include <sublet/store_recall.h>
#include "db.h"

struct history_pair;
struct history_slot;
struct job;

/* Rows on their way from the disk. */
struct reading {
    enum { READ_DISCARDED, READ_PAGE, READ_RECALL } kind;
    struct store_recall *recall;
    unsigned resource;   /* of a page; 0: all */
    uint64_t first, end; /* the events they are of */
    struct db_row *rows; /* NULL: none are under way */
    size_t n, n_read, most_bytes;
};

/* page.c: reading back for watches */
bool page_due(const struct store *s);
void page_request(struct store *s, struct reading *r);
void page_answer(struct store *s, const struct reading *r, bool failed);

/* recall.c: reading back for scans, and whatever both have in common */
bool recall_reads_due(const struct store *s);
void recall_reads_post(struct store *s);
void recall_reads_answer(struct store *s, const struct job *job);
void recall_reading_add(struct reading *r, int64_t revision); /* once; 0: no revision */
struct db_row *recall_reading_find(const struct reading *r,
                                   int64_t revision); /* among those read */
bool recall_row_readable(const struct store *s, const struct db_row *row, unsigned resource);
/* The event cannot be delivered: watches and scans from before it must list again. */
void recall_event_lost(struct store *s, struct history_slot *slot);
/* The objects of an event leave memory. */
void recalls_keep(struct store *s, const struct history_slot *slot,
                  const struct history_pair *pair);
/* What a scan needs of cold events; borrowed. False: it was not recalled. */
bool recall_objects(const struct store *s, unsigned resource, int64_t revision,
                    const struct store_object ***ret, size_t *ret_n);
void recalls_fini(struct store *s);
