/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Whose hours those of hours.h are: by namespace of the tenant. What no namespace has is of others:
 * what was charged before a version that counts them, and those with the least once a tenant has
 * used more namespaces in a month than are kept. */
#pragma once

#include "gpu/hours.h"

#define HOURS_NAMESPACES 1000 /* kept of a pool; names are the tenant's, as many as it likes */

/* A charge begins, or ends, of this uid: after sync_hours_note() of the same values, in the same
 * transaction. ns empty: it counts for others. */
void sync_hours_begin(const struct hours_of *h, struct str uid, struct str ns);
void sync_hours_end(const struct hours_of *h, struct str uid, struct rational quantity);

/* This month's hours of all namespaces: one split, each charge that has not ended, the list. */
struct hours_split;
struct hours_split *sync_hours_split(struct arena *a, const struct hours_of *h);
void sync_hours_split_charge(struct hours_split *s, struct str uid, struct rational quantity);
struct hours_line {
    struct str ns;
    struct rational hours; /* in thousandths, more than 0 */
};
struct hours_list {
    struct hours_line *lines; /* the most first, then by name; in the arena */
    size_t n;
    struct rational others, total; /* of what is in no line; of all */
};
/* At most so many lines. Rounded so that they and others are the total, exactly, which is that of
 * sync_hours_rounded(): no number is further than a thousandth from what was held. */
struct hours_list sync_hours_list(struct hours_split *s, size_t most);
