/* SPDX-License-Identifier: Apache-2.0 */
/* An admin who takes a dead process's data along without its log. What is left is opened at once,
 * on a disk of its own, and forgotten: the history goes on with the whole of it. */
#include "judge.h"
#include "logless.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sublet/store_quarantine.h>

#include "history.h"
#include "opened.h"

/* Never silent: a revision that was seen is there, or the store says that its log is missing. */
static void judge_open(struct world *w, const char *path, int64_t seen)
{
    struct store_damage d;
    struct opened o;
    struct err err;

    err_init(&err, w->arena);
    if (opened_open(&o, path, &err)) {
        world_fail("a store without its log is refused: %.*s", STR_F(err.message));
        return;
    }
    store_damage(o.store, &d);
    if (store_revision(o.store) < seen && !d.log_missing)
        world_fail("the log is lost with revision %lld, and nothing says so", (long long)seen);
    /* Two lives of one copy begin within 72 minutes of each other: store_identity.h. */
    if (!w->generation && !w->with[CLASS_TWO] && d.log_missing && store_revision(o.store) <= seen)
        world_fail("revisions up to %lld may be given twice", (long long)seen);
    world_trace("without its log: %s", d.log_missing ? "said" : "nothing lost");
    opened_close(&o);
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
        opened_forget(disk_path(d), "logged");
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
