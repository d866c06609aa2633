/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of a controller and of a run, shared by controller.c (watches, queue, life) and
 * reconcile.c (what a run reads and writes). Must not be included by a controller. */
#pragma once

#include <sublet/controller.h>
#include <sublet/read_only.h>

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
    size_t dropped; /* keys the full queue refused, as of the last look */
    bool lossy;     /* some were refused: everything is mapped again when there is room */
    int64_t log_minute;
    unsigned logged;         /* lines in that minute */
    struct vapi_order order; /* read-only: no key is worked on */
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
    unsigned pending; /* writes and holds under way, and 1 while a phase of the run itself runs */
    bool failed, quiet_retry;
    bool unreadable; /* met an object that cannot be read: it deletes nothing */
    struct err err;
    int64_t again_ms; /* -1: not asked for */
    reconcile_phase next;
    void *next_ctx;
};

/* One write under way. Lives in the run's arena. */
struct op {
    unsigned magic;
    struct reconcile *run;
    bool removes;
    reconcile_cb then;
    void *then_ctx;
};

/* One hold less; the last one starts the next phase or ends the run, and r is gone. */
void run_release(struct reconcile *r);
