/* SPDX-License-Identifier: Apache-2.0
 * Checksums of rows: the first 64 bits of SHA-256 over the name of the table and the type and value
 * of every column. A cryptographic hash, because its cost is not worth the reasoning a shorter one
 * needs: no damage, however it looks, passes more often than once in 10^19. Measured for a write of
 * 1.5 KB with the processor's SHA instructions: 1.9 us for the version, 0.6 us for its row of the
 * trail, 0.2 us for the key, of 20 us in the writer and 100 us of a create over HTTP. Rows are
 * hashed in C as they are bound and read; for other statements it is the SQL function
 * row_sum(table, column...).
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>
#include <sublet/str.h>

struct sum;

struct sum *db_sum_new(void);
struct sum *db_sum_free(struct sum *s); /* takes NULL, returns NULL */
/* Makes row_sum() known to a connection; s must outlive it. */
int db_sum_register(struct sum *s, sqlite3 *sql);

/* A row to be written: each call binds the next parameter of the statement and hashes it, so that
 * what is written is what the checksum is of; db_row_end() binds the checksum after the last one.
 * Blobs and strings are borrowed. */
struct row {
    struct sum *sum;
    sqlite3_stmt *q;
    int n;
};
struct row db_row_begin(struct sum *s, sqlite3_stmt *q, struct str table);
void db_row_integer(struct row *r, int64_t value);
void db_row_text(struct row *r, struct str value);
void db_row_blob(struct row *r, struct str value);
void db_row_end(struct row *r);
/* A row that was read, all columns in their order and the checksum after them. To be called before
 * any column is read: reading one as another type changes it. */
bool db_row_is_good(struct sum *s, sqlite3_stmt *q, struct str table);

/* What stands for the key of an object wherever its name does not: row_sum('key', ...). */
int64_t db_sum_key(struct sum *s, struct str resource, struct str ns, struct str name);

/* The columns of a row, in the order in which they are stored and hashed. */
#define VERSION_COLUMNS                                                                            \
    "revision, at, type, resource, skip, ns, name, uid, labels, fields, bytes, key"
#define VERSION_SUM "row_sum('version', " VERSION_COLUMNS ")"
#define TRAIL_SUM   "row_sum('trail', revision, type, key)"
#define META_SUM    "row_sum('meta', key, value)"
