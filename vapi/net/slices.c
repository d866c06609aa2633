/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of an answer's pieces. Why: answers are sent by reference, and many watchers may share
 * a piece, so its owner is notified exactly once when we are done with it. Must never copy bytes,
 * and never forget a release. */
#include "exchange.h"

#include <assert.h>
#include <string.h>

#define KEEP_CAP 16u

static void release(const struct net_slice *slice)
{
    if (slice->release)
        slice->release(slice->ctx);
}

static void make_room(struct slices *q)
{
    if (q->head + q->n < q->cap)
        return;

    if (q->head >= q->cap / 2 && q->head > 0) {
        memmove(q->items, q->items + q->head, q->n * sizeof(q->items[0]));
        q->head = 0;
        return;
    }
    q->cap = q->cap ? q->cap * 2 : 4;
    q->items = mem_realloc(q->items, q->cap * sizeof(q->items[0]));
}

void net_slices_push(struct slices *q, const struct net_slice *slice)
{
    if (!slice->bytes.n) {
        release(slice);
        return;
    }
    make_room(q);
    q->items[q->head + q->n++] = *slice;
    q->bytes += slice->bytes.n;
}

struct str net_slices_peek(const struct slices *q)
{
    if (!q->n)
        return STR_NULL;
    return str_from(q->items[q->head].bytes, q->offset);
}

void net_slices_pop(struct slices *q, size_t n)
{
    assert(n <= q->bytes);
    q->bytes -= n;
    q->offset += n;

    while (q->n && q->offset >= q->items[q->head].bytes.n) {
        struct net_slice done = q->items[q->head];

        q->offset -= done.bytes.n;
        q->head++;
        q->n--;
        release(&done);
    }

    if (q->n)
        return;
    q->head = 0;
    if (q->cap > KEEP_CAP) {
        q->items = mem_free(q->items);
        q->cap = 0;
    }
}

void net_slices_clear(struct slices *q)
{
    net_slices_pop(q, q->bytes);
    q->items = mem_free(q->items);
    *q = (struct slices){0};
}
