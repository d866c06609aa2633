/* SPDX-License-Identifier: Apache-2.0
 * Which events stay in the history. What leaves it can no longer be watched or listed from; its
 * rows leave the database with later transactions, so the floor on disk follows behind, never
 * ahead. */
#include "impl.h"

#include <sublet/clock.h>

int64_t store_now(const struct store *s)
{
    return (s->options.wall_us ? s->options.wall_us() : clock_wall_us(&CLOCK_SYSTEM)) / 1000000;
}

static bool is_surplus(const struct store *s, int64_t now)
{
    const struct history *h = &s->history;
    const struct store_options *o = &s->options;

    if (!history_count(h))
        return false;
    return history_count(h) > o->history_events || h->bytes > o->history_bytes ||
           (o->history_seconds > 0 && history_at(h, h->first)->at < now - o->history_seconds);
}

void retain(struct store *s)
{
    int64_t now = store_now(s);

    while (is_surplus(s, now)) {
        const struct store_event *e = &history_at(&s->history, s->history.first)->event;
        table_get(s, e->object->resource)->floor = e->revision;
        history_drop_first(&s->history);
    }
}

int64_t retain_due(const struct store *s)
{
    const struct history *h = &s->history;

    if (!history_count(h) || s->options.history_seconds <= 0)
        return -1;
    int64_t left = history_at(h, h->next - 1)->at + s->options.history_seconds + 1 - store_now(s);
    return left > 0 ? left : 0;
}
