/* SPDX-License-Identifier: Apache-2.0 */
/* Between the loop and the thread that writes the ledger to a server. The mutex guards what both
 * touch; the transaction at the head is the thread's while it is in flight. Must not write a
 * transaction twice, nor forget one before the server has it; must not write after a drop. */
#include "ledger_queue.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <uv.h>

#include <sublet/buf.h>

#include "ledger_postgres.h"

#define QUEUE_MAGIC   0x6c717565u
#define MOST_BYTES    ((size_t)32 << 20)
#define MOST_QUERIES  16
#define MOST_VALUES   16
#define MOST_TOGETHER 512 /* rows that wait, in one transaction */
#define PATIENCE_MS   10000
#define FIRST_REST_MS 250
#define MOST_REST_MS  8000

struct transaction {
    struct transaction *next;
    struct buf rows;  /* encoded */
    size_t n;         /* of them */
    size_t last_meta; /* where the last row is, if it is one of meta; else SIZE_MAX */
    int64_t seen_us;  /* until then all is on record with it */
};
/* What libuv has until it calls back. */
struct bell {
    uv_async_t async;
    uv_timer_t timer;
    struct ledger_queue *queue; /* NULL: it was freed */
    unsigned open;
};
struct ledger_queue {
    struct ledger_db db;
    unsigned magic;
    struct ledger_queue_options o;
    struct str location;
    struct bell *bell;
    const char *sql[MOST_QUERIES];
    unsigned n_sql, meta;     /* which of them is of meta */
    struct transaction *open; /* the loop's */
    uv_thread_t thread;
    bool started;
    void (*flushed)(void *ctx);
    void *flushed_ctx;
    bool opened_said, failed_said; /* to the loop */
    struct str trouble;            /* the loop's, on the heap */
    int64_t durable_us;            /* the loop's */

    uv_mutex_t mutex; /* of what follows */
    uv_cond_t more;
    struct transaction *head, *tail;
    bool in_flight; /* the head */
    bool stop, full, opened, failed;
    size_t transactions, rows, bytes;
    int64_t done_us;
    char why[256]; /* it is not written; empty: it is */
    struct ledger_origin origin;
    struct fleet_records records; /* valid until the loop has seen them */
    struct arena *a;              /* of the records */

    int stop_fd; /* the thread's from here on */
    struct ledger_db *session;
    struct ledger_query *queries[MOST_QUERIES], *put_turn;
    int64_t turn; /* of the last transaction that is there */
    int64_t writer;
    int former; /* the server's process of the last session */
    bool fatal;
};
struct queue_query {
    struct ledger_query query;
    unsigned which;
    int n;
    struct {
        struct str s;
        int64_t i;
        bool is_str;
    } values[MOST_VALUES];
};

static struct ledger_queue *of(struct ledger_db *db)
{
    struct ledger_queue *q = CONTAINER(db, struct ledger_queue, db);

    assert(q->magic == QUEUE_MAGIC);
    return q;
}

static struct queue_query *query_of(struct ledger_query *q)
{
    return CONTAINER(q, struct queue_query, query);
}

/* --- transactions --- */

static struct transaction *transaction_new(void)
{
    struct transaction *t = NEW(struct transaction);

    *t = (struct transaction){.rows = BUF_INIT(0), .last_meta = SIZE_MAX};
    return t;
}

static struct transaction *transaction_free(struct transaction *t)
{
    if (t)
        buf_fini(&t->rows);
    return mem_free(t);
}

static void add_u64(struct buf *out, uint64_t v)
{
    buf_add(out, (struct str){(const char *)&v, sizeof(v)});
}

static uint64_t take_u64(struct str *rest)
{
    uint64_t v;

    assert(rest->n >= sizeof(v));
    memcpy(&v, rest->p, sizeof(v));
    *rest = str_from(*rest, sizeof(v));
    return v;
}

/* A row: which query, how many values, and of each its kind and itself. */
static void add_row(struct transaction *t, const struct queue_query *q, bool is_meta)
{
    t->last_meta = is_meta ? t->rows.n : SIZE_MAX;
    buf_char(&t->rows, (char)q->which);
    buf_char(&t->rows, (char)q->n);
    for (int i = 0; i < q->n; i++) {
        buf_char(&t->rows, q->values[i].is_str ? 's' : 'i');
        add_u64(&t->rows, q->values[i].is_str ? q->values[i].s.n : (uint64_t)q->values[i].i);
        if (q->values[i].is_str)
            buf_add(&t->rows, q->values[i].s);
    }
    t->n++;
}

static char take_char(struct str *rest)
{
    char c;

    assert(rest->n);
    c = *rest->p;
    *rest = str_from(*rest, 1);
    return c;
}

/* Binds the next row to its query of the session. */
static struct ledger_query *next_row(struct ledger_queue *q, struct str *rest)
{
    struct ledger_query *query = q->queries[(unsigned char)take_char(rest)];
    int n = take_char(rest);

    for (int i = 1; i <= n; i++) {
        bool is_str = take_char(rest) == 's';
        uint64_t v = take_u64(rest);

        if (!is_str) {
            ledger_bind_int(query, i, (int64_t)v);
            continue;
        }
        ledger_bind_str(query, i, str_sub(*rest, 0, v));
        *rest = str_from(*rest, v);
    }
    return query;
}

/* --- as a database, for the loop --- */

static int prepare(struct ledger_db *db, const char *sql, struct ledger_query **ret,
                   struct err *err)
{
    struct ledger_queue *q = of(db);
    struct queue_query *query = NEW(struct queue_query);

    (void)err;
    assert(q->n_sql < MOST_QUERIES && !q->started);
    *query = (struct queue_query){.query = {db}, .which = q->n_sql};
    if (!strcmp(sql, LEDGER_PUT_META))
        q->meta = q->n_sql;
    q->sql[q->n_sql++] = sql;
    *ret = &query->query;
    return 0;
}

static void free_query(struct ledger_query *q)
{
    mem_free(query_of(q));
}

static void set_value(struct queue_query *q, int parameter, bool is_str, struct str s, int64_t i)
{
    assert(parameter > 0 && parameter <= MOST_VALUES);
    q->values[parameter - 1].is_str = is_str;
    q->values[parameter - 1].s = s;
    q->values[parameter - 1].i = i;
    q->n = parameter > q->n ? parameter : q->n;
}

static void bind_str(struct ledger_query *q, int parameter, struct str value)
{
    set_value(query_of(q), parameter, true, value, 0);
}

static void bind_int(struct ledger_query *q, int parameter, int64_t value)
{
    set_value(query_of(q), parameter, false, STR(""), value);
}

static enum ledger_step step(struct ledger_query *query, struct err *err)
{
    struct ledger_queue *q = of(query->db);
    struct queue_query *row = query_of(query);

    (void)err;
    if (!q->open)
        q->open = transaction_new();
    add_row(q->open, row, row->which == q->meta);
    return LEDGER_DONE;
}

static void reset(struct ledger_query *q)
{
    (void)q;
}

static const struct ledger_db_ops QUEUE_OPS = {
    .prepare = prepare,
    .free = free_query,
    .bind_str = bind_str,
    .bind_int = bind_int,
    .step = step,
    .reset = reset,
};

struct ledger_db *ledger_queue_db(struct ledger_queue *q)
{
    return &q->db;
}

/* With the mutex: into the one that waits last, unless it is in flight. Of two looks at the host in
 * a row the later one says all. */
static bool join(struct ledger_queue *q, struct transaction *t)
{
    struct transaction *last = q->tail;

    if (!last || (q->in_flight && last == q->head) || last->n + t->n > MOST_TOGETHER)
        return false;
    if (t->n == 1 && !t->last_meta && last->last_meta != SIZE_MAX) {
        last->rows.n = last->last_meta;
        last->n--;
        q->rows--;
    }
    last->last_meta = t->last_meta == SIZE_MAX ? SIZE_MAX : last->rows.n + t->last_meta;
    buf_add(&last->rows, buf_str(&t->rows));
    last->n += t->n;
    last->seen_us = t->seen_us;
    return true;
}

static size_t size_of(const struct transaction *t)
{
    return t ? sizeof(*t) + t->rows.n : 0;
}

int ledger_queue_commit(struct ledger_queue *q, int64_t seen_us, struct err *err)
{
    struct transaction *t = q->open;
    size_t most = q->o.remote.most_bytes ? q->o.remote.most_bytes : MOST_BYTES, before;
    bool full;

    if (!t)
        return 0;
    q->open = NULL;
    t->seen_us = seen_us;
    uv_mutex_lock(&q->mutex);
    before = size_of(q->tail);
    q->rows += t->n;
    if (join(q, t)) {
        transaction_free(t);
        q->bytes += size_of(q->tail) - before;
    } else {
        if (q->tail)
            q->tail->next = t;
        else
            q->head = t;
        q->tail = t;
        q->transactions++;
        q->bytes += size_of(t);
    }
    full = q->full = q->full || q->bytes > most;
    uv_cond_signal(&q->more);
    uv_mutex_unlock(&q->mutex);
    return full ? err_set(err, &ERR_TOO_LARGE,
                          "the ledger cannot be written, and no more of it can wait in memory")
                : 0;
}

/* --- the thread: the server --- */

static int fatal(struct ledger_queue *q, struct err *err, const char *why)
{
    q->fatal = true;
    err_clear(err);
    return err_set(err, &ERR_STORAGE, "%s", why);
}

static void end_session(struct ledger_queue *q)
{
    for (unsigned i = 0; i < q->n_sql; i++) {
        ledger_query_free(q->queries[i]);
        q->queries[i] = NULL;
    }
    ledger_query_free(q->put_turn);
    q->put_turn = NULL;
    q->session = ledger_db_close(q->session);
}

/* The head is there. */
static void settle(struct ledger_queue *q)
{
    struct transaction *t = q->head;

    q->turn++;
    uv_mutex_lock(&q->mutex);
    assert(q->in_flight);
    q->in_flight = false;
    q->head = t->next;
    if (!q->head)
        q->tail = NULL;
    q->transactions--;
    q->rows -= t->n;
    q->bytes -= size_of(t);
    q->done_us = t->seen_us > q->done_us ? t->seen_us : q->done_us;
    uv_mutex_unlock(&q->mutex);
    transaction_free(t);
}

/* The rows that a process begins with. */
static int read_rows(struct ledger_queue *q, struct err *err)
{
    q->a = arena_free(q->a);
    q->a = arena_new(0);
    return ledger_put_meta(q->session, "writer", q->writer, err) ||
                   q->session->ops->commit(q->session, err) ||
                   ledger_read(q->a, q->location, LEDGER_OPEN, INT64_MAX, &q->records, err)
               ? -1
               : 0;
}

/* What became of the transaction whose answer was lost, and whether the ledger is still ours. */
static int find_turn(struct ledger_queue *q, int64_t writer, int64_t turn, struct err *err)
{
    if (writer != q->writer)
        return fatal(q, err, "another process wrote the ledger meanwhile");
    if (turn == q->turn)
        return 0;
    if (turn != q->turn + 1 || !q->in_flight)
        return fatal(q, err,
                     "the server has another state of the ledger than it had: it lost "
                     "transactions, or was set back to a copy");
    settle(q);
    return 0;
}

static int begin_session(struct ledger_queue *q, struct err *err)
{
    int64_t patience = q->o.remote.patience_ms ? q->o.remote.patience_ms : PATIENCE_MS;
    struct ledger_origin origin;
    int64_t writer, turn;

    if (ledger_postgres_open(str_from(q->location, sizeof(LEDGER_REMOTE) - 1), q->stop_fd, patience,
                             q->former, &q->session, err))
        return -1;
    q->former = ledger_postgres_pid(q->session);
    if (ledger_set_up(q->session, clock_wall_us(q->o.remote.clock) / 1000000 * 1000000,
                      q->o.remote.identity, &origin, err) ||
        ledger_meta(q->session, "writer", &writer, err) ||
        ledger_meta(q->session, "turn", &turn, err))
        return -1;
    for (unsigned i = 0; i < q->n_sql; i++)
        if (q->session->ops->prepare(q->session, q->sql[i], &q->queries[i], err))
            return -1;
    if (q->session->ops->prepare(q->session, LEDGER_PUT_META, &q->put_turn, err))
        return -1;
    if (q->opened)
        return find_turn(q, writer, turn, err);
    if (read_rows(q, err))
        return -1;
    uv_mutex_lock(&q->mutex);
    q->turn = turn;
    q->origin = origin;
    q->done_us = origin.seen_us;
    q->opened = true;
    uv_mutex_unlock(&q->mutex);
    return 0;
}

static int write_rows(struct ledger_queue *q, const struct transaction *t, struct err *err)
{
    struct str rest = buf_str(&t->rows);
    struct ledger_query *query;

    while (rest.n) {
        query = next_row(q, &rest);
        if (ledger_step(query, err) == LEDGER_FAILED)
            return -1;
        q->session->ops->reset(query);
    }
    ledger_bind_str(q->put_turn, 1, STR("turn"));
    ledger_bind_int(q->put_turn, 2, q->turn + 1);
    if (ledger_step(q->put_turn, err) == LEDGER_FAILED)
        return -1;
    return q->session->ops->commit(q->session, err);
}

/* Rows that the server can never take are a fault of ours: to try again would be for ever. */
static int write_head(struct ledger_queue *q, struct err *err)
{
    if (!write_rows(q, q->head, err)) {
        settle(q);
        return 0;
    }
    if (err->kind == &ERR_CONFLICT)
        q->fatal = true;
    return -1;
}

/* --- the thread: its life --- */

static void ring(struct ledger_queue *q)
{
    uv_async_send(&q->bell->async);
}

static void say(struct ledger_queue *q, struct str why)
{
    uv_mutex_lock(&q->mutex);
    snprintf(q->why, sizeof(q->why), "%.*s", STR_F(why));
    q->failed = q->fatal;
    uv_mutex_unlock(&q->mutex);
    ring(q);
}

/* True when the head is there to be written, false when the end has come. */
static bool take(struct ledger_queue *q)
{
    bool ret;

    uv_mutex_lock(&q->mutex);
    while (!q->head && !q->stop)
        uv_cond_wait(&q->more, &q->mutex);
    ret = !q->stop;
    q->in_flight = ret;
    uv_mutex_unlock(&q->mutex);
    return ret;
}

/* False: the end has come. */
static bool rest(struct ledger_queue *q, int64_t ms)
{
    uint64_t until = uv_hrtime() + (uint64_t)ms * 1000000;
    bool ret;

    uv_mutex_lock(&q->mutex);
    while (!q->stop && uv_hrtime() < until)
        uv_cond_timedwait(&q->more, &q->mutex, until - uv_hrtime());
    ret = !q->stop;
    uv_mutex_unlock(&q->mutex);
    return ret;
}

static int work(struct ledger_queue *q, struct err *err)
{
    if (!q->session) {
        if (begin_session(q, err))
            return -1;
        say(q, STR(""));
    }
    if (!q->in_flight && !take(q))
        return 0;
    if (write_head(q, err))
        return -1;
    ring(q);
    return 0;
}

static bool stopped(struct ledger_queue *q)
{
    bool ret;

    uv_mutex_lock(&q->mutex);
    ret = q->stop;
    uv_mutex_unlock(&q->mutex);
    return ret;
}

static void run(void *arg)
{
    struct ledger_queue *q = arg;
    int64_t pause = FIRST_REST_MS;
    struct err err;

    err_init(&err, NULL);
    while (!stopped(q)) {
        if (!work(q, &err)) {
            pause = FIRST_REST_MS;
            continue;
        }
        end_session(q);
        say(q, err.message);
        err_clear(&err);
        if (q->fatal || !rest(q, pause))
            break;
        pause = pause * 2 < MOST_REST_MS ? pause * 2 : MOST_REST_MS;
    }
    end_session(q);
}

/* --- the loop --- */

static void end_flush(struct ledger_queue *q)
{
    void (*flushed)(void *ctx) = q->flushed;

    q->flushed = NULL;
    uv_timer_stop(&q->bell->timer);
    if (flushed)
        flushed(q->flushed_ctx);
}

static void on_timer(uv_timer_t *timer)
{
    struct bell *b = timer->data;

    if (b->queue)
        end_flush(b->queue);
}

/* The records, once. */
static void say_opened(struct ledger_queue *q)
{
    q->opened_said = true;
    q->o.opened(q->o.ctx, &q->origin, &q->records);
    q->a = arena_free(q->a);
}

static void on_bell(uv_async_t *async)
{
    struct bell *b = async->data;
    struct ledger_queue *q = b->queue;
    char why[sizeof(q->why)];
    bool opened, failed, idle;
    struct err err;

    if (!q)
        return;
    uv_mutex_lock(&q->mutex);
    memcpy(why, q->why, sizeof(why));
    opened = q->opened && !q->opened_said;
    failed = q->failed && !q->failed_said;
    idle = !q->head || q->failed;
    q->durable_us = q->done_us;
    uv_mutex_unlock(&q->mutex);
    mem_free(q->trouble.p);
    q->trouble = mem_str(str_c(why));
    if (opened)
        say_opened(q);
    q->o.remote.changed(q->o.remote.ctx);
    if (failed) {
        q->failed_said = true;
        err_init(&err, NULL);
        err_set(&err, &ERR_STORAGE, "%s", why);
        q->o.remote.failed(q->o.remote.ctx, &err);
    }
    if (b->queue && idle)
        end_flush(q);
}

struct ledger_queue *ledger_queue_new(const struct ledger_queue_options *options)
{
    struct ledger_queue *q = NEW(struct ledger_queue);
    int failed;

    *q = (struct ledger_queue){.db = {&QUEUE_OPS},
                               .magic = QUEUE_MAGIC,
                               .o = *options,
                               .location = mem_str(options->remote.location),
                               .bell = NEW(struct bell),
                               .meta = MOST_QUERIES,
                               .writer = (int64_t)(rng_u64(&RNG_SYSTEM) >> 1),
                               .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    failed = uv_mutex_init(&q->mutex) || uv_cond_init(&q->more) || q->stop_fd < 0;
    assert(!failed);
    *q->bell = (struct bell){.queue = q, .open = 2};
    uv_async_init(options->remote.loop, &q->bell->async, on_bell);
    uv_timer_init(options->remote.loop, &q->bell->timer);
    q->bell->async.data = q->bell->timer.data = q->bell;
    return q;
}

void ledger_queue_start(struct ledger_queue *q)
{
    int failed;

    assert(q->magic == QUEUE_MAGIC && !q->started);
    q->started = true;
    failed = uv_thread_create(&q->thread, run, q);
    assert(!failed);
}

static void on_bell_closed(uv_handle_t *handle)
{
    struct bell *b = handle->data;

    if (!--b->open)
        mem_free(b);
}

void ledger_queue_drop(struct ledger_queue *q)
{
    uint64_t one = 1;

    assert(q->magic == QUEUE_MAGIC);
    uv_mutex_lock(&q->mutex);
    q->stop = true;
    uv_cond_signal(&q->more);
    uv_mutex_unlock(&q->mutex);
    (void)!write(q->stop_fd, &one, sizeof(one));
    end_flush(q);
}

struct ledger_queue *ledger_queue_free(struct ledger_queue *q)
{
    if (!q)
        return NULL;
    ledger_queue_drop(q);
    if (q->started)
        uv_thread_join(&q->thread);
    q->bell->queue = NULL;
    uv_close((uv_handle_t *)&q->bell->async, on_bell_closed);
    uv_close((uv_handle_t *)&q->bell->timer, on_bell_closed);
    for (struct transaction *t = q->head, *next; t; t = next) {
        next = t->next;
        transaction_free(t);
    }
    transaction_free(q->open);
    uv_mutex_destroy(&q->mutex);
    uv_cond_destroy(&q->more);
    close(q->stop_fd);
    arena_free(q->a);
    mem_free(q->trouble.p);
    mem_free(q->location.p);
    q->magic = 0;
    return mem_free(q);
}

int64_t ledger_queue_durable_us(const struct ledger_queue *q)
{
    return q->durable_us;
}

struct str ledger_queue_trouble(const struct ledger_queue *q)
{
    return q->trouble;
}

void ledger_queue_waiting(struct ledger_queue *q, struct ledger_waiting *ret)
{
    uv_mutex_lock(&q->mutex);
    *ret = (struct ledger_waiting){q->transactions, q->rows, q->bytes, q->full};
    uv_mutex_unlock(&q->mutex);
}

void ledger_queue_flush(struct ledger_queue *q, int64_t most_ms, void (*done)(void *ctx), void *ctx)
{
    bool idle;

    assert(q->magic == QUEUE_MAGIC);
    uv_mutex_lock(&q->mutex);
    idle = !q->head || q->stop || q->failed;
    uv_mutex_unlock(&q->mutex);
    if (idle) {
        done(ctx);
        return;
    }
    q->flushed = done;
    q->flushed_ctx = ctx;
    if (most_ms < INT64_MAX)
        uv_timer_start(&q->bell->timer, on_timer, (uint64_t)most_ms, 0);
}
