/* SPDX-License-Identifier: Apache-2.0
 * Watches are cursors in the shared history: a slow one costs nothing but its own place, and is
 * notified when history went past it. */
#include "watch.h"

#include <assert.h>

int store_watch_open(struct store *s, unsigned resource, int64_t revision, void (*wake)(void *ctx),
                     void *ctx, struct store_watch **ret, struct err *err)
{
    assert(s->magic == STORE_MAGIC && !s->closing);
    struct table *t = resource ? table_get(s, resource) : NULL;
    int64_t floor = t ? t->floor : s->history.floor;

    if (revision < floor)
        return err_set(err, &ERR_EXPIRED, "too old resource version: %lld (%lld)",
                       (long long)revision, (long long)floor);
    /* Clients see a revision once it is committed, so this one is of another life. */
    if (s->state.identity.restored && revision > s->revision)
        return err_set(err, &ERR_EXPIRED, "resource version of before a restore: %lld (%lld)",
                       (long long)revision, (long long)s->revision);

    struct store_watch *w = NEW(struct store_watch);
    *w = (struct store_watch){
        .magic = WATCH_MAGIC,
        .store = s,
        .table = t,
        .cursor = history_seek(&s->history, revision),
        .position = revision,
        .wake = wake,
        .ctx = ctx,
    };
    LIST_INSERT_HEAD(t ? &t->watches : &s->watches, w, other);
    s->stats.watches++;
    *ret = w;
    return 0;
}

struct store_watch *store_watch_first(const struct store *s, unsigned resource)
{
    if (!resource)
        return LIST_FIRST(&s->watches);
    return resource < s->n_tables && s->tables[resource] ? LIST_FIRST(&s->tables[resource]->watches)
                                                         : NULL;
}

static bool concerns(const struct store_watch *w, const struct history_slot *slot)
{
    return slot->revision > w->position && (!w->table || slot->resource == w->table->id);
}

void store_watch_skip(struct store_watch *w)
{
    const struct history *h = &w->store->history;

    if (w->cursor < h->first) {
        /* What left the history is lost only when it was ours. */
        w->expired |= (w->table ? w->table->floor : h->floor) > w->position;
        w->cursor = h->first;
    }
    for (; !w->expired && w->cursor < h->next; w->cursor++) {
        const struct history_slot *slot = history_at(h, w->cursor);
        if (concerns(w, slot)) {
            w->expired = slot->lost;
            return;
        }
        if (w->position < slot->revision)
            w->position = slot->revision;
    }
}

static void release_event(struct store_watch *w)
{
    store_object_unref(w->event.object);
    store_object_unref(w->event.previous);
    w->event = (struct store_event){0};
}

static const struct store_event *take(struct store_watch *w)
{
    const struct history_slot *slot = history_at(&w->store->history, w->cursor);
    const struct history_pair *pair = history_pair(&w->store->history, w->cursor);

    if (!pair)
        pair = page_find(w);
    if (!pair) {
        page_want(w);
        return NULL;
    }
    w->event = (struct store_event){
        .type = (enum store_event_type)slot->type,
        .revision = slot->revision,
        .object = store_object_ref(pair->object),
        .previous = pair->previous ? store_object_ref(pair->previous) : NULL,
    };
    w->position = slot->revision;
    w->cursor++;
    page_forget(w);
    return &w->event;
}

const struct store_event *store_watch_next(struct store_watch *w, bool *ret_expired)
{
    assert(w->magic == WATCH_MAGIC);
    bool was_in_page = page_has(w);
    const struct store_event *e = NULL;

    release_event(w);
    store_watch_skip(w);
    *ret_expired = w->expired;
    if (!w->expired && w->cursor < w->store->history.next)
        e = take(w);
    if (was_in_page && !page_has(w))
        page_settle(w->store);
    return e;
}

int64_t store_watch_position(const struct store_watch *w)
{
    assert(w->magic == WATCH_MAGIC);
    struct store_watch at = *w;
    store_watch_skip(&at);
    if (at.expired || at.cursor < w->store->history.next || at.position > w->store->revision)
        return at.position;
    return w->store->revision;
}

struct store_watch *store_watch_close(struct store_watch *w)
{
    if (!w)
        return NULL;
    assert(w->magic == WATCH_MAGIC);
    page_forget(w);
    if (w->store->next_watch == w)
        w->store->next_watch = LIST_NEXT(w, other);
    LIST_REMOVE(w, other);
    w->store->stats.watches--;
    page_settle(w->store);
    release_event(w);
    if (w->table)
        table_settle(w->store, w->table);
    w->magic = 0;
    mem_free(w);
    return NULL;
}

/* A wake-up may close any watch and open others; watches that are opened go to the front and are
 * not visited. */
static void wake_list(struct store *s, const struct watch_list *list)
{
    for (struct store_watch *w = LIST_FIRST(list); w; w = s->next_watch) {
        s->next_watch = LIST_NEXT(w, other);
        w->wake(w->ctx);
    }
    s->next_watch = NULL;
}

void store_watch_wake_all(struct store *s)
{
    if (s->n_touched)
        wake_list(s, &s->watches);
    for (size_t i = 0; i < s->n_touched; i++) {
        struct table *t = s->touched[i];

        wake_list(s, &t->watches);
        t->touched = false;
        table_settle(s, t);
    }
    s->n_touched = 0;
}

void store_watch_fini_all(struct store *s)
{
    while (!LIST_EMPTY(&s->watches))
        store_watch_close(LIST_FIRST(&s->watches));
    for (size_t i = 0; i < s->n_tables; i++) {
        while (s->tables[i] && !LIST_EMPTY(&s->tables[i]->watches))
            store_watch_close(LIST_FIRST(&s->tables[i]->watches));
    }
}
