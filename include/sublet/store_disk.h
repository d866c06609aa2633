/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * A disk that is full, over its quota, read-only or no longer ours to write. The store then serves
 * what it has, refuses writes before they cost anything, and goes on by itself:
 *
 *                .---- no room --> FULL ---- no room ---> USED_UP
 *                |                  | ^                    |   |
 *   WRITABLE <---+---room again-----' '--- room for one ---'   |
 *      ^  '--- not writable ---> READ_ONLY                     |
 *      '-------- writable again ----'<---- not writable -------'
 *
 * FULL lives on a reserve: blocks that were taken while there were any, and given back to the disk
 * so that deletes can be stored. A probe with a backoff looks for room while the state is not
 * WRITABLE; otherwise nothing runs. */
#pragma once

#include <sublet/err.h>

struct store;

enum store_disk {
    STORE_DISK_WRITABLE,
    STORE_DISK_FULL,      /* deletes are stored, updates that do not grow, and records */
    STORE_DISK_USED_UP,   /* the reserve is used up as well: nothing is stored */
    STORE_DISK_READ_ONLY, /* nothing is stored */
};

/* Of the details that make two versions of one size differ: the digits of a revision. */
#define STORE_DISK_SLACK 32
/* What the object of a store_write with `ending` may grow by: a deletionTimestamp, conditions. */
#define STORE_DISK_ENDING 2048
/* The probe costs less than a client that waits. */
#define STORE_DISK_RETRY_S 1

enum store_disk store_disk(const struct store *s);
/* No write of an object is stored, not even a delete. */
bool store_disk_is_shut(const struct store *s);
/* Sets err to STORAGE with the reason and retry_after, as a write that is refused has it; returns
 * -1. Only while the disk is not writable. */
int store_disk_refuse(const struct store *s, struct err *err);
/* changed() comes from the loop when the state did. One listener; NULL ends it. */
void store_on_disk(struct store *s, void (*changed)(void *ctx), void *ctx);
