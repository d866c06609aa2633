/* SPDX-License-Identifier: Apache-2.0
 * What a database holds, row by row: read once at start, and checked. */
#pragma once

#include <sublet/store.h>

struct db;

/* What db_load() reports, in this order: resources, versions by revision, records by key. Every row
 * has a checksum; `good` says that it is right and that the values can be what they are. */
struct db_version {
    enum store_event_type type;
    unsigned resource, skip;
    int64_t revision, at, key;
    struct str ns, name, uid, bytes, labels, fields;
    bool good;
};

/* The trail has a second account of every version, in pages of its own: what was lost is known by
 * it when a version is not there or not readable. */
struct db_trail {
    enum store_event_type type;
    int64_t revision, key; /* db_sum_key() */
    bool good;
};

struct db_loader {
    void (*resource)(void *ctx, unsigned id, struct str name, bool good);
    /* Either may be NULL; with both, they have the same revision. */
    void (*version)(void *ctx, const struct db_version *v, const struct db_trail *t);
    void (*record)(void *ctx, unsigned kind, struct str key, struct str value, bool good);
    void *ctx;
};

int db_load(struct db *db, const struct db_loader *loader, struct err *err) MUST_CHECK;
/* Goes through the trail once more: good rows only. */
int db_trail(struct db *db, void (*each)(void *ctx, const struct db_trail *t), void *ctx,
             struct err *err) MUST_CHECK;
/* Makes the trail agree with the versions that can be read. */
int db_mend(struct db *db, struct err *err) MUST_CHECK;
/* db_sum_key() of the loop thread. */
int64_t db_key(struct str resource, struct str ns, struct str name);
