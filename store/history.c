/* SPDX-License-Identifier: Apache-2.0
 * The ring of events, the ring of the warm ones' objects and the list of rows that may leave the
 * database. All grow by doubling; what bounds them is the caller's (history_cool_first,
 * history_drop_first, history_drops_done). */
#include "history.h"

#include <assert.h>
#include <string.h>

#define HISTORY_MIN 16u

void history_init(struct history *h, int64_t floor)
{
    *h = (struct history){.first = 1, .warm = 1, .next = 1, .floor = floor};
}

void history_fini(struct history *h)
{
    while (h->warm < h->next)
        history_cool_first(h);
    mem_free(h->slots);
    mem_free(h->pairs);
    mem_free(h->drops);
    history_init(h, 0);
}

size_t history_count(const struct history *h)
{
    return (size_t)(h->next - h->first);
}

static struct history_slot *slot_of(const struct history *h, uint64_t sequence)
{
    return &h->slots[sequence & (h->cap - 1)];
}

static struct history_pair *pair_of(const struct history *h, uint64_t sequence)
{
    return &h->pairs[sequence & (h->cap_pairs - 1)];
}

static void resize_slots(struct history *h, size_t cap)
{
    struct history_slot *slots = mem_alloc(cap * sizeof(*slots));

    for (uint64_t i = h->first; i < h->next; i++)
        slots[i & (cap - 1)] = *slot_of(h, i);
    mem_free(h->slots);
    h->slots = slots;
    h->cap = cap;
}

static void resize_pairs(struct history *h, size_t cap)
{
    struct history_pair *pairs = mem_alloc(cap * sizeof(*pairs));

    for (uint64_t i = h->warm; i < h->next; i++)
        pairs[i & (cap - 1)] = *pair_of(h, i);
    mem_free(h->pairs);
    h->pairs = pairs;
    h->cap_pairs = cap;
}

static size_t fitting(size_t n)
{
    size_t cap = HISTORY_MIN;

    while (cap < n)
        cap *= 2;
    return cap;
}

void history_shrink(struct history *h)
{
    size_t warm = (size_t)(h->next - h->warm);

    if (fitting(history_count(h)) < h->cap)
        resize_slots(h, fitting(history_count(h)));
    if (!warm) {
        h->pairs = mem_free(h->pairs);
        h->cap_pairs = 0;
    } else if (fitting(warm) < h->cap_pairs) {
        resize_pairs(h, fitting(warm));
    }
    if (h->n_drops)
        return;
    h->drops = mem_free(h->drops);
    h->cap_drops = h->first_drop = 0;
}

/* A version is kept by the event that replaced it, and a delete's own by nothing else. */
static uint32_t bytes_of(const struct store_event *e)
{
    const struct store_object *held[2] = {e->previous, e->type == STORE_DELETED ? e->object : NULL};
    size_t n = sizeof(struct history_slot);

    for (int i = 0; i < 2; i++) {
        if (held[i])
            n += sizeof(*held[i]) + held[i]->bytes.n + held[i]->labels.n + held[i]->fields.n;
    }
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static uint32_t seconds(int64_t at)
{
    return at < 0 ? 0 : at < UINT32_MAX ? (uint32_t)at : UINT32_MAX;
}

static struct history_slot *add_slot(struct history *h, const struct store_event *e, int64_t at)
{
    assert(e->revision > h->floor && e->object->resource <= UINT16_MAX);
    if (history_count(h) == h->cap)
        resize_slots(h, fitting(h->cap + 1));

    struct history_slot *slot = slot_of(h, h->next);
    *slot = (struct history_slot){
        .revision = e->revision,
        .previous = e->previous ? e->previous->revision : 0,
        .at = seconds(at),
        .bytes = bytes_of(e),
        .resource = (uint16_t)e->object->resource,
        .type = (uint8_t)e->type,
    };
    h->bytes += slot->bytes;
    return slot;
}

struct history_slot *history_add(struct history *h, const struct store_event *event, int64_t at)
{
    struct history_slot *slot = add_slot(h, event, at);

    if (h->next - h->warm == h->cap_pairs)
        resize_pairs(h, fitting(h->cap_pairs + 1));
    *pair_of(h, h->next++) = (struct history_pair){
        .object = store_object_ref(event->object),
        .previous = event->previous ? store_object_ref(event->previous) : NULL,
    };
    h->warm_bytes += slot->bytes;
    return slot;
}

struct history_slot *history_add_cold(struct history *h, const struct store_event *event,
                                      int64_t at)
{
    assert(h->warm == h->next);
    struct history_slot *slot = add_slot(h, event, at);

    h->warm = ++h->next;
    return slot;
}

struct history_slot *history_at(const struct history *h, uint64_t sequence)
{
    assert(sequence >= h->first && sequence < h->next);
    return slot_of(h, sequence);
}

const struct history_pair *history_pair(const struct history *h, uint64_t sequence)
{
    assert(sequence >= h->first && sequence < h->next);
    return sequence < h->warm ? NULL : pair_of(h, sequence);
}

uint64_t history_seek(const struct history *h, int64_t revision)
{
    uint64_t low = h->first, high = h->next;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (slot_of(h, middle)->revision > revision)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void history_cool_first(struct history *h)
{
    assert(h->warm < h->next);
    struct history_pair *pair = pair_of(h, h->warm);

    h->warm_bytes -= slot_of(h, h->warm)->bytes;
    store_object_unref(pair->object);
    store_object_unref(pair->previous);
    *pair = (struct history_pair){0};
    h->warm++;
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

/* The row of the version before is dead once nothing needs the object as it was before this event;
 * so is the row of a delete, which has nothing after it. */
void history_drop_first(struct history *h)
{
    assert(history_count(h) && h->first < h->warm);
    struct history_slot *slot = slot_of(h, h->first);
    struct history_drop drop = {
        .floor = slot->revision,
        .resource = slot->resource,
        .dead = {slot->previous, slot->type == STORE_DELETED ? slot->revision : 0},
    };

    add_drop(h, &drop);
    h->bytes -= slot->bytes;
    h->floor = slot->revision;
    *slot = (struct history_slot){0};
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
