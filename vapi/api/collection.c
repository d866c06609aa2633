/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * DELETE of a collection: every object that matches is deleted like by a request of its own, with
 * the caller's rights and options; the answer is the list as it was. It is not atomic, as upstream.
 * It must never have more removals under way than its window, however large the collection. */
#include "api.h"

#include <assert.h>
#include <string.h>

#include <sublet/net.h>

#define WINDOW 256

struct collection {
    struct call *call;
    const struct store_object **items; /* references */
    size_t n, cap, next, under_way;
    bool pumping, failed;
    int64_t revision;
    struct err *err; /* the first failure */
};

/* ---- what matches ---- */

static void keep(struct collection *d, const struct store_object *o)
{
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 64;
        const struct store_object **grown = arena_alloc(d->call->arena, cap * sizeof(*grown));

        if (d->n)
            memcpy(grown, d->items, d->n * sizeof(*grown));
        d->items = grown;
        d->cap = cap;
    }
    d->items[d->n++] = store_object_ref(o);
}

static bool on_row(void *ctx, const struct store_object *o)
{
    struct collection *d = ctx;
    const struct call_options *options = &d->call->options;

    if (index_match(options, o))
        keep(d, o);
    return options->limit == 0 || d->n < (size_t)options->limit;
}

/* ---- the answer ---- */

static void release_items(void *ctx)
{
    struct collection *d = ctx;

    for (size_t i = 0; i < d->n; i++)
        store_object_unref(d->items[i]);
    d->n = 0;
}

static struct str list_head(struct collection *d)
{
    const struct resource *r = d->call->resource;

    return arena_printf(d->call->arena,
                        "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",\"metadata\":"
                        "{\"resourceVersion\":\"%lld\"},\"items\":[",
                        STR_F(r->list_kind), STR_F(r->api_version), (long long)d->revision);
}

static void answer_rows(struct collection *d)
{
    struct call *c = d->call;
    struct net_slice *slices = arena_alloc(c->arena, (2 * d->n + 2) * sizeof(*slices));
    size_t n = 0;

    slices[n++].bytes = list_head(d);
    for (size_t i = 0; i < d->n; i++) {
        const struct store_object *o = d->items[i];

        if (o->skip)
            slices[n++].bytes = i ? STR(",{") : STR("{");
        else if (i)
            slices[n++].bytes = STR(",");
        slices[n++].bytes = str_from(o->bytes, o->skip);
    }
    slices[n++] = (struct net_slice){STR("]}\n"), release_items, d};
    call_slices(c, 200, slices, n);
}

static void answer_trees(struct collection *d)
{
    struct call *c = d->call;
    struct arena *a = c->arena;
    cJSON *list = json_new_object(a), *items;

    json_set_str(a, list, "kind", c->resource->list_kind);
    json_set_str(a, list, "apiVersion", c->resource->api_version);
    meta_set_revision(a, list, d->revision);
    items = json_set(a, list, "items", json_new_array(a));
    for (size_t i = 0; i < d->n; i++)
        json_append(items, convert_tree(a, c->resource, d->items[i]));
    release_items(d);
    call_tree(c, 200, list);
}

static bool all_as_stored(const struct collection *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (!convert_is_identity(d->call->resource, d->items[i]))
            return false;
    return true;
}

static void finish(struct collection *d)
{
    if (d->failed) {
        release_items(d);
        call_error(d->call, d->err);
    } else if (all_as_stored(d)) {
        answer_rows(d);
    } else {
        answer_trees(d);
    }
}

/* ---- one after the other, WINDOW at a time ---- */

static void pump(struct collection *d);

static void on_deleted(void *ctx, const struct err *err, const struct store_object *object)
{
    struct collection *d = ctx;

    (void)object;
    assert(d->call->magic == CALL_MAGIC && d->under_way);
    d->under_way--;
    if (err && err->kind != &ERR_NOT_FOUND && !d->failed) {
        d->failed = true;
        d->err = call_keep_error(d->call->arena, err);
    }
    pump(d);
}

static void delete_one(struct collection *d, const struct store_object *o)
{
    struct call *c = d->call;
    struct call *child = call_inside(c->api, &c->user, CALL_DELETE, c->resource, NULL, o->ns,
                                     o->name, on_deleted, d);

    child->options = c->options;
    d->under_way++;
    call_run(child);
}

static void pump(struct collection *d)
{
    if (d->pumping)
        return;
    d->pumping = true;
    while (!d->failed && d->next < d->n && d->under_way < WINDOW)
        delete_one(d, d->items[d->next++]);
    d->pumping = false;
    if (!d->under_way && (d->failed || d->next == d->n))
        finish(d);
}

void call_delete_collection(struct call *c)
{
    struct collection *d = ARENA_NEW(c->arena, struct collection);
    struct store *store = vapi_store(c->api);

    struct err err;

    d->call = c;
    d->revision = store_revision(store);
    err_init(&err, c->arena);
    if (read_check_options(c, &err) ||
        store_scan(store, c->resource->storage, c->ns, STR_NULL, STR_NULL, 0, on_row, d, &err)) {
        release_items(d);
        call_error(c, &err);
        return;
    }
    pump(d);
}
