/* SPDX-License-Identifier: Apache-2.0 */
/* What admission refused, warned of and let in, counted since the process began. Must have no name
 * that a tenant chooses in a label: reasons are a table, pools are the admin's. */
#include "admission/admission.h"

#include <assert.h>

#include <sublet/clock.h>
#include <sublet/hash.h>
#include <sublet/metrics.h>

#include "gpu/ledger.h"

#define REJECTIONS_MAGIC 0x72656a65u
#define MOST_POOLS       1024

static const char *const REASONS[N_REJECTIONS] = {
    [REJECTED_POOL] = "pool",
    [REJECTED_GUARDRAIL] = "guardrail",
    [REJECTED_RATE] = "rate",
    [REJECTED_QUOTA] = "quota",
    [REJECTED_POD] = "pod",
    [REJECTED_CLASS] = "class",
    [REJECTED_NODE] = "node",
    [REJECTED_CLAIM] = "claim",
    [REJECTED_OBJECT] = "object",
    [REJECTED_HOST] = "host",
    [REJECTED_NOT_READY] = "not-ready",
};

struct created {
    struct map_entry by_pool;
    struct str pool; /* on the heap */
    uint64_t n;
};
struct rejections {
    unsigned magic;
    uint64_t n[N_REJECTIONS], warnings;
    struct map created;
};

struct rejections *sync_rejections_new(void)
{
    struct rejections *r = NEW(struct rejections);

    r->magic = REJECTIONS_MAGIC;
    return r;
}

static void drop(void *ctx, struct map_entry *e)
{
    struct rejections *r = ctx;
    struct created *c = CONTAINER(e, struct created, by_pool);

    map_remove(&r->created, e);
    mem_free(c->pool.p);
    mem_free(c);
}

struct rejections *sync_rejections_free(struct rejections *r)
{
    if (!r)
        return NULL;
    assert(r->magic == REJECTIONS_MAGIC);
    map_each(&r->created, drop, r);
    r->magic = 0;
    return mem_free(r);
}

int sync_rejected(struct syncer *s, enum rejection why, bool dry_run, const struct err *err)
{
    assert(s->rejections->magic == REJECTIONS_MAGIC);
    if (err->kind == &ERR_UNAVAILABLE || err->kind == &ERR_TIMEOUT)
        why = REJECTED_NOT_READY;
    s->rejections->n[why] += !dry_run;
    return -1;
}

void sync_rejections_warned(struct syncer *s)
{
    s->rejections->warnings++;
}

void sync_rejections_created(struct syncer *s, struct str pool)
{
    struct rejections *r = s->rejections;
    struct map_entry *e = map_get(&r->created, pool);
    struct created *c;

    if (!e && map_count(&r->created) >= MOST_POOLS)
        return;
    if (!e) {
        c = NEW(struct created);
        c->pool = mem_str(pool);
        map_put(&r->created, &c->by_pool, c->pool);
        e = &c->by_pool;
    }
    CONTAINER(e, struct created, by_pool)->n++;
}

/* --- metrics --- */

static void write_created(void *ctx, struct map_entry *e)
{
    const struct created *c = CONTAINER(e, struct created, by_pool);
    struct buf labels = BUF_INIT(0);

    metrics_label(&labels, "pool", c->pool);
    metrics_sample_u64(ctx, METRIC_GPU_PODS_CREATED, buf_str(&labels), c->n);
    buf_fini(&labels);
}

static void oldest(void *ctx, const struct ledger_waiting *w)
{
    int64_t created_us, *first = ctx;

    if (time_parse(w->created, &created_us) && created_us < *first)
        *first = created_us;
}

/* A clock that was set back counts as no time. */
static void write_oldest(struct syncer *s, struct buf *out)
{
    int64_t now_us = syncer_now_s(s) * 1000000;

    metrics_family(out, METRIC_GPU_QUEUE_OLDEST);
    for (size_t i = 0; i < s->config->n_bindings; i++) {
        struct str pool = s->config->bindings[i].pool->name;
        struct buf labels = BUF_INIT(0);
        int64_t first_us = now_us;

        sync_ledger_each_waiting(s->ledger, pool, oldest, &first_us);
        metrics_label(&labels, "pool", pool);
        metrics_sample(out, METRIC_GPU_QUEUE_OLDEST, buf_str(&labels),
                       (double)(now_us - first_us) / 1e6);
        buf_fini(&labels);
    }
}

void sync_rejections_metrics(void *syncer, struct buf *out)
{
    struct syncer *s = syncer;
    struct map created = s->rejections->created;

    metrics_family(out, METRIC_REJECTIONS);
    for (size_t i = 0; i < N_REJECTIONS; i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "reason", str_c(REASONS[i]));
        metrics_sample_u64(out, METRIC_REJECTIONS, buf_str(&labels), s->rejections->n[i]);
        buf_fini(&labels);
    }
    metrics_single_u64(out, METRIC_WARNINGS, s->rejections->warnings);
    if (!s->config->n_bindings)
        return;
    metrics_family(out, METRIC_GPU_PODS_CREATED);
    map_each(&created, write_created, out);
    write_oldest(s, out);
}
