/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * pods/binding: the scheduler's assignment of a pod to a node. A pod that has a node keeps it.
 * Source: k8s.io/kubernetes pkg/registry/core/pod/storage/storage.go (BindingREST). */
#include "api.h"

static int refuse(struct call *c, struct err *err, struct str why)
{
    return err_conflict(err, STR(""), STR("pods/binding"), c->name, why.p);
}

static int check_body(struct call *c, struct err *err)
{
    struct field_errors e;
    const struct field_path *target = FIELD(NULL, "target");
    struct str kind = json_str_at(c->body, "target.kind");
    struct str name = json_str_at(c->body, "metadata.name");
    static const char *const kinds[] = {"Node", "<empty>", NULL};

    if (name.n && !str_eq(name, c->name))
        return err_set(err, &ERR_BAD_REQUEST, "name in URL does not match name in Binding object");
    field_errors_init(&e, c->arena);
    if (kind.n && !str_eqc(kind, "Node"))
        field_not_supported(&e, FIELD(target, "kind"), kind, kinds);
    if (!json_str_at(c->body, "target.name").n)
        field_required(&e, FIELD(target, "name"), "");
    return field_errors_to_err(&e, STR(""), STR("Binding"), c->name, err);
}

static int check_pod(struct call *c, const cJSON *pod, struct err *err)
{
    struct str uid = json_str_at(c->body, "metadata.uid");
    struct str node = json_str_at(pod, "spec.nodeName");
    struct arena *a = c->arena;

    if (uid.n && !str_eq(uid, json_str_at(pod, "metadata.uid")))
        return refuse(c, err, STR("Precondition failed: UID in precondition does not match"));
    if (json_path(pod, "metadata.deletionTimestamp"))
        return refuse(c, err,
                      arena_printf(a, "pod %.*s is being deleted, cannot be assigned to a host",
                                   STR_F(c->name)));
    if (node.n)
        return refuse(c, err,
                      arena_printf(a, "pod %.*s is already assigned to node \"%.*s\"",
                                   STR_F(c->name), STR_F(node)));
    if (json_count(json_path(pod, "spec.schedulingGates")))
        return refuse(
            c, err,
            arena_printf(a, "pod %.*s has non-empty .spec.schedulingGates", STR_F(c->name)));
    return 0;
}

static void merge_map(struct call *c, cJSON *metadata, const char *key)
{
    const cJSON *more = json_get(json_get(c->body, "metadata"), key);
    cJSON *into;

    if (!json_count(more))
        return;
    into = json_ensure_object(c->arena, metadata, key);
    json_each(item, more) json_set(c->arena, into, item->string, json_copy(c->arena, item));
}

static void set_scheduled(struct call *c, cJSON *pod)
{
    struct arena *a = c->arena;
    cJSON *status = json_ensure_object(a, pod, "status");
    cJSON *conditions = json_get(status, "conditions"), *scheduled = NULL;

    if (!json_is_array(conditions))
        conditions = json_set(a, status, "conditions", json_new_array(a));
    json_each(condition, conditions) if (str_eqc(json_str(json_get(condition, "type")),
                                                 "PodScheduled")) scheduled = condition;
    if (!scheduled) {
        scheduled = json_append(conditions, json_new_object(a));
        json_set(a, scheduled, "lastProbeTime", json_new_null(a));
        json_set_str(a, scheduled, "type", STR("PodScheduled"));
    }
    if (!str_eqc(json_str(json_get(scheduled, "status")), "True"))
        json_set_str(a, scheduled, "lastTransitionTime",
                     time_format_s(a, clock_wall_s(vapi_clock(c->api))));
    json_set_str(a, scheduled, "status", STR("True"));
    json_remove(scheduled, "reason");
    json_remove(scheduled, "message");
}

static int bind_pod(struct call *c, cJSON *pod, cJSON **ret, struct err *err)
{
    cJSON *metadata = meta_of(c->arena, pod);

    if (check_body(c, err) || check_pod(c, pod, err))
        return -1;
    json_set_str(c->arena, json_ensure_object(c->arena, pod, "spec"), "nodeName",
                 json_str_at(c->body, "target.name"));
    merge_map(c, metadata, "annotations");
    merge_map(c, metadata, "labels");
    set_scheduled(c, pod);
    *ret = pod;
    return 0;
}

/* The assignment is no change the pod's own rules would allow a client. */
static void no_more_checks(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)e;
    (void)object;
    (void)old;
}

static void answer_created(struct call *c, int status, cJSON *object)
{
    (void)status;
    (void)object;
    sub_answer_status(c);
}

void sub_answer_status(struct call *c)
{
    struct arena *a = c->arena;
    cJSON *status = json_new_object(a);

    json_set_str(a, status, "kind", STR("Status"));
    json_set_str(a, status, "apiVersion", STR("v1"));
    json_set(a, status, "metadata", json_new_object(a));
    json_set_str(a, status, "status", STR("Success"));
    json_set_i64(a, status, "code", 201);
    call_tree(c, 201, status);
}

void sub_binding(struct call *c)
{
    static const struct write_plan plan = {
        .make = bind_pod, .validate = no_more_checks, .answer = answer_created, .whole = true};

    write_start(c, &plan);
}
