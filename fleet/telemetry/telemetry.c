/* SPDX-License-Identifier: Apache-2.0 */
/* Between the exporters (exporters.c), what they say (dcgm.c) and what follows from it
 * (activity.c). Must show nothing where it is not enabled, and never a pod's silence as a zero. */
#include "telemetry.h"

#include <assert.h>

#include <sublet/config_pool.h>
#include <sublet/log.h>
#include <sublet/metrics.h>
#include <sublet/fleet_usage.h>

#include "exporter_nodes.h"
#include "exporters.h"
#include "core/facts.h"
#include "telemetry_series.h"

#define TELEMETRY_MAGIC 0x74656c65u
#define FRESH_INTERVALS 3 /* an exporter that fails once is not silent */

struct telemetry {
    unsigned magic;
    struct telemetry_options o;
    struct activity *activity;
    struct telemetry_series *series;
    struct exporters *exporters; /* NULL: not started */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static int64_t now_ms(const struct telemetry *t)
{
    return clock_mono_ms(t->o.clock);
}

/* --- what pods hold --- */

static const struct config_pool *pool_of(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->n_pools; i++)
        if (str_eq(c->pools[i].name, name))
            return &c->pools[i];
    return NULL;
}

/* How many GPUs, or instances, an exporter names of a pod: known where none is shared. */
static size_t devices_of(const struct config_pool *pool, const cJSON *pod)
{
    struct arena *a;
    struct fact_units *units;
    int64_t sum = 0;
    size_t n;

    if (!pool || (pool->mode != POOL_EXCLUSIVE && pool->mode != POOL_MIG))
        return 0;
    a = arena_new(0);
    n = fact_pod_running_units(a, pod, &units);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < pool->n_resources; k++)
            if (str_eq(units[i].resource, pool->resources[k].host_name) &&
                units[i].units < DCGM_MOST_DEVICES)
                sum += units[i].units;
    arena_free(a);
    return (size_t)sum;
}

void telemetry_pod(struct telemetry *t, struct str name, const cJSON *pod,
                   const struct fleet_hold *hold)
{
    struct activity_hold h;

    if (!t)
        return;
    assert(t->magic == TELEMETRY_MAGIC);
    if (!hold) {
        activity_release(t->activity, name, now_ms(t));
        return;
    }
    h = (struct activity_hold){.name = name,
                               .uid = hold->pod_uid,
                               .node = hold->node,
                               .pool = hold->pool,
                               .gpu_eq = hold->gpu_eq,
                               .devices = devices_of(pool_of(t->o.config, hold->pool), pod)};
    activity_hold(t->activity, &h, now_ms(t));
}

/* --- answers --- */

static void take(struct telemetry *t, struct str node, const struct dcgm *d)
{
    activity_answer(t->activity, node, d, now_ms(t));
    telemetry_series_answer(t->series, t->activity, node, d, now_ms(t));
}

static bool on_answered(void *ctx, struct str node, struct str body)
{
    struct telemetry *t = ctx;
    struct arena *a = arena_new(0);
    struct dcgm d;
    struct err err;
    bool good;

    assert(t->magic == TELEMETRY_MAGIC);
    err_init(&err, a);
    good = !dcgm_parse(a, body, &d, &err);
    if (good)
        take(t, node, &d);
    else
        log_debug("fleet: the exporter's answer is none node=\"%.*s\" error=\"%.*s\"", STR_F(node),
                  STR_F(err.message));
    arena_free(a);
    if (good && t->o.changed)
        t->o.changed(t->o.ctx);
    return good;
}

/* --- metrics --- */

static void write_line(struct buf *out, enum metric metric, const struct activity_line *l,
                       const char *state, double value)
{
    struct buf labels = BUF_INIT(0);

    metrics_label(&labels, "pool", l->pool);
    if (state)
        metrics_label(&labels, "state", str_c(state));
    metrics_label(&labels, "tenant", l->tenant);
    metrics_sample(out, metric, buf_str(&labels), value);
    buf_fini(&labels);
}

static void write_idle(struct buf *out, enum metric metric, const struct activity_view *v)
{
    static const enum activity_state idle[] = {ACTIVITY_WARM, ACTIVITY_UNUSED};

    metrics_family(out, metric);
    for (size_t i = 0; i < v->n_lines; i++)
        for (size_t k = 0; k < COUNT(idle); k++)
            write_line(out, metric, &v->lines[i], ACTIVITY_STATES[idle[k]],
                       metric == METRIC_FLEET_IDLE_HELD ? v->lines[i].gpus[idle[k]]
                                                        : v->lines[i].idle_seconds[idle[k]]);
}

static void write_state(struct buf *out, const char *state, size_t n)
{
    struct buf labels = BUF_INIT(0);

    metrics_label(&labels, "state", str_c(state));
    metrics_sample_u64(out, METRIC_FLEET_EXPORTERS, buf_str(&labels), n);
    buf_fini(&labels);
}

static void write_exporters(struct buf *out, const struct exporters_view *v,
                            const struct exporter_nodes_view *nodes)
{
    metrics_family(out, METRIC_FLEET_EXPORTERS);
    for (size_t i = 0; i < N_EXPORTER_STATES; i++)
        write_state(out, EXPORTER_STATES[i], v->n[i]);
    if (nodes)
        write_state(out, "absent", nodes->n_absent);
    metrics_family(out, METRIC_FLEET_EXPORTER_FAILURES);
    for (size_t i = 0; i < N_EXPORTER_FAILURES; i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "reason", str_c(EXPORTER_FAILURES[i]));
        metrics_sample_u64(out, METRIC_FLEET_EXPORTER_FAILURES, buf_str(&labels), v->failures[i]);
        buf_fini(&labels);
    }
    metrics_single(out, METRIC_FLEET_TELEMETRY_AGE, (double)v->age_ms / 1000);
}

static void write_refused(struct buf *out, const struct activity_view *v)
{
    metrics_family(out, METRIC_FLEET_SERIES_REFUSED);
    for (size_t i = 0; i < N_ACTIVITY_REFUSALS; i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "reason", str_c(ACTIVITY_REFUSALS[i]));
        metrics_sample_u64(out, METRIC_FLEET_SERIES_REFUSED, buf_str(&labels), v->refused[i]);
        buf_fini(&labels);
    }
}

void telemetry_metrics(struct telemetry *t, const struct fleet_records *now, struct buf *out)
{
    struct activity_view v;
    struct exporter_nodes_view nodes;
    struct exporters_view exporters;
    struct arena *a;

    if (!t || !t->exporters)
        return;
    a = arena_new(0);
    telemetry_look(t, a, &v);
    exporters = exporters_look(t->exporters);
    write_idle(out, METRIC_FLEET_IDLE_HELD, &v);
    write_idle(out, METRIC_FLEET_IDLE_HELD_SECONDS, &v);
    metrics_family(out, METRIC_FLEET_UTILISED);
    for (size_t i = 0; i < v.n_lines; i++)
        write_line(out, METRIC_FLEET_UTILISED, &v.lines[i], NULL, v.lines[i].utilised);
    metrics_family(out, METRIC_FLEET_UNMEASURED);
    for (size_t i = 0; i < v.n_lines; i++)
        write_line(out, METRIC_FLEET_UNMEASURED, &v.lines[i], NULL,
                   v.lines[i].gpus[ACTIVITY_UNKNOWN]);
    metrics_family(out, METRIC_FLEET_XIDS);
    for (size_t i = 0; i < v.n_lines; i++)
        write_line(out, METRIC_FLEET_XIDS, &v.lines[i], NULL, (double)v.lines[i].xids);
    if (now)
        telemetry_nodes(t, a, now, &nodes);
    write_exporters(out, &exporters, now ? &nodes : NULL);
    write_refused(out, &v);
    arena_free(a);
}

static void add_row(void *ctx, const struct exporter_row *row)
{
    exporter_nodes_add(ctx, row);
}

bool telemetry_nodes(struct telemetry *t, struct arena *a, const struct fleet_records *now,
                     struct exporter_nodes_view *ret)
{
    struct exporter_nodes *n;

    if (!t || !t->exporters)
        return false;
    assert(t->magic == TELEMETRY_MAGIC);
    n = exporter_nodes_new(a);
    exporters_each(t->exporters, add_row, n);
    exporter_nodes_end(n, now, ret);
    return true;
}

bool telemetry_look(struct telemetry *t, struct arena *a, struct activity_view *ret)
{
    if (!t || !t->exporters)
        return false;
    assert(t->magic == TELEMETRY_MAGIC);
    activity_look(t->activity, a, now_ms(t), ret);
    return true;
}

void telemetry_each(struct telemetry *t,
                    void (*visit)(void *ctx, struct str uid, enum activity_state state), void *ctx)
{
    if (t && t->exporters)
        activity_each(t->activity, now_ms(t), visit, ctx);
}

int telemetry_tenant(struct telemetry *t, struct str tenant, struct buf *out, struct err *err)
{
    if (!t || !t->exporters)
        return err_set(err, &ERR_NOT_FOUND, "the fleet reads no exporters");
    assert(t->magic == TELEMETRY_MAGIC);
    if (!telemetry_series_write(t->series, tenant, now_ms(t), out))
        return err_set(err, &ERR_TOO_MANY_REQUESTS, "once in 5 s is enough; try again");
    return out->failed ? err_set(err, &ERR_TOO_LARGE, "too many series") : 0;
}

/* --- life --- */

struct telemetry *telemetry_new(const struct telemetry_options *options)
{
    const struct config *c = options->config;
    struct telemetry *t = NEW(struct telemetry);
    const struct activity_options o = {.idle_below = (double)c->dcgm_idle_below.num /
                                                     (double)c->dcgm_idle_below.den,
                                       .idle_after_ms = c->dcgm_idle_after_ms,
                                       .fresh_ms = c->dcgm_interval_ms * FRESH_INTERVALS};

    *t = (struct telemetry){.magic = TELEMETRY_MAGIC,
                            .o = *options,
                            .activity = activity_new(&o),
                            .series = telemetry_series_new(o.fresh_ms, options->secret)};
    return t;
}

void telemetry_start(struct telemetry *t)
{
    const struct config *c;

    if (!t || t->exporters)
        return;
    c = t->o.config;
    t->exporters = exporters_open(&(struct exporters_options){.loop = t->o.loop,
                                                              .clock = t->o.clock,
                                                              .host = t->o.host,
                                                              .host_namespace = c->dcgm_namespace,
                                                              .selector = c->dcgm_selector,
                                                              .path = c->dcgm_path,
                                                              .port = (unsigned)c->dcgm_port,
                                                              .interval_ms = c->dcgm_interval_ms,
                                                              .answered = on_answered,
                                                              .ctx = t});
}

void telemetry_restart(struct telemetry *t)
{
    if (t)
        exporters_restart(t->exporters);
}

static void on_exporters_closed(void *ctx)
{
    struct telemetry *t = ctx;
    void (*closed)(void *ctx) = t->closed;
    void *closed_ctx = t->closed_ctx;

    t->activity = activity_free(t->activity);
    t->series = telemetry_series_free(t->series);
    t->magic = 0;
    mem_free(t);
    closed(closed_ctx);
}

void telemetry_close(struct telemetry *t, void (*closed)(void *ctx), void *ctx)
{
    struct exporters *exporters = t->exporters;

    assert(t->magic == TELEMETRY_MAGIC);
    t->closed = closed;
    t->closed_ctx = ctx;
    t->exporters = NULL;
    if (exporters)
        exporters_close(exporters, on_exporters_closed, t);
    else
        on_exporters_closed(t);
}
