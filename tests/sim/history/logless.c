/* SPDX-License-Identifier: Apache-2.0 */
/* An admin who takes a dead process's data along without its log. What is left is opened at once,
 * on a disk of its own, and forgotten: the history goes on with the whole of it. */
#include "judge.h"
#include "logless.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sublet/store_executor.h>
#include <sublet/store_quarantine.h>

#include "history.h"

struct late {
    void (*run)(void *arg);
    void *arg;
};

static void post(void *ctx, void (*run)(void *arg), void *arg)
{
    *(struct late *)ctx = (struct late){run, arg};
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void close_store(struct store *s, uv_loop_t *loop, struct late *late)
{
    bool closed = false;

    store_close(s, on_closed, &closed);
    while (!closed) {
        uv_run(loop, UV_RUN_NOWAIT);
        struct late now = *late;
        *late = (struct late){0};
        if (now.run)
            now.run(now.arg);
    }
}

/* Never silent: a revision that was seen is there, or the store says that its log is missing. */
static void judge_open(struct world *w, const char *path, int64_t seen)
{
    struct late late = {0};
    struct store_executor executor = {post, &late};
    struct store_options options = {.path = path, .executor = &executor};
    struct store_damage d;
    struct store *s;
    struct err err;
    uv_loop_t loop;

    err_init(&err, w->arena);
    uv_loop_init(&loop);
    if (store_open(&loop, &options, &s, &err)) {
        world_fail("a store without its log is refused: %.*s", STR_F(err.message));
        return;
    }
    store_damage(s, &d);
    if (store_revision(s) < seen && !d.log_missing)
        world_fail("the log is lost with revision %lld, and nothing says so", (long long)seen);
    /* Two lives of one copy begin within 72 minutes of each other: store_identity.h. */
    if (!w->generation && !w->with[CLASS_TWO] && d.log_missing && store_revision(s) <= seen)
        world_fail("revisions up to %lld may be given twice", (long long)seen);
    world_trace("without its log: %s", d.log_missing ? "said" : "nothing lost");
    close_store(s, &loop, &late);
    uv_loop_close(&loop);
}

/* A file that no longer says that it has a log. */
static void forget_log(const char *path)
{
    static const char SQL[] = "PRAGMA locking_mode=EXCLUSIVE;"
                              "DELETE FROM meta WHERE key = 'logged';"
                              "PRAGMA wal_checkpoint(TRUNCATE);";
    char file[512];
    sqlite3 *db;

    snprintf(file, sizeof(file), "%.480s/state.db", path);
    if (sqlite3_open(file, &db) || sqlite3_exec(db, SQL, NULL, NULL, NULL))
        world_trace("the file keeps its promise: %s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static bool open_without_log(struct world *w, bool silent)
{
    struct life *l = w->lives[0];
    uint64_t dice[N_DICE];
    char path[512];

    if (!l || l->dead || !life_serves(l))
        return false;
    int64_t seen = store_revision(l->store);
    life_kill(l, dice_below(&w->moment, DICE_ACTION, 2) != 0);
    memcpy(dice, w->moment.state, sizeof(dice));
    struct disk *d = history_next_disk(w, w->disk);
    mkdir(disk_path(d), 0700);
    snprintf(path, sizeof(path), "%.480s/state.db-wal", disk_path(d));
    unlink(path);
    if (silent)
        forget_log(disk_path(d));
    judge_open(w, disk_path(d), seen);
    memcpy(w->moment.state, dice, sizeof(dice));
    return true;
}

void logless_do(struct world *w)
{
    (void)open_without_log(w, false);
}

bool logless_plant(struct world *w)
{
    return open_without_log(w, true);
}
