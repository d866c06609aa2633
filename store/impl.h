/* SPDX-License-Identifier: Apache-2.0
 * The store's own state, all of it owned by the loop thread. Nothing here is seen by the writer
 * thread but the operations of the batch it holds. */
#pragma once

#include <uv.h>
#include <bsd/sys/tree.h>
#include "db.h"
#include "history.h"
#include "writer.h"

/* RB_GENERATE_STATIC of libbsd 0.11 relies on a macro that libbsd no longer defines. */
#define TREE_GENERATE(name, type, field, cmp)                                                      \
    RB_GENERATE_INTERNAL(name, type, field, cmp, __attribute__((__unused__)) static)

/* A key and its versions. It stays in the tree while it has a committed version or writes under
 * way. */
struct object_entry {
    RB_ENTRY(object_entry) link;
    const struct store_object *key;       /* either of the two below: only ns and name are used */
    const struct store_object *committed; /* owned; NULL: none */
    const struct store_object *pending;   /* owned; what the last write under way leaves behind */
    unsigned n_pending;                   /* writes under way */
    bool deleting;                        /* the last of them is a delete */
};
RB_HEAD(object_tree, object_entry);

/* One resource. */
struct table {
    RB_ENTRY(table) link;
    struct str name; /* owned */
    unsigned id;
    bool saved, saving; /* its row is durable; is under way */
    bool touched;       /* has events in the batch that is being published */
    int64_t floor;      /* of its own events, all after this revision are in the history */
    size_t count;       /* committed objects */
    struct object_tree objects;
    struct store_watch *watches;
};
RB_HEAD(table_tree, table);

struct record_entry {
    RB_ENTRY(record_entry) link;
    struct str key, value; /* owned */
};
RB_HEAD(record_tree, record_entry);

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
    struct backup_request *next;
    char *path;
    struct db_backup *db;
    struct done done;
};

struct store {
    unsigned magic;
    struct uv_loop_s *loop;
    struct store_options options; /* path is not kept */

    int64_t revision, next;              /* newest committed; what the next write gets */
    int64_t load_floor;                  /* floor of resources that appear later */
    size_t live_objects, live_bytes;     /* committed */
    size_t latest_objects, latest_bytes; /* with what is under way */

    struct table **tables; /* by id; [0] and holes are NULL */
    size_t n_tables, cap_tables;
    struct table_tree names;
    struct record_tree records[RECORD_CONTROLLER + 1];
    struct history history;

    struct batch *open, *flying; /* collecting; with the writer */
    size_t waiting_bytes;        /* of both */
    struct backup_request *backups, **backups_last;
    struct store_watch *watches;    /* on all resources */
    struct store_watch *next_watch; /* of the wake-up that is running */
    struct table **touched;         /* tables of the batch being published */
    size_t n_touched, cap_touched;

    struct writer writer;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t quiet;
    uint64_t last_commit_ms; /* loop time */
    bool backup_turn, tidy, closing;
    unsigned open_handles;
    void (*stopped)(struct store *s);
    void (*closed)(void *ctx);
    void *closed_ctx;
};

#define STORE_MAGIC          0x53746f72u
#define OBJECT_MAGIC         0x4f626a21u
#define STORE_FIRST_REVISION 1
/* Bytes of writes that may wait for the disk. */
#define STORE_MAX_WAITING   ((size_t)64 << 20)
#define STORE_MAX_RESOURCES 65535u
/* History entries removed from disk per transaction, beyond two per write in it. */
#define STORE_DROPS_PER_BATCH 64
/* After so long without a write the log is folded into the file and memory is given back. */
#define STORE_QUIET_MS 30000

/* object.c */
const struct store_object *object_new(const struct db_version *v);
size_t object_size(const struct store_object *o); /* what limits count */

/* table.c */
int object_key_cmp(const struct store_object *a, const struct store_object *b);
struct table *table_get(const struct store *s, unsigned id);
struct table *table_add(struct store *s, unsigned id, struct str name);
void tables_fini(struct store *s);
struct object_entry *table_find(struct table *t, struct str ns, struct str name);
struct object_entry *table_find_or_add(struct table *t, const struct store_object *key);
/* Iteration from the first entry not before (ns, name). */
struct object_entry *table_seek(struct table *t, struct str ns, struct str name);
struct object_entry *table_next(struct object_entry *e);
const struct store_object *entry_latest(const struct object_entry *e);
/* Takes over one reference of `object` (NULL: deleted); returns the version before, owned. */
const struct store_object *entry_commit(struct store *s, struct table *t, struct object_entry *e,
                                        const struct store_object *object);
void entry_push(struct object_entry *e, const struct store_object *object, bool deleting);
void entry_pop(struct table *t, struct object_entry *e); /* one write under way less; settles */
void entry_settle(struct table *t,
                  struct object_entry *e); /* frees it when nothing is left of it */

/* record.c */
bool record_load(struct store *s, unsigned kind, struct str key, struct str value);
void record_committed(struct op *op);
void record_undo(struct store *s, struct op *op);
void records_fini(struct store *s);

/* batch.c: collecting, committing, failing */
struct op *batch_add(struct store *s, enum op_kind kind, size_t bytes);
void batch_free(struct batch *b); /* takes NULL */
/* Adds a bounded number of rows to delete to the open batch. */
void batch_take_drops(struct store *s);
void batch_commit(struct store *s, struct batch *b); /* makes it visible */
void batch_fail(struct store *s, struct batch *flying,
                const struct err *err); /* and what is open */
void batch_answer(struct batch *b, const struct err *err);

/* watch.c */
void watches_wake(struct store *s); /* those on the touched tables, which are then forgotten */
void watches_fini(struct store *s);

/* retain.c: which events stay in the history */
int64_t store_now(const struct store *s); /* seconds since 1970 */
void retain(struct store *s);
int64_t retain_due(const struct store *s); /* seconds until everything is too old; -1: never */

/* drive.c: what the writer does next */
int drive_start(struct store *s, struct db *db, struct err *err) MUST_CHECK; /* takes the db */
void drive_schedule(
    struct store *s); /* something waits; looked at when this tick of the loop ends */
void drive_stop(struct store *s, void (*stopped)(struct store *s)); /* closes the loop's handles */

/* load.c */
int load(struct store *s, struct db *db, struct err *err) MUST_CHECK;
