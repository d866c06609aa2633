/* SPDX-License-Identifier: Apache-2.0 */
/* WATCH: a cursor in the store's history, written out as it advances. Nothing is buffered per
 * watcher except the bytes the kernel has not accepted yet; above a limit writing pauses, and a
 * watcher whose cursor falls out of history gets a 410 and lists again. Must never skip an event or
 * send one twice, and must never send one that is not durable.
 *
 *   OPEN --> INITIAL (objects of revision R as ADDED, in chunks) --> LIVE (events after R) --.
 *     '--- resourceVersion=N: straight to LIVE after N --------------^                        |
 *                                               ENDED <-- timeout, 410, close --------------' */
#include "watch.h"

#include "../flow/flow.h"
#include "../respond/respond.h"

#include <assert.h>
#include <string.h>

#include <uv.h>

#include <sublet/crd.h>
#include <sublet/proto.h>
#include <sublet/store_recall.h>

#define WATCH_MAGIC   0x77617463u
#define BACKLOG_LIMIT (1u << 20)
#define BACKLOG_TIGHT (16u << 10) /* when memory is short; a slow watcher lists again */
#define BOOKMARK_MS   60000
#define BOOKMARK_LEAD 2000
#define INITIAL_CHUNK 512
#define TIMEOUT_MIN_S 1800

enum watch_phase { WATCH_OPEN, WATCH_INITIAL, WATCH_LIVE, WATCH_ENDED };

struct watch {
    unsigned magic;
    enum watch_phase phase;
    struct call *call;
    struct watch_socket *socket; /* NULL: a stream of HTTP */
    uv_timer_t timer;
    struct store_watch *cursor;
    struct store_recall *initial_state; /* keeps it while it is sent */
    bool mark_initial_end;              /* and then the bookmark that marks its end */
    bool columns_sent, last_bookmark;
    int64_t start;      /* revision of the initial state, or the requested one */
    int64_t ends_ms;    /* monotonic */
    int64_t bookmarked; /* revision of the last bookmark */
    struct str after_ns, after_name;
    struct arena *scratch; /* trees of one event */
    size_t in_chunk;
};

static const char *const EVENT_NAMES[] = {"ADDED", "MODIFIED", "DELETED"};

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

static int check_watch_options(struct call *c, struct err *err)
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

/* --- sending --- */

static bool has_room(const struct watch *w)
{
    size_t backlog = net_backlog(w->call->exchange);

    if (backlog <= BACKLOG_TIGHT)
        return true;
    return backlog <= BACKLOG_LIMIT && !budget_tight(w->call->api);
}

static void on_text_sent(void *ctx)
{
    mem_free(ctx);
}

static struct net_slice text_slice(struct buf *text)
{
    struct str bytes = buf_take(text);

    return (struct net_slice){bytes, on_text_sent, (void *)(uintptr_t)bytes.p};
}

/* The bytes before n bytes of an event; returns the number of slices. */
static size_t head_slice(struct watch *w, size_t n, struct net_slice *ret)
{
    unsigned char head[WATCH_SOCKET_HEAD];
    struct buf b = BUF_INIT(0);

    if (!w->socket)
        return 0;
    buf_add(&b, (struct str){(const char *)head, watch_socket_head(w->call->protobuf, n, head)});
    *ret = text_slice(&b);
    return 1;
}

static void send_text(struct watch *w, struct buf *text)
{
    struct net_slice slices[2];
    size_t n = head_slice(w, text->n, slices);

    slices[n++] = text_slice(text);
    net_write(w->call->exchange, slices, n);
}

/* False when the object has no protobuf message. */
static bool send_frame(struct watch *w, const char *type, const cJSON *object)
{
    struct buf text = BUF_INIT(0);
    struct str frame;

    if (!proto_encode_event(w->scratch, str_c(type), object, &frame))
        return false;
    /* A message of a WebSocket has its length already. */
    buf_add(&text, w->socket ? str_from(frame, 4) : frame);
    send_text(w, &text);
    return true;
}

static void send_tree(struct watch *w, const char *type, cJSON *object)
{
    struct buf text = BUF_INIT(0);

    respond_table_form_version(w->scratch, w->call, object);
    if (w->call->protobuf && send_frame(w, type, object)) {
        arena_reset(w->scratch);
        return;
    }
    buf_printf(&text, "{\"type\":\"%s\",\"object\":", type);
    json_print(&text, object);
    buf_addc(&text, "}\n");
    send_text(w, &text);
    arena_reset(w->scratch); /* an idle watch keeps nothing of its last event */
}

static void on_sent(void *ctx)
{
    store_object_unref(ctx);
}

static cJSON *watch_form(struct watch *w, cJSON *object)
{
    struct call *c = w->call;

    if (c->output == OUTPUT_PARTIAL)
        return respond_partial_metadata(w->scratch, c->resource, object);
    if (c->output != OUTPUT_TABLE)
        return object;

    int64_t rv = 0;
    uint64_t value;
    if (str_to_u64(json_str_at(object, "metadata.resourceVersion"), &value))
        rv = (int64_t)value;
    cJSON *table = respond_table_head(w->scratch, c->resource, rv, !w->columns_sent);
    json_append(json_get(table, "rows"),
                respond_table_row(w->scratch, c->resource, object, c->include,
                                  clock_wall_s(vapi_clock(c->api))));
    w->columns_sent = true;
    return table;
}

/* revision: shown in the object; differs from its own when the object left the selector. */
static void send_event(struct watch *w, enum store_event_type type, const struct store_object *o,
                       int64_t revision)
{
    struct call *c = w->call;

    if (c->output == OUTPUT_OBJECT && !c->protobuf && revision == o->revision &&
        convert_is_identity(c->resource, o)) {
        /* The stored bytes, by reference: the usual case. */
        static const struct str heads[] = {
            {"{\"type\":\"ADDED\",\"object\":", 25},
            {"{\"type\":\"MODIFIED\",\"object\":", 28},
            {"{\"type\":\"DELETED\",\"object\":", 27},
        };
        struct str tail = STR("}\n");
        struct net_slice slices[4];
        size_t n = head_slice(w, heads[type].n + o->bytes.n + tail.n, slices);

        slices[n++] = (struct net_slice){.bytes = heads[type]};
        slices[n++] = (struct net_slice){.bytes = o->bytes};
        slices[n++] = (struct net_slice){tail, on_sent, (void *)(uintptr_t)store_object_ref(o)};
        net_write(w->call->exchange, slices, n);
        return;
    }
    arena_reset(w->scratch);
    cJSON *object = convert_tree(w->scratch, c->resource, o);
    if (revision != o->revision)
        json_set_str(w->scratch, json_get(object, "metadata"), "resourceVersion",
                     arena_printf(w->scratch, "%lld", (long long)revision));
    send_tree(w, EVENT_NAMES[type], watch_form(w, object));
}

static void send_bookmark(struct watch *w, int64_t revision, bool initial_end)
{
    struct call *c = w->call;
    bool partial = c->output == OUTPUT_PARTIAL;

    arena_reset(w->scratch);
    cJSON *object = json_new_object(w->scratch);
    json_set_str(w->scratch, object, "kind",
                 partial ? STR("PartialObjectMetadata") : c->resource->kind);
    json_set_str(w->scratch, object, "apiVersion",
                 partial ? STR("meta.k8s.io/v1") : c->resource->api_version);
    cJSON *meta = json_ensure_object(w->scratch, object, "metadata");
    json_set_str(w->scratch, meta, "resourceVersion",
                 arena_printf(w->scratch, "%lld", (long long)revision));
    if (initial_end)
        json_set_str(w->scratch, json_ensure_object(w->scratch, meta, "annotations"),
                     "k8s.io/initial-events-end", STR("true"));
    send_tree(w, "BOOKMARK", c->output == OUTPUT_TABLE ? watch_form(w, object) : object);
    w->bookmarked = revision;
}

static void send_error(struct watch *w, const struct err *err)
{
    arena_reset(w->scratch);
    send_tree(w, "ERROR", status_tree(w->scratch, err));
}

/* --- end --- */

static void on_timer_closed(uv_handle_t *h)
{
    struct watch *w = h->data;

    assert(w->magic == WATCH_MAGIC && w->phase == WATCH_ENDED);
    w->magic = 0;
    arena_free(w->scratch);
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
    w->call = NULL;
    c->cancel = NULL;
    c->drained = NULL;
    c->state = NULL;
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
    return c;
}

static void watch_end(struct watch *w)
{
    if (w->socket)
        watch_socket_goodbye(w->call);
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
        send_event(w, STORE_ADDED, o, o->revision);
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
            send_error(w, &err);
            watch_end(w);
            return;
        }
    } while (chunk.full && has_room(w));
    if (chunk.full)
        return; /* drained() continues */
    watch_enter(w, WATCH_LIVE);
    w->initial_state = store_recall_close(w->initial_state);
    if (w->mark_initial_end)
        send_bookmark(w, w->start, true);
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
            send_event(w, before ? STORE_MODIFIED : STORE_ADDED, e->object, e->revision);
        else if (e->type == STORE_DELETED && (before || shows(w, e->object)))
            send_event(w, STORE_DELETED, e->object, e->revision);
        else if (before)
            send_event(w, STORE_DELETED, e->previous, e->revision);
    }
    if (!expired)
        return;
    struct err err;
    err_init(&err, w->call->arena);
    err_set(&err, &ERR_EXPIRED, "too old resource version: %lld (%lld)",
            (long long)store_watch_position(w->cursor),
            (long long)store_oldest_revision(vapi_store(w->call->api)));
    send_error(w, &err);
    watch_end(w);
}

static void watch_tick(struct watch *w)
{
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
        wait = wait > BOOKMARK_MS ? BOOKMARK_MS : wait;
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
    if (w->phase == WATCH_LIVE && w->call->options.bookmarks &&
        store_watch_position(w->cursor) > w->bookmarked)
        send_bookmark(w, store_watch_position(w->cursor), false);
    timer_next(w);
}

/* --- begin --- */

/* Upstream distributes the ends of watches without a timeout over 30 to 60 minutes. */
static int64_t watch_seconds(struct call *c)
{
    if (c->options.timeout_s > 0)
        return c->options.timeout_s;
    return TIMEOUT_MIN_S + (int64_t)(rng_u64(vapi_rng(c->api)) % TIMEOUT_MIN_S);
}

static bool from_now(const struct call *c)
{
    return !c->options.rv_set || c->options.rv == 0;
}

static bool wants_initial(const struct call *c)
{
    return c->options.send_initial_set ? c->options.send_initial : from_now(c);
}

static struct watch *watch_new(struct call *c)
{
    struct watch *w = NEW(struct watch);
    *w = (struct watch){.magic = WATCH_MAGIC, .call = c, .scratch = arena_new(0)};
    /* The end of a requested initial state is always marked. */
    w->mark_initial_end = wants_initial(c) && c->options.bookmarks;
    w->start = wants_initial(c) || from_now(c) ? store_revision(vapi_store(c->api)) : c->options.rv;
    w->ends_ms = clock_mono_ms(vapi_clock(c->api)) + 1000 * watch_seconds(c);
    uv_timer_init(vapi_loop(c->api), &w->timer);
    w->timer.data = w;
    c->state = w;
    c->cancel = watch_cancel;
    c->drained = watch_drained;
    return w;
}

static struct str stream_type(const struct call *c)
{
    if (c->protobuf)
        return STR("application/vnd.kubernetes.protobuf;stream=watch");
    return STR("application/json");
}

static void on_received(void *ctx, struct str bytes)
{
    struct call *c = &((struct call_entry *)ctx)->call;
    struct watch *w = c->state;

    if (!w)
        return;
    assert(w->magic == WATCH_MAGIC);
    if (watch_socket_receive(w->socket, c, bytes) == SOCKET_CLOSE)
        watch_end(w);
}

static void watch_begin(struct watch *w)
{
    w->socket = watch_socket_open(w->call, NULL, on_received);
    if (!w->socket)
        call_begin(w->call, 200, stream_type(w->call));
    /* Thousands of watches live for an hour: their headers are not needed again. */
    net_forget_request(w->call->exchange);
}

/* The stream begins before it is known that its revision will not come, or that its deadline
 * passed. */
static void watch_late(struct call *c, const struct err *err)
{
    struct watch *w = watch_new(c);

    watch_begin(w);
    send_error(w, err);
    watch_end(w);
}

static void watch_start(struct call *c)
{
    struct watch *w = watch_new(c);
    struct err err;

    watch_begin(w);
    err_init(&err, c->arena);
    /* A revision before the history is reported as an event: clients list again. */
    if (store_watch_open(vapi_store(c->api), c->resource->storage, w->start, on_wake, w, &w->cursor,
                         &err)) {
        send_error(w, &err);
        watch_end(w);
        return;
    }
    if (wants_initial(c))
        w->initial_state =
            store_recall_open(vapi_store(c->api), c->resource->storage, w->start, NULL, NULL);
    watch_enter(w, wants_initial(c) ? WATCH_INITIAL : WATCH_LIVE);
    timer_next(w);
    watch_tick(w);
}

void call_watch(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    if (check_watch_options(c, &err)) {
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
