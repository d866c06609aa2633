/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of every controller: watches feed a queue, one function per key reads committed state
 * and issues writes, and the key is done when the last write was answered. It must never start a
 * key while a write of its previous run is pending: this makes "read, compare, write" correct
 * without expectations or a stale cache. */
#include <sublet/controller.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <sublet/log.h>

#include "frame.h"

#define RUN_ARENA_BYTES (64u << 20)
#define LINES_A_MINUTE  30u
#define MAX_KEYS        1000000u

static void source_scan(struct source *s);

/* ---- watches ---- */

static bool on_existing(void *ctx, const struct store_object *o)
{
    struct source *s = ctx;
    struct store_event e = {.type = STORE_ADDED, .revision = o->revision, .object = o};

    s->def->map(s->controller, &e);
    return true;
}

/* A refused key would be lost: records that there was one. */
static void notice_drops(struct controller *c)
{
    size_t dropped = worker_dropped(c->worker);

    c->lossy |= dropped != c->dropped;
    c->dropped = dropped;
}

static void on_wake(void *ctx)
{
    struct source *s = ctx;

    assert(s->controller->magic == CONTROLLER_MAGIC);
    if (!s->controller->closing) {
        bool expired = false;
        const struct store_event *e;

        while ((e = store_watch_next(s->watch, &expired)))
            s->def->map(s->controller, e);
        if (expired)
            source_scan(s);
        notice_drops(s->controller);
    }
}

struct scan_all {
    struct source *source;
    struct store *store;
};

static void scan_storage(struct source *s, struct store *store, unsigned storage)
{
    struct err err;

    err_init(&err, NULL);
    if (store_scan(store, storage, STR_NULL, STR_NULL, STR_NULL, 0, on_existing, s, &err))
        log_error("%s: cannot list: %.*s", s->controller->def->name, STR_F(err.message));
}

static bool on_resource(void *ctx, const struct resource *r)
{
    struct scan_all *all = ctx;

    /* A resource of several versions is stored once. */
    if (!(r->flags & RES_REVIEW) && str_eq(r->storage_version, r->api_version))
        scan_storage(all->source, all->store, r->storage);
    return true;
}

/* (Re)opens the watch at the latest revision and maps every existing object. */
static void source_scan(struct source *s)
{
    struct controller *c = s->controller;
    struct store *store = vapi_store(c->api);
    struct err err;

    s->watch = store_watch_close(s->watch);
    err_init(&err, NULL);
    int failed =
        store_watch_open(store, s->storage, store_revision(store), on_wake, s, &s->watch, &err);
    assert(!failed); /* the latest revision is never compacted */
    if (s->storage != STORE_ALL_RESOURCES) {
        scan_storage(s, store, s->storage);
        return;
    }
    struct scan_all all = {.source = s, .store = store};
    registry_each(vapi_registry(c->api), on_resource, &all);
}

static unsigned source_storage(struct controller *c, const struct controller_source *def)
{
    char name[2 * 253 + 2];

    if (!strcmp(def->group, "*"))
        return STORE_ALL_RESOURCES;
    const struct resource *r = registry_find_group_resource(
        vapi_registry(c->api), str_c(def->group), str_c(def->resource));
    if (r)
        return r->storage;
    /* A custom resource may be defined later. Its number depends on its name, and the watch keeps
     * it. */
    assert(strchr(def->group, '.'));
    snprintf(name, sizeof(name), "%s.%s", def->resource, def->group);
    return store_resource(vapi_store(c->api), str_c(name));
}

void controller_rescan(struct controller *c)
{
    if (c->closing)
        return;
    c->lossy = false;
    for (size_t i = 0; i < c->n_sources; i++)
        source_scan(&c->sources[i]);
    notice_drops(c);
}

/* The queue was full and has drained: finds the keys that were refused. */
static void recover(struct controller *c)
{
    if (c->lossy && worker_length(c->worker) <= MAX_KEYS / 2)
        controller_rescan(c);
}

/* ---- runs ---- */

/* A failing key is logged less and less often, and all keys together at a limited rate: a tenant's
 * errors must not fill the admin's disk. */
static bool may_log(struct reconcile *r)
{
    struct controller *c = r->controller;
    int64_t minute = reconcile_now_s(r) / 60;
    unsigned nth = reconcile_failures(r) + 1;

    if (nth & (nth - 1))
        return false;
    if (c->log_minute != minute) {
        c->log_minute = minute;
        c->logged = 0;
    }
    return c->logged++ < LINES_A_MINUTE;
}

static void controller_maybe_closed(struct controller *c);

void controller_run_release(struct reconcile *r)
{
    reconcile_phase next;

    assert(r->magic == RECONCILE_MAGIC && r->pending > 0);
    while (--r->pending == 0) {
        next = r->next;
        r->next = NULL;
        if (!next || r->controller->closing) {
            struct controller *c = r->controller;
            struct str key = r->key;

            assert(r->pending == 0);
            if (c->order.read_only) { /* whatever its result: all keys run again afterwards */
                r->failed = r->quiet_retry = false;
                worker_add(c->worker, key);
            }
            if (r->failed && may_log(r))
                log_warn("%s: %.*s: %.*s", c->def->name, STR_F(r->key), STR_F(r->err.message));
            /* A failed run is retried after its backoff; a delay it requested before it failed must
             * not override that. */
            if (r->again_ms >= 0 && !r->failed && !c->closing)
                worker_add_after(c->worker, key, r->again_ms);
            worker_done(c->worker, key, r->failed || r->quiet_retry);
            r->magic = 0;
            arena_free(r->arena); /* frees r and key, too */
            c->n_runs--;
            recover(c);
            controller_maybe_closed(c);
            return;
        }
        r->pending = 1;
        next(r, r->next_ctx);
    }
}

static void on_work(void *ctx, struct worker *w, struct str key)
{
    struct controller *c = ctx;
    struct arena *a = arena_new(RUN_ARENA_BYTES);
    struct reconcile *r = ARENA_NEW(a, struct reconcile);

    assert(c->magic == CONTROLLER_MAGIC && c->worker == w);
    *r = (struct reconcile){.magic = RECONCILE_MAGIC, .controller = c, .arena = a, .again_ms = -1};
    r->key = arena_str(a, key);
    err_init(&r->err, a);
    c->n_runs++;
    r->pending = 1;
    c->def->reconcile(r);
    controller_run_release(r);
}

/* ---- lifecycle ---- */

static void on_order(struct vapi_order *order)
{
    struct controller *c = order->ctx;

    assert(c->magic == CONTROLLER_MAGIC && !c->closing);
    worker_pause(c->worker, order->read_only);
    for (size_t i = 0; i < c->n_sources && !order->read_only; i++)
        source_scan(&c->sources[i]);
    notice_drops(c);
}

static void on_retry(struct vapi_retry *retry, struct str ns, struct str name)
{
    struct controller *c = retry->ctx;

    assert(c->magic == CONTROLLER_MAGIC && !c->closing);
    controller_add_name(c, ns, name);
}

struct controller *controller_start_with(struct vapi *api, const struct controller_def *def,
                                         void *state)
{
    struct controller *c = NEW(struct controller);
    struct queue_options options = {.max_keys = MAX_KEYS};

    *c = (struct controller){.magic = CONTROLLER_MAGIC, .api = api, .def = def, .state = state};
    c->worker = worker_new(vapi_loop(api), vapi_clock(api), &options,
                           def->workers ? def->workers : 8, on_work, c);
    if (def->start)
        c->state = def->start(c);
    while (def->sources[c->n_sources].group)
        c->n_sources++;
    c->sources = mem_alloc(c->n_sources * sizeof(*c->sources));
    for (size_t i = 0; i < c->n_sources; i++) {
        c->sources[i] = (struct source){.controller = c, .def = &def->sources[i]};
        c->sources[i].storage = source_storage(c, &def->sources[i]);
        source_scan(&c->sources[i]);
    }
    notice_drops(c);
    c->order = (struct vapi_order){.changed = on_order, .ctx = c};
    vapi_order_watch(api, &c->order);
    if (def->retries) {
        c->retry = (struct vapi_retry){.kind = def->retries, .again = on_retry, .ctx = c};
        vapi_retry_watch(api, &c->retry);
    }
    worker_pause(c->worker, c->order.read_only);
    return c;
}

struct controller *controller_start(struct vapi *api, const struct controller_def *def)
{
    return controller_start_with(api, def, NULL);
}

static void controller_maybe_closed(struct controller *c)
{
    if (!c->closing || !c->worker_closed || c->n_runs)
        return;
    void (*closed)(void *ctx) = c->closed;
    void *ctx = c->closed_ctx;

    if (c->def->stop)
        c->def->stop(c, c->state);
    c->magic = 0;
    mem_free(c->sources);
    mem_free(c);
    closed(ctx);
}

static void on_worker_closed(void *ctx)
{
    struct controller *c = ctx;

    assert(c->magic == CONTROLLER_MAGIC);
    c->worker_closed = true;
    controller_maybe_closed(c);
}

void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx)
{
    assert(c->magic == CONTROLLER_MAGIC && !c->closing);
    c->closing = true;
    c->closed = closed;
    c->closed_ctx = ctx;
    vapi_order_unwatch(&c->order);
    if (c->def->retries)
        vapi_retry_unwatch(&c->retry);
    for (size_t i = 0; i < c->n_sources; i++)
        c->sources[i].watch = store_watch_close(c->sources[i].watch);
    worker_close(c->worker, on_worker_closed, c);
}

/* ---- keys from outside a run ---- */

void controller_add(struct controller *c, struct str key)
{
    if (!c->closing)
        worker_add(c->worker, key);
}

void controller_add_after(struct controller *c, struct str key, int64_t delay_ms)
{
    if (!c->closing)
        worker_add_after(c->worker, key, delay_ms);
}

/* ---- accessors ---- */

struct vapi *controller_api(const struct controller *c)
{
    return c->api;
}

void *controller_state(const struct controller *c)
{
    return c->state;
}

int64_t controller_next_due(const struct controller *c)
{
    return c->n_runs ? INT64_MIN : worker_next_due(c->worker);
}

const char *controller_stats(const struct controller *c, struct worker_stats *ret)
{
    worker_stats(c->worker, ret);
    return c->def->name;
}

void controller_wake(struct controller *c)
{
    if (!c->closing)
        worker_wake(c->worker);
}
