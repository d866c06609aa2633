/* SPDX-License-Identifier: Apache-2.0
 * The store's own state, all of it owned by the loop thread. Nothing here is seen by the writer
 * thread but the operations of the batch it holds. */
#pragma once

#include <sys/queue.h>
#include <uv.h>
#include <sublet/store_admin.h>
#include <sublet/store_quarantine.h>
#include <sublet/store_recall.h>
#include "damage.h"
#include "db.h"
#include "history.h"
#include "reading.h"
#include "table.h"
#include "writer.h"

TAILQ_HEAD(watch_queue, store_watch);

struct backup_request;
struct batch;
struct page;
struct rebuild;

struct store {
    unsigned magic;
    struct uv_loop_s *loop;
    struct store_options options; /* path is not kept */
    struct db_state state;        /* of the file when it was opened */
    struct damage damage;
    char *file; /* path of the database */

    int64_t revision, next;              /* newest committed; what the next write gets */
    int64_t load_floor;                  /* floor of resources that appear later */
    size_t live_objects, live_bytes;     /* committed */
    size_t latest_objects, latest_bytes; /* with what is under way */
    int64_t packed;                      /* objects up to here lie side by side: pack.c */
    size_t quarantined;                  /* live objects that readers do not see */

    struct table **tables; /* by id; [0] and holes are NULL */
    size_t n_tables, cap_tables;
    unsigned free_id; /* all ids below are taken */
    struct table_tree names;
    struct record_tree records[RECORD_CONTROLLER + 1];
    struct history history;

    struct batch *open, *flying;           /* collecting; with the writer */
    size_t waiting_bytes;                  /* of both */
    uint64_t n_undone;                     /* failed transactions */
    STAILQ_HEAD(, backup_request) backups; /* the first is under way, or next */
    void (*on_failure)(void *ctx);         /* store_failure.h */
    void *on_failure_ctx;
    struct watch_list watches;      /* on all resources */
    struct store_watch *next_watch; /* of the wake-up that is running */
    struct watch_queue waiting;     /* for a page, first come first served */
    struct watch_queue ready;       /* to be woken: their event is there */
    struct page *page;              /* NULL: none */
    LIST_HEAD(, store_recall) recalls;
    struct reading reading;
    bool recall_turn;
    struct table **touched; /* tables of the batch being published */
    size_t n_touched, cap_touched;

    struct writer writer;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t quiet;
    uint64_t last_commit_ms; /* loop time */
    struct store_stats stats;
    char *read_only;         /* the reason; NULL: writes are taken */
    unsigned turn;           /* which of the jobs that clients wait for comes first */
    struct rebuild *rebuild; /* NULL: none is due */
    uint64_t rebuild_after;  /* loop time */
    void (*on_rebuilt)(void *ctx, const struct err *err); /* store_quarantine.h */
    void *on_rebuilt_ctx;
    struct disk_state disk;
    void (*on_disk)(void *ctx); /* store_disk.h */
    void *on_disk_ctx;
    uv_timer_t probe; /* only while the disk is not writable */
    uint64_t probe_ms;
    bool probe_due;
    bool tidy, closing;
    unsigned open_handles;
    void (*stopped)(struct store *s);
    void (*closed)(void *ctx);
    void *closed_ctx;
};

#define STORE_MAGIC          0x53746f72u
#define STORE_FIRST_REVISION 1
/* After so long without a write the log is folded into the file and memory is given back. */
#define STORE_QUIET_MS 30000

/* watch.c */
void store_watch_wake_all(
    struct store *s); /* those on the touched tables, which are then forgotten */
void store_watch_fini_all(struct store *s);

/* store.c: without a loop, for reading only */
struct store *store_new(struct uv_loop_s *loop, const struct store_options *options);
void store_free(struct store *s);
int store_open_db(const struct store_options *options, struct db **ret, struct err *err) MUST_CHECK;

/* load.c */
int store_load(struct store *s, struct db *db, struct err *err) MUST_CHECK;
