/* SPDX-License-Identifier: Apache-2.0
 * A damaged file is made again of what can be read of it. */
#pragma once

#include "db_impl.h"

/* db_salvage.c: makes a file whose structure is damaged again, of what can be read of it; `due`: it
 * is known to be. */
int db_salvage(struct db *db, bool due, bool *ret_salvaged, struct err *err) MUST_CHECK;
/* The same on a disk that takes nothing: db is a database in memory from here on, which takes
 * nothing either. */
int db_salvage_in_memory(struct db *db, struct err *err) MUST_CHECK;
/* What there is of a file without its tail is read from here on. Only what salvages it may. */
void db_salvage_accept(struct db *db);
/* Its parts. *ret_due: SQLite finds the structure damaged, and the disk is not to blame. -1: that
 * could not be found out. */
int db_salvage_due(struct db *db, bool *ret_due, struct err *err) MUST_CHECK;
/* A file of its own that takes the place of db's, with what fill() puts into its tables. Once it is
 * in place db is disconnected. */
typedef int (*db_fill)(struct db *from, struct db *to, const void *ctx, struct err *err);
int db_salvage_replace(struct db *db, db_fill fill, const void *ctx, struct err *err) MUST_CHECK;
/* The names of resources that can be read. */
int db_salvage_resources(struct db *from, struct db *to, struct err *err) MUST_CHECK;
/* The version of a revision and its trail, as they are; *ret_copied: at least one of them. */
int db_salvage_row(struct db *from, struct db *to, int64_t revision, bool *ret_copied,
                   struct err *err) MUST_CHECK;
