/* SPDX-License-Identifier: Apache-2.0 */
/* GET and LIST: which objects are read, and at which revision; list_rows.c sends a list. A read
 * never builds a tree unless another form or version is requested: GET is the stored row, by
 * reference. A read must never answer with a state older than the resourceVersion it names, nor
 * with one that is not yet durable. */
#include "verbs.h"

#include "../flow/flow.h"
#include "../respond/respond.h"
#include "../watch/watch.h"

#include <assert.h>
#include <string.h>

#include <sublet/conversion.h>

/* 410 with a token that continues from the same key at the latest revision. */
static void refuse_expired(struct call *c, const struct list_position *at, struct err *err)
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

/* The revision to read; `at` has the position to continue from. */
static int read_position(struct call *c, struct list_position *at, struct err *err)
{
    *at = (struct list_position){0};
    if (c->options.cont.n) {
        if (list_token_read(c, at, err))
            return -1;
        if (list_token_expired(c, at->revision)) {
            refuse_expired(c, at, err);
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
    if (commit_not_found(c, &err))
        call_error(c, &err);
}

void call_get(struct call *c)
{
    read_when(c, c->options.rv_set ? c->options.rv : 0, get_now);
}

/* --- LIST --- */

static bool on_row(void *ctx, const struct store_object *o)
{
    struct list *l = ctx;
    bool selective = l->call->options.labels.n || l->call->options.fields.n;

    if (!index_match(&l->call->options, o))
        return true;
    if (l->limit && l->n == l->limit) {
        l->more = true;
        l->rest++;
        return !selective; /* the remaining count is only reported without selectors */
    }
    ARENA_GROW(l->call->arena, l->objects, l->n, l->cap);
    l->objects[l->n++] = store_object_ref(o);
    return true;
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
        refuse_expired(c, &at, err);
    return NULL;
}

/* The bytes of those that a webhook converts first. */
static size_t bytes_to_convert(const struct list *l)
{
    size_t bytes = 0;

    for (size_t i = 0; l->call->resource->conversion && i < l->n; i++)
        if (conversion_needed_stored(l->call->resource, l->objects[i]))
            bytes += l->objects[i]->bytes.n;
    return bytes;
}

struct conversion_of_list {
    struct list *list;
    void (*next)(void *ctx);
    void *ctx;
};

static void on_list_converted(void *ctx, const struct err *err)
{
    struct conversion_of_list *x = ctx;

    if (!err) {
        x->next(x->ctx);
        return;
    }
    list_release(x->list);
    call_error(x->list->call, err);
}

void read_converted(struct list *l, void (*next)(void *ctx), void *ctx)
{
    struct call *c = l->call;
    size_t bytes = c->done ? 0 : bytes_to_convert(l);
    struct conversion_of_list *x;
    struct err err;

    if (!bytes) {
        next(ctx);
        return;
    }
    if (!budget_more(c, 2 * bytes)) {
        err_init(&err, c->arena);
        list_release(l);
        if (flow_too_many(&err))
            call_error(c, &err);
        return;
    }
    x = ARENA_NEW(c->arena, struct conversion_of_list);
    *x = (struct conversion_of_list){l, next, ctx};
    conversion_read(c->api, c->resource, l->objects, l->n, on_list_converted, x);
}

static void on_list_ready(void *ctx)
{
    list_answer(ctx);
}

static void list_now(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    struct list *l = list_scan(c, &err);
    if (l)
        read_converted(l, on_list_ready, l);
    else
        call_error(c, &err);
}

void read_list_when(struct call *c, void (*next)(struct call *c))
{
    struct list_position at;
    struct err err;

    err_init(&err, c->arena);
    if (read_check_options(c, &err)) {
        call_error(c, &err);
        return;
    }
    if (!read_position(c, &at, &err) && at.revision &&
        at.revision < store_revision(vapi_store(c->api)))
        read_past(c, at.revision, next);
    else
        read_when(c, c->options.rv_set && !c->options.cont.n ? c->options.rv : 0, next);
}

void call_list(struct call *c)
{
    read_list_when(c, list_now);
}
