/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger into another database: every row with its id, in one transaction, then both are read
 * again and compared. No process may write either of them meanwhile. Must not touch a database that
 * has something, nor report a copy as good of which a byte differs or whose statements do not
 * follow each other. */
#include "ledger/ledger_db.h"
#include "statement.h"

#include <stdio.h>
#include <string.h>

#include <sublet/buf.h>
#include <sublet/encode.h>
#include <sublet/fleet_copy.h>

#define MOST_COLUMNS 16

/* kinds: of each column, a string or an integer. */
struct table {
    const char *name, *columns, *kinds, *order;
};
static const struct table TABLES[LEDGER_TABLES] = {
    {"meta", "key, value", "si", "key"},
    {"hold",
     "id, pod_uid, tenant, cluster, ns, name, owner, node, pool, product, resources, gpu_num,"
     " gpu_den, begin_us, mode",
     "issssssssssiiis", "id"},
    {"hold_end", "hold, end_us, reason, estimated", "iisi", "hold"},
    {"capacity",
     "id, node, pool, product, from_us, total_num, total_den, unhealthy_num, unhealthy_den, down,"
     " estimated",
     "isssiiiiiii", "id"},
    {"price", "id, pool, from_us, num, den, currency, borrow_num, borrow_den", "isiiisii", "id"},
    {"gap", "id, from_us, until_us", "iii", "id"},
    {"guarantee", "id, tenant, pool, from_us, bound, num, den, granted_num, granted_den, labels",
     "issiiiiiis", "id"},
    {"activity", "id, hold, from_us, use", "iiii", "id"},
    {"statement", "id, tenant, number, from_us, until_us, text", "isiiis", "id"},
};
/* Which process wrote it, and how far, is no part of a ledger. */
static const char OF_META[] = " WHERE key NOT IN ('turn', 'writer')";

static bool is_meta(const struct table *t)
{
    return t == TABLES;
}

/* --- rows --- */

static int select_rows(struct ledger_db *db, const struct table *t, struct ledger_query **ret,
                       struct err *err)
{
    char sql[512];

    snprintf(sql, sizeof(sql), "SELECT %s FROM %s%s ORDER BY %s", t->columns, t->name,
             is_meta(t) ? OF_META : "", t->order);
    return db->ops->prepare(db, sql, ret, err);
}

/* The hash of the rows before and of this one. */
static void add_row(const struct table *t, struct ledger_query *q, struct ledger_table *sum)
{
    struct buf row = BUF_INIT(0);

    buf_add(&row, (struct str){(const char *)sum->sha256, sizeof(sum->sha256)});
    for (int i = 0; t->kinds[i]; i++) {
        if (t->kinds[i] == 's')
            buf_printf(&row, "%zu:", ledger_str(q, i).n);
        if (t->kinds[i] == 's')
            buf_add(&row, ledger_str(q, i));
        else
            buf_printf(&row, "%lld,", (long long)ledger_int(q, i));
    }
    sha256(buf_str(&row), sum->sha256);
    sum->rows++;
    buf_fini(&row);
}

static int insert_of(struct ledger_db *db, const struct table *t, struct ledger_query **ret,
                     struct err *err)
{
    struct buf sql = BUF_INIT(0);
    int result;

    buf_printf(&sql, "INSERT INTO %s(%s) VALUES(", t->name, t->columns);
    for (int i = 0; t->kinds[i]; i++)
        buf_printf(&sql, "%s?%d", i ? "," : "", i + 1);
    buf_printf(&sql, ")%c", '\0');
    result = db->ops->prepare(db, sql.p, ret, err);
    buf_fini(&sql);
    return result;
}

static int put_row(const struct table *t, struct ledger_query *from, struct ledger_query *into,
                   struct err *err)
{
    enum ledger_step step;

    for (int i = 0; t->kinds[i]; i++)
        if (t->kinds[i] == 's')
            ledger_bind_str(into, i + 1, ledger_str(from, i));
        else
            ledger_bind_int(into, i + 1, ledger_int(from, i));
    step = ledger_step(into, err);
    into->db->ops->reset(into);
    return step == LEDGER_FAILED ? -1 : 0;
}

/* to NULL: they are only read. */
static int each_row(struct ledger_db *from, struct ledger_db *to, const struct table *t,
                    struct ledger_table *ret, struct err *err)
{
    struct ledger_query *rows = NULL, *into = NULL;
    enum ledger_step step = LEDGER_FAILED;
    int result = select_rows(from, t, &rows, err) || (to && insert_of(to, t, &into, err)) ? -1 : 0;

    *ret = (struct ledger_table){.name = t->name};
    while (!result && (step = ledger_step(rows, err)) == LEDGER_ROW) {
        add_row(t, rows, ret);
        if (to)
            result = put_row(t, rows, into, err);
    }
    ledger_query_free(rows);
    ledger_query_free(into);
    if (result || step == LEDGER_FAILED)
        return -1;
    return to && !strcmp(t->order, "id") ? to->ops->imported(to, t->name, err) : 0;
}

/* --- statements --- */

struct chain {
    struct str tenant;
    struct statement last;
};

static int check_statement(struct arena *a, struct arena *own, struct chain *c,
                           struct ledger_query *q, struct err *err)
{
    struct str tenant = ledger_str(q, 0), key;
    struct statement s;

    if (statement_read(own, ledger_str(q, 1), &s, &key, err))
        return -1;
    s.name = arena_printf(own, "statement %lld", (long long)s.number);
    if (c->last.number && str_eq(c->tenant, tenant) && statement_follows(&c->last, &s, err))
        return -1;
    *c = (struct chain){arena_str(a, tenant),
                        {.name = arena_str(a, s.name),
                         .ledger = arena_str(a, s.ledger),
                         .tenant = arena_str(a, s.tenant),
                         .number = s.number,
                         .from_us = s.from_us,
                         .until_us = s.until_us,
                         .sha256 = arena_str(a, s.sha256)}};
    return 0;
}

static int check_chains(struct ledger_db *db, struct err *err)
{
    struct arena *a = arena_new(0), *own = arena_new(0);
    struct ledger_query *q = NULL;
    enum ledger_step step = LEDGER_FAILED;
    struct chain chain = {0};
    int result =
        db->ops->prepare(db, "SELECT tenant, text FROM statement ORDER BY tenant, number", &q, err);

    while (!result && (step = ledger_step(q, err)) == LEDGER_ROW) {
        result = check_statement(a, own, &chain, q, err);
        arena_reset(own);
    }
    ledger_query_free(q);
    arena_free(own);
    arena_free(a);
    return result || step == LEDGER_FAILED ? -1 : 0;
}

/* --- the copy --- */

/* A reader first: a writer would create what is not there. */
static int open_source(struct str location, struct ledger_db **ret, struct err *err)
{
    struct ledger_db *reader;
    int64_t format;
    int result;

    if (ledger_db_open(location, LEDGER_DB_READ, &reader, err))
        return -1;
    result = ledger_meta(reader, "format", &format, err);
    ledger_db_close(reader);
    if (result)
        return -1;
    if (format != LEDGER_FORMAT)
        return err_set(
            err, &ERR_BAD_REQUEST,
            "the ledger has format %lld: start `sublet fleet` of this version on it once",
            (long long)format);
    if (ledger_db_open(location, LEDGER_DB_WRITE, ret, err))
        return -1;
    return (*ret)->ops->add_statements(*ret, err) || (*ret)->ops->begin(*ret, err) ? -1 : 0;
}

static int open_target(struct str location, struct ledger_db **ret, struct err *err)
{
    bool empty;

    if (ledger_db_open(location, LEDGER_DB_WRITE, ret, err) ||
        (*ret)->ops->is_empty(*ret, &empty, err))
        return -1;
    if (!empty)
        return err_set(err, &ERR_CONFLICT, "there is something already where the ledger would go");
    return (*ret)->ops->upgrade(*ret, 0, err) || (*ret)->ops->add_statements(*ret, err) ? -1 : 0;
}

static int copy_tables(struct ledger_db *from, struct ledger_db *to, struct ledger_table *ret,
                       struct err *err)
{
    for (size_t i = 0; i < LEDGER_TABLES; i++)
        if (each_row(from, to, &TABLES[i], &ret[i], err))
            return err_wrap(err, "table %s", TABLES[i].name);
    return to->ops->commit(to, err);
}

static int compare(struct ledger_db *db, const struct ledger_table *want, struct err *err)
{
    struct ledger_table got;

    for (size_t i = 0; i < LEDGER_TABLES; i++) {
        if (each_row(db, NULL, &TABLES[i], &got, err))
            return err_wrap(err, "table %s", TABLES[i].name);
        if (got.rows != want[i].rows || memcmp(got.sha256, want[i].sha256, sizeof(got.sha256)))
            return err_set(err, &ERR_STORAGE, "the copy differs in table %s: do not use it",
                           TABLES[i].name);
    }
    return check_chains(db, err);
}

int ledger_copy(struct str from, struct str to, struct ledger_table ret[LEDGER_TABLES],
                struct err *err)
{
    struct ledger_db *source = NULL, *target = NULL;
    int result = open_source(from, &source, err) ? err_wrap(err, "from") : 0;

    if (!result && open_target(to, &target, err))
        result = err_wrap(err, "to");
    if (!result && (check_chains(source, err) || copy_tables(source, target, ret, err) ||
                    compare(target, ret, err)))
        result = -1;
    ledger_db_close(source);
    ledger_db_close(target);
    return result;
}
