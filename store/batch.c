/* SPDX-License-Identifier: Apache-2.0
 * Batches: the writes that share a transaction, and what becomes of them. A committed batch is made
 * visible as a whole; a failed one takes everything under way with it and leaves no trace. */
#include "batch.h"
#include "db_load.h"
#include "drive.h"
#include "impl.h"
#include "op.h"

#include <assert.h>

/* History entries removed from disk per transaction, beyond two per write in it. */
#define DROPS_PER_BATCH 64

struct op *batch_add(struct store *s, enum op_kind kind, size_t bytes)
{
    assert(s->magic == STORE_MAGIC);
    if (!s->open)
        s->open = NEW(struct batch);
    struct batch *b = s->open;

    GROW(b->ops, b->n_ops, b->cap_ops);
    struct op *op = &b->ops[b->n_ops++];
    *op = (struct op){.kind = kind};
    b->bytes += bytes;
    s->waiting_bytes += bytes;
    drive_schedule(s);
    return op;
}

void batch_free(struct batch *b)
{
    if (!b)
        return;
    mem_free(b->ops);
    mem_free(b->done);
    mem_free(b);
}

void store_on_commit(struct store *s, store_done_cb done, void *ctx)
{
    assert(s->magic == STORE_MAGIC && !s->closing);
    /* Nothing was written since the batch under way was closed: the caller waits for that one. */
    struct batch *b = s->open ? s->open : s->flying;

    if (!b)
        b = s->open = NEW(struct batch);
    GROW(b->done, b->n_done, b->cap_done);
    b->done[b->n_done++] = (struct done){done, ctx};
    if (b == s->open)
        drive_schedule(s);
}

/* A bounded number of dead rows goes along with every transaction; more than a write can make. */
void batch_take_drops(struct store *s)
{
    size_t n = s->history.n_drops;
    size_t most = DROPS_PER_BATCH + (s->open ? 2 * s->open->n_ops : 0);
    size_t taken = n < most ? n : most;

    for (size_t i = 0; i < taken; i++) {
        struct history_drop drop;
        history_drop_at(&s->history, i, &drop);
        struct op *op = batch_add(s, OP_DROP, 0);
        op->drop.floor = drop.floor;
        op->drop.dead[0] = drop.dead[0];
        op->drop.dead[1] = drop.dead[1];
    }
    if (s->open)
        s->open->n_drops = taken;
}

static void touch(struct store *s, struct table *t)
{
    if (t->touched)
        return;
    t->touched = true;
    GROW(s->touched, s->n_touched, s->cap_touched);
    s->touched[s->n_touched++] = t;
}

/* A version that cannot be read was hidden while it was there, and stays so in the event that ends
 * it: what the writer made of it stands for it, with its revision. */
static const struct store_object *stand_in(const struct store_object *hidden,
                                           const struct store_object *after)
{
    struct db_version v = {.resource = after->resource,
                           .skip = after->skip,
                           .revision = hidden->revision,
                           .ns = after->ns,
                           .name = after->name,
                           .uid = after->uid,
                           .bytes = after->bytes,
                           .labels = after->labels,
                           .fields = after->fields};

    store_object_unref(hidden);
    return store_object_new(&v);
}

static void publish(struct store *s, struct op *op)
{
    const struct store_object *object = op->version.object;
    struct table *t = table_get(s, object->resource);
    bool gone = op->type == STORE_DELETED, hidden = op->version.entry->quarantined;
    const struct store_object *previous =
        table_entry_commit(s, t, op->version.entry, gone ? NULL : store_object_ref(object));
    if (hidden)
        previous = stand_in(previous, object);
    struct store_event event = {
        .type = (enum store_event_type)op->type,
        .revision = object->revision,
        .object = object,
        .previous = previous,
    };

    assert(object->revision > s->revision && !previous == (op->type == STORE_ADDED));
    s->revision = object->revision;
    history_add(&s->history, &event, op->version.at)->hidden = hidden;
    t->rows++;
    touch(s, t);
    table_entry_pop(t, op->version.entry);
    store_object_unref(previous);
    store_object_unref(object);
}

/* The rows are deleted on disk; with the last of them a released resource can be freed. */
void batch_drops_done(struct store *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct history_drop drop;

        history_drop_at(&s->history, i, &drop);
        if (!drop.resource)
            continue;
        struct table *t = table_get(s, drop.resource);
        assert(t->rows);
        t->rows--;
        table_settle(s, t);
    }
    history_drops_done(&s->history, n);
}

void batch_commit(struct store *s, struct batch *b)
{
    for (size_t i = 0; i < b->n_ops; i++) {
        struct op *op = &b->ops[i];
        switch (op->kind) {
        case OP_VERSION:
            publish(s, op);
            break;
        case OP_RESOURCE:
            op->resource.table->saved = true;
            op->resource.table->saving = false;
            break;
        case OP_RESOURCE_DROP:
            op->resource.table->saved = op->resource.table->dropping = false;
            table_settle(s, op->resource.table);
            break;
        case OP_RECORD_PUT:
        case OP_RECORD_DELETE:
            record_committed(op);
            break;
        case OP_REVISION:
            assert(op->revision > s->revision);
            s->revision = op->revision;
            break;
        case OP_DROP:
            break;
        }
    }
    batch_drops_done(s, b->n_drops);
    s->waiting_bytes -= b->bytes;
}

static void undo(struct store *s, struct batch *b)
{
    for (size_t i = b->n_ops; i-- > 0;) {
        struct op *op = &b->ops[i];
        switch (op->kind) {
        case OP_VERSION: {
            struct table *t = table_get(s, op->version.object->resource);

            table_entry_pop(t, op->version.entry);
            store_object_unref(op->version.object);
            table_settle(s, t);
            break;
        }
        case OP_RESOURCE:
            op->resource.table->saving = false;
            table_settle(s, op->resource.table);
            break;
        case OP_RESOURCE_DROP:
            op->resource.table->dropping = false;
            table_settle(s, op->resource.table);
            break;
        case OP_RECORD_PUT:
        case OP_RECORD_DELETE:
            record_undo(s, op);
            break;
        case OP_REVISION: /* stays used up */
            break;
        case OP_DROP: /* stays in the list for a later batch */
            break;
        }
    }
    s->waiting_bytes -= b->bytes;
}

void batch_answer(struct batch *b, const struct err *err)
{
    for (size_t i = 0; b && i < b->n_done; i++)
        b->done[i].call(b->done[i].ctx, err);
}

struct batch *batch_undo(struct store *s, struct batch *flying)
{
    struct batch *later = s->open;

    s->open = NULL;
    s->n_undone++;
    if (later)
        undo(s, later);
    undo(s, flying);
    s->latest_objects = s->live_objects;
    s->latest_bytes = s->live_bytes;
    assert(!s->waiting_bytes);
    return later;
}
