/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed has no history: a watch compares what it has shown with what there is, a moment
 * after the syncer reported a change. A list is remembered for a while, so that a watch may begin
 * where it ended; from any other revision it gets a 410, and its client lists again. Must cost
 * nothing while there is no watch, and never show a namespace but the requested one.
 *
 *   list --> remembered (revision) --watch--.
 *   no revision: objects as ADDED --------- LIVE --changed, SETTLE_MS--> compare, send
 *                                            '--> ENDED: timeout, close */
#include "usage.h"

#include "watch_out.h"

#include <assert.h>

#include <uv.h>

#include <sublet/hash.h>
#include <sublet/json_build.h>

#define USAGE_MAGIC  0x75736167u
#define SETTLE_MS    250 /* changes in a row are one */
#define MOST_LISTS   8
#define MOST_OBJECTS 512 /* of all remembered lists but the newest */

/* An object that was shown. */
struct shown {
    struct map_entry entry; /* by "namespace/name" */
    struct str key;
    uint64_t state; /* hash of the object without its revision */
    bool found;     /* in the comparison that is under way */
};

struct usage_seen {
    const struct resource *resource; /* NULL: there is none */
    struct str ns;
    int64_t revision;
    struct map objects;
};

struct usage_watch {
    unsigned magic;
    TAILQ_ENTRY(usage_watch) place;
    struct call *call;
    struct watch_out out;
    struct usage_seen seen;
    uv_timer_t timer;
    int64_t ends_ms, look_ms, bookmark_ms; /* monotonic; look_ms 0: nothing changed */
    bool behind;                           /* the client has too much to read */
};

struct watch_usages {
    int64_t revision; /* of the last list or event; never lower than the wall clock's ms were */
    struct usage_seen lists[MOST_LISTS]; /* newest first */
    TAILQ_HEAD(, usage_watch) watches;
};

/* --- objects --- */

static cJSON *read_objects(struct call *c, struct arena *a)
{
    const struct vapi_hooks *hooks = vapi_get_hooks(c->api);

    if (!hooks->gpu_usage)
        return json_new_array(a);
    return hooks->gpu_usage(hooks->ctx, a, !resource_namespaced(c->resource), c->ns);
}

static bool is_selected(struct call *c, struct arena *a, struct str ns, struct str name)
{
    struct store_object o = {.ns = ns, .name = name, .labels = labels_flatten(a, NULL)};

    return index_match(&c->options, &o);
}

/* In the order of members that clients expect. */
static cJSON *typed(const struct call *c, struct arena *a, const cJSON *item, int64_t revision)
{
    cJSON *meta = json_copy(a, json_get(item, "metadata"));

    json_set_str(a, meta, "resourceVersion", arena_printf(a, "%lld", (long long)revision));
    return json_object(a, JSON("apiVersion", c->resource->api_version),
                       JSON("kind", c->resource->kind), JSON("metadata", meta),
                       JSON("status", json_copy(a, json_get(item, "status"))));
}

static struct str key_of(struct arena *a, const cJSON *item)
{
    return arena_printf(a, "%.*s/%.*s", STR_F(json_str_at(item, "metadata.namespace")),
                        STR_F(json_str_at(item, "metadata.name")));
}

/* Without hours, which pass by themselves. */
static uint64_t state_of(const cJSON *item)
{
    static const char *const hours[] = {"gpuHours", "namespaces", "otherGPUHours"};
    struct buf text = BUF_INIT(0);
    uint64_t ret;

    json_each(member, json_get(item, "status"))
    {
        bool passes = false;

        for (size_t i = 0; i < COUNT(hours) && !passes; i++)
            passes = str_eqc(json_key(member), hours[i]);
        if (passes)
            continue;
        buf_add(&text, json_key(member));
        json_print(&text, member);
    }
    ret = str_hash(buf_str(&text), hash_seed());
    buf_fini(&text);
    return ret;
}

/* Unlike any other of this process, and of processes before it unless the clock was set back. */
static int64_t next_revision(struct vapi *api)
{
    struct watch_usages *u = api->usage_watches;
    int64_t now = clock_wall_us(vapi_clock(api)) / 1000;

    u->revision = now > u->revision ? now : u->revision + 1;
    return u->revision;
}

/* --- what was shown --- */

static void remember(struct usage_seen *s, struct str key, uint64_t state)
{
    struct shown *o = NEW(struct shown);

    *o = (struct shown){.key = mem_str(key), .state = state};
    map_put(&s->objects, &o->entry, o->key);
}

static void forget(struct usage_seen *s, struct shown *o)
{
    map_remove(&s->objects, &o->entry);
    mem_free(o->key.p);
    mem_free(o);
}

static void forget_one(void *ctx, struct map_entry *e)
{
    forget(ctx, CONTAINER(e, struct shown, entry));
}

static void seen_clear(struct usage_seen *s)
{
    map_each(&s->objects, forget_one, s);
    mem_free(s->ns.p);
    *s = (struct usage_seen){0};
}

static void seen_of(struct usage_seen *s, const struct call *c, int64_t revision)
{
    *s = (struct usage_seen){.resource = c->resource, .ns = mem_str(c->ns), .revision = revision};
}

static void copy_one(void *ctx, struct map_entry *e)
{
    const struct shown *o = CONTAINER(e, struct shown, entry);

    remember(ctx, o->key, o->state);
}

/* --- lists --- */

static void remember_list(struct call *c, const cJSON *items, int64_t revision)
{
    struct watch_usages *u = c->api->usage_watches;
    struct arena *a = arena_new(0);
    size_t n = 0;

    seen_clear(&u->lists[MOST_LISTS - 1]);
    for (size_t i = MOST_LISTS - 1; i; i--)
        u->lists[i] = u->lists[i - 1];
    seen_of(&u->lists[0], c, revision);
    json_each(item, items) remember(&u->lists[0], key_of(a, item), state_of(item));
    for (size_t i = 0; i < MOST_LISTS; i++) {
        n += map_count(&u->lists[i].objects);
        if (i && n > MOST_OBJECTS)
            seen_clear(&u->lists[i]);
    }
    arena_free(a);
}

cJSON *watch_usage_list(struct call *c, int64_t *ret_revision)
{
    cJSON *all = read_objects(c, c->arena), *ret = json_new_array(c->arena);

    *ret_revision = next_revision(c->api);
    json_each(item, all)
    {
        if (is_selected(c, c->arena, json_str_at(item, "metadata.namespace"),
                        json_str_at(item, "metadata.name")))
            json_append(ret, typed(c, c->arena, item, *ret_revision));
    }
    if (c->verb == CALL_LIST)
        remember_list(c, all, *ret_revision);
    return ret;
}

static struct usage_seen *find_list(const struct call *c)
{
    struct watch_usages *u = c->api->usage_watches;

    for (size_t i = 0; i < MOST_LISTS; i++) {
        struct usage_seen *s = &u->lists[i];

        if (s->resource == c->resource && s->revision == c->options.rv && str_eq(s->ns, c->ns))
            return s;
    }
    return NULL;
}

/* --- comparing --- */

struct comparison {
    struct usage_watch *watch;
    struct arena *arena;
    int64_t revision; /* 0: nothing differs yet */
};

static int64_t revision_of(struct comparison *x)
{
    if (!x->revision)
        x->revision = next_revision(x->watch->call->api);
    return x->revision;
}

static void compare_one(struct comparison *x, const cJSON *item)
{
    struct usage_watch *w = x->watch;
    struct str key = key_of(x->arena, item);
    struct map_entry *e = map_get(&w->seen.objects, key);
    struct shown *o = e ? CONTAINER(e, struct shown, entry) : NULL;
    uint64_t state = state_of(item);
    bool differs = !o || o->state != state;

    if (!o) {
        remember(&w->seen, key, state);
        o = CONTAINER(map_get(&w->seen.objects, key), struct shown, entry);
    }
    o->state = state;
    o->found = true;
    if (differs)
        watch_out_tree(&w->out, e ? STORE_MODIFIED : STORE_ADDED,
                       typed(w->call, x->arena, item, revision_of(x)));
}

/* Its last state is not known any more: a deletion carries the name. */
static void send_gone(struct comparison *x, struct str key)
{
    struct usage_watch *w = x->watch;
    struct arena *a = x->arena;
    struct str name = key, ns = str_cut(&name, '/');
    cJSON *meta;

    if (!is_selected(w->call, a, ns, name))
        return;
    meta = json_object(a, JSON("name", arena_str(a, name)),
                       JSON_NONEMPTY("namespace", arena_str(a, ns)));
    watch_out_tree(&w->out, STORE_DELETED,
                   typed(w->call, a, json_object(a, JSON("metadata", meta)), revision_of(x)));
}

static void end_one(void *ctx, struct map_entry *e)
{
    struct comparison *x = ctx;
    struct shown *o = CONTAINER(e, struct shown, entry);

    if (!o->found) {
        send_gone(x, o->key);
        forget(&x->watch->seen, o);
        return;
    }
    o->found = false;
}

static void compare(struct usage_watch *w)
{
    struct comparison x = {.watch = w, .arena = arena_new(0)};

    json_each(item, read_objects(w->call, x.arena))
    {
        if (is_selected(w->call, x.arena, json_str_at(item, "metadata.namespace"),
                        json_str_at(item, "metadata.name")))
            compare_one(&x, item);
    }
    map_each(&w->seen.objects, end_one, &x);
    if (x.revision)
        w->seen.revision = x.revision;
    arena_free(x.arena);
}

/* --- life --- */

static void on_timer_closed(uv_handle_t *h)
{
    struct usage_watch *w = h->data;

    assert(w->magic == USAGE_MAGIC && !w->call);
    w->magic = 0;
    watch_out_free(&w->out);
    seen_clear(&w->seen);
    mem_free(w);
}

static struct call *release(struct usage_watch *w)
{
    struct call *c = w->call;

    TAILQ_REMOVE(&c->api->usage_watches->watches, w, place);
    w->call = NULL;
    c->cancel = NULL;
    c->drained = NULL;
    c->state = NULL;
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
    return c;
}

static void end(struct usage_watch *w)
{
    watch_out_goodbye(&w->out);
    call_end(release(w));
}

static void on_cancel(struct call *c)
{
    release(c->state);
}

static void on_timer(uv_timer_t *t);

static void timer_next(struct usage_watch *w)
{
    int64_t due = w->ends_ms, wait;

    if (w->call->options.bookmarks && w->bookmark_ms < due)
        due = w->bookmark_ms;
    if (w->look_ms && w->look_ms < due)
        due = w->look_ms;
    wait = due - clock_mono_ms(vapi_clock(w->call->api));
    uv_timer_start(&w->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

/* The syncer that is closing knows nothing: that is no deletion. */
static void look(struct usage_watch *w)
{
    w->behind = !watch_out_has_room(&w->out);
    if (w->behind)
        return;
    w->look_ms = 0;
    if (vapi_get_hooks(w->call->api)->gpu_usage)
        compare(w);
}

static void on_timer(uv_timer_t *t)
{
    struct usage_watch *w = t->data;
    int64_t now = clock_mono_ms(vapi_clock(w->call->api));

    assert(w->magic == USAGE_MAGIC);
    if (w->look_ms && now >= w->look_ms) {
        look(w);
        if (w->behind)
            w->look_ms = INT64_MAX; /* on_drained() */
    }
    if (now >= w->ends_ms) {
        end(w);
        return;
    }
    if (now >= w->bookmark_ms) {
        w->bookmark_ms = now + WATCH_BOOKMARK_MS;
        if (w->call->options.bookmarks && w->seen.revision > w->out.bookmarked)
            watch_out_bookmark(&w->out, w->seen.revision, false);
    }
    timer_next(w);
}

static void on_drained(struct call *c)
{
    struct usage_watch *w = c->state;

    assert(w->magic == USAGE_MAGIC);
    if (!w->behind)
        return;
    look(w);
    timer_next(w);
}

static void on_received(void *ctx, struct str bytes)
{
    struct call *c = &((struct call_entry *)ctx)->call;
    struct usage_watch *w = c->state;

    if (!w)
        return;
    assert(w->magic == USAGE_MAGIC);
    if (watch_socket_receive(w->out.socket, c, bytes) == SOCKET_CLOSE)
        end(w);
}

static struct usage_watch *watch_new(struct call *c)
{
    struct usage_watch *w = NEW(struct usage_watch);
    int64_t now = clock_mono_ms(vapi_clock(c->api));

    *w = (struct usage_watch){.magic = USAGE_MAGIC, .call = c};
    w->bookmark_ms = now + WATCH_BOOKMARK_MS;
    w->ends_ms = now + 1000 * watch_seconds(c);
    uv_timer_init(vapi_loop(c->api), &w->timer);
    w->timer.data = w;
    TAILQ_INSERT_TAIL(&c->api->usage_watches->watches, w, place);
    c->state = w;
    c->cancel = on_cancel;
    c->drained = on_drained;
    watch_out_begin(&w->out, c, on_received);
    return w;
}

/* The stream has begun. */
static void refuse_late(struct usage_watch *w, const struct err *err)
{
    watch_out_error(&w->out, err);
    end(w);
}

static void expire(struct usage_watch *w)
{
    const struct call *c = w->call;
    struct err err;

    err_init(&err, c->arena);
    err_set(&err, &ERR_EXPIRED, "too old resource version: %lld (%lld)", (long long)c->options.rv,
            (long long)c->api->usage_watches->revision);
    refuse_late(w, &err);
}

static void start(struct call *c)
{
    bool initial = watch_wants_initial(c);
    struct usage_seen *list = initial ? NULL : find_list(c);
    struct usage_watch *w = watch_new(c);

    if (!list && !initial && c->options.rv_set && c->options.rv) {
        expire(w);
        return;
    }
    seen_of(&w->seen, c, list ? list->revision : next_revision(c->api));
    if (list)
        map_each(&list->objects, copy_one, &w->seen);
    compare(w);
    if (initial && c->options.bookmarks)
        watch_out_bookmark(&w->out, w->seen.revision, true);
    timer_next(w);
}

void call_watch_usage(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    if (watch_check_options(c, &err)) {
        call_error(c, &err);
        return;
    }
    if (watch_socket_refused(c, NULL))
        return;
    if (c->options.timeout_s < 0) {
        err_set(&err, &ERR_INTERNAL, "context deadline exceeded");
        refuse_late(watch_new(c), &err);
        return;
    }
    start(c);
}

void vapi_gpu_usage_changed(struct vapi *api)
{
    struct usage_watch *w;

    if (!api->usage_watches)
        return;
    TAILQ_FOREACH(w, &api->usage_watches->watches, place)
    {
        if (w->look_ms)
            continue;
        w->look_ms = clock_mono_ms(vapi_clock(api)) + SETTLE_MS;
        timer_next(w);
    }
}

struct watch_usages *watch_usages_new(void)
{
    struct watch_usages *u = NEW(struct watch_usages);

    TAILQ_INIT(&u->watches);
    return u;
}

struct watch_usages *watch_usages_free(struct watch_usages *u)
{
    if (!u)
        return NULL;
    assert(TAILQ_EMPTY(&u->watches));
    for (size_t i = 0; i < MOST_LISTS; i++)
        seen_clear(&u->lists[i]);
    mem_free(u);
    return NULL;
}
