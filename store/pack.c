/* SPDX-License-Identifier: Apache-2.0
 * Gives objects places side by side. A write allocates its object among the buffers of requests:
 * the next object fits into one that was freed, and what is left of the hole fits nothing; and a
 * few objects that stay keep the pages of many that were deleted. So once the store is quiet, what
 * was written since the last time is copied in the order of its addresses, and the heap can be
 * trimmed. It takes a microsecond for each object that moves and 0.2 us for each that is looked at.
 * An object with another owner than its entry stays where it is. */
#include "impl.h"
#include "upkeep.h"

#include <assert.h>
#include <stdlib.h>

/* Fewer new revisions are not worth looking through all objects for them. */
#define PACK_LEAST 256
/* Copies are made before the originals are freed: else each would be put into the hole that the one
 * before it left. So much more memory is needed for a moment. */
#define PACK_BYTES ((size_t)1 << 20)

struct moves {
    struct object_entry **entries;
    size_t n, cap;
};

static bool can_move(const struct store *s, const struct object_entry *e)
{
    return !e->n_pending && e->committed && e->committed->revision > s->packed &&
           e->committed->refs == 1;
}

/* Neighbours leave one large hole. */
static int place_cmp(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)(*(struct object_entry *const *)a)->committed;
    uintptr_t y = (uintptr_t)(*(struct object_entry *const *)b)->committed;

    return (x > y) - (x < y);
}

/* Of some entries from the first one on; returns how many. */
static size_t move_some(struct store *s, struct object_entry **entries, size_t n)
{
    size_t moved = 0;

    for (size_t bytes = 0; moved < n && bytes < PACK_BYTES; moved++) {
        const struct store_object *o = entries[moved]->committed;
        bytes += sizeof(*o) + store_object_size(o);
        table_entry_move(table_get(s, o->resource), entries[moved])->committed =
            store_object_copy(o);
    }
    for (size_t i = 0; i < moved; i++) {
        store_object_unref(entries[i]->committed);
        mem_free(entries[i]);
    }
    return moved;
}

void store_pack(struct store *s)
{
    struct moves m = {0};

    if (s->revision - s->packed < PACK_LEAST)
        return;
    for (size_t id = 1; id < s->n_tables; id++) {
        struct object_entry *e = s->tables[id] ? table_first(s->tables[id]) : NULL;
        for (; e; e = table_next(e)) {
            if (can_move(s, e)) {
                GROW(m.entries, m.n, m.cap);
                m.entries[m.n++] = e;
            }
        }
    }
    if (m.n)
        qsort(m.entries, m.n, sizeof(*m.entries), place_cmp);
    for (size_t i = 0; i < m.n;)
        i += move_some(s, m.entries + i, m.n - i);
    mem_free(m.entries);
    s->packed = s->revision;
}
