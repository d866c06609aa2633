/* SPDX-License-Identifier: Apache-2.0 */
/* WATCH: a cursor in the store's history, written out as it advances. Nothing is buffered per
 * watcher except the bytes the kernel has not accepted yet; above a limit writing pauses, and a
 * watcher whose cursor falls out of history gets a 410 and lists again. Must never skip an event or
 * send one twice, and must never send one that is not durable.
 *
 *   OPEN --> INITIAL (objects of revision R as ADDED, in chunks) --> LIVE (events after R) --.
 *     '--- resourceVersion=N: straight to LIVE after N --------------^                        |
 *                                               ENDED <-- timeout, 410, close --------------' */
#include "watch_queue.h"

#include <assert.h>
#include <string.h>

#include <uv.h>

#include <sublet/store_recall.h>

#define WATCH_MAGIC   0x77617463u
#define BOOKMARK_LEAD 2000
#define INITIAL_CHUNK 512
#define TIMEOUT_MIN_S 1800

enum watch_phase { WATCH_OPEN, WATCH_INITIAL, WATCH_LIVE, WATCH_ENDED };

struct watch {
    unsigned magic;
    enum watch_phase phase;
    struct call *call;
    struct watch_out out;
    uv_timer_t timer;
    struct store_watch *cursor;
    struct store_recall *initial_state; /* keeps it while it is sent */
    bool mark_initial_end;              /* and then the bookmark that marks its end */
    bool last_bookmark;
    int64_t start;   /* revision of the initial state, or the requested one */
    int64_t ends_ms; /* monotonic */
    struct str after_ns, after_name;
    size_t in_chunk;
    struct watch_queue *queue; /* events that a webhook converts; or NULL */
};

static void watch_tick(struct watch *w);

static void watch_enter(struct watch *w, enum watch_phase to)
{
    static const unsigned next[] = {
        [WATCH_OPEN] = 1u << WATCH_INITIAL | 1u << WATCH_LIVE | 1u << WATCH_ENDED,
        [WATCH_INITIAL] = 1u << WATCH_LIVE | 1u << WATCH_ENDED,
        [WATCH_LIVE] = 1u << WATCH_ENDED,
        [WATCH_ENDED] = 0,
    };

    assert(next[w->phase] & 1u << to);
    w->phase = to;
}

/* --- options --- */

int watch_check_options(struct call *c, struct err *err)
{
    static const char *const matches[] = {"NotOlderThan", NULL};
    const struct field_path *path = FIELD(NULL, "resourceVersionMatch");
    struct str match = c->options.rv_match;
    bool not_older = str_eqc(match, "NotOlderThan");
    struct field_errors e;

    field_errors_init(&e, c->arena);
    if (c->options.send_initial_set && !not_older)
        field_forbidden(&e, path,
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (match.n && !c->options.send_initial_set)
        field_forbidden(&e, path,
                        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                        "provided");
    if (match.n && !not_older)
        field_not_supported(&e, path, match, matches);
    /* Without a revision upstream sets resourceVersionMatch=NotOlderThan itself. */
    if (c->options.cont.n && (match.n || !c->options.rv_set || c->options.rv == 0))
        field_forbidden(&e, path, "resourceVersionMatch is forbidden when continue is provided");
    if (field_errors_to_err(&e, STR("meta.k8s.io"), STR("ListOptions"), STR(""), err))
        return -1;
    return index_select(c, err);
}

/* --- end --- */

static void on_timer_closed(uv_handle_t *h)
{
    struct watch *w = h->data;

    assert(w->magic == WATCH_MAGIC && w->phase == WATCH_ENDED);
    w->magic = 0;
    watch_out_free(&w->out);
    mem_free(w->after_ns.p);
    mem_free(w->after_name.p);
    mem_free(w);
}

/* Releases the call; bytes written before are still sent. */
static struct call *watch_release(struct watch *w)
{
    struct call *c = w->call;

    watch_enter(w, WATCH_ENDED);
    w->cursor = store_watch_close(w->cursor);
    w->initial_state = store_recall_close(w->initial_state);
    w->queue = watch_queue_free(w->queue);
    w->call = NULL;
    c->cancel = NULL;
    c->drained = NULL;
    c->state = NULL;
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
    return c;
}

static void watch_end(struct watch *w)
{
    watch_out_goodbye(&w->out);
    call_end(watch_release(w));
}

static void watch_cancel(struct call *c)
{
    watch_release(c->state);
}

/* --- resources that are removed or replaced --- */

static bool is_stale(const struct call *c)
{
    const struct resource *r = c->resource;

    return c->verb == CALL_WATCH && c->cancel == watch_cancel &&
           registry_find(vapi_registry(c->api), r->group, r->version, r->plural) != r;
}

/* Ending one may end others of its connection: each search restarts. */
static void end_stale(void *ctx)
{
    struct vapi *api = ctx;
    struct call_entry *e;

    api->watches_stale = false;
    do {
        TAILQ_FOREACH(e, &api->calls, place)
        {
            if (is_stale(&e->call))
                break;
        }
        if (e)
            watch_end(e->call.state);
    } while (e);
}

/* A changed CRD has other descriptors. Watchers with a previous one would receive objects by an
 * outdated schema; as with upstream the watch ends, and the client opens another. */
void watch_registry_changed(void *ctx)
{
    struct vapi *api = ctx;

    if (api->watches_stale || api->state != API_SERVING)
        return;
    api->watches_stale = true;
    api_defer(api, end_stale, api);
}

/* --- events --- */

static void show(struct watch *w, enum store_event_type type, const struct store_object *o,
                 int64_t revision)
{
    if (watch_queue_takes(w->queue, w->call, o))
        w->queue = watch_queue_add(w->queue, type, o, revision);
    else
        watch_out_stored(&w->out, type, o, revision);
}

static bool has_room(const struct watch *w)
{
    return watch_out_has_room(&w->out) && !watch_queue_is_full(w->queue);
}

static void on_converted(void *ctx, const struct err *err)
{
    struct watch *w = ctx;

    assert(w->magic == WATCH_MAGIC && w->queue);
    if (err) {
        struct err shown;

        err_init(&shown, w->call->arena);
        err_set(&shown, &ERR_INTERNAL, "Internal error occurred: %.*s", STR_F(err->message));
        err_cause(&shown, STR(""), STR(""), err->message);
        watch_out_error(&w->out, &shown);
        watch_end(w);
        return;
    }
    watch_queue_send(w->queue, &w->out);
    w->queue = watch_queue_free(w->queue);
    watch_tick(w);
}

/* True: what follows waits for a webhook. */
static bool convert_events(struct watch *w)
{
    if (!w->queue)
        return false;
    watch_queue_convert(w->queue, w->call, on_converted, w);
    return true;
}

/* --- initial state --- */

struct chunk {
    struct watch *watch;
    const struct store_object *last;
    bool full;
};

static bool on_initial(void *ctx, const struct store_object *o)
{
    struct chunk *chunk = ctx;
    struct watch *w = chunk->watch;

    if (w->in_chunk == INITIAL_CHUNK || !has_room(w)) {
        chunk->full = true;
        return false;
    }
    w->in_chunk++;
    store_object_unref(chunk->last);
    chunk->last = store_object_ref(o);
    if (index_match(&w->call->options, o))
        show(w, STORE_ADDED, o, o->revision);
    return true;
}

/* Sends the state as of w->start, whatever is written meanwhile: the cursor is right behind it. */
static void initial_step(struct watch *w)
{
    struct call *c = w->call;
    struct chunk chunk = {.watch = w};
    struct err err;

    do {
        chunk.full = false;
        w->in_chunk = 0;
        err_init(&err, c->arena);
        int failed =
            store_scan(vapi_store(c->api), c->resource->storage, c->ns.n ? c->ns : STR_NULL,
                       w->after_ns, w->after_name, w->start, on_initial, &chunk, &err);
        /* Keeps the position of the next chunk. */
        if (chunk.last) {
            mem_free(w->after_ns.p);
            mem_free(w->after_name.p);
            w->after_ns = mem_str(chunk.last->ns);
            w->after_name = mem_str(chunk.last->name);
            store_object_unref(chunk.last);
            chunk.last = NULL;
        }
        if (failed) {
            watch_out_error(&w->out, &err);
            watch_end(w);
            return;
        }
    } while (chunk.full && has_room(w));
    if (convert_events(w) || chunk.full)
        return; /* drained() or on_converted() continues */
    watch_enter(w, WATCH_LIVE);
    w->initial_state = store_recall_close(w->initial_state);
    if (w->mark_initial_end)
        watch_out_bookmark(&w->out, w->start, true);
}

/* --- live events --- */

static bool shows(struct watch *w, const struct store_object *o)
{
    struct call *c = w->call;

    return o && (!c->ns.n || str_eq(o->ns, c->ns)) && index_match(&c->options, o);
}

static void live_step(struct watch *w)
{
    bool expired = false;
    const struct store_event *e;
    bool before, now;

    while (has_room(w)) {
        e = store_watch_next(w->cursor, &expired);
        if (!e)
            break;

        /* An object that leaves the selector's set is DELETED (with its previous state), one that
         * enters is ADDED. */
        before = shows(w, e->previous);
        now = e->type != STORE_DELETED && shows(w, e->object);
        if (now)
            show(w, before ? STORE_MODIFIED : STORE_ADDED, e->object, e->revision);
        else if (e->type == STORE_DELETED && (before || shows(w, e->object)))
            show(w, STORE_DELETED, e->object, e->revision);
        else if (before)
            show(w, STORE_DELETED, e->previous, e->revision);
    }
    if (convert_events(w) || !expired)
        return;
    struct err err;
    err_init(&err, w->call->arena);
    err_set(&err, &ERR_EXPIRED, "too old resource version: %lld (%lld)",
            (long long)store_watch_position(w->cursor),
            (long long)store_oldest_revision(vapi_store(w->call->api)));
    watch_out_error(&w->out, &err);
    watch_end(w);
}

static void watch_tick(struct watch *w)
{
    if (watch_queue_waits(w->queue))
        return;
    if (w->phase == WATCH_INITIAL)
        initial_step(w);
    if (w->phase == WATCH_LIVE)
        live_step(w);
}

static void on_wake(void *ctx)
{
    struct watch *w = ctx;

    assert(w->magic == WATCH_MAGIC);
    if (w->phase == WATCH_LIVE)
        watch_tick(w);
}

static void watch_drained(struct call *c)
{
    struct watch *w = c->state;

    assert(w->magic == WATCH_MAGIC);
    watch_tick(w);
}

/* --- time --- */

static void on_timer(uv_timer_t *t);

static void timer_next(struct watch *w)
{
    int64_t left = w->ends_ms - clock_mono_ms(vapi_clock(w->call->api));
    int64_t wait = left;

    if (w->call->options.bookmarks && !w->last_bookmark) {
        wait = left > BOOKMARK_LEAD ? left - BOOKMARK_LEAD : 0;
        wait = wait > WATCH_BOOKMARK_MS ? WATCH_BOOKMARK_MS : wait;
    }
    uv_timer_start(&w->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void on_timer(uv_timer_t *t)
{
    struct watch *w = t->data;

    assert(w->magic == WATCH_MAGIC);
    int64_t left = w->ends_ms - clock_mono_ms(vapi_clock(w->call->api));
    if (left <= 0) {
        watch_end(w);
        return;
    }
    if (left <= BOOKMARK_LEAD)
        w->last_bookmark = true;
    if (w->phase == WATCH_LIVE && !w->queue && w->call->options.bookmarks &&
        store_watch_position(w->cursor) > w->out.bookmarked)
        watch_out_bookmark(&w->out, store_watch_position(w->cursor), false);
    timer_next(w);
}

/* --- begin --- */

/* Upstream distributes the ends of watches without a timeout over 30 to 60 minutes. */
int64_t watch_seconds(struct call *c)
{
    if (c->options.timeout_s > 0)
        return c->options.timeout_s;
    return TIMEOUT_MIN_S + (int64_t)(rng_u64(vapi_rng(c->api)) % TIMEOUT_MIN_S);
}

static bool from_now(const struct call *c)
{
    return !c->options.rv_set || c->options.rv == 0;
}

bool watch_wants_initial(const struct call *c)
{
    return c->options.send_initial_set ? c->options.send_initial : from_now(c);
}

static struct watch *watch_new(struct call *c)
{
    struct watch *w = NEW(struct watch);
    *w = (struct watch){.magic = WATCH_MAGIC, .call = c};
    /* The end of a requested initial state is always marked. */
    w->mark_initial_end = watch_wants_initial(c) && c->options.bookmarks;
    w->start =
        watch_wants_initial(c) || from_now(c) ? store_revision(vapi_store(c->api)) : c->options.rv;
    w->ends_ms = clock_mono_ms(vapi_clock(c->api)) + 1000 * watch_seconds(c);
    uv_timer_init(vapi_loop(c->api), &w->timer);
    w->timer.data = w;
    c->state = w;
    c->cancel = watch_cancel;
    c->drained = watch_drained;
    return w;
}

static void on_received(void *ctx, struct str bytes)
{
    struct call *c = &((struct call_entry *)ctx)->call;
    struct watch *w = c->state;

    if (!w)
        return;
    assert(w->magic == WATCH_MAGIC);
    if (watch_socket_receive(w->out.socket, c, bytes) == SOCKET_CLOSE)
        watch_end(w);
}

/* The stream begins before it is known that its revision will not come, or that its deadline
 * passed. */
static void watch_late(struct call *c, const struct err *err)
{
    struct watch *w = watch_new(c);

    watch_out_begin(&w->out, c, on_received);
    watch_out_error(&w->out, err);
    watch_end(w);
}

static void watch_start(struct call *c)
{
    struct watch *w = watch_new(c);
    struct err err;

    watch_out_begin(&w->out, c, on_received);
    err_init(&err, c->arena);
    /* A revision before the history is reported as an event: clients list again. */
    if (store_watch_open(vapi_store(c->api), c->resource->storage, w->start, on_wake, w, &w->cursor,
                         &err)) {
        watch_out_error(&w->out, &err);
        watch_end(w);
        return;
    }
    if (watch_wants_initial(c))
        w->initial_state =
            store_recall_open(vapi_store(c->api), c->resource->storage, w->start, NULL, NULL);
    watch_enter(w, watch_wants_initial(c) ? WATCH_INITIAL : WATCH_LIVE);
    timer_next(w);
    watch_tick(w);
}

void call_watch(struct call *c)
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
        watch_late(c, &err);
        return;
    }
    /* The initial state must not be older than the revision the client has seen; a live watch just
     * waits. */
    read_when_else(c, c->options.send_initial && c->options.rv_set ? c->options.rv : 0, watch_start,
                   watch_late);
}
