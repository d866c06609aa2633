/* SPDX-License-Identifier: Apache-2.0
 * The ring of events and the list of rows that may leave the database. Both grow by doubling; what
 * bounds them is the caller's (history_drop_first, history_drops_done). */
#include "history.h"

#include <assert.h>
#include <string.h>

#define HISTORY_MIN 16u

void history_init(struct history *h, int64_t floor)
{
    *h = (struct history){.first = 1, .next = 1, .floor = floor};
}

void history_fini(struct history *h)
{
    for (uint64_t i = h->first; i < h->next; i++) {
        struct history_slot *slot = &h->slots[i & (h->cap - 1)];
        store_object_unref(slot->event.object);
        store_object_unref(slot->event.previous);
    }
    mem_free(h->slots);
    mem_free(h->drops);
    history_init(h, 0);
}

size_t history_count(const struct history *h)
{
    return (size_t)(h->next - h->first);
}

static void resize(struct history *h, size_t cap)
{
    struct history_slot *slots = mem_alloc(cap * sizeof(*slots));

    for (uint64_t i = h->first; i < h->next; i++)
        slots[i & (cap - 1)] = h->slots[i & (h->cap - 1)];
    mem_free(h->slots);
    h->slots = slots;
    h->cap = cap;
}

void history_shrink(struct history *h)
{
    size_t cap = HISTORY_MIN;

    while (cap < history_count(h))
        cap *= 2;
    if (cap < h->cap)
        resize(h, cap);
    if (h->n_drops)
        return;
    h->drops = mem_free(h->drops);
    h->cap_drops = h->first_drop = 0;
}

size_t history_event_bytes(const struct store_event *e)
{
    const struct store_object *held[2] = {e->previous, e->type == STORE_DELETED ? e->object : NULL};
    size_t n = sizeof(struct history_slot);

    for (int i = 0; i < 2; i++) {
        if (held[i])
            n += sizeof(*held[i]) + held[i]->bytes.n + held[i]->labels.n + held[i]->fields.n;
    }
    return n;
}

void history_add(struct history *h, const struct store_event *event, int64_t at)
{
    assert(event->revision > h->floor);
    if (history_count(h) == h->cap)
        resize(h, h->cap ? h->cap * 2 : HISTORY_MIN);

    struct history_slot *slot = &h->slots[h->next++ & (h->cap - 1)];
    slot->event = *event;
    slot->at = at;
    store_object_ref(event->object);
    if (event->previous)
        store_object_ref(event->previous);
    h->bytes += history_event_bytes(event);
}

const struct history_slot *history_at(const struct history *h, uint64_t sequence)
{
    assert(sequence >= h->first && sequence < h->next);
    return &h->slots[sequence & (h->cap - 1)];
}

uint64_t history_seek(const struct history *h, int64_t revision)
{
    uint64_t low = h->first, high = h->next;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (history_at(h, middle)->event.revision > revision)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void add_drop(struct history *h, const struct history_drop *drop)
{
    if (h->n_drops == h->cap_drops) {
        size_t cap = h->cap_drops ? h->cap_drops * 2 : HISTORY_MIN;
        struct history_drop *drops = mem_alloc(cap * sizeof(*drops));
        for (size_t i = 0; i < h->n_drops; i++)
            history_drop_at(h, i, &drops[i]);
        mem_free(h->drops);
        h->drops = drops;
        h->cap_drops = cap;
        h->first_drop = 0;
    }
    h->drops[(h->first_drop + h->n_drops++) % h->cap_drops] = *drop;
}

/* The row of the version before is dead once nothing asks what it was before this event; so is the
 * row of a delete, which has nothing after it. */
void history_drop_first(struct history *h)
{
    assert(history_count(h));
    struct history_slot *slot = &h->slots[h->first & (h->cap - 1)];
    struct store_event *e = &slot->event;
    struct history_drop drop = {
        .floor = e->revision,
        .resource = e->object->resource,
        .dead = {e->previous ? e->previous->revision : 0,
                 e->type == STORE_DELETED ? e->revision : 0},
    };

    add_drop(h, &drop);
    h->bytes -= history_event_bytes(e);
    h->floor = e->revision;
    store_object_unref(e->object);
    store_object_unref(e->previous);
    memset(slot, 0, sizeof(*slot));
    h->first++;
}

void history_drop_row(struct history *h, int64_t revision)
{
    add_drop(h, &(struct history_drop){.floor = h->floor, .dead = {revision}});
}

void history_drop_at(const struct history *h, size_t index, struct history_drop *ret)
{
    assert(index < h->n_drops);
    *ret = h->drops[(h->first_drop + index) % h->cap_drops];
}

void history_drops_done(struct history *h, size_t n)
{
    assert(n <= h->n_drops);
    if (!n)
        return;
    h->first_drop = (h->first_drop + n) % h->cap_drops;
    h->n_drops -= n;
}
