/* SPDX-License-Identifier: Apache-2.0 */
/* An admin who puts a file and a log together that do not belong to each other: of two moments of
 * one store, or of two stores. The pair is opened at once, on a disk of its own, and forgotten: the
 * history goes on with what was there. What a start must notice is in store/db_mark.c, and what it
 * cannot in docs/decisions/log-stays.md. Must never demand the latter: a log may have no mark, also
 * that of a process that served, once it was folded; and a file that a fold left unsynced may be of
 * no moment without its own log. */
#include "foreign.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

#include "history.h"
#include "judge.h"
#include "opened.h"

#define DATA "state.db"
#define LOG  "state.db-wal"
#define KEPT "state.db-wal.damaged"

/* What a start finds. */
struct found {
    uint64_t hash;
    int64_t revision;
    char epoch[STORE_EPOCH_LEN + 1];
    bool restored;
    struct store_damage damage;
};

/* A directory as a kill left it. */
struct past {
    struct disk *disk;
    struct found own;    /* of the file with its log */
    unsigned generation; /* of the world; OTHER: of another store */
    bool marked;         /* the log says which file it follows, and the file alone does not yet */
};
enum { MOST_PASTS = 4 };
static const unsigned OTHER = ~0u;

static struct past pasts[MOST_PASTS]; /* of this history */
static unsigned n_pasts;

/* --- looking --- */

static void look(struct world *w, struct disk *d, const char *what, struct found *ret)
{
    struct store_identity i;
    struct opened o;
    struct err err;

    err_init(&err, w->arena);
    mkdir(disk_path(d), 0700);
    if (opened_open(&o, disk_path(d), &err))
        world_fail("%s is refused: %.*s", what, STR_F(err.message));
    store_identity(o.store, &i);
    *ret = (struct found){
        .hash = opened_hash(&o), .revision = store_revision(o.store), .restored = i.restored};
    snprintf(ret->epoch, sizeof(ret->epoch), "%s", i.epoch);
    store_damage(o.store, &ret->damage);
    opened_close(&o);
}

static void look_at_own(struct world *w, const struct past *p, struct found *ret)
{
    look(w, history_next_disk(w, p->disk), "a file with its log", ret);
}

static void look_at_file(struct world *w, const struct past *p, struct found *ret)
{
    struct disk *d = history_next_disk(w, p->disk), *none = history_next_disk(w, NULL);

    disk_take(d, none, LOG);
    look(w, d, "a file without its log", ret);
}

static bool is_damaged(const struct store_damage *d)
{
    return d->objects || d->nameless || d->superseded || d->records || d->unattributed ||
           d->history || d->salvaged || d->log_missing || d->own_account;
}

/* --- judging --- */

static void judge_own(const struct past *p, int64_t seen)
{
    if (p->own.damage.log || is_damaged(&p->own.damage))
        world_fail("a log is not taken for that of its file");
    if (p->own.revision < seen)
        world_fail("revision %lld was seen, and a start finds %lld", (long long)seen,
                   (long long)p->own.revision);
}

/* The file alone in a new life, and each byte of the log. */
static void judge_noticed(struct world *w, const struct past *file, const struct past *log,
                          struct disk *mixed, const struct found *found)
{
    struct found alone;

    look_at_file(w, file, &alone);
    if (is_damaged(&found->damage))
        world_fail("a file loses more than the log of another");
    if (found->hash != alone.hash)
        world_fail("a file is changed by a log that is not its own");
    if (disk_file_hash(mixed, KEPT) != disk_file_hash(log->disk, LOG))
        world_fail("the log of another file is not kept as it was");
    if (!found->restored || !strcmp(found->epoch, file->own.epoch))
        world_fail("a file without its log goes on in the epoch of before");
    if (!w->generation && !w->with[CLASS_TWO] && found->revision <= file->own.revision)
        world_fail("revisions up to %lld may be given twice", (long long)file->own.revision);
}

/* Then both are the store at the moment that the log is of, and lack nothing that the file has. */
static void judge_taken(const struct past *file, const struct past *log, const struct found *found)
{
    if (file->generation != log->generation)
        world_fail("the log of another store is taken");
    if (is_damaged(&found->damage) || found->hash != log->own.hash ||
        found->revision != log->own.revision)
        world_fail("the log of another time is taken, of revision %lld beside %lld: they make "
                   "%lld",
                   (long long)log->own.revision, (long long)file->own.revision,
                   (long long)found->revision);
}

/* silent: the file does not say which log it belongs to. */
static void open_pair(struct world *w, const struct past *file, const struct past *log, bool silent)
{
    struct disk *none = history_next_disk(w, NULL), *mixed = history_next_disk(w, file->disk);
    struct found found;

    if (!log->marked || !disk_is_settled(file->disk, DATA)) {
        world_trace("a pair that proves nothing");
        return;
    }
    disk_take(mixed, none, LOG);
    mkdir(disk_path(mixed), 0700);
    if (silent)
        opened_forget(disk_path(mixed), "log");
    disk_take(mixed, log->disk, LOG);
    look(w, mixed, "a file with the log of another", &found);
    if (found.damage.log)
        judge_noticed(w, file, log, mixed, &found);
    else
        judge_taken(file, log, &found);
    world_trace("a file of revision %lld with a log of %lld: %s", (long long)file->own.revision,
                (long long)log->own.revision, found.damage.log ? "said" : "taken");
}

/* --- what there is --- */

static bool is_marked(struct world *w, const struct past *p)
{
    struct disk *both = history_next_disk(w, p->disk), *alone = history_next_disk(w, p->disk);

    disk_take(alone, history_next_disk(w, NULL), LOG);
    mkdir(disk_path(both), 0700);
    mkdir(disk_path(alone), 0700);
    return opened_mark(disk_path(both)) != opened_mark(disk_path(alone));
}

static bool take_past(struct world *w, struct past *ret)
{
    struct life *l = w->lives[0];

    if (!l || l->dead || !life_serves(l))
        return false;
    int64_t seen = store_revision(l->store);

    life_kill(l, dice_below(&w->moment, DICE_ACTION, 2) != 0);
    *ret = (struct past){.disk = history_next_disk(w, w->disk), .generation = w->generation};
    ret->marked = is_marked(w, ret);
    look_at_own(w, ret, &ret->own);
    judge_own(ret, seen);
    return true;
}

static void keep(struct world *w, const struct past *p)
{
    unsigned i = n_pasts < MOST_PASTS ? n_pasts++
                                      : (unsigned)dice_below(&w->moment, DICE_ACTION, MOST_PASTS);

    pasts[i] = *p;
}

/* Its first transaction is folded; what follows is in the log. It is left open, as a kill does. */
static void make_other(struct world *w, struct past *ret)
{
    struct disk *d = history_next_disk(w, NULL);
    struct opened *o = NEW(struct opened);
    struct err err;

    err_init(&err, w->arena);
    mkdir(disk_path(d), 0700);
    if (opened_open(o, disk_path(d), &err))
        world_fail("a store is not made: %.*s", STR_F(err.message));
    opened_write(o, 2 + (unsigned)dice_below(&w->moment, DICE_ACTION, 6));
    disk_after_crash(d, false);
    *ret = (struct past){.disk = d, .generation = OTHER, .marked = true};
    look_at_own(w, ret, &ret->own);
}

void foreign_do(struct world *w)
{
    uint64_t dice[N_DICE];
    struct past now, other;

    memcpy(dice, w->moment.state, sizeof(dice));
    if (!take_past(w, &now))
        return;
    unsigned i = (unsigned)dice_below(&w->moment, DICE_ACTION, n_pasts + 1);
    if (i == n_pasts)
        make_other(w, &other);
    else
        other = pasts[i];
    open_pair(w, &now, &other, false);
    open_pair(w, &other, &now, false);
    keep(w, &now);
    memcpy(w->moment.state, dice, sizeof(dice));
}

bool foreign_plant_store(struct world *w)
{
    struct past now, other;

    if (!take_past(w, &now) || !now.marked)
        return false;
    make_other(w, &other);
    open_pair(w, &other, &now, true);
    return true;
}
