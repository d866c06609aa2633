/* SPDX-License-Identifier: Apache-2.0
 * Which events stay in the history, and for which of them memory keeps the objects. What leaves the
 * history can no longer be watched or listed from; its rows leave the database with later
 * transactions, so the floor on disk follows behind, never ahead. What leaves memory only is read
 * back from these rows (page.c, recall.c): memory is for those who keep up. */
#include "impl.h"
#include "reading.h"
#include "upkeep.h"

#include <sublet/clock.h>

/* What a disk without room holds of the history: it is given up for the sake of new writes. */
#define FULL_SECONDS 5
#define FULL_BYTES   ((size_t)256 << 10)

/* A watch that was not read for so long may wait for the disk. */
#define WARM_SECONDS 10

int64_t store_now(const struct store *s)
{
    return (s->options.wall_us ? s->options.wall_us() : clock_wall_us(&CLOCK_SYSTEM)) / 1000000;
}

static void cool(struct store *s)
{
    struct history *h = &s->history;
    struct history_slot *slot = history_at(h, h->warm);

    recalls_keep(s, slot, history_pair(h, h->warm));
    if (slot->hidden)
        recall_event_lost(s, slot);
    history_cool_first(h);
}

static bool is_too_warm(const struct store *s, int64_t now)
{
    const struct history *h = &s->history;

    return h->warm < h->next && (h->warm_bytes > s->options.history_memory ||
                                 history_at(h, h->warm)->at + (int64_t)WARM_SECONDS < now);
}

struct limits {
    size_t events, bytes;
    int64_t seconds; /* 0 or less: any age */
};

/* Without room on the disk, the rows of past events are the room for further writes. */
static struct limits limits_of(const struct store *s)
{
    const struct store_options *o = &s->options;
    struct limits l = {o->history_events, o->history_bytes, o->history_seconds};

    if (s->disk.disk != STORE_DISK_FULL)
        return l;
    if (l.bytes > FULL_BYTES)
        l.bytes = FULL_BYTES;
    if (l.seconds <= 0 || l.seconds > FULL_SECONDS)
        l.seconds = FULL_SECONDS;
    return l;
}

static bool is_surplus(const struct store *s, const struct limits *l, int64_t now)
{
    const struct history *h = &s->history;

    if (!history_count(h))
        return false;
    return history_count(h) > l->events || h->bytes > l->bytes ||
           (l->seconds > 0 && history_at(h, h->first)->at < now - l->seconds);
}

static void drop_oldest(struct store *s)
{
    struct history *h = &s->history;
    const struct history_slot *slot = history_at(h, h->first);
    struct table *t = table_get(s, slot->resource);

    if (h->first == h->warm)
        cool(s);
    if (t->floor < slot->revision)
        t->floor = slot->revision;
    history_drop_first(h);
}

void store_retain(struct store *s)
{
    struct limits limits = limits_of(s);
    int64_t now = store_now(s);

    while (is_too_warm(s, now))
        cool(s);
    while (is_surplus(s, &limits, now))
        drop_oldest(s);
}

void retain_nothing(struct store *s)
{
    while (history_count(&s->history))
        drop_oldest(s);
}

void retain_nothing_warm(struct store *s)
{
    while (s->history.warm < s->history.next)
        cool(s);
}

int64_t retain_due(const struct store *s)
{
    const struct history *h = &s->history;

    if (!history_count(h) || s->options.history_seconds <= 0)
        return -1;
    int64_t left = history_at(h, h->next - 1)->at + s->options.history_seconds + 1 - store_now(s);
    return left > 0 ? left : 0;
}
