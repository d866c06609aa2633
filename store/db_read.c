/* SPDX-License-Identifier: Apache-2.0
 * Reads versions back by revision, for events whose objects memory gave up. Runs on the writer
 * thread, between transactions; a row is given as it is found, and what it must be is the caller's
 * to know. */
#include "db_impl.h"
#include "db_load.h"

#include "table.h"

#include <assert.h>

/* 0, or -1 when it cannot be said whether there is such a row. */
static int read_row(struct db *db, sqlite3_stmt *q, struct db_row *row)
{
    struct db_version v;

    sqlite3_bind_int64(q, 1, row->revision);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        db_version_read(db, q, &v);
    if (rc == SQLITE_ROW && v.good) {
        row->object = store_object_new(&v);
        row->type = v.type;
    }
    bool answered =
        rc == SQLITE_ROW || rc == SQLITE_DONE; /* SQLite resets no statement (NULL) well */
    return sqlite3_reset(q) || !answered ? -1 : 0;
}

int db_read(struct db *db, struct db_row *rows, size_t n, size_t most_bytes, size_t *ret_n,
            struct err *err)
{
    sqlite3_stmt *q = db_statement(db, SQL_VERSION_READ);
    size_t bytes = 0, i;

    assert(db->magic == DB_MAGIC);
    for (i = 0; i < n && (i < DB_READ_MIN || bytes < most_bytes); i++) {
        if (read_row(db, q, &rows[i]))
            return db_error(db, "read", err);
        if (rows[i].object)
            bytes += store_object_size(rows[i].object);
    }
    *ret_n = i;
    return 0;
}
