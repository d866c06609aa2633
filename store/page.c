/* SPDX-License-Identifier: Apache-2.0
 * Cold events for watches: a watch that meets one waits here, the writer reads a page of events
 * from the first one's cursor on, and every watch that finds its event there goes on. There is one
 * page at a time, of bounded size, however many watches are slow. An event that cannot be read back
 * whole is lost: it is never skipped, those who need it expire. */
#include "drive.h"
#include "watch.h"

#include <assert.h>

/* An event is two rows at most. */
#define PAGE_EVENTS 128
#define PAGE_BYTES  ((size_t)256 << 10)

struct page_event {
    uint64_t sequence;
    struct history_pair pair;
};

struct page {
    unsigned resource; /* 0: of all resources */
    uint64_t first, end;
    size_t n;
    struct page_event events[];
};

static unsigned resource_of(const struct store_watch *w)
{
    return w->table ? w->table->id : 0;
}

static bool is_in(const struct page *p, const struct store_watch *w)
{
    return p && p->resource == resource_of(w) && w->cursor >= p->first && w->cursor < p->end;
}

const struct history_pair *page_find(const struct store_watch *w)
{
    const struct page *p = w->store->page;
    size_t low = 0, high;

    if (!is_in(p, w))
        return NULL;
    for (high = p->n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (p->events[middle].sequence == w->cursor)
            return &p->events[middle].pair;
        if (p->events[middle].sequence > w->cursor)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static struct page *page_free(struct page *p)
{
    for (size_t i = 0; p && i < p->n; i++) {
        store_object_unref(p->events[i].pair.object);
        store_object_unref(p->events[i].pair.previous);
    }
    mem_free(p);
    return NULL;
}

void page_settle(struct store *s)
{
    if (!s->page)
        return;
    const struct store_watch *w = store_watch_first(s, s->page->resource);

    while (w && !is_in(s->page, w))
        w = LIST_NEXT(w, other);
    if (!w)
        s->page = page_free(s->page);
}

static void move_to(struct store_watch *w, struct watch_queue *queue)
{
    if (w->queue)
        TAILQ_REMOVE(w->queue, w, place);
    w->queue = queue;
    if (queue)
        TAILQ_INSERT_TAIL(queue, w, place);
}

void page_want(struct store_watch *w)
{
    if (w->queue)
        return;
    move_to(w, &w->store->waiting);
    drive_schedule(w->store);
}

void page_forget(struct store_watch *w)
{
    move_to(w, NULL);
}

bool page_has(const struct store_watch *w)
{
    return is_in(w->store->page, w);
}

bool page_due(const struct store *s)
{
    return !TAILQ_EMPTY(&s->waiting);
}

static bool is_wanted(const struct reading *r, const struct history_slot *slot)
{
    return !r->resource || slot->resource == r->resource;
}

/* The rows of the events from the first waiting watch's on. There are none when that watch has
 * expired meanwhile; it is woken all the same. */
void page_request(struct store *s, struct reading *r)
{
    struct store_watch *w = TAILQ_FIRST(&s->waiting);
    const struct history *h = &s->history;
    size_t n = 0;

    store_watch_skip(w);
    *r = (struct reading){
        .kind = READ_PAGE, .resource = resource_of(w), .first = w->cursor, .end = w->cursor};
    r->rows = mem_alloc(2 * PAGE_EVENTS * sizeof(*r->rows));
    r->most_bytes = PAGE_BYTES;
    for (; !w->expired && n < PAGE_EVENTS && r->end < h->warm; r->end++) {
        const struct history_slot *slot = history_at(h, r->end);
        if (!is_wanted(r, slot))
            continue;
        if (slot->lost)
            break;
        recall_reading_add(r, slot->previous);
        recall_reading_add(r, slot->revision);
        n++;
    }
}

/* Borrowed from the rows; false: not there, or not what the event says. */
static bool take_pair(struct store *s, const struct reading *r, const struct history_slot *slot,
                      struct history_pair *ret)
{
    const struct db_row *row = recall_reading_find(r, slot->revision);
    const struct db_row *before = slot->previous ? recall_reading_find(r, slot->previous) : NULL;

    *ret = (struct history_pair){row->object, before ? before->object : NULL};
    if (row->type != slot->type || !recall_row_readable(s, row, slot->resource))
        return false;
    return !slot->previous ||
           (before->type != STORE_DELETED && recall_row_readable(s, before, slot->resource) &&
            !table_key_cmp(row->object, before->object));
}

static bool was_read(const struct reading *r, const struct history_slot *slot)
{
    return recall_reading_find(r, slot->revision) &&
           (!slot->previous || recall_reading_find(r, slot->previous));
}

static struct page *page_new(struct store *s, const struct reading *r)
{
    const struct history *h = &s->history;
    struct page *p = mem_alloc(sizeof(*p) + PAGE_EVENTS * sizeof(p->events[0]));

    p->resource = r->resource;
    p->first = p->end = r->first < h->first ? h->first : r->first;
    for (; p->end < r->end; p->end++) {
        struct history_slot *slot = history_at(h, p->end);
        struct history_pair pair;

        if (!is_wanted(r, slot))
            continue;
        if (slot->lost || !was_read(r, slot))
            break;
        if (!take_pair(s, r, slot, &pair)) {
            recall_event_lost(s, slot);
            break;
        }
        store_object_ref(pair.object);
        if (pair.previous)
            store_object_ref(pair.previous);
        p->events[p->n++] = (struct page_event){p->end, pair};
    }
    return p;
}

static bool is_stuck(struct store_watch *w)
{
    const struct history *h = &w->store->history;

    store_watch_skip(w);
    return !w->expired && w->cursor < h->warm && !page_find(w);
}

/* A wake-up may close any watch, and let any wait again. */
static void wake_ready(struct store *s)
{
    struct store_watch *w, *next;

    for (w = TAILQ_FIRST(&s->waiting); w; w = next) {
        next = TAILQ_NEXT(w, place);
        if (!is_stuck(w))
            move_to(w, &s->ready);
    }
    while ((w = TAILQ_FIRST(&s->ready))) {
        move_to(w, NULL);
        w->wake(w->ctx);
    }
}

void page_answer(struct store *s, const struct reading *r, bool failed)
{
    s->page = page_free(s->page);
    if (failed) {
        struct store_watch *w;

        /* Nothing is known of the rows: each watch that waited for one of them must list again. */
        TAILQ_FOREACH(w, &s->waiting, place)
        {
            if (resource_of(w) == r->resource && w->cursor >= r->first && w->cursor < r->end)
                w->expired = true;
        }
    } else {
        s->page = page_new(s, r);
    }
    wake_ready(s);
    page_settle(s);
}
