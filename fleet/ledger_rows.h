/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the writer and the reader of the ledger share: the file, and statements. */
#pragma once

#include <sqlite3.h>

#include <sublet/fleet_ledger.h>

#define LEDGER_FILE   "ledger.db"
#define LEDGER_FORMAT 2 /* and 1, which readers know and the writer brings up to date */

/* STORAGE with SQLite's own message. */
int ledger_failed(sqlite3 *db, const char *doing, struct err *err);
void ledger_bind_str(sqlite3_stmt *statement, int index, struct str value);
/* meta's integer of this key, otherwise 0. */
int ledger_meta(sqlite3 *db, const char *key, int64_t *ret, struct err *err) MUST_CHECK;
int ledger_check_format(int64_t format, struct err *err) MUST_CHECK;
