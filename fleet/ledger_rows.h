/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the writer and the reader of the ledger share: the file, and statements. */
#pragma once

#include <sqlite3.h>

#include <sublet/fleet_ledger.h>
#include <sublet/hash.h>

#define LEDGER_FILE   "ledger.db"
#define LEDGER_FORMAT 2 /* and 1, which readers know and the writer brings up to date */

/* STORAGE with SQLite's own message. */
int ledger_failed(sqlite3 *db, const char *doing, struct err *err);
void ledger_bind_str(sqlite3_stmt *statement, int index, struct str value);
/* meta's integer of this key, otherwise 0. */
int ledger_meta(sqlite3 *db, const char *key, int64_t *ret, struct err *err) MUST_CHECK;
int ledger_check_format(int64_t format, struct err *err) MUST_CHECK;

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
    sqlite3 *db;
    sqlite3_stmt *hold, *activity;
};
/* Begins it, and reads all but holds and what they did. To be closed whatever it returns. */
int ledger_reading_open(struct ledger_reading *r, struct arena *a, struct str directory,
                        int64_t from_us, int64_t until_us, struct fleet_records *ret,
                        struct err *err) MUST_CHECK;
void ledger_reading_close(struct ledger_reading *r);
/* Into r->spans, those of the period in order of begin; r->pools; whether any has an activity. */
int ledger_read_spans(struct ledger_reading *r, struct err *err) MUST_CHECK;
/* The holds with these ids, which ascend, and their activities, into an arena of their own. */
int ledger_read_holds(struct ledger_reading *r, struct arena *rows, const int64_t *ids, size_t n,
                      struct fleet_records *ret, struct err *err) MUST_CHECK;
