/* SPDX-License-Identifier: Apache-2.0 */
/* See opened.h. The writer has one job at a time, and this loop is all there is: so a store opens,
 * writes and closes without an agenda. */
#include "opened.h"

#include <sqlite3.h>
#include <stdio.h>

#include "world.h"

/* What the tenant of a history writes, and what controllers add to it. */
static const char *const RESOURCES[] = {"pods",
                                        "services",
                                        "configmaps",
                                        "secrets",
                                        "persistentvolumeclaims",
                                        "namespaces",
                                        "nodes",
                                        "endpointslices.discovery.k8s.io"};

static void post(void *ctx, void (*run)(void *arg), void *arg)
{
    struct opened *o = ctx;

    o->run = run;
    o->arg = arg;
}

static void turn(struct opened *o)
{
    void (*run)(void *arg);

    uv_run(&o->loop, UV_RUN_NOWAIT);
    run = o->run;
    o->run = NULL;
    if (run)
        run(o->arg);
}

int opened_open(struct opened *o, const char *path, struct err *err)
{
    struct store_options options = {.path = path, .executor = &o->executor};

    *o = (struct opened){.executor = {post, o}};
    uv_loop_init(&o->loop);
    return store_open(&o->loop, &options, &o->store, err);
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

void opened_close(struct opened *o)
{
    bool closed = false;

    store_close(o->store, on_closed, &closed);
    while (!closed)
        turn(o);
    uv_loop_close(&o->loop);
}

void opened_write(struct opened *o, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[24];
        int64_t revision = store_next_revision(o->store);
        struct store_write w = {.op = STORE_CREATE,
                                .resource = store_resource(o->store, STR("pods")),
                                .skip = 1,
                                .ns = STR("default"),
                                .uid = STR("u-1"),
                                .bytes = STR("{\"other\":1}")};

        snprintf(name, sizeof(name), "other-%u", i);
        w.name = str_c(name);
        if (store_write(o->store, &w, NULL))
            world_fail("a store of its own takes no write");
        while (store_revision(o->store) < revision)
            turn(o);
    }
}

static bool on_object(void *ctx, const struct store_object *o)
{
    uint64_t *hash = ctx;

    *hash = str_hash(o->bytes, str_hash(o->name, str_hash(o->ns, *hash ^ (uint64_t)o->revision)));
    return true;
}

uint64_t opened_hash(struct opened *o)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < COUNT(RESOURCES); i++)
        if (store_scan(o->store, store_resource(o->store, str_c(RESOURCES[i])), STR_NULL, STR_NULL,
                       STR_NULL, 0, on_object, &hash, NULL))
            world_fail("a list of now fails");
    return hash;
}

void opened_forget(const char *path, const char *key)
{
    char file[512], sql[200];
    sqlite3 *db;

    snprintf(file, sizeof(file), "%.480s/state.db", path);
    snprintf(sql, sizeof(sql),
             "PRAGMA locking_mode=EXCLUSIVE;"
             "DELETE FROM meta WHERE key = '%s';"
             "PRAGMA wal_checkpoint(TRUNCATE);",
             key);
    if (sqlite3_open(file, &db) || sqlite3_exec(db, sql, NULL, NULL, NULL))
        world_trace("the file keeps its %s: %s", key, sqlite3_errmsg(db));
    sqlite3_close(db);
}

int64_t opened_mark(const char *path)
{
    char file[512];
    sqlite3 *db;
    sqlite3_stmt *q = NULL;
    int64_t mark = 0;

    snprintf(file, sizeof(file), "%.480s/state.db", path);
    if (!sqlite3_open(file, &db) &&
        !sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL) &&
        !sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'log'", -1, &q, NULL) &&
        sqlite3_step(q) == SQLITE_ROW)
        mark = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return mark;
}
