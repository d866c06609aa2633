/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of an object that a write of a custom resource needs, where only a webhook can make
 * them: the base as requested, the object as it is stored, both as the managers of its fields know
 * them. The machine of the write pauses; nothing here stores or answers. Must never give a write
 * what was converted from another object than the one it has. */
#include "converted.h"

#include "../../core/meta.h"

#include <assert.h>

#include <sublet/conversion.h>
#include <sublet/crd.h>

/* ---- the base ---- */

struct base {
    struct call *call;
    const struct store_object *object; /* a reference */
    converted_done done;
    void *ctx;
};

static void on_base(void *ctx, const struct err *err)
{
    struct base *b = ctx;
    cJSON *tree = err ? NULL : vapi_tree(b->call->arena, b->object);

    store_object_unref(b->object);
    b->done(b->ctx, tree, err);
}

bool converted_base(struct call *c, const struct store_object *base, converted_done done, void *ctx)
{
    struct base *b;

    if (!conversion_needed_stored(c->resource, base))
        return false;
    b = ARENA_NEW(c->arena, struct base);
    *b = (struct base){c, store_object_ref(base), done, ctx};
    conversion_read(c->api, c->resource, &b->object, 1, on_base, b);
    return true;
}

/* ---- another version of a tree ---- */

struct other {
    struct call *call;
    converted_done done;
    void *ctx;
};

static void on_other(void *ctx, cJSON **objects, const struct err *err)
{
    struct other *o = ctx;

    o->done(o->ctx, err ? NULL : json_copy(o->call->arena, objects[0]), err);
}

void converted_tree(struct call *c, const cJSON *object, struct str to, converted_done done,
                    void *ctx)
{
    struct other *o = ARENA_NEW(c->arena, struct other);

    *o = (struct other){c, done, ctx};
    conversion_start_one(c->api, c->resource, to, object, on_other, o);
}

cJSON *converted_again(struct call *c, const cJSON *stored)
{
    const struct resource *r = c->resource;
    const struct crd_version *v = conversion_schema(c->api, r, r->storage_version);
    cJSON *tree = json_copy(c->arena, stored);

    if (v)
        crd_from_own(v, c->arena, tree);
    return tree;
}

/* ---- managers ---- */

cJSON *converted_find(struct call *c, const cJSON *object, struct str to)
{
    const struct err *unused;
    const cJSON *made = versions_find(&call_entry(c)->of_managers, c, object, to, &unused);

    return made ? json_copy(c->arena, made) : NULL;
}

bool converted_failed(struct call *c)
{
    return versions_failed(&call_entry(c)->of_managers);
}

/* Upstream's updates do without managers when one fails, an apply does not. */
bool converted_wishes(struct call *c, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct versions *v = &call_entry(c)->of_managers;

    v->strict = c->verb == CALL_PATCH && c->patch == PATCH_TYPE_APPLY;
    return versions_make(v, done, ctx);
}
