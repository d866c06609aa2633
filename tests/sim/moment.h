/* SPDX-License-Identifier: Apache-2.0 */
/* Time and chance of a simulated world. Every clock and every random number of this process comes
 * from here: the functions of libc and OpenSSL that give them are replaced (moment.c), so no wall
 * time and no entropy gets in. What happens outside of a tenant's own loop is an item of one
 * agenda, in the order of its time, then of its making. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sublet/clock.h>

/* One stream per concern: leaving out an action does not change what the others draw. The kernel's
 * has one of its own, since RNG_SYSTEM keeps a stock that outlives a moment: it may serve nothing
 * but the hashes of maps. */
enum dice { DICE_ACTION, DICE_WIRE, DICE_DISK, DICE_HOST, DICE_PRODUCT, DICE_SYSTEM, N_DICE };

struct item {
    struct item *next;
    int64_t at_us;
    uint64_t order;
    const void *owner; /* moment_forget() removes what is its own */
    void (*run)(void *arg);
    void *arg;
};

struct moment {
    int64_t now_us;  /* since the world began */
    int64_t jump_us; /* of the wall clock */
    uint64_t state[N_DICE], made;
    struct item *agenda;
};

void moment_init(struct moment *m, uint64_t seed);
void moment_seed(struct moment *m, enum dice which, uint64_t seed);
/* From here on this process lives in that world; NULL: in the real one. */
void moment_enter(struct moment *m);
uint64_t dice_next(struct moment *m, enum dice which);
uint64_t dice_below(struct moment *m, enum dice which, uint64_t n); /* 0 to n - 1; n may be 0 */
bool dice_chance(struct moment *m, enum dice which, unsigned of_thousand);

void moment_at(struct moment *m, int64_t after_us, const void *owner, void (*run)(void *arg),
               void *arg);
void moment_forget(struct moment *m, const void *owner);
/* The time of the first item, or INT64_MAX. */
int64_t moment_next(const struct moment *m);
/* Runs the first item if it is due. */
bool moment_run_due(struct moment *m);

struct clock moment_clock(struct moment *m);
struct rng moment_rng(struct moment *m);
/* The machine's own clock, for the runner's report. */
double moment_real_s(void);
