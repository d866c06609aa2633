/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing a store, and what it says about itself. */
#include "batch.h"
#include "drive.h"
#include "impl.h"
#include "reading.h"
#include "upkeep.h"

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/store_failure.h>

#include <assert.h>
#include <sys/stat.h>

#define DEFAULT_EVENTS  16384
#define DEFAULT_BYTES   ((size_t)16 << 20)
#define DEFAULT_SECONDS 300
#define DEFAULT_MEMORY  ((size_t)1 << 20)

struct store *store_new(struct uv_loop_s *loop, const struct store_options *options)
{
    struct store *s = NEW(struct store);

    s->magic = STORE_MAGIC;
    s->loop = loop;
    s->options = *options;
    s->options.path = NULL;
    if (!s->options.history_events)
        s->options.history_events = DEFAULT_EVENTS;
    if (!s->options.history_bytes)
        s->options.history_bytes = DEFAULT_BYTES;
    if (!s->options.history_seconds)
        s->options.history_seconds = DEFAULT_SECONDS;
    if (!s->options.history_memory)
        s->options.history_memory = DEFAULT_MEMORY;
    STAILQ_INIT(&s->backups);
    TAILQ_INIT(&s->waiting);
    TAILQ_INIT(&s->ready);
    s->n_tables = s->free_id = 1;
    s->cap_tables = 64;
    s->tables = mem_alloc(s->cap_tables * sizeof(struct table *));
    return s;
}

void store_free(struct store *s)
{
    assert(!s->open && !s->flying && STAILQ_EMPTY(&s->backups));
    store_watch_fini_all(s);
    recalls_fini(s);
    history_fini(&s->history);
    tables_fini(s);
    records_fini(s);
    damage_fini(s);
    mem_free(s->touched);
    mem_free(s->read_only);
    mem_free(s->file);
    s->magic = 0;
    mem_free(s);
}

static int64_t system_wall_us(void)
{
    return clock_wall_us(&CLOCK_SYSTEM);
}

int store_open_db(const struct store_options *options, struct db **ret, struct err *err)
{
    struct db_options db = {.wall_us = options->wall_us ? options->wall_us : system_wall_us,
                            .rng = options->rng ? options->rng : &RNG_SYSTEM};

    if (options->after)
        db.after = *options->after;
    return db_open(options->path, &db, ret, err);
}

void store_identity(const struct store *s, struct store_identity *ret)
{
    assert(s->magic == STORE_MAGIC);
    *ret = s->state.identity;
}

int store_open(struct uv_loop_s *loop, const struct store_options *options, struct store **ret,
               struct err *err)
{
    struct db *db;

    if (store_open_db(options, &db, err))
        return -1;
    struct store *s = store_new(loop, options);
    s->file = mem_strdup(str_c(db_file(db)));
    if (store_load(s, db, err)) {
        db_close(db);
        store_free(s);
        return -1;
    }
    store_retain(s);
    if (drive_start(s, db, err)) {
        db_close(db);
        drive_stop(s, store_free);
        return -1;
    }
    *ret = s;
    return 0;
}

static void on_stopped(struct store *s)
{
    void (*closed)(void *ctx) = s->closed;
    void *ctx = s->closed_ctx;

    store_free(s);
    if (closed)
        closed(ctx);
}

void store_close(struct store *s, void (*closed)(void *ctx), void *ctx)
{
    assert(s->magic == STORE_MAGIC && !s->closing);
    s->closing = true;
    s->tidy = false;
    s->closed = closed;
    s->closed_ctx = ctx;
    s->stopped = on_stopped;
    uv_timer_stop(&s->quiet);
    uv_timer_stop(&s->probe);
    store_watch_fini_all(s);
    recalls_fini(s);
    drive_schedule(s);
}

void store_backup(struct store *s, const char *path, store_done_cb done, void *ctx)
{
    assert(s->magic == STORE_MAGIC && !s->closing);
    struct backup_request *r = NEW(struct backup_request);

    r->path = mem_strdup(str_c(path));
    r->done = (struct done){done, ctx};
    STAILQ_INSERT_TAIL(&s->backups, r, place);
    drive_schedule(s);
}

void store_on_failure(struct store *s, void (*failed)(void *ctx), void *ctx)
{
    assert(s->magic == STORE_MAGIC);
    s->on_failure = failed;
    s->on_failure_ctx = ctx;
}

uint64_t store_undone(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->n_undone;
}

int64_t store_revision(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->revision;
}

int64_t store_oldest_revision(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->history.floor;
}

size_t store_bytes(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->live_bytes;
}

static size_t size_of(const char *file, const char *suffix)
{
    struct buf path = BUF_INIT(0);
    struct stat st;

    buf_addc(&path, file);
    buf_addc(&path, suffix);
    buf_char(&path, '\0');
    bool there = !stat(path.p, &st);
    buf_fini(&path);
    return there ? (size_t)st.st_size : 0;
}

void store_stats(const struct store *s, struct store_stats *ret)
{
    assert(s->magic == STORE_MAGIC);
    *ret = s->stats;
    ret->events = history_count(&s->history);
    ret->event_bytes = s->history.warm_bytes;
    ret->history_bytes = s->history.bytes;
    ret->waiting_bytes = s->waiting_bytes;
    ret->file_bytes = size_of(s->file, "");
    ret->log_bytes = size_of(s->file, DB_LOG_SUFFIX);
}

int store_restore(const char *backup, const char *path, struct err *err)
{
    return db_restore(backup, path, err);
}
