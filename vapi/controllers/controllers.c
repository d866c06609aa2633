/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and closes all built-in controllers together. Must know nothing about any of them. */
#include "util.h"

#include <assert.h>

#include <sublet/metrics.h>

#define CONTROLLERS_MAGIC 0x6374726cu

static const struct controller_def *const DEFS[] = {
#define CONTROLLER_ROW(name) &name,
    API_CONTROLLERS(CONTROLLER_ROW) CONTROLLERS(CONTROLLER_ROW)
#undef CONTROLLER_ROW
};
#define N_DEFS          COUNT(DEFS)
#define COUNT_ROW(name) +1
enum { N_API_DEFS = 0 API_CONTROLLERS(COUNT_ROW) }; /* start first */
#undef COUNT_ROW

struct controllers {
    unsigned magic;
    struct controller *all[N_DEFS];
    size_t n, open;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static const enum metric QUEUE_METRICS[] = {METRIC_WORKQUEUE_DEPTH, METRIC_WORKQUEUE_ADDS,
                                            METRIC_WORKQUEUE_RETRIES, METRIC_WORKQUEUE_WORKING};

static void on_metrics(void *ctx, struct buf *out)
{
    const struct controllers *cs = ctx;
    struct buf labels = BUF_INIT(0);

    assert(cs->magic == CONTROLLERS_MAGIC);
    for (size_t t = 0; t < COUNT(QUEUE_METRICS); t++) {
        metrics_family(out, QUEUE_METRICS[t]);
        for (size_t i = 0; i < cs->n; i++) {
            struct worker_stats stats;
            const char *name = controller_stats(cs->all[i], &stats);

            buf_clear(&labels);
            metrics_label(&labels, "name", str_c(name));
            const uint64_t values[COUNT(QUEUE_METRICS)] = {stats.waiting, stats.adds, stats.retries,
                                                           stats.working};
            metrics_sample_u64(out, QUEUE_METRICS[t], buf_str(&labels), values[t]);
        }
    }
    buf_fini(&labels);
}

struct controllers *controllers_start(struct vapi *api, bool native)
{
    struct controllers *cs = NEW(struct controllers);

    cs->magic = CONTROLLERS_MAGIC;
    cs->n = native ? N_DEFS : N_API_DEFS;
    for (size_t i = 0; i < cs->n; i++)
        cs->all[i] = controller_start(api, DEFS[i]);
    cs->open = cs->n;
    vapi_add_metrics(api, on_metrics, cs);
    return cs;
}

static void on_closed(void *ctx)
{
    struct controllers *cs = ctx;

    assert(cs->magic == CONTROLLERS_MAGIC && cs->open);
    if (--cs->open)
        return;
    void (*closed)(void *) = cs->closed;
    void *closed_ctx = cs->closed_ctx;
    cs->magic = 0;
    mem_free(cs);
    closed(closed_ctx);
}

void controllers_close(struct controllers *cs, void (*closed)(void *ctx), void *ctx)
{
    assert(cs->magic == CONTROLLERS_MAGIC);
    cs->closed = closed;
    cs->closed_ctx = ctx;
    for (size_t i = 0; i < cs->n; i++)
        controller_close(cs->all[i], on_closed, cs);
}

int64_t controllers_next_due(const struct controllers *cs)
{
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < cs->n; i++) {
        int64_t one = controller_next_due(cs->all[i]);

        due = one < due ? one : due;
    }
    return due;
}

void controllers_wake(struct controllers *cs)
{
    for (size_t i = 0; i < cs->n; i++)
        controller_wake(cs->all[i]);
}

void controllers_rescan(struct controllers *cs)
{
    for (size_t i = 0; i < cs->n; i++)
        controller_rescan(cs->all[i]);
}
