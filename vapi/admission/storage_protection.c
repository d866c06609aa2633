/* SPDX-License-Identifier: Apache-2.0 */
/* StorageObjectInUseProtection: claims, volumes and their classes are created with the finalizer
 * that keeps them while they are in use. The controllers' storage_protection.c, or upstream's
 * manager, removes it. Source: plugin/pkg/admission/storage/storageobjectinuseprotection. */
#include "plugins.h"

static const char *finalizer_of(const struct admission_call *c)
{
    if (plugin_admits(c, "", "persistentvolumeclaims"))
        return "kubernetes.io/pvc-protection";
    if (plugin_admits(c, "storage.k8s.io", "volumeattributesclasses"))
        return "kubernetes.io/vac-protection";
    return plugin_admits(c, "", "persistentvolumes") ? "kubernetes.io/pv-protection" : NULL;
}

int storage_protection_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                             struct err *err)
{
    const char *finalizer = plugin_is_create(c) ? finalizer_of(c) : NULL;
    cJSON *metadata, *list;

    (void)old;
    (void)err;
    if (!object || !finalizer)
        return 0;
    metadata = json_ensure_object(c->arena, object, "metadata");
    list = json_get(metadata, "finalizers");
    if (json_list_has(list, str_c(finalizer)))
        return 0;
    if (!json_is_array(list))
        list = json_set(c->arena, metadata, "finalizers", json_new_array(c->arena));
    json_append(list, json_new_string(c->arena, str_c(finalizer)));
    return 0;
}
