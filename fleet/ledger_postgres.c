/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger in PostgreSQL: tables of one schema, of which a lock of the writer's session keeps
 * other writers out: whoever has lost the session has lost the lock and can commit no more, so that
 * a connection is never opened again behind the caller's back. libpq is loaded when a ledger is
 * there: most processes of this program have none. Must not show a password, which the file of the
 * connection may have, nor wait without a limit for a server that does not answer. */
#include "ledger_db.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/mem.h>

#define POSTGRES_MAGIC 0x6c706773u
#define LIBRARY        "libpq.so.5"
#define MOST_SETTINGS  4096 /* bytes of the file of a connection */
#define MOST_VALUES    16   /* of a query */
#define OID_INT8       20u
#define OID_TEXT       25u

#define FUNCTIONS(X)                                                                               \
    X(PQclear)                                                                                     \
    X(PQconnectdbParams)                                                                           \
    X(PQerrorMessage)                                                                              \
    X(PQexec)                                                                                      \
    X(PQfinish)                                                                                    \
    X(PQgetResult)                                                                                 \
    X(PQgetisnull)                                                                                 \
    X(PQgetlength)                                                                                 \
    X(PQgetvalue)                                                                                  \
    X(PQntuples)                                                                                   \
    X(PQprepare)                                                                                   \
    X(PQresultErrorField)                                                                          \
    X(PQresultStatus)                                                                              \
    X(PQsendQueryPrepared)                                                                         \
    X(PQsetNoticeProcessor)                                                                        \
    X(PQsetSingleRowMode)                                                                          \
    X(PQstatus)                                                                                    \
    X(PQtransactionStatus)

struct libpq {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

#define NAME    "TEXT COLLATE \"C\" NOT NULL"
#define INTEGER "BIGINT NOT NULL"
#define ID      "id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
#define APPEND_ONLY(table)                                                                         \
    "CREATE TRIGGER " table "_fixed BEFORE UPDATE OR DELETE ON " table                             \
    " FOR EACH ROW EXECUTE FUNCTION ledger_fixed();"                                               \
    "CREATE TRIGGER " table "_kept BEFORE TRUNCATE ON " table                                      \
    " FOR EACH STATEMENT EXECUTE FUNCTION ledger_fixed();"

/* Of format 2, the first one here. */
static const char SCHEMA[] =
    "CREATE FUNCTION ledger_fixed() RETURNS trigger LANGUAGE plpgsql AS"
    " $$BEGIN RAISE EXCEPTION 'the ledger is append-only'; END$$;"
    "CREATE TABLE meta(key TEXT COLLATE \"C\" PRIMARY KEY, value " INTEGER ");"
    "CREATE TABLE hold(" ID ", pod_uid " NAME " UNIQUE, tenant " NAME ", cluster " NAME ", ns " NAME
    ", name " NAME ", owner " NAME ", node " NAME ", pool " NAME ", product " NAME
    ", resources " NAME ", gpu_num " INTEGER ", gpu_den " INTEGER ", begin_us " INTEGER
    ", mode " NAME ");"
    "CREATE TABLE hold_end(hold BIGINT PRIMARY KEY REFERENCES hold(id), end_us " INTEGER
    ", reason " NAME ", estimated " INTEGER ");"
    "CREATE TABLE capacity(" ID ", node " NAME ", pool " NAME ", product " NAME ", from_us " INTEGER
    ", total_num " INTEGER ", total_den " INTEGER ", unhealthy_num " INTEGER
    ", unhealthy_den " INTEGER ", down " INTEGER ", estimated " INTEGER ");"
    "CREATE TABLE price(" ID ", pool " NAME ", from_us " INTEGER ", num " INTEGER ", den " INTEGER
    ", currency " NAME ", borrow_num " INTEGER ", borrow_den " INTEGER ");"
    "CREATE TABLE gap(" ID ", from_us " INTEGER ", until_us " INTEGER ");"
    "CREATE TABLE guarantee(" ID ", tenant " NAME ", pool " NAME ", from_us " INTEGER
    ", bound " INTEGER ", num " INTEGER ", den " INTEGER ", granted_num " INTEGER
    ", granted_den " INTEGER ", labels " NAME ");"
    "CREATE INDEX guarantee_of ON guarantee(tenant, pool, id);"
    "CREATE TABLE activity(" ID ", hold BIGINT NOT NULL REFERENCES hold(id), from_us " INTEGER
    ", use " INTEGER ");"
    "CREATE INDEX activity_of ON activity(hold, id);"
    "CREATE TABLE statement(" ID ", tenant " NAME ", number " INTEGER ", from_us " INTEGER
    ", until_us " INTEGER ", text " NAME
    ", UNIQUE(tenant, number), UNIQUE(tenant, from_us));" APPEND_ONLY("hold")
        APPEND_ONLY("hold_end") APPEND_ONLY("capacity") APPEND_ONLY("price") APPEND_ONLY("gap")
            APPEND_ONLY("guarantee") APPEND_ONLY("activity") APPEND_ONLY("statement");

/* The server ends the session, and with it the lock, of a client whose machine is gone. */
#define OF_ALL                                                                                     \
    "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;" \
    "SET tcp_user_timeout = 30000; SET lock_timeout = 3000;"
static const char *const SETTINGS[] = {
    [LEDGER_DB_READ] = OF_ALL "SET default_transaction_read_only = on",
    [LEDGER_DB_ADD] = OF_ALL "SET synchronous_commit = on; SET statement_timeout = 10000",
    [LEDGER_DB_WRITE] = OF_ALL "SET synchronous_commit = on; SET statement_timeout = 10000",
};
static const char LOCK[] =
    "SELECT pg_advisory_lock(hashtext('sublet ledger'), hashtext(current_schema()::text))";

struct postgres_db {
    struct ledger_db db;
    unsigned magic;
    bool writes;      /* in transactions that commit() ends */
    bool dirty;       /* one is open */
    unsigned queries; /* prepared */
    void *library;
    struct libpq pq;
    PGconn *conn;
};
struct postgres_query {
    struct ledger_query query;
    struct postgres_db *d;
    char *sql;
    char name[16];
    bool prepared, running;
    int n;
    char *values[MOST_VALUES];
    Oid types[MOST_VALUES];
    PGresult *row;
};

static struct postgres_db *of(struct ledger_db *db)
{
    struct postgres_db *d = CONTAINER(db, struct postgres_db, db);

    assert(d->magic == POSTGRES_MAGIC);
    return d;
}

/* result: NULL when there is none. libpq's own messages end with a newline. */
static int failed(struct postgres_db *d, PGresult *result, struct err *err)
{
    const char *primary = result ? d->pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *state = result ? d->pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *message = primary ? primary : d->pq.PQerrorMessage(d->conn);

    if (state && !strcmp(state, "55P03")) /* of the lock of the writer: no other one waits here */
        return err_set(err, &ERR_STORAGE, "ledger: PostgreSQL: another process has it open");
    return err_set(err, state && !strcmp(state, "23505") ? &ERR_CONFLICT : &ERR_STORAGE,
                   "ledger: PostgreSQL: %.*s", (int)strcspn(message, "\n"), message);
}

static int run(struct postgres_db *d, const char *sql, struct err *err)
{
    PGresult *result = d->pq.PQexec(d->conn, sql);
    ExecStatusType status = d->pq.PQresultStatus(result);
    int done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : failed(d, result, err);

    d->pq.PQclear(result);
    return done;
}

/* --- open and close --- */

static int load(struct postgres_db *d, struct err *err)
{
    d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!d->library)
        return err_set(err, &ERR_STORAGE, "ledger: PostgreSQL: %s", dlerror());
#define LOAD(name)                                                                                 \
    d->pq.name = (__typeof__(d->pq.name))dlsym(d->library, #name);                                 \
    if (!d->pq.name)                                                                               \
        return err_set(err, &ERR_STORAGE, "ledger: PostgreSQL: %s has no %s", LIBRARY, #name);
    FUNCTIONS(LOAD)
#undef LOAD
    return 0;
}

/* One line, of libpq's keywords or a URI. */
static int read_settings(const char *path, char *ret, struct err *err)
{
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
    n = fread(ret, 1, MOST_SETTINGS, f);
    fclose(f);
    if (n == MOST_SETTINGS)
        return err_set(err, &ERR_STORAGE, "%s: more than %d bytes", path, MOST_SETTINGS - 1);
    ret[n] = '\0';
    ret[strcspn(ret, "\r\n")] = '\0';
    return ret[0] ? 0 : err_set(err, &ERR_STORAGE, "%s: no connection", path);
}

static void on_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

/* What the file says goes before what stands in front of it here. */
static int connect_db(struct postgres_db *d, const char *settings, enum ledger_db_mode mode,
                      struct err *err)
{
    const char *const keys[] = {"sslmode", "connect_timeout", "tcp_user_timeout",
                                "dbname",  "client_encoding", "application_name",
                                NULL};
    const char *const values[] = {"verify-full", "5", "15000", settings, "UTF8", "sublet", NULL};

    d->conn = d->pq.PQconnectdbParams(keys, values, 1);
    if (d->pq.PQstatus(d->conn) != CONNECTION_OK)
        return failed(d, NULL, err);
    d->pq.PQsetNoticeProcessor(d->conn, on_notice, NULL);
    return run(d, SETTINGS[mode], err) || (d->writes && run(d, LOCK, err)) ? -1 : 0;
}

static void close_db(struct ledger_db *db)
{
    struct postgres_db *d = of(db);

    if (d->conn)
        d->pq.PQfinish(d->conn);
    if (d->library)
        dlclose(d->library);
    d->magic = 0;
    mem_free(d);
}

static int open_db(struct str location, enum ledger_db_mode mode, struct ledger_db **ret,
                   struct err *err)
{
    struct postgres_db *d = NEW(struct postgres_db);
    char settings[MOST_SETTINGS];
    struct arena *a = arena_new(0);
    int result;

    *d = (struct postgres_db){
        .db = {&ledger_postgres}, .magic = POSTGRES_MAGIC, .writes = mode == LEDGER_DB_WRITE};
    result = read_settings(arena_cstr(a, location), settings, err) || load(d, err) ||
             connect_db(d, settings, mode, err);
    explicit_bzero(settings, sizeof(settings));
    arena_free(a);
    if (result) {
        close_db(&d->db);
        return -1;
    }
    *ret = &d->db;
    return 0;
}

static int is_empty(struct ledger_db *db, bool *ret, struct err *err)
{
    struct postgres_db *d = of(db);
    PGresult *result =
        d->pq.PQexec(d->conn, "SELECT 1 FROM pg_tables WHERE schemaname = current_schema()");
    int done = d->pq.PQresultStatus(result) == PGRES_TUPLES_OK ? 0 : failed(d, result, err);

    *ret = !done && !d->pq.PQntuples(result);
    d->pq.PQclear(result);
    return done;
}

/* --- transactions --- */

static int begin_read(struct ledger_db *db, struct err *err)
{
    return run(of(db), "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
}

static int begin_write(struct postgres_db *d, struct err *err)
{
    if (d->dirty)
        return 0;
    if (run(d, "BEGIN", err))
        return -1;
    d->dirty = true;
    return 0;
}

static int commit(struct ledger_db *db, struct err *err)
{
    struct postgres_db *d = of(db);

    if (!d->dirty)
        return 0;
    if (d->pq.PQtransactionStatus(d->conn) == PQTRANS_INERROR) /* COMMIT would succeed and undo */
        return err_set(err, &ERR_STORAGE, "ledger: PostgreSQL: a row was refused");
    if (run(d, "COMMIT", err))
        return -1;
    d->dirty = false;
    return 0;
}

static int upgrade(struct ledger_db *db, int64_t from, struct err *err)
{
    struct postgres_db *d = of(db);

    if (from)
        return err_set(err, &ERR_STORAGE, "ledger: format %lld is not one of PostgreSQL",
                       (long long)from);
    return begin_write(d, err) || run(d, SCHEMA, err) ? -1 : 0;
}

static int add_statements(struct ledger_db *db, struct err *err)
{
    (void)db; /* a ledger has it from the begin */
    (void)err;
    return 0;
}

/* --- queries --- */

static int prepare(struct ledger_db *db, const char *sql, struct ledger_query **ret,
                   struct err *err)
{
    struct postgres_db *d = of(db);
    struct postgres_query *q = NEW(struct postgres_query);

    (void)err; /* the server knows it from the first step on, when types are known */
    *q = (struct postgres_query){.query = {db}, .d = d, .sql = mem_alloc(strlen(sql) + 1)};
    memcpy(q->sql, sql, strlen(sql) + 1);
    for (char *p = q->sql; *p; p++)
        if (*p == '?') {
            int number = (int)strtol(p + 1, NULL, 10);

            assert(number >= 1 && number <= MOST_VALUES);
            *p = '$';
            q->n = number > q->n ? number : q->n;
        }
    snprintf(q->name, sizeof(q->name), "q%u", d->queries++);
    *ret = &q->query;
    return 0;
}

static struct postgres_query *query_of(struct ledger_query *q)
{
    return CONTAINER(q, struct postgres_query, query);
}

/* Until the connection is free for another query. */
static void stop(struct postgres_query *q)
{
    struct libpq *pq = &q->d->pq;

    while (q->running) {
        pq->PQclear(q->row);
        q->row = pq->PQgetResult(q->d->conn);
        q->running = q->row;
    }
}

static void free_query(struct ledger_query *query)
{
    struct postgres_query *q = query_of(query);

    stop(q);
    for (int i = 0; i < q->n; i++)
        mem_free(q->values[i]);
    mem_free(q->sql);
    mem_free(q);
}

static void put_value(struct postgres_query *q, int parameter, struct str value, Oid type)
{
    char *copy = mem_alloc(value.n + 1);

    if (value.n)
        memcpy(copy, value.p, value.n);
    copy[value.n] = '\0';
    mem_free(q->values[parameter - 1]);
    q->values[parameter - 1] = copy;
    q->types[parameter - 1] = type;
}

static void bind_str(struct ledger_query *q, int parameter, struct str value)
{
    put_value(query_of(q), parameter, value, OID_TEXT);
}

static void bind_int(struct ledger_query *q, int parameter, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    put_value(query_of(q), parameter, str_c(digits), OID_INT8);
}

static int parameters(struct ledger_query *q)
{
    return query_of(q)->n;
}

static int start(struct postgres_query *q, struct err *err)
{
    struct postgres_db *d = q->d;
    PGresult *result;
    int done = 0;

    if (d->writes && !strncmp(q->sql, "INSERT", 6) && begin_write(d, err))
        return -1;
    if (!q->prepared) {
        result = d->pq.PQprepare(d->conn, q->name, q->sql, q->n, q->types);
        done = d->pq.PQresultStatus(result) == PGRES_COMMAND_OK ? 0 : failed(d, result, err);
        d->pq.PQclear(result);
    }
    if (done)
        return -1;
    q->prepared = true;
    if (!d->pq.PQsendQueryPrepared(d->conn, q->name, q->n, (const char *const *)q->values, NULL,
                                   NULL, 0) ||
        !d->pq.PQsetSingleRowMode(d->conn))
        return failed(d, NULL, err);
    q->running = true;
    return 0;
}

/* One that fails leaves the transaction open: the caller gives up the ledger. */
static enum ledger_step step(struct ledger_query *query, struct err *err)
{
    struct postgres_query *q = query_of(query);
    struct libpq *pq = &q->d->pq;
    ExecStatusType status;

    if (!q->running && start(q, err))
        return LEDGER_FAILED;
    pq->PQclear(q->row);
    q->row = pq->PQgetResult(q->d->conn);
    status = q->row ? pq->PQresultStatus(q->row) : PGRES_FATAL_ERROR;
    if (status == PGRES_SINGLE_TUPLE)
        return LEDGER_ROW;
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        failed(q->d, q->row, err);
    stop(q);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? LEDGER_DONE : LEDGER_FAILED;
}

static void reset(struct ledger_query *q)
{
    stop(query_of(q));
}

static bool is_null(struct ledger_query *query, int column)
{
    struct postgres_query *q = query_of(query);

    return q->d->pq.PQgetisnull(q->row, 0, column);
}

static struct str column_str(struct ledger_query *query, int column)
{
    struct postgres_query *q = query_of(query);

    return (struct str){q->d->pq.PQgetvalue(q->row, 0, column),
                        (size_t)q->d->pq.PQgetlength(q->row, 0, column)};
}

static int64_t column_int(struct ledger_query *q, int column)
{
    return strtoll(column_str(q, column).p, NULL, 10);
}

const struct ledger_db_ops ledger_postgres = {
    .open = open_db,
    .close = close_db,
    .is_empty = is_empty,
    .upgrade = upgrade,
    .add_statements = add_statements,
    .begin = begin_read,
    .commit = commit,
    .prepare = prepare,
    .free = free_query,
    .bind_str = bind_str,
    .bind_int = bind_int,
    .parameters = parameters,
    .step = step,
    .reset = reset,
    .is_null = is_null,
    .column_int = column_int,
    .column_str = column_str,
};
