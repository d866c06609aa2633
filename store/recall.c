/* SPDX-License-Identifier: Apache-2.0
 * Reading versions back from disk for readers that meet cold events: pages for watches (page.c),
 * and what scans at an older revision need. One read is under way at a time; the loop thread never
 * waits for it.
 *
 * The state of revision R is every live version not newer than R, and the `previous` of every event
 * after R whose `previous` is not newer than R. A recall holds those of the latter whose events are
 * cold: it reads what is cold when it is opened, and keeps what becomes so until it is closed. */
#include "drive.h"
#include "impl.h"
#include "reading.h"

#include <assert.h>

#define RECALL_MAGIC 0x5263616cu
#define RECALL_ROWS  256
#define RECALL_BYTES ((size_t)256 << 10)

struct store_recall {
    unsigned magic;
    struct store *store;
    unsigned resource;
    int64_t revision;
    LIST_ENTRY(store_recall) place; /* among the store's */
    uint64_t at, end;               /* cold events still to be read */
    bool failed;
    const struct store_object **objects; /* owned */
    size_t n, cap;
    void (*ready)(void *ctx);
    void *ctx;
};

/* --- rows --- */

static struct db_row *reading_row(const struct reading *r, size_t n, int64_t revision)
{
    for (size_t i = n; i-- > 0;) {
        if (r->rows[i].revision == revision)
            return &r->rows[i];
    }
    return NULL;
}

void recall_reading_add(struct reading *r, int64_t revision)
{
    if (revision && !reading_row(r, r->n, revision))
        r->rows[r->n++].revision = revision;
}

struct db_row *recall_reading_find(const struct reading *r, int64_t revision)
{
    return reading_row(r, r->n_read, revision);
}

static void reading_fini(struct reading *r)
{
    for (size_t i = 0; i < r->n; i++)
        store_object_unref(r->rows[i].object);
    mem_free(r->rows);
    *r = (struct reading){0};
}

bool recall_row_readable(const struct store *s, const struct db_row *row, unsigned resource)
{
    if (!row->object || row->object->resource != resource)
        return false;
    return !s->options.readable || s->options.readable(table_get(s, resource)->name, row->object);
}

void recall_event_lost(struct store *s, struct history_slot *slot)
{
    struct table *t = table_get(s, slot->resource);

    slot->lost = true;
    if (t->floor < slot->revision)
        t->floor = slot->revision;
}

/* --- recalls --- */

static bool needs(const struct store_recall *r, const struct history_slot *slot)
{
    return slot->resource == r->resource && slot->revision > r->revision && slot->previous &&
           slot->previous <= r->revision;
}

static void keep(struct store_recall *r, const struct store_object *o)
{
    GROW(r->objects, r->n, r->cap);
    r->objects[r->n++] = store_object_ref(o);
}

/* Past events that it does not need; nothing is left once it is at its end. */
static void skip(struct store_recall *r)
{
    const struct history *h = &r->store->history;

    if (r->at < h->first)
        r->at = r->end; /* over: scans at its revision have expired */
    while (r->at < r->end && !needs(r, history_at(h, r->at)))
        r->at++;
}

struct store_recall *store_recall_open(struct store *s, unsigned resource, int64_t revision,
                                       void (*ready)(void *ctx), void *ctx)
{
    assert(s->magic == STORE_MAGIC && !s->closing && resource);
    struct store_recall *r = NEW(struct store_recall);

    *r = (struct store_recall){
        .magic = RECALL_MAGIC,
        .store = s,
        .resource = resource,
        .revision = revision,
        .at = history_seek(&s->history, revision),
        .end = s->history.warm,
        .ready = ready,
        .ctx = ctx,
    };
    LIST_INSERT_HEAD(&s->recalls, r, place);
    if (revision < table_get(s, resource)->floor)
        r->at = r->end;
    skip(r);
    assert(ready || store_recall_ready(r));
    if (r->at < r->end)
        drive_schedule(s);
    return r;
}

bool store_recall_ready(const struct store_recall *r)
{
    assert(r->magic == RECALL_MAGIC);
    return r->at >= r->end;
}

struct store_recall *store_recall_close(struct store_recall *r)
{
    if (!r)
        return NULL;
    assert(r->magic == RECALL_MAGIC);
    if (r->store->reading.recall == r)
        r->store->reading.kind = READ_DISCARDED;
    LIST_REMOVE(r, place);
    for (size_t i = 0; i < r->n; i++)
        store_object_unref(r->objects[i]);
    mem_free(r->objects);
    r->magic = 0;
    mem_free(r);
    return NULL;
}

void recalls_fini(struct store *s)
{
    while (!LIST_EMPTY(&s->recalls))
        store_recall_close(LIST_FIRST(&s->recalls));
}

void recalls_keep(struct store *s, const struct history_slot *slot, const struct history_pair *pair)
{
    struct store_recall *r;

    LIST_FOREACH(r, &s->recalls, place)
    {
        if (needs(r, slot))
            keep(r, pair->previous);
    }
}

bool recall_objects(const struct store *s, unsigned resource, int64_t revision,
                    const struct store_object ***ret, size_t *ret_n)
{
    struct store_recall *r;

    LIST_FOREACH(r, &s->recalls, place)
    {
        if (r->resource == resource && r->revision == revision && !r->failed &&
            store_recall_ready(r)) {
            *ret = r->objects;
            *ret_n = r->n;
            return true;
        }
    }
    return false;
}

/* --- the reads of both --- */

static struct store_recall *first_waiting(const struct store *s)
{
    struct store_recall *r;

    LIST_FOREACH(r, &s->recalls, place)
    {
        if (!store_recall_ready(r))
            return r;
    }
    return NULL;
}

static void recall_request(struct store_recall *recall, struct reading *r)
{
    const struct history *h = &recall->store->history;

    skip(recall);
    *r = (struct reading){
        .kind = READ_RECALL, .recall = recall, .first = recall->at, .end = recall->at};
    r->rows = mem_alloc(RECALL_ROWS * sizeof(*r->rows));
    r->most_bytes = RECALL_BYTES;
    for (; r->end < recall->end && r->n < RECALL_ROWS; r->end++) {
        const struct history_slot *slot = history_at(h, r->end);
        if (needs(recall, slot))
            r->rows[r->n++].revision = slot->previous;
    }
}

/* Rows of events that have left the history since are of no use: neither is the recall. */
static void recall_answer(struct store_recall *recall, const struct reading *r, bool failed)
{
    struct store *s = recall->store;
    size_t i = 0;

    skip(recall);
    for (; !failed && recall->at < r->end && i < r->n_read; skip(recall)) {
        struct history_slot *slot = history_at(&s->history, recall->at++);
        const struct db_row *row = &r->rows[i++];
        assert(row->revision == slot->previous);
        if (row->type != STORE_DELETED && recall_row_readable(s, row, slot->resource))
            keep(recall, row->object);
        else
            recall_event_lost(s, slot);
    }
    if (failed) {
        recall->failed = true;
        recall->at = recall->end;
    }
    if (store_recall_ready(recall))
        recall->ready(recall->ctx);
}

bool recall_reads_due(const struct store *s)
{
    return page_due(s) || first_waiting(s);
}

void recall_reads_post(struct store *s)
{
    struct store_recall *recall = first_waiting(s);
    struct reading *r = &s->reading;

    assert(!r->rows);
    s->recall_turn = !s->recall_turn;
    if (recall && (s->recall_turn || !page_due(s)))
        recall_request(recall, r);
    else
        page_request(s, r);
    writer_post(&s->writer, &(struct job){
                                .kind = JOB_READ,
                                .rows = r->rows,
                                .n_rows = r->n,
                                .most_bytes = r->most_bytes,
                            });
}

void recall_reads_answer(struct store *s, const struct job *job)
{
    struct reading r = s->reading;

    s->reading = (struct reading){0};
    r.n_read = job->result ? 0 : job->n_read;
    s->stats.reads++;
    s->stats.read_failures += job->result != 0;
    if (r.kind == READ_RECALL)
        recall_answer(r.recall, &r, job->result);
    else if (r.kind == READ_PAGE && !s->closing)
        page_answer(s, &r, job->result);
    reading_fini(&r);
}
