/* SPDX-License-Identifier: Apache-2.0 */
/* One watch per kind. Must never block, nor keep an object after its event. */
#include "feed.h"

#include <assert.h>

#include <sublet/log.h>

static const char *const RESOURCES[N_ZONE] = {
    [ZONE_NAMESPACES] = "namespaces",
    [ZONE_SERVICES] = "services",
    [ZONE_SLICES] = "endpointslices.discovery.k8s.io",
    [ZONE_PODS] = "pods",
    [ZONE_NODES] = "nodes",
};

struct source {
    struct dns_feed *feed;
    enum zone_kind kind;
    unsigned resource;
    struct store_watch *watch;
};

struct dns_feed {
    struct store *store;
    struct dns_zone *zone;
    struct arena *scratch;
    struct source sources[N_ZONE];
    void (*changed)(void *ctx);
    void *ctx;
};

static void take(struct source *s, const struct store_object *o, bool gone)
{
    struct dns_feed *f = s->feed;
    cJSON *object = NULL;

    if (!gone && json_parse(f->scratch, o->bytes, &object, NULL))
        object = NULL; /* the store quarantines unreadable objects */
    dns_zone_set(f->zone, s->kind, o->ns, o->name, object);
    arena_reset(f->scratch);
}

static bool on_existing(void *ctx, const struct store_object *o)
{
    take(ctx, o, false);
    return true;
}

static void on_wake(void *ctx);

/* Lists all objects, then watches from that revision on. */
static void list(struct source *s)
{
    struct store *store = s->feed->store;
    struct err err;
    int failed;

    s->watch = store_watch_close(s->watch);
    dns_zone_clear(s->feed->zone, s->kind);
    err_init(&err, NULL);
    failed =
        store_watch_open(store, s->resource, store_revision(store), on_wake, s, &s->watch, &err);
    assert(!failed); /* the current revision is never compacted */
    if (store_scan(store, s->resource, STR_NULL, STR_NULL, STR_NULL, 0, on_existing, s, &err))
        log_error("dns: cannot list %s: %.*s", RESOURCES[s->kind], STR_F(err.message));
}

static void on_wake(void *ctx)
{
    struct source *s = ctx;
    struct dns_feed *f = s->feed;
    const struct store_event *e;
    bool expired = false;

    while ((e = store_watch_next(s->watch, &expired)))
        take(s, e->object, e->type == STORE_DELETED);
    if (expired)
        list(s);
    f->changed(f->ctx);
}

struct dns_feed *dns_feed_open(struct store *store, struct dns_zone *zone, bool nodes,
                               void (*changed)(void *ctx), void *ctx)
{
    struct dns_feed *f = NEW(struct dns_feed);

    *f = (struct dns_feed){
        .store = store, .zone = zone, .scratch = arena_new(0), .changed = changed, .ctx = ctx};
    for (int kind = 0; kind < N_ZONE; kind++) {
        if (kind == ZONE_NODES && !nodes)
            continue;
        f->sources[kind] =
            (struct source){.feed = f,
                            .kind = (enum zone_kind)kind,
                            .resource = store_resource(store, str_c(RESOURCES[kind]))};
        list(&f->sources[kind]);
    }
    return f;
}

struct dns_feed *dns_feed_close(struct dns_feed *f)
{
    if (!f)
        return NULL;
    for (int kind = 0; kind < N_ZONE; kind++)
        store_watch_close(f->sources[kind].watch);
    arena_free(f->scratch);
    mem_free(f);
    return NULL;
}
