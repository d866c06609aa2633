/* SPDX-License-Identifier: Apache-2.0 */
/* Why host pods wait in their queues. Kueue says it of the Workload that it makes of a pod or of a
 * group of pods: this follows the Workloads of the host namespace, from the first pod of a pool
 * with a queue on, and gives a pod's condition PodScheduled their reason. Must never change
 * anything on the host, nor hold a pod up: without Workloads a pod has the host's own words. */
#include "core/life.h"
#include "pods/pods.h"

#include <string.h>

#include <sublet/config_pool.h>
#include <sublet/hash.h>

#define WORKLOADS "/apis/kueue.x-k8s.io/v1beta2/namespaces/%.*s/workloads"

enum { OWNERS_MAX = 10000 }; /* pods of one group */

/* Of a host pod, by its uid: the Workload that stands for it. */
struct owned {
    struct map_entry entry;
    char *uid, *workload;
};

struct queued {
    struct syncer *syncer;
    struct reflector *reflector;
    struct map owned;
};

/* --- which Workload is a pod's --- */

static void drop(struct queued *q, struct owned *o)
{
    map_remove(&q->owned, &o->entry);
    mem_free(o->uid);
    mem_free(o->workload);
    mem_free(o);
}

static void note(struct queued *q, struct str uid, struct str workload)
{
    struct map_entry *e = map_get(&q->owned, uid);
    struct owned *o;

    if (e)
        drop(q, CONTAINER(e, struct owned, entry));
    o = NEW(struct owned);
    o->uid = mem_strdup(uid);
    o->workload = mem_strdup(workload);
    map_put(&q->owned, &o->entry, str_c(o->uid));
}

static void forget(struct queued *q, struct str uid, struct str workload)
{
    struct map_entry *e = map_get(&q->owned, uid);
    struct owned *o = e ? CONTAINER(e, struct owned, entry) : NULL;

    if (o && str_eqc(workload, o->workload))
        drop(q, o);
}

/* The pod is looked at again: its reason may be another. */
static void wake(struct queued *q, struct arena *a, struct str host_name)
{
    const struct host_object *o = reflector_get(q->syncer->watches[SYNC_PODS].reflector, host_name);
    struct str ns, name, uid;
    cJSON *pod = NULL;

    if (o && !json_parse(a, o->bytes, &pod, NULL) &&
        translate_owner(&q->syncer->tenant, pod, &ns, &name, &uid))
        syncer_add(q->syncer, SYNC_PODS, ns, name);
}

static void each_owner(struct queued *q, const struct host_object *workload, bool gone)
{
    struct arena *a = arena_new(0);
    size_t n = 0;
    cJSON *tree = NULL;

    if (json_parse(a, workload->bytes, &tree, NULL))
        tree = NULL;
    json_each(owner, json_path(tree, "metadata.ownerReferences"))
    {
        struct str uid = json_str(json_get(owner, "uid"));

        if (!str_eqc(json_str(json_get(owner, "kind")), "Pod") || !uid.n || n++ >= OWNERS_MAX)
            continue;
        if (gone)
            forget(q, uid, workload->name);
        else
            note(q, uid, workload->name);
        wake(q, a, json_str(json_get(owner, "name")));
    }
    arena_free(a);
}

/* --- the watch --- */

static void reduce(struct arena *a, cJSON *object)
{
    (void)a;
    json_remove(object, "spec");
}

static void on_changed(void *ctx, const struct host_object *now, const struct host_object *before)
{
    each_owner(ctx, now ? now : before, !now);
}

static void on_went_back(void *ctx)
{
    reflector_restart(((struct queued *)ctx)->reflector);
}

static void follow(struct queued *q)
{
    struct reflector_options o = {.host = q->syncer->host,
                                  .reduce = reduce,
                                  .changed = on_changed,
                                  .went_back = on_went_back,
                                  .ctx = q};
    struct arena *a;

    if (q->reflector || !syncer_is_running(q->syncer))
        return;
    a = arena_new(0);
    o.path = arena_printf(a, WORKLOADS, STR_F(q->syncer->config->host_namespace));
    q->reflector = reflector_open(&o);
    arena_free(a);
}

/* --- the reason --- */

static const cJSON *workload_of(struct queued *q, struct arena *a, struct str uid)
{
    struct map_entry *e = map_get(&q->owned, uid);
    const struct host_object *o =
        e ? reflector_get(q->reflector, str_c(CONTAINER(e, struct owned, entry)->workload)) : NULL;
    cJSON *tree = NULL;

    return o && !json_parse(a, o->bytes, &tree, NULL) ? tree : NULL;
}

static bool has_queue(const struct syncer *s, const cJSON *host_pod)
{
    struct str pool = json_str(json_get(json_path(host_pod, "metadata.labels"), LABEL_POOL));
    const struct config_binding *binding = config_binding_of(s->config, pool);

    return binding && binding->pool->scheduler_kind == SCHEDULER_KUEUE;
}

struct str sync_queued_workload(struct queued *q, struct str name)
{
    const struct host_object *o;

    follow(q);
    o = reflector_get(q->reflector, name);
    return o ? o->uid : STR("");
}

void sync_pod_explain_queue(struct sync_run *run)
{
    struct queued *q = run->syncer->queued;
    cJSON *scheduled =
        condition_find(json_path(run->host, "status.conditions"), STR("PodScheduled"));
    struct str why;

    if (!str_eqc(json_str(json_get(scheduled, "reason")), "SchedulingGated") ||
        !has_queue(run->syncer, run->host))
        return;
    follow(q);
    why = translate_queue_up(run->arena, &run->syncer->tenant, run->host,
                             workload_of(q, run->arena, sync_uid(run->host)));
    if (why.n)
        json_set_str(run->arena, scheduled, "message", why);
}

/* --- life --- */

struct queued *sync_queued_new(struct syncer *s)
{
    struct queued *q = NEW(struct queued);

    q->syncer = s;
    return q;
}

void sync_queued_stop(struct queued *q)
{
    q->reflector = reflector_close(q->reflector);
}

void sync_queued_kick(struct queued *q)
{
    if (q->reflector)
        reflector_kick(q->reflector);
}

void sync_queued_restart(struct queued *q)
{
    reflector_restart(q->reflector);
}

static void free_one(void *ctx, struct map_entry *e)
{
    drop(ctx, CONTAINER(e, struct owned, entry));
}

struct queued *sync_queued_free(struct queued *q)
{
    if (!q)
        return NULL;
    map_each(&q->owned, free_one, q);
    mem_free(q);
    return NULL;
}
