/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of a node that does not answer. The host's API keeps such a pod after its deletion, because
 * no kubelet confirms its end: it may still run, so its GPUs stay charged. Only the admin can know
 * better: release.onNodeLossAfter of its pool says after how long a node runs nothing any more.
 * Then the pod is deleted without a grace period, as the host's garbage collector does it for a
 * node that is out of service, and everything follows from its absence. Must never do that to a pod
 * whose deletion was not requested before, nor while its node answers, nor by what a stale cache
 * says of it: the node is read once more, since a watch can be silent for minutes before it counts
 * as ended. */
#include "core/life.h"
#include "nodes/nodes.h"
#include "pods/pods.h"

#include <sublet/encode.h>

/* No event of a pod reports that its node fell silent. */
enum { LOOK_AGAIN_MS = 10000 };

/* A watch that was resumed a moment ago may not have delivered yet what changed meanwhile. */
enum { CURRENT_FOR_MS = 5000 };

static cJSON *cached_node(struct sync_run *run)
{
    struct str name = json_str_at(run->host, "spec.nodeName");
    const struct host_object *o =
        name.n ? reflector_get(run->syncer->watches[SYNC_NODES].reflector, name) : NULL;
    cJSON *node = NULL;

    if (!o || json_parse(run->arena, o->bytes, &node, NULL))
        return NULL;
    return node;
}

static bool nodes_are_current(const struct syncer *s)
{
    const struct sync_watch *w = &s->watches[SYNC_NODES];

    return reflector_listed_ms(w->reflector) != REFLECTOR_NOT_CURRENT &&
           syncer_mono_ms(s) - w->current_ms >= CURRENT_FOR_MS;
}

/* Such a pod is still there for its finalizers. */
static bool is_forced(const cJSON *host)
{
    return json_i64_at(host, "metadata.deletionGracePeriodSeconds", 1) == 0;
}

/* Since when, in seconds: its grace period is over and its node does not answer. 0: it is not lost,
 * and is looked at again when it may be. */
static int64_t lost_since(struct sync_run *run, const cJSON *node)
{
    int64_t since = object_time_s(run->host, "metadata.deletionTimestamp");
    int64_t now = syncer_now_s(run->syncer), silent;
    const cJSON *ready = condition_of(node, "Ready");

    if (!since || !json_str_at(run->host, "spec.nodeName").n || pod_is_finished(run->host))
        return 0;
    if (str_eqc(json_str(json_get(ready, "status")), "Unknown")) {
        silent = object_time_s(ready, "lastTransitionTime");
        since = silent > since ? silent : since;
        if (since <= now)
            return since;
    }
    if (since > now)
        reconcile_again_after(run->reconcile, (since - now) * 1000);
    else if (!is_forced(run->host))
        reconcile_again_after(run->reconcile, LOOK_AGAIN_MS);
    return 0;
}

/* As upstream's node controller words it; kubectl shows such a pod as Unknown. */
static void show_loss(struct sync_run *run)
{
    struct arena *a = run->arena;
    cJSON *status = json_ensure_object(a, run->host, "status");
    struct str node = sync_nodes_of_pod(run->syncer, run->host, false);

    json_set_str(a, status, "reason", STR(POD_NODE_LOST));
    json_set_str(a, status, "message",
                 arena_printf(a, "Node %.*s which was running pod %.*s is unresponsive",
                              STR_F(node), STR_F(run->name)));
}

/* Of a later epoch, or not proven to be ours: sync_delete() would not delete it, or must not. */
static bool may_delete(const struct sync_run *run)
{
    return sync_mapping_proves(run->syncer, run->id, &run->mapping, run->owner_uid) &&
           sync_life_owns(run->syncer, run->host);
}

/* How long it is kept, in seconds; 0 or less: its pool gives it up. */
static int64_t kept_s(const struct sync_run *run, const struct config_binding *binding,
                      int64_t since)
{
    return since + binding->pool->node_loss_s - syncer_now_s(run->syncer);
}

/* The node as the host has it now. Of a pool that is not bound any more no rule is known. */
static void on_node(struct sync_run *run, const struct host_answer *answer, const struct err *err)
{
    const struct config_binding *binding = sync_binding_of(run->syncer, run->host);
    struct str name = json_str_at(run->host, "spec.nodeName");
    cJSON *list = NULL, *node = NULL;
    int64_t since;

    if (err || json_parse(run->arena, answer->body, &list, NULL))
        list = NULL;
    json_each(item, json_get(list, "items"))
    {
        if (str_eq(json_str_at(item, "metadata.name"), name))
            node = item;
    }
    run->mapping = sync_mapping_get(run->syncer, run->arena, run->id, run->ns, run->name);
    since = lost_since(run, node);
    if (!since || !binding || kept_s(run, binding, since) > 0 || !may_delete(run)) {
        reconcile_again_after(run->reconcile, LOOK_AGAIN_MS);
        return;
    }
    if (run->virtual_)
        reconcile_event(run->reconcile, run->virtual_, "Warning", "NodeLost",
                        "its node did not answer for so long that pool %.*s takes its GPUs back",
                        STR_F(binding->pool->name));
    sync_delete(run, 0);
}

/* The right to list is the one that the syncer has. */
static void read_node(struct sync_run *run)
{
    struct str name = url_encode(run->arena, json_str_at(run->host, "spec.nodeName"));
    struct host_request q = {.method = "GET"};

    q.path =
        arena_printf(run->arena, "/api/v1/nodes?fieldSelector=metadata.name%%3D%.*s", STR_F(name));
    sync_send(run, &q, on_node);
}

bool sync_pod_loss(struct sync_run *run)
{
    int64_t since = lost_since(run, cached_node(run)), left;
    const struct config_binding *binding = since ? sync_binding_of(run->syncer, run->host) : NULL;

    if (!since)
        return false;
    show_loss(run);
    if (!binding || !binding->pool->node_loss_s || is_forced(run->host) || !may_delete(run))
        return false;
    left = kept_s(run, binding, since);
    if (left > 0 || !nodes_are_current(run->syncer)) {
        reconcile_again_after(run->reconcile, left > 0 ? left * 1000 : LOOK_AGAIN_MS);
        return false;
    }
    read_node(run);
    return true;
}
