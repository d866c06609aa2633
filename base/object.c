/* SPDX-License-Identifier: Apache-2.0 */
/* What many rooms read in objects. Must never assume that an object is whole: a tenant wrote it. */
#include <sublet/object.h>

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

bool pod_phase_is_final(struct str phase)
{
    return str_eqc(phase, "Succeeded") || str_eqc(phase, "Failed");
}

bool pod_is_finished(const cJSON *pod)
{
    return pod_phase_is_final(json_str_at(pod, "status.phase"));
}

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

cJSON *owner_controller(const cJSON *object)
{
    json_each(ref, json_path(object, "metadata.ownerReferences"))
    {
        if (json_true(json_get(ref, "controller")))
            return ref;
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
