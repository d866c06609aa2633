/* SPDX-License-Identifier: Apache-2.0
 *
 * The work queue: a hash map of keys and a binary heap of those that wait, ordered by due time and,
 * within it, by arrival. A key exists only while it waits or is worked on, so memory follows the
 * work. Must never hand a key out twice at a time, and never read a clock. */
#include <sublet/queue.h>

#include <sublet/clock.h>

#include <assert.h>
#include <string.h>

#include <sublet/hash.h>

#define QUEUE_MAGIC 0x71756575u
#define NOT_WAITING SIZE_MAX

/* waiting: slot is its place in the heap. working: slot is NOT_WAITING, and `again` says that it
 * was added meanwhile, for again_due. */
struct entry {
    UT_hash_handle hh;
    struct str key;
    int64_t due, again_due;
    uint64_t arrival;
    size_t slot;
    unsigned failures;
    bool again;
};

struct queue {
    unsigned magic;
    struct queue_options options;
    struct entry *entries; /* hash map */
    struct entry **heap;
    size_t n, cap; /* of the heap */
    uint64_t arrivals, seed;
};

struct queue *queue_new(const struct queue_options *options)
{
    struct queue *q = NEW(struct queue);

    q->magic = QUEUE_MAGIC;
    if (options)
        q->options = *options;
    if (q->options.backoff_base_ms <= 0)
        q->options.backoff_base_ms = 5;
    if (q->options.backoff_max_ms <= 0)
        q->options.backoff_max_ms = 60000;
    if (q->options.max_keys == 0)
        q->options.max_keys = 100000;
    q->seed = rng_u64(&RNG_SYSTEM); /* keys are a tenant's: it must not know where they collide */
    return q;
}

static struct entry *find(const struct queue *q, struct str key)
{
    unsigned hash = (unsigned)str_hash(key, q->seed); /* once, not at every entry */
    struct entry *e = NULL;

    assert(q->magic == QUEUE_MAGIC);
    HASH_FIND_BYHASHVALUE(hh, q->entries, key.p, key.n, hash, e);
    return e;
}

static struct entry *insert(struct queue *q, struct str key)
{
    unsigned hash = (unsigned)str_hash(key, q->seed);
    struct entry *e = NEW(struct entry);

    e->key = mem_str(key);
    e->slot = NOT_WAITING;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, q->entries, e->key.p, e->key.n, hash, e);
    return e;
}

static void discard(struct queue *q, struct entry *e)
{
    HASH_DEL(q->entries, e);
    /* The bytes were allocated by mem_str() for this entry alone. */
    union {
        const char *view;
        char *own;
    } key = {.view = e->key.p};

    mem_free(key.own);
    mem_free(e);
}

struct queue *queue_free(struct queue *q)
{
    struct entry *e, *next;

    if (!q)
        return NULL;
    assert(q->magic == QUEUE_MAGIC);
    HASH_ITER(hh, q->entries, e, next)
    {
        discard(q, e);
    }
    mem_free(q->heap);
    q->magic = 0;
    return mem_free(q);
}

/* ---- heap ---- */

static bool before(const struct entry *a, const struct entry *b)
{
    return a->due != b->due ? a->due < b->due : a->arrival < b->arrival;
}

static void place(struct queue *q, size_t slot, struct entry *e)
{
    q->heap[slot] = e;
    e->slot = slot;
}

static void sift_up(struct queue *q, struct entry *e)
{
    size_t slot = e->slot;

    while (slot > 0 && before(e, q->heap[(slot - 1) / 2])) {
        place(q, slot, q->heap[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    place(q, slot, e);
}

static void sift_down(struct queue *q, struct entry *e)
{
    size_t slot = e->slot;

    for (;;) {
        size_t child = 2 * slot + 1;
        if (child + 1 < q->n && before(q->heap[child + 1], q->heap[child]))
            child++;
        if (child >= q->n || before(e, q->heap[child]))
            break;
        place(q, slot, q->heap[child]);
        slot = child;
    }
    place(q, slot, e);
}

static void push(struct queue *q, struct entry *e, int64_t due)
{
    assert(e->slot == NOT_WAITING);
    GROW(q->heap, q->n, q->cap);
    e->due = due;
    e->arrival = q->arrivals++;
    place(q, q->n++, e);
    sift_up(q, e);
}

static struct entry *pop(struct queue *q)
{
    struct entry *first = q->heap[0], *last = q->heap[--q->n];

    first->slot = NOT_WAITING;
    if (first != last) {
        place(q, 0, last);
        sift_down(q, last);
    }
    if (q->n == 0) { /* an idle queue keeps no memory */
        q->heap = mem_free(q->heap);
        q->cap = 0;
    }
    return first;
}

/* ---- the four verbs ---- */

bool queue_add_at(struct queue *q, struct str key, int64_t due_ms)
{
    struct entry *e = find(q, key);

    if (!e) {
        if (HASH_COUNT(q->entries) >= q->options.max_keys)
            return false;
        push(q, insert(q, key), due_ms);
        return true;
    }
    if (e->slot == NOT_WAITING) {
        e->again_due = e->again && e->again_due < due_ms ? e->again_due : due_ms;
        e->again = true;
    } else if (due_ms < e->due) {
        e->due = due_ms;
        e->arrival = q->arrivals++;
        sift_up(q, e);
    }
    return true;
}

bool queue_add(struct queue *q, struct str key, int64_t now_ms)
{
    return queue_add_at(q, key, now_ms);
}

bool queue_get(struct queue *q, int64_t now_ms, struct str *ret_key)
{
    if (queue_next_due(q) > now_ms || q->n == 0)
        return false;
    *ret_key = pop(q)->key;
    return true;
}

/* base * 2^(failures - 1), capped. */
static int64_t backoff(const struct queue *q, unsigned failures)
{
    int64_t delay = q->options.backoff_base_ms;

    for (unsigned i = 1; i < failures && delay < q->options.backoff_max_ms; i++)
        if (__builtin_mul_overflow(delay, 2, &delay))
            return q->options.backoff_max_ms;
    return delay < q->options.backoff_max_ms ? delay : q->options.backoff_max_ms;
}

void queue_done(struct queue *q, struct str key, int64_t now_ms, bool failed)
{
    struct entry *e = find(q, key);

    assert(e && e->slot == NOT_WAITING); /* done follows get, once */
    e->failures = !failed ? 0 : e->failures + (e->failures < UINT32_MAX);
    if (!failed && !e->again) {
        discard(q, e);
        return;
    }

    int64_t due = failed ? now_ms + backoff(q, e->failures) : e->again_due;
    if (e->again && e->again_due < due)
        due = e->again_due;
    e->again = false;
    push(q, e, due);
}

void queue_forget(struct queue *q, struct str key)
{
    struct entry *e = find(q, key);

    if (e)
        e->failures = 0;
}

int64_t queue_next_due(const struct queue *q)
{
    assert(q->magic == QUEUE_MAGIC);
    return q->n > 0 ? q->heap[0]->due : INT64_MAX;
}

size_t queue_length(const struct queue *q)
{
    assert(q->magic == QUEUE_MAGIC);
    return q->n;
}

unsigned queue_failures(const struct queue *q, struct str key)
{
    const struct entry *e = find(q, key);

    return e ? e->failures : 0;
}
