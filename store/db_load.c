/* SPDX-License-Identifier: Apache-2.0
 * Reads everything once, at start: resources, versions in the order of their revisions, records.
 * A file can be damaged: what cannot be right is an error, never a guess. */
#include "db_impl.h"

#include <assert.h>

struct str db_column(sqlite3_stmt *q, int index)
{
    /* The pointer first: it may convert the value, and then the length is another. */
    const void *p = sqlite3_column_blob(q, index);
    int n = sqlite3_column_bytes(q, index);

    return (struct str){p ? p : "", n > 0 ? (size_t)n : 0};
}

static int corrupt(struct db *db, const char *table, int64_t key, struct err *err)
{
    return err_set(err, &ERR_STORAGE, "%s: row %lld of table %s cannot be right", db->file,
                   (long long)key, table);
}

/* Tenants name resources. Ids of those that left no row are only then worth a look at all rows. */
static int tidy_resources(struct db *db, struct err *err)
{
    int64_t n;

    if (db_number(db, "SELECT count(*) FROM resource", &n, err))
        return -1;
    if (n <= DB_RESOURCES)
        return 0;
    return db_sql(db, "DELETE FROM resource WHERE id NOT IN (SELECT resource FROM version)", err);
}

static int load_resources(struct db *db, const struct db_loader *l, struct err *err)
{
    sqlite3_stmt *q;
    int result = 0;

    if (sqlite3_prepare_v2(db->sql, "SELECT id, name FROM resource ORDER BY id", -1, &q, NULL))
        return db_error(db, "load", err);
    while (!result && sqlite3_step(q) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(q, 0);
        if (id < 1 || id > 65535 || !l->resource(l->ctx, (unsigned)id, db_column(q, 1)))
            result = corrupt(db, "resource", id, err);
    }
    if (sqlite3_finalize(q) && !result)
        result = db_error(db, "load", err);
    return result;
}

static bool read_version(sqlite3_stmt *q, struct db_version *v)
{
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
    };
    /* Bytes that lost their head have none to leave out; whether they can be read is asked later.
     */
    if (skip < 0 || (uint64_t)skip > v->bytes.n)
        v->skip = 0;
    return type >= STORE_ADDED && type <= STORE_DELETED && resource > 0 && resource <= 65535 &&
           v->revision > 0 && v->name.n;
}

static int load_versions(struct db *db, const struct db_loader *l, struct err *err)
{
    sqlite3_stmt *q;
    int result = 0;

    if (sqlite3_prepare_v2(db->sql,
                           "SELECT revision, at, type, resource, skip, ns, name, uid, labels,"
                           " fields, bytes FROM version ORDER BY revision",
                           -1, &q, NULL))
        return db_error(db, "load", err);
    while (!result && sqlite3_step(q) == SQLITE_ROW) {
        struct db_version v;
        if (!read_version(q, &v) || !l->version(l->ctx, &v))
            result = corrupt(db, "version", sqlite3_column_int64(q, 0), err);
    }
    if (sqlite3_finalize(q) && !result)
        result = db_error(db, "load", err);
    return result;
}

static int load_records(struct db *db, const struct db_loader *l, struct err *err)
{
    sqlite3_stmt *q;
    int result = 0;

    if (sqlite3_prepare_v2(db->sql, "SELECT kind, key, value FROM record ORDER BY kind, key", -1,
                           &q, NULL))
        return db_error(db, "load", err);
    while (!result && sqlite3_step(q) == SQLITE_ROW) {
        int64_t kind = sqlite3_column_int64(q, 0);
        if (kind < RECORD_META || kind > RECORD_CONTROLLER ||
            !l->record(l->ctx, (unsigned)kind, db_column(q, 1), db_column(q, 2)))
            result = corrupt(db, "record", kind, err);
    }
    if (sqlite3_finalize(q) && !result)
        result = db_error(db, "load", err);
    return result;
}

int db_floor(struct db *db, int64_t *ret, struct err *err)
{
    return db_number(db, "SELECT value FROM meta WHERE key = 'floor'", ret, err);
}

int db_revision(struct db *db, int64_t *ret, struct err *err)
{
    return db_number(db, "SELECT coalesce(max(value), 0) FROM meta WHERE key = 'revision'", ret,
                     err);
}

int db_load(struct db *db, const struct db_loader *loader, struct err *err)
{
    assert(db->magic == DB_MAGIC);
    if (tidy_resources(db, err) || load_resources(db, loader, err) ||
        load_versions(db, loader, err))
        return -1;
    return load_records(db, loader, err);
}
