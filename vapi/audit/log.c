/* SPDX-License-Identifier: Apache-2.0
 *
 * Audit lines go into a bounded buffer, and from there, by a thread of its own, to the file. Why: a
 * slow disk or a blocked reader of our output must cost events (counted) or new requests (refused),
 * never the loop. Must never take a lock while it writes, and never split a line over two files.
 *
 *   audit_log_write() --> filling --swap--> writing --> file --max_bytes--> rotated
 *                            | full: dropped and counted              '--> old backups removed
 */
#include "file.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <uv.h>

#include <sublet/clock.h>

#define LOG_MAGIC     0x61756c67u
#define CLOSE_SECONDS 5
#define STACK         (256u << 10)
#define KEEP_BYTES    (256u << 10) /* of buffer memory while idle */

struct audit_log {
    unsigned magic;
    pthread_t thread;
    uv_mutex_t lock; /* guards the fields up to the next blank line */
    uv_cond_t wake;
    struct buf filling;
    size_t lines; /* in filling */
    struct audit_log_stats stats;
    bool closing;

    size_t limit;
    struct audit_file *file; /* used by the thread alone */
};

/* ---- the thread ---- */

static void write_batch(struct audit_log *log, struct buf *batch, size_t lines)
{
    size_t lost = audit_file_write(log->file, buf_str(batch));
    size_t n = batch->n;

    buf_clear(batch);
    if (batch->cap > KEEP_BYTES) {
        buf_fini(batch);
        *batch = BUF_INIT(0);
    }
    uv_mutex_lock(&log->lock);
    log->stats.written += lines - lost;
    log->stats.failed += lost;
    log->stats.waiting -= n;
}

static void *run(void *ctx)
{
    struct audit_log *log = ctx;
    struct buf batch = BUF_INIT(0);
    size_t lines;
    struct buf empty;

    uv_mutex_lock(&log->lock);
    while (log->lines || !log->closing) {
        if (!log->lines) {
            uv_cond_wait(&log->wake, &log->lock);
            continue;
        }

        empty = batch;
        batch = log->filling;
        lines = log->lines;
        log->filling = empty;
        log->lines = 0;

        uv_mutex_unlock(&log->lock);
        write_batch(log, &batch, lines); /* takes the lock again */
    }
    uv_mutex_unlock(&log->lock);
    buf_fini(&batch);
    return NULL;
}

/* The thread receives no signals: they are the loop's. */
static int start_thread(struct audit_log *log)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    rc = pthread_create(&log->thread, &attr, run, log);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* ---- the loop's side ---- */

int audit_log_open(const struct audit_log_options *options, struct audit_log **ret, struct err *err)
{
    struct audit_file *file;
    struct audit_log *log;
    int rc;

    if (audit_file_open(options, &file, err))
        return -1;
    log = NEW(struct audit_log);
    log->magic = LOG_MAGIC;
    log->file = file;
    log->limit = options->buffer_bytes;
    log->filling = BUF_INIT(0);
    uv_mutex_init(&log->lock);
    uv_cond_init(&log->wake);
    rc = start_thread(log);
    if (!rc) {
        *ret = log;
        return 0;
    }
    uv_cond_destroy(&log->wake);
    uv_mutex_destroy(&log->lock);
    audit_file_close(file);
    mem_free(log);
    return err_set(err, &ERR_UNAVAILABLE, "audit log: no thread: %s", strerror(rc));
}

bool audit_log_has_room(struct audit_log *log)
{
    bool room;

    assert(log->magic == LOG_MAGIC);
    uv_mutex_lock(&log->lock);
    room = log->stats.waiting < log->limit / 2;
    uv_mutex_unlock(&log->lock);
    return room;
}

void audit_log_write(struct audit_log *log, struct str line)
{
    assert(log->magic == LOG_MAGIC && line.n && line.p[line.n - 1] == '\n');
    uv_mutex_lock(&log->lock);
    if (log->stats.waiting + line.n > log->limit) {
        log->stats.dropped++;
    } else {
        buf_add(&log->filling, line);
        log->stats.waiting += line.n;
        if (!log->lines++)
            uv_cond_signal(&log->wake);
    }
    uv_mutex_unlock(&log->lock);
}

void audit_log_stats(struct audit_log *log, struct audit_log_stats *ret)
{
    assert(log->magic == LOG_MAGIC);
    uv_mutex_lock(&log->lock);
    *ret = log->stats;
    uv_mutex_unlock(&log->lock);
}

struct audit_log *audit_log_close(struct audit_log *log)
{
    struct timespec until = {.tv_sec = clock_wall_s(&CLOCK_SYSTEM) + CLOSE_SECONDS};

    if (!log)
        return NULL;
    assert(log->magic == LOG_MAGIC);
    uv_mutex_lock(&log->lock);
    log->closing = true;
    uv_cond_signal(&log->wake);
    uv_mutex_unlock(&log->lock);
    /* A thread that hangs in a write keeps its memory; the process is about to exit. */
    if (pthread_timedjoin_np(log->thread, NULL, &until))
        return NULL;
    uv_cond_destroy(&log->wake);
    uv_mutex_destroy(&log->lock);
    buf_fini(&log->filling);
    audit_file_close(log->file);
    log->magic = 0;
    return mem_free(log);
}
