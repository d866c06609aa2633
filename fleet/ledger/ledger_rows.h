/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the reader of the ledger is, to what computes usage from it. */
#pragma once

#include <sublet/fleet_ledger.h>
#include <sublet/hash.h>

#include "ledger_db.h"

/* Of a hold, when it was, and which. */
struct ledger_span {
    int64_t begin_us, end_us, id;
};
/* A read transaction. Strings that recur live in `a`, once; rows and other strings in `rows`. */
struct ledger_reading {
    struct arena *a, *rows;
    struct fleet_records *records; /* where the tables go */
    int64_t from_us, until_us;
    size_t caps[6];
    int64_t *ids;  /* of the holds */
    size_t at;     /* the hold of the last activity */
    bool too_many; /* holds for the arena's limit */
    bool old;      /* of format 1 */
    struct map interned;
    struct map nodes, priced; /* of struct track */
    struct ledger_span *spans;
    size_t n_spans;
    struct map pools; /* of the spans */
    struct ledger_db *db;
    struct ledger_query *hold, *activity;
};
/* Begins it, and reads all but holds and what they did. To be closed whatever it returns. */
int ledger_reading_open(struct ledger_reading *r, struct arena *a, struct str location,
                        int64_t from_us, int64_t until_us, struct fleet_records *ret,
                        struct err *err) MUST_CHECK;
void ledger_reading_close(struct ledger_reading *r);
/* Into r->spans, those of the period in order of begin; r->pools; whether any has an activity. */
int ledger_read_spans(struct ledger_reading *r, struct err *err) MUST_CHECK;
/* The holds with these ids, which ascend, and their activities, into an arena of their own. */
int ledger_read_holds(struct ledger_reading *r, struct arena *rows, const int64_t *ids, size_t n,
                      struct fleet_records *ret, struct err *err) MUST_CHECK;
