/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the ledger needs of the database that keeps it. SQL is written once: parameters are ?1, ?2,
 * values are strings and integers of 64 bits, and greatest() is there. Tables, triggers, locks and
 * transactions, which each database has in its own way, are the backend's. A connection belongs to
 * one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sublet/err.h>

#define LEDGER_FORMAT   2 /* and 1, which readers know and the writer brings up to date */
#define LEDGER_PUT_META "INSERT INTO meta VALUES(?1,?2) ON CONFLICT(key) DO UPDATE SET value = ?2"

enum ledger_db_mode {
    LEDGER_DB_READ,  /* of a ledger that is there */
    LEDGER_DB_ADD,   /* the same, and rows of a table that its writer has not */
    LEDGER_DB_WRITE, /* creates an empty one, and keeps every other writer out until it is closed */
};
enum ledger_step { LEDGER_FAILED = -1, LEDGER_DONE, LEDGER_ROW };

struct ledger_db {
    const struct ledger_db_ops *ops;
};
/* One that is prepared. Strings of a column are valid until the next step, reset or free. */
struct ledger_query {
    struct ledger_db *db;
};

struct ledger_db_ops {
    /* Failures are STORAGE with the database's own message; CONFLICT: there is another writer. */
    int (*open)(struct str location, enum ledger_db_mode mode, struct ledger_db **ret,
                struct err *err);
    void (*close)(struct ledger_db *db); /* a transaction that is open is undone */
    int (*is_empty)(struct ledger_db *db, bool *ret, struct err *err);
    /* Makes the tables of format `from` (0: there are none) those of LEDGER_FORMAT, in the
     * transaction that is open. Rows of all tables but meta can be neither changed nor removed. */
    int (*upgrade)(struct ledger_db *db, int64_t from, struct err *err);
    /* The table `statement`, unless it is there. */
    int (*add_statements)(struct ledger_db *db, struct err *err);
    /* Rows were added to a table with ids of their own: the next id is greater. */
    int (*imported)(struct ledger_db *db, const char *table, struct err *err);

    int (*begin)(struct ledger_db *db, struct err *err); /* one moment, for a reader */
    /* Durable when it returns 0. After -1 it may be there or not: what is written twice is there
     * once. */
    int (*commit)(struct ledger_db *db, struct err *err);

    int (*prepare)(struct ledger_db *db, const char *sql, struct ledger_query **ret,
                   struct err *err);
    void (*free)(struct ledger_query *q); /* takes NULL */
    void (*bind_str)(struct ledger_query *q, int parameter, struct str value);
    void (*bind_int)(struct ledger_query *q, int parameter, int64_t value);
    int (*parameters)(struct ledger_query *q); /* how many it has */
    /* CONFLICT: a unique key is there. */
    enum ledger_step (*step)(struct ledger_query *q, struct err *err);
    void (*reset)(struct ledger_query *q); /* parameters stay */
    bool (*is_null)(struct ledger_query *q, int column);
    int64_t (*column_int)(struct ledger_query *q, int column); /* NULL: 0 */
    struct str (*column_str)(struct ledger_query *q, int column);
};
extern const struct ledger_db_ops ledger_sqlite, ledger_postgres;

/* location: a directory, which has ledger.db, or `postgres:` and the file of a connection string.
 * *ret is NULL when it fails. */
int ledger_db_open(struct str location, enum ledger_db_mode mode, struct ledger_db **ret,
                   struct err *err) MUST_CHECK;
struct ledger_db *ledger_db_close(struct ledger_db *db); /* takes NULL */

/* meta's integer of this key, otherwise 0. */
int ledger_meta(struct ledger_db *db, const char *key, int64_t *ret, struct err *err) MUST_CHECK;
int ledger_put_meta(struct ledger_db *db, const char *key, int64_t value,
                    struct err *err) MUST_CHECK;
int ledger_check_format(int64_t format, struct err *err) MUST_CHECK;

struct ledger_origin {
    int64_t identity, begin_us, seen_us;
};
/* For its writer: makes an empty database a ledger that begins at now_us, and brings one of an
 * earlier format up to date. */
int ledger_set_up(struct ledger_db *db, int64_t now_us, uint64_t identity,
                  struct ledger_origin *ret, struct err *err) MUST_CHECK;

static inline void ledger_bind_str(struct ledger_query *q, int parameter, struct str value)
{
    q->db->ops->bind_str(q, parameter, value);
}

static inline void ledger_bind_int(struct ledger_query *q, int parameter, int64_t value)
{
    q->db->ops->bind_int(q, parameter, value);
}

static inline enum ledger_step ledger_step(struct ledger_query *q, struct err *err)
{
    return q->db->ops->step(q, err);
}

static inline int64_t ledger_int(struct ledger_query *q, int column)
{
    return q->db->ops->column_int(q, column);
}

static inline struct str ledger_str(struct ledger_query *q, int column)
{
    return q->db->ops->column_str(q, column);
}

static inline void ledger_query_free(struct ledger_query *q)
{
    if (q)
        q->db->ops->free(q);
}
