/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Which pods give GPUs back when the fleet takes some: the lowest priority first, of those the
 * newest. Pure. */
#pragma once

#include <sublet/rational.h>

struct reclaim_pod {
    struct str uid, created; /* created: creationTimestamp of the host pod */
    int64_t priority;        /* that the host gave it */
    struct rational gpu_eq;  /* that is charged for it; zero: it is never chosen */
    size_t index;            /* the caller's own */
    bool leaving;            /* its deletion was requested: what it holds comes free by itself */
    bool chosen;             /* the answer */
};
/* Sorts them into the order in which they are ended, and chooses as few from the front as bring
 * what is held to the limit. */
void sync_reclaim_choose(struct reclaim_pod *pods, size_t n, struct rational held,
                         struct rational limit);
