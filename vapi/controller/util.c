/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions, ownership and the state of pods, once for all controllers. Must stay pure: trees in,
 * answers out. */
#include "util.h"

#include <string.h>

/* --- conditions --- */

cJSON *condition_get(const cJSON *conditions, const char *type)
{
    json_each(c, conditions)
    {
        if (str_eqc(json_str_at(c, "type"), type))
            return c;
    }
    return NULL;
}

bool condition_is_true(const cJSON *conditions, const char *type)
{
    return str_eqc(json_str_at(condition_get(conditions, type), "status"), "True");
}

bool condition_set(struct arena *a, cJSON *object, const char *type, const char *status,
                   const char *reason, struct str message, int64_t now_s)
{
    cJSON *parent = json_ensure_object(a, object, "status");
    cJSON *list = json_get(parent, "conditions");

    if (!json_is_array(list))
        list = json_set(a, parent, "conditions", json_new_array(a));
    cJSON *c = condition_get(list, type);
    if (!c) {
        c = json_append(list, json_new_object(a));
        json_set_str(a, c, "type", str_c(type));
    }
    bool same_status = str_eqc(json_str_at(c, "status"), status);
    if (same_status && str_eqc(json_str_at(c, "reason"), reason) &&
        str_eq(json_str_at(c, "message"), message))
        return false;
    json_set_str(a, c, "status", str_c(status));
    json_set_str(a, c, "reason", str_c(reason));
    json_set_str(a, c, "message", message);
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

/* --- ownership --- */

cJSON *owner_controller(const cJSON *object)
{
    json_each(ref, json_path(object, "metadata.ownerReferences"))
    {
        if (json_true(json_get(ref, "controller")))
            return ref;
    }
    return NULL;
}

bool owner_is(const cJSON *object, struct str uid)
{
    return str_eq(json_str_at(owner_controller(object), "uid"), uid) && uid.n;
}

cJSON *owner_ref(struct arena *a, const struct resource *r, const cJSON *owner)
{
    cJSON *ref = json_new_object(a);

    json_set_str(a, ref, "apiVersion", r->api_version);
    json_set_str(a, ref, "kind", r->kind);
    json_set_str(a, ref, "name", meta_name(owner));
    json_set_str(a, ref, "uid", meta_uid(owner));
    json_set_bool(a, ref, "controller", true);
    json_set_bool(a, ref, "blockOwnerDeletion", true);
    return ref;
}

/* --- pods --- */

bool pod_is_terminating(const cJSON *pod)
{
    return json_path(pod, "metadata.deletionTimestamp") != NULL;
}

bool pod_is_finished(const cJSON *pod)
{
    struct str phase = json_str_at(pod, "status.phase");

    return str_eqc(phase, "Succeeded") || str_eqc(phase, "Failed");
}

bool pod_is_active(const cJSON *pod)
{
    return !pod_is_terminating(pod) && !pod_is_finished(pod);
}

bool pod_is_ready(const cJSON *pod)
{
    return condition_is_true(json_path(pod, "status.conditions"), "Ready");
}

bool pod_is_available(const cJSON *pod, int64_t min_seconds, int64_t now_s, int64_t *ret_wait_s)
{
    const cJSON *ready = condition_get(json_path(pod, "status.conditions"), "Ready");
    int64_t since_us;

    *ret_wait_s = 0;
    if (!pod_is_ready(pod))
        return false;
    if (min_seconds <= 0)
        return true;
    if (!time_parse(json_str_at(ready, "lastTransitionTime"), &since_us))
        return false;
    int64_t left = since_us / 1000000 + min_seconds - now_s;
    *ret_wait_s = left > 0 ? left : 0;
    return left <= 0;
}

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

int64_t meta_created_s(const cJSON *object)
{
    int64_t us;

    return time_parse(json_str_at(object, "metadata.creationTimestamp"), &us) ? us / 1000000 : 0;
}
