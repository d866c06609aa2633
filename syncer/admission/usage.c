/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant reads of its own GPUs (GPUUsage, ClusterGPUUsage): computed from the ledger, its
 * line and the mapping records when it is read, so nothing is kept and nothing runs while it is not
 * read. Must never show what other tenants hold, nor an unbounded queue. */
#include "admission/admission.h"
#include "core/mapping.h"
#include "gpu/ledger.h"

#include <stdlib.h>

#include <sublet/hash.h>
#include <sublet/json_build.h>
#include <sublet/metrics.h>

enum { QUEUE_MAX = 100, HOURS_MAX = 50 }; /* of a pool: pods and namespaces that are listed */

struct holder {
    struct map_entry entry; /* by the uid that is charged */
    struct str ns;
};

/* One GPUUsage or, with an empty ns, ClusterGPUUsage. */
struct usage {
    struct map_entry entry; /* by ns, among those of the pool */
    struct usage *next;
    struct str ns, pool;
    struct rational used, waiting;
    struct rational hours; /* of a namespace */
    int64_t pods, waiting_pods;
    cJSON *queue;
};

struct usage_list {
    struct syncer *syncer;
    struct arena *arena, *scratch;
    bool cluster;
    struct str ns;
    struct map holders;
    const struct config_binding *binding; /* the one that is being summed up */
    struct map of_pool;
    struct usage *all;
    size_t n, n_queued; /* of the pool */
};

/* --- who holds what --- */

static void add_holder(struct usage_list *l, struct str uid, struct str ns)
{
    struct holder *h;

    if (!uid.n || map_get(&l->holders, uid))
        return;
    h = ARENA_NEW(l->scratch, struct holder);
    h->ns = ns;
    map_put(&l->holders, &h->entry, uid);
}

static bool on_record(void *ctx, struct str key, struct str value)
{
    struct usage_list *l = ctx;
    struct mapping m = sync_mapping_parse(l->scratch, value);
    struct str rest = arena_str(l->scratch, key), ns;

    str_cut(&rest, '/');
    ns = str_cut(&rest, '/');
    add_holder(l, m.uid, ns);
    for (size_t i = 0; i < m.n_old; i++)
        add_holder(l, m.old[i], ns);
    return true;
}

static void read_holders(struct usage_list *l, enum sync_id id)
{
    struct str prefix;

    if (id == SYNC_NONE)
        return;
    prefix = arena_printf(l->scratch, "%s/%.*s%s", l->syncer->kinds[id].record, STR_F(l->ns),
                          l->ns.n ? "/" : "");
    store_record_each(l->syncer->store, RECORD_MAPPING, prefix, on_record, l);
}

/* --- sums --- */

static struct usage *usage_of(struct usage_list *l, struct str ns)
{
    struct map_entry *e = map_get(&l->of_pool, ns);
    struct usage *u;

    if (e)
        return CONTAINER(e, struct usage, entry);
    u = ARENA_NEW(l->scratch, struct usage);
    u->ns = arena_str(l->scratch, ns);
    u->pool = l->binding->pool->name;
    u->used = u->waiting = u->hours = RATIONAL_ZERO;
    u->queue = json_new_array(l->arena);
    u->next = l->all;
    l->all = u;
    l->n++;
    map_put(&l->of_pool, &u->entry, u->ns);
    return u;
}

/* NULL: it is not of the namespace. */
static struct usage *usage_for(struct usage_list *l, struct str ns)
{
    if (l->cluster)
        return usage_of(l, STR(""));
    return !l->ns.n || str_eq(l->ns, ns) ? usage_of(l, ns) : NULL;
}

static void on_charge(void *ctx, struct str uid, struct rational quantity)
{
    struct usage_list *l = ctx;
    struct map_entry *e = map_get(&l->holders, uid);
    struct usage *u;

    if (!e && !l->cluster)
        return;
    u = usage_for(l, e ? CONTAINER(e, struct holder, entry)->ns : STR(""));
    if (!u)
        return;
    rational_add_most(&u->used, quantity);
    u->pods++;
}

static void on_waiting(void *ctx, const struct ledger_waiting *w)
{
    struct usage_list *l = ctx;
    struct arena *a = l->arena;
    struct str name = w->key, ns = str_cut(&name, '/');
    struct usage *u = usage_for(l, ns);

    if (!u)
        return;
    rational_add_most(&u->waiting, w->gpu_eq);
    u->waiting_pods++;
    if (l->n_queued++ >= QUEUE_MAX)
        return;
    json_append(u->queue, json_object(a, JSON("namespace", arena_str(a, ns)),
                                      JSON("name", arena_str(a, name)),
                                      JSON("gpus", rational_format(a, w->gpu_eq)),
                                      JSON_I64("position", (int64_t)w->position),
                                      JSON("ahead", rational_format(a, w->ahead)),
                                      JSON("since", arena_str(a, w->created))));
}

static bool has_namespace(struct syncer *s, struct str ns)
{
    return store_latest(s->store, syncer_resource(s, "", "namespaces")->storage, STR(""), ns) !=
           NULL;
}

/* Of the namespaces that are listed, those that have some. */
static void take_hours(struct usage_list *l, struct str pool)
{
    struct hours_list hours =
        sync_ledger_hours_list(l->syncer->ledger, l->scratch, pool, HOURS_NAMESPACES);

    for (size_t i = 0; i < hours.n; i++) {
        struct map_entry *e = map_get(&l->of_pool, hours.lines[i].ns);

        if (e)
            CONTAINER(e, struct usage, entry)->hours = hours.lines[i].hours;
    }
}

static void sum_up(struct usage_list *l, const struct config_binding *b)
{
    struct ledger *ledger = l->syncer->ledger;

    l->binding = b;
    l->n_queued = 0;
    if (!b->ended && (l->cluster || (l->ns.n && has_namespace(l->syncer, l->ns))))
        usage_of(l, l->ns);
    sync_ledger_each_charge(ledger, b->pool->name, on_charge, l);
    sync_ledger_each_waiting(ledger, b->pool->name, on_waiting, l);
    if (!l->cluster && map_count(&l->of_pool))
        take_hours(l, b->pool->name);
    map_clear(&l->of_pool);
}

/* --- objects --- */

static struct rational borrowed(const struct usage *u, const struct config_binding *b)
{
    struct rational more;

    return rational_sub(u->used, b->guarantee, &more) && more.num > 0 ? more : RATIONAL_ZERO;
}

static const char *const ISOLATION[] = {
    [POOL_EXCLUSIVE] = "whole GPUs, which no other pod has at the same time",
    [POOL_MIG] = "slices of a GPU whose memory and compute units the hardware keeps apart",
    [POOL_TIME_SLICING] = "GPUs that pods use in turns: neither memory nor faults are kept apart",
    [POOL_MPS] = "GPUs that pods use at once: memory is limited, a fault may end the other pods",
    [POOL_KAI] = "GPUs that pods use at once: neither memory nor faults are kept apart",
    [POOL_HAMI] =
        "GPUs that pods use at once: a library in the container limits memory and compute, "
        "which a hostile program gets around; a fault may end the other pods",
    [POOL_VOLCANO] = "GPUs that pods use at once: a library in the container limits memory and "
                     "compute, which a hostile program gets around; a fault may end the other pods",
    [POOL_DRA] = "what the device class says",
};

static void add_sharing(struct arena *a, const struct config_pool *pool, cJSON *status)
{
    json_set_str(a, status, "mode", config_mode_name(pool->mode));
    json_set_str(a, status, "trust", pool->adversarial ? STR("adversarial") : STR("cooperative"));
    if (pool->mode < COUNT(ISOLATION) && ISOLATION[pool->mode])
        json_set_str(a, status, "isolation", str_c(ISOLATION[pool->mode]));
}

/* The rows and otherGPUHours are gpuHours, exactly. */
static void add_hours(struct ledger *ledger, struct arena *a, struct str pool, cJSON *status)
{
    struct hours_list hours = sync_ledger_hours_list(ledger, a, pool, HOURS_MAX);
    cJSON *rows = json_new_array(a);

    for (size_t i = 0; i < hours.n; i++)
        json_append(rows, json_object(a, JSON("namespace", hours.lines[i].ns),
                                      JSON("gpuHours", rational_format(a, hours.lines[i].hours))));
    json_put(a, status, JSON("gpuHours", rational_format(a, hours.total)));
    if (hours.n)
        json_set(a, status, "namespaces", rows);
    json_put(a, status, JSON("otherGPUHours", rational_format(a, hours.others)));
}

static cJSON *object_of(const struct usage_list *l, const struct usage *u)
{
    const struct config_binding *b = config_binding_of(l->syncer->config, u->pool);
    struct arena *a = l->arena;
    int64_t listed = (int64_t)json_count(u->queue);
    cJSON *status = json_object(
        a, JSON("used", rational_format(a, u->used)), JSON_I64("pods", u->pods),
        JSON("limit", rational_format(a, b->limit)),
        JSON("guarantee", rational_format(a, b->guarantee)),
        JSON("borrowed",
             l->cluster ? json_new_string(a, rational_format(a, borrowed(u, b))) : NULL),
        JSON("waiting", rational_format(a, u->waiting)), JSON_I64("waitingPods", u->waiting_pods),
        JSON("queue", listed ? u->queue : NULL));
    struct str unavailable = config_maintenance_text(a, b->pool);

    if (unavailable.n)
        json_put(a, status, JSON("unavailable", unavailable));
    if (b->budget)
        json_set(a, status, "budget", json_copy(a, b->budget));
    if (l->cluster)
        add_sharing(a, b->pool, status);
    if (l->cluster)
        add_hours(l->syncer->ledger, a, u->pool, status);
    else
        json_set_str(a, status, "gpuHours", rational_format(a, u->hours));
    if (u->waiting_pods > listed)
        json_set(a, status, "queueNotShown", json_new_i64(a, u->waiting_pods - listed));
    return json_object(
        a,
        JSON("metadata", json_object(a, JSON("name", arena_str(a, u->pool)),
                                     JSON_NONEMPTY("namespace", arena_str(a, u->ns)))),
        JSON("status", status));
}

static int by_key(const void *x, const void *y)
{
    const struct usage *const *a = x, *const *b = y;
    int order = str_cmp((*a)->ns, (*b)->ns);

    return order ? order : str_cmp((*a)->pool, (*b)->pool);
}

static cJSON *objects_of(struct usage_list *l)
{
    struct usage **sorted = arena_alloc(l->scratch, (l->n + 1) * sizeof(struct usage *));
    cJSON *ret = json_new_array(l->arena);
    size_t n = 0;

    for (struct usage *u = l->all; u; u = u->next)
        sorted[n++] = u;
    qsort(sorted, n, sizeof(struct usage *), by_key);
    for (size_t i = 0; i < n; i++)
        json_append(ret, object_of(l, sorted[i]));
    return ret;
}

cJSON *sync_usage_list(struct syncer *s, struct arena *a, bool cluster, struct str ns)
{
    struct usage_list l = {.syncer = s, .arena = a, .scratch = arena_new(0), .cluster = cluster};
    cJSON *ret;

    l.ns = cluster ? STR("") : ns;
    if (!cluster) {
        read_holders(&l, SYNC_PODS);
        read_holders(&l, sync_kind_of_ref(s, REF_DEVICE_CLAIM));
    }
    for (size_t i = 0; i < s->config->n_bindings; i++)
        sum_up(&l, &s->config->bindings[i]);
    ret = objects_of(&l);
    map_clear(&l.holders);
    arena_free(l.scratch);
    return ret;
}

/* --- metrics --- */

struct line {
    struct rational gpus;
    uint64_t pods;
};

static void on_in_line(void *ctx, const struct ledger_waiting *w)
{
    struct line *line = ctx;

    rational_add_most(&line->gpus, w->gpu_eq);
    line->pods++;
}

static double value_of(enum metric metric, struct syncer *s, const struct config_binding *b)
{
    struct usage u = {.used = sync_ledger_used(s->ledger, b->pool)};
    struct line line = {.gpus = RATIONAL_ZERO};
    struct rational r = u.used;

    if (metric == METRIC_GPU_QUEUE_PODS || metric == METRIC_GPU_QUEUE_GPUS) {
        sync_ledger_each_waiting(s->ledger, b->pool->name, on_in_line, &line);
        r = metric == METRIC_GPU_QUEUE_PODS ? (struct rational){(int64_t)line.pods, 1} : line.gpus;
    } else if (metric == METRIC_GPU_LIMIT) {
        r = b->limit;
    } else if (metric == METRIC_GPU_GUARANTEE) {
        r = b->guarantee;
    } else if (metric == METRIC_GPU_BORROWED) {
        r = borrowed(&u, b);
    }
    return (double)r.num / (double)r.den;
}

static void write_times(struct syncer *s, struct buf *out, enum metric metric,
                        enum ledger_time which)
{
    metrics_family(out, metric);
    for (size_t i = 0; i < s->config->n_bindings; i++) {
        struct str pool = s->config->bindings[i].pool->name;
        struct buf labels = BUF_INIT(0);
        struct metrics_histogram h;

        metrics_label(&labels, "pool", pool);
        if (sync_ledger_times(s->ledger, pool, which, &h))
            metrics_histogram(out, metric, buf_str(&labels), SYNC_LEDGER_TIME_BOUND,
                              LEDGER_TIME_BOUNDS, &h);
        buf_fini(&labels);
    }
}

void sync_usage_metrics(void *syncer, struct buf *out)
{
    static const enum metric gauges[] = {METRIC_GPU_LIMIT,      METRIC_GPU_GUARANTEE,
                                         METRIC_GPU_USED,       METRIC_GPU_BORROWED,
                                         METRIC_GPU_QUEUE_PODS, METRIC_GPU_QUEUE_GPUS};
    struct syncer *s = syncer;

    for (size_t m = 0; m < COUNT(gauges) && s->config->n_bindings; m++) {
        metrics_family(out, gauges[m]);
        for (size_t i = 0; i < s->config->n_bindings; i++) {
            struct buf labels = BUF_INIT(0);

            metrics_label(&labels, "pool", s->config->bindings[i].pool->name);
            metrics_sample(out, gauges[m], buf_str(&labels),
                           value_of(gauges[m], s, &s->config->bindings[i]));
            buf_fini(&labels);
        }
    }
    if (!s->config->n_bindings)
        return;
    write_times(s, out, METRIC_GPU_QUEUE_WAIT, LEDGER_WAIT);
    write_times(s, out, METRIC_GPU_SCHEDULING, LEDGER_SCHEDULE);
}
