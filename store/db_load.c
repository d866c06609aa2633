/* SPDX-License-Identifier: Apache-2.0
 * Reads everything once, at start: resources, versions in the order of their revisions, records.
 * Rows can be damaged: a damaged row is reported, never guessed and never fatal. */
#include "db_impl.h"
#include "db_load.h"

#include <assert.h>

/* More resources than this are looked through for unused ones at start. */
#define MANY_RESOURCES 1000

/* Tenants name resources. Ids of those that left no row are only then worth a look at all rows. */
static int tidy_resources(struct db *db, struct err *err)
{
    int64_t n;

    if (db_number(db, "SELECT count(*) FROM resource", &n, err))
        return -1;
    if (n <= MANY_RESOURCES || db->read_only)
        return 0;
    return db_sql(db, "DELETE FROM resource WHERE id NOT IN (SELECT resource FROM version)", err);
}

static int load_resources(struct db *db, const struct db_loader *l, struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(db->sql, "SELECT id, name, sum FROM resource ORDER BY id", -1, &q, NULL))
        return db_error(db, "load", err);
    while (sqlite3_step(q) == SQLITE_ROW) {
        bool good = db_row_is_good(db->sum, q, STR("resource"));
        int64_t id = sqlite3_column_int64(q, 0);
        struct str name = db_column(q, 1);
        good = good && id > 0 && id <= 65535 && name.n;
        l->resource(l->ctx, (unsigned)id, name, good);
    }
    return sqlite3_finalize(q) ? db_error(db, "load", err) : 0;
}

void db_version_read(struct db *db, sqlite3_stmt *q, struct db_version *v)
{
    bool good = db_row_is_good(db->sum, q, STR("version"));
    int64_t type = sqlite3_column_int64(q, 2);
    int64_t resource = sqlite3_column_int64(q, 3);
    int64_t skip = sqlite3_column_int64(q, 4);

    *v = (struct db_version){
        .type = (enum store_event_type)type,
        .resource = (unsigned)resource,
        .skip = (unsigned)skip,
        .revision = sqlite3_column_int64(q, 0),
        .at = sqlite3_column_int64(q, 1),
        .ns = db_column(q, 5),
        .name = db_column(q, 6),
        .uid = db_column(q, 7),
        .labels = db_column(q, 8),
        .fields = db_column(q, 9),
        .bytes = db_column(q, 10),
        .key = sqlite3_column_int64(q, 11),
    };
    v->good = good && type >= STORE_ADDED && type <= STORE_DELETED && resource > 0 &&
              resource <= 65535 && v->revision > 0 && v->name.n && skip >= 0 &&
              (uint64_t)skip <= v->bytes.n;
}

static void read_trail(struct db *db, sqlite3_stmt *q, struct db_trail *t)
{
    bool good = db_row_is_good(db->sum, q, STR("trail"));
    int64_t type = sqlite3_column_int64(q, 1);

    *t = (struct db_trail){
        .type = (enum store_event_type)type,
        .revision = sqlite3_column_int64(q, 0),
        .key = sqlite3_column_int64(q, 2),
    };
    t->good = good && type >= STORE_ADDED && type <= STORE_DELETED && t->revision > 0;
}

/* Both in order of revisions, side by side. */
static void merge(struct db *db, sqlite3_stmt *versions, sqlite3_stmt *trail,
                  const struct db_loader *l)
{
    bool has_v = sqlite3_step(versions) == SQLITE_ROW, has_t = sqlite3_step(trail) == SQLITE_ROW;
    struct db_version v;
    struct db_trail t;

    while (has_v || has_t) {
        int64_t at_v = has_v ? sqlite3_column_int64(versions, 0) : INT64_MAX;
        int64_t at_t = has_t ? sqlite3_column_int64(trail, 0) : INT64_MAX;
        bool take_v = has_v && (!has_t || at_v <= at_t), take_t = has_t && (!has_v || at_t <= at_v);

        if (take_v)
            db_version_read(db, versions, &v);
        if (take_t)
            read_trail(db, trail, &t);
        l->version(l->ctx, take_v ? &v : NULL, take_t ? &t : NULL);
        if (take_v)
            has_v = sqlite3_step(versions) == SQLITE_ROW;
        if (take_t)
            has_t = sqlite3_step(trail) == SQLITE_ROW;
    }
}

#define TRAIL_QUERY "SELECT revision, type, key, sum FROM trail ORDER BY revision"

static int load_versions(struct db *db, const struct db_loader *l, struct err *err)
{
    sqlite3_stmt *versions = NULL, *trail = NULL;
    int result = -1;

    if (!sqlite3_prepare_v2(db->sql,
                            "SELECT " VERSION_COLUMNS ", sum FROM version ORDER BY revision", -1,
                            &versions, NULL) &&
        !sqlite3_prepare_v2(db->sql, TRAIL_QUERY, -1, &trail, NULL)) {
        merge(db, versions, trail, l);
        result = 0;
    }
    if (sqlite3_finalize(versions))
        result = -1;
    if (sqlite3_finalize(trail))
        result = -1;
    return result ? db_error(db, "load", err) : 0;
}

int db_trail(struct db *db, void (*each)(void *ctx, const struct db_trail *t), void *ctx,
             struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(db->sql, TRAIL_QUERY, -1, &q, NULL))
        return db_error(db, "load", err);
    while (sqlite3_step(q) == SQLITE_ROW) {
        struct db_trail t;
        read_trail(db, q, &t);
        if (t.good)
            each(ctx, &t);
    }
    return sqlite3_finalize(q) ? db_error(db, "load", err) : 0;
}

/* Trail rows that are damaged, or say what their version does not, are written again. One that has
 * no version stays: it is all that is known of it. */
static const char MEND[] =
    "BEGIN IMMEDIATE;"
    "DELETE FROM trail WHERE sum <> " TRAIL_SUM ";"
    "INSERT OR REPLACE INTO trail (revision, type, key, sum) SELECT revision, type, key, " TRAIL_SUM
    " FROM version WHERE sum = " VERSION_SUM " AND NOT EXISTS (SELECT 1 FROM trail t"
    " WHERE t.revision = version.revision AND t.type = version.type AND t.key = version.key);"
    "COMMIT;";

int db_mend(struct db *db, struct err *err)
{
    if (!db_sql(db, MEND, err))
        return 0;
    sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

static int load_records(struct db *db, const struct db_loader *l, struct err *err)
{
    sqlite3_stmt *q;

    if (sqlite3_prepare_v2(db->sql, "SELECT kind, key, value, sum FROM record ORDER BY kind, key",
                           -1, &q, NULL))
        return db_error(db, "load", err);
    while (sqlite3_step(q) == SQLITE_ROW) {
        bool good = db_row_is_good(db->sum, q, STR("record"));
        int64_t kind = sqlite3_column_int64(q, 0);
        good = good && kind >= RECORD_META && kind <= RECORD_CONTROLLER;
        l->record(l->ctx, (unsigned)kind, db_column(q, 1), db_column(q, 2), good);
    }
    return sqlite3_finalize(q) ? db_error(db, "load", err) : 0;
}

int db_load(struct db *db, const struct db_loader *loader, struct err *err)
{
    assert(db->magic == DB_MAGIC);
    if (tidy_resources(db, err) || load_resources(db, loader, err) ||
        load_versions(db, loader, err))
        return -1;
    return load_records(db, loader, err);
}

int64_t db_key(struct str resource, struct str ns, struct str name)
{
    struct sum *s = db_sum_new();
    int64_t key = db_sum_key(s, resource, ns, name);

    db_sum_free(s);
    return key;
}
