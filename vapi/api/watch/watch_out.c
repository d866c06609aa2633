/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a watch in the requested form: stored bytes by reference where nothing has to be
 * changed, otherwise a tree; JSON, protobuf, Tables or metadata, over a stream of HTTP or a
 * WebSocket. Must never buffer anything of a watcher: what the kernel has not accepted is the
 * connection's. */
#include "watch_out.h"

#include "../flow/flow.h"
#include "../respond/respond.h"

#include <sublet/proto.h>

#define BACKLOG_LIMIT (1u << 20)
#define BACKLOG_TIGHT (16u << 10) /* when memory is short; a slow watcher lists again */

static const char *const EVENT_NAMES[] = {"ADDED", "MODIFIED", "DELETED"};

static struct str stream_type(const struct call *c)
{
    if (c->protobuf)
        return STR("application/vnd.kubernetes.protobuf;stream=watch");
    return STR("application/json");
}

void watch_out_begin(struct watch_out *o, struct call *c,
                     void (*received)(void *ctx, struct str bytes))
{
    *o = (struct watch_out){.call = c, .scratch = arena_new(0)};
    o->socket = watch_socket_open(c, NULL, received);
    if (!o->socket)
        call_begin(c, 200, stream_type(c));
    /* Thousands of watches live for an hour: their headers are not needed again. */
    net_forget_request(c->exchange);
}

void watch_out_goodbye(struct watch_out *o)
{
    if (o->socket)
        watch_socket_goodbye(o->call);
}

void watch_out_free(struct watch_out *o)
{
    arena_free(o->scratch);
    o->scratch = NULL;
}

bool watch_out_has_room(const struct watch_out *o)
{
    size_t backlog = net_backlog(o->call->exchange);

    if (backlog <= BACKLOG_TIGHT)
        return true;
    return backlog <= BACKLOG_LIMIT && !budget_tight(o->call->api);
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
static size_t head_slice(struct watch_out *o, size_t n, struct net_slice *ret)
{
    unsigned char head[WATCH_SOCKET_HEAD];
    struct buf b = BUF_INIT(0);

    if (!o->socket)
        return 0;
    buf_add(&b, (struct str){(const char *)head, watch_socket_head(o->call->protobuf, n, head)});
    *ret = text_slice(&b);
    return 1;
}

static void send_text(struct watch_out *o, struct buf *text)
{
    struct net_slice slices[2];
    size_t n = head_slice(o, text->n, slices);

    slices[n++] = text_slice(text);
    net_write(o->call->exchange, slices, n);
}

/* False when the object has no protobuf message. */
static bool send_frame(struct watch_out *o, const char *type, const cJSON *object)
{
    struct buf text = BUF_INIT(0);
    struct str frame;

    if (!proto_encode_event(o->scratch, str_c(type), object, &frame))
        return false;
    /* A message of a WebSocket has its length already. */
    buf_add(&text, o->socket ? str_from(frame, 4) : frame);
    send_text(o, &text);
    return true;
}

static void send_tree(struct watch_out *o, const char *type, cJSON *object)
{
    struct buf text = BUF_INIT(0);

    respond_table_form_version(o->scratch, o->call, object);
    if (o->call->protobuf && send_frame(o, type, object)) {
        arena_reset(o->scratch);
        return;
    }
    buf_printf(&text, "{\"type\":\"%s\",\"object\":", type);
    json_print(&text, object);
    buf_addc(&text, "}\n");
    send_text(o, &text);
    arena_reset(o->scratch);
}

static void on_sent(void *ctx)
{
    store_object_unref(ctx);
}

static cJSON *form_of(struct watch_out *o, cJSON *object)
{
    struct call *c = o->call;
    uint64_t value;
    int64_t rv = 0;
    cJSON *table;

    if (c->output == OUTPUT_PARTIAL)
        return respond_partial_metadata(o->scratch, c->resource, object);
    if (c->output != OUTPUT_TABLE)
        return object;

    if (str_to_u64(json_str_at(object, "metadata.resourceVersion"), &value))
        rv = (int64_t)value;
    table = respond_table_head(o->scratch, c->resource, rv, !o->columns_sent);
    json_append(json_get(table, "rows"),
                respond_table_row(o->scratch, c->resource, object, c->include,
                                  clock_wall_s(vapi_clock(c->api))));
    o->columns_sent = true;
    return table;
}

void watch_out_tree(struct watch_out *o, enum store_event_type type, cJSON *object)
{
    send_tree(o, EVENT_NAMES[type], form_of(o, object));
}

void watch_out_stored(struct watch_out *o, enum store_event_type type,
                      const struct store_object *object, int64_t revision)
{
    struct call *c = o->call;

    if (c->output == OUTPUT_OBJECT && !c->protobuf && revision == object->revision &&
        convert_is_identity(c->resource, object)) {
        /* The stored bytes, by reference: the usual case. */
        static const struct str heads[] = {
            {"{\"type\":\"ADDED\",\"object\":", 25},
            {"{\"type\":\"MODIFIED\",\"object\":", 28},
            {"{\"type\":\"DELETED\",\"object\":", 27},
        };
        struct str tail = STR("}\n");
        struct net_slice slices[4];
        size_t n = head_slice(o, heads[type].n + object->bytes.n + tail.n, slices);

        slices[n++] = (struct net_slice){.bytes = heads[type]};
        slices[n++] = (struct net_slice){.bytes = object->bytes};
        slices[n++] =
            (struct net_slice){tail, on_sent, (void *)(uintptr_t)store_object_ref(object)};
        net_write(c->exchange, slices, n);
        return;
    }
    arena_reset(o->scratch);
    cJSON *tree = convert_tree(o->scratch, c->resource, object);
    if (revision != object->revision)
        json_set_str(o->scratch, json_get(tree, "metadata"), "resourceVersion",
                     arena_printf(o->scratch, "%lld", (long long)revision));
    watch_out_tree(o, type, tree);
}

void watch_out_bookmark(struct watch_out *o, int64_t revision, bool initial_end)
{
    struct call *c = o->call;
    bool partial = c->output == OUTPUT_PARTIAL;

    arena_reset(o->scratch);
    cJSON *object = json_new_object(o->scratch);
    json_set_str(o->scratch, object, "kind",
                 partial ? STR("PartialObjectMetadata") : c->resource->kind);
    json_set_str(o->scratch, object, "apiVersion",
                 partial ? STR("meta.k8s.io/v1") : c->resource->api_version);
    cJSON *meta = json_ensure_object(o->scratch, object, "metadata");
    json_set_str(o->scratch, meta, "resourceVersion",
                 arena_printf(o->scratch, "%lld", (long long)revision));
    if (initial_end)
        json_set_str(o->scratch, json_ensure_object(o->scratch, meta, "annotations"),
                     "k8s.io/initial-events-end", STR("true"));
    send_tree(o, "BOOKMARK", c->output == OUTPUT_TABLE ? form_of(o, object) : object);
    o->bookmarked = revision;
}

void watch_out_error(struct watch_out *o, const struct err *err)
{
    arena_reset(o->scratch);
    send_tree(o, "ERROR", status_tree(o->scratch, err));
}
