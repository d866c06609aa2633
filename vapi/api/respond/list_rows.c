/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a list. Why: as trees, the rows of a list can take many times the memory a process may use,
 * so each is parsed, converted to the requested form and printed by itself; where stored bytes have
 * that form they are sent by reference. References to the objects are held until the end, so a slow
 * reader gets the list of one revision. The bytes sent must equal those of the list printed as one
 * tree. */
#include "respond.h"

#include "../flow/flow.h"
#include "../observe/observe.h"

#include <assert.h>
#include <string.h>

#include <sublet/json_build.h>
#include <sublet/proto.h>
#include <sublet/yaml.h>

#define BY_ROWS_FROM (1u << 20) /* bytes of a list that is sent by reference in batches */
#define BATCH_BYTES  (4 * STREAM_PIECE)
/* The size of a row with indentation, times its stored size. */
#define PRINTED_FACTOR 4

void list_release(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        store_object_unref(l->objects[i]);
    l->n = 0;
}

static void on_list_sent(void *ctx)
{
    list_release(ctx);
}

static cJSON *list_metadata(struct list *l)
{
    struct arena *a = l->call->arena;
    cJSON *meta = json_new_object(a);

    json_set_str(a, meta, "resourceVersion", arena_printf(a, "%lld", (long long)l->revision));
    /* A list of custom resources has no Go type with omitempty. */
    if (!l->more && l->call->resource->crd && l->call->output == OUTPUT_OBJECT)
        json_set_first(a, meta, "continue", json_new_string(a, STR("")));
    if (!l->more)
        return meta;
    const struct store_object *last = l->objects[l->n - 1];
    json_set_str(a, meta, "continue", list_token(l->call, l->revision, last->ns, last->name));
    if (!l->call->options.labels.n && !l->call->options.fields.n)
        json_set_i64(a, meta, "remainingItemCount", (int64_t)l->rest);
    return meta;
}

/* ---- by reference ---- */

#define ROWS_TAIL STR("]}\n")

/* A row and the bytes before it; returns the number of slices. */
static size_t row_slices(const struct list *l, size_t i, struct net_slice *ret)
{
    const struct store_object *o = l->objects[i];
    size_t skip = l->call->resource->flags & RES_ITEM_TYPE_META ? 0 : o->skip, n = 0;

    ret[0] = ret[1] = (struct net_slice){STR_NULL, NULL, NULL};
    if (skip)
        ret[n++].bytes = i ? STR(",{") : STR("{");
    else if (i)
        ret[n++].bytes = STR(",");
    ret[n++].bytes = str_from(o->bytes, skip);
    return n;
}

struct batches {
    struct list *list;
    struct str head;
    size_t next;
    bool tail_given; /* the list is released with it */
};

static size_t batch_slices(void *ctx, struct net_slice *ret)
{
    struct batches *b = ctx;
    struct list *l = b->list;
    size_t n = 0, size = 0;

    if (b->tail_given)
        return 0;
    if (!b->next)
        ret[n++] = (struct net_slice){b->head, NULL, NULL};
    while (b->next < l->n && n + 3 <= STREAM_BATCH && size < BATCH_BYTES) {
        size += l->objects[b->next]->bytes.n;
        n += row_slices(l, b->next++, ret + n);
    }
    b->tail_given = b->next == l->n;
    if (b->tail_given)
        ret[n++] = (struct net_slice){ROWS_TAIL, on_list_sent, l};
    return n;
}

static void batch_release(void *ctx)
{
    struct batches *b = ctx;

    if (!b->tail_given)
        list_release(b->list);
}

static void answer_stored(struct list *l)
{
    struct call *c = l->call;
    const struct resource *r = c->resource;
    struct str head = arena_printf(
        c->arena, "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",\"metadata\":%s,\"items\":[",
        STR_F(r->list_kind), STR_F(r->api_version), json_text(c->arena, list_metadata(l)).p);
    size_t size = head.n + ROWS_TAIL.n;
    struct net_slice two[2];
    struct batches *b;

    for (size_t i = 0; i < l->n; i++)
        for (size_t n = row_slices(l, i, two); n; n--)
            size += two[n - 1].bytes.n;
    if (size < BY_ROWS_FROM) {
        struct net_slice *slices = arena_alloc(c->arena, (2 * l->n + 2) * sizeof(*slices));
        size_t n = 0;

        slices[n++].bytes = head;
        for (size_t i = 0; i < l->n; i++)
            n += row_slices(l, i, slices + n);
        slices[n++] = (struct net_slice){ROWS_TAIL, on_list_sent, l};
        call_slices(c, 200, slices, n);
        return;
    }
    b = ARENA_NEW(c->arena, struct batches);
    b->list = l;
    b->head = head;
    respond_source(
        c, 200, STR("application/json"),
        &(struct stream_source){.slices = batch_slices, .release = batch_release, .ctx = b},
        (int64_t)size);
}

/* ---- by rows ---- */

enum form { FORM_JSON, FORM_PRETTY, FORM_YAML, FORM_PROTOBUF };

/* The bytes after a last item "x", for each kind of list. */
static const struct {
    struct str type, end, separator;
} FORMS[] = {
    [FORM_JSON] = {{"application/json", 16}, {"]}", 2}, {",", 1}},
    [FORM_PRETTY] = {{"application/json", 16}, {"\n  ]\n}", 6}, {",\n    ", 6}},
    [FORM_YAML] = {{"application/yaml", 16}, {"\n", 1}, {"\n- ", 3}},
    [FORM_PROTOBUF] = {{"application/vnd.kubernetes.protobuf", 35}, {"", 0}, {"", 0}},
};

struct rows {
    struct list *list;
    struct call *call;
    enum form form;
    const char *key; /* of the list of rows */
    cJSON *frame;    /* the list without its rows */
    struct str head; /* of the frame, printed */
    size_t before;   /* bytes before a row printed in a list with nothing else */
    size_t next;
    int64_t now;
    struct arena *scratch; /* one row's trees */
    struct buf text;       /* one row, printed with its frame */
    bool counting;         /* protobuf: the total length is being computed */
    struct proto_list proto;
    size_t counted;
    struct buf kept;    /* rows printed while counting, if they are short */
    struct buf audited; /* the answer for the audit log */
    bool auditing;
};

/* kube-apiserver appends metadata to a nil slice: without any, that is null. */
static cJSON *items_of(struct list *l)
{
    struct arena *a = l->call->arena;

    return l->call->output == OUTPUT_PARTIAL && !l->n ? json_new_null(a) : json_new_array(a);
}

static cJSON *frame_of(struct list *l)
{
    struct call *c = l->call;
    struct arena *a = c->arena;
    bool partial = c->output == OUTPUT_PARTIAL;
    cJSON *list;

    if (c->output == OUTPUT_TABLE) {
        list = respond_table_head(a, c->resource, l->revision, true);
        json_set(a, list, "metadata", list_metadata(l));
        return list;
    }
    return json_object(
        a, JSON("kind", partial ? STR("PartialObjectMetadataList") : c->resource->list_kind),
        JSON("apiVersion", partial ? STR("meta.k8s.io/v1") : c->resource->api_version),
        JSON("metadata", list_metadata(l)), JSON("items", items_of(l)));
}

static void print(enum form form, struct buf *b, const cJSON *tree)
{
    if (form == FORM_YAML)
        yaml_print(b, tree);
    else if (form == FORM_PRETTY)
        json_print_pretty(b, tree);
    else
        json_print(b, tree);
}

/* The bytes printed before the only item "x" of tree's list. */
static struct str printed_head(struct rows *r, cJSON *tree)
{
    struct str mark = r->form == FORM_YAML ? STR("x") : STR("\"x\"");
    cJSON *list = json_get(tree, r->key), *item;
    struct buf b = BUF_INIT(0);
    struct str head;

    item = json_append(list, json_new_string(r->call->arena, STR("x")));
    print(r->form, &b, tree);
    assert(b.n > mark.n + FORMS[r->form].end.n);
    head = arena_str(r->call->arena, str_sub(buf_str(&b), 0, b.n - mark.n - FORMS[r->form].end.n));
    buf_fini(&b);
    json_detach(list, item);
    return head;
}

/* {key: [row]} in the requested form and version, in the scratch arena. */
static cJSON *around_row(struct rows *r, const struct store_object *o)
{
    struct call *c = r->call;
    struct arena *a = r->scratch;
    cJSON *object, *around;

    object = convert_tree(a, c->resource, o);
    if (c->output == OUTPUT_TABLE) {
        object = respond_table_row(a, c->resource, object, c->include, r->now);
    } else if (c->output == OUTPUT_PARTIAL) {
        object = respond_partial_metadata(a, c->resource, object);
    } else if (!(c->resource->flags & RES_ITEM_TYPE_META)) {
        json_remove(object, "kind");
        json_remove(object, "apiVersion");
    }
    around = json_new_object(a);
    json_append(json_set(a, around, r->key, json_new_array(a)), object);
    respond_table_form_version(a, c, around);
    return around;
}

/* The output of around_row() without the bytes around the row. */
static struct str inner(struct str printed, size_t before, struct str end)
{
    return str_sub(printed, before, printed.n - before - end.n);
}

static void audit_row(struct rows *r, const cJSON *around)
{
    size_t before = str_c(r->key).n + 5; /* {"KEY":[ */
    struct str text;

    if (!r->auditing)
        return;
    text = audit_answer_row(r->call, r->scratch, around);
    if (r->next)
        buf_char(&r->audited, ',');
    buf_add(&r->audited, inner(text, before, STR("]}")));
    r->auditing = r->audited.n <= audit_most_bytes();
}

static void finish_audit(struct rows *r)
{
    if (!audit_wants_answer(r->call))
        return;
    buf_addc(&r->audited, "]}");
    if (r->auditing && r->audited.n <= audit_most_bytes())
        audit_answer_text(r->call, buf_str(&r->audited));
    else
        audit_answer_left_out(r->call);
}

static bool next_text(struct rows *r, struct buf *out)
{
    const cJSON *around = around_row(r, r->list->objects[r->next]);

    buf_add(out, r->next ? FORMS[r->form].separator : r->head);
    audit_row(r, around);
    if (r->form == FORM_JSON) {
        json_print(out, json_get(around, r->key)->child);
    } else {
        buf_clear(&r->text);
        print(r->form, &r->text, around);
        buf_add(out, inner(buf_str(&r->text), r->before, FORMS[r->form].end));
    }
    if (++r->next < r->list->n)
        return true;
    buf_add(out, FORMS[r->form].end);
    if (r->form != FORM_YAML)
        buf_char(out, '\n');
    finish_audit(r);
    return false;
}

static struct str proto_row(struct rows *r)
{
    const cJSON *around = around_row(r, r->list->objects[r->next]);

    if (r->counting)
        audit_row(r, around);
    r->next++;
    return proto_list_item(r->scratch, &r->proto, json_get(around, r->key)->child);
}

static bool count_row(struct rows *r, struct buf *out)
{
    struct str row = proto_row(r), head, tail;
    bool all_kept;

    if (r->counted == r->kept.n && r->kept.n + row.n <= STREAM_PIECE)
        buf_add(&r->kept, row);
    else
        buf_fini(&r->kept);
    r->counted += row.n;
    if (r->next < r->list->n)
        return true;

    finish_audit(r);
    r->counting = false;
    r->next = 0;
    proto_list_ends(r->scratch, &r->proto, r->frame, r->counted, &head, &tail);
    buf_add(out, head);
    all_kept = r->counted == r->kept.n;
    if (all_kept) {
        buf_add(out, buf_str(&r->kept));
        buf_add(out, tail);
    }
    buf_fini(&r->kept);
    return !all_kept;
}

static bool next_proto(struct rows *r, struct buf *out)
{
    struct str head, tail;

    if (r->counting)
        return count_row(r, out);
    buf_add(out, proto_row(r));
    if (r->next < r->list->n)
        return true;
    proto_list_ends(r->scratch, &r->proto, r->frame, r->counted, &head, &tail);
    buf_add(out, tail);
    return false;
}

/* A row's trees take many times its bytes, and the reader may pause here for any time: frees them
 * first. */
static bool next_row(void *ctx, struct buf *out)
{
    struct rows *r = ctx;
    bool more = r->form == FORM_PROTOBUF ? next_proto(r, out) : next_text(r, out);

    arena_reset(r->scratch);
    if (r->text.cap > STREAM_PIECE)
        buf_fini(&r->text);
    return more;
}

static void rows_release(void *ctx)
{
    struct rows *r = ctx;

    list_release(r->list);
    r->scratch = arena_free(r->scratch);
    buf_fini(&r->text);
    buf_fini(&r->kept);
    buf_fini(&r->audited);
}

static struct rows *rows_new(struct list *l)
{
    struct call *c = l->call;
    struct rows *r = ARENA_NEW(c->arena, struct rows);
    cJSON *around = json_new_object(c->arena);

    *r = (struct rows){.list = l, .call = c, .now = clock_wall_s(vapi_clock(c->api))};
    r->key = c->output == OUTPUT_TABLE ? "rows" : "items";
    r->scratch = arena_new(0);
    r->text = r->kept = r->audited = BUF_INIT(0);
    r->frame = frame_of(l);
    respond_table_form_version(c->arena, c, r->frame);
    if (c->protobuf && proto_list_open(r->frame, r->key, &r->proto))
        r->form = FORM_PROTOBUF;
    else if (c->yaml || c->pretty)
        r->form = c->yaml ? FORM_YAML : FORM_PRETTY;
    r->counting = r->form == FORM_PROTOBUF;
    r->auditing = audit_wants_answer(c);
    if (r->auditing) {
        struct str whole = json_text(c->arena, r->frame);

        buf_add(&r->audited, str_sub(whole, 0, whole.n - 2)); /* ]} */
    }
    if (r->form == FORM_PROTOBUF)
        return r;
    r->head = printed_head(r, r->frame);
    json_set(c->arena, around, r->key, json_new_array(c->arena));
    r->before = printed_head(r, around).n;
    return r;
}

/* The memory a slow reader holds is at least one printed row. */
static size_t largest_row(const struct list *l)
{
    size_t most = 0;

    for (size_t i = 0; i < l->n; i++)
        most = l->objects[i]->bytes.n > most ? l->objects[i]->bytes.n : most;
    return most < STREAM_PIECE ? 0 : most * PRINTED_FACTOR;
}

static void answer_rows(struct list *l)
{
    struct call *c = l->call;
    struct stream_source source = {
        .next = next_row, .release = rows_release, .piece = largest_row(l)};
    struct rows *r;
    struct err err;

    if (!budget_more(c, source.piece)) {
        list_release(l);
        err_init(&err, c->arena);
        if (flow_too_many(&err))
            call_error(c, &err);
        return;
    }
    r = rows_new(l);
    source.ctx = r;
    respond_source(c, 200, FORMS[r->form].type, &source, -1);
}

/* ---- choice of the form ---- */

static bool all_as_stored(const struct list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!convert_is_identity(l->call->resource, l->objects[i]))
            return false;
    }
    return true;
}

void list_answer(struct list *l)
{
    struct call *c = l->call;
    bool plain = c->output == OUTPUT_OBJECT && !c->pretty && !c->yaml && !c->protobuf;

    if (c->done) {
        list_release(l);
        call_finish(c, NULL, NULL);
    } else if (plain && all_as_stored(l)) {
        answer_stored(l);
    } else if (!l->n) {
        call_tree(c, 200, frame_of(l));
    } else {
        answer_rows(l);
    }
}
