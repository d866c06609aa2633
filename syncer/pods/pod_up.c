/* SPDX-License-Identifier: Apache-2.0 */
/* From a host pod to its virtual pod: node, status, deletion. Written as Kubernetes' own components
 * write them: Binding, status update, delete request. Must never write a spec, nor the status of
 * another pod of the same name than the one it read. */
#include "pods/pods.h"
#include "gpu/ledger.h"
#include "nodes/nodes.h"

#include <sublet/json_build.h>

static const struct resource *pods(const struct sync_run *run)
{
    return syncer_resource(run->syncer, "", "pods");
}

/* --- answers of the virtual API --- */

struct up {
    struct sync_run run;
};

/* Conflict: written concurrently; the event of that write adds the key again. */
static void on_answer(void *ctx, const struct err *err, const struct store_object *object)
{
    struct up *up = ctx;

    (void)object;
    if (err && (err->kind == &ERR_CONFLICT || err->kind == &ERR_NOT_FOUND))
        err = NULL;
    reconcile_release(up->run.reconcile, err);
}

static struct up *up_begin(struct sync_run *run)
{
    struct up *up = ARENA_NEW(run->arena, struct up);

    up->run = *run;
    reconcile_hold(run->reconcile);
    return up;
}

void sync_pod_remove_virtual(struct sync_run *run, int64_t grace_s)
{
    struct vapi_delete options = {.grace_seconds = grace_s, .uid = run->uid};

    vapi_delete(run->syncer->api, pods(run), run->ns, run->name, &options, on_answer,
                up_begin(run));
}

/* --- to be created again --- */

void sync_pod_unbind(struct sync_run *run)
{
    struct arena *a = run->arena;
    cJSON *qos = json_copy(a, json_path(run->virtual_, "status.qosClass"));

    json_set(a, run->virtual_, "status",
             json_object(a, JSON("phase", "Pending"), JSON("qosClass", qos)));
    condition_set(a, run->virtual_, "PodScheduled", "False", "CreatedAgain",
                  STR("the host cluster does not have this pod any more"),
                  reconcile_now_s(run->reconcile));
    json_remove(json_get(run->virtual_, "spec"), "nodeName");
    reconcile_replace(run->reconcile, pods(run), run->virtual_);
}

/* --- the node --- */

static void on_bound(void *ctx, const struct err *err, const struct store_object *object)
{
    struct up *up = ctx;

    if (!err)
        sync_ledger_scheduled(up->run.syncer->ledger, up->run.uid,
                              json_str_at(up->run.virtual_, "metadata.creationTimestamp"));
    on_answer(ctx, err, object);
}

static void bind(struct sync_run *run, struct str node)
{
    struct arena *a = run->arena;
    cJSON *metadata =
        json_object(a, JSON("name", run->name), JSON("namespace", run->ns), JSON("uid", run->uid));
    cJSON *binding = json_object(
        a, JSON("apiVersion", "v1"), JSON("kind", "Binding"), JSON("metadata", metadata),
        JSON("target", json_object(a, JSON("kind", "Node"), JSON("name", node))));

    vapi_create_sub(run->syncer->api, pods(run), STR("binding"), run->ns, run->name, binding,
                    on_bound, up_begin(run));
}

/* It runs where it ran: sync.nodes has another value than before the restart. */
static void rename_node(struct sync_run *run, struct str node, struct str key)
{
    if (!sync_nodes_ensure(run->syncer->nodes, node, key))
        return;
    json_set_str(run->arena, json_get(run->virtual_, "spec"), "nodeName", node);
    reconcile_replace(run->reconcile, pods(run), run->virtual_);
}

/* --- the status --- */

static bool is_revision(const struct store_object *o, const cJSON *object)
{
    int64_t revision = 0;

    return o && str_to_i64(json_str_at(object, "metadata.resourceVersion"), &revision) &&
           o->revision == revision;
}

/* A status update that changes nothing after defaulting causes no event: the run continues. */
static void on_status(void *ctx, const struct err *err, const struct store_object *object)
{
    struct up *up = ctx;

    if (!err && up->run.host && is_revision(object, up->run.virtual_))
        sync_pod_settled(&up->run);
    on_answer(ctx, err, object);
}

void sync_pod_write_status(struct sync_run *run)
{
    vapi_update(run->syncer->api, pods(run), STR("status"), run->virtual_, on_status,
                up_begin(run));
}

/* Only a generation that is not observed yet is worth a translation; the first one is what the host
 * pod was created from. */
static bool is_applied(struct sync_run *run)
{
    int64_t present = json_i64_at(run->virtual_, "metadata.generation", 1);

    return present <= json_i64_at(run->virtual_, "status.observedGeneration", 1) ||
           sync_pod_is_applied(run);
}

bool sync_pod_update_up(struct sync_run *run)
{
    struct str key = reconcile_key(run->reconcile);
    struct str node = sync_nodes_of_pod(run->syncer, run->host, false);
    struct str bound = json_str_at(run->virtual_, "spec.nodeName");
    cJSON *status;

    if (node.n && bound.n && !str_eq(node, bound)) {
        if (str_eq(bound, sync_nodes_of_pod(run->syncer, run->host, true)))
            rename_node(run, node, key);
        else
            sync_pod_unbind(run); /* the host pod was created again */
        return true;
    }
    if (node.n && !bound.n && !object_is_terminating(run->virtual_) &&
        !object_is_terminating(run->host)) {
        if (sync_nodes_ensure(run->syncer->nodes, node, key))
            bind(run, node);
        return true;
    }
    sync_nodes_count(run->syncer);
    sync_pod_explain_queue(run);
    if (sync_keys_up(run))
        return true;
    status = translate_pod_status_up(run->arena, &run->syncer->tenant, run->host, run->virtual_,
                                     is_applied(run));
    if (!status)
        return false;
    json_set(run->arena, run->virtual_, "status", status);
    sync_pod_write_status(run);
    return true;
}

/* --- after it was deleted on the host --- */

/* Once, unless it conflicts: a status that is refused must not keep the pod. */
static void on_last_status(void *ctx, const struct err *err, const struct store_object *object)
{
    struct up *up = ctx;

    if (!err || err->kind != &ERR_CONFLICT)
        sync_last_status_written(&up->run);
    if (!err && is_revision(object, up->run.virtual_))
        syncer_add(up->run.syncer, SYNC_PODS, up->run.ns, up->run.name);
    on_answer(ctx, err, object);
}

bool sync_pod_last_up(struct sync_run *run)
{
    cJSON *status = sync_last_status(run);

    if (!status)
        return false;
    json_set(run->arena, run->virtual_, "status", status);
    vapi_update(run->syncer->api, pods(run), STR("status"), run->virtual_, on_last_status,
                up_begin(run));
    return true;
}

/* --- while it is not on the host --- */

bool sync_pod_say_waiting(struct sync_run *run, const char *reason, struct str message)
{
    if (!condition_set(run->arena, run->virtual_, "PodScheduled", "False", reason, message,
                       reconcile_now_s(run->reconcile)))
        return false;
    json_set_str(run->arena, json_get(run->virtual_, "status"), "phase", STR("Pending"));
    sync_pod_write_status(run);
    return true;
}
