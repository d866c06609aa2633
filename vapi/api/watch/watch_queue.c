/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a watch until a webhook has converted them. Must never change their order, or hold more
 * than a batch of them. */
#include "watch_queue.h"

#include <assert.h>

#define QUEUE_EVENTS 64
#define QUEUE_BYTES  (1u << 20)

struct watch_queue {
    struct {
        enum store_event_type type;
        int64_t revision;
    } events[QUEUE_EVENTS];
    const struct store_object *objects[QUEUE_EVENTS]; /* references */
    size_t n, bytes;
    struct conversion_read *job;
    conversion_read_done done;
    void *ctx;
};

bool watch_queue_takes(const struct watch_queue *q, const struct call *c,
                       const struct store_object *o)
{
    return q || conversion_needed_stored(c->resource, o);
}

struct watch_queue *watch_queue_add(struct watch_queue *q, enum store_event_type type,
                                    const struct store_object *o, int64_t revision)
{
    if (!q)
        q = NEW(struct watch_queue);
    assert(!q->job && q->n < QUEUE_EVENTS);
    q->events[q->n].type = type;
    q->events[q->n].revision = revision;
    q->objects[q->n++] = store_object_ref(o);
    q->bytes += o->bytes.n;
    return q;
}

bool watch_queue_is_full(const struct watch_queue *q)
{
    return q && (q->n == QUEUE_EVENTS || q->bytes >= QUEUE_BYTES);
}

bool watch_queue_waits(const struct watch_queue *q)
{
    return q && q->job;
}

static void on_converted(void *ctx, const struct err *err)
{
    struct watch_queue *q = ctx;

    q->job = NULL;
    q->done(q->ctx, err);
}

void watch_queue_convert(struct watch_queue *q, struct call *c, conversion_read_done done,
                         void *ctx)
{
    assert(!q->job);
    q->done = done;
    q->ctx = ctx;
    q->job = conversion_read(c->api, c->resource, q->objects, q->n, on_converted, q);
}

void watch_queue_send(struct watch_queue *q, struct watch_out *out)
{
    for (size_t i = 0; i < q->n; i++)
        watch_out_stored(out, q->events[i].type, q->objects[i], q->events[i].revision);
}

struct watch_queue *watch_queue_free(struct watch_queue *q)
{
    if (!q)
        return NULL;
    conversion_read_cancel(q->job);
    for (size_t i = 0; i < q->n; i++)
        store_object_unref(q->objects[i]);
    return mem_free(q);
}
