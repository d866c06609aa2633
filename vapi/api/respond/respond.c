/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Answers: a stored object by reference where its bytes have the requested form, otherwise a tree
 * printed in the negotiated form. An in-process call receives its answer directly. Each function
 * ends the call's handler; it must never be called twice for one call. Source: apiserver
 * pkg/endpoints/handlers/responsewriters. */
#include "respond.h"

#include "../flow/flow.h"
#include "../observe/observe.h"

#include <assert.h>
#include <string.h>

#include <sublet/conversion.h>
#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/net.h>
#include <sublet/proto.h>
#include <sublet/store_admin.h>
#include <sublet/yaml.h>

#define MAX_HEADERS   80 /* warnings included */
#define TEXT_PLAIN    STR("text/plain; charset=utf-8")
#define WARNINGS_ALL  4096 /* characters of all warnings; beyond it each is cut to ... */
#define WARNINGS_EACH 256

struct headers {
    struct net_header list[MAX_HEADERS];
    size_t n;
};

static void header(struct headers *h, const char *name, struct str value)
{
    if (h->n < MAX_HEADERS)
        h->list[h->n++] = (struct net_header){str_c(name), value};
}

/* 299 - "...", quoted as RFC 7234 requires; control characters become blanks. */
static struct str warning_value(struct arena *a, struct str text)
{
    struct buf b = BUF_INIT(0);
    struct str value;

    buf_addc(&b, "299 - \"");
    for (size_t i = 0; i < text.n; i++) {
        char ch = text.p[i];

        if (ch == '"' || ch == '\\')
            buf_char(&b, '\\');
        buf_char(&b, (unsigned char)ch < 0x20 || ch == 0x7f ? ' ' : ch);
    }
    buf_char(&b, '"');
    value = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return value;
}

static struct str cut_characters(struct str text, size_t most)
{
    size_t i = 0, n = 0;

    for (; i < text.n; i++) {
        n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
        if (n > most)
            break;
    }
    return str_sub(text, 0, i);
}

/* Source of the two bounds: k8s.io/apiserver pkg/endpoints/filters/warning.go. */
static void add_warnings(struct call *c, struct headers *h)
{
    size_t all = 0, written = 0;

    for (size_t i = 0; i < c->n_warnings; i++)
        all += str_characters(c->warnings[i]);
    for (size_t i = 0; i < c->n_warnings; i++) {
        struct str text = c->warnings[i];

        if (all > WARNINGS_ALL)
            text = cut_characters(text, WARNINGS_EACH);
        if (all > WARNINGS_ALL && written >= WARNINGS_ALL)
            return;
        written += str_characters(text);
        header(h, "warning", warning_value(c->arena, text));
    }
}

static void common_headers(struct call *c, struct headers *h, struct str content_type)
{
    const struct call_entry *e = call_entry(c);
    bool cache = false;

    header(h, "audit-id", e->audit_id);
    for (size_t i = 0; i < e->n_headers; i++) {
        h->list[h->n++] = e->headers[i];
        cache |= str_eqc(e->headers[i].name, "cache-control");
    }
    if (!cache)
        header(h, "cache-control", STR("no-cache, private"));
    header(h, "content-type", content_type);
    if (e->flow_uid.n) {
        header(h, "x-kubernetes-pf-flowschema-uid", e->flow_uid);
        header(h, "x-kubernetes-pf-prioritylevel-uid", e->level_uid);
    }
    if (c->n_warnings)
        add_warnings(c, h);
}

/* ---- the last step: bytes to the network ---- */

static void on_buffer_sent(void *ctx)
{
    mem_free(ctx);
}

static struct net_slice heap_slice(struct str bytes)
{
    union {
        const char *from;
        void *to;
    } p = {.from = bytes.p};

    return (struct net_slice){bytes, on_buffer_sent, p.to};
}

static void drop(const struct net_slice *body, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (body[i].release)
            body[i].release(body[i].ctx);
}

/* False when no client is left to answer; the pieces are released then. */
static bool listening(struct call *c, const struct net_slice *body, size_t n)
{
    if (c->exchange)
        return true;
    drop(body, n);
    call_finish(c, NULL, NULL);
    return false;
}

static struct str content_type_of(const struct headers *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (str_eqc(h->list[i].name, "content-type"))
            return h->list[i].value;
    return STR("");
}

/* Existing pieces, as the source of a stream. */
struct given {
    struct net_slice *slices;
    size_t n, next;
};

static size_t given_slices(void *ctx, struct net_slice *ret)
{
    struct given *g = ctx;
    size_t n = 0, size = 0;

    while (g->next < g->n && n < STREAM_BATCH && size < STREAM_PIECE) {
        struct net_slice *left = &g->slices[g->next];
        struct str part = str_sub(left->bytes, 0, STREAM_PIECE - size);

        ret[n] = (struct net_slice){part, NULL, NULL};
        size += part.n;
        left->bytes = str_from(left->bytes, part.n);
        if (!left->bytes.n) {
            ret[n].release = left->release;
            ret[n].ctx = left->ctx;
            g->next++;
        }
        n++;
    }
    return n;
}

static void given_release(void *ctx)
{
    struct given *g = ctx;

    drop(g->slices + g->next, g->n - g->next);
}

static void send_body(struct call *c, int status, struct headers *h, const struct net_slice *body,
                      size_t n)
{
    size_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += body[i].bytes.n;
    observe_answer(c, status, content_type_of(h), body, n);
    flow_answer_bytes(c, size);
    if (call_entry(c)->gzip && size >= API_GZIP_FROM) {
        struct given *g = ARENA_NEW(c->arena, struct given);
        struct stream_source source = {.slices = given_slices, .release = given_release, .ctx = g};

        /* Compresses while sending: a list of megabytes occupies the loop for milliseconds at a
         * time. */
        g->slices = arena_alloc(c->arena, n * sizeof(*body));
        g->n = n;
        memcpy(g->slices, body, n * sizeof(*body));
        stream_answer(c, status, h->list, h->n, &source, (int64_t)size);
    } else {
        assert(c->exchange && !c->done);
        call_hold(c);
        net_respond(c->exchange, status, h->list, h->n, body, n);
        call_release(c);
    }
}

void respond_source(struct call *c, int status, struct str content_type,
                    const struct stream_source *source, int64_t length)
{
    struct headers h = {.n = 0};

    if (!c->exchange) {
        source->release(source->ctx);
        call_finish(c, NULL, NULL);
        return;
    }
    common_headers(c, &h, content_type);
    if (length >= 0) {
        audit_answer_left_out(c);
        observe_answer(c, status, content_type, NULL, 0);
        flow_answer_bytes(c, (size_t)length);
    }
    stream_answer(c, status, h.list, h.n, source, length);
}

/* ---- trees ---- */

static struct str print_tree(const struct call *c, const cJSON *tree, struct str *ret_type)
{
    struct buf b = BUF_INIT(0);
    struct str envelope;

    if (c->protobuf && proto_encode(c->arena, tree, &envelope)) {
        *ret_type = STR("application/vnd.kubernetes.protobuf");
        buf_add(&b, envelope);
        return buf_take(&b);
    }
    *ret_type = c->yaml ? STR("application/yaml") : STR("application/json");
    if (c->yaml)
        yaml_print(&b, tree);
    else if (c->pretty)
        json_print_pretty(&b, tree);
    else
        json_print(&b, tree);
    if (!c->yaml)
        buf_char(&b, '\n');
    return buf_take(&b);
}

static void send_tree(struct call *c, int status, struct headers *extra, const cJSON *tree)
{
    struct headers h = extra ? *extra : (struct headers){.n = 0};
    struct str type;
    struct net_slice body;

    if (!listening(c, NULL, 0))
        return;
    audit_answer_tree(c, tree);
    body = heap_slice(print_tree(c, tree, &type));
    common_headers(c, &h, type);
    send_body(c, status, &h, &body, 1);
}

void respond_tree(struct call *c, int status, cJSON *object)
{
    if (c->done) {
        call_finish(c, NULL, NULL);
        return;
    }
    respond_table_form_version(c->arena, c, object);
    send_tree(c, status, NULL, object);
}

void respond_error(struct call *c, const struct err *err)
{
    struct headers h = {.n = 0};

    assert(err->kind);
    if (err->kind->code >= 500 && err->kind != &ERR_UNKNOWN && !c->gone &&
        !disk_excuses(c->api, err) &&
        !(err->kind == &ERR_UNAVAILABLE &&
          store_read_only(c->api->o.store))) /* there is a notice for it */
        log_warn("request failed verb=%s resource=%.*s ns=%.*s name=%.*s code=%d error=\"%.*s\"",
                 CALL_VERBS[c->verb], STR_F(c->resource ? c->resource->group_resource : STR("")),
                 STR_F(c->ns), STR_F(c->name), err->kind->code, STR_F(err->message));
    if (c->done) {
        call_finish(c, err, NULL);
        return;
    }
    if (err->retry_after > 0)
        header(&h, "retry-after", arena_printf(c->arena, "%lld", (long long)err->retry_after));
    send_tree(c, err->kind->code, &h, status_tree(c->arena, err));
}

void respond_give_up(struct call *c, const struct err *err, struct str text)
{
    struct call_entry *e = call_entry(c);
    cJSON *status = status_tree(c->arena, err);
    struct headers h = {.n = 0};
    struct net_slice body = {text, NULL, NULL};
    struct str type = TEXT_PLAIN;

    assert(c->exchange && !c->done && e->stage != CALL_ANSWERED && !e->stream_code);
    audit_answer_tree(c, status);
    if (!text.n)
        body = heap_slice(print_tree(c, status, &type));
    common_headers(c, &h, type);
    if (err->retry_after > 0)
        header(&h, "retry-after", arena_printf(c->arena, "%lld", (long long)err->retry_after));
    observe_answer(c, err->kind->code, type, &body, 1);
    net_respond(c->exchange, err->kind->code, h.list, h.n, &body, 1);
    c->exchange = NULL;
    c->gone = true;
    if (c->cancel) {
        c->cancel(c);
        c->cancel = NULL;
        call_enter(e, CALL_ANSWERED);
    }
}

void call_success(struct call *c, struct str uid)
{
    struct arena *a = c->arena;
    cJSON *details;

    if (c->done) {
        call_finish(c, NULL, NULL);
        return;
    }
    details =
        json_object(a, JSON_NONEMPTY("name", c->name), JSON_NONEMPTY("group", c->resource->group),
                    JSON("kind", c->resource->plural), JSON_NONEMPTY("uid", uid));
    send_tree(c, 200, NULL,
              json_object(a, JSON("kind", "Status"), JSON("apiVersion", "v1"),
                          JSON("metadata", json_new_object(a)), JSON("status", "Success"),
                          JSON("details", details)));
}

/* ---- stored objects ---- */

static void on_object_sent(void *ctx)
{
    store_object_unref(ctx);
}

void respond_object_as(struct call *c, const struct resource *r, int status, cJSON *object)
{
    if (c->output == OUTPUT_TABLE) {
        uint64_t revision = 0;
        cJSON *table;

        if (!str_to_u64(json_str_at(object, "metadata.resourceVersion"), &revision))
            revision = 0;
        table = respond_table_head(c->arena, r, (int64_t)revision, true);
        json_append(json_get(table, "rows"), respond_table_row(c->arena, r, object, c->include,
                                                               clock_wall_s(vapi_clock(c->api))));
        object = table;
    } else if (c->output == OUTPUT_PARTIAL) {
        object = respond_partial_metadata(c->arena, r, object);
    }
    respond_tree(c, status, object);
}

void respond_object(struct call *c, int status, cJSON *object)
{
    respond_object_as(c, c->resource, status, object);
}

/* An answer that a webhook converts first. */
struct converted {
    struct call *call;
    int status;
    const struct store_object *object; /* a reference */
};

static void on_converted(void *ctx, const struct err *err)
{
    struct converted *k = ctx;
    const struct store_object *o = k->object;

    assert(k->call->magic == CALL_MAGIC);
    if (err)
        call_error(k->call, err);
    else
        call_stored(k->call, k->status, o);
    store_object_unref(o);
}

static void convert_first(struct call *c, int status, const struct store_object *o)
{
    struct converted *k = ARENA_NEW(c->arena, struct converted);

    *k = (struct converted){.call = c, .status = status, .object = store_object_ref(o)};
    conversion_read(c->api, c->resource, &k->object, 1, on_converted, k);
}

void call_stored(struct call *c, int status, const struct store_object *o)
{
    if (c->done) {
        call_finish(c, NULL, o);
        return;
    }
    if (!listening(c, NULL, 0))
        return;
    if (conversion_needed_stored(c->resource, o)) {
        convert_first(c, status, o);
        return;
    }
    if (c->output == OUTPUT_OBJECT && !c->pretty && !c->yaml && !c->protobuf &&
        convert_is_identity(c->resource, o)) {
        union {
            const struct store_object *from;
            void *to;
        } p = {.from = store_object_ref(o)};
        struct net_slice body[2] = {{o->bytes, on_object_sent, p.to}, {STR("\n"), NULL, NULL}};
        struct headers h = {.n = 0};

        common_headers(c, &h, STR("application/json"));
        send_body(c, status, &h, body, 2);
        return;
    }
    respond_object(c, status, convert_tree(c->arena, c->resource, o));
}

/* ---- pieces, raw bytes, streams ---- */

/* For pretty JSON, YAML and protobuf the pieces are parsed into a tree again: rare, and the list is
 * bounded. */
static bool send_reread(struct call *c, int status, const struct net_slice *body, size_t n)
{
    struct buf all = BUF_INIT(0);
    cJSON *tree = NULL;
    int failed;

    if (!c->pretty && !c->yaml && !c->protobuf)
        return false;
    for (size_t i = 0; i < n; i++)
        buf_add(&all, body[i].bytes);
    failed = json_parse(c->arena, buf_str(&all), &tree, NULL);
    buf_fini(&all);
    if (failed)
        return false;
    drop(body, n);
    send_tree(c, status, NULL, tree);
    return true;
}

void call_slices(struct call *c, int status, const struct net_slice *body, size_t n)
{
    struct headers h = {.n = 0};

    if (c->done) {
        drop(body, n);
        call_finish(c, NULL, NULL);
        return;
    }
    if (!listening(c, body, n) || send_reread(c, status, body, n))
        return;
    common_headers(c, &h, STR("application/json"));
    send_body(c, status, &h, body, n);
}

void respond_slice(struct call *c, int status, struct str content_type, struct net_slice body)
{
    struct headers h = {.n = 0};

    assert(!c->done);
    if (!listening(c, &body, 1))
        return;
    common_headers(c, &h, content_type);
    /* As Go's http.Error: a browser must not guess the type of an error message. */
    if (status == 404 && str_has_prefix(content_type, STR("text/plain")))
        header(&h, "x-content-type-options", STR("nosniff"));
    send_body(c, status, &h, &body, 1);
}

void respond_raw(struct call *c, int status, struct str content_type, struct str body)
{
    respond_slice(c, status, content_type,
                  (struct net_slice){arena_str(c->arena, body), NULL, NULL});
}

void respond_text(struct call *c, int status, const char *text)
{
    respond_raw(c, status, TEXT_PLAIN, str_c(text));
}

void call_begin(struct call *c, int status, struct str content_type)
{
    struct headers h = {.n = 0};

    assert(c->exchange);
    common_headers(c, &h, content_type);
    call_streams(c, status);
    net_begin(c->exchange, status, h.list, h.n);
}
