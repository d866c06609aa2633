/* SPDX-License-Identifier: Apache-2.0 */
/* From a host pod to its virtual pod: node, status, deletion. Written as Kubernetes' own components
 * write them: Binding, status update, delete request. Must never write a spec, nor the status of
 * another pod of the same name than the one it read. */
#include "pods/pods.h"
#include "nodes/nodes.h"

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

static cJSON *condition_ensure(struct arena *a, cJSON *status, const char *type)
{
    cJSON *list = json_get(status, "conditions"), *condition = condition_get(list, type);

    if (condition)
        return condition;
    if (!json_is_array(list))
        list = json_set(a, status, "conditions", json_new_array(a));
    condition = json_append(list, json_new_object(a));
    json_set_str(a, condition, "type", str_c(type));
    return condition;
}

void sync_pod_unbind(struct sync_run *run)
{
    struct arena *a = run->arena;
    cJSON *status = json_new_object(a), *condition;
    const cJSON *qos = json_path(run->virtual_, "status.qosClass");

    json_set_str(a, status, "phase", STR("Pending"));
    if (qos)
        json_set(a, status, "qosClass", json_copy(a, qos));
    condition = condition_ensure(a, status, "PodScheduled");
    json_set_str(a, condition, "status", STR("False"));
    json_set_str(a, condition, "lastTransitionTime",
                 time_format_s(a, reconcile_now_s(run->reconcile)));
    json_set_str(a, condition, "reason", STR("CreatedAgain"));
    json_set_str(a, condition, "message", STR("the host cluster does not have this pod any more"));
    json_set(a, run->virtual_, "status", status);
    json_remove(json_get(run->virtual_, "spec"), "nodeName");
    reconcile_replace(run->reconcile, pods(run), run->virtual_);
}

/* --- the node --- */

static void bind(struct sync_run *run, struct str node)
{
    struct arena *a = run->arena;
    cJSON *binding = json_new_object(a), *metadata = json_new_object(a),
          *target = json_new_object(a);

    json_set_str(a, binding, "apiVersion", STR("v1"));
    json_set_str(a, binding, "kind", STR("Binding"));
    json_set_str(a, metadata, "name", run->name);
    json_set_str(a, metadata, "namespace", run->ns);
    json_set_str(a, metadata, "uid", run->uid);
    json_set(a, binding, "metadata", metadata);
    json_set_str(a, target, "kind", STR("Node"));
    json_set_str(a, target, "name", node);
    json_set(a, binding, "target", target);
    vapi_create_sub(run->syncer->api, pods(run), STR("binding"), run->ns, run->name, binding,
                    on_answer, up_begin(run));
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

static void write_status(struct sync_run *run, cJSON *status)
{
    json_set(run->arena, run->virtual_, "status", status);
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
    struct str node = json_str_at(run->host, "spec.nodeName");
    struct str bound = json_str_at(run->virtual_, "spec.nodeName");
    cJSON *status;

    if (node.n && bound.n && !str_eq(node, bound)) { /* the host pod was created again */
        sync_pod_unbind(run);
        return true;
    }
    if (node.n && !bound.n && !object_is_terminating(run->virtual_)) {
        if (sync_nodes_ensure(run->syncer->nodes, node, key))
            bind(run, node);
        return true;
    }
    sync_nodes_count(run->syncer);
    status = translate_pod_status_up(run->arena, &run->syncer->tenant, run->host, run->virtual_,
                                     is_applied(run));
    if (!status)
        return false;
    write_status(run, status);
    return true;
}

/* --- while it is not on the host --- */

void sync_pod_say_waiting(struct sync_run *run, const char *reason, struct str message)
{
    struct arena *a = run->arena;
    cJSON *status = json_copy(a, json_get(run->virtual_, "status")), *condition;
    struct str now = time_format_s(a, reconcile_now_s(run->reconcile));

    if (!json_is_object(status))
        status = json_new_object(a);
    condition = condition_ensure(a, status, "PodScheduled");
    if (str_eqc(json_str(json_get(condition, "status")), "False") &&
        str_eqc(json_str(json_get(condition, "reason")), reason) &&
        str_eq(json_str(json_get(condition, "message")), message))
        return;
    if (!str_eqc(json_str(json_get(condition, "status")), "False"))
        json_set_str(a, condition, "lastTransitionTime", now);
    json_set_str(a, condition, "status", STR("False"));
    json_set_str(a, condition, "reason", str_c(reason));
    json_set_str(a, condition, "message", message);
    json_set_str(a, status, "phase", STR("Pending"));
    write_status(run, status);
}
