/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a controller and of a run, shared by controller.c (watches, queue, lifecycle) and
 * reconcile.c (reads and writes of a run). Must not be included by a controller. */
#pragma once

#include <sublet/controller.h>
#include <sublet/read_only.h>
#include <sublet/retry.h>

#define CONTROLLER_MAGIC 0x6374726cu
#define RECONCILE_MAGIC  0x7265636fu
#define OP_MAGIC         0x6f706572u

struct source {
    struct controller *controller;
    const struct controller_source *def;
    unsigned storage;
    struct store_watch *watch;
};

struct controller {
    unsigned magic;
    struct vapi *api;
    const struct controller_def *def;
    struct worker *worker;
    struct source *sources;
    size_t n_sources, n_runs;
    void *state;
    size_t dropped; /* keys the full queue refused, at the last check */
    bool lossy;     /* keys were refused: everything is mapped again when there is room */
    int64_t log_minute;
    unsigned logged;         /* log lines in that minute */
    struct vapi_order order; /* read-only: no key is processed */
    struct vapi_retry retry; /* unless def->retries is NULL */
    bool closing, worker_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct op;

struct reconcile {
    unsigned magic;
    struct controller *controller;
    struct arena *arena;
    struct str key;
    struct op *last;
    unsigned pending; /* pending writes and holds, plus 1 while a phase of the run itself runs */
    bool failed, quiet_retry;
    bool unreadable; /* met an unreadable object: it deletes nothing */
    struct err err;
    int64_t again_ms; /* -1: not requested */
    reconcile_phase next;
    void *next_ctx;
};

/* A pending write. Lives in the run's arena. */
struct op {
    unsigned magic;
    struct reconcile *run;
    bool removes;
    reconcile_cb then;
    void *then_ctx;
};

/* Releases one hold; the last one starts the next phase or ends the run and frees r. */
void controller_run_release(struct reconcile *r);
