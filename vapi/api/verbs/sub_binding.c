/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * pods/binding: the scheduler's assignment of a pod to a node. A pod that has a node keeps it.
 * Source: k8s.io/kubernetes pkg/registry/core/pod/storage/storage.go (BindingREST). */
#include "verbs.h"

#include "../review/review.h"
#include "../../core/meta.h"

#include <sublet/json_build.h>
#include <sublet/object.h>

static int refuse(struct call *c, struct err *err, struct str why)
{
    return err_conflict(err, STR(""), STR("pods/binding"), c->name, why.p);
}

/* With the message of upstream's storage, which checks the precondition. */
static int refuse_uid(struct call *c, struct err *err, struct str wanted, struct str is)
{
    return err_conflict(
        err, STR(""), STR("pods"), c->name,
        arena_printf(c->arena,
                     "StorageError: invalid object, Code: 4, Key: %s/pods/%.*s/%.*s, "
                     "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                     "UID in precondition: %.*s, UID in object meta: %.*s",
                     c->options.dry_run ? "" : "/registry", STR_F(c->ns), STR_F(c->name),
                     STR_F(wanted), STR_F(is))
            .p);
}

/* Upstream returns the validation errors of a Binding as a plain error: a 500 with only the
 * message. */
static int as_plain(struct err *err)
{
    static const struct str head = {" is invalid: ", 13};
    struct str text = err->message;

    while (text.n && !str_has_prefix(text, head))
        text = str_from(text, 1);
    text = str_from(text, head.n);
    err_clear(err);
    return err_set(err, &ERR_UNKNOWN, "%.*s", STR_F(text));
}

int sub_binding_check(struct call *c, struct err *err)
{
    struct field_errors e;
    const struct field_path *target = FIELD(NULL, "target");
    struct str kind = json_str_at(c->body, "target.kind");
    struct str name = json_str_at(c->body, "metadata.name");
    static const char *const kinds[] = {"Node", "<empty>", NULL};

    if (!str_eq(name, c->name))
        return err_set(err, &ERR_BAD_REQUEST, "name in URL does not match name in Binding object");
    field_errors_init(&e, c->arena);
    if (kind.n && !str_eqc(kind, "Node"))
        field_not_supported(&e, FIELD(target, "kind"), kind, kinds);
    if (!json_str_at(c->body, "target.name").n)
        field_required(&e, FIELD(target, "name"), "");
    if (field_errors_to_err(&e, STR(""), STR("Binding"), c->name, err))
        return as_plain(err);
    return c->name.n ? 0 : err_set(err, &ERR_BAD_REQUEST, "Name parameter required.");
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

static void set_or_remove(struct arena *a, cJSON *object, const char *key, struct str value)
{
    if (value.n)
        json_set_str(a, object, key, value);
    else
        json_remove(object, key);
}

void sub_pod_condition(struct call *c, cJSON *pod, const char *type, struct str reason,
                       struct str message)
{
    struct arena *a = c->arena;
    cJSON *condition = condition_ensure(a, pod, type);
    bool was_true = str_eqc(json_str(json_get(condition, "status")), "True");

    json_set_str(a, condition, "status", STR("True"));
    if (!json_get(condition, "lastProbeTime"))
        json_set(a, condition, "lastProbeTime", json_new_null(a));
    if (!was_true)
        json_set_str(a, condition, "lastTransitionTime",
                     time_format_s(a, clock_wall_s(vapi_clock(c->api))));
    set_or_remove(a, condition, "reason", reason);
    set_or_remove(a, condition, "message", message);
}

static int bind_pod(struct call *c, cJSON *pod, cJSON **ret, struct err *err)
{
    cJSON *metadata = vapi_meta_of(c->arena, pod);
    struct str uid = json_str_at(c->body, "metadata.uid");
    struct str node = json_str_at(pod, "spec.nodeName");
    struct arena *a = c->arena;

    if (uid.n && !str_eq(uid, json_str_at(pod, "metadata.uid")))
        return refuse_uid(c, err, uid, json_str_at(pod, "metadata.uid"));
    if (object_is_terminating(pod))
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

    json_set_str(c->arena, json_ensure_object(c->arena, pod, "spec"), "nodeName",
                 json_str_at(c->body, "target.name"));
    merge_map(c, metadata, "annotations");
    merge_map(c, metadata, "labels");
    sub_pod_condition(c, pod, "PodScheduled", STR_NULL, STR_NULL);
    *ret = pod;
    return 0;
}

/* The pod's own update rules do not allow this change to clients. */
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

    call_tree(c, 201,
              json_object(a, JSON("kind", "Status"), JSON("apiVersion", "v1"),
                          JSON("metadata", json_new_object(a)), JSON("status", "Success"),
                          JSON_I64("code", 201)));
}

void sub_bind_pod(struct call *c)
{
    static const struct write_plan plan = {.make = bind_pod,
                                           .validate = no_more_checks,
                                           .answer = answer_created,
                                           .reviewed = true,
                                           .uncounted = true,
                                           .whole = true};

    write_start(c, &plan);
}

void sub_binding(struct call *c)
{
    static const struct reviewed_plan plan = {
        .operation = ADMISSION_CREATE, .check = sub_binding_check, .run = sub_bind_pod};

    reviewed_start(c, &plan);
}
