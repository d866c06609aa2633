/* SPDX-License-Identifier: Apache-2.0
 * The operations of a transaction: made by the loop thread, run by the database. */
#pragma once

#include <sublet/store.h>

/* One write of a transaction. Everything pointed to stays put until the transaction is answered. */
enum op_kind {
    OP_RESOURCE,
    OP_RESOURCE_DROP,
    OP_VERSION,
    OP_RECORD_PUT,
    OP_RECORD_DELETE,
    OP_DROP,
    OP_REVISION
};

struct object_entry;
struct record_entry;
struct table;

struct op {
    enum op_kind kind;
    unsigned type; /* OP_VERSION: enum store_event_type; OP_RECORD_*: enum store_record */
    union {
        struct { /* OP_RESOURCE, OP_RESOURCE_DROP */
            struct table *table;
            struct str name;
            unsigned id;
        } resource;
        struct { /* OP_VERSION */
            struct object_entry *entry;
            const struct store_object *object;
            struct str resource; /* its name */
            int64_t at;          /* seconds since 1970 */
        } version;
        struct { /* OP_RECORD_*: undo is what the key had before; p == NULL: nothing */
            struct record_entry *entry;
            struct str key, value, undo;
            int added; /* what the number of records changes by */
        } record;
        struct { /* OP_DROP: the event of revision `floor` leaves the history */
            int64_t floor;
            int64_t dead[2]; /* revisions of rows no longer needed; 0 for none */
        } drop;
        int64_t revision; /* OP_REVISION: used up without a version */
    };
};
