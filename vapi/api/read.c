/* SPDX-License-Identifier: Apache-2.0 */
/* GET and LIST. A read never builds a tree unless another form or version was asked for: GET is the
 * stored row, LIST is a head and rows joined by commas, sent by reference. A read must never answer
 * with a state older than the resourceVersion it names, nor with one that is not yet durable. */
#include "api.h"

#include <assert.h>
#include <string.h>

#include "read.h"

/* 410 with a token that goes on from the same key at whatever revision there is now. */
static void tell_expired(struct call *c, const struct list_position *at, struct err *err)
{
    if (c->options.cont.n) {
        err_clear(err);
        err_set(
            err, &ERR_EXPIRED,
            "The provided continue parameter is too old to display a consistent list result. You "
            "can start a new list without the continue parameter, or use the continue token in "
            "this response to retrieve the remainder of the results. Continuing with the provided "
            "token results in an inconsistent list - objects that were created, modified, or "
            "deleted between the time the first chunk was returned and now may show up in the "
            "list.");
        err->cont = list_token(c, -1, at->ns, at->name);
    }
}

/* --- the resourceVersion matrix --- */

static struct str match_of(const struct call *c)
{
    return c->options.rv_match;
}

static bool is_exact(struct str match)
{
    return str_eqc(match, "Exact");
}

int read_check_options(struct call *c, struct err *err)
{
    static const char *const matches[] = {"Exact", "NotOlderThan", "", NULL};
    struct field_errors e;
    const struct field_path *path = FIELD(NULL, "resourceVersionMatch");
    struct str match = match_of(c);

    field_errors_init(&e, c->arena);
    if (match.n && !c->options.rv_set)
        field_forbidden(&e, path,
                        "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (match.n && c->options.cont.n)
        field_forbidden(&e, path, "resourceVersionMatch is forbidden when continue is provided");
    if (match.n && !is_exact(match) && !str_eqc(match, "NotOlderThan"))
        field_not_supported(&e, path, match, matches);
    if (is_exact(match) && c->options.rv_set && c->options.rv == 0)
        field_forbidden(&e, path,
                        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    if (c->options.send_initial_set)
        field_forbidden(&e, FIELD(NULL, "sendInitialEvents"),
                        "sendInitialEvents is forbidden for list");
    if (field_errors_to_err(&e, STR("meta.k8s.io"), STR("ListOptions"), STR(""), err))
        return -1;
    if (c->options.cont.n && c->options.rv_set && c->options.rv != 0)
        return err_set(err, &ERR_BAD_REQUEST,
                       "specifying resource version is not allowed when using continue");
    return index_select(c, err);
}

/* At which revision to read; `at` says where to go on. */
static int read_position(struct call *c, struct list_position *at, struct err *err)
{
    *at = (struct list_position){0};
    if (c->options.cont.n) {
        if (list_token_read(c, at, err))
            return -1;
        if (list_token_expired(c, at->revision)) {
            tell_expired(c, at, err);
            return -1;
        }
        if (at->revision < 0)
            at->revision = 0;
        return 0;
    }
    /* Upstream deletes collections in chunks, which have a limit of their own. */
    bool legacy_exact =
        (c->options.limit > 0 || c->verb == CALL_DELETECOLLECTION) && !match_of(c).n;
    if (c->options.rv_set && c->options.rv > 0 && (is_exact(match_of(c)) || legacy_exact))
        at->revision = c->options.rv;
    return 0;
}

/* --- GET --- */

static void get_now(struct call *c)
{
    const struct store_object *o =
        store_get(vapi_store(c->api), c->resource->storage, c->ns, c->name);
    struct err err;

    if (o) {
        call_stored(c, 200, o);
        return;
    }
    err_init(&err, c->arena);
    err_not_found(&err, c->resource->group, c->resource->plural, c->name);
    call_error(c, &err);
}

void call_get(struct call *c)
{
    read_when(c, c->options.rv_set ? c->options.rv : 0, get_now);
}

/* --- LIST --- */

static void list_keep(struct list *l, const struct store_object *o)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        const struct store_object **grown = arena_alloc(l->call->arena, cap * sizeof(void *));

        if (l->n)
            memcpy(grown, l->objects, l->n * sizeof(void *));
        l->objects = grown;
        l->cap = cap;
    }
    l->objects[l->n++] = store_object_ref(o);
}

static bool on_row(void *ctx, const struct store_object *o)
{
    struct list *l = ctx;
    bool selective = l->call->options.labels.n || l->call->options.fields.n;

    if (!index_match(&l->call->options, o))
        return true;
    if (l->limit && l->n == l->limit) {
        l->more = true;
        l->rest++;
        return !selective; /* counting the rest only makes sense without selectors */
    }
    list_keep(l, o);
    return true;
}

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
    /* A list of custom resources has no Go type that would leave it out. */
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

/* Head and rows by reference. */
static void answer_rows(struct list *l)
{
    struct call *c = l->call;
    const struct resource *r = c->resource;
    struct net_slice *slices = arena_alloc(c->arena, (2 * l->n + 2) * sizeof(*slices));
    bool bare = !(r->flags & RES_ITEM_TYPE_META);
    size_t n = 0;

    slices[n++].bytes = arena_printf(c->arena,
                                     "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",\"metadata\":%s,"
                                     "\"items\":[",
                                     STR_F(r->list_kind), STR_F(r->api_version),
                                     json_text(c->arena, list_metadata(l)).p);
    for (size_t i = 0; i < l->n; i++) {
        const struct store_object *o = l->objects[i];
        size_t skip = bare ? o->skip : 0;

        if (skip)
            slices[n++].bytes = i ? STR(",{") : STR("{");
        else if (i)
            slices[n++].bytes = STR(",");
        slices[n++].bytes = str_from(o->bytes, skip);
    }
    slices[n].bytes = STR("]}\n");
    slices[n].release = on_list_sent;
    slices[n++].ctx = l;
    call_slices(c, 200, slices, n);
}

static cJSON *list_table(struct list *l)
{
    struct call *c = l->call;
    int64_t now = clock_wall_s(vapi_clock(c->api));
    cJSON *table = table_head(c->arena, c->resource, l->revision, true);
    cJSON *rows = json_get(table, "rows");

    json_set(c->arena, table, "metadata", list_metadata(l));
    for (size_t i = 0; i < l->n; i++) {
        cJSON *object = convert_tree(c->arena, c->resource, l->objects[i]);

        json_append(rows, table_row(c->arena, c->resource, object, c->include, now));
    }
    return table;
}

static cJSON *list_trees(struct list *l)
{
    struct call *c = l->call;
    struct arena *a = c->arena;
    bool partial = c->output == OUTPUT_PARTIAL;
    cJSON *list = json_new_object(a);

    json_set_str(a, list, "kind",
                 partial ? STR("PartialObjectMetadataList") : c->resource->list_kind);
    json_set_str(a, list, "apiVersion", partial ? STR("meta.k8s.io/v1") : c->resource->api_version);
    json_set(a, list, "metadata", list_metadata(l));
    cJSON *items = json_set(a, list, "items", json_new_array(a));
    for (size_t i = 0; i < l->n; i++) {
        cJSON *object = convert_tree(a, c->resource, l->objects[i]);

        if (!partial && !(c->resource->flags & RES_ITEM_TYPE_META)) {
            json_remove(object, "kind");
            json_remove(object, "apiVersion");
        }
        json_append(items, partial ? partial_metadata(a, object) : object);
    }
    return list;
}

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

    if (c->output == OUTPUT_OBJECT && all_as_stored(l) && !c->pretty && !c->yaml) {
        answer_rows(l);
        return;
    }
    cJSON *tree = c->output == OUTPUT_TABLE ? list_table(l) : list_trees(l);
    on_list_sent(l);
    call_tree(c, 200, tree);
}

struct list *list_scan(struct call *c, struct err *err)
{
    struct store *store = vapi_store(c->api);
    struct list *l = ARENA_NEW(c->arena, struct list);
    struct list_position at;

    if (read_position(c, &at, err))
        return NULL;
    /* resourceVersion=0 reads from the cache upstream, which ignores the limit. */
    bool cached = c->options.rv_set && c->options.rv == 0;
    *l = (struct list){.call = c, .limit = cached ? 0 : (size_t)c->options.limit};
    l->revision = at.revision ? at.revision : store_revision(store);
    if (!store_scan(store, c->resource->storage, c->ns.n ? c->ns : STR_NULL, at.ns, at.name,
                    at.revision, on_row, l, err))
        return l;
    list_release(l);
    if (err->kind == &ERR_EXPIRED)
        tell_expired(c, &at, err);
    return NULL;
}

static void list_now(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    struct list *l = list_scan(c, &err);
    if (l)
        list_answer(l);
    else
        call_error(c, &err);
}

void read_list_when(struct call *c, void (*next)(struct call *c))
{
    struct err err;

    err_init(&err, c->arena);
    if (read_check_options(c, &err)) {
        call_error(c, &err);
        return;
    }
    read_when(c, c->options.rv_set && !c->options.cont.n ? c->options.rv : 0, next);
}

void call_list(struct call *c)
{
    read_list_when(c, list_now);
}
