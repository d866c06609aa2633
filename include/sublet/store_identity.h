/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * Which life of a cluster's data this is. Two directories made of one backup are two lives: what
 * one of them wrote proves nothing to the other, and they never give one revision to different
 * content. */
#pragma once

#include <stdint.h>
#include <sublet/store.h>

/* An epoch is 32 lower-case hex digits: 48 bits of the wall clock in milliseconds at its creation,
 * and 80 random ones. A later one compares greater (strcmp), also when the clock went back between
 * a life and the one restored from it. */
#define STORE_EPOCH_LEN 32

/* A life that was restored begins at random between 0 and 72 minutes above the microseconds since
 * 2026-01-01T00:00:00Z; where the copy has revisions beyond them, above its newest. No life writes
 * a revision in a microsecond, so of two restores of one copy the later one is above the earlier
 * one once 72 minutes have passed; before, either may be. Two whose clock shows the same time share
 * a revision with the probability of (revisions written) / 2^31; with a clock from before the
 * copied life they begin further apart, 2^43. A hundred restores with such a clock stay below 2^53,
 * which clients that read numbers as doubles need.
 *
 * A revision that this life has not reached was given by another one: a watch from there is
 * EXPIRED. */
struct store_identity {
    char epoch[STORE_EPOCH_LEN + 1];
    bool restored;                  /* this life began with a copy */
    char from[STORE_EPOCH_LEN + 1]; /* the epoch of the copy; "" when there is none or unknown */
    int64_t from_revision;          /* the newest of the copy; 0 without */
};
void store_identity(const struct store *s, struct store_identity *ret);

/* For store_options.after: the data was overtaken by this life. Opening it begins another one,
 * later than this, as with a copy, unless it is later already. Not on a disk that cannot be
 * written: the life goes on there, as store_identity() says. */
struct store_predecessor {
    char epoch[STORE_EPOCH_LEN + 1];
    int64_t revision; /* the newest that is known to be used up */
};
