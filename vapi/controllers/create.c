/* SPDX-License-Identifier: Apache-2.0 */
/* Creates many pods for one owner in growing batches. Must never start a larger batch after a
 * refusal: a template that a quota or a policy refuses costs one request per attempt. */
#include "util.h"

static void on_created(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *pod)
{
    struct pod_batch *b = ctx;

    if (!err) {
        b->created++;
        reconcile_event(r, b->owner, "Normal", "SuccessfulCreate", "Created pod: %.*s",
                        STR_F(pod->name));
        return;
    }
    b->refused++;
    reconcile_take(r, err);
    if (reconcile_error(r))
        reconcile_event(r, b->owner, "Warning", "FailedCreate", "Error creating: %.*s",
                        STR_F(err->message));
}

static void issue(struct reconcile *r, void *ctx)
{
    struct pod_batch *b = ctx;
    const struct resource *pods = reconcile_resource(r, "", "pods");
    size_t n = b->wanted - b->issued;

    if (!n || b->refused) {
        b->done(r, b->ctx);
        return;
    }
    n = n < b->size ? n : b->size;
    b->size *= 2;
    for (size_t i = 0; i < n; i++) {
        const cJSON *pod = b->make(b->ctx, b->issued++);

        reconcile_create(r, pods, meta_ns(b->owner), pod);
        reconcile_then(r, on_created, b);
    }
    reconcile_next(r, issue, b);
}

void pods_create(struct pod_batch *b)
{
    b->size = 1;
    issue(b->run, b);
}
