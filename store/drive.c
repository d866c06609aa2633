/* SPDX-License-Identifier: Apache-2.0
 * Decides what the writer thread does next. One job runs at a time:
 *
 *   tick ends (prepare or check) --.    rebuild > open batch, read, backup step: by turns
 *   answer of the job before ------+--> > dead rows > tidying > probe > close
 *   quiet timer -------------------'
 *
 * Nothing polls: the only timer is armed by a write, fires once the store has been quiet for a
 * while, and once more when the whole history has become too old. (A disk that is not writable has
 * another one: disk.c.) */
#include "batch.h"
#include "drive.h"
#include "impl.h"
#include "reading.h"
#include "upkeep.h"

#include <assert.h>
#include <malloc.h>

static void drive(struct store *s);
static void failed(struct store *s, struct batch *b, const struct err *why, bool damaged);

static void post_commit(struct store *s)
{
    if (s->open)
        s->last_commit_ms = uv_now(s->loop);
    batch_take_drops(s);
    assert(s->open);
    uv_prepare_stop(&s->prepare);
    uv_check_stop(&s->check);
    s->flying = s->open;
    s->open = NULL;
    writer_post(&s->writer, &(struct job){
                                .kind = JOB_COMMIT,
                                .ops = s->flying->ops,
                                .n_ops = s->flying->n_ops,
                            });
}

static void post_backup(struct store *s)
{
    struct backup_request *r = STAILQ_FIRST(&s->backups);

    writer_post(&s->writer, &(struct job){
                                .kind = JOB_BACKUP,
                                .path = r->path,
                                .backup = &r->db,
                                .cancel = s->closing || s->rebuild,
                            });
}

static bool commit_due(const struct store *s)
{
    return s->open && s->open->n_ops;
}

static bool backup_due(const struct store *s)
{
    return !STAILQ_EMPTY(&s->backups);
}

static bool backup_is_open(const struct store *s)
{
    return backup_due(s) && STAILQ_FIRST(&s->backups)->db;
}

/* What clients wait for. None of them can keep the others from the disk. */
static bool take_turn(struct store *s, bool shut)
{
    static const struct {
        bool (*due)(const struct store *s);
        void (*post)(struct store *s);
    } turns[] = {{commit_due, post_commit},
                 {recall_reads_due, recall_reads_post},
                 {backup_due, post_backup}};

    for (unsigned i = 0; i < 3; i++) {
        unsigned turn = (s->turn + i) % 3;
        if (turns[turn].due(s) && !(shut && turns[turn].due == commit_due)) {
            turns[turn].post(s);
            s->turn = turn + 1;
            return true;
        }
    }
    s->turn = 0; /* after a pause, a backup has what was written before it */
    return false;
}

/* Records are put without a check: what the disk does not take is undone here, at no cost to it.
 */
static void refuse_open(struct store *s)
{
    struct batch *b = s->open;
    struct err err;

    s->open = NULL;
    err_init(&err, NULL);
    (void)!store_disk_refuse(s, &err);
    failed(s, b, &err, false);
    batch_free(b);
}

/* What can wait for a moment without writes. */
static void post_upkeep(struct store *s, bool shut)
{
    if (s->tidy && !shut && s->history.n_drops) {
        post_commit(s);
    } else if (s->tidy && !shut) {
        writer_post(&s->writer, &(struct job){.kind = JOB_TIDY});
    } else if (s->probe_due && !s->closing) {
        s->probe_due = false;
        writer_post(&s->writer, &(struct job){.kind = JOB_PROBE});
    } else if (s->closing && !s->open) {
        writer_post(&s->writer, &(struct job){.kind = JOB_CLOSE});
    }
}

static void drive(struct store *s)
{
    bool shut = store_disk_is_shut(s);

    if (s->writer.busy)
        return;
    if (s->rebuild) { /* the connection that a backup reads from ends with it */
        backup_is_open(s) ? post_backup(s) : rebuild_post(s);
        return;
    }
    if (s->open && s->open->n_ops && shut)
        refuse_open(s);
    if (s->open && !s->open->n_ops) {
        struct batch *b = s->open;

        /* A caller waits for writes and there are none under way. */
        s->open = NULL;
        batch_answer(b, NULL);
        batch_free(b);
    }

    if (take_turn(s, shut))
        return;
    post_upkeep(s, shut);
}

static void flush(struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    uv_prepare_stop(&s->prepare);
    uv_check_stop(&s->check);
    drive(s);
}

static void on_prepare(uv_prepare_t *handle)
{
    flush(handle->data);
}

static void on_check(uv_check_t *handle)
{
    flush(handle->data);
}

/* Writes of a callback of this tick's timers are flushed before the loop waits, those of its I/O
 * after it. While a job runs, its answer does both. */
void drive_schedule(struct store *s)
{
    if (s->writer.busy || uv_is_active((uv_handle_t *)&s->check))
        return;
    uv_prepare_start(&s->prepare, on_prepare);
    uv_check_start(&s->check, on_check);
}

static void on_quiet(uv_timer_t *timer);

static void arm_quiet(struct store *s, uint64_t ms)
{
    if (!s->closing)
        uv_timer_start(&s->quiet, on_quiet, ms, 0);
}

/* Something was done that leaves work for quiet moments. */
static void expect_quiet(struct store *s)
{
    if (!uv_is_active((uv_handle_t *)&s->quiet) || uv_timer_get_due_in(&s->quiet) > STORE_QUIET_MS)
        arm_quiet(s, STORE_QUIET_MS);
}

static void on_quiet(uv_timer_t *timer)
{
    struct store *s = timer->data;

    assert(s->magic == STORE_MAGIC);
    uint64_t quiet = uv_now(s->loop) - s->last_commit_ms;
    if (quiet < STORE_QUIET_MS) {
        arm_quiet(s, STORE_QUIET_MS - quiet);
        return;
    }
    store_retain(s);
    s->tidy = true;
    drive(s);
}

static void tidied(struct store *s)
{
    int64_t due = retain_due(s);

    s->tidy = false;
    retain_nothing_warm(s);
    history_shrink(&s->history);
    store_pack(s);
    malloc_trim(0);
    if (due >= 0)
        arm_quiet(s, due * 1000 > STORE_QUIET_MS ? (uint64_t)due * 1000 : STORE_QUIET_MS);
}

static void failed(struct store *s, struct batch *b, const struct err *why, bool damaged)
{
    struct err err;

    err_init(&err, NULL);
    err_set(&err, why->kind, "%.*s", STR_F(why->message));
    err.retry_after = why->retry_after;
    s->tidy = false;
    struct batch *later = batch_undo(s, b);
    if (damaged)
        rebuild_prepare(s);
    batch_answer(b, &err);
    batch_answer(later, &err);
    batch_free(later);
    if (s->on_failure)
        s->on_failure(s->on_failure_ctx);
}

static void answer_commit(struct store *s, const struct job *job)
{
    struct batch *b = s->flying;

    s->flying = NULL;
    store_disk_learn(s, &job->disk);
    if (job->result) {
        if (s->disk.disk)
            (void)!store_disk_refuse(s, job->err);
        s->stats.failures++;
        failed(s, b, job->err, job->damaged);
    } else {
        s->stats.commits++;
        s->stats.operations += b->n_ops - b->n_drops;
        if (s->disk.disk && b->n_ops > b->n_drops)
            store_disk_hope(s);
        batch_commit(s, b);
        /* The disk works on the next batch while this one is answered. */
        drive(s);
        batch_answer(b, NULL);
        store_watch_wake_all(s);
        store_retain(s);
        if (b->n_ops > b->n_drops)
            expect_quiet(s);
    }
    batch_free(b);
}

static void answer_backup(struct store *s, const struct job *job)
{
    struct backup_request *r = STAILQ_FIRST(&s->backups);
    struct err err;

    if (job->more)
        return;
    STAILQ_REMOVE_HEAD(&s->backups, place);
    err_init(&err, NULL);
    if (s->closing && !job->result)
        err_set(&err, &ERR_UNAVAILABLE, "the store is closing");
    else if (s->rebuild && !job->result)
        err_set(&err, &ERR_UNAVAILABLE, "the file of the store is damaged and is rebuilt first");
    else if (job->result)
        err_set(&err, job->err->kind, "%.*s", STR_F(job->err->message));
    r->done.call(r->done.ctx, err.kind ? &err : NULL);
    mem_free(r->path);
    mem_free(r);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct store *s = handle->data;

    assert(s->magic == STORE_MAGIC && s->open_handles);
    if (!--s->open_handles)
        s->stopped(s);
}

void drive_stop(struct store *s, void (*stopped)(struct store *s))
{
    uv_handle_t *handles[] = {(uv_handle_t *)&s->prepare, (uv_handle_t *)&s->check,
                              (uv_handle_t *)&s->quiet, (uv_handle_t *)&s->probe,
                              (uv_handle_t *)&s->writer.answered};

    s->stopped = stopped;
    for (size_t i = 0; i < COUNT(handles); i++) {
        handles[i]->data = s;
        s->open_handles++;
        uv_close(handles[i], on_handle_closed);
    }
}

static void on_answer(void *ctx, struct job *job)
{
    struct store *s = ctx;

    assert(s->magic == STORE_MAGIC);
    switch (job->kind) {
    case JOB_COMMIT:
        answer_commit(s, job);
        break;
    case JOB_READ:
        recall_reads_answer(s, job);
        expect_quiet(s);
        break;
    case JOB_BACKUP:
        answer_backup(s, job);
        break;
    case JOB_TIDY:
        store_disk_learn(s, &job->disk);
        if (!job->more)
            tidied(s);
        break;
    case JOB_PROBE:
        store_disk_learn(s, &job->disk);
        break;
    case JOB_REBUILD:
        rebuild_answer(s, job);
        break;
    case JOB_CLOSE:
        writer_join(&s->writer);
        drive_stop(s, s->stopped);
        return;
    case JOB_NONE:
        assert(false);
    }
    drive(s);
}

int drive_start(struct store *s, struct db *db, struct err *err)
{
    struct disk_state disk;

    uv_prepare_init(s->loop, &s->prepare);
    uv_check_init(s->loop, &s->check);
    uv_timer_init(s->loop, &s->quiet);
    uv_unref((uv_handle_t *)&s->quiet);
    db_disk(db, &disk);
    store_disk_start(s, &disk);
    s->prepare.data = s->check.data = s->quiet.data = s;
    return writer_start(&s->writer, s->loop, s->options.executor, db, on_answer, s, err);
}
