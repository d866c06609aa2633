/* SPDX-License-Identifier: Apache-2.0
 * The writer thread: one slot, one job at a time. Posting and answers are on the loop thread. */
#pragma once

#include <uv.h>
#include "db.h"

struct store_executor;
struct db_row;

enum job_kind {
    JOB_NONE,
    JOB_COMMIT,
    JOB_READ,
    JOB_TIDY,
    JOB_PROBE,
    JOB_BACKUP,
    JOB_REBUILD,
    JOB_CLOSE
};

struct job {
    enum job_kind kind;
    const struct op *ops; /* JOB_COMMIT */
    size_t n_ops;
    struct db_row *rows;                /* JOB_READ */
    size_t n_rows, most_bytes, n_read;  /* n_read: out */
    const struct db_snapshot *snapshot; /* JOB_REBUILD */
    const char *path;                   /* JOB_BACKUP */
    struct db_backup *
        *backup;     /* JOB_BACKUP: *backup is NULL before the first and after the last step */
    bool cancel;     /* JOB_BACKUP: give it up */
    bool more;       /* out: JOB_TIDY and JOB_BACKUP have more to do */
    int result;      /* out: 0 or -1 */
    bool damaged;    /* out: the structure of the file is */
    struct err *err; /* out; good until the next post */
    struct disk_state disk; /* out: what holds after it */
};

typedef void (*writer_cb)(void *ctx, struct job *job);

struct writer {
    unsigned magic;
    struct db *db;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t posted;
    uv_async_t answered;
    struct job job; /* of the thread from posting to answer, like err */
    struct err err;
    bool has_job, has_answer;              /* under lock */
    bool busy;                             /* loop thread: posted and not answered */
    const struct store_executor *executor; /* instead of the thread */
    writer_cb on_answer;
    void *ctx;
};

/* Takes the db. executor NULL: a thread. */
int writer_start(struct writer *w, struct uv_loop_s *loop, const struct store_executor *executor,
                 struct db *db, writer_cb on_answer, void *ctx, struct err *err) MUST_CHECK;
/* Only while not busy. Keeps the loop alive until the answer. */
void writer_post(struct writer *w, const struct job *job);
/* After the answer to JOB_CLOSE: joins the thread, if there is one. The async handle is the
 * caller's to close. */
void writer_join(struct writer *w);
