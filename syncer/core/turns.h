/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Turns: the processes that led with this data, in order. A copy of a data directory has the epoch
 * of its original; by the turns in the Lease it knows that another process led since it was
 * made. */
#pragma once

#include <sublet/store.h>

enum { TURNS_KEPT = 8 };
struct turns {
    struct store *store;
    struct arena *arena;
    struct str epoch;
    struct turn {
        struct str token;
        int64_t from; /* the revision at which it continues the turn before */
    } list[TURNS_KEPT];
    size_t n;
    int64_t end; /* where the last one ends; -1: it is this process's */
};
/* At start, before anything is written. Strings are copied to a. */
void sync_turns_open(struct turns *t, struct store *store, struct arena *a, struct str epoch);
/* Before the Lease is taken, whose turns are `seen`: it must not have the token before the record
 * is durable. */
void sync_turns_begin(struct turns *t, struct str token, struct str seen);
void sync_turns_undo(struct turns *t); /* that could not be made durable */
void sync_turns_led(struct turns *t);  /* the Lease was taken */
/* The newest revision that belongs to a turn on record. A process whose turn could not be recorded
 * leads without one. */
int64_t sync_turns_reach(const struct turns *t);
/* As the Lease has them: "TOKEN@REVISION ...", the newest last. */
struct str sync_turns_print(const struct turns *t, struct arena *a);

/* Is the history of which the Lease says this (its turns, and the newest revision) part of this
 * data? If not, *ret_fork is the last revision that both have, -1 where that is not known. */
bool sync_turns_include(const struct turns *t, struct str seen, int64_t revision,
                        int64_t *ret_fork);

/* Where data of a later epoch branched off from this one, of which its store has the record still:
 * "REVISION/END/TOKEN@REVISION,...", or "REVISION". */
struct str sync_turns_branch(struct store *store, struct arena *a, struct str epoch,
                             int64_t revision);
/* The last revision that our data and a branch of our epoch are known to have in common, and the
 * last one that they can have. They differ where one of them was written without a turn. False: not
 * known, because turns are off the record. */
bool sync_turns_common(const struct turns *t, struct arena *a, struct str branch,
                       int64_t *ret_known, int64_t *ret_possible);
/* The same of two lives that each branched off from one epoch. */
bool sync_turns_parted(struct arena *a, struct str ours, struct str theirs, int64_t *ret_known,
                       int64_t *ret_possible);
