/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * DELETE of a collection: every matching object is deleted as if by a request of its own, with the
 * user's permissions and options; the answer is the list before. It is not atomic, as upstream. It
 * must never have more deletions in progress than its window, however large the collection. */
#include "verbs.h"

#include "../respond/respond.h"

#include <assert.h>
#include <string.h>

#include <sublet/net.h>

#define WINDOW 256

struct collection {
    struct call *call;
    struct list *list; /* the matching objects, before */
    size_t next, under_way;
    bool pumping, failed;
    struct err *err; /* the first failure */
};

/* ---- WINDOW deletions at a time ---- */

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

static void pump(struct collection *d)
{
    if (d->pumping)
        return;
    d->pumping = true;
    while (!d->failed && d->next < d->list->n && d->under_way < WINDOW) {
        const struct store_object *o = d->list->objects[d->next++];
        struct call *c = d->call;
        struct call *child = call_inside(c->api, &c->user, CALL_DELETE, c->resource, NULL, o->ns,
                                         o->name, on_deleted, d);

        child->options = c->options;
        d->under_way++;
        call_run(child);
    }
    d->pumping = false;
    if (!d->under_way && (d->failed || d->next == d->list->n)) {
        if (d->failed) {
            list_release(d->list);
            call_error(d->call, d->err);
        } else {
            list_answer(d->list);
        }
    }
}

static void on_ready(void *ctx)
{
    pump(ctx);
}

static void delete_all(struct call *c)
{
    struct collection *d = ARENA_NEW(c->arena, struct collection);
    struct err err;

    err_init(&err, c->arena);
    d->call = c;
    d->list = list_scan(c, &err);
    if (d->list)
        read_converted(d->list, on_ready, d);
    else
        call_error(c, &err);
}

void call_delete_collection(struct call *c)
{
    delete_warn(c);
    read_list_when(c, delete_all);
}
