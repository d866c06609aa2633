/* SPDX-License-Identifier: Apache-2.0
 * The ring of recent events that every watch reads from, and the list of rows that may leave the
 * database because their event left the ring. Events are numbered by sequence, from 1, gapless.
 *
 *     first            warm             next
 *       |  slots only    |  slots and     |
 *       |  ("cold")      |  objects       |
 *
 * A cold event is the rows of its two revisions, which are on disk for as long as it is here.
 *
 * A DELETED event has an object of its own, the last state with the deletion's revision in its
 * bytes, because a watch sends bytes as they are, and because its row must be readable when that of
 * the version before is not. Sharing would save one copy while it is warm: ten seconds, and within
 * the 1 MiB that all warm events have together. Then it is a slot of 32 bytes like any other. */
#pragma once

#include <sublet/store.h>

struct history_slot {
    int64_t revision, previous; /* of the event, and of the version before it (0: ADDED) */
    uint32_t at;                /* seconds since 1970 */
    uint32_t bytes;             /* what the event alone keeps: on disk, and in memory while warm */
    uint16_t resource;
    uint8_t type; /* enum store_event_type */
    bool hidden;  /* its `previous` in memory is not what is on disk */
    bool lost;    /* cannot be delivered: who needs it must list again */
};

struct history_pair {
    const struct store_object *object, *previous; /* owned */
};

struct history_drop {
    int64_t floor, dead[2];
    unsigned resource; /* 0: no event of the ring counted it */
};

struct history {
    struct history_slot *slots;
    struct history_pair *pairs;
    size_t cap, cap_pairs;      /* powers of two, or 0 */
    uint64_t first, warm, next; /* sequence numbers: [first, next) are there */
    size_t bytes, warm_bytes;   /* of all; of the warm ones */
    int64_t floor;              /* every event after this revision is in the ring */

    struct history_drop *drops; /* a ring as well; oldest first */
    size_t n_drops, cap_drops, first_drop;
};

void history_init(struct history *h, int64_t floor);
void history_fini(struct history *h);
/* A warm event; references object and previous. */
struct history_slot *history_add(struct history *h, const struct store_event *event, int64_t at);
/* The same, given away at once: nothing of it stays in memory. Only while none is warm. */
struct history_slot *history_add_cold(struct history *h, const struct store_event *event,
                                      int64_t at);
size_t history_count(const struct history *h);
struct history_slot *history_at(const struct history *h, uint64_t sequence);
/* NULL: cold. */
const struct history_pair *history_pair(const struct history *h, uint64_t sequence);
/* The first event after `revision`; history_count() may be 0, then it is `next`. */
uint64_t history_seek(const struct history *h, int64_t revision);
/* Lets go of the objects of the oldest warm event. */
void history_cool_first(struct history *h);
/* Removes the oldest event, which is cold; its rows go to the list of drops. */
void history_drop_first(struct history *h);
/* A row that no event of the ring will remove. */
void history_drop_row(struct history *h, int64_t revision);
void history_drop_at(const struct history *h, size_t index, struct history_drop *ret);
void history_drops_done(struct history *h, size_t n);
/* Gives back memory the rings do not need. */
void history_shrink(struct history *h);
