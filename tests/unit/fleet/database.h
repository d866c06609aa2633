/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ledger of a test is: in a directory of its own, or, with WORLD_POSTGRES, in a schema of
 * its own of a PostgreSQL that the test starts. */
#pragma once

#include "test.h"

#ifdef WORLD_POSTGRES
#include "postgres.h"
#else
#include <sqlite3.h>
#endif

static inline void database_new(char *ret_location, size_t size)
{
#ifdef WORLD_POSTGRES
    postgres_schema(ret_location, size);
#else
    snprintf(ret_location, size, "/tmp/sublet-fleet-XXXXXX");
    assert_non_null(mkdtemp(ret_location));
#endif
}

/* Behind the back of the ledger. False: the database refuses it. */
static inline bool database_run(const char *location, const char *sql)
{
#ifdef WORLD_POSTGRES
    (void)location;
    return postgres_run(sql);
#else
    char path[128];
    sqlite3 *db = NULL;
    bool done;

    snprintf(path, sizeof(path), "%s/ledger.db", location);
    done = sqlite3_open(path, &db) == SQLITE_OK &&
           sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(db);
    return done;
#endif
}
