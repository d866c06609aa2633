/* SPDX-License-Identifier: Apache-2.0
 * The ring of recent events that every watch reads from, and the list of rows that may leave the
 * database because their event left the ring. Events are numbered by sequence, from 1, gapless. */
#pragma once

#include <sublet/store.h>

struct history_slot {
    struct store_event event; /* owns a reference to object and previous */
    int64_t at;               /* seconds since 1970 */
};

struct history_drop {
    int64_t floor, dead[2];
    unsigned resource; /* 0: no event of the ring counted it */
};

struct history {
    struct history_slot *slots;
    size_t cap;           /* a power of two, or 0 */
    uint64_t first, next; /* sequence numbers: [first, next) are there */
    size_t bytes;         /* held only for the history's sake */
    int64_t floor;        /* every event after this revision is in the ring */

    struct history_drop *drops; /* a ring as well; oldest first */
    size_t n_drops, cap_drops, first_drop;
};

void history_init(struct history *h, int64_t floor);
void history_fini(struct history *h);
/* References object and previous. */
void history_add(struct history *h, const struct store_event *event, int64_t at);
size_t history_count(const struct history *h);
const struct history_slot *history_at(const struct history *h, uint64_t sequence);
/* The first event after `revision`; history_count() may be 0, then it is `next`. */
uint64_t history_seek(const struct history *h, int64_t revision);
/* Removes the oldest event; its rows go to the list of drops. */
void history_drop_first(struct history *h);
/* What one event keeps alive. */
size_t history_event_bytes(const struct store_event *event);
/* A row that no event of the ring will remove. */
void history_drop_row(struct history *h, int64_t revision);
void history_drop_at(const struct history *h, size_t index, struct history_drop *ret);
void history_drops_done(struct history *h, size_t n);
/* Gives back memory the ring does not need. */
void history_shrink(struct history *h);
