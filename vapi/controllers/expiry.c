/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Events expire an hour after they were last written. A watch reports that some exist; then a timer
 * runs until the oldest is due, and never while there are none. It must never remove anything but
 * Events. Source: k8s.io/kubernetes pkg/registry/core/event (TTL), --event-ttl. */
#include "expiry.h"

#include <assert.h>

#include <uv.h>

#include <sublet/clock.h>
#include <sublet/object.h>

#define EXPIRY_MAGIC 0xE7E27771u
#define LIFETIME_S   3600
#define SLACK_S      30 /* Events due within it are removed together */
#define BATCH        256

struct expiry {
    unsigned magic;
    struct vapi *api;
    const struct resource *events;
    struct store_watch *watch;
    uv_timer_t timer;
    bool armed, closing;
    size_t under_way;
    void (*closed)(void *ctx);
    void *ctx;
};

struct sweep {
    struct expiry *expiry;
    struct arena *arena;
    int64_t now_s, oldest_s;
    const struct store_object *due[BATCH];
    size_t n;
    bool more;
};

/* ---- expiry times ---- */

static bool on_event(void *ctx, const struct store_object *o)
{
    static const char *const paths[] = {"lastTimestamp", "eventTime", "series.lastObservedTime",
                                        "firstTimestamp"};
    struct sweep *s = ctx;
    const cJSON *event;
    int64_t last;

    arena_reset(s->arena);
    event = vapi_tree(s->arena, o);
    last = object_time_s(event, "metadata.creationTimestamp");
    /* A client's timestamp counts unless it lies in the future. */
    for (size_t i = 0; i < COUNT(paths); i++) {
        int64_t at = object_time_s(event, paths[i]);

        if (at > last && at <= s->now_s)
            last = at;
    }
    if (s->now_s - last < LIFETIME_S) {
        if (last < s->oldest_s)
            s->oldest_s = last;
        return true;
    }
    if (s->n == BATCH) {
        s->more = true;
        return false;
    }
    s->due[s->n++] = store_object_ref(o);
    return true;
}

/* ---- the timer ---- */

static void on_timer(uv_timer_t *timer);

static void arm(struct expiry *x, int64_t seconds)
{
    if (x->closing)
        return;
    x->armed = true;
    uv_timer_start(&x->timer, on_timer, (uint64_t)(seconds < 1 ? 1 : seconds) * 1000, 0);
}

/* There are Events now. Only the first one starts the timer. */
static void on_wake(void *ctx)
{
    struct expiry *x = ctx;
    bool expired = false;

    assert(x->magic == EXPIRY_MAGIC);
    while (store_watch_next(x->watch, &expired))
        ;
    if (expired) {
        store_watch_close(x->watch);
        expiry_watch(x);
    }
    if (!x->armed)
        arm(x, LIFETIME_S + SLACK_S);
}

static void on_removed(void *ctx, const struct err *err, const struct store_object *object)
{
    struct expiry *x = ctx;

    (void)err;
    (void)object;
    assert(x->magic == EXPIRY_MAGIC && x->under_way);
    x->under_way--;
}

void expiry_sweep(struct expiry *x)
{
    struct sweep s = {.expiry = x,
                      .arena = arena_new(0),
                      .now_s = clock_wall_s(vapi_clock(x->api)),
                      .oldest_s = INT64_MAX};
    struct err err;
    int failed;

    x->armed = false;
    err_init(&err, NULL);
    failed = store_scan(vapi_store(x->api), x->events->storage, STR_NULL, STR_NULL, STR_NULL, 0,
                        on_event, &s, &err);
    arena_free(s.arena);

    for (size_t i = 0; i < s.n; i++) {
        const struct store_object *o = s.due[i];
        struct vapi_delete options = {.grace_seconds = 0, .uid = o->uid, .revision = o->revision};

        x->under_way++;
        vapi_delete(x->api, x->events, o->ns, o->name, &options, on_removed, x);
        store_object_unref(o);
    }

    if (failed || s.more || x->under_way)
        arm(x, 1);
    else if (s.oldest_s != INT64_MAX)
        arm(x, s.oldest_s + LIFETIME_S + SLACK_S - s.now_s);
}

static void on_timer(uv_timer_t *timer)
{
    struct expiry *x = timer->data;

    assert(x->magic == EXPIRY_MAGIC);
    expiry_sweep(x);
}

/* ---- lifecycle ---- */

void expiry_watch(struct expiry *x)
{
    struct store *store = vapi_store(x->api);
    int failed = store_watch_open(store, x->events->storage, store_revision(store), on_wake, x,
                                  &x->watch, NULL);

    /* The newest revision is always in the history. */
    assert(!failed);
}

struct expiry *expiry_start(struct vapi *api)
{
    const struct resource *r = registry_find(vapi_registry(api), STR(""), STR("v1"), STR("events"));
    struct expiry *x;

    if (!r)
        return NULL;
    x = NEW(struct expiry);
    x->magic = EXPIRY_MAGIC;
    x->api = api;
    x->events = r;
    uv_timer_init(vapi_loop(api), &x->timer);
    uv_unref((uv_handle_t *)&x->timer);
    x->timer.data = x;
    expiry_watch(x);
    if (store_count(vapi_store(api), r->storage))
        arm(x, SLACK_S);
    return x;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct expiry *x = handle->data;
    void (*closed)(void *) = x->closed;
    void *ctx = x->ctx;

    x->magic = 0;
    mem_free(x);
    closed(ctx);
}

void expiry_stop(struct expiry *x)
{
    assert(x->magic == EXPIRY_MAGIC);
    x->closing = true;
    x->watch = store_watch_close(x->watch);
    uv_timer_stop(&x->timer);
}

void expiry_close(struct expiry *x, void (*closed)(void *ctx), void *ctx)
{
    assert(x->magic == EXPIRY_MAGIC && x->closing && !x->under_way);
    x->closed = closed;
    x->ctx = ctx;
    uv_close((uv_handle_t *)&x->timer, on_timer_closed);
}
