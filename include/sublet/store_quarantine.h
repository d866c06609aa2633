/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * What becomes of a resource that is no longer served, and of versions that cannot be read. */
#pragma once

#include <sublet/store.h>

/* The name of an id; good until control returns to the loop. */
struct str store_resource_name(const struct store *s, unsigned resource);
/* The caller forgets the id. It is given to another name once no object, event that can still be
 * watched, row on disk or watch has it; until then store_resource() gives the same one again. */
void store_resource_release(struct store *s, unsigned resource);

/* Quarantine: a stored version that options.readable() refused at start keeps its key and its row,
 * and no reader or watcher sees it. The key is taken (a create fails with ALREADY_EXISTS); a delete
 * or an update that names its revision ends it. NULL when there is none, or its end is under
 * way. Without options.readable all is read. */
const struct store_object *store_quarantined(struct store *s, unsigned resource, struct str ns,
                                             struct str name);
/* All of a resource (0: of all resources); ns.p == NULL: in all namespaces. */
void store_scan_quarantined(struct store *s, unsigned resource, struct str ns, store_scan_cb each,
                            void *ctx);

/* Damage. Every row has a checksum, and a second account of it elsewhere in the file, so what a
 * damaged row was about is known in nearly all cases: its object is in quarantine. One whose name
 * is lost is there as well: it cannot be listed, but store_quarantined() of that very name finds
 * it. Such an object has no uid and no bytes. */
struct store_damage {
    size_t objects;      /* in quarantine, with their names */
    size_t nameless;     /* in quarantine, their names unknown */
    size_t superseded;   /* lost versions of objects that have a newer one: only history */
    size_t records;      /* damaged or missing */
    size_t unattributed; /* damaged rows of which it is unknown what they were about */
    bool history;        /* forgotten because of damage: all watchers list again */
    /* Found at a start, or while it served, and made good; starts of a day after it say so too. */
    bool salvaged;       /* the file was made again; the damaged one is state.db.damaged */
    bool log;            /* the newest writes are lost, though answered: a new life began */
    bool log_missing;    /* the whole log is, and so may be the newest writes; likewise */
    bool own_account;    /* what the file says of itself was damaged: a new life began */
    bool copies_full;    /* of nine kept copies the newest is replaced by the next; at the start */
    int64_t reported_at; /* when the last of these four was found, Unix seconds; 0: none was */
};
void store_damage(const struct store *s, struct store_damage *ret);
/* Some object or other may be missing without a trace: that store_get() and store_quarantined()
 * both have none proves nothing, and nothing may be deleted on the strength of it. */
bool store_is_damaged(const struct store *s);
/* There is no such object, and that is no effect of damage: what was made for it may be deleted.
 * False of all, and so is store_is_whole(), where the log is lost and the disk is read-only: no new
 * life could begin, and the writes that are missing are of this one. */
bool store_is_absent(struct store *s, unsigned resource, struct str ns, struct str name);
/* No object of the resource is hidden (ns.p == NULL: in any namespace), by name or otherwise: what
 * a scan lacks does not exist. */
bool store_is_whole(const struct store *s, unsigned resource, struct str ns);
/* There is no such record, and it may be that only because of damage. Writing it ends that. */
bool store_record_damaged(struct store *s, enum store_record kind, struct str key);

/* A write that meets damage in the structure of the file fails; the file is then made again of what
 * is in memory, and only the history is lost. rebuilt() comes from the loop after that; err: why it
 * was not possible, and writes go on failing. One listener; NULL ends it. */
void store_on_rebuilt(struct store *s, void (*rebuilt)(void *ctx, const struct err *err),
                      void *ctx);

/* A record that nothing goes on without is kept twice, in rows far apart, so that damage to one is
 * made good from the other. Put writes what differs; get returns either, and false when both are
 * missing: store_record_damaged() says whether that may be damage. */
void store_record_put_twice(struct store *s, enum store_record kind, struct str key,
                            struct str value);
bool store_record_get_either(struct store *s, enum store_record kind, struct str key,
                             struct str *ret_value);
