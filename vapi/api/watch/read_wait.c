/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a revision: a client has seen one elsewhere whose commit is still in progress, or lists
 * an older state, parts of which are only on disk. Must never wait for long (three seconds for a
 * commit, as upstream; the disk responds or fails) nor outlive its call. */
#include "watch.h"

#include <assert.h>

#include <uv.h>

#include <sublet/store_recall.h>

#define WAIT_MAGIC 0x77616974u
#define WAIT_MS    3000

struct wait {
    unsigned magic;
    uv_timer_t timer;
    struct call *call; /* NULL once it was answered or cancelled */
    struct store_watch *watch;
    int64_t revision;
    void (*next)(struct call *c);
    void (*late)(struct call *c, const struct err *err);
};

int read_too_large(struct err *err, int64_t wanted, int64_t current)
{
    err_set(err, &ERR_TIMEOUT, "Timeout: Too large resource version: %lld, current: %lld",
            (long long)wanted, (long long)current);
    err_cause(err, STR("ResourceVersionTooLarge"), STR(""), STR("Too large resource version"));
    err->retry_after = 1;
    return -1;
}

static void on_wait_closed(uv_handle_t *h)
{
    struct wait *w = h->data;

    assert(w->magic == WAIT_MAGIC);
    w->magic = 0;
    mem_free(w);
}

static struct call *wait_end(struct wait *w)
{
    struct call *c = w->call;

    w->watch = store_watch_close(w->watch);
    w->call = NULL;
    if (c) {
        c->cancel = NULL;
        c->state = NULL;
    }
    if (!uv_is_closing((uv_handle_t *)&w->timer))
        uv_close((uv_handle_t *)&w->timer, on_wait_closed);
    return c;
}

static void on_wait_wake(void *ctx)
{
    struct wait *w = ctx;
    bool expired;

    assert(w->magic == WAIT_MAGIC);
    if (!w->call || store_revision(vapi_store(w->call->api)) < w->revision) {
        while (w->watch && store_watch_next(w->watch, &expired))
            continue;
        return;
    }
    void (*next)(struct call *c) = w->next;
    next(wait_end(w));
}

static void on_wait_timeout(uv_timer_t *t)
{
    struct wait *w = t->data;
    struct err err;

    assert(w->magic == WAIT_MAGIC);
    int64_t wanted = w->revision;
    void (*late)(struct call *c, const struct err *err) = w->late;
    struct call *c = wait_end(w);
    if (!c)
        return;
    err_init(&err, c->arena);
    read_too_large(&err, wanted, store_revision(vapi_store(c->api)));
    late(c, &err);
}

static void wait_cancel(struct call *c)
{
    wait_end(c->state);
}

void read_when(struct call *c, int64_t revision, void (*next)(struct call *c))
{
    read_when_else(c, revision, next, call_error);
}

void read_when_else(struct call *c, int64_t revision, void (*next)(struct call *c),
                    void (*late)(struct call *c, const struct err *err))
{
    struct store *store = vapi_store(c->api);
    struct err err;

    if (revision <= store_revision(store)) {
        next(c);
        return;
    }
    struct wait *w = NEW(struct wait);
    *w = (struct wait){
        .magic = WAIT_MAGIC, .call = c, .revision = revision, .next = next, .late = late};
    err_init(&err, c->arena);
    int failed = store_watch_open(store, STORE_ALL_RESOURCES, store_revision(store), on_wait_wake,
                                  w, &w->watch, &err);
    assert(!failed); /* the latest revision is never compacted */
    uv_timer_init(vapi_loop(c->api), &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, on_wait_timeout, WAIT_MS, 0);
    c->state = w;
    c->cancel = wait_cancel;
}

/* --- an older state --- */

#define PAST_MAGIC 0x70617374u

struct past {
    unsigned magic;
    struct call *call;
    struct store_recall *recall;
    void (*next)(struct call *c);
};

static void past_free(struct past *p)
{
    store_recall_close(p->recall);
    p->magic = 0;
    mem_free(p);
}

/* The state is in memory until the recall is closed: next() scans it. */
static void past_go_on(struct past *p)
{
    p->call->cancel = NULL;
    p->call->state = NULL;
    p->next(p->call);
    past_free(p);
}

static void on_recalled(void *ctx)
{
    struct past *p = ctx;

    assert(p->magic == PAST_MAGIC);
    past_go_on(p);
}

static void past_cancel(struct call *c)
{
    past_free(c->state);
}

void read_past(struct call *c, int64_t revision, void (*next)(struct call *c))
{
    struct past *p = NEW(struct past);

    *p = (struct past){.magic = PAST_MAGIC, .call = c, .next = next};
    p->recall =
        store_recall_open(vapi_store(c->api), c->resource->storage, revision, on_recalled, p);
    if (store_recall_ready(p->recall)) {
        past_go_on(p);
        return;
    }
    c->state = p;
    c->cancel = past_cancel;
}
