/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * GPU seconds and cost of each tenant and pool since the ledger began, as counters of /metrics:
 * what the report of the ledger says, but never less than what was shown before. What was shown is
 * in a file beside the ledger, so that this holds for the next process too. Not for the loop: it
 * reads the ledger and waits for the disk. */
#pragma once

#include <sublet/buf.h>
#include <sublet/err.h>

/* Records that are written later than this after their time count from the next day on. */
#define COUNTER_SETTLED_US (INT64_C(3600) * 1000000)
#define COUNTER_FILE       "counters"

struct counter_book;
/* directory: of the file. location, identity: of the ledger; a file of another one counts for
 * nothing. */
struct counter_book *fleet_book_new(struct str directory, struct str location, uint64_t identity);
struct counter_book *fleet_book_free(struct counter_book *b); /* takes NULL, returns NULL */
/* Counts what the ledger has until seen_us: all of it once a day, month by month, else an hour or
 * two. The file is written before it returns. After an error the book must be freed. */
int fleet_book_count(struct counter_book *b, int64_t seen_us, struct err *err) MUST_CHECK;
/* The families, of what was counted last. */
void fleet_book_write(struct counter_book *b, struct buf *out);
/* Series of a family that were refused in a count, the most in one: there are enough. */
size_t fleet_book_refused(const struct counter_book *b);
