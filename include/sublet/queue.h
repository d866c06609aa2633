/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * The work queue of every controller and syncer: a set of keys, each handed out to one worker at a
 * time. Adding a key that waits does nothing; adding one that is being worked on makes it come
 * again after done. Failures back off per key, exponentially. Pure: time is an argument, nothing
 * sleeps.
 *
 *            add                    get                 done
 *   (absent) ---> waiting --------> ready -----> working -----> (absent), or waiting when added
 *                 until due time                   meanwhile or when failed */
#pragma once

#include <sublet/mem.h>

struct queue_options {
    int64_t backoff_base_ms; /* first retry; default 5 */
    int64_t backoff_max_ms;  /* default 60,000 */
    size_t max_keys;         /* more are refused; default 100,000 */
};

struct queue;

struct queue *queue_new(const struct queue_options *options); /* NULL: defaults */
struct queue *queue_free(struct queue *q);
/* False only when the queue is full. The key is copied. */
bool queue_add(struct queue *q, struct str key, int64_t now_ms);
bool queue_add_at(struct queue *q, struct str key, int64_t due_ms); /* the earlier due time wins */
/* The next key that is due, or false. The view lives until queue_done() of that key. */
bool queue_get(struct queue *q, int64_t now_ms, struct str *ret_key);
void queue_done(struct queue *q, struct str key, int64_t now_ms, bool failed);
/* Forgets the failures of a key. queue_done(failed = false) does so as well. */
void queue_forget(struct queue *q, struct str key);
int64_t queue_next_due(const struct queue *q); /* INT64_MAX when nothing waits */
size_t queue_length(const struct queue *q);    /* keys that wait, due or not */
unsigned queue_failures(const struct queue *q, struct str key);

/* The same on a libuv loop: calls work() for each due key, at most max_working at once; sleeps on a
 * timer only while something waits. work() must lead to exactly one worker_done() for the key, now
 * or later. The loop's clock is `clock`. */
struct worker;
struct uv_loop_s;
struct clock;
typedef void (*worker_cb)(void *ctx, struct worker *w, struct str key);

struct worker *worker_new(struct uv_loop_s *loop, const struct clock *clock,
                          const struct queue_options *options, unsigned max_working, worker_cb work,
                          void *ctx);
void worker_add(struct worker *w, struct str key);
void worker_add_after(struct worker *w, struct str key, int64_t delay_ms);
void worker_done(struct worker *w, struct str key, bool failed);
unsigned worker_failures(const struct worker *w, struct str key);
bool worker_idle(const struct worker *w);     /* nothing waits, nothing is worked on */
size_t worker_length(const struct worker *w); /* keys that wait, due or not */
size_t
worker_dropped(const struct worker *w); /* adds refused since the start: the queue was full */
struct worker_stats {
    uint64_t adds, retries; /* since the start; retries: of keys that failed */
    size_t waiting;         /* keys, due or not */
    unsigned working;
};
void worker_stats(const struct worker *w, struct worker_stats *ret);
int64_t worker_next_due(const struct worker *w); /* mono ms; INT64_MAX when nothing waits */
/* While paused nothing is handed out; keys gather, and what is worked on is finished. */
void worker_pause(struct worker *w, bool paused);
/* Looks at the clock again: for a clock that jumped (a test's own). */
void worker_wake(struct worker *w);
/* Async. There is no work() and no effect of worker_add() after it, but each key that is being
 * worked on still wants its worker_done(): closed() is called, from the loop, after the last one.
 * Frees w. */
void worker_close(struct worker *w, void (*closed)(void *ctx), void *ctx);
