/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * One tenant's objects, revisions, watch history and records. Bytes in, bytes out: the store knows
 * no kinds. All functions are called on the loop thread; one writer thread commits batches.
 *
 * A write is checked and gets its revision at once, on the loop thread, but is answered and becomes
 * visible to readers only when its batch is durable (one transaction and one fsync for all writes
 * of a loop tick, or of the time the previous batch took). Two views follow:
 *
 *   committed   what readers, watchers and controllers see: store_get, store_scan, store_watch
 *   latest      with what is under way: what the next write must be based on: store_latest
 *
 * When a batch cannot be committed, it and everything under way after it fails, and `latest` falls
 * back to `committed`. Revisions never go back, and no two versions that were seen have the same.
 * Writes of one turn of the loop land in one transaction. */
#pragma once

#include <sublet/err.h>

struct uv_loop_s;
struct rng;
struct store;
struct store_object;

struct store_options {
    const char *path;         /* directory of state.db */
    size_t history_events;    /* change log: at most so many ... (default 16,384) */
    size_t history_bytes;     /* ... and so many bytes on disk (default 16 MiB) ... */
    int64_t history_seconds;  /* ... and so old (default 300; less than 0: any age) */
    size_t history_memory;    /* what of it stays in memory, for a while (default 1 MiB) */
    size_t max_bytes;         /* live bytes of the tenant; beyond it creates fail with FORBIDDEN, */
    size_t max_objects;       /* and growing updates an eighth later; 0: no limit */
    int64_t (*wall_us)(void); /* NULL: the system's */
    const struct rng *rng;    /* for epochs; NULL: the system's */
    const struct store_predecessor *after; /* store_identity.h; NULL: the life goes on */
    bool (*readable)(struct str resource, const struct store_object *o); /* store_quarantine.h */
    const struct store_executor *executor; /* store_executor.h; NULL: a thread of its own */
};

/* Opens or creates; loads everything. Errors: STORAGE. */
int store_open(struct uv_loop_s *loop, const struct store_options *options, struct store **ret,
               struct err *err) MUST_CHECK;
/* Commits what waits, checkpoints, then calls closed(). No other call after this one. */
void store_close(struct store *s, void (*closed)(void *ctx), void *ctx);

/* An immutable version of an object. Reference counted; one allocation; not thread safe. A borrowed
 * pointer is good until control returns to the loop. */
struct store_object {
    unsigned magic, refs;
    unsigned resource;                 /* store_resource() */
    unsigned skip : 31, converted : 1; /* see store_write and store_view.h */
    int64_t revision;
    struct str ns, name, uid;  /* ns is empty for cluster-scoped */
    struct str bytes;          /* canonical JSON with metadata.resourceVersion = revision */
    struct str labels, fields; /* flat sets (selector.h); fields has no metadata.name, .namespace */
};
const struct store_object *store_object_ref(const struct store_object *o);
const struct store_object *store_object_unref(const struct store_object *o); /* NULL; takes NULL */

/* The id of a resource ("pods", "deployments.apps"); makes one when it is new. Ids are stable over
 * restarts once an object was written; at most 65,535, then 0 is returned, which is no resource. */
unsigned store_resource(struct store *s, struct str name);

/* Reads. NULL when there is none. */
const struct store_object *store_get(struct store *s, unsigned resource, struct str ns,
                                     struct str name);
const struct store_object *store_latest(struct store *s, unsigned resource, struct str ns,
                                        struct str name);
int64_t store_revision(const struct store *s);      /* of the newest committed write, at least 1 */
int64_t store_next_revision(const struct store *s); /* what the next store_write() will get */
int64_t store_oldest_revision(const struct store *s);         /* watches can be had from here on */
size_t store_count(const struct store *s, unsigned resource); /* committed, all namespaces */
size_t store_bytes(const struct store *s);

/* Objects in order of (namespace, name). ns.p == NULL means all namespaces. The scan is over the
 * committed state of this moment; nothing may be waited for during it.
 *
 *   after_ns/after_name: start behind this key (after_name.p == NULL: from the start)
 *   revision: 0 for now, or an older one: the state as it was then. Errors: EXPIRED when history is
 *             gone or not recalled (store_recall.h), TIMEOUT when it is in the future
 *
 * The callback returns false to stop. */
typedef bool (*store_scan_cb)(void *ctx, const struct store_object *o);
int store_scan(struct store *s, unsigned resource, struct str ns, struct str after_ns,
               struct str after_name, int64_t revision, store_scan_cb each, void *ctx,
               struct err *err) MUST_CHECK;
/* The same over `latest`, without order or start. For quota and uniqueness checks. */
void store_scan_latest(struct store *s, unsigned resource, struct str ns, store_scan_cb each,
                       void *ctx);

/* Writes. */
enum store_op { STORE_CREATE, STORE_UPDATE, STORE_DELETE };
struct store_write {
    enum store_op op;
    unsigned resource;
    unsigned skip;    /* length of `{"kind":"Pod","apiVersion":"v1",`, or 0: what a list of a
                         built-in kind leaves out of an item (it writes `{` + bytes[skip..]) */
    int64_t expected; /* revision of `latest` this was computed from; 0 for create */
    struct str ns, name, uid;
    struct str bytes; /* of store_next_revision(); for a delete the last state, with that one */
    struct str labels, fields;
    bool ending; /* an update of what is being deleted: store_disk.h */
};
/* Adds to the current batch; copies everything. Errors: ALREADY_EXISTS, CONFLICT (expected is not
 * the latest), NOT_FOUND, FORBIDDEN (full), without details; TOO_MANY_REQUESTS while too much waits
 * for the disk; STORAGE when the store is closing or its disk does not take it. */
int store_write(struct store *s, const struct store_write *w, struct err *err) MUST_CHECK;
/* Uses up a revision though no object changes: seen once it is durable, or not at all. */
void store_advance(struct store *s);

/* Records: small rows beside the objects, without revisions or watches (mappings, ledger, keys).
 * Readers see `latest`; a failed batch takes them back. */
enum store_record { RECORD_META = 1, RECORD_PKI, RECORD_MAPPING, RECORD_LEDGER, RECORD_CONTROLLER };
void store_record_put(struct store *s, enum store_record kind, struct str key, struct str value);
void store_record_delete(struct store *s, enum store_record kind, struct str key);
bool store_record_get(struct store *s, enum store_record kind, struct str key,
                      struct str *ret_value);
typedef bool (*store_record_cb)(void *ctx, struct str key, struct str value);
void store_record_each(struct store *s, enum store_record kind, struct str prefix,
                       store_record_cb each, void *ctx); /* in key order; each() must not write */

/* Calls back once all written so far is durable and visible (err NULL), or has failed: never before
 * this returns, in the order of the calls, before watchers are woken. */
typedef void (*store_done_cb)(void *ctx, const struct err *err);
void store_on_commit(struct store *s, store_done_cb done, void *ctx);

/* Watches: a cursor in the shared history; nothing is buffered per watcher. */
enum store_event_type { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };
struct store_event {
    enum store_event_type type;
    int64_t revision;
    const struct store_object *object; /* for DELETED the last state with the deletion's revision */
    const struct store_object *previous; /* NULL for ADDED */
};
struct store_watch;
#define STORE_ALL_RESOURCES 0u
/* Events after `revision`; a future one waits silently, in a restored life it is EXPIRED, as one
 * before the history is. wake() is called when there may be some to take, in memory or on disk. */
int store_watch_open(struct store *s, unsigned resource, int64_t revision, void (*wake)(void *ctx),
                     void *ctx, struct store_watch **ret, struct err *err) MUST_CHECK;
/* The next event; good until the next call for this watch. NULL: nothing for now, or, with
 * *ret_expired set, history is gone or cannot be read; the watcher must list again. */
const struct store_event *store_watch_next(struct store_watch *w, bool *ret_expired);
int64_t store_watch_position(const struct store_watch *w); /* all up to here is taken: a bookmark */
struct store_watch *store_watch_close(struct store_watch *w); /* takes NULL, returns NULL */

/* A consistent copy of the database at `path` while serving. Opened as a store, it begins another
 * life (store_identity.h), above all its revisions and without history: all clients list again. */
void store_backup(struct store *s, const char *path, store_done_cb done, void *ctx);
