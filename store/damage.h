/* SPDX-License-Identifier: Apache-2.0
 * What loading found damaged, and what is hidden because of it. */
#pragma once

#include "db.h"

struct db_trail;
struct db_version;
struct store;
struct table;
struct object_entry;

/* A version that cannot be read though the trail knows it. */
struct loss {
    int64_t revision, key;
    enum store_event_type type;
    unsigned resource;   /* 0: the row does not say whose it was */
    struct str ns, name; /* owned; good when resource is */
    bool over;           /* a later version is readable: the current object is not lost */
};

struct loss_list {
    struct loss *items;
    size_t n, cap;
};

/* A key whose newest version is lost, and of which not even the name is known. */
struct lost_key {
    int64_t key, revision;
};

struct damaged_record {
    unsigned kind;
    struct str key; /* owned */
};

struct damage {
    struct lost_key *lost; /* by key */
    size_t n_lost, cap_lost;
    struct damaged_record *records; /* that could not be read */
    size_t n_records, cap_records;
    size_t missing_records; /* further ones are not listed */
    size_t unattributed;    /* damaged rows of which not even the key is known */
    size_t superseded;      /* lost versions that were not the newest */
    bool history;           /* events were lost, so none is kept */
    bool kept;              /* there is a copy of the file as it was found */
    bool copies_full;       /* at the start, with the copies that it made */
    bool unkept;            /* no copy of the damaged rows was made, so none is removed */
};

void damage_loss_add(struct loss_list *l, const struct db_version *v, const struct db_trail *t,
                     struct str resource);
void damage_losses_free(struct loss_list *l);
/* Hides what the losses concern. After all versions were loaded. */
int damage_resolve(struct store *s, struct db *db, struct loss_list *l, struct err *err) MUST_CHECK;
/* Before a row is removed: is there a copy of the file with all its damaged rows? One of an earlier
 * damage is none. */
bool damage_may_drop(struct store *s, struct db *db);
void damage_record(struct store *s, unsigned kind, struct str key);
/* The record is written: true when a damaged row of its key stood in its place. */
bool damage_record_over(struct store *s, unsigned kind, struct str key);
void damage_fini(struct store *s);
/* table_find(), and an entry in quarantine when the key is one of the lost ones. */
struct object_entry *damage_entry(struct store *s, struct table *t, struct str ns, struct str name);
