/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Which exporter is read next. Two lanes of their own: those that answered last, and those that did
 * not yet or not any more; so servers that hang, however many, delay none that answers. In a lane
 * the one that is due longest is first: none is read twice before each of it was once. Of a node
 * one is read at a time. Pure; times are milliseconds of one monotonic clock. */
#pragma once

#include <sys/queue.h>

#include <sublet/hash.h>

enum turn_lane {
    TURN_PROVEN,   /* its last answer was one */
    TURN_UNPROVEN, /* not read yet, or its last read failed */
    N_TURN_LANES
};
#define TURNS_UNDER_WAY 8 /* in each lane */

/* Embedded in the caller's; the fields are the turns'. */
struct turn {
    TAILQ_ENTRY(turn) place;
    struct map_entry by_node; /* while it is under way */
    struct str node;          /* the caller's, as long as it is added */
    int64_t due_ms;
    uint64_t begun; /* its last read, in the order of all; 0: none */
    enum turn_lane lane;
    bool under_way;
};
/* All zero but `all`: exporter_turns_init(). */
struct turns {
    TAILQ_HEAD(turn_list, turn) all;
    struct map busy; /* nodes of which one is under way */
    size_t under_way[N_TURN_LANES];
    uint64_t begun;
};
void exporter_turns_init(struct turns *t);
void exporter_turns_add(struct turns *t, struct turn *turn, struct str node, int64_t due_ms);
void exporter_turns_remove(struct turns *t, struct turn *turn); /* also one that is under way */
/* The one to be read now: it is under way from here on. NULL: none, and *ret_wait_ms is how long
 * from now_ms on until one is due, at least 1, or INT64_MAX where that is not before
 * exporter_turns_end() of another. */
struct turn *exporter_turns_next(struct turns *t, int64_t now_ms, int64_t *ret_wait_ms);
void exporter_turns_end(struct turns *t, struct turn *turn, bool answered, int64_t due_ms);
