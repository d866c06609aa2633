/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that never hangs: libpq's asynchronous calls, and poll() with a deadline between
 * them. libpq quotes parts of a connection string in its messages, and a string with a mistake has
 * parts of the password where a host or a port belongs: of libpq's messages from before a session
 * nothing in quotes is passed on, and of no message the password. Must not print, nor let libpq. */
#include "ledger_conn.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/file.h>
#include <sublet/mem.h>

#define CONN_MAGIC   0x6c70716eu
#define STRING_LIMIT ((size_t)16 << 10)
#define MOST_MESSAGE 300

struct ledger_conn {
    unsigned magic;
    PGconn *pg;
    int64_t patience_ms;
    int stop_fd;
    bool broken;
    struct arena *a; /* of the string */
    struct str passwords[2];
    char tag[64];
};

/* --- messages --- */

/* What stands in quotes is left out; all between the first and the last one, when the string has
 * quotes itself. */
static void add_without_quoted(struct buf *out, struct str message, bool greedy)
{
    while (message.n) {
        size_t from = str_find(message, '"');
        struct str rest = str_from(message, from + 1);
        size_t to = greedy ? str_rfind(rest, '"') : str_find(rest, '"');

        buf_add(out, str_sub(message, 0, from));
        if (from == message.n)
            return;
        buf_addc(out, "\"...\"");
        message = to < rest.n ? str_from(rest, to + 1) : STR("");
    }
}

static struct str without(struct arena *a, struct str message, struct str secret)
{
    struct buf out = BUF_INIT(0);
    struct str copy;

    if (!secret.n)
        return message;
    for (size_t i = 0; i < message.n;) {
        bool is_here = str_has_prefix(str_from(message, i), secret);

        if (is_here)
            buf_addc(&out, "...");
        else
            buf_char(&out, message.p[i]);
        i += is_here ? secret.n : 1;
    }
    copy = arena_str(a, buf_str(&out));
    buf_fini(&out);
    return copy;
}

/* One line. */
static struct str flat(struct arena *a, struct str message)
{
    char *p = arena_cstr(a, str_clip(str_trim(message), MOST_MESSAGE));

    for (char *c = p; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return str_c(p);
}

static int fail(struct ledger_conn *c, const struct err_kind *kind, const char *message,
                struct err *err)
{
    struct arena *a = arena_new(0);
    struct str text = str_c(message);

    for (size_t i = 0; i < COUNT(c->passwords); i++)
        text = without(a, text, c->passwords[i]);
    err_set(err, kind, "PostgreSQL: %.*s", STR_F(flat(a, text)));
    arena_free(a);
    return -1;
}

static int broken(struct ledger_conn *c, const char *message, struct err *err)
{
    c->broken = true;
    return fail(c, &ERR_STORAGE, message, err);
}

/* --- waiting --- */

static int64_t deadline(const struct ledger_conn *c)
{
    return clock_mono_ms(&CLOCK_SYSTEM) + c->patience_ms;
}

static int await(struct ledger_conn *c, short events, int64_t until, struct err *err)
{
    struct pollfd fds[] = {{.fd = PQsocket(c->pg), .events = events},
                           {.fd = c->stop_fd, .events = POLLIN}};

    for (;;) {
        int64_t left = until - clock_mono_ms(&CLOCK_SYSTEM);
        int n = left > 0 ? poll(fds, COUNT(fds), (int)left) : 0;

        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0 && fds[1].revents)
            return broken(c, "the wait for the server was ended", err);
        if (n <= 0)
            return broken(c, "the server does not answer", err);
        return 0;
    }
}

/* What is to be sent is, as far as the server takes it; *ret_more: not all of it. */
static int flush(struct ledger_conn *c, bool *ret_more, struct err *err)
{
    int left = PQflush(c->pg);

    if (left < 0)
        return broken(c, PQerrorMessage(c->pg), err);
    *ret_more = left;
    return 0;
}

static int next(struct ledger_conn *c, PGresult **ret, struct err *err)
{
    int64_t until = deadline(c);
    bool more = false;

    *ret = NULL;
    if (c->broken)
        return broken(c, "the connection was lost", err);
    while (PQisBusy(c->pg)) {
        if (flush(c, &more, err) || await(c, more ? POLLIN | POLLOUT : POLLIN, until, err))
            return -1;
        if (!PQconsumeInput(c->pg))
            return broken(c, PQerrorMessage(c->pg), err);
    }
    *ret = PQgetResult(c->pg);
    return 0;
}

/* Of a result that says that something failed. */
static int refused(struct ledger_conn *c, const PGresult *r, struct err *err)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    bool is_value = state && (!strncmp(state, "22", 2) || !strncmp(state, "23", 2));

    if (PQstatus(c->pg) != CONNECTION_OK || !state)
        c->broken = true;
    return fail(c, is_value ? &ERR_CONFLICT : &ERR_STORAGE,
                message ? message : PQresultErrorMessage(r), err);
}

/* --- open and close --- */

static int check_mode(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st))
        return err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
    if (st.st_mode & S_IRWXO)
        return err_set(err, &ERR_STORAGE,
                       "%s: everyone may read or change it (mode %04o), and a password is in it: "
                       "want 0600",
                       path, (unsigned)(st.st_mode & 07777));
    return 0;
}

static int read_string(struct ledger_conn *c, struct str file, struct str *ret, struct err *err)
{
    static const char *const secrets[] = {"password", "sslpassword"};
    PQconninfoOption *parts;
    char *message = NULL;

    if (check_mode(arena_cstr(c->a, file), err))
        return -1;
    if (file_read(c->a, file, STRING_LIMIT, ret, err))
        return -1;
    *ret = str_trim(*ret);
    parts = PQconninfoParse(arena_cstr(c->a, *ret), &message);
    PQfreemem(message); /* it quotes */
    if (!parts || !ret->n || memchr(ret->p, 0, ret->n)) {
        PQconninfoFree(parts);
        return err_set(err, &ERR_STORAGE, "%.*s: it has no connection string of PostgreSQL",
                       STR_F(file));
    }
    for (const PQconninfoOption *o = parts; o->keyword; o++)
        for (size_t i = 0; i < COUNT(secrets); i++)
            if (o->val && !strcmp(o->keyword, secrets[i]))
                c->passwords[i] = arena_str(c->a, str_c(o->val));
    PQconninfoFree(parts);
    return 0;
}

static void no_notice(void *ctx, const PGresult *r)
{
    (void)ctx;
    (void)r;
}

/* What stands before the string is what it need not say; what stands behind it always holds. */
static void start(struct ledger_conn *c, struct str string, bool writes)
{
    const char *keys[] = {"sslmode",
                          "gssencmode",
                          "tcp_user_timeout",
                          "keepalives_idle",
                          "keepalives_interval",
                          "keepalives_count",
                          "fallback_application_name",
                          "target_session_attrs",
                          "dbname",
                          "client_encoding",
                          NULL};
    const char *values[] = {"verify-full",
                            "disable",
                            "5000",
                            "10",
                            "5",
                            "3",
                            "sublet",
                            writes ? "read-write" : "any",
                            arena_cstr(c->a, string),
                            "UTF8",
                            NULL};

    c->pg = PQconnectStartParams(keys, values, 1);
    PQsetNoticeReceiver(c->pg, no_notice, NULL);
}

static int cannot_connect(struct ledger_conn *c, struct str string, struct err *err)
{
    struct buf text = BUF_INIT(0);
    int ret;

    add_without_quoted(&text, str_c(PQerrorMessage(c->pg)), str_find(string, '"') < string.n);
    buf_char(&text, '\0');
    ret = broken(c, text.p, err);
    buf_fini(&text);
    return ret;
}

static int connect_to(struct ledger_conn *c, struct str string, struct err *err)
{
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    int64_t until = deadline(c);

    if (!c->pg)
        return broken(c, "no memory for a connection", err);
    while (PQstatus(c->pg) != CONNECTION_BAD && status != PGRES_POLLING_OK) {
        if (await(c, status == PGRES_POLLING_READING ? POLLIN : POLLOUT, until, err))
            return -1;
        status = PQconnectPoll(c->pg);
        if (status == PGRES_POLLING_FAILED)
            break;
    }
    if (status != PGRES_POLLING_OK)
        return cannot_connect(c, string, err);
    return PQsetnonblocking(c->pg, 1) ? broken(c, PQerrorMessage(c->pg), err) : 0;
}

/* A statement that this side gave up ends on the server too; one that reads sends rows for longer
 * than this side waits for one. A commit is on the server's disk, unless the admin wants more. */
static int begin_session(struct ledger_conn *c, bool writes, struct err *err)
{
    char sql[320];
    const char *encoding = PQparameterStatus(c->pg, "server_encoding");

    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return broken(c, "the database is not encoded in UTF8", err);
    snprintf(sql, sizeof(sql),
             "SET statement_timeout = %lld; SET idle_in_transaction_session_timeout = %lld; SET "
             "client_min_messages = error; SELECT set_config('synchronous_commit', 'on', false) "
             "WHERE current_setting('synchronous_commit') = 'off'",
             (long long)c->patience_ms * (writes ? 1 : 20), (long long)c->patience_ms * 20);
    return ledger_conn_run(c, sql, err);
}

int ledger_conn_open(const struct ledger_conn_options *o, struct ledger_conn **ret, struct err *err)
{
    struct ledger_conn *c = NEW(struct ledger_conn);
    struct str string;
    int result;

    *c = (struct ledger_conn){.magic = CONN_MAGIC,
                              .patience_ms = o->patience_ms,
                              .stop_fd = o->stop_fd,
                              .a = arena_new(0)};
    result = read_string(c, o->file, &string, err);
    if (!result) {
        start(c, string, o->writes);
        result = connect_to(c, string, err) || begin_session(c, o->writes, err) ? -1 : 0;
    }
    if (result) {
        ledger_conn_close(c);
        return -1;
    }
    *ret = c;
    return 0;
}

struct ledger_conn *ledger_conn_close(struct ledger_conn *c)
{
    if (!c)
        return NULL;
    assert(c->magic == CONN_MAGIC);
    PQfinish(c->pg);
    arena_free(c->a);
    c->magic = 0;
    return mem_free(c);
}

int ledger_conn_pid(const struct ledger_conn *c)
{
    return PQbackendPID(c->pg);
}

/* --- commands --- */

static bool is_done(const PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* To the end of the answer; the first failure counts. */
static int finish(struct ledger_conn *c, struct err *err)
{
    PGresult *r;
    int ret = 0;

    do {
        if (next(c, &r, err))
            return -1;
        if (r && !is_done(r) && !ret)
            ret = refused(c, r, err);
        else if (r && !ret)
            snprintf(c->tag, sizeof(c->tag), "%s", PQcmdStatus(r));
        PQclear(r);
    } while (r);
    return ret;
}

int ledger_conn_run_tag(struct ledger_conn *c, const char *sql, struct str *ret_tag,
                        struct err *err)
{
    assert(c->magic == CONN_MAGIC);
    if (c->broken || !PQsendQuery(c->pg, sql))
        return broken(c, "the connection was lost", err);
    if (finish(c, err))
        return -1;
    *ret_tag = str_c(c->tag);
    return 0;
}

int ledger_conn_run(struct ledger_conn *c, const char *sql, struct err *err)
{
    struct str tag;

    return ledger_conn_run_tag(c, sql, &tag, err);
}

int ledger_conn_prepare(struct ledger_conn *c, const char *name, const char *sql, int n,
                        const Oid *types, struct err *err)
{
    assert(c->magic == CONN_MAGIC);
    if (c->broken || !PQsendPrepare(c->pg, name, sql, n, types))
        return broken(c, "the connection was lost", err);
    return finish(c, err);
}

int ledger_conn_send(struct ledger_conn *c, const char *name, int n, const char *const *values,
                     struct err *err)
{
    assert(c->magic == CONN_MAGIC);
    if (c->broken || !PQsendQueryPrepared(c->pg, name, n, values, NULL, NULL, 0) ||
        !PQsetSingleRowMode(c->pg))
        return broken(c, "the connection was lost", err);
    return 0;
}

int ledger_conn_row(struct ledger_conn *c, PGresult **ret, struct err *err)
{
    PGresult *r;

    assert(c->magic == CONN_MAGIC);
    *ret = NULL;
    if (next(c, &r, err))
        return -1;
    if (r && PQresultStatus(r) == PGRES_SINGLE_TUPLE) {
        *ret = r;
        return 0;
    }
    if (r && !is_done(r)) {
        refused(c, r, err);
        PQclear(r);
        ledger_conn_drain(c, 1);
        return -1;
    }
    PQclear(r);
    return r ? finish(c, err) : 0;
}

void ledger_conn_drain(struct ledger_conn *c, unsigned most)
{
    PGresult *r;

    for (unsigned i = 0; i <= most; i++) {
        if (next(c, &r, NULL))
            return;
        if (!r)
            return;
        PQclear(r);
    }
    c->broken = true;
}
