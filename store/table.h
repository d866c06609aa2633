/* SPDX-License-Identifier: Apache-2.0
 * What the store holds in memory: versions of objects in one tree per resource, and records. */
#pragma once

#include <bsd/sys/tree.h>
#include <sys/queue.h>
#include "db.h"

struct db_version;
struct op;
struct record_entry;
struct store_watch;

/* RB_GENERATE_STATIC of libbsd 0.11 relies on a macro that libbsd no longer defines. */
#define TREE_GENERATE(name, type, field, cmp)                                                      \
    RB_GENERATE_INTERNAL(name, type, field, cmp, __attribute__((__unused__)) static)

/* A key and its versions. It stays in the tree while it has a committed version or writes under
 * way. */
struct object_entry {
    RB_ENTRY(object_entry) link;
    const struct store_object *committed; /* owned; NULL: none */
    const struct store_object *pending;   /* owned; what the last write under way leaves behind */
    unsigned n_pending;                   /* writes under way */
    bool deleting;                        /* the last of them is a delete */
    bool quarantined;                     /* committed cannot be read: hidden from readers */
};
RB_HEAD(object_tree, object_entry);
LIST_HEAD(watch_list, store_watch);

/* One resource. */
struct table {
    RB_ENTRY(table) link;
    struct str name; /* owned */
    unsigned id;
    bool saved, saving; /* its row is durable; is under way */
    bool dropping;      /* the removal of its row is under way */
    bool nameless;      /* only an id that must not be given again: its name is damaged */
    bool released;      /* no caller uses the id: freed once nothing of it is left */
    bool touched;       /* has events in the batch that is being published */
    size_t rows;        /* events of the history, and those whose dead rows are still on disk */
    int64_t floor;      /* of its own events, all after this revision are in the history */
    size_t count;       /* committed objects */
    struct object_tree objects;
    struct watch_list watches;
};
RB_HEAD(table_tree, table);

struct record_entry {
    RB_ENTRY(record_entry) link;
    struct str key, value; /* owned */
};
RB_HEAD(record_tree, record_entry);

#define OBJECT_MAGIC        0x4f626a21u
#define STORE_MAX_RESOURCES 65535u

/* Frees what mem_str() made, and forgets it. */
static inline void str_drop(struct str *s)
{
    mem_free(s->p);
    *s = STR_NULL;
}

/* object.c */
const struct store_object *store_object_new(const struct db_version *v);
const struct store_object *store_object_copy(const struct store_object *o);
size_t store_object_size(const struct store_object *o); /* what limits count */

/* table.c */
int table_key_cmp(const struct store_object *a, const struct store_object *b);
struct table *table_get(const struct store *s, unsigned id);
struct table *table_add(struct store *s, unsigned id, struct str name);
/* Frees a released table of which nothing is left, or first removes its row. Call it where one of
 * the things that keep a table ended; it may be gone afterwards. */
void table_settle(struct store *s, struct table *t);
void tables_fini(struct store *s);
struct object_entry *table_find(struct table *t, struct str ns, struct str name);
/* A created entry has no version, hence no key: the caller gives it one first. */
struct object_entry *table_find_or_add(struct table *t, const struct store_object *key);
/* Iteration from the first entry not before (ns, name). */
struct object_entry *table_seek(struct table *t, struct str ns, struct str name);
struct object_entry *table_first(struct table *t);
struct object_entry *table_next(struct object_entry *e);
const struct store_object *table_entry_latest(const struct object_entry *e);
/* Whose ns and name are the key: either version, both have the same. */
static inline const struct store_object *table_entry_key(const struct object_entry *e)
{
    return e->pending ? e->pending : e->committed;
}
/* What readers may see of `committed`. */
const struct store_object *table_entry_visible(const struct object_entry *e);
/* Takes over one reference of `object` (NULL: deleted); returns the version before, owned. */
const struct store_object *table_entry_commit(struct store *s, struct table *t,
                                              struct object_entry *e,
                                              const struct store_object *object);
void table_entry_push(struct object_entry *e, const struct store_object *object, bool deleting);
/* One write under way less, and table_entry_settle(). */
void table_entry_pop(struct table *t, struct object_entry *e);
/* A copy takes its place in the table. The entry keeps its versions; free both. */
struct object_entry *table_entry_move(struct table *t, struct object_entry *e);
/* Frees the entry when nothing is left of it. */
void table_entry_settle(struct table *t, struct object_entry *e);

/* record.c */
bool record_load(struct store *s, unsigned kind, struct str key, struct str value);
void record_committed(struct op *op);
void record_undo(struct store *s, struct op *op);
void records_fini(struct store *s);
