/* SPDX-License-Identifier: Apache-2.0 */
/* Access to objects. Must never assume that an object is whole: a tenant wrote it. */
#include <sublet/object.h>

#include <sublet/clock.h>
#include <sublet/json_build.h>

/* --- metadata --- */

struct str meta_name(const cJSON *object)
{
    return json_str_at(object, "metadata.name");
}

struct str meta_ns(const cJSON *object)
{
    struct str ns = json_str_at(object, "metadata.namespace");

    return ns.p ? ns : STR("");
}

struct str meta_uid(const cJSON *object)
{
    return json_str_at(object, "metadata.uid");
}

struct str meta_label(const cJSON *object, const char *key)
{
    return json_str(json_get(json_path(object, "metadata.labels"), key));
}

struct str meta_annotation(const cJSON *object, const char *key)
{
    return json_str(json_get(json_path(object, "metadata.annotations"), key));
}

int64_t object_time_s(const cJSON *object, const char *path)
{
    int64_t us;

    return time_parse(json_str_at(object, path), &us) ? us / 1000000 : 0;
}

int64_t meta_created_s(const cJSON *object)
{
    return object_time_s(object, "metadata.creationTimestamp");
}

bool object_is_terminating(const cJSON *object)
{
    return meta_is_terminating(json_get(object, "metadata"));
}

bool meta_is_terminating(const cJSON *metadata)
{
    return json_get(metadata, "deletionTimestamp") != NULL;
}

bool object_may_be_terminating(struct str bytes)
{
    return str_contains(bytes, STR("\"deletionTimestamp\""));
}

bool finalizer_has(const cJSON *object, const char *name)
{
    return json_list_has(json_path(object, "metadata.finalizers"), str_c(name));
}

const char *const POD_CONTAINER_LISTS[3] = {"initContainers", "containers", "ephemeralContainers"};

/* --- conditions --- */

cJSON *condition_find(const cJSON *conditions, struct str type)
{
    json_each(c, conditions)
    {
        if (str_eq(json_str(json_get(c, "type")), type))
            return c;
    }
    return NULL;
}

cJSON *condition_get(const cJSON *conditions, const char *type)
{
    return condition_find(conditions, str_c(type));
}

bool condition_is_true(const cJSON *conditions, const char *type)
{
    return str_eqc(json_str_at(condition_get(conditions, type), "status"), "True");
}

const cJSON *condition_of(const cJSON *object, const char *type)
{
    return condition_get(json_path(object, "status.conditions"), type);
}

cJSON *condition_ensure(struct arena *a, cJSON *object, const char *type)
{
    cJSON *parent = json_ensure_object(a, object, "status");
    cJSON *list = json_get(parent, "conditions"), *there;

    if (!json_is_array(list))
        list = json_set(a, parent, "conditions", json_new_array(a));
    there = condition_get(list, type);
    return there ? there : json_append(list, json_object(a, JSON("type", type)));
}

bool condition_set(struct arena *a, cJSON *object, const char *type, const char *status,
                   const char *reason, struct str message, int64_t now_s)
{
    cJSON *c = condition_ensure(a, object, type);
    bool same_status = str_eqc(json_str_at(c, "status"), status);

    if (same_status && str_eqc(json_str_at(c, "reason"), reason) &&
        str_eq(json_str_at(c, "message"), message))
        return false;
    json_put(a, c, JSON("status", status), JSON("reason", reason), JSON("message", message));
    if (!same_status)
        json_set_str(a, c, "lastTransitionTime", time_format_s(a, now_s));
    return true;
}

bool condition_remove(cJSON *object, const char *type)
{
    cJSON *list = json_path(object, "status.conditions"), *c = condition_get(list, type);

    if (!c)
        return false;
    json_detach(list, c);
    return true;
}

cJSON *condition_new(struct arena *a, const char *type, const char *status, const char *reason,
                     struct str message, struct str since)
{
    return json_object(a, JSON("type", type), JSON("status", status),
                       JSON("lastTransitionTime", since), JSON("reason", reason),
                       JSON("message", message));
}

/* --- pods --- */

bool pod_phase_is_final(struct str phase)
{
    return str_eqc(phase, "Succeeded") || str_eqc(phase, "Failed");
}

bool pod_is_finished(const cJSON *pod)
{
    return pod_phase_is_final(json_str_at(pod, "status.phase"));
}

bool pod_is_active(const cJSON *pod)
{
    return !object_is_terminating(pod) && !pod_is_finished(pod);
}

bool pod_is_ready(const cJSON *pod)
{
    return condition_is_true(json_path(pod, "status.conditions"), "Ready");
}

bool container_is_sidecar(const cJSON *container)
{
    return str_eqc(json_str(json_get(container, "restartPolicy")), "Always");
}

/* --- labels, owners, taints --- */

bool labels_cover(const cJSON *wanted, const cJSON *labels)
{
    json_each(item, wanted)
    {
        const cJSON *has = json_get(labels, item->string);

        if (!has || !str_eq(json_str(has), json_str(item)))
            return false;
    }
    return true;
}

cJSON *owner_reference(struct arena *a, struct str api_version, struct str kind,
                       const cJSON *object)
{
    return json_object(a, JSON("apiVersion", api_version), JSON("kind", kind),
                       JSON("name", meta_name(object)), JSON("uid", meta_uid(object)));
}

void owner_set(struct arena *a, cJSON *object, cJSON *reference)
{
    if (reference)
        json_put(a, json_ensure_object(a, object, "metadata"),
                 JSON("ownerReferences", json_array(a, reference)));
}

cJSON *owner_controller(const cJSON *object)
{
    json_each(ref, json_path(object, "metadata.ownerReferences"))
    {
        if (json_true(json_get(ref, "controller")))
            return ref;
    }
    return NULL;
}

bool toleration_covers(const cJSON *toleration, const cJSON *taint)
{
    struct str key = json_str(json_get(toleration, "key"));
    struct str effect = json_str(json_get(toleration, "effect"));
    struct str operator_ = json_str(json_get(toleration, "operator"));

    if (effect.n && !str_eq(effect, json_str(json_get(taint, "effect"))))
        return false;
    if (key.n && !str_eq(key, json_str(json_get(taint, "key"))))
        return false;
    if (str_eqc(operator_, "Exists"))
        return true;
    return (!operator_.n || str_eqc(operator_, "Equal")) && key.n &&
           str_eq(json_str(json_get(toleration, "value")), json_str(json_get(taint, "value")));
}

cJSON *toleration_find(const cJSON *tolerations, const cJSON *taint)
{
    json_each(toleration, tolerations)
    {
        if (toleration_covers(toleration, taint))
            return toleration;
    }
    return NULL;
}

cJSON *taint_find(const cJSON *taints, const char *key, const char *effect)
{
    json_each(t, taints)
    {
        if (str_eqc(json_str_at(t, "key"), key) && str_eqc(json_str_at(t, "effect"), effect))
            return t;
    }
    return NULL;
}
