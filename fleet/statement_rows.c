/* SPDX-License-Identifier: Apache-2.0 */
/* Statements in the ledger: a table of their bytes, to which rows are only added. Another process
 * writes the ledger meanwhile, so that a transaction here is one row and one fsync. Must not record
 * two statements of a number or of a begin, which unique keys decide. */
#include "statement.h"

#include "ledger_rows.h"

#include <assert.h>

#define ROWS_MAGIC 0x73746d74u

/* A ledger has it from its first statement on. */
static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS statement(id INTEGER PRIMARY KEY, tenant TEXT NOT NULL,"
    " number INTEGER NOT NULL, from_us INTEGER NOT NULL, until_us INTEGER NOT NULL,"
    " text TEXT NOT NULL, UNIQUE(tenant, number), UNIQUE(tenant, from_us)) STRICT;"
    "CREATE TRIGGER IF NOT EXISTS statement_kept BEFORE DELETE ON statement"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
    "CREATE TRIGGER IF NOT EXISTS statement_fixed BEFORE UPDATE ON statement"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;";

static const char LAST[] = "SELECT number, from_us, until_us, text FROM statement"
                           " WHERE tenant = ?1 ORDER BY number DESC LIMIT 1";
static const char SAME[] = "SELECT number, from_us, until_us, text FROM statement"
                           " WHERE tenant = ?1 AND from_us = ?2 AND until_us = ?3";
static const char INSERT[] = "INSERT INTO statement(tenant, number, from_us, until_us, text)"
                             " VALUES(?1,?2,?3,?4,?5)";

struct statement_rows {
    unsigned magic;
    sqlite3 *db;
    int64_t identity;
};

static int exec(struct statement_rows *r, const char *sql, struct err *err)
{
    return sqlite3_exec(r->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : ledger_failed(r->db, "ledger", err);
}

static int open_database(struct statement_rows *r, const char *path, struct err *err)
{
    int64_t format;

    if (sqlite3_open_v2(path, &r->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(r->db, 10000) != SQLITE_OK)
        return ledger_failed(r->db, path, err);
    return exec(r, "PRAGMA trusted_schema=OFF; PRAGMA synchronous=FULL", err) ||
                   ledger_meta(r->db, "format", &format, err) || ledger_check_format(format, err) ||
                   ledger_meta(r->db, "identity", &r->identity, err) || exec(r, SCHEMA, err)
               ? -1
               : 0;
}

int statement_rows_open(struct str directory, struct statement_rows **ret, struct err *err)
{
    struct statement_rows *r = NEW(struct statement_rows);
    struct arena *a = arena_new(0);
    int result;

    *r = (struct statement_rows){.magic = ROWS_MAGIC};
    result = open_database(r, arena_printf(a, "%.*s/" LEDGER_FILE, STR_F(directory)).p, err);
    arena_free(a);
    if (result) {
        statement_rows_close(r);
        return -1;
    }
    *ret = r;
    return 0;
}

struct statement_rows *statement_rows_close(struct statement_rows *r)
{
    if (!r)
        return NULL;
    assert(r->magic == ROWS_MAGIC);
    sqlite3_close(r->db);
    r->magic = 0;
    return mem_free(r);
}

uint64_t statement_rows_identity(const struct statement_rows *r)
{
    return (uint64_t)r->identity;
}

static int find(struct statement_rows *r, struct arena *a, const char *sql, struct str tenant,
                const int64_t period[2], struct statement_row *ret, struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(r->db, sql, -1, &s, NULL);

    *ret = (struct statement_row){0};
    if (code == SQLITE_OK) {
        ledger_bind_str(s, 1, tenant);
        for (int i = 2; i <= sqlite3_bind_parameter_count(s); i++)
            sqlite3_bind_int64(s, i, period[i - 2]);
        code = sqlite3_step(s);
    }
    if (code == SQLITE_ROW)
        *ret = (struct statement_row){
            .number = sqlite3_column_int64(s, 0),
            .from_us = sqlite3_column_int64(s, 1),
            .until_us = sqlite3_column_int64(s, 2),
            .text = arena_str(a, (struct str){(const char *)sqlite3_column_text(s, 3),
                                              (size_t)sqlite3_column_bytes(s, 3)})};
    sqlite3_finalize(s);
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : ledger_failed(r->db, "ledger", err);
}

int statement_rows_find(struct statement_rows *r, struct arena *a, struct str tenant,
                        int64_t from_us, int64_t until_us, struct statement_row *ret_same,
                        struct statement_row *ret_last, struct err *err)
{
    const int64_t period[2] = {from_us, until_us};

    assert(r->magic == ROWS_MAGIC);
    return find(r, a, SAME, tenant, period, ret_same, err) ||
                   find(r, a, LAST, tenant, period, ret_last, err)
               ? -1
               : 0;
}

int statement_rows_add(struct statement_rows *r, struct str tenant, const struct statement_row *row,
                       struct err *err)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(r->db, INSERT, -1, &s, NULL);

    assert(r->magic == ROWS_MAGIC);
    if (code == SQLITE_OK) {
        ledger_bind_str(s, 1, tenant);
        sqlite3_bind_int64(s, 2, row->number);
        sqlite3_bind_int64(s, 3, row->from_us);
        sqlite3_bind_int64(s, 4, row->until_us);
        ledger_bind_str(s, 5, row->text);
        code = sqlite3_step(s);
    }
    sqlite3_finalize(s);
    if (code == SQLITE_DONE)
        return 0;
    return code == SQLITE_CONSTRAINT
               ? err_set(err, &ERR_CONFLICT, "another process issued statement %lld meanwhile",
                         (long long)row->number)
               : ledger_failed(r->db, "ledger", err);
}
