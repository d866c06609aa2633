/* SPDX-License-Identifier: Apache-2.0
 * The writer thread executes one job at a time and sleeps otherwise. It touches the database and
 * what the job points to, never the store's own state. With an executor (tests that own time) a job
 * is two steps on the loop thread instead, so that what happens between a commit and its answer is
 * the executor's choice. */
#include "writer.h"

#include <sublet/store_executor.h>

#include <assert.h>
#include <pthread.h>
#include <signal.h>

#define WRITER_MAGIC 0x57726974u
/* SQLite's own need is a few tens of KiB; sanitizers multiply it. Untouched pages cost nothing. */
#define WRITER_STACK ((size_t)1 << 20)

static void run_backup(struct writer *w, struct job *job)
{
    if (!job->cancel) {
        job->result = *job->backup ? 0 : db_backup_open(w->db, job->path, job->backup, job->err);
        if (!job->result)
            job->result = db_backup_step(*job->backup, &job->more, job->err);
        if (job->more)
            return;
    }
    *job->backup = db_backup_close(*job->backup);
}

static void run_job(struct writer *w, struct job *job)
{
    switch (job->kind) {
    case JOB_COMMIT:
        job->result = db_commit(w->db, job->ops, job->n_ops, job->err);
        break;
    case JOB_READ:
        job->result =
            db_read(w->db, job->rows, job->n_rows, job->most_bytes, &job->n_read, job->err);
        break;
    case JOB_TIDY:
        job->more = db_tidy(w->db);
        break;
    case JOB_PROBE:
        db_probe(w->db);
        break;
    case JOB_BACKUP:
        run_backup(w, job);
        break;
    case JOB_REBUILD:
        job->result = db_rebuild(w->db, job->snapshot, job->err);
        break;
    case JOB_CLOSE:
        w->db = db_close(w->db);
        return;
    case JOB_NONE:
        assert(false);
    }
    db_disk(w->db, &job->disk);
    job->damaged = db_is_damaged(w->db);
}

static enum job_kind take_job(struct writer *w, struct job *ret)
{
    uv_mutex_lock(&w->lock);
    while (!w->has_job)
        uv_cond_wait(&w->posted, &w->lock);
    w->has_job = false;
    *ret = w->job;
    uv_mutex_unlock(&w->lock);
    return ret->kind;
}

static void answer_job(struct writer *w, const struct job *job)
{
    uv_mutex_lock(&w->lock);
    w->job = *job;
    w->has_answer = true;
    uv_mutex_unlock(&w->lock);
    uv_async_send(&w->answered);
}

static void writer_main(void *ctx)
{
    struct writer *w = ctx;
    struct job job;
    enum job_kind kind;

    assert(w->magic == WRITER_MAGIC);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    do {
        kind = take_job(w, &job);
        run_job(w, &job);
        answer_job(w, &job);
        /* No caller waits for this: it overlaps with the answers on the loop thread. */
        if (kind == JOB_COMMIT)
            db_after_commit(w->db);
    } while (kind != JOB_CLOSE);
}

static void on_answered(uv_async_t *handle)
{
    struct writer *w = handle->data;
    struct job job;

    assert(w->magic == WRITER_MAGIC);
    uv_mutex_lock(&w->lock);
    bool answered = w->has_answer;
    w->has_answer = false;
    job = w->job;
    uv_mutex_unlock(&w->lock);
    if (!answered)
        return;

    assert(w->busy);
    w->busy = false;
    uv_unref((uv_handle_t *)&w->answered);
    w->on_answer(w->ctx, &job);
}

static void answer_step(void *arg)
{
    struct writer *w = arg;
    struct job job = w->job;

    assert(w->magic == WRITER_MAGIC && w->busy);
    if (job.kind == JOB_COMMIT)
        db_after_commit(w->db);
    w->busy = false;
    uv_unref((uv_handle_t *)&w->answered);
    w->on_answer(w->ctx, &job);
}

static void work_step(void *arg)
{
    struct writer *w = arg;

    assert(w->magic == WRITER_MAGIC && w->busy);
    run_job(w, &w->job);
    w->executor->post(w->executor->ctx, answer_step, w);
}

int writer_start(struct writer *w, struct uv_loop_s *loop, const struct store_executor *executor,
                 struct db *db, writer_cb on_answer, void *ctx, struct err *err)
{
    *w = (struct writer){
        .magic = WRITER_MAGIC, .db = db, .executor = executor, .on_answer = on_answer, .ctx = ctx};
    uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = WRITER_STACK};

    int rc = uv_mutex_init(&w->lock);
    assert(!rc);
    rc = uv_cond_init(&w->posted);
    assert(!rc);
    rc = uv_async_init(loop, &w->answered, on_answered);
    assert(!rc);
    w->answered.data = w;
    uv_unref((uv_handle_t *)&w->answered);

    if (executor)
        return 0;
    rc = uv_thread_create_ex(&w->thread, &options, writer_main, w);
    return rc ? err_set(err, &ERR_STORAGE, "writer thread: %s", uv_strerror(rc)) : 0;
}

void writer_post(struct writer *w, const struct job *job)
{
    assert(w->magic == WRITER_MAGIC && !w->busy);
    w->busy = true;
    uv_ref((uv_handle_t *)&w->answered);

    uv_mutex_lock(&w->lock);
    w->job = *job;
    w->job.err = &w->err;
    err_init(&w->err, NULL);
    w->has_job = !w->executor;
    uv_cond_signal(&w->posted);
    uv_mutex_unlock(&w->lock);
    if (w->executor)
        w->executor->post(w->executor->ctx, work_step, w);
}

void writer_join(struct writer *w)
{
    if (!w->executor)
        uv_thread_join(&w->thread);
    uv_cond_destroy(&w->posted);
    uv_mutex_destroy(&w->lock);
    w->magic = 0;
}
