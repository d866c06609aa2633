/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded host as a whole: its hooks, and the life of its parts.
 * Must never touch the store but to read: every write is a request of the in-process client.
 *
 *   new: hooks, taken addresses -> (API starts) -> start: seeds, parts -> close: parts, hooks, end
 */
#include "impl.h"

#include <assert.h>

/* --- hooks --- */

static bool wants_admit(void *ctx, const struct resource *r, const cJSON *object, const cJSON *old)
{
    struct embedded *e = ctx;

    (void)old;
    return !e->closing && services_want(r, object);
}

static void admit(void *ctx, struct arena *a, const struct resource *r, cJSON *object,
                  const cJSON *old, bool dry_run,
                  void (*done)(void *done_ctx, const struct err *err), void *done_ctx)
{
    struct embedded *e = ctx;

    (void)r;
    services_admit(e->services, a, object, old, dry_run, done, done_ctx);
}

static void admit_undo(void *ctx, const struct resource *r, const cJSON *object)
{
    struct embedded *e = ctx;

    if (services_want(r, object))
        services_undo(e->services, object);
}

static void connect_pod(void *ctx, struct proxy *p)
{
    struct embedded *e = ctx;

    assert(e->magic == EMBEDDED_MAGIC);
    logs_connect(e->logs, p);
}

/* --- life --- */

int embedded_check_nodes(struct str text, struct err *err)
{
    struct arena *a = arena_new(0);
    cJSON *nodes;
    int failed = node_file_parse(a, text, &nodes, err);

    arena_free(a);
    return failed;
}

int embedded_new(struct vapi *api, const struct embedded_options *options, struct embedded **ret,
                 struct err *err)
{
    struct embedded *e;

    if (embedded_check_nodes(options->nodes, err))
        return -1;
    e = NEW(struct embedded);
    *e = (struct embedded){.magic = EMBEDDED_MAGIC, .api = api};
    e->nodes = mem_str(options->nodes);
    e->external_scheduler = options->external_scheduler;
    e->external_controllers = options->external_controllers;
    e->scheduler = scheduler_new(e);
    e->kubelet = kubelet_new(e);
    e->evictions = evictions_new();
    e->services = services_new(e);
    e->logs = logs_new(e);

    vapi_set_hooks(e->api, &(struct vapi_hooks){
                               .ctx = e,
                               .admit = admit,
                               .wants_admit = wants_admit,
                               .admit_undo = admit_undo,
                               .connect = connect_pod,
                           });
    *ret = e;
    return 0;
}

/* Parts that upstream's programs take over are not started. */
static bool part_wanted(const struct embedded *e, enum embedded_part part)
{
    if (part == PART_SCHEDULER)
        return !e->external_scheduler;
    return part != PART_EVICT || !e->external_controllers;
}

void embedded_start(struct embedded *e)
{
    static const struct controller_def *const defs[N_PARTS] = {
        &NODE_PART,  &EVICT_PART,  &SCHEDULER_PART, &KUBELET_PART,
        &CLAIM_PART, &VOLUME_PART, &SERVICE_PART,
    };

    assert(e->magic == EMBEDDED_MAGIC && !e->open);
    for (size_t i = 0; i < N_PARTS; i++) {
        if (part_wanted(e, (enum embedded_part)i))
            e->parts[e->n_parts++] = controller_start_with(e->api, defs[i], e);
    }
    e->open = e->n_parts;
    nodes_seed(e);
    volumes_seed(e);
    services_seed(e);
}

static void on_part_closed(void *ctx)
{
    struct embedded *e = ctx;

    assert(e->magic == EMBEDDED_MAGIC && e->open);
    if (--e->open == 0) {
        void (*closed)(void *) = e->closed;
        void *closed_ctx = e->closed_ctx;

        vapi_set_hooks(e->api, &(struct vapi_hooks){NULL});
        e->scheduler = scheduler_free(e->scheduler);
        e->kubelet = kubelet_free(e->kubelet);
        e->evictions = evictions_free(e->evictions);
        e->logs = logs_free(e->logs);
        mem_free(e->nodes.p);
        e->magic = 0;
        mem_free(e);
        closed(closed_ctx);
    }
}

void embedded_close(struct embedded *e, void (*closed)(void *ctx), void *ctx)
{
    size_t started = e->open;

    assert(e->magic == EMBEDDED_MAGIC && !e->closing);
    e->closing = true;
    e->closed = closed;
    e->closed_ctx = ctx;
    e->open = started + 1;
    for (size_t i = 0; i < started; i++)
        controller_close(e->parts[i], on_part_closed, e);
    services_close(e->services, on_part_closed, e);
}

int64_t embedded_next_due(const struct embedded *e)
{
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < e->open; i++) {
        int64_t one = controller_next_due(e->parts[i]);

        due = one < due ? one : due;
    }
    return due;
}

void embedded_wake(struct embedded *e)
{
    for (size_t i = 0; i < e->open; i++)
        controller_wake(e->parts[i]);
}
