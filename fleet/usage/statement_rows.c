/* SPDX-License-Identifier: Apache-2.0 */
/* Statements in the ledger: a table of their bytes, to which rows are only added. Another process
 * writes the ledger meanwhile, so that a transaction here is one row and one fsync. Must not record
 * two statements of a number or of a begin, which unique keys decide. */
#include "statement.h"

#include "ledger/ledger_db.h"

#include <assert.h>

#include <sublet/mem.h>

#define ROWS_MAGIC 0x73746d74u

static const char LAST[] = "SELECT number, from_us, until_us, text FROM statement"
                           " WHERE tenant = ?1 ORDER BY number DESC LIMIT 1";
static const char SAME[] = "SELECT number, from_us, until_us, text FROM statement"
                           " WHERE tenant = ?1 AND from_us = ?2 AND until_us = ?3";
static const char INSERT[] = "INSERT INTO statement(tenant, number, from_us, until_us, text)"
                             " VALUES(?1,?2,?3,?4,?5)";

struct statement_rows {
    unsigned magic;
    struct ledger_db *db;
    int64_t identity;
};

static int open_database(struct statement_rows *r, struct str location, struct err *err)
{
    int64_t format;

    return ledger_db_open(location, LEDGER_DB_ADD, &r->db, err) ||
                   ledger_meta(r->db, "format", &format, err) || ledger_check_format(format, err) ||
                   ledger_meta(r->db, "identity", &r->identity, err) ||
                   r->db->ops->add_statements(r->db, err)
               ? -1
               : 0;
}

int statement_rows_open(struct str location, struct statement_rows **ret, struct err *err)
{
    struct statement_rows *r = NEW(struct statement_rows);

    *r = (struct statement_rows){.magic = ROWS_MAGIC};
    if (open_database(r, location, err)) {
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
    ledger_db_close(r->db);
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
    struct ledger_query *q = NULL;
    enum ledger_step step;

    *ret = (struct statement_row){0};
    if (r->db->ops->prepare(r->db, sql, &q, err))
        return -1;
    ledger_bind_str(q, 1, tenant);
    for (int i = 2; i <= r->db->ops->parameters(q); i++)
        ledger_bind_int(q, i, period[i - 2]);
    step = ledger_step(q, err);
    if (step == LEDGER_ROW)
        *ret = (struct statement_row){.number = ledger_int(q, 0),
                                      .from_us = ledger_int(q, 1),
                                      .until_us = ledger_int(q, 2),
                                      .text = arena_str(a, ledger_str(q, 3))};
    ledger_query_free(q);
    return step == LEDGER_FAILED ? -1 : 0;
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
    struct ledger_query *q = NULL;
    enum ledger_step step;

    assert(r->magic == ROWS_MAGIC);
    if (r->db->ops->prepare(r->db, INSERT, &q, err))
        return -1;
    ledger_bind_str(q, 1, tenant);
    ledger_bind_int(q, 2, row->number);
    ledger_bind_int(q, 3, row->from_us);
    ledger_bind_int(q, 4, row->until_us);
    ledger_bind_str(q, 5, row->text);
    step = ledger_step(q, err);
    ledger_query_free(q);
    if (step == LEDGER_FAILED && err->kind == &ERR_CONFLICT) {
        err_clear(err);
        err_set(err, &ERR_CONFLICT, "another process issued statement %lld meanwhile",
                (long long)row->number);
    }
    return step == LEDGER_FAILED || r->db->ops->commit(r->db, err) ? -1 : 0;
}
