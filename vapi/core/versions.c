/* SPDX-License-Identifier: Apache-2.0 */
/* What a write wishes to see in other versions, and what came of it. Equal objects are converted
 * once. Must never give what was made of another object, nor run two conversions of a list at
 * once. */
#include "versions.h"

#include <assert.h>

#include <sublet/conversion.h>

#include "calls.h"

struct version_wish {
    struct version_wish *next;
    struct call *call;
    struct versions *list;
    const cJSON *from;
    struct str to;
    cJSON *made; /* NULL: not yet, or it failed */
    bool over;
    struct err err;
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
};

static const struct err *refuse(struct call *c, const char *why)
{
    struct err *err = ARENA_NEW(c->arena, struct err);
    int failed;

    err_init(err, c->arena);
    failed = err_set(err, &ERR_TOO_LARGE, "%s", why);
    assert(failed);
    return err;
}

const cJSON *versions_find(struct versions *v, struct call *c, const cJSON *object, struct str to,
                           const struct err **ret_failed)
{
    struct version_wish *w;

    *ret_failed = NULL;
    for (w = v->first; w; w = w->next)
        if (str_eq(w->to, to) && json_equal(w->from, object)) {
            *ret_failed = w->over && !w->made ? &w->err : NULL;
            return w->made;
        }
    if (v->n == VERSIONS_MOST)
        *ret_failed = refuse(c, "too many conversions of one object");
    else if (arena_left(c->arena) < VERSIONS_LEAST_ARENA)
        *ret_failed = refuse(c, "the conversions of the object are too large");
    if (*ret_failed)
        return NULL;
    w = ARENA_NEW(c->arena, struct version_wish);
    *w = (struct version_wish){.next = v->first,
                               .call = c,
                               .list = v,
                               .from = json_copy(c->arena, object),
                               .to = arena_str(c->arena, to)};
    err_init(&w->err, c->arena);
    v->first = w;
    v->n++;
    return NULL;
}

static struct version_wish *next_wish(const struct versions *v)
{
    struct version_wish *found = NULL;

    for (struct version_wish *w = v->first; w; w = w->next)
        if (!w->over)
            found = w; /* the oldest */
    return found;
}

static void on_made(void *ctx, cJSON **objects, const struct err *err)
{
    struct version_wish *w = ctx;

    assert(w->call->magic == CALL_MAGIC);
    w->over = true;
    if (err)
        w->err = *call_keep_error(w->call->arena, err);
    else
        w->made = json_copy(w->call->arena, objects[0]);
    if (err && w->list->strict)
        w->done(w->ctx, &w->err);
    else if (!versions_make(w->list, w->done, w->ctx))
        w->done(w->ctx, NULL);
}

bool versions_make(struct versions *v, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct version_wish *w = next_wish(v);

    if (!w)
        return false;
    w->done = done;
    w->ctx = ctx;
    conversion_start_one(w->call->api, w->call->resource, w->to, w->from, on_made, w);
    return true;
}

bool versions_wanted(const struct versions *v)
{
    return next_wish(v) != NULL;
}

bool versions_failed(const struct versions *v)
{
    for (const struct version_wish *w = v->first; w; w = w->next)
        if (w->over && !w->made)
            return true;
    return false;
}
