/* SPDX-License-Identifier: Apache-2.0
 * A child process that writes and reports through a pipe what was answered, until it is killed. */
#pragma once

#include "harness.h"
#include <sys/types.h>

#define CRASH_KEYS 12

/* What is known of a key: the last version that was answered. */
struct crash_key {
    int64_t revision; /* 0: never written */
    int value;        /* -1: deleted */
};

struct crash {
    struct fixture *f;
    struct crash_key keys[CRASH_KEYS];
    int64_t newest; /* the greatest revision answered or seen */
    size_t padding; /* bytes added to each object */
    bool power;     /* the syncs of the child leave shadows, for crash_power_loss() */
    long answers;
};

/* Runs a child for about `ms` milliseconds after its first answer, kills it with SIGKILL and takes
 * in what it reported. */
void crash_run(struct crash *c, unsigned seed, int ms);
/* Turns the files into what a disk may hold after the power went: what was synced, and of what was
 * written since then any sectors. */
void crash_power_loss(struct crash *c, unsigned seed);
/* Compares the store, which is open, with what was reported; then takes over what is there. */
void crash_check(struct crash *c);
