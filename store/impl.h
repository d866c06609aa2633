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
#include "db_sum.h"
#include "history.h"
#include "table.h"
#include "writer.h"

struct done {
    store_done_cb call;
    void *ctx;
};

/* The writes of one transaction, and who waits for it. */
struct batch {
    struct op *ops;
    size_t n_ops, cap_ops;
    struct done *done;
    size_t n_done, cap_done;
    size_t bytes;
    size_t n_drops; /* how many of history's drops went along */
};

struct backup_request {
    STAILQ_ENTRY(backup_request) place;
    char *path;
    struct db_backup *db;
    struct done done;
};

/* Rows on their way from the disk. */
struct reading {
    enum { READ_DISCARDED, READ_PAGE, READ_RECALL } kind;
    struct store_recall *recall;
    unsigned resource;   /* of a page; 0: all */
    uint64_t first, end; /* the events they are of */
    struct db_row *rows; /* NULL: none are under way */
    size_t n, n_read, most_bytes;
};

TAILQ_HEAD(watch_queue, store_watch);

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
/* Bytes of writes that may wait for the disk. */
#define STORE_MAX_WAITING ((size_t)64 << 20)
/* History entries removed from disk per transaction, beyond two per write in it. */
#define STORE_DROPS_PER_BATCH 64
/* What a disk without room holds of the history: it is given up for the sake of new writes. */
#define STORE_FULL_SECONDS 5
#define STORE_FULL_BYTES   ((size_t)256 << 10)
/* After so long without a write the log is folded into the file and memory is given back. */
#define STORE_QUIET_MS 30000

/* batch.c: collecting, committing, failing */
struct op *batch_add(struct store *s, enum op_kind kind, size_t bytes);
void batch_free(struct batch *b); /* takes NULL */
/* Adds a bounded number of rows to delete to the open batch. */
void batch_take_drops(struct store *s);
void batch_commit(struct store *s, struct batch *b); /* makes it visible */
/* Takes it back, and what is open with it, which is returned: both are still to be answered. */
struct batch *batch_undo(struct store *s, struct batch *flying);
void batch_answer(struct batch *b, const struct err *err); /* takes NULL */
/* The first of history's drops are no longer on disk. */
void batch_drops_done(struct store *s, size_t n);

/* watch.c */
void watch_wake_all(struct store *s); /* those on the touched tables, which are then forgotten */
void watch_fini_all(struct store *s);

/* retain.c: which events stay in the history, and which of them in memory */
int64_t store_now(const struct store *s); /* seconds since 1970 */
void store_retain(struct store *s);
void retain_nothing_warm(struct store *s);
void retain_nothing(struct store *s);      /* the history begins anew */
int64_t retain_due(const struct store *s); /* seconds until everything is too old; -1: never */

/* page.c: reading back for watches */
bool page_due(const struct store *s);
void page_request(struct store *s, struct reading *r);
void page_answer(struct store *s, const struct reading *r, bool failed);

/* recall.c: reading back for scans, and whatever both have in common */
bool recall_reads_due(const struct store *s);
void recall_reads_post(struct store *s);
void recall_reads_answer(struct store *s, const struct job *job);
void recall_reading_add(struct reading *r, int64_t revision); /* once; 0: no revision */
struct db_row *recall_reading_find(const struct reading *r,
                                   int64_t revision); /* among those read */
bool recall_row_readable(const struct store *s, const struct db_row *row, unsigned resource);
/* The event cannot be delivered: watches and scans from before it must list again. */
void recall_event_lost(struct store *s, struct history_slot *slot);
/* The objects of an event leave memory. */
void recalls_keep(struct store *s, const struct history_slot *slot,
                  const struct history_pair *pair);
/* What a scan needs of cold events; borrowed. False: it was not recalled. */
bool recall_objects(const struct store *s, unsigned resource, int64_t revision,
                    const struct store_object ***ret, size_t *ret_n);
void recalls_fini(struct store *s);
/* disk.c: what a disk that is full or read-only takes, and when it is looked at again */
int disk_check(const struct store *s, const struct store_write *w, size_t before, size_t after,
               struct err *err) MUST_CHECK;
void disk_start(struct store *s, const struct disk_state *now);
void disk_learn(struct store *s, const struct disk_state *now);
/* A delete was stored on a disk without room: there may be some now. */
void disk_hope(struct store *s);

/* rebuild.c: a file whose structure is damaged is made again of what is in memory */
/* At most once in REBUILD_EVERY_MS; only where nothing is under way and no callback ran since. */
void rebuild_prepare(struct store *s);
void rebuild_post(struct store *s);
void rebuild_answer(struct store *s, const struct job *job);
void rebuild_fini(struct store *s);

/* drive.c: what the writer does next */
int drive_start(struct store *s, struct db *db, struct err *err) MUST_CHECK; /* takes the db */
/* Something waits: it is looked at when this tick of the loop ends. */
void drive_schedule(struct store *s);
void drive_stop(struct store *s, void (*stopped)(struct store *s)); /* closes the loop's handles */

/* pack.c: moves objects together; only where no borrowed pointer to one is in use */
void store_pack(struct store *s);

/* store.c: without a loop, for reading only */
struct store *store_new(struct uv_loop_s *loop, const struct store_options *options);
void store_free(struct store *s);
int store_open_db(const struct store_options *options, struct db **ret, struct err *err) MUST_CHECK;

/* load.c */
int store_load(struct store *s, struct db *db, struct err *err) MUST_CHECK;
