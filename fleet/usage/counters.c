/* SPDX-License-Identifier: Apache-2.0 */
/* Between the loop and the thread that counts. The thread has the book alone until on_counted();
 * the loop has the bytes that it wrote. A ledger of many pods takes seconds to read: it is not read
 * again before ten times as long has passed. After a failure these bytes stay, and the next count
 * begins with the file. */
#include "counters.h"

#include <assert.h>

#include <uv.h>

#include <sublet/err.h>
#include <sublet/log.h>

#include "counter_book.h"

#define COUNTERS_MAGIC 0x636f756eu
#define PAUSE_MS       30000
#define PAUSE_TIMES    10

/* One count. */
struct job {
    uv_work_t work;
    struct counters *counters; /* NULL: it was freed */
    struct counter_book *book;
    struct buf text;
    int64_t seen_us;
    bool failed;
    struct err err; /* of one that failed */
};
struct counters {
    unsigned magic;
    struct counters_options o;
    struct job *job;           /* under way, or NULL; it has the book */
    struct counter_book *book; /* NULL: not yet, or it failed */
    struct buf text;
    size_t refused;
    bool failing; /* the last count */
    int64_t next_ms, began_ms;
};

static struct job *job_free(struct job *job)
{
    fleet_book_free(job->book);
    buf_fini(&job->text);
    return mem_free(job);
}

struct counters *fleet_counters_new(const struct counters_options *options)
{
    struct counters *c = NEW(struct counters);

    *c = (struct counters){.magic = COUNTERS_MAGIC, .o = *options};
    c->o.directory = mem_str(options->directory);
    c->o.location = mem_str(options->location);
    return c;
}

struct counters *fleet_counters_free(struct counters *c)
{
    if (!c)
        return NULL;
    assert(c->magic == COUNTERS_MAGIC);
    if (c->job) {
        c->job->counters = NULL;
        (void)uv_cancel((uv_req_t *)&c->job->work); /* unless its thread began */
    }
    fleet_book_free(c->book);
    buf_fini(&c->text);
    mem_free(c->o.directory.p);
    mem_free(c->o.location.p);
    c->magic = 0;
    return mem_free(c);
}

static void work(uv_work_t *work)
{
    struct job *job = work->data;

    job->failed = fleet_book_count(job->book, job->seen_us, &job->err) != 0;
    if (!job->failed)
        fleet_book_write(job->book, &job->text);
    mem_trim();
}

static void take(struct counters *c, struct job *job)
{
    struct buf before = c->text;

    c->text = job->text;
    job->text = before;
    c->book = job->book;
    job->book = NULL;
    c->refused = fleet_book_refused(c->book);
    if (c->failing)
        log_info("fleet: GPU time and cost are counted again");
    c->failing = false;
}

/* The first failure in a row is logged: without a new count /metrics keeps the last one. */
static void note_failure(struct counters *c, const struct err *err)
{
    if (!c->failing)
        log_warn("fleet: GPU time and cost are not counted error=\"%.*s\"", STR_F(err->message));
    c->failing = true;
}

static void on_counted(uv_work_t *work, int status)
{
    struct job *job = work->data;
    struct counters *c = job->counters;
    int64_t now, pause;

    (void)status; /* cancelled: only when the counters were freed */
    if (c) {
        assert(c->magic == COUNTERS_MAGIC && c->job == job);
        now = clock_mono_ms(c->o.clock);
        pause = (now - c->began_ms) * PAUSE_TIMES;
        c->job = NULL;
        c->next_ms = now + (pause > PAUSE_MS ? pause : PAUSE_MS);
        if (job->failed)
            note_failure(c, &job->err);
        else
            take(c, job);
    }
    job_free(job);
}

void fleet_counters_ask(struct counters *c, int64_t seen_us)
{
    struct job *job;
    int failed;

    if (!c)
        return;
    assert(c->magic == COUNTERS_MAGIC);
    if (c->job || (c->next_ms && clock_mono_ms(c->o.clock) < c->next_ms))
        return;
    job = NEW(struct job);
    *job = (struct job){.counters = c, .book = c->book, .seen_us = seen_us};
    err_init(&job->err, NULL);
    if (!job->book)
        job->book = fleet_book_new(c->o.directory, c->o.location, c->o.identity);
    job->work.data = job;
    c->book = NULL;
    c->job = job;
    c->began_ms = clock_mono_ms(c->o.clock);
    failed = uv_queue_work(c->o.loop, &job->work, work, on_counted);
    assert(!failed); /* only without a function */
}

void fleet_counters_metrics(const struct counters *c, struct buf *out)
{
    if (c)
        buf_add(out, buf_str(&c->text));
}

size_t fleet_counters_refused(const struct counters *c)
{
    return c ? c->refused : 0;
}
