/* SPDX-License-Identifier: Apache-2.0 */
/* Stored objects in the version a reader requested, by the webhook: batch after batch, so that
 * memory holds the trees of one. Must never give a reader an object of another version, or more
 * bytes than one answer may have. */
#include "core.h"

#include <assert.h>

#include <sublet/conversion.h>
#include <sublet/crd.h>
#include <sublet/store_view.h>

#define READ_MAGIC 0x63727264u

struct conversion_read {
    unsigned magic;
    struct vapi *api;
    const struct resource *r;
    const struct store_object **objects;
    size_t n, next, bytes;
    size_t at[CONVERSION_MOST_OBJECTS]; /* of the batch */
    size_t in_batch;
    struct conversion *job;
    bool nothing; /* deferred: no object needs it */
    struct err err;
    conversion_read_done done;
    void *ctx;
};

static void end(struct conversion_read *x, const struct err *err)
{
    conversion_read_done done = x->done;
    void *ctx = x->ctx;

    x->magic = 0;
    if (done)
        done(ctx, err);
    mem_free(x);
}

/* As upstream's codec decodes it: by the version it carries. */
static cJSON *stored_tree(struct conversion_read *x, struct arena *a, const struct store_object *o)
{
    const struct crd_version *v = conversion_schema(x->api, x->r, conversion_carried(x->r, o));
    cJSON *tree = vapi_tree(a, o);

    if (v)
        crd_from_own(v, a, tree);
    return tree;
}

static const struct store_object *view_of(const struct resource *r, const struct store_object *o,
                                          const cJSON *tree)
{
    struct arena *a = arena_new(0);
    struct buf bytes = BUF_INIT(0);
    const struct store_object *made;

    json_print(&bytes, tree);
    made = store_object_with(o, buf_str(&bytes), index_labels(a, tree), index_fields(a, r, tree));
    buf_fini(&bytes);
    arena_free(a);
    return made;
}

static void next_batch(struct conversion_read *x);

static void on_converted(void *ctx, cJSON **trees, const struct err *err)
{
    struct conversion_read *x = ctx;

    assert(x->magic == READ_MAGIC);
    x->job = NULL;
    for (size_t i = 0; !err && i < x->in_batch; i++) {
        const struct store_object **place = &x->objects[x->at[i]], *made;

        made = view_of(x->r, *place, trees[i]);
        store_object_unref(*place);
        *place = made;
        x->bytes += made->bytes.n;
    }
    if (!err && x->bytes > CONVERSION_MOST_LIST) {
        err_set(&x->err, &ERR_TOO_LARGE,
                "Request entity too large: the converted objects have more than %u bytes; request "
                "them with a limit",
                CONVERSION_MOST_LIST);
        err = &x->err;
    }
    if (err)
        end(x, err);
    else
        next_batch(x);
}

static void on_nothing(void *ctx)
{
    end(ctx, NULL);
}

/* Starts the conversion of the next objects that need it, or ends. */
static void next_batch(struct conversion_read *x)
{
    struct arena *a = arena_new(CONVERSION_MOST_ARENA);
    cJSON **trees = arena_alloc(a, CONVERSION_MOST_OBJECTS * sizeof(*trees));
    size_t bytes = 0;

    x->in_batch = 0;
    for (; x->next < x->n && x->in_batch < CONVERSION_MOST_OBJECTS; x->next++) {
        const struct store_object *o = x->objects[x->next];

        if (!conversion_needed_stored(x->r, o))
            continue;
        bytes += o->bytes.n;
        if (x->in_batch && bytes > CONVERSION_MOST_BATCH)
            break;
        trees[x->in_batch] = stored_tree(x, a, o);
        x->at[x->in_batch++] = x->next;
    }
    if (x->in_batch) {
        x->job = conversion_start(x->api, x->r, x->r->api_version, a, trees, x->in_batch,
                                  on_converted, x);
        return;
    }
    arena_free(a);
    if (x->nothing)
        api_defer(x->api, on_nothing, x);
    else
        end(x, NULL);
}

struct conversion_read *conversion_read(struct vapi *api, const struct resource *r,
                                        const struct store_object **objects, size_t n,
                                        conversion_read_done done, void *ctx)
{
    struct conversion_read *x = NEW(struct conversion_read);

    *x = (struct conversion_read){.magic = READ_MAGIC,
                                  .api = api,
                                  .r = r,
                                  .objects = objects,
                                  .n = n,
                                  .nothing = true,
                                  .done = done,
                                  .ctx = ctx};
    err_init(&x->err, NULL);
    next_batch(x);
    x->nothing = false;
    return x;
}

void conversion_read_cancel(struct conversion_read *x)
{
    if (!x)
        return;
    assert(x->magic == READ_MAGIC);
    x->done = NULL;
    if (!x->job)
        return; /* deferred: its end frees it */
    conversion_cancel(x->job);
    x->magic = 0;
    mem_free(x);
}
