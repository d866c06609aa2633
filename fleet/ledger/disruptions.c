/* SPDX-License-Identifier: Apache-2.0 */
/* Disruptions by tenant and pool. Why by the condition and not by the end: a pod that a job's
 * controller deletes ends the same way. Must count a pod once, however often it changes. Source:
 * https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions */
#include "disruptions.h"

#include <assert.h>

#include <sublet/hash.h>
#include <sublet/metrics.h>

#include "core/facts.h"

#define DISRUPTIONS_MAGIC 0x64697372u

static const struct {
    const char *name, *reasons; /* of the condition, parted by commas */
} REASONS[N_FLEET_DISRUPTIONS] = {
    [FLEET_EVICTED] = {"evicted", "EvictionByEvictionAPI"},
    [FLEET_PREEMPTED] = {"preempted", "PreemptionByScheduler"},
    [FLEET_RECLAIMED] = {"reclaimed", "ReclaimedByFleet"},
    [FLEET_NODE_LOST] = {"node-lost", "DeletionByTaintManager,DeletionByPodGC"},
    [FLEET_KUBELET] = {"kubelet", "TerminationByKubelet"},
    [FLEET_OTHER] = {"other", ""},
};

struct line {
    struct map_entry by_key;
    struct str key, pool, tenant; /* on the heap */
    uint64_t n[N_FLEET_DISRUPTIONS];
};
struct fleet_disruptions {
    unsigned magic;
    struct map lines;
};

struct fleet_disruptions *fleet_disruptions_new(void)
{
    struct fleet_disruptions *d = NEW(struct fleet_disruptions);

    d->magic = DISRUPTIONS_MAGIC;
    return d;
}

static void drop(void *ctx, struct map_entry *e)
{
    struct fleet_disruptions *d = ctx;
    struct line *l = CONTAINER(e, struct line, by_key);

    map_remove(&d->lines, e);
    mem_free(l->key.p);
    mem_free(l->pool.p);
    mem_free(l->tenant.p);
    mem_free(l);
}

struct fleet_disruptions *fleet_disruptions_free(struct fleet_disruptions *d)
{
    if (!d)
        return NULL;
    assert(d->magic == DISRUPTIONS_MAGIC);
    map_each(&d->lines, drop, d);
    d->magic = 0;
    return mem_free(d);
}

static struct str disrupted(struct arena *a, const cJSON *pod)
{
    struct fact_pod fact = {0};

    if (pod)
        fact_pod(a, pod, &fact);
    return fact.disrupted;
}

static enum fleet_disruption kind_of(struct str reason)
{
    size_t i = 0;

    while (i < FLEET_OTHER && !str_lists_word(str_c(REASONS[i].reasons), reason))
        i++;
    return (enum fleet_disruption)i;
}

static struct line *line_of(struct fleet_disruptions *d, struct arena *a,
                            const struct fleet_hold *hold)
{
    struct str key = arena_printf(a, "%.*s/%.*s", STR_F(hold->pool), STR_F(hold->tenant));
    struct map_entry *e = map_get(&d->lines, key);
    struct line *l;

    if (e)
        return CONTAINER(e, struct line, by_key);
    if (map_count(&d->lines) >= FLEET_DISRUPTIONS_LINES)
        return NULL;
    l = NEW(struct line);
    *l = (struct line){
        .key = mem_str(key), .pool = mem_str(hold->pool), .tenant = mem_str(hold->tenant)};
    map_put(&d->lines, &l->by_key, l->key);
    return l;
}

void fleet_disruptions_pod(struct fleet_disruptions *d, const cJSON *before, const cJSON *now,
                           const struct fleet_hold *hold)
{
    struct arena *a = arena_new(0);
    struct str reason = disrupted(a, now);
    struct line *l;

    assert(d->magic == DISRUPTIONS_MAGIC);
    if (reason.n && before && !disrupted(a, before).n && (l = line_of(d, a, hold)) != NULL)
        l->n[kind_of(reason)]++;
    arena_free(a);
}

static void write_line(void *ctx, struct map_entry *e)
{
    const struct line *l = CONTAINER(e, struct line, by_key);

    for (size_t i = 0; i < N_FLEET_DISRUPTIONS; i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "pool", l->pool);
        metrics_label(&labels, "reason", str_c(REASONS[i].name));
        metrics_label(&labels, "tenant", l->tenant);
        metrics_sample_u64(ctx, METRIC_FLEET_DISRUPTIONS, buf_str(&labels), l->n[i]);
        buf_fini(&labels);
    }
}

void fleet_disruptions_metrics(const struct fleet_disruptions *d, struct buf *out)
{
    struct map lines = d->lines;

    metrics_family(out, METRIC_FLEET_DISRUPTIONS);
    map_each(&lines, write_line, out);
}
