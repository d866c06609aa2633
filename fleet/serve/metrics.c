/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of `sublet fleet`: usage of one microsecond, computed as the reports are, so that
 * held + idle + unhealthy is the capacity in each scrape. Must bound its series: pools are the
 * admin's, tenants beyond a limit are counted, not named. */
#include "metrics.h"

#include <sublet/metrics.h>

#define MOST_SERIES 10000 /* of tenants and pools, per family */

static double gpus(struct exact v)
{
    return (double)v.num / (double)v.den;
}

static struct str pool_label(struct arena *a, struct str pool)
{
    struct buf labels = BUF_INIT(0);
    struct str copy;

    metrics_label(&labels, "pool", pool);
    copy = arena_str(a, buf_str(&labels));
    buf_fini(&labels);
    return copy;
}

static struct str line_labels(struct arena *a, const struct fleet_usage_line *l)
{
    struct buf labels = BUF_INIT(0);
    struct str copy;

    metrics_label(&labels, "pool", l->values[USAGE_POOL]);
    metrics_label(&labels, "tenant", l->values[USAGE_TENANT]);
    copy = arena_str(a, buf_str(&labels));
    buf_fini(&labels);
    return copy;
}

static void write_pools(struct arena *a, struct buf *out, const struct usage *u)
{
    static const struct {
        enum metric metric;
        size_t offset; /* of a sum of a balance */
    } families[] = {
        {METRIC_FLEET_CAPACITY, offsetof(struct fleet_usage_balance, capacity)},
        {METRIC_FLEET_IDLE, offsetof(struct fleet_usage_balance, idle)},
        {METRIC_FLEET_UNHEALTHY, offsetof(struct fleet_usage_balance, unhealthy)},
        {METRIC_FLEET_UNMATCHED, offsetof(struct fleet_usage_balance, unmatched)},
    };

    for (size_t i = 0; i < COUNT(families); i++) {
        metrics_family(out, families[i].metric);
        for (size_t k = 0; k < u->n_balances; k++) {
            const struct fleet_usage_balance *b = &u->balances[k];
            const struct exact *sum = (const void *)((const char *)b + families[i].offset);

            metrics_sample(out, families[i].metric, pool_label(a, b->pool), gpus(*sum));
        }
    }
}

static void write_tenants(struct arena *a, struct buf *out, const struct usage *u, size_t refused)
{
    size_t n = 0, more;

    while (n < u->n_lines && u->lines[n]->kind == USAGE_HELD)
        n++;
    more = n > MOST_SERIES ? n - MOST_SERIES : 0;
    n -= more;
    metrics_family(out, METRIC_FLEET_HELD);
    for (size_t i = 0; i < n; i++)
        metrics_sample(out, METRIC_FLEET_HELD, line_labels(a, u->lines[i]),
                       gpus(u->lines[i]->gpu_us));
    metrics_family(out, METRIC_FLEET_PODS);
    for (size_t i = 0; i < n; i++)
        metrics_sample_u64(out, METRIC_FLEET_PODS, line_labels(a, u->lines[i]), u->lines[i]->pods);
    metrics_single_u64(out, METRIC_FLEET_NOT_SHOWN, more > refused ? more : refused);
}

static void write_ledger(struct buf *out, const struct fleet_now *now)
{
    metrics_single_u64(out, METRIC_FLEET_LEDGER_TROUBLE, now->trouble);
    metrics_single_u64(out, METRIC_FLEET_LEDGER_WAITING, now->waiting.rows);
    metrics_single_u64(out, METRIC_FLEET_LEDGER_FULL, now->waiting.full);
}

int fleet_metrics(struct arena *a, struct buf *out, const struct fleet_now *now, struct err *err)
{
    struct usage u;

    if (now->held &&
        fleet_usage_compute(a, now->held, 0, 1, 1u << USAGE_TENANT | 1u << USAGE_POOL, &u, err))
        return -1;
    metrics_single_u64(out, METRIC_FLEET_LEADER, now->leader);
    if (now->seen_us)
        metrics_single(out, METRIC_FLEET_UNSEEN, (double)(now->now_us - now->seen_us) / 1e6);
    metrics_single(out, METRIC_FLEET_UNOBSERVED, (double)now->unobserved_us / 1e6);
    if (now->remote)
        write_ledger(out, now);
    if (!now->held)
        return 0;
    write_pools(a, out, &u);
    write_tenants(a, out, &u, now->refused);
    return 0;
}

/* --- nodes --- */

static void write_nodes(struct buf *out, const struct fleet_watch_view *v)
{
    metrics_family(out, METRIC_FLEET_NODES);
    for (size_t p = 0; p <= v->n_pools; p++)
        for (size_t i = 0; i <= N_FLEET_WATCH_STATES; i++) {
            struct buf labels = BUF_INIT(0);
            bool all = i == N_FLEET_WATCH_STATES;

            metrics_label(&labels, "pool", p < v->n_pools ? v->pools[p].name : STR(""));
            metrics_label(&labels, "state", all ? STR("any") : str_c(FLEET_WATCH_STATES[i]));
            metrics_sample_u64(out, METRIC_FLEET_NODES, buf_str(&labels),
                               all ? v->sums[p].nodes : v->sums[p].states[i]);
            buf_fini(&labels);
        }
}

static void write_misuse(struct buf *out, enum metric metric, const struct fleet_watch_view *v)
{
    metrics_family(out, metric);
    for (size_t i = 0; i < v->n_misuse; i++) {
        const struct fleet_watch_misuse *m = &v->misuse[i];
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "pool", m->pool);
        metrics_label(&labels, "tenant", m->tenant);
        metrics_sample(out, metric, buf_str(&labels),
                       metric == METRIC_FLEET_MISUSE_PODS  ? (double)m->pods
                       : metric == METRIC_FLEET_MISUSE_CPU ? (double)m->cpu_milli / 1000
                                                           : (double)m->memory);
        buf_fini(&labels);
    }
}

void fleet_watch_metrics(struct buf *out, const struct fleet_watch_view *view)
{
    write_nodes(out, view);
    write_misuse(out, METRIC_FLEET_MISUSE_PODS, view);
    write_misuse(out, METRIC_FLEET_MISUSE_CPU, view);
    write_misuse(out, METRIC_FLEET_MISUSE_MEMORY, view);
}
