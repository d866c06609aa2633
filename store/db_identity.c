/* SPDX-License-Identifier: Apache-2.0
 * Whose life the file is. A copy begins a new one when it is first opened: under a new epoch, at a
 * revision no client of another life can have seen, and without history, so that watchers of the
 * time after the copy must list again. Must never leave half a beginning behind: it is one
 * transaction.
 *
 * In `meta`, which holds numbers: epoch_high and epoch_low, from_high and from_low (0, 0: unknown),
 * from_revision, restored. */
#include "db_impl.h"

#include <stdio.h>

#include <sublet/clock.h>

#define YEAR_2026 INT64_C(1767225600) /* 2026-01-01T00:00:00Z */
#define LEAP      INT64_C(1000000000)
#define MOST      ((INT64_C(1) << 53) - LEAP)

struct epoch {
    int64_t high, low;
};

const struct store_identity *db_identity(const struct db *db)
{
    return &db->identity;
}

static void print_epoch(const struct epoch *e, char ret[STORE_EPOCH_LEN + 1])
{
    snprintf(ret, STORE_EPOCH_LEN + 1, "%016llx%016llx", (unsigned long long)e->high,
             (unsigned long long)e->low);
}

/* 48 bits of milliseconds, later than those of the life before, and 80 random ones. */
static struct epoch make_epoch(const struct db *db, const struct epoch *before)
{
    const uint64_t most = (UINT64_C(1) << 48) - 1;
    uint64_t least = ((uint64_t)before->high >> 16) + 1;
    int64_t now = db->options.wall_us() / 1000;
    uint64_t ms = now > 0 && (uint64_t)now > least ? (uint64_t)now : least;
    uint64_t high = rng_u64(db->options.rng) & 0xffff;

    return (struct epoch){(int64_t)((ms > most ? most : ms) << 16 | high),
                          (int64_t)rng_u64(db->options.rng)};
}

static int number_of(struct db *db, const char *key, int64_t *ret, struct err *err)
{
    char sql[96];

    snprintf(sql, sizeof(sql), "SELECT coalesce((SELECT value FROM meta WHERE key = '%s'), 0)",
             key);
    return db_number(db, sql, ret, err);
}

static int put(struct db *db, const char *key, int64_t value, struct err *err)
{
    char sql[96];

    snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta VALUES ('%s', %lld)", key,
             (long long)value);
    return db_sql(db, sql, err);
}

static int put_epoch(struct db *db, const struct epoch *e, struct err *err)
{
    return put(db, "epoch_high", e->high, err) || put(db, "epoch_low", e->low, err) ? -1 : 0;
}

/* Newest and the first revision of the new life. */
static int leap(struct db *db, int64_t *ret_newest, int64_t *ret_next, struct err *err)
{
    int64_t wall = db->options.wall_us() / 1000000 - YEAR_2026;

    if (db_number(db,
                  "SELECT max(coalesce((SELECT max(revision) FROM version), 1),"
                  " (SELECT max(value) FROM meta WHERE key IN ('floor', 'revision')))",
                  ret_newest, err))
        return -1;
    *ret_next = *ret_newest + LEAP;
    if (wall > 0 && wall < MOST / 1000000 && wall * 1000000 > *ret_next)
        *ret_next = wall * 1000000;
    return 0;
}

static int begin_restored(struct db *db, const struct epoch *before, struct err *err)
{
    struct epoch epoch = make_epoch(db, before);
    int64_t newest, next;

    if (leap(db, &newest, &next, err) || put_epoch(db, &epoch, err) ||
        put(db, "from_high", before->high, err) || put(db, "from_low", before->low, err) ||
        put(db, "from_revision", newest, err) || put(db, "restored", 1, err) ||
        put(db, "floor", next, err) || put(db, "copy", 0, err))
        return -1;
    return db_sql(db,
                  "DELETE FROM version WHERE type = 2 OR revision NOT IN"
                  " (SELECT max(revision) FROM version GROUP BY resource, ns, name)",
                  err);
}

static int begin_first(struct db *db, struct err *err)
{
    struct epoch none = {0}, epoch = make_epoch(db, &none);

    return put_epoch(db, &epoch, err);
}

static int read_identity(struct db *db, struct epoch *ret, struct err *err)
{
    struct store_identity *i = &db->identity;
    struct epoch from;
    int64_t restored;

    if (number_of(db, "epoch_high", &ret->high, err) ||
        number_of(db, "epoch_low", &ret->low, err) || number_of(db, "from_high", &from.high, err) ||
        number_of(db, "from_low", &from.low, err) ||
        number_of(db, "from_revision", &i->from_revision, err) ||
        number_of(db, "restored", &restored, err))
        return -1;
    print_epoch(ret, i->epoch);
    i->restored = restored != 0;
    i->from[0] = '\0';
    if (from.high)
        print_epoch(&from, i->from);
    return 0;
}

int db_identity_settle(struct db *db, struct err *err)
{
    struct epoch epoch;
    int64_t copy;
    int result;

    if (number_of(db, "copy", &copy, err) || read_identity(db, &epoch, err))
        return -1;
    if (!copy && epoch.high)
        return 0;
    if (db_sql(db, "BEGIN IMMEDIATE", err))
        return -1;
    result = copy ? begin_restored(db, &epoch, err) : begin_first(db, err);
    if (result || db_sql(db, "COMMIT", err)) {
        if (!sqlite3_get_autocommit(db->sql))
            sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return read_identity(db, &epoch, err);
}
